"""What an intruder does who has `public/` and nothing else: look for records that contradict the rest of the file.

Written apart from the product, in plain numpy: it shares no code with what refuses contradictions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import binom

BELIEVED = 0.05
"""What fails in fewer records is taken for a law of the file, and the records that fail for swapped ones."""
RARE = 0.02
"""A combination with fewer records than this share of those expected is taken for impossible."""
MOST_VALUES = 60
FEW_CELLS = 8
"""A table of so many cells per record is counted as a whole, which is quicker than sorting the records."""


def suspects(public: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what looks like a law of a public file, and which rows break it."""
    table = pl.read_csv(public / "data.csv", infer_schema_length=None)
    texts = {name: table[name].cast(pl.String).fill_null("").to_numpy() for name in table.columns}
    codes = {name: np.unique(values, return_inverse=True)[1] for name, values in texts.items()}
    codes = {name: code for name, code in codes.items() if code.max() > 0}
    numeric = [name for name in codes if table[name].dtype.is_numeric() and codes[name].max() > 1]
    numbers = {name: table[name].cast(pl.Float64).to_numpy() for name in numeric}
    mixed = np.random.default_rng(0).permutation(len(table))
    for law, rows in _laws(codes, numbers, mixed):
        if rows.any():
            yield law, rows


