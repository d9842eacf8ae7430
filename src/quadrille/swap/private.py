"""Permutation swapping with a guarantee: records are drawn by chance, then permuted (Bailie, Gong and Meng 2026).

First the epsilon, exactly, and the chance that a target needs, which theory/private.md derives; then the swap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, cached_property
from math import ceil, exp, expm1, inf, log, log1p
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, tidy, unequal
from quadrille.errors import ParameterError, bad_parameter, infeasible
from quadrille.params import SEED, Columns, Number, Share, Word, as_float, whole
from quadrille.plan import Details, Move, Plan
from quadrille.randomness import Seed, Stream, Words, is_secret
from quadrille.recipe import Movement, Prepared, Recipe, carried, carried_fact, refuse_overlap, require_one
from quadrille.swap.groups import Grouping, Ints, codes_of, group_ids
from quadrille.swap.permutation import Parts, deranged, permuted_columns, refuse_weight
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

WORDS = 1 << 32
"""A record is selected when a word of 32 bits is below a threshold, so chances are multiples of 1 / WORDS."""

_EXACT = 18
"""Up to so many records derangement numbers are counted; beyond, d(b) / d(b - 2) is b (b - 1) in every digit."""


@cache
def _derangements(k: int) -> int:
    """Count the permutations of k things that leave none in its place."""
    return 1 if k == 0 else k * _derangements(k - 1) + (-1) ** k


@cache
def _half_window(n: int) -> float:
    """Return R(n) = ln(d(n) / d(n - 2)) / 2, what moving the last two records of a stratum costs each of them."""
    ratio = n * (n - 1) if n > _EXACT else _derangements(n) / _derangements(n - 2)
    return log(ratio) / 2


def log_odds(chance: float) -> float:
    """Return ln(p / (1 - p))."""
    return log(chance) - log1p(-chance)


def swap_epsilon(n: int, chance: float, *, published: bool = False) -> float:
    """Return the epsilon of a stratum of n records whose records are drawn with a chance, then permuted.

    With L = ln(p / (1 - p)) and R(n) = ln(d(n) / d(n - 2)) / 2, d the derangement numbers: |L| for n = 2,
    max(L, ln 2 / 3 - L, (ln 2 - L) / 2) for n = 3, max(L, R(n) - L) for more. No smaller value holds for all files of
    that size. A file has the largest epsilon of its strata.

    Parameters
    ----------
    n : records of the stratum; one record never moves, and its epsilon is 0.
    chance : that a record is drawn.
    published : return the bound of Bailie, Gong and Meng instead, which is up to 1.2 larger: ln(n + 1) - L, or L.

    Example
    -------
    >>> import quadrille as qd
    >>> round(qd.theory.swap_epsilon(100, 0.05), 3), round(qd.theory.swap_epsilon(100, 0.05, published=True), 3)
    (7.545, 7.56)

    Reference: Bailie, Gong and Meng, A Refreshment Stirred, Not Shaken, 2026, for the method and its bound.
    """
    n, p = whole("swap_epsilon", "n", n, least=1), as_float(chance)
    if not 0 <= p <= 1:
        raise bad_parameter("swap_epsilon", "chance", "a number from 0 to 1", chance)
    if n == 1:
        return 0.0
    if p in (0, 1):
        return inf
    if published:
        return max(log(n + 1) - log_odds(p), log_odds(p))
    return _epsilon(n, log_odds(p))


def _epsilon(n: int, odds: float) -> float:
    """Return the largest loss per record over all two permutations of n records, by the log odds."""
    if n == 2:
        return abs(odds)
    if n == 3:
        return max(odds, log(2) / 3 - odds, (log(2) - odds) / 2)
    return max(odds, _half_window(n) - odds)


def least_epsilon(n: int) -> float:
    """Return the least epsilon that a stratum of n records can have, whatever the chance.

    >>> from quadrille.swap.private import least_epsilon
    >>> [round(least_epsilon(n), 3) for n in (2, 3, 4, 10, 1000)]
    [0.0, 0.231, 0.549, 1.125, 3.454]
    """
    if n <= 2:
        return 0.0
    return log(2) / 3 if n == 3 else _half_window(n) / 2


_SLACK, _ROUNDING = 1e-9, 1e-13


def chance_for(n: int, epsilon: float) -> float:
    """Return the smallest chance that gives a stratum of n records this epsilon.

    p = o / (1 + o) with o = exp(-e) for n = 2, exp(max(ln 2 / 3 - e, ln 2 - 2 e)) for n = 3, exp(R(n) - e) for more. A
    stratum of many records cannot have a small epsilon: the error names the least one.

    Example
    -------
    >>> import quadrille as qd
    >>> [round(qd.theory.chance_for(n, 8), 4) for n in (2, 10, 100, 1_000)]
    [0.0003, 0.0032, 0.0323, 0.2511]
    >>> qd.theory.chance_for(1_000, 2)
    Traceback (most recent call last):
    quadrille.errors.ParameterError: No chance gives a stratum of 1,000 records an epsilon of 2: ...
    """
    n, e = whole("chance_for", "n", n, least=2), as_float(epsilon)
    if not 0 <= e < inf:
        raise bad_parameter("chance_for", "epsilon", "a number of 0 or more, not infinite", epsilon)
    if e < least_epsilon(n) - _SLACK:
        raise _out_of_reach(n, e)
    if n == 2:
        odds = -e
    elif n == 3:
        odds = max(log(2) / 3 - e, log(2) - 2 * e)
    else:
        odds = _half_window(n) - e
    return 1 / (1 + exp(-odds)) if odds > -700 else 0.0


def _out_of_reach(n: int, epsilon: float) -> ParameterError:
    """Say which epsilon can be asked for instead."""
    return ParameterError(
        f"No chance gives a stratum of {n:,} records an epsilon of {epsilon:g}: the least is "
        f"{ceil(least_in_words(n) * 1000) / 1000:.3f}. Ask for a larger epsilon, or make the strata smaller with "
        "'within', which keeps more exactly and hides less."
    )


def threshold_of(chance: float) -> int:
    """Return the threshold of a chance: the nearest that selects neither nobody nor everybody.

    >>> from quadrille.swap.private import threshold_of
    >>> threshold_of(0.5), threshold_of(1e-12), threshold_of(1 - 1e-12)
    (2147483648, 1, 4294967295)
    """
    return min(max(int(chance * WORDS + 0.5), 1), WORDS - 1)


def threshold_for(n: int, epsilon: float) -> int:
    """Return the smallest threshold whose epsilon is this one or less."""
    near = ceil(chance_for(n, epsilon) * WORDS)
    for threshold in (near - 1, near, near + 1):  # a float may miss it by one
        if 0 < threshold < WORDS and swap_epsilon(n, threshold / WORDS) <= epsilon + _ROUNDING:
            return threshold
    raise _out_of_reach(n, epsilon)


def least_in_words(n: int) -> float:
    """Return the least epsilon among all thresholds; of huge strata the steps between them tell.

    >>> from quadrille.swap.private import least_in_words
    >>> round(least_in_words(1_000), 3), least_in_words(2)
    (3.454, 0.0)
    """
    best = threshold_of(chance_for(n, least_epsilon(n)))
    return min(swap_epsilon(n, t / WORDS) for t in (best - 1, best, best + 1) if 0 < t < WORDS)


def exchange_odds(epsilon: float) -> float:
    """Return exp(2 epsilon): the most by which one exchange of two records changes the chance of a release.

    >>> from quadrille.swap.private import exchange_odds
    >>> round(exchange_odds(5))
    22026
    """
    return exp(2 * epsilon) if epsilon < 350 else inf


class Moved(NamedTuple):
    """The number K of records that move: a binomial number, drawn again while it is one."""

    mean: float
    variance: float


def moved(n: int, chance: float) -> Moved:
    """Return mean and variance of the number of records that move in a stratum.

    E K = n p (1 - (1-p)^(n-1)) / (1 - n p (1-p)^(n-1)), and E K^2 likewise.

    >>> from quadrille.swap.private import moved
    >>> round(moved(4, 0.1).mean / 4, 4)
    0.0383
    """
    if n < 2 or chance == 0:
        return Moved(0.0, 0.0)
    stay = (n - 1) * log1p(-chance) if chance < 1 else -inf
    one = n * chance * exp(stay)
    mean = n * chance * -expm1(stay) / (1 - one)
    square = (n * chance * (1 - chance) + (n * chance) ** 2 - one) / (1 - one)
    return Moved(mean, max(square - mean**2, 0.0))


Floats = NDArray[np.float64]

_OWNER = "PrivateSwap"
_BLOCK = 1 << 16
"""Words that are drawn at a time: memory follows the records that move, not those of the file."""
_FEW = 4
"""Strata of up to so many records are small: next to none of their records move at any epsilon worth having."""

NUMBER_SEED = "the seed is a number, and whoever tries it undoes the swap. Leave the seed out"
GIVEN_SEED = (
    "the seed was given, or a plan was drawn with it before, so the draw may have been picked among others. Take the "
    "seed out of the recipe, and let the release draw once"
)


@dataclass(frozen=True, eq=False, repr=False)
class Strata(Parts):
    """The strata of a file, and per stratum its records n and the threshold of its words.

    A threshold of 0 marks a stratum in which nothing can change: of one record, or of one combination of the variables
    that move, or of those that stay. All of it follows from what a swap leaves as it is.
    """

    threshold: Ints

    @property
    def chance(self) -> Floats:
        """The chance really used in each stratum."""
        return self.threshold / WORDS

    @cached_property
    def kinds(self) -> dict[tuple[int, float], int]:
        """How many strata there are of each size and chance, the largest first."""
        kinds, count = np.unique(np.stack([self.n, self.threshold]), axis=1, return_counts=True)
        listed = zip(*kinds.tolist(), count.tolist(), strict=True)
        return {(n, t / WORDS): times for n, t, times in reversed(list(listed))}

    @cached_property
    def expected(self) -> Floats:
        """The expected number of records that move, of each stratum."""
        pairs, where = np.unique(np.stack([self.n, self.threshold]), axis=1, return_inverse=True)
        mean = np.array([moved(n, t / WORDS).mean for n, t in zip(*pairs.tolist(), strict=True)])
        return mean[where.ravel()]


@dataclass(frozen=True, repr=False)
class Guarantee(Shown):
    """What a private swap promises: for files with the same invariants that differ by one exchange of two records, no
    release is more than exp(2 epsilon) times as likely under one as under the other.

    `largest` is the size of the largest stratum in which anything can change, `singles` and `few` are the records in
    strata of one and of 2 to 4, `still` those in strata where nothing can change, `own` the expected share of records
    that show their own values. `strata` has a row per size: `n`, `count`, `chance`, `moves` (the chance that a record
    moves) and `epsilon`. `invariants` are the tables that are exact, which the promise does not cover. `void` lists the
    reasons for which nothing is promised; with any, no epsilon may be published. `total` adds the epsilons of
    `releases` releases of the same data.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> found = qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], chance=0.05).guarantee(data)
    >>> round(found.epsilon, 2), f"{found.exchange_odds:.1e}", found.largest, found.void
    (12.76, '1.2e+11', 18245, ())
    >>> found.strata.select("n", "count").row(0), round(found.least_moves, 4)
    ((18245, 1), 0.05)
    """

    epsilon: float
    exchange_odds: float
    largest: int
    strata: pl.DataFrame = field(repr=False)
    records: int
    singles: int
    few: int
    still: int
    own: float
    swap: tuple[str, ...]
    within: tuple[str, ...]
    held: tuple[str, ...]
    void: tuple[str, ...] = ()
    chance: float | None = None
    """The one chance of all strata; None where each has its own."""
    total: float = 0.0
    releases: int = 1

    @property
    def holds(self) -> bool:
        """Whether anything is promised."""
        return not self.void

    @property
    def invariants(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The two tables that are exact: of all that stays, and of the strata by what moves."""
        return self.held, (*self.within, *self.swap)

    @property
    def total_odds(self) -> float:
        """What one exchange changes at most over all releases of the same data."""
        return exchange_odds(self.total)

    @property
    def moves(self) -> float:
        """The expected share of records that move."""
        return self._over(self._rows("moves"))

    @property
    def least_moves(self) -> float:
        """The least chance that a record moves, of strata in which anything can change."""
        return min((row["moves"] for row in self.strata.to_dicts() if row["chance"]), default=0.0)

    def _rows(self, name: str) -> list[float]:
        return self.strata[name].to_list()

    def _over(self, values: Sequence[float]) -> float:
        sizes = zip(self._rows("n"), self._rows("count"), values, strict=True)
        return sum(n * count * value for n, count, value in sizes) / self.records if self.records else 0.0

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "epsilon": self.epsilon,
            "exchange_odds": self.exchange_odds,
            "chance": self.chance,
            "largest": self.largest,
            "records": self.records,
            "singles": self.singles,
            "few": self.few,
            "still": self.still,
            "own": self.own,
            "moves": self.moves,
            "least_moves": self.least_moves,
            "invariants": [list(names) for names in self.invariants],
            "void": list(self.void),
            "total": self.total,
            "releases": self.releases,
            "strata": self.strata.to_dicts(),
        }


