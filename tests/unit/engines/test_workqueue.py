"""Work Queue's dialect, without Work Queue: only its executor needs the binding."""

from __future__ import annotations

import gc
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from parsl.executors.errors import ExecutorError
from parsl.executors.workqueue.errors import WorkQueueFailure, WorkQueueTaskFailure

from parsl_sizer.engines import CannotWrap, cctools_status
from parsl_sizer.engines.base import NodeLedgers
from parsl_sizer.engines.cctools import ELSEWHERE_S, promised_by, unbinding_units, whole_units
from parsl_sizer.engines.workqueue import MIXES_UP_DISK, WorkQueue
from parsl_sizer.executor.calls import Call
from parsl_sizer.model import Attempt, Ending, Kind, Node, OptOut, Resources, TaskInfo

LARGE = Resources(cores=16, memory=12e9, disk=50e9)
SMALL = Resources(cores=4, memory=8e9, disk=5e9)


class Inner(SimpleNamespace):
    """Stands for an executor at rest; notes what is submitted."""

    def submit(self, function: Any, specification: dict[str, Any], *args: Any) -> None:
        if self.dead:
            raise ExecutorError(self, "Workqueue Submit Process is not alive")
        self.tasks[str(len(self.tasks))] = (function.__name__, specification)


def engine(node: Any = None, *here: Resources, **options: Any) -> WorkQueue:
    """An engine whose workers, if any are given, are here."""
    settings = {
        "source": False,
        "pack": False,
        "coprocess": False,
        "autolabel": False,
        "project_password_file": None,
        "provider": None,
        "tasks": {},
        "dead": False,
        **options,
    }
    made = WorkQueue(Inner(**settings), node)
    made._here = [Node(f"node {number}", capacity) for number, capacity in enumerate(here)]
    return made


def worker(cores: float, memory: float, disk: float, **more: Any) -> dict[str, Any]:
    """What a manager says about a worker."""
    promised = {"cores": cores, "memory": memory, "disk": disk, "gpus": 0}
    said = {f"{kind}_{what}": n for kind, n in promised.items() for what in ("total", "largest")}
    return {"hostname": "host", "address_port": "10.0.0.1:4242", **said, **more}


