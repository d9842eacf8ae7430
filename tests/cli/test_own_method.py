"""A method written outside the package works everywhere, without another file being touched."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_files import Run

import quadrille as qd
from quadrille.errors import InputError, ParameterError
from quadrille.recipe import Recipe, find_method

MODULE = "agency_methods"
PLACE = f"{MODULE}:NeighbourSwap"
CODE = '''
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

import numpy as np

from quadrille.data import Data
from quadrille.params import SEED, Columns, Share, Word
from quadrille.plan import Move, Plan
from quadrille.randomness import Seed, Stream
from quadrille.recipe import Prepared, Recipe, random_order


@dataclass(frozen=True)
class NeighbourSwap(Recipe):
    """Exchange values between records that follow each other in the file, or in random order."""

    moving: Annotated[Sequence[str], Columns("the columns that move. They move together", least=1, moves=True)]
    _: KW_ONLY
    part: Annotated[float, Share("share of the records that take part", unit="share of the records")] = 0.1
    order: Annotated[Literal["file", "shuffled"], Word("file or shuffled")] = "shuffled"
    seed: Annotated[Seed, SEED] = None

    def prepare(self, data: Data) -> Prepared:
        count = max(1, int(self.part * data.n / 2))

        def draw(stream: Stream) -> Plan:
            rows = np.arange(data.n) if self.order == "file" else random_order(data.n, stream.sub("order"))
            pairs = rows[: 2 * count].reshape(-1, 2)
            return Plan([Move.exchange(self.moving, pairs)], data=data, asked=count)

        return Prepared(draw)
'''
JOB = """
[data]
file = "good.csv"
codebook = "book.toml"

[search]
measures = ["small_cells", "exposed", "hellinger"]
out = "new.study"
workers = 1

