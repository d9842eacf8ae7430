"""The studio in a real browser: from a file to a signed release, with hostile names, by mouse and by keyboard."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect, sync_playwright
from tests.studio.running import CHROMIUM, QUIET, Visitor, running, serious

import quadrille as qd

PICTURES = Path(__file__).parents[2] / "docs" / "images"
STEPS = ("data", "roles", "risk", "design", "search", "compare", "release", "sign-off")
COLUMN = '<img src=x onerror="document.title=1">'
CATEGORY = "</script><script>document.title=2</script>"
NOTE = "javascript:alert(1) <b>bold</b> \u202egnp"
PROJECT = "<i>Survey</i> \u202e2026"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield made
        made.close()


@pytest.fixture(scope="module")
def studio(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with running(tmp_path_factory.mktemp("studio"), "--jobs", "1") as made:
        yield Visitor(made.address, browser)


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file whose names do what they can: a tag for a column, the end of a script for a category."""
    frame = qd.datasets.cps8d().frame().head(3000).select("Age", "Sex", "Race", "Edu", "MS")
    path = tmp_path_factory.mktemp("data") / "survey <b>2026.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([COLUMN, *frame.columns[1:]])
        for row in frame.iter_rows():
            out.writerow([CATEGORY if row[0] == frame.row(0)[0] else row[0], *row[1:]])
    return path


def picture(studio: Visitor, name: str) -> None:
    """Keep a picture for the guide, when pictures are asked for."""
    if os.environ.get("STUDIO_PICTURES"):
        page = studio.page
        page.wait_for_load_state("networkidle")
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=PICTURES / f"studio-{name}.png")


def finish(page: Page, text: str) -> None:
    """Wait for the result of a job."""
    expect(page.get_by_text(text).first).to_be_visible(timeout=90_000)


def settled(page: Page) -> None:
    """Wait until the page waits for nothing."""
    expect(page.locator("[data-job]")).to_have_count(0, timeout=90_000)


def to_data(studio: Visitor, survey: Path) -> None:
    page = studio.page
    page.goto(studio.origin)
    page.get_by_label("Name of the project").fill(PROJECT)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/data")
    studio.project = page.url.split("/")[-2]
    page.set_input_files("#file", survey)
    finish(page, "What the studio takes each column for")


def test_from_a_file_to_a_signed_release_with_the_mouse_alone(studio: Visitor, survey: Path) -> None:
    page = studio.page
    to_data(studio, survey)
    expect(page.get_by_role("rowheader", name=COLUMN)).to_be_visible()
    page.get_by_role("link", name="Roles →").click()
    page.get_by_role("button", name="Risk today →").click()
    page.get_by_role("button", name="Count", exact=True).click()
    finish(page, "Key sets side by side")
    page.get_by_role("link", name="Design →").click()
    expect(page.get_by_label("Method 2")).to_have_value("DesignedSwap")
    expect(page.locator("[name='g1.curve']")).to_have_value("yes")
    page.locator("#grid-2").get_by_role("button", name="Take out").click()
    page.locator("[name='g0.rate']").fill("0.02, 0.1")
    page.get_by_role("button", name="Look ahead").click()
    finish(page, "designs with 5 seeds each")
    page.get_by_role("button", name="Search →").click()
    finish(page, "50 of 50")
    page.locator("#frontier a").first.click()
    page.get_by_label("Note").fill(NOTE)
    page.get_by_role("button", name="Pin").click()
    expect(page.locator("#candidate")).to_contain_text("<b>bold</b>")
    page.locator("#frontier a").last.click()
    expect(page.locator("#candidate h2")).to_have_text(re.compile("Candidate"))
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("link", name="Compare 2 pinned →").click()
    page.get_by_role("button", name="Compare").click()
    finish(page, "Scores, computed afresh")
    page.get_by_role("button", name=re.compile("Propose No")).first.click()
    finish(page, "Proposed: No.")
    page.get_by_role("button", name="Write the report").click()
    finish(page, "Open the report")
    page.get_by_role("button", name="Go to the sign-off").click()
    page.get_by_role("button", name="Approve and release").click()
    finish(page, "The public folder may leave the house")
    with page.expect_download() as held:
        page.get_by_role("link", name=re.compile(r"\.csv$")).click()
    assert sum(1 for _ in held.value.path().open(encoding="utf-8")) == 3001
    assert studio.complaints == []


