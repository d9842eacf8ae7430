"""Bundled example files: Adult, CPS-8d rebuilt from the counts of its cells, an invented state; household survey."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from io import TextIOWrapper
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Kind, Role, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.datasets.households import apportion, draw, households, uniform
from quadrille.errors import bad_parameter
from quadrille.randomness import Stream

__all__ = ["adult", "cps8d", "households", "state"]


_UNKNOWN = "?"
_EDUCATION = (
    "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm Bachelors Masters "
    "Prof-school Doctorate"
)
_MARITAL = "Never-married Married-civ-spouse Married-AF-spouse Married-spouse-absent Separated Divorced Widowed"
_OCCUPATION = (
    "Exec-managerial Prof-specialty Tech-support Adm-clerical Sales Craft-repair Machine-op-inspct Transport-moving "
    "Handlers-cleaners Farming-fishing Protective-serv Other-service Priv-house-serv Armed-Forces"
)
_COUNTRY = (
    "United-States Outlying-US(Guam-USVI-etc) Puerto-Rico Canada Mexico Cuba Dominican-Republic Haiti Jamaica "
    "Trinadad&Tobago El-Salvador Guatemala Honduras Nicaragua Columbia Ecuador Peru England Scotland Ireland France "
    "Germany Holand-Netherlands Italy Portugal Greece Poland Hungary Yugoslavia Iran India China Hong Taiwan Japan "
    "South Philippines Vietnam Laos Cambodia Thailand"
)
_ADULT_CATEGORIES: dict[str, tuple[Kind, str]] = {
    "workclass": (
        "nominal",
        "Private Self-emp-not-inc Self-emp-inc Federal-gov State-gov Local-gov Without-pay Never-worked",
    ),
    "education": ("ordinal", _EDUCATION),
    "marital-status": ("nominal", _MARITAL),
    "occupation": ("nominal", _OCCUPATION),
    "relationship": ("nominal", "Husband Wife Own-child Other-relative Unmarried Not-in-family"),
    "race": ("nominal", "White Black Asian-Pac-Islander Amer-Indian-Eskimo Other"),
    "sex": ("nominal", "Male Female"),
    "native-country": ("nominal", _COUNTRY),
    "income-per-year": ("ordinal", "<=50K >50K"),
}
_WITH_UNKNOWN = ("workclass", "occupation", "native-country")
_ROLES: dict[str, Role] = {
    "fnlwgt": "weight",
    "education-num": "outcome",
    "capital-gain": "outcome",
    "hours-per-week": "outcome",
}


def adult() -> Data:
    """Return Adult: 48,842 persons, 15 variables, weight `fnlwgt`.

    Education is ordinal, in the order of education-num, and so is income; age, capital gain and loss, hours and
    education-num are numbers, the three among them that serve as outcomes have that role. "?" is a missing code.
    Countries stand by region, the other texts in an order in which neighbours are alike.

    Source: UCI Machine Learning Repository, "Adult" (Becker & Kohavi 1996), doi 10.24432/C5XW20, licence CC BY 4.0.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.adult()
    >>> data.n, data.weight, data["education"].labels[8]
    (48842, 'fnlwgt', 'HS-grad')
    """
    return Data(_adult_columns())


@cache
def _adult_columns() -> tuple[Column, ...]:
    """Read the file once: columns never change."""
    packed = files("quadrille.datasets").joinpath("adult.csv.gz")
    with packed.open("rb") as raw, gzip.open(raw) as plain, TextIOWrapper(plain, encoding="utf-8") as text:
        names, *rows = csv.reader(text)
    return tuple(_adult_column(name, texts) for name, texts in zip(names, zip(*rows, strict=True), strict=True))


def _adult_column(name: str, texts: Sequence[str]) -> Column:
    if name not in _ADULT_CATEGORIES:
        return Column(Variable(name, "numeric", role=_ROLES.get(name)), np.array(texts, dtype=np.float64), "Int64")
    kind, listed = _ADULT_CATEGORIES[name]
    variable = Variable(name, kind, tuple(listed.split()), missing=(_UNKNOWN,) if name in _WITH_UNKNOWN else ())
    code = {value: position for position, value in enumerate(variable.values)}
    return Column(variable, np.array([code[text] for text in texts], dtype=code_dtype(len(code))))


_CPS_VARIABLES: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "Age": ("ordinal", ("<25", "25-55", ">55")),
    "EmpTyp": ("nominal", ("Govt", "Priv", "Self-Emp", "Other")),
    "Edu": ("nominal", ("<HS", "HS", "Bach", "Bach+", "Coll")),
    "MS": ("nominal", ("Married", "Other")),
    "Race": ("nominal", ("White", "Non-White")),
    "Sex": ("nominal", ("Male", "Female")),
    "AvgHrs": ("ordinal", ("<40", "40", ">40")),
    "AnnSal": ("ordinal", ("<50K", "50K+")),
}


def cps8d() -> Data:
    """Return CPS-8d: 48,842 records, 8 categorical variables, 1,695 occupied cells of 2,880.

    Source: UCI Machine Learning Repository, "Adult" (Becker & Kohavi 1996), licence CC BY 4.0, recoded as in
    Gomatam & Karr (2003). Records of one cell are alike, so the counts are the whole file; records stand in
    the order of their cells.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.datasets.cps8d()
    Data(48,842 records, 8 columns)
    """
    text = files("quadrille.datasets").joinpath("cps8d_counts.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    counts = np.array([int(row["count"]) for row in rows])
    columns: list[Column] = []
    for name, (kind, categories) in _CPS_VARIABLES.items():
        codes = np.array([categories.index(row[name]) for row in rows], dtype=code_dtype(len(categories)))
        columns.append(Column(Variable(name, kind, categories), np.repeat(codes, counts)))
    return Data(columns)


COUNTIES = 67
TRACTS = 3_200
RECORDS = 320_000

_STATE_VARIABLES: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "age": ("ordinal", ("15-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75+")),
    "sex": ("nominal", ("Female", "Male")),
    "race": ("nominal", ("White", "Black", "Hispanic", "Asian", "Other")),
    "tenure": ("nominal", ("Owner", "Renter")),
    "size": ("ordinal", ("1", "2", "3", "4", "5+")),
    "income": ("ordinal", ("<25K", "25K-50K", "50K-75K", "75K-125K", "125K+")),
}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def state(records: int = RECORDS) -> Data:
    """Return an invented state: households with county, tract, and six variables of the householder and the home.

    Nobody in it exists. 67 counties hold 5 to some 380 tracts each, 3,200 in all; tracts are uneven, from a few
    households to several times the mean. Large counties are urban: more renters, younger and smaller households.
    Race is distributed unevenly between counties and more so between tracts, and tracts differ in age, tenure and
    income; many cells of a tract are empty. Age, tenure, household size and income depend on one another.

    `county` and `tract` are levels 1 and 2 of the geography; a tract's code begins with that of its county. Records
    stand in the order of tracts. The numbers come from one fixed stream and from plain arithmetic (no logarithms or
    exponentials, whose last digits differ between machines), so the file is the same everywhere.

    Parameters
    ----------
    records : number of households, at least one per tract; the default is a sample of about 100 per tract.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.state()
    >>> data.n, data["county"].valid, data["tract"].valid, data.codebook.geography
    (320000, 67, 3200, ('county', 'tract'))
    """
    if isinstance(records, bool) or not isinstance(cast("object", records), int) or records < TRACTS:
        raise bad_parameter("datasets.state", "records", f"a whole number of {TRACTS:,} or more", records)
    stream = Stream.of(1, "an invented state of 67 counties and 3,200 tracts")
    county, urban = _tracts(stream)
    of = np.repeat(np.arange(TRACTS), apportion(_sizes(stream), records - TRACTS) + 1)
    values = _households(stream, of, county, urban)
    number = np.arange(TRACTS) - np.searchsorted(county, np.arange(COUNTIES))[county] + 1
    counties = tuple(f"{c:02}" for c in range(1, COUNTIES + 1))
    tracts = tuple(f"{counties[c]}-{n:03}" for c, n in zip(county, number, strict=True))
    levels = [
        Column(Variable("county", categories=counties, role="geography", level=1), county[of].astype(np.uint8)),
        Column(Variable("tract", categories=tracts, role="geography", level=2), of.astype(code_dtype(TRACTS))),
    ]
    others = [Column(Variable(name, *_STATE_VARIABLES[name]), codes.astype(np.uint8)) for name, codes in values.items()]
    return Data([*levels, *others])


def _tracts(stream: Stream) -> tuple[Ints, Floats]:
    """Return the county of each tract, ascending, and how urban the tract is, from 0 to 1."""
    rank = np.argsort(uniform(stream, "counties", COUNTIES), kind="stable")
    tracts = apportion(1.0 / ((rank + 9.0) * (rank + 9.0)), TRACTS)
    county = np.repeat(np.arange(COUNTIES), tracts)
    centre = 1 - rank[county] / COUNTIES
    return county, np.clip(0.7 * centre * centre + 0.5 * uniform(stream, "urban", TRACTS) - 0.1, 0.0, 1.0)


def _sizes(stream: Stream) -> Floats:
    """Return relative sizes of tracts: most near the mean, some tiny, a few very large."""
    u, v, w = uniform(stream, "sizes", 3, TRACTS)
    return u * (0.4 + v) + 0.08 * w / (1.03 - w)


def _tilt(stream: Stream, name: str, *shape: int) -> Floats:
    """Return factors from 1/11 to 11 whose logarithm is spread evenly around 0."""
    u, v = uniform(stream, name, 2, *shape)
    return (0.1 + u) / (0.1 + v)


def _households(stream: Stream, of: Ints, county: Ints, urban: Floats) -> dict[str, Ints]:
    """Draw the variables of every household, one after the other, each given its tract and earlier ones."""
    town = urban[:, None]
    old = _tilt(stream, "old", TRACTS)[:, None]
    steps = np.arange(7) / 6
    ages = np.array([4.0, 15, 17, 18, 19, 15, 12]) * (1 + town * (1 - steps)) * (1 + steps * (old - 1))
    age = draw(stream, "age", ages, of)

    city = np.array([0.0, 0.9, 0.7, 0.6, 0.2])
    mix = np.array([74.0, 6, 5, 2, 2]) * (1 - city + 3 * city * town)
    mix = mix * np.sqrt(_tilt(stream, "county race", COUNTIES, 5))[county] * _tilt(stream, "tract race", TRACTS, 5) ** 2
    race = draw(stream, "race", mix, of)

    owns = np.clip(1.1 - 0.5 * urban + 0.3 * (uniform(stream, "owners", TRACTS) - 0.5), 0.1, 0.95)
    owner = np.clip(owns[:, None] * (0.35 + np.minimum(steps, 0.8)), 0.02, 0.98)
    tenure = draw(stream, "tenure", np.stack((owner, 1 - owner), axis=2).reshape(-1, 2), of * 7 + age)

    alone = np.array([38, 26, 18, 19, 28, 40, 55.0])
    young = np.array([8, 16, 26, 18, 6, 2, 1.0])
    kinds = np.stack((alone, alone * 0 + 32, alone * 0 + 16, young, young * 0.7), axis=1)
    kinds = np.repeat(kinds, 2, axis=0) * np.tile([[0.8, 1.1, 1, 1.1, 1], [1.5, 1, 1, 0.8, 0.8]], (7, 1))
    family = np.sqrt(_tilt(stream, "families", TRACTS))[:, None, None]
    kinds = (kinds * (1 + np.arange(5) / 4 * (family - 1))).reshape(-1, 5)
    size = draw(stream, "size", kinds, of * 14 + age * 2 + tenure)
    sex = draw(stream, "sex", np.array([[62.0, 38], [47, 53], [44, 56], [43, 57], [42, 58]]), size)

    rich = _tilt(stream, "rich", TRACTS)
    better = rich / (1 + rich)
    grade = 0.25 + 0.5 * better[of] + np.array([0.1, -0.15])[tenure] + np.array([-0.2, 0, 0.1, 0.1, 0, -0.1, -0.2])[age]
    band = np.clip(np.floor((grade + 0.05 * size) * 12), 0, 11).astype(np.int64)
    income = draw(stream, "income", _income_bands(), band)
    return {"age": age, "sex": sex, "race": race, "tenure": tenure, "size": size, "income": income}


def _income_bands() -> Floats:
    """Return the income groups of households graded from 0 to 11: the group nearest to the grade is the likeliest."""
    far = np.arange(12)[:, None] / 11 * 4 - np.arange(5)[None, :]
    return 1 / (0.35 + far * far)
