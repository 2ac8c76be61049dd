"""Programs of several tasks, and apps of other sorts, seen from the program that submits."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARK = "said by a task"


# bash


def command(text, stdout=None, stderr=None, inputs=(), outputs=(), walltime=None):
    return text


def bash(side, text, options=()):
    """Run a command; what comes of it, and all that it writes."""
    from parsl.data_provider.files import File

    made = dict(options)
    for stream in ("stdout", "stderr"):
        if isinstance(made.get(stream), str):
            made[stream] = str(side.folder / made[stream])
        elif stream in made:
            made[stream] = (str(side.folder / made[stream][0]), made[stream][1])
    made["outputs"] = [File(str(side.folder / name)) for name in made.get("outputs", ())]
    text = text.replace("FOLDER", str(side.folder))
    future = side.bash(command)(text, **made)
    return side.outcome(future), [str(file.filepath) for file in future.outputs]


def bash_that_adds(side):
    """Two commands, one after the other, that write to the same file."""
    app = side.bash(command)
    out = str(side.folder / "out")
    return [app(f"echo {text}", stdout=(out, "a")).result(20) for text in ("one", "two")]


def no_command(nothing):
    return None


def bash_without_a_command(side):
    return side.outcome(side.bash(no_command)(1))


def failing_command(nothing):
    return {}["missing"]


def bash_that_raises(side):
    return side.outcome(side.bash(failing_command)(1))


# Python


def double(value):
    return 2 * value


def total(*values, inputs=()):
    return sum(values)


def fail(text):
    raise KeyError(text)


def wait(path, limit_s=10.0, begun=None):
    """Wait for a file, once another one tells that this has begun."""
    if begun is not None:
        Path(begun).touch()
    until = time.monotonic() + limit_s
    while not Path(path).exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{path} never came")
        time.sleep(0.005)
    return "came"


def touch(path, computes_s=0.0):
    """Use one core for a moment, and tell the task that waits."""
    until = time.process_time() + computes_s
    while time.process_time() < until:
        pass
    Path(path).touch()
    return "touched"


class Adder:
    """Something that can be called and has a method."""

    def __init__(self, number):
        self.number = number

    def __call__(self, value):
        return self.number + value

    def method(self, value):
        return self.number * value


def sorts_of_functions(side):
    """Everything that can be called can be an app."""
    step = 5

    def local(value):
        return value + step

    def decorated(value):
        return local(value) * 10

    functools.update_wrapper(decorated, double)
    named = functools.partial(double)
    named.__name__ = "named"
    found = [double, local, decorated, lambda value: value, Adder(3).method, named]
    return [side.outcome(side.app(function)(7)) for function in found]


def keyword_arguments(**named):
    return sorted(named.items())


def names_of_arguments(side):
    """Names that an executor may use itself."""
    names = (
        "function", "args", "kwargs", "order", "buffer", "call", "task", "isolation",
        "category", "memory", "cores", "result", "future",
    )  # fmt: skip
    return side.app(keyword_arguments)(**{name: name for name in names}).result(20)


def many(side, count=200):
    """Results are those of their tasks, in order."""
    app = side.app(double)
    futures = [app(number) for number in range(count)]
    return [future.result(20) for future in futures]


def chain(side):
    """Results go from task to task, also inside of lists and dictionaries."""
    one, add = side.app(double), side.app(total)
    first = one(1)
    third = add(first, one(first), *[one(one(first))])
    return third.result(20)


def failed_dependency(side):
    """A task that depends on one that fails does not run; the error names it."""
    from parsl.dataflow.errors import DependencyError

    future = side.app(total)(side.app(fail)("first"), 1)
    error = future.exception(60)
    assert isinstance(error, DependencyError)
    return [
        (type(cause).__name__, str(cause)) for cause, _ in error.dependent_exceptions_tids
    ], type(error).__name__


def joined(side):
    """A join app submits tasks, and is what they return."""
    app = side.app(double)

    def submit(count):
        return [app(number) for number in range(count)]

    return side.join(submit)(5).result(20)


def joined_failure(side):
    app, bad = side.app(double), side.app(fail)

    def submit():
        return [app(1), bad("joined")]

    error = side.join(submit)().exception(60)
    return type(error).__name__, [repr(cause) for cause, _ in error.dependent_exceptions_tids]


def pair(side, count, computes_s):
    """Tasks that wait for each other: as many as there are workers run at the same time."""
    return [pairs_at_once(side, 1, computes_s, str(number)) for number in range(count)]


def pairs_at_once(side, count, computes_s=0.0, name=""):
    """The same, with all pairs submitted before the first result is awaited."""
    waiting, touching = side.app(wait), side.app(touch)
    paths = [str(side.folder / f"pair{name}-{number}") for number in range(count)]
    futures = []
    for path in paths:
        futures += [waiting(path), touching(path, computes_s)]
    try:
        return [future.result(20) for future in futures]
    finally:  # what still waits must not keep later programs from running
        for path in paths:
            Path(path).touch()
        for future in futures:
            future.exception(20)


def cancelled(side):
    """Parsl does not cancel what it was asked for, and says so."""
    path = str(side.folder / "go")
    future = side.app(wait)(path)
    try:
        future.cancel()
    except NotImplementedError as error:
        said = repr(error)
    else:
        said = "cancelled"
    Path(path).touch()
    return said, future.result(20), future.cancelled(), future.done()


def states(side):
    """What a future says of itself before and after its task has run."""
    path = str(side.folder / "go")
    future = side.app(wait)(path)
    called = []
    future.add_done_callback(lambda done: called.append(done is future))
    before = future.done(), future.cancelled()
    Path(path).touch()
    value = future.result(20)
    deadline = time.monotonic() + 20
    while not called and time.monotonic() < deadline:
        time.sleep(0.005)
    return before, value, future.done(), called, future.task_status()


def walltime_sleep(seconds, walltime=None):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.01)
    return "slept"


def walltime(side):
    """A walltime ends a task of Python, and another task runs on."""
    app = side.app(walltime_sleep)
    ended, passed = app(60, walltime=0.3), app(0.01, walltime=50)
    error = ended.exception(60)
    return type(error).__name__, str(error), passed.result(20)


def note(path, until=None):
    """Note that it runs; fail as long as there are few notes."""
    with open(path, "a") as notes:
        notes.write("x")
    count = len(Path(path).read_text())
    if until is not None and count < until:
        raise ValueError(f"note {count}")
    return count


def retried(side, until):
    """Parsl runs a task again that fails; how often is noted."""
    return side.outcome(side.app(note)(str(side.folder / "notes"), until))


def retried_after_a_kill(side):
    """A task that kills its process the first time, with Parsl's retries."""
    return side.outcome(side.app(kill_once)(str(side.folder / "notes")))