@pytest.mark.parametrize("step", STEPS)
def test_each_page_shows_names_as_text_and_keeps_within_a_phone(studio: Visitor, step: str) -> None:
    page = studio.go(step)
    assert page.title() not in ("1", "2")
    assert page.locator("main img, main b, main script:not([type='application/json'])").count() == 0
    page.set_viewport_size({"width": 390, "height": 844})
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    small = serious(page)
    page.set_viewport_size({"width": 1280, "height": 850})
    assert wide <= 0
    assert small == []
    assert serious(page) == []
    assert studio.complaints == []


def test_in_the_dark_too_nothing_is_too_pale(studio: Visitor) -> None:
    page = studio.go("search")
    page.get_by_role("button", name="Light or dark colours").click()
    dark = {step: serious(studio.go(step)) for step in ("search", "design", "release")}
    page.get_by_role("button", name="Light or dark colours").click()
    assert not any(dark.values()), dark


def test_the_plane_is_gone_through_by_keyboard(studio: Visitor) -> None:
    page = studio.go("search")
    page.wait_for_selector("body[data-loaded]")
    page.locator(".over").focus()
    page.keyboard.press("End")
    expect(page.locator("#candidate h2")).to_contain_text("Candidate")
    last = page.locator("#frontier a").last.inner_text()
    assert page.locator("#candidate h2").inner_text() == f"Candidate {last}"
    page.keyboard.press("b")
    expect(page.locator("[data-brushed]")).to_contain_text("In the box:")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    assert studio.complaints == []


def test_the_frontier_of_the_plane_is_that_of_the_table(studio: Visitor) -> None:
    page = studio.go("search")
    page.wait_for_selector("body[data-loaded]")
    drawn = page.evaluate("plane.frontier.map((i) => plane.ids[i])")
    table = [int(text.replace(",", "")) for text in page.locator("#frontier td.number:first-child").all_inner_texts()]
    assert drawn == table


def test_what_is_wrong_stands_beside_its_field(studio: Visitor) -> None:
    page = studio.go("design")
    page.locator("[name='g0.rate']").fill("3")
    page.get_by_role("button", name="Look ahead").click()
    finish(page, "must be")
    field = page.locator("[name='g0.rate']")
    expect(field).to_have_attribute("aria-invalid", "true")
    said = page.locator(f"#{field.get_attribute('aria-describedby').split()[0]}").inner_text()
    assert said.startswith("must be a number in (0, 1]")


def test_a_first_visit_is_light(studio: Visitor) -> None:
    """Bytes on the wire of a browser that has kept nothing yet."""
    sizes: dict[str, int] = {}
    for step in ("data", "roles", "design", "search"):
        received: list[Request] = []
        context = studio.context.browser.new_context(storage_state=studio.context.storage_state())
        page = context.new_page()
        page.on("requestfinished", lambda request, kept=received: kept.append(request))
        page.goto(f"{studio.origin}/projects/{studio.project}/{step}", wait_until="networkidle")
        sizes[step] = sum(each.sizes()["responseBodySize"] for each in received if "/events" not in each.url)
        context.close()
    assert all(5_000 < size <= 45_000 for size in sizes.values()), json.dumps(sizes)


def tab_to(page: Page, target: Locator) -> None:
    """Go to a control as somebody without a mouse does."""
    expect(target).to_be_visible()
    for _ in range(300):
        if target.evaluate("(one) => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} is not reached by the key Tab")


def press(page: Page, target: Locator, key: str = "Enter") -> None:
    tab_to(page, target)
    page.keyboard.press(key)


