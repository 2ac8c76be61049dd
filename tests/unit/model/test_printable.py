"""Text from outside, made safe to print."""

from __future__ import annotations

import pytest

from parsl_sizer.model import (
    Attempt,
    Ending,
    Kind,
    Outcome,
    ResourcesExhausted,
    SizerError,
    TaskInfo,
    printable,
)

HOSTILE = "\x1b]0;title\x07\u202ename\r\x9b31m\x7f\ntwo"
ESCAPED = r"\x1b]0;title\x07\u202ename\x0d\x9b31m\x7f"


def test_control_characters_and_bidi_overrides_are_escaped() -> None:
    assert printable(HOSTILE) == ESCAPED + "\ntwo"
    assert printable(HOSTILE, keep="") == ESCAPED + r"\x0atwo"


@pytest.mark.parametrize("text", ["", "align", "ü/☃ 工程 🧬", "a\tb\nc", r"C:\x1b", "שלום"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_every_control_character_is_escaped() -> None:
    controls = [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    for code in controls:
        assert printable(chr(code), keep="").isprintable()


def test_the_text_of_an_error_is_printable() -> None:
    assert str(SizerError(f"No run {HOSTILE}.")) == f"No run {ESCAPED}\ntwo."
    attempt = Attempt(TaskInfo("\x1bid", HOSTILE), 1, {Kind.MEMORY: 1e9})
    outcome = Outcome(attempt, Ending.EXHAUSTED, exhausted=frozenset({Kind.MEMORY}))
    text = str(ResourcesExhausted("\x1bid", HOSTILE, [outcome]))
    assert text.startswith(rf"Task \x1bid ({ESCAPED}\x0atwo) ran out of memory")
