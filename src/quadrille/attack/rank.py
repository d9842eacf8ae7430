"""Intersection of rank windows: the rows that can be a person's, when every value moved by a few ranks at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import NEEDS_DESIGN, NOT_ALIGNED, AttackInput, Finding, Floats, Section
from quadrille.data import Data, require_columns
from quadrille.errors import InputError, bad_parameter
from quadrille.present import numbers
from quadrille.swap.groups import Ints, group_ids

ATTACK, TITLE = "rank", "Windows of ranks"
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
    >>> from quadrille.attack.rank import rank_intersection
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
    return RankIntersection(targets, size, inside, _nearest(variables, targets), alike, n)


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


def _nearest(variables: Sequence[_Runs], targets: Ints) -> Floats:
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


_ADVICE = (
    "Swap few variables by rank, with a window of 20 % or more, or let them move together: each variable that moves by "
    "itself cuts the set of possible rows down. A shift without a bound takes the certainty away, not the risk."
)


def rank(given: AttackInput) -> Section:
    """Report on the numbers that were swapped; the intruder knows how far the ranks of each moved at most."""
    numeric = [name for name in given.moved or () if not given.data[name].variable.coded]
    reason = ""
    if given.moved is None:
        reason = NOT_ALIGNED
    elif not numeric:
        reason = "is an attack on swapped numbers, and no numeric column was swapped"
    elif given.knows != "design":
        reason = NEEDS_DESIGN
    if reason:
        return Section(ATTACK, TITLE, "Which rows the ranks leave possible is not looked at.", reason=reason)
    moved = [least_window(_values(given.data, name), _values(given.released, name)) for name in numeric]
    return rank_section(given.data, given.released, numeric, moved)


def least_window(original: Floats, released: Floats) -> float:
    """Return the least window that holds for all records: how far a rank moved at most, as a share of the values.

    >>> import numpy as np
    >>> from quadrille.attack.rank import least_window
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


def rank_section(data: Data, released: Data, columns: Sequence[str], window: float | Sequence[float]) -> Section:
    """Report what windows of ranks leave of a person's anonymity; the rows of the two files are aligned."""
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
            ATTACK,
            "possible rows, mean",
            float(found.size.mean()),
            float(found.alike.mean()),
            found.records,
            count,
            note,
        ),
        Finding(ATTACK, "a single possible row", found.single, float((found.alike == 1).mean()), 0.0, count, note),
        Finding(ATTACK, "true row among the possible", float(found.inside.mean()), 1.0, None, count, note),
        Finding(ATTACK, "right link, intersection", found.linked, float(exact.mean()), chance, count, note),
        Finding(
            ATTACK, "right link, nearest ranks", float(found.nearest.mean()), float(exact.mean()), chance, count, note
        ),
    )
    return Section(ATTACK, TITLE, _story(found, len(columns)), findings, _ADVICE)


def _values(data: Data, name: str) -> Floats:
    """Return numbers, or the codes of ordered categories; missing ones are NaN."""
    column = data[name]
    if not column.variable.coded:
        return column.values
    return np.where(column.values < column.valid, column.values, np.nan).astype(np.float64)


def _story(found: RankIntersection, variables: int) -> str:
    middle = int(np.sort(found.size)[len(found.size) // 2])
    rows = "one row" if middle == 1 else f"{numbers.count(middle)} rows"
    return (
        f"Somebody knows {variables} true values of a person, and how far ranks moved at most. For the person in the "
        f"middle {rows} of {numbers.count(found.records)} can be hers; for {numbers.share(found.single)} of all "
        "persons there is a single one."
    )
