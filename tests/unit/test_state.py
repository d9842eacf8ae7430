"""The invented state: the same everywhere, uneven, nested, with empty cells."""

from __future__ import annotations

import numpy as np
import pytest

import quadrille as qd
from geography_strategies import areas_within
from quadrille.codebook import records_in
from quadrille.data import Data
from quadrille.datasets.invented import COUNTIES, TRACTS
from quadrille.errors import ParameterError


@pytest.fixture(scope="module")
def state() -> Data:
    return qd.datasets.state()


def shares(data: Data, level: str, name: str) -> np.ndarray:
    """The composition of every area."""
    size = data[name].valid
    cells = data[level].values.astype(np.int64) * size + data[name].values
    table = np.bincount(cells, minlength=data[level].valid * size).reshape(-1, size)
    return table / table.sum(axis=1, keepdims=True)


def test_it_is_the_same_file_everywhere(state: Data) -> None:
    assert state.fingerprint == "e7627ddd72f6c2230f0c058c05989037"
    assert qd.datasets.state() == state


def test_every_tract_has_households_and_lies_in_the_county_of_its_code(state: Data) -> None:
    assert (state.n, state["county"].valid, state["tract"].valid) == (320_000, COUNTIES, TRACTS)
    lies_in = areas_within(state["tract"], state["county"])
    assert [state["county"].labels[c] for c in lies_in] == [label[:2] for label in state["tract"].labels]
    assert records_in(state["tract"]).min() >= 1


def test_counties_and_tracts_are_uneven(state: Data) -> None:
    tracts = np.bincount(areas_within(state["tract"], state["county"]))
    assert (tracts.min(), tracts.max()) == (5, 379)
    sizes = records_in(state["tract"])
    assert np.percentile(sizes, 95) > 10 * np.percentile(sizes, 5)


def test_areas_differ_more_than_chance_would_have_it(state: Data) -> None:
    """Chi-square of area by variable, over its degrees of freedom, is 1 without any difference between areas."""
    for name, least in (("race", 20.0), ("tenure", 3.0), ("income", 3.0), ("age", 1.5), ("size", 1.2)):
        observed = shares(state, "tract", name) * records_in(state["tract"])[:, None]
        even = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / state.n
        ratio = ((observed - even) ** 2 / even).sum() / ((TRACTS - 1) * (observed.shape[1] - 1))
        assert ratio > least, name


def test_many_cells_of_a_tract_are_empty_and_no_category_is(state: Data) -> None:
    assert (shares(state, "tract", "race") == 0).mean() > 0.2
    for name in state.columns:
        assert np.bincount(state[name].values, minlength=state[name].size).min() > 0


def test_large_counties_rent_more(state: Data) -> None:
    renters = shares(state, "county", "tenure")[:, 1]
    largest = np.argsort(records_in(state["county"]))
    assert renters[largest[-10:]].mean() > renters[largest[:10]].mean() + 0.1


def test_it_can_be_smaller_but_has_a_household_in_every_tract() -> None:
    small = qd.datasets.state(records=TRACTS)
    assert records_in(small["tract"]).tolist() == [1] * TRACTS
    assert records_in(qd.datasets.state(records=10_000)["tract"]).sum() == 10_000


@pytest.mark.parametrize("records", [TRACTS - 1, 0, True, 5000.0, "many"])
def test_a_number_of_records_that_cannot_be_is_refused(records: object) -> None:
    with pytest.raises(ParameterError, match=r"'records' parameter of datasets\.state must be a whole number of 3,200"):
        qd.datasets.state(records=records)  # pyright: ignore[reportArgumentType]
