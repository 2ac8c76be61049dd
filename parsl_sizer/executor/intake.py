"""From a call to a `TaskInfo`: its category, its features, what the user said.

The category is, in this order: the hint of the call or the app, what the callable
given to the executor says, what a recogniser for a framework says, the name of the
user's function.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from parsl.data_provider.files import File

from parsl_sizer.model import TaskInfo

from .carried import carried_in
from .hints import NO_HINTS, Hints, hints_of, merged, read
from .naming import given_function, name_of_function, unwrapped, user_function
from .recognisers import PLAIN, Recogniser, Recognisers, Seen
from .recognisers.catalog import claimed_by

Categorise = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], str | None]
"""A user's function of the app's function and its arguments; None leaves it to others."""

LARGE_ARGUMENTS = 64_000
"""Bytes from which arguments, serialised, count as input: below that they explain nothing."""

NOT_INPUTS = frozenset({"stdout", "stderr", "outputs", "parsl_resource_specification"})


class Known(NamedTuple):
    """What is the same for every call of a function."""

    name: str
    command: str
    code_hash: str | None
    hints: Hints
    framework: type[Recogniser] | None


class Arrival(NamedTuple):
    """A task, what the user said of it, and who knows what it is about."""

    task: TaskInfo
    hints: Hints
    recogniser: Recogniser
    tag: object
    instead: Mapping[str, Any]
    """Keyword arguments to replace."""


NOTHING_SEEN = Seen("")


def category_before(function: Callable[..., Any], specification: Mapping[str, object]) -> str:
    """The category of a call whose arguments are not there yet, as far as that is known."""
    known = _known(function)
    return merged(known.hints, read(specification)).category or known.name


def task_info(
    task_id: int,
    function: Callable[..., Any],
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    specification: Mapping[str, object],
    *,
    now: float,
    recognisers: Recognisers,
    categorise: Categorise | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Arrival:
    """What is known of a task when it is submitted."""
    carried = carried_in(arguments[0])
    if carried is None:
        known = _known(function)
    else:
        function, arguments = carried.function, (carried.args, carried.kwargs)
        known = _known_of_carried(function)
    hints = merged(known.hints, read(specification))
    recogniser, seen = PLAIN, NOTHING_SEEN
    if known.framework is not None:
        recogniser = recognisers.of(known.framework)
        seen = recogniser.see(user_function(function), *arguments) or NOTHING_SEEN
    if carried is not None and carried.features:
        seen = seen._replace(features={**carried.features, **seen.features})
    category = hints.category
    if category is None and categorise is not None:
        category = _asked(categorise, function, arguments, warn)
    info = TaskInfo(
        task_id,
        category or seen.category or known.name,
        submitted_at=now,
        features={**seen.features, **hints.features} if seen.features else hints.features,
        requested=hints.requested,
        code_hash=known.code_hash,
        labels=hints.labels,
        opt_outs=hints.opt_outs | seen.opt_outs if seen.opt_outs else hints.opt_outs,
        command=known.command,
    )
    return Arrival(info, hints, recogniser, seen.tag, seen.instead)


def _asked(
    categorise: Categorise,
    function: Callable[..., Any],
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    warn: Callable[[str], None],
) -> str | None:
    try:
        category = categorise(user_function(function), *arguments)
    except Exception as error:
        warn(
            f"The category function raised {error!r:.200}; "
            "tasks for which it does so are sized by the name of their function."
        )
        return None
    if category is None or (isinstance(category, str) and category):
        return category
    warn(
        f"The category function returned {category!r:.200}, which is neither a text nor None; "
        "tasks for which it does so are sized by the name of their function."
    )
    return None


_carried: WeakKeyDictionary[Callable[..., Any], Known] = WeakKeyDictionary()
"""Of functions that are not an app's, and may be made anew for every call."""


def _known_of_carried(function: Callable[..., Any]) -> Known:
    try:
        return _carried[function]
    except Exception:  # it is not there, cannot be hashed, or is nothing to refer to
        known = _find_out(function)
    with contextlib.suppress(Exception):
        _carried[function] = known
    return known


def _find_out(function: Callable[..., Any]) -> Known:
    given = given_function(function)
    user = unwrapped(given)
    name = name_of_function(given)
    framework = claimed_by(user)
    own = user if framework is None else framework.own(user)
    hints = hints_of(function)
    if hints is NO_HINTS:
        hints = hints_of(own)
    code = getattr(own, "__code__", None)
    module, qualified = getattr(own, "__module__", None), getattr(own, "__qualname__", name)
    command = f"{module}.{qualified}" if module else str(qualified)
    code_hash = _code_hash(code) if code else None
    return Known(name, command, code_hash, hints, framework)


_known = lru_cache(maxsize=256)(_find_out)


def _code_hash(code: CodeType) -> str:
    digest = hashlib.sha256()
    waiting = [code]
    while waiting:
        current = waiting.pop()
        digest.update(current.co_code)
        for constant in current.co_consts:
            if isinstance(constant, CodeType):
                waiting.append(constant)
            elif isinstance(constant, (str, bytes, int, float, complex, bool, type(None))):
                digest.update(repr(constant).encode())
        digest.update(repr((current.co_names, current.co_varnames)).encode())
    return digest.hexdigest()[:16]


def input_files(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[File]:
    """The files that a call reads, as far as they are among its arguments."""
    if not args and not kwargs:
        return []
    values: list[Any] = list(args)
    values += [value for name, value in kwargs.items() if name not in NOT_INPUTS]
    found = [value for value in values if isinstance(value, File)]
    for value in values:
        if isinstance(value, (list, tuple)):
            found += [item for item in value if isinstance(item, File)]
    return found


def name_of(file: File) -> str:
    """Where a file is, without what is nobody's business: accounts, passwords, signatures.

    >>> name_of(File("https://me:secret@host/data.fq?signature=x")), name_of(File("/d/a b.fq"))
    ('https://host/data.fq', '/d/a b.fq')
    """
    if file.scheme == "file":
        return str(file.path)
    place = str(file.netloc).rpartition("@")[2]
    return f"{file.scheme}://{place}{str(file.path).partition('?')[0]}"


def size_of(files: Iterable[File]) -> float | None:
    """The bytes in these files; None if of one that is not known. Reads the file system."""
    sizes = []
    for file in files:
        try:
            sizes.append(Path(file.filepath).stat().st_size)
        except Exception:  # a remote scheme, or a file that is not there yet
            return None
    return math.fsum(sizes)
