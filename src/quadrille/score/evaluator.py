"""Scoring a plan, or a second file, by any measures: one preparation, then a cost per touched row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille import measure
from quadrille.codebook import Variable
from quadrille.data import DENSE_LIMIT, Column, Cross, Data, require_columns, require_data, tidy, uncounted_weights
from quadrille.delta import Delta, Fused
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.expressions import Condition, Where
from quadrille.measure.base import Address, Measure, Part, Parts, Score, combine, parts_of, undefined
from quadrille.plan import Plan
from quadrille.score.by_area import (
    AREA,
    RANKED,
    AreaScores,
    By,
    Count,
    Split,
    Splitter,
    area_rows,
    check_call,
    levels_of,
    needed,
    ranking_rows,
    spread_rows,
    usual_measures,
)
from quadrille.score.matching import changed_columns, matched
from quadrille.summary import Change, Counted, Distinct, Marked, Statistic, Summary, Table, Tally, most_cells
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Evaluator", "Scores", "detail_rows", "measures", "score"]


@dataclass(frozen=True, repr=False)
class Scores(Shown, Mapping[str, float | None]):
    """Scores by the measure's address as given: `scores["hellinger"]`, `scores.detail(...)`, `scores.frame()`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> scores = qd.score(data, qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data), ["exposed", "hellinger"])
    >>> round(scores["hellinger"], 4), list(scores)
    (0.0222, ['exposed', 'hellinger'])
    >>> scores.frame()["side"].to_list()
    ['risk', 'loss']
    """

    results: Mapping[str, tuple[Measure, Score]]
    split: Split = field(default_factory=Split)

    def __getitem__(self, address: str) -> float | None:
        return self._score(address).value

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def _score(self, address: str) -> Score:
        if address not in self.results:
            raise InputError(f"{address!r} was not scored. Scored: {', '.join(self.results)}.")
        return self.results[address][1]

    def note(self, address: str) -> str:
        """Return what must be said with the value: why it is None, or that nothing changed.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> scores = qd.score(data, plan, ["hellinger(Age*Sex)"])
        >>> scores["hellinger(Age*Sex)"], scores.note("hellinger(Age*Sex)")
        (0.0, 'nothing changed')
        """
        return self._score(address).note

    def detail(self, address: str) -> pl.DataFrame:
        """Return the parts behind a value: the matrix over pairs of variables, or a row per variable or table.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> scores = qd.score(data, plan, ["cramers_v_change(2-way)"])
        >>> matrix = scores.detail("cramers_v_change(2-way)")
        >>> matrix.shape, round(matrix.filter(variable="MS")["Edu"][0], 4)
        ((8, 9), 0.0027)
        """
        return tidy(detail_rows(self._score(address)))

    def frame(self) -> pl.DataFrame:
        """Return one row per measure: address, value, side, direction, note.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> scores = qd.score(data, plan, ["exposed", "hellinger"])
        >>> scores.frame().select("measure", "side", "better").rows()
        [('exposed', 'risk', 'lower'), ('hellinger', 'loss', 'lower')]
        """
        return tidy([{"measure": address, **row} for address, row in self._rows().items()])

    def as_dict(self) -> dict[str, dict[str, object]]:
        """Return plain values, for JSON.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> scores = qd.score(data, plan, ["exposed", "hellinger"])
        >>> scores.as_dict()["hellinger"]["side"], scores.as_dict()["hellinger"]["detail"]
        ('loss', {'cells_changed': 540})
        """
        return {
            address: {**row, "detail": _plain_detail(self.results[address][1])} for address, row in self._rows().items()
        }

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of geography, and the crosses, that `by=` asked for.

        >>> import quadrille as qd
        >>> data = qd.datasets.state(records=3_200)
        >>> plan = qd.RandomSwap(["tract"], rate=0.1, seed=1).plan(data)
        >>> scores = qd.score(data, plan, ["effective_swap_rate(race)"], by=["county", "county*sex"])
        >>> scores.levels
        ('county', 'county*sex')
        """
        return self.split.levels

    def by(self, address: str | None = None, by: str | None = None) -> pl.DataFrame:
        """Return one row per area: level, area, records before and after, changed, value, zero cells, note.

        `changed` is the least number of records whose change explains the difference between the area's tables.
        Without an address or a level, all of them follow one another. Records whose area is missing have a row of
        their own, and its note says so; they are no area in `spread` and `ranking`.

        >>> import quadrille as qd
        >>> data = qd.datasets.state(records=3_200)
        >>> plan = qd.RandomSwap(["tract"], rate=0.1, seed=1).plan(data)
        >>> scores = qd.score(data, plan, ["effective_swap_rate(race)"], by=["county"])
        >>> scores.by().select("area", "before", "after", "changed").head(2).rows()
        [('01', 53, 53, 1), ('02', 6, 6, 0)]
        """
        return _table([row for found in self.areas(address, by) for row in area_rows(found)], AREA)

    def spread(self) -> pl.DataFrame:
        """Return the spread over the areas, per level, variable and measure.

        Columns: level, variable, measure, address, areas (with a value), undefined (without one), mean, sd (divisor
        areas - 1), p5 and p95 (percentiles, linear between the order statistics), whole (the measure of the table of
        all areas together, records without an area included), zero_cells (empty before and not after, over all areas),
        note. The note counts the records without an area, and the declared areas without a record.

        >>> import quadrille as qd
        >>> data = qd.datasets.state(records=3_200)
        >>> plan = qd.RandomSwap(["tract"], rate=0.1, seed=1).plan(data)
        >>> scores = qd.score(data, plan, ["effective_swap_rate(race)"], by=["county"])
        >>> scores.spread().select("level", "measure", "areas", "undefined").rows()
        [('county', 'effective_swap_rate', 67, 0)]
        """
        return tidy([row for found in self.areas() for row in spread_rows(found)])

    def ranking(
        self, address: str | None = None, by: str | None = None, *, top: int = 10, min_records: int = 0
    ) -> pl.DataFrame:
        """Return the areas most and least affected, `top` of each, with their rank.

        Only areas of at least `min_records` records before are ranked: a share of very few records is large by chance.
        Measures whose better values are "nearer 0" have a sign: they are ranked by absolute value, and `ranked_by`
        says so. Of areas with the same value the smaller one ranks first; `equal` counts them. Areas without
        a value have no rank.

        >>> import quadrille as qd
        >>> data = qd.datasets.state(records=3_200)
        >>> plan = qd.RandomSwap(["tract"], rate=0.1, seed=1).plan(data)
        >>> scores = qd.score(data, plan, ["effective_swap_rate(race)"], by=["county"])
        >>> scores.ranking(top=1, min_records=20).select("affected", "area", "before", "changed").rows()
        [('most', '44', 21, 3), ('least', '07', 70, 0)]
        """
        return _table(
            [row for found in self.areas(address, by) for row in ranking_rows(found, top, min_records)], RANKED
        )

    def areas(self, address: str | None = None, by: str | None = None) -> list[AreaScores]:
        """Return the scores by area of an address and a level, or of all.

        >>> import quadrille as qd
        >>> data = qd.datasets.state(records=3_200)
        >>> plan = qd.RandomSwap(["tract"], rate=0.1, seed=1).plan(data)
        >>> scores = qd.score(data, plan, ["effective_swap_rate(race)"], by=["county"])
        >>> (found,) = scores.areas(by="county")
        >>> found.level, len(found.areas), round(float(found.value.max()), 2)
        ('county', 67, 0.2)
        """
        if address is not None:
            self._score(address)
        return self.split.pick(address, by)

    def _rows(self) -> dict[str, dict[str, object]]:
        return {
            address: {"value": score.value, "side": kind.side, "better": kind.direction, "note": score.note}
            for address, (kind, score) in self.results.items()
        }


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> pl.DataFrame:
    """Return rows as a frame that has its columns even without any row."""
    return tidy(rows) if rows else tidy([dict.fromkeys(columns)]).clear()


