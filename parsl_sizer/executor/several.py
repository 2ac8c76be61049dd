"""Several inner executors as one, as far as Parsl is concerned.

Parsl knows our executor only. So what it does for those that it is given, we do for each of
the inner ones: tell it about the run, start it, ask for its blocks and give them back.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parsl import Config, DataFlowKernel
from parsl.executors import HighThroughputExecutor
from parsl.executors.base import ParslExecutor
from parsl.executors.status_handling import BlockProviderExecutor
from parsl.jobs.job_status_poller import JobStatusPoller
from parsl.jobs.states import TERMINAL_STATES, JobState, JobStatus

from parsl_sizer.engines.several import BETWEEN, Several
from parsl_sizer.model import logger_for

from .arguments import BadArgument
from .face import face

logger = logger_for(__name__)

CLOSE_S = 10.0
"""So long the end of a look at blocks is waited for: what is asked may never answer."""
TOLD = ("run_id", "run_dir", "log_config")
"""What Parsl tells an executor before it starts it."""


OF_HTEX = ("launch_cmd", "interchange_launch_cmd", "_check_python_mismatch")
"""What may be set before it starts, as Globus Compute does; each HTEX among the members is told.

Work Queue has a `launch_cmd`, too, and means something else by it.
"""


class Together(ParslExecutor):
    """Inner executors that are started and shut down as one, in the order of their list."""

    def __init__(self, members: Sequence[ParslExecutor]) -> None:
        super().__init__()
        self.members = list(members)
        _check(self.members)
        self.label = "+".join(member.label for member in self.members)
        first = self.members[0]
        self.storage_access = getattr(first, "storage_access", None)
        self.working_dir = getattr(first, "working_dir", None)
        # What HTEX's own radio sends arrives from its workers only.
        others = [one for one in self.members if not isinstance(one, HighThroughputExecutor)]
        self.remote_monitoring_radio = (others or self.members)[0].remote_monitoring_radio
        self._groups: Several | None = None
        self._pollers: dict[str, JobStatusPoller] = {}

    def watch_over(self, groups: Several) -> None:
        """Ask for blocks by what these groups are in demand."""
        self._groups = groups

    def start(self) -> None:
        """Start all, or none."""
        config = _parsl_config()
        try:
            for member in self.members:
                self._tell(member)
                member.start()
            for member in self.members:
                if isinstance(member, BlockProviderExecutor):
                    self._poll(member, config)
        except BaseException:
            self.shutdown()
            raise

    def submit(self, func: Any, resource_specification: Any, *args: Any, **kwargs: Any) -> Any:
        """Nobody has said to whom: that is for the engine to know."""
        raise NotImplementedError("a call is submitted to one of the members")

    def outstanding(self) -> int:
        """The demand for blocks of all together, in worker slots."""
        return sum(_outstanding(member, self._groups) for member in self.members)

    def monitor_resources(self) -> bool:
        """Whether Parsl's own monitoring makes sense with all of them."""
        return all(member.monitor_resources() for member in self.members)

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        """Shut all down, whatever happens to one of them."""
        errors = []
        for member in self.members:
            try:
                self._shut_down(member, args, kwargs)
            except Exception as error:
                logger.exception("Executor %s could not be shut down", member.label)
                errors.append(error)
        super().shutdown()
        if errors:
            raise errors[0]

    def __getattr__(self, name: str) -> Any:
        """Return what is HTEX's of the first HTEX among the members."""
        if name in OF_HTEX and (takers := self._htex()):
            return getattr(takers[0], name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}.")

    def __setattr__(self, name: str, value: object) -> None:
        if name not in OF_HTEX:
            super().__setattr__(name, value)
            return
        if not (takers := self._htex()):
            raise AttributeError(f"None of the executors {self.label} is HTEX and has {name!r}.")
        for member in takers:
            setattr(member, name, value)

    def _htex(self) -> list[HighThroughputExecutor]:
        return [member for member in self.members if isinstance(member, HighThroughputExecutor)]

    def __repr__(self) -> str:
        return repr(self.members)

    def _tell(self, member: ParslExecutor) -> None:
        for name in TOLD:
            setattr(member, name, getattr(self, name))
        if self.monitoring_messages is not None and member.remote_monitoring_radio is not None:
            member.monitoring_messages = self.monitoring_messages
        provider: Any = getattr(member, "provider", None)
        if hasattr(provider, "script_dir"):
            scripts = Path(self.run_dir, "submit_scripts")
            scripts.mkdir(parents=True, exist_ok=True)
            provider.script_dir = str(scripts)

    def _poll(self, member: BlockProviderExecutor, config: Config) -> None:
        """Look after its blocks: in a thread of its own, as one that hangs must not stop others."""
        poller = self._pollers[member.label] = JobStatusPoller(
            strategy=config.strategy,
            max_idletime=config.max_idletime,
            strategy_period=config.strategy_period,
        )
        poller.add_executors([face(Blocks, type(member))(member, self._groups)])

    def _shut_down(self, member: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        poller = self._pollers.pop(member.label, None)
        try:
            if poller is not None:
                poller.close(CLOSE_S)
                give_back_blocks(member)
        finally:
            member.shutdown(*args, **kwargs)


class Blocks:
    """What Parsl's scaling sees of one of several executors: its share of the demand."""

    def __init__(self, inner: Any, groups: Several | None) -> None:
        self._inner = inner
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def outstanding(self) -> int:
        """The group's demand for blocks, in worker slots."""
        return _outstanding(self._inner, self._groups)

    def scale_in_facade(self, n: int, max_idletime: float | None = None) -> list[str]:
        """Give blocks back. HTEX takes 0 for all that are idle, those about to start too."""
        if n < 1:
            return []
        if self._has_failed():
            return give_back_blocks(self._inner)
        blocks: list[str] = self._inner.scale_in_facade(n, max_idletime)
        return blocks

    def poll_facade(self) -> None:
        """Look at the blocks; of an executor that has failed, which may never answer, end them."""
        if self._has_failed():
            give_back_blocks(self._inner)
        else:
            self._inner.poll_facade()

    def handle_errors(self, status: Any) -> None:
        """Let the executor say whether so many failed blocks are too many."""
        if not self._has_failed():
            self._inner.handle_errors(status)

    def _has_failed(self) -> bool:
        if self._groups is None:
            return bool(self._inner.bad_state_is_set)
        return self._groups.is_failed(self._inner.label)


def give_back_blocks(executor: Any) -> list[str]:
    """End all blocks without a word to the executor: Parsl leaves those of a failed one alone."""
    status = executor.status_facade
    blocks = [
        block
        for block, found in list(status.items())
        if found.state not in TERMINAL_STATES and block in executor.blocks_to_job_id
    ]
    if blocks:
        executor.provider.cancel([executor.blocks_to_job_id[block] for block in blocks])
        status.update({block: JobStatus(JobState.SCALED_IN) for block in blocks})
    return blocks


def _outstanding(member: Any, groups: Several | None) -> int:
    demand = None if groups is None or groups.demands is None else groups.demands.get(member.label)
    if demand is None:
        return int(member.outstanding())
    slots: float = member.workers_per_node
    return math.ceil(demand * slots - 1e-9)


def _check(members: Sequence[ParslExecutor]) -> None:
    if not members:
        raise BadArgument("inner=[] has no executor.")
    seen: set[str] = set()
    for member in members:
        if not isinstance(member, ParslExecutor):
            raise BadArgument(f"inner has to be executors of Parsl's; {member!r:.100} is none.")
        label = member.label
        if label in seen:
            raise BadArgument(f"Two of the inner executors have the label {label!r}.")
        if BETWEEN in label:
            raise BadArgument(f"The label {label!r} of an inner executor has a {BETWEEN!r} in it.")
        seen.add(label)


def _parsl_config() -> Config:
    """How the run is configured that starts us. Executors are not told; their caller knows."""
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if frame.f_code.co_name == "add_executors" and isinstance(caller, DataFlowKernel):
            config: Config = caller.config
            return config
        frame = frame.f_back  # type: ignore[assignment]
    return Config(executors=[])
