"""The ledger: exact, per node, and only what is controlled."""

from __future__ import annotations

import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Kind, Node, Resources
from parsl_sizer.placement import Ledger, demand

GB = 1e9
FINITE = sys.float_info.max


def ledger_of(**nodes: Resources) -> Ledger:
    ledger = Ledger()
    for name, capacity in nodes.items():
        ledger.join(Node(name, capacity))
    return ledger


def place(ledger: Ledger, key: str, **amounts: float) -> str | None:
    asked = demand({Kind(kind): amount for kind, amount in amounts.items()})
    name = ledger.find(key, asked)
    if name is not None:
        ledger.claim(key, name, asked)
    return name


def test_a_kind_that_nobody_sizes_takes_no_room() -> None:
    ledger = ledger_of(n=Resources(cores=1, memory=8 * GB))
    assert place(ledger, "a", memory=4 * GB) == "n"
    assert place(ledger, "b", memory=4 * GB) == "n"
    assert place(ledger, "c", cores=1) == "n"
    assert place(ledger, "d", cores=1) is None


def test_room_on_two_nodes_is_no_room_for_one_task() -> None:
    ledger = ledger_of(n=Resources(memory=8 * GB), m=Resources(memory=8 * GB))
    assert place(ledger, "a", memory=10 * GB) is None
    assert place(ledger, "b", memory=8 * GB) is not None


def test_room_in_each_kind_is_on_the_same_node() -> None:
    ledger = ledger_of(n=Resources(cores=8, memory=GB), m=Resources(cores=1, memory=8 * GB))
    assert place(ledger, "a", cores=8, memory=8 * GB) is None


def test_three_thirds_of_a_node_fit() -> None:
    ledger = ledger_of(n=Resources(cores=16, memory=64 * GB))
    for key in "abc":
        assert place(ledger, key, cores=16 / 3, memory=64 * GB / 3) == "n"
    assert place(ledger, "d", memory=1) is None


