"""Invented censuses of households in four levels of geography: of independent columns, and of a small country."""

from __future__ import annotations

import numpy as np

from quadrille.codebook import Kind, Role, Variable
from quadrille.data import Column, Data, Ints, code_dtype
from quadrille.params import whole

LEVELS = ("nuts1", "nuts2", "nuts3", "lau2")


def census(households: int = 10_000, seed: int = 2021) -> Data:
    """Return an invented census in which all columns are independent: for tests and measurements of time.

    Nobody in it exists. Households have `hid` (role unit), four levels of geography of 3, 15, 225 and 1,125 areas,
    `hsize` 1 to 6, `htype` and `hincome` 1 to 10; their members `gender`, `ageGroup` and `national`. Levels, names and
    numbers of categories are those of the example by which the record swapping of sdcMicro is explained.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.census()
    >>> data.n, data.units("hid").count, data.codebook.geography
    (35054, 10000, ('nuts1', 'nuts2', 'nuts3', 'lau2'))
    """
    whole("census", "households", households, least=1)
    whole("census", "seed", seed, least=0)
    draw = np.random.default_rng(seed)
    a, b, c, d = (draw.integers(1, top + 1, households) for top in (3, 5, 15, 5))
    size, kind, income = (draw.integers(1, top + 1, households) for top in (6, 10, 10))
    of = np.repeat(np.arange(households), size)
    gender, age, national = (draw.integers(1, top + 1, len(of)) for top in (2, 7, 5))
    areas = [a, 10 * a + b, 1_000 * a + 100 * b + c, 10 * (1_000 * a + 100 * b + c) + d]
    return Data(
        [
            Column(Variable("hid", "numeric", role="unit"), (of + 1).astype(np.float64), "Int64"),
            *(
                _coded(name, area[of], "nominal", role="geography", level=level)
                for level, (name, area) in enumerate(zip(LEVELS, areas, strict=True), start=1)
            ),
            _coded("hsize", size[of], "ordinal"),
            _coded("htype", kind[of], "nominal"),
            _coded("hincome", income[of], "ordinal"),
            _coded("gender", gender, "nominal"),
            _coded("ageGroup", age, "ordinal"),
            _coded("national", national, "nominal"),
        ]
    )


def _coded(name: str, values: Ints, kind: Kind, role: Role | None = None, level: int | None = None) -> Column:
    """Make a column of the whole numbers that occur."""
    found, codes = np.unique(values, return_inverse=True)
    variable = Variable(name, kind, tuple(map(int, found)), role=role, level=level)
    return Column(variable, codes.astype(code_dtype(len(found))), "Int64")
