"""No message, warning or log line holds a data value: canaries stand in every column, and what can fail does."""

from __future__ import annotations

import datetime as dt
import gzip
import logging
import re
import shutil
import traceback
import warnings
from collections.abc import Callable, Generator
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli import app
from quadrille.errors import QuadrilleError

N = 60
CANARY = re.compile(r"ZQ|735[1-5]|824[6-9]|6914|2077|1917")
"""Parts of values: texts begin with ZQ, numbers hold four digits found nowhere else, dates are of 2077 or 1917."""


def table() -> pl.DataFrame:
    rows = range(N)
    return pl.DataFrame(
        {
            "Name": [f"ZQname{i}" for i in rows],
            "Serial": [73510000 + 7 * i for i in rows],
            "Sex": ["ZQm" if i % 3 else "ZQf" for i in rows],
            "Code": [8246 + i % 4 for i in rows],
            "Region": [f"ZQr{i % 4}" for i in rows],
            "Income": [None if i % 13 == 5 else 6914.25 + 100000 * (i % 9) for i in rows],
            "Born": [dt.date(2077 if i % 2 else 1917, 1 + i % 12, 3) for i in rows],
            "Weight": [7351.5 + i % 5 for i in rows],
        }
    )


BOOK = """
[columns.Name]
kind = "nominal"
role = "id"
[columns.Serial]
kind = "numeric"
role = "id"
[columns.Sex]
kind = "nominal"
categories = ["ZQm", "ZQf"]
labels = ["ZQ man", "ZQ woman"]
[columns.Code]
kind = "ordinal"
categories = [8246, 8247, 8248, 8249]
[columns.Weight]
kind = "numeric"
role = "weight"
"""
FORMATS = ("csv", "csv.gz", "tsv", "parquet", "sav", "dta", "xpt")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    home = tmp_path_factory.mktemp("home")
    (home / "book.toml").write_text(BOOK, encoding="utf-8")
    table().write_csv(home / "good.csv")
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    for ending in FORMATS[1:]:
        qd.write(data, home / f"good.{ending}")
    recipes = qd.grid(qd.RandomSwap, swap=[["Sex"], ["Region"]], pairs=[3, 9], seeds=2)
    qd.search(
        data,
        recipes,
        ["exposed", "hellinger"],
        out=home / "small.study",
        workers=1,
        progress=False,
        allow_contradictions=True,
    )
    yield home


def everything_told(action: Callable[[], object]) -> str:
    """Run something that may fail; return the error, all it is chained to, warnings and log lines, as printed."""
    lines: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Handler(logging.DEBUG)
    root = logging.getLogger()
    root.addHandler(handler)
    level, _ = root.level, root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                action()
            except QuadrilleError as error:
                printed = traceback.TracebackException.from_exception(error)
                lines += list(printed.format_exception_only())
                while printed := printed.__cause__ or (None if printed.__suppress_context__ else printed.__context__):
                    lines += list(printed.format_exception_only())
        lines += [str(each.message) for each in caught]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    return "\n".join(lines)


# Damaged files

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut in the middle": lambda raw: raw[: len(raw) // 2],
    "cut at the end": lambda raw: raw[:-7],
    "middle turned": lambda raw: (
        raw[: len(raw) // 2] + bytes(255 - b for b in raw[len(raw) // 2 :][:9]) + raw[len(raw) // 2 + 9 :]
    ),
    "all zero behind the head": lambda raw: raw[:200] + bytes(len(raw) - 200),
    "end doubled": lambda raw: raw + raw[-40:],
    "not UTF-8": lambda raw: raw.replace(b"ZQr1", b"Z\xe9Qr", 1),
    "open quote": lambda raw: raw.replace(b"ZQr1", b'"ZQr1', 1),
    "lost field": lambda raw: raw.replace(b",ZQr1", b"", 1).replace(b"\tZQr1", b"", 1),
    "more fields": lambda raw: raw.replace(b"ZQr1", b"ZQr1,ZQr2", 1).replace(b"ZQr2", b"ZQr1\tZQr2", 1),
    "text among numbers": lambda raw: raw.replace(b"8247", b"ZQ7x", 3),
    "a value that is not listed": lambda raw: raw.replace(b"ZQm", b"ZQx", 2),
    "nul bytes": lambda raw: raw.replace(b"ZQr1", b"Z\0Q\0", 2),
    "other line ends": lambda raw: raw.replace(b"\n", b"\r"),
    "commas in numbers": lambda raw: raw.replace(b"6914.25", b"6914,25", 3),
    "weights that are none": lambda raw: raw.replace(b"7351.5", b"-7351.5", 2).replace(b"7352.5", b"inf", 2),
}


