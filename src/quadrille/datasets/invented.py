"""Invented files, made by formulas from one fixed stream, the same everywhere: a state, a survey, two censuses."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Kind, Role, Variable
from quadrille.data import Codes, Column, Data, Flags, Floats, Ints, code_dtype
from quadrille.errors import bad_parameter
from quadrille.params import whole
from quadrille.randomness import Stream

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


SIZES = (1_600, 1_900, 1_050, 1_000, 320, 60, 70)
"""Households of 1, 2, ..., 7 members."""
HOUSEHOLDS, PERSONS = 6_000, 15_000
POPULATION = 3_900_000
"""Households of the invented country."""
REGIONS = ("XA11", "XA12", "XA13", "XA21", "XA22", "XA23", "XA31", "XA32")
AREAS = ("city", "town", "rural")
CLUSTERS = 10
"""Clusters of each stratum."""

CHILD, ADULT, PENSION, YOUNG, TOP_AGE = 16, 18, 65, 14, 90
_TYPES = (
    "one adult under 65",
    "one adult 65 or over",
    "two adults, no child",
    "other, no child",
    "one adult with children",
    "two adults with children",
    "other with children",
)
_TENURE = ("owner", "owner with mortgage", "tenant", "tenant, reduced rent")
_CITIZEN = ("national", "other EU", "other")
_SCHOOLING = ("under 16", "ISCED 0-2", "ISCED 3-4", "ISCED 5-6", "ISCED 7-8")
_STATUS = ("under 16", "employed", "self-employed", "unemployed", "student", "retired", "other")


def households() -> Data:
    """Return an invented sample survey of income and living conditions: 15,000 persons in 6,000 households.

    Nobody in it exists. Households were drawn in 24 strata (region by degree of urbanisation), in ten clusters each;
    the code of a stratum contains the region, that of a cluster the stratum. All members of a household have its
    `region`, `urban`, `stratum`, `cluster`, `tenure`, `hh_size`, `hh_type`, `hh_income`, `eq_income` and `weight`. Much
    follows from something else, as in such surveys: size and type from the members, the income of the household from
    theirs and 2,400 for each child under 16, and

        eq_income = hh_income / (1 + 0.5 * (members of 14 or over, less one) + 0.3 * (members under 14)),

    rounded. Who is under 16 has no education, status, hours or income of his own. Weights sum to the persons of the
    country, some 9.2 million.

    The numbers come from one fixed stream and from plain arithmetic, as those of `state`, so the file is the same
    everywhere.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.households()
    >>> data
    Data(15,000 records, 20 columns, weight='weight')
    >>> data.units("hh_id").count, data.codebook["stratum"].role, data.codebook["hh_id"].role
    (6000, 'stratum', 'unit')
    """
    stream = Stream.of(1, "an invented household survey of 24 strata")
    region, urban, cluster = _places(stream)
    size = _household_sizes(stream, urban)
    of = np.repeat(np.arange(HOUSEHOLDS), size)
    first = np.cumsum(size) - size
    place = np.arange(PERSONS) - first[of]
    age, sex = _members(stream, size, of, place)
    education, status, citizen = _persons(stream, of, age, sex, urban[of])
    hours = _hours(stream, status, sex)
    income = _incomes(stream, age, education, status, hours)

    def members(flags: NDArray[np.bool_]) -> Ints:
        return np.bincount(of[flags], minlength=HOUSEHOLDS)

    hh_income = np.bincount(of, weights=income, minlength=HOUSEHOLDS).astype(np.int64) + 2_400 * members(age < CHILD)
    # Tenths of the scale are whole numbers, and so is the half that rounds.
    scale = 10 + 5 * (members(age >= YOUNG) - 1) + 3 * members(age < YOUNG)
    equivalised = (20 * hh_income + scale) // (2 * scale)
    kind = _kind(size, members(age < ADULT), members(age >= PENSION))
    tenure = _tenure(stream, urban, equivalised, age[first])
    names = _Names(region, urban, cluster)
    return Data(
        [
            numbered("hh_id", 100_001 + of, role="unit"),
            coded("person", place, tuple(range(1, len(SIZES) + 1)), "ordinal", role="id"),
            coded("region", region[of], REGIONS, role="geography"),
            coded("urban", urban[of], AREAS, "ordinal"),
            coded("stratum", names.stratum[of], names.strata, role="stratum"),
            coded("cluster", names.cluster[of], names.clusters, role="cluster"),
            coded("hh_size", (size - 1)[of], tuple(range(1, len(SIZES) + 1)), "ordinal"),
            coded("hh_type", kind[of], _TYPES),
            coded("tenure", tenure[of], _TENURE),
            numbered("age", age),
            coded("sex", sex, ("female", "male")),
            coded("citizen", citizen, _CITIZEN),
            coded("education", education, _SCHOOLING, "ordinal"),
            coded("status", status, _STATUS),
            numbered("hours", hours, role="outcome"),
            numbered("income", income, role="outcome"),
            numbered("hh_income", hh_income[of], role="outcome"),
            numbered("eq_income", equivalised[of], role="outcome"),
            coded("poor", _poor(equivalised[of]), ("no", "yes")),
            numbered("weight", _weights(stream, names, size)[of], role="weight", dtype="Float64"),
        ]
    )


class _Names:
    """The codes of strata and clusters, and those of each household."""

    def __init__(self, region: Ints, urban: Ints, cluster: Ints) -> None:
        self.stratum = region * len(AREAS) + urban
        self.cluster = self.stratum * CLUSTERS + cluster
        self.strata = tuple(f"{region}-{place}" for region in REGIONS for place in range(1, len(AREAS) + 1))
        self.clusters = tuple(f"{name}-{number:02}" for name in self.strata for number in range(1, CLUSTERS + 1))


def _places(stream: Stream) -> tuple[Ints, Ints, Ints]:
    """Return region, degree of urbanisation and cluster of each household, in this order."""
    regions = np.array([9.0, 5, 3, 6, 4, 2, 3, 2])
    areas = np.array([[7.0, 2, 1], [3, 4, 3], [1, 3, 5], [5, 3, 2], [2, 4, 4], [1, 2, 5], [3, 3, 3], [1, 3, 4]])
    share = (regions[:, None] * areas / areas.sum(axis=1, keepdims=True)).ravel()
    count = apportion(np.sqrt(share), HOUSEHOLDS)  # small strata get more than their share
    stratum = np.repeat(np.arange(len(share)), count)
    start = np.cumsum(count) - count
    cluster = (np.arange(HOUSEHOLDS) - start[stratum]) * CLUSTERS // count[stratum]
    return stratum // len(AREAS), stratum % len(AREAS), cluster


def _household_sizes(stream: Stream, urban: Ints) -> Ints:
    """Return the members of each household: fixed numbers of each size, the small ones rather in cities."""
    rank = np.argsort(uniform(stream, "sizes", HOUSEHOLDS) + 0.15 * urban, kind="stable")
    size = np.empty(HOUSEHOLDS, dtype=np.int64)
    size[rank] = np.repeat(np.arange(1, len(SIZES) + 1), SIZES)
    return size


def _members(stream: Stream, size: Ints, of: Ints, place: Ints) -> tuple[Ints, Ints]:
    """Return age and sex: a first person, a partner in most households of two or more, then children or others."""
    u, v, w = uniform(stream, "families", 3, HOUSEHOLDS)
    late = np.select([size == 1, size == 2], [0.42, 0.40], 0.03)
    old = u < late
    eldest = np.select([size <= 2, size == 3], [64.0, 58.0], 52.0)
    older: Floats = 65 + 26 * v * v
    younger: Floats = 20.0 + 4 * (size > 1) + (eldest - 23) * v
    head: Ints = np.floor(np.where(old, older, younger)).astype(np.int64)
    couple = w < np.select([size == 1, size == 2, size == 3], [0.0, 0.84, 0.86], 0.93)
    grandparent = (size >= 4) & (uniform(stream, "grandparents", HOUSEHOLDS) < 0.06)
    x, y, z = uniform(stream, "members", 3, PERSONS)
    last = place == size[of] - 1
    partner = (place == 1) & couple[of]
    elder = last & grandparent[of]
    child = (place > 0) & ~partner & ~elder
    first: Ints = head[of]
    age = np.where(partner, first + np.floor(9 * x - 5).astype(np.int64), first)
    apart = np.floor(20 + 16 * x + 2.5 * place).astype(np.int64)
    age = np.where(child, np.maximum(first - apart, np.floor(12 * y).astype(np.int64)), age)
    age = np.where(elder, first + np.floor(21 + 10 * x).astype(np.int64), age)
    male = (uniform(stream, "head", HOUSEHOLDS) < np.select([old & (size == 1), size == 1], [0.3, 0.52], 0.58))[of]
    own = np.where(partner, male ^ (y < 0.98), np.where(place == 0, male, z < 0.512))
    return np.clip(age, 0, TOP_AGE), own.astype(np.int64)


def _persons(stream: Stream, of: Ints, age: Ints, sex: Ints, urban: Ints) -> tuple[Ints, Ints, Ints]:
    """Return education, economic status and citizenship of each person."""
    band = np.select([age < CHILD, age < 20, age < 25, age < 35, age < 50, age < 60, age < PENSION], range(7), 7)
    schooled = np.array([[1.0, 0, 0, 0, 0], [0, 75, 25, 0, 0], [0, 18, 62, 18, 2], [0, 11, 43, 27, 19]])
    schooled = np.concatenate((schooled, [[0, 14, 47, 23, 16], [0, 19, 52, 18, 11], [0, 25, 52, 14, 9]]))
    schooled = np.concatenate((schooled, [[0, 43, 42, 9, 6]]))
    home = np.floor(3 * uniform(stream, "homes", HOUSEHOLDS)).astype(np.int64)  # partners are alike
    tilt = np.array([[1.0, 2.0, 1.1, 0.4, 0.25], [1, 1, 1, 1, 1], [1, 0.4, 0.9, 1.7, 2.4]])
    town = np.array([[1.0, 0.9, 0.9, 1.2, 1.6], [1, 1, 1, 1, 1], [1, 1.1, 1.1, 0.8, 0.6]])
    weights = (schooled[:, None, None] * tilt[:, None] * town).reshape(-1, len(_SCHOOLING))
    education = draw(stream, "education", weights, (band * 3 + home[of]) * 3 + urban)

    busy = [[1, 0, 0, 0, 0, 0, 0], [0, 22, 1, 5, 69, 0, 3], [0, 54, 2, 8, 31, 0, 5], [0, 78, 6, 6, 3, 0, 7]]
    busy += [[0, 79, 10, 5, 0, 0, 6], [0, 74, 11, 5, 0, 3, 7], [0, 42, 8, 4, 0, 38, 8], [0, 2, 2, 0, 0, 92, 4]]
    gender = np.array([[1, 0.92, 0.7, 1, 1.05, 1, 2.4], [1, 1.05, 1.3, 1.05, 0.95, 1, 0.5]])
    degree = np.array([[1.0] * 7, [1, 0.75, 0.8, 1.9, 1, 1, 1.7], [1] * 7, [1, 1.1, 1, 0.6, 1, 0.95, 0.7]])
    degree = np.concatenate((degree, [[1, 1.15, 1.3, 0.5, 1, 0.85, 0.5]]))
    weights = (np.array(busy, dtype=np.float64)[:, None, None] * gender[:, None] * degree).reshape(-1, len(_STATUS))
    status = draw(stream, "status", weights, (band * 2 + sex) * len(_SCHOOLING) + education)

    mix = np.array([[79.0, 9, 12], [88, 6, 6], [95, 3, 2]])
    first = np.flatnonzero(np.diff(of, prepend=-1))
    together = draw(stream, "citizen", mix, urban[first])
    alike = np.array([[96.0, 2, 2], [14, 82, 4], [16, 3, 81]])
    return education, status, draw(stream, "own citizen", alike, together[of])


def _hours(stream: Stream, status: Ints, sex: Ints) -> Ints:
    """Return usual weekly hours: full weeks, shorter ones of women above all, longer ones of the self-employed."""
    usual = np.array([10, 16, 20, 24, 30, 35, 38, 39, 40, 42, 45, 50, 60])
    weights = np.array([[2.0, 3, 9, 6, 12, 14, 16, 8, 22, 2, 4, 1, 1], [1, 1, 2, 1, 3, 10, 18, 10, 34, 5, 9, 4, 2]])
    longer = 1 + np.arange(len(usual)) / 6
    drawn = draw(stream, "hours", np.concatenate((weights, weights * longer**2)), sex + 2 * (status == 2))
    return np.where((status == 1) | (status == 2), usual[drawn], 0)


def _incomes(stream: Stream, age: Ints, education: Ints, status: Ints, hours: Ints) -> Ints:
    """Return yearly incomes, skewed to the right, in steps of ten."""
    u, v = uniform(stream, "incomes", 2, PERSONS)
    level = np.array([0.0, 360, 470, 620, 860])[education]
    career = 0.65 + 0.5 * np.clip(age - 20, 0, 35) / 35
    work = level * career * hours * np.where(status == 2, 1.1, 1.0)
    other = np.array([0.0, 0, 0, 9_500, 2_600, 17_500, 4_200])[status] * (1 + 0.25 * (education - 2))
    spread = 0.45 + 0.75 * u + 0.16 * v * v / (1.06 - v)
    income = np.floor((work + np.maximum(other, 0)) * spread / 10).astype(np.int64) * 10
    return np.where(age < CHILD, 0, income)


def _kind(size: Ints, children: Ints, seniors: Ints) -> Ints:
    """Return the type of each household from its members, those under 18 counted as children."""
    adults = size - children
    alone = np.where(seniors > 0, 1, 0)
    without = np.select([adults == 1, adults == 2], [alone, np.full(HOUSEHOLDS, 2)], 3)
    return np.where(children == 0, without, np.select([adults <= 1, adults == 2], [4, 5], 6))


def _tenure(stream: Stream, urban: Ints, equivalised: Ints, age: Ints) -> Ints:
    """Return the tenure of each household: owners rather in the country, mortgages rather of the middle-aged."""
    quarter = np.argsort(np.argsort(equivalised, kind="stable"), kind="stable") * 4 // HOUSEHOLDS
    stage = np.select([age < 35, age < 50, age < PENSION], [0, 1, 2], 3)
    stages = np.array([[5.0, 22, 60, 13], [12, 42, 37, 9], [34, 26, 31, 9], [62, 4, 26, 8]])
    places = np.array([[0.6, 0.8, 1.5, 1.4], [1, 1, 1, 1], [1.6, 1.3, 0.5, 0.5]])
    means = np.array([[0.7, 0.4, 1.2, 2.2], [0.9, 0.8, 1.1, 1.3], [1, 1.2, 1, 0.6], [1.2, 1.6, 0.8, 0.2]])
    weights = (stages[:, None, None] * places[:, None] * means).reshape(-1, len(_TENURE))
    return draw(stream, "tenure", weights, (stage * 3 + urban) * 4 + quarter)


def _weights(stream: Stream, names: _Names, size: Ints) -> Floats:
    """Return the weight of each household: that of its stratum, by the response of its cluster, to two decimals."""
    regions = np.array([9.0, 5, 3, 6, 4, 2, 3, 2])
    areas = np.array([[7.0, 2, 1], [3, 4, 3], [1, 3, 5], [5, 3, 2], [2, 4, 4], [1, 2, 5], [3, 3, 3], [1, 3, 4]])
    total = (regions[:, None] * areas / areas.sum(axis=1, keepdims=True)).ravel()
    total = POPULATION * total / total.sum()
    drawn = np.bincount(names.stratum, minlength=len(total))
    response = 0.8 + 0.4 * uniform(stream, "response", len(names.clusters))
    alone = np.where(size == 1, 1.08, 0.97)
    return np.floor(100 * (total / drawn)[names.stratum] * response[names.cluster] * alone + 0.5) / 100


def _poor(equivalised: Ints) -> Ints:
    """Return who lives on less than 60 % of the median."""
    middle = np.sort(equivalised)[len(equivalised) // 2]
    return (5 * equivalised < 3 * middle).astype(np.int64)


LEVELS = ("nuts1", "nuts2", "nuts3", "lau2")


def census(households: int = 10_000, seed: int = 2021) -> Data:
    """Return an invented census in which all columns are independent: for tests and measurements of time.

    Nobody in it exists. Households have `hid` (role unit), four levels of geography of 3, 15, 225 and 1,125 areas,
    `hsize` 1 to 6, `htype` and `hincome` 1 to 10; their members `gender`, `ageGroup` and `national`. Levels, names and
    numbers of categories are those of the example by which the record swapping of sdcMicro is explained.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.census()
    >>> data.n, data.units("hid").count, data.codebook.geography
    (35054, 10000, ('nuts1', 'nuts2', 'nuts3', 'lau2'))
    """
    whole("census", "households", households, least=1)
    whole("census", "seed", seed, least=0)
    draw = np.random.default_rng(seed)
    a, b, c, d = (draw.integers(1, top + 1, households) for top in (3, 5, 15, 5))
    size, kind, income = (draw.integers(1, top + 1, households) for top in (6, 10, 10))
    of = np.repeat(np.arange(households), size)
    gender, age, national = (draw.integers(1, top + 1, len(of)) for top in (2, 7, 5))
    areas = [a, 10 * a + b, 1_000 * a + 100 * b + c, 10 * (1_000 * a + 100 * b + c) + d]
    return Data(
        [
            Column(Variable("hid", "numeric", role="unit"), (of + 1).astype(np.float64), "Int64"),
            *(
                _coded(name, area[of], "nominal", role="geography", level=level)
                for level, (name, area) in enumerate(zip(LEVELS, areas, strict=True), start=1)
            ),
            _coded("hsize", size[of], "ordinal"),
            _coded("htype", kind[of], "nominal"),
            _coded("hincome", income[of], "ordinal"),
            _coded("gender", gender, "nominal"),
            _coded("ageGroup", age, "ordinal"),
            _coded("national", national, "nominal"),
        ]
    )


def _coded(name: str, values: Ints, kind: Kind, role: Role | None = None, level: int | None = None) -> Column:
    """Make a column of the whole numbers that occur."""
    found, codes = np.unique(values, return_inverse=True)
    variable = Variable(name, kind, tuple(map(int, found)), role=role, level=level)
    return Column(variable, codes.astype(code_dtype(len(found))), "Int64")


ISLAND_HOUSEHOLDS, WARDS = 3_000, 96
_DISTRICTS = ("N1", "N2", "N3", "S1", "S2", "S3")
_PARISHES, _WARDS_EACH = 4, 4
"""Parishes of a district, wards of a parish."""
_AGES = ("0-5", "6-15", "16-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75+")
_BIRTH = ("island", "mainland", "rest of Europe", "other continents")
_ISLAND_STATUS = ("child", "student", "employed", "self-employed", "unemployed", "retired", "other")
_ISLAND_TENURE = ("owner", "tenant", "social tenant")
_ISLAND_TYPES = ("one person", "couple", "couple with children", "one parent", "other")


def island() -> Data:
    """Return the invented census of an island: 3,000 households, their members, four levels of geography.

    Nobody in it exists. 2 regions hold 6 districts, 24 parishes and 96 wards of very uneven size; the number of a
    household begins with that of its ward, as in registers. Wards differ: in the port most people rent, live in small
    households, and one in five was born elsewhere; in the hills people are old, own their homes and were born on the
    island. So who is at risk depends on where: the only family from another continent of a parish, a student in a ward
    of pensioners. `hh_size`, `hh_type` and `tenure` belong to the household.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.island()
    >>> data.units("household").count, data.codebook.geography
    (3000, ('region', 'district', 'parish', 'ward'))
    """
    stream = Stream.of(1, "an invented census of an island of 96 wards")
    ward, port = _wards(stream)
    of_household = np.repeat(np.arange(WARDS), apportion(ward, ISLAND_HOUSEHOLDS - 3 * WARDS) + 3)
    town = port[of_household]
    kind = draw(stream, "types", _by_town([[24, 26, 24, 6, 3], [42, 26, 14, 9, 8]]), town)
    more = draw(
        stream,
        "sizes",
        np.array([[1.0, 0, 0, 0], [1, 0, 0, 0], [40, 44, 12, 4], [55, 32, 10, 3], [50, 30, 14, 6]]),
        kind,
    )
    size = np.array([1, 2, 3, 2, 2])[kind] + more
    stage = draw(stream, "stages", _by_town(_STAGES[0], _STAGES[1]), town * len(_ISLAND_TYPES) + kind)
    tenure = draw(stream, "tenures", _by_town([[82, 12, 6], [38, 44, 18]]), town)
    of = np.repeat(np.arange(ISLAND_HOUSEHOLDS), size)
    place = np.arange(len(of)) - (np.cumsum(size) - size)[of]
    age, adult = _ages(stream, kind, stage, of, place)
    sex = (uniform(stream, "sexes", len(of)) < 0.5).astype(np.int64)
    couple = adult & (place == 1) & np.isin(kind, (1, 2))[of]
    sex[couple] = 1 - sex[np.flatnonzero(couple) - 1]
    home = draw(stream, "origins", _by_town([[91, 6, 2, 1], [62, 20, 11, 7]]), town)
    alike = np.array([[96.0, 3, 1, 0.2], [22, 74, 3, 1], [18, 6, 74, 2], [20, 4, 3, 73]])
    birth = draw(stream, "births", alike, home[of])
    status = draw(stream, "statuses", _WORK, age)
    number = np.arange(ISLAND_HOUSEHOLDS) - np.searchsorted(of_household, np.arange(WARDS))[of_household] + 1
    names = _area_names()
    return Data(
        [
            numbered("household", ((1_001 + of_household) * 1_000 + number)[of], role="unit"),
            *(
                _level(name, level, of_household[of] // (WARDS // len(areas)), areas)
                for level, (name, areas) in enumerate(names.items(), start=1)
            ),
            coded("hh_size", (size - 1)[of], tuple(range(1, int(size.max()) + 1)), "ordinal"),
            coded("hh_type", kind[of], _ISLAND_TYPES),
            coded("tenure", tenure[of], _ISLAND_TENURE),
            coded("age", age, _AGES, "ordinal"),
            coded("sex", sex, ("female", "male")),
            coded("birth", birth, _BIRTH),
            coded("status", status, _ISLAND_STATUS),
        ]
    )


_STAGES = (
    [[6.0, 20, 74], [4, 30, 66], [38, 60, 2], [40, 56, 4], [10, 45, 45]],
    [[42.0, 38, 20], [30, 40, 30], [48, 50, 2], [46, 51, 3], [50, 38, 12]],
)
"""Of households of each type in the hills and in the port: young, in the middle, old."""
_WORK = np.array(
    [
        *([1.0, 0, 0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0, 0, 0], [0.0, 58, 32, 1, 5, 0, 4], [0.0, 5, 76, 7, 6, 0, 6]),
        *([0.0, 1, 76, 11, 5, 0, 7], [0.0, 0, 74, 13, 5, 1, 7], [0.0, 0, 56, 12, 4, 20, 8], [0.0, 0, 3, 3, 0, 92, 2]),
        [0.0, 0, 0, 1, 0, 98, 1],
    ]
)


def _by_town(hills: object, port: object | None = None) -> Floats:
    """Return the weights of wards in the hills and of those in the port, one below the other."""
    both = [hills] if port is None else [hills, port]
    return np.concatenate([np.array(each, dtype=np.float64) for each in both])


def _wards(stream: Stream) -> tuple[Floats, Ints]:
    """Return the relative size of each ward, and whether it is in the port (1) or in the hills (0)."""
    u, v = uniform(stream, "wards", 2, WARDS)
    port = (np.arange(WARDS) % (WARDS // len(_DISTRICTS)) < 3 + 4 * (np.arange(WARDS) < WARDS // 6)).astype(np.int64)
    return (0.25 + u) / (0.3 + v) * (1 + port), port


def _ages(stream: Stream, kind: Ints, stage: Ints, of: Ints, place: Ints) -> tuple[Ints, Flags]:
    """Return the age group of each person, and who is an adult of the household."""
    grown = np.array([1, 2, 2, 1, 9])[kind]
    adult = place < grown[of]
    heads = np.array([[18.0, 46, 36, 0, 0, 0, 0], [0, 2, 22, 32, 34, 10, 0], [0, 0, 0, 0, 6, 50, 44]])
    head = 2 + draw(stream, "first ages", heads, stage)
    step = draw(stream, "steps", np.array([[20.0, 60, 20]]), np.zeros(len(of), dtype=np.int64)) - 1
    grown_up = np.where(place == 0, head[of], np.clip(head[of] + step, 2, len(_AGES) - 1))
    child = draw(stream, "children", np.array([[52.0, 38, 10], [14, 50, 36], [2, 18, 80]]), stage[of])
    return np.where(adult, grown_up, child), adult


def _area_names() -> dict[str, tuple[str, ...]]:
    """Return the names of the areas of each level, in order: N, N1, N1-1, N1-1a."""
    parishes = tuple(f"{district}-{number + 1}" for district in _DISTRICTS for number in range(_PARISHES))
    wards = tuple(parish + letter for parish in parishes for letter in "abcd"[:_WARDS_EACH])
    return {"region": ("N", "S"), "district": _DISTRICTS, "parish": parishes, "ward": wards}


def _level(name: str, level: int, area: Ints, areas: tuple[str, ...]) -> Column:
    variable = Variable(name, "nominal", areas, role="geography", level=level)
    return Column(variable, area.astype(code_dtype(len(areas))))


def coded(
    name: str, codes: Ints, values: tuple[str | int, ...], kind: Kind = "nominal", role: Role | None = None
) -> Column:
    """Make a column of codes and its categories in order."""
    dtype = "String" if isinstance(values[0], str) else "Int64"
    return Column(Variable(name, kind, tuple(values), role=role), codes.astype(code_dtype(len(values))), dtype)


def numbered(name: str, values: Codes, role: Role | None = None, dtype: str = "Int64") -> Column:
    """Make a column of numbers."""
    return Column(Variable(name, "numeric", role=role), values.astype(np.float64), dtype)


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


def draw(stream: Stream, name: str, weights: Floats, of: Ints) -> Ints:
    """Draw a category for every record from the weights of its group; compared as whole numbers."""
    top = np.floor(weights * (2.0**20 / weights.max(axis=1, keepdims=True))).astype(np.int64).cumsum(axis=1)
    drawn = (stream.sub("draw " + name).words(len(of)).astype(np.int64) * top[of, -1]) >> 32
    code = np.zeros(len(of), dtype=np.int64)
    for category in range(top.shape[1] - 1):
        code += drawn >= top[of, category]
    return code
