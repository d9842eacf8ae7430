"""Nothing that a command writes to public/ helps to undo a release, and no command tells a seed to anybody."""

from __future__ import annotations

import json
import stat
from collections.abc import Generator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from confidential_case import BOOK, METHODS, POLICY, contents, dropped, numbers_in, secrets, table
from typer.testing import CliRunner, Result

import quadrille as qd
from quadrille.cli import app
from quadrille.io import RELEASED

ORDER = 5.0  # standard errors by which a row order may be like another


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    home = tmp_path_factory.mktemp("home")
    table().write_csv(home / "survey.csv")
    (home / "book.toml").write_text(BOOK.to_toml(), encoding="utf-8")
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr("quadrille.io.stat_read.ISOLATED", False)  # these files are our own
        yield home


@pytest.fixture(scope="module")
def data(home: Path) -> qd.Data:
    return qd.read(home / "survey.csv", codebook=home / "book.toml")


def call(*words: str) -> Result:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return result


def released(method: str, out: str, *more: str) -> Result:
    words = ["release", "survey.csv", "--codebook", "book.toml", *METHODS[method], "--out", out, *more]
    return call(*words, "--policy", "policy.toml", "--measures", "exposed,hellinger")


def check_nothing_is_told(made: Path, data: qd.Data, method: str, result: Result) -> None:
    """No secret as it is, packed, or as a number; no column or row that the swapped file has not."""
    public = made / "public"
    hidden = secrets(made, data) | {f"column {name}": name.encode() for name in dropped(method)}
    for path in public.rglob("*"):
        for part, raw in contents(path):
            for what, secret in hidden.items():
                assert secret not in raw, (path.name, part, what)
    assert hidden["seed"].decode() not in result.output


@pytest.mark.filterwarnings("ignore::quadrille.release.dossier.ReleaseWarning")
@pytest.mark.parametrize("format", RELEASED)
@pytest.mark.parametrize("method", METHODS)
def test_a_release_tells_no_seed_plan_pair_rate_identifier_or_policy(
    method: str, format: str, home: Path, data: qd.Data
) -> None:
    made = home / f"{method}-{format}"
    result = released(method, made.name, "--format", format)
    names = {file.name for file in (made / "public").iterdir()}
    assert names == {f"data.{format}", "codebook.toml", "methods.md"}
    check_nothing_is_told(made, data, method, result)

    public = qd.read(made / "public" / f"data.{format}", codebook=made / "public" / "codebook.toml")
    recipe = qd.Recipe.from_json((made / "confidential" / "recipe.json").read_text(encoding="utf-8"))
    swapped = recipe.plan(data).apply(data).frame().drop(dropped(method))
    same = public.frame().select(pl.all().cast(pl.String))
    assert same.columns == swapped.columns
    expected = qd.from_frame(swapped, codebook=public.codebook).frame().select(pl.all().cast(pl.String))
    assert same.sort(same.columns).equals(expected.sort(same.columns)), "nothing but the swapped records"
    check_order(public.frame()["Income"].to_numpy(), swapped["Income"].to_numpy())


def check_order(public: np.ndarray, original: np.ndarray) -> None:
    """The rows are in another order: places of the records before and after have no correlation."""
    before = {value: place for place, value in enumerate(original.tolist())}
    places = np.array([before[value] for value in public.tolist()])
    assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < ORDER / np.sqrt(len(places))


@pytest.mark.parametrize("method", METHODS)
def test_public_texts_hold_no_number_of_recipe_plan_account_scores_or_policy(method: str, home: Path) -> None:
    made = home / f"{method}-texts"
    told = json.loads(released(method, made.name, "--json").stdout)
    account = told["account"]
    hidden = {float(word) for word in METHODS[method] if word.replace(".", "").isdigit()}
    hidden |= {0.00137, 0.98763, 0.97531, *(float(each["value"]) for each in told["scores"].values() if each["value"])}
    hidden |= {float(account[name]) for name in ("records", "pairs", "changed", "asked") if account.get(name)}
    hidden = {each for each in hidden if each > 9 or each % 1}  # the codebook lists categories of one digit
    assert len(hidden) > 5
    for name in ("methods.md", "codebook.toml"):
        text = (made / "public" / name).read_text(encoding="utf-8")
        assert not {round(n, 6) for n in hidden} & {round(n, 6) for n in numbers_in(text)}, name


