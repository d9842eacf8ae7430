"""Reports to three readers: each page says what its reader needs, true to the data, and nothing that is not theirs."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Browser, sync_playwright

import quadrille as qd
from quadrille.data import Data
from quadrille.errors import InputError, MismatchError, OutputError, ParameterError
from quadrille.plan import Plan
from quadrille.present import numbers
from quadrille.report.readers import FILES, correlation_points, write_readers
from quadrille.score.estimates import before_after

SEED = 918_273_645
TARGETS = 0.0837
ODD = '<b>&"x"</script>'
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BOOK = qd.Codebook(
    (
        qd.Variable("race", "nominal", ("a", "b", ODD), missing=("?",), role="key"),
        qd.Variable("age", "ordinal", (1, 2, 3, 4, 10), role="key"),
        qd.Variable("area", "nominal", ("n", "s"), role="key"),
        qd.Variable("score", "numeric", role="outcome"),
        qd.Variable("reading", "numeric"),
        qd.Variable("h", "nominal"),
        qd.Variable("p", "nominal"),
    )
)


def school(seed: int = 3, n: int = 800) -> Data:
    dice = np.random.default_rng(seed)
    age = dice.choice([1, 2, 3, 4, 10], n)
    frame = pl.DataFrame(
        {
            "race": dice.choice(["a", "b", ODD, "?"], n, p=[0.6, 0.25, 0.1, 0.05]),
            "age": age,
            "area": dice.choice(["n", "s"], n),
            "score": 200 + 5 * age + dice.normal(0, 40, n),
            "reading": dice.normal(7, 1, n),
            "h": dice.integers(0, 6, n),
            "p": dice.integers(0, 2, n),
            "w": dice.integers(1, 9000, n) / 100,
        }
    )
    return qd.from_frame(frame, codebook=BOOK, weight="w")


def recipe(**given: Any) -> qd.Recipe:
    settings: dict[str, Any] = {"targets": TARGETS, "stratum": ["h"], "boundary": ["area"], "seed": SEED} | given
    return qd.ControlledSwap(["race", "age"], **settings)


class Page(HTMLParser):
    """Collects what a browser shows; scripts and styles are kept apart."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text, self.scripts, self._inside = "", "", ""
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action", "srcset", "data")]

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self.text += " " if tag in ("td", "th", "dt", "dd", "caption", "summary") else ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts += data
        elif self._inside != "style":
            self.text += data

    @property
    def specs(self) -> str:
        """The data of the charts, as the page holds them."""
        if "const specs = " not in self.scripts:
            return ""
        return json.dumps(json.JSONDecoder().raw_decode(self.scripts.rpartition("const specs = ")[2])[0])


@pytest.fixture(scope="module")
def data() -> Data:
    return school()


@pytest.fixture(scope="module")
def plan(data: Data) -> Plan:
    return recipe(matching="optimal").plan(data)


