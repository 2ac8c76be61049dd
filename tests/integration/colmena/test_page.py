"""The page for users of Colmena, and its example, do what they say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("colmena", reason="Colmena is not installed here")

from colmena_runs import recorded

from parsl_sizer.model import Ending

PATIENCE_S = 200
BLOCK = re.compile(
    r"^<!-- run with colmena -->\n+```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE
)


def printed(folder: Path, *command: str, **environment: str) -> str:
    """What a script prints; it ends well, and by itself."""
    log = folder / "output.txt"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            status = process.wait(PATIENCE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    text = log.read_text(errors="replace")
    assert status == 0, text
    return text


def test_the_program_of_the_page_runs(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "guides" / "colmena.md").read_text()
    assert page.count("<!-- run with colmena -->") == len(BLOCK.findall(page)) == 1
    script = tmp_path / "script.py"
    script.write_text(BLOCK.findall(page)[0])
    lines = printed(tmp_path, script.name).splitlines()
    assert sum(line.startswith("large molecule {'") for line in lines) == 2
    assert sum(line.startswith("small molecule {'") for line in lines) == 3


@pytest.mark.parametrize("tags", [True, False], ids=["tagged", "untagged"])
def test_every_task_of_the_example_is_known_for_what_it_is(
    root: Path, tmp_path: Path, tags: bool
) -> None:
    archive = tmp_path / "archive.sqlite3"
    options = ["--rounds", "2", "--count", "4", *([] if tags else ["--no-tags"])]
    script = str(root / "examples" / "colmena_steering.py")
    text = printed(tmp_path, script, *options, PARSL_SIZER_ARCHIVE=str(archive))
    found = re.search(r"The best of (\d+) molecules", text)
    assert found, text
    tasks = [outcome.attempt.task for outcome in recorded(archive) if outcome.ending is Ending.DONE]
    simulations = [task for task in tasks if task.command == "__main__.simulate"]
    inferences = [task for task in tasks if task.command == "__main__.infer"]
    assert len(simulations) + len(inferences) == len(tasks)
    assert len(simulations) == int(found[1])
    assert len(inferences) == 2
    for task in simulations:
        assert task.features["input_size"] > 0
        if tags:
            size = "large" if task.features["atoms"] >= 1200 else "small"
            assert task.category == f"simulate, {size}"
        else:
            assert (task.category, set(task.features)) == ("simulate", {"input_size"})
    for task in inferences:
        assert (task.category, set(task.features)) == ("infer", {"input_size"})
