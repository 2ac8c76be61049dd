from __future__ import annotations

from parsl_sizer.model import Kind, Resources, TaskInfo
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family


def test_every_task_gets_the_largest_node_whatever_the_user_requested() -> None:
    strategy = family("whole-machine", Setting((Kind.CORES, Kind.MEMORY)))("align")
    task = TaskInfo(1, "align", requested={Kind.MEMORY: 1e9})
    proposal = strategy.propose(task, [], Resources(cores=16, memory=64e9))
    assert proposal.amounts == {Kind.CORES: 16, Kind.MEMORY: 64e9}
    assert str(proposal.why) == "cores 16 cores: the whole machine; memory 64 GB: the whole machine"
