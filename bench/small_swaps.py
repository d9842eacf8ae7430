"""Predictions of swaps of few records beside the mean of many draws: the table of docs/predicted-frontier.md.

Run by `python -m bench.small_swaps`.
"""

from __future__ import annotations

import numpy as np
import polars as pl

import quadrille as qd
from quadrille.score.evaluator import Evaluator
from quadrille.theory.prediction import predict

MOVED = (2, 10, 20, 40, 100, 500)
MEASURES = ("chi_square(Edu*AnnSal)", "effective_swap_rate(Edu*AnnSal)", "hellinger(Edu*AnnSal)", "hellinger")
DRAWS = 300


def line(data: qd.Data, moved: int, measures: tuple[str, ...]) -> str:
    """Return the relative errors of the predictions in per cent, in brackets the standard errors of the draws."""
    expected = predict(data, qd.RandomSwap(["Edu"], pairs=moved // 2), measures)
    judge = Evaluator(data, list(measures))
    drawn = [judge.score(qd.RandomSwap(["Edu"], pairs=moved // 2, seed=seed).plan(data)) for seed in range(DRAWS)]
    shown: list[str] = []
    for name in measures:
        values, ahead = np.array([each[name] for each in drawn], dtype=float), expected[name]
        mean, error = values.mean(), values.std(ddof=1) / DRAWS**0.5
        shown.append("-" if ahead is None else f"{100 * (ahead / mean - 1):+.1f} ({100 * error / mean:.1f})")
    return f"| {moved} | " + " | ".join(shown) + " |"


def main() -> None:
    """Print the table; the last column is of the same file with weights from 1 to 9."""
    data = qd.datasets.cps8d()
    weights = np.random.default_rng(1).integers(1, 10, data.n)
    weighted = qd.from_frame(data.frame().with_columns(pl.Series("w", weights)), weight="w")
    print("| records moved | " + " | ".join((*MEASURES, "hd1, weighted")) + " |")
    print("|---" * (len(MEASURES) + 2) + "|")
    for moved in MOVED:
        print(line(data, moved, MEASURES) + line(weighted, moved, ("hd1",)).removeprefix(f"| {moved} |"), flush=True)


if __name__ == "__main__":
    main()
