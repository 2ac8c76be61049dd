"""The laws of archives on what nodes can do: each is a function of a new, empty archive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from parsl_sizer.archive.base import Archive, Refused
from parsl_sizer.model import NodeProfile

PROFILES = (
    NodeProfile("ä-1", {"cpu_single": 1.5e3, "memory": 6.4e10}, {"cpu_single": "it's"}, 10.0),
    NodeProfile("n1", {}, {"io_read": "not measured: no room"}, 11.0, "big/memory"),
    NodeProfile("n1", {"cpu_single": 1e-9, "flag_avx2": 0.0}, {}, 12.0, "htex"),
    NodeProfile("n1", {"cpu_single": 1e17}, {}, 9.0),
)


def check_profiles_come_back(archive: Archive) -> None:
    """Every field of each, in the order of the names, and none before any is kept."""
    assert archive.profiles() == [], "a new archive has profiles"
    assert archive.keep_profiles(PROFILES) == len(PROFILES)
    found, wanted = archive.profiles(), sorted(PROFILES, key=lambda profile: profile.name)
    assert found == wanted, f"{found} came back"


def check_the_newest_profile_of_a_name_counts(archive: Archive) -> None:
    """In whatever order they are kept, and those kept twice count once."""
    one = PROFILES[2]
    later, earlier = replace(one, measured_at=20.0, features={}), replace(one, measured_at=1.0)
    assert archive.keep_profiles([one, later]) == 2
    assert archive.keep_profiles([earlier, one, one]) == 1
    assert archive.profiles() == [later], f"{archive.profiles()} is not the newest"


def check_impossible_profiles_are_refused(archive: Archive) -> None:
    """With all that were to be kept with them."""
    for amount in (float("nan"), float("inf"), 1e300):
        try:
            archive.keep_profiles([PROFILES[0], replace(PROFILES[1], features={"cpu": amount})])
        except Refused:
            continue
        raise AssertionError(f"a feature of {amount} was kept")
    assert archive.profiles() == []


def check_profiles_are_forgotten_by_name(archive: Archive) -> None:
    """Old ones too; those of the same host by another executor stay."""
    archive.keep_profiles([*PROFILES, replace(PROFILES[2], measured_at=1.0)])
    assert archive.forget_profiles(["htex/n1", "none", "htex/n1"]) == 1
    assert [profile.name for profile in archive.profiles()] == ["big/memory/n1", "n1", "ä-1"]
    assert archive.forget_profiles(["htex/n1"]) == 0


PROFILE_LAWS: tuple[Callable[[Archive], None], ...] = (
    check_profiles_come_back,
    check_the_newest_profile_of_a_name_counts,
    check_impossible_profiles_are_refused,
    check_profiles_are_forgotten_by_name,
)
