"""Optimal against greedy matching on the Adult file: cost, bias and what it does to the utility measures.

Run as `python -m bench.optimal`; prints the ratio of the means over ten seeds, optimal / greedy.
"""

from __future__ import annotations

import sys

import numpy as np

from quadrille.datasets import adult
from quadrille.score.evaluator import Evaluator
from quadrille.swap.controlled import ControlledSwap

SWAPS = (["race", "sex", "marital-status"], ["sex", "education"], ["relationship", "race", "education"])
MEASURES = ["hd1", "hd3", "r_ased", "c_ard", "ased_reg"]
SEEDS = 10


def main() -> None:
    """Print one line per design."""
    data = adult()
    evaluator = Evaluator(data, MEASURES)
    sys.stdout.write("| swap | targets | " + " | ".join(["cost", "bias", *MEASURES]) + " |\n")
    for swap in SWAPS:
        for targets in (0.03, 0.15):
            sums = np.zeros((2, 2 + len(MEASURES)))
            for seed in range(SEEDS):
                plan = ControlledSwap(swap, targets=targets, matching="optimal", seed=seed).plan(data)
                assert plan.details is not None
                facts, greedy = plan.details.facts, plan.details.facts["greedy"]
                for side, found, known in ((0, plan, facts), (1, plan.details.alternatives["greedy"], greedy)):
                    sums[side] += [known["cost"], known["bias"], *evaluator.score(found).values()]
            ratios = " | ".join(f"{ratio:.2f}" for ratio in sums[0] / sums[1])
            sys.stdout.write(f"| {', '.join(swap)} | {targets:g} | {ratios} |\n")


if __name__ == "__main__":
    main()
