"""What the batch system has granted a job on this host, in the words of its environment.

MB and GB count as 10**6 and 10**9 bytes here, whatever the batch system means by them: that is a
little less than is granted, in which the interpreters around the tasks live.

- Slurm, see ``man sbatch``: SLURM_MEM_PER_NODE, SLURM_MEM_PER_CPU and SLURM_MEM_PER_GPU are in
  MB; 0 of the first is all that the node has. SLURM_JOB_CPUS_PER_NODE lists the processors of the
  job, as in ``16(x2),8``; which of them are this node's it does not say, so the least counts.
  SLURM_CPUS_ON_NODE is that of the step, which may be one processor of many, or of the first node,
  where a launcher other than srun has copied the environment of the batch script.
- PBS tells no memory. NCPUS (PBS Pro, OpenPBS) is the chunk's processors, or its ``ompthreads``;
  PBS_NUM_PPN and PBS_NP by PBS_NUM_NODES are Torque's. The most of these is what is granted; 1 is
  also what they say where a job asked for whole nodes and not for processors, so it says nothing.
- LSF lists hosts and slots in LSB_MCPU_HOSTS; under another name than this host's the least counts.
  LSB_DJOB_NUMPROC are those of all hosts. LSB_CG_MEMLIMIT is left out: by site it is that of
  the job or of one slot, and where it is set the control group says the same. So is the
  ``rusage[mem=...]`` of LSB_EFFECTIVE_RSRCREQ: its unit (LSF_UNIT_FOR_LIMITS), and whether it is
  that of a job, a host or a slot (RESOURCE_RESERVE_PER_TASK), are the site's, too.
- Parsl's providers say in PARSL_CORES and PARSL_MEMORY_GB what they have asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

MB, GB = 1e6, 1e9


class Grant(NamedTuple):
    """What is granted, as far as it is known."""

    name: str | None = None
    """That of the job, or of Parsl's block if there is no job; None if nothing is granted."""
    cores: tuple[float, ...] = ()
    """What each source says, the least first."""
    memory: float | None = None
    """The least that is said; infinite for all that the node has."""


def granted(environment: Mapping[str, str], host: str) -> Grant:
    """Return the grant that an environment speaks of; words that make no sense are left out."""
    say = environment.get
    job: str | None = None
    cores: float | None = None
    memory: float | None = None
    if job := say("SLURM_JOB_ID") or say("SLURM_JOBID"):
        of_job = _least_listed(say("SLURM_JOB_CPUS_PER_NODE", ""))
        cores = of_job or _number(say("SLURM_CPUS_ON_NODE"))
        of_gpus = _times(say("SLURM_MEM_PER_GPU"), say("SLURM_GPUS_ON_NODE"))
        of_cores = _times(say("SLURM_MEM_PER_CPU"), cores)
        memory = _of_slurm(say("SLURM_MEM_PER_NODE"), of_cores or of_gpus)
    elif job := say("PBS_JOBID"):
        each = (_number(say("PBS_NP")) or 0.0) / (_number(say("PBS_NUM_NODES")) or math.inf)
        cores = _most(say("NCPUS"), say("PBS_NUM_PPN"), each)
        cores = None if cores == 1 else cores
    elif job := say("LSB_JOBID"):
        index = say("LSB_JOBINDEX", "0")
        job = job if index == "0" else f"{job}-{index}"  # a job of an array
        hosts = say("LSB_MCPU_HOSTS", "").split()
        slots = {_short(name): count for name, count in zip(hosts[::2], hosts[1::2], strict=False)}
        cores = _number(slots.get(_short(host))) or _least_listed(",".join(slots.values()))
        cores = cores or _number(say("LSB_DJOB_NUMPROC"))
    asked = _number(say("PARSL_MEMORY_GB"))
    memories = [amount for amount in (memory, asked and asked * GB) if amount]
    counts = sorted(count for count in (cores, _number(say("PARSL_CORES"))) if count)
    if not memories and not counts:
        return Grant()
    block = say("PARSL_WORKER_BLOCK_ID")
    name = f"job {job}" if job else f"block {block}" if block else None
    return Grant(name, tuple(counts), min(memories, default=None))


def _of_slurm(per_node: str | None, of_parts: float) -> float | None:
    if per_node == "0":
        return math.inf
    return (_number(per_node) or of_parts) * MB or None


def _times(each: str | None, count: str | float | None) -> float:
    return (_number(each) or 0.0) * (_number(count) or 0.0)


def _least_listed(counts: str) -> float | None:
    """Return the least of several counts.

    >>> _least_listed("16,8(x3)")
    8.0
    """
    listed = (_number(count.partition("(")[0]) for count in counts.split(","))
    return min((count for count in listed if count), default=None)


def _most(*words: str | float | None) -> float | None:
    return max((count for word in words if (count := _number(word))), default=None)


def _short(host: str) -> str:
    return host.partition(".")[0]


def _number(word: str | float | None) -> float | None:
    """Return what is more than 0 and finite; None for anything else."""
    try:
        value = float(word or 0)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None
