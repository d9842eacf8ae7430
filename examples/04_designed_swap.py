"""A designed swap: hide the small cells, keep all tables of two variables, and know how far from the best it is."""

import quadrille as qd

data = qd.datasets.cps8d()
designed = qd.DesignedSwap(effort=0.2, seed=1).plan(data)  # cells of one and two records are treated; quickly
random = qd.RandomSwap(["MS"], rate=0.05, seed=1).plan(data)

print(f"{'':10} exposed  hellinger  2-way   records")
for name, other, moved in (
    ("original", data, 0),
    ("random", random, len(random.rows)),
    ("designed", designed, len(designed.rows)),
):
    scores = qd.score(data, other, ["exposed", "hellinger", "hellinger(2-way)"])
    print(
        f"{name:10} {scores['exposed']:.4f}   {scores['hellinger']:.4f}     {scores['hellinger(2-way)']:.4f}  {moved:5}"
    )

bound = qd.theory.least_loss(data, [0.01, 0.005, 0.001], margins="total")
print("No swap of any kind loses less than this:")
print(bound.frame())