class Answers:
    """Stands for a manager: answers questions from a table, None for the rest."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def ask(self, port: int, question: str) -> Any:
        return self.answers.get(question)


def connected(made: WorkQueue, *workers: Any, version: str = "7.14.5") -> WorkQueue:
    made.inner._chosen_port = 9123
    made._status = Answers(queue=[{"version": version}], worker=list(workers))  # type: ignore[assignment]
    return made


def test_an_allocation_is_asked_for_in_whole_cores_and_mb_rounded_up() -> None:
    allocation = {Kind.CORES: 1.5, Kind.MEMORY: 1000.2e6, Kind.DISK: 10e6, Kind.GPUS: 1.0}
    specification = engine().specification(allocation, {}, LARGE)
    assert specification == {"cores": 2, "memory": 1001, "disk": 10, "gpus": 1}


def test_rounding_up_never_asks_for_more_than_the_node_has() -> None:
    node = Resources(cores=3.5, memory=4000.7e6, disk=9.9e6)
    whole = {kind: node[kind] for kind in (Kind.CORES, Kind.MEMORY, Kind.DISK)}
    specification = engine().specification(whole, {}, node)
    assert specification == {"cores": 3, "memory": 4000, "disk": 9}


def test_a_task_has_at_least_a_core() -> None:
    allocation = {Kind.CORES: 0.0, Kind.MEMORY: 1e9, Kind.DISK: 0.0}
    assert engine().specification(allocation, {}, LARGE)["cores"] == 1


def test_what_nobody_sizes_is_asked_for_so_that_it_never_binds() -> None:
    specification = engine().specification({Kind.MEMORY: 5e9}, {}, LARGE)
    assert specification == {"cores": 6, "memory": 5000, "disk": 0}
    cores = engine().specification({Kind.CORES: 5.0}, {}, LARGE)
    assert cores == {"cores": 5, "memory": 3750, "disk": 0}


def test_what_nobody_sizes_binds_on_no_other_worker_either() -> None:
    specification = engine(None, LARGE, SMALL).specification({Kind.MEMORY: 6e9}, {}, LARGE)
    assert specification["cores"] == 3  # of four, as six of eight GB
    alone = engine(None, LARGE, SMALL).specification({Kind.MEMORY: 9e9}, {}, LARGE)
    assert alone["cores"] == 12  # it fits on the large one only


def test_all_three_kinds_are_there_even_if_no_worker_is_known() -> None:
    specification = engine().specification({Kind.MEMORY: 5e9}, {}, None)
    assert specification == {"cores": 1, "memory": 5000, "disk": 0}


def test_the_node_may_have_left_and_the_others_cap() -> None:
    made = engine(None, Resources(cores=4, memory=7999.5e6, disk=5e9))
    assert made.specification({Kind.MEMORY: 7999.2e6}, {}, None)["memory"] == 7999


def test_the_users_other_keys_pass_through() -> None:
    given = {"priority": 3, "running_time_min": 20}
    specification = engine().specification({Kind.MEMORY: 1e9}, given, LARGE)
    assert specification == {"cores": 1, "memory": 1000, "disk": 0, **given}


def test_a_task_without_allocation_gets_what_work_queue_gives_it() -> None:
    assert engine().specification({}, {"priority": 3}, LARGE) == {"priority": 3}


@pytest.mark.parametrize(
    ("text", "ending", "kinds", "node_lost"),
    [
        ("task used more resources than requested", Ending.EXHAUSTED, {Kind.DISK}, False),
        ("task needed more space to complete task", Ending.EXHAUSTED, {Kind.DISK}, False),
        ("The result file was not transfered from the worker.\n", Ending.LOST, set(), False),
        ("task terminated with a signal", Ending.LOST, set(), False),
        ("task failed, but not a task error", Ending.LOST, set(), True),
        ("unable to complete after specified number of retries", Ending.LOST, set(), True),
        ("unable to process Work Queue system failure", Ending.LOST, set(), False),
    ],
)
def test_its_reasons_are_understood(text, ending, kinds, node_lost) -> None:
    verdict = engine().verdict(WorkQueueTaskFailure(f"work queue result: {text}", None))
    assert verdict == (ending, kinds, node_lost)


def test_with_autolabel_a_task_is_stopped_for_memory_as_a_rule() -> None:
    error = WorkQueueTaskFailure("task used more resources than requested", None)
    verdict = engine(autolabel=True).verdict(error)
    assert verdict is not None
    assert verdict.exhausted == {Kind.MEMORY}


@pytest.mark.parametrize(
    "error",
    [
        WorkQueueTaskFailure("work queue result: missing input file", None),
        WorkQueueTaskFailure("Cannot load result from result file", None),
        WorkQueueFailure("work queue executor failed to execute the task."),
        ValueError("The result file was not transfered from the worker."),
    ],
)
def test_other_errors_say_nothing_special(error: Exception) -> None:
    assert engine().verdict(error) is None


def test_workers_are_nodes_of_what_they_promised() -> None:
    made = connected(
        engine(),
        worker(4, 4000, 5000),
        worker(2, 1500, 2000, address_port="10.0.0.2:99", gpus_largest=1),
    )
    assert made.nodes() == [
        Node("host 10.0.0.1:4242", Resources(cores=4, memory=4e9, disk=5e9)),
        Node("host 10.0.0.2:99", Resources(cores=2, memory=1.5e9, disk=2e9, gpus=1)),
    ]


def test_a_worker_that_has_not_said_what_it_has_is_not_here_yet() -> None:
    assert connected(engine(), worker(0, 0, 0), worker(1, 0, 9)).nodes() == []


def test_a_node_is_no_larger_than_the_user_says_nor_than_promised() -> None:
    said = {Kind.CORES: 2.0, Kind.MEMORY: 9e9}
    [node] = connected(engine(said), worker(4, 4000, 5000)).nodes() or []
    assert node.capacity == Resources(cores=2, memory=4e9, disk=5e9)


def test_a_node_is_no_larger_than_its_provider_asks_for() -> None:
    """A worker in a job with a part of its machine promises all of the machine."""
    provider = SimpleNamespace(cores_per_node=2, mem_per_node=4)
    made = engine(provider=provider)
    assert made._node(worker(16, 64000, 50000)).capacity == Resources(
        cores=2, memory=4e9, disk=50e9
    )
    assert made._node(worker(1, 2000, 50000)).capacity.memory == 2e9
    stated = engine({Kind.MEMORY: 8e9}, provider=provider)
    assert stated._node(worker(16, 64000, 50000)).capacity.memory == 8e9


def test_a_foreman_is_as_large_as_the_largest_of_its_workers() -> None:
    foreman = worker(4, 4000, 5000, cores_total=12, memory_total=12000, disk_total=15000)
    assert promised_by(foreman) == Resources(cores=4, memory=4e9, disk=5e9)


@pytest.mark.parametrize("nonsense", [-1, float("nan"), float("inf"), "4", None, [4]])
def test_a_promise_that_makes_no_sense_is_none(nonsense: object) -> None:
    assert promised_by({"cores_total": nonsense, "memory_total": 5}) == Resources(memory=5e6)


def test_debians_version_takes_no_more_disk_than_memory() -> None:
    made = connected(engine(), worker(4, 4000, 5000), version=MIXES_UP_DISK)
    [node] = made.nodes() or []
    assert node.capacity == Resources(cores=4, memory=4e9, disk=4e9)


def test_before_the_start_no_nodes_are_known() -> None:
    assert engine().nodes() is None


def at_rest(*, dead: bool = False) -> WorkQueue:
    made = engine(_chosen_port=9123, dead=dead, label="resting")
    made._status = Answers()  # type: ignore[assignment]
    return made


def test_a_manager_at_rest_is_woken_until_a_worker_is_known() -> None:
    made = at_rest()
    for _ in range(2):
        made.probe()
        made.probe()
        assert len(made.inner.tasks) == 1
        made.inner.tasks.clear()
    connected(made, worker(4, 4000, 5000)).nodes()
    assert made.probe() is None
    assert not made.inner.tasks


def test_a_dead_manager_is_not_woken() -> None:
    assert at_rest(dead=True).probe() is None


def test_what_a_node_will_have_is_as_the_user_or_the_provider_says() -> None:
    assert engine().stated() is None
    assert engine({Kind.CORES: 4.0}).stated() is None
    stated = engine({Kind.CORES: 4.0, Kind.MEMORY: 8e9}).stated()
    assert stated is not None
    assert (stated.cores, stated.memory) == (4, 8e9)
    provider = SimpleNamespace(cores_per_node=2, mem_per_node=4)
    stated = engine(provider=provider).stated()
    assert stated is not None
    assert (stated.cores, stated.memory) == (2, 4e9)


@pytest.mark.parametrize("option", ["source", "pack", "coprocess"])
def test_modes_that_cannot_be_measured_are_refused(option: str) -> None:
    with pytest.raises(CannotWrap, match=f"{option}=True"):
        engine(**{option: True})


def test_units_are_pure_arithmetic() -> None:
    assert whole_units({Kind.MEMORY: 1.0}, None) == {"memory": 1}
    assert whole_units({Kind.MEMORY: 9e9}, SMALL) == {"memory": 9000}  # more than it has: said so
    assert unbinding_units({Kind.MEMORY: 9e9}, [SMALL]) == {}
    assert unbinding_units({Kind.MEMORY: 1e6}, [SMALL]) == {"cores": 1, "disk": 0}


def test_a_question_that_nobody_answered_ends_with_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cctools_status, "PATIENCE_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as manager:
        made = engine(_chosen_port=manager.getsockname()[1])
        assert made.nodes() is None
        connection, _ = manager.accept()
        with connection:
            connection.settimeout(10)
            made.close()
            assert connection.makefile("rb").read() == b"queue_status\n"
    made.cycle = made  # type: ignore[attr-defined]  # as in a program: freed by the collector
    del made
    gc.collect()  # a socket left open would be a warning, and here an error


def test_tasks_grow_where_all_workers_have_as_much_memory() -> None:
    whole = {Kind.MEMORY: LARGE.memory}
    assert engine(None, LARGE).ledgers == NodeLedgers(LARGE.memory, whole, of_workers=True)
    nearly = LARGE.updated({Kind.MEMORY: LARGE.memory * 1.001})
    found = engine(None, nearly, LARGE).ledgers
    assert found == NodeLedgers(LARGE.memory, whole, of_workers=True, patience_s=ELSEWHERE_S)
    unequal = NodeLedgers(None, {}, of_workers=True, patience_s=ELSEWHERE_S)
    assert engine(None, LARGE, SMALL).ledgers == unequal
    assert engine().ledgers == NodeLedgers(None, {}, of_workers=True)
    assert engine(None, LARGE, autolabel=True).ledgers is None


def claim(made: WorkQueue, *, grows: bool = True, **more: Any) -> Any:
    """What is claimed for an attempt with 1 GB."""
    opt_outs = more.pop("opt_outs", frozenset())
    allocation = more.pop("allocation", {Kind.MEMORY: 1e9})
    attempt = Attempt(TaskInfo(1, "align", opt_outs=opt_outs), 1, allocation, **more)
    return Call(len, (), {}, "fork", {}, "run", grows).order(made, attempt).get("claim")


def test_what_an_attempt_holds_is_claimed_on_its_worker() -> None:
    alike, unlike = engine(None, LARGE, LARGE), engine(None, LARGE, SMALL)
    whole = {"memory": LARGE.memory}
    base = {"ledger": "run", "of_worker": True, "amounts": {"memory": 1e9}}
    base |= {"patience_s": ELSEWHERE_S}
    assert claim(alike) == base | {"capacity": whole, "growth": "fitting"}
    fixed = frozenset({OptOut.FIXED})
    assert claim(alike, opt_outs=fixed) == base | {"capacity": whole}
    assert claim(alike, enforced=False) == base | {"capacity": whole, "growth": "any"}
    assert claim(unlike) == base | {"capacity": {}}
    assert "patience_s" not in claim(engine(None, LARGE))
    assert claim(alike, allocation={Kind.CORES: 1.0}) is None
    assert claim(alike, grows=False) is None
