"""Simulating how far swapping geography changes a table of areas by levels, replicate by replicate, in count space."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import floor, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args, overload

import numpy as np

from quadrille import kernels
from quadrille.data import Floats, Ints, tidy
from quadrille.errors import InfeasibleError, ParameterError, bad_parameter
from quadrille.params import SEED, Count, Number, Param, Share, Word, declared
from quadrille.randomness import Seed, Stream, Words, draw_until_enough
from quadrille.recipe import half_up
from quadrille.study.workers import cores
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

    from quadrille.simulation.design import SimulationDesign
    from quadrille.simulation.run import Simulation

Mechanism = Literal["records", "cells"]

METRICS = (
    "chi_square",
    "effective_swap_rate",
    "deviance",
    "gini_difference",
    "shannon_difference",
    "renyi_difference",
)
COUNTS = ("zero_cells", "redrawn")
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

_OWNER = "simulate"
_MOST_RECORDS = 2**31
_MOST_AREAS = 46_340  # the square still fits the random words of the kernels
_MOST_CELLS = 10**7
_REDRAWS, _REDRAWS_PER_PAIR = 1_000_000, 100
"""More pairs than this drawn again in one replicate: nearly all cells are empty, and the draw would hardly end."""
_HINTS = 1 << 14
_CHUNK = 16


@overload
def simulate(
    areas: Sequence[int],
    shares: Sequence[float],
    *,
    rate: float,
    mechanism: Mechanism = "records",
    replicates: int = 1000,
    seed: Seed = None,
    workers: int | None = None,
) -> pl.DataFrame: ...


@overload
def simulate(
    *,
    design: SimulationDesign | Mapping[str, object] | str | Path,
    out: str | Path,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation: ...


def simulate(
    areas: Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
    *,
    rate: float | None = None,
    mechanism: Mechanism = "records",
    replicates: int = 1000,
    seed: Seed = None,
    design: SimulationDesign | Mapping[str, object] | str | Path | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame | Simulation:
    """Swap records between areas again and again, and compare the table of areas by levels before and after.

    The table before has f = area * share records in a cell, rounded by largest remainder within the area. There are
    floor(rate * N / 2 + 1/2) pairs. The result has a row per replicate, and per metric a column: chi_square, sum of
    (f' - f)^2 / f; effective_swap_rate, half the sum of |f' - f| / N; deviance, 2 sum of f' ln(f' / f); and, r being
    f / area, gini_difference, sum of r'^2 - r^2; shannon_difference, sum of r' ln r' - r ln r; renyi_difference, half
    the change of ln(sum of r^3). `zero_cells` counts the cells that were empty before and are not after: they are left
    out of chi_square and deviance. `redrawn` counts the pairs that were drawn again: see `mechanism`.

    Parameters
    ----------
    areas : records of each area.
    shares : share of each level, the same in every area; they are scaled to sum to 1.
    rate : share of records that are swapped, both partners counted.
    mechanism : "records" has the distribution of RandomSwap of the area: a record uniformly, then its partner uniformly
        from the other areas; when all records left are in one area, a pair is parted to go on. "cells" takes two areas
        and two levels uniformly, whatever their counts; a pair that would make a count negative is redrawn. Where
        nearly all cells are empty, redraws would hardly end: more than 1,000,000 and 100 per pair are refused.
    replicates : number of rows. The first rows of a longer simulation are those of a shorter one.
    seed : None for 256 secret bits; a whole number only for tests and papers.
    design : instead of all these, a full factorial design: a file, its contents, or a SimulationDesign. Every setting
        is simulated and the results are analysed; the rows of a setting are those of `simulate` with the same seed.
    out : the folder of a design, with `replicates.parquet`, a row per replicate, `analysis.json` and its tables as CSV.
        It belongs to one design. When it is unfinished, the settings done are not simulated again.
    workers : cores to use; all by default. The result is the same for any number.
    progress : with a design, a function that is called with the number of replicates done and of all.

    Example
    -------
    >>> import quadrille as qd
    >>> frame = qd.simulate(areas=[5000, 20000], shares=[0.8, 0.2], rate=0.03, replicates=10, seed=1)
    >>> frame.shape
    (10, 8)
    >>> design = {
    ...     "design": {"replicates": 200, "seed": 1},
    ...     "areas": {"equal": ["4 x 1000"], "skewed": ["3 x 500", 2500]},
    ...     "levels": {"even": [0.5, 0.5], "uneven": [0.8, 0.2]},
    ...     "rates": {"low": 0.01, "high": 0.05},
    ... }
    >>> done = qd.simulate(design=design, out="simulated")
    >>> done.frame().shape
    (1600, 13)
    >>> done.analysis.models["chi_square"].factors
    ('areas', 'rates')

    Reference: Lemons, Dajani, You & Jordan (2014), US Census Bureau.
    """
    if design is None and progress is None and out is None:
        # What is missing is refused, with what it must be.
        table = cast("tuple[Sequence[int], Sequence[float], float]", (areas, shares, rate))
        asked = Asked(*table, mechanism, replicates, seed, workers)
        stream = asked.stream(cast("int | str", asked.seed))
        return _frame(_run(asked.swapping(), stream, asked.replicates, asked.workers or cores()))
    if design is None or out is None or (areas, shares, rate, seed) != (None,) * 4:
        raise ParameterError("simulate takes 'design' and 'out', or 'areas', 'shares' and 'rate' of one setting.")
    from quadrille.simulation.run import run_design

    return run_design(design, out, workers=workers, progress=progress)


SIZE = Count("records of an area")
LEVEL_SHARE = Number("share of a level; only the ratios of shares count", must="a number of 0 or more")


@dataclass(frozen=True)
class _Several(Param):
    """A list of two or more values."""

    def listed(self, owner: str, parameter: str, value: object) -> list[object]:
        """Return the values, which are yet to be checked one by one."""
        values = list(cast("Iterable[object]", value)) if isinstance(value, Iterable) else []
        if isinstance(value, str | bytes) or len(values) < 2:
            raise bad_parameter(owner, parameter, self.must, cast("object", value))
        return values


@dataclass(frozen=True)
class AreaSizes(_Several):
    """The records of each area: two or more whole numbers of 1 or more."""

    must: str = "a list of the number of records of two or more areas"

    kind = "area sizes"

    def check(self, owner: str, parameter: str, value: object) -> object:
        """Return the sizes."""
        sizes = [SIZE.check(owner, parameter, size) for size in self.listed(owner, parameter, value)]
        if len(sizes) > _MOST_AREAS or sum(sizes) >= _MOST_RECORDS:
            raise ParameterError(
                f"The '{parameter}' parameter of {owner} must have at most {_MOST_AREAS:,} areas and fewer than "
                f"{_MOST_RECORDS:,} records in all. Got {len(sizes):,} areas and {sum(sizes):,} records."
            )
        return tuple(sizes)


@dataclass(frozen=True)
class LevelShares(_Several):
    """The share of each level: two or more numbers of 0 or more that do not sum to zero."""

    must: str = "a list of two or more numbers of 0 or more with a sum above 0"

    kind = "level shares"

    def check(self, owner: str, parameter: str, value: object) -> object:
        """Return the shares, which need not sum to 1."""
        one = replace(LEVEL_SHARE, must=self.must)
        shares = [one.as_number(owner, parameter, share) for share in self.listed(owner, parameter, value)]
        if len(shares) > _MOST_AREAS or sum(shares) == 0 or not isfinite(sum(shares)):
            raise bad_parameter(owner, parameter, self.must, value)
        return tuple(shares)


@dataclass(frozen=True, repr=False)
class Setting(Shown):
    """What is done to which table. Its parameters are declared here, for `simulate` and for design files."""

    areas: Annotated[Sequence[int], AreaSizes("records of each area")]
    shares: Annotated[Sequence[float], LevelShares("share of each level, the same in every area")]
    rate: Annotated[float, Share("share of records that are swapped")]
    mechanism: Annotated[Mechanism, Word("how pairs are drawn")] = "records"

    def __post_init__(self) -> None:
        for name, param in _declared(type(self)).items():
            value = getattr(self, name)
            if value is not param.default or not param.optional:
                object.__setattr__(self, name, param.check(_OWNER, name, value))
        _ = self.pairs  # which must exist

    @cached_property
    def before(self) -> Ints:
        """The table before the swap."""
        return table_before(self.areas, self.shares)

    @cached_property
    def pairs(self) -> int:
        """The number of pairs."""
        return _pairs(self.before, self.rate, self.mechanism)

    @property
    def identity(self) -> str:
        """What the stream of random words depends on, beside the seed."""
        design = {"mechanism": self.mechanism, "rate": self.rate, "table": self.before.tolist()}
        return json.dumps({_OWNER: self.version, **design}, sort_keys=True)

    @property
    def version(self) -> int:
        """2 where the rate as a decimal gives another number of pairs than its float, which version 1 took; else 1."""
        n = int(self.before.sum())
        return 1 if half_up(self.rate, n, of=2) == floor(self.rate * n / 2 + 0.5) else 2

    def stream(self, seed: int | str) -> Stream:
        """Return the stream of this setting; replicate i draws from its sub-stream "replicate i"."""
        return Stream.of(seed, self.identity)

    def swapping(self) -> Swapping:
        """Lay the table out for drawing."""
        return Swapping(self.before, self.pairs, self.mechanism)


@dataclass(frozen=True)
class Asked(Setting):
    """All that `simulate` is asked for one setting."""

    replicates: Annotated[int, Count("number of rows")] = 1000
    seed: Annotated[Seed, SEED] = None
    workers: Annotated[int | None, Count("cores to use", otherwise="all")] = None


_declared = cache(declared)


def table_before(areas: Sequence[int], shares: Sequence[float]) -> Ints:
    """Return the counts of areas by levels: area * share, rounded by largest remainder within the area.

    The shares are scaled to sum to 1. Remainders that are equal are served in the order of the levels.

    >>> from quadrille.simulation import table_before
    >>> table_before([5, 20], [0.8, 0.2]).tolist()
    [[4, 1], [16, 4]]
    """
    sizes, parts = np.asarray(areas, dtype=np.int64), np.asarray(shares, dtype=np.float64)
    if len(sizes) * len(parts) > _MOST_CELLS:
        raise ParameterError(
            f"{len(sizes):,} areas by {len(parts):,} levels are more than the {_MOST_CELLS:,} cells that simulate "
            "takes. Give fewer areas or fewer shares."
        )
    exact = sizes[:, None] * (parts / float(parts.sum()))
    table = np.floor(exact).astype(np.int64)
    rest = np.round(exact - table, 9)
    turn = np.argsort(np.argsort(-rest, axis=1, kind="stable"), axis=1)
    return table + (turn < (sizes - table.sum(axis=1))[:, None])


@dataclass(repr=False)
class Swapping(Shown):
    """A prepared swap of a table of areas by levels, with no more pairs than there can be."""

    before: Ints
    pairs: int
    mechanism: Mechanism
    _urn: kernels.Urn = field(init=False, repr=False)
    _words: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._urn = _urn(self.before)
        self._words = 2 * self.pairs

    def draw(self, stream: Stream) -> tuple[Ints, int]:
        """Return the table after a swap, and how many pairs were drawn again."""
        areas, levels = self.before.shape

        def attempt(words: Words) -> tuple[Ints, int] | None:
            after, dice = self.before.ravel().copy(), kernels.dice(words)
            if self.mechanism == "records":
                drawn, redrawn = kernels.swap_records(self._urn, self.pairs, after, dice)
            else:
                drawn, redrawn = self.pairs, kernels.swap_cells(areas, levels, self.pairs, after, dice)
                if redrawn > _REDRAWS + _REDRAWS_PER_PAIR * self.pairs:
                    raise self._too_sparse()
            if dice.cursor[1]:
                return None
            assert drawn == self.pairs, "a number of pairs up to the maximum is always reached"
            used = int(dice.cursor[0])
            self._words = used + used // 64 + 256  # a guess for the next draw: it decides the time only
            return after.reshape(areas, levels), int(redrawn)

        return draw_until_enough(attempt, stream, guess=self._words)

    def _too_sparse(self) -> ParameterError:
        empty = int((self.before == 0).sum())
        most = _REDRAWS + _REDRAWS_PER_PAIR * self.pairs
        return ParameterError(
            f"The mechanism 'cells' of simulate takes cells whatever their counts, and {empty:,} of "
            f"{self.before.size:,} cells are empty at the start: for {self.pairs:,} pairs more than {most:,} had to be "
            "drawn again. Give fewer areas or levels, or larger areas, or use the mechanism 'records'."
        )

    def replicate(self, stream: Stream) -> Floats:
        """Draw once and return the metrics, the zero cells and the pairs drawn again."""
        after, redrawn = self.draw(stream)
        out = np.empty(len(METRICS) + len(COUNTS))
        kernels.compare_tables(self.before.ravel(), after.ravel(), self.before.shape[1], out)
        out[-1] = redrawn
        return out

    def replicates(self, stream: Stream, numbers: range) -> Floats:
        """Draw replicates by number, each from a sub-stream of its own; a row each."""
        return np.array([self.replicate(stream.sub(f"replicate {number}")) for number in numbers])


def _urn(before: Ints) -> kernels.Urn:
    """Lay the table out for drawing."""
    areas, levels = before.shape
    start = np.concatenate(([0], np.cumsum(before.ravel()))).astype(np.int64)
    shift = max(0, (int(start[-1]) // max(_HINTS, 4 * before.size)).bit_length())
    first = np.arange(0, int(start[-1]) + 1, 1 << shift)
    return kernels.Urn(
        start=start.astype(np.uint32),
        hint=(np.searchsorted(start, first, side="right") - 1).astype(np.uint32),
        shift=shift,
        area=np.repeat(np.arange(areas, dtype=np.uint32), levels),
        levels=levels,
        patience=64 + before.size // 4,
    )


def _pairs(before: Ints, rate: float, mechanism: Mechanism) -> int:
    """Return the number of pairs, which must exist."""
    n = int(before.sum())
    pairs = min(half_up(rate, n, of=2), n // 2)
    if pairs == 0:
        raise ParameterError(
            f"The 'rate' parameter of simulate gives no pair at all for {n:,} records. "
            f"The smallest rate that gives one is {1 / n:.3g}."
        )
    most = min(n // 2, n - int(before.sum(axis=1).max()))
    if mechanism == "records" and pairs > most:
        raise InfeasibleError(pairs, most, exact=True, where="swapping records of different areas")
    if mechanism == "cells" and np.count_nonzero(before.sum(axis=0)) < 2:
        raise ParameterError(
            "The mechanism 'cells' of simulate exchanges records of different levels, and fewer than two levels have "
            "a record. Give larger areas or more even shares."
        )
    return pairs


def _run(swapping: Swapping, stream: Stream, replicates: int, workers: int) -> Floats:
    """Draw all replicates, each from a stream of its own, in chunks that threads share out."""
    result = np.empty((replicates, len(METRICS) + len(COUNTS)))

    def work(chunk: range) -> None:
        result[chunk.start : chunk.stop] = swapping.replicates(stream, chunk)

    chunks = [range(low, min(low + _CHUNK, replicates)) for low in range(0, replicates, _CHUNK)]
    if min(workers, len(chunks)) == 1:
        for chunk in chunks:
            work(chunk)
    else:
        with ThreadPoolExecutor(workers) as threads:
            list(threads.map(work, chunks))
    return result


def _frame(result: Floats) -> pl.DataFrame:
    """Name the columns; counts are whole numbers."""
    return tidy(
        [
            dict(zip(METRICS, row, strict=False)) | {name: int(row[len(METRICS) + i]) for i, name in enumerate(COUNTS)}
            for row in cast("list[list[float]]", result.tolist())
        ]
    )
