from __future__ import annotations

import pytest

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.importers import snakemake
from parsl_sizer.model import Kind

MIB = 2**20


def test_every_repeat_is_an_entry_and_the_folder_names_the_rule(imported, samples):
    entries, notes = imported(snakemake, samples / "benchmarks" / "count" / "a.tsv")
    assert [entry.outcome.attempt.task.category for entry in entries] == ["count", "count"]
    outcome = entries[0].outcome
    assert outcome.usage.peak == {Kind.MEMORY: pytest.approx(73.57 * MIB)}
    assert (outcome.usage.wall_s, outcome.usage.cpu_s) == (1.8, 0.08)
    assert outcome.layers == (SAMPLED,)
    assert not notes.skipped


def test_a_job_that_was_over_before_it_was_seen_has_no_peak(imported, samples):
    [entry], _ = imported(snakemake, samples / "benchmarks" / "merge.tsv")
    assert entry.outcome.attempt.task.category == "merge"
    assert entry.outcome.usage.peak == {}
    assert entry.outcome.usage.wall_s == 0.01


def test_the_extended_format_tells_the_rule_its_resources_and_its_inputs(imported, samples):
    entries, _ = imported(snakemake, samples / "snakemake_extended.tsv")
    task = entries[0].outcome.attempt.task
    assert task.category == "count"
    assert task.requested == {Kind.CORES: 1.0, Kind.MEMORY: 2e8, Kind.DISK: 5e7}
    assert task.features == {"input_size": 3_000_000.0}
    assert task.inputs == ("in/a.bin",)
    assert task.labels == {"jobid": "2", "wildcards": "{'sample': 'a'}"}


def test_cells_of_nothing_are_unknown(imported):
    header = "s\th:m:s\tmax_rss\tmax_vms\tcpu_time"
    [entry], notes = imported(snakemake, f"{header}\n3.5\t0:00:03\tNA\t-\t-\n-\t-\t-\t-\t-\n")
    assert entry.outcome.usage.peak == {}
    assert entry.outcome.usage.cpu_s is None
    assert sum(notes.skipped.values()) == 1


def test_an_input_size_is_given_only_if_all_files_are_understood():
    assert snakemake._sizes("{'a': 1.0, \"it's\": 2.0}") == {}
    assert snakemake._sizes("{'a': 1.0, 'b: c': 2.0}") == {}
    assert snakemake._sizes("{}") == {}
