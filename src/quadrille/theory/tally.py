"""Tables to work on: a margin of a file, or a two-way table of counts as a user has it; and the tally of a margin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Cross, Data, Ticks, code_dtype, require_columns
from quadrille.errors import InputError, bad_parameter
from quadrille.expressions import split_outside_quotes, unquoted
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.permutation import two_groups
from quadrille.text import Shown
from quadrille.theory.moments import MOST_RECORDS, Floats, Ints, Moments, Spread, cross_parts, refuse_too_many

MOST_ENTRIES = 1 << 24
"""Classes times cells of the largest tally."""


@dataclass(frozen=True, eq=False, repr=False)
class Margin(Shown):
    """The variables of a margin, those that move first, those that stay second."""

    variables: tuple[str, ...]
    moved: Cross
    stayed: Cross
    labels: dict[str, tuple[str, ...]]

    @property
    def cells(self) -> int:
        """Number of possible cells."""
        return self.moved.possible * self.stayed.possible

    def codes(self, cells: Ints) -> dict[str, Ints]:
        """Return the code of each variable in cells numbered moved part first."""
        p, f = np.divmod(cells, self.stayed.possible)
        sides = dict.fromkeys(self.moved.variables, (self.moved, p)) | dict.fromkeys(
            self.stayed.variables, (self.stayed, f)
        )
        return {name: cross.codes(part, name) for name in self.variables for cross, part in (sides[name],)}

    def ordered(self, cells: Ints) -> Ints:
        """Return cells in the order of the margin as it was written."""
        codes = self.codes(cells)
        return cells[np.lexsort([codes[name] for name in reversed(self.variables)])]

    def reached(self, count: NDArray[Any]) -> Ints:
        """Return the cells whose moved part and stayed part both occur, in the order of the margin."""
        table = count.reshape(self.moved.possible, self.stayed.possible)
        occur = (table.sum(axis=1) > 0)[:, None] & (table.sum(axis=0) > 0)[None, :]
        return self.ordered(np.flatnonzero(occur.ravel()))

    def named(self, cells: Ints) -> list[dict[str, object]]:
        """Return the labels of cells, one mapping per cell."""
        codes = self.codes(cells)
        return [{name: self.labels[name][int(codes[name][i])] for name in self.variables} for i in range(len(cells))]


def margin_of(data: Data, margin: str | Sequence[str] | None, swap: Sequence[str], where: str) -> Margin:
    """Read a margin such as "Age*MS" and split it into what moves and what stays."""
    if not isinstance(margin, str | list | tuple):
        raise bad_parameter(where, "margin", 'variables joined by "*", such as "Age*MS", or a list of them', margin)
    listed = split_outside_quotes(margin, "*") if isinstance(margin, str) else list(margin)
    if not listed or not all(isinstance(name, str) and name.strip() for name in cast("list[object]", listed)):
        raise bad_parameter(where, "margin", 'at least one variable, such as "Age*MS"', margin)
    variables = tuple(unquoted(name) for name in listed)
    require_columns(data, variables, f"the margin of {where}")
    if len(set(variables)) != len(variables):
        raise InputError(f"A variable occurs twice in the margin of {where}. Name each variable once.")
    moved = Cross.of(data, tuple(name for name in variables if name in swap))
    stayed = Cross.of(data, tuple(name for name in variables if name not in swap))
    if moved.possible * stayed.possible > MOST_ENTRIES:
        raise InputError(
            f"The margin of {where} has {moved.possible * stayed.possible:,} possible cells; at most "
            f"{MOST_ENTRIES:,} are supported. Leave out a variable."
        )
    return Margin(variables, moved, stayed, {name: data[name].labels for name in variables})


COLUMN = "column"
"""What the variable of the columns of a user's table is called."""

_TWO = 2
_TOTALS = frozenset({"total", "totals", "grand total", "sum"})


