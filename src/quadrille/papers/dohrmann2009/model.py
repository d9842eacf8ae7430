"""Least squares with backward elimination, as in the appendix of the paper.

A term is a factor or a product of two. A factor with several columns (the file) enters and leaves as a whole, by the F
test, which for one column is the t test. A factor stays while a product with it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Factors = Mapping[str, tuple[tuple[str, ...], Floats]]
"""By name of the factor: the names of its columns, and the columns, (record, column)."""
Term = tuple[str, ...]

ALPHA = 0.05
INTERCEPT = "intercept"
_RANK = 1e-9
_LEAST = 3
"""Fewer responses than this cannot be told from one another by any term."""


@dataclass(frozen=True)
class Fit:
    """A model after elimination: coefficients by column name, and what was dropped with its p-value.

    `aliased` are terms that the data cannot tell from those before them.
    """

    terms: tuple[Term, ...]
    coefficients: dict[str, float]
    errors: dict[str, float]
    r_square: float
    n: int
    dropped: dict[Term, float]
    aliased: tuple[Term, ...]


def all_terms(factors: tuple[str, ...]) -> list[Term]:
    """Return the factors, then all products of two.

    >>> from quadrille.papers.dohrmann2009.model import all_terms
    >>> all_terms(("rate", "size"))
    [('rate',), ('size',), ('rate', 'size')]
    """
    return [(name,) for name in factors] + list(combinations(factors, 2))


def columns_of(term: Term, factors: Factors) -> tuple[list[str], Floats]:
    """Return the names and the columns of a term: "rate x size 8153" and so on."""
    names, values = factors[term[0]]
    labels = list(names)
    for factor in term[1:]:
        others, more = factors[factor]
        labels = [f"{a} x {b}" for a in labels for b in others]
        values = (values[:, :, None] * more[:, None, :]).reshape(len(values), -1)
    return labels, values


def eliminate(response: Floats, factors: Factors, terms: list[Term], alpha: float = ALPHA) -> Fit:
    """Fit all terms, then drop the one with the largest p-value above `alpha` that may go, until none is left."""
    if len(response) < _LEAST:
        return Fit((), {}, {}, 0.0, len(response), {}, tuple(terms))
    system = _System(response, factors, terms)
    kept, aliased = system.independent(terms)
    dropped: dict[Term, float] = {}
    while True:
        model = _Model(system, kept)
        p = {term: model.p_value(term) for term in kept if not _needed(term, kept)}
        worst = max(p, key=p.__getitem__, default=None)
        if worst is None or p[worst] <= alpha:
            return model.fit(dropped, tuple(aliased))
        dropped[worst] = p[worst]
        kept = [term for term in kept if term != worst]


def _needed(term: Term, terms: list[Term]) -> bool:
    """Tell whether a product that is still there contains the term."""
    return any(set(term) < set(other) for other in terms)


class _System:
    """Response and all columns, each of length 1, turned into a triangle: every model is fitted from that."""

    def __init__(self, response: Floats, factors: Factors, terms: list[Term]) -> None:
        blocks = [([INTERCEPT], np.ones((len(response), 1))), *(columns_of(term, factors) for term in terms)]
        self.labels = [label for labels, _ in blocks for label in labels]
        x = np.hstack([values for _, values in blocks])
        self.scale = np.maximum(np.linalg.norm(x, axis=0), np.finfo(float).tiny)
        triangle = np.linalg.qr(np.hstack((x / self.scale, response[:, None])))[1]
        self.x, self.y = triangle[:, :-1], triangle[:, -1]
        self.n = len(response)
        self.total = float(((response - response.mean()) ** 2).sum())
        ends = list(accumulate(len(labels) for labels, _ in blocks))
        self.places = {term: list(range(a, b)) for term, a, b in zip(terms, ends[:-1], ends[1:], strict=True)}

    def independent(self, terms: list[Term]) -> tuple[list[Term], list[Term]]:
        """Split the terms into those that add as many dimensions as they have columns, and the others."""
        kept: list[Term] = []
        left: list[Term] = []
        basis = self.x[:, :1]
        for term in terms:
            columns = self.x[:, self.places[term]]
            for _ in range(2):  # the second time removes what rounding left
                columns = columns - basis @ (basis.T @ columns)
            own, size, _ = np.linalg.svd(columns, full_matrices=False)
            if size[-1] > _RANK and basis.shape[1] + len(size) < self.n:
                kept.append(term)
                basis = np.hstack((basis, own))
            else:
                left.append(term)
        return kept, left


class _Model:
    """One least-squares fit."""

    def __init__(self, system: _System, terms: list[Term]) -> None:
        self._system, self._terms = system, terms
        self._columns = [0, *(place for term in terms for place in system.places[term])]
        q, r = np.linalg.qr(system.x[:, self._columns])
        self._b = np.linalg.solve(r, q.T @ system.y)
        rest = system.y - q @ (q.T @ system.y)
        self._residual = float(rest @ rest)
        self._df = system.n - len(self._columns)
        inverse = np.linalg.solve(r, np.eye(len(r)))
        self._cov = inverse @ inverse.T

    def p_value(self, term: Term) -> float:
        """Return the p-value of the F test that all coefficients of a term are 0."""
        from scipy.special import fdtrc

        place = [self._columns.index(column) for column in self._system.places[term]]
        b, cov = self._b[place], self._cov[np.ix_(place, place)]
        explained = float(b @ np.linalg.solve(cov, b)) / len(b)
        noise = self._residual / self._df
        if noise == 0:
            return 1.0 if explained == 0 else 0.0
        return float(fdtrc(float(len(b)), float(self._df), explained / noise))

    def fit(self, dropped: dict[Term, float], aliased: tuple[Term, ...]) -> Fit:
        """Return the result in the units of the columns."""
        system = self._system
        labels = [system.labels[i] for i in self._columns]
        scale = system.scale[self._columns]
        errors = np.sqrt(np.diag(self._cov) * self._residual / self._df) / scale
        return Fit(
            tuple(self._terms),
            dict(zip(labels, map(float, self._b / scale), strict=True)),
            dict(zip(labels, map(float, errors), strict=True)),
            1 - self._residual / system.total if system.total else 1.0,
            system.n,
            dropped,
            aliased,
        )
