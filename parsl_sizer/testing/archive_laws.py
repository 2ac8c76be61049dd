"""The laws of archives: each is a function of a new, empty archive.

A law raises AssertionError with what it saw. `check_archive` runs them all, each on an
archive of its own that `make` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from parsl_sizer.archive import Entry, Run, Wait
from parsl_sizer.archive.base import SAMPLED, Archive, Query
from parsl_sizer.archive.memory import matches
from parsl_sizer.model import Attempt, Ending, Kind, OptOut, Outcome, TaskInfo, Usage
from parsl_sizer.scaling.geometry import Geometry

from .profile_laws import PROFILE_LAWS, PROFILES

ODD_TEXTS = ("", "ä ☃ 𝄞", "it's; DROP TABLE runs --", "100%_!?", "two\nlines\ttab", "x" * 5000)


def entries(count: int = 60, seed: int = 0) -> list[Entry]:
    """Repeatable entries of three runs, with something in every field now and then."""
    random = Random(seed)
    runs = [
        Run(
            f"run-{number}",
            started_at=1000.0 * number,
            user=("ann", "bob", None)[number],
            workflow=f"flow{number % 2}.py",
            checksum="c0ffee" if number else None,
            host="login",
            source=("live", "nextflow", "live")[number],
            versions={"python": "3.11"},
            labels={"campaign": number, "nested": {"a": [1, None]}},
        )
        for number in range(3)
    ]
    made = []
    for number in range(count):
        run = runs[number % 3]
        task = TaskInfo(
            number if number % 5 else f"t-{number}",
            ("align", "sort", "ü/☃")[number % 3] if number % 7 else "sort",
            submitted_at=100.0 + number,
            features={"input_size": random.uniform(1, 1e9)} if number % 2 else {},
            requested={Kind.MEMORY: 2e9} if number % 4 == 0 else {},
            code_hash="abc" if number % 3 else None,
            labels={"sample": number % 4, "why": "it's"} if number % 3 == 0 else {},
            opt_outs=frozenset({OptOut.NO_RETRY}) if number % 11 == 0 else frozenset(),
            priority=float(number % 2),
            command=f"bwa mem -t {number} ref.fa" if number % 2 else None,
            inputs=(f"/data/s{number % 5}_1.fq", "/data/ref%_.fa") if number % 3 == 1 else (),
        )
        ending = (Ending.DONE, Ending.DONE, Ending.EXHAUSTED, Ending.LOST)[number % 4]
        attempt = Attempt(
            task,
            1 + number % 2,
            {Kind.CORES: 1.0, Kind.MEMORY: random.uniform(1e8, 1e10)} if number % 6 else {},
            f"node-{number % 2}" if number % 2 else None,
            ODD_TEXTS[number % len(ODD_TEXTS)],
            launched_at=200.0 + number,
            enforced=number % 5 != 0,
            grown_from=random.uniform(1e7, 1e8) if number % 7 == 1 else None,
        )
        usage = Usage(
            {Kind.MEMORY: random.uniform(1e8, 1e10)} if number % 9 else {},
            wall_s=random.uniform(0, 100),
            cpu_s=random.uniform(0, 100) if number % 2 else None,
            series=((0.5, 1024.0), (2.0, 4096.0)) if number % 8 == 0 else (),
        )
        made.append(
            Entry(
                run,
                Outcome(
                    attempt,
                    ending,
                    ended_at=float(random.randrange(300, 340)),
                    usage=usage,
                    exhausted=frozenset({Kind.MEMORY} if ending is Ending.EXHAUSTED else ()),
                    overran=number % 10 == 0,
                    host=f"node-{number % 2}",
                    isolation="runner" if number % 2 else None,
                    layers=(SAMPLED,) if number % 4 == 1 else (),
                    node_lost=ending is Ending.LOST,
                ),
            )
        )
    return made


QUERIES = (
    Query(),
    Query(last=7),
    Query(last=0),
    Query(run_id="run-1"),
    Query(run_id="none"),
    Query(category="sort", last=5),
    Query(category="ü/☃"),
    Query(task_id=7),
    Query(task_id="t-5"),
    Query(user="ann"),
    Query(workflow="flow0.py"),
    Query(command="BWA mem -t 1"),
    Query(command="%"),
    Query(input="s3_1"),
    Query(input="ref%_"),
    Query(host="node-1"),
    Query(source="nextflow"),
    Query(endings=(Ending.DONE, Ending.EXHAUSTED)),
    Query(labels={"sample": "2"}),
    Query(labels={"why": "it's", "campaign": "0"}),
    Query(labels={"campaign": "2"}),
    Query(since=310.0, until=320.0),
    Query(memory=(1e9, 5e9)),
    Query(wall_s=(None, 50.0)),
    Query(category="sort", user="bob", endings=(Ending.LOST,), labels={"campaign": "1"}),
)


def check_what_is_recorded_comes_back(archive: Archive) -> None:
    """Every field of every entry, and nothing else."""
    recorded = entries()
    new = archive.record(recorded)
    assert new == len(recorded), f"{new} of {len(recorded)} are said to be new"
    found = {_key(entry): entry for entry in archive.entries()}
    for entry in recorded:
        assert found.pop(_key(entry), None) == entry, f"{entry} came back as something else"
    assert not found, f"never recorded: {found}"


def check_nothing_is_counted_twice(archive: Archive) -> None:
    """Who records the same again changes nothing, within a batch or across."""
    recorded = entries(20)
    archive.record(recorded[:12])
    assert archive.record(recorded) == 8
    assert archive.record([*recorded, *recorded]) == 0
    assert len(list(archive.entries())) == 20


def check_queries_select(archive: Archive) -> None:
    """Each query gives those that match, the newest first, and no more than asked for."""
    recorded = entries()
    for start in range(0, len(recorded), 7):
        archive.record(recorded[start : start + 7])
    for query in QUERIES:
        wanted = [entry for entry in reversed(recorded) if matches(entry, query)]
        wanted.sort(key=lambda entry: entry.outcome.ended_at, reverse=True)
        found = list(archive.entries(query))
        assert found == wanted[: query.last], f"{query} gave {len(found)} of {len(wanted)}"


def check_what_ended_together_keeps_its_order(archive: Archive) -> None:
    """Of what has no times, as in traces, the last one recorded is the newest."""
    run = Run("trace")
    made = [
        Outcome(Attempt(TaskInfo(n, "c", code_hash="x" if n % 3 else None), 1, {}), Ending.DONE)
        for n in range(50)
    ]
    archive.record([Entry(run, outcome) for outcome in made])
    found = [entry.outcome.attempt.task.task_id for entry in archive.entries()]
    assert found == list(range(49, -1, -1)), f"the order is {found}"


def check_runs_are_listed(archive: Archive) -> None:
    """The runs of what matches, the newest first, with how much of them does."""
    recorded = entries()
    archive.record(recorded)
    for query in QUERIES:
        if query.last is None:
            lines = archive.runs(query)
            entries_of = [entry for entry in recorded if matches(entry, query)]
            counts = {line.run.run_id: line.attempts for line in lines}
            wanted: dict[str, int] = {}
            for entry in entries_of:
                wanted[entry.run.run_id] = wanted.get(entry.run.run_id, 0) + 1
            assert counts == wanted, f"{query} gave {counts}, not {wanted}"
            times = [line.run.started_at for line in lines]
            assert times == sorted(times, reverse=True), f"{query}: runs are not in order"


def check_what_is_pruned_is_gone(archive: Archive) -> None:
    """A run that is removed is gone with all that it had, and nothing else is."""
    recorded = entries()
    archive.record(recorded)
    assert archive.prune(["run-1", "none"]) == 20
    assert {entry.run.run_id for entry in archive.entries()} == {"run-0", "run-2"}
    assert not list(archive.entries(Query(labels={"campaign": "1"})))
    assert archive.record(recorded) == 20


def check_a_run_that_is_pruned_is_not_taken_for_another(archive: Archive) -> None:
    """Who goes on to record a run that was removed does not write into a newer one."""
    one, other = entries(3)[0], entries(3)[1]
    archive.record([one])
    archive.prune([one.run.run_id])
    archive.record([other])
    archive.record([one])
    found = {entry.run.run_id: entry for entry in archive.entries()}
    assert found == {one.run.run_id: one, other.run.run_id: other}, f"there is {found}"


def check_many_are_read_page_by_page(archive: Archive) -> None:
    """More than a page comes back whole, in order, once each."""
    run = Run("long")
    outcomes = [
        Outcome(Attempt(TaskInfo(number, "c"), 1, {}), Ending.DONE, ended_at=float(number // 3))
        for number in range(4500)
    ]
    archive.record([Entry(run, outcome) for outcome in outcomes])
    found = [entry.outcome.attempt.task.task_id for entry in archive.entries()]
    assert found == list(range(4499, -1, -1))
    assert len(list(archive.entries(Query(last=3000)))) == 3000


def check_pruning_leaves_profiles_alone(archive: Archive) -> None:
    """What a node can do is not a part of any run."""
    archive.record(entries(20))
    archive.keep_profiles(PROFILES)
    archive.prune(["run-0", "run-1", "run-2"])
    assert len(archive.profiles()) == len(PROFILES)


def check_waits_are_kept_in_order_and_outlive_runs(archive: Archive) -> None:
    """Waits come back by place and number, the oldest first, whatever is pruned."""
    kept = [
        Wait(
            f"run-{number % 3}",
            "slurm ☃" if number % 2 else "pbs",
            Geometry(1 + number % 4, 28, 64e9 if number % 3 else None, "it's"),
            asked_at=100.0 + number,
            wait_s=float(number * 7 % 5),
            at_most=number % 4 == 0,
        )
        for number in range(20)
    ]
    archive.record_waits(kept[:12])
    archive.record(entries(6))
    archive.record_waits(kept[12:])
    archive.prune(["run-0", "run-1", "run-2"])
    found = archive.waits()
    assert [wait._replace(number=0) for wait in found] == kept, "not all waits came back"
    numbers = [wait.number for wait in found]
    assert numbers == sorted(set(numbers)), f"their numbers do not rise: {numbers}"
    of_slurm = [wait for wait in found if wait.place == "slurm ☃"]
    assert archive.waits("slurm ☃") == of_slurm, "a place has others' waits"
    assert archive.waits(after=numbers[11]) == found[12:], "not what came after"
    assert archive.waits(last=5) == found[-5:], "not the newest"


LAWS: tuple[Callable[[Archive], None], ...] = (
    check_what_is_recorded_comes_back,
    check_nothing_is_counted_twice,
    check_queries_select,
    check_what_ended_together_keeps_its_order,
    check_runs_are_listed,
    check_what_is_pruned_is_gone,
    check_a_run_that_is_pruned_is_not_taken_for_another,
    check_many_are_read_page_by_page,
    check_pruning_leaves_profiles_alone,
    *PROFILE_LAWS,
    check_waits_are_kept_in_order_and_outlive_runs,
)


def check_archive(make: Callable[[], Archive]) -> None:
    """All the laws, each on a new archive.

    >>> from parsl_sizer.archive.memory import MemoryArchive
    >>> check_archive(MemoryArchive)
    """
    for law in LAWS:
        archive = make()
        try:
            law(archive)
        finally:
            archive.close()


def _key(entry: Entry) -> tuple[str, int | str, int]:
    attempt = entry.outcome.attempt
    return entry.run.run_id, attempt.task.task_id, attempt.number
