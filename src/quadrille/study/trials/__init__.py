"""Full factorial designs of simulated swaps: what to simulate, on all cores, and what the results say.

A fault in a design is told with its place, as in "design.toml, [areas.five] skewed[2]: must be a whole number of 1 or
more. Got 0."; places in lists are counted from 1.
"""

from quadrille.study.trials.design import Design, Factor, Trial

__all__ = ["Design", "Factor", "Trial"]