def _plain_detail(score: Score) -> dict[str, object]:
    parts = [{"variables": list(variables), "value": value} for variables, value in score.parts.items()]
    rows = score.explain() if score.explain else []
    return {**score.detail, **({"parts": parts} if parts else {}), **({"rows": rows} if rows else {})}


def detail_rows(score: Score) -> list[dict[str, object]]:
    """Lay the detail of a score out as rows; pairs of variables as a symmetric matrix."""
    if score.explain:
        return score.explain()
    if not score.parts:
        return [dict(score.detail)]
    value = dict(score.parts)
    if any(len(key) == 1 for key in value):
        return [{"variable": key[0], "value": number} for key, number in value.items()]
    names = list(dict.fromkeys(name for key in value for name in key))
    return [
        {"variable": row, **{column: value.get((row, column), value.get((column, row))) for column in names}}
        for row in names
    ]


_MASK = "(where)"
NOT_KNOWN = (
    "needs to know who was swapped: give the plan, or swapped= with the two files (on the command line: --recipe)"
)
NOT_ALIGNED = "needs the plan or aligned rows: no column agrees row by row; give swapped= if the rows are aligned"


class Evaluator:
    """Measures prepared for one file: tables before, and one fused cell number per record.

    With `by`, a list of levels of geography or crosses such as "county*sex", every measure is also taken by area;
    `measures` may then be None: the six differences of every key variable that is not geography.
    """

    def __init__(
        self,
        data: Data,
        measures: Sequence[str | Measure] | None,
        *,
        where: str | ArrayLike | None = None,
        by: By | None = None,
    ) -> None:
        self._given = require_data(data, "score")
        self._data, self._condition = _with_mask(data, where)
        self.levels = {} if by is None else levels_of(by, data)
        calls = _calls(usual_measures(data, self.levels) if measures is None and self.levels else measures)
        for call, kind in calls.items() if self.levels else ():
            check_call(call, kind, self.levels)
        self._before: dict[Summary, Statistic] = {}
        self.fused: dict[Cross, Fused] = {}
        self._tried: set[Summary] = set()
        self._distinct: dict[tuple[str, ...], Distinct | None] = {}
        self._measure(calls)

    def _measure(self, calls: Mapping[Address, Measure]) -> None:
        """Take up measures, and refuse those that the data do not allow."""
        self._calls = [_narrowed(call, self._condition) for call in calls]
        self._kinds = {call.text: kind.with_options(call) for call, kind in calls.items()}
        self._parts: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Parts]] = {}
        self._parts_for(())

    def sharing(self, measures: Sequence[str]) -> Evaluator:
        """Return an evaluator of other measures of the same records, which shares the tables before."""
        other = copy(self)
        other.fused, other._tried = dict(self.fused), set(self._tried)
        other._measure(_calls(measures))
        return other

    def score(self, plan: Plan) -> Scores:
        """Score a plan."""
        plan.check(self._given)
        wanted = self._parts_for(plan.columns, plan.steering_columns)
        return self._scored(Delta(self._data, plan, self.fused), wanted)

    def _scored(self, delta: Delta, wanted: Sequence[Parts]) -> Scores:
        """Score what a plan changes, given the parts of the measures."""
        changes: dict[int, object] = {}  # by identity: the summaries are those of the evaluator
        results: dict[str, tuple[Measure, Score]] = {}
        for call, parts in zip(self._calls, wanted, strict=True):
            kind = self._kinds[call.text]
            scores: list[tuple[Part, Score]] = []
            for part in parts.parts:
                before = self.before(part.summary)
                if id(before) not in changes:
                    changes[id(before)] = before.change(delta)
                scores.append((part, kind.score(before, changes[id(before)], **part.given)))
            results[call.text] = kind, combine(scores, call, kind, parts)
        results = _remarked(results, self._data)
        if not self.levels:
            return Scores(results)

        def count(summary: Counted) -> tuple[Tally, Change]:
            before = self._tally(summary)
            return before, before.change(delta)

        return Scores(results, self._split(wanted, count, {}))

    def _tally(self, summary: Counted) -> Tally:
        before = self.before(summary)
        assert isinstance(before, Tally)  # what counts cells makes a tally
        return before

    def _split(self, wanted: Sequence[Parts], count: Count, reasons: Mapping[str, str]) -> Split:
        """Take every measure apart by the areas of every level; `reasons` say which are undefined everywhere."""
        geography = {variable.name for variable in self._data.codebook if variable.role == "geography"}
        named = {name for level in self.levels.values() for name in level}
        splitter = Splitter(self.levels, frozenset(geography | named), count)
        found = [
            splitter.split(call, self._kinds[call.text], parts, reasons.get(call.text, ""))
            for call, parts in zip(self._calls, wanted, strict=True)
        ]
        return Split(tuple(each for level in zip(*found, strict=True) for each in level))

    def values(self, plan: Plan) -> tuple[tuple[float | None, ...], str]:
        """Return the bare values of a plan, in the order of the measures, and why any of them is undefined."""
        scores = self.score(plan)
        values = tuple(scores.values())
        missing = [f"{name}: {scores.note(name)}" for name, value in scores.items() if value is None]
        return values, "; ".join(missing)

    def compare(self, other: Data, swapped: ArrayLike | None = None, moved: tuple[str, ...] | None = None) -> Scores:
        """Score a second file, summarised by itself; record-by-record measures need aligned rows.

        `moved` are the columns that were swapped; without it, those that differ.
        """
        other, _ = _with_mask(other, self._data[_MASK].values == 1 if _MASK in self._data.codebook else None)
        known = _is_mask(swapped, self._data.n, other.n)
        changed = changed_columns(self._data, other)
        aligned = known or changed is not None
        if moved is None:
            moved = self._data.keys if changed is None else changed
        results: dict[str, tuple[Measure, Score]] = {}
        reasons: dict[str, str] = {}
        mask = None if swapped is None else np.asarray(swapped, dtype=np.bool_)
        wanted = self._parts_for(moved)
        for call, parts in zip(self._calls, wanted, strict=True):
            kind = self._kinds[call.text]
            reason = _not_possible(kind, aligned=aligned, known=mask is not None)
            if reason:
                reasons[call.text] = reason
                results[call.text] = kind, undefined(reason)
                continue
            scores = [(part, self._compare(part, kind, other, mask, aligned=aligned)) for part in parts.parts]
            results[call.text] = kind, combine(scores, call, kind, parts)
        results = _remarked(results, self._data, other)
        return Scores(results, self._split_two(other, mask, wanted, reasons) if self.levels else Split())

    def _split_two(
        self, other: Data, mask: NDArray[np.bool_] | None, wanted: Sequence[Parts], reasons: Mapping[str, str]
    ) -> Split:
        """Take the measures of two files apart, their categories matched once for all tables."""
        names = needed(self.levels, wanted, [call.where for call in self._calls])
        _check_numbers(self._data, other, names)
        mine, theirs = matched(self._data, other, names)

        def count(summary: Counted) -> tuple[Tally, Change]:
            before = summary.of(mine)
            return before, before.against(summary.of(theirs, mine, mask))

        return self._split(wanted, count, reasons)

    def _compare(
        self, part: Part, kind: Measure, other: Data, swapped: NDArray[np.bool_] | None, *, aligned: bool
    ) -> Score:
        summary = part.summary
        _check_numbers(self._data, other, summary.needs)
        coded = tuple(name for name in summary.needs if self._data.codebook[name].coded)
        mine, theirs = matched(self._data, other, coded)
        before = summary.of(mine)
        after = summary.of(theirs, mine if kind.by_record and aligned else None, swapped)
        return kind.score(before, before.against(after), **part.given)

    def summaries(self, moved: tuple[str, ...]) -> list[Summary]:
        """Return what the measures are computed from, for plans that move these columns."""
        return [part.summary for parts in self._parts_for(moved) for part in parts.parts]

    def _parts_for(self, moved: tuple[str, ...], steering_columns: tuple[str, ...] = ()) -> list[Parts]:
        if (moved, steering_columns) not in self._parts:
            wanted = [self._of_call(call, moved, steering_columns) for call in self._calls]
            self._parts[moved, steering_columns] = wanted
            self.fused.update(self._fused_for([part.summary for parts in wanted for part in parts.parts]))
        return self._parts[moved, steering_columns]

    def _of_call(self, call: Address, moved: tuple[str, ...], steering: tuple[str, ...]) -> Parts:
        """Return the parts of one measure; those of a table that it names are the same for all plans."""
        kind = self._kinds[call.text]
        if call.explicit and not steering and not kind.follows_plan and not kind.by_record and ((), ()) in self._parts:
            return self._parts[(), ()][self._calls.index(call)]
        return parts_of(call, kind, self._data, moved, steering)

    def _fused_for(self, summaries: Sequence[Summary]) -> dict[Cross, Fused]:
        """Fuse the variables of tables that are met for the first time and that no fused cross contains."""
        fresh = [summary for summary in summaries if summary not in self._tried]
        self._tried.update(fresh)
        fused = self.fused.values()
        return _fuse(self._data, [s for s in fresh if not any(one.contains(s.needs) for one in fused)])

    def before(self, summary: Summary) -> Statistic:
        """Return a summary of the file before, worked out once."""
        if summary not in self._before:
            distinct = self._distinct_for(summary) if isinstance(summary, Counted) else None
            made = summary.of(self._data) if distinct is None else cast("Counted", summary).of_distinct(distinct)
            self._before[summary] = made
        return self._before[summary]

    def _distinct_for(self, summary: Counted) -> Distinct | None:
        """Return the combinations that a table follows from: found once for all tables that wait to be counted.

        None where the table is the only one, or records hardly share any combination, so that nothing is won.
        """
        for variables, distinct in self._distinct.items():
            if set(summary.needs) <= set(variables):
                return distinct
        waiting = {each for each in self._tried if isinstance(each, Counted) and each not in self._before}
        variables = _counted_together(self._data, summary, waiting)
        if variables is None:
            return None
        tally = Table(variables).of(self._data)
        shared = 2 * len(tally.occupied()) <= self._data.n
        self._distinct[variables] = Distinct.of(self._data, tally) if shared else None
        return self._distinct[variables]


