"""What batch systems write into a job's environment, and what a node has by that."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping

import pytest

from parsl_sizer.monitor import cgroup, node, node_ledger
from parsl_sizer.monitor.grant import Grant, granted

MB, GB = 1e6, 1e9
WORDS = (
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_CPUS_ON_NODE",
    "SLURM_JOB_CPUS_PER_NODE",
    "PBS_JOBID",
    "PBS_NUM_PPN",
    "PBS_NP",
    "PBS_NUM_NODES",
    "NCPUS",
    "LSB_JOBID",
    "LSB_JOBINDEX",
    "LSB_MCPU_HOSTS",
    "LSB_DJOB_NUMPROC",
    "PARSL_CORES",
    "PARSL_MEMORY_GB",
    "PARSL_WORKER_BLOCK_ID",
)
"""All variables that are read."""
SLURM = {"SLURM_JOB_ID": "12"}
PBS = {"PBS_JOBID": "7.server"}
LSF = {"LSB_JOBID": "5", "LSB_MCPU_HOSTS": "n1 20 n2.cluster 10"}


@pytest.mark.parametrize(
    ("environment", "cores", "memory"),
    [
        ({}, (), None),
        (SLURM, (), None),
        ({"SLURM_MEM_PER_NODE": "2048"}, (), None),  # of no job
        ({**SLURM, "SLURM_MEM_PER_NODE": "2048"}, (), 2048 * MB),
        ({"SLURM_JOBID": "12", "SLURM_MEM_PER_NODE": "2048"}, (), 2048 * MB),
        ({**SLURM, "SLURM_MEM_PER_NODE": "0"}, (), float("inf")),  # all that the node has
        ({**SLURM, "SLURM_CPUS_ON_NODE": "4"}, (4.0,), None),
        ({**SLURM, "SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_CPU": "500"}, (4.0,), 2000 * MB),
        ({**SLURM, "SLURM_MEM_PER_GPU": "500", "SLURM_GPUS_ON_NODE": "4"}, (), 2000 * MB),
        ({**SLURM, "SLURM_MEM_PER_CPU": "500"}, (), None),  # of how many is not known
        # A step of one task may have one of the job's processors: the memory is the job's.
        ({**SLURM, "SLURM_CPUS_ON_NODE": "1", "SLURM_JOB_CPUS_PER_NODE": "16(x3)"}, (16.0,), None),
        ({**SLURM, "SLURM_CPUS_ON_NODE": "4", "SLURM_JOB_CPUS_PER_NODE": "16,4(x2)"}, (4.0,), None),
        # That of the first node, copied to the others by a launcher such as mpiexec or ssh.
        (
            {**SLURM, "SLURM_CPUS_ON_NODE": "16", "SLURM_JOB_CPUS_PER_NODE": "16,4(x2)"},
            (4.0,),
            None,
        ),
        (
            {**SLURM, "SLURM_JOB_CPUS_PER_NODE": "16,4", "SLURM_MEM_PER_CPU": "500"},
            (4.0,),
            2000 * MB,
        ),
        ({**SLURM, "SLURM_CPUS_ON_NODE": "4", "SLURM_JOB_CPUS_PER_NODE": "many"}, (4.0,), None),
        ({**SLURM, "SLURM_JOB_CPUS_PER_NODE": "many"}, (), None),
        ({**SLURM, "SLURM_MEM_PER_NODE": "a lot", "SLURM_CPUS_ON_NODE": "-3"}, (), None),
        ({**SLURM, "SLURM_MEM_PER_NODE": "nan", "SLURM_CPUS_ON_NODE": "inf"}, (), None),
        ({**SLURM, "SLURM_MEM_PER_NODE": "-1", "SLURM_CPUS_ON_NODE": "0"}, (), None),
        ({**PBS, "NCPUS": "8"}, (8.0,), None),
        ({"NCPUS": "8"}, (), None),
        ({**PBS, "PBS_NUM_PPN": "6"}, (6.0,), None),
        ({**PBS, "PBS_NP": "24", "PBS_NUM_NODES": "2"}, (12.0,), None),
        ({**PBS, "PBS_NP": "24"}, (), None),  # on how many nodes is not known
        ({**PBS, "NCPUS": "1"}, (), None),  # as where a job asks for whole nodes
        # With ompthreads=1 NCPUS is 1, and Torque's PBS_NUM_PPN is 1 where only procs= is said.
        ({**PBS, "NCPUS": "1", "PBS_NUM_PPN": "16"}, (16.0,), None),
        (LSF, (20.0,), None),
        ({**LSF, "LSB_MCPU_HOSTS": "n9 20"}, (20.0,), None),  # it has another name there
        ({**LSF, "LSB_MCPU_HOSTS": "n8 20 n9 10"}, (10.0,), None),
        ({**LSF, "LSB_MCPU_HOSTS": "n1"}, (), None),
        ({**LSF, "LSB_EFFECTIVE_RSRCREQ": "rusage[mem=4000.00]"}, (20.0,), None),  # of what?
        ({"LSB_JOBID": "5", "LSB_DJOB_NUMPROC": "6"}, (6.0,), None),
        ({"PARSL_MEMORY_GB": "2", "PARSL_CORES": "3"}, (3.0,), 2 * GB),
        ({"PARSL_MEMORY_GB": "2.5"}, (), 2.5 * GB),
        ({"PARSL_MEMORY_GB": "much", "PARSL_CORES": ""}, (), None),
        ({**SLURM, "SLURM_MEM_PER_NODE": "4000", "PARSL_MEMORY_GB": "2"}, (), 2 * GB),
        ({**SLURM, "SLURM_CPUS_ON_NODE": "8", "PARSL_CORES": "2"}, (2.0, 8.0), None),
    ],
)
def test_what_an_environment_grants(
    environment: Mapping[str, str], cores: tuple[float, ...], memory: float | None
) -> None:
    found = granted(environment, "n1.cluster")
    assert (found.cores, found.memory) == (cores, memory)


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, None),
        (SLURM, None),  # a job of which nothing is known shares the machine
        ({**SLURM, "SLURM_CPUS_ON_NODE": "4"}, "job 12"),
        ({**PBS, "NCPUS": "4"}, "job 7.server"),
        ({**LSF, "LSB_JOBINDEX": "0"}, "job 5"),
        ({**LSF, "LSB_JOBINDEX": "3"}, "job 5-3"),
        ({**SLURM, "PARSL_CORES": "4"}, "job 12"),
        ({"PARSL_CORES": "4", "PARSL_WORKER_BLOCK_ID": "2"}, "block 2"),
        ({"PARSL_CORES": "4"}, None),
        ({"PARSL_WORKER_BLOCK_ID": "2"}, None),
    ],
)
def test_a_grant_has_the_name_of_its_job(environment: Mapping[str, str], name: str | None) -> None:
    assert granted(environment, "n1").name == name


def test_nothing_granted_is_nothing() -> None:
    assert granted({}, "n1") == Grant()


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A machine of 16 cores and 64 GB, in no control group and no job."""
    for name in WORDS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(node, "physical_cores", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4000, "SC_PHYS_PAGES": 16_000_000}.get)
    monkeypatch.setattr(cgroup, "cores", lambda place: None)
    monkeypatch.setattr(cgroup, "memory", lambda place: None)
    monkeypatch.setattr(node, "_until", 0.0)
    monkeypatch.setattr(node, "grant_here", node.grant_here.__wrapped__)
    yield monkeypatch
    node._until = 0.0


