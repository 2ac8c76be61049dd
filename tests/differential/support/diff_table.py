"""The cases of the differential suite."""

from __future__ import annotations

import diff_apps as apps
import diff_processes as processes
import diff_state as state
import diff_values as values
from diff_case import ALL, HTEX, THREADS, WORK_QUEUE, Case, Raises

MB = 1_000_000
APART = (HTEX, WORK_QUEUE)
"""Engines that run tasks in processes of their own."""

TOGETHER = (HTEX, THREADS)


def same(name, program, *args, **options):
    """A program that does with ours what it does with plain Parsl."""
    return Case(name=name, program=program, args=args, **options)


def program(name, function, *args, **options):
    """A program that submits tasks, and does with ours what it does with plain Parsl."""
    return Case(name=name, program=function, args=args, submits=True, **options)


def better(name, program, *args, **options):
    """A program that plain Parsl harms, or that harms plain Parsl."""
    return Case(name=name, program=program, args=args, kind="better", **options)


def refused(name, function, *args, **options):
    """A program that plain Parsl runs, and of which ours says that it cannot."""
    return Case(name=name, program=function, args=args, submits=True, kind="refused", **options)


def different(name, program, *args, **options):
    """A program that does something else with ours, unless an option is given."""
    return Case(name=name, program=program, args=args, kind="different", **options)


VALUES = [
    same("plain values", values.plain_values, engines=ALL),
    same("subclasses of plain values", values.subclasses, engines=ALL),
    same("an object that is there twice", values.shared_part, engines=TOGETHER),
    same("a structure that has itself", values.identities),
    same("arrays", values.arrays),
    same("an array", values.array),
    same("an object of a local class", values.of_a_local_class, engines=TOGETHER),
    same("a generator", values.a_generator),
    better(
        "an exception as the value on Work Queue",
        values.only_an_exception,
        engines=(WORK_QUEUE,),
        title="returns an exception that it has not raised",
        plain="raises `WorkQueueTaskFailure`, which has it as an argument",
        ours="returns it, as on HTEX",
        expected=ValueError("a value", 3),
    ),
    better(
        "a generator on Work Queue",
        values.a_generator,
        engines=(WORK_QUEUE,),
        title="returns what cannot be packed, such as a generator",
        plain="raises `WorkQueueTaskFailure`: Cannot load result from result file",
        ours="raises the error of packing",
        expected=Raises("TypeError", "cannot pickle 'generator' object"),
    ),
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
    same("notes", values.error_with_notes, engines=APART),
    same("attributes", values.error_with_attributes),
    same("a group of exceptions", values.error_group),
    same("an exception made of other arguments", values.odd_error, engines=APART),
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
    same("a fork that ends with a status", processes.fork_and_leave, "_exit", engines=APART),
    same("a fork that leaves with exit", processes.fork_and_leave, "exit"),
    same("a fork that leaves with exit and a status", processes.fork_and_leave, "exit 3"),
    same("a fork that becomes another program", processes.fork_and_leave, "exec"),
    same("a fork that is killed", processes.fork_and_leave, "kill"),
    same("a fork that writes into a pipe", processes.fork_with_pipe, engines=APART),
    same("children that are waited for", processes.wait_for_all_children),
    same("orphans are not children", processes.orphans_are_not_children),
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
    same("a pool of forks", processes.pool, "fork", engines=APART),
    same("a pool of new processes", processes.pool, "spawn"),
    same("a pool of a fork server", processes.pool, "forkserver"),
    same("a ProcessPoolExecutor", processes.process_pool_executor),
    same("a queue and a process", processes.queue_and_process),
    same("a manager", processes.manager),
    same("shared memory", processes.memory_of_all),
    same("the process that multiprocessing sees", processes.in_a_daemon),
    same("a pause", processes.stop_and_go),
]

