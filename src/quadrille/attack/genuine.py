"""Is a small cell of the release genuine? By size, and as far as an intruder who knows the design can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import (
    AttackInput,
    Finding,
    Floats,
    KeyTable,
    Section,
    auc,
    moves_of,
    released_fit,
    standard_error,
    surest,
)
from quadrille.measure.population import all_margins, fit
from quadrille.present.numbers import count, share
from quadrille.swap.designed import DesignedSwap

NAME, TITLE = "genuine", "Is a small cell of the release genuine?"
_ADVICE = (
    "A share of genuine small cells is no doubt that everybody shares: whoever knows the design can tell which are "
    "safe to believe. Judge by the surest claims, not by the average."
)
SURE = 0.95
_ROUNDS = 3
_MOST_CELLS = 1 << 22
TOO_MANY = "the keys have too many possible combinations for a log-linear fit: name fewer keys"


_FITS, _SAME, _OCCUPIED = "records that fit the size before", "cells of the same size before", "cells occupied before"


def genuine(given: AttackInput) -> Section:
    """Compare cells of few rows with the original, size by size; then say how well a design gives them away."""
    findings = (*_by_size(given), *_told_apart(given))
    single = findings[0]
    story = "The release has no combination of keys with a single row."
    if single.value is not None:
        story = (
            f"A person alone in a combination of keys is in the release among {count(single.count)} who look so; "
            f"{share(single.value)} of these combinations were there before."
        )
    sure = next((finding for finding in findings if finding.quantity == _HITS and finding.value is not None), None)
    if sure is not None:
        story += (
            f" Whoever knows the design can be sure of {count(sure.count)} of them (chance above {SURE}), and is "
            f"right in {share(sure.value)}."
        )
    best = next((finding for finding in findings if "surest" in finding.quantity and finding.value is not None), None)
    if best is not None:
        story += f" Of the {count(best.count)} that an intruder believes in most, {share(best.value)} are genuine."
    return Section(NAME, TITLE, story, findings, _ADVICE)


def _by_size(given: AttackInput) -> Iterator[Finding]:
    """For cells of 1 to n + 1 rows: records that can have been there before, cells of the same size, and occupied."""
    table = given.table
    f, g = table.f, table.g
    by_chance = _chances(table)
    for k in range(1, given.n + 2):
        inside = g == k
        cells = int(inside.sum())
        was = f[inside]
        if not cells:
            yield Finding(NAME, f"cells of {k}: {_FITS}", None, count=0, note="no such cell")
            continue
        values = (np.minimum(was, k) / k, was == k, was > 0)
        chances: Shares = (None, None, None) if by_chance is None else by_chance(k)
        for quantity, value, chance in zip((_FITS, _SAME, _OCCUPIED), values, chances, strict=True):
            yield Finding(NAME, f"cells of {k}: {quantity}", float(value.mean()), 1.0, chance, cells)


Shares = tuple[float | None, float | None, float | None]


def _chances(table: KeyTable) -> Callable[[int], Shares] | None:
    """Return what the shares would be if all columns were shuffled apart, each count Poisson; None for huge tables."""
    if table.possible > _MOST_CELLS:
        return None
    before = table.spread(table.f)
    mean = fit(before, all_margins(before.ndim, 1), 1).reshape(-1)
    was = before.reshape(-1)
    log = np.log(np.maximum(mean, 1e-300))

    def chances(k: int) -> Shares:
        weight = np.exp(k * log - mean - lgamma(k + 1))
        total = float(weight.sum())
        if total <= 0:
            return None, None, None
        fits, same, occupied = (float(weight @ part) / total for part in (np.minimum(was, k) / k, was == k, was > 0))
        return fits, same, occupied

    return chances


_APART = "uniques: genuine ones told apart (AUC)"
_HITS = f"uniques claimed at a chance above {SURE}: genuine"


def _told_apart(given: AttackInput) -> Iterator[Finding]:
    """P(genuine) of every unique from the public file and the design, against the truth."""
    table = given.table
    truth = table.f[table.g == 1] > 0
    if given.designed is not None and given.design is not None:
        yield from _of_designed(given, table, truth)
        return
    chance = chance_genuine(given)
    if isinstance(chance, str):
        yield Finding(NAME, _APART, None, None, 0.5, None, chance)
        return
    uniques, rate = len(truth), float(truth.mean()) if len(truth) else None
    sure = chance > SURE
    yield Finding(NAME, _APART, auc(chance, truth), None, 0.5, uniques)
    note = f"truly genuine are {share(rate)}" if uniques else ""
    yield Finding(NAME, "uniques: mean chance of being genuine", _mean(chance), 1.0, None, uniques, note)
    yield Finding(NAME, f"uniques claimed at a chance above {SURE}", _mean(sure), 1.0, None, uniques)
    yield Finding(NAME, _HITS, _mean(truth[sure]), 1.0, rate, int(sure.sum()))


MOST_SURE = 30


def _of_designed(given: AttackInput, table: KeyTable, truth: NDArray[np.bool_]) -> Iterator[Finding]:
    """Tell genuine uniques of a designed swap from those that its coin displaced, by a fit to the release."""
    uniques = len(truth)
    if truth.all():
        note = "all of them are genuine, and an intruder knows it" if uniques else "no unique is left"
        yield Finding(NAME, _APART, None, None, 0.5, uniques, note)
        return
    fitted = released_fit(table)
    if fitted is None:
        yield Finding(NAME, _APART, None, None, 0.5, uniques, TOO_MANY)
        return
    rate, recipe = float(truth.mean()), given.designed
    score, how = fitted, "by what a 2-way fit expects"
    if (
        isinstance(recipe, DesignedSwap)
        and recipe.coin
        and [set(names) for names in given.protected] == [set(table.names)]
    ):
        moves = [axis for axis, name in enumerate(table.names) if not recipe.swap or name in recipe.swap]
        score = chance_left(table.spread(table.g), fitted, recipe.coin, moves)
        how = "by what a 2-way fit expects, against the arrivals that the coin lets one expect"
    sure = score.reshape(-1)[table.number[table.g == 1]]
    note = f"{how}; truly genuine are {share(rate)}"
    yield Finding(NAME, _APART, auc(sure, truth), None, 0.5, uniques, note)
    top = min(MOST_SURE, uniques)
    found = surest(sure, truth, top)
    yield Finding(NAME, f"uniques: the {top} surest were genuine", found, None, rate, top, standard_error(found, top))


def chance_left(released: Floats, fitted: Floats, coin: float, moves: Sequence[int]) -> Floats:
    """Return, for every cell, the chance that a record alone in it was left there rather than displaced to it.

    mu c / 2 against lambda: mu is what the fit expects, c / 2 the chance of a cell of one to be left, and as much to be
    displaced. Lambda adds, over the empty cells that differ in one of the axes that move, the chance that one record
    was displaced from there, times the share of this cell among all empty ones it could go to, by what is expected
    there. Cells of one that are treated are taken to be emptied half of the time. That is how the coin of version 2
    displaced; against the partners of version 3 it still tells most of all scores that were tried, and little.

    Example
    -------
    >>> import numpy as np
    >>> from quadrille.attack.genuine import chance_left
    >>> released, fitted = np.array([[1.0, 0.0, 9.0], [0.0, 9.0, 1.0]]), np.array([[1.0, 0.1, 9.0], [0.1, 9.0, 1.0]])
    >>> chance_left(released, fitted, 0.5, [0, 1])[released == 1].round(2).tolist()
    [0.73, 0.87]
    """
    empty, single = released == 0, released == 1
    left = fitted * coin / 2
    displaced = np.where(empty, left / (1 + fitted / 2), 0.0)
    was_empty = np.where(empty, 1 / (1 + fitted / 2), np.where(single, 0.5, 0.0))
    chance = np.ones(released.shape)
    for _ in range(_ROUNDS):
        room = _around(fitted * was_empty, moves)
        coming = fitted * _around(np.divide(displaced, room, out=np.zeros(room.shape), where=room > 0), moves)
        total = left + coming
        chance = np.divide(left, total, out=np.ones(total.shape), where=total > 0)
        was_empty = np.where(single, 1 - chance, was_empty)
    return chance


def _around(table: Floats, axes: Sequence[int]) -> Floats:
    """Add up the cells that differ from each cell in one of these axes."""
    return sum((table.sum(axis=axis, keepdims=True) - table for axis in axes), np.zeros(table.shape))


def _expected(table: KeyTable) -> Floats | str:
    """Return what a 2-way log-linear fit to the release expects in every cell, or why that cannot be."""
    fitted = released_fit(table)
    return TOO_MANY if fitted is None else fitted.reshape(-1)[table.number]


def _mean(values: NDArray[np.bool_] | Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def chance_genuine(given: AttackInput) -> Floats | str:
    """Return P(genuine) of each cell of one row, from the released file and the design alone; or why that cannot be.

    mu M / (mu M + lambda): mu is what a 2-way log-linear fit to the release expects in the cell, M the chance to stay
    in it, lambda the expected arrivals from other cells.
    """
    table = given.table
    known = moves_of(given)
    if isinstance(known, str):
        return known
    expected = _expected(table)
    if isinstance(expected, str):
        return expected
    here = expected * known.kept
    alone = table.g == 1
    total = here + known.arrivals(table)
    return np.divide(here, total, out=np.ones(table.cells), where=total > 0)[alone]