def score(
    data: Data,
    released: Plan | Data,
    measures: Sequence[str | Measure] | None = None,
    *,
    swapped: ArrayLike | None = None,
    moved: Sequence[str] | None = None,
    where: str | ArrayLike | None = None,
    by: By | None = None,
) -> Scores:
    """Score a plan, or a second file, by some measures.

    Parameters
    ----------
    data : the file before.
    released : the plan, or the released file; the latter is summarised by itself, categories matched by label.
    measures : addresses such as "hellinger", "total_variation(Age*Sex)", "cramers_v_change(2-way)".
    swapped : with a second file whose rows are aligned, which records were swapped (true or false per row).
    moved : with a second file, the columns that were swapped; without it, those that differ.
    where : which records count: "Sex=Male & Age!=<25", or true or false per row.
    by : levels of geography, or crosses such as "county*sex": the measures of each area's records, in
        `scores.by(address)`, `scores.spread()` and `scores.ranking(address)`. Measures may then be left out: the six
        differences of every key variable that is not geography.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.RandomSwap(["MS"], pairs=1221, seed=1).plan(data)
    >>> round(qd.score(data, plan, ["total_variation(MS*Race)"])["total_variation(MS*Race)"], 4)
    0.0043
    """
    evaluator = Evaluator(data, measures, where=where, by=by)
    if isinstance(released, Plan):
        if swapped is not None or moved is not None:
            raise ParameterError("A plan knows who was swapped and what moved. Leave 'swapped' and 'moved' out.")
        return evaluator.score(released)
    require_data(released, "score")
    return evaluator.compare(released, swapped, None if moved is None else tuple(moved))


