"""Text from outside, made safe to print."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import parsl_sizer
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
from parsl_sizer.model.printable import logger_for

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


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Return what a program's own handler, with an ordinary format, makes of our lines."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    logger = logging.getLogger("parsl_sizer")
    logger.addHandler(handler)
    yield written
    logger.removeHandler(handler)


def test_log_lines_are_printable_with_their_tracebacks(lines: io.StringIO) -> None:
    logger = logger_for("parsl_sizer.test")
    try:
        raise ValueError(HOSTILE) from KeyError(HOSTILE)
    except ValueError:
        logger.exception("Task %s of %s", HOSTILE, {"\x1b": 1})
    logged = lines.getvalue()
    assert logged.startswith(f"Task {ESCAPED}\ntwo of ")
    assert f"ValueError: {ESCAPED}\ntwo" in logged
    assert logged.replace("\n", "").isprintable()


def test_log_records_that_need_nothing_stay_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    logger_for("parsl_sizer.test").warning("%d tasks of %s", 3, "align")
    (record,) = caplog.records
    assert (record.msg, record.args) == ("%d tasks of %s", (3, "align"))


def test_a_line_that_cannot_be_made_is_left_to_handlers() -> None:
    class Sour:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    logger = logger_for("parsl_sizer.test")
    record = logger.makeRecord(logger.name, logging.WARNING, "", 0, "%s", (Sour(),), None)
    assert logger.filter(record)
    with pytest.raises(RuntimeError, match="no text"):
        record.getMessage()


def test_every_module_that_logs_escapes_what_it_logs() -> None:
    folder = Path(parsl_sizer.__file__).parent
    found = [path.name for path in folder.rglob("*.py") if "getLogger(__" in path.read_text()]
    assert not found
