"""Random files of households in nested areas, and designs of targeted swaps for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import quadrille as qd
from quadrille.data import Column, Data
from quadrille.errors import QuadrilleError
from strategies import column, numbers

RULE = "kind=kind0 & low=low1"
"""No person of the first kind may come to live in the second lowest area."""


@dataclass(frozen=True)
class Town:
    """A file, with what the tests know of it by household: areas by level, class columns, and who may move."""

    data: Data
    of: np.ndarray
    areas: np.ndarray
    size: np.ndarray
    kind: np.ndarray
    never: np.ndarray
    known: np.ndarray
    persons: np.ndarray

    @property
    def count(self) -> int:
        """Number of households."""
        return len(self.size)


def town(random: np.random.Generator, households: int, *, most: int = 4, missing: bool = False) -> Town:
    """Make persons in households whose rows are scattered; `low` lies in `mid`, `mid` in `top`."""
    size = random.integers(1, most + 1, households)
    rows = random.permutation(np.repeat(np.arange(households), size))
    _, first, of = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))  # households are numbered as they appear
    of, size = order[of], size[np.argsort(first)]
    lowest = random.integers(0, 8, households)
    areas = np.stack([lowest // 4, lowest // 2, lowest])
    kind = random.integers(0, 3, households)
    never = random.random(households) < 0.05
    known = np.ones(households, dtype=bool)
    low = lowest.copy()
    if missing:
        known = random.random(households) > 0.1
        low = np.where(known, lowest, 8)
    persons = random.integers(0, random.integers(2, 6), len(of))
    ids = random.permutation(10 * households)[:households] + 2**53
    columns = [
        column("hh", np.argsort(np.argsort(ids))[of], households),
        *(
            _level(name, values[of], top, level)
            for level, (name, values, top) in enumerate((("top", areas[0], 2), ("mid", areas[1], 4)), start=1)
        ),
        _lowest(low[of], missing=missing),
        column("size", (size - 1)[of], most, kind="ordinal"),
        column("hhkind", kind[of], 3),
        numbers("never", never[of].astype(float)),
        column("kind", persons, 6),
        numbers("age", random.integers(0, 90, len(of)).astype(float)),
    ]
    columns[0] = replace(columns[0], variable=replace(columns[0].variable, role="unit"))
    return Town(Data(columns), of, areas, size, kind, never, known, persons)


def _level(name: str, values: np.ndarray, top: int, level: int) -> Column:
    made = column(name, values, top)
    return replace(made, variable=replace(made.variable, role="geography", level=level))


def _lowest(values: np.ndarray, *, missing: bool) -> Column:
    made = _level("low", np.minimum(values, 7), 8, 3)
    return replace(made, values=values.astype(np.uint8), nullable=True) if missing else made


@st.composite
def towns(draw: st.DrawFn) -> Town:
    """Small towns of all kinds."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return town(random, draw(st.integers(5, 60)), missing=draw(st.booleans()))


PROFILES: tuple[list[list[str]], ...] = (
    *([["size"]], [["size", "hhkind"], ["size"]], [["hhkind"], []]),
    *([["size", "top"], ["size"]], [[]]),
)


@st.composite
def designs(draw: st.DrawFn) -> dict[str, Any]:
    """Parameters of targeted swaps, but for the risk."""
    near = draw(st.sampled_from(["any", "parent", 1, 3, "loss"]))
    return {
        "similar": draw(st.sampled_from(PROFILES)),
        "k": draw(st.integers(1, 4)),
        "rate": draw(st.sampled_from([0.0, 0.1, 0.3, 0.77, 1.0])),
        "levels": draw(st.sampled_from([["top", "mid", "low"], ["mid", "low"], ["low"], ["top", "low"]])),
        "mode": draw(st.sampled_from(["floor", "floor", "cap"])),
        "quota": draw(st.sampled_from(["area", "initiated"])),
        "donors": draw(st.sampled_from(["risk", "at-risk-first"])),
        "near": near,
        "loss": {"hellinger(low*kind)": 1.0, "chi_square(top*size)": 0.5} if near == "loss" else None,
        "donors_drawn": 3,
        "retry": draw(st.booleans()),
        "never": draw(st.sampled_from([None, "never"])),
        "rules": draw(st.sampled_from([[], [], [RULE]])),
        "carry": draw(st.sampled_from([[], ["hhkind"]])),
        "seed": draw(st.integers(0, 2**32)),
    }


def recipe_of(design: dict[str, Any]) -> qd.TargetedSwap:
    """Make the recipe of a design."""
    return qd.TargetedSwap(**{"risk": ["kind"], **design})


REFUSALS = ("nothing to swap", "no pair at all", "no partner", "one area", "Every record meets")


def is_refusal(error: QuadrilleError) -> bool:
    """Whether a design asks for what a file cannot give: no test may pass over any other error."""
    return not isinstance(error, qd.testing.LawError) and any(words in str(error) for words in REFUSALS)
