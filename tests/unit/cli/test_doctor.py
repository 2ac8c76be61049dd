from __future__ import annotations

import json

import pytest

from parsl_sizer.cli import main


def test_it_says_what_can_be_measured_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["node"]["memory"] > 0
    assert found["node"]["cores"] > 0
    assert found["isolation"] in ("runner", "inline")
    assert {layer["name"] for layer in found["layers"]} >= {"proc", "hwm", "ledger"}
    assert all(layer["why"] and layer["does"] for layer in found["layers"])
    assert {engine["name"]: engine["is_there"] for engine in found["engines"]}["HTEX"]


def test_people_get_the_same_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "This machine has: cores" in shown
    assert "Work Queue" in shown
    assert "proc" in shown
