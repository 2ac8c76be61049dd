"""An executor that removes the temporary files of its tasks."""

from __future__ import annotations

from pathlib import Path

import sizer_tasks as tasks
from sizer_runs import htex, running, sized

LIMIT_S = 100


def test_the_option_removes_the_temporary_files_of_all_tasks(tmp_path: Path) -> None:
    with running(sized(htex(), clean_files=True), tmp_path):
        assert not Path(tasks.write_temporary(b"nine").result(LIMIT_S)).exists()
