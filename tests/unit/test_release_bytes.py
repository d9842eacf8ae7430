"""The bytes of `public/` are those of the released values: nothing of plan, original, moment or machine."""

from __future__ import annotations

import csv
import sys
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.io import RELEASED, WRITABLE, streamed, write
from quadrille.io import parquet as parquet_module
from quadrille.params import SEED, Columns
from quadrille.randomness import Seed, Stream
from quadrille.recipe import Prepared, Recipe
from quadrille.release import order as order_module
from quadrille.release import release as release_module

pytestmark = pytest.mark.filterwarnings("ignore::quadrille.release.release.ReleaseWarning")
N = 240
KINDS = ("text", "enum", "category", "small", "code", "number", "flag", "day", "moment", "hours")
PLANS: dict[str, qd.Plan] = {}
"""By name of the column that says so: what `Given` does, whatever its seed is."""


@dataclass(frozen=True)
class Given(Recipe):
    """A plan that is made elsewhere: two of them can give one table from two originals."""

    swap: Annotated[tuple[str, ...], Columns("the variables to exchange", least=1, moves=True)]
    _: KW_ONLY
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def prepare(self, data: qd.Data) -> Prepared:
        def draw(_stream: Stream) -> qd.Plan:
            return PLANS[data.fingerprint]

        return Prepared(draw)


def table() -> pl.DataFrame:
    """Columns of every type that is read, with missing values, negative zeros and numbers that print in two ways."""
    rng = np.random.default_rng(12)

    def drawn(values: list[Any], dtype: Any = None) -> pl.Series:
        return pl.Series([values[i] for i in rng.integers(0, len(values), N)], dtype=dtype, strict=False)

    start = date(2001, 2, 28)
    return pl.DataFrame(
        {
            "text": drawn(["b", "a", 'c, "d"', None]),
            "enum": drawn(["low", "high", "mid", None], pl.Enum(["low", "mid", "high"])),
            "category": drawn(["x", "z", "y"], pl.Categorical),
            "small": drawn([1, 2, 3, None], pl.Int8),
            "code": drawn([10, 2, 99, 7], pl.Int64),
            "number": drawn([0.0, -0.0, 0.1, 1e-7, 12345678.25, 1 / 3, None], pl.Float64),
            "flag": drawn([True, False, None]),
            "day": drawn([start + timedelta(days=i) for i in range(5)] + [None]),
            "moment": drawn([datetime(2020, 1, 1, 12, 0, i) for i in range(4)]),
            "hours": drawn([time(9, 30), time(17, 0), None]),
            "weight": drawn([0.5, 1.0, 2.25]),
        }
    )


def data_of(frame: pl.DataFrame) -> qd.Data:
    book = qd.Codebook((qd.Variable("code", "nominal", (2, 7, 10), ("two", "seven", "ten"), missing=(99,)),))
    return qd.from_frame(frame, codebook=book, weight="weight")


def plan_of(data: qd.Data, seed: int) -> qd.Plan:
    return qd.RandomSwap(list(KINDS), pairs=60, differ="any", seed=seed).plan(data)


def released(data: qd.Data, plan: qd.Plan, out: Path, form: str) -> dict[str, bytes]:
    PLANS[data.fingerprint] = plan
    qd.release(data, Given(KINDS), out, format=form, shuffle=False, measures=[])
    return {path.name: path.read_bytes() for path in (out / "public").iterdir()}


IN_PIECES = [form for form in RELEASED if streamed(f".{form}")]


