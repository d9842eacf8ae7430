"""Published tables: their cells before and after, the worst first; in releases, policies, jobs, studies and reports."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_case import make_data, make_recipe, tree

import oracles
import quadrille as qd
from effort import examples
from oracles import close
from quadrille.errors import InputError, ParameterError
from quadrille.release.policy import Limit, Policy, Published
from quadrille.report import build
from quadrille.report.input import look
from quadrille.report.tables import tables as report_section
from quadrille.study.designed import with_published
from quadrille.study.job import Job
from strategies import Case, cases, coded, column, file_of, numbers

COLUMNS = ("records_before", "records_after", "before", "after", "percent", "relative", "points")
BAD_TABLES = {
    "a text": ("Age*Edu", "'tables' parameter of table_changes must be a list of tables"),
    "a variable twice": (["A*A"], "entry 1: A variable occurs twice in a table."),
    "a table twice": (["A*B", "B*A"], r"entry 2: The table B\*A is listed twice."),
    "no name": (["A*B", "A*"], "entry 2: A table is variables with asterisks between them"),
    "nothing": ([""], "entry 1: A table is variables"),
    "an empty list": ([[]], "entry 1: A table is variables"),
    "a number": ([3], "entry 1: A table is variables"),
    "numbers": ([["A", 3]], "entry 1: A table is variables"),
}


# Cells before and after


@examples(24)
@given(cases(least=1, most=4), st.data())
def test_every_cell_follows_the_definition_from_a_plan_and_from_two_files(case: Case, draw: st.DataObject) -> None:
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=1, max_size=4, unique=True))
    floor = draw.draw(st.integers(1, 12))
    after = case.plan.apply(case.data)
    found = qd.table_changes(case.data, case.plan, [names], floor=floor)
    assert sorted(by_definition(case.data, after, names, floor)) == sorted(rounded(found.frame()))
    files = qd.table_changes(case.data, after, [names], floor=floor)
    assert rounded(files.frame()) == rounded(found.frame())
    assert found.weighted == (case.data.weight is not None)


def by_definition(before: qd.Data, after: qd.Data, names: list[str], floor: int) -> list[tuple[str, ...]]:
    """Every cell in exact fractions: records, weights, per cent, per cent of a cell of `floor` records, points."""
    records = [oracles.counts(data, names) for data in (before, after)]
    was, now = (oracles.table(data, names) for data in (before, after))
    total, least = sum(was.values()), floor * sum(was.values()) / Fraction(before.n)
    total_after = sum(now.values())
    rows = []
    for cell in records[0].keys() | records[1].keys():
        step = Fraction(now[cell]) - was[cell]
        percent = 100 * step / was[cell] if was[cell] else None
        relative = 100 * abs(step) / max(Fraction(was[cell]), least)
        points = 100 * (Fraction(now[cell]) / total_after - Fraction(was[cell]) / total)
        rows.append(as_text(records[0][cell], records[1][cell], was[cell], now[cell], percent, relative, points))
    return rows


def as_text(*values: object) -> tuple[str, ...]:
    """Write numbers with nine digits, so that they can be sorted and compared; a zero has no sign."""
    return tuple("none" if value is None else f"{float(value) + 0.0:.9g}" for value in values)  # type: ignore[arg-type]


def rounded(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    return [as_text(*row) for row in frame.select(COLUMNS).rows()]


@examples(24)
@given(cases(least=2, most=3))
def test_the_largest_change_is_the_worst_cell_and_cells_stand_worst_first(case: Case) -> None:
    names = coded(case.data)
    address = f"worst_cell({'*'.join(f'`{name}`' for name in names)})"
    found = qd.table_changes(case.data, case.plan, [names], percent=5, points=2)
    worst = qd.score(case.data, case.plan, [address])[address]
    assert worst is not None
    assert close(found.tables[0].worst_percent, 100 * worst, 100 * worst)
    rows = found.frame().select("over", "relative", "points").rows()
    keys = [(not over, -relative, -abs(points)) for over, relative, points in rows]
    assert keys == sorted(keys)
    assert [over for over, *_ in rows] == [relative > 5 or abs(points) > 2 for _, relative, points in rows]
    assert found.over().height == found.count_over == sum(over for over, *_ in rows)


def test_cells_that_appear_vanish_or_are_tiny_are_counted_as_the_floor_says() -> None:
    before, after = (qd.Data([column("A", codes, 5), column("B", [0] * 100)]) for codes in appearing())
    found = qd.table_changes(before, after, ["A*B"])
    rows = {row["cell"]: row for row in found.frame().to_dicts()}
    appeared, vanished, tiny = (rows[f"A: A{i}, B: B0"] for i in (3, 2, 1))
    assert (appeared["records_before"], appeared["records_after"], appeared["percent"]) == (0, 4, None)
    assert close(appeared["relative"], 40) and appeared["over"]
    assert (vanished["records_after"], vanished["percent"]) == (0, -100.0) and close(vanished["relative"], 50)
    assert close(tiny["percent"], 50) and close(tiny["relative"], 10) and not tiny["over"], "10 is not more than 10"
    assert "A: A4, B: B0" not in rows, "a cell that is empty before and after is no cell"


def appearing() -> tuple[list[int], list[int]]:
    return [0] * 93 + [1] * 2 + [2] * 5, [0] * 93 + [1] * 3 + [3] * 4


def test_a_large_cell_is_over_the_limits_by_its_points_alone() -> None:
    before, after = file_of(A=[0] * 60 + [1] * 40), file_of(A=[0] * 57 + [1] * 43)
    rows = qd.table_changes(before, after, ["A"]).frame().to_dicts()
    assert [(row["over"], round(row["percent"], 9), round(row["points"], 9)) for row in rows] == [
        *[(True, 7.5, 3.0), (True, -5.0, -3.0)]
    ]


def test_weighted_and_unweighted_counts_stand_next_to_each_other() -> None:
    before, after = file_of([1.5, 2.5, 4.0, 2.0], A=[0, 0, 1, 1]), file_of([1.5, 2.5, 4.0, 2.0], A=[0, 1, 0, 1])
    found = qd.table_changes(before, after, ["A"], floor=1)
    rows = {row["cell"]: row for row in found.frame().to_dicts()}
    assert found.weighted
    assert [rows["A: A0"][name] for name in COLUMNS] == [2, 2, 4.0, 5.5, 37.5, 37.5, 15.0]
    assert [rows["A: A1"][name] for name in COLUMNS] == [2, 2, 6.0, 4.5, -25.0, 25.0, -15.0]


def test_a_table_that_does_not_change_says_so_and_no_table_gives_empty_frames() -> None:
    data = make_data()
    found = qd.table_changes(data, qd.Plan([], data=data), ["Region", "Region*Band*Smoker"])
    assert found.summary()["changed"].to_list() == [0, 0] and found.over().is_empty()
    assert found.over().columns == found.frame().columns
    none = qd.table_changes(data, qd.Plan([], data=data), [])
    assert none.frame().columns == found.frame().columns and none.summary().is_empty()
    assert json.loads(json.dumps(none.as_dict()))["tables"] == []


@pytest.mark.parametrize(("tables", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_list_of_tables_that_is_none_is_refused_with_its_place(tables: object, message: str) -> None:
    data = file_of(A=[0, 1], B=[0, 1])
    with pytest.raises(ParameterError, match=message):
        qd.table_changes(data, qd.Plan([], data=data), tables)  # type: ignore[arg-type]


def test_columns_that_are_missing_or_numeric_are_refused_and_limits_checked() -> None:
    data = qd.Data([column("Tenure", [0, 1]), numbers("Income", [1.0, 2.0])])
    plan = qd.Plan([], data=data)
    with pytest.raises(InputError, match=r"no column 'Tenur' in the published tables\. Did you mean: 'Tenure'"):
        qd.table_changes(data, plan, ["Tenur"])
    with pytest.raises(InputError, match="'Income' is numeric, and a published table needs categories"):
        qd.table_changes(data, plan, ["Tenure*Income"])
    for limits in ({"percent": -1}, {"points": float("nan")}, {"floor": 0}, {"percent": True}):
        with pytest.raises(ParameterError, match=f"'{next(iter(limits))}' parameter of table_changes"):
            qd.table_changes(data, plan, ["Tenure"], **limits)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs Data"):
        qd.table_changes(data, 3, ["Tenure"])  # type: ignore[arg-type]


def test_a_table_with_more_cells_than_numbers_is_refused() -> None:
    wide = qd.Data([column(name, [0, 1], 60_000) for name in ("A", "B", "C", "D")])
    with pytest.raises(InputError, match="more possible cells than can be told apart"):
        qd.table_changes(wide, qd.Plan([], data=wide), ["A*B*C*D"])


# Releases and policies


@pytest.mark.filterwarnings("ignore::quadrille.release.dossier.ReleaseWarning")  # the rows stand in their order
def test_a_release_keeps_what_becomes_of_the_tables_and_publishes_nothing_of_it(tmp_path: Path) -> None:
    data, recipe = make_data(), qd.Recipe.from_json(make_recipe().to_json())
    plain = qd.release(data, recipe, tmp_path / "plain", shuffle=False)
    made = qd.release(data, recipe, tmp_path / "made", shuffle=False, tables=["Region*Smoker", ["Band", "Smoker"]])
    assert tree(made.public) == tree(plain.public), "the public folder is the same with and without tables"
    assert {file.name for file in made.confidential.iterdir()} == {
        *(file.name for file in plain.confidential.iterdir()),
        "tables.parquet",
    }
    assert plain.tables is None and plain.as_dict()["tables"] is None
    assert made.tables is not None
    found = qd.table_changes(data, recipe.plan(data), ["Region*Smoker", "Band*Smoker"])
    assert pl.read_parquet(made.confidential / "tables.parquet").equals(found.frame())
    assert made.tables.as_dict() == found.as_dict() == made.as_dict()["tables"]
    dossier = (made.confidential / "dossier.md").read_text()
    assert "## Published tables" in dossier and "| Region*Smoker | 6 |" in dossier
    assert "Published tables" not in (plain.confidential / "dossier.md").read_text()


def test_a_release_refuses_tables_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'Regio' in the published tables"):
        qd.release(make_data(), make_recipe(), tmp_path / "made", tables=["Regio*Smoker"])
    with pytest.raises(ParameterError, match="'tables' parameter of release must be a list"):
        qd.release(make_data(), make_recipe(), tmp_path / "made", tables="Region*Smoker")
    assert not list(tmp_path.iterdir())


POLICY = """
[policy]
name = "Published"
margin = 0.1
[published]
tables = ["Region*Smoker"]
floor = 20
percent = {most = %s}
points = {most = 100, margin = 0}
over = {most = 1, margin = 0}
over_percent = 0
"""


def test_a_policy_judges_every_table_by_every_limit(tmp_path: Path) -> None:
    data, recipe = make_data(), qd.Recipe.from_json(make_recipe().to_json())
    found = qd.table_changes(data, recipe.plan(data), ["Region*Smoker"], floor=20, percent=0).tables[0]
    assert found.worst_percent > 0
    limits = {"pass": 2 * found.worst_percent, "review": 1.05 * found.worst_percent, "fail": found.worst_percent / 2}
    for outcome, most in limits.items():
        (tmp_path / "policy.toml").write_text(POLICY % most)
        verdict = qd.check_policy(data, recipe, tmp_path / "policy.toml")
        lines = {line.rule: line for line in verdict.lines}
        assert lines["[published] percent(Region*Smoker)"].verdict == outcome
        assert lines["[published] percent(Region*Smoker)"].asked == f"at most {most:g} %"
        over = lines["[published] over(Region*Smoker)"]
        assert (over.verdict, over.found) == ("pass", f"{found.share_over:.6g} of the cells")
        assert lines["[published] points(Region*Smoker)"].found == f"{found.worst_points:.6g} points"
    with pytest.raises(qd.QuadrilleError, match=r"fails the policy 'Published': \[published\] percent") as caught:
        qd.release(data, recipe, tmp_path / "made", policy=tmp_path / "policy.toml")
    assert not any(label in str(caught.value) for label in ("North", "South", "East", "north"))
    assert not (tmp_path / "made").exists()


def test_a_policy_without_tables_takes_those_of_the_release_and_says_where_there_are_none(tmp_path: Path) -> None:
    data, recipe = make_data(), make_recipe()
    policy = Policy(published=Published(percent=Limit(most=1e9), floor=5))
    (line,) = (line for line in qd.check_policy(data, recipe, policy).lines if line.rule.startswith("[published]"))
    assert (line.rule, line.verdict, line.found) == ("[published] tables", "review", "none is named")
    verdict = qd.check_policy(data, recipe, policy, tables=["Band*Smoker", "Region*Band"])
    rules = [line.rule for line in verdict.lines if line.rule.startswith("[published]")]
    assert rules == ["[published] percent(Band*Smoker)", "[published] percent(Region*Band)"]
    made = qd.release(data, recipe, tmp_path / "made", policy=policy, tables=["Region*Band"])
    assert made.tables is not None and made.tables.limits.floor == 5, "the dossier goes by the limits of the policy"


def test_a_table_of_a_policy_that_the_file_cannot_have_fails() -> None:
    policy = Policy(published=Published(tables=(("Region", "Tenure"), ("Region", "Band")), points=Limit(most=100)))
    lines = qd.check_policy(make_data(), make_recipe(), policy).lines
    assert [(line.verdict, line.found) for line in lines[:1]] == [("fail", "cannot be computed")]
    assert "no column 'Tenure'" in lines[0].why and lines[1].verdict == "pass"


POLICY_FAULTS = [
    ("tables = ['A*B']", "[published]: gives no limit. Add one or more of percent, points, over"),
    ("tables = 'A*B'\npercent = {most = 1}", '[published] tables: must be a list of tables, like ["Age*Edu"'),
    ("tables = []\npercent = {most = 1}", "[published] tables: must be a list of tables"),
    ("tables = ['A*A']\npercent = {most = 1}", "[published] tables[1]: A variable occurs twice"),
    ("tables = ['A*B', 'B*A']\npercent = {most = 1}", "[published] tables[2]: The table B*A is listed twice."),
    ("tables = ['A*B', 3]\npercent = {most = 1}", "[published] tables[2]: must be a text that is not empty. Got 3."),
    ("percent = {most = -1}", "[published] percent most: must be a number of 0 or more. Got -1."),
    ("points = {most = 101}", "[published] points most: must be a number in [0, 100]. Got 101."),
    ("over = {most = 5}", "[published] over most: must be a number in [0, 1]. Got 5."),
    ("over = {most = 0.1}\nover_percent = -1", "[published] over_percent: must be a number of 0 or more"),
    ("over = {most = 0.1}\nfloor = 0", "[published] floor: must be a whole number from 1 to 1,000,000. Got 0."),
    ("percents = {most = 1}", "[published]: There is no setting 'percents'. Did you mean: 'percent'?"),
]


@pytest.mark.parametrize(("text", "message"), POLICY_FAULTS)
def test_a_fault_of_a_policy_is_reported_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(f"[published]\n{text}\n")
    with pytest.raises(InputError) as caught:
        Policy.read(tmp_path / "policy.toml")
    assert message in str(caught.value)


# Jobs, studies and designed swaps

JOB = """
[data]
file = "dataset:cps8d"
[search]
measures = ["exposed", "hellinger"]
tables = {tables}
[[grid]]
method = "DesignedSwap"
effort = 0.02
seed = 1
"""


def job_of(folder: Path, tables: str = '["Age*Edu", "Age*Edu*Sex"]', more: str = "") -> Job:
    (folder / "job.toml").write_text(JOB.replace("{tables}", tables) + more)
    return Job.read(folder / "job.toml")


def test_a_job_scores_the_worst_cell_of_its_tables_unless_it_does_so_anyway(tmp_path: Path) -> None:
    assert job_of(tmp_path).measures[2:] == ("worst_cell(Age*Edu)", "worst_cell(Age*Edu*Sex)")
    text = (tmp_path / "job.toml").read_text().replace('"hellinger"]', '"worst_cell(Edu*Age, floor=3)"]')
    (tmp_path / "job.toml").write_text(text.replace("[[grid]]", 'then = ["worst_cell(Sex*Age*Edu)"]\n[[grid]]'))
    job = Job.read(tmp_path / "job.toml")
    assert job.measures == ("exposed", "worst_cell(Edu*Age, floor=3)") and job.then == ("worst_cell(Sex*Age*Edu)",)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ('"Age*Edu"', "job.toml, [search] tables: must be a list of tables, like"),
        ('["Age*Edu", "Edu*Age"]', "job.toml, [search] tables[2]: The table Edu*Age is listed twice."),
        ('["Age*Edu", "Age*Edu"]', 'job.toml, [search] tables[2]: "Age*Edu" is listed twice.'),
        ('["Age*"]', "job.toml, [search] tables[1]: A table is variables with asterisks"),
        ('["Sex", 3]', "job.toml, [search] tables[2]: must be a text that is not empty. Got 3."),
        ('["Age*Edu", "Age*Eud"]', "job.toml, [search] tables[2]: There is no column 'Eud' in the published tables."),
    ],
)
def test_a_fault_of_the_tables_of_a_job_is_reported_with_its_place(tables: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        job_of(tmp_path, tables).recipes(qd.datasets.cps8d())
    assert message in str(caught.value)


def test_designed_swaps_of_a_job_have_the_tables_in_their_loss_that_are_not_exact_anyway(tmp_path: Path) -> None:
    data = qd.datasets.cps8d()

    def losses(more: str, tables: str = '["Age*Edu", "Age*Edu*Sex"]') -> list[object]:
        return [r.parameters()["loss"] for grid in job_of(tmp_path, tables, more).recipes(data) for r in grid]  # type: ignore[union-attr]

    both = {"hellinger": 1.0, "hellinger(Age*Edu)": 2.0, "hellinger(Age*Edu*Sex)": 2.0}
    one = {"hellinger": 1.0, "hellinger(Age*Edu*Sex)": 2.0}
    assert losses("") == [one], "every table of two variables is kept exactly"
    assert losses('keep = "3-way"') == ["hellinger"]
    assert losses('keep = ["1-way", "3-way"]') == [both, both], "in one of the designs both can change"
    assert losses('loss = "total_variation"') == ["total_variation"], "what a job says itself is left as it is"
    assert losses("", "[]") == ["hellinger"]
    assert losses('swap = ["MS", "Race"]') == ["hellinger"], "a table of variables that stay does not change"
    assert losses("curve = true\nprice = [0.1]\ncoin = [0]\ninference = [0]") == [one] * 3
    text = (tmp_path / "job.toml").read_text().partition("effort")[0] + "version = 1\nseed = 1\n"
    (tmp_path / "job.toml").write_text(text)
    (first,) = Job.read(tmp_path / "job.toml").recipes(data)
    assert {recipe.parameters()["loss"] for recipe in first} == {"hellinger"}, "the first version keeps its plans"  # type: ignore[union-attr]


def test_tables_in_the_loss_change_less_and_any_other_recipe_stays_as_it_is() -> None:
    data, tables = qd.datasets.cps8d(), [("Age", "Edu", "Sex"), ("Edu", "Race", "AvgHrs", "AnnSal")]
    plain = qd.DesignedSwap(effort=0.02, seed=7)
    addresses = [f"hellinger({'*'.join(table)})" for table in tables]
    high, low = (qd.score(data, r.plan(data), addresses) for r in (plain, with_published(plain, data, tables)))
    assert all(low[address] < high[address] / 2 for address in addresses), (high, low)  # type: ignore[operator]
    random = qd.RandomSwap(["MS"], rate=0.1, seed=1)
    assert with_published(random, data, tables) is random


def test_a_study_remembers_the_tables_and_a_report_shows_them(tmp_path: Path) -> None:
    data = make_data()
    recipes = qd.grid(qd.RandomSwap, swap=[["Region", "Band"]], pairs=[37], seed=[1])
    measures, given = ["exposed", "hellinger"], ["Region*Smoker"]
    study = qd.search(data, recipes, measures, out=tmp_path / "study", tables=given, progress=False)
    assert study.tables == (("Region", "Smoker"),) == qd.Study(tmp_path / "study").tables
    assert study.measures[-1] == "worst_cell(Region*Smoker)" and set(measures) < set(study.measures)
    again = qd.search(data, recipes, study.measures, out=tmp_path / "study", progress=False)
    assert again.tables == study.tables, "going on without naming them forgets nothing"
    section = report_section(look(study, data, None, None, None, study.tables))
    page = build.templates().get_template("tables.html.j2").render(section=section, show=build._show, draw=lambda _: "")
    shown = page.partition("<h3>Published tables</h3>")[2].partition("<h3>")[0]
    found = qd.table_changes(data, study.recipe(1).plan(data), given)
    assert report_section(look(study, data, None, None, None))["published"] == []
    assert "Region*Smoker" in shown and shown.count("<tr>") == 2 + (1 + found.count_over if found.count_over else 0)


def test_a_search_refuses_tables_that_the_data_cannot_have_and_leaves_no_study(tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[244], seed=[1])
    with pytest.raises(InputError, match="no column 'Eud' in the published tables"):
        qd.search(qd.datasets.cps8d(), recipes, ["exposed"], out=tmp_path / "study", tables=["Age*Eud"])
    assert not list(tmp_path.iterdir())
