"""A table before and after `theory.correct`, by simulation: bias and error. Prints the table of docs/for-data-users.md.

Run: python -m bench.correction [draws]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import quadrille as qd

Floats = NDArray[np.float64]

ROW, SWAPPED = "AnnSal", "Edu"
RATES = (0.01, 0.05, 0.10, 0.20, 0.30)
DRAWS = 300
HEADINGS = ("rate", "swap", "bias before", "RMSE before", "bias after", "z", "RMSE after", "stated s.e.")


class Result(NamedTuple):
    """Root mean squares over the cells; z is the largest bias after the correction, in simulation standard errors."""

    bias_before: float
    rmse_before: float
    bias_after: float
    z: float
    rmse_after: float
    stated: float


def methods(rate: float) -> dict[str, Callable[[int], qd.Recipe]]:
    """Return the recipes to compare at a rate, by their name in the table."""
    return {
        "permutation": lambda seed: qd.PermutationSwap([SWAPPED], rate=rate, seed=seed),
        "true swaps": lambda seed: qd.RandomSwap([SWAPPED], rate=rate, seed=seed),
    }


def simulate(data: qd.Data, make: Callable[[int], qd.Recipe], draws: int) -> Result:
    """Swap many times, correct each table, and compare both with the table before."""
    rows, columns = (data[name].values.astype(np.int64) for name in (ROW, SWAPPED))
    shape = (data[ROW].size, data[SWAPPED].size)

    def table(row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape)

    truth = table(rows, columns)
    swapped, corrected, stated = (np.empty((draws, *shape)) for _ in range(3))
    for seed in range(draws):
        recipe = make(seed)
        (move,) = recipe.plan(data).moves
        # Only the touched rows change.
        here = rows[move.rows]
        swapped[seed] = truth + table(here, columns[move.source]) - table(here, columns[move.rows])
        found = qd.theory.correct(swapped[seed], recipe=recipe, swapped="column")
        corrected[seed], stated[seed] = found.table, found.se
    bias = corrected.mean(axis=0) - truth
    error = corrected.std(axis=0, ddof=1) / np.sqrt(draws)
    return Result(
        _root(swapped.mean(axis=0) - truth),
        _root(swapped - truth),
        _root(bias),
        float(np.abs(bias / error).max()),
        _root(corrected - truth),
        _root(stated),
    )


def _root(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))


def lines(draws: int = DRAWS) -> list[str]:
    """Return the table as markdown."""
    data = qd.datasets.cps8d()
    found = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    for rate in RATES:
        for name, make in methods(rate).items():
            got = simulate(data, make, draws)
            numbers = f"{got.bias_before:.1f} | {got.rmse_before:.1f} | {got.bias_after:.2f} | {got.z:.1f}"
            found.append(f"| {100 * rate:.0f} % | {name} | {numbers} | {got.rmse_after:.1f} | {got.stated:.1f} |")
    return found


if __name__ == "__main__":
    print("\n".join(lines(int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)))
