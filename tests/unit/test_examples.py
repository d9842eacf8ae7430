"""Every script in examples/ runs, prints what it is about and leaves nothing behind."""

from __future__ import annotations

import ast
import json
import re
import runpy
from pathlib import Path

import pytest

from quadrille.recipe import Recipe

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
FACTS = {
    # the swap of the README: 488 pairs of seed 7
    "01_three_lines": (r"exposed +┆ 0\.014496", r"hellinger +┆ 0\.022823"),
    # 10 % of 1,000 records are 50 pairs; the identifier is not released
    "02_codebook_and_weights": (r"50 pairs, 100 of 1,000 records change", r"^\['health', 'region', 'weight'\]$"),
    # the limit is kept, whatever the secret seeds
    "03_search_and_pick": (
        r"exposed 0\.01\d+, hellinger 0\.0[0-4]\d+\.\nWhy: least exposed with hellinger at most 0\.05",
    ),
    # 733 of 48,842 records are exposed before; tables of two are exact; nobody is inferred wrongly; the bound of those
    "04_designed_swap": (
        r"original +0\.0150 +1\.0000 +0\.0000 +0\.0000 +0$",
        r"designed +0\.000\d +0\.\d{4} +0\.05\d\d +0\.0000 ",
        r"^\d+ still there and inferred right, 0 wrong, \d+ gone$",
        r"0\.001 +┆ 0\.0511\d+ .*bound",
    ),
    "05_controlled_survey_swap": (r"1,465 pairs, 2,930 of 48,842 records", r"^8 of 84 estimates are flagged"),
    # in closed form: what one cell gains, the other one of its row loses
    "06_error_and_correction": (r"779\.0 +┆ 159\.960578", r"7653\.0 +┆ -159\.960578", r"into a cell: 2\.0$"),
    # counties stay exact
    "07_geography_by_area": (r"^county by race: 0\.0  tract by race: 0\.010525", r"│ tract ┆ race "),
    "08_simulation": (r"^rate 1%: chi-square +0\.09 ", r"^rate 5%: chi-square +0\.43 "),
    # the share falls towards that of all records
    "09_a_question_of_a_user": (r"^before 0\.5780\n", r"^rate 1%: after 0\.57\d\d to 0\.57", r"^rate 20%: after 0\.51"),
    "10_agency_workflow": (
        r"^Why: least hellinger with exposed at most 0\.001",
        r"^pass +\[cells\] exposed\(n=3\) +(?:0|0\.000\d+|\d\.\d+e-05)$",
        r"^pass +\[measures\] hellinger\(2-way\) +0$",
        r"'release', 'report\.html', 'study'\]$",
    ),
    # who is at risk does not depend on the seed; nobody who was rare in a ward is found there
    "12_census_with_households": (
        r"^ward +401 households, 21\.5 % so far$",
        r"^any .* 0 at risk left in place; found by ward, age and birth: 0\.00; loss in parishes 0\.0[345]\d$",
        r"^parent .* 0 at risk left in place; found by ward, age and birth: 0\.00; loss in parishes 0\.0[23]\d$",
        r"^persons per ward as before: True$",
    ),
}
"""What each script must print: facts that follow from its seed, or hold for every seed."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_prints_what_it_is_about_and_leaves_nothing_behind(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert [fact for fact in FACTS[script.stem] if not re.search(fact, printed, re.MULTILINE)] == []
    assert not re.search(r"^(?:fail|review) ", printed, re.MULTILINE)
    assert not list(tmp_path.iterdir())


def test_there_are_eight_scripts_or_more_and_the_first_has_three_lines() -> None:
    assert len(SCRIPTS) >= 8
    assert sorted(FACTS) == [path.stem for path in SCRIPTS]
    code = [line for line in SCRIPTS[0].read_text().splitlines() if line and not line.startswith(('"""', "import"))]
    assert len(code) == 3


def test_the_readme_names_every_file_of_the_folder_and_no_other() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    named = {word.strip("`") for word in readme.split() if word.strip("`").endswith((".py", ".toml"))}
    assert named == {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".toml")}


NOTEBOOK = EXAMPLES / "11_from_file_to_release.ipynb"
PNG = b"\x89PNG\r\n\x1a\n"
SHOWN = (
    r"<dt>records</dt><dd>48,842</dd>",
    r"<dt>candidates</dt><dd>27: 27 done</dd>",
    None,
    r"<h3>Candidate \d+</h3>[\s\S]*lowers exposed by (?:2[5-9]|[3-9]\d)(?:\.\d)?\s%",
    r"<h3>What is swapped</h3>[\s\S]*<dt>changed</dt>",
    r"cramers_v_change</th><td>loss</td>",
    r"<h3>The intruder&#x27;s view</h3>[\s\S]*<dt>keys</dt><dd>Age, Edu, MS, Race, Sex</dd>",
    r"<h3>Written</h3>[\s\S]*<dt>to lock away</dt>",
    r"\['codebook\.toml', 'data\.csv', 'methods\.md'\]",
)
"""What each cell of code must show, whatever its secret seeds; None is a picture."""


def cells(kind: str) -> list[dict[str, object]]:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in document["cells"] if cell["cell_type"] == kind]


def run(code: str, names: dict[str, object]) -> object:
    """Run a cell as a notebook does, and return the value of its last line."""
    *before, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(before, []), str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def test_the_notebook_shows_the_way_from_file_to_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    seen: list[str] = []
    for cell, expected in zip(cells("code"), SHOWN, strict=True):
        value = run("".join(cell["source"]), names)
        if expected is None:
            bundle, size = value._repr_mimebundle_()
            assert list(bundle) == ["image/png"]
            assert bundle["image/png"].startswith(PNG)
            assert size["image/png"]["width"] < 1000
            continue
        shown = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
        assert re.search(expected, shown), cell["source"]
        seen += [shown, repr(value)]
    secret = {str(recipe.parameters()["seed"]) for recipe in names["recipes"] if isinstance(recipe, Recipe)}
    assert {len(seed) for seed in secret} == {64}
    assert not any(seed in shown for seed in secret for shown in seen)
    names["folder"].cleanup()
    assert not list(tmp_path.iterdir())


def test_the_notebook_is_kept_without_what_it_showed() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells("code"))
    assert len(cells("markdown")) >= 4
