"""The probes run where the package is not installed."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
import uuid
from pathlib import Path

from parsl_sizer.profiling import travel

ELSEWHERE = """\
import pickle, sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("parsl_sizer", "parsl", "numpy", "psutil"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NotInstalled())
visit = pickle.loads(sys.stdin.buffer.read())
print(visit(sys.argv[1], 1.0, extra=["flag_avx2"], use_tools=False))
"""


def test_a_node_without_the_package_is_profiled(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", ELSEWHERE, uuid.uuid4().hex],
        input=pickle.dumps(travel.visit_node),
        env={"TMPDIR": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    told = ast.literal_eval(ran.stdout.decode())
    assert told["features"]["cpu_single"] > 0
    assert told["methods"]["cpu_single"].startswith("built-in")


def test_all_modules_travel_that_run_on_nodes() -> None:
    folder = Path(travel.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "profile", "travel"}
    assert modules == set(travel.MODULES)
