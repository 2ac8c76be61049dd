"""What can be read: pages and JSON, the same as the commands give."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from parsl_sizer.archive.base import Entry, Run
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.server import listing
from parsl_sizer.server.app import App
from parsl_sizer.server.guard import Guard
from parsl_sizer.testing.archive_laws import entries

Get = Callable[..., Any]
HOSTILE = "</a><script>document.title='broken'</script>/../%2e?&#\"'"


@pytest.fixture
def printed(archive: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """What a command prints with --json."""

    def run(*arguments: str) -> Any:
        assert main([*arguments, "--json", "--archive", str(archive)]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", ""),
        ("category=sort", "--category sort"),
        ("run=run-1&last=5", "--run run-1 --last 5"),
        ("user=ann&ending=lost&ending=done", "--user ann --ending lost --ending done"),
        ("workflow=flow0.py&source=live&host=", "--workflow flow0.py --source live"),
        ("command=MEM&memory=1GB..5GB", "--command MEM --memory 1GB..5GB"),
        ("input=s3_1", "--input s3_1"),
        ("label=sample%3D2&label=campaign=0", "--label sample=2 --label campaign=0"),
        ("since=1970-01-01T00:05:10Z&time=..1m", "--since 1970-01-01T00:05:10Z --time ..1m"),
        ("category=%C3%BC/%E2%98%83", "--category ü/☃"),
    ],
)
def test_attempts_and_runs_are_those_of_history(
    get: Get, printed: Callable[..., Any], query: str, options: str
) -> None:
    several = () if "last" in query else ("--last", "1000")
    found = get(f"/api/attempts?{query}").json
    assert found.pop("is_all") is (several != ())
    assert found == printed("history", *options.split(), *several)
    assert found["attempts"]
    if several:
        found = get(f"/api/runs?{query}").json
        assert found.pop("is_all") is True
        assert found == printed("history", "--runs", *options.split(), *several)


def test_letters_that_nobody_encoded_are_read_too(get: Get) -> None:
    raw = "ü/☃".encode().decode("latin-1")
    assert get(f"/api/attempts?category={raw}").json["attempts"]


def test_the_report_of_a_run_is_that_of_the_command(
    get: Get, printed: Callable[..., Any], archive: Path, tmp_path: Path
) -> None:
    page = tmp_path / "run.html"
    for wanted in ("run-1", "last"):
        assert get(f"/api/runs/{wanted}").json == printed("report", wanted, "--html", str(page))
        got = get(f"/runs/{wanted}")
        assert got.status == 200
        assert got.headers["Content-Type"] == "text/html; charset=utf-8"
        assert got.text == page.read_text(encoding="utf-8")


def test_the_first_page_has_the_runs_and_a_form(get: Get) -> None:
    text = get("/").text
    assert text.startswith("<!DOCTYPE html>")
    for number in range(3):
        assert f'<a href="runs/run-{number}">run-{number}</a>' in text
    text = get("/?user=bob").text
    assert "runs/run-1" in text
    assert "runs/run-0" not in text
    assert 'name="user" value="bob"' in text
    assert "There is none like that." in get("/?category=nothing").text


def test_a_name_is_text_on_the_page_and_leads_to_its_run(archive: Path, get: Get) -> None:
    opened = open_archive(archive)
    run = Run(HOSTILE, 5000.0, HOSTILE, HOSTILE, labels={HOSTILE: HOSTILE})
    opened.record([Entry(run, entries()[0].outcome)])
    opened.close()
    text = get("/").text
    assert "<script" not in text
    assert f'<a href="runs/{quote(HOSTILE, safe="")}">' in text
    assert get(f"/api/runs/{HOSTILE.partition('?')[0]}").status == 404
    assert get("/runs/x", PATH_INFO=f"/runs/{HOSTILE}").status == 200
    found = get("/api/runs/x", PATH_INFO=f"/api/runs/{HOSTILE}").json
    assert found["run"]["run_id"] == HOSTILE
    assert "<script" not in get(f"/?user={quote(HOSTILE)}").text
    assert "<script" not in get(f"/?{quote(HOSTILE)}={quote(HOSTILE)}").text
    assert "<script" not in get("/x", PATH_INFO=f"/{HOSTILE}").text


def test_more_is_shown_for_the_asking(get: Get) -> None:
    text = get("/?last=2&label=nested%3D").text
    assert "There is none like that." in text
    text = get("/?last=2&source=live&workflow=flow0.py").text
    assert "Show more" not in text
    text = get("/?last=2").text
    assert text.count('href="runs/') == 2
    assert '<a href="?last=8">Show more</a>' in text
    assert "Show more" not in get("/?last=3").text


def test_a_list_says_whether_it_is_all(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    for last, is_all in ((59, False), (60, True), (10_000, True)):
        found = get(f"/api/attempts?last={last}").json
        assert (found["is_all"], len(found["attempts"])) == (is_all, min(last, 60))
    assert get("/api/runs?last=2").json["is_all"] is False
    monkeypatch.setattr(listing, "MOST_LETTERS", 10_000)  # some have 5000 of their own
    got = get("/api/attempts")
    assert got.json["is_all"] is False
    assert 0 < len(got.json["attempts"]) < 60
    assert len(got.body) < 11_000


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("colour=red", "'colour' cannot be looked for; what is known is run, category, user,"),
        ("last=0", "last is '0', where a whole number from 1 to 10,000 is expected."),
        ("last=10001", "from 1 to 10,000"),
        ("last=1e3", "'1e3'"),
        ("last=%D9%A1", "last is"),
        ("last=" + "9" * 900, "last is"),
        ("since=soon", "since: 'soon' is no time; write it like 2025-03-01,"),
        ("memory=4GB", "memory: '4GB' is not a range;"),
        ("memory=1parsec..", "memory: memory='1parsec' is not an amount"),
        ("time=2h..1h", "time: '2h..1h' is a range that begins after its end."),
        ("ending=well", "ending: 'well' is none of done, raised, exhausted, lost."),
        ("label=x", "label: 'x' is not of the form NAME=VALUE."),
        ("label=a=1&label=b=1&label=a=2", "label: 'a' is given two values, '1' and '2'."),
        ("user=a&user=b", "user is there 2 times, and can be there once."),
        ("user=%FF", "not UTF-8"),
        ("user=\xff", "not UTF-8"),
        ("user=%00", "user is not a text"),
        ("user=" + "a" * 1001, "user is not a text of at most 1,000 letters."),
        ("user=&" * 60, "more than 50 things"),
    ],
)
def test_what_cannot_be_looked_for_is_told(get: Get, query: str, sentence: str) -> None:
    got = get(f"/api/attempts?{query}")
    assert got.status == 400
    assert sentence in got.error
    assert len(got.error) < 400


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/runs/none", 404),
        ("/api/runs/none", 404),
        ("/api/runs/" + "x" * 5000, 404),
        ("/api/runs/a\0b", 404),
        ("/runs/", 404),
        ("/api/", 404),
        ("/favicon.ico", 404),
        ("/runs/\xff", 400),
        ("/runs/run-1?user=ann", 400),
        ("", 404),
    ],
)
def test_what_is_not_there_is_told(get: Get, address: str, status: int) -> None:
    got = get(address)
    assert got.status == status
    if address.startswith("/api/"):
        assert got.error
    else:
        assert f"<h1>Error {status}</h1>" in got.text


@pytest.mark.parametrize("folder", ["", "/team/sizes"])
@pytest.mark.parametrize(
    "address", ["/?last=0", "/nothing", "/runs/none", "/runs/", "/runs/a%2Fb", "/a/b/c", "/%FF"]
)
def test_a_page_that_tells_of_an_error_leads_to_all_runs(
    get: Get, address: str, folder: str
) -> None:
    """Also where a proxy shows them in a folder of its own, which the server does not know of."""
    path, _, query = address.partition("?")
    decoded = unquote(path, encoding="latin-1")
    text = get(f"{decoded}?{query}").text
    [link] = re.findall('<a href="([^"]*)">All runs</a>', text)
    page = f"https://sizes.example.org{folder}"
    assert urljoin(f"{page}{address}", link) == f"{page}/"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", ""])
def test_reading_is_by_get_only(get: Get, method: str) -> None:
    for address in ("/", "/runs/run-1", "/api/runs", "/api/runs/run-1", "/api/attempts"):
        got = get(address, method=method)
        assert (got.status, got.headers["Allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_the_body(get: Get) -> None:
    for address in ("/", "/api/runs", "/nothing"):
        got, whole = get(address, method="HEAD"), get(address)
        assert (got.status, got.headers, got.body) == (whole.status, whole.headers, b"")


def test_every_answer_is_protected(get: Get) -> None:
    for address in ("/", "/runs/run-1", "/api/runs", "/nothing", "/api/attempts?x=y"):
        headers = get(address).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
        assert "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Set-Cookie" not in headers


def test_an_archive_that_cannot_be_used_is_told(ask: Get, tmp_path: Path) -> None:
    got = ask(App(tmp_path / "none.sqlite3", Guard()), "/api/runs")
    assert got.status == 503
    assert "no run has been recorded there yet" in got.error
    assert not (tmp_path / "none.sqlite3").exists()
    broken = tmp_path / "broken.sqlite3"
    broken.write_bytes(b"no archive at all" * 100)
    got = ask(App(broken, Guard()), "/")
    assert got.status == 503
    assert "is damaged" in got.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.sqlite3"]


def test_an_archive_is_served_by_who_may_only_read_it(
    ask: Get, new_database: Callable[[], str], new_role: Callable[[str, str], str]
) -> None:
    url = new_database()
    owned = open_archive(url)
    owned.record(entries())
    owned.close()
    app = App(new_role(url, "SELECT"), Guard())
    assert len(ask(app, "/api/attempts").json["attempts"]) == 60
    for address in ("/", "/runs/run-1", "/api/runs", "/api/runs/last"):
        assert ask(app, address).status == 200


def test_a_fault_of_ours_is_logged_and_not_shown(
    get: Get, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("parsl_sizer.server.app.open_archive", fails)
    for address in ("/", "/api/runs"):
        got = get(address)
        assert got.status == 500
        assert b"secret" not in got.body
        assert b"Traceback" not in got.body
    assert "a secret" in caplog.text


def test_reading_changes_nothing(get: Get, archive: Path) -> None:
    before = archive.read_bytes()
    for address in ("/", "/runs/run-1", "/api/runs", "/api/runs/run-1", "/api/attempts"):
        assert get(address).status == 200
    assert archive.read_bytes() == before


def test_it_keeps_the_rules_of_wsgi(app: App) -> None:
    for path in ("/", "/api/runs", "/api/outcomes", "/nothing"):
        environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": "", "SCRIPT_NAME": ""}
        setup_testing_defaults(environ)
        found = validator(app)(environ, lambda *_: lambda _: None)
        assert b"".join(found)
        found.close()  # type: ignore[attr-defined]
