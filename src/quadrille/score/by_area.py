"""Scores taken apart by area: their spread, the areas most and least affected; and who moved from where to where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isinf, isnan, nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille.data import Cells, Cross, Data, Rows, Units, require_columns, require_data, tidy
from quadrille.delta import Delta
from quadrille.errors import InputError, ParameterError, bad_parameter, unknown_name
from quadrille.expressions import Where, split_outside_quotes, unquoted
from quadrille.measure import difference
from quadrille.measure.areas import Areas, Floats, Ints, labels_of
from quadrille.measure.base import NOTHING_CHANGED, Address, Measure, Part, Parts, Score, combine
from quadrille.measure.difference import DIVERSITIES, zero_note
from quadrille.plan import Plan
from quadrille.score.matching import changed_columns, matched
from quadrille.summary import Change, Counted, Table, Tally
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

Level = tuple[str, ...]
Count = Callable[[Counted], tuple[Tally, Change]]
By = str | Sequence[str]

NONE_BEFORE = "no record, or no weight, before"
NONE_AFTER = "no record, or no weight, after"
NEITHER = "no weight before or after"
OF_TABLES = frozenset({"table", "pair", "participation", "arrival", "target", "moved", "margins"})
"""The layouts of measures that are computed from tables, which can be taken apart."""
AS_ONE = frozenset({"table", "participation", "arrival", "target", "moved"})
"""Those of them that are computed from one table of any number of variables."""


@dataclass(frozen=True, eq=False, repr=False)
class AreaScores(Shown):
    """One measure by the areas of one level. `value` is NaN where it is undefined; `whole` is over all records.

    The records whose area is missing are listed as well; `known` tells the areas from them. `unlisted` counts the areas
    that are declared and have no record.
    """

    level: str
    call: Address
    kind: Measure
    areas: tuple[str, ...]
    before: Ints
    after: Ints
    changed: Ints
    known: NDArray[np.bool_]
    unlisted: int
    value: Floats
    notes: tuple[str, ...]
    zero: Ints | None = None
    whole: float | None = None


@dataclass(frozen=True, repr=False)
class Split(Shown):
    """Scores by area, for each level and address."""

    scores: tuple[AreaScores, ...] = field(default=(), repr=False)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels, in the order they were asked for."""
        return tuple(dict.fromkeys(found.level for found in self.scores))

    def pick(self, address: str | None, by: str | None) -> list[AreaScores]:
        """Return the scores of one address and one level, or of all."""
        if not self.scores:
            raise InputError("Nothing was scored by area. Give score the levels, as in by=['county', 'tract'].")
        if by is not None and by not in self.levels:
            raise unknown_name("level", by, self.levels, where="what was scored by area")
        return [found for found in self.scores if address in (None, found.call.text) and by in (None, found.level)]


