"""Small files with small cells, and designed pairs of them with everything that the method can be asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import quadrille as qd
from controlled_strategies import flag
from quadrille.data import Column, Data
from quadrille.swap.designed.pairs import DesignedPairs
from strategies import column, numbers, seeds

KEYS = ("A", "B", "C", "D")
LOSSES = ("hellinger", "total_variation", "effective_swap_rate", "chi_square")


@dataclass(frozen=True)
class Case:
    """A file, a designed swap that can be drawn on it, and its plan."""

    data: Data
    recipe: DesignedPairs
    plan: qd.Plan

    @property
    def facts(self) -> dict[str, object]:
        assert self.plan.details is not None
        return dict(self.plan.details.facts)

    @property
    def pairs(self) -> list[tuple[tuple[str, ...], int, int]]:
        """All pairs: the columns that they exchange and the two records."""
        listed = [(move.columns, move.pairs) for move in self.plan.moves]
        return [(columns, int(one), int(other)) for columns, pairs in listed for one, other in pairs]


def small_file(draw: st.DrawFn, *, keys: int, weighted: bool, never: bool, largest: int) -> Data:
    """Uneven nominal variables of 2 to 4 categories, at times a weight and a flag."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(12, largest))
    columns: list[Column] = []
    for name in KEYS[:keys]:
        size = draw(st.integers(2, 4))
        share = random.dirichlet(np.full(size, draw(st.sampled_from([0.7, 2.0, 8.0]))))
        columns.append(column(name, random.choice(size, n, p=share), size))
    if never:
        columns.append(flag("off", random.random(n) < draw(st.sampled_from([0.1, 0.5]))))
    if weighted:
        kind = draw(st.sampled_from(["whole", "lognormal", "zeros"]))
        weight = random.lognormal(0, 1, n) if kind == "lognormal" else random.integers(kind == "whole", 5, n) * 1.0
        weight[0] = 1.0
        columns.append(numbers("w", weight, role="weight"))
    return Data(columns)


def some(draw: st.DrawFn, names: list[str], least: int, most: int) -> list[str]:
    if not names:
        return []
    return draw(st.lists(st.sampled_from(names), min_size=least, max_size=most, unique=True))


def loss_of(draw: st.DrawFn, keys: list[str]) -> str | dict[str, float]:
    """One loss or a weighted sum, each of the whole table or of a margin."""

    def one() -> str:
        name = draw(st.sampled_from(LOSSES))
        margin = some(draw, keys, 0, len(keys))
        return f"{name}({'*'.join(margin)})" if margin else name

    if draw(st.booleans()):
        return one() if draw(st.booleans()) else "hellinger"
    return {one(): draw(st.sampled_from([0.5, 1.0, 5.0])) for _ in range(draw(st.integers(1, 3)))}


@st.composite
def designs(
    draw: st.DrawFn, *, several: bool | None = None, weighted: bool | None = None, largest: int = 120
) -> tuple[Data, dict[str, object]]:
    """A file and all parameters but the seed; `several` decides whether several tables are protected."""
    keys = list(KEYS[: draw(st.integers(3 if several else 2, 4))])
    never = draw(st.integers(0, 3)) == 0
    weighted = draw(st.booleans()) if weighted is None else weighted
    data = small_file(draw, keys=len(keys), weighted=weighted, never=never, largest=largest)
    several = draw(st.booleans()) if several is None else several
    several = several and len(keys) > 2
    count = 2 if several else draw(st.integers(0, 1))
    tables = [some(draw, keys, 2, len(keys)) for _ in range(count)]
    if several and frozenset(tables[0]) == frozenset(tables[1]):
        tables[1] = tables[1][:-1] if len(tables[1]) > 2 else [*tables[1], next(k for k in keys if k not in tables[1])]
    inside = list(dict.fromkeys(name for table in tables for name in table)) or keys
    fixed = some(draw, keys, 0, 2) if draw(st.booleans()) else []
    loose = [name for name in inside if name not in fixed]
    assume(loose)
    swap = some(draw, loose, 1, len(loose)) if draw(st.booleans()) else []
    moving = swap or loose
    united = some(draw, moving, 2, 2) if len(moving) > 1 and draw(st.integers(0, 2)) == 0 else []
    if any(0 < len(set(united) & set(table)) < 2 for table in tables):
        united = []
    split = draw(st.integers(0, len(fixed)))
    made: dict[str, object] = {
        "swap": swap,
        "tables": tables,
        "n": draw(st.integers(2, 5)),
        "share": draw(st.sampled_from([1.0, 1.0, 0.5, 0.1])),
        "choose": draw(st.sampled_from(["random", "cheapest"])),
        "treatment": draw(st.sampled_from(["cheaper", "camouflage", "empty", "either"])),
        "loss": loss_of(draw, keys),
        "spread": draw(st.sampled_from([0.0, 0.1, 1.0])),
        "price": draw(st.sampled_from([None, None, 0.0, 0.05, 1.0, 20.0])),
        "improve": draw(st.booleans()),
        "together": [united] if united else [],
        "same": fixed[:split],
        "different": fixed[split:],
        "never": "off" if never else None,
        "max_pairs": draw(st.sampled_from([None, None, 1, 3, 10])),
    }
    return data, made


@st.composite
def designed(draw: st.DrawFn, *, fixed: dict[str, object] | None = None, **options: object) -> Case:
    """A case that can be drawn; files in which no cell can give, or nothing can move, are left out."""
    data, made = draw(designs(**options))
    recipe = DesignedPairs(**{**made, **(fixed or {})}, seed=draw(seeds))
    try:
        return Case(data, recipe, recipe.plan(data))
    except qd.InfeasibleError:
        assume(False)
        raise
