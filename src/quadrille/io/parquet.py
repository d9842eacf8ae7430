"""Parquet files in and out; types come from the file."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from quadrille.codebook import Codebook, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.errors import InputError, OutputError
from quadrille.io.frames import (
    NEEDS_ARROW,
    NO_ORDER,
    build,
    has_nan,
    nan_remarks,
    numbers_of_moments,
    restore,
    restore_as_categories,
    to_frame,
    with_nan,
    with_scales,
    words_left,
)
from quadrille.io.frames.columns import (
    Source,
    code,
    complete_text,
    encode_text,
    given_by,
    go_on,
    no_patterns,
    refuse_unknown,
    settled,
    wants,
)
from quadrille.io.frames.identifiers import MOST_ORDINAL, Run, names_identifier
from quadrille.io.frames.values import is_text, too_large, type_name
from quadrille.io.raw import contents, refuse_for_addresses, refuse_for_the_system, refuse_too_many_cells
from quadrille.io.space import Space

Reader = Callable[[str], Iterator[pl.Series]]
"""Returns the batches of a column, from the first again at each call."""


Piece = dict[str, tuple[Sequence[str | None], NDArray[Any]]]
"""Some rows of columns of text: the values of each column, and the place of each row's value among them."""
MOST_TEXTS = 1 << 16
"""A column of text with more different values than this is read by itself."""


class Texts:
    """A column of text while it is read: codes of the values in the order in which they turn up, in small numbers."""

    def __init__(self, rows: int, space: Space) -> None:
        self.known: dict[str | None, int] = {}
        self._space = space
        self._held = np.zeros(0, dtype=np.int64)
        self._codes: NDArray[Any] = space.empty(rows, np.uint8)
        self._end = 0

    def add(self, values: Sequence[str | None], codes: NDArray[Any]) -> bool:
        """Take the next rows: their values, and the place of each row's among these; tell whether there was room."""
        table = np.array([self.known.setdefault(value, len(self.known)) for value in values], dtype=np.uint32)
        if len(self.known) > MOST_TEXTS:
            return False
        needed = code_dtype(len(self.known))
        if np.dtype(needed) != self._codes.dtype:
            larger = self._space.empty(len(self._codes), needed)
            larger[: self._end] = self._codes[: self._end]
            self._codes = larger
        held = np.zeros(len(self.known), dtype=np.int64)
        held[: len(self._held)] = self._held
        np.add.at(held, table, np.bincount(codes, minlength=len(table)))
        self._held = held
        self._codes[self._end : self._end + len(codes)] = table.astype(needed)[codes]
        self._end += len(codes)
        return True

    def column(self, source: Source) -> Column:
        """Return the column with its codes in the order of the variable; `source` has the series without its rows."""
        # A batch may bring along a value that none of its rows has.
        found = {value: int(self._held[code]) for value, code in self.known.items() if self._held[code]}
        empty = found.pop(None, 0)
        listed = pl.Series(source.series.name, list(found), dtype=pl.String).sort()
        variable = complete_text(replace(source, empty=empty), listed, len(self._codes))
        last = len(variable.values)
        place: dict[object, int] = {value: code for code, value in enumerate(variable.values)}
        refuse_unknown(source.series.name, source.where, sum(n for value, n in found.items() if value not in place))
        kind = code_dtype(last + (empty > 0))
        table = np.array([place.get(value, last) for value in self.known]).astype(kind)
        codes: NDArray[Any] = (
            self._codes if np.dtype(kind) == self._codes.dtype else self._space.empty(len(self._codes), kind)
        )
        for start in range(0, len(codes), BATCH):
            codes[start : start + BATCH] = table[self._codes[start : start + BATCH]]
        return Column(variable, codes, source.dtype, nullable=empty > 0)


@dataclass(frozen=True)
class Batches:
    """A table that is read column by column and batch by batch; `empty` has its names and types and no rows."""

    empty: pl.DataFrame
    rows: int
    read: Reader
    texts: Callable[[list[str]], Mapping[str, Texts]] = lambda _: {}
    """Reads some columns of text in one pass; those that it leaves out are read by themselves."""
    space: Space = field(default_factory=Space)

    def whole(self, name: str) -> pl.Series:
        """Return a column in one piece."""
        return pl.concat(list(self.read(name)), rechunk=True)


