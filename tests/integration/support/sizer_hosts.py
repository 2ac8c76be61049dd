"""Several hosts on this machine: network namespaces with names of their own, joined by a bridge."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.launchers.base import Launcher
from parsl.providers import LocalProvider
from sizer_runs import LIMIT_S, htex, sized

from parsl_sizer import SizedExecutor, sizing_of


@dataclass(frozen=True)
class Hosts:
    """Pretended hosts; this machine's own address in their network is `address`."""

    names: tuple[str, ...]
    address: str

    def cut_off(self, name: str) -> None:
        """Unplug a host."""
        _ip("link", "set", f"v{name}", "down")


class OnHosts(Launcher):
    """Starts one manager on each host."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__()
        self.hosts = hosts

    def __call__(
        self, command: str, tasks_per_node: int, nodes_per_block: int, script_dir: str = ""
    ) -> str:
        lines = []
        for name in self.hosts.names[:nodes_per_block]:
            inside = shlex.quote(f"hostname {name}; {command}")
            lines.append(f"ip netns exec {name} unshare --uts bash -c {inside} &")
        return "\n".join([*lines, "wait"])


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """So many hosts, for as long as it takes; raises `OSError` where that is not possible."""
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("unshare")):
        raise PermissionError("network namespaces need root, ip and unshare")
    number = _new_bridge()
    bridge, network = f"szb{number}", f"10.213.{number}"
    names = tuple(f"szh{number}-{index}" for index in range(1, count + 1))
    try:
        _ip("addr", "replace", f"{network}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for index, name in enumerate(names, start=10):
            _ip("netns", "add", name)
            _ip("link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"v{name}", "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{network}.{index}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "eth0", "up")
        yield Hosts(names, f"{network}.1")
    finally:
        for name in names:
            # The link first: connections that were cut off keep a deleted namespace for minutes.
            subprocess.run(["ip", "link", "del", f"v{name}"], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", bridge], capture_output=True, check=False)


def _new_bridge() -> int:
    """Make a bridge with the first number that no other test run on this machine uses."""
    for number in range(250):
        try:
            _ip("link", "add", f"szb{number}", "type", "bridge")
        except OSError as error:
            if "File exists" not in str(error):
                raise
        else:
            return number
    raise OSError("all of the 250 bridges szb0 to szb249 exist: ip link del szb0")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@contextmanager
def hosts_or_skip(count: int) -> Iterator[Hosts]:
    """So many hosts, or a reason why there are none."""
    try:
        with hosts(count) as made:
            yield made
    except OSError as error:
        pytest.skip(f"several hosts cannot be pretended here: {error}")


def on(made: Hosts, count: int, node: str | None) -> SizedExecutor:
    """An executor with one block of so many hosts, with three workers each."""
    provider = LocalProvider(
        launcher=OnHosts(made), nodes_per_block=count, init_blocks=1, min_blocks=1, max_blocks=1
    )
    inner = htex(3, provider=provider, address=made.address, heartbeat_threshold=5)
    return sized(inner, node=node)


@dataclass(frozen=True)
class Run:
    """When a task ran, where, and what it was given."""

    host: str
    began: float
    ended: float
    memory: float


def logged(folder: Path) -> list[Run]:
    runs = []
    for path in folder.glob("*.log"):
        host, began, ended, memory = path.read_text().split()
        runs.append(Run(host, float(began), float(ended), float(memory)))
    return runs


def most_held(runs: list[Run]) -> dict[str, float]:
    """The largest sum of allocations at any time, by host."""
    most: dict[str, float] = {}
    for run in runs:
        together = [
            other.memory
            for other in runs
            if other.host == run.host and other.began <= run.began < other.ended
        ]
        most[run.host] = max(most.get(run.host, 0.0), sum(together))
    return most


def connected(executor: SizedExecutor, count: int) -> bool:
    return len(executor.inner.connected_managers()) == count


def run_tasks(folder: Path, count: int, sizes: list[float], mb: float | None = None) -> set[str]:
    """Tasks of these sizes in turn; the hosts that they ran on."""
    futures = []
    for number in range(count):
        memory = sizes[number % len(sizes)]
        spec = {"memory": memory / tasks.MB, "fixed": True, "category": f"{number % len(sizes)}"}
        futures.append(
            tasks.log_run(
                str(folder), f"{number}", memory, 0.3, mb, parsl_resource_specification=spec
            )
        )
    used = {future.result(LIMIT_S) for future in futures}
    assert {sizing_of(future).attempts[0].host for future in futures} == used
    assert all(len(sizing_of(future).attempts) == 1 for future in futures)
    return used
