"""What is posted is what was exported, all or none of it, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from string import ascii_letters
from typing import Any

import pytest

from parsl_sizer.archive.base import Entry
from parsl_sizer.archive.lines import line_of
from parsl_sizer.archive.open import Where, open_archive
from parsl_sizer.server import app as app_module
from parsl_sizer.server import posting, request
from parsl_sizer.server.answer import Refused
from parsl_sizer.server.app import App
from parsl_sizer.server.guard import Guard
from parsl_sizer.testing.archive_laws import entries

Post = Callable[..., Any]
VALID = json.loads(line_of(entries()[0]))


def others() -> list[Entry]:
    """Attempts of runs that the archive does not have."""
    made = entries(30, seed=7)
    return [Entry(replace(run, run_id=f"other-{run.run_id}"), outcome) for run, outcome in made]


def lines(found: list[Entry]) -> bytes:
    return "".join(f"{line_of(entry)}\n" for entry in found).encode()


def kept(where: Where) -> list[Entry]:
    archive = open_archive(where, read_only=True)
    found = list(archive.entries())
    archive.close()
    return found


def test_what_was_exported_is_recorded_once(post: Post, archive: Path) -> None:
    before = kept(archive)
    got = post(lines(others()))
    assert got.status == 200
    assert got.json == {"archive": str(archive), "taken": 30, "new": 30}
    after = kept(archive)
    assert len(after) == len(before) + 30
    assert all(entry in after for entry in others())
    assert post(lines(others())).json["new"] == 0
    assert post(lines(before)).json["new"] == 0
    assert kept(archive) == after


def test_empty_lines_and_other_ends_of_lines_are_no_fault(post: Post) -> None:
    body = b"\n" + lines(others()).replace(b"\n", b"\r\n") + b"  \n"
    assert post(body).json["taken"] == 30
    assert post(lines(others()).rstrip()).json["taken"] == 30


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (b"{", "Line 31: not JSON"),
        (b'"a text"', "Line 31: the line is not an object in braces."),
        (b"\x80\x04N.", "Line 31: not JSON"),
        (json.dumps(VALID | {"wall_s": -1}), "Line 31: wall_s is -1,"),
        (json.dumps(VALID | {"ending": "well"}), "Line 31: 'well' is none of done,"),
        (json.dumps(VALID | {"why": "x" * 10_001}), "Line 31: why is"),
        (json.dumps(VALID | {"why": "\ud800"}), "Line 31: half of a character"),
        (json.dumps(VALID | {"run": {"run_id": "x" * 501}}), "run_id is no name of at most 500"),
        (json.dumps(VALID | {"run": {"run_id": "a\0b"}}), "run_id is no name"),
        (json.dumps(VALID | {"run": {"run_id": ".."}}), "run_id is no name"),
        (json.dumps(VALID | {"labels": {"x" * 501: 1}}), "a label's name has more than"),
        (json.dumps(VALID | {"ended_at": 1e18}), "Line 31: ended_at is 1e+18, more than a day ah"),
        (json.dumps(VALID)[:-1] + ',"labels":{"a":' + "[" * 50 + "]" * 50 + "}}", "lists in each"),
        (json.dumps(VALID)[:-1] + ',"labels":' + "[" * 10**5 + "]" * 10**5 + "}", "Line 31: not"),
        (b" " * (1 << 20) + b"{}", "Line 31: a line of 1,048,57"),
    ],
)
def test_one_bad_line_and_nothing_is_recorded(
    post: Post, archive: Path, bad: bytes | str, sentence: str
) -> None:
    before = kept(archive)
    whole = lines(others()) + (bad.encode() if isinstance(bad, str) else bad) + b"\n"
    got = post(whole + lines(others()))
    assert got.status == 400
    assert sentence in got.error
    assert got.error.endswith(" Nothing was recorded.")
    assert len(got.error) < 400
    assert kept(archive) == before


@pytest.mark.parametrize("name", ["submitted_at", "launched_at", "ended_at", "started_at"])
def test_nothing_is_from_the_future_but_for_clocks_that_differ(name: str) -> None:
    now = 1.8e9

    def posted(moment: float) -> list[Entry]:
        of_run = {name: moment} if name == "started_at" else {}
        line = VALID | {name: moment, "run": VALID["run"] | of_run}
        return posting.entries_of(json.dumps(line).encode(), now)

    for moment in (0.0, now, now + 86_400):
        assert len(posted(moment)) == 1
    with pytest.raises(Refused, match=f"^Line 1: {name} is .*, more than a day ahead of the") as no:
        posted(now + 86_401)
    assert no.value.status == 400


def test_labels_hold_as_many_lists_in_each_other_as_is_said() -> None:
    def posted(depth: int) -> list[Entry]:
        nested: object = "deep"
        for level in range(depth):
            nested = {"in": nested} if level % 2 else [nested, 1]
        line = VALID | {"labels": {"plain": 1, "nested": nested}}
        return posting.entries_of(json.dumps(line).encode(), 1.8e9)

    [entry] = posted(posting.DEEPEST)
    assert "deep" in json.dumps(entry.outcome.attempt.task.labels["nested"])
    with pytest.raises(Refused, match="holds more than 20 lists in each other"):
        posted(posting.DEEPEST + 1)


def test_what_the_archive_refuses_is_the_fault_of_who_posts(
    ask: Post, new_database: Callable[[], str], token: str
) -> None:
    url = new_database()
    name = "".join(Random(1).choices(ascii_letters, k=5000))  # longer than PostgreSQL can index
    sent = {"method": "POST", "HTTP_AUTHORIZATION": f"Bearer {token}"}
    body = lines(others()) + json.dumps(VALID | {"category": name}).encode()
    got = ask(App(url, Guard(token=token)), "/api/outcomes", body=body, **sent)
    assert got.status == 400
    assert "cannot keep an outcome: index row size" in got.error
    assert got.error.endswith('"attempts_by_category". Nothing was recorded.')
    assert kept(url) == []


@pytest.mark.parametrize("body", [b"", b"\n\n", b"  "])
def test_nothing_is_told(post: Post, body: bytes) -> None:
    got = post(body)
    assert got.status == 400
    assert "Nothing was posted" in got.error


def test_sizes_have_an_end(post: Post, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept(archive)
    for length in ("10000001", "9" * 5000):
        got = post(b"", CONTENT_LENGTH=length)
        assert (got.status, "10,000,000 bytes" in got.error) == (413, True)
    assert post(b"\n" * (posting.MOST_LINES + 1)).status == 413
    monkeypatch.setattr(request, "MOST_BYTES", 100)
    assert post(lines(others())).status == 413
    assert kept(archive) == before


@pytest.mark.parametrize("length", ["x", "-1", "1.5", "١", "0x10", " 7"])
def test_a_length_that_is_none_is_told(post: Post, length: str) -> None:
    assert post(b"{}", CONTENT_LENGTH=length).status == 400


def test_who_posts_while_others_do_waits_and_is_told(
    app: App, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "PATIENCE_S", 0.01)
    with app._posting:
        assert post(lines(others())).status == 503
    assert post(lines(others())).status == 200


def test_an_archive_that_is_not_there_yet_is_begun(ask: Post, tmp_path: Path, token: str) -> None:
    path = tmp_path / "new" / "archive.sqlite3"
    app = App(path, Guard(token=token))
    said = f"Bearer {token}"
    sent = {"method": "POST", "body": lines(others()), "HTTP_AUTHORIZATION": said}
    assert ask(app, "/api/outcomes", **sent).json["new"] == 30
    assert len(kept(path)) == 30


def test_it_is_for_posting_only(ask: Post, app: App) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        got = ask(app, "/api/outcomes", method=method)
        assert (got.status, got.headers["Allow"]) == (405, "POST")