@dataclass
class Facts:
    """What a first pass over a column finds out: empty fields, different values where they decide anything, ..."""

    empty: int = 0
    few: bool = True
    large: bool = False
    distinct: pl.Series | None = None
    running: bool = False


def build_streamed(batches: Batches, *, codebook: Codebook | None, weight: str | None, where: str) -> Data:
    """Turn a table into Data batch by batch; see `build`."""
    given = given_by(batches.empty, codebook, weight, where)
    plain = [
        s.name
        for s in batches.empty.get_columns()
        if s.dtype == pl.String and not needs_the_whole(s, given.get(s.name))
    ]
    texts = dict(batches.texts(plain))
    columns: list[Column] = []
    for series in batches.empty.get_columns():
        if series.name in texts:
            source = Source(series, type_name(series, where), given.get(series.name), where, 0)
            columns.append(texts.pop(series.name).column(source))
        else:
            columns.append(_column(batches, series, given, where))
    return Data(columns, weight=weight)


def _read_texts(
    pieces: Iterator[Mapping[str, tuple[Sequence[str | None], NDArray[Any]]]], rows: int, space: Space
) -> dict[str, Texts]:
    """Read columns of text piece by piece; those with very many values are left out."""
    texts: dict[str, Texts] = {}
    left_out: set[str] = set()
    for piece in pieces:
        for name, (values, codes) in piece.items():
            if name not in left_out and not _texts_of(texts, name, rows, space).add(values, codes):
                left_out.add(name)
                del texts[name]
    return texts


def _texts_of(texts: dict[str, Texts], name: str, rows: int, space: Space) -> Texts:
    if name not in texts:
        texts[name] = Texts(rows, space)
    return texts[name]


