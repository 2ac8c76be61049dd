"""A Slurm of the tests' own on this machine: pretended nodes, no systemd, nothing left of it.

Every daemon stays in the foreground as a child of this process, and ends with it.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from parsl.launchers.base import Launcher
from parsl.providers import SlurmProvider

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")
CONF = "SLURM_CONF"
GB = 1024  # MB

CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=50000
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MessageTimeout=5
InactiveLimit=0
KillWait=2
MinJobAge=600
SlurmctldTimeout=30
SlurmdTimeout=60
"""


class Node(NamedTuple):
    """What a pretended node promises; memory in MB."""

    name: str
    cores: int = 1
    memory: int = 2 * GB


NODES = tuple(Node(f"n{number}") for number in range(1, 5))


class Job(NamedTuple):
    """A line of `squeue`."""

    number: str
    state: str
    name: str
    nodes: int
    comment: str


class Slurm:
    """A Slurm that runs; commands find it while `SLURM_CONF` names its configuration."""

    def __init__(self, folder: Path, nodes: Sequence[Node]) -> None:
        self.folder = folder
        self.nodes = nodes
        self.config = folder / "slurm.conf"
        self.environment = {**os.environ, CONF: str(self.config)}
        self._controller: subprocess.Popen[bytes] | None = None

    def jobs(self) -> list[Job]:
        """The jobs that are not over, those of everybody."""
        lines = self.call("squeue", "-h", "-o", "%i|%T|%j|%D|%k").splitlines()
        found = []
        for line in lines:
            number, state, name, nodes, comment = line.split("|", 4)
            found.append(Job(number, state, name, int(nodes), comment))
        return found

    def blocks(self) -> list[Job]:
        """The jobs that Parsl has asked for."""
        return [job for job in self.jobs() if job.name.startswith("parsl.")]

    def fill(self, seconds: float, *, nodes: int = 1, priority: int | None = None) -> str:
        """A job of somebody else's that takes whole nodes for so long; its number."""
        options = [f"--nodes={nodes}", "--exclusive", "--output=/dev/null", "--job-name=other"]
        # A limit close to the truth lets backfilling plan: in whole minutes, at least one.
        limit = [f"--time={max(1, round(seconds / 60 + 0.5))}"]
        hurry = [f"--priority={priority}"] if priority is not None else []
        command = ["sbatch", "--parsable", *options, *limit, *hurry, f"--wrap=sleep {seconds}"]
        return self.call(*command).strip()

    def call(self, *command: str) -> str:
        """What a command of Slurm's says."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=30
        )
        if done.returncode:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def cancel_all(self) -> None:
        """Empty the queue."""
        numbers = [job.number for job in self.jobs()]
        if numbers:
            self.call("scancel", *numbers)
        _until(lambda: not self.jobs(), "an empty queue")

    def start_controller(self) -> None:
        """Start `slurmctld`; what it knew before it was stopped it knows again."""
        owner = pwd.getpwnam("slurm")  # to become another later is to outlive us
        self._controller = self._daemon("slurmctld", "-D", "-f", str(self.config), user=owner)
        self._wait_for_answer()

    def stop_controller(self) -> None:
        """Stop `slurmctld`: jobs run on, and nobody can ask or submit."""
        if self._controller is not None:
            _end(self._controller)
            self._controller = None

    def _wait_for_answer(self) -> None:
        def answers() -> bool:
            done = subprocess.run(
                ["scontrol", "ping"],
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=30,
            )
            return "UP" in done.stdout

        _until(answers, "an answer of slurmctld")

    def _daemon(
        self, *command: str, user: pwd.struct_passwd | None = None
    ) -> subprocess.Popen[bytes]:
        # What the tests have in their environment meanwhile is not for it.
        log = self.folder / "log" / "daemons"
        return _daemon(*command, log=log, environment=self.environment, user=user)

    @contextmanager
    def running(self) -> Iterator[Slurm]:
        """All daemons, for as long as it takes."""
        with ExitStack() as stack:
            stack.enter_context(self._munge())
            stack.callback(self.stop_controller)
            self.start_controller()
            for node in self.nodes:
                (self.folder / f"spool.{node.name}").mkdir()
                daemon = self._daemon("slurmd", "-D", "-f", str(self.config), "-N", node.name)
                stack.callback(_end, daemon)
            _until(self._are_idle, f"{len(self.nodes)} idle nodes")
            stack.callback(self._empty)
            yield self

    def _empty(self) -> None:
        if self._controller is None:
            self.start_controller()
        self.cancel_all()

    def _are_idle(self) -> bool:
        states = self.call("sinfo", "-h", "-N", "-o", "%t").split()
        return states == ["idle"] * len(self.nodes)

    @contextmanager
    def _munge(self) -> Iterator[None]:
        """Slurm's daemons and commands know each other by a key, and `munged` has it."""
        folder, owner = self.folder / "munge", pwd.getpwnam("munge")
        key = folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        for path in (folder, key):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        names = ("socket", "pid-file", "log-file", "seed-file")
        options = [f"--{name}={folder / name}" for name in names]
        named = ["--foreground", "--force", f"--key-file={key}", *options]
        daemon = self._daemon("munged", *named, user=owner)
        try:
            _until((folder / "socket").exists, "the socket of munged")
            yield
        finally:
            _end(daemon)