@pytest.fixture(scope="module")
def paths(data: Data, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("readers") / "out"
    return write_readers(
        data, recipe(matching="optimal"), out, stratum="h", cluster="p", models=["score ~ age + C(area)"]
    )


@pytest.fixture(scope="module")
def pages(paths: dict[str, Path]) -> dict[str, Page]:
    return {name: Page(path) for name, path in paths.items()}


def test_three_private_files_in_a_private_folder(paths: dict[str, Path]) -> None:
    assert set(paths) == {"analyst", "chair", "board"}
    folder = paths["chair"].parent
    assert {path.name for path in folder.iterdir()} == set(FILES)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths.values())
    assert [entry.name for entry in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("name", ["analyst", "chair", "board"])
def test_every_page_is_confidential_and_names_its_reader_and_the_data(
    name: str, pages: dict[str, Page], data: Data
) -> None:
    text = pages[name].text
    assert text.index("Confidential", 30) < text.index("Data swapping: report to", 60)
    assert f"report to the { {'analyst': 'analyst', 'chair': 'chair of', 'board': 'members of'}[name] }" in text
    assert data.fingerprint in text and f"version {qd.__version__}" in text
    assert pages[name].tags.count("h1") == 1
    assert pages[name].tags.count("table") == pages[name].tags.count("caption")
    assert all(link.startswith("#") for link in pages[name].links)
    assert "built-in method" not in text and " object at 0x" not in text


def secrets(data: Data, plan: Plan) -> dict[str, list[str]]:
    """All that only the analyst may see, in the forms in which a page could show it."""
    assert plan.details is not None
    account = plan.report(data)
    counts = [account.records, account.pairs, account.changed, *(each.changed for each in account.variables)]
    shares = [TARGETS, account.records / data.n, *(each.rate_paired for each in account.variables)]
    return {
        "seed": [str(SEED), f"{SEED:,}", "seed"],
        "rows": [f"{one} ↔ {other}" for one, other in plan.moves[0].pairs.tolist()[:20]]  # type: ignore[union-attr]
        + [", ".join(map(str, rows.tolist()[:4])) for rows in plan.details.rows.values() if len(rows) > 3]
        + [json.dumps(rows.tolist()[:4]) for rows in plan.details.rows.values() if len(rows) > 3],
        "target rate": [f"{TARGETS:g}", numbers.share(TARGETS), f"{TARGETS:.1%}", f"{100 * TARGETS:g}"],
        "mechanism": ["pairs", "partner", "target", "donor", "stratum", "optimal", "greedy", "ControlledSwap", "rate"],
        "counts": [f" {count:,} " for count in counts if count],
        "shares": [numbers.share(share) for share in shares],
    }


def test_the_analyst_sees_all_of_it_but_the_seed(pages: dict[str, Page], data: Data, plan: Plan) -> None:
    text = pages["analyst"].text
    hidden = secrets(data, plan)
    assert all(row in text for row in hidden["rows"][:20])
    assert f"targets {TARGETS:g}" in text and all(share in text for share in hidden["shares"][1:])
    assert all(word in text for word in ("Targets by stratum", "certain by size", "no partner", "greedy"))
    assert str(SEED) not in text and f"{SEED:,}" not in text
    assert plan.details is not None
    for row in plan.details.facts["strata"]:  # type: ignore[attr-defined]
        counts = " ".join(f"{row[key]:,}" for key in ("records", "never", "asked", "must", "certain", "drawn"))
        assert f"{row['stratum']} {counts}" in text
    for moved in plan.report(data).variables:
        share, paired = numbers.share(moved.rate_changed), numbers.share(moved.rate_paired)
        assert f"{moved.variable} {moved.pairs} {moved.records} {moved.changed} {paired} {share}" in text
    listed = re.findall(r"(\d+) ↔ (\d+)", text.partition("Which records exchanged values")[2].rpartition("Which")[2])
    assert [[int(a), int(b)] for a, b in listed if (a, b) != ("12", "40")] == plan.moves[0].pairs.tolist()  # type: ignore[union-attr]


def test_the_chair_sees_percents_changed_and_nothing_else(pages: dict[str, Page], data: Data, plan: Plan) -> None:
    text, account = pages["chair"].text, plan.report(data)
    for each in account.variables:
        assert f"{each.variable} {numbers.share(each.rate_changed)}" in text
    assert f"any of them {numbers.share(account.changed / account.n)}" in text
    assert "script" not in pages["chair"].tags
    hidden = secrets(data, plan)
    allowed = {numbers.share(each.rate_changed) for each in account.variables} | {
        numbers.share(account.changed / data.n)
    }
    for kind, forms in hidden.items():
        for form in forms:
            assert form in allowed or form not in text, (kind, form)
    body = text[text.index("1. How much was changed") :]
    assert set(re.findall(r"\d+(?:\.\d+)? %", body)) == allowed


def test_the_board_sees_no_seed_no_row_number_and_no_rate(pages: dict[str, Page], data: Data, plan: Plan) -> None:
    text = pages["board"].text
    hidden = secrets(data, plan)
    changed = [numbers.share(each.rate_changed) for each in plan.report(data).variables]
    for kind in ("seed", "rows", "target rate", "shares"):
        for form in hidden[kind] + (changed if kind == "shares" else []):
            whole = re.compile(rf"(?<![\d.]){re.escape(form)}")
            assert not whole.search(text) and not whole.search(pages["board"].specs), (kind, form)
    for word in hidden["mechanism"]:
        if word not in ("pairs", "stratum"):  # pairs of variables; the sampling design
            assert not re.search(rf"\b{word}\b", text + pages["board"].specs), word


def test_estimates_on_both_pages_are_those_of_before_after(pages: dict[str, Page], data: Data, plan: Plan) -> None:
    found = before_after(data, plan, stratum="h", cluster="p")
    for name in ("analyst", "board"):
        text = pages[name].text
        assert found.design in text
        for e in found.estimates:
            if e.outcome is None:
                mark = " (missing)" if e.missing else ""
                assert f"{e.category}{mark} {e.n} {e.before:.2f} {e.after:.2f} {100 * (e.relative or 0):.1f} %" in text
            else:
                assert f"{e.n} {e.before:.2f} {e.after:.2f} {100 * (e.relative or 0):.1f} %" in text
        assert f"Flagged: {found.flags().height} of {len(found.estimates)} estimates" in text
        points = json.loads(pages[name].specs)["chart-after-against-before"]
        assert "correlations, before" in json.dumps(points)


def test_utility_is_that_of_score_and_the_analyst_sees_the_rival_beside_it(
    pages: dict[str, Page], data: Data, plan: Plan
) -> None:
    measures = ["hd1", "hd2", "hd1_norm", "r_ased", "c_ard", "v_ard", "ased_reg", "ased_reg(score ~ age + C(area))"]
    scores = qd.score(data, plan, measures)
    assert plan.details is not None
    rival = qd.score(data, plan.details.alternatives["greedy"], measures)
    for measure in measures:
        assert f"{measure} loss lower {numbers.score(scores[measure])}" in pages["board"].text
        values = f"{numbers.score(scores[measure])} {numbers.score(rival[measure])}"
        assert f"{measure} loss lower {values}" in pages["analyst"].text
    for model in ("score ~ C(race) + age", "score ~ age + C(area)"):
        assert model in pages["board"].text
    for row in scores.detail("ased_reg").to_dicts():
        before = " ".join(numbers.value(row[name]).replace("-", "−") for name in ("b_before", "se_before"))
        assert f"{row['term']} {before}" in pages["board"].text


def test_markup_in_labels_is_escaped(paths: dict[str, Path]) -> None:
    for name in ("analyst", "board"):
        raw = paths[name].read_text(encoding="utf-8")
        assert ODD not in raw and "&lt;b&gt;" in raw


def test_targets_without_a_partner_are_told_with_the_reason(tmp_path: Path) -> None:
    data = school(5, 120)
    one = np.zeros(120, dtype=bool)
    one[:20] = True
    frame = data.frame().with_columns(area=pl.when(pl.Series(one)).then(pl.lit("n")).otherwise(pl.lit("s")))
    frame = frame.with_columns(
        age=pl.when(pl.Series(one)).then(1).otherwise("age"),
        race=pl.when(pl.Series(one)).then(pl.lit("a")).otherwise("race"),
    )
    lonely = qd.from_frame(frame, codebook=BOOK, weight="w")
    swap = recipe(targets=0.3, stratum=[])
    plan = swap.plan(lonely)
    assert plan.details is not None and len(plan.details.rows["without partner"])
    text = Page(write_readers(lonely, swap, tmp_path / "out")["analyst"]).text
    assert f"no partner {len(plan.details.rows['without partner'])} target" in text
    for reason, count in plan.details.facts["reasons"].items():  # type: ignore[attr-defined]
        assert f"{reason}: {count}" in text
    assert ", ".join(map(str, plan.details.rows["without partner"].tolist())) in text


def test_any_plan_will_do_and_a_method_without_targets_says_so(data: Data, tmp_path: Path) -> None:
    plan = qd.RandomSwap(["race"], pairs=40, seed=2).plan(data)
    made = {name: Page(path) for name, path in write_readers(data, plan, tmp_path / "a").items()}
    assert "This method draws pairs directly" in made["analyst"].text
    assert "recipe.json" not in made["analyst"].text
    assert "no cluster was given" in made["board"].text
    nothing = write_readers(data, Plan([], data=data), tmp_path / "b")
    assert "Nothing is swapped." in Page(nothing["analyst"]).text
    assert "0 % differ from the original" in Page(nothing["chair"]).text
    assert "There is no estimate to draw." in Page(nothing["board"]).text


def test_outcomes_models_and_measures_can_be_given(data: Data, tmp_path: Path) -> None:
    plan = qd.RandomSwap(["race", "age"], pairs=40, seed=2).plan(data)
    text = Page(write_readers(data, plan, tmp_path / "a", outcomes=["reading"])["board"]).text
    assert "reading by race" in text and "score by race" not in text
    assert "r_ased(race*age*area*reading)" in text and "reading ~ C(race) + C(age)" in text
    without = Page(write_readers(data, plan, tmp_path / "b", outcomes=[])["board"]).text
    assert "There is no outcome to compare" in without and "No regression was asked for" in without
    given = write_readers(data, plan, tmp_path / "c", measures=["hellinger", "small_cells", "conditional_entropy"])
    board, analyst = Page(given["board"]).text, Page(given["analyst"]).text
    assert "hellinger" in board and "conditional_entropy" not in board and "small_cells" not in board
    assert all(name in analyst for name in ("hellinger", "conditional_entropy", "small_cells", "exposed"))
    one = qd.from_frame(pl.DataFrame({"a": ["x", "y"] * 20, "b": np.arange(40) / 7}))
    assert write_readers(one, qd.RandomSwap(["a"], pairs=3, seed=1), tmp_path / "d")["board"].exists()


def test_a_folder_is_replaced_only_when_asked_and_only_if_it_holds_such_reports(data: Data, tmp_path: Path) -> None:
    plan = qd.RandomSwap(["race"], pairs=10, seed=2).plan(data)
    out = tmp_path / "out"
    first = write_readers(data, plan, out)["chair"].read_text()
    with pytest.raises(OutputError, match="not empty"):
        write_readers(data, plan, out)
    more = qd.RandomSwap(["race"], pairs=200, seed=2).plan(data)
    assert write_readers(data, more, out, overwrite=True)["chair"].read_text() != first
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    (out / "mine.txt").write_text("mine")
    with pytest.raises(OutputError):
        write_readers(data, plan, out, overwrite=True)
    assert (out / "mine.txt").read_text() == "mine"


def test_bad_calls_leave_nothing_behind(data: Data, tmp_path: Path) -> None:
    plan = qd.RandomSwap(["race"], pairs=10, seed=2).plan(data)
    with pytest.raises(MismatchError):
        write_readers(school(9), plan, tmp_path / "a")
    with pytest.raises(InputError, match="needs a plan or a recipe"):
        write_readers(data, "plan", tmp_path / "a")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="'models'"):
        write_readers(data, plan, tmp_path / "a", models="score ~ age")
    with pytest.raises(InputError, match="no column 'agee'"):
        write_readers(data, plan, tmp_path / "a", models=["score ~ agee"])
    assert not list(tmp_path.iterdir())