def _pieces_by_arrow(file: Any, names: list[str]) -> Iterator[Piece]:
    """Yield, for one batch of rows after the other, the values of each column and the place of each row's among them.

    Pages whose values are listed once, as nearly all programs write text, are taken as they are.
    """
    size = max(1 << 12, min(BATCH, 8 * BATCH // max(len(names), 1)))  # of many columns fewer rows at a time
    for batch in file.iter_batches(batch_size=size, columns=names):
        piece: Piece = {}
        for name in names:
            column = batch.column(name)
            values = column.dictionary.to_pylist()
            codes = column.indices.fill_null(len(values)) if column.null_count else column.indices
            piece[name] = [*values, None] if column.null_count else values, codes.to_numpy(zero_copy_only=False)
        yield piece


def _column(batches: Batches, series: pl.Series, given: Mapping[str, Variable], where: str) -> Column:
    dtype, mine = type_name(series, where), given.get(series.name)
    facts = None if needs_the_whole(series, mine) else _first_pass(batches, series, mine)
    if facts is None or facts.large:
        whole = batches.whole(series.name)
        (source,) = encode_text([Source(whole, dtype, mine, where, whole.null_count())])
        return code(source)
    variable = complete(series, mine, facts, dtype, where, batches.rows)
    return coded_by(batches, variable, facts, dtype, where)


def needs_the_whole(series: pl.Series, given: Variable | None) -> bool:
    """Whether a column can be judged only in one piece: numbers kept as text, decimals, likely identifiers."""
    if is_text(series):
        return wants(given) not in ("any", "text") or isinstance(series.dtype, pl.Categorical)
    if series.dtype.is_decimal() or series.dtype == pl.Null:
        return True
    if given is None:
        return series.dtype.is_numeric() and names_identifier(series.name)
    return bool(given.missing_ranges) or any(isinstance(value, str) for value in given.missing)


def _first_pass(batches: Batches, series: pl.Series, given: Variable | None) -> Facts:
    """Count empty fields and collect distinct values, as far as they decide anything."""
    facts, run = Facts(), Run(series.name)
    text, whole = is_text(series), series.dtype.is_integer()
    coded = (given is None and not series.dtype.is_float()) or (given is not None and given.coded)
    wanted = coded and not (given is not None and given.categories) and series.dtype != pl.Enum
    for batch in batches.read(series.name):
        part = batch.fill_nan(None) if batch.dtype.is_float() and coded else batch
        facts.empty += part.null_count()
        if given is None:
            go_on(run, batch)
        facts.large = facts.large or (whole and too_large(part))
        if wanted and facts.few:
            found = part.drop_nulls().unique()
            known = found if facts.distinct is None else pl.concat([facts.distinct, found]).unique()
            # Whole numbers without a codebook are categories only when they are few.
            facts.few = text or given is not None or not whole or len(known) <= MOST_ORDINAL
            facts.distinct = known if facts.few else None
    facts.running = run.counts
    return facts


def complete(series: pl.Series, given: Variable | None, facts: Facts, dtype: str, where: str, rows: int) -> Variable:
    """Return the variable with all its categories; `series` has its name and type."""
    if is_text(series):
        found = None if facts.distinct is None else facts.distinct.cast(pl.String).sort()
        return complete_text(Source(series, dtype, given, where, facts.empty), found, rows)
    if given is None and (series.dtype.is_float() or not facts.few):
        return Variable(series.name, "numeric", role="id" if facts.running else None)
    if given is not None and (not given.coded or given.categories):
        return given
    distinct = series if facts.distinct is None else facts.distinct
    # The distinct values stand for the column: guessing and coding see the same values as in the whole of it.
    return code(Source(distinct.alias(series.name), dtype, given, where, 0)).variable


def coded_by(batches: Batches, variable: Variable, facts: Facts, dtype: str, where: str) -> Column:
    """Return the column of a variable that is known, batch by batch."""
    last = len(variable.values)
    kind: Any = code_dtype(last + (facts.empty > 0)) if variable.coded else np.float64
    values: NDArray[Any] = batches.space.empty(batches.rows, kind)
    start, coded = 0, None
    # Text that is coded here stays text, also where no value of it is known: `needs_the_whole` has seen to the rest.
    text = is_text(batches.empty[variable.name])
    enum = pl.Enum(cast("list[str]", list(variable.values))) if text else None
    for batch in batches.read(variable.name):
        part = batch.cast(enum, strict=False) if enum is not None and batch.dtype != enum else batch
        coded = code(Source(part, dtype, variable, where, batch.null_count()))
        values[start : start + len(batch)] = coded.values
        start += len(batch)
    assert coded is not None
    assert start == batches.rows
    return replace(coded, values=values, nullable=variable.coded and facts.empty > 0)


@dataclass(frozen=True)
class Orders:
    """Columns of ordered categories: the categories in their order, and remarks on those whose order is not known."""

    known: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]


def orders_in(path: Path, empty: pl.DataFrame) -> Orders:
    """Find the ordered categories of a Parquet file; `empty` has its names and types as polars reads them.

    An Enum, the type of polars for ordered categories, brings its order along already.
    """
    told = [name for name in _ordered_by_pandas(path) if name in empty.columns]
    if not told and not any(isinstance(dtype, pl.Categorical) for dtype in empty.dtypes):
        return Orders({}, ())  # most files; they do not wait for Arrow
    try:
        import pyarrow.parquet as pq
    except ImportError:
        return Orders({}, tuple(f"{name}: {NEEDS_ARROW}." for name in told))
    try:
        with cast("Any", pq).ParquetFile(path) as file:
            return _orders(file, empty, told)
    except Exception:  # polars reads the file, or refuses it
        return Orders({}, tuple(f"{name}: {NO_ORDER}." for name in told))


def _orders(file: Any, empty: pl.DataFrame, told: list[str]) -> Orders:
    known: dict[str, tuple[str, ...]] = {}
    remarks: list[str] = []
    ordered = [str(field.name) for field in file.schema_arrow if getattr(field.type, "ordered", False)]
    for name in dict.fromkeys([*ordered, *told]):
        dtype = empty[name].dtype
        if isinstance(dtype, pl.Enum):
            continue
        # Parquet has no dictionaries of numbers, so that the order of these is lost at writing already.
        if isinstance(dtype, pl.Categorical) and (categories := _categories(file, name)):
            known[name] = categories
        else:
            remarks.append(f"{name}: {NO_ORDER}.")
    return Orders(known, tuple(remarks))


def _ordered_by_pandas(path: Path) -> list[str]:
    """Name the columns that pandas calls ordered in the words that it adds to a file."""
    try:
        with no_panic_shown(), path.open("rb") as file:
            words: Any = json.loads(pl.read_parquet_metadata(file)["pandas"])
        facts = {str(column["name"]): column["metadata"] for column in words["columns"]}
        return [name for name, fact in facts.items() if fact and "ordered" in fact and fact["ordered"]]
    except (Exception, pl.exceptions.PanicException):
        return []


def _categories(file: Any, name: str) -> tuple[str, ...]:
    """Return the one list of categories of all groups of rows; nothing where they differ or are not written."""
    found: set[tuple[str, ...]] = set()
    for group in range(file.num_row_groups):
        if not _has_dictionary(file.metadata.row_group(group), name):
            return ()
        column = file.read_row_group(group, columns=[name]).column(name)
        found |= {tuple(chunk.dictionary.to_pylist()) for chunk in column.chunks if len(chunk)}
    categories = found.pop() if len(found) == 1 else ()
    return categories if len(set(categories)) == len(categories) else ()


def _has_dictionary(group: Any, name: str) -> bool:
    """Whether a group of rows holds the categories of a column, not only its values."""
    columns = map(group.column, range(group.num_columns))
    return any(column.path_in_schema == name and column.has_dictionary_page for column in columns)


BATCH = 1 << 18
"""Files with more rows than this are read in batches of as many, so that they are never whole in memory."""


def refuse_few_addresses(path: Path, rows: int, columns: int) -> None:
    """Refuse a table for which the process may not have enough addresses: a value takes 16, all work included.

    Reading in batches takes 384 MiB more, on several threads.
    """
    refuse_for_addresses(path, (3 << 27 if rows > BATCH else 0) + 16 * rows * columns)


@contextmanager
def no_panic_shown() -> Generator[None]:
    """Keep stderr quiet: a library written in Rust prints its panics, data values and all, before they are caught."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def read_file(path: Path, _ending: str, *, codebook: Codebook | None, weight: str | None) -> Data:
    """Read a Parquet file; a large one batch by batch."""
    contents(path)  # a file that is missing or not readable is refused here
    where = f"the file {str(path)!r}"
    scan = pl.scan_parquet(path.absolute(), glob=False, hive_partitioning=False)
    rows = int(_collected(scan.select(pl.len()), path).item())
    empty = _collected(scan.head(0), path)
    refuse_too_many_cells(path, rows, empty.width)
    refuse_few_addresses(path, rows, empty.width)
    orders = orders_in(path, empty)
    no_patterns(orders.known, where)
    enums: dict[Any, pl.Enum] = {name: pl.Enum(categories) for name, categories in orders.known.items()}
    scan, empty = scan.cast(dict(enums)), empty.cast(dict(enums))
    open_ones = [v for v in codebook or () if v.kind_open and v.name in empty.columns]
    known = {v.name: settled(v, _collected(scan.select(v.name), path).to_series()) for v in open_ones}
    described = None if codebook is None else Codebook(tuple(known.get(v.name, v) for v in codebook))
    book = with_scales(described, orders.known, rows, weight)
    recodes = any(variable.recodes for variable in codebook or ())
    nans: dict[str, None] = {}
    space = Space()

    def batches(name: str) -> Iterator[pl.Series]:
        for start in range(0, rows, BATCH):
            batch = _collected(scan.select(name).slice(start, BATCH), path).to_series()
            if has_nan(batch):
                nans[name] = None
            yield batch

    if (
        rows <= BATCH
        or recodes
        or (weight is not None and weight in empty.columns and not empty[weight].dtype.is_numeric())
    ):
        table = _collected(scan, path)
        data = build(table, codebook=book, weight=weight, where=where)
        nans = dict.fromkeys(with_nan(table, table))
    else:
        data = build_streamed(
            Batches(empty, rows, batches, partial(_texts_by_arrow, path, rows=rows, space=space), space),
            codebook=book,
            weight=weight,
            where=where,
        )
    data.remarks += (*orders.remarks, *nan_remarks(nans))
    return data


def _texts_by_arrow(path: Path, names: list[str], rows: int, space: Space) -> dict[str, Texts]:
    """Read columns of text in one pass where Arrow is installed, in a third of the time of two passes of polars."""
    if not names:
        return {}
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return {}
    arrow = cast("Any", pa)
    try:
        with cast("Any", pq).ParquetFile(path, read_dictionary=names) as file:
            schema, plain = file.schema_arrow, (arrow.string(), arrow.large_string())
            held = {field.name for field in schema if field.type in [arrow.dictionary(arrow.int32(), t) for t in plain]}
            texts = _read_texts(_pieces_by_arrow(file, [name for name in names if name in held]), rows, space)
            return texts if file.metadata.num_rows == rows else {}
    except OutputError:
        raise
    except Exception:  # polars reads the file, or refuses it
        return {}


def _collected(scan: pl.LazyFrame, path: Path) -> pl.DataFrame:
    """Let polars read; its error texts hold data values and must not get out."""
    try:
        with no_panic_shown():
            return scan.collect()
    except (Exception, pl.exceptions.PanicException) as error:
        refuse_for_the_system(path, error)
        raise InputError(f"The file {str(path)!r} is not intact Parquet. Copy it again or check its name.") from None


def file_bytes(data: Data, _ending: str) -> tuple[memoryview, tuple[str, ...]]:
    """Return the records as a Parquet file, and what it does not hold."""
    buffer = io.BytesIO()
    to_frame(data).write_parquet(buffer)
    return buffer.getbuffer(), not_held(data)


def not_held(data: Data) -> tuple[str, ...]:
    """Say what a Parquet file does not hold of these data."""
    return numbers_of_moments(data)


def write_pieces(file: BinaryIO, columns: Sequence[Column], pieces: Iterable[Sequence[Column]]) -> None:
    """Write records piece by piece, each as a group of rows; `columns` have their names and types.

    Text is handed over as categories, which are written in a fraction of the time, and the file says that it is text.
    """
    empty = pl.DataFrame([restore(replace(column, values=column.values[:0])) for column in columns])
    quick = [restore_as_categories(replace(column, values=column.values[:0])) for column in columns]
    sink, failed = _Sink(file), list[BaseException]()

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            for piece in pieces:
                yield pl.DataFrame([restore_as_categories(column) for column in piece])
        except BaseException as error:
            failed.append(error)
            raise

    schema = pl.Schema({series.name: series.dtype for series in quick})
    table = register_io_source(source, schema=schema)
    try:
        with no_panic_shown():
            table.sink_parquet(cast("Any", sink), row_group_size=_ROW_GROUP, metadata=_words_on_types(empty))
    except (Exception, pl.exceptions.PanicException):  # its text may hold data values; what it stumbled over does not
        raise (*failed, *sink.failed, OutputError("The Parquet file cannot be written. Release csv."))[0] from None


_ROW_GROUP = 1 << 20


def _words_on_types(empty: pl.DataFrame) -> dict[str, str]:
    """Return what polars writes into a file about the types of its columns."""
    buffer = io.BytesIO()
    empty.write_parquet(buffer)
    buffer.seek(0)
    return pl.read_parquet_metadata(buffer)


class _Sink:
    """A file that polars writes to; it keeps the error of the system, of which polars would make a text."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failed: list[OSError] = []

    def write(self, part: bytes) -> int:
        """Write some bytes."""
        try:
            return self._file.write(part)
        except OSError as error:
            self.failed.append(error)
            raise

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._file.tell()

    def flush(self) -> None:
        """Do nothing: who opened the file closes it."""

    def close(self) -> None:
        """Do nothing: who opened the file closes it."""


def left_to_codebook(data: Data) -> tuple[str, ...]:
    """Say what the codebook has to tell about a Parquet file."""
    return words_left(data)
