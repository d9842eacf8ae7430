"""Small files and designed swaps that keep tables, with everything that the method can be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import quadrille as qd
from controlled_strategies import flag
from oracles import records
from quadrille.data import Column, Data
from quadrille.errors import InputError, ParameterError
from strategies import column, numbers, seeds

KEYS = ("A", "B", "C", "D", "E")
RULES = ("A=A0 & B=B1", "C=C0 & B=B0", "A=A1 & other=other1")
Cell = tuple[object, ...]


@dataclass(frozen=True)
class Exact:
    """A file, a designed swap that keeps tables, its plan and what must not change."""

    data: Data
    recipe: qd.DesignedSwap
    plan: qd.Plan

    @cached_property
    def after(self) -> Data:
        return self.plan.apply(self.data)

    @property
    def facts(self) -> dict[str, object]:
        assert self.plan.details is not None
        return dict(self.plan.details.facts)

    @property
    def protected(self) -> list[tuple[str, ...]]:
        tables = [tuple(table) for table in self.recipe.tables]
        hidden = {self.recipe.never, *self.recipe.sensitive}
        tables = tables or [tuple(name for name in self.data.keys if name not in hidden)]
        return list({frozenset(table): table for table in tables}.values())

    @property
    def moved(self) -> set[str]:
        """The variables that may move."""
        inside = {name for table in self.protected for name in table}
        return set(self.recipe.swap) or inside - set(self.recipe.same)

    @property
    def tabulated(self) -> list[str]:
        """The variables of all tables, protected, kept or of a loss."""
        losses = [self.recipe.loss] if isinstance(self.recipe.loss, str) else [*self.recipe.loss]
        found = {name for table in self.protected for name in table} | named(self.recipe.keep) | set(self.recipe.same)
        for loss in losses:
            margin = loss.partition("(")[2].rstrip(")")
            found |= set(margin.split("*") if margin else ()) - {self.recipe.never, *self.recipe.sensitive}
        return sorted(found)

    def kept(self) -> list[tuple[str, ...]]:
        """The tables that must not change, listed anew: what is asked for, within `same`, and the rest as it was."""
        variables = sorted({name for table in self.protected for name in table} | set(named(self.recipe.keep)))
        words = [self.recipe.keep] if isinstance(self.recipe.keep, str) else [*self.recipe.keep]
        tables: list[tuple[str, ...]] = [(name,) for name in variables]
        for word in words:
            if word.endswith("-way"):
                tables += combinations(variables, int(word[0]))
            elif word.startswith("logit"):
                outcome = word[6:-1]
                others = [name for name in variables if name != outcome]
                tables += [tuple(others), *((outcome, name) for name in others)]
            else:
                tables.append(tuple(word.split("*")))
        same = tuple(self.recipe.same)
        within = [(*table, *(name for name in same if name not in table)) for table in tables]
        return [*within, tuple(name for name in self.data.columns if name not in self.moved)]

    def counts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Records before and after in each cell of each protected table."""
        return [both(self.data, self.after, table) for table in self.protected]


def both(before: Data, after: Data, names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Records before and after in each cell of a table."""
    f, g = Counter(records(before, names)), Counter(records(after, names))
    cells = sorted(f.keys() | g.keys(), key=repr)
    return np.array([f[cell] for cell in cells]), np.array([g[cell] for cell in cells])


def named(keep: object) -> set[str]:
    words = [keep] if isinstance(keep, str) else [*keep]
    plain = [word[6:-1] if word.startswith("logit") else word for word in words if not word.endswith("-way")]
    return {name for word in plain for name in word.split("*")}


@st.composite
def exact_files(draw: st.DrawFn, *, keys: int, largest: int = 150) -> Data:
    """Uneven variables of 1 to 4 categories, one that is no key, a flag, at times a weight."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(20, largest))
    columns: list[Column] = []
    for name in KEYS[:keys]:
        size = draw(st.sampled_from([2, 2, 3, 4]))
        share = random.dirichlet(np.full(size, draw(st.sampled_from([0.7, 2.0, 8.0]))))
        columns.append(column(name, random.choice(size, n, p=share), size))
    columns.append(column("other", random.integers(0, draw(st.integers(1, 3)), n), 3))
    columns.append(flag("off", random.random(n) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))))
    if draw(st.booleans()):
        weight = random.lognormal(0, 1, n) if draw(st.booleans()) else np.full(n, 2.5)
        columns.append(numbers("w", weight, role="weight"))
    return Data(columns)


