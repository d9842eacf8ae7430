"""Reports and charts in a browser with the network off: everything is drawn, and nothing is asked for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import quadrille as qd
from quadrille import chart
from quadrille.data import Data
from quadrille.report import write_readers, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DRAWN = "() => [...document.querySelectorAll('.chart')].every(place => place.querySelector('svg.marks, canvas'))"
SIZES = """() => [...document.querySelectorAll('.chart')].map(place => {
    const box = place.querySelector('svg.marks, canvas').getBoundingClientRect();
    return [place.id, box.width, box.height, place.getBoundingClientRect().width];
})"""
SHEET = round((210 - 2 * 14) * 96 / 25.4)  # pixels between the margins of A4, as style.css sets them
OUTSIDE = """() => [...document.querySelectorAll('body *')].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width && !one.closest('details:not([open]) > :not(summary)')
        && (box.right > window.innerWidth + 1 || box.left < -1);
}).map(one => `${one.tagName} ${one.className} ${one.textContent.slice(0, 60)}`)"""
BROKEN = """() => {
    const found = [], range = document.createRange();
    for (const cell of document.querySelectorAll('table :is(th, td)')) {
        const text = cell.firstChild;
        for (const word of text && text.nodeType === 3 ? text.data.matchAll(/(?<=^|\\s)[^\\s-]{2,14}(?=\\s|$)/g) : []) {
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            const lines = new Set([...range.getClientRects()].map(box => box.top));
            if (lines.size > 1) found.push(`${word[0]} of ${cell.closest('table').caption.textContent}`);
        }
    }
    return found;
}"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll('.chart svg.marks')].map(
    chart => chart.getBoundingClientRect().width / chart.viewBox.baseVal.width))"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


class Visit:
    """A page opened with the network off, and what it did."""

    def __init__(self, browser: Browser, path: Path, width: int = 1366) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        context = browser.new_context(offline=True, viewport={"width": width, "height": 900})
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())
        self.page.wait_for_function(DRAWN)

    def charts(self) -> dict[str, Any]:
        return {name: sizes for name, *sizes in self.page.evaluate(SIZES)}


