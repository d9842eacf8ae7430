"""A designed swap: hide the small cells, keep every table of two variables, and know what is left and what it costs."""

import quadrille as qd

data = qd.datasets.cps8d()
designed = qd.DesignedSwap(effort=0.3, seed=1).plan(data)  # cells of one and two records are treated
random = qd.RandomSwap(["MS"], rate=0.05, seed=1).plan(data)

print(f"{'':10} exposed    inferred   hellinger  of 2-way  records")
for name, plan in (("original", qd.Plan([], data=data)), ("random", random), ("designed", designed)):
    scores = qd.score(data, plan, ["exposed", "attributed_unique", "hellinger", "hellinger(2-way)"])
    print(f"{name:10} " + "     ".join(f"{value:.4f}" for value in scores.values()) + f"    {len(plan.rows):5}")

# Inferred is a mean: people who are gone from the release count as 0, and about all others the inference is right.
# A higher inference= than the default of 0.1 takes more of them out; 0 keeps more of them, at less loss.
cases = qd.score(data, designed, ["attributed_unique"]).detail("attributed_unique")
right, wrong, gone = (cases[name].sum() for name in ("right", "wrong", "gone"))
print(f"{right} still there and inferred right, {wrong} wrong, {gone} gone")

bound = qd.theory.least_loss(data, [0.01, 0.005, 0.001], margins="2-way")
print("No swap that keeps these tables loses less than this:")
print(bound.frame())
