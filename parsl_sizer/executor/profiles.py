"""Profiles of the nodes behind the executors of a running Parsl.

No executor sends a task to a node of our choice. So as many calls are made at once as it runs
at once: each node gets some, of which one measures and the others keep the node free until it
has. That is repeated until every node has answered.
"""

from __future__ import annotations

import runpy
import sys
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import parsl
from parsl.config import Config
from parsl.dataflow.dflow import DataFlowKernel

from parsl_sizer.archive.base import ArchiveError
from parsl_sizer.archive.open import Where, location, open_archive
from parsl_sizer.engines import CannotWrap, Engine
from parsl_sizer.engines.catalog import engine_for
from parsl_sizer.model import NodeProfile, SizerError, logger_for
from parsl_sizer.monitor import travel
from parsl_sizer.profiling import SECONDS, check, profile_of
from parsl_sizer.profiling.travel import visit_node

from .executor import SizedExecutor

logger = logger_for(__name__)

INTERNAL = "_parsl_internal"
"""Parsl's own executor, for what it does itself."""
EVERY_S = 0.1
WAIT_S = 600.0
FAILURES = 3
"""After so many calls that failed an executor is given up."""
ORDER = {"enforce": False, "isolation": "inline", "shared_process": True}

Submit = Callable[..., "Future[Any]"]
Profiles = dict[str, dict[str, NodeProfile]]


class ProfilingFailed(SizerError):
    """No node could be profiled; the message says why."""


def profile_nodes(
    dfk: DataFlowKernel | None = None,
    *,
    executors: Collection[str] | None = None,
    seconds: float = SECONDS,
    extra: Sequence[str] = (),
    use_tools: bool = True,
    folder: str | None = None,
    nodes: int | None = None,
    wait_s: float = WAIT_S,
    archive: bool | str | Path | None = None,
    progress: Callable[[NodeProfile], None] = lambda profile: None,
) -> Profiles:
    """What each node of each executor can do: profiles by executor and host.

    Nodes should have nothing else to do meanwhile: the best time is before the first task.

    Parameters
    ----------
    dfk
        The Parsl whose executors are looked at; by default the one that is loaded.
    executors
        The labels of some of them; by default all.
    seconds
        How long measuring takes on a node, about.
    extra
        Features to look up besides: ``"cpu_mhz"``, ``"cpu_cache"``, ``"gpu_memory"``, or a
        flag of the processor as in ``"flag_avx2"``.
    use_tools
        Whether sysbench and fio measure on nodes where they are installed.
    folder
        Where files are read and written there; by default where temporary files go.
    nodes
        Wait for so many of each executor; by default for those it has from the beginning.
    wait_s
        Be content after so long with those that have answered.
    archive
        Where the profiles are kept, as for ``SizedExecutor``.
    progress
        Is called with each profile as it comes.
    """
    check(seconds, extra)
    kernel = dfk or parsl.dfk()
    options = {"extra": list(extra), "use_tools": use_tools, "folder": folder}
    quests = [
        Quest(label, engine, submit, (seconds, options), nodes, progress)
        for label, engine, submit in _inner(kernel, executors)
    ]
    try:
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            for quest in quests:
                quest.go_on()
            if all(quest.is_over for quest in quests):
                break
            time.sleep(EVERY_S)
    finally:
        for quest in quests:
            quest.engine.close()
    found = {quest.label: quest.found for quest in quests}
    keep([profile for some in found.values() for profile in some.values()], location(archive))
    missing = [said for quest in quests if (said := quest.missing(wait_s))]
    if not any(found.values()):
        raise ProfilingFailed(" ".join(missing) or "There is no executor to profile.")
    for said in missing:
        logger.warning("%s", said)
    return found


def keep(profiles: Sequence[NodeProfile], where: Where | None) -> bool:
    """Put profiles into an archive; whether they are there. It must not make a run fail."""
    if where is None or not profiles:
        return False
    try:
        with closing(open_archive(where, warn=logger.warning)) as opened:
            opened.keep_profiles(profiles)
    except ArchiveError as error:
        logger.warning("The profiles of nodes are not kept: %s", error)
        return False
    return True


def profile_config(path: Path, **options: Any) -> Profiles:
    """The same for a file of Python with a `config` in it, which is loaded for the while."""
    check(options.get("seconds", SECONDS), options.get("extra", ()))
    config = _config_in(path)
    for executor in config.executors:
        if isinstance(executor, SizedExecutor):
            executor.report = False  # there are no tasks to report on
    try:
        kernel = parsl.load(config)
    except Exception as error:
        raise SizerError(f"Parsl cannot be started with {path}: {error!r:.300}.") from error
    try:
        return profile_nodes(kernel, **options)
    finally:
        kernel.cleanup()
        parsl.clear()


