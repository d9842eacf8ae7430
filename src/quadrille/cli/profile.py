"""What `quadrille inspect` finds out about a file: columns, weight, cells, hints. No data values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from quadrille.cli.advice import checks, reason

if TYPE_CHECKING:
    from quadrille.data import Column, Data


@dataclass(frozen=True)
class ColumnProfile:
    """One column; `categories` is None for numbers, `labels` is filled only when asked for."""

    name: str
    kind: str
    role: str | None
    key: bool
    categories: int | None
    missing: float
    level: int | None = None
    labels: tuple[str, ...] | None = None
    label: str = ""
    reason: str = ""


@dataclass(frozen=True)
class WeightProfile:
    """The weight: its sum, and whether whole numbers of ticks represent it exactly."""

    column: str
    total: float
    exact: bool


@dataclass(frozen=True)
class CellProfile:
    """The full cross of the key variables: possible and occupied cells, cells of one and of two records."""

    possible: int
    occupied: int
    ones: int
    twos: int


@dataclass(frozen=True)
class LevelProfile:
    """A level of geography: its areas, those without a record, and the records of the smallest and largest other."""

    column: str
    areas: int
    empty: int
    smallest: int
    median: float
    largest: int

    def __str__(self) -> str:
        ends = f"{self.smallest:,}" if self.smallest == self.largest else f"{self.smallest:,} to {self.largest:,}"
        areas = "1 area" if self.areas == 1 else f"{self.areas:,} areas"
        return f"{self.column}: {areas} of {ends} record{'s' if self.largest > 1 else ''}"


@dataclass(frozen=True)
class Profile:
    """A file at a glance."""

    file: str
    records: int
    columns: tuple[ColumnProfile, ...]
    weight: WeightProfile | None
    keys: tuple[str, ...]
    cells: CellProfile | None
    hints: tuple[str, ...]
    geography: tuple[LevelProfile, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)


def profile(data: Data, file: str, *, labels: bool = False, declared: Collection[str] = ()) -> Profile:
    """Look at a file; `declared` are the columns that the user's own codebook describes."""
    columns = tuple(_column(data[name], data, declared, labels=labels) for name in data.columns)
    weight = None
    if data.weight is not None and data.ticks is not None:
        weight = WeightProfile(data.weight, int(data.ticks.values.sum()) / data.ticks.per_unit, data.ticks.exact)
    levels = tuple(_level(data[name]) for name in data.codebook.geography)
    hints = (*checks(data, declared), *_empty(levels))
    return Profile(file, data.n, columns, weight, data.keys, _cells(data), hints, levels)


def _column(column: Column, data: Data, declared: Collection[str], *, labels: bool) -> ColumnProfile:
    import numpy as np

    variable = column.variable
    absent = column.values >= column.valid if variable.coded else np.isnan(column.values)
    shown = labels and variable.coded and variable.role != "id"
    return ColumnProfile(
        name=variable.name,
        kind=variable.kind,
        role="weight" if variable.name == data.weight else variable.role,
        key=variable.name in data.keys,
        categories=len(variable.categories) if variable.coded else None,
        missing=float(absent.mean()),
        level=variable.level,
        labels=variable.names if shown else None,
        label=variable.label,
        reason=reason(column, data, declared),
    )


def _level(column: Column) -> LevelProfile:
    import numpy as np

    from quadrille.geography import records_in

    records = records_in(column)
    held = records[records > 0]
    few, many = (int(held.min()), int(held.max())) if len(held) else (0, 0)
    middle = float(np.median(held)) if len(held) else 0.0
    return LevelProfile(column.variable.name, len(records), len(records) - len(held), few, middle, many)


def _empty(levels: tuple[LevelProfile, ...]) -> list[str]:
    return [
        f"{level.empty:,} of {level.areas:,} areas of {level.column!r} have no record. They can neither give nor "
        "receive one, so they stay empty in every swap."
        for level in levels
        if level.empty
    ]


def _cells(data: Data) -> CellProfile | None:
    import numpy as np

    from quadrille.cross import Cross

    if not data.keys:
        return None
    cross = Cross.of(data, data.keys)
    _, counts = np.unique(cross.cells(data), return_counts=True)
    return CellProfile(cross.possible, len(counts), int((counts == 1).sum()), int((counts == 2).sum()))