SHAPE = ("middle turned", "all zero behind the head")
VALUES = ("not UTF-8", "a value that is not listed", "nul bytes")
CASES = [
    (ending, damage)
    for ending in FORMATS
    for damage in (DAMAGE if ending not in ("sav", "dta", "xpt") else (*SHAPE, *VALUES))
]


@pytest.mark.parametrize(("ending", "damage"), CASES)
def test_reading_a_damaged_file_tells_no_value(
    ending: str,
    damage: str,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    raw = (home / f"good.{ending}").read_bytes()
    raw = gzip.compress(DAMAGE[damage](gzip.decompress(raw))) if ending == "csv.gz" else DAMAGE[damage](raw)
    path = tmp_path / f"bad.{ending}"
    path.write_bytes(raw)
    if damage in VALUES:  # such a file cannot crash the library
        monkeypatch.setattr("quadrille.io.stat_read.ISOLATED", False)
    told = everything_told(lambda: qd.read(path, codebook=home / "book.toml"))
    if damage not in SHAPE:
        told += everything_told(lambda: qd.read(path, weight="Weight"))
    printed = capfd.readouterr()
    assert not CANARY.search(told), told
    assert (printed.out, printed.err) == ("", "")


# Wrong parameters: the data are right, and what is asked of them is not

BOOKS = {
    "too few categories": BOOK.replace('["ZQm", "ZQf"]', '["ZQm"]').replace('["ZQ man", "ZQ woman"]', '["a"]'),
    "text declared numeric": BOOK.replace('kind = "ordinal"\ncategories = [8246, 8247, 8248, 8249]', 'kind = "numeric"')
    + '[columns.Region]\nkind = "numeric"\n',
    "numbers as texts": BOOK.replace("[8246, 8247, 8248, 8249]", '["a", "b"]'),
    "fractions of whole numbers": BOOK.replace("[8246, 8247, 8248, 8249]", "[8246.5, 8247.5]"),
    "a text as weight": BOOK + '[columns.Region]\nkind = "numeric"\nrole = "weight"\n',
    "not nested": BOOK
    + '[columns.Region]\nkind = "nominal"\nrole = "geography"\nlevel = 1\n'
    + '[columns.Born]\nkind = "nominal"\nrole = "geography"\nlevel = 2\n',
    "dates as numbers": BOOK + '[columns.Born]\nkind = "numeric"\n',
    "a range over everything": BOOK + '[columns.Income]\nkind = "numeric"\nmissing_ranges = [[0, 99999999]]\n',
}


@pytest.mark.parametrize("name", BOOKS)
def test_a_codebook_that_does_not_fit_is_told_without_values(name: str, home: Path) -> None:
    book = qd.Codebook.from_toml(BOOKS[name])
    for ending in ("csv", "parquet"):
        assert not CANARY.search(everything_told(lambda ending=ending: qd.read(home / f"good.{ending}", codebook=book)))


ASKED: dict[str, Callable[[qd.Data], object]] = {
    "too many pairs": lambda data: qd.RandomSwap(["Sex"], pairs=29).plan(data),
    "classes of one": lambda data: qd.RandomSwap(["Sex"], pairs=5, same=["Born", "Code", "Region"]).plan(data),
    "a rule that all records meet": lambda data: qd.RandomSwap(["Sex"], pairs=5, rules=["Code>1"]).plan(data),
    "a column of targets that are no shares": lambda data: qd.ControlledSwap(["Code"], targets="Income").plan(data),
    "sizes that are texts": lambda data: qd.ControlledSwap(["Code"], targets=0.1, size="Region").plan(data),
    "must that is no flag": lambda data: qd.ControlledSwap(["Code"], targets=0.1, must="Income").plan(data),
    "never that is no flag": lambda data: qd.DesignedSwap(never="Code").plan(data),
    "bias of texts": lambda data: qd.ControlledSwap(["Region"], targets=0.1).plan(data),
    "a class rate that is none": lambda data: qd.PermutationSwap(["Code"], rate="Income", within=["Sex"]).plan(data),
    "groups of one": lambda data: qd.PermutationSwap(["Code"], rate=0.2, kind="across", groups="Name").plan(data),
    "classes with too little to move": lambda data: qd.PermutationSwap(["Code"], rate=0.01, within=["Born"]).plan(data),
    "a category that is not there": lambda data: qd.score(data, data, ["hellinger(Sex, where=Region=nowhere)"]),
    "a bound that is no number": lambda data: qd.score(data, data, ["hellinger(Sex, where=Income>high)"]),
    "a regression on texts": lambda data: qd.score(data, data, ["ased_reg(Region ~ Code)"]),
    "a constant outcome": lambda data: qd.score(data, data, ["ased_reg(Weight ~ C(Name))"]),
    "numbers in a table": lambda data: qd.score(data, data, ["hellinger(Income*Sex)"]),
    "other numbers in the second file": lambda data: qd.score(
        data, qd.from_frame(table().head(9)), ["hellinger(Code)"]
    ),
    "areas that do not nest": lambda data: qd.score(data, data, ["hellinger"], by=["Region", "Born"]),
    "a factor of small classes": lambda data: qd.release(
        data, qd.PermutationSwap(["Code"], rate=0.2, within=["Region"]), "nowhere/x", publish_f=True
    ),
    "errors of a class without pairs": lambda data: qd.theory.table_error(
        data, qd.PermutationSwap(["Code"], rate=0.1, within=["Name"]), "Code*Sex"
    ),
    "a Stata file with long names": lambda data: qd.write(
        qd.from_frame(data.frame().rename({"Region": "R" * 40})), "nowhere/x.dta"
    ),
    "texts too long for SAS": lambda data: qd.write(
        qd.from_frame(data.frame().with_columns(Region=pl.col("Region") + "ZQ" * 200)), "nowhere/x.xpt"
    ),
    "numbers beyond SPSS": lambda data: qd.write(
        qd.from_frame(data.frame().with_columns(Code=pl.col("Code") + 2**60)), "nowhere/x.sav"
    ),
    "a frame with lists": lambda data: qd.from_frame(data.frame().with_columns(Code=pl.concat_list("Region", "Sex"))),
    "a frame with objects": lambda data: qd.from_frame(
        data.frame().with_columns(pl.struct("Region", "Sex").alias("Code"))
    ),
    "weights of too many digits": lambda data: qd.from_frame(
        data.frame().with_columns(Weight=pl.col("Weight") * 1e300), weight="Weight"
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_asking_for_the_impossible_tells_no_value(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    told = everything_told(lambda: ASKED[name](data))
    assert not CANARY.search(told), told


def test_most_of_these_are_refused_and_not_just_done(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    refused = [name for name, ask in ASKED.items() if everything_told(lambda ask=ask: ask(data))]
    assert len(refused) >= len(ASKED) - 4, set(ASKED) - set(refused)


def test_the_canaries_can_be_found(home: Path) -> None:
    def leak() -> None:
        value = qd.read(home / "good.csv").frame()["Name"][0]
        try:
            raise ValueError(value)
        except ValueError:
            raise QuadrilleError("hidden behind another")  # noqa: B904

    assert CANARY.search(everything_told(leak))
    assert CANARY.search(everything_told(lambda: warnings.warn("7351", stacklevel=1)))
    assert CANARY.search(everything_told(lambda: logging.getLogger("x").debug("born in %s", 1917)))
    for name in table().columns:
        assert all(CANARY.search(str(value)) for value in table()[name].drop_nulls()), name


# The command line: whatever a call prints to stderr, fine or not

RECIPES = {
    "moved.json": '{"method": "PermutationSwap", "swap": ["Code"], "rate": 0.2}',
    "alike.json": '{"method": "RandomSwap", "swap": ["Sex"], "rate": 0.5, "same": ["Name"]}',
    "ruled.json": '{"method": "RandomSwap", "swap": ["Sex"], "rate": 0.99, "rules": ["Name=nobody"]}',
}
CALLS = (
    "inspect good.csv --weight Sex",
    "inspect good.csv --weight Serial --codebook book.toml",
    "inspect good.csv --codebook book.toml --geography Region,Born",
    "inspect good.sav --codebook book.toml --write-codebook new.toml",
    "inspect good.sav --codebook book.toml --write-codebook - --json",
    "convert good.csv new.sav --codebook book.toml",
    "convert good.csv new.dta",
    "convert good.parquet new.xpt --codebook book.toml",
    "convert good.sav new.csv",
    "swap good.csv --swap Sex --pairs 29",
    "swap good.csv --swap Sex --pairs 5 --same Name",
    "swap good.csv --swap Region --pairs 5 --codebook book.toml --out new.csv",
    "swap good.csv --method controlled --swap Code --targets Income --codebook book.toml",
    "swap good.csv --method controlled --swap Code --targets 0.1 --must Sex --codebook book.toml",
    "swap good.csv --method designed --never Region --codebook book.toml",
    "swap good.csv --swap Sex --pairs 5 --rule Code>1",
    "swap good.csv --swap Sex --pairs 5 --measures hellinger(Income*Sex)",
    "score good.csv good.parquet --codebook book.toml --where Region=x",
    "score good.csv good.sav --codebook book.toml --where Income>x",
    "score good.csv good.dta",
    "error good.csv --recipe moved.json --margin Code*Name",
    "correct good.csv --f 0.1 --swapped Sex --kind pairs",
    "score good.csv --recipe alike.json --vary rate=0.99 --draws 1",
    "score good.csv --recipe alike.json --vary same=Code,Name --draws 1",
    "score good.csv --recipe ruled.json --without rules --draws 1",
    "frontier small.study --runs",
    "frontier good.csv",
    "report small.study good.csv --out new.html",
    "release good.csv --swap Sex --pairs 5 --out new --format xpt",
    "release good.csv --swap Weight --pairs 5 --codebook book.toml --out new",
    "release good.csv --swap Born --rate 0.5 --out new --seed 3 --insecure --codebook book.toml",
    "release good.csv --method permutation --swap Code --rate 0.2 --within Region --publish-f --out new",
    "release good.csv --swap Sex --pairs 5 --out new --after old",
    "release good.csv --swap Sex --pairs 5 --out new --seed 3",
    "release good.csv --study small.study --pick --out new",
    "release good.csv --study small.study --pick --out new --codebook book.toml --format dta",
    "release good.csv --policy book.toml --check --swap Sex --pairs 5",
    "release good.csv --policy book.toml --check --study small.study",
    "search book.toml",
    "simulate good.csv --out new",
)


@pytest.mark.parametrize("words", CALLS)
def test_what_a_call_says_on_stderr_holds_no_value(
    words: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in home.iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    for name, text in RECIPES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quadrille.io.stat_read.ISOLATED", False)
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code in (0, 2), result.output
    assert not CANARY.search(result.stderr), result.stderr
    if result.exit_code:
        assert result.stdout == ""


def test_the_seed_of_a_damaged_recipe_is_not_repeated(tmp_path: Path) -> None:
    for number, text in enumerate(
        ('{"method":"RandomSwap","version":1,"swap":["Sex"],"pairs":1,"seed":"ZQ"}', "ZQ", '{"ZQ":')
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(text, encoding="utf-8")
        told = everything_told(lambda path=path: qd.Recipe.from_json(path.read_text(encoding="utf-8")))
        assert told and not CANARY.search(told), told
    secret = "ab" * 31
    told = everything_told(lambda: qd.RandomSwap(["Sex"], pairs=1, seed=secret))
    assert told and secret not in told


def test_data_and_plans_show_no_value_of_their_own_accord(home: Path) -> None:
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    plan = qd.RandomSwap(["Sex"], pairs=3, seed=1).plan(data)
    for thing in (data, plan):
        assert not CANARY.search(f"{thing!r} {thing}"), type(thing)
    assert repr(plan) == "Plan(6 records, columns Sex)"
