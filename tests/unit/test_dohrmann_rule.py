"""The published rule: of the runs with the smallest pairwise and regression measures the smallest HD."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import quadrille as qd
from quadrille.errors import InputError
from quadrille.study.choose import by_dohrmann

NAN = float("nan")


@dataclass
class Table:
    """As much of a study as the rule looks at."""

    measures: tuple[str, ...]
    scores: np.ndarray
    path: Path = Path("study")

    def designs_of(self, rows: np.ndarray) -> int:
        return 1


def chosen(measures: tuple[str, ...], rows: list[list[float]], **options: bool) -> int:
    table = Table(measures, np.array(rows))
    return by_dohrmann(table, np.arange(len(rows)), **options)[0]


MEASURES = ("small_cells", "r_ased", "ased_reg", "hd1")
RUNS = [
    [0.1, 5.0, 5.0, 0.1],  # the smallest HD of all, but not on the short list
    [0.1, 1.0, 2.0, 9.0],
    [0.1, 2.0, 1.0, 7.0],
    [0.1, 3.0, 3.0, 8.0],
    [0.1, 9.0, 9.0, 0.2],
]


def test_the_smallest_hd_of_the_short_list_wins() -> None:
    assert chosen(MEASURES, RUNS) == 2


def test_ranks_count_and_not_sizes() -> None:
    rows = [[0, 1.0, 3.0, 4.0], [0, 900.0, 1.0, 3.0], [0, 2.0, 2.0, 2.0], [0, 3.0, 900.0, 1.0]]
    assert chosen(MEASURES, rows) == 2  # mean ranks 2, 2.5, 2, 3.5


def test_hd_can_be_ignored() -> None:
    rows = [[0, 2.0, 2.0, 0.1], [0, 1.0, 1.0, 9.0]]
    assert chosen(MEASURES, rows) == 0
    assert chosen(MEASURES, rows, ignore_hd=True) == 1


def test_runs_without_a_score_are_passed_over() -> None:
    rows = [[0, NAN, 1.0, 0.1], [0, 2.0, 2.0, 5.0], [0, 3.0, 3.0, NAN]]
    assert chosen(MEASURES, rows) == 1


def test_without_any_hd_the_ranks_decide() -> None:
    assert chosen(("r_ased",), [[3.0], [1.0], [2.0]]) == 1
    assert chosen(MEASURES, [[0, 2.0, 2.0, NAN], [0, 1.0, 1.0, NAN]]) == 1


def test_a_study_without_these_measures_is_refused(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=["Edu"], pairs=10, seed=range(2))
    study = qd.search(cps8d, recipes, ["small_cells", "hellinger"], out=tmp_path / "study")
    with pytest.raises(InputError, match="none of the measures that the rule 'dohrmann' looks at first"):
        study.pick("dohrmann")


def test_a_study_needs_no_measure_of_risk_for_it(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.ControlledSwap, swap=["Edu", "Age"], targets=0.01, seed=range(4))
    study = qd.search(cps8d, recipes, ["c_ard", "v_ard"], out=tmp_path / "study")
    choice = study.pick("dohrmann")
    frame = study.frame()
    ranks = (frame["c_ard"].rank() + frame["v_ard"].rank()).to_list()
    assert ranks[choice.candidate - 1] == min(ranks)
    assert "safer" not in choice.explain()
    with pytest.raises(InputError, match="no risk measure"):
        study.pick("knee")
