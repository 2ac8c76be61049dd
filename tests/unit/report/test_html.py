"""The page of a run."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage
from parsl_sizer.report.charts import (
    LETTER_WIDTH,
    Mark,
    Scale,
    Words,
    histogram,
    log_scale,
    round_numbers,
)
from parsl_sizer.report.figures import Summary, as_json
from parsl_sizer.report.html import SECTIONS, render
from parsl_sizer.report.markup import Document
from parsl_sizer.report.run_summary import SHOWN, summary_of
from parsl_sizer.report.whatif import Finished, TooFew, advise

HOSTILE = "</script><img src=x onerror=alert(1)>'\"&"
VOID = {"meta", "link", "wbr"}


class Page(HTMLParser):
    """The elements of a page; whatever is not closed, or closed twice, is a fault."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.figures: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        assert not [name for name in found if name.startswith("on")]
        self.ids += [found["id"] or ""] if "id" in found else []
        if "data-figure" in found:
            self.figures.append((found["data-figure"] or "", found["data-value"] or ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def outcome(
    task: int | str, category: str, *, peak: float = 2e9, ending: Ending = Ending.DONE
) -> Outcome:
    number = 2 if ending is Ending.DONE and task == 1 else 1
    attempt = Attempt(TaskInfo(task, category), number, {Kind.MEMORY: 4e9, Kind.CORES: 1.0})
    over = frozenset({Kind.MEMORY} if ending is Ending.EXHAUSTED else ())
    return Outcome(attempt, ending, 9000.0 + number, Usage({Kind.MEMORY: peak}, 60.0), over)


def summary(*outcomes: Outcome, run: Run | None = None) -> Summary:
    run = run or Run("run-1", 1000.0, workflow="align.py")
    return summary_of(run, [Entry(run, outcome) for outcome in outcomes])


def some() -> Summary:
    """Fifteen categories, one with a retry."""
    outcomes = [outcome(n, f"c{n % 15}", peak=1e8 * n + 1) for n in range(100)]
    return summary(*outcomes, outcome(1, "c1", ending=Ending.EXHAUSTED))


def assert_agrees(page: Page, found: Summary) -> None:
    document = Document(json.loads(json.dumps(as_json(found))))
    assert page.figures
    for path, value in page.figures:
        assert json.loads(value) == document.at(path), path


def test_every_figure_is_the_one_of_the_json() -> None:
    found = some()
    page = Page(render(found))
    assert_agrees(page, found)
    paths = {path for path, _ in page.figures}
    assert {"totals.tasks", "saving.saved", "rest.totals.tasks", "slowest.0.wall_s"} <= paths
    assert "categories.0.peaks.quantiles.p95" in paths
    assert "totals.causes.memory" in paths


def test_the_page_has_all_sections_and_no_name_twice() -> None:
    page = Page(render(some()))
    assert set(SECTIONS) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    for title in SECTIONS.values():
        assert title in page.text


def test_the_page_needs_nothing_else() -> None:
    text = render(some())
    assert "script" not in Page(text).tags
    assert "img" not in Page(text).tags
    assert not re.search(r"(?:src|href)=\"(?!#|data:,)", text)
    assert "url(" not in text
    assert "://" not in text


def test_names_are_only_text() -> None:
    run = Run(HOSTILE, user=HOSTILE, workflow=HOSTILE, labels={HOSTILE: HOSTILE})
    found = summary(outcome(HOSTILE, HOSTILE), outcome(2, HOSTILE), run=run)
    points = {HOSTILE: [(1e9, 1e15, 0.5), (4e9, 2e15, 0.0)]}
    page = Page(render(found, points))
    assert not {"script", "img"} & page.tags
    assert HOSTILE in "".join(page.words)
    assert_agrees(page, found)


def test_a_name_of_any_length_is_shortened() -> None:
    assert len(render(summary(outcome(1, "x" * 100_000)))) < 60_000


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [outcome(7, "align")],
        [outcome(7, "align", peak=0.0)],
        [outcome(n, "align", ending=Ending.RAISED) for n in range(5)],
        [Outcome(Attempt(TaskInfo(1, ""), 1, {}), Ending.DONE)],
    ],
    ids=["empty", "one task", "a peak of nothing", "failures", "nothing known"],
)
def test_whatever_there_is_can_be_shown(outcomes: list[Outcome]) -> None:
    found = summary(*outcomes)
    page = Page(render(found))
    assert_agrees(page, found)
    assert "nan" not in render(found).lower().replace("finance", "")


