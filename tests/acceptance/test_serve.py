"""``parsl-sizer serve`` as a team uses it: started, read, posted to, looked at, ended."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.model import Ending, Resources
from parsl_sizer.simulator.cluster import replay_cluster
from parsl_sizer.simulator.generate import generate
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies.base import Setting
from parsl_sizer.strategies.catalog import family

CHROMIUM = shutil.which("chromium")
PATIENCE_S = 60
TOKEN = "a-token-for-tests-only"
HOSTILE = "</td><script>document.title='broken'</script>" + "long" * 60
RUNS = {"run-1": ("jane", "align.py"), "run-2": ("joe", HOSTILE), "a/b c%": (HOSTILE, None)}


class Server(NamedTuple):
    """A server that runs, and how it is asked."""

    process: subprocess.Popen[str]
    address: str

    def get(self, path: str, **headers: str) -> bytes:
        request = Request(self.address + path, headers=headers)
        with urlopen(request, timeout=PATIENCE_S) as answer:
            found: bytes = answer.read()
        return found

    def post(self, body: bytes, token: str = TOKEN) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        request = Request(f"{self.address}api/outcomes", body, headers)
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)


@contextmanager
def serving(
    archive: Path, *options: str, ends_by: int = signal.SIGTERM, **limits: int
) -> Iterator[Server]:
    """The command itself, until it is told to end; it must do so, and leave nothing open."""
    program = f"""\
