"""Scores by address: values, notes, details, and the same by area where that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quadrille.data import tidy
from quadrille.errors import InputError
from quadrille.measure.base import Measure, Score
from quadrille.score.by_area import AREA, RANKED, AreaScores, Split, area_rows, ranking_rows, spread_rows
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl


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
