"""What a terminal shows while a run lasts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

SCRIPT = """
    import time
    import parsl
    from parsl import python_app
    from parsl.config import Config
    from parsl.executors import ThreadPoolExecutor
    from parsl_sizer import SizedExecutor

    names = ["first", "second"]
    executors = [SizedExecutor(ThreadPoolExecutor(label=name)) for name in names]
    with parsl.load(Config(executors=executors, run_dir="runs")):
        apps = [python_app(lambda: time.sleep(1.5), executors=[name]) for name in names]
        for future in [app() for app in apps]:
            future.result()
"""


def test_executors_have_a_line_each(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        cwd=tmp_path,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    shown = b""
    with os.fdopen(ours, "rb", 0) as terminal:
        try:
            while more := terminal.read(4096):
                shown += more
        except OSError:  # that is how the end of a terminal looks
            pass
    assert process.wait() == 0, shown.decode(errors="replace")
    assert b"first: 0 over, 1 running, 0 waiting" in shown
    assert b"second: 0 over, 1 running, 0 waiting" in shown
    assert b"Traceback" not in shown
