"""What people see of a run, whatever its categories and executors are called."""

from __future__ import annotations

import pytest

from parsl_sizer.executor.shown import Costs, show
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.sizing import Settle

HOSTILE = "\x1b]0;t\x07[red]\u202e"
SHOWN = r"\x1b]0;t\x07[red]\u202e"
NODE = Resources(cores=16, memory=64e9)


@pytest.mark.parametrize("width", ["60", "200"])
def test_the_summary_shows_hostile_names_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    costs = Costs()
    task = TaskInfo(1, HOSTILE)
    attempt = Attempt(task, 1, {Kind.MEMORY: 4e9})
    outcome = Outcome(attempt, Ending.DONE, usage=Usage({Kind.MEMORY: 1e9}, 60.0))
    costs.add(Settle(task, Ending.DONE, (outcome,)), NODE)
    costs.groups[HOSTILE] += 1
    show(costs, HOSTILE)
    out, error = capsys.readouterr()
    assert out == ""
    assert error.replace("\n", "").isprintable()
    assert f"what tasks on {SHOWN} were given" in error
    assert f"Tasks by group: {SHOWN} 1" in error
    assert f"{SHOWN}: parsl_resource_specification" in error
