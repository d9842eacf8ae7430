"""Bundled example files: Adult, CPS-8d rebuilt from the counts of its cells, an invented state, an invented survey."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from io import TextIOWrapper

import numpy as np

from quadrille.codebook import Kind, Role, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.datasets.invented import census, households, island, state

__all__ = ["adult", "census", "cps8d", "households", "island", "state"]


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
