"""What tests run on real engines. Workers import this, so it imports next to nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from parsl import bash_app, join_app, python_app

from parsl_sizer import sized

MB = 1_000_000


def held(mb: float) -> bytearray:
    """So much memory, really held."""
    return bytearray(b"x") * int(mb * MB)


def wait_for(path: str | Path, limit_s: float = 100.0) -> None:
    """Wait until there is a file."""
    until = time.monotonic() + limit_s
    while not Path(path).exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{path} never came")
        time.sleep(0.01)


def linger() -> None:
    """Run until stopped: far longer than any test, and not for ever if that fails."""
    time.sleep(300)


@python_app
def add(a, b):
    return a + b


@python_app
def hold(mb, s=0.0, parsl_resource_specification=None):
    data = held(mb)
    time.sleep(s)
    return len(data) // MB


@python_app
def span(s, mb=1):
    """Hold memory for so many seconds; from when to when that was."""
    began = time.time()
    data = held(mb)
    time.sleep(s)
    del data
    return began, time.time()


@python_app
def compute(s, mb=50):
    """Keep one core busy for so many seconds of its time, and memory."""
    data = held(mb)
    until = time.process_time() + s
    while time.process_time() < until:
        pass
    return len(data) // MB


@python_app
def hold_until(path, mb=1, begun=None, parsl_resource_specification=None):
    """Hold memory until a file appears; tell its process by another one when it begins."""
    if begun is not None:
        part = Path(f"{begun}.part")
        part.write_text(str(os.getpid()))
        part.rename(begun)
    data = held(mb)
    wait_for(path)
    return len(data) // MB


@python_app
def after(*others, s=0.0, parsl_resource_specification=None):
    """Once all others are done, take some time; on which host that was."""
    time.sleep(s)
    return socket.gethostname()


@python_app
def fail(text="as it should"):
    raise ValueError(text)


@python_app
def fail_as_told(parsl_resource_specification=None):
    raise ValueError("as told")


@python_app
def fail_with_cause():
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError("outer") from error


@python_app
def leave():
    """Leaves as scripts do; in an app that is an error."""
    sys.exit(3)


@python_app
def interrupt():
    raise KeyboardInterrupt


@python_app
def vanish(path):
    """Ends the process without a word, as some libraries do."""
    with open(path, "a") as notes:
        notes.write("x")
    os._exit(5)


@python_app
def double_async(a):
    return 2 * a


@join_app
def joined(values):
    return [double_async(value) for value in values]


@bash_app
def echo(text, stdout=None, parsl_resource_specification=None):
    return f"echo {text}; echo $OMP_NUM_THREADS"


@bash_app
def bash_fail():
    return "exit 7"


@bash_app
def bash_hold(mb, seconds, python=sys.executable, parsl_resource_specification=None):
    return f"{python} -c 'import time; x = b\"x\" * {mb * MB}; time.sleep({seconds})'"


@bash_app
def bash_killed(marker):
    return f"echo x >> {marker}; kill -9 $$"


@python_app
def noted_kill(path, whom, until=1000000):
    """Note an attempt in a file; as long as there are few notes, kill somebody with SIGKILL."""
    with open(path, "a") as notes:
        notes.write("x")
    if len(Path(path).read_text()) <= until:
        os.kill(pid_of(whom), signal.SIGKILL)
        linger()
    return "survived"


def pid_of(whom: str, task: int | None = None) -> int:
    """The pid of a task's own process (by default this one), of its worker, or of its manager."""
    task = task or os.getpid()
    if whom == "me":
        return task
    ancestors = ancestry(task)
    manager = next(pid for pid in ancestors if b"process_worker_pool" in command_of(pid))
    return manager if whom == "manager" else ancestors[ancestors.index(manager) - 1]


def ancestry(pid: int) -> list[int]:
    """A process, its parent, and so on."""
    found = []
    while pid > 1:
        found.append(pid)
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return found


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@python_app
def note_and_hold(path, mb, s, parsl_resource_specification=None):
    with open(path, "a") as notes:
        notes.write("x")
    data = held(mb)
    time.sleep(s)
    return len(data) // MB


@python_app
def note_and_fail(path):
    with open(path, "a") as notes:
        notes.write("x")
    raise ValueError("noted")


@python_app
def note_and_exhaust(path):
    from parsl_sizer import ResourcesExhausted

    with open(path, "a") as notes:
        notes.write("x")
    raise ResourcesExhausted(0, "of its own", ())


@python_app(cache=True)
def memoised(number):
    return number


@python_app
def processes():
    """The process of a task, and its worker's."""
    return os.getpid(), pid_of("worker")


@python_app(executors=["one"])
def add_on_one(a, b):
    return a + b


@python_app(executors=["two"])
def add_on_two(a, b):
    return a + b


@python_app
def refused_by_python(held_mb, parsl_resource_specification=None):
    """A MemoryError from C code: more is asked for than any machine has."""
    data = held(held_mb)
    time.sleep(0.2)
    more = bytearray(1 << 50)
    return len(data) + len(more)


@python_app
def refused_by_numpy(held_mb):
    import numpy

    data = held(held_mb)
    more = numpy.empty(1 << 50, dtype="u1")
    return len(data) + len(more)


@python_app
def unpicklable():
    return (number for number in range(3))


class Hopeless(Exception):
    """An exception that cannot be packed."""

    def __reduce__(self):
        raise TypeError("not for travelling")


