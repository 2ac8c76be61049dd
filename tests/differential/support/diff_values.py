"""Programs about what goes in and comes out. Workers import this, so it imports next to nothing."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import pathlib
import subprocess
import sys
import warnings
from typing import NamedTuple


class Point(NamedTuple):
    x: float
    y: float


class Colour(enum.IntEnum):
    RED = 1


class Word(str):
    """A text with an attribute."""

    __slots__ = ("language",)


class Equal:
    """Equal to all of its kind."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __repr__(self):
        return f"Equal({self.__dict__})"


def plain_values(folder):
    return [
        None, True, 1, 1.0, -0.0, float("inf"), 10**40, "", "ä€", "\ud800", b"\0\xff", (),
        (1,), [], [[]], {}, {"a": {"b": (1, [2])}}, 1j, ..., range(3), slice(1, 2),
    ]  # fmt: skip


def one_value(folder, text):
    """Return one of the values that are treated by themselves as they are so frequent."""
    return eval(text)


def subclasses(folder):
    return [
        Point(1.0, 2.0), Colour.RED, Word("word"), collections.OrderedDict(a=1),
        collections.Counter("aab"), collections.defaultdict(list, a=[1]), collections.deque([1], 3),
        frozenset({1, 2}), {1, "a"}, bytearray(b"x"), decimal.Decimal("1.10"),
        fractions.Fraction(1, 3), datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
        datetime.timedelta(1), pathlib.PurePosixPath("a/b"), Equal(a=1), Equal, len, Point,
    ]  # fmt: skip


def identities(folder):
    part = [1]
    whole = {"first": part, "second": part}
    whole["itself"] = whole
    return whole


def shared_part(folder):
    part = [1]
    return [part, part]


def arrays(folder):
    import numpy

    plain = numpy.arange(6, dtype="int16").reshape(2, 3)
    values = [plain, plain.T, plain[:, ::2], numpy.float32(1.5), numpy.array(["a", None], object)]
    return [
        (value.dtype.str, value.shape, value.tolist(), getattr(value, "flags", None) is not None)
        for value in values
    ] + [plain.flags.writeable]


def array(folder):
    import numpy

    return numpy.arange(6, dtype="int16").reshape(2, 3).T


def of_a_local_class(folder):
    class Local:
        def __repr__(self):
            return "Local()"

    return Local()


def a_function(folder):
    step = 2
    return lambda value: value + step


def a_generator(folder):
    yield 1


async def a_coroutine(folder):
    return 1


class Breaks:
    """Can be packed, and not be unpacked."""

    def __reduce__(self):
        return int, ("not a number",)


def breaks_when_unpacked(folder):
    return Breaks()


def returns_an_exception(folder):
    return [ValueError("a value", 3), KeyError("k")]


def only_an_exception(folder):
    return ValueError("a value", 3)


def large_result(folder, size):
    return b"x" * size


def length(folder, data):
    return len(data), type(data).__name__, bytes(data[:1])


def changed_argument(folder, items, options):
    items.append("in the task")
    options["in the task"] = True
    return items, options


def all_kinds_of_arguments(folder, /, first, *others, only, **named):
    return first, others, only, sorted(named.items())


# Exceptions


class Odd(Exception):
    """Its arguments are not those that it is made of."""

    def __init__(self, number, *, reason="none"):
        super().__init__(f"number {number}")
        self.number = number
        self.reason = reason


class Needs(Exception):
    """Cannot be unpacked: it needs two arguments and says one."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


class Final(BaseException):
    """Not an Exception."""


def simple_error(folder):
    raise ValueError("a text", 1, [2])


def deep_error(folder, depth=5):
    if depth:
        deep_error(folder, depth - 1)
    return {}["missing"]


def error_with_cause(folder):
    try:
        simple_error(folder)
    except ValueError as error:
        raise LookupError("outer") from error


def error_with_context(folder):
    try:
        simple_error(folder)
    except ValueError:
        raise LookupError("outer")  # noqa: B904 - a context is wanted


def error_from_none(folder):
    try:
        simple_error(folder)
    except ValueError:
        raise LookupError("outer") from None


def error_with_notes(folder):
    error = ValueError("noted")
    if sys.version_info >= (3, 11):
        error.add_note("first")
        error.add_note("second")
    raise error


def error_with_attributes(folder):
    error = ValueError("attributes")
    error.code, error.folder = 5, folder
    raise error


def error_group(folder):
    if sys.version_info < (3, 11):
        raise ValueError("there are no groups")
    raise ExceptionGroup("both", [ValueError("one"), TypeError("two")])  # noqa: F821


def odd_error(folder):
    raise Odd(3, reason="odd")


def error_that_cannot_be_unpacked(folder):
    raise Needs(1, 2)


def error_that_cannot_be_packed(folder):
    raise ValueError(x for x in [1])


def local_error(folder):
    class Local(Exception):
        pass

    raise Local("of a class that only this task knows")


def os_error(folder):
    open(pathlib.Path(folder, "missing", "file"))


def command_error(folder):
    subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], check=True, capture_output=True)


def recursion_error(folder):
    return recursion_error(folder)


def memory_error(folder):
    with open(pathlib.Path(folder, "notes"), "a") as notes:
        notes.write("x")
    raise MemoryError("of the user's own")


def stop_iteration(folder):
    next(iter(()))


def import_error(folder):
    import no_such_module_is_here  # noqa: F401


def warning_as_error(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn("as an error", stacklevel=1)


def system_exit(folder, code=None):
    sys.exit(code)


def keyboard_interrupt(folder):
    raise KeyboardInterrupt("by itself")


def final(folder):
    raise Final("final")