ENDED = {
    "title": "leaves a process behind",
    "plain": "goes on, uncounted, until the block ends or longer",
    "ours": "is ended with its task, since no reservation would cover it",
    "option": '`keep_caches`; `isolation="inline"` on Work Queue, where `keep_caches` has no '
    "effect on processes",
    "differs": "processes",
    "expected": {"child": False},
    "hints": {"keep_caches": True},
}
ENDED_BY_A_FORK = {**ENDED, "engines": (WORK_QUEUE,), "hints": {"isolation": "inline"}}
LEFT = [
    same("a thread that is left", processes.leave_thread),
    different("a process that is left", processes.leave_process, **ENDED),
    different("a session that is left", processes.leave_session, **ENDED),
    different("a process that is left by an exception", processes.leave_process_and_raise, **ENDED),
    different("a daemon", processes.fork_twice, **{**ENDED, "expected": {"daemon": False}}),
    different("a process that is left on Work Queue", processes.leave_process, **ENDED_BY_A_FORK),
    different("a session that is left on Work Queue", processes.leave_session, **ENDED_BY_A_FORK),
]

ENDS_ITS_PROCESS = {
    "title": "ends its process: `os._exit`, a signal, a fault in a library",
    "plain": "loses its worker: `WorkerLost`, at the heartbeat",
    "ours": "is run again twice, then raises an error that names the status or signal, at once; "
    "its worker lives on, its temporary files are removed",
    "option": "`no_retry`",
}
ENDS = [
    better(
        "a task that leaves the interpreter",
        values.system_exit,
        3,
        title="leaves with `sys.exit`, or raises another exception that is no `Exception`",
        plain="loses its worker: `WorkerLost`, at the heartbeat",
        ours="raises an error that names the exception, at once",
        expected=Raises("TaskLost", "SystemExit(3)"),
        harms_plain=True,
    ),
    better(
        "a KeyboardInterrupt in a task",
        values.keyboard_interrupt,
        expected=Raises("TaskLost", "KeyboardInterrupt"),
        harms_plain=True,
    ),
    better(
        "an exception that is no Exception",
        values.final,
        expected=Raises("TaskLost", "Final"),
        harms_plain=True,
    ),
    *(
        better(
            f"a process that ends by {how}",
            processes.end_by,
            how,
            **ENDS_ITS_PROCESS,
            expected=Raises("TaskLost", said),
            harms_plain=True,
        )
        for how, said in [
            ("exit", "ended with exit status 5"),
            ("abort", "was killed by signal 6"),
            ("SIGKILL", "was killed by signal 9"),
            ("SIGTERM", "was killed by signal 15"),
            ("SIGSEGV", "was killed by signal 11"),
        ]
    ),
    better(
        "all descriptors closed",
        processes.close_all,
        title="closes all descriptors, those of its worker too",
        plain="is lost with its worker, or is pending for ever",
        ours="is run again twice, then raises an error; its worker lives on",
        option="`no_retry`",
        expected=Raises("TaskLost"),
        harms_plain=True,
    ),
    better(
        "temporary files of a process that ends",
        apps.lost_with_temporary_files,
        submits=True,
        **ENDS_ITS_PROCESS,
        expected=("TaskLost", False),
        harms_plain=True,
    ),
    better(
        "temporary files of a task that is stopped",
        apps.stopped_with_temporary_files,
        submits=True,
        title="uses more memory or disk than its limit, while its node has no more to give",
        plain="runs on, and takes what its neighbours need",
        ours="is stopped and run again with more; a stopped attempt's temporary files are removed",
        option="`never_kill`",
        expected=("ResourcesExhausted", False),
    ),
    same("streams that are closed", processes.streams_are_closed, setup="states"),
]

