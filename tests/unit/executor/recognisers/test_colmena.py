"""What can be said of Colmena where it is not installed; the rest is in tests/integration."""

from __future__ import annotations

import functools
import json
import subprocess
import sys

import pytest

from parsl_sizer.executor.recognisers.catalog import claimed_by
from parsl_sizer.executor.recognisers.colmena import Colmena, as_plain_data
from parsl_sizer.executor.story import AttemptMade, Sizing
from parsl_sizer.model import Ending, Kind


def simulate(atoms: int) -> int:
    return atoms


class Method:
    """Has the name of one of Colmena's, and is none."""

    name = "simulate"

    def __call__(self, result: object) -> object:
        return result


@pytest.mark.parametrize("function", [simulate, Method(), Method, print, functools.partial(print)])
def test_other_functions_are_not_claimed(function: object) -> None:
    assert not Colmena.claims(function)
    assert claimed_by(function) is None


@pytest.mark.parametrize("args", [(), (1,), ({"method": "simulate"},)])
def test_a_call_without_a_request_is_about_nothing(args: tuple[object, ...]) -> None:
    assert Colmena().see(simulate, args, {}) is None


def test_a_thinker_is_told_in_plain_data() -> None:
    given, used = {Kind.MEMORY: 2e8, Kind.CORES: 1.0}, {Kind.MEMORY: 1.5e8}
    made = [
        AttemptMade(1, Ending.EXHAUSTED, {Kind.MEMORY: 1e8}, {Kind.MEMORY: 1.2e8}, 0.5, "a", "n1"),
        AttemptMade(2, Ending.DONE, given, used, 2.0, "100 MB was too small", None),
    ]
    told = as_plain_data(Sizing("simulate", tuple(made)))
    assert json.loads(json.dumps(told)) == told
    assert told["category"] == "simulate"
    assert told["allocation"] == {"memory": 2e8, "cores": 1.0}
    assert told["peak"] == {"memory": 1.5e8}
    assert told["attempts"] == [
        {
            "ending": "exhausted",
            "allocation": {"memory": 1e8},
            "peak": {"memory": 1.2e8},
            "wall_s": 0.5,
            "host": "n1",
            "why": "a",
        },
        {
            "ending": "done",
            "allocation": {"memory": 2e8, "cores": 1.0},
            "peak": {"memory": 1.5e8},
            "wall_s": 2.0,
            "host": None,
            "why": "100 MB was too small",
        },
    ]


def test_colmena_is_not_imported_for_those_who_do_without() -> None:
    code = (
        "import sys; from parsl_sizer import SizedExecutor; SizedExecutor(); "
        "from parsl_sizer.executor.recognisers.catalog import claimed_by; claimed_by(print); "
        "print([name for name in sys.modules if name.partition('.')[0] == 'colmena'])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
