"""The definitions of spec and design once more, in plain Python: slow, obvious, and without the package's internals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import fsum, isnan, log, sqrt

import numpy as np
from scipy.special import rel_entr, xlogy

from quadrille.data import Data

Keep = Sequence[bool] | np.ndarray | None
PlanSet = frozenset[frozenset[int]]


def values(data: Data, name: str) -> list[object]:
    """A column as plain values; None is the empty field or number."""
    column = data[name]
    if not column.variable.coded:
        return [None if isnan(x) else float(x) for x in column.values]
    decoded = [*column.variable.values, None]
    return [decoded[code] for code in column.values]


def records(data: Data, names: Iterable[str]) -> list[tuple[object, ...]]:
    listed = [values(data, name) for name in names]
    return list(zip(*listed, strict=True)) if listed else [()] * data.n


def weights(data: Data) -> list[Fraction]:
    """Weights as exact fractions: what is counted where that is not the decimal that names each of them."""
    if data.weight is None or data.ticks is None:
        return [Fraction(1)] * data.n
    if not data.ticks.exact:
        return [Fraction(tick) / Fraction(data.ticks.per_unit) for tick in data.ticks.values.tolist()]
    return [Fraction(repr(float(w))) for w in data[data.weight].values]


def meets(data: Data, allowed: dict[str, set[object]]) -> list[bool]:
    """Which records meet every condition."""
    columns = {name: values(data, name) for name in allowed}
    return [all(columns[name][i] in allowed[name] for name in allowed) for i in range(data.n)]


def table(data: Data, names: Sequence[str], keep: Keep = None) -> Counter[tuple[object, ...]]:
    """Weighted counts of the combinations of values; no weight counts 1."""
    cells: Counter[tuple[object, ...]] = Counter()
    for i, (record, weight) in enumerate(zip(records(data, names), weights(data), strict=True)):
        if keep is None or keep[i]:
            cells[record] += weight
    return cells


def counts(data: Data, names: Sequence[str], keep: Keep = None) -> Counter[tuple[object, ...]]:
    """Unweighted counts."""
    return Counter(r for i, r in enumerate(records(data, names)) if keep is None or keep[i])


def shares(cells: Counter) -> dict[tuple[object, ...], float] | None:
    total = sum(cells.values())
    return {cell: float(Fraction(value) / total) for cell, value in cells.items()} if total else None


def hellinger(before: Counter, after: Counter) -> float | None:
    f, g = shares(before), shares(after)
    if f is None or g is None:
        return None
    return sqrt(fsum((sqrt(f.get(c, 0)) - sqrt(g.get(c, 0))) ** 2 for c in f.keys() | g.keys())) / sqrt(2)


def total_variation(before: Counter, after: Counter) -> float | None:
    f, g = shares(before), shares(after)
    if f is None or g is None:
        return None
    return fsum(abs(f.get(c, 0) - g.get(c, 0)) for c in f.keys() | g.keys()) / 2


def hd1(before: Counter, after: Counter) -> float | None:
    """The Hellinger distance of weights, which are not divided by their sums."""
    if not sum(before.values()) or not sum(after.values()):
        return None
    cells = before.keys() | after.keys()
    return sqrt(fsum((sqrt(before.get(c, 0)) - sqrt(after.get(c, 0))) ** 2 for c in cells) / 2)


def worst_cell(before: Data, after: Data, names: Sequence[str], floor: int) -> float | None:
    """Largest |after - before| / max(before, floor times the mean weight) over the cells."""
    was, now = table(before, names), table(after, names)
    if not sum(was.values()) or not sum(now.values()):
        return None
    least = floor * sum(was.values()) / Fraction(before.n)
    return float(max(abs(Fraction(now[c]) - was[c]) / max(Fraction(was[c]), least) for c in was.keys() | now.keys()))


def entropy(cells: Counter) -> float | None:
    f = shares(cells)
    return None if f is None else -fsum(p * log(p) for p in f.values() if p > 0)


def entropy_change(before: Counter, after: Counter) -> float | None:
    was, now = entropy(before), entropy(after)
    return None if was is None or now is None else now - was


def chi_square_share(cells: Counter) -> tuple[float, int] | None:
    """Chi-square / N of a two-way table, and the smaller number of categories that occur."""
    total = float(sum(cells.values()))
    if not total:
        return None
    row: Counter[object] = Counter()
    column: Counter[object] = Counter()
    for (r, c), value in cells.items():
        row[r] += value
        column[c] += value
    terms = []
    for r in row:
        for c in column:
            expected = float(row[r]) * float(column[c]) / total
            if expected > 0:
                terms.append((float(cells.get((r, c), 0)) - expected) ** 2 / expected)
    occurring = min(sum(v > 0 for v in row.values()), sum(v > 0 for v in column.values()))
    return fsum(terms) / total, occurring


def cramers_v(cells: Counter) -> float | None:
    found = chi_square_share(cells)
    return sqrt(found[0] / (found[1] - 1)) if found and found[1] > 1 else None


def contingency(cells: Counter) -> float | None:
    found = chi_square_share(cells)
    return sqrt(found[0] / (found[0] + 1)) if found else None


def cramers_v_change(before: Counter, after: Counter) -> float | None:
    was, now = cramers_v(before), cramers_v(after)
    return None if was is None or now is None else was - now


def contingency_change(before: Counter, after: Counter) -> float | None:
    was, now = contingency(before), contingency(after)
    return None if was is None or now is None else was - now


TABLE_MEASURES = {"hellinger": hellinger, "total_variation": total_variation, "entropy_change": entropy_change}
PAIR_MEASURES = {"cramers_v_change": cramers_v_change, "contingency_change": contingency_change}


def matrices(before: Counter, after: Counter) -> tuple[np.ndarray, np.ndarray]:
    """Lay two tables out as areas by levels."""
    cells = before.keys() | after.keys()
    areas = {area: i for i, area in enumerate(sorted({cell[0] for cell in cells}, key=str))}
    levels = {level: j for j, level in enumerate(sorted({cell[1:] for cell in cells}, key=str))}
    both = np.zeros((2, len(areas), len(levels)))
    for table, matrix in zip((before, after), both, strict=True):
        for cell, value in table.items():
            matrix[areas[cell[0]], levels[cell[1:]]] = float(value)
    return both[0], both[1]


def within(f: np.ndarray) -> np.ndarray:
    return f / np.where(f.sum(axis=1) > 0, f.sum(axis=1), 1)[:, None]


def differences(f: np.ndarray, g: np.ndarray) -> dict[str, tuple[float, float]]:
    """The six differences between tables of areas by levels, each with the size of what is added up."""
    kept = f > 0
    squares, deviances = (g - f)[kept] ** 2 / f[kept], 2 * rel_entr(g[kept], f[kept])
    r, s = within(f), within(g)
    return {
        "chi_square": (squares.sum(), squares.sum()),
        "effective_swap_rate": (np.abs(g - f).sum() / 2 / f.sum(), 1.0 + g.sum() / f.sum()),
        "deviance": (deviances.sum(), np.abs(deviances).sum() + g.sum() + f.sum()),
        "gini_difference": ((s**2 - r**2).sum(), len(f)),
        "shannon_difference": (
            (xlogy(s, s) - xlogy(r, r)).sum(),
            np.abs(xlogy(s, s)).sum() + np.abs(xlogy(r, r)).sum(),
        ),
        "renyi_difference": (np.log((s**3).sum() / (r**3).sum()) / 2, (r**3).sum() / (s**3).sum()),
    }


def ordinal_shift(before: Data, after: Data, name: str, keep: Keep = None) -> float | None:
    """Mean of |position after - before| / (m - 1) over the records with a category before and after."""
    scale = before[name].variable.categories
    place = {value: i for i, value in enumerate(scale)}
    moved, total = [], Fraction(0)
    for i, (was, now, w) in enumerate(zip(values(before, name), values(after, name), weights(before), strict=True)):
        if was in place and now in place and (keep is None or keep[i]):
            moved.append(w * abs(place[now] - place[was]))
            total += w
    if len(scale) < 2 or not total:
        return None
    return float(sum(moved) / total / (len(scale) - 1))


def conditional_entropy(before: Data, after: Data, names: Sequence[str], keep: Keep = None) -> float | None:
    """H(original | released) = - sum p(o, r) ln( p(o, r) / p(r) )."""
    joint: Counter[object] = Counter()
    margin: Counter[object] = Counter()
    for i, (o, r, w) in enumerate(zip(records(before, names), records(after, names), weights(before), strict=True)):
        if keep is None or keep[i]:
            joint[o, r] += w
            margin[r] += w
    total = sum(joint.values())
    if not total:
        return None
    return -fsum(float(w / total) * log(float(w / margin[r])) for (_, r), w in joint.items() if w)


def mean(found: Iterable[float | None]) -> float | None:
    """The mean of what is defined."""
    defined = [value for value in found if value is not None]
    return sum(defined) / len(defined) if defined else None


def admissible(data: Data, recipe: object, columns: Sequence[str]) -> np.ndarray:
    """Which records may be paired to exchange these columns, as a matrix."""
    n = data.n
    allowed = ~np.eye(n, dtype=bool)

    def equal(name: str) -> np.ndarray:
        listed = values(data, name)
        return np.array([[a == b for b in listed] for a in listed])

    for name in recipe.same:
        allowed &= equal(name)
    for name in recipe.different:
        allowed &= ~equal(name)
    agreeing = np.array([equal(name) for name in columns])
    if recipe.differ == "all":
        allowed &= ~agreeing.any(axis=0)
    elif recipe.differ == "any":
        allowed &= ~agreeing.all(axis=0)
    return allowed


def sequential(allowed: np.ndarray, k: int, sampler: str) -> dict[PlanSet, float]:
    """Probability of every plan of k pairs when pairs are drawn one after the other; no draw may dead-end."""
    reached: dict[PlanSet, float] = {frozenset(): 1.0}
    for _ in range(k):
        following: dict[PlanSet, float] = defaultdict(float)
        for plan, chance in reached.items():
            used = set().union(*plan)
            free = [i for i in range(len(allowed)) if i not in used]
            partners = {i: [j for j in free if allowed[i, j]] for i in free}
            able = [i for i in free if partners[i]]
            assert able, "this file has a dead end"
            ordered = sum(len(partners[i]) for i in able)
            for i in able:
                for j in partners[i]:
                    share = 1 / ordered if sampler == "pair-uniform" else 1 / len(able) / len(partners[i])
                    following[plan | {frozenset((i, j))}] += chance * share
        reached = following
    return reached


def largest(allowed: np.ndarray) -> int:
    """Size of a maximum matching, by trying everything."""

    @cache
    def best(free: int) -> int:
        if not free:
            return 0
        i = free.bit_length() - 1
        rest = free & ~(1 << i)
        partners = [j for j in range(i) if rest >> j & 1 and allowed[i, j]]
        return max([best(rest), *(1 + best(rest & ~(1 << j)) for j in partners)])

    return best((1 << len(allowed)) - 1)


def matchings(allowed: np.ndarray, k: int) -> set[PlanSet]:
    """All sets of k disjoint admissible pairs."""
    pairs = [frozenset(pair) for pair in combinations(range(len(allowed)), 2) if allowed[pair]]
    return {frozenset(some) for some in combinations(pairs, k) if len(frozenset().union(*some)) == 2 * k}


def close(one: float | None, other: float | None, scale: float = 1.0, tolerance: float = 1e-12) -> bool:
    """Equal to the tolerance of the statistic's own scale; undefined equals undefined."""
    if one is None or other is None:
        return one is None and other is None
    return abs(one - other) <= tolerance * max(1.0, scale)
