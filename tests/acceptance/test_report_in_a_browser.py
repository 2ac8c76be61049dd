"""The page of a run in a real browser: on a phone, on a desk, by night and on paper."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli.report import run
from parsl_sizer.model import Ending, Outcome, Resources
from parsl_sizer.report.html import SECTIONS
from parsl_sizer.report.markup import Document
from parsl_sizer.simulator.cluster import replay_cluster
from parsl_sizer.simulator.generate import generate
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies.base import Setting
from parsl_sizer.strategies.catalog import family

CHROMIUM = shutil.which("chromium")
HOSTILE = "</script><img src=x onerror=\"document.title='broken'\">" + "long" * 60
WIDTHS = {"phone": 360, "tablet": 768, "desk": 1280}

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

Figures = dict[str, Any]


def outcomes() -> list[Outcome]:
    """Attempts at 400 tasks, sized as they come; some raise, some have unusual names."""
    found: list[Outcome] = []
    replay_cluster(
        generate("trimodal", 400, 1),
        Categories(family("auto", Setting())),
        Resources(cores=16, memory=64e9, disk=64e9),
        nodes=4,
        ttf=0.7,
        settled=lambda task: found.extend(task.outcomes),
    )
    return [_disturbed(number, outcome) for number, outcome in enumerate(found)]


def _disturbed(number: int, outcome: Outcome) -> Outcome:
    attempt = outcome.attempt
    moved = outcome._replace(ended_at=1.79e9 + outcome.ended_at)
    if number % 50 == 7 and outcome.ending is Ending.DONE:
        return moved._replace(ending=Ending.RAISED)
    if number % 16:
        return moved
    category = HOSTILE if number % 32 else f"other:category_{number}"
    return moved._replace(attempt=attempt._replace(task=attempt.task._replace(category=category)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Figures]:
    """The page, and what ``--json`` printed."""
    folder = tmp_path_factory.mktemp("report")
    archive = open_archive(folder / "archive.sqlite3")
    recorded = Run("run-1", 1.79e9, "jane", "align.py", labels={"campaign": HOSTILE})
    archive.record([Entry(recorded, outcome) for outcome in outcomes()])
    archive.close()
    page, printed = folder / "run.html", io.StringIO()
    where = str(folder / "archive.sqlite3")
    with contextlib.redirect_stdout(printed):
        run(Namespace(run_id="last", html=str(page), archive=where, json=True))
    return page, json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, made: tuple[Path, Figures]) -> Iterator[Any]:
    """Opens the page; whatever it complains about or asks for is a failure in the end."""
    contexts, complaints = [], []

    def look(width: int = 1280, scheme: str = "light", media: str = "screen") -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.emulate_media(media=media, color_scheme=scheme)
        page.goto(made[0].as_uri())
        return page

    yield look
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_every_section_can_be_seen_and_nothing_sticks_out(
    opened: Any, width: int, scheme: str
) -> None:
    page = opened(width, scheme)
    for name, title in SECTIONS.items():
        heading = page.locator(f"section#{name} > h2")
        assert heading.is_visible()
        assert heading.inner_text() == title
        assert page.locator(f"section#{name}").bounding_box()["height"] > 60
    for details in page.locator("details").all():
        details.evaluate("fold => { fold.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() == "align.py: what its tasks used"


def test_the_figures_are_those_of_the_json(opened: Any, made: tuple[Path, Figures]) -> None:
    document = Document(made[1])
    figures = opened().eval_on_selector_all(
        "[data-figure]",
        "found => found.map(f => [f.dataset.figure, f.dataset.value, f.textContent])",
    )
    assert len(figures) > 200
    for path, value, shown in figures:
        assert json.loads(value) == document.at(path), path
        assert shown
    counts = {path: shown for path, _, shown in figures}
    assert counts["totals.tasks"] == f"{document.at('totals.tasks'):,}"


def test_by_night_the_page_is_dark_and_can_be_read(opened: Any) -> None:
    for scheme, is_dark in (("light", False), ("dark", True)):
        page = opened(scheme=scheme)
        for element in ("body", "section h2", "td", "caption", "svg text"):
            text, ground = page.eval_on_selector(element, COLOURS)
            assert (ground < 0.1) is is_dark
            lighter, darker = max(text, ground), min(text, ground)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (scheme, element)


COLOURS = """element => {
  const luminance = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(Number).map(part => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(element);
  let behind = element;
  const clear = "rgba(0, 0, 0, 0)";
  while (getComputedStyle(behind).backgroundColor === clear) behind = behind.parentElement;
  const isDrawn = element instanceof SVGElement;
  const colour = isDrawn ? style.fill : style.color;
  return [luminance(colour), luminance(getComputedStyle(behind).backgroundColor)];
}"""
"""The luminance of an element's text and of what is behind it, as WCAG 2 defines them."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_it_is_black_on_white_and_nothing_sticks_out(opened: Any, scheme: str) -> None:
    page = opened(680, scheme, "print")  # the width of A4 between its margins
    text, ground = page.eval_on_selector("body", COLOURS)
    assert (text, ground) == (0.0, 1.0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert not page.locator("nav").is_visible()
    for name in SECTIONS:
        assert page.locator(f"section#{name} > h2").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("width", [360, 1280])
def test_labels_in_charts_do_not_lie_on_each_other(opened: Any, width: int) -> None:
    page = opened(width)
    for picture in page.locator("#peaks article > figure svg.chart").all():
        boxes = [label.bounding_box() for label in picture.locator("text.label").all()]
        for at, one in enumerate(boxes):
            for other in boxes[at + 1 :]:
                apart_across = one["x"] + one["width"] <= other["x"] or (
                    other["x"] + other["width"] <= one["x"]
                )
                apart_down = abs(one["y"] - other["y"]) >= 12
                assert apart_across or apart_down


@pytest.mark.parametrize("width", [360, 400, 768, 1200])
def test_tiles_are_as_wide_as_their_figures(opened: Any, width: int) -> None:
    page = opened(width)
    page.eval_on_selector_all(
        "dl.tiles dd > [data-figure]",
        "found => found.forEach(f => { f.textContent = '0.000123 core·h'; })",
    )
    for tile in page.locator("dl.tiles > div").all():
        assert tile.evaluate("tile => tile.scrollWidth <= tile.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_charts_have_a_name_and_figures_beside_them(opened: Any) -> None:
    page = opened()
    charts = page.locator("svg[role=img]")
    assert charts.count() > 5
    for chart in charts.all():
        assert chart.locator("> title").text_content()
        assert chart.locator("> desc").text_content()
    assert page.locator("#peaks article details").count() >= page.locator("#peaks article").count()
    assert page.locator("#course details table").count() == 1
