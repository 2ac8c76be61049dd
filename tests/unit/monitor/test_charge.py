"""What members of a tree are charged between two looks at what they share."""

from __future__ import annotations

import os

import pytest

from parsl_sizer.monitor import probe
from parsl_sizer.monitor.charge import Charge, Part
from parsl_sizer.monitor.probe import Memory, Shares

MB = 1_000_000
ROOT, OTHER = os.getpid(), os.getppid()


def charge_of(root: Part, other: Part) -> Charge:
    """As it is after a look."""
    charge = Charge(ROOT, 60 * MB, None)
    charge._parts = {ROOT: root, OTHER: other}
    return charge


def memory(held: int, shared: int = 0) -> Memory:
    return Memory(held * MB, 5 * MB, held * MB, shared * MB)


def test_what_was_given_back_since_is_not_charged() -> None:
    charge = charge_of(Part(212 * MB, 300 * MB, True), Part(0, 0, False))
    assert charge.estimate({ROOT: memory(61), OTHER: memory(6)}) == 6 * MB


def test_pages_of_shared_memory_that_another_comes_to_are_charged_already() -> None:
    charge = charge_of(Part(60 * MB, 300 * MB, True), Part(0, 0, False))
    members = {ROOT: memory(360, shared=300), OTHER: memory(306, shared=300)}
    assert charge.estimate(members) == 306 * MB


def test_shared_memory_that_is_new_is_charged() -> None:
    charge = charge_of(Part(60 * MB, 300 * MB, True), Part(0, 0, False))
    members = {ROOT: memory(460, shared=400), OTHER: memory(6)}
    assert charge.estimate(members) == 406 * MB


@pytest.mark.parametrize("forks_in_between", [False, True])
def test_a_fork_during_a_look_is_not_charged(
    monkeypatch: pytest.MonkeyPatch, forks_in_between: bool
) -> None:
    """Else the root's part would be a half of its pages, and that of its twin a third."""
    holders = 2

    def shares(pid: int) -> Shares:
        nonlocal holders
        found = Shares(60 * MB, 60 * MB // holders, 0)
        holders += forks_in_between
        return found

    monkeypatch.setattr(probe, "shares", shares)
    charge = Charge(ROOT, 60 * MB, OTHER)
    members = {ROOT: memory(60)}
    charge.look(members, 0, None)
    assert bool(charge._parts) != forks_in_between
    assert charge.estimate({**members, OTHER: memory(0)}) == 0
