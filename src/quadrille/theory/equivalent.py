"""How much to swap so that the error of a cell equals that of random rounding."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, SupportsFloat, cast

import numpy as np
from numpy.typing import ArrayLike

from quadrille.data import Data, require_columns
from quadrille.errors import ParameterError, bad_parameter
from quadrille.recipe import carried, names, one_of
from quadrille.theory.crossing import NEVER, Ints, admissible, first_crossing, mean_square, most_moved
from quadrille.theory.joint import tally
from quadrille.theory.labelled import labelled
from quadrille.theory.margin import margin_of
from quadrille.theory.moments import spread_of_records
from quadrille.theory.rounding import checked_base
from quadrille.theory.spread import Floats, Kind, Spread, count_spread

if TYPE_CHECKING:
    import polars as pl

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
        float(spread.value), spread.sizes, np.array(float(spread.lean)), tuple(np.array(float(p)) for p in spread.parts)
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
    from quadrille.frames import tidy

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
