"""How much to swap so that the error of a cell equals that of random rounding."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from quadrille.errors import bad_parameter
from quadrille.recipe import one_of, whole
from quadrille.theory.crossing import NEVER, Ints, admissible, first_crossing, mean_square, most_moved
from quadrille.theory.labelled import labelled
from quadrille.theory.moments import spread_of_records
from quadrille.theory.spread import Floats, Kind, Spread, count_spread

if TYPE_CHECKING:
    import polars as pl

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

    >>> equivalent_records([1] * 30 + [0] * 70, [1] * 20 + [0] * 80, rmse=2.449)
    16
    """
    if not isfinite(rmse) or rmse < 0:
        raise bad_parameter("equivalent_records", "rmse", "a number of 0 or more", rmse)
    spread = spread_of_records(a, b, kind, groups=groups, counts=counts)
    if rmse == 0:
        return 0
    floats = Spread(
        float(spread.value), spread.sizes, np.array(float(spread.lean)), tuple(np.array(float(p)) for p in spread.parts)
    )
    found = int(first_crossing(kind, floats, most_moved(kind, spread.sizes), lambda e: e >= _line(rmse))[()])
    return None if found == NEVER else found


def equivalent_table(table: object, *, base: int = 5, kind: Kind = "pairs") -> pl.DataFrame:
    """Return, for each cell of a two-way table of counts, how many records to swap for the error of rounding.

    Rows against columns are permuted; either may be the swapped variable. `table` is a 2-D array, nested lists, or a
    frame whose first column holds labels.

    Columns: the labels, `count`, `rounding_rmse`, `records` (smallest k whose RMSE reaches it; None: never) and
    `closest`: whichever of that k and the admissible one before has the RMSE nearer to rounding's, or the k of the
    largest RMSE where rounding's is never reached.
    """
    from quadrille.frames import tidy

    one_of("equivalent_table", "kind", kind, ("pairs", "cycles"))
    given = labelled(table, "equivalent_table")
    residue = given.values.ravel() % whole("equivalent_table", "base", base, least=1)
    target = np.sqrt(residue * (base - residue))
    values = given.values
    n = int(values.sum())
    on_a, on_b = np.broadcast_arrays(values.sum(axis=1, keepdims=True), values.sum(axis=0, keepdims=True))
    spread = count_spread(float(n), on_a.ravel(), on_b.ravel(), values.ravel())
    most = most_moved(kind, (n,))
    found = np.where(target > 0, first_crossing(kind, spread, most, lambda e: e >= _line(target)), 0)
    closest = _closest(kind, spread, most, target, found)
    return tidy(
        [
            {
                **cell,
                "count": int(values.ravel()[i]),
                "rounding_rmse": float(target[i]),
                "records": None if found[i] == NEVER else int(found[i]),
                "closest": int(closest[i]),
            }
            for i, cell in enumerate(given.cells())
        ]
    )


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
