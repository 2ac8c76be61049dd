"""Files that are fetched and put away, in tasks of their own and within a task."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import sizer_apps as apps
from parsl.data_provider.file_noop import NoOpFileStaging
from parsl.data_provider.files import File
from parsl.data_provider.http import HTTPInTaskStaging, HTTPSeparateTaskStaging
from parsl.data_provider.zip import ZipFileStaging
from sizer_runs import htex, running, sized

from parsl_sizer import sizing_of

LIMIT_S = 60


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server that has a file called remote.txt."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "remote.txt").write_text("from afar")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("fetching", [HTTPSeparateTaskStaging, HTTPInTaskStaging])
def test_files_are_fetched_and_put_away(address: str, fetching: Any, tmp_path: Path) -> None:
    inner = htex(
        storage_access=[NoOpFileStaging(), ZipFileStaging(), fetching()],
        working_dir=str(tmp_path / "work"),
    )
    archive = tmp_path / "archive.zip"
    with running(sized(inner), tmp_path):
        future = apps.concatenated(
            inputs=[File(f"{address}/remote.txt")], outputs=[File(f"zip:{archive}/in/it.txt")]
        )
        assert future.result(LIMIT_S) == 0
        assert future.outputs[0].result(LIMIT_S)
        assert sizing_of(future).category == "concatenated"
        again = apps.content(inputs=[future.outputs[0]])
        assert again.result(LIMIT_S) == ["from afar"]
    with zipfile.ZipFile(archive) as opened:
        assert opened.read("in/it.txt") == b"from afar"
