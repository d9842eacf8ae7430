"""Invented censuses of households in four levels of geography: of independent columns, and of a small country."""

from __future__ import annotations

import numpy as np

from quadrille.codebook import Kind, Role, Variable
from quadrille.data import Column, Data, Flags, Floats, Ints, code_dtype
from quadrille.datasets.drawing import apportion, coded, draw, numbered, uniform
from quadrille.params import whole
from quadrille.randomness import Stream

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
_STATUS = ("child", "student", "employed", "self-employed", "unemployed", "retired", "other")
_TENURE = ("owner", "tenant", "social tenant")
_TYPES = ("one person", "couple", "couple with children", "one parent", "other")


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
    stage = draw(stream, "stages", _by_town(_STAGES[0], _STAGES[1]), town * len(_TYPES) + kind)
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
            coded("hh_type", kind[of], _TYPES),
            coded("tenure", tenure[of], _TENURE),
            coded("age", age, _AGES, "ordinal"),
            coded("sex", sex, ("female", "male")),
            coded("birth", birth, _BIRTH),
            coded("status", status, _STATUS),
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
