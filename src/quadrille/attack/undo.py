"""Undoing a designed swap: which cells were small before, which were emptied, which records came in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.channel import REACH, Channel, Rehearsal
from quadrille.attack.input import (
    FEW_ROUNDS,
    NEEDS_DESIGN,
    NO_RECIPE,
    NOT_ALIGNED,
    ROUNDS,
    SWEEPS,
    WAY,
    AttackInput,
    Finding,
    KeyTable,
    Section,
    auc,
    feasible_way,
    hellinger,
    standard_error,
    surest,
)
from quadrille.data import Data, Floats, Ints
from quadrille.measure.population import all_margins, fit
from quadrille.present.numbers import count, counted, share, statistic
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.kept import Keep, kept_tables, named_variables

UNDO, UNDO_TITLE = "undo", "Undoing the table of a designed swap"
ROWS, ROWS_TITLE = "rows", "Telling by other columns which records came in"
_UNDO_ADVICE = (
    "Do not count on the size n of a treated cell to hide what it was, and expect that a better attack undoes more "
    "than this one."
)
_ROWS_ADVICE = (
    "Columns that are not protected and depend on the keys give incomers away: leave them out of the public file, or "
    "choose donors that resemble the records of the cell."
)
_WEIGHT_ADVICE = (
    "Records of weights near the median move, so that weighted tables change little: a weight far from it tells that a "
    "record was always there. Weights in a few classes tell less."
)
ONLY_DESIGNED = "is an attack on designed swaps"
TOO_MANY = "the protected table has too many possible cells for a log-linear fit"
MOST_SURE = 50
_CHUNK = 1 << 16
_GAVE_ONE, _LARGE = 0.3, 50
"""How likely a cell of n + 1 gave a record, against one of its size that was left; the size from which cells give
alike. An intruder gets both by simulating the design on any file."""

_HALF, _TENTHS = 0.5, 10


@dataclass(frozen=True, eq=False)
class Undone:
    """The table before, as far as it can be told from the release.

    `chances[i, j]` is the chance that the i-th cell of n rows had j + 1 records before; `emptied` says of every empty
    cell how much speaks for somebody who was there; `table` estimates the counts of all possible cells, `fitted` is
    a log-linear fit of them.
    """

    chances: Floats
    emptied: Floats
    table: Floats
    fitted: Floats


def undo_table(
    released: Floats,
    n: int,
    *,
    kept: Sequence[Sequence[int]] = (),
    emptied: float = 0.0,
    way: int = WAY,
    rounds: int = ROUNDS,
    sweeps: int = SWEEPS,
) -> Undone:
    """Estimate the table before a designed swap by expectation and maximisation, from the released table alone.

    E: a cell of n rows had 1 to n + 1 records, with Poisson chances around the fit; records that are then missing go
    to the larger cells. M: the log-linear fit of all margins of `way` variables to these expected counts. Every round
    ends with scaling to the tables `kept` exactly, given by the places of their variables. `emptied` is the share of
    the small cells that were emptied rather than filled.
    """
    g = released.reshape(-1)
    at, large = g == n, g > n
    sizes = np.arange(1, n + 2)
    factorial = np.array([lgamma(size + 1) for size in sizes])
    weight = np.where(sizes == n + 1, _GAVE_ONE, 1.0)
    giving = np.minimum(g, _LARGE) * large
    margins = all_margins(released.ndim, way)
    fitted = fit(released, margins, sweeps)
    chances, expected = np.zeros((int(at.sum()), len(sizes))), g.astype(np.float64)
    for _ in range(rounds):
        mean = np.maximum(fitted.reshape(-1), 1e-12)
        chances = np.exp(sizes * np.log(mean[at])[:, None] - factorial) * weight
        chances /= chances.sum(axis=1, keepdims=True)
        expected = g.astype(np.float64)
        expected[at] = chances @ sizes
        if emptied:
            expected += _emptied(mean, g, n, float(chances[:, : n - 1].sum()) * emptied / (1 - emptied))
        expected += (g.sum() - expected.sum()) * giving / max(float(giving.sum()), 1.0)
        expected = np.maximum(expected, 0.0)
        if kept:
            expected = fit(released, kept, 2, expected.reshape(released.shape)).reshape(-1)
        fitted = fit(expected.reshape(released.shape), margins, sweeps)
    return Undone(chances, fitted[released == 0], expected.reshape(released.shape), fitted)


def undo_simulated(
    released: Floats, n: int, channel: Channel, fitted: Floats, *, kept: Sequence[Sequence[int]] = (), way: int = WAY
) -> Undone:
    """Estimate the table before a designed swap by what simulated swaps make of cells of each size; see `weigh`."""
    found = weigh([released], n, channel, fitted, kept=kept, way=way)
    after = released.reshape(-1)
    return Undone(found.few[after == n, 1:], 1 - found.few[after == 0, 0], found.table, found.fitted)


@dataclass(frozen=True, eq=False)
class Weighed:
    """The table before, by one release or several of the same design.

    `few[c, j]` is the chance that the c-th of all possible cells had j records before, up to n + 1; `table` estimates
    their counts, `fitted` is a log-linear fit of them.
    """

    few: Floats
    table: Floats
    fitted: Floats


def weigh(
    released: Sequence[Floats],
    n: int,
    channel: Channel,
    fitted: Floats,
    *,
    kept: Sequence[Sequence[int]] = (),
    way: int = WAY,
) -> Weighed:
    """Weigh what each cell may have been before, by all releases together.

    E: P(f | g, g', ...) from Poisson chances around the fit, times P(g | f) of the channel for every release: their
    seeds have nothing to do with one another. M: the fit of all margins of `way` variables to the expected counts,
    scaled to the tables `kept` exactly. The table is (E sqrt f)^2, which no estimate beats in the Hellinger distance
    that is to be expected. `fitted` is the fit of a released table.
    """
    first = released[0]
    margins = all_margins(first.ndim, way)
    after = np.stack([table.reshape(-1) for table in released]).astype(np.int64)
    few, root = np.zeros((0, n + 2)), np.zeros(0)
    for _ in range(FEW_ROUNDS - 1):
        parts = [
            _posterior(after[:, i : i + _CHUNK], fitted.reshape(-1)[i : i + _CHUNK], n, channel)
            for i in range(0, after.shape[1], _CHUNK)
        ]
        few, mean, root = (np.concatenate(part) for part in zip(*parts, strict=True))
        expected = mean.reshape(first.shape)
        if kept:
            expected = fit(first, kept, 2, expected)
        fitted = fit(expected, margins, SWEEPS)
    return Weighed(few, (root**2).reshape(first.shape), fitted)


def _posterior(released: Ints, mean: Floats, n: int, channel: Channel) -> tuple[Floats, Floats, Floats]:
    """Return, of some cells, the chances of 0 to n + 1 records before, E f and E sqrt f; a row for every release."""
    after = released[0]
    least = np.maximum(after - REACH, 0)
    before = least[:, None] + np.arange(2 * REACH + 1)
    seen = np.ones(before.shape)
    for each in released:
        seen = seen * channel.of(before, np.broadcast_to(each[:, None], before.shape))
    as_it_was = before == after[:, None]
    seen = np.where((seen > 0).any(axis=1, keepdims=True), seen, as_it_was)  # a size that no simulated cell came to
    log = np.log(np.maximum(seen, 1e-300)) + before * np.log(np.maximum(mean, 1e-12))[:, None] - _log_factorial(before)
    log[seen == 0] = -np.inf
    chance = np.exp(log - log.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    few = np.zeros((len(after), n + 2))
    for size in range(n + 2):
        few[:, size] = np.where(before == size, chance, 0.0).sum(axis=1)
    return few, (chance * before).sum(axis=1), (chance * np.sqrt(before)).sum(axis=1)


def _log_factorial(number: Ints) -> Floats:
    known = np.array([lgamma(each + 1) for each in range(int(number.max(initial=0)) + 1)])
    return known[number]


def _emptied(mean: Floats, g: Floats, n: int, cells: float) -> Floats:
    """Return the expected records of empty cells before, where about so many of them were small cells."""
    sizes = np.arange(1, n)
    factorial = np.array([lgamma(size + 1) for size in sizes])
    chance = np.where((g == 0)[:, None], np.exp(sizes * np.log(mean)[:, None] - mean[:, None] - factorial), 0.0)
    total, largest = float(chance.sum()), float(chance.sum(axis=1).max(initial=0.0))
    if not total:
        return np.zeros(len(g))
    return (chance @ sizes.astype(np.float64)) * min(cells / total, 1 / largest)


def kept_places(given: AttackInput, recipe: DesignedPairs, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the tables of several variables that a designed swap keeps exactly, by the places of these in a table."""
    keep: Keep = recipe.keep if isinstance(recipe, DesignedSwap) else "1-way"
    inside = dict.fromkeys(name for table in given.protected for name in table)
    variables = tuple(dict.fromkeys((*inside, *sorted(named_variables(keep)))))
    swap = recipe.swap or [name for name in inside if name not in (*recipe.same, *recipe.different)]
    kept = kept_tables(keep, variables, fixed=[name for name in variables if name not in swap])
    places = {tuple(names.index(name) for name in table if name in names) for table in kept}
    return sorted(each for each in places if len(each) > 1 and not any(set(each) < set(other) for other in places))


def undo(given: AttackInput) -> Section:
    """Undo the protected tables of a designed swap, and compare with what they were."""
    recipe, reason = _designed(given)
    if recipe is None:
        return Section(UNDO, UNDO_TITLE, "There is no designed table to undo.", reason=reason)
    several = len(given.protected) > 1
    findings: list[Finding] = []
    for names in given.protected:
        table = given.table if names == given.keys else given.table_of(names)
        kept = kept_places(given, recipe, names)
        findings += _undone(given, table, recipe, kept, f"{'*'.join(names)}: " if several else "")
    if not any(finding.value is not None for finding in findings):
        return Section(UNDO, UNDO_TITLE, "The table cannot be undone.", reason=findings[0].note)
    sure = next((one for one in findings if one.value is not None and "surest" in one.quantity), None)
    apart = next((one for one in findings if "Hellinger" in one.quantity), None)
    story = ""
    if sure is not None:
        story = (
            f"Of the {count(sure.count)} cells of {recipe.n} that an intruder is surest held one person, "
            f"{share(sure.value)} did; by chance {share(sure.chance)}. "
        )
    if apart is not None:
        story += (
            f"The released table is at a Hellinger distance of {statistic(apart.chance)} from the original; this "
            f"attack brings it to {statistic(apart.value)}."
        )
    return Section(UNDO, UNDO_TITLE, story.strip(), tuple(findings), _UNDO_ADVICE)


def _designed(given: AttackInput) -> tuple[DesignedPairs | None, str]:
    """Return the designed swap that the intruder knows of, or why there is none."""
    if given.recipe is None:
        return None, f"{ONLY_DESIGNED}, and {NO_RECIPE}"
    if given.designed is None:
        return None, ONLY_DESIGNED
    return (given.designed, "") if given.design else (None, NEEDS_DESIGN)


def _undone(
    given: AttackInput, table: KeyTable, recipe: DesignedPairs, kept: Sequence[Sequence[int]], label: str
) -> Iterator[Finding]:
    n = recipe.n
    rehearsed = given.rehearsal
    way = feasible_way(table, ROUNDS if rehearsed is None else FEW_ROUNDS)
    if way is None:
        yield Finding(UNDO, f"{label}cells of {n}: those of one record before (AUC)", None, chance=0.5, note=TOO_MANY)
        return
    released, before = table.spread(table.g), table.spread(table.f)
    undone = (
        undo_table(released, n, kept=kept, way=way)
        if rehearsed is None
        else undo_simulated(released, n, rehearsed.channel, rehearsed.fitted, kept=kept, way=way)
    )
    was = before[released == n]
    one, few = was == 1, was < n
    note = "" if way == WAY else "by a 2-way fit: the table is large"
    sure = undone.chances[:, 0]
    cells = len(was)
    inside = f"{label}cells of {n}"
    small = undone.chances[:, : n - 1].sum(axis=1)
    yield Finding(UNDO, f"{inside}: those of one record before (AUC)", auc(sure, one), None, 0.5, cells, note)
    yield Finding(UNDO, f"{inside}: those that were small (AUC)", auc(small, few), None, 0.5, cells, note)
    yield from _surest(f"{inside}: the", "were one record", sure, one)
    yield from _surest(f"{inside}: the", "were small", small, few)
    left = hellinger(before, released)
    yield Finding(
        UNDO,
        f"{label}distance of the undone table from the original (Hellinger)",
        hellinger(before, undone.table),
        0.0,
        left,
        int((table.f > 0).sum()),
        "next to it, by chance, the distance of the released table as it is",
    )
    yield from _empty_cells(before, released, undone, label)


def _empty_cells(before: Floats, released: Floats, undone: Undone, label: str) -> Iterator[Finding]:
    """Say how well emptied cells stand out among the empty ones."""
    empty = released == 0
    was = before[empty] > 0
    if not was.any():
        return
    found = auc(undone.emptied, was)
    yield Finding(UNDO, f"{label}empty cells: those that were emptied (AUC)", found, None, 0.5, len(was))
    yield from _surest(f"{label}empty cells: the", "were emptied", undone.emptied, was)


def _surest(what: str, were: str, score: Floats, truth: NDArray[np.bool_]) -> Iterator[Finding]:
    """Report the share of true ones among the surest few, next to that of all."""
    top = min(MOST_SURE, len(truth))
    found, base = surest(score, truth, top), float(truth.mean()) if len(truth) else None
    yield Finding(UNDO, f"{what} {top} surest {were}", found, None, base, top, standard_error(found, top))


def rows(given: AttackInput) -> Section:
    """Tell by other columns of the file which records of the cells of n came in."""
    recipe, reason = _designed(given)
    weighted = given.released.ticks is not None and given.rehearsal is not None
    if recipe is not None and not given.columns and not weighted:
        reason = "needs other columns of the public file: name them with columns="
    elif recipe is not None and not given.aligned:
        reason = NOT_ALIGNED
    elif recipe is not None and len(given.protected) > 1:
        reason = "is made for one protected table"
    if recipe is None or reason:
        return Section(ROWS, ROWS_TITLE, "Whether other columns give incomers away is not looked at.", reason=reason)
    table = given.table if given.protected[0] == given.keys else given.table_of(given.protected[0])
    if table.possible > 1 << 22:
        return Section(ROWS, ROWS_TITLE, "The cells are too many to look at.", reason=TOO_MANY)
    findings = tuple(_incomers(given, table, recipe.n))
    apart, picked = findings
    story = f"No cell of {recipe.n} has a record that came in."
    if apart.value is not None:
        story = (
            f"Shown a record that came into a cell of {recipe.n} and one that was there, an intruder tells them apart "
            f"in {share(apart.value)} by {_what_tells(given, weighted=weighted)}."
        )
    if picked.value is not None:
        story += (
            f" Of {count(picked.count)} persons who were alone in such a cell he picks the row in "
            f"{share(picked.value)}; by chance in {share(picked.chance)}."
        )
    advice = " ".join((_ROWS_ADVICE,) * bool(given.columns) + (_WEIGHT_ADVICE,) * weighted)
    return Section(ROWS, ROWS_TITLE, story, findings, advice)


def _what_tells(given: AttackInput, *, weighted: bool) -> str:
    return " and ".join(
        (counted(len(given.columns), "other column"),) * bool(given.columns) + ("the weight",) * weighted
    )


def _incomers(given: AttackInput, table: KeyTable, n: int) -> Iterator[Finding]:
    look = np.flatnonzero(table.g[table.after] == n)
    came = table.before[look] != table.after[look]
    score = incomer_scores(given, table, n, look) if given.columns else np.zeros(len(look))
    if given.released.ticks is not None and given.rehearsal is not None:
        score = score + weight_scores(given.released, given.rehearsal, look)
    yield Finding(ROWS, f"records of cells of {n}: those that came in (AUC)", auc(score, came), None, 0.5, len(look))
    order = np.lexsort((score, table.after[look]))
    cell = table.after[look][order]
    first = look[order][np.diff(cell, prepend=-1) != 0]
    alone = first[table.f[table.after[first]] == 1]
    right = float((table.before[alone] == table.after[alone]).mean()) if len(alone) else None
    yield Finding(ROWS, f"cells of {n} that were one record: its row picked", right, 1.0, 1 / n, len(alone))


def incomer_scores(given: AttackInput, table: KeyTable, n: int, look: Ints) -> Floats:
    """Return how much better the other columns of some rows fit the neighbours of their cell than the cell itself.

    The log of the mean, over the neighbours with more than n rows that differ in one variable, of
    P(w | neighbour) / P(w | cell); P by naive Bayes from the released file.
    """
    chance = [_naive_bayes(given, table, name) for name in given.columns]
    values = [given.released[name].values[look].astype(np.int64) for name in given.columns]
    at = np.full(table.possible, -1)
    at[table.number] = np.arange(table.cells)
    cell = table.after[look]

    def fits(cells: Ints) -> Floats:
        return sum((log[cells, value] for log, value in zip(chance, values, strict=True)), np.zeros(len(cells)))

    own, total, neighbours = fits(cell), np.zeros(len(look)), np.zeros(len(look))
    strides = np.cumprod((1, *table.sizes[:0:-1]))[::-1]
    for codes, size, stride in zip(table.codes, table.sizes, strides, strict=True):
        for level in range(size):
            there = at[table.number[cell] + (level - codes[cell]) * stride]
            able = (there >= 0) & (there != cell) & (table.g[there] > n)
            total += np.where(able, np.exp(fits(there) - own), 0.0)
            neighbours += able
    mean = np.divide(total, neighbours, out=np.zeros(len(look)), where=neighbours > 0)
    return np.log(np.maximum(mean, 1e-300))


def weight_scores(released: Data, rehearsed: Rehearsal, look: Ints) -> Floats:
    """Return the log of how much likelier records that came in have weights as these rows than records that stayed.

    The records that move are drawn near the median weight. How near, by tenths of all records, is counted in swaps of
    made-up files, whose records have the weights of the release.
    """
    assert released.ticks is not None
    away = np.abs(released.ticks.values - np.median(released.ticks.values))
    part = np.searchsorted(np.sort(away), away, side="right") * _TENTHS // (released.n + 1)
    came, stayed = np.full((2, _TENTHS), _HALF)
    for draft, (_, g) in zip(rehearsed.drafts, rehearsed.counts, strict=True):
        shown, moved = g[draft.after] == rehearsed.n, draft.before != draft.after
        came += np.bincount(part[shown & moved], minlength=_TENTHS)
        stayed += np.bincount(part[shown & ~moved], minlength=_TENTHS)
    ratio: Floats = np.log(came / came.sum()) - np.log(stayed / stayed.sum())
    return ratio[part[look]]


def _naive_bayes(given: AttackInput, table: KeyTable, name: str) -> Floats:
    """Return log P(value of a column | cell) of every cell, from counts of the release and a half."""
    column = given.released.coded(name, purpose="an attack")
    value, size = column.values.astype(np.int64), column.size
    log: NDArray[np.float64] = np.log(np.bincount(value, minlength=size) + _HALF) + np.zeros((table.cells, 1))
    for codes, levels in zip(table.codes, table.sizes, strict=True):
        joint = np.bincount(codes[table.after] * size + value, minlength=levels * size).reshape(levels, size) + _HALF
        log = log + np.log(joint / joint.sum(axis=0))[codes]
    log -= log.max(axis=1, keepdims=True)
    return log - np.log(np.exp(log).sum(axis=1, keepdims=True))
