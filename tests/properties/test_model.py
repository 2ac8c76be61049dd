"""The arithmetic of resources, for any amounts."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Kind, Resources, exceeded, format_amount, is_bytes, parse_amount
from parsl_sizer.model.units import parse_amounts

# Up to 2**53 whole numbers are exact, and sums of two of them below.
WHOLE = st.integers(min_value=-(2**51), max_value=2**51).map(float)
AMOUNT = st.floats(min_value=0, max_value=1e18)
KINDS = st.sampled_from(Kind)
RESOURCES = st.builds(Resources, cores=WHOLE, memory=WHOLE, disk=WHOLE, gpus=WHOLE)
SMALL = st.builds(Resources, **{kind.value: st.integers(0, 3) for kind in Kind})
PARTIAL = st.dictionaries(KINDS, WHOLE)


@given(RESOURCES, PARTIAL)
def test_what_is_added_can_be_taken_away(room: Resources, amounts: dict[Kind, float]) -> None:
    assert (room + amounts) - amounts == room
    assert (room - amounts) + amounts == room


@given(RESOURCES, RESOURCES)
def test_addition_does_not_care_about_order(one: Resources, other: Resources) -> None:
    assert one + other == other + one


@given(RESOURCES, PARTIAL)
def test_a_kind_not_given_stays_as_it_is(room: Resources, amounts: dict[Kind, float]) -> None:
    for changed in (room + amounts, room - amounts, room.updated(amounts)):
        assert all(changed[kind] == room[kind] for kind in Kind if kind not in amounts)
    assert all(room.updated(amounts)[kind] == amount for kind, amount in amounts.items())


@given(SMALL, SMALL, SMALL)
def test_fitting_is_a_partial_order(a: Resources, b: Resources, c: Resources) -> None:
    assert a.fits_in(a)
    assert a == b or not (a.fits_in(b) and b.fits_in(a))
    assert a.fits_in(c) or not (a.fits_in(b) and b.fits_in(c))


@given(SMALL, SMALL)
def test_something_fits_exactly_where_it_exceeds_nothing(task: Resources, node: Resources) -> None:
    assert task.fits_in(node) == (node.exceeded_by(task) == frozenset())


@given(SMALL, st.dictionaries(KINDS, st.integers(0, 3)))
def test_only_kinds_that_both_know_can_be_exceeded(
    limits: Resources, amounts: dict[Kind, float]
) -> None:
    over = limits.exceeded_by(amounts)
    assert over == {kind for kind in amounts if amounts[kind] > limits[kind]}
    assert exceeded(amounts, limits) == {kind for kind in amounts if limits[kind] > amounts[kind]}


@given(SMALL, SMALL)
def test_what_fits_leaves_room_that_is_not_negative(task: Resources, node: Resources) -> None:
    assert task.fits_in(node) == all(amount >= 0 for amount in (node - task).values())


@given(RESOURCES)
def test_resources_are_a_mapping_of_every_kind(resources: Resources) -> None:
    assert list(resources) == list(Kind)
    assert len(resources) == len(Kind)
    assert Resources(**{kind.value: amount for kind, amount in resources.items()}) == resources
    assert all(resources[kind] == getattr(resources, kind.value) for kind in Kind)


@given(RESOURCES, RESOURCES)
def test_equal_resources_have_equal_hashes_and_survive_pickling(
    one: Resources, other: Resources
) -> None:
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(pickle.loads(pickle.dumps(one))) == hash(one)
    assert (one == other) == (dict(one) == dict(other))


@given(KINDS, AMOUNT)
def test_what_is_printed_can_be_read_back_to_three_digits(kind: Kind, amount: float) -> None:
    printed = format_amount(kind, amount)
    number = printed if is_bytes(kind) else printed.split()[0]
    read = parse_amount(kind, number)
    assert abs(read - amount) <= 0.006 * amount


@given(KINDS, AMOUNT)
def test_a_plain_number_is_read_exactly(kind: Kind, amount: float) -> None:
    assert parse_amount(kind, repr(amount)) == amount
    assert parse_amounts(f" {kind.value} = {amount!r} ,") == {kind: amount}


@given(st.dictionaries(KINDS, AMOUNT))
def test_several_amounts_are_read_as_they_were_written(amounts: dict[Kind, float]) -> None:
    text = ",".join(f"{kind.value}={amount!r}" for kind, amount in amounts.items())
    assert parse_amounts(text) == amounts