@dataclass(frozen=True, eq=False, repr=False)
class Labelled(Shown):
    """Counts with the name of the rows and the labels of rows and columns."""

    values: Floats
    row_name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @cached_property
    def margin(self) -> Margin:
        """The table as a margin: its rows move against its columns."""
        moved, stayed = Cross((self.row_name,), (len(self.rows),)), Cross((COLUMN,), (len(self.columns),))
        return Margin((self.row_name, COLUMN), moved, stayed, {self.row_name: self.rows, COLUMN: self.columns})

    def cells(self) -> list[dict[str, object]]:
        """Return the labels of the cells, row by row."""
        return self.margin.named(np.arange(self.values.size))

    def spread_out(self, most: int) -> Data:
        """Return the table as a file with a row per record."""
        n = int(self.values.sum())
        if n > most:
            raise InputError(f"The table counts {n:,} records; at most {most:,} are drawn. Take a smaller table.")
        cells = np.repeat(np.arange(self.values.size), self.values.astype(np.int64).ravel())
        codes = self.margin.codes(cells)
        return Data(
            [
                Column(Variable(name, "nominal", labels), codes[name].astype(code_dtype(len(labels))))
                for name, labels in self.margin.labels.items()
            ]
        )


def labelled(table: object, where: str) -> Labelled:
    """Read a table of counts, or say what is wrong with it."""
    if isinstance(table, Labelled):
        return table
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "collect"):
        found = _from_frame(table, where)
    else:
        values = _numbers(table, where)
        rows, columns = values.shape
        found = Labelled(values, "row", tuple(map(str, range(rows))), tuple(map(str, range(columns))))
    _check(found.values, where)
    return found


def refuse_totals(given: Labelled, where: str) -> None:
    """Refuse a table with a line of totals: its records would be counted twice."""
    sides = (("row", given.rows, given.values), ("column", given.columns, given.values.T))
    for what, labels, lines in sides:
        rest = lines.sum(axis=0) - lines
        sums = (lines == rest).all(axis=1) & (len(lines) > _TWO) & (lines.sum() > 0)
        for place, label in enumerate(labels):
            if sums[place] or label.strip().casefold() in _TOTALS:
                raise InputError(
                    f"The {what} {label!r} of the table of {where} looks like a total"
                    f"{f': it equals the sum of the other {what}s' if sums[place] else ''}. Leave totals out, because "
                    f"their records would count twice. If it is none, say so with no_totals (--no-totals)."
                )


def _from_frame(table: object, where: str) -> Labelled:
    from quadrille.io.frames import to_polars

    frame = to_polars(table)
    if frame.width < _TWO:
        raise InputError(f"The table of {where} needs a first column of labels and at least one column of counts.")
    head, *names = frame.columns
    text = [name for name in names if not frame[name].dtype.is_numeric()]
    if text:
        raise InputError(f"Column {text[0]!r} of the table of {where} must hold counts. Only the first holds labels.")
    values = _numbers([frame[name].to_list() for name in names], where).T
    labels = ["" if label is None else str(label).strip() for label in frame[head].to_list()]
    _refuse_labels(labels, where)
    return Labelled(values, "row" if head == COLUMN else head, tuple(labels), tuple(names))


def _refuse_labels(labels: Sequence[str], where: str) -> None:
    """Refuse rows that cannot be told apart."""
    blank = sum(not label for label in labels)
    if blank:
        raise InputError(f"{blank:,} rows of the table of {where} have no label. Give every row its own.")
    twice = len(labels) - len(set(labels))
    if twice:
        raise InputError(
            f"{twice:,} rows of the table of {where} have the label of another row. Add them up, or name them apart."
        )


def _numbers(table: object, where: str) -> Floats:
    try:
        values = np.array(table, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"The table of {where} must hold numbers, with rows of equal length.") from None
    if values.ndim != _TWO or not values.size:
        raise InputError(f"The table of {where} must have rows and columns.")
    return values


def _check(values: Floats, where: str) -> None:
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise InputError(f"The table of {where} is missing or infinite in {bad:,} cells. Write 0 for an empty cell.")
    negative = int((values < 0).sum())
    if negative:
        raise InputError(f"The table of {where} is negative in {negative:,} cells. It must hold counts.")
    if (np.rint(values) != values).any():
        raise InputError(f"The table of {where} must hold whole numbers: the formulas are for counts of records.")
    # Cut off first, because the sum of huge floats is infinite.
    refuse_too_many(float(np.minimum(values, 2.0 * MOST_RECORDS).sum()), f"table of {where}")


_CHUNK = 1 << 18
_PART = 1 << 15
_SMALL_CROSS = 1024