[[grid]]
method = "agency_methods:NeighbourSwap"
moving = [["Sex"], ["Age", "Region"]]
part = [0.1, 0.3]
order = "shuffled"
seeds = 2
"""


@pytest.fixture
def outside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module that no package knows; what it registers is forgotten after the test."""
    place = folder / "elsewhere"
    place.mkdir()
    (place / f"{MODULE}.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    known = dict(Recipe.methods)
    yield place
    Recipe.methods.clear()
    Recipe.methods.update(known)
    sys.modules.pop(MODULE, None)


@pytest.fixture
def method(outside: Path) -> Any:
    return find_method(PLACE)


@pytest.fixture
def data(folder: Path) -> qd.Data:
    return qd.read(folder / "good.csv", codebook=folder / "book.toml")


def test_it_obeys_the_laws_of_recipes(method: Any, data: qd.Data) -> None:
    plan = qd.testing.check_recipe(method(["Sex", "Age"], part=0.5, seed=3), data)
    assert plan.columns == ("Sex", "Age") and len(plan.rows) == 30


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"moving": []}, "'moving' parameter of NeighbourSwap must be a list of column names, at least 1"),
        ({"moving": ["Sex"], "part": 2}, "'part' parameter of NeighbourSwap must be a number in (0, 1]. Got 2"),
        ({"moving": ["Sex"], "order": "odd"}, "must be one of 'file', 'shuffled'. Got 'odd'"),
    ],
)
def test_its_parameters_are_checked_as_declared(method: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        method(**parameters)
    assert message in str(caught.value)


def test_its_json_reads_back_with_and_without_a_version(method: Any) -> None:
    recipe = method(["Sex"], part=0.3, seed=7)
    assert recipe.to_json() == '{"method":"NeighbourSwap","moving":["Sex"],"part":0.3,"seed":7,"version":1}'
    assert Recipe.from_json(recipe.to_json()) == recipe
    by_hand = json.dumps({"method": PLACE, "moving": ["Sex"], "part": 0.3, "seed": 7})
    assert Recipe.from_json(by_hand) == recipe
    with pytest.raises(InputError, match="Did you mean: 'moving'"):
        Recipe.from_json(json.dumps({"method": PLACE, "movin": ["Sex"]}))


def test_a_form_can_be_made_of_it(method: Any) -> None:
    form = qd.schema(PLACE)
    assert form["required"] == ["method", "moving"]
    assert form["properties"]["moving"]["x-kind"] == "columns" and form["properties"]["moving"]["minItems"] == 1
    assert form["properties"]["part"]["maximum"] == 1 and form["properties"]["part"]["x-unit"] == "share of the records"
    assert form["properties"]["order"]["enum"] == ["file", "shuffled"]


def test_a_grid_and_a_search_take_it(method: Any, data: qd.Data, folder: Path) -> None:
    recipes = qd.grid(method, moving=[["Sex"], ["Age", "Region"]], part=[0.2, 0.3], seed=[1, 2])
    assert len(recipes) == 8
    assert {recipe.parameters()["moving"] for recipe in recipes} == {("Sex",), ("Age", "Region")}
    study = qd.search(data, recipes, ["small_cells", "exposed", "hellinger"], out=folder / "own.study", workers=1)
    assert study.counts()["done"] == 8
    frame = study.frame()
    assert set(frame["method"]) == {"NeighbourSwap"}
    assert set(frame["swap"]) == {"Sex", "Age + Region"}
    chosen = study.pick("knee")
    scores = qd.score(data, chosen.recipe.plan(data), ["hellinger"])
    assert scores["hellinger"] == frame["hellinger"][chosen.candidate - 1]


def test_workers_of_a_search_know_it(method: Any, data: qd.Data, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadrille.study.run.IN_PROCESS_SECONDS", 0.0)
    recipes = qd.grid(method, moving=[["Sex"]], part=[0.2, 0.3], seed=range(8))
    study = qd.search(data, recipes, ["exposed", "hellinger"], out=folder / "many.study", workers=2)
    assert study.counts()["done"] == 16


def test_it_can_be_released(method: Any, data: qd.Data, folder: Path) -> None:
    done = qd.release(data, method(["Sex"], part=0.3), folder / "own")
    kept = Recipe.from_json((done.confidential / "recipe.json").read_text(encoding="utf-8"))
    assert isinstance(kept, method) and kept.parameters()["moving"] == ("Sex",)
    assert "NeighbourSwap" in (done.confidential / "dossier.md").read_text(encoding="utf-8")


def test_a_job_file_names_it_by_its_module(outside: Path, run: Run, folder: Path) -> None:
    (folder / "own.toml").write_text(JOB, encoding="utf-8")
    dry = run("search own.toml --dry-run")
    assert dry.exit_code == 0, dry.output
    done = run("search own.toml --json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["counts"]["done"] == 8 and found["knee"]["design"]["method"] == "NeighbourSwap"
    assert run("frontier new.study --json").exit_code == 0
    picked = run("pick new.study --criterion knee --save-recipe new.json")
    assert picked.exit_code == 0, picked.output
    words = "release good.csv --codebook book.toml --study new.study --pick --out new --json"
    assert json.loads(run(words).stdout)["account"]["variables"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("part = [0.1, 2]", "part[2]: must be a number in (0, 1]. Got 2."),
        ('moving = [["Sexx"]]', "moving[1]: There is no column 'Sexx'. Did you mean: 'Sex'?"),
        ("parts = 1", "There is no setting 'parts'. Did you mean: 'part'?"),
    ],
)
def test_a_fault_of_its_job_is_told_with_its_place(
    outside: Path, run: Run, folder: Path, line: str, message: str
) -> None:
    key = line.partition(" ")[0]
    kept = [old for old in JOB.splitlines() if not old.startswith(f"{key} ")]
    (folder / "own.toml").write_text("\n".join([*kept, line]) + "\n", encoding="utf-8")
    done = run("search own.toml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_its_options_are_options_of_swap_and_release(outside: Path, run: Run, folder: Path) -> None:
    for command in ("swap", "release"):
        shown = run(f"{command} --method {PLACE} --help")
        assert shown.exit_code == 0, shown.output
        assert "Options of --method neighbour:" in shown.stdout
        listed = [line.split()[:2] for line in shown.stdout.splitlines() if line.startswith("  --")]
        assert listed == [["--moving", "COLUMNS"], ["--part", "SHARE"], ["--order", "WORD"], ["--seed", "NUMBER"]]
        assert "[default: 0.1]" in shown.stdout and "They move together" not in shown.stdout
    words = f"good.csv --codebook book.toml --method {PLACE} --moving Sex,Age --part 0.3 --order file --seed 4"
    done = run(f"swap {words} --save-recipe new.json --json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["recipe"] == {
        "method": "NeighbourSwap",
        "moving": ["Sex", "Age"],
        "part": 0.3,
        "order": "file",
        "version": 1,
    }
    recipe = find_method(PLACE)(["Sex", "Age"], part=0.3, order="file", seed=4)  # type: ignore[call-arg]
    assert Recipe.from_json((folder / "new.json").read_text(encoding="utf-8")) == recipe
    released = run(f"release {words} --insecure --out new --json")
    assert released.exit_code == 0, released.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--part 0.3", "Name the columns that move with --moving"),
        ("--moving Sex --part lots", "'part' parameter of NeighbourSwap must be a number in (0, 1]. Got 'lots'."),
        ("--moving Sex --order odd", "must be one of 'file', 'shuffled'. Got 'odd'"),
        ("--moving Sex --pairs 3", "--pairs belongs to --method random, and this is neighbour swapping"),
    ],
)
def test_wrong_options_of_it_are_one_line_and_exit_code_2(outside: Path, run: Run, words: str, message: str) -> None:
    done = run(f"swap good.csv --codebook book.toml --method {PLACE} {words}")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert message in done.stderr and done.stderr.count("\n") == 1


OWNED = """
from pathlib import Path
Path("owned").touch()
"""


@pytest.fixture
def foreign(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that leaves a mark when it is imported, and the mark."""
    mark, place = tmp_path / "owned", tmp_path / "modules"
    place.mkdir()
    (place / "foreign_code.py").write_text(OWNED.replace('"owned"', repr(str(mark))) + CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    known = dict(Recipe.methods)
    yield mark
    Recipe.methods.clear()
    Recipe.methods.update(known)
    sys.modules.pop("foreign_code", None)


FOREIGN = "foreign_code:NeighbourSwap"


def test_a_recipe_file_runs_no_code_that_the_user_has_not_named(
    foreign: Path, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"method": FOREIGN, "moving": ["Sex"], "part": 0.3})
    (folder / "new.json").write_text(text, encoding="utf-8")
    for words in ("swap good.csv --recipe new.json", "release good.csv --recipe new.json --out new"):
        done = run(words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1 and f"QUADRILLE_METHODS={FOREIGN}" in done.stderr
    with pytest.raises(InputError, match="a file alone is no reason to run it"):
        Recipe.from_json(text)
    assert not foreign.exists() and "foreign_code" not in sys.modules
    monkeypatch.setenv("QUADRILLE_METHODS", f"agency:Other, {FOREIGN}")
    assert run("swap good.csv --codebook book.toml --recipe new.json").exit_code == 0
    assert foreign.exists()


def test_a_study_runs_no_code_that_the_user_has_not_named(
    foreign: Path, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = qd.read(folder / "good.csv", codebook=folder / "book.toml")
    recipes = qd.grid(qd.RandomSwap, swap=[["Sex"], ["Region"]], pairs=[3, 5], seed=[1])
    qd.search(data, recipes, ["exposed", "hellinger"], out=folder / "new.study", workers=1)
    with sqlite3.connect(folder / "new.study") as db:
        design = json.dumps({"method": FOREIGN, "moving": ["Sex"], "part": 0.3, "version": 1})
        db.execute("UPDATE designs SET json = ? WHERE id = (SELECT MAX(id) FROM designs)", (design,))
    db.close()
    for words in (
        "frontier new.study --runs --design 4",
        "release good.csv --codebook book.toml --study new.study --candidate 4 --insecure --out new",
    ):
        done = run(words)
        assert (done.exit_code, done.stdout) == (2, ""), done.output
        assert f"QUADRILLE_METHODS={FOREIGN}" in done.stderr and done.stderr.count("\n") == 1
    assert not foreign.exists() and not (folder / "new").exists()
    monkeypatch.setenv("QUADRILLE_METHODS", FOREIGN)
    again = "release good.csv --codebook book.toml --study new.study --candidate 4 --insecure --out new"
    assert run(again).exit_code == 0
    assert foreign.exists()


def test_a_recipe_of_a_method_that_the_user_allows_is_read_by_its_name_in_another_process(
    outside: Path, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '{"method":"NeighbourSwap","moving":["Sex"],"part":0.3,"version":1}'
    (folder / "new.json").write_text(text, encoding="utf-8")
    done = run("swap good.csv --codebook book.toml --recipe new.json")
    assert done.exit_code == 2 and "made known by QUADRILLE_METHODS=module:Class" in done.stderr
    monkeypatch.setenv("QUADRILLE_METHODS", PLACE)
    assert run("swap good.csv --codebook book.toml --recipe new.json").exit_code == 0


@pytest.mark.parametrize("place", [f"{MODULE}:Nobody", "nowhere:NeighbourSwap", "json:JSONDecoder", ".x:Y", ":Y"])
def test_a_method_that_cannot_be_imported_is_refused_in_one_line(outside: Path, run: Run, place: str) -> None:
    done = run(f"swap good.csv --method {place} --swap Sex --rate 0.1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert place in done.stderr and done.stderr.count("\n") == 1


def test_the_program_itself_finds_it_by_the_path_of_python(outside: Path, folder: Path) -> None:
    words = ["swap", "good.csv", "--codebook", "book.toml", "--method", PLACE, "--moving", "Age", "--part", "0.3"]
    path = os.pathsep.join([str(outside), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "quadrille", *words, "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["recipe"]["method"] == "NeighbourSwap"


def test_an_installed_package_makes_its_methods_known_by_an_entry_point(outside: Path, run: Run) -> None:
    made = outside / "agency-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: agency\nVersion: 1.0\n", encoding="utf-8")
    (made / "entry_points.txt").write_text(f"[quadrille.recipes]\nagency-way = {PLACE}\n", encoding="utf-8")
    for name in ("agency-way", "NeighbourSwap"):
        done = run(f"swap good.csv --codebook book.toml --method {name} --moving Sex --seed 1 --json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["recipe"]["method"] == "NeighbourSwap"


def test_the_class_that_the_guide_for_contributors_shows_is_a_method(
    outside: Path, run: Run, data: qd.Data, folder: Path
) -> None:
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = guide.split("```python\n")[1].split("```")[0]
    (outside / "shown.py").write_text(code, encoding="utf-8")
    qd.testing.check_recipe(find_method("shown:ShuffleSwap")(["Sex"], rate=0.3, seed=3), data)  # type: ignore[call-arg]
    words = "swap good.csv --codebook book.toml --method shown:ShuffleSwap"
    assert "--rate SHARE" in run(f"{words} --help").stdout
    done = run(f"{words} --swap Sex,Age --rate 0.3 --json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["account"]["asked"] == 9
    sys.modules.pop("shown")


@pytest.mark.usefixtures("outside")  # which forgets the class afterwards
def test_a_parameter_that_is_not_declared_is_an_option_all_the_same(run: Run) -> None:
    @dataclass(frozen=True)
    class PlainSwap(qd.RandomSwap):
        number: int = 3

    shown = run("swap --method PlainSwap --help")
    assert shown.exit_code == 0 and "--number VALUE" in shown.stdout and "The parameter number." in shown.stdout
