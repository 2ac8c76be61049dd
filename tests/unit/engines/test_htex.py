"""The engine of HTEX: managers, hosts, facts and errors, with nothing started."""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import Future
from typing import Any

import pytest
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import LocalProvider

from parsl_sizer.engines.htex import ELSEWHERE_S, SILENT_S, HighThroughput
from parsl_sizer.executor.calls import Call
from parsl_sizer.model import Amounts, Attempt, Kind, Node, OptOut, Resources, TaskInfo
from parsl_sizer.monitor import node as monitored

GB = 1e9


class Inner(HighThroughputExecutor):
    """Says which managers are connected, as its interchange would."""

    def __init__(self, provider: Any = None, **options: Any) -> None:
        super().__init__(address="127.0.0.1", provider=provider or remote(), **options)
        self.managers: list[dict[str, Any]] = []
        self.interchange_proc = Alive()

    def connected_managers(self) -> list[dict[str, Any]]:
        return self.managers


class Alive:
    """An interchange that runs, until it does not."""

    status: int | None = None

    def poll(self) -> int | None:
        return self.status


def remote(**options: Any) -> LocalProvider:
    """Blocks whose nodes are elsewhere, for all that can be known here."""
    return LocalProvider(launcher=SrunLauncher(), max_blocks=4, **options)


def manager(name: str, workers: int = 4, **more: Any) -> dict[str, Any]:
    return {"manager": name, "worker_count": workers, "active": True, "draining": False} | more


def report(host: str, pool: str, job: str | None = None, **facts: Any) -> dict[str, Any]:
    name = host if job is None else f"{host} job {job}"
    return {"host": host, "node_name": name, "pool": pool, "node": facts}


def wait_for_all(made: HighThroughput) -> None:
    """Let its managers be silent for so long that they count as nodes all the same."""
    made.nodes()
    now = made._now()
    made._now = lambda: now + SILENT_S


def engine(node: Amounts | None = None, **options: Any) -> HighThroughput:
    return HighThroughput(Inner(**options), node)


def names(nodes: Any) -> dict[str, Node]:
    return {node.name: node for node in nodes}


def test_before_anything_is_known_no_node_is_made_up() -> None:
    made = engine()
    made.inner.managers = [manager("m1")]
    assert made.stated() is None
    wait_for_all(made)
    assert made.nodes() == []


def test_a_stated_node_is_what_managers_have_until_they_report() -> None:
    made = engine({Kind.MEMORY: 64 * GB, Kind.CORES: 8.0})
    made.inner.managers = [manager("m1"), manager("m2")]
    wait_for_all(made)
    found = names(made.nodes())
    assert set(found) == {"m1", "m2"}
    assert found["m1"].capacity.memory == 64 * GB
    assert found["m1"].slots == 4


def test_a_provider_may_say_what_a_node_has() -> None:
    provider = remote()
    provider.cores_per_node, provider.mem_per_node = 16, 64
    made = engine(provider=provider)
    stated = made.stated()
    assert stated is not None
    assert (stated.cores, stated.memory) == (16.0, 64 * GB)


def test_reports_tell_hosts_apart_and_what_they_have() -> None:
    made = engine()
    made.inner.managers = [manager("m1"), manager("m2"), manager("m3", workers=2)]
    assert made.seen(report("h1", "m1", cores=8, memory=32 * GB, disk=1e12))
    assert made.seen(report("h1", "m2", cores=8, memory=32 * GB, disk=1e12))
    assert made.seen(report("h2", "m3", cores=2, memory=16 * GB, disk=1e12))
    assert not made.seen(report("h2", "m3", cores=2, memory=16 * GB, disk=1e12))
    found = names(made.nodes())
    assert set(found) == {"h1", "h2"}
    assert found["h1"].slots == 8  # two managers on one host are one node
    assert found["h1"].capacity.memory == 32 * GB
    assert found["h2"].capacity.memory == 16 * GB


