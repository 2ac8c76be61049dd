"""What is made out of Colmena's own objects, before anything runs."""

from __future__ import annotations

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("colmena", reason="Colmena is not installed here")

import colmena_methods as methods
import numpy
from colmena.models import FailureInformation, Result
from colmena.models.methods import ColmenaMethod, PythonGeneratorMethod, PythonMethod
from colmena.queue import PipeQueues
from colmena.task_server import ParslTaskServer
from colmena.task_server.parsl import _execute_execute
from parsl import Config
from sizer_runs import htex

from parsl_sizer.executor import intake
from parsl_sizer.executor.recognisers import Recognisers
from parsl_sizer.executor.recognisers.catalog import Careful
from parsl_sizer.executor.recognisers.colmena import Colmena
from parsl_sizer.executor.story import AttemptMade, Sizing
from parsl_sizer.model import Ending, Kind, OptOut

SIZING = Sizing(
    "simulate",
    (
        AttemptMade(1, Ending.EXHAUSTED, {Kind.MEMORY: 1e8}, {Kind.MEMORY: 1.1e8}, 0.5, "x", "h"),
        AttemptMade(2, Ending.DONE, {Kind.MEMORY: 2e8}, {Kind.MEMORY: 1.5e8}, 1.5, "y", None),
    ),
)


class Doubled(ColmenaMethod):
    """A method as users derive them."""

    name = "doubled"

    def function(self, x: int) -> int:
        return 2 * x


def apps() -> dict[str, Any]:
    """The functions that a task server gives to Parsl, by their names."""
    config = Config(executors=[htex()])
    made = [methods.simulate, methods.grown, methods.Relax(), Doubled()]
    server = ParslTaskServer(made, PipeQueues(), config)
    first = {name: app for name, (app, _) in server.methods_.items()}
    execute, postprocess = server.exec_apps_["relax"]
    functions = {name: app.func for name, app in first.items()}
    functions["relax_execute"] = execute.wrapped_remote_function
    functions["relax_postprocess"] = postprocess.func
    return functions


APPS = apps()


def request(method: str = "simulate", **fields: Any) -> Result:
    return Result(((1,), {}), method=method, **fields)


def arrival(function: Any, *args: Any, recogniser: Recognisers | None = None) -> intake.Arrival:
    recognisers = recogniser or Recognisers(pytest.fail)
    return intake.task_info(1, function, (args, {}), {}, now=0.0, recognisers=recognisers)


def failed(error: BaseException) -> Result:
    return request(success=False, failure_info=FailureInformation.from_exception(error))


@pytest.mark.parametrize(
    ("info", "category"),
    [
        ({}, "simulate"),
        (None, "simulate"),
        ({"category": "large"}, "large"),
        ({"category": ""}, "simulate"),
        ({"category": 7}, "simulate"),
    ],
)
def test_the_category_is_the_tag_or_else_the_method(info: Any, category: str) -> None:
    assert arrival(APPS["simulate"], request(task_info=info)).task.category == category


def test_numbers_of_the_request_are_features() -> None:
    info = {
        "category": "large",
        "atoms": 12,
        "charge": -0.5,
        "name": "water",
        "is_new": True,
        "tags": [1],
        "unknown": float("nan"),
        "endless": float("inf"),
        "huge": 10**400,
    }
    result = request(task_info=info, message_sizes={"inputs": 77})
    features = arrival(APPS["simulate"], result).task.features
    assert features == {"atoms": 12.0, "charge": -0.5, "input_size": 77.0}


def test_a_size_of_its_own_comes_before_that_of_the_message() -> None:
    result = request(task_info={"input_size": 5}, message_sizes={"inputs": 77})
    assert arrival(APPS["simulate"], result).task.features == {"input_size": 5.0}


def test_what_the_user_wrote_is_looked_for_inside() -> None:
    simulate, grown, doubled = (APPS[name] for name in ("simulate", "grown", "doubled"))
    task = arrival(simulate, request()).task
    assert task.command == "colmena_methods.simulate"
    assert task.code_hash == arrival(methods.simulate).task.code_hash is not None
    assert arrival(grown, request("grown")).task.requested == {Kind.MEMORY: 1e8}
    assert arrival(doubled, request("doubled")).task.command.endswith("Doubled.function")
    streamed = PythonGeneratorMethod(methods.simulate)
    assert arrival(streamed, request()).task.code_hash == task.code_hash


def test_what_only_looks_like_a_request_is_sized_by_its_name() -> None:
    task = arrival(APPS["simulate"], 5)
    assert (task.task.category, task.tag) == ("simulate", None)
    assert arrival(APPS["simulate"]).task.category == "simulate"
    assert not Colmena.claims(methods.simulate)
    assert not Colmena.claims(print)
    assert Colmena.claims(PythonMethod(methods.simulate))


@pytest.mark.parametrize(("tag", "name"), [({}, "relax"), ({"category": "tight"}, "tight")])
def test_the_steps_of_an_executable_have_the_tags_of_their_request(
    tag: dict[str, object], name: str, tmp_path: Path
) -> None:
    recognisers = Recognisers(pytest.fail)
    result = request("relax", task_info={**tag, "atoms": 3})
    first = arrival(APPS["relax"], result, recogniser=recognisers)
    assert (first.task.category, first.task.features) == (f"{name}_preprocess", {"atoms": 3.0})
    back = pickle.loads(pickle.dumps(result))
    first.recogniser.over(first.tag, (back, tmp_path, ([], None)), None, SIZING)

    second = arrival(APPS["relax_execute"], tmp_path, [], None, recogniser=recognisers)
    assert (second.task.category, second.task.features) == (f"{name}_execute", {"atoms": 3.0})
    second.recogniser.over(second.tag, 0, None, SIZING._replace(category="the execution"))

    third = arrival(APPS["relax_postprocess"], 0, back, tmp_path, None, recogniser=recognisers)
    assert (third.task.category, third.task.features) == (f"{name}_postprocess", {"atoms": 3.0})
    third.recogniser.over(third.tag, back, None, SIZING._replace(category="the last step"))
    assert back.task_info["sizing"]["category"] == "the execution"


