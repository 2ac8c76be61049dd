"""The engine of threads: one node, nothing measured."""

from __future__ import annotations

from parsl.executors import ThreadPoolExecutor

from parsl_sizer.engines.threads import Threads
from parsl_sizer.model import Kind


def test_the_one_node_is_this_machine_as_far_as_nobody_said_otherwise() -> None:
    engine = Threads(ThreadPoolExecutor(max_threads=3), {Kind.MEMORY: 5e9})
    [node] = engine.nodes()
    assert node.capacity.memory == 5e9
    assert node.capacity.cores >= 1
    assert node.slots == 3


def test_nothing_is_measured_packed_or_enforced() -> None:
    assert not Threads.measures
    assert not Threads.packs
    assert not Threads.enforces
    assert Threads.isolations == ("inline",)


def test_specifications_are_what_the_user_gave_for_others() -> None:
    engine = Threads(ThreadPoolExecutor())
    assert engine.specification({Kind.MEMORY: 1e9}, {}, None) == {}
    assert engine.unsized({Kind.MEMORY: 1e8}, {}) == {}
