"""Special uniques: who is alone on few of the keys, and so is known whichever of them an intruder holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, factorial, prod

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.attack.input import AttackInput, Finding, Floats, Section
from quadrille.data import Data, Rows
from quadrille.errors import InputError, bad_parameter
from quadrille.present import numbers
from quadrille.score.matching import matched
from quadrille.swap.groups import Ints, group_ids

ATTACK, TITLE = "special", "Special uniques"
_SAMPLING = 0.01
MOST_KEYS = 12
"""With more keys than this the sets of keys are too many: those of up to `FEW` are looked at."""

FEW = 4
_MOST_NAMED = 100
_TOP = 0.1
_BITS = 64
_HASH_STRIDE = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """The minimal sample uniques (MSUs) of a file, counted for every record.

    An MSU of a record is a set of keys on which it is alone, and alone on no proper subset of them. `found[i]` counts
    those of size i + 1 of each combination of values that occurs, `of` is the combination of each record, and
    `by_set` the number of MSUs of each set of keys that has any. `complete` is False when sets of more than `most`
    keys were not looked at.
    """

    keys: tuple[str, ...]
    most: int
    sampling: float
    of: Rows
    count: Ints
    found: NDArray[np.int32]
    by_set: dict[tuple[str, ...], int]

    @property
    def complete(self) -> bool:
        """Whether sets of all sizes were looked at."""
        return self.most >= len(self.keys)

    @cached_property
    def sizes(self) -> dict[int, int]:
        """The number of MSUs of each size."""
        total = self.found.sum(axis=1, dtype=np.int64)
        return {size: int(total[size - 1]) for size in range(1, self.most + 1) if total[size - 1]}

    @cached_property
    def scores(self) -> Floats:
        """The score of every record: sum of (m - i)! over its MSUs, i the size and m the number of keys."""
        return self._weighted([float(factorial(len(self.keys) - i)) for i in self._sizes])

    @cached_property
    def relative_scores(self) -> Floats:
        """The variant of the score that is a share of subsets: sum of (2^(m-i) - 1) i! (m-i)! / m!."""
        m = len(self.keys)
        return self._weighted([(2 ** (m - i) - 1) / comb(m, i) for i in self._sizes])

    @property
    def _sizes(self) -> range:
        return range(1, self.most + 1)

    def _weighted(self, weight: list[float]) -> Floats:
        return (np.array(weight, dtype=np.float64) @ self.found.astype(np.float64))[self.of]

    @property
    def records(self) -> int:
        """Records with at least one MSU."""
        return int((self.scores > 0).sum())

    @cached_property
    def theta(self) -> float | None:
        """The chance that a match to a unique of the file is right, over all uniques; None without any.

        theta = pi U / (pi U + 2 P (1 - pi)), U the records alone on all keys, P the pairs of records alike, pi the
        share of the population that is in the file (Skinner & Elliot 2002).
        """
        uniques, pairs = int((self.count == 1).sum()), int((self.count == 2).sum())
        share = self.sampling * uniques
        return share / (share + 2 * pairs * (1 - self.sampling)) if uniques else None

    @cached_property
    def dis(self) -> Floats:
        """The chance that a match to a record is right (DIS-SUDA), theta spread over the uniques by their scores."""
        scores = self.scores
        found = np.zeros(len(scores))
        some = scores > 0
        if self.theta is None or not some.any():
            return found
        uniques = int((self.count == 1).sum())
        power = 1 + (8 - len(self.keys)) / 20
        level = uniques / self.theta - uniques
        found[some] = 1 / (1 + level / (scores[some] ** power * (scores[some] ** -power).sum()))
        return found

    @cached_property
    def contributions(self) -> dict[str, float]:
        """The share of the total score in MSUs that contain each key; the shares add up to more than 1."""
        part = dict.fromkeys(self.keys, 0.0)
        for names, count in self.by_set.items():
            for name in names:
                part[name] += count * factorial(len(self.keys) - len(names))
        total = float(self.scores.sum())
        return {name: value / total if total else 0.0 for name, value in part.items()}

    @cached_property
    def top(self) -> Rows:
        """The tenth of the special uniques with the highest scores, and those that tie with the last of it."""
        some = np.sort(self.scores[self.scores > 0])[::-1]
        last = some[max(int(_TOP * len(some) + 0.5), 1) - 1] if len(some) else np.inf
        return np.flatnonzero(self.scores >= last)


def special_uniques(
    data: Data, keys: Sequence[str] | None = None, sampling: float = _SAMPLING, most: int | None = None
) -> SpecialUniques:
    """Find the minimal sample uniques of every record, and score it by them (SUDA2).

    Sets of keys are looked at by size. A combination that is alone on some of the keys meets nobody on more of them: it
    is passed over, and who is alone among the others is so on no smaller set.

    Parameters
    ----------
    data : the file.
    keys : what an intruder may know; the key variables by default. A missing value is a value like others.
    sampling : pi, the share of the population that is in the file; only theta and DIS rest on it.
    most : the largest sets of keys looked at; all of them by default up to 12 keys, and sets of 4 beyond.

    Example
    -------
    >>> import quadrille as qd
    >>> from quadrille.attack.suda import special_uniques
    >>> found = special_uniques(qd.datasets.cps8d())
    >>> found.records, int(found.scores.sum()), found.sizes
    (361, 2369, {4: 27, 5: 161, 6: 301, 7: 139, 8: 14})

    Reference: Elliot, Manning & Ford, A computational algorithm for handling the special uniques problem, 2002;
    Manning, Haglin & Keane, A recursive search algorithm for statistical disclosure assessment (SUDA2), 2008.
    """
    names = _keys_of(data, keys)
    if not 0 < sampling <= 1:
        raise bad_parameter("special_uniques", "sampling", "a number in (0, 1]", sampling)
    if most is not None and most < 1:
        raise bad_parameter("special_uniques", "most", "a whole number of 1 or more", most)
    largest = len(names) if len(names) <= MOST_KEYS else FEW
    largest = largest if most is None else min(most, len(names))
    of, count, codes = _cells(data, names)
    search = _Search(codes, count == 1)
    found = np.zeros((largest, len(count)), dtype=np.int32)
    by_set: dict[tuple[str, ...], int] = {}
    for size in range(1, largest + 1):
        for chosen, number in search.sets(size, found[size - 1], last=size == largest):
            by_set[tuple(names[key] for key in chosen)] = number
    return SpecialUniques(names, largest, sampling, of, count, found, by_set)


def _keys_of(data: Data, keys: Sequence[str] | None) -> tuple[str, ...]:
    names = data.keys if keys is None else tuple(keys)
    if not names:
        raise InputError("Special uniques need key variables. Name them, or give columns the role key.")
    if len(set(names)) != len(names):
        raise InputError("A key is named twice. Name each key once.")
    if len(names) > _MOST_NAMED:
        raise InputError(f"{len(names)} keys are too many for special uniques. Name at most {_MOST_NAMED}.")
    for name in names:
        data.coded(name, purpose="a key")
    return names


def _cells(data: Data, names: tuple[str, ...]) -> tuple[Rows, Ints, NDArray[np.uint32]]:
    """Return the combination of each record, how many records each has, and its codes without gaps."""
    of, cells = group_ids([(data[name].values, data[name].size) for name in names], data.n)
    leader = np.zeros(cells, dtype=np.int64)
    leader[of] = np.arange(data.n)
    codes = np.empty((len(names), cells), dtype=np.uint32)
    for row, name in zip(codes, names, strict=True):
        row[:] = np.unique(data[name].values[leader], return_inverse=True)[1]
    return of, np.bincount(of, minlength=cells).astype(np.int64), codes


class _Search:
    """The cells that are alone on each set of keys of the last size looked at, a bit for each cell."""

    def __init__(self, codes: NDArray[np.uint32], lone: NDArray[np.bool_]) -> None:
        self.codes, self.lone = codes, lone
        self.keys, self.cells = len(codes), len(lone)
        self.levels = [int(row.max()) + 1 for row in codes]
        self.alone: dict[tuple[int, ...], NDArray[np.uint64]] = {(): self._nobody()}
        self.hashed = np.empty(1 << (2 * self.cells).bit_length(), dtype=np.int32)

    def _nobody(self) -> NDArray[np.uint64]:
        return np.zeros(-(-self.cells // _BITS), dtype=np.uint64)

    def sets(self, size: int, found: NDArray[np.int32], *, last: bool) -> list[tuple[tuple[int, ...], int]]:
        """Look at all sets of a size; return those with MSUs and how many, and count the MSUs of each cell."""
        marked: list[tuple[tuple[int, ...], int]] = []
        alone: dict[tuple[int, ...], NDArray[np.uint64]] = {}
        for chosen in combinations(range(self.keys), size):
            known = self._nobody()
            for smaller in combinations(chosen, size - 1):
                known |= self.alone[smaller]
            number = int(self._mark(chosen, known, found))
            if number:
                marked.append((chosen, number))
            if not last:
                alone[chosen] = known
        self.alone = alone
        return marked

    def _mark(self, chosen: tuple[int, ...], known: NDArray[np.uint64], found: NDArray[np.int32]) -> int:
        levels = [self.levels[key] for key in chosen]
        direct = prod(levels) <= len(self.hashed)
        if direct:
            strides = [prod(levels[i + 1 :]) for i in range(len(levels))]
            slots = self.hashed[: prod(levels)]
        else:
            strides = [pow(_HASH_STRIDE, i + 1, 1 << 62) for i in range(len(levels))]
            slots = self.hashed
        keys = np.array(chosen, dtype=np.int64)
        return kernels.mark_lone(
            self.codes, self.lone, keys, np.array(strides, dtype=np.int64), slots, direct, known, found
        )


def special(given: AttackInput) -> Section:
    """Report the special uniques of a release next to those of the original."""
    if len(given.keys) > _MOST_NAMED:
        reason = f"{len(given.keys)} keys have too many sets: name at most {_MOST_NAMED}"
        return Section(ATTACK, TITLE, "Who is alone on few of the keys is not looked at.", reason=reason)
    return special_uniques_section(
        given.data, given.released, given.keys, sampling=given.sampling, aligned=given.aligned
    )


def special_uniques_section(
    data: Data,
    released: Data,
    keys: Sequence[str] | None = None,
    *,
    sampling: float | None = None,
    most: int | None = None,
    aligned: bool = True,
) -> Section:
    """Report the special uniques of a release next to those of the original.

    `sampling` is the share of the population that is in the file; a hundredth where it is not known. `aligned` says
    that the rows of the two files are those of the same persons. Without that, a special unique counts as still there
    when a record with its values, alone, is in the release.
    """
    supposed = "" if sampling else f"supposing that the file is {numbers.share(_SAMPLING)} of the population"
    sampling = sampling or _SAMPLING
    before, after = (special_uniques(each, keys, sampling, most) for each in (data, released))
    kept = _still_unique(data, released, before, aligned=aligned)
    top = before.top
    share = float(kept[top].mean()) if len(top) else None
    chance = 1 / data.n
    sets = "" if before.complete else f"sets of up to {before.most} of {len(before.keys)} keys"
    highest = max(before.contributions, key=lambda name: before.contributions[name])
    findings = (
        Finding(ATTACK, "records alone on some keys", after.records, before.records, None, data.n, sets),
        Finding(ATTACK, "sum of scores", float(after.scores.sum()), float(before.scores.sum()), None, after.records),
        Finding(
            ATTACK,
            "largest DIS",
            float(after.dis.max()),
            float(before.dis.max()),
            chance,
            after.records,
            "1 because no two records are alike in a pair, which DIS rests on" if after.theta == 1 else supposed,
        ),
        Finding(
            ATTACK,
            "most special tenth, still alone" + (" and in place" if aligned else ""),
            share,
            1.0 if len(top) else None,
            chance,
            len(top),
            "" if len(top) else "no record is alone on any keys",
        ),
        Finding(
            ATTACK,
            f"share of the score with {highest}",
            after.contributions[highest],
            before.contributions[highest],
            None,
            after.records,
            "the key that most of the score rests on",
        ),
    )
    return Section(ATTACK, TITLE, _story(before, kept), findings, _ADVICE)


_ADVICE = (
    "Who is alone on few keys stays alone when one of the others is coarsened or swapped. Coarsen the key that most of "
    "the score rests on, or swap the keys of these records themselves."
)


def _story(found: SpecialUniques, kept: NDArray[np.bool_]) -> str:
    if not found.records:
        return "Nobody is alone on the keys: nobody stands out by any of them."
    first = int(np.argmax(found.scores))
    own = found.found[:, found.of[first]]
    size = int(np.flatnonzero(own)[0]) + 1
    outcome = "is still there, alone" if kept[first] else "is not to be found any more"
    return (
        f"The most special person of the file is alone on {size} of the {len(found.keys)} keys, in "
        f"{numbers.count(own.sum())} ways that do not contain one another: to know any of them is enough. In the "
        f"release the record {outcome}."
    )


def _still_unique(data: Data, released: Data, before: SpecialUniques, *, aligned: bool) -> NDArray[np.bool_]:
    """Return which records are alone on all keys in both files, in their own row if rows are aligned."""
    one, other = matched(data, released, before.keys)
    columns = [
        (np.concatenate([one[name].values, other[name].values]), max(one[name].size, other[name].size))
        for name in before.keys
    ]
    of, cells = group_ids(columns, data.n + released.n)
    mine, theirs = of[: data.n], of[data.n :]
    alone = (np.bincount(mine, minlength=cells) == 1) & (np.bincount(theirs, minlength=cells) == 1)
    if not aligned:
        return alone[mine]
    if released.n != data.n:
        raise InputError("The release has another number of records: its rows are not aligned with the file.")
    return alone[mine] & (mine == theirs)