def kill_once(path):
    first = not Path(path).exists()
    with open(path, "a") as notes:
        notes.write("x")
    if first:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def remembered(side):
    """What is cached runs once; the folder is an argument, so that sides do not share."""
    app = side.app(note, cache=True)
    path = str(side.folder / "notes")
    return [app(path).result(20) for _ in range(3)]


def remembered_failure(side):
    """A failure is not remembered."""
    app = side.app(note, cache=True)
    path = str(side.folder / "notes")
    return [side.outcome(app(path, 3)) for _ in range(3)]


def checkpointed(side):
    """What was checkpointed in one run is not run again in the next."""
    from parsl.dataflow.memoization import BasicMemoizer
    from parsl.utils import get_all_checkpoints

    path = str(side.folder / "notes")
    side.restart(memoizer=BasicMemoizer(checkpoint_mode="task_exit"))
    first = side.app(note, cache=True)(path).result(20)
    run_dir = Path(side.runs.dfk.run_dir)
    side.restart()  # the checkpoint is written by then
    files = get_all_checkpoints(str(run_dir.parent))
    side.restart(memoizer=BasicMemoizer(checkpoint_files=files))
    second = side.app(note, cache=True)(path).result(20)
    side.restart()
    return first, second, len(files)


def cat(inputs=(), outputs=()):
    text = "".join(Path(file.filepath).read_text() for file in inputs)
    Path(outputs[0].filepath).write_text(text)
    return len(text)


def files_in_and_out(side):
    """Tasks that depend on each other by their files."""
    from parsl.data_provider.files import File

    app = side.app(cat)
    (side.folder / "in").write_text("text ")
    first = app(inputs=[File(str(side.folder / "in"))], outputs=[File(str(side.folder / "one"))])
    second = app(
        inputs=[first.outputs[0], first.outputs[0]], outputs=[File(str(side.folder / "two"))]
    )
    return second.result(20), second.outputs[0].filename


def say(text):
    """Print in all the ways that there are."""
    print(f"{text}: print")
    print(f"{text}: error", file=sys.stderr)
    os.write(1, f"{text}: write\n".encode())
    subprocess.run(["sh", "-c", f"echo '{text}: shell'"], check=True)
    sys.stdout.write(f"{text}: no newline ")
    return "said"


def printed(side):
    """What tasks print is where the block's output goes."""
    text = f"{MARK} {side.label}"
    result = side.app(say)(text).result(20)
    folder = side.inner.output
    until = time.monotonic() + 10
    while time.monotonic() < until:
        lines = [
            f"{path.suffix} {line.replace(side.label, 'SIDE')}"
            for path in folder.iterdir()
            for line in path.read_text(errors="replace").splitlines()
            if text in line
        ]
        if len(lines) >= 4:
            break
        time.sleep(0.02)
    return result, sorted(lines)


