"""Three lines: read a file, swap, score."""

import quadrille as qd

data = qd.datasets.cps8d()  # yours: qd.read("file.csv")
plan = qd.RandomSwap(["Edu"], rate=0.02, same=["Sex"], seed=7).plan(data)  # leave the seed out: 256 secret bits
print(qd.score(data, plan, ["exposed", "hellinger"]).frame())
