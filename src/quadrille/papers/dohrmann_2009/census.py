"""Samples of the Adult file, its variables recoded into the classes of the twelve scenarios."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Kind, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.datasets import adult

OUTCOMES = ("hours-per-week", "education-num", "capital-gain")

_SEED = 1994
_KEPT_COUNTRIES = 30
_NOT_KNOWN, _OTHER = "not known", "other"
_WORK = {
    "Govt": ("Federal-gov", "State-gov", "Local-gov"),
    "Priv": ("Private",),
    "Self-Emp": ("Self-emp-not-inc", "Self-emp-inc"),
    "Other": ("Without-pay", "Never-worked", "?"),
}
_MARITAL = {
    "never": ("Never-married",),
    "married": ("Married-civ-spouse", "Married-AF-spouse"),
    "was married": ("Married-spouse-absent", "Separated", "Divorced", "Widowed"),
}

DESCRIPTIONS = {
    "sex": "2N, as in the file",
    "race2": "2N, white or not",
    "marital": "3N, never, married, was married",
    "work": "4N, government, private, self-employed, other or not known",
    "race5": "5N, as in the file",
    "jobsex": "30N, occupation (14, and not known) by sex",
    "country": "32N, the 30 most frequent, other, not known",
    "income": "2O, as in the file",
    "age3": "3O, under 25, 55, older",
    "age4": "4O, under 30, 45, 60, older",
    "age6": "6O, under 25, 35, 45, 55, 65, older",
    "age36": "36O, two years each from 17 on, the last 87 to 90",
    "educ6": "6O, no diploma, high school, some college, associate, bachelor, higher",
}

Numbers = NDArray[np.int64]


def sample(size: int) -> Data:
    """Draw so many records without replacement: always the same ones.

    >>> from quadrille.papers.dohrmann_2009.census import sample
    >>> sample(1156)
    Data(1,156 records, 17 columns, weight='fnlwgt')
    """
    whole = recoded()
    rows = np.random.default_rng([_SEED, size]).permutation(whole.n)[:size]
    return whole.take(np.sort(rows))


@cache
def recoded() -> Data:
    """Return the whole file with the classes of the scenarios, the outcomes and the weight."""
    data = adult()
    age, school = (data[name].values.astype(np.int64) for name in ("age", "education-num"))
    columns = [
        data["sex"],
        _classes("race2", "nominal", ("White", "other"), np.minimum(data["race"].values, 1)),
        _grouped(data, "marital", "marital-status", _MARITAL),
        _grouped(data, "work", "workclass", _WORK),
        _renamed(data, "race5", "race"),
        _job_by_sex(data),
        _countries(data),
        _renamed(data, "income", "income-per-year"),
        _cut("age3", age, (25, 55)),
        _cut("age4", age, (30, 45, 60)),
        _cut("age6", age, (25, 35, 45, 55, 65)),
        _cut("age36", age, tuple(range(19, 88, 2))),
        _cut("educ6", school, (9, 10, 11, 13, 14)),
    ]
    return Data([*columns, *(data[name] for name in (*OUTCOMES, "fnlwgt"))])


def _classes(name: str, kind: Kind, labels: tuple[str, ...], codes: Numbers) -> Column:
    return Column(Variable(name, kind, labels), codes.astype(code_dtype(len(labels))))


def _cut(name: str, values: Numbers, starts: tuple[int, ...]) -> Column:
    """Cut numbers into classes; `starts` are the first values of all classes but the lowest."""
    labels = (f"under {starts[0]}", *(f"from {start}" for start in starts))
    return _classes(name, "ordinal", labels, np.searchsorted(starts, values, side="right"))


def _renamed(data: Data, name: str, old: str) -> Column:
    variable = data.codebook[old]
    return Column(Variable(name, variable.kind, variable.categories), data[old].values)


def _grouped(data: Data, name: str, old: str, groups: dict[str, tuple[str, ...]]) -> Column:
    place = {value: position for position, values in enumerate(groups.values()) for value in values}
    code = np.array([place[str(value)] for value in data.codebook[old].values])
    return _classes(name, "nominal", tuple(groups), code[data[old].values])


def _job_by_sex(data: Data) -> Column:
    jobs, sexes = (*map(str, data.codebook["occupation"].categories), _NOT_KNOWN), data["sex"].labels
    labels = tuple(f"{job}, {sex}" for job, sex in product(jobs, sexes))
    return _classes("jobsex", "nominal", labels, data["occupation"].values.astype(np.int64) * 2 + data["sex"].values)


def _countries(data: Data) -> Column:
    """Keep the most frequent countries of the whole file, in the order of the codebook."""
    names = tuple(map(str, data.codebook["native-country"].categories))
    counts = np.bincount(data["native-country"].values, minlength=len(names) + 1)[: len(names)]
    kept = sorted(map(int, np.argsort(-counts, kind="stable")[:_KEPT_COUNTRIES]))
    code = np.full(len(names) + 1, _KEPT_COUNTRIES)
    code[kept] = np.arange(_KEPT_COUNTRIES)
    code[len(names)] = _KEPT_COUNTRIES + 1
    labels = (*(names[i] for i in kept), _OTHER, _NOT_KNOWN)
    return _classes("country", "nominal", labels, code[data["native-country"].values])
