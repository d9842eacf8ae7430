"""How much to swap so that the error of a cell equals that of random rounding, for records and for counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, SupportsFloat, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille.data import Data, require_columns, tidy
from quadrille.errors import ParameterError, bad_parameter
from quadrille.params import names, one_of, share, whole
from quadrille.recipe import carried
from quadrille.swap.permutation import Kind, records_of
from quadrille.theory.expected import tally
from quadrille.theory.labelled import Labelled, labelled, refuse_totals
from quadrille.theory.margin import margin_of
from quadrille.theory.moments import Error, spread_of_records, swap_error
from quadrille.theory.spread import Floats, Spread, count_spread, factors

if TYPE_CHECKING:
    import polars as pl


Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Reached = Callable[[Floats], Flags]

NEVER = -1
_SCANNED = 24
"""So many records are tried one by one: for cycles the error is a quadratic only beyond 20."""

_POINTS = 8


def mean_square(kind: Kind, spread: Spread, k: Floats) -> Floats:
    """Return variance + bias^2 of every cell when k records move, one k per cell."""
    found = factors(kind, tuple(np.asarray(size, dtype=float) for size in spread.sizes), k)
    variance = sum(f * p for f, p in zip(found.parts, spread.parts, strict=True))
    return np.maximum(variance, 0.0) + (found.bias * spread.bias_sum) ** 2


def admissible(kind: Kind, most: int) -> range:
    """Return the numbers of records that can move, up to the most."""
    return range(2, most + 1, 1 if kind == "cycles" else 2)


def most_moved(kind: Kind, sizes: tuple[int, ...]) -> int:
    """Return the largest number of records that can move."""
    return 2 * min(sizes) if kind == "across" else sizes[0] if kind == "cycles" else sizes[0] // 2 * 2


def first_crossing(kind: Kind, spread: Spread, most: int, reached: Reached) -> Ints:
    """Return, per cell, the smallest admissible k whose mean square error is `reached`, NEVER where there is none.

    The error is not always monotone in k, but beyond the first few k it is a quadratic: so it is monotone on either
    side of its vertex, and halving is safe on each.
    """
    ks = admissible(kind, most)
    cells = np.broadcast_shapes(*(np.shape(part) for part in (spread.bias_sum, *spread.parts)))
    search = _Search(kind, spread, ks, reached, np.full(cells, NEVER, dtype=np.int64))
    scanned = len([k for k in ks[:_SCANNED] if k < _SCANNED]) if len(ks) > _SCANNED + _POINTS else len(ks)
    search.scan(range(scanned))
    if scanned < len(ks) and (search.found == NEVER).any():
        _search_rest(search, scanned, len(ks) - 1)
    return search.found


class _Search:
    """Cells that have not crossed yet, and what is known of the others."""

    def __init__(self, kind: Kind, spread: Spread, ks: range, reached: Reached, found: Ints) -> None:
        self.kind: Kind = kind
        self.spread, self.reached, self.found = spread, reached, found
        self.first, self.step = ks.start, ks.step

    def error(self, index: Ints) -> Floats:
        return mean_square(self.kind, self.spread, (self.first + self.step * index).astype(float))

    def note(self, index: Ints, crossed: Flags) -> None:
        fresh = crossed & (self.found == NEVER)
        self.found[fresh] = (self.first + self.step * index)[fresh]

    def scan(self, places: Iterable[int]) -> None:
        for place in places:
            index = np.full(self.found.shape, place)
            self.note(index, self.reached(self.error(index)))

    def halve(self, low: Ints, high: Ints) -> None:
        """Look between two places, where the error only rises or only falls."""
        valid = low <= high
        start = self.reached(self.error(low))
        self.note(low, valid & start)
        rising = valid & ~start & self.reached(self.error(high))
        below, above = low.copy(), high.copy()
        while ((above - below > 1) & rising).any():
            middle = (below + above) // 2
            crossed = self.reached(self.error(middle))
            above, below = np.where(crossed, middle, above), np.where(crossed, below, middle)
        self.note(above, rising)


def _search_rest(search: _Search, low: int, high: int) -> None:
    shape = search.found.shape
    start, end = np.full(shape, low), np.full(shape, high)
    vertex = _vertex(search, start, (start + end) // 2, end)
    search.halve(start, np.maximum(vertex - 1, start))
    for shift in (-1, 0, 1):
        place = np.clip(vertex + shift, low, high)
        search.note(place, search.reached(search.error(place)))
    search.halve(np.minimum(vertex + 1, end), end)


def _vertex(search: _Search, one: Ints, two: Ints, three: Ints) -> Ints:
    """Return the place where the quadratic through three of its values turns, or the end where it does not."""
    y1, y2, y3 = (search.error(place) for place in (one, two, three))
    slope, steeper = (y2 - y1) / (two - one), (y3 - y1) / (three - one)
    curve = (steeper - slope) / (three - two)
    turn = np.divide(-slope, 2 * curve, out=np.full(one.shape, np.inf), where=curve != 0)
    place = (one + two) / 2 + turn
    inside = (place > one) & (place < three)
    return np.where(inside, np.floor(np.where(inside, place, 0.0)).astype(np.int64), three)


MOST_BASE = 10**6


def checked_base(owner: str, base: object) -> int:
    """Check the base of rounding."""
    found = whole(owner, "base", base, least=1)
    if found > MOST_BASE:
        raise bad_parameter(owner, "base", f"at most {MOST_BASE:,}", base)
    return found


def rounding_error(count: int, base: int = 5) -> Error:
    """Return the error of rounding a count to a multiple of the base at random, without bias.

    The residue r = count mod base goes up with probability r / base and down otherwise: variance r (base - r). It does
    not grow with the count.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.rounding_error(294438).variance
    6.0
    """
    number = isinstance(cast("object", count), SupportsFloat) and not isinstance(count, bool)
    if not number or not 0 <= count < 1e300 or int(count) != count:
        raise bad_parameter("rounding_error", "count", "a whole number of 0 or more", count)
    residue = int(count) % checked_base("rounding_error", base)
    return Error(float(count), 0.0, float(residue * (base - residue)))


_TABLE = "equivalent_table"
_Cells = list[tuple[int, dict[str, object]]]

_SLACK = 1e-12
"""A mean square error this little short of the target has reached it: the rest is rounding of the arithmetic."""


def equivalent_records(
    a: ArrayLike,
    b: ArrayLike,
    *,
    rmse: float,
    kind: Kind = "pairs",
    groups: ArrayLike | None = None,
    counts: ArrayLike | None = None,
) -> int | None:
    """Return the smallest number of records whose moving puts an RMSE of at least `rmse` into the sum of a b.

    It is the first crossing from below: the RMSE may fall again for more records. 0 for a target of 0, None when no
    number reaches it. See `swap_error` for a, b, kind, groups and counts.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.equivalent_records([1] * 30 + [0] * 70, [1] * 20 + [0] * 80, rmse=2.449)
    16
    """
    if not isinstance(cast("object", rmse), SupportsFloat) or not isfinite(rmse) or rmse < 0:
        raise bad_parameter("equivalent_records", "rmse", "a number of 0 or more", rmse)
    spread = spread_of_records(a, b, kind, groups=groups, counts=counts)
    if rmse == 0:
        return 0
    floats = Spread(
        float(spread.value),
        spread.sizes,
        np.array(float(spread.bias_sum)),
        tuple(np.array(float(p)) for p in spread.parts),
    )
    found = int(first_crossing(kind, floats, most_moved(kind, spread.sizes), lambda e: e >= _line(rmse))[()])
    return None if found == NEVER else found


def equivalent_table(
    table: object,
    margin: str | Sequence[str] | None = None,
    *,
    swap: Sequence[str] | str = (),
    base: int = 5,
    kind: Kind = "pairs",
) -> pl.DataFrame:
    """Return, for each cell of a table of counts, how many records to swap for the error of rounding.

    `table` is a two-way table: a 2-D array, nested lists, or a frame whose first column holds labels. Rows are permuted
    against columns; either may be the swapped variable. Or it is a file, with a margin such as "Age*MS" and the
    variables that `swap`; then records are counted, whatever their weight.

    Columns: the labels, `count`, `rounding_rmse`, `records` (smallest k whose RMSE reaches it; None: never) and
    `closest`: whichever of that k and the admissible one before has the RMSE nearer to rounding's, or the k of the
    largest RMSE where rounding's is never reached.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.equivalent_table([[148313, 21316], [73508, 294438]])["records"].to_list()
    [16, 12, 16, 16]
    """
    one_of(_TABLE, "kind", kind, ("pairs", "cycles"))
    checked_base(_TABLE, base)
    labels, values = _of_data(table, margin, swap) if isinstance(table, Data) else _of_table(table, margin, swap)
    n, counts = int(values.sum()), values.ravel()
    residue = counts % base
    target = np.sqrt(residue * (base - residue))
    on_a, on_b = np.broadcast_arrays(values.sum(axis=1, keepdims=True), values.sum(axis=0, keepdims=True))
    spread = count_spread(float(max(n, 1)), on_a.ravel(), on_b.ravel(), counts)
    most = most_moved(kind, (n,))
    found = np.where(target > 0, first_crossing(kind, spread, most, lambda e: e >= _line(target)), 0)
    closest = _closest(kind, spread, most, target, found)
    return tidy(
        [
            {
                **cell,
                "count": int(counts[i]),
                "rounding_rmse": float(target[i]),
                "records": None if found[i] == NEVER else int(found[i]),
                "closest": int(closest[i]),
            }
            for i, cell in labels
        ]
    )


def _of_table(table: object, margin: object, swap: object) -> tuple[_Cells, Floats]:
    if margin is not None or swap:
        raise ParameterError("equivalent_table takes 'margin' and 'swap' with a file, not with a table.")
    given = labelled(table, _TABLE)
    return list(enumerate(given.cells())), given.values


def _of_data(data: Data, margin: str | Sequence[str] | None, swap: Sequence[str] | str) -> tuple[_Cells, Floats]:
    """Count a margin of a file: moved part in the rows, staying part in the columns."""
    if margin is None:
        raise ParameterError("equivalent_table needs a 'margin', such as \"Age*MS\", with a file.")
    moved = names(_TABLE, "swap", swap, least=1)
    require_columns(data, moved, f"'swap' of {_TABLE}")
    split = margin_of(data, margin, (*moved, *carried(data, moved)), _TABLE)
    values = tally(data, split).count[0, 0].astype(float)
    reached = (values.sum(axis=1) > 0)[:, None] & (values.sum(axis=0) > 0)[None, :]
    cells = split.ordered(np.flatnonzero(reached.ravel()))
    return list(zip(cells.tolist(), split.named(cells), strict=True)), values


def _line(rmse: float | Floats) -> float | Floats:
    return rmse * rmse * (1 - _SLACK)


def _closest(kind: Kind, spread: Spread, most: int, target: Floats, found: Ints) -> Ints:
    """Choose between the first crossing and the number before it; else the peak of the error."""
    ks = admissible(kind, most)
    reached = np.maximum(found, 0)
    before = np.maximum(reached - ks.step, 0)
    before[before < ks.start] = 0
    over = np.abs(np.sqrt(mean_square(kind, spread, reached.astype(float))) - target)
    under = np.abs(np.sqrt(mean_square(kind, spread, before.astype(float))) - target)
    nearest = np.where(under < over, before, reached)
    never = found == NEVER
    if never.any():
        nearest[never] = _peak(kind, spread, most, target)[never]
    return nearest


def _peak(kind: Kind, spread: Spread, most: int, target: Floats) -> Ints:
    """Return the smallest k of the largest RMSE, by raising the line until it is not reached."""
    low, high = np.zeros(target.shape), target**2
    best = np.zeros(target.shape, dtype=np.int64)
    for _ in range(60):
        middle = (low + high) / 2
        crossed = first_crossing(kind, spread, most, lambda e, line=middle: (e >= line) & (e > 0))
        hit = crossed != NEVER
        best = np.where(hit, crossed, best)
        low, high = np.where(hit, middle, low), np.where(hit, high, middle)
    return best


_OWNER = "error_of_counts"


def error_of_counts(
    table: object,
    *,
    rate: float | None = None,
    records: int | None = None,
    kind: Kind = "pairs",
    base: int = 5,
    no_totals: bool = False,
) -> pl.DataFrame:
    """Return, for each cell of a two-way table of counts, the error of swapping and that of rounding.

    The variable of the rows or that of the columns is swapped against the other; which of the two does not matter.

    Parameters
    ----------
    table : a 2-D array, nested lists, or a frame whose first column holds labels.
    rate, records : how much is moved; give one of the two.
    kind : "pairs" or "cycles".
    base : of random rounding.
    no_totals : a table in which a row or column equals the sum of the others is refused, unless this says that it is
        no total.

    Columns: labels, `before`, `expected`, `bias`, `sd`, `rmse`, `relative_rmse`, `rounding_rmse`, and the number of
    records whose swapping would put as much error into the cell as rounding does: `records`, and the `closest`.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.error_of_counts([[30, 20], [20, 30]], rate=0.1)["bias"].round(3).to_list()
    [-0.505, 0.505, 0.505, -0.505]
    """
    one_of(_OWNER, "kind", kind, ("pairs", "cycles"))
    given = labelled(table, _OWNER)
    if not no_totals:
        refuse_totals(given, _OWNER)
    checked_base(_OWNER, base)
    k = _amount(given, rate, records, kind)
    equivalent = equivalent_table(given, base=base, kind=kind).to_dicts()
    return tidy([{**_cell(given, place, k, kind), **_rounding(row)} for place, row in enumerate(equivalent)])


def _amount(given: Labelled, rate: float | None, records: int | None, kind: Kind) -> int:
    if (rate is None) == (records is None):
        raise ParameterError("Give one of 'rate' (share of records) and 'records' (number of records moved).")
    n = int(given.values.sum())
    if records is not None:
        moved = whole(_OWNER, "records", records, least=2)
        if kind == "pairs" and moved % 2:
            raise bad_parameter(_OWNER, "records", "even: pairs move two records each", records)
        if moved > n:
            raise bad_parameter(_OWNER, "records", f"at most the number of records, {n:,}", records)
        return moved
    if isinstance(rate, str):
        raise bad_parameter(_OWNER, "rate", "a number in (0, 1]: a table has no column of class rates", rate)
    moved = int(records_of(kind, np.array([share(_OWNER, "rate", rate)]), np.array([n]))[0])
    if moved < 2:
        first = (1.5 if kind == "cycles" else 1) / max(n, 1)
        least = f"The smallest rate that moves two is about {first:.3g}." if n > 1 else ""
        raise ParameterError(
            f"The 'rate' parameter of {_OWNER} moves {'one record' if moved else 'no record'} of the table's {n:,}, "
            f"so there is no error to show. {least}".rstrip()
        )
    return moved


def _cell(given: Labelled, place: int, k: int, kind: Kind) -> dict[str, object]:
    values = given.values
    row, column = divmod(place, values.shape[1])
    cell, in_row, in_column = values[row, column], values[row].sum(), values[:, column].sum()
    counts = [cell, in_row - cell, in_column - cell, values.sum() - in_row - in_column + cell]
    error = swap_error([1, 1, 0, 0], [1, 0, 1, 0], k, kind, counts=counts)
    return {
        **given.cells()[place],
        "before": int(cell),
        "expected": float(cell) + error.bias,
        "bias": error.bias,
        "sd": error.sd,
        "rmse": error.rmse,
        "relative_rmse": error.rmse / float(cell) if cell else None,
    }


def _rounding(row: dict[str, object]) -> dict[str, object]:
    return {name: row[name] for name in ("rounding_rmse", "records", "closest")}
