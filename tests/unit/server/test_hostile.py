"""Whatever comes in: an answer, and nothing is changed that may not be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsl_sizer.archive.lines import line_of
from parsl_sizer.archive.open import open_archive
from parsl_sizer.server.app import App
from parsl_sizer.server.guard import Guard
from parsl_sizer.server.query import NAMES
from parsl_sizer.testing.archive_laws import entries

Ask = Callable[..., Any]
KNOWN = {200, 400, 401, 403, 404, 405, 413, 503}
"""Not 500: that is a fault of ours."""
LETTERS = st.text(st.characters(max_codepoint=255), max_size=40)
"""Bytes, as WSGI hands them over."""
METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]) | LETTERS
KNOWN_PATHS = ("/", "/runs/", "/runs/run-1", "/api/runs", "/api/runs/last", "/api/attempts")
PATHS = st.sampled_from([*KNOWN_PATHS, "/api/outcomes"]) | st.builds(
    "{}{}".format, st.sampled_from(["", "/", "/runs/", "/api/", "/api/runs/"]), LETTERS
)
VALUES = (
    LETTERS
    | st.from_regex(r"[0-9]{1,30}(\.[0-9]+)?[a-zA-Z]{0,3}(\.\.)?[0-9]{0,9}", fullmatch=True)
    | st.sampled_from(["%00", "%ff", "%ed%a0%80", "1e999", "..1e999GB", "9999-12-31", "0001-01-01"])
)
QUERIES = LETTERS | st.lists(
    st.builds("{}={}".format, st.sampled_from(NAMES) | LETTERS, VALUES), max_size=5
).map("&".join)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "HTTP_HOST": LETTERS | st.just("localhost"),
        "HTTP_AUTHORIZATION": LETTERS
        | st.builds("{} {}".format, st.sampled_from(["Bearer", "Basic"]), LETTERS),
        "CONTENT_LENGTH": LETTERS | st.integers().map(str),
        "CONTENT_TYPE": LETTERS,
        "HTTP_X_FORWARDED_HOST": LETTERS,
    },
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([1e18, 5e-324, -0.0, 2**63, 1e308])
    | st.text(max_size=20)
    | st.sampled_from(["<script>alert(1)</script>", "\0", "\ud800", "\u202e", "{0.__class__}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
VALID = json.loads(line_of(entries()[8]))
ODD = st.sampled_from(["<script>alert(1)</script>", "'\" onload=x", "\0", "\u202e", "&amp;"])
AMOUNTS = st.floats(0, 1e18) | st.sampled_from([0, 1e18, 5e-324])
MOMENTS = st.floats(0, 1.7e9) | st.sampled_from([0, 5e-324])
KINDS = st.dictionaries(st.sampled_from(["cores", "memory", "disk", "gpus"]), AMOUNTS)
TAKEN = st.fixed_dictionaries(
    {},
    optional={
        "task": st.integers(0, 2**63 - 1) | ODD,
        "category": ODD,
        "number": st.integers(1, 10**6) | st.floats(1, 9),
        "ending": st.sampled_from(["done", "raised", "exhausted", "lost"]),
        "exhausted": st.lists(st.sampled_from(["memory", "disk"])),
        **dict.fromkeys(("wall_s", "cpu_s"), AMOUNTS),
        **dict.fromkeys(("submitted_at", "launched_at", "ended_at"), MOMENTS),
        **dict.fromkeys(("allocated", "peak", "requested"), KINDS),
        **dict.fromkeys(("why", "host", "node", "isolation", "command"), ODD),
        "labels": st.dictionaries(ODD, JSON),
        "series": st.lists(st.tuples(AMOUNTS, AMOUNTS), max_size=5),
        "layers": st.lists(ODD | st.sampled_from(["a,b", "", "sampled"])),
    },
)
RUNS = st.fixed_dictionaries(
    {"run_id": ODD | st.text(min_size=1, max_size=9)},
    optional={
        "started_at": MOMENTS,
        **dict.fromkeys(("user", "workflow", "host", "source"), ODD),
        "versions": st.dictionaries(ODD, JSON),
        "labels": st.dictionaries(ODD | st.just("node_memory"), JSON),
    },
)
"""What is taken, though nobody sane would write it."""
fuzzed = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


def contents(path: Path) -> list[Any]:
    archive = open_archive(path, read_only=True)
    found = list(archive.entries())
    archive.close()
    return found


@pytest.fixture
def guards(token: str) -> list[Guard]:
    return [Guard(), Guard(token=token), Guard(token=token, reading_needs_token=True)]


@fuzzed
@given(METHODS, PATHS, QUERIES, HEADERS, st.binary(max_size=200), st.integers(0, 2))
def test_any_request_is_answered_and_changes_nothing(
    ask: Ask,
    archive: Path,
    guards: list[Guard],
    method: str,
    path: str,
    query: str,
    headers: dict[str, str],
    body: bytes,
    which: int,
) -> None:
    before = archive.read_bytes()
    app = App(archive, guards[which])
    more = {"PATH_INFO": path, "QUERY_STRING": query, **headers}
    got = ask(app, method=method, body=body, **more)
    assert got.status in KNOWN
    assert b"Traceback" not in got.body
    if method != "HEAD":
        assert len(got.body) < 1_000_000
        if path.startswith("/api/"):
            assert isinstance(got.json, dict)
    assert archive.read_bytes() == before


@fuzzed
@given(st.binary(max_size=300) | JSON.map(json.dumps).map(str.encode))
def test_a_body_that_is_no_entry_is_refused(ask: Ask, app: App, token: str, body: bytes) -> None:
    sent = {"method": "POST", "body": body, "HTTP_AUTHORIZATION": f"Bearer {token}"}
    assert ask(app, "/api/outcomes", **sent).status == 400


@fuzzed
@given(st.sampled_from([*VALID, "features", "inputs", "opt_outs", "priority", "overran"]), JSON)
def test_an_entry_with_anything_in_it_is_taken_or_refused_as_a_whole(
    ask: Ask, app: App, archive: Path, token: str, name: str, value: object
) -> None:
    before = len(contents(archive))
    fresh = json.loads(line_of(entries()[3]))
    fresh["run"] = {"run_id": f"fresh-{before}"}
    body = f"{json.dumps(fresh)}\n{json.dumps(VALID | {name: value})}\n".encode()
    sent = {"method": "POST", "body": body, "HTTP_AUTHORIZATION": f"Bearer {token}"}
    got = ask(app, "/api/outcomes", **sent)
    assert got.status in {200, 400}
    new = got.json["new"] if got.status == 200 else 0
    assert len(contents(archive)) == before + new
    assert bool(new) is (got.status == 200)


@pytest.fixture
def readable(ask: Ask, token: str, tmp_path: Path) -> Callable[[list[Any]], None]:
    """Posts lines to an archive of their own and reads all that can be read."""
    places = iter(range(10**6))

    def check(lines: list[Any]) -> None:
        path = tmp_path / f"{next(places)}.sqlite3"
        app = App(path, Guard(token=token))
        body = "\n".join(json.dumps(line) for line in lines).encode()
        sent = {"method": "POST", "body": body, "HTTP_AUTHORIZATION": f"Bearer {token}"}
        if ask(app, "/api/outcomes", **sent).status != 200:
            return
        listed = ask(app, "/api/runs").json["runs"]
        assert listed
        for address in ("/", "/api/attempts"):
            assert_harmless(ask(app, address))
        for run in listed:
            name = run["run"].encode().decode("latin-1")
            for beginning in ("/runs/", "/api/runs/"):
                assert_harmless(ask(app, PATH_INFO=f"{beginning}{name}"))

    return check


def assert_harmless(got: Any) -> None:
    assert got.status == 200
    if got.headers["Content-Type"] == "application/json":
        assert got.json
    else:
        assert not re.search("<script|<[^>]* onload=", got.text)


@fuzzed
@given(st.lists(st.tuples(RUNS, TAKEN), min_size=1, max_size=4))
def test_whatever_was_taken_can_be_read_and_is_text(
    readable: Callable[[list[Any]], None], found: list[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    readable([{**VALID, **changes, "run": run} for run, changes in found])
