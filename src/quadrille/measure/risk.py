"""Record by record: how far values moved, what the release leaves open, who is in a small cell, which are genuine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Cells, Floats, Ints
from quadrille.measure.base import EMPTY, NISS_131, NOTHING_CHANGED, Measure, Score, option, undefined
from quadrille.measure.population import ASK, Sample, expected_counts, mean_one_in
from quadrille.params import ShareText
from quadrille.summary import Change, Tally


def _ordinal_shift(before: Tally, change: Change) -> Score:
    """Mean over records of the category distance moved, as a share of the scale; missing values are left out."""
    valid = before.valid[0]
    if valid < 2:
        return undefined("the variable has a single category")
    original, released, value = _from_to(before, change)
    known = (original < valid) & (released < valid)
    total = float(value[known].sum())
    if not total:
        return undefined("no record has a value before and after")
    distance = np.abs(original - released)[known]
    shift = float((value[known] * distance).sum()) / (valid - 1) / total
    note = "" if known.all() else "records with a missing value are left out"
    note = NOTHING_CHANGED if (original == released).all() else note
    return Score(shift, {"moved_share": float(value[known][distance > 0].sum()) / total}, note)


def _conditional_entropy(before: Tally, change: Change) -> Score:
    """H(original | released) = - sum p(o, r) ln( p(o, r) / p(r) )."""
    if not change.total_new:
        return undefined(EMPTY)
    if not before.cross.exact:
        return undefined("too many combinations of original and released values; name fewer variables")
    original, released, value = _from_to(before, change)
    if (original == released).all():
        return Score(0.0, note=NOTHING_CHANGED)
    _, place = np.unique(released, return_inverse=True)
    margin = np.bincount(place, weights=value)[place]
    return Score(float((value * np.log(margin / value)).sum()) / float(value.sum()))


def _from_to(before: Tally, change: Change) -> tuple[Cells, Cells, NDArray[np.float64]]:
    """Return original and released combinations and the records, or weights, that went from one to the other."""
    complete = before.complete(change)
    kept = complete.new > 0
    combinations = prod(before.cross.sizes[len(before.cross.sizes) // 2 :])
    cells = complete.cells[kept]
    return cells // combinations, cells % combinations, complete.new[kept].astype(np.float64)


_RECORD_BY_RECORD = (
    Measure(
        "ordinal_shift",
        "mean over records of |category position after − before| / (m − 1), m the categories of the scale",
        _ordinal_shift,
        side="loss",
        reference=f"asked for in the discussion of {NISS_131}",
        layout="each",
        ordinal=True,
    ),
    Measure(
        "conditional_entropy",
        "H(original | released) of the swap variables over records, in nats: what the release leaves open",
        _conditional_entropy,
        side="risk",
        direction="higher",
        range=(0.0, inf),
        reference=f"mentioned in {NISS_131}",
        layout="joint",
    ),
)


_PAPER = "Gomatam, Karr & Sanil (2003), NISS Technical Report 132; Journal of Official Statistics 21(4), 2005"
TOO_MANY = "too many combinations of the variables to tell them apart; name fewer variables"
ALL_SWAPPED = "every record is swapped: no unswapped record is left to be at risk"


def _small_cells(before: Tally, change: Change, *, n: int) -> Score:
    """Share of the unswapped records that lie in cells of 1 to n - 1 records after the swap."""
    if not before.records:
        return undefined(EMPTY)
    unswapped = before.known("unswapped", lambda: _unswapped(before))
    at_risk = before.known(f"at risk {n}", lambda: _at_risk(_both(before), n))
    more_at_risk, more_unswapped = _effect(before, change, n)
    unswapped += more_unswapped
    at_risk += more_at_risk
    if not unswapped:
        return undefined(ALL_SWAPPED)
    detail = {"at_risk": at_risk, "unswapped": unswapped}
    return Score(at_risk / unswapped, detail, explain=partial(_who, before, change, n))


def _effect(before: Tally, change: Change, n: int) -> tuple[int, int]:
    """Return by how many the unswapped records in small cells, and all unswapped records, change."""
    if before.keys is None:
        at_risk, unswapped = kernels.small_cell_change(change.cells, change.new_count, before.count, n)
        return int(at_risk), int(unswapped)
    old, new = _split(before, change)
    return _at_risk(new, n) - _at_risk(old, n), int((new[:, 0] - old[:, 0]).sum())


def _split(before: Tally, change: Change) -> tuple[Ints, Ints]:
    """Return, for every touched cell of the table, how many records were not and were swapped, old and new."""
    cell = change.cells >> 1
    first = cell[np.concatenate(([True], cell[1:] != cell[:-1]))] if len(cell) else cell
    both = (2 * first[:, None] + np.array([0, 1])).ravel()
    old, _ = before.at(both)
    new = old.copy()
    place = np.searchsorted(both, change.cells)
    old[place] = change.old_count
    new[place] = change.new_count
    return old.reshape(-1, 2), new.reshape(-1, 2)


def _both(before: Tally) -> Ints:
    """Return how many records were not and were swapped, of every cell of the table that has any."""
    if before.keys is None:
        return before.count.reshape(-1, 2)
    cell = before.keys >> 1
    first = np.concatenate(([True], cell[1:] != cell[:-1]))[: len(cell)]
    both = np.zeros((int(first.sum()), 2), dtype=np.int64)
    both[np.cumsum(first) - 1, before.keys & 1] = before.count
    return both


def _at_risk(cells: Ints, n: int) -> int:
    size = cells.sum(axis=1)
    return int(cells[(size > 0) & (size < n), 0].sum())


def _unswapped(before: Tally) -> int:
    """Count the records of the cells without the mark, which have even numbers."""
    return int(before.count[::2].sum() if before.keys is None else before.count[before.keys & 1 == 0].sum())


def _who(before: Tally, change: Change, n: int) -> list[dict[str, object]]:
    """Break the risk down: by size of cell, and by category of each variable."""
    complete = before.complete(change)
    cell, (_, new) = np.unique(complete.cells >> 1), _split(before, complete)
    size, unswapped = new.sum(axis=1), new[:, 0]
    rows: list[dict[str, object]] = []
    for s in range(1, n):
        rows.append(_row("cell size", str(s), int(unswapped[size == s].sum()), int(unswapped.sum())))
    for name, labels in zip(before.summary.variables, before.labels, strict=True):
        code = before.cross.codes(2 * cell, name) if before.cross.exact else None
        for k, label in enumerate(labels if code is not None else ()):
            inside = code == k
            small = inside & (size > 0) & (size < n)
            rows.append(_row(name, label, int(unswapped[small].sum()), int(unswapped[inside].sum())))
    return rows


def _row(variable: str, category: str, at_risk: int, unswapped: int) -> dict[str, object]:
    share = at_risk / unswapped if unswapped else None
    return {"variable": variable, "category": category, "at_risk": at_risk, "unswapped": unswapped, "risk": share}


def _exposed(before: Tally, change: Change, *, n: int) -> Score:
    """Released records in small cells that match a true record of the same combination, as a share of all."""
    if not before.records:
        return undefined(EMPTY)
    genuine, shown = _genuine(before, change, n)
    total = before.records + int((change.new_count - change.old_count).sum())
    return Score(genuine / total, {"genuine": genuine, "in_small_cells": shown}) if total else undefined(EMPTY)


def _confidence(before: Tally, change: Change, *, n: int) -> Score:
    """Of the released records in small cells, the share that is genuine."""
    genuine, shown = _genuine(before, change, n)
    if not shown:
        return undefined(f"no cell of the release has 1 to {n - 1} records")
    return Score(genuine / shown, {"genuine": genuine, "in_small_cells": shown})


def _genuine(before: Tally, change: Change, n: int) -> tuple[int, int]:
    """Return the sum of min(f, g) and of g over the cells with 0 < g < n."""
    f, g = change.old_count, change.new_count
    same = before.known(f"small {n}", lambda: int(before.count[before.count < n].sum()))
    untouched = same - int(f[f < n].sum())
    small = g < n
    return untouched + int(np.minimum(f, g)[small].sum()), untouched + int(g[small].sum())


def _population_risk(
    before: Tally, change: Change, *, sampling: float | None = None, sample: Sample | None = None
) -> Score:
    """Expected right matches of records alone in the release to persons of the population, as a share of all."""
    if not before.records:
        return undefined(EMPTY)
    if sample is None or sample.share is None:
        return undefined(NO_POPULATION if sample is None else sample.reason)
    if not before.cross.exact:
        return undefined(TOO_MANY)
    known = before.known(f"in the population {sample.per_unit}", lambda: _Persons.of(before, sample))
    cell = np.unique(change.cells >> 1)
    f, _ = before.at(2 * cell)
    now = np.stack((f, np.zeros_like(f)))
    now[change.cells & 1, np.searchsorted(cell, change.cells >> 1)] = change.new_count
    alone, own = now.sum(axis=0) == 1, (now[0] == 1) & (f > 0)
    uniques = known.uniques + int(alone.sum()) - int((f == 1).sum())
    right = known.one_in(cell[alone & own]).sum() - known.one_in(cell[f == 1]).sum()
    expected = max(known.expected + float(right), 0.0)
    detail = {
        "uniques": uniques,
        "expected": expected,
        "uniques_before": known.uniques,
        "expected_before": known.expected,
        "before": known.expected / before.records,
        "population": sample.persons(before.records),
    }
    return Score(expected / before.records, detail, "" if known.fitted else ROUGH, scale=known.expected)


@dataclass(frozen=True, eq=False)
class _Persons:
    """Occupied cells, ascending, with the mean of 1 / F, the persons of the population in each; the sum over uniques.

    A cell in which a log-linear model expects mu records, each of them standing for w persons of the population, has
    Poisson many persons outside of the file, mu (w - 1) on average; w is the mean weight of its records.
    """

    cells: Cells
    mean: Floats
    uniques: int
    expected: float
    fitted: bool

    @classmethod
    def of(cls, before: Tally, sample: Sample) -> _Persons:
        cells = before.occupied()
        count, ticks = before.at(cells)
        names = before.cross.variables[:-1]
        codes, sizes = [before.cross.codes(cells, name) for name in names], before.cross.sizes[:-1]
        expected, fitted = expected_counts(codes, sizes, count, quick=True)
        weight = np.ones(len(cells)) if ticks is None else ticks / before.per_unit / count
        each = np.maximum(weight * sample.per_unit, 1.0)
        mean = mean_one_in(count, expected * (each - 1))
        alone = count == 1
        return cls(cells >> 1, mean, int(alone.sum()), float(mean[alone].sum()), fitted)

    def one_in(self, cells: Cells) -> Floats:
        """Return the mean of 1 / F in some of the cells."""
        return self.mean[np.searchsorted(self.cells, cells)]


NO_POPULATION = f"the file has no weight, so the size of the population is not known; {ASK}"
ROUGH = "a rough estimate, and rather too high: too many combinations for a model with all 2-way margins"

_N = option("n", 3, "cells of fewer than n records are small")
_risk = partial(Measure, side="risk", declares=(_N,), weight_linear=False)
MEASURES = (
    *_RECORD_BY_RECORD,
    _risk(
        "small_cells",
        "unswapped records in cells of 1 to n−1 records after the swap / all unswapped records (the n-rule)",
        _small_cells,
        reference=_PAPER,
        layout="participation",
    ),
    _risk(
        "exposed",
        "Σ min(f, g) over cells with 0 < g < n / N: released records in small cells that match a true one",
        _exposed,
        reference="n = 2: replicated uniques of the synthetic-data literature; unlike the n-rule no swap can fool it",
    ),
    _risk(
        "confidence",
        "Σ min(f, g) / Σ g over cells with 0 < g < n: how sure one may be that a small cell is genuine",
        _confidence,
        reference="companion of exposed; 1 before any swap",
    ),
    _risk(
        "population_risk",
        "Σ E(1/F) over records that are alone in the release and have kept their keys / N: expected right matches to "
        "the F persons of the population who have these keys, where the file is a sample",
        _population_risk,
        reference="Skinner & Shlomo (2008), JASA 103; Shlomo & Skinner (2010), Annals of Applied Statistics 4(3)",
        layout="arrival",
        declares=(
            ShareText(
                "the share of the population that is in the file", otherwise="what the data or their weights say"
            ).of_field("sampling", float, None),
        ),
        of_sample=True,
        without_rows=True,
    ),
)