def _config_in(path: Path) -> Config:
    sys.path.insert(0, str(path.parent.absolute()))  # as if it were run
    try:
        config = runpy.run_path(str(path), run_name="parsl_sizer_config").get("config")
    except OSError as error:
        raise SizerError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Exception as error:
        raise SizerError(f"{path} cannot be run: {error!r:.300}.") from error
    finally:
        sys.path.pop(0)
    if not isinstance(config, Config):
        raise SizerError(f"{path} has no config; it should say config = Config(...), as for Parsl.")
    return config


class Quest:
    """All nodes of one executor are looked for until each has answered."""

    def __init__(
        self,
        label: str,
        engine: Engine,
        submit: Submit,
        how: tuple[float, Mapping[str, Any]],
        nodes: int | None,
        progress: Callable[[NodeProfile], None],
    ) -> None:
        self.label = label
        self.engine = engine
        self.found: dict[str, NodeProfile] = {}
        self.is_over = False
        self._seconds, options = how
        self._submit = partial(submit, travel.wrapped(visit_node), ORDER)
        self._arguments = (uuid.uuid4().hex, self._seconds), dict(options)
        self._progress = progress
        self._heard: set[str] = set()
        self._calls: list[Future[Any]] = []
        self._failures: list[str] = []
        provider = getattr(engine.inner, "provider", None)
        first = provider.init_blocks * provider.nodes_per_block if provider else 1
        self._expected = nodes or max(1, first)
        # Parsl starts the first blocks; without any there is no node until there are tasks.
        if provider and provider.max_blocks and not first and not _has_blocks(engine.inner):
            engine.inner.scale_out_facade(1)

    def go_on(self) -> None:
        """Hear those who have answered, and call where nobody has; `is_over` if that is all."""
        for call in [call for call in self._calls if call.done()]:
            self._calls.remove(call)
            self._hear(call)
        if len(self._failures) > FAILURES:
            self.is_over = True
            return
        wanted = self.engine.calls_to_reach(self._heard)
        if not wanted and not self._heard:
            wanted = 1  # a manager at rest does not even say who is there
        for _ in range(wanted - len(self._calls)):
            token, options = self._arguments
            try:
                self._calls.append(self._submit(*token, **options))
            except Exception as error:
                self._failures.append(f"{error!r:.300}")
        self.is_over = not (wanted or self._calls) and len(self._heard) >= self._expected

    def missing(self, wait_s: float) -> str | None:
        """A sentence on those who have not answered, and why; None if all have."""
        if self.is_over and len(self._failures) <= FAILURES:
            return None
        why = self._failures[-1] if self._failures else f"no answer in {wait_s:g} s"
        heard = f"{len(self._heard)} of {max(self._expected, len(self._heard))}"
        return f"{heard} nodes of {self.label} have answered: {why}."

    def _hear(self, call: Future[Any]) -> None:
        error = call.exception()
        answer = None if error else call.result()
        report = answer if isinstance(answer, Mapping) else {}
        told = report.get("result")
        if report.get("ending") != "returned" or not isinstance(told, Mapping):
            self._failures.append(f"{error or report.get('error', answer)!r:.300}")
            return
        self._heard.add(str(told.get("place")))
        if isinstance(told.get("features"), Mapping):
            host = str(report.get("host"))
            profile = profile_of(host, report.get("node"), told, self.label)
            self.found[profile.host] = profile
            self._progress(profile)


def _has_blocks(inner: Any) -> bool:
    return any(not status.terminal for status in inner.status_facade.values())


def _inner(dfk: DataFlowKernel, labels: Collection[str] | None) -> list[tuple[str, Engine, Submit]]:
    """The executors that run the tasks, how to ask who is there, and how to submit."""
    known = {label: one for label, one in dfk.executors.items() if label != INTERNAL}
    for label in labels or ():
        if label not in known:
            raise SizerError(f"There is no executor {label!r}; there is {', '.join(known)}.")
    found: list[tuple[str, Engine, Submit]] = []
    for label, executor in known.items():
        if labels is not None and label not in labels:
            continue
        if isinstance(executor, SizedExecutor):
            # Of several inner executors each has a label of its own.
            for one in getattr(executor.inner, "members", [executor.inner]):
                found.append((one.label, engine_for(one), partial(executor.submit_unsized, one)))
            continue
        try:
            engine = engine_for(executor)
        except CannotWrap:
            logger.warning("The nodes of %s cannot be told apart: it is left out.", label)
            continue
        found.append((label, engine, partial(_submit_app, dfk, label)))
    return found


def _submit_app(
    dfk: DataFlowKernel, label: str, func: Callable[..., Any], *args: Any, **kwargs: Any
) -> Future[Any]:
    """As Parsl submits an app: an executor takes tasks from one thread only."""
    return dfk.submit(
        func, args, executors=[label], cache=False, ignore_for_cache=None, app_kwargs=kwargs
    )
