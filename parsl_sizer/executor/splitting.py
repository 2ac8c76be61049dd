"""Doing a task's work in parts, when it ran out of something.

`on_exhausted` is the user's function, asked in a thread of its own about every task that
ran out. If it answers with a `Split`, the parts are tasks like any other (they may be split
again), their results are combined by one more, and that is the result of the first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

from parsl.app.errors import RemoteExceptionWrapper, wrap_error

from parsl_sizer.model import Amounts, Outcome, SizerError, logger_for

from .calls import Call
from .carried import Carried, bearer, contents
from .hints import NAMES
from .naming import name_of_function, user_function

logger = logger_for(__name__)

SPECIFICATION = "parsl_resource_specification"
OF_THE_WHOLE = frozenset(NAMES) - {"isolation", "labels"}
"""Hints for a call that say nothing about combining the results of its parts."""


class Exhaustion(NamedTuple):
    """A task that ran out, and what would become of it."""

    category: str
    function: Callable[..., Any]
    """The user's own."""
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]
    """Of its attempts, the first one first."""
    larger: Amounts | None
    """What it would be given next; None if no node has more."""


class Part:
    """The arguments of one part, as in a call of the function.

    The hints of the first call hold for it too, unless it has its own
    ``parsl_resource_specification``.

    >>> Part([1, 2], scale=3)
    Part([1, 2], scale=3)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        named = [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"Part({', '.join([*map(repr, self.args), *named])})"


class Split(NamedTuple):
    """Calls of the same function to do the work of one, and what makes one result of theirs.

    `combine` is given the list of their results, in order, and runs as a task too.
    """

    parts: Sequence[Part]
    combine: Callable[[list[Any]], Any]


OnExhausted = Callable[[Exhaustion], Split | None]
"""A user's function; None leaves the task to be tried with more, or to fail."""


class Original(NamedTuple):
    """A call as Parsl made it, or as a pool did: then `carried` is the user's function."""

    function: Callable[..., Any]
    specification: dict[str, Any]
    call: Call
    carried: Callable[..., Any] | None = None

    def arguments(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The user's, as they were when the call was made."""
        args, kwargs = self.call.arguments()
        return (args, kwargs) if self.carried is None else contents(args[0])

    def again(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]:
        """A call of another function, or with other arguments, to be made in the same way."""
        if self.carried is None:
            return function, args, kwargs
        name = name_of_function(user_function(function))
        return bearer(name), (Carried(function, args, kwargs),), {}


class BadSplit(SizerError, ValueError):
    """An answer of `on_exhausted` that is none."""


class Splitter:
    """Asks, and sees parts through to one result.

    `submit` is the executor's own, and may be called from any thread. Users are asked in one
    thread and results are combined in another: nobody waits for a user who takes long.
    """

    def __init__(self, submit: Callable[..., Future[Any]], warn: Callable[[str], None]) -> None:
        self._submit = submit
        self._warn = warn
        self._asking = _Worker("parsl_sizer-split")
        self._combining = _Worker("parsl_sizer-combine")

    def ask(
        self,
        hook: OnExhausted,
        exhaustion: Callable[[], Exhaustion],
        original: Original,
        tell: Callable[[Future[Any] | None], None],
    ) -> None:
        """Have `tell` called with the future of a task's parts, or None if it has none."""
        self._asking.do(partial(self._ask, hook, exhaustion, original, tell))

    def close(self) -> None:
        """Ask nobody any more."""
        self._asking.close()
        self._combining.close()

    def _ask(
        self,
        hook: OnExhausted,
        exhaustion: Callable[[], Exhaustion],
        original: Original,
        tell: Callable[[Future[Any] | None], None],
    ) -> None:
        result = None
        try:
            split = checked(hook(exhaustion()))
            if split is not None:
                result = _Parts(self, original, split).result
        except BaseException as error:  # it may even call sys.exit: nobody is to wait for ever
            why = str(error) if isinstance(error, BadSplit) else f"It raised {error!r:.200}."
            self._warn(f"on_exhausted failed, and tasks for which it does are not split. {why}")
        finally:
            tell(result)

    def combine(self, original: Original, split: Split, results: list[Any]) -> Future[Any]:
        """The future of the parts' combined results."""
        hints = original.specification.items()
        specification = {name: hint for name, hint in hints if name not in OF_THE_WHOLE}
        combine = split.combine if original.carried else wrap_error(split.combine)
        function, args, kwargs = original.again(combine, (results,), {})
        return self._submit(function, specification, *args, **kwargs)

    def start(self, original: Original, part: Part) -> Future[Any]:
        """The future of one part."""
        specification = part.kwargs.get(SPECIFICATION) or original.specification
        kwargs = part.kwargs
        if original.carried is not None:  # there the user's function has not got such an argument
            kwargs = {name: value for name, value in kwargs.items() if name != SPECIFICATION}
        called = original.carried or original.function
        function, args, kwargs = original.again(called, part.args, kwargs)  # type: ignore[assignment]
        return self._submit(function, dict(specification), *args, **kwargs)

    def later(self, work: Callable[[], None]) -> None:
        """Do something in the thread that combines."""
        self._combining.do(work)


class _Worker:
    """A thread that does one thing after the other."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A daemon: a user's function that hangs must not keep Python from leaving.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def close(self) -> None:
        self._work.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=1)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except Exception:
                logger.exception("A task could not be split")
            del work  # it holds arguments, which may be large


class _Parts:
    """Parts that are on their way."""

    def __init__(self, splitter: Splitter, original: Original, split: Split) -> None:
        self.result: Future[Any] = Future()
        self._splitter = splitter
        self._original = original
        self._split = split
        self._left = len(split.parts)
        self._lock = threading.Lock()
        self._futures = [splitter.start(original, part) for part in split.parts]
        for future in self._futures:
            future.add_done_callback(self._done)

    def _done(self, future: Future[Any]) -> None:
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if _failed(future):
            self._pass_on(future)
        elif is_last and not self.result.done():
            self._splitter.later(self._combine)

    def _combine(self) -> None:
        try:
            results = [future.result() for future in self._futures]
            combined = self._splitter.combine(self._original, self._split, results)
        except Exception as error:
            self.result.set_exception(error)
        else:
            combined.add_done_callback(self._pass_on)

    def _pass_on(self, future: Future[Any]) -> None:
        with self._lock:
            if self.result.done():
                return
            error = future.exception()
            if error is not None:
                self.result.set_exception(error)
            else:
                self.result.set_result(future.result())


def _failed(future: Future[Any]) -> bool:
    return future.exception() is not None or isinstance(future.result(), RemoteExceptionWrapper)


def checked(split: object) -> Split | None:
    """An answer of the user's function, if it is one.

    >>> checked(Split([Part(1)], sum))
    Traceback (most recent call last):
    parsl_sizer.executor.splitting.BadSplit: on_exhausted has returned 1 part, not 2 or more.
    """
    if split is None:
        return None
    if not isinstance(split, Split) or not callable(split.combine):
        raise BadSplit(
            f"on_exhausted has returned {split!r:.100}, which is neither a Split of parts with a "
            "function that combines their results nor None."
        )
    parts = list(split.parts)
    if not all(isinstance(part, Part) for part in parts):
        raise BadSplit("The parts of a Split have to be made with Part(...).")
    if len(parts) < 2:
        count = "1 part" if parts else "no part"
        raise BadSplit(f"on_exhausted has returned {count}, not 2 or more.")
    return split._replace(parts=parts)
