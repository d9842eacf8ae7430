"""What the invented files are made with: plain arithmetic on one fixed stream, the same everywhere."""

from __future__ import annotations

import numpy as np

from quadrille.codebook import Kind, Role, Variable
from quadrille.data import Codes, Column, Floats, Ints, code_dtype
from quadrille.randomness import Stream


def coded(
    name: str, codes: Ints, values: tuple[str | int, ...], kind: Kind = "nominal", role: Role | None = None
) -> Column:
    """Make a column of codes and its categories in order."""
    dtype = "String" if isinstance(values[0], str) else "Int64"
    return Column(Variable(name, kind, tuple(values), role=role), codes.astype(code_dtype(len(values))), dtype)


def numbered(name: str, values: Codes, role: Role | None = None, dtype: str = "Int64") -> Column:
    """Make a column of numbers."""
    return Column(Variable(name, "numeric", role=role), values.astype(np.float64), dtype)


def uniform(stream: Stream, name: str, *shape: int) -> Floats:
    """Return uniform numbers in [0, 1) of 32 bits."""
    return stream.sub(name).words(int(np.prod(shape))).reshape(shape) / 2.0**32


def apportion(share: Floats, total: int) -> Ints:
    """Split a total in these proportions, by largest remainder."""
    exact = share * (total / np.cumsum(share)[-1])
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def draw(stream: Stream, name: str, weights: Floats, of: Ints) -> Ints:
    """Draw a category for every record from the weights of its group; compared as whole numbers."""
    top = np.floor(weights * (2.0**20 / weights.max(axis=1, keepdims=True))).astype(np.int64).cumsum(axis=1)
    drawn = (stream.sub("draw " + name).words(len(of)).astype(np.int64) * top[of, -1]) >> 32
    code = np.zeros(len(of), dtype=np.int64)
    for category in range(top.shape[1] - 1):
        code += drawn >= top[of, category]
    return code
