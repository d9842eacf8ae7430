"""Small files, recipes and conditions for property tests, built without frames or readers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import quadrille as qd
from quadrille.data import Column, Data, code_dtype

NAMES = ("A", "B", "Age group", "D", "E", "F", "G", "H")
WEIGHTS = ("integers", "decimals", "floats", "zeros", "extreme")


def column(name: str, codes: object, size: int = 0, *, kind: str = "nominal", nullable: bool = False) -> Column:
    """A categorical column whose categories are named after it; the last code is the empty field if nullable."""
    values = np.asarray(codes)
    size = size or int(values.max(initial=0)) + 1 - nullable
    variable = qd.Variable(name, kind, tuple(f"{name}{i}" for i in range(size)))
    return Column(variable, values.astype(code_dtype(size + 1)), nullable=nullable)


def numbers(name: str, values: object, *, role: str | None = None) -> Column:
    return Column(qd.Variable(name, "numeric", role=role), np.asarray(values, dtype=np.float64), dtype="Float64")


def file_of(weight: object = None, /, **codes: object) -> Data:
    """A file of categorical columns given as codes, with an optional weight."""
    columns = [column(name, values) for name, values in codes.items()]
    if weight is not None:
        columns.append(numbers("w", weight, role="weight"))
    return Data(columns)


def rows_of(data: Data, rows: object) -> Data:
    """Some rows of a file, in the order given."""
    picked = [replace(data[name], values=data[name].values[np.asarray(rows)]) for name in data.columns]
    return Data(picked, weight=data.weight)


@st.composite
def _coded(draw: st.DrawFn, name: str, n: int, random: np.random.Generator, *, wide: bool) -> Column:
    categories = draw(st.integers(1000, 5000)) if wide else draw(st.integers(1, 6))
    missing = draw(st.sampled_from([0, 0, 0, 1, 2]))
    nullable = draw(st.sampled_from([False, False, True]))
    whole = draw(st.booleans())
    labels = tuple(f"label {i}" for i in range(categories)) if draw(st.booleans()) else ()
    variable = qd.Variable(
        name,
        draw(st.sampled_from(["nominal", "ordinal"])),
        tuple(range(categories)) if whole else tuple(f"{name}{i}" for i in range(categories)),
        labels=labels,
        missing=tuple(range(-missing, 0)) if whole else tuple("?!"[:missing]),
    )
    size = categories + missing + nullable
    used = random.integers(0, size, size=min(size, 12)) if wide else np.arange(size)
    shares = random.dirichlet(np.full(len(used), draw(st.sampled_from([0.3, 1.0, 5.0]))))
    codes = random.choice(used, size=n, p=shares).astype(code_dtype(size))
    return Column(variable, codes, nullable=nullable)


def _weights(kind: str, n: int, random: np.random.Generator) -> np.ndarray:
    if kind == "integers":
        return random.integers(1, 1000, n).astype(float)
    if kind == "decimals":
        return random.integers(1, 100_000, n) / 100
    if kind == "floats":
        return random.lognormal(0, 3, n)
    if kind == "extreme":
        return 10.0 ** random.uniform(-8, 8, n)
    values = random.integers(0, 3, n) * 12.34
    values[random.integers(n)] = 0.5
    return values


@st.composite
def files(
    draw: st.DrawFn,
    *,
    least: int = 1,
    most: int = 8,
    weights: tuple[str | None, ...] = (None, None, None, *WEIGHTS),
    wide: bool = True,
    numeric: bool = True,
    largest: int = 60,
) -> Data:
    """2 to `largest` records, `least` to `most` categorical columns, at times a numeric one and a weight."""
    n = draw(st.integers(2, largest))
    count = draw(st.integers(least, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    huge = draw(st.integers(0, 4 * count)) if wide else count
    columns = [draw(_coded(name, n, random, wide=i == huge)) for i, name in enumerate(NAMES[:count])]
    if numeric and draw(st.integers(0, 3)) == 0:
        values = random.integers(0, 5, n) / 2
        values[random.random(n) < 0.2] = np.nan
        columns.append(numbers("x", values))
    kind = draw(st.sampled_from(weights))
    if kind is not None:
        columns.append(numbers("w", _weights(kind, n, random), role="weight"))
    return Data(columns)


seeds = st.one_of(st.integers(0, 2**70), st.binary(min_size=32, max_size=32).map(bytes.hex))


@st.composite
def recipes(draw: st.DrawFn, data: Data, *, swappable: tuple[str, ...] | None = None) -> qd.RandomSwap:
    """A random swap of some columns under some constraints; more pairs may be asked for than there are."""
    free = [name for name in data.columns if name != data.weight]
    swap = draw(st.lists(st.sampled_from(swappable or free), min_size=1, max_size=3, unique=True))
    rest = [name for name in free if name not in swap]
    chosen = draw(st.lists(st.sampled_from(rest), max_size=2, unique=True)) if rest else []
    split = draw(st.integers(0, len(chosen)))
    if draw(st.booleans()):
        amount = {"pairs": draw(st.integers(1, max(1, data.n // 2)))}
    else:
        amount = {"rate": draw(st.floats(min(1.0, 1.5 / data.n), 1.0))}
    return qd.RandomSwap(
        swap,
        same=chosen[:split],
        different=chosen[split:],
        differ=draw(st.sampled_from(["all", "any", "none"])),
        order=draw(st.sampled_from(["together", "together", "one-by-one"])),
        sampler=draw(st.sampled_from(["first-uniform", "pair-uniform"])),
        seed=draw(seeds),
        **amount,
    )


def feasible(recipe: qd.RandomSwap, data: Data) -> qd.RandomSwap:
    """The recipe itself or, when it asks for too much, the one for the maximum that the error names."""
    for _ in range(len(recipe.swap) + 1):
        try:
            recipe.plan(data)
            return recipe
        except qd.InfeasibleError as error:
            assert error.exact, "a small file has an exact maximum"
            assert 0 <= error.maximum < error.asked
            assume(error.maximum > 0)
            recipe = replace(recipe, rate=None, pairs=error.maximum)
    raise AssertionError("the maximum that the error names cannot be drawn")


@dataclass(frozen=True)
class Case:
    """A file, a recipe that can be drawn on it, and its plan."""

    data: Data
    recipe: qd.RandomSwap
    plan: qd.Plan


@st.composite
def cases(draw: st.DrawFn, *, swappable: tuple[str, ...] | None = None, **options: object) -> Case:
    data = draw(files(**options))
    recipe = feasible(draw(recipes(data, swappable=swappable)), data)
    return Case(data, recipe, recipe.plan(data))


def coded(data: Data) -> list[str]:
    return [variable.name for variable in data.codebook if variable.coded]


@dataclass(frozen=True)
class Restriction:
    """A condition as text, and the same condition as plain values: column -> values that meet it."""

    text: str
    allowed: dict[str, set[object]]


@st.composite
def restrictions(draw: st.DrawFn, data: Data) -> Restriction:
    """One or two conditions on categorical columns, by value or by label, positive or negated."""
    chosen = draw(st.lists(st.sampled_from(coded(data)), min_size=1, max_size=2, unique=True))
    texts, allowed = [], {}
    for name in chosen:
        variable = data[name].variable
        everything = [*variable.values, *([None] if data[name].nullable else [])]
        few = st.sampled_from(everything[:6] + everything[-3:])
        picked = draw(st.lists(few, min_size=1, max_size=3, unique=True))
        negated = draw(st.booleans())
        labels = [_written(variable, value, by_label=draw(st.booleans())) for value in picked]
        texts.append(f"`{name}`{'!=' if negated else '='}{'|'.join(labels)}")
        allowed[name] = {value for value in everything if (value in picked) != negated}
    return Restriction(" & ".join(texts), allowed)


def _written(variable: qd.Variable, value: object, *, by_label: bool) -> str:
    if by_label and variable.labels and value in variable.categories:
        return f"'{variable.labels[variable.categories.index(value)]}'"
    return "''" if value is None else f"'{value}'"
