"""Runs one case on a plain engine and on ours, and describes all that can be observed of it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parsl
import psutil
import pytest
from diff_case import Case, Raises
from diff_table import cases
from parsl import bash_app, join_app, python_app
from sizer_runs import running

from parsl_sizer import sized

LIMIT_S = 20
PLAIN, SIZED = "plain", "sized"
LONG_TEXT = 2000
ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
OF_ENGINES = (
    "/process_worker_pool.py",
    "/parsl/executors/",
    "/parsl_sizer/",
    "<parsl_sizer",
    "/concurrent/futures/",
)
"""Where frames of a traceback are from that users have no use for."""

SETUPS: dict[str, dict[str, Any]] = {
    "default": {},
    "retries": {"retries": 1},
    "affinity": {},
    "states": {},
}
"""What `parsl.Config` is given besides the executors."""


@dataclass
class Side:
    """One of the two executors, as the program of a case sees it."""

    runs: Runs
    label: str
    folder: Path
    hints: Mapping[str, object]

    @property
    def executor(self) -> Any:
        """The executor that Parsl has on this side."""
        return self.runs.dfk.executors[self.label]

    @property
    def inner(self) -> Any:
        """The executor of Parsl that runs the tasks, for what it writes and where."""
        return getattr(self.executor, "inner", self.executor)

    def app(self, function: Callable[..., Any], **options: Any) -> Any:
        """Return an app of Python that runs on this side."""
        return self._app(python_app, function, options)

    def bash(self, function: Callable[..., Any], **options: Any) -> Any:
        """Return an app of bash that runs on this side."""
        return self._app(bash_app, function, options)

    def join(self, function: Callable[..., Any]) -> Any:
        """Return an app that joins others; it runs in this process on both sides."""
        return join_app(function, data_flow_kernel=self.runs.dfk)

    def _app(self, make: Any, function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
        hinted = sized(**self.hints)(function) if self.hints and self.label == SIZED else function
        return make(hinted, data_flow_kernel=self.runs.dfk, executors=[self.label], **options)

    def outcome(self, future: Future[Any]) -> object:
        """Return what a future gives, described."""
        return outcome(lambda: future.exception(LIMIT_S), lambda: future.result(LIMIT_S))

    def restart(self, **config: Any) -> None:
        """End this run of Parsl and begin another one on the same engines."""
        self.runs.begin(**config)


class Seen(dict[str, object]):
    """What was observed and is described already."""


class Runs:
    """Both executors in one run of Parsl after the other; `make` makes them for a setup."""

    def __init__(self, make: Callable[[str], Sequence[Any]], home: Path) -> None:
        self._make = make
        self._home = home
        self._stack = ExitStack()
        self._count = 0
        self._setup = ""
        self._is_as_set_up = False
        self.dfk: parsl.DataFlowKernel

    def use(self, setup: str) -> None:
        """Have a run with this setup."""
        if not self._is_as_set_up or self._setup != setup:
            self._setup = setup
            self.begin(**SETUPS[setup])
            self._is_as_set_up = True

    def begin(self, **config: Any) -> None:
        """Begin a run, after the end of the one before."""
        self.end()
        self._count += 1
        folder = self._home / f"run{self._count}"
        self.dfk = self._stack.enter_context(running(self._make(self._setup), folder, **config))

    def end(self) -> None:
        """End the last run."""
        self._is_as_set_up = False
        self._stack.close()

    def observed(
        self, case: Case, label: str, folder: Path, hints: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """Run a case on one side; all that is seen of it."""
        folder.mkdir(parents=True)
        side = Side(self, label, folder, hints or {})
        with processes(folder) as alive:
            if case.submits:
                seen = outcome(lambda: None, lambda: case.program(side, *case.args))
            else:
                seen = side.outcome(side.app(case.program)(str(folder), *case.args))
            observed = {"outcome": seen, "files": files(folder), "processes": alive()}
        return anonymous(observed, str(folder))


def outcome(
    raised: Callable[[], BaseException | None], returned: Callable[[], object]
) -> dict[str, object]:
    """Describe what a call returned or raised."""
    error = raised()
    if error is None:
        return Seen(returned=described(returned()))
    return Seen(raised=described_error(error))


@contextmanager
def processes(folder: Path) -> Iterator[Callable[[], dict[str, bool]]]:
    """Which of the processes that have noted themselves in a folder are alive; they end here."""

    def noted() -> dict[str, int]:
        return {path.stem: int(path.read_text()) for path in folder.glob("*.pid")}

    def is_alive(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    try:
        yield lambda: {name: is_alive(pid) for name, pid in sorted(noted().items())}
    finally:
        for pid in noted().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def files(folder: Path) -> dict[str, object]:
    """Describe all files below a folder, but for notes of processes: their numbers differ."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".pid":
            continue
        mode = oct(path.lstat().st_mode)
        if path.is_symlink() or not path.is_file():
            found[str(path.relative_to(folder))] = mode
        else:
            text = path.read_bytes()
            found[str(path.relative_to(folder))] = (mode, len(text), text[:LONG_TEXT])
    return found