def _remarked(results: dict[str, tuple[Measure, Score]], *files: Data) -> dict[str, tuple[Measure, Score]]:
    """Add to each note how many weights count as 0 in a file, if any does."""
    remarks = [text for text in map(uncounted_weights, files) if text]
    if not remarks:
        return results
    return {
        address: (kind, replace(score, note="; ".join(filter(None, (score.note, *remarks)))))
        for address, (kind, score) in results.items()
    }


def measures() -> pl.DataFrame:
    """Return every measure: name, side, which values are better, range, definition, options, reference.

    Example
    -------
    >>> import quadrille as qd
    >>> known = qd.measures()
    >>> known.filter(known["name"] == "hellinger").select("side", "better", "range").rows()
    [('loss', 'lower', '[0, 1]')]
    """
    return tidy(
        [
            {
                "name": kind.name,
                "side": kind.side,
                "better": kind.direction,
                "range": f"[{kind.range[0]:g}, {kind.range[1]:g}]",
                "definition": kind.definition,
                "options": kind.options_text,
                "reference": kind.reference,
            }
            for kind in measure.MEASURES.values()
        ]
    )


def _calls(measures: Sequence[str | Measure] | None) -> dict[Address, Measure]:
    if isinstance(measures, str) or not measures:
        raise bad_parameter("score", "measures", "a list of measures, at least one", measures)
    calls: dict[Address, Measure] = {}
    for given in measures:
        call = Address.parse(given if isinstance(given, str) else given.name)
        calls[call] = measure.get(call.name) if isinstance(given, str) else given
    return calls


