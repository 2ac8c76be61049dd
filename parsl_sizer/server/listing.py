"""Lists as JSON that end where they would become too long, and say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from parsl_sizer.report.plain import json_text

from .answer import JSON, Answer

MOST_LETTERS = 32_000_000
"""Of a list: attempts may carry labels of any length."""


def listing(archive: str, name: str, items: Iterable[Mapping[str, object]], *, most: int) -> Answer:
    """An object with the list under its name; ``is_all`` says whether there was no more."""
    texts: list[str] = []
    length, is_all = 0, True
    for item in items:
        text = json_text(item, indent=None)
        length += len(text)
        if len(texts) == most or length > MOST_LETTERS:
            is_all = False
            break
        texts.append(text)
    head = json_text({"archive": archive, "is_all": is_all}, indent=None)[:-1]
    body = f'{head}, "{name}": [\n' + ",\n".join(texts) + "\n]}\n"
    return Answer(200, JSON, body.encode())
