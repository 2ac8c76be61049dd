"""Apps of every sort that Parsl has. Workers import this, so it imports next to nothing."""

from __future__ import annotations

import time
from pathlib import Path

from parsl import bash_app, join_app, python_app

from parsl_sizer import sized

MB = 1_000_000


def note(path: str, text: str = "x") -> int:
    """Add a letter to a file; how many there are now."""
    with Path(path).open("a") as notes:
        notes.write(text)
    return len(Path(path).read_text())


@python_app(cache=True)
def square(value, notes):
    note(notes)
    return value * value


def held(mb: float, *, long: bool) -> int:
    """Hold memory; for long is until somebody puts an end to it."""
    data = bytearray(b"x") * int(mb * MB)
    if long:
        time.sleep(300)
    return len(data) // MB


@python_app(cache=True)
@sized(memory="100MB")
def grown(mb, notes):
    """Needs more than it says, and the first time is stopped for that."""
    return held(mb, long=note(notes) == 1)


@python_app
@sized(memory="100MB")
def grown_then_failing(mb, notes):
    """Needs more than it says, and when it has that fails once."""
    size = held(mb, long=note(notes) == 1)
    if note(f"{notes}.returns") == 1:
        raise ValueError("the first time")
    return size


@python_app
def giant(notes):
    note(notes)
    return held(3000, long=True)


@python_app
def failing(notes):
    note(notes)
    raise ValueError("every time")


@bash_app
def shell(command, stdout=None, stderr=None, inputs=(), outputs=()):
    return command


@bash_app(cache=True)
def shell_noted(notes, stdout=None):
    return f"printf x >> {notes}; echo done"


@bash_app
def concatenated(inputs=(), outputs=()):
    return f"cat {' '.join(file.filepath for file in inputs)} > {outputs[0].filepath}"


@python_app
def content(inputs=()):
    return [Path(file.filepath).read_text() for file in inputs]


@python_app
def sleeping(seconds, walltime=None):
    """Sleeps in small pieces, between which a walltime can end it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.02)
    return seconds


@python_app
def added(*values):
    return sum(values)


@python_app
def failing_with(text):
    raise KeyError(text)


@join_app
def fibonacci(n):
    return added(n) if n < 2 else added(fibonacci(n - 1), fibonacci(n - 2))


@join_app
def joined_failure():
    return [added(1, 2), failing_with("in a joined task")]


@python_app
def lettered(notes, letter, *after, gate=None, parsl_resource_specification=None):
    """Adds its letter to the notes, as soon as the gate is there."""
    while gate is not None and not Path(gate).exists():
        time.sleep(0.02)
    note(notes, letter)
