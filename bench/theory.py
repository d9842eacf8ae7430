"""The error of every cell of a margin, worked out before any draw, against tabulating that margin."""

from __future__ import annotations

import numpy as np

from bench.timing import Result, best
from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.summary import Table
from quadrille.swap.permutation import PermutationSwap
from quadrille.theory import table_error

RECORDS = 10**7
SIZES = {"a": 10, "b": 10, "c": 10, "region": 8}
MARGIN = ("a", "b", "c")


def table_error_results() -> list[Result]:
    """Compare for a margin of 1,000 cells on 10^7 records: plain, within classes, weighted, and both."""
    random = np.random.default_rng(1)
    columns = [
        Column(Variable(name, "ordinal", tuple(range(size))), random.integers(0, size, RECORDS, dtype=np.uint8))
        for name, size in SIZES.items()
    ]
    weight = Column(Variable("w", "numeric", role="weight"), np.round(random.lognormal(3, 0.5, RECORDS), 2), "Float64")
    results: list[Result] = []
    for word, data, within in (
        ("plain", Data(columns), []),
        ("within classes", Data(columns), ["region"]),
        ("weighted", Data([*columns, weight]), []),
        ("weighted, within classes", Data([*columns, weight]), ["region"]),
    ):
        recipe = PermutationSwap(["a"], rate=0.05, within=within, seed=1)
        tabulated, worked_out = best(
            lambda data=data: Table(MARGIN).of(data),
            lambda data=data, recipe=recipe: table_error(data, recipe, MARGIN),
            repeats=3,
        )
        ratio = worked_out / tabulated
        results.append(Result(f"error of 1,000 cells, {word}, in tabulations", ratio, "<= 3", ratio <= 3))
    return results
