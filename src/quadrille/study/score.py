"""Scoring a plan, or a second file, by any measures: one preparation, then a cost per touched row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille import frames, measure
from quadrille.codebook import Variable
from quadrille.cross import DENSE_LIMIT, Cross
from quadrille.data import Column, Data, require_columns, require_data
from quadrille.delta import Delta, Fused
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.matching import changed_columns, matched
from quadrille.measure_base import Call, Measure, Part, Parts, Score, combine, parts_of, undefined
from quadrille.plan import Plan
from quadrille.summary import Participation, Statistic, Summary, Table
from quadrille.where import Condition, Where

if TYPE_CHECKING:
    import polars as pl

_MASK = "(where)"
NOT_KNOWN = "needs to know who was swapped: give the plan, or swapped= with the two files"
NOT_ALIGNED = "needs the plan or aligned rows: no column agrees row by row; give swapped= if the rows are aligned"


@dataclass(frozen=True)
class Scores(Mapping[str, float | None]):
    """Scores by the measure's address as given: `scores["hellinger"]`, `scores.detail(...)`, `scores.frame()`."""

    results: Mapping[str, tuple[Measure, Score]]

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
        """Return what must be said with the value: why it is None, or that nothing changed."""
        return self._score(address).note

    def detail(self, address: str) -> pl.DataFrame:
        """Return the parts behind a value: the matrix over pairs of variables, or a row per variable or table."""
        return frames.tidy(detail_rows(self._score(address)))

    def frame(self) -> pl.DataFrame:
        """Return one row per measure: address, value, side, direction, note."""
        return frames.tidy([{"measure": address, **row} for address, row in self._rows().items()])

    def as_dict(self) -> dict[str, dict[str, object]]:
        """Return plain values, for JSON."""
        return {
            address: {**row, "detail": _plain_detail(self.results[address][1])} for address, row in self._rows().items()
        }

    def _rows(self) -> dict[str, dict[str, object]]:
        return {
            address: {"value": score.value, "side": kind.side, "better": kind.direction, "note": score.note}
            for address, (kind, score) in self.results.items()
        }


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


class Evaluator:
    """Measures prepared for one file: tables before, and one fused cell number per record."""

    def __init__(self, data: Data, measures: Sequence[str | Measure], *, where: str | ArrayLike | None = None) -> None:
        self._given = require_data(data, "score")
        self._data, condition = _with_mask(data, where)
        calls = _calls(measures)
        self._calls = [_narrowed(call, condition) for call in calls]
        self._kinds = {call.text: kind.bound(call) for call, kind in calls.items()}
        self._parts: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Parts]] = {}
        self._before: dict[Summary, Statistic] = {}
        self.fused: dict[Cross, Fused] = {}
        self._tried: set[Summary] = set()
        self._parts_for(())

    def score(self, plan: Plan) -> Scores:
        """Score a plan."""
        plan.check(self._given)
        wanted = self._parts_for(plan.columns, plan.aside)
        delta = Delta(self._data, plan, self.fused)
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
        return Scores(results)

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
        mask = None if swapped is None else np.asarray(swapped, dtype=np.bool_)
        for call, parts in zip(self._calls, self._parts_for(moved), strict=True):
            kind = self._kinds[call.text]
            reason = _not_possible(kind, aligned=aligned, known=mask is not None)
            if reason:
                results[call.text] = kind, undefined(reason)
                continue
            scores = [(part, self._compare(part, kind, other, mask)) for part in parts.parts]
            results[call.text] = kind, combine(scores, call, kind, parts)
        return Scores(results)

    def _compare(self, part: Part, kind: Measure, other: Data, swapped: NDArray[np.bool_] | None) -> Score:
        summary = part.summary
        _check_numbers(self._data, other, summary.needs)
        coded = tuple(name for name in summary.needs if self._data.codebook[name].coded)
        mine, theirs = matched(self._data, other, coded)
        before = summary.of(mine)
        after = summary.of(theirs, mine if kind.by_record else None, swapped)
        return kind.score(before, before.against(after), **part.given)

    def summaries(self, moved: tuple[str, ...]) -> list[Summary]:
        """Return what the measures are computed from, for plans that move these columns."""
        return [part.summary for parts in self._parts_for(moved) for part in parts.parts]

    def _parts_for(self, moved: tuple[str, ...], aside: tuple[str, ...] = ()) -> list[Parts]:
        if (moved, aside) not in self._parts:
            wanted = [parts_of(call, self._kinds[call.text], self._data, moved, aside) for call in self._calls]
            self._parts[moved, aside] = wanted
            self.fused.update(self._fused_for([part.summary for parts in wanted for part in parts.parts]))
        return self._parts[moved, aside]

    def _fused_for(self, summaries: Sequence[Summary]) -> dict[Cross, Fused]:
        """Fuse the variables of tables that are met for the first time and that no fused cross contains."""
        fresh = [summary for summary in summaries if summary not in self._tried]
        self._tried.update(fresh)
        fused = self.fused.values()
        return _fuse(self._data, [s for s in fresh if not any(one.contains(s.needs) for one in fused)])

    def before(self, summary: Summary) -> Statistic:
        """Return a summary of the file before, worked out once."""
        if summary not in self._before:
            self._before[summary] = summary.of(self._data)
        return self._before[summary]


