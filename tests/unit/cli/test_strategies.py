"""``parsl-sizer strategies``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from parsl_sizer.cli import main
from parsl_sizer.strategies.catalog import BUILT_IN

Printed = Callable[..., Any]


def test_every_strategy_has_a_line_and_its_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["strategies"]) == 0
    out = capsys.readouterr().out
    names = [line.split()[0] for line in out.splitlines() if line and not line.startswith(" ")]
    assert {entry.name for entry in BUILT_IN} <= set(names)
    assert "Phung et al." in out


def test_json_has_options_and_variants(printed: Printed) -> None:
    listed = {entry["name"]: entry for entry in printed("strategies")["strategies"]}
    assert set(listed) >= {entry.name for entry in BUILT_IN}
    assert listed["percentile"]["options"] == {"p": 95.0}
    assert listed["percentile"]["variants"] == ["percentile 50", "percentile 95"]
    assert listed["oracle"]["replay_only"] is True
    assert listed["doubling"]["replay_only"] is False
    assert listed["doubling"]["paper"].startswith("Phung")
    assert all(entry["summary"] for entry in listed.values())


@pytest.mark.usefixtures("plugins")
def test_what_others_install_is_listed_broken_or_not(printed: Printed) -> None:
    listed = {entry["name"]: entry for entry in printed("strategies")["strategies"]}
    assert listed["raising"]["summary"] == "Raises whatever it is asked."
    assert listed["raising"]["paper"] == "somebody"
    assert listed["steady"]["options"] == {"share": 0.9, "of": "<class 'object'>"}
    assert listed["absent"]["summary"].startswith("cannot be loaded: ")
