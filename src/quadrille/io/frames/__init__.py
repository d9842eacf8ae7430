"""Where polars, pandas and Arrow frames become Data, and Data becomes a frame again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import polars as pl

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.io.frames.columns import build
from quadrille.io.frames.convert import nan_remarks, ordered_scales, restore, to_polars, with_nan

__all__ = ["Frame", "build", "from_frame", "to_frame"]


class ArrowStream(Protocol):
    """Anything that hands out its columns through the Arrow C stream interface, as pandas and pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame = pl.DataFrame | pl.LazyFrame | ArrowStream


def from_frame(
    frame: Frame,
    *,
    codebook: Codebook | str | Path | None = None,
    weight: str | None = None,
    geography: Sequence[str] = (),
) -> Data:
    """Turn a polars, pandas or Arrow frame into Data; what the codebook leaves open is guessed.

    Text, booleans and dates are nominal in sorted order, an Enum in its own order; categories that pandas calls
    ordered are ordinal; integers with at most 50 distinct values are ordinal; other numbers are numeric, and NaN is
    an empty field like null. Identifiers get the role id and are not released:
    columns that are called like a name, an address or a number of a person or a record and do not have few values,
    text that is different in nearly every one of more than 50 rows, whole numbers beyond 2^53. A column that the
    codebook describes is what the codebook says. A pandas index is not a column. `geography` names nested levels of
    geography, the coarsest first.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> data = qd.from_frame(pl.DataFrame({"sex": ["m", "f"], "age": [31, 47]}))
    >>> data["sex"].variable.categories, data["age"].variable.kind
    (('f', 'm'), 'ordinal')
    """
    book = codebook if isinstance(codebook, Codebook | None) else Codebook.read(codebook)
    table = to_polars(frame)
    known: list[str] = [] if book is None else book.names
    scales = [variable for variable in ordered_scales(table, frame) if variable.name not in known]
    if scales:
        book = Codebook((*(book or ()), *scales))
    if geography:
        book = (book or Codebook()).with_geography(geography)
    data = build(table, codebook=book, weight=weight, where="the frame")
    data.remarks = nan_remarks(with_nan(table, frame))
    return data


def to_frame(data: Data) -> pl.DataFrame:
    """Return the records as a polars frame with their original values and types.

    NaN and null of a float column both mean "missing" and come back as null. Text that a codebook declares to
    be numbers comes back as numbers.
    """
    return pl.DataFrame([restore(data[name]) for name in data.columns])
