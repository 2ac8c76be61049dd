"""Who is looked at first, by each order."""

from __future__ import annotations

import pytest

from parsl_sizer.model import Kind, TaskInfo
from parsl_sizer.placement import ORDERS, Lines, UnknownOrder, Waiting, order


def waiting(
    task_id: str, category: str = "align", *, failures: int = 0, memory: float = 0.0, **task: float
) -> Waiting:
    made = Waiting(TaskInfo(task_id, category, **task), (category, failures), failures=failures)  # type: ignore[arg-type]
    if memory:
        made.ask({Kind.MEMORY: memory}, "")
    return made


def seen(queue: Lines) -> str:
    queue.arrange()
    found = []
    while (head := queue.look(len(found))) is not None:
        found.append(str(head.task.task_id))
    return "".join(found)


def taken(queue: Lines) -> str:
    """All tasks, in the order in which they would start if they did so one by one."""
    found = []
    queue.arrange()
    while queue.look(0) is not None:
        found.append(str(queue.take(0).task.task_id))
        queue.arrange()
    return "".join(found)


def filled(name: str, *tasks: Waiting) -> Lines:
    queue = Lines(order(name))
    for task in tasks:
        queue.add(task)
    return queue


GRAPH = (("b", 1, 3), ("a", 0, 1), ("d", 3, 0), ("c", 2, 2))


@pytest.mark.parametrize(
    ("name", "expected"), [("bfs", "abcd"), ("dfs", "dcba"), ("topology-rank", "bcad")]
)
@pytest.mark.parametrize("how", ["", "-persevere", "-postpone"])
def test_by_the_place_in_the_workflow(name: str, how: str, expected: str) -> None:
    tasks = (waiting(task, depth=depth, rank=rank) for task, depth, rank in GRAPH)
    assert taken(filled(name + how, *tasks)) == expected


@pytest.mark.parametrize("name", ["bfs", "dfs", "topology-rank", "least-finished-first"])
def test_failed_attempts_come_first_or_last_among_equals(name: str) -> None:
    tasks = [waiting("a"), waiting("b", failures=2), waiting("c", failures=1), waiting("d")]
    assert taken(filled(f"{name}-persevere", *tasks)) == "bcad"
    tasks = [waiting("a", failures=1), waiting("b", failures=2), waiting("c"), waiting("d")]
    assert taken(filled(f"{name}-postpone", *tasks)) == "cdab"
    assert order(name) is order(f"{name}-persevere")


def test_failures_are_the_second_criterion_only() -> None:
    tasks = [waiting("a", depth=1, failures=3), waiting("b", depth=0)]
    assert taken(filled("bfs-persevere", *tasks)) == "ba"


def test_the_category_of_which_least_has_finished_comes_first() -> None:
    queue = filled("least-finished-first", waiting("a", "one"), waiting("b", "two"))
    assert seen(queue) == "ab"
    queue.finished("one", 5.0)
    assert seen(queue) == "ba"
    queue.finished("two", 5.0)
    queue.finished("two", 5.0)
    assert seen(queue) == "ab"
    queue.add(waiting("c", "three"))
    assert seen(queue) == "cab"


def test_after_a_failure_fifo_takes_a_task_for_a_new_arrival_and_first_come_does_not() -> None:
    for name, expected in (("fifo", "bca"), ("first-come", "abc")):
        queue = filled(name, waiting("a", "one"), waiting("b", "two"), waiting("c", "three"))
        failed = queue.take(0)
        again = waiting("a", "one", failures=1)
        again.arrival = failed.arrival
        queue.add(again)
        assert taken(queue) == expected


def test_what_asks_for_most_comes_first_and_what_has_not_asked_before_it() -> None:
    tasks = [
        waiting("a", "one", memory=1e9),
        waiting("b", "two", memory=4e9),
        waiting("c", "three", memory=2e9),
    ]
    queue = filled("largest-first", *tasks)
    assert seen(queue) == "bca"
    tasks[0].ask({Kind.MEMORY: 8e9}, "more was learned")
    assert seen(queue) == "abc"
    queue.add(waiting("d", "four"))
    assert seen(queue) == "dabc"


def test_the_category_that_takes_least_time_comes_first() -> None:
    queue = filled("shortest-first", waiting("a", "one"), waiting("b", "two"))
    queue.finished("one", 9.0)
    assert seen(queue) == "ba"  # of what is not known one has to be tried
    queue.finished("two", 100.0)
    assert seen(queue) == "ab"


@pytest.mark.parametrize("name", ORDERS)
def test_a_priority_of_the_users_comes_before_everything(name: str) -> None:
    tasks = [
        waiting("a", depth=2, rank=2, failures=1, memory=4e9),
        waiting("b", depth=2, rank=2, failures=1, memory=4e9, priority=1.0),
    ]
    assert taken(filled(name, *tasks)) == "ba"


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_says_what_it_is_about(name: str) -> None:
    assert order(name).about


def test_an_order_that_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownOrder, match="'lifo' is no order; there is 'first-come', 'fifo'"):
        order("lifo")