def large(value, size):
    return bytes(value[:1]) * size


def large_argument_and_result(side, size):
    """As much goes in as comes out."""
    data = b"a" * size
    result = side.app(large)(data, size).result(60)
    return len(result), result == data


def placed(folder):
    """What says which part of a node is a worker's own."""
    names = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "OMP_NUM_THREADS")
    meet_all(folder)
    return {
        "rank": int(os.environ["PARSL_WORKER_RANK"]),
        "cores": sorted(os.sched_getaffinity(0)),
        **{name: os.environ.get(name) for name in names},
    }


def meet_all(folder):
    place = Path(folder, "met")
    place.mkdir(exist_ok=True)
    Path(place, os.environ["PARSL_WORKER_RANK"]).touch()
    until = time.monotonic() + 50
    while len(list(place.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.005)


def affinity(side):
    """Each worker has an accelerator and cores of its own."""
    app = side.app(placed)
    futures = [app(str(side.folder)) for _ in range(2)]
    return sorted((future.result(20) for future in futures), key=lambda found: found["rank"])


def specification(side):
    """A specification that HTEX knows is taken, and one that it does not know is not."""
    return side.outcome(side.app(prioritised)(1, parsl_resource_specification={"priority": 3}))


def prioritised(value, parsl_resource_specification=None):
    return value


def in_order_of_priority(side):
    """In which order tasks run that waited while all workers were busy."""
    held, gate = side.folder / "held", side.folder / "gate"
    waiting, noting = side.app(wait), side.app(note_letter)
    begun = [side.folder / name for name in ("holding", "waiting")]
    keeping, first = (
        waiting(str(path), 60.0, str(name)) for path, name in zip((held, gate), begun, strict=True)
    )
    for path in begun:  # else those with a priority would have both workers first
        wait(path, 20.0)
    notes = str(side.folder / "notes")
    futures = [
        noting(notes, letter, parsl_resource_specification={"priority": priority})
        if priority is not None
        else noting(notes, letter)
        for letter, priority in zip("abcdefghi", [None, 2, 1] * 3, strict=True)
    ]
    time.sleep(1)  # nothing says when all of them have come to the process that sorts them
    gate.touch()
    try:
        for future in [first, *futures]:
            future.result(20)
    finally:
        held.touch()
    keeping.result(20)
    return Path(notes).read_text()


def note_letter(path, letter, parsl_resource_specification=None):
    with open(path, "a") as notes:
        notes.write(letter)


def outstanding(side):
    """How many tasks an executor says it has, when it has none."""
    side.app(double)(1).result(20)
    until = time.monotonic() + 20
    while side.executor.outstanding() and time.monotonic() < until:
        time.sleep(0.005)
    return int(side.executor.outstanding())


# Temporary files of tasks that do not end by themselves


def make_temporary_and_end(folder, how):
    """Make a temporary file, note where it is, and do what has the process ended."""
    descriptor, path = tempfile.mkstemp()
    os.close(descriptor)
    Path(folder, "path").write_text(path)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    held = bytearray(b"x") * 300_000_000
    time.sleep(3)  # long enough to be stopped, and no longer, since plain Parsl does not
    return len(held)


def ended_with_temporary_files(side, how, **hints):
    """Return how a task ends that has temporary files, and whether these are there afterwards."""
    from parsl_sizer import sized

    function = functools.partial(make_temporary_and_end, how=how)
    function.__name__ = f"make_temporary_{how}"
    error = side.app(sized(**hints)(function))(str(side.folder)).exception(20)
    made = Path((side.folder / "path").read_text())
    try:
        return type(error).__name__, made.exists()
    finally:
        made.unlink(missing_ok=True)


def lost_with_temporary_files(side):
    return ended_with_temporary_files(side, "killed", no_retry=True)


def stopped_with_temporary_files(side):
    return ended_with_temporary_files(side, "large", memory="100MB", fixed=True)


# Executors


def mpi_mode(side, how):
    """Make an executor in MPI mode; return what is said if that cannot be."""
    from parsl.executors import HighThroughputExecutor, MPIExecutor
    from parsl.launchers import SimpleLauncher
    from parsl.providers import LocalProvider

    from parsl_sizer import SizedExecutor
    from parsl_sizer.engines import CannotWrap

    provider = LocalProvider(launcher=SimpleLauncher())
    if how == "executor":
        inner = MPIExecutor(address="127.0.0.1", provider=provider)
    else:
        inner = HighThroughputExecutor(address="127.0.0.1", provider=provider)
        inner.enable_mpi_mode = True
    try:
        return "made", side.label == "plain" or SizedExecutor(inner)
    except CannotWrap as error:
        return str(error)
