"""The bundled files are what the literature describes."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
import pytest

import quadrille as qd
from quadrille.summary import Table

PUBLISHED = {
    "Age": (8432, 33541, 6869),
    "EmpTyp": (6549, 33906, 5557, 2830),
    "Edu": (6408, 15784, 11687, 4085, 10878),
    "MS": (23044, 25798),
    "Race": (41762, 7080),
    "Sex": (32650, 16192),
    "AvgHrs": (11687, 22803, 14352),
    "AnnSal": (37155, 11687),
}


def test_cps8d_has_the_published_margins_in_codebook_order(cps8d: qd.Data) -> None:
    assert cps8d.n == 48_842
    assert cps8d.columns == list(PUBLISHED)
    for name, counts in PUBLISHED.items():
        assert tuple(np.bincount(cps8d[name].values)) == counts


def test_cps8d_has_the_published_cells(cps8d: qd.Data) -> None:
    count = Table(cps8d.keys).of(cps8d).count
    assert len(count) == 2880
    assert (count > 0).sum() == 1695
    assert (count == 1).sum() == 361
    assert (count == 2).sum() == 186
    assert count.max() == 1255


def test_cps8d_is_the_same_each_time() -> None:
    assert qd.datasets.cps8d() == qd.datasets.cps8d()
    assert qd.datasets.cps8d().fingerprint == qd.datasets.cps8d().fingerprint


@pytest.fixture(scope="module")
def adult() -> qd.Data:
    return qd.datasets.adult()


def test_adult_has_all_records_columns_and_the_weight(adult: qd.Data) -> None:
    assert (adult.n, len(adult.columns), adult.weight) == (48_842, 15, "fnlwgt")
    assert adult.ticks is not None and adult.ticks.exact and adult.ticks.per_unit == 1
    assert int(adult.ticks.values.min()) == 12_285
    assert [v.name for v in adult.codebook if v.role == "outcome"] == [
        "education-num",
        "capital-gain",
        "hours-per-week",
    ]
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    assert [v.name for v in adult.codebook if not v.coded] == numbers
    assert adult["age"].values.min() == 17 and adult["age"].values.max() == 90


def test_adult_orders_education_by_its_number_and_income_by_size(adult: qd.Data) -> None:
    assert adult.codebook["education"].kind == adult.codebook["income-per-year"].kind == "ordinal"
    assert np.array_equal(adult["education"].values + 1, adult["education-num"].values)
    assert adult["income-per-year"].labels == ("<=50K", ">50K")


def test_adult_has_the_question_mark_as_missing_code_where_it_occurs(adult: qd.Data) -> None:
    unknown = {
        name: int((adult[name].values >= adult[name].valid).sum())
        for name in adult.columns
        if adult.codebook[name].missing
    }
    assert unknown == {"workclass": 2799, "occupation": 2809, "native-country": 857}
    for variable in adult.codebook:
        if variable.coded:
            counts = np.bincount(adult[variable.name].values, minlength=len(variable.values))
            assert (counts > 0).all(), "every declared category occurs"


def test_adult_recoded_is_cps8d(adult: qd.Data) -> None:
    age, hours = adult["age"].values, adult["hours-per-week"].values
    assert tuple(np.bincount(np.searchsorted([25, 55], age, side="right"))) == PUBLISHED["Age"]
    assert tuple(np.bincount(np.searchsorted([40, 41], hours, side="right"))) == PUBLISHED["AvgHrs"]
    assert tuple(np.bincount(adult["sex"].values)) == PUBLISHED["Sex"]
    assert tuple(np.bincount(np.minimum(adult["race"].values, 1))) == PUBLISHED["Race"]
    assert tuple(np.bincount(adult["income-per-year"].values)) == PUBLISHED["AnnSal"]


def test_adult_is_what_a_reader_finds_in_the_file(adult: qd.Data) -> None:
    source = files("quadrille.datasets").joinpath("adult.csv.gz")
    with as_file(source) as path:
        read = qd.read(path, codebook=adult.codebook)
    assert read == adult
    assert read.fingerprint == adult.fingerprint


def test_adult_is_credited_as_its_licence_asks() -> None:
    text = files("quadrille.datasets").joinpath("SOURCES.md").read_text(encoding="utf-8")
    for words in ("adult.csv.gz", "Becker", "Kohavi", "1996", "10.24432/C5XW20", "CC BY 4.0", "Changes:"):
        assert words in text
