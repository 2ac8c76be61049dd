"""The end of a run, wanted or not: no future stays pending, nothing hangs, nothing is left."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.data_provider.files import File
from parsl.errors import ParslError
from sizer_interrupted import ends_all
from sizer_runs import htex, running, sized, wait_until

from parsl_sizer import sizing_of
from parsl_sizer.executor.driver import ShutDown
from parsl_sizer.model import SizerError

LIMIT_S = 100


def test_what_is_held_and_what_runs_fails_when_the_executor_is_shut_down(tmp_path: Path) -> None:
    made = sized(htex(), node="cores=2,memory=1GB")
    with running(made, tmp_path) as dfk:
        begun = tmp_path / "begun"
        whole = {"memory": 1000, "fixed": True}
        never = str(tmp_path / "never")
        runs = tasks.hold_until(never, 1, str(begun), parsl_resource_specification=whole)
        tasks.wait_for(begun)
        held = [tasks.hold_until(never, 1, parsl_resource_specification=whole) for _ in range(20)]
        after = tasks.add(held[0], 1)
        dfk.cleanup()
        for future in [runs, *held]:
            with pytest.raises((SizerError, ParslError)):
                future.result(LIMIT_S)
        assert isinstance(held[-1].exception(LIMIT_S), ShutDown)
        assert after.exception(LIMIT_S) is not None
        assert sizing_of(held[-1]) is None


def test_tasks_submitted_while_and_after_it_shuts_down_fail(tmp_path: Path) -> None:
    made = sized(htex())
    with running(made, tmp_path) as dfk:
        assert tasks.add(1, 2).result(LIMIT_S) == 3
        spec = {"memory": 100}
        submitted = []
        stop = threading.Event()

        def keep_submitting() -> None:
            while not stop.is_set():
                submitted.append(made.submit(len, spec, "abc"))
                stop.wait(0.01)

        thread = threading.Thread(target=keep_submitting)
        thread.start()
        wait_until(lambda: len(submitted) > 20, "some submissions")
        dfk.cleanup()
        stop.set()
        thread.join()
        for future in submitted:
            wait_until(future.done, f"an end of {future}", LIMIT_S)
        with pytest.raises(Exception, match=r"shut down"):
            made.submit(len, spec, "abc").result(LIMIT_S)


class SlowFile(File):
    """On a file system that does not answer."""

    def __init__(self, url: str, answers: threading.Event) -> None:
        super().__init__(url)
        self.answers = answers
        self.asked = threading.Event()

    @property
    def filepath(self) -> str:
        self.asked.set()
        self.answers.wait(LIMIT_S)
        return str(super().filepath)

    def __reduce__(self):
        return File, (self.url,)


def test_tasks_whose_inputs_are_still_looked_at_fail_when_it_is_shut_down(tmp_path: Path) -> None:
    answers = threading.Event()
    files = [SlowFile(str(tmp_path / f"{number}"), answers) for number in range(10)]
    made = sized(htex())
    with running(made, tmp_path) as dfk:
        futures = [made.submit(len, {}, [file]) for file in files]
        wait_until(lambda: files[0].asked.is_set(), "a look at the first file")
        dfk.cleanup()
        answers.set()
        for future in futures:
            wait_until(future.done, f"an end of {future}", LIMIT_S)


@pytest.mark.parametrize("to", ["process", "group"])
def test_control_c_ends_the_program_and_all_that_it_started(tmp_path: Path, to: str) -> None:
    """A terminal sends it to the whole group: the workers and the runners too."""
    ends_all("one_group", tmp_path, os.killpg if to == "group" else os.kill)