def test_the_note_is_the_same_for_every_method_and_the_codebook_tells_no_part_in_the_swap(home: Path) -> None:
    for method in METHODS:
        released(method, f"{method}-note")
    notes = {(home / f"{method}-note" / "public" / "methods.md").read_text(encoding="utf-8") for method in METHODS}
    assert len(notes) == 1
    books = {}
    for method in METHODS:
        book = qd.Codebook.read(home / f"{method}-note" / "public" / "codebook.toml")
        books[method] = [v for v in book if v.name not in ("Forced", "Spared")]
    assert all(book == books["random"] for book in books.values())


def test_the_published_factor_adds_f_and_nothing_else(home: Path, data: qd.Data) -> None:
    made = home / "published"
    result = released("permutation", made.name, "--publish-f", "--json")
    check_nothing_is_told(made, data, "permutation", result)
    account = json.loads(result.stdout)["account"]
    text = (made / "public" / "methods.md").read_text(encoding="utf-8")
    numbers = numbers_in(text)
    assert account["records"] / (data.n - 1) == pytest.approx(min(numbers, key=lambda n: abs(n - 0.1173)), rel=1e-9)
    assert not {float(account[name]) for name in ("records", "pairs", "changed") if account.get(name)} & numbers
    assert 0.1173 not in {round(n, 6) for n in numbers}


def test_reports_for_readers_stay_out_of_public(home: Path, data: qd.Data) -> None:
    made = home / "with-readers"
    result = released("random", made.name, "--readers")
    check_nothing_is_told(made, data, "random", result)
    assert {file.name for file in (made / "public").rglob("*")} == {"data.csv", "codebook.toml", "methods.md"}
    assert any((made / "confidential" / "readers").iterdir())
    assert stat.S_IMODE((made / "confidential").stat().st_mode) == 0o700


JOB = """
[data]
file = "survey.csv"
codebook = "book.toml"
[search]
measures = ["small_cells", "exposed", "hellinger"]
out = "all.study"
[[grid]]
method = "RandomSwap"
swap = [["Edu"], ["Region"]]
pairs = [11, 31]
seeds = 2
"""
COMMANDS = (
    "search job.toml --workers 1",
    "inspect survey.csv --codebook book.toml --write-codebook written.toml",
    "inspect survey.csv --write-codebook guessed.toml",
    "convert survey.csv converted.parquet --codebook book.toml",
    "measures",
    "doctor survey.csv",
    "swap survey.csv --codebook book.toml --swap Edu --pairs 11 --out swapped.csv --save-recipe swapped.json",
    "score survey.csv swapped.csv --codebook book.toml --recipe swapped.json",
    "plan survey.csv --codebook book.toml --recipe swapped.json --out swapped.parquet",
    "attack survey.csv --codebook book.toml --recipe swapped.json --target Edu",
    "frontier all.study",
    "pick all.study --criterion knee --save-recipe picked.json --note fine",
    "frontier all.study --runs --design 1",
    "score survey.csv --codebook book.toml --recipe swapped.json --vary pairs=7,9 --draws 2 --measures hd1 --out d.csv",
    "swap survey.csv --codebook book.toml --swap Edu --pairs 11 --rule Age=young&Edu=1 --save-recipe ruled.json",
    "score survey.csv --codebook book.toml --recipe ruled.json --without rules --draws 2 --measures hellinger",
    "swap survey.csv --codebook book.toml --method permutation --swap Age --rate 0.1 --save-recipe moved.json",
    "error survey.csv --codebook book.toml --recipe moved.json --margin Age*Edu --realised realised.svg --draws 2",
    "swap survey.csv --codebook book.toml --method private --swap Edu --chance 0.1 --save-recipe private.json",
    "guarantee survey.csv --codebook book.toml --recipe private.json",
    "report all.study survey.csv --codebook book.toml --out report.html --readers",
    "release survey.csv --codebook book.toml --swap Edu --pairs 11 --policy policy.toml --check",
    "release survey.csv --codebook book.toml --study all.study --policy policy.toml --check",
    "release survey.csv --codebook book.toml --study all.study --pick --out chosen",
)
ELSEWHERE = {"correct", "simulate", "reproduce", "demo", "studio"}
"""Read no microdata of the user's; the demo's releases are made by the same function, and the studio has tests of
its own."""


