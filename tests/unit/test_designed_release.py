"""Releases and reports of designed swaps: the dossier tells all, the public folder nothing."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import quadrille as qd
from quadrille import chart
from quadrille.data import Data
from quadrille.errors import ParameterError, QuadrilleError
from quadrille.present.account import LIMITS, diagnosis_of
from quadrille.present.words import design
from quadrille.report import write_report
from quadrille.report.frontier_chart import floor_of

SETTINGS = {"n": 4, "share": 0.73, "price": 0.377, "spread": 0.27, "effort": 0.043}


@pytest.fixture(scope="module")
def released(cps8d: Data, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, qd.DesignedSwap]:
    recipe = qd.DesignedSwap(**SETTINGS)  # type: ignore[arg-type]
    made = qd.release(cps8d, recipe, tmp_path_factory.mktemp("release") / "r", measures=["exposed", "hellinger"])
    return made.path, recipe


def test_the_public_folder_tells_nothing_of_the_design(released: tuple[Path, qd.DesignedSwap], cps8d: Data) -> None:
    path, recipe = released
    plain = qd.release(cps8d, qd.RandomSwap(["Age"], pairs=5), path.parent / "plain")
    note = (path / "public" / "methods.md").read_text(encoding="utf-8")
    assert note == (plain.public / "methods.md").read_text(encoding="utf-8"), "one note for all methods"
    facts = recipe.plan(cps8d).report(cps8d)
    counts = [facts.records, facts.changed, facts.details["camouflaged"], facts.details["small_cells"]]
    numbers = set(re.findall(r"[\d.]+\d", note))
    assert not numbers & {str(each) for each in (*SETTINGS.values(), *counts)}
    assert not re.search(r"designed|camoufl|small cells? (were|was)|price|threshold", note, re.IGNORECASE)
    assert sorted(file.name for file in (path / "public").iterdir()) == ["codebook.toml", "data.csv", "methods.md"]


def test_the_dossier_tells_treated_and_left_cells_and_warns_of_the_n_rule(
    released: tuple[Path, qd.DesignedSwap], cps8d: Data
) -> None:
    path, recipe = released
    text = (path / "confidential" / "dossier.md").read_text(encoding="utf-8")
    account = recipe.plan(cps8d).report(cps8d)
    found = diagnosis_of(account)
    assert found is not None
    for name, fact in found.facts.pairs:
        assert f"- {name}: {fact}\n" in text
    assert found.beware.text in text and all(line in text for line in LIMITS)
    for row in (*found.by_size.rows, *found.just_large.rows):
        assert "| " + " | ".join(row) + " |" in text
    view = text[text.index("## The intruder's view") :]
    assert (
        view.index(f"| exposed(n={recipe.n}) |")
        < view.index("| attributed_unique |")
        < view.index("gone from the release")
    )
    facts = account.details
    listed = sum(facts["left"].values())  # type: ignore[attr-defined]
    assert facts["camouflaged"] + facts["emptied"] + listed == facts["small_cells"]  # type: ignore[operator]


def test_sets_of_columns_are_written_with_stars_in_the_dossier(cps8d: Data, tmp_path: Path) -> None:
    tables = [["Age", "Edu", "MS", "AnnSal"], ["Race", "Edu", "MS"]]
    recipe = qd.DesignedSwap(tables=tables, loss={"hellinger": 2}, effort=0.02)
    made = qd.release(cps8d, recipe, tmp_path / "r", measures=["exposed"])
    text = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    assert "Age*Edu*MS*AnnSal, Race*Edu*MS" in text and "hellinger: 2.0" in text
    assert "over all protected tables" in text


def test_other_methods_have_no_diagnosis(cps8d: Data) -> None:
    assert diagnosis_of(qd.RandomSwap(["Age"], pairs=5, seed=1).plan(cps8d).report(cps8d)) is None


def test_the_factor_f_is_refused_and_the_column_never_is_left_out(cps8d: Data, tmp_path: Path) -> None:
    with pytest.raises(QuadrilleError, match="no factor f"):
        qd.release(cps8d, qd.DesignedSwap(effort=0.02), tmp_path / "f", publish_f=True)
    frame = cps8d.frame().with_columns(out=pl.int_range(pl.len()) % 7 == 0)
    data = qd.from_frame(frame)
    made = qd.release(data, qd.DesignedSwap(never="out", effort=0.02), tmp_path / "r", measures=["exposed"])
    assert "out" not in (made.public / "data.csv").read_text(encoding="utf-8").splitlines()[0].split(",")


@pytest.fixture(scope="module")
def reported(cps8d: Data, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, qd.Plan]:
    folder = tmp_path_factory.mktemp("report")
    cloud = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race"]], pairs=[244, 2442], seed=1)
    curve = qd.DesignedSwap.curve(shares=[1.0], prices=[0.1, 0.3], effort=0.02, seed=1)
    measures = ["exposed", "small_cells", "hellinger", "confidence"]
    study = qd.search(cps8d, [cloud, curve], measures, out=folder / "s", workers=1, progress=False)
    page = write_report(study, cps8d, folder / "r.html", candidate=7).read_text(encoding="utf-8")
    return page, study.recipe(7).plan(cps8d)


def test_the_report_has_the_curve_with_its_bound_and_the_warning(reported: tuple[str, qd.Plan]) -> None:
    page, plan = reported
    section = page[page.index('<h2 id="designed">') : page.index('<h2 id="intruder">')]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section))
    assert re.search("Of the 4 other candidates of the study [2-4] are beaten by a designed one", text)
    assert "least possible loss" in text and len(re.findall(r"\d\.\d %", text)) >= 3, "a gap for each"
    assert re.search(r"547 cells of 1 or 2 records: \d+ camouflaged", text)
    assert plan.details is not None
    assert all(reason in text for reason in plan.details.facts["left"])
    assert re.search(r"swaps that undo one another +0\.0001\d+ +0\.0150076 +0 ", text), (
        "small_cells falls, exposed does not"
    )
    assert "chart-designed-small-cells" in section


def test_a_study_without_designed_swaps_has_no_such_section(cps8d: Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[244], seed=range(2))
    study = qd.search(cps8d, recipes, ["exposed", "hellinger"], out=tmp_path / "s", progress=False)
    assert 'id="designed"' not in write_report(study, cps8d, tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_floor_says_why_there_is_none(cps8d: Data) -> None:
    assert "different tables" in floor_of(cps8d, ["exposed"], ("exposed", "hellinger(Age*Sex)")).why_none
    assert "no lower bound" in floor_of(cps8d, ["exposed"], ("exposed", "entropy_change")).why_none
    assert "no exposed" in floor_of(cps8d, [], ("small_cells", "hellinger")).why_none
    weighted = qd.from_frame(cps8d.frame().with_columns(w=pl.lit(2.0)), weight="w")
    assert "weight" in floor_of(weighted, ["exposed"], ("exposed", "hellinger")).why_none


def test_designs_are_named_by_what_they_may_move() -> None:
    base = {"method": "DesignedSwap", "swap": "", "pairs": None, "rate": None}
    assert design({**base, "other": "price 0.3"}) == "designed swap of all key variables, price 0.3"
    assert design({**base, "other": "tables A*B"}) == "designed swap of the variables of its tables, tables A*B"


def points(methods: list[str]) -> pl.DataFrame:
    rows = [
        {"risk": 0.01 - i / 1000, "loss": 0.01 * (1 + i), "swap": "x", "rate": None if m == "designed" else 0.02}
        | {"on_frontier": True, "chosen": False, "label": str(i), "method": m}
        for i, m in enumerate(methods)
    ]
    return pl.DataFrame(rows)


def marks(figure: chart.Figure, kind: str) -> list[dict[str, object]]:
    layers = figure.to_dict()["layer"]
    return [layer for layer in layers if layer["mark"]["type"] == kind]


def test_the_chart_tells_methods_apart_by_shape_and_shows_those_without_a_rate() -> None:
    figure = chart.frontier(points(["random", "designed", "designed"]), risk="exposed", loss="hellinger")
    dots = marks(figure, "point")
    shapes = {str(dot["encoding"]["shape"]["field"]) for dot in dots}  # type: ignore[index]
    scale = dots[0]["encoding"]["shape"]["scale"]  # type: ignore[index]
    assert shapes == {"method"} and scale == {"domain": ["random", "designed"], "range": ["circle", "diamond"]}
    assert any(dot["encoding"]["size"] == {"value": 70} for dot in dots), "a size where the rate is unknown"  # type: ignore[index]
    alone = chart.frontier(points(["designed"] * 2), risk="exposed", loss="hellinger")
    assert {dot["encoding"]["shape"]["field"] for dot in marks(alone, "point")} == {"group"}  # type: ignore[index]


def test_the_bound_is_a_thin_line_beside_exposed_only() -> None:
    bound = pl.DataFrame({"exposed": [0.01, 0.0], "least_loss": [0.0, 0.02]})
    figure = chart.frontier(points(["designed"] * 3), risk="exposed", loss="hellinger", bound=bound)
    lines = marks(figure, "line")
    assert [line["encoding"]["y"]["field"] for line in lines] == ["risk", "exposed"]  # type: ignore[index]
    assert "lower bound" in " ".join(figure.to_dict()["title"]["subtitle"])
    with pytest.raises(ParameterError, match="one of exposed"):
        chart.frontier(points(["designed"] * 3), risk="confidence", loss="hellinger", bound=bound)
