"""Programs about the state of a process: what a task finds there, and what the next one finds."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

HOME = os.getcwd()
SEEN = []
OPENED = []
WRITTEN = []


def meet(folder, number, of=2, limit_s=15.0):
    """Wait for other tasks, so that every worker has one of them."""
    place = Path(folder, "met")
    place.mkdir(exist_ok=True)
    Path(place, str(number)).touch()
    until = time.monotonic() + limit_s
    while len(list(place.iterdir())) < of:
        if time.monotonic() > until:
            raise TimeoutError("the others never came")
        time.sleep(0.002)


def in_a_round(folder, number, what, step):
    """With a task in each worker, change a state, look at it, or put it back."""
    meet(folder, number)
    return STATES[what][step](folder)


def set_environment(folder):
    os.environ["DIFF_LEFT"] = "left"


def set_signals(folder):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})


def open_file(folder):
    OPENED.append(os.open("/dev/null", os.O_RDONLY))


def file_is_open(folder):
    return bool(OPENED) and os.fstat(OPENED[0]).st_rdev > 0


def change_import_path(folder):
    sys.path.append("/dev/null/left")
    import colorsys  # noqa: F401 - nothing else imports it


def change_interpreter(folder):
    sys.setrecursionlimit(1234)
    gc.disable()
    warnings.simplefilter("error", BytesWarning)
    socket.setdefaulttimeout(77)
    logging.getLogger("diff").setLevel(logging.ERROR)


def interpreter(folder):
    return (
        sys.getrecursionlimit(),
        gc.isenabled(),
        ("error", None, BytesWarning, None, 0) in warnings.filters,
        socket.getdefaulttimeout(),
        logging.getLogger("diff").level,
    )


def start_thread(folder):
    threading.Thread(target=time.sleep, args=(300,), daemon=True, name="diff").start()


def limit_files(folder):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))


def say_main(folder):
    sys.modules["__main__"].left = "left"


STATES = {
    "environment": (set_environment, lambda folder: os.environ.get("DIFF_LEFT")),
    "working folder": (
        lambda folder: os.chdir("/"),
        lambda folder: os.getcwd() == "/",
        lambda folder: os.chdir(HOME),
    ),
    "umask": (lambda folder: os.umask(0o77), lambda folder: os.umask(os.umask(0))),
    "signals": (
        set_signals,
        lambda folder: (
            signal.getsignal(signal.SIGUSR1),
            sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        ),
    ),
    "random numbers": (lambda folder: random.seed(7), lambda folder: random.random()),
    "modules": (
        change_import_path,
        lambda folder: ("/dev/null/left" in sys.path, "colorsys" in sys.modules),
    ),
    "a module's own": (lambda folder: SEEN.append(1), lambda folder: len(SEEN)),
    "an open file": (open_file, file_is_open),
    "interpreter": (change_interpreter, interpreter),
    "threads": (
        start_thread,
        lambda folder: [thread.name for thread in threading.enumerate() if thread.name == "diff"],
    ),
    "limits": (limit_files, lambda folder: resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    "the main module": (say_main, lambda folder: getattr(sys.modules["__main__"], "left", None)),
}
"""What a task may change, and how the next one in the same worker sees that."""


def leaves_state(side, what):
    """Change a state in both workers, then look at it in both."""
    app = side.app(in_a_round)
    seen = []
    for step in range(len(STATES[what])):
        folder = side.folder / f"step {step}"
        folder.mkdir()
        futures = [app(str(folder), number, what, step) for number in range(2)]
        seen.append([future.result(20) for future in futures])
    return seen[1]


def environment(folder):
    """All variables but those that name a worker, or a folder that is each attempt's own."""
    own = ("PARSL_WORKER_POOL_ID", "PARSL_WORKER_RANK", "JOBNAME", "TMPDIR", "_")
    return {name: value for name, value in sorted(os.environ.items()) if name not in own}


def process(folder):
    """What a program can see of the process that it is in, and may depend on."""
    return {
        "main thread": threading.current_thread() is threading.main_thread(),
        "threads": sorted(
            thread.name for thread in threading.enumerate() if "QueueFeeder" not in thread.name
        ),
        "umask": os.umask(os.umask(0)),
        "signals": {
            name: str(signal.getsignal(getattr(signal, name)))
            for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGCHLD", "SIGUSR1")
        },
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "limits": [
            resource.getrlimit(getattr(resource, name))
            for name in ("RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_AS", "RLIMIT_STACK")
        ],
        "nice": os.nice(0),
        "cores": sorted(os.sched_getaffinity(0)),
        "path": sys.path,
        "program": sys.argv[:1],
        "flags": str(sys.flags),
        "method": multiprocessing.get_start_method(allow_none=True),
        "streams": [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "locale": sys.getfilesystemencoding(),
        "limit": sys.getrecursionlimit(),
        "collects": gc.isenabled(),
    }


def temporary_folder(folder):
    """Use the folder for temporary files in the usual ways; nothing is left."""
    with tempfile.TemporaryDirectory() as made, tempfile.NamedTemporaryFile("w+") as file:
        Path(made, "file").write_text("text")
        file.write("text")
        file.seek(0)
        here = os.environ.get("TMPDIR", "/tmp")
        return file.read(), os.path.dirname(made) == tempfile.gettempdir() == here


def make_temporary_file(folder):
    descriptor, path = tempfile.mkstemp()
    os.write(descriptor, b"for the next task")
    os.close(descriptor)
    return path


def read_and_remove(folder, path):
    text = Path(path).read_text()
    os.unlink(path)
    return text


def temporary_file(side):
    """A task makes a temporary file and returns its path, another one reads it."""
    path = side.app(make_temporary_file)(str(side.folder)).result(20)
    return side.outcome(side.app(read_and_remove)(str(side.folder), path))


def is_there(folder, path):
    try:
        return os.path.exists(path)
    finally:
        Path(path).unlink(missing_ok=True)


def stays(side):
    """A task makes a temporary file and another one looks for it."""
    path = side.app(make_temporary_file)(str(side.folder)).result(20)
    return side.outcome(side.app(is_there)(str(side.folder), path))


def make_temporary_tree(folder):
    made = tempfile.mkdtemp()
    Path(made, "a").mkdir()
    Path(made, "a", "b").write_text("for the program")
    return made


def temporary_tree(side):
    """A task makes a temporary folder, and the program that submits reads what is in it."""
    import shutil

    path = side.app(make_temporary_tree)(str(side.folder)).result(20)
    try:
        return sorted(str(file.relative_to(path)) for file in Path(path).rglob("*"))
    finally:
        shutil.rmtree(path, ignore_errors=True)


def working_folder(folder):
    return os.getcwd()


def write_beside(folder):
    """Write a file into the working folder, and say where that is."""
    Path("diff-beside").write_text("beside")
    try:
        return os.path.abspath("diff-beside"), Path("diff-beside").read_text()
    finally:
        os.unlink("diff-beside")


def write_and_leave_open(folder):
    """Leave a file open with text in its buffer, as programs do that never close."""
    WRITTEN.append(open(Path(folder, "open"), "w"))
    WRITTEN[-1].write("text")
    WRITTEN[-1].flush()
    return "open"


def modes(folder):
    """Make files and folders with all that the umask lets through."""
    os.open(Path(folder, "file"), os.O_CREAT | os.O_WRONLY, 0o777)
    os.mkdir(Path(folder, "folder"))
    os.symlink("file", Path(folder, "link"))
    os.mkfifo(Path(folder, "pipe"))
