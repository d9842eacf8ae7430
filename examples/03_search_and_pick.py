"""Many random swaps: search a grid, look at the frontier, choose with a limit."""

from pathlib import Path
from tempfile import TemporaryDirectory

import quadrille as qd

data = qd.datasets.cps8d()
swaps = [["Edu"], ["MS"], ["Race"], ["Edu", "Sex"], ["EmpTyp", "Race"]]
recipes = qd.grid(qd.RandomSwap, swap=swaps, rate=[0.01, 0.02, 0.10], seeds=3)  # three secret seeds each

with TemporaryDirectory() as folder:
    study = qd.search(data, recipes, ["exposed", "small_cells", "hellinger"], out=Path(folder, "study"), progress=False)
    print(study.frontier().select("id", "swap", "rate", "exposed", "hellinger"))
    choice = study.pick(max_loss=0.05)
    print(choice.explain())