def _laws(
    codes: dict[str, np.ndarray], numbers: dict[str, np.ndarray], mixed: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    for x, y in permutations(codes, 2):
        yield f"{x} -> {y}", _lacking(codes[x], codes[y], mixed)
    for a, b in combinations(codes, 2):
        both = _numbered(codes[a] * (codes[b].max() + 1) + codes[b])
        yield from ((f"{a}, {b} -> {y}", _lacking(both, codes[y], mixed)) for y in codes if y not in (a, b))
        yield f"{a} never with {b}", _impossible(codes[a], codes[b])
    for a, b, c in permutations(numbers, 3):
        if a < b:
            yield f"{c} = {a} + {b}", _unlike(numbers[c] - numbers[a] - numbers[b])
            with np.errstate(all="ignore"):
                yield f"{c} = {a} * {b}", _unlike(np.round(numbers[c] / (numbers[a] * numbers[b]), 2))
                yield f"{c} = {b} / {a}", _unlike(np.round(numbers[c] * numbers[a] / numbers[b], 2))
    for x, y in permutations(numbers, 2):
        yield f"{y} in the order of {x}", _out_of_order(numbers[x], numbers[y])
    yield from _laws_of_groups(codes, mixed)


def _laws_of_groups(codes: dict[str, np.ndarray], mixed: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what groups of few records, such as households, break as a whole, and who breaks a series of values."""
    for x, y in permutations(codes, 2):
        groups = codes[x].max() + 1
        if not len(mixed) / 200 <= groups <= len(mixed) / 2:
            continue
        for value in range(codes[y].max() + 1 if codes[y].max() < MOST_VALUES else 0):
            yield f"{y} once within {x}", _twice(codes[x], codes[y] == value, mixed)
        alike = _alike_in_pairs(codes[x], codes[y], {z: codes[z] for z in codes if z not in (x, y)})
        yield from ((f"{z} within {x} of one {y}", rows) for z, rows in alike.items())
        again = _again(codes[x], codes[y])
        if again.mean() <= 3 * BELIEVED and again.sum() <= _again(codes[x], codes[y][mixed]).sum() / 3:
            yield f"{y} never twice within {x}", again
            others = (z for z in codes if z not in (x, y))
            yield from ((f"{z} within {x} in the order of {y}", _odd_one(codes[x], codes[y], codes[z])) for z in others)


def _lacking(group: np.ndarray, value: np.ndarray, mixed: np.ndarray) -> np.ndarray:
    """Records that lack the commonest value of their group, if hardly any does, and many did by chance."""
    size = np.bincount(group)
    shared = int(size[size > 1].sum())
    if shared < 100:
        return np.zeros(len(group), dtype=bool)
    lack = _minority(group, value, size)
    if lack.sum() <= BELIEVED * shared and lack.sum() <= _minority(group, value[mixed], size).sum() / 3:
        groups, values = len(size), value.max() + 1
        if _few(groups, values, len(value)):
            return lack[value * groups + group] > 0
        place = np.unique(value * groups + group, return_inverse=True)[1]
        return lack[place] > 0
    return np.zeros(len(group), dtype=bool)


def _minority(group: np.ndarray, value: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Count the records of each cell, a group with a value, that is not the commonest of a group of two or more.

    Cells are those of the whole table, or those that occur where the table is large.
    """
    groups, values = len(size), value.max() + 1
    cell = value * groups + group
    if _few(groups, values, len(cell)):
        table = np.bincount(cell, minlength=groups * values).reshape(values, groups)
        table[(table == table.max(axis=0)) | (size < 2)] = 0
        return table.ravel()
    cells, counts = np.unique(cell, return_counts=True)
    most = np.zeros(groups, dtype=int)
    np.maximum.at(most, cells % groups, counts)
    counts[(counts == most[cells % groups]) | (size[cells % groups] < 2)] = 0
    return counts


def _few(groups: int, values: int, records: int) -> bool:
    return groups * values <= FEW_CELLS * records


def _numbered(key: np.ndarray) -> np.ndarray:
    """Number the values that occur, in order."""
    if key.max() >= FEW_CELLS * len(key):
        return np.unique(key, return_inverse=True)[1]
    return (np.cumsum(np.bincount(key) > 0) - 1)[key]


def _impossible(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    rows, columns = a.max() + 1, b.max() + 1
    if max(rows, columns) > MOST_VALUES:
        return np.zeros(len(a), dtype=bool)
    table = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(a)
    return ((expected >= 10) & (table < RARE * expected))[a, b]


def _unlike(value: np.ndarray) -> np.ndarray:
    """Records whose value is not the one that nearly all have."""
    known = np.isfinite(value)
    rounded = np.round(value[known], 6)
    values, counts = np.unique(rounded, return_counts=True)
    if not len(values) or counts.max() < (1 - 3 * BELIEVED) * known.sum() or known.sum() < len(value) / 2:
        return np.zeros(len(value), dtype=bool)
    return known & (np.round(value, 6) != values[np.argmax(counts)])


def _out_of_order(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Records whose second number is far out of line with the neighbours of their first, if nearly none is."""
    none = np.zeros(len(x), dtype=bool)
    if np.isnan(x).any() or np.isnan(y).any():
        return none
    order = np.lexsort((y, x))
    rank = np.empty(len(y))
    rank[np.argsort(y, kind="stable")] = np.arange(len(y))
    sorted_rank = rank[order]
    window = np.stack([np.roll(sorted_rank, step) for step in range(-5, 6)])
    far = np.abs(sorted_rank - np.median(window, axis=0)) > 0.03 * len(y)
    if not 0 < far.mean() < 3 * BELIEVED:
        return none
    none[order] = far
    return none


def _twice(group: np.ndarray, has: np.ndarray, mixed: np.ndarray) -> np.ndarray:
    """Records that have what nearly every group has once, where another record of their group has it too."""
    held = np.bincount(group, weights=has)
    failing, by_chance = (held != 1).mean(), (np.bincount(group, weights=has[mixed]) != 1).mean()
    if failing > 4 * BELIEVED or failing > by_chance / 3:
        return np.zeros(len(group), dtype=bool)
    return has & (held[group] > 1)


def _again(group: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Records that share their value with another one of their group."""
    _, place, counts = np.unique(group * (value.max() + 1) + value, return_inverse=True, return_counts=True)
    return counts[place] > 1


def _alike_in_pairs(group: np.ndarray, kind: np.ndarray, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Records that are as the only other one of their group and kind is, where such two nearly always differ."""
    if kind.max() > 2 * MOST_VALUES:
        return {}
    kind = kind if kind.max() < MOST_VALUES else kind * 10 // (kind.max() + 1)
    _, place, counts = np.unique(group * (kind.max() + 1) + kind, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    start = (np.cumsum(counts) - counts)[counts == 2]
    one, other = order[start], order[start + 1]
    found: dict[str, np.ndarray] = {}
    for name, value in values.items():
        same = value[one] == value[other]
        held = np.bincount(kind[one])
        usual = (np.bincount(kind[one], weights=same) < 0.2 * held) & (held >= 50)
        rows = np.zeros(len(group), dtype=bool)
        rows[np.r_[one[same & usual[kind[one]]], other[same & usual[kind[one]]]]] = True
        by_chance = ((np.bincount(value) / len(value)) ** 2).sum()
        if by_chance > 0.4:
            found[name] = rows
    return found


def _odd_one(group: np.ndarray, place: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Records that differ from both neighbours of their group, who agree."""
    order = np.lexsort((place, group))
    g, v = group[order], value[order]
    odd = np.zeros(len(group), dtype=bool)
    odd[order[1:-1]] = (g[:-2] == g[2:]) & (v[:-2] == v[2:]) & (v[1:-1] != v[2:])
    return odd


def about(law: str) -> set[str]:
    """Return the columns of a law."""
    words = ("->", "never with", "once within", "never twice within", "within", "of one", "in the order of", "[=+*/]")
    return set(re.split("|".join(f" {word} " for word in words) + "|, ", law))


def by_unit(public: Path, number: str, rows: np.ndarray) -> np.ndarray:
    """Tell for each unit, such as a household, whether any of its rows is among some."""
    of = np.unique(pl.read_csv(public / "data.csv", columns=[number])[number].to_numpy(), return_inverse=True)[1]
    return np.bincount(of, weights=rows) > 0


def swapped_rows(release: Path) -> np.ndarray:
    """Tell which public rows were swapped: for the referee, who has the confidential folder too."""
    order = pl.read_parquet(release / "confidential/order.parquet")["row"].to_numpy()
    rows = np.unique(pl.read_parquet(release / "confidential/plan.parquet")["row"].to_numpy())
    return np.isin(order, rows)


def chance_of(rows: np.ndarray, swapped: np.ndarray) -> float:
    """Return how likely so many swapped records or more are among rows that were picked without looking."""
    return float(binom.sf(int((rows & swapped).sum()) - 1, int(rows.sum()), swapped.mean()))
