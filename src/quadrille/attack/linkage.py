"""Linkage: somebody who knows the keys of a person, or all values within a few ranks, picks the row that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.channel import FAR, Rehearsal, size_class
from quadrille.attack.input import (
    NEEDS_DESIGN,
    NOT_ALIGNED,
    AttackInput,
    CellMoves,
    Finding,
    KeyTable,
    Section,
    moves_of,
    standard_error,
    surest,
)
from quadrille.data import Data, Floats, Ints, require_columns
from quadrille.errors import InputError, bad_parameter
from quadrille.present import numbers
from quadrille.present.numbers import count, counted, share
from quadrille.swap.groups import group_ids
from quadrille.swap.rank import RankSwap

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
    told = (
        f" Finding no row tells something, too: of {counted(few.count or 0, 'combination')} that are gone, "
        f"{share(few.value)} had fewer than {given.n} persons, and {share(one.value)} a single one."
    )
    picked = next((each for each in findings if each.quantity == _PICKED), None)
    if picked is not None:
        told += (
            f" Those {counted(picked.count or 0, 'person')} are looked for where swaps of made-up files send such "
            f"persons, and {share(picked.value)} of the rows picked are theirs."
        )
    return told


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
    nearest = _nearest(given)
    persons = int(f[~occupied].sum())
    yield Finding(NAME, _NEAREST, float(right.sum()) + nearest[0], before, 1.0, persons, nearest[1])
    yield from _by_design(given, float(right.sum()), nearest[0], before)
    yield from _no_row(given)


_NO_ROW = "combinations that no row has any more"
_NEAREST = "expected right links, the nearest row where none fits"
_BY_CHANCES = "expected right links, by the chances of the design"
_PICKED = "persons whom no row fits: the row picked is theirs"
_MOST_SURE = 50


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


def _nearest(given: AttackInput) -> tuple[float, str]:
    """Give persons whose keys no row has the nearest row; return the expected right links, and who was tried."""
    absent, tried, present = _without_row(given.table)
    step = max(1, _CHUNK // max(len(present), 1))
    found = sum(_nearest_right(given, tried[i : i + step], present) for i in range(0, len(tried), step))
    return len(absent) / max(len(tried), 1) * found, _tried(absent, tried)


def _without_row(table: KeyTable) -> tuple[Ints, Ints, Ints]:
    """Return the cells that nobody is in any more, those of them that are looked at, and those with rows."""
    absent, present = np.flatnonzero((table.f > 0) & (table.g == 0)), np.flatnonzero(table.g > 0)
    most = max(1, _MOST_DISTANCES // max(len(present) * len(table.names), 1))
    tried = absent[np.linspace(0, len(absent) - 1, most).astype(np.int64)] if len(absent) > most else absent
    return absent, tried, present


def _tried(absent: Ints, tried: Ints) -> str:
    if len(absent) == len(tried):
        return ""
    return f"of the combinations that are absent, {len(tried):,} evenly spread ones were tried"


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


def _by_design(given: AttackInput, right: float, nearest: float, before: float) -> Iterator[Finding]:
    """Link each person to the row of the largest M(x -> z) / g_z, or where swaps of made-up files send such persons."""
    n, known = given.table.records, moves_of(given)
    if not isinstance(known, str):
        cells = np.flatnonzero(given.table.f > 0)
        step = max(1, _CHUNK // known.reach.shape[1])
        found = sum(_best_right(given.table, known, cells[i : i + step]) for i in range(0, len(cells), step))
        yield Finding(NAME, _BY_CHANCES, found, before, 1.0, n)
        return
    rehearsed = given.rehearsal if given.protected and set(given.protected[0]) <= set(given.keys) else None
    if rehearsed is None:
        yield Finding(NAME, _BY_CHANCES, None, before, 1.0, n, known)
        return
    yield from _by_rehearsal(given, rehearsed, right, nearest, before)


def _by_rehearsal(
    given: AttackInput, rehearsed: Rehearsal, right: float, nearest: float, before: float
) -> Iterator[Finding]:
    """Link persons whom no row fits to a row of the cells to which swaps of made-up files mostly send such persons."""
    table = given.table
    absent, tried, present = _without_row(table)
    step, f = max(1, _CHUNK // max(len(present), 1)), table.f[tried]
    hit, sure = np.zeros(len(tried)), np.zeros(len(tried))
    for i in range(0, len(tried), step):
        part = slice(i, i + step)
        chance = _per_row(given, rehearsed, tried[part], present)
        best = chance >= chance.max(axis=1, keepdims=True) * (1 - 1e-12)
        rows = table.g[present].astype(np.float64)
        hit[part] = (_flows(table, tried[part], present) * best).sum(axis=1) / (best @ rows) / f[part]
        total = chance @ rows
        np.divide(chance.max(axis=1), total, out=sure[part], where=total > 0)
    persons, found = int(table.f[absent].sum()), float(hit @ f)
    scale = len(absent) / max(len(tried), 1)
    how = " ".join(filter(None, ("by swaps of made-up files;", _tried(absent, tried)))).rstrip(";")
    yield Finding(NAME, _BY_CHANCES, right + scale * found, before, 1.0, table.records, how)
    if not persons:
        return
    mean, top = found / float(f.sum()), min(_MOST_SURE, len(tried))
    yield Finding(NAME, _PICKED, mean, None, nearest / persons, persons, "by chance, the nearest row")
    best = surest(sure, hit, top)
    yield Finding(NAME, f"{_PICKED}, the {top} surest", best, None, mean, top, standard_error(best, top))


def _per_row(given: AttackInput, rehearsed: Rehearsal, absent: Ints, present: Ints) -> Floats:
    """Return the chance of one row of each cell to be that of a person of each of the others, but for a factor.

    Keys outside of the protected table stay with their record: the row has hers.
    """
    table, protected = given.table, rehearsed.table
    differs = np.zeros((len(absent), len(present)), dtype=np.int64)
    hers = np.ones(differs.shape, dtype=np.bool_)
    for name, codes in zip(table.names, table.codes, strict=True):
        same = codes[absent][:, None] == codes[present]
        if name in protected.names:
            differs += ~same
        else:
            hers &= same
    row = np.zeros(table.cells, dtype=np.int64)
    row[table.after] = np.arange(len(table.after))
    rows = protected.g[protected.after[row[present]]]
    return hers * rehearsed.goals[np.minimum(differs, FAR), size_class(rows, rehearsed.n)]


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


RANK, RANK_TITLE = "rank", "Windows of ranks"
MOST_RECORDS = 20_000
"""In larger files some of the records are targets, at equal distances."""

TARGETS = 2_000
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RankIntersection:
    """What an intruder who knows a person's original values finds, for each person that he looks for.

    `size` counts the rows whose released values all lie within the window, `inside` says whether the true row is one of
    them, `nearest` is the chance that the row with the nearest ranks is the true one (ties share it), and `alike` the
    number of original records with the same values.
    """

    targets: Ints
    size: Ints
    inside: NDArray[np.bool_]
    nearest: Floats
    alike: Ints
    records: int

    @property
    def single(self) -> float:
        """Share of the persons for whom a single row is left."""
        return float((self.size == 1).mean())

    @property
    def linked(self) -> float:
        """Share of right links, one row of the set taken at random."""
        return float((self.inside / np.maximum(self.size, 1)).mean())


def rank_intersection(
    original: Sequence[Floats], released: Sequence[Floats], window: float | Sequence[float]
) -> RankIntersection:
    """Intersect the rows that each variable leaves possible for a person.

    The rank of a released value differs from that of the original one by at most w = floor(window m), m the values of
    the variable that are not missing. Equal values share all their ranks, so that the true row is always possible when
    the bound holds; missing values (NaN) stay. By the released ranks, sorted, the rows that a variable leaves possible
    are a run, and the others are looked up among the rows of the first.

    Parameters
    ----------
    original, released : the columns, one array per variable; the rows are those of the same persons.
    window : share of the records, one for all variables or one for each.

    Example
    -------
    >>> import numpy as np
    >>> from quadrille.attack.linkage import rank_intersection
    >>> income, age = np.array([10., 20, 30, 40]), np.array([1., 2, 3, 4])
    >>> found = rank_intersection([income, age], [income[[1, 0, 3, 2]], age[[0, 2, 1, 3]]], 0.25)
    >>> found.size.tolist(), bool(found.inside.all())
    ([1, 2, 2, 1], True)

    Reference: Nin, Herranz & Torra, Rethinking rank swapping to decrease disclosure risk, Data & Knowledge Engineering
    64(1), 2008.
    """
    windows = _checked(original, released, window)
    n = len(original[0])
    targets = np.arange(n) if n <= MOST_RECORDS else np.arange(TARGETS) * n // TARGETS
    variables = [
        _Runs.of(was, now, share, targets) for was, now, share in zip(original, released, windows, strict=True)
    ]
    size, inside = np.zeros(len(targets), dtype=np.int64), np.zeros(len(targets), dtype=np.bool_)
    first, *others = variables
    for i, target in enumerate(targets):
        rows = first.order[first.start[i] : first.stop[i]]
        for each in others:
            place = each.place[rows]
            rows = rows[(place >= each.start[i]) & (place < each.stop[i])]
        size[i] = len(rows)
        inside[i] = all(each.start[i] <= each.place[target] < each.stop[i] for each in variables)
    alike = _alike(original)[targets]
    return RankIntersection(targets, size, inside, _right_by_rank(variables, targets), alike, n)


def _checked(
    original: Sequence[Floats], released: Sequence[Floats], window: float | Sequence[float]
) -> tuple[float, ...]:
    """Refuse columns that do not go together; return a window for each."""
    if not len(original) or len(original) != len(released):
        raise InputError("rank_intersection needs as many original columns as released ones, and at least one.")
    if len({len(column) for column in (*original, *released)}) != 1 or not len(original[0]):
        raise InputError("The columns of rank_intersection differ in length, or are empty. Rows must be aligned.")
    windows = (window,) * len(original) if isinstance(window, int | float) else tuple(window)
    if len(windows) != len(original) or not all(0 < each <= 1 for each in windows):
        must = "a share of the records in (0, 1], one for all variables or one for each"
        raise bad_parameter("rank_intersection", "window", must, window)
    return windows


@dataclass(frozen=True, eq=False)
class _Runs:
    """The rows by their released value, and the run of them that is possible for each target.

    `place` is where a row is in `order`; `ranks` are the middle ranks of the released values and `own` those of the
    targets' original values.
    """

    order: Ints
    place: Ints
    start: Ints
    stop: Ints
    ranks: Floats
    own: Floats

    @classmethod
    def of(cls, original: Floats, released: Floats, window: float, targets: Ints) -> _Runs:
        order = np.argsort(released, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        present = int((~np.isnan(released)).sum())
        width = floor(window * present + _ROUNDING)
        values = released[order]

        def ranks(of: Floats) -> tuple[Ints, Ints]:
            """Return the lowest and the highest rank of values; those of missing ones are beyond any window."""
            low, high = np.searchsorted(values, of, side="left"), np.searchsorted(values, of, side="right") - 1
            far = np.isnan(of) * (width + len(values))
            return low + far, np.maximum(high, low) + far

        low, high = ranks(values)
        first, last = ranks(original[targets])
        start, stop = np.searchsorted(high, first - width), np.searchsorted(low, last + width, side="right")
        middle = np.empty(len(order))
        middle[order] = (low + high) / 2
        return cls(order, place, start, stop, middle, (first + last) / 2)


def _right_by_rank(variables: Sequence[_Runs], targets: Ints) -> Floats:
    """Return the chance that the row whose ranks are nearest, by squared distance, is the true one."""
    from scipy.spatial import KDTree

    rows, own = np.column_stack([each.ranks for each in variables]), np.column_stack([each.own for each in variables])
    tree = KDTree(rows)
    distance = np.asarray(tree.query(own)[0], dtype=np.float64) * (1 + _ROUNDING)
    ties = np.asarray(tree.query_ball_point(own, distance, return_length=True), dtype=np.int64)
    right = np.sqrt(((rows[targets] - own) ** 2).sum(axis=1)) <= distance
    return right / np.maximum(ties, 1)


def _alike(columns: Sequence[Floats]) -> Ints:
    """Count the records that agree with each in all values."""
    ranked = [np.unique(column, return_inverse=True) for column in columns]
    of, _ = group_ids([(codes, len(values)) for values, codes in ranked], len(columns[0]))
    return np.bincount(of)[of].astype(np.int64)


_RANK_ADVICE = (
    "Swap few variables by rank, with a window of 20 % or more, or let them move together: each variable that moves by "
    "itself cuts the set of possible rows down. A shift without a bound takes the certainty away, not the risk."
)


def rank(given: AttackInput) -> Section:
    """Report on what was swapped by ranks, or on numbers; the intruder knows how far ranks moved at most."""
    swap = given.recipe if isinstance(given.recipe, RankSwap) else None
    moved = given.moved or ()
    looked = [name for name in moved if not given.data[name].variable.coded]
    if swap is not None:  # what moves along with another has ranks of no bound
        looked = [group[0] for group in swap.groups if group[0] in moved]
    reason = ""
    if given.moved is None:
        reason = NOT_ALIGNED
    elif not looked:
        reason = "is an attack on swapped numbers, and no numeric column was swapped"
    elif given.knows != "design":
        reason = NEEDS_DESIGN
    if reason:
        return Section(RANK, RANK_TITLE, "Which rows the ranks leave possible is not looked at.", reason=reason)
    known: Mapping[str, float] = {} if swap is None else swap.radius(given.data)
    windows = [
        known[name] if name in known else least_window(_values(given.data, name), _values(given.released, name))
        for name in looked
    ]
    bounded = swap is None or swap.kernel == "window" or not known
    return rank_section(given.data, given.released, looked, windows, bounded=bounded)


def least_window(original: Floats, released: Floats) -> float:
    """Return the least window that holds for all records: how far a rank moved at most, as a share of the values.

    >>> import numpy as np
    >>> from quadrille.attack.linkage import least_window
    >>> income = np.array([10.0, 20, 30, 40])
    >>> least_window(income, income[[1, 0, 3, 2]])
    0.25
    """
    values = np.sort(released[~np.isnan(released)])
    if not len(values):
        return 1.0
    both = ~np.isnan(original) & ~np.isnan(released)
    (low, high), (first, last) = (
        (np.searchsorted(values, of[both]), np.searchsorted(values, of[both], side="right") - 1)
        for of in (released, original)
    )
    moved = np.maximum(low - np.maximum(last, first), first - np.maximum(high, low))
    return max(int(moved.max(initial=0)), 1) / len(values)


def rank_section(
    data: Data, released: Data, columns: Sequence[str], window: float | Sequence[float], *, bounded: bool = True
) -> Section:
    """Report what windows of ranks leave of a person's anonymity; the rows of the two files are aligned.

    `bounded` says that no rank moved farther than its window; else the window is where most of them stay.
    """
    for file in (data, released):
        require_columns(file, columns, "the attack on rank windows")
    found = rank_intersection(
        [_values(data, name) for name in columns], [_values(released, name) for name in columns], window
    )
    count, chance = len(found.targets), 1 / found.records
    exact = 1 / found.alike
    note = (
        "" if count == found.records else f"{numbers.count(count)} of {numbers.count(found.records)} records looked for"
    )
    findings = (
        Finding(
            RANK,
            "possible rows, mean",
            float(found.size.mean()),
            float(found.alike.mean()),
            found.records,
            count,
            note,
        ),
        Finding(RANK, "a single possible row", found.single, float((found.alike == 1).mean()), 0.0, count, note),
        Finding(RANK, "true row among the possible", float(found.inside.mean()), 1.0, None, count, note),
        Finding(RANK, "right link, intersection", found.linked, float(exact.mean()), chance, count, note),
        Finding(
            RANK, "right link, nearest ranks", float(found.nearest.mean()), float(exact.mean()), chance, count, note
        ),
    )
    return Section(RANK, RANK_TITLE, _story(found, len(columns), bounded=bounded), findings, _RANK_ADVICE)


def _values(data: Data, name: str) -> Floats:
    """Return numbers, or the codes of ordered categories; missing ones are NaN."""
    column = data[name]
    if not column.variable.coded:
        return column.values
    return np.where(column.values < column.valid, column.values, np.nan).astype(np.float64)


def _story(found: RankIntersection, variables: int, *, bounded: bool) -> str:
    middle = int(np.sort(found.size)[len(found.size) // 2])
    rows = "one row" if middle == 1 else f"{numbers.count(middle)} rows"
    true = "1 true value" if variables == 1 else f"{variables} true values"
    far = "how far ranks moved at most" if bounded else "how far most ranks moved"
    fits = "can be hers" if bounded else "fit, hers or not"
    return (
        f"Somebody knows {true} of a person, and {far}. For the person in the "
        f"middle {rows} of {numbers.count(found.records)} {fits}; for {numbers.share(found.single)} of all "
        "persons there is a single one."
    )