@dataclass(frozen=True, eq=False)
class Joint:
    """Records of each group, class, moved part and stayed part; with a weight also sums of its deviations.

    `first` and `second` add up w - m and (w - m)^2, m the mean weight of the class: sums around the mean keep their
    digits when weights hardly vary. `heavy` says which side the weight is on.
    """

    count: Ints
    first: Floats | None = None
    second: Floats | None = None
    mean: Floats | None = None
    heavy: str = "stayed"

    def spreads(self) -> Iterator[tuple[slice, Spread]]:
        """Return the sums of all cells, some classes at a time, as arrays (class, cell)."""
        classes, cells = self.count.shape[1], prod(self.count.shape[2:])
        step = max(1, _CHUNK // max(1, cells))
        for start in range(0, classes, step):
            part = slice(start, min(start + step, classes))
            yield part, self._spread(part)

    def _spread(self, part: slice) -> Spread:
        count, first, second = (
            None if t is None else _facing(t[:, part], self.heavy) for t in (self.count, self.first, self.second)
        )
        assert count is not None
        mean = np.ones(count.shape[1]) if self.mean is None else self.mean[part]
        blocks = Blocks(count, first, second, mean[:, None, None])
        found = blocks.spread()

        def flat(values: Floats) -> Floats:
            return _facing(values, self.heavy).reshape(values.shape[0], -1)

        return Spread(
            flat(found.value),
            tuple(size[:, :, 0] for size in found.sizes),
            flat(found.bias_sum),
            tuple(flat(each) for each in found.parts),
        )


def _facing(table: NDArray[Any], heavy: str) -> NDArray[Any]:
    """Turn the table so that the side with the weight comes first; the formulas are symmetric in a and b."""
    return table if heavy == "moved" else np.swapaxes(table, -1, -2)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The joint counts (group, class, a-side, b-side) of some classes; a = w on its part, b an indicator."""

    count: Ints
    first: Floats | None
    second: Floats | None
    mean: Floats

    def spread(self) -> Spread:
        """Return the sums of every cell: C and (Q, A2 B2, C^2), or those over cross pairs for two groups."""
        pooled = self.count.sum(axis=0)
        n = pooled.sum(axis=(1, 2), keepdims=True)
        on_a, on_b = pooled.sum(axis=2, keepdims=True), pooled.sum(axis=1, keepdims=True)
        first = None if self.first is None else self.first.sum(axis=0)
        value = self.mean * pooled + (0 if first is None else first)
        tilt = 0.0 if first is None else first.sum(axis=2, keepdims=True)
        safe = np.maximum(n, 1)
        level = (self.mean * on_a + tilt) / safe
        above = self.mean * ((n - on_a) / safe) - tilt / safe
        inside, outside = (n - on_b) / safe, -(on_b / safe)
        moments = [self._moments(g, level, above, inside, outside) for g in range(len(self.count))]
        if len(moments) > 1:
            bias_sum, parts = cross_parts(*moments)
            return Spread(value, tuple(m[0][0] for m in moments), bias_sum, parts)
        m = moments[0]
        # whole numbers below 2^62 for counts, so that independence gives 0 and not a rounding error
        c = (n * pooled - on_a * on_b) / safe if first is None else value - level * on_b
        a2, b2 = np.maximum(m[2][0], 0.0), on_b * ((n - on_b) / safe)
        return Spread(value, (n,), c, (np.maximum(m[2][2], 0.0), a2 * b2, c * c))

    def _moments(self, g: int, level: Floats, above: Floats, inside: Floats, outside: Floats) -> Moments:
        """Add up (a - mean)^i (b - mean)^j over the four blocks: in both, in a only, in b only, in neither."""
        count = self.count[g]
        n = count.sum(axis=(1, 2), keepdims=True)
        on_a, on_b = count.sum(axis=2, keepdims=True), count.sum(axis=1, keepdims=True)
        both = self._powers(g, count, above)
        only_b, neither = on_b - count, n - on_a - on_b + count
        rows: list[tuple[Floats, ...]] = []
        for i, part in enumerate(both):
            rest = part.sum(axis=2, keepdims=True) - part
            off = (-level) ** i
            rows.append(
                tuple(
                    inside**j * part + outside**j * rest + off * (inside**j * only_b + outside**j * neither)
                    for j in range(3)
                )
            )
        return (n, *rows[0][1:]), rows[1], rows[2]

    def _powers(self, g: int, count: Ints, above: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the sums of (a - mean)^i over the records that are in both parts."""
        one, two = count * above, count * above**2
        if self.first is not None and self.second is not None:
            one, two = one + self.first[g], two + 2 * above * self.first[g] + self.second[g]
        return count.astype(float), one, two


@dataclass(frozen=True, eq=False)
class ClassIndex:
    """The class of every record, either listed or worked out from codes as they are read."""

    count: int
    listed: Ints | None = None
    cross: Cross | None = None

    def of(self, data: Data, rows: slice) -> Ints:
        """Return the class of some records."""
        return self.listed[rows] if self.listed is not None else _codes(data, (self.cross,), rows)


def tally(
    data: Data,
    margin: Margin,
    *,
    classes: ClassIndex | None = None,
    group: Ints | None = None,
    heavy: str | None = None,
) -> Joint:
    """Count in one pass; `heavy` is the side of the weight, "moved" or "stayed", None for plain counts."""
    many = 1 if classes is None else classes.count
    shape = (1 if group is None else 2, many, margin.moved.possible, margin.stayed.possible)
    size = prod(shape)
    if size > 2 * MOST_ENTRIES:
        raise InputError(
            f"{many:,} classes times {margin.cells:,} cells are too many for one table of errors. "
            "Take a smaller margin or fewer classes."
        )
    weights = None if heavy is None else data.ticks
    mean = None if weights is None else _class_means(data, weights, classes)
    count, first, second = np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)
    for rows in _parts(data.n, size):
        cells = _codes(data, (margin.moved, margin.stayed), rows)
        own = None if classes is None else classes.of(data, rows)
        if own is not None:
            cells += own * margin.cells
        if group is not None:
            cells += group[rows] * (many * margin.cells)
        count += np.bincount(cells, minlength=size)
        if weights is not None and mean is not None:
            gap = weights.values[rows] / weights.per_unit - (mean[0] if own is None else mean[own])
            first += np.bincount(cells, weights=gap, minlength=size)
            gap *= gap
            second += np.bincount(cells, weights=gap, minlength=size)
    if heavy is None or mean is None:
        return Joint(count.reshape(shape))
    return Joint(count.reshape(shape), first.reshape(shape), second.reshape(shape), mean, heavy)


