"""The error of a swap before any draw, and the table a user gets back from the published one."""

import numpy as np

import quadrille as qd

data = qd.datasets.cps8d()
recipe = qd.PermutationSwap(["Age"], rate=0.05)

# The agency: what would 5 % do to the table of age by marital status? Nothing is drawn.
cells = qd.theory.table_error(data, recipe, "Age*MS")
print(cells.select("Age", "MS", "before", "bias", "sd", "rmse"))
print("Random rounding to base 5 puts this error into a cell:", round(qd.theory.rounding_error(779).rmse, 3))

# The user: has the swapped table and the published factor f = k / (n - 1).
swapped = qd.PermutationSwap(["Age"], rate=0.05, seed=1).plan(data)
counts = swapped.apply(data).frame().group_by("Age", "MS").len().pivot("MS", index="Age", values="len").sort("Age")
f = len(swapped.rows) / (data.n - 1)
corrected = qd.theory.correct(counts, f)
print(counts)
print("corrected:", np.asarray(corrected.table).round(0).tolist())