import sys
from parsl_sizer.cli import main
from parsl_sizer.server.serve import LIMITS
LIMITS.update({limits})
sys.exit(main())"""
    command = [sys.executable, "-X", "dev", "-c", program, "serve", "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, "--archive", str(archive), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PARSL_SIZER_TOKEN": TOKEN},
    )
    assert process.stdout is not None
    try:
        told = ""
        while not told.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            told += line
        facts = json.loads(told)
        assert facts["archive"] == str(archive)
        assert facts["can_post"] is True
        yield Server(process, facts["address"])
        process.send_signal(ends_by)
        out, error = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in error
    assert "ResourceWarning" not in error
    assert "no encryption" not in error  # nobody is between this machine and itself


def filled(path: Path) -> Path:
    archive = open_archive(path)
    for number, (name, (user, workflow)) in enumerate(RUNS.items()):
        found: list[Any] = []
        replay_cluster(
            generate("bimodal", 60, number),
            Categories(family("auto", Setting())),
            Resources(cores=16, memory=64e9, disk=64e9),
            nodes=2,
            ttf=0.7,
            settled=lambda task, found=found: found.extend(task.outcomes),
        )
        run = Run(name, 1.7e9 + number, user, workflow)
        archive.record([Entry(run, outcome) for outcome in found])
    archive.close()
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(filled(tmp_path_factory.mktemp("served") / "archive.sqlite3")) as found:
        yield found


def test_a_program_asks_for_runs_and_attempts(server: Server) -> None:
    listed = json.loads(server.get("api/runs"))["runs"]
    assert {line["run"]: line["user"] for line in listed} == {n: u for n, (u, _) in RUNS.items()}
    found = json.loads(server.get("api/attempts?run=run-1&ending=done&last=5"))
    assert [item["ending"] for item in found["attempts"]] == [Ending.DONE.value] * 5
    assert found["is_all"] is False
    assert json.loads(server.get("api/runs/a%2Fb%20c%25"))["run"]["run_id"] == "a/b c%"


def test_the_page_of_a_run_is_the_report(server: Server, tmp_path: Path) -> None:
    archive = json.loads(server.get("api/runs"))["archive"]
    page = tmp_path / "run.html"
    assert main(["report", "run-1", "--html", str(page), "--archive", archive]) == 0
    assert server.get("runs/run-1") == page.read_bytes()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("api/attempts?last=all", {}, 400),
        ("api/runs", {"Host": "evil.example"}, 403),
        ("runs/none", {}, 404),
        ("api/outcomes", {}, 405),
        ("api/runs?user=" + "x" * 40_000, {}, 431),
    ],
)
def test_what_is_refused_says_so(
    server: Server, path: str, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(HTTPError) as caught:
        server.get(path, **headers)
    with caught.value as answer:
        assert answer.code == status
        assert answer.read()


def test_an_export_is_posted_from_another_machine(tmp_path: Path) -> None:
    theirs, exported = filled(tmp_path / "theirs.sqlite3"), tmp_path / "attempts.jsonl"
    assert main(["export", "--run", "run-1", "-o", str(exported), "--archive", str(theirs)]) == 0
    body = exported.read_bytes()
    count = body.count(b"\n")
    team = tmp_path / "team.sqlite3"
    with serving(team, ends_by=signal.SIGINT) as server:
        assert server.post(body) == {"archive": str(team), "taken": count, "new": count}
        assert server.post(body)["new"] == 0
        assert [line["attempts"] for line in json.loads(server.get("api/runs"))["runs"]] == [count]
        for token, sent, status in (
            ("another-token-than-that", body, 401),
            (TOKEN, body + b"{}\n", 400),
            (TOKEN, b"\n" * 10_000_001, 413),
        ):
            with pytest.raises(HTTPError) as caught:
                server.post(sent, token)
            with caught.value as answer:
                assert answer.code == status
                answer.read()
        assert [line["attempts"] for line in json.loads(server.get("api/runs"))["runs"]] == [count]


def test_what_is_private_is_read_with_the_token_only(tmp_path: Path) -> None:
    with serving(filled(tmp_path / "archive.sqlite3"), "--private") as server:
        said = {"Authorization": f"Bearer {TOKEN}"}
        assert len(json.loads(server.get("api/runs", **said))["runs"]) == len(RUNS)
        for path in ("", "api/runs", "runs/run-1"):
            with pytest.raises(HTTPError) as caught:
                server.get(path)
            with caught.value as answer:
                assert answer.code == 401
                assert b"run-1" not in answer.read()


def test_far_too_much_is_refused_before_it_is_sent(server: Server) -> None:
    head = f"POST /api/outcomes HTTP/1.1\r\nHost: localhost\r\nContent-Length: {10**12}\r\n\r\n"
    with connected(server) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


def connected(server: Server) -> socket.socket:
    host, port = server.address.removeprefix("http://").rstrip("/").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


HEAD = b"POST /api/outcomes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
GET = b"GET /api/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SOON_S = 5


def test_slow_and_many_clients_keep_no_other_waiting(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(connected(server)).sendall(HEAD)
        connection = stack.enter_context(connected(server))
        connection.settimeout(SOON_S)
        connection.sendall(GET)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("head", "more"),
    [(HEAD, b"X"), (HEAD + b"\r\n", b"X"), (b"\r\n", b"\r\n")],
    ids=["header", "body", "blank lines"],
)
def test_a_request_that_trickles_in_is_given_up_at_a_deadline(
    tmp_path: Path, head: bytes, more: bytes
) -> None:
    limits = {"connection_limit": 12, "channel_timeout": 1}
    with serving(filled(tmp_path / "archive.sqlite3"), **limits) as server, ExitStack() as stack:
        trickling = {stack.enter_context(connected(server)) for _ in range(20)}
        for connection in trickling:
            connection.sendall(head)
        asking = stack.enter_context(connected(server))
        asking.sendall(GET)
        until = time.monotonic() + PATIENCE_S / 3
        while trickling and time.monotonic() < until:
            closed, _, _ = select.select(trickling, [], [], 0.1)
            trickling = {one for one in trickling - {*closed} if sent(one, more)}
        assert not trickling
        assert asking.recv(1000).startswith(b"HTTP/1.1 200 ")


def sent(connection: socket.socket, more: bytes) -> bool:
    """Whether the server still takes some bytes."""
    try:
        return connection.send(more) == len(more)
    except ConnectionError:
        return False


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, server: Server) -> Iterator[Callable[..., Any]]:
    """Opens the first page; whatever it complains about or asks of others is a failure."""
    contexts, complaints = [], []

    def look(width: int = 1280, scheme: str = "light", script: bool = True) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.address)
        return page

    asked: list[str] = []
    yield look
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith((server.address, "data:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_person_searches_and_opens_a_run(
    opened: Callable[..., Any], width: int, scheme: str
) -> None:
    page = opened(width, scheme)
    assert page.title() == "Runs: parsl-sizer"
    assert page.locator("#runs tbody tr").count() == len(RUNS)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for field in page.locator("form input").all():
        name = field.get_attribute("id")
        assert page.locator(f"label[for={name}]").is_visible()
        assert field.bounding_box()["height"] >= 44
    page.get_by_label("User").fill("jane")
    page.get_by_label("User").press("Enter")
    page.wait_for_url("**/?*user=jane*")
    assert page.locator("#runs tbody tr").count() == 1
    assert page.get_by_label("User").input_value() == "jane"
    page.get_by_role("link", name="run-1").click()
    page.wait_for_url("**/runs/run-1")
    assert page.title() == "align.py: what its tasks used"
    assert page.locator("h1").inner_text() == "align.py"


def test_without_scripts_it_is_the_same_and_odd_names_lead_where_they_should(
    opened: Callable[..., Any],
) -> None:
    page = opened(script=False)
    page.get_by_role("link", name="a/b c%").click()
    page.wait_for_url("**/runs/a%2Fb%20c%25")
    assert page.title() == "a/b c%: what its tasks used"


def test_what_is_wrong_is_told_on_a_page(browser: Any, server: Server) -> None:
    page = browser.new_page()
    answer = page.goto(f"{server.address}?since=soon")
    assert answer.status == 400
    assert "'soon' is no time; write it like" in page.locator("main").inner_text()
    page.get_by_role("link", name="All runs").click()
    page.wait_for_url(server.address)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_by_day_and_by_night_it_can_be_read(opened: Callable[..., Any], scheme: str) -> None:
    page = opened(scheme=scheme)
    for element in ("h1", "form label", "form input", "form button", "#runs a", "caption", "td"):
        text, ground = page.eval_on_selector(element, COLOURS)
        lighter, darker = max(text, ground), min(text, ground)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, element


COLOURS = """element => {
  const luminance = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(part => {
    const share = Number(part) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  let behind = element;
  const clear = "rgba(0, 0, 0, 0)";
  while (getComputedStyle(behind).backgroundColor === clear) behind = behind.parentElement;
  return [element, behind].map((found, at) =>
    luminance(getComputedStyle(found)[at ? "backgroundColor" : "color"]));
}"""
"""The luminance of an element's text and of what is behind it, as WCAG 2 defines them."""
