"""What users can say about an app, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sizer_tasks as tasks
from parsl.data_provider.files import File
from sizer_runs import htex, running, sized, wait_until

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.executor.hints import BadHint
from parsl_sizer.model import Ending

LIMIT_S = 100
MEMORY = Kind.MEMORY
DONE, EXHAUSTED = Ending.DONE, Ending.EXHAUSTED


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized(htex())
    with running(made, tmp_path_factory.mktemp("hints")):
        yield made


def attempts(future: object) -> list:
    future.exception(LIMIT_S)
    return list(sizing_of(future).attempts)


def test_a_category_is_what_the_call_says(executor: SizedExecutor) -> None:
    future = tasks.hold(1, parsl_resource_specification={"category": "tiny"})
    assert future.result(LIMIT_S) == 1
    assert sizing_of(future).category == "tiny"


@pytest.mark.parametrize("memory", [400, "400MB", "0.4 GB"])
def test_fixed_gives_what_is_stated_in_mb_or_in_words(
    executor: SizedExecutor, memory: object
) -> None:
    future = tasks.hold(1, parsl_resource_specification={"memory": memory, "fixed": True})
    [attempt] = attempts(future)
    assert attempt.allocation == {MEMORY: 400e6}
    assert attempt.why == "fixed by the user"


def test_fixed_is_not_raised_when_it_was_too_little(executor: SizedExecutor) -> None:
    future = tasks.hold(300, 60, parsl_resource_specification={"memory": 100, "fixed": True})
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    assert [attempt.ending for attempt in attempts(future)] == [EXHAUSTED]


def test_never_kill_lets_a_task_overrun(executor: SizedExecutor) -> None:
    spec = {"memory": 100, "fixed": True, "never_kill": True, "category": "spared"}
    future = tasks.hold(300, 1.0, parsl_resource_specification=spec)
    assert future.result(LIMIT_S) == 300
    [attempt] = attempts(future)
    assert attempt.ending is DONE
    assert attempt.peak[MEMORY] > attempt.allocation[MEMORY]


def test_no_retry_runs_a_task_once_whatever_happens(
    executor: SizedExecutor, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    with pytest.raises(ResourcesExhausted):
        tasks.once_only(str(notes), 2500).result(LIMIT_S)
    assert notes.read_text() == "x"


def test_what_a_task_leaves_in_memory_is_not_charged_to_another_category(
    executor: SizedExecutor,
) -> None:
    spec = {"memory": 110, "fixed": True}
    for number in range(6):
        spec["category"] = f"forgetful {number}"
        future = tasks.cache(100, parsl_resource_specification=spec)
        future.result(LIMIT_S)
        [attempt] = attempts(future)
        assert attempt.peak[MEMORY] == pytest.approx(100e6, rel=0.1)


def test_what_a_task_leaves_each_time_is_not_charged_again_and_again(
    executor: SizedExecutor,
) -> None:
    spec = {"category": "leaking", "memory": 400, "fixed": True}
    futures = [tasks.cache(100, parsl_resource_specification=spec) for _ in range(6)]
    for future in futures:
        future.result(LIMIT_S)
        [attempt] = attempts(future)
        assert attempt.peak[MEMORY] < 220e6


def test_with_keep_caches_it_stays_and_is_charged(executor: SizedExecutor) -> None:
    spec = {"category": "caching", "memory": 1500, "fixed": True, "keep_caches": True}
    found: dict[int, list[int]] = {}
    for _ in range(6):  # one after the other: two workers, two caches
        future = tasks.cache(50, parsl_resource_specification=spec)
        count, process = future.result(LIMIT_S)
        counts = found.setdefault(process, [])
        counts.append(count)  # others may have left some there before
        assert attempts(future)[0].peak[MEMORY] >= len(counts) * 50e6 * 0.95
    assert len(found) <= 2
    for counts in found.values():
        assert counts == list(range(counts[0], counts[0] + len(counts)))


def test_temporary_files_stay_for_the_next_task_unless_the_hint_says_otherwise(
    executor: SizedExecutor,
) -> None:
    path = tasks.write_temporary(b"seven").result(LIMIT_S)
    assert tasks.read_file(path).result(LIMIT_S) == b"seven"
    spec = {"clean_files": True}
    path = tasks.write_temporary(b"eight", parsl_resource_specification=spec).result(LIMIT_S)
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("isolation", "hint"), [("runner", "keep_caches=True"), ("fork", "isolation='inline'")]
)
def test_processes_that_are_ended_are_told_of_once_with_the_hint_that_keeps_them(
    executor: SizedExecutor, caplog: pytest.LogCaptureFixture, isolation: str, hint: str
) -> None:
    spec = {"category": "leaving", "isolation": isolation}
    for _ in range(2):
        future = tasks.escape(31.5, 0, "setsid", parsl_resource_specification=spec)
        assert future.result(LIMIT_S) == "left one behind"
    [told] = [text for text in caplog.messages if "leave processes running" in text]
    assert "'leaving'" in told
    assert f"the hint {hint} keeps them" in told


@pytest.mark.parametrize("isolation", ["runner", "fork", "inline"])
def test_isolation_is_what_the_call_says(executor: SizedExecutor, isolation: str) -> None:
    category = f"isolated-{isolation}"
    noted = []
    note, executor._driver._observe = executor._driver._observe, noted.append
    try:
        spec = {"isolation": isolation, "category": category}
        assert tasks.hold(60, parsl_resource_specification=spec).result(LIMIT_S) == 60
    finally:
        executor._driver._observe = note
    [settle] = noted
    [outcome] = settle.outcomes
    assert outcome.isolation == isolation
    assert outcome.usage.peak[MEMORY] == pytest.approx(60e6, rel=0.25)


@pytest.mark.parametrize("isolation", ["runner", "fork", "inline"])
def test_an_exception_is_the_same_however_a_task_is_isolated(
    executor: SizedExecutor, isolation: str
) -> None:
    future = tasks.fail_as_told(parsl_resource_specification={"isolation": isolation})
    with pytest.raises(ValueError, match="as told"):
        future.result(LIMIT_S)
    assert [attempt.ending for attempt in attempts(future)] == [Ending.RAISED]


@pytest.mark.parametrize("isolation", ["runner", "fork", "inline"])
def test_what_a_task_prints_is_where_workers_print_however_it_is_isolated(
    executor: SizedExecutor, isolation: str
) -> None:
    text = f"said in a {isolation}\n"
    tasks.say(text[:-1], parsl_resource_specification={"isolation": isolation}).result(LIMIT_S)
    folder = Path(executor.run_dir) / "submit_scripts"
    [out], [err] = folder.glob("*.out"), folder.glob("*.err")
    wait_until(lambda: text in out.read_text() and text in err.read_text(), "the words")
    assert out.read_text().count(text) == err.read_text().count(text) == 1


def test_cores_tell_libraries_how_many_threads_to_start(
    executor: SizedExecutor, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    future = tasks.echo("x", stdout=str(out), parsl_resource_specification={"cores": 2})
    assert future.result(LIMIT_S) == 0
    assert out.read_text().split() == ["x", "2"]


def test_a_decorator_says_the_same_for_all_calls(executor: SizedExecutor) -> None:
    future = tasks.decorated(10)
    [attempt] = attempts(future)
    assert sizing_of(future).category == "decorated by name"
    assert attempt.allocation == {MEMORY: 300e6}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"memory": "lots"}, "memory='lots' is not an amount"),
        ({"memory": -1}, "memory=-1 is not an amount"),
        ({"memory": float("nan")}, "memory=nan is not an amount"),
        ({"fixed": True}, "no cores, memory or disk is stated"),
        ({"never_kill": "yes"}, "never_kill='yes' must be True or False"),
        ({"category": 3}, "category=3 must be a text"),
        ({"isolation": "jail"}, "isolation='jail' must be one of"),
        ({"features": [1]}, r"features=\[1\] must be a mapping"),
    ],
)
def test_a_wrong_hint_fails_its_task_with_a_sentence(
    executor: SizedExecutor, spec: dict[str, object], told: str
) -> None:
    with pytest.raises(BadHint, match=told):
        tasks.hold(1, parsl_resource_specification=spec).result(LIMIT_S)


def test_a_word_that_neither_we_nor_the_engine_know_is_refused(executor: SizedExecutor) -> None:
    with pytest.raises(Exception, match="memroy"):
        tasks.hold(1, parsl_resource_specification={"memroy": 100}).result(LIMIT_S)


@pytest.mark.parametrize(
    "spec",
    [
        {"cores": 4, "memory": 2000, "disk": 500},
        {"memory": 300, "cores": 1, "disk": 100, "running_time_min": 3, "priority": 2},
        {"memory": "0.3 GB", "cores": np.int64(1), "gpus": 1, "priority": np.float32(2)},
        {"num_nodes": 1, "ranks_per_node": 2, "walltime": "00:10:00"},
        {"memory": None, "cores": None, "category": None, "priority": None},
        {"memory": 10**9, "cores": 640},
        None,
    ],
)
def test_a_specification_that_was_written_for_another_executor_does_no_harm(
    executor: SizedExecutor, spec: dict[str, object] | None
) -> None:
    future = tasks.hold(1, parsl_resource_specification=spec)
    assert future.result(LIMIT_S) == 1
    assert [attempt.ending for attempt in attempts(future)] == [DONE]


def test_what_is_stated_is_what_the_first_guess_comes_from(executor: SizedExecutor) -> None:
    for memory, said in (160, "160 MB"), (1900, "1.9 GB"):
        spec = {"category": f"stated {memory}", "memory": memory, "running_time_min": 3}
        [attempt] = attempts(tasks.hold(1, parsl_resource_specification=spec))
        assert f"a first guess from the {said} requested" in attempt.why


def test_a_priority_that_is_no_number_fails_its_task_and_no_other(executor: SizedExecutor) -> None:
    with pytest.raises(BadHint, match="priority='high' must be a number"):
        tasks.hold(1, parsl_resource_specification={"priority": "high"}).result(LIMIT_S)
    assert tasks.hold(1).result(LIMIT_S) == 1


def test_priority_is_passed_on(executor: SizedExecutor) -> None:
    assert tasks.hold(1, parsl_resource_specification={"priority": 3}).result(LIMIT_S) == 1


def test_features_and_sizes_of_inputs_reach_the_strategy(tmp_path_factory, executor) -> None:
    """Tasks that hold twice what they read: from some on, the size of the input tells."""
    folder = tmp_path_factory.mktemp("inputs")
    small, large = File(str(folder / "small")), File(str(folder / "large"))
    Path(small.filepath).write_bytes(b"x" * 1_000)
    Path(large.filepath).write_bytes(b"x" * 1_000_000)
    learned = []
    learn = executor._sizer._categories.learn
    executor._sizer._categories.learn = lambda outcome: (learned.append(outcome), learn(outcome))
    try:
        tasks.size_of_inputs(inputs=[small]).result(LIMIT_S)
        tasks.size_of_inputs(inputs=[small, large]).result(LIMIT_S)
        spec = {"features": {"atoms": 42}, "category": "featured"}
        tasks.hold(1, parsl_resource_specification=spec).result(LIMIT_S)
    finally:
        executor._sizer._categories.learn = learn
    features = [dict(outcome.attempt.task.features) for outcome in learned]
    assert features == [{"input_size": 1e3}, {"input_size": 1.001e6}, {"atoms": 42.0}]