@pytest.mark.parametrize(("free", "counted"), [(99e9, 100e9), (101e9, 100e9), (80e9, 80e9)])
def test_a_little_less_of_free_disk_does_not_make_a_node_smaller(
    monkeypatch: pytest.MonkeyPatch, free: float, counted: float
) -> None:
    """Tasks that are to fill the node run already when its first report comes."""
    found = {"cores": 8.0, "memory": 32 * GB, "disk": 100e9}
    monkeypatch.setattr(monitored, "facts", lambda: found)
    made = engine(provider=LocalProvider())
    made.inner.managers = [manager("m1")]
    [before] = made.nodes()
    made.seen(report(before.name, "m1", **{**found, "disk": free}))
    [after] = made.nodes()
    assert (before.capacity.disk, after.capacity.disk) == (100e9, counted)


def test_a_node_not_heard_of_yet_is_taken_to_be_like_the_latest() -> None:
    made = engine()
    made.inner.managers = [manager("m1"), manager("m2")]
    made.seen(report("h1", "m1", cores=8, memory=32 * GB, disk=1e12))
    wait_for_all(made)
    assert names(made.nodes())["m2"].capacity.memory == 32 * GB


def test_a_manager_that_may_share_its_host_is_asked_before_anything_runs_there() -> None:
    """Three managers on one host counted as three hosts, until the first tasks came back."""
    made = engine({Kind.MEMORY: GB})
    made.inner.managers = [manager("m1", 2), manager("m2", 4), manager("m3", 2)]
    assert made.nodes() == []
    assert made._calls_to_know == 7  # if six went to two of them
    for pool in ("m1", "m2"):
        made.seen(report("h1", pool, cores=8, memory=32 * GB, disk=1e12))
    [node] = made.nodes()
    assert (node.name, node.slots) == ("h1", 6)
    assert made._calls_to_know == 1
    made.seen(report("h1", "m3", cores=8, memory=32 * GB, disk=1e12))
    [node] = made.nodes()
    assert (node.name, node.slots, node.capacity.memory) == ("h1", 8, GB)
    assert made._calls_to_know == 0


def test_calls_that_do_not_come_back_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that hangs would keep those that come later from being nodes."""
    made, sent = engine({Kind.MEMORY: GB}), []
    monkeypatch.setattr(made.inner, "submit", lambda *_: sent.append(Future()) or sent[-1])
    made.inner.managers = [manager("m1"), manager("m2")]
    assert made.nodes() == []
    assert made.probe() is sent[-1]
    assert len(sent) == 5
    assert made.probe() is None
    now = made._now()
    made._now = lambda: now + SILENT_S
    made.inner.managers.append(manager("m3"))
    assert set(names(made.nodes())) == {"m1", "m2"}  # and the new one is asked
    assert made.probe() is sent[-1]
    assert len(sent) == 6
    now += 2 * SILENT_S
    assert set(names(made.nodes())) == {"m1", "m2", "m3"}


def test_managers_that_keep_coming_do_not_hide_those_that_were_heard() -> None:
    """As long as one of them was silent there were no nodes at all, however many were idle."""
    made = engine({Kind.MEMORY: GB})
    now = made._now()
    for number in range(1, 20):
        made._now = lambda now=now + number: now
        made.inner.managers.append(manager(f"m{number}"))
        assert set(names(made.nodes())) == {f"h{seen}" for seen in range(1, number)}
        assert made._calls_to_know == 1
        made.seen(report(f"h{number}", f"m{number}", cores=8, memory=32 * GB, disk=1e12))


def test_one_that_comes_while_others_are_asked_is_asked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calls may be with a manager that is busy or hangs."""
    made, sent = engine({Kind.MEMORY: GB}), []
    monkeypatch.setattr(made.inner, "submit", lambda *_: sent.append(Future()) or sent[-1])
    made.inner.managers = [manager("m1")]
    made.nodes()
    assert made.probe() is sent[-1]
    made.inner.managers.append(manager("m2"))
    made.nodes()
    assert made.probe() is sent[-1]
    assert len(sent) == 1 + 5
    assert made.probe() is None


