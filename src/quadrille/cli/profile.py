"""What `quadrille inspect` finds out about a file: columns, weight, cells, hints. No data values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadrille.data import Column, Data

MANY_CATEGORIES = 1000


@dataclass(frozen=True)
class ColumnProfile:
    """One column; `categories` is None for numbers, `labels` is filled only when asked for."""

    name: str
    kind: str
    role: str | None
    key: bool
    categories: int | None
    missing: float
    labels: tuple[str, ...] | None = None


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
class Profile:
    """A file at a glance."""

    file: str
    records: int
    columns: tuple[ColumnProfile, ...]
    weight: WeightProfile | None
    keys: tuple[str, ...]
    cells: CellProfile | None
    hints: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)


def profile(data: Data, file: str, *, labels: bool = False) -> Profile:
    """Look at a file."""
    columns = tuple(_column(data[name], data, labels=labels) for name in data.columns)
    weight = None
    if data.weight is not None and data.ticks is not None:
        weight = WeightProfile(data.weight, int(data.ticks.values.sum()) / data.ticks.per_unit, data.ticks.exact)
    return Profile(file, data.n, columns, weight, data.keys, _cells(data), _hints(data))


def _column(column: Column, data: Data, *, labels: bool) -> ColumnProfile:
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
        labels=tuple(variable.labels or map(str, variable.categories)) if shown else None,
    )


def _cells(data: Data) -> CellProfile | None:
    import numpy as np

    from quadrille.cross import Cross

    if not data.keys:
        return None
    cross = Cross.of(data, data.keys)
    _, counts = np.unique(cross.cells(data), return_counts=True)
    return CellProfile(cross.possible, len(counts), int((counts == 1).sum()), int((counts == 2).sum()))


def _hints(data: Data) -> tuple[str, ...]:
    import numpy as np

    hints: list[str] = []
    for name in data.columns:
        column, role = data[name], data.codebook[name].role
        if role != "id" and name != data.weight and 1 < data.n == len(np.unique(column.values)):
            hints.append(
                f"Column {name!r} looks like an identifier: it has a different value in every record. "
                'Give it the role "id" in the codebook if it is one.'
            )
        elif name in data.keys and column.valid > MANY_CATEGORIES:
            hints.append(
                f"Column {name!r} has {column.valid:,} categories. Recode it into classes, "
                'or give it a role such as "outcome" if it is no key variable.'
            )
    if data.ticks is not None and not data.ticks.exact:
        hints.append(
            f"The weights in {data.weight!r} have more digits than fit and are rounded, "
            "each by less than one part in 10^15 of their sum."
        )
    return tuple(hints)