def _narrowed(call: Address, where: Where | None) -> Address:
    if where is None:
        return call
    return replace(call, where=Where(where.conditions + (call.where.conditions if call.where else ())))


def _with_mask(data: Data, where: str | ArrayLike | None) -> tuple[Data, Where | None]:
    """Turn where= into conditions; true or false per row becomes a column of its own."""
    if where is None or isinstance(where, str):
        return data, Where.parse(where) if where else None
    mask = np.asarray(where)
    _is_mask(mask, data.n, data.n)
    column = Column(Variable(_MASK, categories=(0, 1), role="stratum"), mask.astype(np.uint8))
    columns = [*(data[name] for name in data.columns), column]
    return Data(columns, weight=data.weight, sampling=data.sampling), Where((Condition(_MASK, ("1",)),))


def _not_possible(kind: Measure, *, aligned: bool, known: bool) -> str:
    """Say why a measure cannot be computed from two files, if it cannot."""
    if kind.by_record and not aligned and not kind.without_rows:
        return NOT_ALIGNED
    return NOT_KNOWN if kind.layout == "participation" and not known else ""


def _check_numbers(data: Data, other: Data, names: Sequence[str]) -> None:
    """Refuse a second file that lacks a column, or has categories where the first has numbers."""
    require_columns(other, names, "the second file")
    for name in names:
        if not data.codebook[name].coded and other.codebook[name].coded:
            raise InputError(
                f"Column {name!r} is numeric in the first file and categorical in the second. Declare it alike."
            )


