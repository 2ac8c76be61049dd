"""First come, first served, at a cost that does not depend on how many wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Kind, TaskInfo
from parsl_sizer.placement import Lines, Waiting, demand


def waiting(task_id: int, line: str = "align", priority: float = 0.0) -> Waiting:
    return Waiting(TaskInfo(task_id, line, priority=priority), line)


def seen(queue: Lines) -> list[int | str]:
    found = []
    while (head := queue.look(len(found))) is not None:
        found.append(head.task.task_id)
    return found


def test_who_came_first_is_looked_at_first() -> None:
    queue = Lines(depth=2)
    for number, line in enumerate("aabbab"):
        queue.add(waiting(number, line))
    assert seen(queue) == [0, 1, 2, 3]
    assert len(queue) == 6


def test_who_stands_behind_in_a_line_moves_up_to_the_place_of_its_arrival() -> None:
    queue = Lines(depth=1)
    for number, line in enumerate("aabbc"):
        queue.add(waiting(number, line))
    assert seen(queue) == [0, 2, 4]
    assert queue.take(1).task.task_id == 2
    assert seen(queue) == [0, 3, 4]
    queue.take(0)
    assert seen(queue) == [1, 3, 4]


def test_who_queues_again_keeps_its_place() -> None:
    queue = Lines(depth=3)
    for number in range(3):
        queue.add(waiting(number))
    queue.add(queue.take(1))
    assert seen(queue) == [0, 1, 2]


def test_add_says_whether_the_task_is_seen_at_once() -> None:
    queue = Lines(depth=1)
    assert queue.add(waiting(0, "a"))
    assert not queue.add(waiting(1, "a"))
    assert queue.add(waiting(2, "b"))
    queue.take(0)
    queue.take(0)
    assert queue.add(waiting(3, "a"))


def test_asking_for_amounts_sets_what_the_ledger_is_asked_for() -> None:
    task = waiting(0)
    task.ask({Kind.CORES: 1.0}, "one core each")
    assert task.demand == demand({Kind.CORES: 1.0}) != ()
    assert task.why == "one core each"


def test_however_many_priorities_there_are_the_same_few_are_seen_and_one_stands_for_all() -> None:
    queue = Lines(depth=2)
    for number in range(1000):
        queue.add(waiting(number, priority=number))
    assert seen(queue) == [999, 998]
    [(first, count)] = queue.lines()
    assert (first.task.task_id, count) == (999, 1000)
    assert queue.take(0).task.task_id == 999
    assert seen(queue) == [998, 997]


def test_a_higher_priority_is_seen_at_once_and_hides_what_stood_first() -> None:
    queue = Lines(depth=1)
    queue.add(waiting(0))
    assert queue.add(waiting(1, priority=1.0))
    assert not queue.add(waiting(2, priority=0.5))
    assert [int(queue.take(0).task.task_id) for _ in range(3)] == [1, 2, 0]


def test_who_is_removed_is_neither_seen_nor_counted_nor_kept() -> None:
    queue = Lines(depth=1)
    tasks = [waiting(number) for number in range(1000)]
    for task in tasks:
        queue.add(task)
    for task in tasks[:400] + tasks[500:]:
        queue.remove(task)
    assert seen(queue) == [400]
    assert len(queue) == 100
    assert [(head.task.task_id, count) for head, count in queue.lines()] == [(400, 100)]
    assert len(queue._lines["align"].behind) < 200
    for task in tasks[400:500]:
        queue.remove(task)
    assert (seen(queue), len(queue), list(queue.lines())) == ([], 0, [])


def test_a_queue_that_shows_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="depth must be 1 or more, not 0"):
        Lines(depth=0)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from("abc"), st.integers(0, 3)),  # a task comes
            st.integers(0, 5),  # the one that is seen here goes
            st.floats(0, 1, exclude_max=True),  # one of all goes
        ),
        max_size=60,
    ),
    depth=st.integers(1, 3),
)
def test_nobody_is_lost_seen_twice_or_overtaken_in_line(
    steps: list[tuple[str, int] | int | float], depth: int
) -> None:
    queue = Lines(depth=depth)
    tasks: dict[int, Waiting] = {}
    model: list[tuple[int, int, str]] = []  # priority, the highest first; arrival; line
    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            line, priority = step
            tasks[number] = waiting(number, line, priority)
            queue.add(tasks[number])
            model = sorted([*model, (-priority, number, line)])
        elif isinstance(step, float):
            if model:
                _, gone, _ = model.pop(int(step * len(model)))
                queue.remove(tasks[gone])
        elif (head := queue.look(step)) is not None:
            assert queue.take(step) is head
            model = [entry for entry in model if entry[1] != head.task.task_id]
        lines = {line: [n for _, n, other in model if other == line] for _, _, line in model}
        shown = {number for line in lines.values() for number in line[:depth]}
        assert seen(queue) == [number for _, number, _ in model if number in shown]
        assert {head.task.category: count for head, count in queue.lines()} == {
            line: len(numbers) for line, numbers in lines.items()
        }
        assert len(queue) == len(model)
    while queue.look(0) is not None:
        taken = queue.take(0).task.task_id
        model = [entry for entry in model if entry[1] != taken]
    assert model == []
