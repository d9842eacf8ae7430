"""Several files held against one another: brought to common categories, or crossed cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Cross, Data, code_dtype, require_columns, unequal
from quadrille.errors import InputError


def matched(data: Data, other: Data, variables: tuple[str, ...]) -> tuple[Data, Data]:
    """Return both files with the categories of `variables` matched by label; each keeps its weight.

    Where two categories of a file share a label, labels cannot tell them apart, and values are matched.
    """
    require_columns(other, variables, "the second file")
    if (data.weight is None) != (other.weight is None):
        raise InputError("One of the two files has a weight and the other has none. Give both a weight, or neither.")
    mine: dict[str, Column] = {}
    theirs: dict[str, Column] = {}
    for name in variables:
        mine[name], theirs[name] = _match(
            data.coded(name, purpose="a table"), other.coded(name, purpose="a table in the second file")
        )
    return _with(data, mine), _with(other, theirs)


def changed_columns(data: Data, other: Data) -> tuple[str, ...] | None:
    """Return the columns that differ row by row, or None when the rows of the two files are not aligned.

    Rows count as aligned when at least one column that is not constant agrees in every row.
    """
    if data.n != other.n:
        return None
    shared = [name for name in data.columns if name in other.codebook]
    changed = [name for name in shared if _differs(data[name], other[name])]
    anchors = [name for name in shared if name not in changed and len(np.unique(data[name].values)) > 1]
    return tuple(changed) if anchors or not changed else None


def _differs(mine: Column, theirs: Column) -> bool:
    if mine.variable.coded != theirs.variable.coded:
        return True
    if mine.variable.coded:
        mine, theirs = _match(mine, theirs)
    return bool(unequal(mine.values, theirs.values).any())


def _match(mine: Column, theirs: Column) -> tuple[Column, Column]:
    if mine.variable == theirs.variable and mine.nullable == theirs.nullable:
        return mine, theirs
    keys, their_keys = _keys(mine.variable, theirs.variable)
    known = set(keys)
    extra = [key for key in their_keys if key not in known]
    taken = set(map(str, mine.variable.values))
    variable = replace(
        mine.variable,
        categories=tuple(map(str, mine.variable.categories)) + tuple(_free(key, taken) for key in extra),
        labels=mine.variable.names + tuple(extra),
        missing=tuple(map(str, mine.variable.missing)),
    )
    nullable = mine.nullable or theirs.nullable
    place = {key: code for code, key in enumerate(keys[: mine.valid] + extra + keys[mine.valid :])}
    return _recoded(mine, keys, variable, place, nullable), _recoded(theirs, their_keys, variable, place, nullable)


def _recoded(column: Column, keys: list[str], variable: Variable, place: dict[str, int], nullable: bool) -> Column:
    size = len(place) + nullable
    lookup: NDArray[np.int64] = np.array([*(place[key] for key in keys), len(place)])
    return Column(variable, lookup.astype(code_dtype(size))[column.values], column.dtype, nullable)


def _free(label: str, taken: set[str]) -> str:
    """Return a value for a category that only the second file has: its label, marked where a code is spelled alike."""
    return label if label not in taken else f"{label} (second file)"


def _keys(mine: Variable, theirs: Variable) -> tuple[list[str], list[str]]:
    """Return what categories are matched by: the label if there is one, else the value as text."""
    labels, others = [[*variable.names, *map(str, variable.missing)] for variable in (mine, theirs)]
    if len(set(labels)) == len(labels) and len(set(others)) == len(others):
        return labels, others
    return [*map(str, mine.values)], [*map(str, theirs.values)]


def _with(data: Data, columns: dict[str, Column]) -> Data:
    return Data((columns.get(name, data[name]) for name in data.columns), weight=data.weight)


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
    >>> from quadrille.score.matching import crossed
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
    >>> from quadrille.score.matching import told_small
    >>> told_small(np.array([[3, 0, 3, 1, 9], [0, 0, 2, 0, 8]]), 3).tolist()
    [True, False, True, False, False]
    """
    return (counts.max(axis=0) >= n) & (counts.min(axis=0) < n)
