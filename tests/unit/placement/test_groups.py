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
from parsl_sizer.simulator.machines import paper_cluster

EQUAL, UNEQUAL = (
    {one.node.name: dict(one.profile) for one in paper_cluster(name)}
    for name in ("5;5;5", "5;4;4;2")
)


def kinds(profiles: dict[str, dict[str, float]]) -> list[list[str]]:
    return [sorted({name.partition("-")[0] for name in group}) for group in grouped(profiles)]


def test_the_paper_s_clusters_have_the_groups_of_its_table() -> None:
    assert [len(group) for group in grouped(EQUAL)] == [5, 5, 5]
    assert kinds(EQUAL) == [["N1"], ["N2"], ["C2"]]
    assert [len(group) for group in grouped(UNEQUAL)] == [9, 4, 2]
    assert kinds(UNEQUAL) == [["E2", "N1"], ["N2"], ["C2"]]


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
