"""A file as codes for the search: every column that varies, rows in random order, groups of equal values."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Column, Data, Rows
from quadrille.randomness import Stream
from quadrille.recipe import random_order

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes32 = NDArray[np.int32]

NEARLY = 0.005
"""A dependency may fail in so many of its records and still be one."""
ENOUGH = 0.02
"""So many of all records must share their group with another one, or a column tells records apart and nothing else."""
CLEARLY = 20
"""Values put into random order must fail at least so often, and ten times as often as the values as they are."""
_RECORDS_A_CLASS = 200
_FEWEST_CLASSES, _MOST_CLASSES = 10, 200
PROBE = 1 << 15
"""Rows that are looked at first; a dependency that fails among them needs no look at the others."""


def beyond_chance(failures: int) -> int:
    """Return how often values in random order must fail, where the values as they are fail so often."""
    return max(CLEARLY, 10 * failures)


class Coded:
    """The columns of a file as codes from 0; a column with one value only is left out."""

    def __init__(self, data: Data, names: Iterable[str]) -> None:
        self.data, self.n = data, data.n
        made = {name: _codes(data[name]) for name in names}
        self.codes = {name: codes for name, (codes, size) in made.items() if size > 1}
        self.sizes = {name: made[name][1] for name in self.codes}
        self.names = list(self.codes)

    @cached_property
    def order(self) -> Rows:
        """All rows in an order that has nothing to do with the data, always the same."""
        return random_order(self.n, Stream.of(0, "rows in random order, to look for dependencies"))

    @property
    def probe(self) -> Rows:
        """Some rows, drawn at random."""
        return self.order[:PROBE]

    def shuffled(self, name: str) -> Codes32:
        """Return the codes of a column in random order: what chance gives."""
        return self.codes[name][self.order]

    def shuffled_within(self, name: str, given: str) -> Codes32:
        """Return the codes of a column in random order among the records that agree on another one."""
        mixed = self.order[np.argsort(self.codes[given][self.order], kind="stable")]
        made = np.empty_like(self.codes[name])
        made[np.argsort(self.codes[given], kind="stable")] = self.codes[name][mixed]
        return made

    def classes(self, name: str) -> tuple[Codes32, int]:
        """Return the codes of a column, or classes of similar size where numbers are many; frequent values stay."""
        codes, size = self.codes[name], self.sizes[name]
        most = min(max(self.n // _RECORDS_A_CLASS, _FEWEST_CLASSES), _MOST_CLASSES)
        variable = self.data[name].variable
        if size <= most or (variable.coded and self.numbers(name) is None):
            return codes, size
        held = np.bincount(codes, minlength=size)
        own = held > self.n // _FEWEST_CLASSES // 2
        others = np.where(own, 0, held)
        class_ = np.cumsum(others) * _FEWEST_CLASSES // max(int(others.sum()) + 1, 1)
        class_[own] = _FEWEST_CLASSES + np.arange(int(own.sum()))
        _, class_ = np.unique(class_, return_inverse=True)
        return class_[codes].astype(np.int32), int(class_.max()) + 1

    def key(self, names: tuple[str, ...], rows: Rows | None = None) -> Ints:
        """Return one number for the values of one or two columns."""
        key = np.zeros(self.n if rows is None else len(rows), dtype=np.int64)
        for name in names:
            codes = self.codes[name] if rows is None else self.codes[name][rows]
            key = key * self.sizes[name] + codes
        return key

    def numbers(self, name: str) -> Floats | None:
        """Return a column of numbers, empty where missing; two categories are 0 and 1, other texts are no numbers."""
        column = self.data[name]
        if not column.variable.coded:
            return column.values
        categories, missing = column.variable.categories, column.size - column.valid
        if all(isinstance(value, int | float) for value in categories):
            values = [float(cast("float", value)) for value in categories]
        elif column.valid == 2:
            values = [0.0, 1.0]
        else:
            return None
        return np.array([*values, *[np.nan] * missing])[column.values]


def _codes(column: Column) -> tuple[Codes32, int]:
    if not column.variable.coded:
        values, codes = np.unique(column.values + 0.0, return_inverse=True)
        return codes.astype(np.int32), len(values)
    present = np.bincount(column.values, minlength=column.size) > 0
    return (np.cumsum(present) - 1)[column.values].astype(np.int32), int(present.sum())


def grouped(key: Ints, rows: Rows) -> tuple[Rows, Ints]:
    """Return the rows that share their key with another row, group by group, and where each group starts."""
    order = np.argsort(key, kind="stable")
    edges = np.flatnonzero(np.diff(key[order])) + 1
    sizes = np.diff(np.concatenate(([0], edges, [len(key)])))
    shared = sizes > 1
    return rows[order[np.repeat(shared, sizes)]], np.append(0, np.cumsum(sizes[shared]))
