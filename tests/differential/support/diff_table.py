"""The cases of the differential suite."""

from __future__ import annotations

import diff_processes as processes
import diff_values as values
from diff_case import ALL, Case, Raises

MB = 1_000_000


def same(name, program, *args, **options):
    """A program that does with ours what it does with plain Parsl."""
    return Case(name=name, program=program, args=args, **options)


def better(name, program, *args, **options):
    """A program that plain Parsl harms, or that harms plain Parsl."""
    return Case(name=name, program=program, args=args, kind="better", **options)


def different(name, program, *args, **options):
    """A program that does something else with ours, unless an option is given."""
    return Case(name=name, program=program, args=args, kind="different", **options)


VALUES = [
    same("plain values", values.plain_values, engines=ALL),
    same("subclasses of plain values", values.subclasses, engines=ALL),
    same("an object that is there twice", values.shared_part),
    same("a structure that has itself", values.identities),
    same("arrays", values.arrays),
    same("an array", values.array),
    same("an object of a local class", values.of_a_local_class),
    same("a generator", values.a_generator),
    same("a coroutine", values.a_coroutine),
    better(
        "a result that cannot be unpacked",
        values.breaks_when_unpacked,
        title="returns what cannot be unpacked",
        plain="is pending for ever, as all that are submitted later are",
        ours="raises the error of unpacking",
        expected=Raises("ValueError", "invalid literal"),
        harms_plain=True,
    ),
    same("exceptions as values", values.returns_an_exception),
    same("an exception as the value", values.only_an_exception),
    same("arguments that a task changes", values.changed_argument, [1], {"a": 1}),
]

ERRORS = [
    same("an exception", values.simple_error, engines=ALL),
    same("a traceback", values.deep_error, engines=ALL),
    same("a cause", values.error_with_cause, engines=ALL),
    same("a context", values.error_with_context),
    same("an exception from None", values.error_from_none),
    same("notes", values.error_with_notes),
    same("attributes", values.error_with_attributes),
    same("a group of exceptions", values.error_group),
    same("an exception made of other arguments", values.odd_error),
    better(
        "an exception that cannot be unpacked",
        values.error_that_cannot_be_unpacked,
        title="raises what cannot be unpacked, such as an exception with two arguments of its own",
        plain="is pending for ever, as all that are submitted later are",
        ours="raises the error of unpacking",
        expected=Raises("TypeError", "missing 1 required positional argument"),
        harms_plain=True,
    ),
    same("an exception that cannot be packed", values.error_that_cannot_be_packed),
    same("an exception of a local class", values.local_error),
    same("an OSError", values.os_error),
    same("a command that fails", values.command_error),
    better(
        "a recursion without an end",
        values.recursion_error,
        title="calls itself without an end",
        plain="loses its worker, since the traceback of the `RecursionError` is too long to pickle",
        ours="raises an error that names the `RecursionError`; its worker lives on",
        expected=Raises("RuntimeError", "RecursionError"),
        harms_plain=True,
    ),
    same("a MemoryError of the user's own", values.memory_error),
    same("a StopIteration", values.stop_iteration),
    same("a module that is missing", values.import_error),
    same("a warning as an error", values.warning_as_error),
]

FORKS = [
    same("a fork that ends with a status", processes.fork_and_leave, "_exit", engines=ALL),
    same("a fork that leaves with exit", processes.fork_and_leave, "exit"),
    same("a fork that leaves with exit and a status", processes.fork_and_leave, "exit 3"),
    same("a fork that becomes another program", processes.fork_and_leave, "exec"),
    same("a fork that is killed", processes.fork_and_leave, "kill"),
    same("a fork that writes into a pipe", processes.fork_with_pipe, engines=ALL),
    same("children that are waited for", processes.wait_for_all_children),
    same(
        "orphans are not children",
        processes.orphans_are_not_children,
        mended_by="a runner adopts orphans, so that os.wait() finds processes it did not start",
    ),
    same("a child that nobody waits for", processes.zombie),
    better(
        "a fork that returns",
        processes.fork_and_leave,
        "return",
        title="forks, and its child leaves the function by `return`",
        plain="has two workers that answer for one: another task may get the answer",
        ours="returns what its parent returns; the child ends",
        expected=("parent", 0),
        harms_plain=True,
    ),
    better(
        "a fork that raises",
        processes.fork_and_leave,
        "raise",
        title="forks, and its child leaves the function by an exception",
        plain="has two workers that answer for one: another task may get the answer",
        ours="returns what its parent returns; the child prints the exception and ends",
        expected=("parent", 1),
        harms_plain=True,
    ),
]

OTHERS = [
    same("a pool of forks", processes.pool, "fork", engines=ALL),
    same("a pool of new processes", processes.pool, "spawn"),
    same("a pool of a fork server", processes.pool, "forkserver"),
    same("a ProcessPoolExecutor", processes.process_pool_executor),
    same("a queue and a process", processes.queue_and_process),
    same("a manager", processes.manager),
    same("shared memory", processes.memory_of_all),
    same("the process that multiprocessing sees", processes.in_a_daemon),
    same("a pause", processes.stop_and_go),
]

LEFT = [
    same("a thread that is left", processes.leave_thread),
]

CASES = [*VALUES, *ERRORS, *FORKS, *OTHERS, *LEFT]


def cases(engine: str) -> list[Case]:
    """Return the cases of an engine."""
    return [case for case in CASES if engine in case.engines]