def test_no_more_categories_are_drawn_than_can_be_looked_at() -> None:
    text = render(some())
    assert text.count("<article>") == SHOWN
    assert "smaller categories are not drawn" in Page(text).text


def test_of_a_run_of_others_it_is_not_said_that_anything_was_saved() -> None:
    assert "What was saved" in Page(render(some())).text
    run = Run("run-1", 1000.0, source="nextflow")
    text = Page(render(summary(outcome(7, "c"), outcome(8, "c"), run=run))).text
    assert text.count("What was allocated") == 2
    assert "Less than that" in text
    assert "aved" not in text


def test_charts_say_in_words_what_they_show() -> None:
    text = render(some(), {"c1": [(1e9, 1e15, 0.5)]})
    assert text.count('role="img"') == text.count("<desc ") > SHOWN
    for name in re.findall(r'aria-labelledby="([^"]+)"', text):
        assert all(f'id="{part}"' in text for part in name.split())


def test_without_curves_the_page_says_so() -> None:
    found = summary(*(outcome(n, "align") for n in range(20)))
    assert "no other first allocations were tried" in Page(render(found)).text


def test_with_few_peaks_the_page_refuses_what_whatif_refuses() -> None:
    found = summary(*(outcome(n, "align") for n in range(19)))
    with pytest.raises(TooFew) as refusal:
        advise("align", [Finished(2e9, 60.0)] * 19)
    assert str(refusal.value) in Page(render(found)).text


def test_the_line_of_the_last_first_allocation_says_what_it_is() -> None:
    assert "first allocation at the end 4 GB" in Page(render(summary(outcome(2, "c")))).text
    both = summary(outcome(2, "c"), outcome(1, "c"))
    assert "first at the end, retry 4 GB" in Page(render(both)).text


@pytest.mark.parametrize("value", [1.0, 3.0, 10.0, 30.0, 100.0])
def test_a_long_label_is_where_there_is_room_for_it(value: float) -> None:
    label = "a label of thirty letters, say"
    marks, scale = [Mark(value, label, "first")], log_scale([1.0, 100.0])
    picture = histogram(Words("x", "x", "x"), [], marks, scale, [], "")
    [(across, anchor)] = re.findall(r'class="label" x="([\d.]+)%".*?anchor="(\w+)"', picture)
    before = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * LETTER_WIDTH * len(label)
    assert 0 <= float(across) - before <= 100 - LETTER_WIDTH * len(label)


def test_the_curve_is_of_the_category_that_wasted_most() -> None:
    found = summary(
        outcome(7, "little", peak=3.9e9), outcome(8, "much", peak=1e8), outcome(9, "no curve")
    )
    points = [(1e9 * n, 3.6e15 / n, 1.0 / n) for n in range(1, 1000)]
    text = render(found, {"little": points, "much": points})
    assert "<strong>much</strong>" in text
    assert "over the first allocation from 1 GB to 999 GB: least, 1 GB·h, at 999 GB" in text
    assert len(text) < 100_000


def test_labels_of_lines_have_rows_of_their_own() -> None:
    marks = [Mark(value, f"first {value}", "first") for value in (1.0, 1.1, 1.2, 50.0, 99.0)]
    scale = log_scale([1.0, 99.0])
    picture = histogram(Words("x", "x", "x"), [], marks, scale, [], "")
    rows = re.findall(r'class="label" x="([\d.]+)%" dx="-?4" y="(\d+)"', picture)
    assert len(rows) == 5
    assert len({row for across, row in rows if float(across) < 10}) == 3


@pytest.mark.parametrize(
    "scale",
    [
        *(Scale(0.0, 1.0), Scale(3.0, 3.1), Scale(1e6, 7e11, is_log=True)),
        *(log_scale([5e-324, 1e18]), log_scale([0.0, 5e-324])),
    ],
)
def test_an_axis_has_a_few_round_numbers(scale: Scale) -> None:
    found: list[Any] = round_numbers(scale)
    assert 2 <= len(found) <= 5
    assert all(scale.least <= value <= scale.most for value in found)
