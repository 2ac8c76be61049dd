"""Programs about processes. Workers import this, so it imports next to nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import shared_memory
from pathlib import Path


def note(folder, name, pid=None):
    """Have the suite look whether a process is alive when its task is over, and end it then."""
    part = Path(folder, f"{name}.part")
    part.write_text(str(pid or os.getpid()))
    part.rename(Path(folder, f"{name}.pid"))


def wait_for(path, limit_s=50.0):
    until = time.monotonic() + limit_s
    while not Path(path).exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{path} never came")
        time.sleep(0.005)


def ended(pid):
    """Return the status of a child as a shell would tell it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# Fork


def fork_and_leave(folder, how):
    """Fork; the child leaves in some way, and its parent says with which status."""
    pid = os.fork()
    if pid == 0:
        if how == "return":
            return "child"
        if how == "raise":
            raise ValueError("in the child")
        if how == "exit":
            sys.exit(0)
        if how == "exit 3":
            sys.exit(3)
        if how == "exec":
            os.execv("/bin/sh", ["sh", "-c", "exit 4"])
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(5)
    return "parent", ended(pid)


def fork_twice(folder):
    """A child that forks and leaves: the usual way to have a process that is nobody's."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            note(folder, "daemon")
            time.sleep(300)
        os._exit(0)
    status = ended(pid)
    wait_for(Path(folder, "daemon.pid"))
    return status


def fork_with_pipe(folder):
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(theirs, b"from the child")
        os._exit(0)
    os.close(theirs)
    text = os.read(ours, 100)
    os.close(ours)
    return text, ended(pid)


def children():
    """Return the children of this process, dead ones too."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for_all_children(folder):
    """Have children, and wait for them as shells do; what earlier tasks left does not matter."""
    before = children()
    kept = [subprocess.Popen(["true"]) for _ in range(2)]  # dropped ones subprocess waits for
    started = {process.pid for process in kept}
    found = set()
    while not started <= found:
        found.add(os.wait()[0])
    return found - before == started


def orphans_are_not_children(folder):
    """Start a process whose parent leaves: it is nobody's child that is waited for."""
    before = children()
    orphan = Path(folder, "orphan.pid")
    command = f"echo $$ > {orphan}.part; mv {orphan}.part {orphan}; sleep 0.1"
    shell = subprocess.Popen(["sh", "-c", f"sh -c '{command}' & exit 0"])
    shell.wait()
    wait_for(orphan)
    until = time.monotonic() + 50
    while not has_ended(int(orphan.read_text())) and time.monotonic() < until:
        time.sleep(0.005)
    return children() - before == set()


def zombie(folder):
    """Leave a child that has ended and was not waited for."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return "left"


# multiprocessing


def squared(value):
    return value * value


def pool(folder, method):
    with multiprocessing.get_context(method).Pool(2) as made:
        return made.map(squared, range(5))


def process_pool_executor(folder):
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as made:
        return list(made.map(squared, range(5)))


def put_and_leave(queue):
    queue.put("from a process")
    sys.exit(6)


def queue_and_process(folder):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=put_and_leave, args=(queue,))
    process.start()
    text = queue.get(timeout=50)
    process.join()
    return text, process.exitcode


def manager(folder):
    with multiprocessing.get_context("fork").Manager() as made:
        values = made.dict(a=1)
        values["b"] = 2
        return dict(values)


def memory_of_all(folder):
    made = shared_memory.SharedMemory(create=True, size=1000)
    try:
        made.buf[:4] = b"text"
        other = shared_memory.SharedMemory(made.name)
        text = bytes(other.buf[:4])
        other.close()
        return text
    finally:
        made.close()
        made.unlink()


def in_a_daemon(folder):
    """Say what multiprocessing thinks of this process, which decides whether it may have others."""
    here = multiprocessing.current_process()
    return here.daemon, type(here).__name__, multiprocessing.parent_process() is not None


# Left behind


def leave_process(folder):
    child = subprocess.Popen(["sleep", "300"])
    note(folder, "child", child.pid)
    return "left"


def leave_session(folder):
    child = subprocess.Popen(
        ["sleep", "300"], start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    note(folder, "child", child.pid)
    return "left"


def leave_process_and_raise(folder):
    leave_process(folder)
    raise ValueError("and leaves a process")


def leave_thread(folder):
    """Leave a thread that writes a file when the task is over."""

    def write():
        wait_for(Path(folder, "go"))
        Path(folder, "written").write_text("by a thread")

    threading.Thread(target=write, daemon=True).start()
    return "left"


# Ends


def end_by(folder, how):
    """Note that it has begun, and end its process."""
    with open(Path(folder, "notes"), "a") as notes:
        notes.write("x")
    if how == "exit":
        os._exit(5)
    if how == "abort":
        os.abort()
    os.kill(os.getpid(), getattr(signal, how))
    time.sleep(300)


def close_all(folder):
    """Close all descriptors but those of the streams, as programs that become daemons do."""
    os.closerange(3, 1000)
    return "closed"


def close_streams(folder):
    """Close what all programs have open at first."""
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    return "closed"


def streams_are_closed(folder):
    sys.stdout.close()
    sys.stderr.close()
    return "closed"


def stop_and_go(folder):
    """Stop its process for a moment, as a batch system may."""
    subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
    return "went on"
