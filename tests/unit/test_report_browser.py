"""Reports and charts in a browser with the network off: everything is drawn, and nothing is asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import quadrille as qd
from quadrille import chart
from quadrille.data import Data
from quadrille.report import write_report

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
        "chart-what-an-intruder-gains",
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


def test_a_saved_chart_asks_for_nothing_and_is_drawn(browser: Browser, tmp_path: Path) -> None:
    rows = [{"size": name, "order": i, "swapped": 0.1 / (i + 1), "records": 50} for i, name in enumerate("123")]
    path = chart.save(chart.who_was_swapped(pl.DataFrame(rows)), tmp_path / "chart.html")
    visit = Visit(browser, path)
    assert visit.requests == [path.as_uri()]
    assert visit.complaints == []
    assert [width > 300 and height > 100 for width, height, _ in visit.charts().values()] == [True]
