"""A rich console for text from outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from parsl_sizer.model import printable


class LiteralConsole(Console):
    """A console that shows text literally: without markup, with control characters escaped."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text as rich lays it out; escapes first, so that widths are right."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield what is shown, with the control characters of text escaped."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield segment._replace(text=printable(segment.text))