def described(value: object, met: dict[int, int] | None = None) -> object:
    """Describe a value with the types of all its parts: 1 is not True, nor a tuple a list.

    A list or dictionary that is there twice is described once, so that it shows whether it is.
    """
    if isinstance(value, Seen):
        return value
    met = {} if met is None else met
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, (list, dict)):
        if id(value) in met:
            return "again", met[id(value)]
        met[id(value)] = len(met)
    if isinstance(value, BaseException):
        return described_error(value)
    if isinstance(value, dict):
        return name, [(described(key, met), described(item, met)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return name, [described(item, met) for item in value]
    if isinstance(value, (set, frozenset)):
        return name, sorted(repr(described(item)) for item in value)
    text = value if isinstance(value, (str, bytes)) else repr(value)
    return name, text if len(text) <= LONG_TEXT else (len(text), hash(text))


def described_error(error: BaseException | None) -> object:
    """Describe an exception with all that hangs on it, and the text of its traceback."""
    if error is None:
        return None
    return {
        "type": f"{type(error).__module__}.{type(error).__qualname__}",
        "text": str(error),
        "args": described(error.args),
        "attributes": described(vars(error)),
        "cause": described_error(error.__cause__),
        "context": described_error(error.__context__),
        "suppresses": error.__suppress_context__,
        "traceback": trace(error),
    }


def trace(error: BaseException) -> str:
    """Format a traceback without the frames of engines: theirs and ours are not the same code."""
    frames = traceback.extract_tb(error.__traceback__)
    return "".join(
        traceback.format_list(
            [
                frame
                for frame in frames
                if frame.name != "reraise"
                and not any(part in frame.filename for part in OF_ENGINES)
            ]
        )
    )


def anonymous(seen: Any, folder: str) -> Any:
    """Leave out what differs from run to run: its folder, and addresses in memory."""
    if isinstance(seen, str):
        return ADDRESS.sub("0x", seen.replace(folder, "FOLDER"))
    if isinstance(seen, bytes):
        return seen.replace(folder.encode(), b"FOLDER")
    if isinstance(seen, dict):
        return {anonymous(key, folder): anonymous(value, folder) for key, value in seen.items()}
    if isinstance(seen, (list, tuple)):
        return type(seen)(anonymous(item, folder) for item in seen)
    return seen


def check(case: Case, runs: Runs, folder: Path) -> None:
    """Run a case on both sides and compare."""
    runs.use(case.setup)
    if case.kind in ("better", "refused"):
        check_better(case, runs, folder)
        return
    plain = runs.observed(case, PLAIN, folder / "plain")
    ours = runs.observed(case, SIZED, folder / "sized")
    if case.kind == "same":
        differ(plain, ours)
        return
    assert ours != plain, "this is no difference any more: make its kind 'same'"
    differ({**plain, case.differs: case.expected}, ours)
    differ(plain, runs.observed(case, SIZED, folder / "other", case.hints))


def differ(plain: object, ours: object) -> None:
    """Fail with all that differs, each with where it was observed."""
    found = list(differences(plain, ours, ""))
    assert not found, "\n".join(["plain Parsl and ours differ:", *found])


def differences(plain: Any, ours: Any, where: str) -> Iterator[str]:
    """Yield what differs in two observations."""
    if isinstance(plain, dict) and isinstance(ours, dict):
        for key in sorted({*plain, *ours}, key=repr):
            yield from differences(plain.get(key), ours.get(key), f"{where}.{key}")
    elif (
        isinstance(plain, (list, tuple))
        and isinstance(ours, (list, tuple))
        and len(plain) == len(ours)
    ):
        for number, both in enumerate(zip(plain, ours, strict=True)):
            yield from differences(*both, f"{where}.{number}")
    elif plain != ours:
        yield f"{where}\n--- plain\n{plain}\n--- ours\n{ours}\n"


def check_better(case: Case, runs: Runs, folder: Path) -> None:
    """Compare with what is expected, and see that plain Parsl does not do that."""
    ours = runs.observed(case, SIZED, folder / "sized")["outcome"]
    assert is_expected(ours, case.expected), f"{ours} is not {case.expected}"
    if not case.harms_plain:
        plain = runs.observed(case, PLAIN, folder / "plain")["outcome"]
        assert not is_expected(plain, case.expected), "plain Parsl does this: make its kind 'same'"


def is_expected(seen: Any, expected: object) -> bool:
    """Whether what was observed is what a case expects."""
    if isinstance(expected, Raises):
        error = seen.get("raised")
        return (
            error is not None
            and error["type"].rpartition(".")[2] == expected.name
            and expected.text in error["text"]
        )
    return bool(seen == {"returned": described(expected)})


def parameters(engine: str) -> list[Any]:
    """Return the cases of an engine as parameters of a test; setups one after the other."""
    return [
        pytest.param(
            case,
            id=case.name.replace(" ", "-"),
            marks=[pytest.mark.xfail(strict=not case.at_times, reason=case.mended_by)]
            * bool(case.mended_by),
        )
        for case in sorted(cases(engine), key=lambda case: list(SETUPS).index(case.setup))
    ]
