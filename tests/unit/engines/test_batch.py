"""What is read of what `squeue` prints."""

from __future__ import annotations

from parsl.jobs.states import JobState, JobStatus
from parsl.providers import LocalProvider

from parsl_sizer.engines.batch import AsTold, JobFacts, Phase, batch_of, facts


def test_a_job_that_waits_has_no_start_even_if_one_is_expected() -> None:
    assert facts("7|PENDING|100|160|220") == {
        "7": JobFacts(Phase.WAITING, JobState.PENDING, 100.0, None, None)
    }


def test_a_job_that_is_over_has_all_its_times() -> None:
    found = facts("7|TIMEOUT|100|130|190")["7"]
    assert found == JobFacts(Phase.OVER, JobState.TIMEOUT, 100.0, 130.0, 190.0)


def test_headings_and_states_that_are_news_are_left_out() -> None:
    assert facts("CLUSTER: alvis\n\n7|DREAMING|1|2|3\n8|RUNNING|1|2|N/A\nsqueue: 1|2|3|4|5|6") == {
        "8": JobFacts(Phase.RUNNING, JobState.RUNNING, 1.0, 2.0, None)
    }


def test_of_other_batch_systems_the_provider_is_believed() -> None:
    batch = batch_of(LocalProvider())
    assert isinstance(batch, AsTold)
    assert batch.place == "local"
    found = batch.jobs({"a": JobStatus(JobState.RUNNING), "b": JobStatus(JobState.FAILED)})
    assert found is not None
    assert [found[job].phase for job in "ab"] == [Phase.RUNNING, Phase.OVER]
    assert batch.will() is None
