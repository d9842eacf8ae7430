"""The cross of some variables: one number per cell, so that a table is a vector and a margin a look-up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, Rows

Cells = NDArray[np.int64]

DENSE_LIMIT = 1 << 20
"""Tables up to this many possible cells are plain arrays; larger ones keep occupied cells only."""

_KEY_LIMIT = 1 << 62
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Cross:
    """All combinations of the categories of `variables`, first variable slowest.

    A cell's number is sum(stride * code). Up to 2^62 possible cells the strides are those of mixed-radix
    numbers. Beyond, they are fixed odd 64-bit numbers and a cell's number is a hash: `exact` is False.
    """

    variables: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, data: Data, variables: tuple[str, ...]) -> Cross:
        """Cross these variables of the data."""
        return cls(variables, tuple(data.coded(name, purpose="a table").size for name in variables))

    @cached_property
    def possible(self) -> int:
        """Number of possible cells."""
        return prod(self.sizes)

    @property
    def dense(self) -> bool:
        """Whether a table over this cross is a plain array."""
        return self.possible <= DENSE_LIMIT

    @property
    def exact(self) -> bool:
        """Whether a cell's number identifies it beyond doubt and can be taken apart again."""
        return self.possible < _KEY_LIMIT

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """What one step in each variable adds to a cell's number."""
        if self.exact:
            return tuple(prod(self.sizes[i + 1 :]) for i in range(len(self.sizes)))
        return tuple(_hash_stride(i) for i in range(len(self.sizes)))

    def stride(self, name: str) -> int:
        """Return the stride of one variable."""
        return self.strides[self.variables.index(name)]

    def cells(self, data: Data, rows: Rows | None = None) -> Cells:
        """Return the cell of every record, or of the records given."""
        count = data.n if rows is None else len(rows)
        out = np.zeros(count, dtype=np.int64)
        for name, stride in zip(self.variables, self.strides, strict=True):
            codes = data[name].values
            for start in range(0, count, _CHUNK):
                end = min(start + _CHUNK, count)
                part = codes[start:end] if rows is None else codes[rows[start:end]]
                out[start:end] += part.astype(np.int64) * stride
        return out

    def codes(self, cells: Cells, name: str) -> Cells:
        """Take apart: the code of one variable in each cell."""
        return cells // self.stride(name) % self.sizes[self.variables.index(name)]

    def part(self, columns: Iterable[str]) -> NDArray[np.int32]:
        """Return, for every possible cell of a dense cross, the share of its number that comes from `columns`."""
        every = np.arange(self.possible, dtype=np.int64)
        part = np.zeros(len(every), dtype=np.int32)
        for name in set(columns) & set(self.variables):
            part += (self.codes(every, name) * self.stride(name)).astype(np.int32)
        return part

    def project(self, cells: Cells, onto: Cross) -> Cells:
        """Return the cells of a margin, `onto`, that these cells belong to."""
        out = np.zeros(len(cells), dtype=np.int64)
        for name, stride in zip(onto.variables, onto.strides, strict=True):
            out += self.codes(cells, name) * stride
        return out


def _hash_stride(position: int) -> int:
    digest = hashlib.blake2b(str(position).encode(), digest_size=8, person=b"quadrille stride").digest()
    return int.from_bytes(digest, "little", signed=True) | 1
