"""The design (four files, twelve scenarios, two rates, two methods, seeds) and the files themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Kind, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.datasets import adult

Source = Literal["simulated", "adult"]
Method = Literal["standard", "balanced"]

SOURCES: tuple[Source, ...] = ("simulated", "adult")
SIZES = (18_102, 8_153, 3_648, 1_156)
RATES = (0.03, 0.15)
"""Shares of records drawn as targets."""
METHODS: tuple[Method, ...] = ("standard", "balanced")
SEEDS = 10

SHAPES = (
    "2N 4N 4O 6O",
    "32N 5N 3O 2O",
    "2N 3N 4N 4O",
    "2N 2N 3N 4N 4O",
    "2N 3N 4N 4O 6O",
    "2N 2N 4N 4O 6O",
    "2N 4N 4O",
    "4N 6O 6O",
    "2N 36O",
    "30N 6O",
    "2N 6O",
    "6O 6O",
)
"""Categories of each scenario's variables, N nominal and O ordinal; the right-most changes most often."""

_VARIABLES: dict[Source, tuple[str, ...]] = {
    "simulated": (
        "N2a N4 O4 O6a",
        "N32 N5 O3 O2",
        "N2a N3 N4 O4",
        "N2a N2b N3 N4 O4",
        "N2a N3 N4 O4 O6a",
        "N2a N2b N4 O4 O6a",
        "N2a N4 O4",
        "N4 O6a O6b",
        "N2a O36",
        "N30 O6a",
        "N2a O6a",
        "O6a O6b",
    ),
    "adult": (
        "sex work age4 educ6",
        "country race5 age3 income",
        "sex marital work age4",
        "sex race2 marital work age4",
        "sex marital work age4 educ6",
        "sex race2 work age4 educ6",
        "sex work age4",
        "work educ6 age6",
        "sex age36",
        "jobsex educ6",
        "sex educ6",
        "educ6 age6",
    ),
}


@dataclass(frozen=True)
class Scenario:
    """What is swapped: variables in order, with the number of possible cells and of nominal categories."""

    number: int
    variables: tuple[str, ...]
    cells: int
    nominal: int


class Setting(NamedTuple):
    """One combination of the design, by position: file, scenario, rate, method."""

    size: int
    scenario: int
    rate: int
    method: int


def scenarios(source: Source) -> tuple[Scenario, ...]:
    """Return the twelve scenarios with the variables of a source.

    >>> from quadrille.papers.dohrmann_2009.files import scenarios
    >>> scenarios("adult")[9]
    Scenario(number=10, variables=('jobsex', 'educ6'), cells=180, nominal=30)
    """
    return tuple(
        Scenario(number, tuple(names.split()), *shape_of(shape))
        for number, (names, shape) in enumerate(zip(_VARIABLES[source], SHAPES, strict=True), 1)
    )


def shape_of(shape: str) -> tuple[int, int]:
    """Return the possible cells and the nominal categories of a shape.

    >>> from quadrille.papers.dohrmann_2009.files import shape_of
    >>> shape_of("2N 4N 4O 6O")
    (192, 6)
    """
    parts = [(int(part[:-1]), part[-1]) for part in shape.split()]
    return prod(count for count, _ in parts), sum(count for count, kind in parts if kind == "N")


def settings() -> Iterator[Setting]:
    """Yield the 192 settings in the order of the axes of a run table."""
    return (Setting(*each) for each in product(*(range(len(axis)) for axis in (SIZES, SHAPES, RATES, METHODS))))


OUTCOMES: dict[Source, tuple[str, ...]] = {
    "simulated": ("prose", "document", "quantitative"),
    "adult": ("hours-per-week", "education-num", "capital-gain"),
}


@lru_cache(maxsize=2)
def file_of(source: Source, size: int) -> Data:
    """Return the file of that source and size: always the same one."""
    return simulated(size) if source == "simulated" else sample(size)


def file_for(source: Source, size: int, scenario: Scenario) -> Data:
    """Return the file with the variables of a scenario, the outcomes and the weight only."""
    data = file_of(source, size)
    assert data.weight is not None
    names = (*scenario.variables, *OUTCOMES[source], data.weight)
    return Data([data[name] for name in names], weight=data.weight, ticks=data.ticks)


# Files with the structure of an adult-literacy survey. They are simulated: the original is not public here. Two
# factors, one social and one of age, drive all variables, three test scores that correlate at about .9, and, weakly,
# the weights. So the variables are associated with one another and with the scores, as in a survey.

Floats = NDArray[np.float64]

WEIGHT = "weight"

