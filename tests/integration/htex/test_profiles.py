"""The nodes of HTEX, profiled: all of them, each once."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.providers import LocalProvider
from sizer_hosts import OnHosts, hosts_or_skip
from sizer_runs import LIMIT_S, htex, nothing_left, running, sized

from parsl_sizer import profile_nodes
from parsl_sizer.archive.open import open_archive
from parsl_sizer.executor.profiles import ProfilingFailed
from parsl_sizer.model import NodeProfile, SizerError
from parsl_sizer.profiling import FEATURES

LITTLE_S = 1.0
HERE = socket.gethostname()


def test_every_node_is_profiled_once_and_remembered(tmp_path: Path) -> None:
    archive, seen = tmp_path / "archive.sqlite3", list[NodeProfile]()
    with hosts_or_skip(2) as hosts:
        provider = LocalProvider(
            launcher=OnHosts(hosts), nodes_per_block=2, init_blocks=1, min_blocks=1, max_blocks=1
        )
        with running(htex(3, provider=provider, address=hosts.address), tmp_path) as dfk:
            found = profile_nodes(
                dfk, seconds=LITTLE_S, use_tools=False, archive=archive, progress=seen.append
            )
    assert set(found["htex"]) == set(hosts.names)
    assert sorted(profile.host for profile in seen) == sorted(hosts.names)  # each once
    for profile in found["htex"].values():
        assert {*FEATURES, "cores", "memory", "disk"} <= set(profile.features)
        assert profile.methods["cpu_single"].startswith("built-in")
    with closing(open_archive(archive, read_only=True)) as opened:
        kept = {profile.name: profile for profile in opened.profiles()}
    assert kept == {f"htex/{host}": profile for host, profile in found["htex"].items()}


def test_a_sized_executor_is_profiled_beside_its_tasks(tmp_path: Path) -> None:
    archive = tmp_path / "archive.sqlite3"
    executor = sized(archive=archive)
    with running(executor, tmp_path) as dfk:
        running_tasks = [tasks.hold(10 + number) for number in range(6)]
        found = profile_nodes(dfk, seconds=LITTLE_S, extra=["flag_avx2"], archive=archive)
        assert [future.result(LIMIT_S) for future in running_tasks] == list(range(10, 16))
    assert set(found) == {"htex"}
    assert set(found["htex"]) == {HERE}
    with closing(open_archive(archive, read_only=True)) as opened:
        categories = {entry.outcome.attempt.task.category for entry in opened.entries()}
        assert categories == {"hold"}  # profiling is no task
        assert [profile.name for profile in opened.profiles()] == [f"htex/{HERE}"]


def test_workers_that_have_not_got_the_package_are_profiled(tmp_path: Path) -> None:
    package = tmp_path / "elsewhere" / "parsl_sizer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ModuleNotFoundError('not installed')")
    provider = LocalProvider(
        init_blocks=1, max_blocks=1, worker_init=f"export PYTHONPATH={package.parent}:$PYTHONPATH"
    )
    with running(htex(1, provider=provider), tmp_path) as dfk:
        found = profile_nodes(dfk, seconds=LITTLE_S, use_tools=False, archive=False)
    assert found["htex"][HERE].features["cpu_single"] > 0


def test_an_executor_without_blocks_is_given_one(tmp_path: Path) -> None:
    provider = LocalProvider(init_blocks=0, min_blocks=0, max_blocks=1)
    with running(sized(htex(1, provider=provider)), tmp_path) as dfk:
        found = profile_nodes(dfk, seconds=LITTLE_S, use_tools=False, archive=False)
    assert set(found["htex"]) == {HERE}


def test_who_never_answers_is_said(tmp_path: Path) -> None:
    provider = LocalProvider(init_blocks=0, min_blocks=0, max_blocks=0)
    with (
        running(sized(htex(1, provider=provider)), tmp_path) as dfk,
        pytest.raises(
            ProfilingFailed, match="0 of 1 nodes of htex have answered: no answer in 1 s"
        ),
    ):
        profile_nodes(dfk, seconds=LITTLE_S, wait_s=1, archive=False)


def test_an_executor_that_is_not_there_is_said(tmp_path: Path) -> None:
    with running(htex(1), tmp_path) as dfk:
        with pytest.raises(SizerError, match="no executor 'none'; there is htex"):
            profile_nodes(dfk, executors=["none"])
        with pytest.raises(SizerError, match="'colour' is no feature; there is cpu_mhz"):
            profile_nodes(dfk, extra=["colour"])
        with pytest.raises(SizerError, match=r"seconds=0\.1 is too short"):
            profile_nodes(dfk, seconds=0.1)


CLUSTER = """\
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider
from parsl_sizer import SizedExecutor

def group(label):
    return HighThroughputExecutor(
        label=label, address="127.0.0.1", max_workers_per_node=2,
        cores_per_worker=0.1, provider=LocalProvider(init_blocks=1, max_blocks=1),
    )

config = Config(executors=[SizedExecutor(group("big")), group("small")], usage_tracking=0)
"""


def test_the_command_profiles_the_nodes_of_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "cluster.py").write_text(CLUSTER)
    options = ("--seconds", "1", "--built-in", "--archive", "archive.sqlite3", "--json")
    with nothing_left():
        ran = subprocess.run(
            [sys.executable, "-m", "parsl_sizer", "profile", "--config", "cluster.py", *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * LIMIT_S,
        )
    assert ran.returncode == 0, ran.stderr
    made = json.loads(ran.stdout)
    assert [node["node"] for node in made["nodes"]] == [f"big/{HERE}", f"small/{HERE}"]
    scripts = [path.name for path in tmp_path.glob("runinfo/*/submit_scripts/*.sh")]
    assert len(scripts) == 2, scripts  # one block each, as configured
    with closing(open_archive(tmp_path / "archive.sqlite3", read_only=True)) as opened:
        assert len(opened.profiles()) == 2
        assert opened.runs() == []
