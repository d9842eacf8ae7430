"""The report: what it says is true, what is secret stays out, and it needs nothing from outside."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from markupsafe import Markup

import quadrille as qd
from quadrille.data import Cross, Data
from quadrille.errors import InputError, MismatchError, OutputError
from quadrille.plan import Plan
from quadrille.present import numbers, words
from quadrille.randomness import Seed
from quadrille.recipe import Prepared, Recipe
from quadrille.report import input as scopes
from quadrille.report import sections, tables, write_report
from quadrille.report.build import templates
from quadrille.study.study import Study

MEASURES = ["small_cells", "exposed", "hellinger"]
FRESH = ["small_cells", "exposed", "attributed_unique", "confidence", "hellinger", "total_variation"]
FRESH += ["entropy_change", "cramers_v_change"]
SECTIONS = ["summary", "profile", "design", "frontier", "rivals", "tables", "intruder", "seeds", "measures", "limits"]
ODD = '<b>&"x"'


class Page(HTMLParser):
    """Collects what a browser would look at; scripts and styles are kept apart from text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("src", "href", "srcset", "action", "data", "poster", "background", "xlink:href"):
                self.links.append((tag, name, value or ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        if tag in ("td", "th", "dt", "dd", "caption"):
            self.text += " "

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


def specs_of(path: Path) -> dict[str, Any]:
    """Return the specifications of the charts, as the page holds them."""
    script = path.read_text(encoding="utf-8").rpartition("const specs = ")[2]
    found, _ = json.JSONDecoder().raw_decode(script)
    return found


@pytest.fixture(scope="module")
def study(cps8d: Data, tmp_path_factory: pytest.TempPathFactory) -> Study:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"], ["Race", "AnnSal"]], pairs=[244, 2442], seeds=4)
    beyond = qd.grid(qd.RandomSwap, swap=[["Race"], ["Sex"]], pairs=[20_000], seeds=2)
    return qd.search(cps8d, [recipes, beyond], MEASURES, out=tmp_path_factory.mktemp("study") / "s", progress=False)


@pytest.fixture(scope="module")
def report(study: Study, cps8d: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(study, cps8d, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def page(report: Path) -> Page:
    return Page(report)


def small(seed: int = 0, *, weight: bool = False) -> Data:
    """Return 400 records of three variables, one with a category that looks like markup."""
    dice = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "colour": dice.choice(["red", "green", ODD, "</script>"], 400, p=[0.5, 0.4, 0.05, 0.05]),
            "size": dice.integers(0, 12, 400),
            "place": dice.choice(["north", "south", "east"], 400),
            **({"w": dice.integers(1, 50, 400) / 4} if weight else {}),
        }
    )
    return qd.from_frame(frame, weight="w" if weight else None)


def study_of(data: Data, folder: Path, measures: list[str] = MEASURES, **grid: Any) -> Study:
    given: dict[str, Any] = {"swap": [["colour"], ["size"]], "pairs": [10, 60], "seeds": 3} | grid
    return qd.search(data, qd.grid(qd.RandomSwap, **given), measures, out=folder / "study", progress=False)


def test_all_sections_are_there_and_the_contents_lead_to_them(page: Page) -> None:
    anchors = [link.removeprefix("#") for _, _, link in page.links]
    assert anchors == ["summary", *SECTIONS]
    assert set(SECTIONS) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == 1
    assert page.tags.count("caption") == page.tags.count("table")
    assert "built-in method" not in page.text
    assert " object at 0x" not in page.text


def test_the_intruders_view_sets_exposed_next_to_what_is_inferred(page: Page) -> None:
    text = page.text[page.text.index("What somebody learns who has the released file") :]
    assert text.index("exposed") < text.index("attributed_unique") < text.index("gone from the release")
    assert text.index("linked_small") < text.index("Finding a person's row by the keys") < text.index("Advice:")
    assert "Telling by other columns which records came in is an attack on designed swaps" in text


def test_the_header_says_what_this_is(page: Page, study: Study) -> None:
    assert page.text.index("Confidential") < page.text.index("report to the review board")
    assert study.header.fingerprint in page.text
    assert f"version {qd.__version__}" in page.text
    assert re.search(r"\d{4}-\d\d-\d\d, \d\d:\d\d UTC", page.text)
    assert str(study.path.parent) not in page.text


def test_numbers_equal_those_of_score(page: Page, study: Study, cps8d: Data) -> None:
    choice = study.pick("safe")  # nobody has picked, and none halves the risk, so the safe one is the example
    options = [option for option in (choice.safer, choice.gentler) if option is not None]
    candidates = [choice.candidate, *(option.candidate for option in options)]
    before = qd.score(cps8d, Plan([], data=cps8d), FRESH)
    scores = [qd.score(cps8d, study.recipe(number).plan(cps8d), FRESH) for number in candidates]
    for name in FRESH:
        better = qd.measures().filter(pl.col("name") == name)["better"].item()
        values = " ".join(numbers.score(each[name]) for each in (before, *scores))
        assert f"{name} {qd.measures().filter(pl.col('name') == name)['side'].item()} {better} {values}" in (
            page.text.replace("▸ ", "")
        ), name
    for name in ("small_cells", "exposed", "attributed_unique", "confidence"):
        assert f"{numbers.score(before[name])} {numbers.score(scores[0][name])}" in page.text
    assert "733 of 48,842 records (1.501 %)" in page.text


def test_the_account_is_that_of_the_plan(study: Study, cps8d: Data) -> None:
    scope = scopes.look(study, cps8d, None, None, None)
    listed = next(block for block in sections.rivals(scope)["blocks"] if block.caption.startswith("The account:"))
    shown = {name: values for name, *values in listed.rows}
    accounts = [study.recipe(c.number).plan(cps8d).report(cps8d) for c in scope.candidates]
    assert shown["pairs"] == [f"{a.asked:,} asked, {a.pairs:,} drawn" for a in accounts]
    assert [value.split()[0] for value in shown["compensating"]] == [f"{a.compensating:,}" for a in accounts]


def test_no_address_leads_outside(page: Page, report: Path) -> None:
    assert all(tag == "a" and name == "href" and link.startswith("#") for tag, name, link in page.links)
    assert not {"link", "img", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    style = re.search(r"<style>(.*?)</style>", report.read_text(), re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "default-src 'none'" in report.read_text()


def test_neither_seeds_nor_pairs_nor_rows_are_in_it(report: Path, study: Study, cps8d: Data) -> None:
    html = report.read_text(encoding="utf-8")
    own = html.replace(re.search(r"<script>.*?</script>", html, re.DOTALL)[0], "")  # pyright: ignore[reportOptionalSubscript]
    for number in study.ids.tolist():
        seed = study.recipe(number).parameters()["seed"]
        assert len(seed) == 64
        assert seed not in own
    fields: set[str] = set()
    lists: list[list[object]] = []
    _walk(specs_of(report), fields, lists)
    assert not fields & {"seed", "seed_no", "seeds_used", "row", "rows", "record", "pair", "source"}
    plan = study.pick("safe").recipe.plan(cps8d)
    assert not any(isinstance(each, int) and each > 5_000 for found in lists for each in found)
    assert all(f"{a:,} {b:,}" not in own for a, b in plan.pairs.tolist() if a > 10_000)  # pyright: ignore[reportOptionalMemberAccess]


def _walk(value: Any, fields: set[str], lists: list[list[object]]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            fields.add(name)
            _walk(inner, fields, lists)
    elif isinstance(value, list):
        lists.append(value)
        for inner in value:
            _walk(inner, fields, lists)


def test_a_seed_that_is_a_number_stays_out_too(tmp_path: Path) -> None:
    data, seed = small(), 918_273_645_546
    out = write_report(study_of(data, tmp_path, seeds=None, seed=[seed]), data, tmp_path / "r.html")
    assert str(seed) not in out.read_text()
    assert f"{seed:,}" not in out.read_text()


def test_the_file_is_for_its_owner_alone(report: Path) -> None:
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert not [entry for entry in report.parent.iterdir() if entry != report]


def test_labels_are_escaped(tmp_path: Path) -> None:
    data = small()
    page = Page(write_report(study_of(data, tmp_path), data, tmp_path / "r.html"))
    assert ODD in page.text
    assert "</script>" in page.text
    assert "b" not in page.tags
    assert page.tags.count("script") == 2


def test_infeasible_candidates_are_counted_with_their_reasons(page: Page, study: Study, cps8d: Data) -> None:
    _, outcome, reasons = sections.design(scopes.look(study, cps8d, None, None, None))["blocks"]
    assert dict(outcome.rows) == {"done": "24", "infeasible": "4"}
    assert [number for _, number in reasons.rows] == ["2", "2"]
    assert "20,000 pairs cannot be drawn for swapping Race: the maximum is 7,080." in page.text
    assert "4 candidates without both scores were left out." in page.text


def test_weighted_totals_are_shown_where_there_is_a_weight(tmp_path: Path) -> None:
    data = small(weight=True)
    study = study_of(data, tmp_path)
    page = Page(write_report(study, data, tmp_path / "r.html"))
    assert data.ticks is not None
    total = data.ticks.values.sum() / data.ticks.per_unit
    assert f"w, total {total:,.10g} (exact)" in page.text
    assert "weighted before" in page.text
    shown = tables.tables(scopes.look(study, data, None, None, None))["one_way"]
    assert all(table.caption.endswith(": exactly kept") and table.head[-1] == "change" for table in shown)
    assert any(row[-1] not in ("0 %", "0") for table in shown for row in table.rows)


def test_a_named_candidate_off_the_frontier_is_called_that(study: Study, cps8d: Data, tmp_path: Path) -> None:
    done = set(study.frame().filter(pl.col("status") == "done")["id"])
    beaten = min(done - set(study.frontier()["id"]))
    page = Page(write_report(study, cps8d, tmp_path / "r.html", candidate=beaten))
    assert f"Proposed for release: candidate {beaten}" in page.text
    assert "It is not on the frontier:" in page.text
    assert "it was named, not chosen by a rule" in page.text
    better = study.choice(beaten).better
    assert better is not None and f"No. {better.candidate}, better:" in page.text
    assert "has no more risk and no more loss" in page.text and "next safer" not in page.text
    protects = study.choice(beaten).protects
    assert ("this candidate is not recommended" in page.text) != protects


def test_a_named_candidate_on_the_frontier_has_the_neighbours_that_pick_gives(study: Study, cps8d: Data) -> None:
    ends = study.frontier()["id"].to_list()
    for number, rule in ((ends[0], "least risk"), (ends[-1], "least loss")):
        named, picked = scopes.look(study, cps8d, number, None, None).choice, study.pick(rule)
        assert (named.safer, named.gentler, named.dominates) == (picked.safer, picked.gentler, picked.dominates)


def test_the_spread_is_that_of_the_seeds(study: Study, cps8d: Data) -> None:
    scope = scopes.look(study, cps8d, None, None, None)
    told = sections.seeds(scope)
    same = study.frame().filter(pl.col("design") == scope.chosen.design["design"])
    assert told["seeds"] == same.height == 4
    risk = told["rows"][0]
    assert risk["mean"] == numbers.score(same["small_cells"].mean())  # pyright: ignore[reportArgumentType]
    assert risk["sd"] == numbers.score(same["small_cells"].std())  # pyright: ignore[reportArgumentType]


def test_the_rule_of_the_study_decides_what_a_small_cell_is(tmp_path: Path) -> None:
    data = small()
    study = study_of(data, tmp_path, ["small_cells(n=5)", "hellinger"])
    scope = scopes.look(study, data, None, None, None)
    assert scope.together == ("small_cells(n=5)", "exposed(n=5)", "confidence(n=5)")
    page = Page(write_report(study, data, tmp_path / "r.html"))
    assert "exposed(n=5)" in page.text
    assert "in cells of 1 to 4 records" in page.text


def test_categories_add_up_to_what_score_says(study: Study, cps8d: Data) -> None:
    scope = scopes.look(study, cps8d, None, None, None)
    full = tables.FullTable.of(scope.data, scope.released, scope.keys)
    genuine = scope.chosen.scores.results["exposed"][1].detail["genuine"]
    for name in cps8d.keys:
        before, after = full.genuine_by_category(scope.data, scope.released, name, 3)
        assert before.sum() == 733
        assert after.sum() == genuine
    sizes = full.sizes(4)
    assert sum(row["genuine"] for row in sizes if row["when"] == "after" and row["size"] < 3) == genuine


def test_swapped_shares_add_up_to_all_that_take_part(study: Study, cps8d: Data) -> None:
    scope = scopes.look(study, cps8d, None, None, None)
    mask = np.isin(np.arange(cps8d.n), scope.chosen.plan.rows)
    rows = tables.FullTable.of(scope.data, scope.released, scope.keys).swapped(mask)
    assert sum(row["records"] for row in rows) == cps8d.n
    assert round(sum(row["records"] * (row["swapped"] or 0) for row in rows)) == len(scope.chosen.plan.rows)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ((0.015, 0.015), (0.0001, 0.0149), "disagree"),
        ((0.015, 0.015), (0.0120, 0.0149), "disagree"),
        ((0.015, 0.015), (0.0126, 0.0121), "agree"),
        ((0.015, 0.015), (0.0148, 0.0150), "agree"),
        ((0.015, 0.015), (0.0160, 0.0150), "agree"),
        ((0.015, 0.015), (None, 0.0100), "unknown"),
        ((0.0, 0.0), (0.0, 0.0), "unknown"),
    ],
)
def test_the_two_risks_are_compared(before: tuple[float, float], after: tuple[float | None, float], kind: str) -> None:
    assert words.agreement(before, after).kind == kind


def test_the_finding_gives_both_falls() -> None:
    text = words.agreement((0.02, 0.02), (0.005, 0.019)).text
    assert "(small_cells) fell by 75.0 %, but exposed fell by 5.0 % and is still at 95 %" in text
    assert "That is little" in words.agreement((0.02, 0.02), (0.0195, 0.0195)).text


@pytest.fixture
def compensating() -> Iterator[type[Recipe]]:
    """A method whose pairs differ in one variable only: records of small cells take part and no cell changes."""

    @dataclass(frozen=True)
    class CompensatingSwap(Recipe):
        swap: tuple[str, ...]
        _: KW_ONLY
        seed: Seed = field(default=None, repr=False)

        def prepare(self, data: Data) -> Prepared:
            return Prepared(lambda _: Plan.of_pairs(data, self.swap, fooling_pairs(data, self.swap[0])))

    known = dict(Recipe.methods)
    Recipe.methods["CompensatingSwap"] = CompensatingSwap
    yield CompensatingSwap
    Recipe.methods.clear()
    Recipe.methods.update(known)


def fooling_pairs(data: Data, name: str) -> np.ndarray:
    """Pair each record of a small cell with one that differs from it in this variable alone."""
    cells = Cross.of(data, data.keys).cells(data)
    _, cell, count = np.unique(cells, return_inverse=True, return_counts=True)
    rest = Cross.of(data, tuple(key for key in data.keys if key != name)).cells(data)
    free: dict[int, list[int]] = {}
    for row in np.argsort(count[cell], kind="stable").tolist():
        free.setdefault(int(rest[row]), []).append(row)
    values, pairs = data[name].values, list[tuple[int, int]]()
    for rows in free.values():
        used: set[int] = set()
        for row in (each for each in rows if count[cell[each]] < 3):
            partner = next((r for r in rows if r not in used | {row} and values[r] != values[row]), None)
            if row not in used and partner is not None:
                used |= {row, partner}
                pairs.append((row, partner))
    return np.array(pairs)


def test_a_release_that_fools_the_rule_is_found_out(compensating: type[Recipe], cps8d: Data, tmp_path: Path) -> None:
    fooling, honest = compensating(("Edu",), seed=1), qd.RandomSwap(["Edu"], pairs=244, seed=1)  # pyright: ignore[reportCallIssue]
    study = qd.search(cps8d, [fooling, honest], MEASURES, out=tmp_path / "study", progress=False)
    assert study.frame()["small_cells"][0] < 0.7 * 733 / 48_842
    assert study.frame()["exposed"][0] == 733 / 48_842
    fooled = Page(write_report(study, cps8d, tmp_path / "fooled.html", candidate=1)).text
    assert "Do the risk measures agree? No. The two risk measures disagree." in fooled
    assert "but exposed did not change and is still at 100 % of what it was" in fooled
    assert "judge it by exposed and confidence" in fooled
    assert "Do the risk measures agree? Yes." in Page(write_report(study, cps8d, tmp_path / "r.html", candidate=2)).text


def test_other_data_are_refused(study: Study, tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match="made for other data"):
        write_report(study, small(), tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    data = small()
    study, out = study_of(data, tmp_path), tmp_path / "r.html"
    out.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        write_report(study, data, out)
    assert out.read_text() == "mine"
    assert "review board" in write_report(study, data, out, overwrite=True).read_text()
    with pytest.raises(OutputError, match="is the study itself"):
        write_report(study, data, study.path, overwrite=True)
    with pytest.raises(OutputError, match="exists"):
        write_report(study, data, tmp_path, overwrite=True)
    with pytest.raises(OutputError, match="Cannot write"):
        write_report(study, data, tmp_path / "no" / "r.html")


def test_a_study_of_one_side_is_refused(tmp_path: Path) -> None:
    data = small()
    with pytest.raises(InputError, match="has no risk measure"):
        write_report(study_of(data, tmp_path, ["hellinger"]), data, tmp_path / "r.html")


def test_candidates_without_scores_are_refused(study: Study, cps8d: Data, tmp_path: Path) -> None:
    bad = study.frame().filter(pl.col("status") == "infeasible")["id"][0]
    with pytest.raises(InputError, match=rf"Candidate {bad} of the study .* has no score on both axes"):
        write_report(study, cps8d, tmp_path / "r.html", candidate=bad)
    with pytest.raises(InputError, match=r"Candidate 999 of the study .* does not exist"):
        write_report(study, cps8d, tmp_path / "r.html", candidate=999)
    with pytest.raises(InputError, match="There is no measure"):
        write_report(study, cps8d, tmp_path / "r.html", risk="hellingr")


def test_one_candidate_and_one_key_variable_make_a_report(tmp_path: Path) -> None:
    data = qd.from_frame(pl.DataFrame({"a": ["x", "y", "y", "z"] * 5, "b": [float(i) / 7 for i in range(20)]}))
    assert data.keys == ("a",)
    study = study_of(data, tmp_path, swap=[["b"]], pairs=[3], seeds=1)
    page = Page(write_report(study, data, tmp_path / "r.html"))
    assert "There is one key variable only" in page.text
    assert "No candidate is safer than the chosen one." in page.text
    assert "drawn with one seed only" in page.text


def test_signed_axes_and_many_levels_are_told(tmp_path: Path) -> None:
    data = small()
    study = study_of(
        data,
        tmp_path,
        ["conditional_entropy", "entropy_change"],
        pairs=list(range(5, 60)),
        same=[[], ["place"]],
        seeds=2,
    )
    out = write_report(study, data, tmp_path / "r.html")
    assert "|entropy_change|" in out.read_text()
    assert "−conditional_entropy" in out.read_text()
    effects = specs_of(out)["chart-parameter-effects"]
    titles = [row["title"]["text"] for row in effects["vconcat"]]
    assert titles == ["variables swapped", "number of pairs", "must agree within a pair"]


def test_charts_show_the_exposed_that_belongs_to_the_n_rule_shown(tmp_path: Path) -> None:
    data = small()
    study = study_of(data, tmp_path, ["small_cells", "small_cells(n=5)", "hellinger"])
    for risk, beside in (("small_cells", "exposed"), ("small_cells(n=5)", "exposed(n=5)")):
        charts = specs_of(write_report(study, data, tmp_path / "r.html", risk=risk, overwrite=True))
        for name in ("chart-frontier", "chart-seed-cloud"):
            panels = [panel["layer"][0]["encoding"]["y"]["title"] for panel in charts[name]["vconcat"]]
            assert panels == [f"{risk} (risk, lower is better)", f"{beside} (risk, lower is better)"]
        strips = charts["chart-parameter-effects"]["vconcat"][0]["hconcat"]
        assert [strip["layer"][0]["encoding"]["x"]["title"] for strip in strips] == [risk, beside, "hellinger"]


def test_names_cannot_steer_a_reader_and_our_own_markup_stays() -> None:
    page = templates().from_string("{{ name }}|{{ ours }}").render(name="A\x1b\u202e<b>\nB", ours=Markup("<i>\x1b</i>"))
    assert page == "A\\x1b\\u202e&lt;b&gt;\nB|<i>\x1b</i>"
