"""What would other allocations have cost?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage
from parsl_sizer.report.curve import HEIGHT, WIDTH, chart, draw
from parsl_sizer.report.whatif import Finished, TooFew, advise, curve, finished

GB = 1e9


def entry(number, peak, *, given=None, ending=Ending.DONE, attempt=1, wall_s=60.0, **others):
    task = TaskInfo(number, "align", requested=others.pop("requested", {}))
    allocation = {} if given is None else {Kind.MEMORY: given}
    kinds = frozenset({Kind.MEMORY} if ending is Ending.EXHAUSTED else ())
    usage = Usage({} if peak is None else {Kind.MEMORY: peak}, wall_s)
    outcome = Outcome(Attempt(task, attempt, allocation), ending, 0.0, usage, kinds, **others)
    return Entry(Run("run"), outcome)


def tasks(count=200, seed=1):
    random = Random(seed)
    return [
        Finished(random.uniform(1, 2) * GB if random.random() < 0.9 else 8 * GB, 60.0)
        for _ in range(count)
    ]


def brute_force(pairs, rungs, theta):
    reserved = retries = 0.0
    for peak, wall_s in pairs:
        for rung in rungs:
            if rung >= peak:
                reserved += rung * wall_s
                break
            reserved += theta * rung * wall_s
            retries += 1
    return reserved, retries / len(pairs)


@pytest.mark.parametrize("theta", [1.0, 0.4])
def test_the_curve_is_what_playing_the_ladder_costs(theta):
    pairs = [(GB, 10.0)] * 7 + [(2 * GB, 30.0)] * 2 + [(5 * GB, 20.0)]
    found = curve(pairs, theta=theta)
    assert [point[0] for point in found] == [GB, 2 * GB, 5 * GB]
    ways = {GB: [[1, 2, 5], [1, 5]], 2 * GB: [[2, 5]], 5 * GB: [[5]]}
    for first, reserved, retries in found:
        played = [brute_force(pairs, [GB * step for step in way], theta) for way in ways[first]]
        assert any((reserved, retries) == pytest.approx(costs) for costs in played)


def test_the_curve_of_nothing_is_empty():
    assert curve([]) == []


def test_many_peaks_are_drawn_with_few_points():
    random = Random(0)
    found = curve([(random.lognormvariate(20, 2), 1.0) for _ in range(5000)])
    assert 50 < len(found) <= 256
    assert found == sorted(found)


def test_tasks_are_found_with_what_all_their_attempts_were_given():
    found = finished(
        [
            entry(1, 3 * GB, given=2 * GB, ending=Ending.EXHAUSTED, wall_s=10.0),
            entry(1, 3 * GB, given=4 * GB, attempt=2),
            entry(2, GB, requested={Kind.MEMORY: 6 * GB}, layers=(SAMPLED,)),
            entry(3, None),
            entry(4, GB, wall_s=0.0),
            entry(5, GB, ending=Ending.RAISED),
            entry(6, GB, ending=Ending.LOST),
        ]
    )
    assert found == {
        "align": [
            Finished(3 * GB, 60.0, 260 * GB, None, (2 * GB, 10.0)),
            Finished(GB, 60.0, None, 6 * GB, None, True),
        ]
    }


def test_the_ladder_begins_where_most_tasks_are_and_ends_above_all():
    advice = advise("align", tasks())
    assert 1.8 * GB < advice.ladder[0] <= 2 * GB
    assert advice.ladder[-1] >= advice.largest == 8 * GB
    assert advice.enough[0] == pytest.approx(0.9, abs=0.05)
    assert advice.enough[-1] == 1.0
    assert advice.retries_per_task == pytest.approx(1 - advice.enough[0])
    assert (advice.tasks, advice.compared, advice.sampled) == (200, 200, 0)


def test_the_saving_is_against_what_is_known_best():
    given = [task._replace(allocated=10 * GB * 60.0, requested=99 * GB) for task in tasks()]
    advice = advise("align", given)
    assert advice.baseline == "allocated"
    assert advice.baseline_byte_s == pytest.approx(200 * 600 * GB)
    assert advice.saving == 1 - advice.reserved_byte_s / advice.baseline_byte_s
    requested = [task._replace(requested=16 * GB) for task in tasks()]
    advice = advise("align", requested)
    assert advice.baseline == "requested"
    assert advice.baseline_byte_s == pytest.approx(200 * 960 * GB)
    advice = advise("align", tasks())
    assert advice.baseline == "largest peak"
    assert advice.baseline_byte_s == pytest.approx(200 * 480 * GB)


def test_only_tasks_of_which_it_is_known_are_compared():
    some = [
        task._replace(allocated=600 * GB if number % 3 else None)
        for number, task in enumerate(tasks())
    ]
    advice = advise("align", some)
    assert (advice.baseline, advice.compared, advice.tasks) == ("allocated", 133, 200)


def test_the_interval_is_repeatable_and_has_the_saving_in_it():
    first, again, other = (advise("align", tasks(), seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)
    assert first.low <= first.saving <= first.high
    assert 0 < first.high - first.low < 0.5


def test_more_tasks_make_it_surer():
    few, many = advise("align", tasks(30)), advise("align", tasks(900))
    assert many.high - many.low < few.high - few.low


def test_what_was_exact_cannot_be_bettered():
    exact = [task._replace(allocated=task.peak * task.wall_s) for task in tasks()]
    assert advise("align", exact).high < 0


def test_a_node_bounds_the_ladder_and_leaves_out_what_is_larger():
    advice = advise("align", tasks(), node=4 * GB)
    assert advice.too_large + advice.tasks == 200
    assert advice.too_large > 0
    assert max(advice.ladder) <= 4 * GB


def test_tasks_that_ran_out_of_as_much_as_any_used_are_too_large():
    def given(*amounts, ending=Ending.EXHAUSTED, first=100):
        return [
            entry(number, amount, given=amount, ending=ending)
            for number, amount in enumerate(amounts, first)
        ]

    done = given(*[GB] * 20, *[2 * GB] * 20, ending=Ending.DONE, first=0)
    in_vain, given_up = given(4 * GB, 4 * GB), given(GB / 2, first=200)
    retried = given(GB / 2, 4 * GB, first=20)
    advice = advise("align", finished([*retried, *done, *in_vain, *given_up])["align"])
    assert (advice.tasks, advice.too_large, advice.largest) == (40, 2, 2 * GB)
    assert advice.enough[-1] == pytest.approx(40 / 42)
    assert advise("align", finished([*retried, *done, *given_up])["align"]).enough[-1] == 1.0


def test_failures_that_come_early_make_the_start_lower():
    late = [task._replace(failed=(GB / 2, 60.0)) for task in tasks()]
    early = [task._replace(failed=(GB / 2, 0.6)) for task in tasks()]
    assert advise("align", early).reserved_byte_s < advise("align", late).reserved_byte_s


def test_few_peaks_are_no_ground_for_advice():
    with pytest.raises(TooFew, match="'align' has 19 measured peaks of memory, and 20 is the fewe"):
        advise("align", tasks(19))
    with pytest.raises(TooFew, match="has 1 measured peak of"):
        advise("align", tasks(1))
    with pytest.raises(TooFew, match="has 0 measured peaks of memory that fit the node,"):
        advise("align", tasks(100), node=GB / 2)


def test_tasks_that_are_all_alike_have_one_step():
    advice = advise("align", [Finished(GB, 1.0)] * 50)
    assert advice.ladder[0] == pytest.approx(GB, rel=0.05)
    assert len(advice.curve) == 1
    assert math.isfinite(advice.low)


@pytest.mark.parametrize("is_ascii", [True, False])
def test_the_curve_in_letters_fits_and_marks_the_start(is_ascii):
    advice = advise("align", tasks())
    lines = chart(advice.curve, advice.ladder[0], is_ascii=is_ascii)
    assert len(lines) == HEIGHT + 2
    assert lines[-2].strip() in "^▲"
    assert all(len(line.split("  ")[0]) <= WIDTH for line in lines)
    body = "".join(line[:WIDTH] for line in lines[:HEIGHT])
    assert body.isascii() is is_ascii
    alike = chart([(GB, 60 * GB, 0.0)], GB, is_ascii=is_ascii)
    assert len(alike) == HEIGHT + 2


def test_the_curve_as_a_picture(tmp_path: Path):
    pytest.importorskip("matplotlib")
    advice = advise("align", tasks())
    path = tmp_path / "curve.png"
    draw({f"c $ {n}": (advice.curve, replace(advice).ladder[0]) for n in range(4)}, path)
    assert path.read_bytes().startswith(b"\x89PNG")
