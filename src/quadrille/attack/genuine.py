"""Is a small cell of the release genuine? By size, and as far as an intruder who knows the design can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.finding import Finding, Section
from quadrille.attack.fit import all_margins, auc, fit, released_fit
from quadrille.attack.input import AttackInput, Floats, KeyTable
from quadrille.attack.transition import moves_of
from quadrille.present.numbers import count, share

NAME, TITLE = "genuine", "Is a small cell of the release genuine?"
_ADVICE = (
    "A share of genuine small cells is no doubt that everybody shares: whoever knows the design can tell which are "
    "safe to believe. Judge by the surest claims, not by the average."
)
SURE = 0.95
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
        yield _by_fit(table, truth)
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


def _by_fit(table: KeyTable, truth: NDArray[np.bool_]) -> Finding:
    """Tell genuine uniques of a designed swap from displaced ones by how many records a fit to the release expects."""
    if truth.all():
        note = "all of them are genuine, and an intruder knows it" if len(truth) else "no unique is left"
        return Finding(NAME, _APART, None, None, 0.5, len(truth), note)
    expected = _expected(table)
    if isinstance(expected, str):
        return Finding(NAME, _APART, None, None, 0.5, len(truth), expected)
    note = f"by a 2-way fit; truly genuine are {share(float(truth.mean()))}"
    return Finding(NAME, _APART, auc(expected[table.g == 1], truth), None, 0.5, len(truth), note)


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
