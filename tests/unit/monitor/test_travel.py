"""What engines are given crosses to workers that have no package, and is cheap to send."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import dill
import pytest
from parsl.serialize import deserialize, pack_apply_message, serialize

import parsl_sizer.monitor
from parsl_sizer.monitor import layers, travel
from parsl_sizer.monitor.wire import Plain, opened

Order = Callable[..., dict[str, Any]]

ELSEWHERE = """
    import json, sys
    sys.modules["parsl_sizer"] = None
    import dill
    callable_, order, args = dill.load(sys.stdin.buffer)
    report = callable_(order, *args)
    again = callable_(order, *args)
    if isinstance(report, bytes):
        [wire] = [sys.modules[name] for name in sys.modules if name.endswith(".wire")]
        report = wire.opened(report)
    loaded = sorted(name for name in sys.modules if name.startswith("_parsl_sizer_monitor"))
    packages = {name.partition(".")[0] for name in loaded}
    del report["payload"]
    print(json.dumps({"report": report, "type": type(report).__name__, "packages": len(packages)}))
"""


def elsewhere(callable_: Any, order: dict[str, Any], *args: Any) -> dict[str, Any]:
    """Run in an interpreter that cannot import the package."""
    data = dill.dumps((callable_, order, args))
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ELSEWHERE)],
        input=data,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


def test_packed_calls_run_where_the_package_is_not(order: Order) -> None:
    buffer = pack_apply_message(json.dumps, ([1],), {})
    found = elsewhere(travel.run_packed, order(), buffer)
    assert found["report"]["ending"] == "returned"
    assert found["report"]["isolation"] == "runner"
    assert found["packages"] == 1


@pytest.mark.parametrize("mode", ["fork", "inline"])
def test_wrapped_functions_run_where_the_package_is_not(order: Order, mode: str) -> None:
    found = elsewhere(travel.wrapped(json.dumps), order(mode), [1])
    assert found["report"]["ending"] == "returned"
    assert found["report"]["isolation"] == mode
    assert found["report"].get("result", "[1]") == "[1]"


@pytest.mark.parametrize("pickler", [dill, cloudpickle, pickle])
def test_any_pickler_will_do(pickler: Any, order: Order) -> None:
    packed = pickle.loads(pickler.dumps(travel.run_packed))
    assert opened(packed(order(), pack_apply_message(double, (2,), {})))["ending"] == "returned"
    wrapped = pickle.loads(pickler.dumps(travel.wrapped(json.dumps)))
    assert wrapped(order("inline"), [1])["result"] == "[1]"


def test_what_has_travelled_can_travel_on() -> None:
    once = pickle.loads(pickle.dumps(travel.run_packed))
    twice = pickle.loads(pickle.dumps(once))
    assert once is twice is not travel.run_packed
    assert type(once).__module__.startswith("_parsl_sizer_monitor_")


def test_a_function_has_one_wrapper() -> None:
    assert travel.wrapped(double) is travel.wrapped(double)
    assert hash(travel.wrapped(double))


def test_what_is_equal_or_unhashable_has_a_wrapper_of_its_own() -> None:
    class Equal:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

        def __call__(self) -> None:
            pass

    one, other = Equal(), Equal()
    assert travel.wrapped(one) is not travel.wrapped(other)
    assert travel.wrapped(one).func is one


def test_wrappers_are_not_kept_for_ever() -> None:
    for _ in range(2 * travel.KEPT):
        travel.wrapped(lambda: None)
    assert len(travel._wrappers) <= travel.KEPT


def test_a_wrapper_bears_the_name_of_its_function() -> None:
    wrapped = travel.wrapped(double)
    assert (wrapped.__name__, wrapped.__doc__) == ("double", "Twice as much.")
    assert travel.wrapped(partial(double, 2)).__name__ == "partial"
    assert pickle.loads(pickle.dumps(travel.wrapped(json.dumps))).__name__ == "dumps"


def test_a_users_argument_called_order_is_left_to_the_user(order: Order) -> None:
    def sort(*, order: str, self: str) -> str:
        return order + self

    wrapped = travel.wrapped(sort)
    assert wrapped(order("inline"), order="up", self="down")["result"] == "updown"


def test_all_modules_travel_that_are_needed_in_tasks() -> None:
    folder = Path(parsl_sizer.monitor.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert set(travel.MODULES) == files - {Path(layers.__file__).stem}


def test_what_crosses_with_every_task_is_small() -> None:
    assert len(serialize(travel.run_packed)) < 30_000


def test_reports_and_orders_arrive_as_plain_dictionaries(order: Order) -> None:
    report = Plain(order("inline"), payload=b"1", series=[(0.5, 3)])
    came = deserialize(serialize(report))
    assert type(came) is dict
    assert came["payload"] == b"1"
    assert came["series"] == [[0.5, 3]]


def test_packed_calls_report_in_bytes(order: Order) -> None:
    came = travel.run_packed(order(), pack_apply_message(double, (3,), {}))
    assert isinstance(came, bytes)
    assert opened(came)["result"] == 6


def test_a_light_callable_cannot_be_unpacked_where_the_package_is_not() -> None:
    script = "import dill, sys; sys.modules['parsl_sizer'] = None; dill.load(sys.stdin.buffer)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        input=dill.dumps(travel.run_packed_light),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 1
    assert b"ModuleNotFoundError" in ran.stderr


def test_a_light_callable_is_enough_where_the_package_is(order: Order) -> None:
    data = serialize(travel.run_packed_light)
    assert len(data) < 200
    buffer = pack_apply_message(json.dumps, ([1],), {})
    came = deserialize(data)(order(package=travel.package()), buffer)
    assert opened(came)["result"] == "[1]"


def test_a_light_callable_wants_the_same_version(order: Order) -> None:
    light = pickle.loads(pickle.dumps(travel.run_packed_light))
    came = light(order(package="_parsl_sizer_monitor_other"), b"")
    assert opened(came)["ending"] == "unequipped"