_MEAN, _SD, _HIGHEST = 270.0, 60.0, 500.0
_SHARED = 0.95
"""Share of the variance of a score that all scores have in common is the square of this."""
_MEAN_WEIGHT, _LOG_SD = 12_000.0, 0.6


class _Part(NamedTuple):
    """How a variable depends on the social factor and on age, and the shares of its categories."""

    social: float
    age: float
    shares: tuple[float, ...]


def _falling(count: int, ratio: float) -> tuple[float, ...]:
    """Return shares that fall by a ratio from one category to the next."""
    return tuple(ratio**i for i in range(count))


_PARTS = {
    "N2a": _Part(0.1, 0.1, (48, 52)),
    "N2b": _Part(0.5, 0.0, (87, 13)),
    "N3": _Part(0.5, 0.2, (71, 12, 17)),
    "N4": _Part(0.2, 0.0, (19, 23, 36, 22)),
    "N5": _Part(0.4, 0.3, (55, 9, 19, 11, 6)),
    "N30": _Part(0.6, 0.2, _falling(30, 0.87)),
    "N32": _Part(0.3, 0.1, _falling(32, 0.92)),
    "O2": _Part(0.5, 0.1, (76, 24)),
    "O3": _Part(0.1, 0.8, (16, 62, 22)),
    "O4": _Part(0.1, 0.8, (28, 32, 24, 16)),
    "O6a": _Part(0.8, -0.2, (14, 30, 9, 22, 16, 9)),
    "O6b": _Part(0.6, 0.3, (17, 19, 20, 18, 15, 11)),
    "O36": _Part(0.0, 0.9, tuple(40 - i for i in range(36))),
}


def simulated(size: int) -> Data:
    """Return a file of that many records: every variable of the twelve scenarios, three scores and a weight.

    >>> from quadrille.papers.dohrmann_2009.files import simulated
    >>> simulated(1156)
    Data(1,156 records, 17 columns, weight='weight')
    """
    rng = np.random.default_rng([2009, size])
    social, age = rng.standard_normal((2, size))
    columns = [_categorical(rng, name, part, social, age) for name, part in _PARTS.items()]
    columns += _scores(rng, social, age)
    log_weight = _LOG_SD * rng.standard_normal(size) - 0.15 * social + 0.1 * age
    weight = np.exp(log_weight)
    weight = (weight * (_MEAN_WEIGHT / weight.mean())).round(2)
    return Data([*columns, Column(Variable(WEIGHT, "numeric", role="weight"), weight, "Float64")])


def _categorical(rng: np.random.Generator, name: str, part: _Part, social: Floats, age: Floats) -> Column:
    """Cut a latent variable at its quantiles; nominal categories then change places, so that they have no order."""
    own = np.sqrt(1 - part.social**2 - part.age**2)
    latent = part.social * social + part.age * age + own * rng.standard_normal(len(social))
    shares = np.array(part.shares) / sum(part.shares)
    rank = np.argsort(np.argsort(latent))
    codes = np.searchsorted(np.cumsum(shares)[:-1] * len(rank), rank, side="right")
    count = len(shares)
    nominal = name.startswith("N")
    if nominal:
        codes = rng.permutation(count)[codes]
    categories = tuple(f"c{i}" for i in range(1, count + 1)) if nominal else tuple(range(1, count + 1))
    variable = Variable(name, "nominal" if nominal else "ordinal", categories)
    return Column(variable, codes.astype(code_dtype(count)), "String" if nominal else "Int64")


def _scores(rng: np.random.Generator, social: Floats, age: Floats) -> list[Column]:
    ability = 0.7 * social - 0.25 * age
    ability += np.sqrt(1 - 0.7**2 - 0.25**2) * rng.standard_normal(len(social))
    columns: list[Column] = []
    for name in OUTCOMES["simulated"]:
        own = rng.standard_normal(len(social))
        score = _MEAN + _SD * (_SHARED * ability + np.sqrt(1 - _SHARED**2) * own)
        values: Floats = np.clip(score, 0, _HIGHEST).round(1)
        columns.append(Column(Variable(name, "numeric", role="outcome"), values, "Float64"))
    return columns


# Samples of the Adult file, its variables recoded into the classes of the twelve scenarios.

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

    >>> from quadrille.papers.dohrmann_2009.files import sample
    >>> sample(1156)
    Data(1,156 records, 17 columns, weight='fnlwgt')
    """
    whole = recoded()
    rows = np.random.default_rng([1994, size]).permutation(whole.n)[:size]
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
    return Data([*columns, *(data[name] for name in (*OUTCOMES["adult"], "fnlwgt"))])


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
