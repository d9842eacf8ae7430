"""What a designed swap is said to do, counted once more from the two files in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from math import fsum, sqrt

import numpy as np

from controlled_strategies import flags_of
from oracles import records
from quadrille.data import Data
from quadrille.swap.designed.pairs import DesignedPairs

Cell = tuple[object, ...]
Counts = Mapping[Cell, float]


def keys_of(recipe: DesignedPairs, data: Data) -> tuple[str, ...]:
    return tuple(name for name in data.keys if name != recipe.never)


def protected(recipe: DesignedPairs, data: Data) -> list[tuple[str, ...]]:
    """The protected tables; two with the same variables are one."""
    tables = [tuple(table) for table in recipe.tables] or [keys_of(recipe, data)]
    return list({frozenset(table): table for table in reversed(tables)}.values())


def movers(recipe: DesignedPairs, data: Data) -> list[frozenset[str]]:
    inside = dict.fromkeys(name for table in protected(recipe, data) for name in table)
    fixed = {*recipe.same, *recipe.different}
    swap = recipe.swap or [name for name in inside if name not in fixed]
    grouped = [frozenset(group) for group in recipe.together]
    return [*grouped, *(frozenset([name]) for name in swap if not any(name in group for group in grouped))]


def losses(recipe: DesignedPairs, data: Data) -> list[tuple[str, tuple[str, ...], float]]:
    """Name, variables and weight of each loss."""
    given = {recipe.loss: 1.0} if isinstance(recipe.loss, str) else recipe.loss
    found = []
    for address, weight in given.items():
        name, _, margin = address.partition("(")
        variables = tuple(part.strip() for part in margin.rstrip(")").split("*")) if margin else keys_of(recipe, data)
        found.append((name, variables, weight))
    return found


def base_names(recipe: DesignedPairs, data: Data) -> list[str]:
    """All columns that the design looks at."""
    tables = [*protected(recipe, data), *(variables for _, variables, _ in losses(recipe, data))]
    return list(dict.fromkeys([name for table in tables for name in table] + [*recipe.same, *recipe.different]))


def counts_of(recipe: DesignedPairs, before: Data, after: Data) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Records before and after in each cell of each protected table."""
    for table in protected(recipe, before):
        f, g = Counter(records(before, table)), Counter(records(after, table))
        cells = sorted(f.keys() | g.keys(), key=repr)
        yield np.array([f[cell] for cell in cells]), np.array([g[cell] for cell in cells])


def exposed(f: np.ndarray, g: np.ndarray, n: int) -> int:
    return int(np.minimum(f, g)[(g > 0) & (g < n)].sum())


def design_loss(recipe: DesignedPairs, before: Data, after: Data) -> float:
    """The weighted sum of the losses, each record with the mean weight of all records alike in what matters."""
    weight = mean_weights(recipe, before)
    total = 0.0
    for name, variables, importance in losses(recipe, before):
        total += importance * _loss(name, tally(before, variables, weight), tally(after, variables, weight))
    return total


def objective(recipe: DesignedPairs, before: Data, after: Data) -> float:
    """What is lowered at a price: losses, Hellinger distances squared, and price x exposed."""
    weight, total = mean_weights(recipe, before), 0.0
    for name, variables, importance in losses(recipe, before):
        loss = _loss(name, tally(before, variables, weight), tally(after, variables, weight))
        total += importance * (loss**2 if name == "hellinger" else loss)
    shown = sum(exposed(f, g, recipe.n) for f, g in counts_of(recipe, before, after))
    return total + (recipe.price or 0.0) * shown / before.n


def mean_weights(recipe: DesignedPairs, data: Data) -> np.ndarray:
    if data.weight is None:
        return np.ones(data.n)
    groups: dict[Cell, list[int]] = defaultdict(list)
    for row, record in enumerate(records(data, base_names(recipe, data))):
        groups[record].append(row)
    weight = data[data.weight].values.astype(float)
    mean = np.empty(data.n)
    for rows in groups.values():
        mean[rows] = weight[rows].mean()
    return mean


def tally(data: Data, variables: tuple[str, ...], weight: np.ndarray) -> Counts:
    cells: dict[Cell, float] = defaultdict(float)
    for record, own in zip(records(data, variables), weight, strict=True):
        cells[record] += own
    return cells


def _loss(name: str, f: Counts, g: Counts) -> float:
    total, cells = fsum(f.values()), f.keys() | g.keys()
    pairs = [(f.get(cell, 0.0), g.get(cell, 0.0)) for cell in cells]
    if name == "hellinger":
        return sqrt(fsum((sqrt(a) - sqrt(b)) ** 2 for a, b in pairs) / total / 2)
    if name == "chi_square":
        return fsum((a - b) ** 2 / a for a, b in pairs if a > 0)
    return fsum(abs(a - b) for a, b in pairs) / total / 2


def one_pair_suffices(cells: Mapping[tuple[int, ...], int], small: tuple[int, ...], n: int) -> bool:
    """Whether some exchange of one variable fills a cell that lacks one record, by trying all of them."""
    for v, giver, partner in product(range(len(small)), cells, cells):
        goal = (*partner[:v], giver[v], *partner[v + 1 :])
        reaches = giver != small and (*giver[:v], small[v], *giver[v + 1 :]) == small
        if reaches and partner != small and partner[v] == small[v] and goal != giver and goal in cells:
            after = Counter(cells)
            after.update({giver: -1, small: 1})
            after.update({partner: -1, goal: 1})
            if all(not 0 < after[cell] < n or after[cell] == cells[cell] for cell in (giver, partner, goal)):
                return after[small] >= n and cells[goal] >= n
    return False


def never_rows(case_data: Data, recipe: DesignedPairs) -> set[int]:
    return set(np.flatnonzero(flags_of(case_data, recipe.never)).tolist())
