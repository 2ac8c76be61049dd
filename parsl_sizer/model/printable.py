"""Text from outside, made safe for terminals and logs."""

from __future__ import annotations

import contextlib
import logging
import re

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line separators, and what overrides the direction of text."""


def printable(text: str, keep: str = "\n\t") -> str:
    r"""Return the text with control characters and bidi overrides escaped, except those to keep.

    A terminal obeys them: a name could set its title, or show other text than it has.

    >>> print(printable("\x1b[31malign\u202e"))
    \x1b[31malign\u202e
    """
    if text.isprintable():
        return text
    return UNSAFE.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def logger_for(name: str) -> logging.Logger:
    """Return the logger of this name, with its lines and tracebacks made safe for any handler."""
    logger = logging.getLogger(name)
    logger.addFilter(_escape)
    return logger


def _escape(record: logging.LogRecord) -> bool:
    with contextlib.suppress(Exception):  # handlers come upon it, too, and say so
        text = record.getMessage()
        if (safe := printable(text)) != text:
            record.msg, record.args = safe, None
        if record.exc_info and not record.exc_text:
            text = _FORMATTER.formatException(record.exc_info)
            if (safe := printable(text)) != text:
                record.exc_text = safe  # formatters take it as it is
    return True


_FORMATTER = logging.Formatter()


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
