"""Which nodes are alike: Table IV of Bader et al., and what must hold for any profiles."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from parsl_sizer.placement import groups as module
from parsl_sizer.placement.groups import FEATURES, grouped, named

Range = tuple[float, float]


def machines(kind: str, count: int, cpu: Range, memory: Range) -> dict[str, dict[str, float]]:
    """Nodes with figures spread evenly over the ranges of Table IV; the disks are all alike."""
    return {
        f"{kind}{number}": {
            "cpu_single": at(cpu, number, count),
            "memory_bandwidth": at(memory, number, count),
            "io_random_write": 107 + number % 2,
            "io_random_read": 102,
            "io_write": 483,
            "io_read": 481,
        }
        for number in range(count)
    }


def at(limits: Range, number: int, count: int) -> float:
    return limits[0] + (limits[1] - limits[0]) * number / max(1, count - 1)


EQUAL = {
    **machines("n1-", 5, (367, 384), (13800, 14300)),
    **machines("n2-", 5, (458, 468), (17500, 17700)),
    **machines("c2-", 5, (523, 525), (19800, 19900)),
}
"""The cluster 5;5;5."""
UNEQUAL = {
    **machines("e2-", 5, (368, 380), (13100, 13900)),
    **machines("n1-", 4, (370, 384), (13300, 14200)),
    **machines("n2-", 4, (469, 470), (17700, 17800)),
    **machines("c2-", 2, (522, 524), (19800, 19800)),
}
"""The cluster 5;4;4;2: the paper gives one range for its two weakest kinds."""


def kinds(profiles: dict[str, dict[str, float]]) -> list[list[str]]:
    return [sorted({name[:2] for name in group}) for group in grouped(profiles)]


def test_the_paper_s_clusters_have_the_groups_of_its_table() -> None:
    assert [len(group) for group in grouped(EQUAL)] == [5, 5, 5]
    assert kinds(EQUAL) == [["n1"], ["n2"], ["c2"]]
    assert [len(group) for group in grouped(UNEQUAL)] == [9, 4, 2]
    assert kinds(UNEQUAL) == [["e2", "n1"], ["n2"], ["c2"]]


@given(st.integers(0, 1000), st.sampled_from([EQUAL, UNEQUAL]))
@settings(max_examples=30, deadline=None)
def test_groups_depend_on_neither_the_seed_nor_the_order_nor_the_draw(
    seed: int, cluster: dict[str, dict[str, float]]
) -> None:
    random = Random(seed)
    names = list(cluster)
    random.shuffle(names)
    jittered = {
        name: {f: value * random.uniform(0.995, 1.005) for f, value in cluster[name].items()}
        for name in names
    }
    assert grouped(jittered, seed=seed) == grouped(cluster)


def test_the_score_is_that_of_others() -> None:
    names = sorted(UNEQUAL)
    points = module._standardised(names, UNEQUAL, FEATURES)
    for count in (2, 3, 4, 5):
        assigned = module._k_means(points, count, Random(1))
        theirs = KMeans(count, n_init=10, random_state=1).fit(points)
        spread = sum(
            float(((points[assigned == g] - points[assigned == g].mean(axis=0)) ** 2).sum())
            for g in range(count)
        )
        assert spread <= theirs.inertia_ * (1 + 1e-9)
        assert module._silhouette(points, assigned) == pytest.approx(
            float(silhouette_score(points, assigned))
        )


def test_nodes_that_differ_by_noise_only_are_one_group() -> None:
    alike = {f"n{n}": {"cpu_single": 500 + n % 7, "io_read": 480 + n % 3} for n in range(20)}
    assert grouped(alike) == (tuple(sorted(alike)),)


def test_two_nodes_that_differ_are_two_groups() -> None:
    assert grouped({"slow": {"cpu_single": 300}, "fast": {"cpu_single": 500}}) == (
        ("slow",),
        ("fast",),
    )


def test_few_and_unknown_nodes_are_one_group() -> None:
    assert grouped({}) == ()
    assert grouped({"a": {"cpu_single": 300}}) == (("a",),)
    assert grouped({"a": {"cpu_single": 300}, "b": {}}) == (("a", "b"),)


def test_any_feature_may_be_selected() -> None:
    profiles = {
        name: {"cpu_single": 500.0, "gpus": gpus, "avx512f": flag}
        for name, gpus, flag in (("a", 0, 1), ("b", 0, 1), ("c", 4, 0), ("d", 4, 0))
    }
    assert len(grouped(profiles)) == 1
    assert grouped(profiles, ["gpus"]) == (("a", "b"), ("c", "d"))
    assert grouped(profiles, ["cpu_single", "avx512f"]) == (("c", "d"), ("a", "b"))


def test_a_feature_that_is_missing_or_no_number_is_named() -> None:
    with pytest.raises(ValueError, match="node 'b' has no 'gpus'"):
        grouped({"a": {"gpus": 1}, "b": {}}, ["gpus"])
    with pytest.raises(ValueError, match="cpu_single of node 'a' must be a finite number"):
        grouped({"a": {"cpu_single": math.nan}, "b": {"cpu_single": 1.0}})


def test_a_thousand_nodes_of_five_kinds_are_five_groups() -> None:
    random = Random(5)
    speeds = (100, 150, 220, 330, 500)
    profiles = {
        f"n{n}": {"cpu_single": speeds[n % 5] * random.uniform(0.98, 1.02)} for n in range(1000)
    }
    assert [len(group) for group in grouped(profiles)] == [200] * 5


def test_groups_are_named_from_the_weakest_on() -> None:
    assert list(named(grouped(EQUAL))) == ["1", "2", "3"]
