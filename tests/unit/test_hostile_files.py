"""Files that somebody made to do harm: they are refused in a sentence, run no code and take no memory to speak of."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError, OutputError
from quadrille.io import raw

MEASURES = ["exposed", "hellinger"]


@pytest.fixture(scope="module")
def data() -> qd.Data:
    rng = np.random.default_rng(3)
    return qd.from_frame(pl.DataFrame({"a": rng.integers(0, 3, 60).astype(str), "b": rng.integers(0, 2, 60)}))


@pytest.fixture
def study(data: qd.Data, tmp_path: Path) -> Path:
    recipes = qd.grid(qd.RandomSwap, swap=[["a"], ["b"]], pairs=[3, 5], seed=[1, 2])
    return qd.search(data, recipes, MEASURES, out=tmp_path / "study", workers=1, progress=False).path


def damaged(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
    return path


ENDLESS = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT"
STUDIES: dict[str, tuple[str, ...]] = {
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM results; END",),
    "a view without end": (
        "ALTER TABLE notes RENAME TO kept",
        f"CREATE VIEW notes AS {ENDLESS} id, 'x' AS note FROM n",
    ),
    "another table": ("CREATE TABLE more (id INTEGER)",),
    "a table that is missing": ("DROP TABLE later",),
    "an index over a formula": ("CREATE INDEX i ON notes (id + 1)",),
    "a computed column": ("ALTER TABLE notes ADD COLUMN x GENERATED ALWAYS AS (hex(zeroblob(1000000000)))",),
}


@pytest.mark.parametrize("what", STUDIES)
def test_a_study_that_holds_more_than_its_tables_is_refused_before_any_of_it_is_read(
    what: str, study: Path, data: qd.Data
) -> None:
    damaged(study, *STUDIES[what])
    before, started = study.read_bytes(), time.process_time()
    with pytest.raises(InputError, match="holds other things than a search writes, such as a view or a trigger"):
        qd.Study(study)
    with pytest.raises(InputError, match="holds other things"):
        qd.search(data, qd.grid(qd.RandomSwap, swap=[["a"]], pairs=[4], seed=[1]), MEASURES, out=study, progress=False)
    assert time.process_time() - started < 5
    assert study.read_bytes() == before


def test_a_value_of_a_study_that_is_monstrous_is_refused(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(qd.Study(study)) == 8
    damaged(study, "UPDATE designs SET json = json || hex(zeroblob(600000)) WHERE id = 1")
    monkeypatch.setattr("quadrille.study.store.MOST_TEXT", 1_000_000)
    with pytest.raises(InputError, match=r"damaged|too big"):
        qd.Study(study).frame()


@pytest.mark.parametrize(
    "design", ["[]", "3", '{"method": ["x"], "version": 1}', '{"method": "os:system", "version": 1}', "[" * 100_000]
)
def test_a_design_of_a_study_that_is_none_is_refused(design: str, study: Path, data: qd.Data, tmp_path: Path) -> None:
    with closing(sqlite3.connect(study)) as db, db:
        db.execute("UPDATE candidates SET design = 1 WHERE id < 3")
        db.execute("UPDATE designs SET json = ? WHERE id = 1", (design,))
    with pytest.raises(InputError):
        qd.Study(study).frame()
    with pytest.raises(InputError):
        qd.release(data, qd.Study(study).recipe(1), tmp_path / "release", insecure=True)
    assert not (tmp_path / "release").exists()


def test_a_study_is_not_written_through_a_link_that_leads_nowhere_yet(data: qd.Data, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "study").symlink_to(tmp_path / "theirs" / "study")
    recipes = qd.grid(qd.RandomSwap, swap=[["a"]], pairs=[3], seed=[1])
    with pytest.raises(OutputError, match="a link or a new file is there"):
        qd.search(data, recipes, MEASURES, out=tmp_path / "study", workers=1, progress=False)
    assert not list((tmp_path / "theirs").iterdir())


@pytest.mark.skipif("os.geteuid() != 0", reason="only the superuser can give a file away")
def test_an_empty_file_of_another_user_does_not_become_the_study(data: qd.Data, tmp_path: Path) -> None:
    import os

    (tmp_path / "study").touch()
    os.chown(tmp_path / "study", 65534, 65534)
    recipes = qd.grid(qd.RandomSwap, swap=[["a"]], pairs=[3], seed=[1])
    with pytest.raises(OutputError, match="belongs to another user"):
        qd.search(data, recipes, MEASURES, out=tmp_path / "study", workers=1, progress=False)
    assert (tmp_path / "study").read_bytes() == b""


# Bombs


def gz_bomb(path: Path, megabytes: int) -> Path:
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"a,b\n")
        for _ in range(megabytes):
            file.write(b"1,2\n" * (1 << 18))
    return path


def run_length_bomb(path: Path, rows: int) -> Path:
    """Make groups of rows of one value: a page holds the number of rows and the value once."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    part = min(rows, 1 << 24)
    values = arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(part, np.int8)), arrow.array(["x"]))
    table = arrow.table({"a": values}, schema=arrow.schema([arrow.field("a", values.type, nullable=False)]))
    how = {"data_page_size": 1 << 30, "max_rows_per_page": 1 << 30, "write_statistics": False, "store_schema": False}
    with parquet.ParquetWriter(path, table.schema, **how) as writer:
        for _ in range(rows // part):
            writer.write_table(table, row_group_size=part)
    return path


def grown_by(read: Callable[[], object]) -> int:
    """Return by how many bytes the memory of this process was larger at its peak."""
    import tracemalloc

    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "SMALL", 4 << 20)
    path = gz_bomb(tmp_path / "bomb.csv.gz", 64)

    def read() -> None:
        with pytest.raises(InputError, match=r"bomb.csv.gz' unpacks to more than 200 times its size"):
            qd.read(path)

    assert path.stat().st_size < 200_000
    assert grown_by(read) < 48 << 20
    assert qd.read(gz_bomb(tmp_path / "small.csv.gz", 3)).n == 3 << 18, "below the size where it matters"