def test_what_a_program_prints_is_not_added_to_that_of_an_attempt_before(tmp_path: Path) -> None:
    result = request("relax")
    first = arrival(APPS["relax"], result)
    assert first.task.opt_outs == set()
    assert first.instead == {}
    first.recogniser.over(first.tag, (result, tmp_path, ([], None)), None, SIZING)
    files = {"stdout": str(tmp_path / "out"), "stderr": str(tmp_path / "err")}
    second = intake.task_info(
        1,
        APPS["relax_execute"],
        ((tmp_path,), {**files, "node_count": 1}),
        {},
        now=0.0,
        recognisers=Recognisers(pytest.fail),
    )
    assert second.instead == {name: (path, "w") for name, path in files.items()}


def test_an_executable_that_is_over_is_forgotten(tmp_path: Path) -> None:
    first = arrival(APPS["relax"], request("relax"))
    back = request("relax", task_info={"category": "tight"})
    first.recogniser.over(first.tag, (back, tmp_path, ([], None)), None, SIZING)
    assert arrival(APPS["relax_execute"], tmp_path).task.category == "tight_execute"
    del back
    later = arrival(APPS["relax_execute"], tmp_path)
    assert (later.task.category, later.tag) == ("relax_execute", None)


def test_a_step_of_an_executable_is_called_by_its_method() -> None:
    step = partial(_execute_execute, methods.Relax())
    step.__name__ = "relax_execute"
    assert arrival(step, "nowhere").task.category == "relax_execute"


@pytest.mark.parametrize("pack", [lambda result: result, lambda result: (result, "run", ())])
def test_an_error_in_a_result_is_seen(pack: Any) -> None:
    see = Colmena().error_in
    assert isinstance(see(pack(failed(MemoryError()))), MemoryError)
    with pytest.raises(MemoryError) as refused:
        numpy.empty(1 << 50, dtype="u1")
    assert isinstance(see(pack(failed(refused.value))), MemoryError)
    other = see(pack(failed(ValueError("no memory of it"))))
    assert not isinstance(other, MemoryError)
    assert "no memory of it" in str(other)
    assert isinstance(see(pack(request(success=False))), RuntimeError)
    assert see(pack(request(success=True))) is None
    assert see(pack(request())) is None


@pytest.mark.parametrize("value", [None, 0, (), ((),), "text", {"success": False}])
def test_what_is_no_result_hides_no_error(value: object) -> None:
    assert Colmena().error_in(value) is None


def test_the_thinker_is_told_in_the_result_that_is_sent_back() -> None:
    seen = arrival(APPS["simulate"], request(task_info={"atoms": 3}))
    value = request(task_info={"atoms": 3})
    seen.recogniser.over(seen.tag, value, None, SIZING)
    sizing = value.task_info["sizing"]
    assert sizing["category"] == "simulate"
    assert sizing["allocation"] == {"memory": 2e8}
    assert sizing["peak"] == {"memory": 1.5e8}
    assert [attempt["ending"] for attempt in sizing["attempts"]] == ["exhausted", "done"]
    assert seen.tag.result.task_info == {"atoms": 3}  # nobody sends that one
    assert value.task_info["atoms"] == 3
    assert Result.model_validate_json(value.json()).task_info == value.task_info
    assert len(json.dumps(sizing)) < 1000


@pytest.mark.parametrize("info", [None, {}, {"atoms": 3}])
def test_if_there_is_no_result_the_request_is_sent_back(info: Any) -> None:
    result = request(task_info=info)
    seen = arrival(APPS["simulate"], result)
    seen.recogniser.over(seen.tag, None, ValueError("no"), Sizing("simulate", ()))
    assert result.task_info["sizing"]["attempts"] == []
    assert Result.model_validate_json(result.json()).task_info == result.task_info


def test_inputs_in_a_store_are_said_and_the_task_is_run_once() -> None:
    told: list[str] = []
    recognisers = Recognisers(told.append)
    result = request()
    result.time.proxy["key"] = {}
    task = arrival(APPS["simulate"], result, recogniser=recognisers).task
    assert task.opt_outs == {OptOut.NO_RETRY, OptOut.NEVER_KILL}
    assert len(told) == 1
    assert "'simulate'" in told[0]
    assert "ProxyStore" in told[0]
    run = request("relax")
    run.time.proxy["key"] = {}
    assert arrival(APPS["relax"], run, recogniser=recognisers).task.opt_outs
    last = arrival(APPS["relax_postprocess"], 0, run, "run", None, recogniser=recognisers)
    assert not last.task.opt_outs  # the inputs are read before


def test_it_never_raises() -> None:
    told: list[str] = []
    careful = Careful(Colmena(), told.append)
    strange = request()
    strange.message_sizes = None
    assert careful.see(PythonMethod(methods.simulate), (strange,), {}) is None
    assert len(told) == 1