@pytest.fixture(scope="module")
def report(cps8d: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"], ["Race", "AnnSal"]], pairs=[244, 2442], seeds=3)
    study = qd.search(cps8d, recipes, ["small_cells", "exposed", "hellinger"], out=folder / "study", progress=False)
    return write_report(study, cps8d, folder / "report.html")


@pytest.fixture(scope="module")
def visit(browser: Browser, report: Path) -> Visit:
    return Visit(browser, report)


def test_a_report_asks_for_nothing_and_complains_of_nothing(visit: Visit, report: Path) -> None:
    assert visit.requests == [report.as_uri()]
    assert visit.complaints == []


def test_every_chart_of_a_report_is_drawn(visit: Visit) -> None:
    charts = visit.charts()
    assert set(charts) == {
        "chart-frontier",
        "chart-seed-cloud",
        "chart-parameter-effects",
        "chart-heatmap-hellinger-2-way",
        "chart-heatmap-cramers_v_change",
        "chart-small-cells",
        "chart-what-an-intruder-gains-part-1",
        "chart-what-an-intruder-gains-part-2",
        "chart-who-was-swapped",
    }
    assert all(width > 300 and height > 100 for width, height, _ in charts.values())
    marks = "() => [...document.querySelectorAll('.chart svg.marks')].map(one => one.querySelectorAll('path').length)"
    assert min(visit.page.evaluate(marks)) > 5


def test_nothing_sticks_out_on_a_laptop_or_a_phone(browser: Browser, report: Path) -> None:
    for width in (1366, 1024, 420):
        visit = Visit(browser, report, width)
        assert visit.page.evaluate(WIDE) <= 0, width
        assert all(drawn <= place + 1 for drawn, _, place in visit.charts().values())


def test_headings_tables_and_charts_can_be_read_aloud(visit: Visit) -> None:
    page = visit.page
    assert page.evaluate("() => [...document.querySelectorAll('figure')].every(one => one.ariaLabel.length > 40)")
    assert page.evaluate("() => [...document.querySelectorAll('th')].every(one => one.scope)")
    levels = page.evaluate("() => [...document.querySelectorAll('h1, h2, h3')].map(one => +one.tagName[1])")
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.get_by_role("link", name="The frontier").get_attribute("href") == "#frontier"


def test_a_report_prints_on_a_few_pages(visit: Visit) -> None:
    printed = visit.page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert 5 < printed.count(b"/Type /Page\n") < 25


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages for three readers, of a file with long names and labels, and with an id."""
    dice, n = np.random.default_rng(4), 300
    names = ("a category with a name as long as they come in questionnaires", "another", "a third one")
    frame = pl.DataFrame(
        {
            "number": [f"P-{row:05d}" for row in range(n)],
            "the_highest_school_certificate_of_the_respondent": dice.choice([1, 2, 3], n),
            "region": dice.choice([1, 2], n),
            "score": dice.normal(200, 40, n),
        }
    )
    book = qd.Codebook(
        (
            qd.Variable("number", role="id"),
            qd.Variable("the_highest_school_certificate_of_the_respondent", "nominal", (1, 2, 3), names),
            qd.Variable("region", "nominal", (1, 2), ("North", "South")),
            qd.Variable("score", "numeric", role="outcome"),
        )
    )
    recipe = qd.RandomSwap(["the_highest_school_certificate_of_the_respondent"], pairs=40, seed=1)
    return write_readers(qd.from_frame(frame, codebook=book), recipe, tmp_path_factory.mktemp("print") / "out")


def test_nothing_is_wider_than_the_sheet_in_print(browser: Browser, report: Path, readers: dict[str, Path]) -> None:
    for path in (report, *readers.values()):
        page = Visit(browser, path, SHEET).page
        page.emulate_media(media="print")
        assert page.evaluate(OUTSIDE) == [], path.name


def test_no_short_word_is_broken_and_no_chart_is_too_small_to_read_in_print(
    browser: Browser, report: Path, readers: dict[str, Path]
) -> None:
    for path in (report, *readers.values()):
        page = Visit(browser, path, SHEET).page
        page.emulate_media(media="print")
        assert page.evaluate(BROKEN) == [], path.name
        assert page.evaluate(SMALLEST) > 0.55, path.name


def test_what_is_folded_says_in_print_what_it_holds(visit: Visit) -> None:
    visit.page.emulate_media(media="print")
    folded = visit.page.locator("section details:not(.chart *)")
    assert folded.count() >= 1
    texts = [folded.nth(place).locator("summary").inner_text() for place in range(folded.count())]
    assert "8 variables as before, to the last digit shown" in texts
    assert all(folded.nth(place).locator("summary").is_visible() for place in range(folded.count()))
    assert not folded.first.locator("table").first.is_visible()
    visit.page.emulate_media(media="screen")


def test_labels_stand_for_codes_and_ids_next_to_rows(readers: dict[str, Path]) -> None:
    analyst = readers["analyst"].read_text(encoding="utf-8")
    assert "a category with a name as long as they come in questionnaires" in analyst
    assert "respondent=1<" not in analyst
    pairs = re.findall(r"^(\d+) \(P-(\d{5})\) ↔ (\d+) \(P-(\d{5})\)", analyst, re.MULTILINE)
    listed = re.findall(r"(\d+) \(P-(\d{5})\) ↔ (\d+) \(P-(\d{5})\)", analyst)
    assert len(listed) == 40 and len(pairs) >= 39
    assert all(int(a) == int(b) and int(c) == int(d) for a, b, c, d in listed)
    assert "P-0" not in readers["chair"].read_text(encoding="utf-8") + readers["board"].read_text(encoding="utf-8")


def test_a_saved_chart_asks_for_nothing_and_is_drawn(browser: Browser, tmp_path: Path) -> None:
    rows = [{"size": name, "order": i, "swapped": 0.1 / (i + 1), "records": 50} for i, name in enumerate("123")]
    path = chart.save(chart.who_was_swapped(pl.DataFrame(rows)), tmp_path / "chart.html")
    visit = Visit(browser, path)
    assert visit.requests == [path.as_uri()]
    assert visit.complaints == []
    assert [width > 300 and height > 100 for width, height, _ in visit.charts().values()] == [True]