def test_a_node_with_tasks_stays_one_when_others_come() -> None:
    """The only manager is one at once; what runs there would be on no node, and then on none."""
    made = engine({Kind.MEMORY: GB}, provider=LocalProvider(launcher=SrunLauncher(), max_blocks=1))
    made.inner.managers = [manager("m1")]
    assert set(names(made.nodes())) == {"m1"}
    made.inner.managers.append(manager("m2"))
    assert set(names(made.nodes())) == {"m1"}
    assert made._calls_to_know == 5  # it is asked where it is all the same
    made.seen(report("h1", "m1", cores=8, memory=32 * GB, disk=1e12))
    assert set(names(made.nodes())) == {"h1"}
    assert made.renamed("m1") == "h1"
    made.seen(report("h1", "m2", cores=8, memory=32 * GB, disk=1e12))
    [node] = made.nodes()
    assert (node.name, node.slots) == ("h1", 8)


def test_the_only_manager_that_there_may_be_is_a_node_at_once() -> None:
    made = engine({Kind.MEMORY: GB}, provider=LocalProvider(launcher=SrunLauncher(), max_blocks=1))
    made.inner.managers = [manager("m1")]
    assert set(names(made.nodes())) == {"m1"}
    made.seen(report("h1", "m1", cores=8, memory=32 * GB, disk=1e12))
    assert set(names(made.nodes())) == {"h1"}
    assert made.renamed("m1") == "h1"
    assert made.renamed("h1") == "h1"


def test_two_grants_on_one_host_are_two_nodes() -> None:
    made = engine()
    made.inner.managers = [manager("m1"), manager("m2"), manager("m3", workers=2)]
    facts = {"cores": 2, "memory": 2 * GB, "disk": 1e12}
    made.seen(report("h1", "m1", "7", **facts))
    # Where one node is a grant the other managers have grants of their own: no task need wait.
    assert set(names(made.nodes())) == {"h1 job 7", "m2", "m3"}
    made.seen(report("h1", "m2", "8", **facts))
    made.seen(report("h1", "m3", "7", **facts))  # a second manager of the first job
    found = names(made.nodes())
    assert {name: node.slots for name, node in found.items()} == {"h1 job 7": 6, "h1 job 8": 4}
    assert all(node.capacity.memory == 2 * GB for node in found.values())


def test_a_node_has_no_more_than_its_provider_asks_for() -> None:
    provider = remote()
    provider.cores_per_node, provider.mem_per_node = 2, 4
    made = engine(provider=provider)
    made.inner.managers = [manager("m1", workers=2)]
    made.seen(report("h1", "m1", cores=8, memory=32 * GB, disk=1e12))
    assert names(made.nodes())["h1"].capacity == Resources(cores=2, memory=4 * GB, disk=1e12)
    made.seen(report("h2", "m1", cores=1, memory=2 * GB, disk=1e12))
    assert names(made.nodes())["h2"].capacity.memory == 2 * GB


def test_the_disk_of_a_node_that_nobody_has_seen_is_no_fancy_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(monitored, "_until", 0.0)  # what is known may be of another test's folder
    made = engine({Kind.MEMORY: GB})
    stated = made.stated()
    assert stated is not None
    assert 0 < stated.disk <= shutil.disk_usage(tempfile.gettempdir()).total


def test_what_the_user_states_goes_before_what_nodes_report() -> None:
    made = engine({Kind.MEMORY: 10 * GB})
    made.inner.managers = [manager("m1")]
    made.seen(report("h1", "m1", cores=8, memory=32 * GB, disk=1e12))
    assert names(made.nodes())["h1"].capacity == Resources(cores=8, memory=10 * GB, disk=1e12)


def test_managers_that_are_held_or_draining_are_no_nodes() -> None:
    made = engine({Kind.MEMORY: GB})
    made.inner.managers = [manager("m1", active=False), manager("m2", draining=True)]
    assert made.nodes() == []


def test_a_dead_interchange_is_not_asked() -> None:
    made = engine({Kind.MEMORY: GB})
    made.inner.managers = [manager("m1")]
    made.inner.interchange_proc.status = 1
    assert made.nodes() == ()
    made.inner.interchange_proc = None
    assert made.nodes() == ()