@pytest.mark.parametrize("rows", [1 << 22, pytest.param(1 << 30, marks=pytest.mark.nightly)])
def test_a_file_of_a_kilobyte_does_not_hold_a_thousand_million_records(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rows < raw.SMALL:
        monkeypatch.setattr(raw, "SMALL", 1 << 20)
    path = run_length_bomb(tmp_path / "bomb.parquet", rows)
    assert path.stat().st_size < 20_000

    started = time.process_time()
    with pytest.raises(InputError, match=rf"it holds {rows:,} records of 1 columns, more than 2,000 values"):
        qd.read(path)
    assert time.process_time() - started < 2


def test_a_table_that_packs_very_well_is_read(tmp_path: Path) -> None:
    frame = pl.DataFrame({f"c{i}": np.repeat([0, 1], 300_000) for i in range(4)})
    frame.write_parquet(tmp_path / "sorted.parquet", compression="zstd")
    assert (tmp_path / "sorted.parquet").stat().st_size < 20_000
    assert qd.read(tmp_path / "sorted.parquet").n == 600_000
    raw.refuse_too_many_cells(tmp_path / "sorted.parquet", 10**6, 4)


# Documents


TOML: dict[str, str] = {
    "deep arrays": "x = " + "[" * 20_000,
    "deep tables": "x = " + "{a = " * 20_000,
    "a deep name": "[" + ".".join("a" * 20_000) + "]\n",
    "a huge number": "x = 1" + "0" * 10_000,
    "a huge exponent": "x = 1e999999999",
    "a mark that turns the direction": '[columns."a\u202eb"]\nkind = "no\u2066minal"',
}


@pytest.mark.parametrize("what", TOML)
@pytest.mark.parametrize("reader", ["codebook", "job", "design", "policy"])
def test_toml_that_is_made_to_harm_is_refused_in_one_line(what: str, reader: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from quadrille.cli import app

    path = tmp_path / "file.toml"
    path.write_text(TOML[what], encoding="utf-8")
    (tmp_path / "good.csv").write_text("a,b\n" + "1,2\n2,1\n" * 10)
    words = {
        "codebook": f"inspect {tmp_path}/good.csv --codebook {path}",
        "job": f"search {path} --out {tmp_path}/out",
        "design": f"simulate {path} --out {tmp_path}/out",
        "policy": f"release {tmp_path}/good.csv --swap a --pairs 3 --policy {path} --out {tmp_path}/out",
    }
    started = time.process_time()
    done = CliRunner().invoke(app, words[reader].split())
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 1_000
    assert not set(done.stderr) & {"\u202e", "\u2066", "\x1b"}
    assert time.process_time() - started < 10
    assert not (tmp_path / "out").exists()


RECIPES = {
    "deep": '{"method":"RandomSwap","swap":' + "[" * 50_000,
    "a huge number": '{"method":"RandomSwap","swap":["a"],"pairs":1' + "0" * 5_000 + "}",
    "a number beyond floats": '{"method":"RandomSwap","swap":["a"],"rate":1e999}',
    "no number": '{"method":"RandomSwap","swap":["a"],"rate":NaN}',
    "a method of Python": '{"method":"os:system","swap":["a"]}',
    "a relative module": '{"method":"..recipe:Recipe","swap":["a"]}',
    "the base of all": '{"method":"quadrille.recipe:Recipe","swap":["a"]}',
    "a value twice": '{"method":"RandomSwap","swap":["a"],"swap":["b"],"pairs":3}',
}


@pytest.mark.parametrize("what", RECIPES)
def test_a_recipe_that_is_made_to_harm_is_refused(what: str, data: qd.Data) -> None:
    with pytest.raises(qd.QuadrilleError) as caught:
        qd.Recipe.from_json(RECIPES[what]).plan(data)
    assert len(str(caught.value)) < 6_000


PICKLES = re.compile(
    r"\b(?:import|from) +(?:pickle|marshal|shelve|dill|joblib)\b|[\"'](?:pickle|marshal|shelve)[\"']|cloudpickle"
    r"|pickle\.(?:loads?|Unpickler)\b|read_pickle|np\.load\(|allow_pickle"
)
SENT = {("spark.py", '_spark("cloudpickle").register_pickle_by_value(sys.modules[__name__])')}
"""How functions travel to the workers of a Spark cluster, which Spark itself pickles: it writes, and reads nothing."""


def test_nothing_reads_a_pickle() -> None:
    """Pickles are code. Those of numba's cache are read where nobody else can write, those of workers from pipes."""
    source = Path(qd.__file__).parent
    found = {
        (path.relative_to(source).as_posix(), line.strip())
        for path in source.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if PICKLES.search(line)
    }
    assert found == SENT


def test_a_recipe_in_a_folder_with_modules_imports_none_of_them(tmp_path: Path) -> None:
    """A file and a module beside it: the folder in which a command runs is no place to import from."""
    (tmp_path / "evil.py").write_text("open('owned', 'w').close()")
    (tmp_path / "polars.py").write_text("open('owned', 'w').close()")
    (tmp_path / "recipe.json").write_text(json.dumps({"method": "evil:Swap", "swap": ["a"]}))
    (tmp_path / "good.csv").write_text("a,b\n" + "1,2\n2,1\n" * 10)
    command = [str(Path(sys.executable).with_name("quadrille")), "swap", "good.csv", "--recipe", "recipe.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "") and "QUADRILLE_METHODS" in done.stderr
    assert not (tmp_path / "owned").exists()


# What others open


FORMULAS = ["=1+1", '=HYPERLINK("http://a.example")', "@SUM(1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "－2＋3", "+A1"]
NO_FORMULAS = ["-", "+", "-1.5", "+49 30 1234", "-1e5", "- 12", "-50%", "a=b", "1=1", " =1", "good", "10-19", ""]


def public_file(tmp_path: Path, values: list[str], name: str = "text", form: str = "csv") -> tuple[qd.Release, Path]:
    frame = pl.DataFrame({name: values * 8, "b": np.arange(8 * len(values)) * 7 % 11 % 3})
    recipe = qd.RandomSwap(["b"], pairs=4)
    made = qd.release(qd.from_frame(frame), recipe, tmp_path / "release", measures=[], format=form, shuffle=False)
    return made, made.public / f"data.{form}"


@pytest.mark.filterwarnings("ignore::quadrille.release.release.ReleaseWarning")
@pytest.mark.parametrize("value", FORMULAS)
def test_a_text_that_a_spreadsheet_would_run_is_kept_and_warned_of_without_naming_it(
    value: str, tmp_path: Path
) -> None:
    made, path = public_file(tmp_path, [value, "good", "poor"])
    (warned,) = [text for text in made.warnings if "as formulas" in text]
    assert "text (8 records)" in warned and value not in warned
    assert warned in (made.confidential / "dossier.md").read_text(encoding="utf-8").replace("\\", "")
    assert qd.read(path).frame()["text"].to_list() == [value, "good", "poor"] * 8


@pytest.mark.filterwarnings("ignore::quadrille.release.release.ReleaseWarning")
def test_other_texts_other_formats_and_values_that_do_not_occur_are_not_warned_of(tmp_path: Path) -> None:
    assert "formulas" not in " ".join(public_file(tmp_path / "one", NO_FORMULAS)[0].warnings)
    assert "formulas" not in " ".join(public_file(tmp_path / "two", FORMULAS, form="parquet")[0].warnings)
    named = " ".join(public_file(tmp_path / "three", ["a", "c"], name="=cmd()")[0].warnings)
    assert "=cmd() (the name itself)" in named


HOSTILE = ["\x1b[31mred", "<script>alert(1)</script>", "[a](http://b.example)", "../../up", "a\u202eb", "`|*_", "$(id)"]


@pytest.mark.filterwarnings("ignore::quadrille.release.release.ReleaseWarning")
def test_names_and_labels_that_are_made_to_harm_change_neither_terminal_nor_page_nor_path(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from quadrille.cli import app

    rng = np.random.default_rng(8)
    frame = pl.DataFrame({name: [f"{name}{i}" for i in rng.integers(0, 2, 900)] for name in HOSTILE})
    frame.write_parquet(tmp_path / "odd.parquet")
    listed = ", ".join(json.dumps([name], ensure_ascii=True) for name in HOSTILE)
    (tmp_path / "job.toml").write_text(
        f'[data]\nfile = "odd.parquet"\n[search]\nmeasures = ["exposed", "hellinger"]\n'
        f'[[grid]]\nmethod = "RandomSwap"\nswap = [{listed}]\npairs = [3]\nseeds = 2\n',
        encoding="utf-8",
    )
    out, runner = tmp_path / "out", CliRunner()
    out.mkdir()
    seen = ""
    for words in (
        ["inspect", f"{tmp_path}/odd.parquet", "--write-codebook", f"{out}/book.toml"],
        ["search", f"{tmp_path}/job.toml", "--out", f"{out}/study", "--workers", "1"],
        ["frontier", f"{out}/study", "--chart", f"{out}/chart.html"],
        ["pick", f"{out}/study", "--criterion", "knee"],
        ["report", f"{out}/study", f"{tmp_path}/odd.parquet", "--out", f"{out}/report.html"],
        ["release", f"{tmp_path}/odd.parquet", "--swap", HOSTILE[1], "--pairs", "9", "--out", f"{out}/release"],
    ):
        done = runner.invoke(app, words)
        assert done.exit_code == 0, done.output
        seen += done.output
    assert not set(seen) & {"\x1b", "\u202e", "\x07"}
    pages = [path.read_text(encoding="utf-8") for path in out.rglob("*.html")]
    notes = [path.read_text(encoding="utf-8") for path in out.rglob("*.md")]
    assert len(pages) == 2 and len(notes) == 2
    assert not [page for page in pages if "<script>alert" in page or "\x1b" in page]
    unsafe = re.compile(r"(?<!\\)<script|(?<!\\)\]\(http|\x1b|\u202e")
    assert not [found for note in notes for found in unsafe.findall(note)]
    book = (out / "release" / "public" / "codebook.toml").read_text(encoding="utf-8")
    assert not set(book) & {"\x1b", "\u202e"} and set(HOSTILE) <= set(qd.Codebook.from_toml(book).names)
    assert {path.name for path in tmp_path.iterdir()} == {"odd.parquet", "job.toml", "out"}