SUBMITTED = [
    program("functions of all sorts", apps.sorts_of_functions),
    program("names of arguments", apps.names_of_arguments, engines=ALL),
    program("many tasks", apps.many),
    program("results that go on", apps.chain, engines=ALL),
    program("a dependency that fails", apps.failed_dependency, engines=ALL),
    program("a join", apps.joined, engines=ALL),
    program("a join that fails", apps.joined_failure, engines=TOGETHER),
    program("a pair of tasks that wait", apps.pair, 25, 0.0),
    program("a task that waits and one that computes", apps.pair, 4, 0.1),
    program("pairs of tasks that wait", apps.pairs_at_once, 25),
    program("a task that is cancelled", apps.cancelled, engines=TOGETHER),
    program("states of a future", apps.states, engines=APART),
    program("a walltime", apps.walltime, engines=TOGETHER),
    program("a result that is remembered", apps.remembered, engines=ALL),
    program("a failure that is not remembered", apps.remembered_failure),
    program("a checkpoint", apps.checkpointed),
    program("files in and out", apps.files_in_and_out, engines=ALL),
    program("what is printed", apps.printed),
    program("300 MB in and out", apps.large_argument_and_result, 300 * MB),
    program("1 byte in and out", apps.large_argument_and_result, 1),
    program("a priority", apps.specification),
    program("an order of priorities", apps.in_order_of_priority),
    program("what is outstanding", apps.outstanding),
    program("a retry that succeeds", apps.retried, 2, setup="retries"),
    program("retries that fail", apps.retried, 9, setup="retries"),
    program("a worker that is lost once", apps.retried_after_a_kill, setup="retries"),
    program("accelerators and affinity", apps.affinity, setup="affinity"),
    *(
        refused(
            f"MPI mode by {how}",
            apps.mpi_mode,
            how,
            title="runs tasks in MPI mode: `MPIExecutor`",
            plain="gives each task the nodes and launcher that it asks for",
            ours="is refused when the executor is made: *SizedExecutor cannot wrap a MPIExecutor: "
            "an MPI task spans nodes, and is sized by its ranks*",
            option="this executor in `Config` as it is, beside a `SizedExecutor` for other tasks",
            expected=f"SizedExecutor cannot wrap a {what}: an MPI task spans nodes, and is sized "
            "by its ranks. Give this executor to Config as it is.",
        )
        for how, what in [
            ("executor", "MPIExecutor"),
            ("mode", "HighThroughputExecutor in MPI mode"),
        ]
    ),
]

BASH = [
    program(name, apps.bash, command, options, engines=engines)
    for name, command, options, engines in [
        ("a command", "echo out; echo err >&2", {"stdout": "out", "stderr": "err"}, ALL),
        ("a command with a status", "exit 3", {}, ALL),
        ("a command that is missing", "no-such-command", {"stderr": "err"}, (HTEX,)),
        ("a command that is killed", "kill -9 $$", {}, (HTEX,)),
        ("a command that is terminated", "kill -TERM $$", {}, (HTEX,)),
        ("a walltime of a command", "sleep 60", {"walltime": 1}, (HTEX,)),
        ("an output", "echo text > FOLDER/made", {"outputs": ["made"]}, ALL),
        ("an output that is missing", "true", {"outputs": ["missing"]}, ALL),
        ("a stream that cannot be written", "echo lost", {"stdout": "/dev/null/x"}, (HTEX,)),
        ("a command that reads", "cat; echo $?", {"stdout": "out"}, (HTEX,)),
        ("the shell of a command", "echo $0 $BASH_SUBSHELL; umask", {"stdout": "out"}, (HTEX,)),
    ]
] + [
    program("commands that add to a file", apps.bash_that_adds),
    program("no command", apps.bash_without_a_command),
    program("a command that cannot be made", apps.bash_that_raises, engines=APART),
]

FRESH = [
    same("variables", state.environment),
    same("the process", state.process),
]
"""They come first: what others leave in one of several workers would show in them."""

STATES = [
    *(
        program(f"state: {name}", state.leaves_state, name, setup="states")
        for name in state.STATES
        if name != "working folder"
    ),
    better(
        "state: working folder",
        state.leaves_state,
        "working folder",
        setup="states",
        submits=True,
        title="changes its working directory",
        plain="leaves the next task on its worker in that directory",
        ours="ends with it: every task starts where its worker did",
        expected=[False, False],
    ),
    same("temporary files that are removed", state.temporary_folder, engines=ALL),
    program("a temporary file for another task", state.temporary_file, engines=TOGETHER),
    program("whether a temporary file stays", state.stays, engines=ALL),
    program("a temporary folder for the program", state.temporary_tree),
    same("the working folder", state.working_folder),
    same("a file in the working folder", state.write_beside),
    same("a file that stays open", state.write_and_leave_open),
    same("modes of files", state.modes, engines=ALL),
]

CASES = [*FRESH, *VALUES, *ERRORS, *FORKS, *OTHERS, *LEFT, *SUBMITTED, *BASH, *STATES, *ENDS]


def cases(engine: str) -> list[Case]:
    """Return the cases of an engine."""
    return [case for case in CASES if engine in case.engines]