def test_more_workers_than_cores_mean_as_many_tasks_at_once() -> None:
    made = engine()
    made.inner.managers = [manager("m1", workers=16)]
    made.seen(report("h1", "m1", cores=2, memory=32 * GB, disk=1e12))
    assert names(made.nodes())["h1"].capacity.cores == 16
    stated = engine({Kind.CORES: 2.0, Kind.MEMORY: GB})
    stated.inner.managers = [manager("m1", workers=16)]
    wait_for_all(stated)
    assert names(stated.nodes())["m1"].capacity.cores == 2


def test_this_machine_is_known_before_its_workers_come() -> None:
    made = engine({Kind.MEMORY: GB}, provider=LocalProvider())
    [node] = made.nodes()
    assert node.capacity.memory == GB
    assert node.capacity.cores >= 1
    assert node.slots == 0


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"host": 5, "pool": "m1", "node": {}},
        {"host": "h1", "pool": "m1", "node": None},
        {"host": "h1", "pool": "m1"},
    ],
)
def test_reports_without_a_place_say_nothing(nonsense: dict[str, Any]) -> None:
    assert not engine().seen(nonsense)


def test_the_specification_is_what_the_user_gave_for_the_engine() -> None:
    made = engine()
    assert made.specification({Kind.MEMORY: GB}, {"priority": 3}, None) == {"priority": 3}
    assert made.unsized({Kind.MEMORY: 5e6}, {"priority": 3}) == {"priority": 3}


def test_several_blocks_or_nodes_are_shared() -> None:
    assert engine().is_shared
    assert not engine(provider=LocalProvider(max_blocks=1)).is_shared
    assert engine(provider=LocalProvider(max_blocks=1, nodes_per_block=2)).is_shared


def claim(made: HighThroughput, *, grows: bool = True, **more: Any) -> Any:
    """What is claimed for an attempt with 1 GB of memory and of disk."""
    task = TaskInfo(1, "align", opt_outs=more.pop("opt_outs", frozenset()))
    attempt = Attempt(task, 1, {Kind.MEMORY: GB, Kind.DISK: GB}, **more)
    return Call(len, (), {}, "runner", {}, "run", grows).order(made, attempt).get("claim")


def test_on_the_only_node_memory_is_claimed_so_that_tasks_can_grow() -> None:
    made = engine({Kind.MEMORY: 8 * GB}, provider=LocalProvider(max_blocks=1))
    base = {"ledger": "run", "capacity": {"memory": 8 * GB}, "amounts": {"memory": GB}}
    assert claim(made) == base  # no node is known yet
    made.nodes()
    base["is_late"] = True
    assert claim(made) == base | {"growth": "fitting"}
    assert claim(made, opt_outs=frozenset({OptOut.FIXED})) == base
    assert claim(made, enforced=False) == base | {"growth": "any"}
    assert claim(made, grows=False) is None
    made.close()


def test_what_is_claimed_is_late_only_where_the_submit_side_picks_the_node() -> None:
    made = engine(provider=LocalProvider(max_blocks=1))
    made.nodes()
    assert claim(made)["is_late"]
    made.inner.managers = [manager("a"), manager("b")]
    made.nodes()
    assert "is_late" not in claim(made)
    made.close()


def test_on_nodes_that_htex_picks_tasks_grow_and_are_sent_elsewhere() -> None:
    made = engine()
    base: dict[str, object] = {"ledger": "run", "capacity": {}, "patience_s": ELSEWHERE_S}
    base |= {"amounts": {"memory": GB, "disk": GB}, "shared": True}
    assert claim(made) == base
    made.inner.managers = [manager("a"), manager("b")]
    made.seen(report("small", "a", cores=4, memory=8 * GB, disk=GB))
    made.seen(report("large", "b", cores=4, memory=64 * GB, disk=GB))
    made.nodes()
    assert made.ledgers.most == 64 * GB
    assert claim(made) == base | {"growth": "fitting"}
    assert claim(made, grows=False) == base
