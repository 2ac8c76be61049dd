"""Those who wait for the canaries of a new category, on a real engine."""

from __future__ import annotations

from pathlib import Path

import sizer_apps as apps
from sizer_runs import running, sized

LIMIT_S = 100


def test_others_of_a_new_category_start_when_its_canary_has_finished(tmp_path: Path) -> None:
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    executor = sized(canaries=1)
    with running(executor, tmp_path):
        canary = apps.lettered(str(notes), "a", gate=str(gate))
        others = [apps.lettered(str(notes), letter) for letter in "bc"]
        stranger = apps.lettered(
            str(notes), "o", parsl_resource_specification={"category": "other"}
        )
        stranger.result(LIMIT_S)
        gate.touch()
        for future in (canary, *others):
            future.result(LIMIT_S)
    written = notes.read_text()
    assert written[:2] == "oa"
    assert set(written[2:]) == {"b", "c"}
