"""Apps of every sort behave as without us: what they return, raise, print and leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import parsl
import pytest
import sizer_apps as apps
from parsl.app.errors import AppTimeout, BadStdStreamFile, BashExitFailure, MissingOutputs
from parsl.data_provider.files import File
from parsl.dataflow.errors import DependencyError, JoinError
from sizer_runs import running, sized

from parsl_sizer import sizing_of

LIMIT_S = 60


@pytest.fixture(scope="module", autouse=True)
def sized_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with running(sized(), tmp_path_factory.mktemp("apps")):
        yield


def test_a_bash_app_writes_its_streams_where_it_is_told(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    future = apps.shell("echo good; echo bad >&2", stdout=str(out), stderr=str(err))
    assert future.result(LIMIT_S) == 0
    assert out.read_text() == "good\n"
    assert err.read_text().splitlines()[-1] == "bad"  # after the command, which Parsl puts there
    assert (future.stdout, future.stderr) == (str(out), str(err))


def test_a_bash_app_adds_to_a_stream_if_asked_to(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    for text in ("one", "two"):
        apps.shell(f"echo {text}", stdout=(out, "a")).result(LIMIT_S)
    assert Path(out).read_text() == "one\ntwo\n"


def test_streams_may_have_names_of_parsls_own() -> None:
    future = apps.shell("echo named", stdout=parsl.AUTO_LOGNAME)
    assert future.result(LIMIT_S) == 0
    assert Path(future.stdout).read_text() == "named\n"


def test_a_stream_that_cannot_be_opened_is_an_error() -> None:
    with pytest.raises(BadStdStreamFile):
        apps.shell("echo lost", stdout="/dev/null/out").result(LIMIT_S)


@pytest.mark.parametrize("code", [1, 2, 127, 255])
def test_the_exit_code_of_a_bash_app_reaches_the_user(code: int) -> None:
    with pytest.raises(BashExitFailure) as caught:
        apps.shell(f"exit {code}").result(LIMIT_S)
    assert caught.value.exitcode == code


def test_an_output_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingOutputs):
        apps.shell("true", outputs=[File(str(tmp_path / "nothing"))]).result(LIMIT_S)


def test_a_walltime_ends_an_app() -> None:
    with pytest.raises(AppTimeout):
        apps.sleeping(60, walltime=0.2).result(LIMIT_S)
    assert apps.added(1, 2).result(LIMIT_S) == 3


def test_a_task_of_a_join_app_is_sized_and_the_join_app_is_not() -> None:
    future = apps.fibonacci(5)
    assert future.result(LIMIT_S) == 5
    assert sizing_of(future) is None


def test_failures_in_joined_tasks_are_told() -> None:
    with pytest.raises(JoinError) as caught:
        apps.joined_failure().result(LIMIT_S)
    [(error, _)] = caught.value.dependent_exceptions_tids
    assert isinstance(error, KeyError)


def test_a_task_whose_dependency_fails_never_runs(tmp_path: Path) -> None:
    future = apps.added(apps.failing_with("first"), 1)
    with pytest.raises(DependencyError):
        future.result(LIMIT_S)
    assert sizing_of(future) is None


def test_tasks_wait_for_each_others_results_and_files(tmp_path: Path) -> None:
    first = apps.shell(f"echo one > {tmp_path}/one", outputs=[File(str(tmp_path / "one"))])
    second = apps.shell(f"echo two > {tmp_path}/two", outputs=[File(str(tmp_path / "two"))])
    both = apps.concatenated(
        inputs=[first.outputs[0], second.outputs[0]], outputs=[File(str(tmp_path / "both"))]
    )
    assert apps.content(inputs=[both.outputs[0]]).result(LIMIT_S) == ["one\ntwo\n"]
    assert apps.added(apps.added(1, 2), apps.added(3, 4)).result(LIMIT_S) == 10
