"""Functions that tests give to pools. Workers import this, so it imports next to nothing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from sizer_tasks import MB, held, linger, pid_of, wait_for


class Refusal(Exception):
    """An error of the user's own, with arguments of its own."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code


class Box:
    """Something with methods, and with a state."""

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def plus(self, number: int) -> int:
        return self.value + number

    def __call__(self, number: int) -> int:
        return self.value * number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


def double(number):
    return 2 * number


def add(a, b=0):
    return a + b


def names(**values):
    return sorted(values)


def both(*args, **kwargs):
    return args, kwargs


def refuse(code):
    raise Refusal(code, "as it should")


def refuse_with_cause():
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise Refusal(5, "outer") from error


def refuse_odd(number):
    if number % 2:
        raise Refusal(number, "odd")
    return number


def wait_in_turn(folder, name):
    """Say that it has begun, and wait until it may end."""
    Path(folder, f"{name}.begun").touch()
    wait_for(Path(folder, "go"))
    return name


def lambda_of(number):
    return lambda: number


def own_process(_=None):
    return os.getpid()


def note_and_hold(folder, name, mb, s):
    """Hold memory for a while, and note when."""
    began = time.time()
    data = held(mb)
    time.sleep(s)
    Path(folder, f"{name}.log").write_text(f"{began} {time.time()} {mb}")
    return len(data) // MB


def hold_all(amounts):
    """Hold so many MB, all at once."""
    data = held(sum(amounts))
    time.sleep(0.5)
    return len(data) // MB


def most_at_once(folder):
    """The most MB that tasks which took notes have held at the same time."""
    notes = [tuple(map(float, path.read_text().split())) for path in Path(folder).glob("*.log")]
    return max(sum(mb for began, ended, mb in notes if began <= at < ended) for at, _, _ in notes)


def kill_once(path, whom):
    """Kill oneself, or one's worker, at the first attempt."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(pid_of(whom), signal.SIGKILL)
        linger()
    return "survived"


def no_memory_at_first(path):
    """Raise as Python does where there is no memory, the first time."""
    if Path(path).exists():
        return "with more"
    Path(path).touch()
    data = held(1500)
    raise MemoryError(f"beside {len(data)} bytes")


def sum_in_parallel(count):
    """Use joblib inside a call of joblib."""
    from joblib import Parallel, delayed

    return sum(Parallel(n_jobs=2)(delayed(double)(number) for number in range(count)))