def levels_of(by: By, data: Data) -> dict[str, Level]:
    """Read the levels: columns, or crosses of columns such as county*sex."""
    given = [by] if isinstance(by, str) else list(by) if isinstance(by, Iterable) else []  # pyright: ignore[reportUnnecessaryIsInstance]
    if not given or not all(isinstance(each, str) for each in given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise bad_parameter("score", "by", "a list of columns or crosses of columns, such as county*sex", by)
    levels: dict[str, Level] = {}
    for text in given:
        names = tuple(unquoted(name) for name in split_outside_quotes(text, "*"))
        if len(set(names)) < len(names):
            raise InputError(f"A column occurs twice in by={text!r}. Name each once.")
        require_columns(data, names, "by=")
        for name in names:
            _check_level(data, name)
        levels["*".join(names)] = names
    if len(levels) < len(given):
        raise InputError("A level occurs twice in by=. Name each once.")
    return levels


def _check_level(data: Data, name: str) -> None:
    variable = data.coded(name, purpose="by=").variable
    if variable.role == "id":
        raise InputError(f"Column {name!r} identifies records, so it has no areas to score. Name another in by=.")


def usual_measures(
    data: Data, levels: Mapping[str, Level], names: Sequence[str] = (), steering_columns: Sequence[str] = ()
) -> list[str]:
    """Return the six differences, or those named, of every key variable that is neither geography nor a level.

    `steering_columns` are left out too.
    """
    areas = {*steering_columns, *(name for level in levels.values() for name in level)}
    variables = [name for name in data.keys if name not in areas and data.codebook[name].role != "geography"]
    if not variables:
        raise InputError(
            "There is no key variable to score by area that is not geography itself. Give another column the role key "
            "in the codebook, or name the measures, as in chi_square(race)."
        )
    wanted = names or [kind.name for kind in difference.MEASURES]
    return [f"{name}({_quoted(variable)})" for variable in variables for name in wanted]


def joint_measures(data: Data, by: str, steering_columns: Sequence[str] = ()) -> list[str]:
    """Return the six differences of the tables of one level and each key variable: one number for all areas."""
    levels = levels_of([by], data)
    area = "*".join(_quoted(name) for name in next(iter(levels.values())))
    return [address.replace("(", f"({area}*", 1) for address in usual_measures(data, levels, (), steering_columns)]


def _quoted(name: str) -> str:
    return f"`{name}`" if set(name) & set(",*()=~;[]'\"") or name != name.strip() else name


def keys_and_area(data: Data, moving: Iterable[str]) -> tuple[str, ...]:
    """Return the key variables; where areas are moving and none of the keys is, with the lowest level before them.

    Whoever looks for a person knows where it lives, and only there do such swaps change anything about the keys.

    >>> import quadrille as qd
    >>> from quadrille.score.by_area import keys_and_area
    >>> data = qd.datasets.island().with_roles(key=["age", "birth"])
    >>> keys_and_area(data, qd.TargetedSwap(["age", "birth"], similar=[["hh_size"]]).movement(data).columns)
    ('ward', 'age', 'birth')
    """
    moved = set(moving)
    areas = [name for name in data.codebook.geography if name in moved]
    return (areas[-1], *data.keys) if areas and not moved.intersection(data.keys) else data.keys


def with_margin(measure: str, data: Data, keys: Sequence[str], options: str = "") -> str:
    """Return the address of a measure of these columns; without a margin where they are the key variables.

    >>> import quadrille as qd
    >>> from quadrille.score.by_area import with_margin
    >>> data = qd.datasets.island().with_roles(key=["age", "birth"])
    >>> with_margin("exposed", data, ["ward", "age", "birth"], "n=5"), with_margin("exposed", data, data.keys)
    ('exposed(ward*age*birth, n=5)', 'exposed')
    """
    margin = "" if tuple(keys) == data.keys else "*".join(map(_quoted, keys))
    inside = ", ".join(filter(None, (margin, options)))
    return f"{measure}({inside})" if inside else measure


def check_call(call: Address, kind: Measure, levels: Mapping[str, Level]) -> None:
    """Refuse a measure that cannot be taken by area, or whose variables are the area."""
    if kind.layout not in OF_TABLES:
        raise InputError(
            f"The measure {call.text!r} is not computed from a table, so it cannot be taken by area. Score it without "
            "by=, or for one area with where=."
        )
    for text, level in levels.items():
        target = [unquoted(value) for name, value in call.options if name == "target" and unquoted(value) in level]
        both = [name for name in call.margin or () if name in level]
        if target or (both and (len(both) == len(call.margin or ()) or kind.layout not in AS_ONE)):
            raise InputError(
                f"by={text!r} is what the measure {call.text!r} is about. Name variables that are not the area itself."
            )


@dataclass(frozen=True)
class Splitter:
    """Takes the measures of an evaluator apart by area; `count` tabulates, `geography` are columns that are areas."""

    levels: Mapping[str, Level]
    geography: frozenset[str]
    count: Count
    _tables: dict[Counted, tuple[Tally, Change]] = field(default_factory=dict[Counted, tuple[Tally, Change]])

    def split(self, call: Address, kind: Measure, parts: Parts, reason: str = "") -> list[AreaScores]:
        """Score one measure by the areas of every level; a reason says why it is undefined everywhere."""
        return [self._level(text, level, call, kind, parts, reason) for text, level in self.levels.items()]

    def _level(self, text: str, level: Level, call: Address, kind: Measure, parts: Parts, reason: str) -> AreaScores:
        kept = [part for part in parts.parts if set(part.summary.variables) - set(level)]
        if reason or not kept:
            otherwise = Score(None, note=reason) if reason else parts.otherwise
            otherwise = Score(None, note="only the area itself was moved") if parts.parts and not reason else otherwise
            return self._alike(text, level, call, kind, otherwise)
        tables = [(part, self._areas(part, level)) for part in kept]
        areas = tables[0][1]
        several = len(parts.parts) > 1 or kind.layout not in AS_ONE
        if several:
            return self._mean(text, call, kind, parts, tables)
        value, zero, notes = _values(kind, areas)
        whole = _values(kind, areas.whole(), as_one=True)[0]
        return AreaScores(
            text,
            call,
            kind,
            *_about(areas),
            value,
            tuple(notes),
            zero,
            float(whole[0]) if len(whole) and not np.isnan(whole[0]) else None,
        )

    def _mean(
        self, text: str, call: Address, kind: Measure, parts: Parts, tables: list[tuple[Part, Areas]]
    ) -> AreaScores:
        """Put several tables of each area together, as for the whole file."""
        areas = tables[0][1]
        found = [[(part, score) for score in _scores(kind, table)] for part, table in tables]
        scores = [combine(list(each), call, kind, parts) for each in zip(*found, strict=True)]
        changed = np.max([table.changed for _, table in tables], axis=0)
        value = np.array([nan if score.value is None else score.value for score in scores])
        notes = tuple(score.note for score in scores)
        named, before, after, _, known, unlisted = _about(areas)
        return AreaScores(text, call, kind, named, before, after, changed, known, unlisted, value, notes)

    def _alike(self, text: str, level: Level, call: Address, kind: Measure, score: Score) -> AreaScores:
        """Give every area the same score."""
        areas = self._take(Table(level, call.where), len(level), 0)
        value = np.full(len(areas), nan if score.value is None else score.value)
        notes = (score.note,) * len(areas)
        return AreaScores(text, call, kind, *_about(areas), value, notes)

    def _areas(self, part: Part, level: Level) -> Areas:
        """Tabulate areas by variables; a margin that begins with geography has smaller areas within."""
        rest = tuple(name for name in part.summary.variables if name not in level)
        within = int(len(rest) > 1 and rest[0] in self.geography)
        summary = replace(part.summary, variables=level + rest)
        assert isinstance(summary, Counted)  # the layouts that are admitted count cells
        return self._take(summary, len(level), within)

    def _take(self, summary: Counted, leading: int, within: int) -> Areas:
        if summary not in self._tables:
            before, change = self.count(summary)
            if not before.cross.exact:
                names = "*".join(summary.variables)
                raise InputError(f"The table {names} has too many possible cells to take apart. Name fewer variables.")
            self._tables[summary] = before, before.complete(change)
        return Areas(*self._tables[summary], leading, within)


def _values(kind: Measure, areas: Areas, *, as_one: bool = False) -> tuple[Floats, Ints | None, list[str]]:
    """Return value, zero cells and note of each area."""
    if kind.grouped is not None:
        value, zero = kind.grouped(areas)
        return _noted(areas, value, zero, infinite=bool(kind.options.get("infinite")))
    scores = [kind.score(areas.before, areas.change)] if as_one else _scores(kind, areas)
    values = np.array([nan if score.value is None else score.value for score in scores])
    return values, None, [score.note for score in scores]


def _scores(kind: Measure, areas: Areas) -> list[Score]:
    return [kind.score(before, change) for before, change in areas.each()]


def _noted(areas: Areas, value: Floats, zero: Ints | None, *, infinite: bool) -> tuple[Floats, Ints | None, list[str]]:
    """Mark as undefined the areas that are empty on a side, and say of each area what must be said."""
    old, new = areas.totals
    empty = (old == 0) | (new == 0)
    notes = np.where(areas.differs, "", NOTHING_CHANGED).tolist()
    for place in np.flatnonzero(empty).tolist():
        notes[place] = NEITHER if old[place] == new[place] else NONE_BEFORE if old[place] == 0 else NONE_AFTER
    for place in [] if zero is None else np.flatnonzero((zero > 0) & ~empty).tolist():
        notes[place] = difference.zero_note(int(zero[place]) if zero is not None else 0, left_out=not infinite)
    return np.where(empty, nan, value), zero, notes


def _about(areas: Areas) -> tuple[tuple[str, ...], Ints, Ints, Ints, NDArray[np.bool_], int]:
    """Return what every score by area tells of the areas: names, records, which are known, how many have no record."""
    named = tuple(" × ".join(labels) for labels in areas.labels())
    return named, *areas.records, areas.changed, areas.known, areas.unlisted


def needed(levels: Mapping[str, Level], parts: Sequence[Parts], where: Sequence[Where | None]) -> tuple[str, ...]:
    """Return every column that the tables by area are about."""
    names = [name for level in levels.values() for name in level]
    names += [name for each in parts for part in each.parts for name in part.summary.needs]
    names += [name for each in where if each is not None for name in each.variables]
    return tuple(dict.fromkeys(names))


Row = dict[str, object]

AREA = ("level", "area", "address", "before", "after", "changed", "value", "zero_cells", "note")
RANKED = ("affected", "rank", "of", *AREA, "equal", "ranked_by")
"""The columns of the tables, for those without a row."""
BY_VALUE, BY_SIZE, UPWARDS = "value", "absolute value", "value, lowest first"
NO_AREA = "these records have no area"
NOBODY = "no record to score: none fulfils the condition"
NOT_LARGER = "larger is not more perturbed"


def area_rows(found: AreaScores) -> list[Row]:
    """Return one row per area."""
    return [_row(found, place) for place in range(len(found.areas))]


def _row(found: AreaScores, place: int) -> Row:
    return {
        "level": found.level,
        "area": found.areas[place],
        "address": found.call.text,
        "before": int(found.before[place]),
        "after": int(found.after[place]),
        "changed": int(found.changed[place]),
        "value": _plain(float(found.value[place])),
        "zero_cells": None if found.zero is None else int(found.zero[place]),
        "note": "; ".join(filter(None, ("" if found.known[place] else NO_AREA, found.notes[place]))),
    }


def _plain(value: float) -> float | None:
    return None if isnan(value) else value


def spread_rows(found: AreaScores) -> list[Row]:
    """Return the row that tells how the values of the areas spread."""
    every: Floats = found.value[found.known]
    value = every[~np.isnan(every)]
    zero = None if found.zero is None else int(found.zero[found.known].sum())
    undefined = len(every) - len(value)
    notes = [_undefined(found, undefined)] if undefined else []
    notes += _left_out(found)
    notes += [zero_note(zero, left_out=not found.kind.options.get("infinite"))] if zero else []
    notes += [NOT_LARGER] if found.kind.name in DIVERSITIES else []
    return [
        {
            "level": found.level,
            "variable": "*".join(found.call.margin or ()),
            "measure": found.call.name,
            "address": found.call.text,
            "areas": len(value),
            "undefined": undefined,
            **_moments(value),
            "whole": found.whole,
            "zero_cells": zero,
            "note": "; ".join(notes),
        }
    ]


def _undefined(found: AreaScores, count: int) -> str:
    """Say how many areas have no value, and why, where all have the same reason."""
    known = zip(found.notes, found.value.tolist(), found.known.tolist(), strict=True)
    reasons = {note for note, value, is_area in known if is_area and isnan(value)}
    why = f" ({next(iter(reasons))})" if len(reasons) == 1 else ""
    return f"{count:,} of {int(found.known.sum()):,} areas have no value{why}"


def _left_out(found: AreaScores) -> list[str]:
    """Say how many records have no area, and how many areas no record."""
    if not len(found.areas):
        return [NOBODY]
    notes: list[str] = []
    if not found.known.all():
        before, after = (int(side[~found.known].sum()) for side in (found.before, found.after))
        records = "1 record has" if before == after == 1 else f"{before:,} records have"
        records = records if before == after else f"{before:,} records before and {after:,} after have"
        notes.append(f"{records} no area: left out")
    if found.unlisted:
        areas = "1 declared area has" if found.unlisted == 1 else f"{found.unlisted:,} declared areas have"
        notes.append(f"{areas} no record that counts")
    return notes


def _moments(value: Floats) -> dict[str, float | None]:
    """Return mean, sd, 5th and 95th percentile; an infinite value leaves no sd, and all from it on infinite."""
    if not len(value):
        return dict.fromkeys(("mean", "sd", "p5", "p95"))
    finite = bool(np.isfinite(value).all())
    sd = float(value.std(ddof=1)) if finite and len(value) > 1 else None
    with np.errstate(invalid="ignore"):  # between two infinities there is nothing to interpolate
        p5, p95 = (float(each) for each in np.percentile(value, [5, 95]))
    low, high = (float("inf") if isnan(each) or isinf(each) else each for each in (p5, p95))
    return {"mean": float(value.mean()), "sd": sd, "p5": low, "p95": high}


def ranking_rows(found: AreaScores, top: int, min_records: int) -> list[Row]:
    """Return the rows of the areas most affected, then of those least affected, best rank first."""
    for name, number, least in (("top", top, 1), ("min_records", min_records, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise bad_parameter("ranking", name, f"a whole number of {least} or more", number)
    order, how = _order(found)
    order = order[found.before[order] >= min_records]
    most = order[:top]
    least = order[max(len(order) - top, len(most)) :]
    value, count = np.unique(found.value[order], return_counts=True)
    alike = dict(zip(value.tolist(), count.tolist(), strict=True))
    rows: list[Row] = []
    for affected, places, start in (("most", most, 0), ("least", least, len(order) - len(least))):
        for rank, place in enumerate(places.tolist(), start + 1):
            row = _row(found, place)
            equal = alike[float(found.value[place])]
            rows.append({"affected": affected, "rank": rank, "of": len(order), **row, "equal": equal, "ranked_by": how})
    return rows


def _order(found: AreaScores) -> tuple[Ints, str]:
    """Return the places of the areas with a value, the most affected first; of equals the smaller area first."""
    places = np.flatnonzero(found.known & ~np.isnan(found.value))
    value = found.value[places]
    signed, higher = found.kind.direction == "nearer 0", found.kind.direction == "higher"
    key = -np.abs(value) if signed else value if higher else -value
    return places[np.lexsort((found.before[places], key))], BY_SIZE if signed else UPWARDS if higher else BY_VALUE


_IN_ORDER = "Flows need the rows of the two files in the same order"
_ADVICE = (
    "Give the plan, or swapped= with a file whose rows are in order (on the command line: --recipe), or keep a column "
    "that identifies records in both files."
)
_TOLD_APART = 0.95


def area_flows(data: Data, released: Plan | Data, by: str, *, swapped: ArrayLike | None = None) -> pl.DataFrame:
    """Count the records that moved between areas: level, origin, destination, records; the largest flow first.

    `released` is the plan, or the released file with its rows in the order of `data`. `by` is a level of geography,
    or a cross such as "county*sex". Records that stay in their area are not counted. Where `by` has coarser levels
    above it, `crosses` is the coarsest that a flow crosses; in a file of households or other units, `units` counts
    those of the records.

    A file must show that its rows are in order, as flows of rows out of order look like any others. `swapped`, true or
    false per row, says who was swapped: all others must be where they were. Without it, the columns that agree row by
    row, levels of geography aside, must tell at least 95 % of the records apart, as an identifier does.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.state()
    >>> flows = qd.area_flows(data, qd.RandomSwap(["tract"], rate=0.02, seed=1).plan(data), "county")
    >>> flows.columns, flows["records"].sum() <= 6400
    (['level', 'origin', 'destination', 'records'], True)
    >>> census = qd.datasets.census(1_000)
    >>> plan = qd.TargetedSwap(["gender"], rate=0.1, levels=["nuts1", "nuts2"], similar=[[]], seed=1).plan(census)
    >>> flows = qd.area_flows(census, plan, "nuts2")
    >>> {level: sum(part["units"]) for (level,), part in flows.group_by("crosses", maintain_order=True)}
    {'nuts1': 74, 'nuts2': 26}
    """
    require_data(data, "area_flows")
    levels = levels_of(by, data) if isinstance(by, str) else {}  # pyright: ignore[reportUnnecessaryIsInstance]
    if len(levels) != 1:
        raise bad_parameter("area_flows", "by", "one column or cross of columns", by)
    text, level = next(iter(levels.items()))
    if isinstance(released, Plan):
        if swapped is not None:
            raise ParameterError("A plan knows who was swapped. Leave 'swapped' out.")
        labelled, old, new = _of_plan(data, released, level)
    else:
        labelled, old, new = _of_files(data, require_data(released, "area_flows"), level, swapped)
    moved = np.flatnonzero(old != new)
    if not len(moved):
        raise InputError(f"No record changes its area of {text!r}: there are no flows. Name a level that was swapped.")
    cross = Cross.of(labelled, level)
    return tidy(_rows(text, labelled, cross, old[moved], new[moved], moved, _unit_column(data, released)))


def _of_plan(data: Data, plan: Plan, level: Level) -> tuple[Data, Cells, Cells]:
    plan.check(data)
    delta, cross = Delta(data, plan), Cross.of(data, level)
    old = cross.cells(data).astype(np.int64)
    new = old.copy()
    new[delta.rows] = delta.cells(cross)[1]
    return data, old, new


def _unit_column(data: Data, released: Plan | Data) -> Units | None:
    """Return the units that a plan moves, or those of the file."""
    moves = released.moves if isinstance(released, Plan) else ()
    name = next((variable.name for variable in data.codebook if variable.role == "unit"), None)
    of_file = None if name is None else data.units(name)
    return next((move.units for move in moves if move.units is not None), of_file)


def _of_files(data: Data, other: Data, level: Level, swapped: ArrayLike | None) -> tuple[Data, Cells, Cells]:
    if data.n != other.n:
        raise InputError(f"{_IN_ORDER}, and they have {data.n:,} and {other.n:,} rows. {_ADVICE}")
    if swapped is None:
        _check_order(data, other, level)
    mine, theirs = matched(data, other, level)
    cross = Cross.of(mine, level)
    old, new = cross.cells(mine), cross.cells(theirs)
    if swapped is not None:
        strays = int(((old != new) & ~_mask(swapped, data.n)).sum())
        if strays:
            raise InputError(
                f"{_IN_ORDER}: {strays:,} records that were not swapped have another area in the second file. "
                "Check 'swapped', and do not shuffle the rows."
            )
    return mine, old, new


def _mask(swapped: ArrayLike, n: int) -> NDArray[np.bool_]:
    mask: NDArray[np.generic] = np.asarray(swapped)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise bad_parameter(
            "area_flows", "swapped", f"true or false for each of the {n:,} rows", type(swapped).__name__
        )
    return mask.astype(np.bool_)


def _check_order(data: Data, other: Data, level: Level) -> None:
    """Refuse files of which nothing shows that a row is the same record in both."""
    changed = changed_columns(data, other)
    if changed is None:
        raise InputError(f"{_IN_ORDER}, and no column agrees row by row. {_ADVICE}")
    areas = {*level, *(variable.name for variable in data.codebook if variable.role == "geography")}
    agree = [name for name in data.columns if name in other.codebook and name not in areas and name not in changed]
    apart = _told_apart(data, agree)
    if apart < _TOLD_APART * data.n:
        raise InputError(
            f"{_IN_ORDER}, and nothing shows that they are: what agrees row by row (columns: {len(agree)}) tells "
            f"{apart:,} of {data.n:,} records apart, so that others may have changed places. {_ADVICE}"
        )


def _told_apart(data: Data, names: Sequence[str]) -> int:
    """Count the records that no other record equals in all of these columns."""
    group = np.zeros(data.n, dtype=np.int64)
    for name in names:
        values, place = np.unique(data[name].values, return_inverse=True)
        group = np.unique(group * len(values) + place, return_inverse=True)[1]
    return int((np.bincount(group) == 1).sum())


def _rows(
    text: str, data: Data, cross: Cross, old: Cells, new: Cells, rows: Rows, units: Units | None
) -> list[dict[str, object]]:
    """Return a flow per row of the table; `old` and `new` are the cells of the records that moved, which are `rows`."""
    areas, place = np.unique(np.concatenate((old, new)), return_inverse=True)
    origin, destination = np.split(place, 2)
    flows, of, count = np.unique(origin * len(areas) + destination, return_inverse=True, return_counts=True)
    names = [" × ".join(labels) for labels in labels_of(cross, areas, [data[name].labels for name in cross.variables])]
    further: dict[str, Sequence[object]] = {}
    if above := _crossed(data, cross, areas):
        pairs = zip(*(ends.tolist() for ends in np.divmod(flows, len(areas))), strict=True)
        further["crosses"] = [next(name for name, of_area in above if of_area[a] != of_area[b]) for a, b in pairs]
    if units is not None:
        apart = np.unique(of * units.count + units.of[rows])
        further["units"] = np.bincount(apart // units.count, minlength=len(flows)).tolist()
    sizes: list[int] = count.tolist()
    return [
        {
            "level": text,
            "origin": names[int(flows[flow]) // len(areas)],
            "destination": names[int(flows[flow]) % len(areas)],
            "records": sizes[flow],
            **{name: values[flow] for name, values in further.items()},
        }
        for flow in sorted(range(len(sizes)), key=lambda flow: -sizes[flow])
    ]


def _crossed(data: Data, cross: Cross, cells: Cells) -> list[tuple[str, list[int]]]:
    """Return the area of each cell at each level of geography down to that of the cells; nothing without one above."""
    levels, (name, *others) = data.codebook.geography, cross.variables
    if others or name not in levels[1:]:
        return []
    codes = cross.codes(cells, name)
    row_of = np.full(data[name].size, -1, dtype=np.int64)
    row_of[data[name].values] = np.arange(data.n)
    rows = row_of[codes]
    above = [
        np.where(rows >= 0, data[level].values[rows].astype(np.int64), -1) for level in levels[: levels.index(name)]
    ]
    coarser = [(level, values.tolist()) for level, values in zip(levels, above, strict=False)]
    return [*coarser, (name, codes.tolist())]
