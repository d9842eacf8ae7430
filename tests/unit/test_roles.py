"""Roles: said by the codebook alone, on the command line or in Python; the kind of a column stays as it is guessed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import quadrille as qd
import quadrille.io.parquet
from quadrille.cli.app import app
from quadrille.codebook import Codebook, Variable
from quadrille.data import Data
from quadrille.errors import InputError, QuadrilleError


def _people(rows: int = 120) -> pl.DataFrame:
    i = np.arange(rows)
    return pl.DataFrame(
        {
            "hhid": i // 2 + 1000,
            "county": i % 3 + 1,
            "tract": (i % 3 + 1) * 100 + i % 12,
            "sex": np.where(i % 2, "m", "f"),
            "age": i % 90 + 0,
            "health": i % 4 + 1,
            "income": i * 7.5 % 100,
            "w": i % 5 + 1,
        }
    )


@pytest.fixture
def data() -> Data:
    return qd.from_frame(_people())


# --- a codebook that says only a role ---


@pytest.mark.parametrize("ending", ["csv", "parquet", "sav"])
@pytest.mark.parametrize("batch", [1 << 18, 10])
def test_an_entry_with_a_role_alone_leaves_the_kind_as_guessed(
    tmp_path: Path, ending: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quadrille.io.parquet, "BATCH", batch)
    path = tmp_path / f"people.{ending}"
    qd.write(qd.from_frame(_people()), path)
    plain = qd.read(path)
    names = ("hhid", "sex", "age", "health", "income")
    text = "".join(f'[columns.{name}]\nrole = "outcome"\n' for name in names)
    told = qd.read(path, codebook=Codebook.from_toml(text))
    for name in names:
        assert told[name].variable.kind == plain[name].variable.kind, name
        assert told[name].variable.categories == plain[name].variable.categories, name
        assert told[name].variable.role == "outcome"
        assert not told[name].variable.kind_open
    assert np.array_equal(told["age"].values, plain["age"].values)


def test_a_kind_that_is_said_or_listed_is_no_guess() -> None:
    book = Codebook.from_toml(
        '[columns.health]\nkind = "nominal"\nrole = "key"\n[columns.sex]\ncategories = ["m", "f"]\n'
        '[columns.county]\nrole = "geography"\n[columns.age]\nrole = "key"\n'
    )
    assert [variable.kind_open for variable in book] == [False, False, False, True]
    data = qd.from_frame(_people(), codebook=Codebook(book.variables[:3]))
    assert [data[name].variable.kind for name in ("health", "sex", "county")] == ["nominal"] * 3
    assert Codebook.from_toml(book.to_toml()) == book


@pytest.mark.parametrize(
    ("cells", "missing", "kind", "categories"),
    [
        (["1", "2", "99", "1"], "[99]", "ordinal", (1, 2)),
        (["1.5", "2", "99", "1"], "[99]", "numeric", ()),
        (["1.5", "2", "refused", "1"], '["refused"]', "numeric", ()),
        (["1", "2", "refused", "1"], '["refused"]', "ordinal", (1, 2)),
        (["a", "b", "refused", "a"], '["refused"]', "nominal", ("a", "b")),
    ],
)
def test_missing_codes_do_not_decide_the_kind(
    tmp_path: Path, cells: list[str], missing: str, kind: str, categories: tuple[object, ...]
) -> None:
    path = tmp_path / "file.csv"
    path.write_text("x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
    data = qd.read(path, codebook=Codebook.from_toml(f"[columns.x]\nmissing = {missing}\n"))
    variable = data["x"].variable
    assert (variable.kind, variable.categories, len(variable.missing)) == (kind, categories, 1)
    missing_rows = np.isnan(data["x"].values) if kind == "numeric" else data["x"].values >= data["x"].valid
    assert missing_rows.tolist() == [False, False, True, False]


# --- with_roles ---


def test_roles_are_given_to_the_columns_named_and_to_no_other(data: Data) -> None:
    told = data.with_roles(key=["sex", "health"], outcome=["income"], unit="hhid", id=["age"])
    roles = {name: told[name].variable.role for name in told.columns}
    assert roles == {
        **dict.fromkeys(data.columns),
        **{"sex": "key", "health": "key", "income": "outcome", "hhid": "unit", "age": "id"},
    }
    assert told.keys == ("sex", "health")
    assert told.with_roles(key="county").keys == ("county",)
    assert told.with_roles(outcome=["w"])["income"].variable.role == "outcome"
    assert data["hhid"].variable.role == "id", "the original does not change"
    assert told.frame().equals(data.frame())


def test_a_weight_becomes_numbers_as_if_it_were_named_at_reading(data: Data) -> None:
    assert data["w"].variable.kind == "ordinal"
    named, read = data.with_roles(weight="w"), qd.from_frame(_people(), weight="w")
    assert named == read and named.fingerprint == read.fingerprint
    assert named.ticks is not None and read.ticks is not None
    assert np.array_equal(named.ticks.values, read.ticks.values)
    assert named.with_roles(weight="health")["w"].variable.role is None


def test_levels_of_geography_become_areas_and_must_be_nested(data: Data) -> None:
    told = data.with_roles(geography=["county", "tract"])
    assert told.codebook.geography == ("county", "tract")
    read = qd.from_frame(_people(), geography=["county", "tract"])
    assert told["tract"].variable.categories == read["tract"].variable.categories
    assert np.array_equal(told["tract"].values, read["tract"].values)
    with pytest.raises(InputError, match="not nested"):
        data.with_roles(geography=["tract", "county"])


def test_numbers_with_missing_codes_and_gaps_become_areas() -> None:
    numbers = [float(i % 70) if i % 10 else -1.0 if i % 20 else None for i in range(200)]
    book = Codebook((Variable("place", "numeric", missing=(-1,)),))
    data = qd.from_frame(pl.DataFrame({"place": numbers, "x": ["a", "b"] * 100}), codebook=book)
    told = data.with_roles(geography=["place"])
    assert told["place"].nullable and told["place"].variable.missing == (-1,)
    assert told.frame().equals(data.frame())


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda data: data.with_roles(key=["sexx"]), "Did you mean: 'sex'"),
        (lambda data: data.with_roles(key=["sex"], outcome=["sex"]), "'sex' is named for two roles"),
        (lambda data: data.with_roles(key=["sex", "sex"]), "'sex' is named for two roles, or twice"),
        (lambda data: data.with_roles(key=["income"]), "'income' is numeric, and a key variable needs categories"),
        (lambda data: data.with_roles(weight="sex"), "'sex' is categorical"),
        (lambda data: data.with_roles(geography=["income"]), "'income' holds numbers with decimals"),
        (lambda data: data.with_roles(weight="w").with_roles(key=["w"]), "'w' is the weight of the data"),
    ],
)
def test_roles_that_cannot_be_are_refused(data: Data, call: Callable[[Data], Data], match: str) -> None:
    with pytest.raises(QuadrilleError, match=match):
        call(data)


# --- on the command line ---


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.chdir(tmp_path)
    qd.write(qd.from_frame(_people()), "people.csv")

    def call(words: str) -> str:
        done = CliRunner().invoke(app, words.split())
        assert done.exit_code == 0, done.output
        return done.stdout

    return call


ROLES = "--key sex,health --outcome income --unit hhid --id age --weight w"
ANYWAY = "--allow-contradictions"  # in so few records columns determine one another by chance


def test_inspect_takes_roles_and_writes_only_what_is_no_guess(run: Callable[[str], str]) -> None:
    text = run(f"inspect people.csv {ROLES} --write-codebook -")
    assert tomllib.loads(text)["columns"] == {
        "hhid": {"role": "unit"},
        "sex": {"role": "key"},
        "age": {"role": "id"},
        "health": {"role": "key"},
        "income": {"role": "outcome"},
        "w": {"kind": "numeric", "role": "weight"},
    }
    assert "# county = " in text
    shown = run(f"inspect people.csv {ROLES} --reasons")
    assert "key variables  sex, health" in shown and "as an option says" in shown


def test_a_short_codebook_reads_the_same_data_as_the_full_one(run: Callable[[str], str]) -> None:
    run(f"inspect people.csv {ROLES} --geography county,tract --write-codebook short.toml")
    run(f"inspect people.csv {ROLES} --geography county,tract --write-codebook full.toml --full")
    run("inspect people.csv --codebook full.toml --write-codebook again.toml")
    short, full = Path("short.toml").read_text(), Path("full.toml").read_text()
    assert len(short.splitlines()) == 3 + 8 < len(full.splitlines()) / 2
    assert Path("again.toml").read_text() == short
    assert qd.read("people.csv", codebook="short.toml") == qd.read("people.csv", codebook="full.toml")


def test_a_codebook_of_nothing_but_guesses_says_nothing(run: Callable[[str], str]) -> None:
    text = run("inspect people.csv --write-codebook -")
    assert tomllib.loads(text) == {"columns": {}}
    assert qd.read("people.csv", codebook=Codebook.from_toml(text)) == qd.read("people.csv")
    uncommented = "\n".join(line.removeprefix("# ") for line in text.splitlines()[2:])
    assert set(tomllib.loads(uncommented)["columns"]) == set(_people().columns)


def test_swap_score_and_search_take_roles(run: Callable[[str], str]) -> None:
    run(f"swap people.csv {ROLES} --swap health --rate 0.2 --seed 1 --out swapped.csv --measures exposed {ANYWAY}")
    run(f"score people.csv swapped.csv {ROLES} --measures exposed,hellinger")
    Path("job.toml").write_text(
        '[data]\nfile = "people.csv"\nkey = ["sex", "health"]\noutcome = ["income"]\nunit = "hhid"\n'
        'layout = "separator=,"\n'
        '[search]\nmeasures = ["exposed", "hellinger"]\nworkers = 1\n'
        '[[grid]]\nmethod = "RandomSwap"\nswap = ["health"]\nrate = [0.1, 0.2]\nseeds = 1\n'
    )
    run(f"search job.toml {ANYWAY}")
    assert "--key sex,health" in run("pick study --criterion knee")
    run("report study --out report.html")
