"""What an intruder finds in the release: which row is whose, and what the keys of a person tell about another value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Cells, Floats, Ints, united
from quadrille.delta import scratch
from quadrille.measure.base import EMPTY, TARGET, Measure, Score, option, undefined
from quadrille.measure.risk import TOO_MANY
from quadrille.summary import Change, Tally

_RAAB_2024 = "Raab, Nowok & Dibben (2024), Practical privacy metrics for synthetic data, arXiv:2406.16826"
_REITER_2009 = "Reiter & Mitra (2009), Journal of Privacy and Confidentiality 1(1)"
_ONE_VALUE = 0.9
"""Claims of which more name one value mostly tell what everybody knows."""
NOBODY_UNIQUE = "nobody is unique on what the intruder knows"

Inferences = Mapping[str, Floats]
"""For each target the sums that `kernels.attack` names, over the persons of the original file."""


def _linked(before: Tally, change: Change) -> Score:
    """Share of the persons whose row is found by picking, at random, a released row with their keys."""
    if not before.records:
        return undefined(EMPTY)
    everybody = before.records + 1
    cells, _ = before.known("cells", lambda: _cells_below(before, everybody))
    alone, _ = before.known("cells of one", lambda: _cells_below(before, 2))
    links, unique, right = _links(before, change, everybody)
    detail = {
        "links": cells + links,
        "before": cells / before.records,
        "chance": 1 / before.records,
        "unique_links": alone + unique,
        "unique_links_right": alone + right,
    }
    return Score((cells + links) / before.records, detail)


def _linked_small(before: Tally, change: Change, *, n: int) -> Score:
    """The same share, of the persons who were in cells of 1 to n - 1 records."""
    cells, persons = before.known(f"cells below {n}", lambda: _cells_below(before, n))
    if not persons:
        return undefined(f"no cell of the original has 1 to {n - 1} records")
    links, _, _ = _links(before, change, n)
    detail = {"links": cells + links, "persons": persons, "before": cells / persons, "chance": 1 / before.records}
    return Score((cells + links) / persons, detail)


def _cells_below(before: Tally, n: int) -> tuple[int, int]:
    """Return how many cells have 1 to n - 1 records, and how many records that is; nobody has arrived yet."""
    small = before.count[(before.count > 0) & (before.count < n)]
    return len(small), int(small.sum())


def _links(before: Tally, change: Change, n: int) -> tuple[float, int, int]:
    """Return by how much the right links, the unique links and those that are right change, over cells with f < n."""
    if before.keys is None:
        return kernels.links_change(change.cells, change.new_count, before.count, n)
    cell = np.unique(change.cells >> 1)
    f, _ = before.at(2 * cell)
    now = np.stack((f, np.zeros_like(f)))
    now[change.cells & 1, np.searchsorted(cell, change.cells >> 1)] = change.new_count
    f, still, g = f[f < n], now[0, f < n], now.sum(axis=0)[f < n]
    alone = int((f == 1).sum())
    links = float((still / np.maximum(g, 1)).sum()) - int((f > 0).sum())
    return links, int(f[g == 1].sum()) - alone, int(((g == 1) & (still == 1)).sum()) - alone


def _attributed(before: Tally, change: Change, *, target: str | None) -> Score:
    """Share of the persons whose keys stand in the release with a single value of the target, their own."""
    if not before.records:
        return undefined(EMPTY)
    if not before.cross.exact:
        return undefined(TOO_MANY)
    found = _inferences(before, change, target)
    cases = len(found) * before.records
    right, claims = (int(sum(sums[place] for sums in found.values())) for place in (kernels.RIGHT, kernels.CLAIMS))
    start = sum(float(_start(before, name)[kernels.RIGHT]) for name in found)
    detail = {"before": start / cases, "claims": claims, "right": right, **_among_claims(right, claims)}
    return Score(right / cases, detail, _one_value(found), explain=partial(_claims, before, change, found))


def _attributed_unique(before: Tally, change: Change, *, target: str | None) -> Score:
    """Mean, over the persons who are alone with their keys, of the share of released rows that has their value."""
    if not before.cross.exact:
        return undefined(TOO_MANY)
    found = _inferences(before, change, target)
    sums = np.sum([each[: kernels.BY_VALUE] for each in found.values()], axis=0)
    detail = _outcomes(sums)
    if not detail["persons"]:
        return undefined(NOBODY_UNIQUE)
    value = float(sums[kernels.UNIQUE_SHARE]) / detail["persons"]
    return Score(value, detail, explain=partial(_persons, before, found))


def _inferences(before: Tally, change: Change, target: str | None) -> Inferences:
    """Return the sums for one target, or for each variable of the table as the target."""
    return {name: _start(before, name) + _difference(before, change, name) for name in _targets(before, target)}


def _targets(before: Tally, target: str | None) -> tuple[str, ...]:
    return before.summary.variables if target is None else (target,)


def _start(before: Tally, target: str) -> Floats:
    """Return the sums if the original file were released."""

    def work_out() -> Floats:
        cells = _occupied(before)
        count, _ = before.at(cells)
        order = None if before.keys is None else _by_group(before, target).astype(np.int64)
        return _sums(before, target, cells, count, count, order)

    return before.known(f"start {target}", work_out)


def _difference(before: Tally, change: Change, target: str) -> Floats:
    """Return by how much the sums change, from the groups that the change touches."""
    if before.keys is None:
        memory = scratch(before.cross.possible)
        return kernels.inference_change(change.cells, change.new_count, before.count, *_axis(before, target), memory)
    cells = united(_members(before, change, target), change.cells)
    f, _ = before.at(cells)
    g = f.copy()
    g[np.searchsorted(cells, change.cells)] = change.new_count
    return _sums(before, target, cells, f, g) - _sums(before, target, cells, f, f)


def _members(before: Tally, change: Change, target: str) -> Cells:
    """Return the occupied cells of the groups that the change touches."""
    cells, order = _occupied(before), _by_group(before, target)
    touched = np.unique(_group(before, target, change.cells))
    start, end = np.empty_like(touched), np.empty_like(touched)
    kernels.find_groups(touched, cells, order, *_axis(before, target), start, end)
    size = end - start
    return cells[order[np.repeat(end - np.cumsum(size), size) + np.arange(int(size.sum()))]]


def _occupied(before: Tally) -> Cells:
    """Return the occupied cells; of a table that lists its cells they are asked for again with every plan."""
    return before.occupied() if before.keys is None else before.known("occupied", before.occupied)


def _by_group(before: Tally, target: str) -> NDArray[np.uint32]:
    """Return the order that puts the occupied cells of a group together; one for each target, so in small numbers."""

    def sort() -> NDArray[np.uint32]:
        return np.argsort(_group(before, target, _occupied(before)), kind="stable").astype(np.uint32)

    return before.known(f"by group {target}", sort)


def _axis(before: Tally, target: str) -> tuple[int, int]:
    """Return the stride and the number of categories of a target."""
    return before.cross.stride(target), before.cross.sizes[before.cross.variables.index(target)]


def _group(before: Tally, target: str, cells: Cells) -> Cells:
    """Return the first cell of the group of each cell: what it says of the other variables."""
    stride, size = _axis(before, target)
    return cells - cells // stride % size * stride


def _sums(before: Tally, target: str, cells: Cells, f: Ints, g: Ints, order: Ints | None = None) -> Floats:
    """Return the sums over groups all of whose cells are given, with the counts before and in the release."""
    stride, size = _axis(before, target)
    group = _group(before, target, cells)
    sums, share = np.zeros(kernels.BY_VALUE + size), np.full(len(cells), -1.0)
    by_group = np.argsort(group, kind="stable") if order is None else order
    kernels.inference_sums(by_group, group, cells // stride % size, f, g, sums, share)
    sums[kernels.UNIQUE_SHARE] = share[share >= 0].sum()
    return sums


def _outcomes(sums: Floats) -> dict[str, float]:
    """Count the unique persons by what the release says of them: one mean is not a chance for everybody."""
    right, wrong = int(sums[kernels.UNIQUE_RIGHT]), int(sums[kernels.UNIQUE_WRONG])
    undecided, gone = int(sums[kernels.UNIQUE_UNDECIDED]), int(sums[kernels.UNIQUE_GONE])
    counts = {"right": right, "wrong": wrong, "undecided": undecided, "gone": gone}
    return {"persons": sum(counts.values()), **counts, **_among_claims(right, right + wrong)}


def _among_claims(right: int, claims: int) -> dict[str, float]:
    return {"right_among_claims": right / claims} if claims else {}


def _one_value(found: Inferences) -> str:
    """Warn where nearly all claims name one value of the target."""
    alike = sum(bool(_commonest(sums) > _ONE_VALUE * sums[kernels.CLAIMS]) for sums in found.values())
    where = "" if len(found) == 1 else f", for {alike} of {len(found)} targets"
    return f"one value makes more than 90 % of the claims{where}" if alike else ""


def _commonest(sums: Floats) -> float:
    return float(sums[kernels.BY_VALUE :].max())


def _claims(before: Tally, change: Change, found: Inferences) -> list[dict[str, object]]:
    """Return a row per target: what is claimed, how much of it is right, and what a guess from the margin gives."""
    rows: list[dict[str, object]] = []
    for target, sums in found.items():
        right, claims = int(sums[kernels.RIGHT]), int(sums[kernels.CLAIMS])
        rows.append(
            {
                "target": target,
                "value": right / before.records,
                "before": float(_start(before, target)[kernels.RIGHT]) / before.records,
                "chance": float((_margin(before, target) ** 2).sum()),
                "claims": claims,
                "right": right,
                "right_among_claims": right / claims if claims else None,
                "commonest_value": _commonest(sums) / claims if claims else None,
                "everybody": _everybody(before, change, target),
            }
        )
    return rows


def _persons(before: Tally, found: Inferences) -> list[dict[str, object]]:
    """Return a row per target: what the release says of the unique persons, and what a guess from the margin gives."""
    cells = before.occupied()
    count, _ = before.at(cells)
    rows: list[dict[str, object]] = []
    for target, sums in found.items():
        outcomes = _outcomes(sums)
        persons = outcomes["persons"]
        stride, size = _axis(before, target)
        group = np.unique(_group(before, target, cells), return_inverse=True)[1]
        own = np.bincount(group, weights=count)[group] == 1
        chance = _margin(before, target)[cells[own] // stride % size]
        rows.append(
            {
                "target": target,
                "value": float(sums[kernels.UNIQUE_SHARE]) / persons if persons else None,
                "before": 1.0 if persons else None,
                "chance": float(chance.mean()) if persons else None,
                **outcomes,
            }
        )
    return rows


def _margin(before: Tally, target: str) -> Floats:
    """Return the share of each value of the target in the original file."""
    cells = before.occupied()
    stride, size = _axis(before, target)
    return np.bincount(cells // stride % size, weights=before.at(cells)[0], minlength=size) / before.records


def _everybody(before: Tally, change: Change, target: str) -> float:
    """Return the mean over all persons of the share of the released rows with their keys that has their value."""
    complete = before.complete(change)
    group = np.unique(_group(before, target, complete.cells), return_inverse=True)[1]
    shown = np.bincount(group, weights=complete.new_count)[group]
    return float((complete.old_count * complete.new_count / np.maximum(shown, 1)).sum()) / before.records


def at_start(kind: Measure, before: Tally) -> tuple[float, float]:
    """Return the sum that a measure begins with, from the table before, and the persons or cases that it is about."""
    if kind.layout == "arrival":
        cells, persons = _cells_below(before, kind.options.get("n", before.records + 1))
        return float(cells), float(persons)
    targets = _targets(before, kind.options["target"])
    right, unique = (
        sum(float(_start(before, name)[place]) for name in targets) for place in (kernels.RIGHT, kernels.UNIQUE_RIGHT)
    )
    return (right, float(len(targets) * before.records)) if kind.name == "attributed" else (unique, unique)


_risk = partial(Measure, side="risk", weight_linear=False)
MEASURES = (
    _risk(
        "linked",
        "Σ s/g over cells / N, s the records that are in the cell they were in: persons found by keys, ties at random",
        _linked,
        reference=f"expected match risk of {_REITER_2009}, for exact matching",
        layout="arrival",
    ),
    _risk(
        "linked_small",
        "Σ s/g over cells with 0 < f < n / Σ f: of the persons in small cells, those found by keys, ties at random",
        _linked_small,
        reference=f"expected match risk of {_REITER_2009}, for exact matching",
        layout="arrival",
        declares=(option("n", 3, "cells of fewer than n records are small"),),
    ),
    _risk(
        "attributed",
        "persons whose keys are in the release with one value of the target only, their own / N",
        _attributed,
        reference=f"DiSCO of {_RAAB_2024}",
        layout="target",
        declares=(TARGET,),
    ),
    _risk(
        "attributed_unique",
        "mean over persons unique on their keys of the share of released records with these keys that have their value",
        _attributed_unique,
        reference=f"correct attribution probability, of uniques; {_RAAB_2024}",
        layout="target",
        declares=(TARGET,),
    ),
)