@pytest.mark.nightly
def test_the_same_path_with_the_keyboard_alone(studio: Visitor) -> None:
    page = studio.page
    page.set_viewport_size({"width": 1120, "height": 760})
    page.goto(studio.origin)
    tab_to(page, page.get_by_label(re.compile("Name of the")))
    page.keyboard.type("Census 2026")
    page.keyboard.press("Enter")
    page.wait_for_url("**/data")
    studio.project = page.url.split("/")[-2]
    expect(page.get_by_role("button", name="Open cps8d")).to_be_visible(timeout=60_000)
    studio.complaints.clear()  # until then the catalogue is not there yet
    picture(studio, "empty")
    press(page, page.get_by_role("button", name="Open cps8d"))
    finish(page, "What the studio takes each column for")
    picture(studio, "data")
    press(page, page.get_by_role("link", name="Roles →"))
    page.wait_for_url("**/roles")
    tab_to(page, page.get_by_label("Kind of Edu"))
    page.keyboard.type("ordinal")
    press(page, page.get_by_role("button", name="edit Edu"))
    expect(page.get_by_label("Order of categories, lowest first")).to_be_visible()
    finish(page, "Version 2 of the codebook")
    settled(page)
    picture(studio, "roles")
    press(page, page.get_by_role("button", name="Risk today →"))
    press(page, page.get_by_label("attack the file as it is"), "Space")
    press(page, page.get_by_role("button", name="Count", exact=True))
    finish(page, "Key sets side by side")
    expect(page.locator(".chart svg").first).to_be_visible(timeout=60_000)
    picture(studio, "risk")
    press(page, page.get_by_role("link", name="Design →"))
    page.wait_for_url("**/design")
    press(page, page.locator("#grid-2").get_by_role("button", name="Take out"))
    expect(page.locator("#grid-2")).to_have_count(0)
    tab_to(page, page.locator("[name='g0.rate']"))
    page.keyboard.press("Control+A")
    page.keyboard.type("0.02, 0.05, 0.2")
    press(page, page.get_by_role("button", name="Add a method"))
    expect(page.get_by_label("Method 2")).to_be_visible()
    tab_to(page, page.get_by_label("Method 2"))
    page.keyboard.type("PermutationSwap")
    page.keyboard.press("Tab")
    expect(page.locator("[name='g1.within']").first).to_be_visible(timeout=30_000)
    tab_to(page, page.locator("[name='g1.rate']"))
    page.keyboard.press("Control+A")
    page.keyboard.type("0.03, 0.3")
    page.keyboard.press("Tab")
    finish(page, "designs with 5 seeds each")
    page.mouse.wheel(0, -5000)
    picture(studio, "design")
    press(page, page.get_by_role("button", name="Search →"))
    page.wait_for_url("**/search**")
    finish(page, "Done.")
    page.wait_for_selector("body[data-loaded]")
    tab_to(page, page.locator(".over"))
    page.keyboard.press("Home")
    page.keyboard.press("p")
    expect(page.locator("#candidate")).to_contain_text("Pinned:")
    page.keyboard.press("End")
    page.keyboard.press("p")
    expect(page.get_by_role("link", name="Compare 2 pinned →")).to_be_visible()
    picture(studio, "search")
    page.keyboard.press("c")
    page.wait_for_url("**/compare**")
    press(page, page.get_by_role("button", name="Compare"))
    finish(page, "Scores, computed afresh")
    picture(studio, "compare")
    press(page, page.get_by_role("button", name=re.compile("Propose No")).first)
    finish(page, "Proposed: No.")
    press(page, page.get_by_role("button", name="Write the report"))
    finish(page, "Open the report")
    picture(studio, "release")
    press(page, page.get_by_role("button", name="Go to the sign-off"))
    press(page, page.get_by_role("button", name="Approve and release"))
    finish(page, "The public folder may leave the house")
    picture(studio, "sign-off")
    assert studio.complaints == []


@pytest.mark.nightly
def test_a_hundred_thousand_candidates_are_drawn_within_the_budget(studio: Visitor) -> None:
    page = studio.go("search")
    page.wait_for_selector("body[data-loaded]")
    cost = page.evaluate(
        """() => {
            const count = 100800, ids = new Uint32Array(count);
            const x = new Float32Array(count), y = new Float32Array(count);
            for (let i = 0; i < count; i++) {
                ids[i] = i + 1e6; x[i] = (i % 997) / 1e4; y[i] = ((i * 7919) % 100003) / 5e6;
            }
            plane.add(ids, x, y);
            const all = [];
            for (let k = 0; k < 7; k++) { plane.redraw(); all.push(plane.cost); }
            const started = performance.now();
            for (let k = 0; k < 200; k++) plane.nearest(100 + 2 * k, 150 + k % 90);
            return { redraw: all.sort((a, b) => a - b)[3], hover: (performance.now() - started) / 200 };
        }"""
    )
    assert cost["redraw"] <= 60
    assert cost["hover"] <= 2


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_empty_pages_say_what_to_do_next(studio: Visitor, scheme: Literal["light", "dark"]) -> None:
    page = studio.page
    page.emulate_media(color_scheme=scheme)
    page.goto(studio.origin)
    page.get_by_label(re.compile("Name of the")).fill("Empty")
    page.keyboard.press("Enter")
    page.wait_for_url("**/data")
    studio.project = page.url.split("/")[-2]
    for step in STEPS:
        studio.go(step)
        expect(page.locator(".empty").first).to_be_visible()
        assert serious(page) == []
    page.emulate_media(color_scheme="light")
    assert studio.complaints == []
