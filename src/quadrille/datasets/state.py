"""An invented state: households in 67 counties and 3,200 tracts, made by formula from one stream of random numbers."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Kind, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.errors import bad_parameter
from quadrille.randomness import Stream

COUNTIES = 67
TRACTS = 3_200
RECORDS = 320_000

_VARIABLES: dict[str, tuple[Kind, tuple[str, ...]]] = {
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
    others = [Column(Variable(name, *_VARIABLES[name]), codes.astype(np.uint8)) for name, codes in values.items()]
    return Data([*levels, *others])


def uniform(stream: Stream, name: str, *shape: int) -> Floats:
    """Return uniform numbers in [0, 1) of 32 bits."""
    return stream.sub(name).words(int(np.prod(shape))).reshape(shape) / 2.0**32


def apportion(share: Floats, total: int) -> Ints:
    """Split a total in these proportions, by largest remainder."""
    exact = share * (total / np.cumsum(share)[-1])
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


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


def draw(stream: Stream, name: str, weights: Floats, of: Ints) -> Ints:
    """Draw a category for every record from the weights of its group; compared as whole numbers."""
    top = np.floor(weights * (2.0**20 / weights.max(axis=1, keepdims=True))).astype(np.int64).cumsum(axis=1)
    drawn = (stream.sub("draw " + name).words(len(of)).astype(np.int64) * top[of, -1]) >> 32
    code = np.zeros(len(of), dtype=np.int64)
    for category in range(top.shape[1] - 1):
        code += drawn >= top[of, category]
    return code