@dataclass(frozen=True)
class PrivateSwap(Recipe):
    """Permute the swap variables among records that are drawn by chance, within strata, with a guarantee.

    In every stratum each record is drawn with the chance p; if one alone is, the stratum is drawn again; then the
    records drawn change places by a uniform permutation that leaves none in its place. Everything that stays, and the
    table of strata by what moves, is exact. `epsilon` gives every stratum the smallest chance that is enough for it.
    Levels of geography travel together, but for those in `within`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=12)
    >>> round(recipe.guarantee(data).epsilon, 6)
    12.0
    >>> len(qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=12, seed=7).plan(data).rows)
    3213

    Reference: Bailie, Gong and Meng, A Refreshment Stirred, Not Shaken, 2026, Algorithm 1.
    """

    refused: ClassVar[Mapping[str, str]] = {
        "rules": "a record that may not come to meet a rule makes some releases impossible for some files, and then no "
        "epsilon exists. Swap with RandomSwap, ControlledSwap or DesignedSwap, which obey rules.",
        "rate": "with a fixed share of records that move, a release rules out the files that are further away, and "
        "then no epsilon exists. Give a 'chance', by which each record is drawn, or an 'epsilon'.",
        "records": "with a fixed number of records that move, a release rules out the files that are further away, and "
        "then no epsilon exists. Give a 'chance' or an 'epsilon'.",
        "pairs": "disjoint pairs, and any fixed number of them, cannot make every permutation, so no epsilon exists. "
        "Give a 'chance' or an 'epsilon'.",
        "differ": "partners that must differ show that no exchanged values were equal, and then no epsilon exists. "
        "Swap with RandomSwap for true swaps.",
        "same": "records change places within strata. Name the columns on which they agree with 'within'.",
        "different": "partners that must differ in a column make some permutations impossible, and then no epsilon "
        "exists. Leave it out, or swap with RandomSwap.",
        "never": "a record that surely stays is told from the others, and then no epsilon exists. Leave it out, or "
        "swap with ControlledSwap or DesignedSwap.",
    }

    swap: Annotated[Sequence[str], Columns("the variables that move, all by one permutation", least=1, moves=True)]
    _: KW_ONLY
    within: Annotated[
        Sequence[str],
        Columns(
            "strata within which records change places. Finer ones give a smaller epsilon and protect less, because "
            "more stays exact; a missing value is a stratum of its own"
        ),
    ] = ()
    chance: Annotated[
        float | None,
        Share("chance by which each record is drawn; about that share moves, less in small strata", within="(0, 1)"),
    ] = None
    epsilon: Annotated[
        float | None,
        Number("the epsilon to keep, instead of a chance: every stratum gets its own smallest chance that is enough"),
    ] = None
    weight: Annotated[
        Literal["stays", "moves"],
        Word(
            "the weight moves with the swap variables; otherwise it stays with its record",
            option="move-weight",
            switched="moves",
        ),
    ] = "stays"
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters, and remember whether the seed is drawn here, so that nobody can have seen its plan."""
        object.__setattr__(self, "_fresh", self.seed is None)
        super().__post_init__()

    def check(self) -> None:
        """Refuse parameters that do not go together."""
        require_one(self, chance="by which records are drawn", epsilon="to keep")
        refuse_overlap(self, (("swap", "within"),), "A column that moves cannot bound the strata.")

    def check_columns(self, data: Data) -> None:
        """Refuse columns that the data lack, and to swap what must stay with its record."""
        refuse_weight(data, self.swap)
        super().check_columns(data)

    def prepare(self, data: Data) -> Prepared:
        """Sort the records by stratum, and work out the chance of each."""
        columns, strata = self.columns_moved(data), self.strata(data)
        roster, able = strata.grouping.roster(), np.flatnonzero(strata.threshold)
        open_strata = (roster.start[able], strata.n[able], strata.threshold[able])
        guess = float(strata.expected.sum())
        details = Details({"expected_to_move": guess, **carried_fact(carried(data, self.swap, self.within))})

        def draw(stream: Stream) -> Plan:
            chosen, sizes = _selected(stream.sub("select").blocks(_BLOCK), open_strata, guess)
            rows = roster.rows(chosen)
            move = Move(columns, (rows, rows[deranged(sizes, stream.sub("cycles"))]))
            return Plan([move], data=data, details=details, steering_columns=self.steering_columns)

        return Prepared(draw)

    def stream(self) -> Stream:
        """Return the random stream that belongs to this recipe; from then on its plan may have been seen."""
        object.__setattr__(self, "_fresh", False)
        return super().stream()

    def movement(self, data: Data) -> Movement:
        """Return all that moves, by one permutation within the strata.

        >>> import quadrille as qd
        >>> qd.PrivateSwap(["Age"], chance=0.05, within=["Sex"]).movement(qd.datasets.cps8d())
        Movement(together=(('Age',),), same=('Sex',), closed=(), unit=None)
        """
        return Movement((self.columns_moved(data),), tuple(self.within))

    def columns_moved(self, data: Data) -> tuple[str, ...]:
        """Return the columns that move in these data; refuse what cannot.

        >>> import quadrille as qd
        >>> qd.PrivateSwap(["tract"], chance=0.1).columns_moved(qd.datasets.state(records=3_200))
        ('tract', 'county')
        """
        return permuted_columns(data, self.swap, self.within, self.weight)

    def columns_held(self, data: Data) -> tuple[str, ...]:
        """Return the columns that stay with their record and are released, those that make the strata first.

        >>> import quadrille as qd
        >>> qd.PrivateSwap(["Edu", "AnnSal"], chance=0.1, within=["Sex"]).columns_held(qd.datasets.cps8d())
        ('Sex', 'Age', 'EmpTyp', 'MS', 'Race', 'AvgHrs')
        """
        aside = (*self.columns_moved(data), *self.within)
        rest = [name for name in data.columns if name not in aside and data.codebook[name].role != "id"]
        return (*self.within, *rest)

    def strata(self, data: Data) -> Strata:
        """Return the strata of a file, with the threshold that the chance or the epsilon of the recipe gives each.

        >>> import quadrille as qd
        >>> strata = qd.PrivateSwap(["Age"], epsilon=12, within=["Sex"]).strata(qd.datasets.cps8d())
        >>> strata.n.tolist(), strata.chance.round(4).tolist()
        ([32650, 16192], [0.1671, 0.0905])
        """
        found = Grouping([codes_of(data, name) for name in self.within], data)
        n = found.counts
        able = self._able(data, found)
        if not able.any():
            reason = (
                "No stratum has two records that differ in what moves and in what stays, so nothing can be swapped."
            )
            raise infeasible(reason, 1, 0, exact=True, hint="Name fewer columns in 'within', or others in 'swap'.")
        if self.chance is not None:
            return Strata(data, self.within, found, n, np.where(able, threshold_of(self.chance), 0))
        assert self.epsilon is not None
        sizes, where = np.unique(n[able], return_inverse=True)
        threshold = np.zeros(len(n), dtype=np.int64)
        listed = sizes.tolist()
        threshold_for(max(listed, key=least_epsilon), self.epsilon)  # says what the largest stratum cannot have
        threshold[able] = np.array([threshold_for(size, self.epsilon) for size in listed])[where]
        return Strata(data, self.within, found, n, threshold)

    def chance_in(self, n: int) -> float:
        """Return the chance really used in a stratum of n records in which something can change.

        >>> import quadrille as qd
        >>> round(qd.PrivateSwap(["Edu"], epsilon=8).chance_in(10), 4)
        0.0032
        """
        if self.chance is not None:
            return threshold_of(self.chance) / WORDS
        assert self.epsilon is not None
        return threshold_for(n, self.epsilon) / WORDS

    def _able(self, data: Data, strata: Grouping) -> NDArray[np.bool_]:
        """Tell of each stratum whether it has two combinations of what moves, and two of what stays."""
        moving = self.columns_moved(data)
        staying = [name for name in self.columns_held(data) if name not in self.within]
        return _varies(data, moving, strata) & _varies(data, staying, strata)

    def guarantee(self, data: Data) -> Guarantee:
        """Return what the recipe promises for a file, before any draw: epsilon, strata, invariants.

        Example
        -------
        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> found = qd.PrivateSwap(["AnnSal"], within=["Sex"], chance=0.5, seed=7).guarantee(data)
        >>> round(found.epsilon, 2), found.void
        (10.39, ('the seed is a number, and whoever tries it undoes the swap. Leave the seed out',))
        """
        self.check_columns(data)
        strata = self.strata(data)
        rows = [
            {
                "n": n,
                "count": count,
                "chance": chance,
                "moves": moved(n, chance).mean / n,
                "epsilon": swap_epsilon(n, chance) if chance else 0.0,
            }
            for (n, chance), count in strata.kinds.items()
        ]
        epsilon = max(float(row["epsilon"]) for row in rows)
        able = strata.threshold > 0
        return Guarantee(
            epsilon,
            exchange_odds(epsilon),
            largest=int(strata.n[able].max()),
            strata=tidy(rows),
            records=data.n,
            singles=int((strata.n == 1).sum()),
            few=int(strata.n[(strata.n > 1) & (strata.n <= _FEW)].sum()),
            still=int(strata.n[~able].sum()),
            own=self._own(data, strata),
            swap=self.columns_moved(data),
            within=tuple(self.within),
            held=self.columns_held(data),
            void=self._void(),
            chance=None if self.chance is None else threshold_of(self.chance) / WORDS,
            total=epsilon,
        )

    @property
    def fresh(self) -> bool:
        """Whether the seed was drawn when the recipe was made, and no plan was drawn with it since.

        >>> import quadrille as qd
        >>> recipe = qd.PrivateSwap(["Edu"], chance=0.1)
        >>> before, plan = recipe.fresh, recipe.plan(qd.datasets.cps8d())
        >>> before, recipe.fresh, recipe.changed(seed=None).fresh
        (True, False, True)
        """
        return bool(self.__dict__["_fresh"])

    def _void(self) -> tuple[str, ...]:
        """Say why the draw of this recipe has no guarantee, if there is a reason."""
        if not is_secret(self.seed):
            return (NUMBER_SEED,)
        return () if self.fresh else (GIVEN_SEED,)

    def _own(self, data: Data, strata: Strata) -> float:
        """Return the expected share of records that show their own values, because they stay or meet their like."""
        cell, _ = group_ids(
            [(strata.of, len(strata.n)), *(codes_of(data, name) for name in self.columns_moved(data))], data.n
        )
        size = np.bincount(cell)
        alike = np.bincount(strata.of, weights=(size - 1)[cell], minlength=len(strata.n))  # pairs of equals, ordered
        staying = strata.n - strata.expected
        back = strata.expected * alike / np.maximum(strata.n * (strata.n - 1), 1)
        return float((staying + back).sum()) / data.n


def _varies(data: Data, columns: Sequence[str], strata: Grouping) -> NDArray[np.bool_]:
    """Tell of each stratum whether any of some columns varies within it; leave the file as soon as all is known."""
    varies = np.zeros(len(strata), dtype=np.bool_)
    unknown = strata.counts > 1
    for start, keys in strata.keys.chunks():
        if not unknown.any():
            break
        of = strata.group[keys]
        rows = np.flatnonzero(unknown[of])
        for name in columns:
            values, own = data[name].values, of[rows]
            varies[own[unequal(values[start + rows], values[strata.first[own]])]] = True
            rows = rows[~varies[own]]
        unknown &= ~varies
    return varies


def _selected(blocks: Iterator[Words], strata: tuple[Ints, Ints, Ints], guess: float) -> tuple[Ints, Ints]:
    """Return the places selected, stratum after stratum, and how many there are of each stratum that has any."""
    state = np.zeros(5, dtype=np.int64)
    chosen = np.empty(int(guess + 6 * guess**0.5) + 2 * _BLOCK, dtype=np.int64)
    count = np.empty(_BLOCK, dtype=np.int64)
    while state[0] < len(strata[0]):
        chosen, count = _with_room(chosen, state[2]), _with_room(count, state[4])
        kernels.select(next(blocks), *strata, state, chosen, count)
    return chosen[: state[3]], count[: state[4]]


def _with_room(array: Ints, used: int) -> Ints:
    """Return the array, or a longer one with the same beginning, that has room for another block."""
    if used + _BLOCK < len(array):
        return array
    longer = np.empty(2 * len(array) + _BLOCK, dtype=np.int64)
    longer[:used] = array[:used]
    return longer
