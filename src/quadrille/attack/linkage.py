"""Linkage: somebody who knows the keys of a person in the file picks the row that fits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from quadrille.attack.input import NOT_ALIGNED, AttackInput, Finding, Floats, KeyTable, Section
from quadrille.attack.transition import CellMoves, moves_of
from quadrille.present.numbers import count, counted, share
from quadrille.swap.groups import Ints

NAME, TITLE = "linkage", "Finding a person's row by the keys"
_ADVICE = (
    "Random swapping of less than a tenth of the records leaves most links right. Protect the small cells with a "
    "designed swap, or coarsen the keys."
)
_DESIGNED_ADVICE = (
    "What is left of the small cells is mostly one chance in n. A larger n, and fewer or coarser keys, leave less."
)
_MOST_DISTANCES = 1 << 27
"""Cells times cells times keys that are compared; more persons without a fitting row are a sample of them."""

_CHUNK = 1 << 21


def linkage(given: AttackInput) -> Section:
    """Link every person to a row by the keys: exactly, to the nearest one, and by the chances of the design."""
    if not given.aligned:
        return Section(NAME, TITLE, "Whether a row that fits a person is theirs cannot be told.", reason=NOT_ALIGNED)
    findings = tuple(_findings(given))
    right, small, unique, true = findings[:4]
    assert right.value is not None and right.before is not None and unique.value is not None and true.value is not None
    story = (
        f"Somebody who knows the {len(given.keys)} keys of a person and picks a row that fits is expected to be right "
        f"for {count(right.value)} of {counted(given.table.records, 'person')}; before the swap for "
        f"{count(right.before)}. {_singles(unique.value, true.value)} "
        f"Of the {counted(small.count or 0, 'person')} in cells of fewer than {given.n}, {count(small.value)} are "
        f"expected to be found.{_silence(given, findings)}"
    )
    return Section(NAME, TITLE, story, findings, _DESIGNED_ADVICE if given.designed else _ADVICE)


def _singles(fit: float, theirs: float) -> str:
    if not fit:
        return "Nobody fits a single row."
    return (
        f"{counted(int(fit), 'person fits', 'persons fit')} a single row, and {share(theirs / fit)} of these rows are "
        "theirs."
    )


def _silence(given: AttackInput, findings: tuple[Finding, ...]) -> str:
    """Say what no row tells."""
    few, one = ([each for each in findings if each.quantity.startswith(_NO_ROW)] + [None, None])[:2]
    if few is None or one is None:
        return ""
    return (
        f" Finding no row tells something, too: of {counted(few.count or 0, 'combination')} that are gone, "
        f"{share(few.value)} had fewer than {given.n} persons, and {share(one.value)} a single one."
    )


def _findings(given: AttackInput) -> Iterator[Finding]:
    table, n = given.table, given.table.records
    f, g, stayed = table.f, table.g, table.stayed
    occupied, small = g > 0, (f > 0) & (f < given.n)
    right = np.divide(stayed, g, out=np.zeros(table.cells), where=occupied)
    before, few = float((f > 0).sum()), int(f[small].sum())
    yield Finding(NAME, "expected right links", float(right.sum()), before, 1.0, n)
    yield Finding(
        NAME,
        f"expected right links, persons in cells of fewer than {given.n}",
        float(right[small].sum()),
        float(small.sum()),
        few / n,
        few,
    )
    single, alone = g == 1, float((f == 1).sum())
    linked = int(f[single].sum())
    yield Finding(NAME, "persons who fit a single row", float(linked), alone, count=n)
    yield Finding(NAME, "single rows that are theirs", float(stayed[single].sum()), alone, linked / n, linked)
    yield _without_swapped(given, n)
    yield _nearest(given, float(right.sum()), before)
    yield _by_design(given, before)
    yield from _no_row(given)


_NO_ROW = "combinations that no row has any more"


def _no_row(given: AttackInput) -> Iterator[Finding]:
    """Tell what finding no row says of a person who is in the file: of a designed swap, that few were like her."""
    f = given.table.f[(given.table.f > 0) & (given.table.g == 0)]
    gone, occupied = len(f), given.table.f[given.table.f > 0]
    if not gone:
        return
    note = f"{counted(int(f.sum()), 'person is', 'persons are')} in these combinations"
    for what, most in ((f"those of fewer than {given.n} persons", given.n - 1), ("those of one person", 1)):
        shares = (float((part <= most).mean()) for part in (f, occupied))
        yield Finding(NAME, f"{_NO_ROW}: {what}", next(shares), None, next(shares), gone, note)


def _without_swapped(given: AttackInput, n: int) -> Finding:
    """Count the combinations of the keys that were not swapped: so many links are right whatever is swapped."""
    quantity = "expected right links without the swapped keys"
    kept = [name for name in given.keys if name not in (given.moved or ())]
    combinations = float(given.table.ids(kept)[1])
    return Finding(NAME, quantity, combinations, combinations, 1.0, n, "these keys are as they were")


def _nearest(given: AttackInput, right: float, before: float) -> Finding:
    """Give persons whose keys no row has the nearest row, and add the right links to those of the others."""
    table = given.table
    quantity = "expected right links, the nearest row where none fits"
    absent = np.flatnonzero((table.f > 0) & (table.g == 0))
    present = np.flatnonzero(table.g > 0)
    persons = int(table.f[absent].sum())
    most = max(1, _MOST_DISTANCES // max(len(present) * len(table.names), 1))
    tried = absent[np.linspace(0, len(absent) - 1, most).astype(np.int64)] if len(absent) > most else absent
    step = max(1, _CHUNK // max(len(present), 1))
    found = sum(_nearest_right(given, tried[i : i + step], present) for i in range(0, len(tried), step))
    scale = len(absent) / len(tried) if len(tried) else 1.0
    note = "" if scale == 1 else f"of the combinations that are absent, {len(tried):,} evenly spread ones were tried"
    return Finding(NAME, quantity, right + scale * found, before, 1.0, persons, note)


def _nearest_right(given: AttackInput, absent: Ints, present: Ints) -> float:
    """Return the expected right links of the persons in some absent cells, each to a row of the nearest cells."""
    table = given.table
    distance = np.zeros((len(absent), len(present)))
    for name, codes in zip(table.names, table.codes, strict=True):
        mine, theirs = codes[absent][:, None], codes[present][None, :]
        column = given.data[name]
        differs = (mine != theirs).astype(np.float64)
        if column.variable.kind == "ordinal" and column.valid > 1:  # missing values have no place on the scale
            known = (mine < column.valid) & (theirs < column.valid)
            differs[known] = (np.abs(mine - theirs) / (column.valid - 1))[known]
        distance += differs
    nearest = distance <= distance.min(axis=1, keepdims=True) + 1e-9
    rows = nearest @ table.g[present].astype(np.float64)
    return float((_flows(table, absent, present) * nearest).sum(axis=1) @ (1 / rows))


def _flows(table: KeyTable, sources: Ints, goals: Ints) -> Floats:
    """Return how many records went from each of some cells to each of others."""
    before, after, number = table.flows
    row, column = np.full(table.cells, -1), np.full(table.cells, -1)
    row[sources], column[goals] = np.arange(len(sources)), np.arange(len(goals))
    inside = (row[before] >= 0) & (column[after] >= 0)
    found = np.zeros((len(sources), len(goals)))
    found[row[before[inside]], column[after[inside]]] = number[inside]
    return found


def _by_design(given: AttackInput, before: float) -> Finding:
    """Link each person to the row of the largest M(x -> z) / g_z."""
    quantity, n = "expected right links, by the chances of the design", given.table.records
    known = moves_of(given)
    if isinstance(known, str):
        return Finding(NAME, quantity, None, before, 1.0, n, known)
    cells = np.flatnonzero(given.table.f > 0)
    step = max(1, _CHUNK // known.reach.shape[1])
    found = sum(_best_right(given.table, known, cells[i : i + step]) for i in range(0, len(cells), step))
    return Finding(NAME, quantity, found, before, 1.0, n)


def _best_right(table: KeyTable, known: CellMoves, cells: Ints) -> float:
    """Return the expected right links of the persons in some cells, each to a row of the best cell."""
    goals = known.reach.shape[1]
    cell_at = np.full(known.stays * goals, -1)
    cell_at[known.stay * goals + known.goal] = np.arange(table.cells)
    reached = cell_at.reshape(known.stays, goals)[known.stay[cells]]
    rows = np.where(reached >= 0, table.g[reached], 0)
    score = np.divide(known.reach[known.source[cells]], rows, out=np.zeros(rows.shape), where=rows > 0)
    best = (score >= score.max(axis=1, keepdims=True) * (1 - 1e-12)) & (score > 0)
    before, after, number = table.flows
    place = np.full(table.cells, -1)
    place[cells] = np.arange(len(cells))
    same = (place[before] >= 0) & (known.stay[before] == known.stay[after])
    own = np.zeros(rows.shape)
    own[place[before[same]], known.goal[after[same]]] = number[same]
    return float(((own * best).sum(axis=1) / np.maximum((rows * best).sum(axis=1), 1)).sum())
