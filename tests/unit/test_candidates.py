"""What a search refuses before it writes: unknown columns of any parameter, and scores that cannot be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

import quadrille as qd
from quadrille.errors import InputError

FREE = ["small_cells", "hellinger"]


def controlled(swap: list[str], **more: object) -> qd.ControlledSwap:
    return qd.ControlledSwap(swap, targets=0.01, seed=1, **more)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("boundary", ["Sexx"]),
        ("stratum", ["Sexx"]),
        ("sort", ["Sexx"]),
        ("size", "Sexx"),
        ("must", "Sexx"),
        ("bias", "Sexx"),
        ("linked", {"Edu": ["Sexx"]}),
    ],
)
@pytest.mark.parametrize("as_grid", [True, False])
def test_a_column_that_the_data_lack_is_refused_and_nothing_is_written(
    parameter: str, value: object, as_grid: bool, cps8d: qd.Data, tmp_path: Path
) -> None:
    if as_grid:
        recipes = qd.grid(qd.ControlledSwap, swap=["Edu"], targets=0.01, seed=1, **{parameter: value})
    else:
        recipes = [controlled(["Edu"], **{parameter: value})]
    with pytest.raises(InputError, match=rf"no column 'Sexx' in '{parameter}' of ControlledSwap. Did you mean: 'Sex'"):
        qd.search(cps8d, recipes, FREE, out=tmp_path / "study")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("measure", ["hd1", "hd3_norm", "r_ased", "c_ard", "v_ard"])
def test_different_swap_variables_need_a_list_of_variables(measure: str, cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = [controlled(["Edu"]), qd.RandomSwap(["Edu", "Sex"], rate=0.01, differ="any", seed=1)]
    with pytest.raises(
        InputError, match=rf"'{measure}' looks at the columns that a candidate moves.*{measure}\(A\*B\)"
    ):
        qd.search(cps8d, recipes, ["small_cells", measure], out=tmp_path / "study")
    assert not list(tmp_path.iterdir())
    study = qd.search(cps8d, recipes, ["small_cells", f"{measure}(Edu*Sex)"], out=tmp_path / "study")
    assert study.counts()["done"] == 2


def test_the_same_swap_variables_need_none(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.ControlledSwap, swap=[["Edu", "Sex"], ["Sex", "Edu"]], targets=[0.01, 0.02], seed=1)
    assert len(qd.search(cps8d, recipes, ["small_cells", "r_ased"], out=tmp_path / "study")) == 4


def test_a_study_that_grows_is_compared_with_what_it_has(cps8d: qd.Data, tmp_path: Path) -> None:
    measures, out = ["small_cells", "c_ard"], tmp_path / "study"
    qd.search(cps8d, [controlled(["Edu"])], measures, out=out)
    with pytest.raises(InputError, match="move different ones"):
        qd.search(cps8d, [controlled(["Sex"])], measures, out=out)
    assert len(qd.Study(out)) == 1


def test_linked_columns_count_as_moved(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = [controlled(["Edu"]), controlled(["Edu"], linked={"Edu": ["MS"]})]
    with pytest.raises(InputError, match="move different ones"):
        qd.search(cps8d, recipes, ["small_cells", "c_ard"], out=tmp_path / "study")
