"""Small weighted files and controlled swaps on them, with everything that the method can be asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import quadrille as qd
from controlled_oracle import target_count
from oracles import records
from quadrille.data import Column, Data
from strategies import NAMES, WEIGHTS, files, numbers, seeds

SHARES = st.one_of(st.sampled_from([0.0, 0.1, 0.125, 0.145, 0.25, 0.35, 0.49]), st.floats(0, 0.499))


def flag(name: str, values: object) -> Column:
    return Column(qd.Variable(name, "nominal", (False, True)), np.asarray(values, dtype=np.uint8), dtype="Boolean")


def is_missing(data: Data, name: str) -> np.ndarray:
    column = data[name]
    return column.values >= len(column.variable.categories)


def alike(data: Data, names: Sequence[str]) -> list[tuple[int, ...]]:
    """The codes of each record, all kinds of missing as one category, the last."""
    codes = (np.minimum(data[name].values, len(data[name].variable.categories)).tolist() for name in names)
    return list(zip(*codes, strict=True))


def imputable(data: Data, boundary: Sequence[str], names: Sequence[str]) -> bool:
    """Whether every zone that lacks a value of a variable also has one."""
    zone = records(data, boundary)
    for name in names:
        missing = is_missing(data, name)
        known = {zone[i] for i in np.flatnonzero(~missing)}
        if any(zone[i] not in known for i in np.flatnonzero(missing)):
            return False
    return True


def flags_of(data: Data, name: str | None) -> np.ndarray:
    return np.zeros(data.n, dtype=bool) if name is None else data[name].values == 1


def asked_per_stratum(data: Data, recipe: qd.ControlledSwap) -> dict[object, tuple[int, int]]:
    """Per stratum the number of targets by share, halves up, without the never records, and the must records."""
    must, never = flags_of(data, recipe.must), flags_of(data, recipe.never)
    rows: dict[object, list[int]] = defaultdict(list)
    for i, key in enumerate(records(data, recipe.stratum)):
        rows[key].append(i)
    asked = {}
    for key, members in rows.items():
        share = recipe.targets if isinstance(recipe.targets, float) else float(data[recipe.targets].values[members[0]])
        asked[key] = (target_count(share, int((~never[members]).sum())), int(must[members].sum()))
    return asked


@dataclass(frozen=True)
class Case:
    """A file, a controlled swap that can be drawn on it, and its plan."""

    data: Data
    recipe: qd.ControlledSwap
    plan: qd.Plan

    @property
    def pairs(self) -> list[list[int]]:
        return self.plan.pairs.tolist()

    @property
    def targets(self) -> set[int]:
        return set(self.plan.details.rows["targets"].tolist())


@st.composite
def designs(draw: st.DrawFn, **options: object) -> tuple[Data, dict[str, object]]:
    """A file and all parameters but the seed; at least one target, and every missing value can be dealt with."""
    options = {"weights": (None, *WEIGHTS), "wide": False, "least": 2, "most": 5, "largest": 40, **options}
    data = draw(files(**options))
    coded = [name for name in NAMES if name in data.columns]
    free = [name for name in data.columns if name != data.weight]
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    swap = draw(st.lists(st.sampled_from(coded), min_size=1, max_size=3, unique=True))
    rest = [name for name in free if name not in swap]
    boundary = draw(st.lists(st.sampled_from(rest), max_size=2, unique=True)) if rest else []
    boundary = [name for name in boundary if name in coded]
    loose = [name for name in rest if name not in boundary]
    linked: dict[str, list[str]] = defaultdict(list)
    for name in draw(st.lists(st.sampled_from(loose), max_size=3, unique=True)) if loose else []:
        linked[draw(st.sampled_from(swap))].append(name)
    few = st.lists(st.sampled_from(free), max_size=2, unique=True)
    made: dict[str, object] = {
        "swap": swap,
        "boundary": boundary,
        "linked": dict(linked),
        "stratum": draw(few),
        "sort": draw(few),
        "bias": draw(st.sampled_from([None, *swap, *coded])),
        "method": draw(st.sampled_from(["standard", "balanced"])),
        "matching": draw(st.sampled_from(["greedy", "optimal"])),
        "on_missing": draw(st.sampled_from(["impute", "category"])),
    }
    if not imputable(data, boundary, [*swap, *([made["bias"]] if made["bias"] else [])]):
        made["on_missing"] = "category"
    columns = [data[name] for name in data.columns]
    columns += _extras(draw, data, made, random)
    data = Data(columns, weight=data.weight)
    asked = asked_per_stratum(data, qd.ControlledSwap(**made))
    assume(any(share or must for share, must in asked.values()))
    return data, made


def _extras(draw: st.DrawFn, data: Data, made: dict[str, object], random: np.random.Generator) -> list[Column]:
    """Columns for size, must, never and the share of targets, each at times; the parameters are added to `made`."""
    columns = []
    role = random.choice(3, size=data.n, p=[0.7, 0.15, 0.15])
    for name, code in (("must", 1), ("never", 2)):
        if draw(st.booleans()):
            columns.append(flag(name, role == code))
            made[name] = name
    if draw(st.booleans()):
        spread = draw(st.sampled_from([0.5, 2.0, 20.0]))
        columns.append(numbers("risk", random.lognormal(0, spread, data.n)))
        made["size"] = "risk"
    if draw(st.booleans()):
        made["targets"] = draw(SHARES)
    else:
        keys = records(data, made["stratum"])
        share = {key: draw(SHARES) for key in dict.fromkeys(keys[:3])}
        columns.append(numbers("share", [share.get(key, 0.3) for key in keys]))
        made["targets"] = "share"
    return columns


@st.composite
def controlled(draw: st.DrawFn, *, fixed: dict[str, object] | None = None, **options: object) -> Case:
    data, made = draw(designs(**options))
    made |= fixed or {}
    recipe = qd.ControlledSwap(**made, seed=draw(seeds))
    return Case(data, recipe, recipe.plan(data))