def some(draw: st.DrawFn, names: list[str], least: int, most: int) -> list[str]:
    return draw(st.lists(st.sampled_from(names), min_size=least, max_size=most, unique=True)) if names else []


@st.composite
def exact(draw: st.DrawFn, *, fixed: Mapping[str, object] | None = None, several: bool | None = None) -> Exact:
    """A case that can be drawn; files in which no cell can give, or nothing can move, are left out."""
    keys = list(KEYS[: draw(st.integers(3, 5))])
    data = draw(exact_files(keys=len(keys)))
    several = draw(st.booleans()) if several is None else several
    tables = [some(draw, keys, 3, len(keys)) for _ in range(2)] if several else [keys]
    if draw(st.booleans()) and not several:
        tables = [some(draw, keys, 3, len(keys))]
    inside = sorted({name for table in tables for name in table})
    same = some(draw, [*keys, "other"], 1, 1) if draw(st.integers(0, 3)) == 0 else []
    loose = [name for name in inside if name not in same]
    swap = some(draw, loose, 1, len(loose)) if draw(st.booleans()) else []
    united = some(draw, swap or loose, 2, 2) if len(swap or loose) > 2 and draw(st.integers(0, 3)) == 0 else []
    if any(0 < len(set(united) & set(table)) < 2 for table in tables):
        united = []
    words = ["1-way", "2-way", "*".join(some(draw, inside, 2, 2)), "other*" + inside[0], f"logit({inside[0]})"]
    words += ["3-way"] if len(inside) > 3 else []
    keep = draw(st.sampled_from(words) | st.lists(st.sampled_from(words), min_size=2, max_size=2, unique=True))
    new = draw(st.integers(0, 4)) == 0
    losses = ["hellinger", "total_variation", "chi_square", "hellinger(A*B)", {"hellinger": 1.0, "chi_square(A)": 0.5}]
    made: dict[str, object] = {
        "swap": swap,
        "tables": tables,
        "keep": keep,
        "n": draw(st.integers(2, 4)),
        "share": draw(st.sampled_from([1.0, 1.0, 0.5])),
        "choose": draw(st.sampled_from(["random", "cheapest"])),
        "treatment": draw(st.sampled_from(["either", "either", "camouflage", "empty"])),
        "loss": draw(st.sampled_from(losses)),
        "price": draw(st.sampled_from([None, None, 0.0, 0.3, 20.0])),
        "improve": draw(st.sampled_from([True, True, False])),
        "together": [united] if united else [],
        "same": same,
        "never": draw(st.sampled_from([None, "off"])),
        "rules": some(draw, list(RULES), 1, 2) if draw(st.integers(0, 2)) == 0 else [],
        "max_pairs": draw(st.sampled_from([None, None, 1, 5])),
        "coin": draw(st.sampled_from([0.0, 0.5, 1.0])) if len(tables) == 1 and draw(st.booleans()) else 0.0,
        "new_cells": new,
        "fit": draw(st.sampled_from([[], ["other"]])),
        "effort": draw(st.sampled_from([1e-6, 0.001, 0.004])),
    }
    if "A" not in inside or "B" not in inside:
        made["loss"] = "hellinger"
    recipe = qd.DesignedSwap(**{**made, **(fixed or {})}, seed=draw(seeds))
    try:
        return Exact(data, recipe, recipe.plan(data))
    except qd.InfeasibleError:
        assume(False)
    except ParameterError as error:
        assume("nothing can move" not in str(error))
        raise
    except InputError as error:
        assume("Every record meets" not in str(error))
        raise
    raise AssertionError
