"""Other ways to protect a file, as the literature describes them, to be compared with swapping.

Post-randomisation, local suppression and sequential trees, each in its plainest form. They are baselines for the page
docs/against-other-methods.md, not methods of the package. A file is a matrix of codes, one row per record; `codes` and
`with_codes` go from Data to it and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Column, Data, code_dtype

Ints = NDArray[np.int64]
SUPPRESSED = "*"


def codes(data: Data) -> Ints:
    """Return the codes of all columns, one row per record."""
    return np.column_stack([data[name].values for name in data.columns]).astype(np.int64)


def with_codes(data: Data, values: Ints, extra: tuple[str, ...] = ()) -> Data:
    """Return a file with these codes; codes beyond the last category of a column stand for the `extra` ones."""
    columns: list[Column] = []
    for name, column in zip(data.columns, values.T, strict=True):
        variable = data[name].variable
        variable = replace(variable, categories=(*variable.categories, *extra))
        columns.append(Column(variable, column.astype(code_dtype(len(variable.categories))), data[name].dtype))
    return Data(columns)


# Post-randomisation (Kooiman, Willenborg & Gouweleeuw 1997; Gouweleeuw and others 1998)


def post_randomised(values: Ints, retention: float, seed: int, *, invariant: bool = True) -> Ints:
    """Keep each value of each variable with chance `retention`; else draw it anew.

    Invariant: drawn from the variable's own distribution, the old value included, so that expected counts of every
    category are as before. Else: one of the other categories, all alike.
    """
    random = np.random.default_rng(seed)
    result = values.copy()
    for j, column in enumerate(values.T):
        drawn = np.flatnonzero(random.random(len(column)) >= retention)
        size = int(column.max()) + 1
        if invariant:
            result[drawn, j] = column[random.integers(0, len(column), len(drawn))]
        else:
            result[drawn, j] = (column[drawn] + random.integers(1, size, len(drawn))) % size
    return result


# Local suppression (after Sweeney 2002 and Templ, Kowarik & Meindl 2015: fewest suppressed values, greedily)


def locally_suppressed(values: Ints, sizes: Ints, n: int) -> Ints:
    """Suppress values until no cell has 1 to n - 1 records; suppressed is a category of its own, the code `sizes[j]`.

    Sets of one variable are tried first, then of two, and so on. Of the sets of one size the one is taken that brings
    most records out of small cells, and it is suppressed in just these.
    """
    result, radix = values.copy(), _radix(sizes + 1)
    width = values.shape[1]
    for size in range(1, width + 1):
        sets = [list(chosen) for chosen in combinations(range(width), size)]
        while True:
            small = _in_small_cells(result @ radix, n)
            gains = [_rescued(result, small, chosen, sizes, radix, n) for chosen in sets]
            best = max(range(len(sets)), key=lambda i: len(gains[i]))
            if not len(gains[best]):
                break
            result[np.ix_(gains[best], sets[best])] = sizes[sets[best]]
    left = _in_small_cells(result @ radix, n)
    if len(left):
        company = _largest_cell(result @ radix)[: n - len(left)]
        result[np.concatenate((left, company))] = sizes
    return result


def _radix(sizes: Ints) -> Ints:
    return np.concatenate((np.cumprod(sizes[:0:-1])[::-1], [1])).astype(np.int64)


def _in_small_cells(cells: Ints, n: int) -> Ints:
    _, place, count = np.unique(cells, return_inverse=True, return_counts=True)
    return np.flatnonzero(count[place] < n)


def _largest_cell(cells: Ints) -> Ints:
    unique, count = np.unique(cells, return_counts=True)
    return np.flatnonzero(cells == unique[np.argmax(count)])


def _rescued(values: Ints, small: Ints, chosen: list[int], sizes: Ints, radix: Ints, n: int) -> Ints:
    """Return the records of `small` that are in a cell of n or more once `chosen` is suppressed in all of `small`."""
    after = values[small]
    after[:, chosen] = sizes[chosen]
    cells = after @ radix
    there = values[(values[:, chosen] == sizes[chosen]).all(axis=1)] @ radix
    _, place, count = np.unique(np.concatenate((cells, there)), return_inverse=True, return_counts=True)
    fresh = (values[small][:, chosen] != sizes[chosen]).all(axis=1)
    return small[(count[place[: len(small)]] >= n) & fresh]


# Sequential trees (Reiter 2005; Nowok, Raab & Dibben 2016)


def sequential_trees(values: Ints, sizes: Ints, seed: int, least: int = 5) -> Ints:
    """Draw a file of as many records: the first variable from its distribution, each next one from a tree.

    A record goes down the tree by what was drawn for it so far, and receives the value of a record of the leaf.
    """
    random = np.random.default_rng(seed)
    n, width = values.shape
    result = np.empty_like(values)
    result[:, 0] = random.choice(values[:, 0], n)
    for j in range(1, width):
        for leaf in grown(values[:, :j], values[:, j], sizes[: j + 1], least).leaves(result[:, :j]):
            result[leaf.rows, j] = random.choice(len(leaf.share), len(leaf.rows), p=leaf.share)
    return result


@dataclass(frozen=True)
class Leaf:
    """The records that end in one leaf, and the distribution of the target there."""

    rows: Ints
    share: NDArray[np.float64]


@dataclass(frozen=True)
class Tree:
    """A node: `goes_left[code]` of variable `by` says where a record goes; a leaf has none."""

    share: NDArray[np.float64]
    by: int = -1
    goes_left: NDArray[np.bool_] | None = None
    left: Tree | None = None
    right: Tree | None = None

    def leaves(self, values: Ints, rows: Ints | None = None) -> Iterator[Leaf]:
        """Send records down the tree."""
        rows = np.arange(len(values)) if rows is None else rows
        if self.goes_left is None or self.left is None or self.right is None:
            yield Leaf(rows, self.share)
            return
        left = self.goes_left[values[rows, self.by]]
        yield from self.left.leaves(values, rows[left])
        yield from self.right.leaves(values, rows[~left])


def grown(values: Ints, target: Ints, sizes: Ints, least: int) -> Tree:
    """Grow a tree by the Gini index: leaves of at least `least` records, no split of fewer than three times as many."""
    cells, place = np.unique(values, axis=0, return_inverse=True)
    counts = np.zeros((len(cells), int(sizes[-1])))
    np.add.at(counts, (place.ravel(), target), 1)
    return _node(cells, counts, sizes, least)


def _node(cells: Ints, counts: NDArray[np.float64], sizes: Ints, least: int) -> Tree:
    total = counts.sum(axis=0)
    share, records = total / total.sum(), total.sum()
    if records < 3 * least or (total > 0).sum() == 1:
        return Tree(share)
    floor = (total**2).sum() / records * (1 + 1e-8)
    best, by, goes_left = floor, -1, None
    for j in range(cells.shape[1]):
        table = np.zeros((int(sizes[j]), counts.shape[1]))
        np.add.at(table, cells[:, j], counts)
        purity, lower = _best_split(table, least)
        if purity > best:
            best, by, goes_left = purity, j, lower
    if goes_left is None:
        return Tree(share)
    left = goes_left[cells[:, by]]
    return Tree(
        share,
        by,
        goes_left,
        _node(cells[left], counts[left], sizes, least),
        _node(cells[~left], counts[~left], sizes, least),
    )


def _best_split(table: NDArray[np.float64], least: int) -> tuple[float, NDArray[np.bool_]]:
    """Split the categories of one variable in two, along their first principal component.

    With two classes this is the best split of all (Breiman and others 1984), with more a good one (Coppersmith, Hong &
    Hosking 1999). Returns what is to be large, the sum over both sides of squared class counts by records.
    """
    there = np.flatnonzero(table.sum(axis=1))
    goes_left = np.zeros(len(table), dtype=np.bool_)
    if len(there) < 2:
        return 0.0, goes_left
    size = table[there].sum(axis=1)
    share = table[there] / size[:, None]
    centred = share - table.sum(axis=0) / size.sum()
    _, vectors = np.linalg.eigh((centred * size[:, None]).T @ centred)
    order = there[np.argsort(centred @ vectors[:, -1], kind="stable")]
    below = np.cumsum(table[order], axis=0)[:-1]
    above = table.sum(axis=0) - below
    lower, upper = below.sum(axis=1), above.sum(axis=1)
    purity = (below**2).sum(axis=1) / lower + (above**2).sum(axis=1) / upper
    purity[(lower < least) | (upper < least)] = 0.0
    at = int(np.argmax(purity))
    goes_left[order[: at + 1]] = True
    return float(purity[at]), goes_left


__all__ = [
    "SUPPRESSED",
    "codes",
    "grown",
    "locally_suppressed",
    "post_randomised",
    "sequential_trees",
    "with_codes",
]