def test_without_a_grant_a_node_is_the_machine(job: pytest.MonkeyPatch) -> None:
    assert (node.cores(), node.memory()) == (16, 64 * GB)
    assert node.name() == socket.gethostname()


def test_the_smallest_of_all_is_what_a_node_has(job: pytest.MonkeyPatch) -> None:
    job.setenv("SLURM_JOB_ID", "12")
    job.setenv("SLURM_MEM_PER_NODE", "2000")
    job.setenv("SLURM_CPUS_ON_NODE", "4")
    assert (node.cores(), node.memory()) == (4, 2 * GB)
    assert node.name() == f"{socket.gethostname()} job 12"
    job.setattr(cgroup, "memory", lambda place: GB)
    job.setattr(cgroup, "cores", lambda place: 1.5)
    assert (node.cores(), node.memory()) == (1.5, GB)
    job.setenv("SLURM_MEM_PER_NODE", "500")
    assert node.memory() == 500 * MB
    job.setenv("SLURM_MEM_PER_NODE", "0")
    job.setattr(cgroup, "memory", lambda place: None)
    assert node.memory() == 64 * GB


def test_where_only_cores_are_granted_memory_is_in_proportion(job: pytest.MonkeyPatch) -> None:
    job.setenv("PARSL_CORES", "4")
    assert node.memory() == 16 * GB
    # Two managers of a job share its cores, which Parsl tells each of them.
    job.setenv("SLURM_JOB_ID", "12")
    job.setenv("SLURM_CPUS_ON_NODE", "8")
    assert (node.cores(), node.memory()) == (4, 32 * GB)
    job.setenv("PARSL_CORES", "64")  # more than there are
    assert (node.cores(), node.memory()) == (8, 64 * GB)
    job.setattr(cgroup, "memory", lambda place: 50 * GB)  # that is granted, too
    assert node.memory() == 50 * GB


def test_the_reservations_of_a_grant_are_its_own(job: pytest.MonkeyPatch) -> None:
    run, other = ({"ledger": name, "shared": True} for name in ("run", "other"))
    assert node_ledger.ledger_of(run) == node_ledger.ledger_of(other)
    assert node_ledger.ledger_of({"ledger": "run"}) == "run"
    job.setenv("PARSL_CORES", "4")
    job.setenv("PARSL_WORKER_BLOCK_ID", "0")  # each run counts its blocks from 0
    assert node_ledger.ledger_of(run) != node_ledger.ledger_of(other)
    job.setenv("SLURM_JOB_ID", "12")
    assert node_ledger.ledger_of(run) == node_ledger.ledger_of(other)
    assert "12" in node_ledger.ledger_of(run)


def test_as_many_as_there_are_physical_cores_are_the_whole_machine(job: pytest.MonkeyPatch) -> None:
    job.setattr(node, "physical_cores", lambda: 8)
    job.setenv("SLURM_JOB_ID", "12")
    job.setenv("SLURM_CPUS_ON_NODE", "8")
    assert node.memory() == 64 * GB
    job.setenv("SLURM_CPUS_ON_NODE", "4")
    assert node.memory() == 32 * GB
    job.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))  # so it counts threads
    job.setenv("SLURM_CPUS_ON_NODE", "8")
    assert node.memory() == 32 * GB


def test_a_worker_that_is_bound_to_some_cores_has_a_node_of_all(job: pytest.MonkeyPatch) -> None:
    job.setattr(os, "sched_getaffinity", lambda pid: set(range(16 if pid else 4)))
    assert node.cores() == 4
    job.setenv("PARSL_WORKER_COUNT", "4")
    assert node.cores() == 16


def test_the_physical_cores_of_this_machine_are_counted() -> None:
    assert 1 <= (node.physical_cores() or 1) <= (os.cpu_count() or 1)
