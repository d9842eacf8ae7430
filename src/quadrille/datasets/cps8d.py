"""CPS-8d: the eight-variable file of the swapping literature, rebuilt from the counts of its cells."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np

from quadrille.codebook import Kind, Variable
from quadrille.data import Column, Data, code_dtype

_VARIABLES: dict[str, tuple[Kind, tuple[str, ...]]] = {
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
    for name, (kind, categories) in _VARIABLES.items():
        codes = np.array([categories.index(row[name]) for row in rows], dtype=code_dtype(len(categories)))
        columns.append(Column(Variable(name, kind, categories), np.repeat(codes, counts)))
    return Data(columns)