def _parts(n: int, size: int) -> Iterator[slice]:
    """Cut the file into parts that stay in the processor's cache: no intermediate result is as long as a column."""
    step = max(_PART, size)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _codes(data: Data, crosses: tuple[Cross | None, ...], rows: slice) -> Ints:
    """Return the cells of some records in the cross of crosses, the first one slowest."""
    cells = np.zeros(rows.stop - rows.start, dtype=np.int64)
    for cross in filter(None, crosses):
        cells *= cross.possible
        for name, stride in zip(cross.variables, cross.strides, strict=True):
            cells += data[name].values[rows].astype(np.int64) * stride
    return cells


def _class_means(data: Data, weights: Ticks, classes: ClassIndex | None) -> Floats:
    """Return the mean weight of each class."""
    if classes is None:
        return np.array([weights.values.mean() / weights.per_unit])
    total, count = np.zeros(classes.count), np.zeros(classes.count, dtype=np.int64)
    for rows in _parts(data.n, classes.count):
        own = classes.of(data, rows)
        total += np.bincount(own, weights=weights.values[rows], minlength=classes.count)
        count += np.bincount(own, minlength=classes.count)
    return total / weights.per_unit / np.maximum(count, 1)


def joint_of(
    data: Data,
    margin: Margin,
    *,
    classes: ClassIndex | None = None,
    groups: str | None = None,
    weight: str = "stays",
) -> Joint:
    """Tally a margin for a permutation within classes, perhaps across two groups."""
    if weight == "moves" and data.weight is None:
        raise InputError('weight="moves" needs a weight, and the file has none. Name it, or let it stay.')
    group = None if groups is None else two_groups(data, groups, "PermutationSwap").of
    heavy = None if data.weight is None else "moved" if weight == "moves" else "stayed"
    return tally(data, margin, classes=classes, group=group, heavy=heavy)


def class_index(data: Data, within: Sequence[str]) -> ClassIndex | None:
    """Return the classes of some columns: their cross when it is small, else the combinations that occur."""
    require_columns(data, within, "'within'")
    if not within:
        return None
    if all(data[name].variable.coded for name in within):
        cross = Cross.of(data, tuple(within))
        if cross.possible <= _SMALL_CROSS:
            return ClassIndex(cross.possible, cross=cross)
    of, count = group_ids([codes_of(data, name) for name in within], data.n)
    return ClassIndex(count, listed=of)