def _is_mask(mask: ArrayLike | None, *lengths: int) -> bool:
    if mask is None:
        return False
    array: NDArray[np.generic] = np.asarray(mask)
    if array.dtype != np.bool_ or any(array.shape != (n,) for n in lengths):
        raise InputError(f"A mask of records must hold true or false for each of the {lengths[0]:,} rows.")
    return True


def _counted_together(data: Data, first: Counted, others: Iterable[Counted]) -> tuple[str, ...] | None:
    """Choose variables that are counted once, so that the table `first` and others follow from their cross.

    The cross of all has no more cells than the largest of the tables, or a few times the number of records: else it
    would cost more than the tables one by one. None where it serves a single table.
    """
    sizes = {table: Cross.of(data, table.needs).possible for table in others if table.needs}
    limit = max(4 * data.n, *(size for size in sizes.values() if size <= most_cells(data)), 0)
    limit = max(min(limit, most_cells(data)), sizes.get(first, 0))
    if first not in sizes or not Cross.of(data, first.needs).exact:
        return None
    chosen, served = first.needs, 0
    for other in sorted(sizes.keys() - {first}, key=lambda table: (-len(table.needs), table.needs)):
        union = tuple(dict.fromkeys(chosen + other.needs))
        if Cross.of(data, union).possible <= limit:
            chosen, served = union, served + 1
    return chosen if served else None


def _fuse(data: Data, summaries: Sequence[Summary]) -> dict[Cross, Fused]:
    """Fuse as many variables as fit a dense cross, those of the largest tables first."""
    chosen: tuple[str, ...] = ()
    tables = {summary for summary in summaries if isinstance(summary, Table | Marked)}
    for table in sorted(tables, key=lambda table: (-len(table.needs), table.needs)):
        union = tuple(dict.fromkeys(chosen + table.needs))
        if Cross.of(data, union).possible <= DENSE_LIMIT:
            chosen = union
    if not chosen:
        return {}
    cross = Cross.of(data, chosen)
    return {cross: Fused(data, cross)}