def seeds(home: Path) -> set[str]:
    """Return every seed that the commands have left in their files."""
    study = qd.Study(home / "all.study")
    found = {str(study.recipe(int(number)).seed) for number in study.ids}
    kept = [home / f"{name}.json" for name in ("swapped", "picked", "ruled", "moved", "private")]
    kept.append(home / "chosen" / "confidential" / "recipe.json")
    return found | {str(json.loads(path.read_text(encoding="utf-8"))["seed"]) for path in kept if path.exists()}


@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_shows_a_seed_or_lets_others_read_one_and_only_release_writes_public(
    as_json: bool, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("survey.csv", "book.toml", "policy.toml"):
        (tmp_path / name).write_bytes((home / name).read_bytes())
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    for words in COMMANDS:
        told = call(*words.split(), *(["--json"] if as_json else [])).output
        assert not [seed for seed in seeds(tmp_path) if seed in told], words
    known = seeds(tmp_path)
    assert len(known) == 6 and all(len(seed) == 64 for seed in known)
    written = [path for path in tmp_path.rglob("*") if path not in before and path.is_file()]
    holders = {path for path in written for seed in known if seed.encode() in path.read_bytes()}
    recipes = {"swapped.json", "picked.json", "ruled.json", "moved.json", "private.json", "recipe.json"}
    assert {"all.study", *recipes} <= {path.name for path in holders}
    assert not [path for path in holders if _others_can_read(path, tmp_path)], "for the owner alone"
    assert {path.parent for path in written if "public" in path.parts} == {tmp_path / "chosen" / "public"}
    assert not [path for path in holders if "public" in path.parts]


def _others_can_read(path: Path, top: Path) -> bool:
    """A file is closed to others by its own mode or by that of a folder that it is in."""
    inside = [path, *(each for each in path.parents if top in each.parents)]
    return all(stat.S_IMODE(each.stat().st_mode) & 0o007 for each in inside)


def test_every_command_is_in_one_of_these_tests() -> None:
    import typer

    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert known == {words.split()[0] for words in COMMANDS} | ELSEWHERE


@pytest.mark.filterwarnings("ignore::quadrille.release.dossier.ReleaseWarning")
def test_the_demo_publishes_no_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quadrille.cli.commands.demo.SEEDS", 1)  # a short one, without pictures
    monkeypatch.setattr("quadrille.cli.commands.demo.PAIRS", (244,))
    monkeypatch.setattr("quadrille.cli.commands.demo.EFFORT", 0.01)
    monkeypatch.setattr("quadrille.cli.commands.demo._pictures", lambda *_: ([], None))
    result = call("demo", "--out", "demo", "--json")
    recipes = list(tmp_path.rglob("recipe.json"))
    assert recipes
    for recipe in recipes:
        seed = str(json.loads(recipe.read_text(encoding="utf-8"))["seed"])
        assert len(seed) == 64
        assert seed not in result.output
        public = [path for path in tmp_path.rglob("*") if path.is_file() and "public" in path.parts]
        assert public
        assert not [path for path in public if seed.encode() in path.read_bytes()]
