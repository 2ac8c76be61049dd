"""From a call to a task: names, hints, files."""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from parsl.app.bash import BashApp
from parsl.app.errors import wrap_error
from parsl.data_provider.files import File
from parsl.data_provider.http import HTTPInTaskStaging

from parsl_sizer.executor import intake
from parsl_sizer.executor.hints import BadHint, sized
from parsl_sizer.executor.naming import user_function
from parsl_sizer.executor.recognisers import Recognisers
from parsl_sizer.model import Kind


def align(x: int = 0, y: int = 0) -> int:
    return x + y


class Model:
    """Something that can be called."""

    def __call__(self, x: int) -> int:
        return x

    def method(self, x: int) -> int:
        return x


def bash_app_function(function: Any) -> Any:
    """What a bash app gives to its executor."""
    return BashApp(function, executors="all").wrapped_remote_function


def script() -> str:
    return "true"


def staged(function: Any) -> Any:
    """With a stage-in around it, as in-task staging does it."""
    executor = SimpleNamespace(working_dir=None)
    manager = SimpleNamespace(dfk=SimpleNamespace(executors={"x": executor}))
    return HTTPInTaskStaging().replace_task(manager, "x", File("http://host/file"), function)


def arrival(*args: Any, **kwargs: Any) -> intake.Arrival:
    return intake.task_info(*args, recognisers=Recognisers(lambda text: None), **kwargs)


def named(name: str, function: Any) -> Any:
    """A partial with a name, as Parsl wants it."""
    made = functools.partial(function)
    made.__name__ = name
    return made


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (align, "align"),
        (wrap_error(align), "align"),
        (functools.partial(align, 1), "align"),
        (wrap_error(functools.partial(align, 1)), "align"),
        (functools.partial(wrap_error(align), 1), "align"),
        (functools.partial(functools.partial(align, 1), 2), "align"),
        (wrap_error(named("trim", align)), "trim"),
        (named("trim", functools.partial(align, 1)), "trim"),
        (bash_app_function(named("trim", script)), "trim"),
        (staged(wrap_error(align)), "align"),
        (staged(staged(wrap_error(align))), "align"),
        (bash_app_function(script), "script"),
        (staged(bash_app_function(script)), "script"),
        (wrap_error(Model()), "Model"),
        (wrap_error(Model().method), "method"),
        (Model(), "Model"),
        (len, "len"),
    ],
)
def test_the_name_is_that_of_the_users_function(function: Any, name: str) -> None:
    task, *_ = arrival(1, function, ((), {}), {}, now=5.0)
    assert task.category == name
    assert task.submitted_at == 5.0


def test_lambdas_are_told_apart_by_where_they_are() -> None:
    one = wrap_error(lambda: 0)
    other = wrap_error(lambda: 1)
    names = [arrival(1, made, ((), {}), {}, now=0.0).task.category for made in (one, other)]
    assert names[0] != names[1]
    assert all(name.startswith("<lambda> in test_intake.py, line ") for name in names)


def test_functions_that_wrap_each_other_in_a_circle_are_no_trap() -> None:
    def one() -> None: ...

    def two() -> None: ...

    one.__wrapped__, two.__wrapped__ = two, one
    assert user_function(one) is one


def test_the_code_is_known_by_its_hash() -> None:
    def one(x: int) -> int:
        return x + 1

    def other(x: int) -> int:
        return x + 2

    def hash_of(function: Any) -> str | None:
        return arrival(1, function, ((), {}), {}, now=0.0)[0].code_hash

    assert hash_of(wrap_error(one)) == hash_of(one) != hash_of(other)
    assert hash_of(len) is None


def test_who_says_the_category() -> None:
    @sized(category="of the app")
    def hinted() -> None: ...

    def by_argument(function: Any, args: Any, kwargs: Any) -> str | None:
        assert function in (align, hinted)
        return kwargs.get("kind")

    def category(function: Any, spec: dict[str, object], **kwargs: Any) -> str:
        task, *_ = arrival(
            1, wrap_error(function), ((), kwargs), spec, now=0.0, categorise=by_argument
        )
        return task.category

    assert category(hinted, {"category": "of the call"}, kind="of the callable") == "of the call"
    assert category(hinted, {}, kind="of the callable") == "of the app"
    assert category(align, {}, kind="of the callable") == "of the callable"
    assert category(align, {}) == "align"


@pytest.mark.parametrize("answer", [3, "", b"bytes", ["list"], ValueError("no")])
def test_a_category_function_that_fails_or_lies_is_passed_over(answer: object) -> None:
    def broken(function: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    told: list[str] = []
    task, *_ = arrival(1, align, ((), {}), {}, now=0.0, categorise=broken, warn=told.append)
    assert task.category == "align"
    assert len(told) == 1
    assert "sized by the name of their function" in told[0]


def test_hints_of_app_and_call_are_joined() -> None:
    @sized(memory="1GB", labels={"who": "app"})
    def app() -> None: ...

    task, hints, *_ = arrival(
        7,
        wrap_error(app),
        ((), {}),
        {"cores": 2, "labels": {"sample": 1}, "priority": 9},
        now=0.0,
    )
    assert task.requested == {Kind.MEMORY: 1e9, Kind.CORES: 2.0}
    assert task.labels == {"who": "app", "sample": 1}
    assert hints.given == {"priority": 9}


def test_a_wrong_hint_is_not_passed_over() -> None:
    with pytest.raises(BadHint):
        arrival(1, align, ((), {}), {"memory": "lots"}, now=0.0)


def test_files_are_inputs_wherever_they_are_among_the_arguments() -> None:
    a, b, c, d, out = (File(name) for name in "abcde")
    kwargs = {"inputs": [b, 5], "model": c, "more": (d,), "stdout": out, "outputs": [out]}
    assert intake.input_files((a, 1), kwargs) == [a, c, b, d]
    assert intake.input_files((), {}) == []


def test_sizes_are_known_only_if_all_are(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"x" * 10)
    two.write_bytes(b"x" * 5)
    known = [File(str(one)), File(str(two))]
    assert intake.size_of(known) == 15
    assert intake.size_of([]) == 0
    assert intake.size_of([*known, File(str(tmp_path / "absent"))]) is None
    assert intake.size_of([*known, File("http://host/remote")]) is None
    assert intake.size_of([File(f"file://host{one}")]) == 10
