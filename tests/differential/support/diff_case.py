"""What a case of the differential suite is: a program, and how ours may differ from plain Parsl."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

HTEX, WORK_QUEUE, THREADS = "htex", "workqueue", "threads"
NAMES = {HTEX: "HTEX", WORK_QUEUE: "Work Queue", THREADS: "threads"}
ALL = (HTEX, WORK_QUEUE, THREADS)


@dataclass(frozen=True)
class Raises:
    """What is expected where a future raises: the name of the class, and a part of the text."""

    name: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One program, run by plain Parsl and by ours; what can be observed of both is compared."""

    name: str
    program: Callable[..., Any]
    """Called with the folder of its run and `args` in one task; or, if it `submits`, with its
    `Side` in the program that submits. What it returns are plain values."""

    args: tuple[object, ...] = ()
    submits: bool = False
    engines: tuple[str, ...] = (HTEX,)
    kind: Literal["same", "better", "different", "refused"] = "same"
    setup: str = "default"
    """How engines and Parsl are configured: a name in `SETUPS` of `diff_run`."""

    title: str = ""
    """For the page: a task that ..."""

    plain: str = ""
    """For the page: what happens with the plain engine."""

    ours: str = ""
    """For the page: what happens with ours."""

    expected: object = None
    """If better or refused: the value, or what it `Raises`. If different: what is seen instead."""

    differs: Literal["outcome", "files", "processes"] = "outcome"
    """If different: what of that which is observed."""

    hints: Mapping[str, object] = field(default_factory=dict)
    """If different: what makes ours do as the plain engine does."""

    option: str = ""
    """For the page: what makes ours do as the plain engine does, as users write it; if refused,
    what to do instead."""

    harms_plain: bool = False
    """If better: whether plain Parsl is left out, because it would hang or lose its worker."""

    mended_by: str = ""
    """Why it fails today; the test has to be told as soon as it does not."""

    at_times: bool = False
    """Whether it fails only at times, so that a test cannot be told when it is mended."""