@given(
    capacity=st.floats(0, FINITE),
    amounts=st.lists(st.floats(0, FINITE), max_size=20),
    ended=st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_no_node_is_over_committed_to_the_last_bit(
    capacity: float, amounts: list[float], ended: list[bool]
) -> None:
    ledger = ledger_of(n=Resources(memory=capacity))
    held: dict[str, Fraction] = {}
    for number, amount in enumerate(amounts):
        if place(ledger, str(number), memory=amount) is not None:
            held[str(number)] = Fraction(amount)
        assert sum(held.values()) <= Fraction(capacity)
        if ended[number] and held:
            oldest = next(iter(held))
            del held[oldest]
            ledger.release(oldest)


def test_any_number_that_is_finite_can_be_counted() -> None:
    numpy = pytest.importorskip("numpy")
    ledger = ledger_of(n=Resources(memory=FINITE))
    assert place(ledger, "a", memory=numpy.uint64(2**62)) == "n"
    assert place(ledger, "b", memory=True) == "n"
    assert place(ledger, "c", memory=5e-324) == "n"
    assert place(ledger, "d", memory=FINITE) is None


@given(st.builds(Resources, *[st.floats(0, FINITE)] * 4))
def test_all_of_the_largest_node_fits_on_it(capacity: Resources) -> None:
    ledger = ledger_of(n=capacity)
    largest = ledger.largest({}, {})
    assert largest is not None
    assert largest.fits_in(capacity)
    assert ledger.holds(largest)
    assert ledger.find("a", demand(largest)) == "n"


@given(
    st.lists(st.floats(1, 1e12), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_what_was_claimed_and_released_leaves_no_trace(amounts: list[float], rng: object) -> None:
    ledger = ledger_of(n=Resources(memory=30e12))
    keys = [str(number) for number in range(len(amounts))]
    for key, amount in zip(keys, amounts, strict=True):
        assert place(ledger, key, memory=amount) == "n"
    rng.shuffle(keys)  # type: ignore[attr-defined]
    for key in keys:
        ledger.release(key)
    assert place(ledger, "all", memory=30e12) == "n"


def test_releasing_twice_gives_back_once() -> None:
    ledger = ledger_of(n=Resources(memory=8 * GB))
    place(ledger, "a", memory=4 * GB)
    place(ledger, "b", memory=4 * GB)
    ledger.release("a")
    ledger.release("a")
    ledger.release("never seen")
    assert place(ledger, "c", memory=4 * GB) == "n"
    assert place(ledger, "d", memory=4 * GB) is None


def test_a_claim_that_does_not_fit_or_is_held_already_is_refused() -> None:
    ledger = ledger_of(n=Resources(memory=8 * GB))
    with pytest.raises(ValueError, match="ask find"):
        ledger.claim("a", "n", demand({Kind.MEMORY: 9 * GB}))
    place(ledger, "a", memory=GB)
    with pytest.raises(ValueError, match="'a' cannot claim"):
        ledger.claim("a", "n", demand({Kind.MEMORY: GB}))


def test_the_fullest_node_with_room_is_taken_and_the_larger_one_is_spared() -> None:
    ledger = ledger_of(small=Resources(memory=8 * GB), large=Resources(memory=64 * GB))
    assert place(ledger, "a", memory=2 * GB) == "small"
    assert place(ledger, "b", memory=2 * GB) == "small"
    assert place(ledger, "c", memory=60 * GB) == "large"
    assert place(ledger, "d", memory=4 * GB) == "large"
    assert place(ledger, "e", memory=4 * GB) == "small"


def test_a_refusal_is_forgotten_when_room_grows() -> None:
    ledger = ledger_of(n=Resources(memory=8 * GB), m=Resources(memory=8 * GB))
    for key in "ab":
        place(ledger, key, memory=8 * GB)
    assert place(ledger, "c", memory=8 * GB) is None
    ledger.release("b")
    assert place(ledger, "c", memory=8 * GB) is not None
    assert place(ledger, "d", memory=8 * GB) is None
    ledger.join(Node("o", Resources(memory=8 * GB)))
    assert place(ledger, "d", memory=8 * GB) == "o"


def test_more_refusals_than_are_remembered_change_nothing() -> None:
    ledger = ledger_of(n=Resources(memory=8 * GB))
    place(ledger, "a", memory=8 * GB)
    for number in range(3000):
        assert place(ledger, "b", memory=1 + number) is None
    ledger.release("a")
    assert place(ledger, "b", memory=1) == "n"


class TestTheLargestNode:
    wide = Resources(cores=64, memory=64 * GB)
    deep = Resources(cores=8, memory=512 * GB)

    def test_is_a_node_and_not_the_best_of_several(self) -> None:
        assert ledger_of(a=self.wide, b=self.deep).largest({}, {}) == self.deep

    def test_is_one_that_holds_what_is_wanted(self) -> None:
        ledger = ledger_of(a=self.wide, b=self.deep)
        assert ledger.largest({}, {Kind.CORES: 32}) == self.wide
        assert ledger.largest({}, {Kind.CORES: 32, Kind.MEMORY: 100 * GB}) == self.deep

    def test_has_more_than_what_failed_in_every_kind(self) -> None:
        ledger = ledger_of(a=self.wide, b=self.deep)
        assert ledger.largest({Kind.CORES: 8}, {}) == self.wide
        assert ledger.largest({Kind.MEMORY: 64 * GB}, {Kind.CORES: 32}) == self.deep
        assert ledger.largest({Kind.MEMORY: 64 * GB, Kind.CORES: 8}, {}) is None

    def test_has_most_of_the_kind_that_failed_last(self) -> None:
        ledger = ledger_of(a=self.wide, b=self.deep)
        assert ledger.largest({Kind.CORES: 2, Kind.MEMORY: GB}, {}) == self.wide

    def test_is_the_last_one_seen_while_none_is_here(self) -> None:
        ledger = ledger_of(a=self.wide, b=self.deep)
        ledger.leave("b")
        assert ledger.largest({}, {}) == self.wide
        ledger.leave("a")
        assert ledger.largest({}, {}) == self.wide
        ledger.join(Node("c", self.deep))
        assert ledger.largest({Kind.CORES: 8}, {}) is None

    def test_is_not_known_before_any_node_has_joined(self) -> None:
        assert Ledger().largest({}, {}) is None


class TestNodesThatComeAndGo:
    def test_a_node_that_left_has_no_room(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        ledger.leave("n")
        ledger.leave("n")
        assert len(ledger) == 0
        assert place(ledger, "a", memory=GB) is None

    def test_claims_outlive_the_absence_of_their_node(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        place(ledger, "a", memory=6 * GB)
        ledger.leave("n")
        ledger.join(Node("n", Resources(memory=8 * GB)))
        assert place(ledger, "b", memory=4 * GB) is None
        ledger.release("a")
        assert place(ledger, "b", memory=8 * GB) == "n"

    def test_a_claim_released_in_the_absence_of_its_node_is_gone(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        place(ledger, "a", memory=6 * GB)
        ledger.leave("n")
        ledger.release("a")
        ledger.join(Node("n", Resources(memory=8 * GB)))
        assert place(ledger, "b", memory=8 * GB) == "n"

    def test_joining_again_states_the_capacity_anew(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        place(ledger, "a", memory=6 * GB)
        ledger.join(Node("n", Resources(memory=4 * GB)))
        assert place(ledger, "b", memory=1) is None
        ledger.join(Node("n", Resources(memory=16 * GB)))
        assert place(ledger, "b", memory=10 * GB) == "n"
        assert len(ledger) == 1


class TestAnEngineThatPicksTheNodeItself:
    def test_the_claim_moves_to_where_the_attempt_started(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB), m=Resources(memory=8 * GB))
        first = place(ledger, "a", memory=8 * GB)
        other = "m" if first == "n" else "n"
        ledger.started("a", other)
        ledger.started("a", other)
        assert place(ledger, "b", memory=8 * GB) == first

    def test_a_claim_that_has_not_started_gives_way(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB), m=Resources(memory=8 * GB))
        places = {key: place(ledger, key, memory=8 * GB) for key in "ab"}
        ledger.started("a", str(places["b"]))
        assert place(ledger, "c", memory=1) is None
        ledger.release("a")
        assert place(ledger, "c", memory=8 * GB) == places["b"]

    def test_an_overdrawn_node_gets_nothing_until_that_is_made_up_for(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        ledger.join(Node("m", Resources(memory=6 * GB)))
        assert place(ledger, "a", memory=8 * GB) == "n"
        assert place(ledger, "b", memory=6 * GB) == "m"
        ledger.started("b", "m")
        ledger.started("a", "m")
        assert place(ledger, "c", memory=8 * GB) == "n"
        ledger.release("b")
        assert place(ledger, "d", memory=1) is None
        ledger.release("a")
        assert place(ledger, "d", memory=6 * GB) == "m"

    def test_what_is_not_known_changes_nothing(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        ledger.started("never seen", "n")
        place(ledger, "a", memory=8 * GB)
        ledger.started("a", "never seen")
        assert place(ledger, "b", memory=1) is None


class TestWhoFindsNoRoom:
    def test_finds_what_has_grown_since_for_more_than_was_refused_before(self) -> None:
        ledger = ledger_of(n=Resources(cores=4, memory=8 * GB), m=Resources(cores=4, memory=9 * GB))
        place(ledger, "a", memory=7 * GB)
        place(ledger, "b", memory=7 * GB)
        assert place(ledger, "c", memory=4 * GB) is None
        assert place(ledger, "d", memory=5 * GB) is None
        assert place(ledger, "e", memory=4.5 * GB, cores=1) is None
        assert place(ledger, "f", memory=GB, cores=4) is not None
        ledger.release("b")
        assert place(ledger, "g", memory=6 * GB) is not None

    @given(
        asked=st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 8), st.integers(0, 9)), max_size=60
        )
    )
    def test_would_have_found_none_anywhere(self, asked: list[tuple[int, int, int]]) -> None:
        """Whatever was refused before, nobody is refused for whom some node has room."""
        sizes = {"n": (4, 8), "m": (2, 8), "o": (4, 3)}
        ledger = ledger_of(**{n: Resources(cores=c, memory=m * GB) for n, (c, m) in sizes.items()})
        free = {name: list(size) for name, size in sizes.items()}
        held: list[tuple[str, str, int, int]] = []
        for number, (cores, memory, release) in enumerate(asked):
            if release > 5 and held:
                key, name, freed, given_back = held.pop(0)
                ledger.release(key)
                free[name][0] += freed
                free[name][1] += given_back
            found = place(ledger, f"t{number}", cores=cores, memory=memory * GB)
            fits = [n for n, (c, m) in free.items() if cores <= c and memory <= m]
            assert (found is not None) == bool(fits)
            if found is not None:
                assert found in fits
                free[found][0] -= cores
                free[found][1] -= memory
                held.append((f"t{number}", found, cores, memory))


class TestANodeThatIsKept:
    def test_is_given_to_nobody_else(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        place(ledger, "small", memory=2 * GB)
        ledger.keep("large", demand({Kind.MEMORY: 8 * GB}))
        assert place(ledger, "other", memory=GB) is None
        ledger.release("small")
        assert place(ledger, "other", memory=GB) is None
        assert place(ledger, "large", memory=8 * GB) == "n"

    def test_is_open_to_whoever_was_refused_it_once_its_task_has_started(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        place(ledger, "small", memory=2 * GB)
        ledger.keep("large", demand({Kind.MEMORY: 7 * GB}))
        assert place(ledger, "other", memory=GB) is None
        ledger.release("small")
        assert place(ledger, "other", memory=GB) is None
        assert place(ledger, "large", memory=7 * GB) == "n"
        assert place(ledger, "other", memory=GB) == "n"

    def test_is_open_to_whoever_was_refused_it_once_its_task_is_over(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB))
        place(ledger, "small", memory=2 * GB)
        ledger.keep("large", demand({Kind.MEMORY: 7 * GB}))
        assert place(ledger, "other", memory=GB) is None
        ledger.release("large")
        assert place(ledger, "other", memory=GB) == "n"

    def test_is_the_one_that_lacks_least_of_those_large_enough(self) -> None:
        ledger = ledger_of(
            n=Resources(memory=8 * GB), m=Resources(memory=8 * GB), o=Resources(memory=7 * GB)
        )
        for key, node, memory in (("a", "n", 8), ("b", "m", 6), ("c", "o", 1)):
            ledger.claim(key, node, demand({Kind.MEMORY: memory * GB}))
        ledger.keep("large", demand({Kind.MEMORY: 8 * GB}))
        for key in "abc":
            ledger.release(key)
        assert place(ledger, "d", memory=7 * GB) == "o"
        assert place(ledger, "e", memory=8 * GB) == "n"
        assert place(ledger, "f", memory=8 * GB) is None
        assert place(ledger, "large", memory=8 * GB) == "m"

    def test_is_one_at_a_time(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB), m=Resources(memory=8 * GB))
        for key in "ab":
            place(ledger, key, memory=8 * GB)
        for key in "cd":
            ledger.keep(key, demand({Kind.MEMORY: 8 * GB}))
        for key in "ab":
            ledger.release(key)
        assert place(ledger, "e", memory=8 * GB) is not None
        assert place(ledger, "d", memory=8 * GB) is None
        assert place(ledger, "c", memory=8 * GB) is not None

    def test_is_another_one_when_its_task_has_outgrown_it_or_it_has_left(self) -> None:
        ledger = ledger_of(n=Resources(memory=8 * GB), m=Resources(memory=16 * GB))
        place(ledger, "b", memory=16 * GB)
        place(ledger, "a", memory=2 * GB)
        ledger.keep("c", demand({Kind.MEMORY: 8 * GB}))
        ledger.keep("c", demand({Kind.MEMORY: 16 * GB}))
        ledger.release("a")
        ledger.release("b")
        assert place(ledger, "d", memory=8 * GB) == "n"
        assert place(ledger, "e", memory=8 * GB) is None
        ledger.leave("m")
        ledger.join(Node("m", Resources(memory=16 * GB)))
        assert place(ledger, "e", memory=8 * GB) == "m"


def test_no_more_claims_wait_for_slots_than_may_whatever_they_ask_for() -> None:
    ledger = Ledger()
    ledger.join(Node("n1", Resources(cores=2, memory=1e12), slots=2))
    placed = [place(ledger, str(number), memory=1.0) for number in range(6)]
    assert placed == ["n1"] * 4 + [None] * 2
    ledger.release("0")
    assert place(ledger, "again", memory=1.0) == "n1"


def test_tasks_may_be_as_large_as_nodes_that_are_expected() -> None:
    ledger = Ledger()
    ledger.join(Node("small", Resources(cores=1, memory=4e9)))
    before = ledger.changes
    ledger.expect([Resources(cores=1, memory=16e9)])
    assert ledger.changes > before
    assert ledger.largest({}, {}).memory == 16e9
    assert ledger.holds({Kind.MEMORY: 12e9})
    assert ledger.find("task", demand({Kind.MEMORY: 12e9})) is None  # it is not here yet
    before = ledger.changes
    ledger.expect([Resources(cores=1, memory=16e9)])
    assert ledger.changes == before
    ledger.expect([])
    assert ledger.largest({}, {}).memory == 4e9


def test_who_asks_for_nothing_goes_where_fewest_are() -> None:
    ledger = Ledger()
    for name in "ab":
        ledger.join(Node(name, Resources(cores=1, memory=4e9)))
    for number in range(6):
        ledger.claim(number, ledger.find(number, ()), ())
    assert [len(ledger._rooms[name].claims) for name in "ab"] == [3, 3]


class TestPlaces:
    @given(
        st.lists(
            st.tuples(st.sampled_from(["claim", "release", "keep", "leave"]), st.integers(1, 9)),
            max_size=40,
        )
    )
    def test_there_is_a_place_just_where_a_node_is_found(
        self, happenings: list[tuple[str, int]]
    ) -> None:
        """Two ledgers with the same story: who refuses in one refuses in the other."""
        found, offered = Ledger(), Ledger()
        for ledger in (found, offered):
            for name, slots in (("n", 0), ("m", 0), ("s", 2)):
                ledger.join(Node(name, Resources(memory=8), slots=slots))
        for number, (what, amount) in enumerate(happenings):
            asked = demand({Kind.MEMORY: float(amount)})
            name = found.find(number, asked)
            places = {place.name for place in offered.places(number, asked)}
            assert (name is None and not places) or name in places
            for ledger in (found, offered):
                if what == "claim" and name is not None:
                    ledger.claim(number, name, asked)
                elif what == "release":
                    ledger.release(number - amount)
                elif what == "keep":
                    ledger.keep(number, asked)
                elif what == "leave" and amount == 1:
                    ledger.leave("m")

    def test_the_load_is_the_largest_share_of_any_kind(self) -> None:
        ledger = ledger_of(n=Resources(cores=4, memory=8 * GB), empty=Resources())
        place(ledger, "a", cores=1, memory=4 * GB)
        loads = {place.name: place.load for place in ledger.places("b", ())}
        assert loads == {"n": 0.5, "empty": 0.0}