@pytest.mark.parametrize(
    ("form", "pieces"), [*((form, False) for form in RELEASED), *((form, True) for form in IN_PIECES)]
)
def test_one_table_released_by_two_plans_from_two_originals_is_the_same_file(
    form: str, pieces: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces, too, as files of many records are written: groups of rows have dictionaries and statistics."""
    if pieces:
        monkeypatch.setattr(release_module, "ONE_BUCKET", 0)
        monkeypatch.setattr(order_module, "PIECE", 50)
        monkeypatch.setattr(parquet_module, "_ROW_GROUP", 40)
    data = data_of(table())
    plan, other = plan_of(data, 1), plan_of(data, 2)
    second = other.apply(data)
    back = other.inverse().then(plan)
    assert back.apply(second) == plan.apply(data) and len(back.rows) > len(plan.rows)
    fresh = data_of(second.frame())  # read anew: no history, other than the values
    again = qd.Plan(back.moves, data=fresh)
    files = [
        released(data, plan, tmp_path / "one", form),
        released(second, back, tmp_path / "two", form),
        released(fresh, again, tmp_path / "three", form),
    ]
    assert files[0] == files[1] == files[2]
    assert set(files[0]) == {f"data.{form}", "codebook.toml", "methods.md"}


STAMPS = ("%d %b %y", "%d %b %Y", "%d%b%y", "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d")


@pytest.mark.parametrize("ending", WRITABLE)
def test_no_file_says_when_it_was_written(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{ending}"
    write(data_of(table()), path)
    contents = path.read_bytes().lower()
    for day in {datetime.now(UTC).date() + timedelta(days=i) for i in (-1, 0, 1)}:  # in any time zone
        assert [form for form in STAMPS if day.strftime(form).lower().encode() in contents] == []


@pytest.mark.parametrize(
    ("ending", "names"), [(".sav", ("a",)), (".dta", ("a",)), (".xpt", ("a",)), (".xpt", ("a_name_longer_than_eight",))]
)
def test_the_time_of_writing_is_the_same_for_all_files(ending: str, names: tuple[str, ...], tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"file{ending}"
    write(qd.from_frame(pl.DataFrame({name: [1, 2, 2] for name in names})), path)
    read = {".sav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta, ".xpt": pyreadstat.read_xport}[ending]
    meta = read(str(path))[1]
    assert meta.creation_time == meta.modification_time == datetime(1970, 1, 1)  # files have no zone


def test_a_text_that_looks_like_a_stamp_stays(tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    frame = pl.DataFrame({"a": ["18NOV26:22:22:43", "18 Nov 2026 22:22", "18 Nov 2622:22:43"] * 3})
    for ending in (".sav", ".dta", ".xpt"):
        path = tmp_path / f"file{ending}"
        write(qd.from_frame(frame), path)
        assert qd.read(path).frame()["a"].to_list() == frame["a"].to_list()


@pytest.mark.parametrize("ending", WRITABLE)
def test_no_file_names_the_machine_or_the_user(ending: str, tmp_path: Path) -> None:
    import getpass
    import platform

    path = tmp_path / f"file{ending}"
    write(data_of(table()), path)
    contents = path.read_bytes()
    named = {platform.node(), str(tmp_path), sys.prefix, str(Path.home())} | {f"/{getpass.getuser()}/"}
    assert [name for name in named if len(name) > 2 and name.encode() in contents] == []


def test_dictionaries_in_parquet_are_in_the_order_of_the_released_rows_and_have_released_values_only(
    tmp_path: Path,
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    data = data_of(table())
    for shuffle in (False, True):
        PLANS[data.fingerprint] = plan_of(data, 4)
        out = tmp_path / f"shuffle {shuffle}"
        qd.release(data, Given(KINDS), out, format="parquet", shuffle=shuffle, measures=[])
        path = out / "public" / "data.parquet"
        columns = parquet.read_table(path, read_dictionary=["text", "category"])
        for name in ("text", "category"):
            values = [value for value in columns.column(name).to_pylist() if value is not None]
            assert columns.column(name).chunk(0).dictionary.to_pylist() == list(dict.fromkeys(values))
        group = parquet.ParquetFile(path).metadata.row_group(0)
        for column in map(group.column, range(group.num_columns)):
            held = [value for value in columns.column(column.path_in_schema).to_pylist() if value is not None]
            found = column.statistics
            assert found.null_count == N - len(held)
            assert not found.has_min_max or (found.min, found.max) == (min(held), max(held)), column.path_in_schema


def test_the_order_of_the_original_is_not_in_the_codebook(tmp_path: Path) -> None:
    """Categories that a file does not order stand in their own order, not in that of their first records."""
    mixed = table().sample(fraction=1, shuffle=True, seed=8)
    mixed = mixed.with_columns(pl.col("category").cast(pl.String).cast(pl.Categorical))
    books = []
    for name, frame in (("one", table()), ("two", mixed)):
        data = data_of(frame)
        books.append(released(data, plan_of(data, 5), tmp_path / name, "csv")["codebook.toml"])
    assert books[0] == books[1]


def test_swapped_and_unswapped_cells_are_written_alike(tmp_path: Path) -> None:
    """Every value is printed in one way in the whole column, so that the print tells nothing about a cell."""
    data = data_of(table())
    contents = released(data, plan_of(data, 3), tmp_path / "one", "csv")["data.csv"].decode()
    rows = list(csv.DictReader(contents.splitlines()))
    assert len(rows) == N
    for name in ("number", "weight", "small"):
        prints = {row[name] for row in rows} - {"", "-0.0"}
        assert len({float(text) for text in prints}) == len(prints)


@pytest.mark.parametrize("ending", WRITABLE)
def test_equal_data_written_at_two_moments_are_equal_bytes(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_of(table())
    write(data, tmp_path / f"one{ending}")
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    write(data_of(table()), tmp_path / f"two{ending}")
    assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes()


def test_a_packed_file_has_neither_time_nor_name_in_its_head(tmp_path: Path) -> None:
    write(data_of(table()), tmp_path / "secret-name.csv.gz")
    head = (tmp_path / "secret-name.csv.gz").read_bytes()[:10]
    assert head[:4] == b"\x1f\x8b\x08\x00", "no flag, so neither a name nor a comment"
    assert head[4:8] == bytes(4), "no time"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_two_releases_laid_side_by_side_share_no_row_by_position(form: str, tmp_path: Path) -> None:
    """The order is drawn afresh each time: as many rows stay in place as in a random permutation, 1 on average."""
    frame = table().with_columns(pl.Series("number", np.arange(N) * 1.5 + 0.25))
    data = data_of(frame)
    PLANS[data.fingerprint] = qd.RandomSwap(["flag"], pairs=40, seed=1).plan(data)
    seen = []
    for name in ("one", "two"):
        qd.release(data, Given(KINDS), tmp_path / name, format=form, shuffle=True, measures=[])
        seen.append(qd.read(tmp_path / name / "public" / f"data.{form}")["number"].values)
    assert sorted(seen[0]) == sorted(seen[1]) == sorted(frame["number"])
    pairs = [(seen[0], seen[1]), (seen[0], frame["number"].to_numpy()), (seen[1], frame["number"].to_numpy())]
    for one, other in pairs:
        assert int((one == other).sum()) < 12, "12 or more of 240 in place: a chance of 1e-9"
        assert abs(np.corrcoef(one, other)[0, 1]) < 6 / np.sqrt(N), "6 standard errors"