def why_not() -> str | None:
    """Why there can be no Slurm here; None if there can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"Slurm is not installed here: there is no {', '.join(missing)}"
    if os.geteuid() != 0:
        return "only root can start a Slurm: its daemons run as several users"
    return None


@contextmanager
def slurm(nodes: Sequence[Node] = NODES) -> Iterator[Slurm]:
    """A Slurm with these nodes, which this process and its children find."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)
    owner = pwd.getpwnam("slurm")
    for name in ("run", "log", "state", "munge"):
        (folder / name).mkdir(mode=0o755)
        os.chown(folder / name, owner.pw_uid, owner.pw_gid)
    made = Slurm(folder, nodes)
    made.config.write_text(_config(folder, nodes))
    before = os.environ.get(CONF)
    os.environ[CONF] = str(made.config)
    try:
        with made.running():
            yield made
    finally:
        if before is None:
            del os.environ[CONF]
        else:
            os.environ[CONF] = before
        shutil.rmtree(folder, ignore_errors=True)


class OnNodes(Launcher):
    """Starts a manager on each node of a block, which takes the node's name for its host's."""

    def __call__(
        self, command: str, tasks_per_node: int, nodes_per_block: int, script_dir: str = ""
    ) -> str:
        inside = f'hostname "$SLURMD_NODENAME"; exec {command}'
        return f"srun --ntasks={nodes_per_block} --overlap unshare --uts bash -c '{inside}'"


def provider(**options: Any) -> SlurmProvider:
    """Blocks of one node with one core, unless something else is said."""
    settings: Mapping[str, Any] = {
        "init_blocks": 0,
        "min_blocks": 0,
        "max_blocks": 4,
        "cores_per_node": 1,
        "mem_per_node": 1,
        "walltime": "00:10:00",
        "exclusive": False,
        "launcher": OnNodes(),
    }
    return SlurmProvider(**{**settings, **options})


def _config(folder: Path, nodes: Sequence[Node]) -> str:
    port, *ports = _free_ports(1 + len(nodes))
    host = socket.gethostname().partition(".")[0]
    lines = [CONFIG.format(folder=folder, port=port, host=host)]
    for node, own in zip(nodes, ports, strict=True):
        lines.append(
            f"NodeName={node.name} NodeHostname={host} NodeAddr=127.0.0.1 Port={own} "
            f"CPUs={node.cores} Boards=1 SocketsPerBoard=1 CoresPerSocket={node.cores} "
            f"ThreadsPerCore=1 RealMemory={node.memory} State=UNKNOWN"
        )
    names = ",".join(node.name for node in nodes)
    lines.append(f"PartitionName=all Nodes={names} Default=YES DefMemPerCPU=500 State=UP\n")
    return "\n".join(lines)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        found = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


def _daemon(
    *command: str, log: Path, environment: dict[str, str], user: pwd.struct_passwd | None = None
) -> subprocess.Popen[bytes]:
    library = ctypes.CDLL(None)

    def prepare() -> None:
        if user is not None:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        library.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: not even a killed test leaves it

    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=prepare,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(15)


def _until(condition: Any, what: str, limit_s: float = 60) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"in {limit_s:g} s it never came to this: {what}")
        time.sleep(0.05)
