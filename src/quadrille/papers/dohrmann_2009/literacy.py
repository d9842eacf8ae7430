"""Files with the structure of an adult-literacy survey. They are simulated: the original is not public here.

Two factors, one social and one of age, drive all variables, three test scores that correlate at about .9, and, weakly,
the weights. So the variables are associated with one another and with the scores, as in a survey.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data, code_dtype

Floats = NDArray[np.float64]

OUTCOMES = ("prose", "document", "quantitative")
WEIGHT = "weight"

_SEED = 2009
_MEAN, _SD, _HIGHEST = 270.0, 60.0, 500.0
_SHARED = 0.95
"""Share of the variance of a score that all scores have in common is the square of this."""
_MEAN_WEIGHT, _LOG_SD = 12_000.0, 0.6


class _Part(NamedTuple):
    """How a variable depends on the social factor and on age, and the shares of its categories."""

    social: float
    age: float
    shares: tuple[float, ...]


def _falling(count: int, ratio: float) -> tuple[float, ...]:
    """Return shares that fall by a ratio from one category to the next."""
    return tuple(ratio**i for i in range(count))


_PARTS = {
    "N2a": _Part(0.1, 0.1, (48, 52)),
    "N2b": _Part(0.5, 0.0, (87, 13)),
    "N3": _Part(0.5, 0.2, (71, 12, 17)),
    "N4": _Part(0.2, 0.0, (19, 23, 36, 22)),
    "N5": _Part(0.4, 0.3, (55, 9, 19, 11, 6)),
    "N30": _Part(0.6, 0.2, _falling(30, 0.87)),
    "N32": _Part(0.3, 0.1, _falling(32, 0.92)),
    "O2": _Part(0.5, 0.1, (76, 24)),
    "O3": _Part(0.1, 0.8, (16, 62, 22)),
    "O4": _Part(0.1, 0.8, (28, 32, 24, 16)),
    "O6a": _Part(0.8, -0.2, (14, 30, 9, 22, 16, 9)),
    "O6b": _Part(0.6, 0.3, (17, 19, 20, 18, 15, 11)),
    "O36": _Part(0.0, 0.9, tuple(40 - i for i in range(36))),
}


def simulated(size: int) -> Data:
    """Return a file of that many records: every variable of the twelve scenarios, three scores and a weight.

    >>> from quadrille.papers.dohrmann_2009.literacy import simulated
    >>> simulated(1156)
    Data(1,156 records, 17 columns, weight='weight')
    """
    rng = np.random.default_rng([_SEED, size])
    social, age = rng.standard_normal((2, size))
    columns = [_categorical(rng, name, part, social, age) for name, part in _PARTS.items()]
    columns += _scores(rng, social, age)
    log_weight = _LOG_SD * rng.standard_normal(size) - 0.15 * social + 0.1 * age
    weight = np.exp(log_weight)
    weight = (weight * (_MEAN_WEIGHT / weight.mean())).round(2)
    return Data([*columns, Column(Variable(WEIGHT, "numeric", role="weight"), weight, "Float64")])


def _categorical(rng: np.random.Generator, name: str, part: _Part, social: Floats, age: Floats) -> Column:
    """Cut a latent variable at its quantiles; nominal categories then change places, so that they have no order."""
    own = np.sqrt(1 - part.social**2 - part.age**2)
    latent = part.social * social + part.age * age + own * rng.standard_normal(len(social))
    shares = np.array(part.shares) / sum(part.shares)
    rank = np.argsort(np.argsort(latent))
    codes = np.searchsorted(np.cumsum(shares)[:-1] * len(rank), rank, side="right")
    count = len(shares)
    nominal = name.startswith("N")
    if nominal:
        codes = rng.permutation(count)[codes]
    categories = tuple(f"c{i}" for i in range(1, count + 1)) if nominal else tuple(range(1, count + 1))
    variable = Variable(name, "nominal" if nominal else "ordinal", categories)
    return Column(variable, codes.astype(code_dtype(count)), "String" if nominal else "Int64")


def _scores(rng: np.random.Generator, social: Floats, age: Floats) -> list[Column]:
    ability = 0.7 * social - 0.25 * age
    ability += np.sqrt(1 - 0.7**2 - 0.25**2) * rng.standard_normal(len(social))
    columns: list[Column] = []
    for name in OUTCOMES:
        own = rng.standard_normal(len(social))
        score = _MEAN + _SD * (_SHARED * ability + np.sqrt(1 - _SHARED**2) * own)
        values: Floats = np.clip(score, 0, _HIGHEST).round(1)
        columns.append(Column(Variable(name, "numeric", role="outcome"), values, "Float64"))
    return columns
