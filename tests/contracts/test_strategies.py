"""Every strategy of the catalog, and every variant of the papers, keeps every law."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from parsl_sizer.strategies.catalog import VARIANTS, entries
from parsl_sizer.testing import LAWS

NAMES = sorted({*entries(), *VARIANTS})

PROPOSALS = """
import json, sys
from parsl_sizer.testing import lessons
from parsl_sizer.testing.trial import Trial
found = {}
for name in json.load(sys.stdin):
    proposals = Trial(name).learn(lessons(60)).proposals()
    found[name] = [[dict(p.amounts), str(p.why)] for p in proposals]
print(json.dumps(found, sort_keys=True))
"""


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", NAMES)
def test_a_strategy_of_the_catalog_keeps_the_law(name: str, law: Callable[[str], None]) -> None:
    law(name)


def test_proposals_do_not_depend_on_the_process() -> None:
    """Replaying the archive is the checkpoint, so Python's random hashes must not matter."""

    def proposals(seed: str) -> dict[str, object]:
        ran = subprocess.run(
            [sys.executable, "-c", PROPOSALS],
            input=json.dumps(NAMES),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)  # type: ignore[no-any-return]

    one, other = proposals("1"), proposals("2")
    assert [name for name in NAMES if one[name] != other[name]] == []