def score(
    data: Data,
    released: Plan | Data,
    measures: Sequence[str | Measure],
    *,
    swapped: ArrayLike | None = None,
    moved: Sequence[str] | None = None,
    where: str | ArrayLike | None = None,
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

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.RandomSwap(["MS"], pairs=1221, seed=1).plan(data)
    >>> round(qd.score(data, plan, ["total_variation(MS*Race)"])["total_variation(MS*Race)"], 4)
    0.0043
    """
    evaluator = Evaluator(data, measures, where=where)
    if isinstance(released, Plan):
        if swapped is not None or moved is not None:
            raise ParameterError("A plan knows who was swapped and what moved. Leave 'swapped' and 'moved' out.")
        return evaluator.score(released)
    require_data(released, "score")
    return evaluator.compare(released, swapped, None if moved is None else tuple(moved))


def measures() -> pl.DataFrame:
    """Return every measure: name, side, which values are better, range, definition, reference."""
    return frames.tidy(
        [
            {
                "name": kind.name,
                "side": kind.side,
                "better": kind.direction,
                "range": f"[{kind.range[0]:g}, {kind.range[1]:g}]",
                "definition": kind.definition,
                "reference": kind.reference,
            }
            for kind in measure.MEASURES.values()
        ]
    )


def _calls(measures: Sequence[str | Measure]) -> dict[Call, Measure]:
    if isinstance(measures, str) or not measures:
        raise bad_parameter("score", "measures", "a list of measures, at least one", measures)
    calls: dict[Call, Measure] = {}
    for given in measures:
        call = Call.parse(given if isinstance(given, str) else given.name)
        calls[call] = measure.get(call.name) if isinstance(given, str) else given
    return calls


def _narrowed(call: Call, where: Where | None) -> Call:
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
    return Data(columns, weight=data.weight), Where((Condition(_MASK, ("1",)),))


def _not_possible(kind: Measure, *, aligned: bool, known: bool) -> str:
    """Say why a measure cannot be computed from two files, if it cannot."""
    if kind.by_record and not aligned:
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


def _fuse(data: Data, summaries: Sequence[Summary]) -> dict[Cross, Fused]:
    """Fuse as many variables as fit a dense cross, those of the largest tables first."""
    chosen: tuple[str, ...] = ()
    tables = {summary for summary in summaries if isinstance(summary, Table | Participation)}
    for table in sorted(tables, key=lambda table: (-len(table.needs), table.needs)):
        union = tuple(dict.fromkeys(chosen + table.needs))
        if Cross.of(data, union).possible <= DENSE_LIMIT:
            chosen = union
    if not chosen:
        return {}
    cross = Cross.of(data, chosen)
    return {cross: Fused(data, cross)}
