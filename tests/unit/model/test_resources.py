from __future__ import annotations

import dataclasses
import math
import pickle
import sys

import pytest

from parsl_sizer.model import NOTHING, Kind, Resources, exceeded


def test_kinds_are_looked_up_by_themselves_or_by_their_names() -> None:
    amounts = {Kind.MEMORY: 1.0}
    assert amounts["memory"] == 1.0  # type: ignore[index]
    assert {kind.value: 1 for kind in Kind} == dict.fromkeys(Kind, 1)
    assert all(hash(kind) == hash(kind.value) for kind in Kind)


def test_a_kind_prints_as_its_name() -> None:
    assert [str(kind) for kind in Kind] == ["cores", "memory", "disk", "gpus"]
    assert f"{Kind.GPUS}" == "gpus"


def test_a_kind_stays_itself_when_pickled() -> None:
    assert all(pickle.loads(pickle.dumps(kind)) is kind for kind in Kind)


def test_resources_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Resources(cores=1).cores = 2  # type: ignore[misc]


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", list(Kind))
def test_an_amount_that_is_not_a_number_is_refused_by_name(kind: Kind, amount: float) -> None:
    with pytest.raises(ValueError, match=f"{kind.value} must be a finite number, not {amount!r}"):
        Resources(**{kind.value: amount})


def test_room_may_be_negative() -> None:
    assert (Resources(memory=1.0) - {Kind.MEMORY: 3.0}).memory == -2.0


@pytest.mark.parametrize("key", ["ram", "__class__", "updated", 0])
def test_what_is_not_a_kind_is_not_found(key: object) -> None:
    with pytest.raises(KeyError):
        Resources()[key]  # type: ignore[index]
    assert key not in Resources()
    assert Resources().get(key, "absent") == "absent"  # type: ignore[call-overload]


def test_what_is_not_a_kind_cannot_be_set_or_added() -> None:
    with pytest.raises(ValueError, match="ram"):
        Resources().updated({"ram": 1.0})  # type: ignore[dict-item]
    with pytest.raises(KeyError, match="ram"):
        Resources() + {"ram": 1.0}  # type: ignore[dict-item]


def test_a_kind_missing_on_either_side_is_not_exceeded() -> None:
    assert exceeded({}, {Kind.MEMORY: 1.0}) == NOTHING
    assert exceeded({Kind.MEMORY: 1.0}, {}) == NOTHING
    assert exceeded({Kind.MEMORY: 1.0}, {Kind.MEMORY: 1.0}) == NOTHING


def test_resources_fit_wherever_nothing_is_known() -> None:
    assert Resources(memory=1e18).fits_in({Kind.CORES: 0.0})


def test_resources_are_small() -> None:
    assert not hasattr(Resources(), "__dict__")
    assert sys.getsizeof(Resources()) < 100