@python_app
def raise_unpicklable():
    raise Hopeless("nobody will see this")


class Sour:
    """An object that packs well and does not unpack."""

    def __reduce__(self):
        return _turned, ()


def _turned():
    raise RuntimeError("turned sour on the way")


@python_app
def sour():
    return Sour()


@python_app
def large_result(mb, parsl_resource_specification=None):
    return b"x" * int(mb * MB)


@python_app
def length(data):
    return len(data)


@python_app
def escape(seconds, mb=0, mode="setsid", parsl_resource_specification=None):
    """Start a process that leaves the session; with `mb`, break the limit meanwhile.

    The child is known by the number of seconds that it wants to sleep.
    """
    if mode == "setsid":
        subprocess.Popen(["sleep", str(seconds)], start_new_session=True)
    else:  # a daemon: its parent is gone at once
        subprocess.run(["sh", "-c", f"setsid sh -c 'setsid sleep {seconds} &' &"], check=True)
    if mb:
        data = held(mb)
        time.sleep(60)
        return len(data)
    return "left one behind"


@python_app
def grow_in_child(mb, seconds, parsl_resource_specification=None):
    """A grandchild in a session of its own holds the memory."""
    code = f"import time; x = b'x' * {mb * MB}; time.sleep({seconds})"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    child.wait()
    return child.returncode


@python_app
def fill_disk(mb, s, note, parsl_resource_specification=None):
    """Write a temporary file and leave it; say where it is."""
    import tempfile

    descriptor, path = tempfile.mkstemp()
    Path(note).write_text(path)
    with open(descriptor, "wb") as file:
        file.write(os.urandom(int(mb * MB)))
    time.sleep(s)
    return mb


@python_app
def write_temporary(data, parsl_resource_specification=None):
    """Write a temporary file for other tasks; say where it is."""
    import tempfile

    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(data)
    return file.name


@python_app
def read_file(path):
    return Path(path).read_bytes()


@python_app
def say(text, parsl_resource_specification=None):
    print(text)
    print(text, file=sys.stderr)


@python_app
def size_of_inputs(inputs=()):
    return sum(Path(file.filepath).stat().st_size for file in inputs)


@python_app
def log_run(folder, name, memory, s, mb=None, parsl_resource_specification=None):
    """Note when, where and with what allocation a task ran."""
    import socket

    began = time.time()
    data = held(memory / MB / 2 if mb is None else mb)
    time.sleep(s)
    host = socket.gethostname()
    part = Path(folder) / f"{name}.part"
    part.write_text(f"{host} {began} {time.time()} {memory}")
    part.rename(part.with_suffix(".log"))
    assert data
    return host


@python_app
@sized(category="decorated by name", memory="300MB", fixed=True)
def decorated(mb):
    return len(held(mb)) // MB


@python_app
@sized(no_retry=True)
def once_only(path, mb):
    with open(path, "a") as notes:
        notes.write("x")
    data = held(mb)
    time.sleep(60)
    return len(data)


CACHE: list[bytearray] = []


@python_app
def cache(mb, parsl_resource_specification=None):
    """Keep memory beyond the call, as a model that is loaded once; how many are there now."""
    CACHE.append(held(mb))
    return len(CACHE), os.getpid()


@python_app
def total(numbers, mb=100.0, s=0.3, fails_at=None, parsl_resource_specification=None):
    """The sum of numbers, held in memory in proportion to how many there are."""
    if fails_at in numbers and len(numbers) == 1:
        raise ValueError(f"{fails_at} is not to be summed")
    data = held(mb * len(numbers))
    time.sleep(s)
    assert data
    return sum(numbers)


@python_app
def total_of_files(numbers, folder, until):
    """The sum of numbers; two at once are too many, one waits for a file."""
    data = held(300 * len(numbers))
    if len(numbers) > 1:
        linger()
    (Path(folder) / f"begun{numbers[0]}").touch()
    wait_for(until)
    assert data
    return sum(numbers)


@python_app
def fork(number, way, parsl_resource_specification=None):
    """Fork a child that ends in its own way; only the parent's result is the task's."""
    import multiprocessing
    import threading

    def status_of(child):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def fork_in_thread():
        child = os.fork()
        if child:
            found.append(status_of(child))

    if way == "no fork":
        return number
    found = []
    if way == "thread":
        thread = threading.Thread(target=fork_in_thread)
        thread.start()
        thread.join()
        return "parent", number, *found
    if way == "multiprocessing":
        process = multiprocessing.get_context("fork").Process(target=sys.exit, args=(6,))
        process.start()
        process.join()
        return "parent", number, process.exitcode
    child = os.fork()
    if child:
        return "parent", number, status_of(child)
    if way == "raise":
        raise ValueError("in the child")
    if way == "exit":
        sys.exit(0)
    if way == "exit 3":
        sys.exit(3)
    if way == "exit message":
        sys.exit("the child's last words")
    if way == "_exit":
        os._exit(4)
    if way == "double fork":
        grandchild = os.fork()
        if grandchild:
            sys.exit(5 + status_of(grandchild))
    return "child", number, None


@python_app
def leave_child(number, go, note, parsl_resource_specification=None):
    """Leave a child that returns when there is a file, long after its parent has."""
    child = os.fork()
    if child:
        return "parent", number
    Path(note).write_text(str(os.getpid()))
    wait_for(go)
    return "child", number
