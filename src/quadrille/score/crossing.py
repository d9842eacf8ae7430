"""Several releases of one file crossed: a cell that is large in one and not in another was small before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data


class Crossed(NamedTuple):
    """Cells told to be small by several releases together, next to what they were."""

    cells: int
    """Cells that were occupied before."""
    small: int
    """Of these, how many had fewer than n records."""
    told: int
    """Cells told to be small: n or more rows in one release, fewer in another."""
    right: int
    """Of these, how many had 1 to n - 1 records."""
    unique: int
    """Of these, how many had one."""


def crossed(data: Data, releases: Sequence[Data], names: Sequence[str], n: int) -> Crossed:
    """Cross the tables of several releases.

    A designed swap fills no cell that was empty, and makes none small that was large. So who sees n rows or more in
    one release knows that somebody was there, and who sees fewer in another, that they were fewer than n: with
    certainty, and without knowing which row is whose.

    Example
    -------
    >>> import quadrille as qd
    >>> from quadrille.score.crossing import crossed
    >>> data = qd.datasets.cps8d()
    >>> files = [qd.DesignedSwap(effort=0.1, seed=seed).plan(data).apply(data) for seed in (1, 2)]
    >>> found = crossed(data, files, data.keys, 3)
    >>> found.small, found.told > 40, found.right == found.told
    (547, True, True)
    """
    cross = Cross.of(data, tuple(names))
    cell = [cross.cells(file) for file in (data, *releases)]
    place = np.unique(np.concatenate(cell), return_inverse=True)[1].ravel()
    ends = np.cumsum([len(each) for each in cell])[:-1]
    cells = int(place.max(initial=-1)) + 1
    before, *after = (np.bincount(part, minlength=cells) for part in np.split(place, ends))
    told = told_small(np.array(after), n)
    few = (before > 0) & (before < n)
    return Crossed(
        cells=int((before > 0).sum()),
        small=int(few.sum()),
        told=int(told.sum()),
        right=int((told & few).sum()),
        unique=int((told & (before == 1)).sum()),
    )


def told_small(counts: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """Tell which cells were small, by what every release (a row) has in every cell (a column).

    >>> import numpy as np
    >>> from quadrille.score.crossing import told_small
    >>> told_small(np.array([[3, 0, 3, 1, 9], [0, 0, 2, 0, 8]]), 3).tolist()
    [True, False, True, False, False]
    """
    return (counts.max(axis=0) >= n) & (counts.min(axis=0) < n)
