"""Small files with nested levels of geography, and every recipe on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import quadrille as qd
from quadrille.data import Column, Data, code_dtype
from quadrille.errors import InfeasibleError, ParameterError
from strategies import column, numbers, seeds

LEVELS = ("state", "county", "tract")


def areas_within(finer: Column, coarser: Column) -> np.ndarray:
    """The code of the coarser area that each area of the finer level lies in, -1 for those without records.

    All missing codes of the coarser level count as one, the first after its areas.
    """
    areas = np.full(finer.size, -1, dtype=np.int64)
    areas[finer.values] = coarser.one_missing
    return areas[: finer.valid]


def area(name: str, codes: object, size: int, level: int | None, *, nullable: bool = False) -> Column:
    """A column of areas; the last code is the empty field if nullable."""
    variable = qd.Variable(name, "ordinal", tuple(f"{name}{i}" for i in range(size)), role="geography", level=level)
    return Column(variable, np.asarray(codes).astype(code_dtype(size + nullable)), nullable=nullable)


@st.composite
def nested_files(draw: st.DrawFn, *, largest: int = 40, missing: bool = True, weights: bool = True) -> Data:
    """A file of two or three nested levels in any column order, two other variables, at times a weight."""
    n = draw(st.integers(4, largest))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = LEVELS[draw(st.integers(0, 1)) :]
    sizes = np.cumsum([draw(st.integers(1, 4)) for _ in names])  # areas of a level, coarsest first; some stay empty
    codes = [random.integers(0, sizes[-1], n)]
    for areas in sizes[-2::-1]:
        lies_in = random.integers(0, areas, int(codes[0].max()) + 1)
        codes.insert(0, lies_in[codes[0]])
    empty = random.random(n) < 0.15 if missing and draw(st.booleans()) else np.zeros(n, dtype=bool)
    codes[-1] = np.where(empty, sizes[-1], codes[-1])  # the finest level may be unknown
    places = zip(names, codes, sizes, strict=True)
    areas = [
        area(name, values, int(size), level, nullable=bool((values == size).any()))
        for level, (name, values, size) in enumerate(places, start=draw(st.integers(1, 3)))
    ]
    others = [column("A", random.integers(0, 3, n), 3, kind="ordinal"), column("B", random.integers(0, 2, n), 2)]
    weight = [numbers("w", random.integers(1, 5, n), role="weight")] if weights and draw(st.booleans()) else []
    return Data(draw(st.permutations([*areas, *others, *weight])))


@st.composite
def swaps(draw: st.DrawFn, data: Data) -> qd.Recipe:
    """Any recipe that moves a level of geography, under some constraints."""
    levels = list(data.codebook.geography)
    swap = draw(st.lists(st.sampled_from(levels), min_size=1, max_size=2, unique=True))
    swap += draw(st.lists(st.sampled_from(["A", "B"]), max_size=1))
    rest = [name for name in (*levels, "A", "B") if name not in swap]
    agree = draw(st.lists(st.sampled_from(rest), max_size=2, unique=True)) if rest else []
    kind = draw(st.sampled_from(["random", "permutation", "controlled"]))
    if kind == "permutation":
        form = draw(st.sampled_from(["pairs", "cycles"]))
        moves = "moves" if data.weight and draw(st.booleans()) else "stays"
        return qd.PermutationSwap(swap, rate=1.0, kind=form, within=agree, weight=moves, seed=draw(seeds))
    if kind == "controlled":
        swap = [name for name in swap if name != "B"]
        agree = [name for name in agree if name != "B"]
        linked = {swap[0]: ["B"]} if draw(st.booleans()) else None
        options = {"method": draw(st.sampled_from(["standard", "balanced"])), "on_missing": "category"}
        return qd.ControlledSwap(swap, targets=0.3, boundary=agree, linked=linked, seed=draw(seeds), **options)
    split = draw(st.integers(0, len(agree)))
    return qd.RandomSwap(
        swap,
        pairs=draw(st.integers(1, data.n // 2)),
        same=agree[:split],
        different=agree[split:],
        differ=draw(st.sampled_from(["all", "any", "none"])),
        order=draw(st.sampled_from(["together", "one-by-one"])),
        sampler=draw(st.sampled_from(["first-uniform", "pair-uniform"])),
        seed=draw(seeds),
    )


def drawable(recipe: qd.Recipe, data: Data) -> tuple[qd.Recipe, qd.Plan]:
    """The recipe, asking for less where the data do not allow as much, and its plan."""
    for _ in range(3):
        try:
            return recipe, recipe.plan(data)
        except InfeasibleError as error:
            assume(isinstance(recipe, qd.RandomSwap) and error.maximum > 0)
            recipe = replace(recipe, pairs=error.maximum)
        except ParameterError:
            assume(False)
    raise AssertionError("the maximum that the error names cannot be drawn")


def places(data: Data) -> list[tuple[int, ...]]:
    """The areas of each record, the coarsest first."""
    return list(zip(*(data[name].values.tolist() for name in data.codebook.geography), strict=True))