def test_a_correlation_is_flagged_when_it_changes_by_more_than_its_standard_error() -> None:
    rows = [
        {"column_a": "x", "column_b": "y", "r_before": 0.5, "r_after": 0.56, "se": 0.05},
        {"column_a": "x", "column_b": "z", "r_before": 0.5, "r_after": 0.54, "se": 0.05},
        {"column_a": "y", "column_b": "z", "r_before": None, "r_after": 0.54, "se": None},
    ]
    points = correlation_points(rows)
    assert [(point["label"], point["flagged"]) for point in points] == [("x × y", True), ("x × z", False)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt-get install chromium")
@pytest.mark.parametrize("name", ["analyst", "chair", "board"])
def test_a_page_asks_for_nothing_complains_of_nothing_and_fits(
    name: str, browser: Browser, paths: dict[str, Path]
) -> None:
    for width in (1366, 420):
        context = browser.new_context(offline=True, viewport={"width": width, "height": 900})
        page, requests, complaints = context.new_page(), list[str](), list[str]()
        page.on("request", lambda request, seen=requests: seen.append(request.url))
        page.on("console", lambda message, seen=complaints: seen.append(message.text))
        page.on("pageerror", lambda error, seen=complaints: seen.append(str(error)))
        page.goto(paths[name].as_uri())
        if name != "chair":
            page.wait_for_selector(".chart svg.marks")
        assert requests == [paths[name].as_uri()] and complaints == []
        assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        assert page.evaluate("() => [...document.querySelectorAll('th')].every(one => one.scope)")
        context.close()
