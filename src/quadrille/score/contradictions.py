"""What a swap would contradict: columns that stay and say what those that move were; who stands against a group."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np

from quadrille.data import Data, Rows, require_data, unequal
from quadrille.errors import InputError
from quadrille.expressions import Rules, Where
from quadrille.params import RuleList
from quadrille.plan import Plan
from quadrille.recipe import Movement, Recipe
from quadrille.score.coded import (
    CLEARLY,
    ENOUGH,
    NEARLY,
    Coded,
    Codes32,
    Flags,
    Groups,
    absent_cells,
    looked_at,
    scarce_share,
    some_groups,
    table_of,
)
from quadrille.score.dependencies import Dependency, broken, dependencies, released_columns
from quadrille.swap.groups import group_ids
from quadrille.text import Shown

_LACKING = 0.15
"""So many records of a group may lack its commonest value."""
_TIMES = 3
"""In random order so many times as many must lack it."""
_MOST_COLUMNS = 40
"""In wider files, pairs are made of the columns with the fewest values."""

Given = tuple[str, ...]


class Against(NamedTuple):
    """The shares of the swapped and of the other records that stand against their group after a swap."""

    swapped: float
    others: float
    swapped_count: int
    """How many of the swapped ones do."""


def nearly_determined(data: Data, coded: Coded, column: str) -> tuple[tuple[Given, str, float], ...]:
    """Return what nearly holds of a column: groups, the column on which nearly all of a group agree, and the share.

    Groups are of one column or two; either all agree on the column, or it is one of those that make the groups.
    """
    name = f"nearly determines {column}"
    if name not in data.prepared:
        data.prepared[name] = tuple(_searched(coded, column))
    return cast("tuple[tuple[Given, str, float], ...]", data.prepared[name])


def _searched(coded: Coded, column: str) -> Iterator[tuple[Given, str, float]]:
    if column not in coded.codes:
        return
    repeating = [name for name in coded.names if name != column and _repeats(coded, name)]
    few = sorted(sorted(repeating, key=coded.sizes.__getitem__)[:_MOST_COLUMNS], key=repeating.index)
    for given in [*((name,) for name in repeating), *combinations(few, 2)]:
        yield from _agreed(coded, given, [column])
    if _repeats(coded, column):
        for given in [(column,), *((column, name) for name in few)]:
            yield from _agreed(coded, given, [name for name in coded.names if name not in given])


def _agreed(coded: Coded, given: Given, columns: Sequence[str]) -> Iterator[tuple[Given, str, float]]:
    """Yield the columns on which nearly all of a group agree, and would not by chance."""
    rows = some_groups(coded, given)
    groups = Groups.of(coded, given, rows)
    if len(groups.rows) < ENOUGH * len(rows):
        return
    limit = int(_LACKING * len(groups.rows))
    for column in columns:
        lacking = groups.lacking(coded.codes[column], coded.sizes[column], limit)
        needed = max(CLEARLY, _TIMES * lacking)
        if lacking <= limit and groups.lacking(coded.shuffled(column), coded.sizes[column], needed) >= needed:
            yield given, column, 1 - lacking / len(groups.rows)


def _repeats(coded: Coded, name: str) -> bool:
    held = coded.held[name]
    return int(held[held > 1].sum()) >= ENOUGH * coded.n


def stand_against(
    coded: Coded, given: Given, column: str, moved: Collection[str], swapped: Rows, donors: Rows
) -> Against:
    """Return how many records have fewer of their kind in their group than the commonest value has.

    `swapped` are the rows whose values of the columns `moved` have changed, `donors` those they came from.
    """
    after = coded.exchanged([name for name in (*given, column) if name in moved], swapped, donors)
    of_them = np.zeros(coded.n, dtype=np.bool_)
    of_them[swapped] = True
    groups = Groups.of(after, given, some_groups(after, given))
    against = _minorities(groups, after.codes[column][groups.rows], after.sizes[column])
    of_swapped = of_them[groups.rows]
    return _counted(against, of_swapped)


def stand_out(coded: Coded, given: Given, column: str, swapped: Rows, donors: Rows) -> Against:
    """Return how many records differ from both neighbours, who agree, within a group and in the order of a column."""
    after = coded.exchanged([column], swapped, donors)
    unit, place = given
    rows = after.by_code(unit, after.by_code(place, some_groups(after, (unit,))))
    units, values = after.codes[unit][rows], after.codes[column][rows]
    inner = units[:-2] == units[2:]
    against = inner & (values[:-2] == values[2:]) & (values[1:-1] != values[2:])
    of_them = np.zeros(coded.n, dtype=np.bool_)
    of_them[swapped] = True
    return _counted(against[inner], of_them[rows[1:-1]][inner])


def _counted(against: Flags, of_swapped: Flags) -> Against:
    count, others = int((against & of_swapped).sum()), int((against & ~of_swapped).sum())
    return Against(_share(count, of_swapped), _share(others, ~of_swapped), count)


def _share(count: int, among: Flags) -> float:
    return count / max(int(among.sum()), 1)


def _minorities(groups: Groups, values: Codes32, size: int) -> Flags:
    sizes = groups.sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    cells, place, counts = np.unique(group * size + values, return_inverse=True, return_counts=True)
    most = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(most, cells // size, counts)
    return (counts < most[cells // size])[place]


USUAL_RATE = 0.05
"""The share of records swapped at which contradictions are weighed against exceptions that the original has."""
_TRIED = 1 << 16
_FEWEST = 5
"""Of a trial swap so many records must stand against their group, or it tells nothing."""
_SHOWN = 3

WAYS_OUT = (
    "Move the columns together, leave one of them out of the file (role id in the codebook), or make it a rule "
    "(or a column on which partners agree)."
)

UNITS_STAY = (
    "What all members of a unit share moves with the whole unit or not at all, and this method moves single records: "
    "leave these columns where they are, leave the number of the unit out of the file (role id), or let partners be of "
    "one unit (same). TargetedSwap and CycleSwap move whole units (--method targeted, --method cycle)."
)


@dataclass(frozen=True, repr=False)
class Contradiction(Shown):
    """A dependency of the original that a recipe breaks: `moved` change places without `stays`.

    `share` is the share of the records that change in which it would show, as a trial of random exchanges finds it;
    `before` the share of all records that look so in the original.
    """

    dependency: Dependency
    moved: tuple[str, ...]
    stays: tuple[str, ...]
    share: float
    before: float
    units: int = 0
    """Of what belongs to whole units, such as households: how many of two members or more could be torn apart."""

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {**asdict(self), "dependency": self.dependency.as_dict(), "text": str(self)}

    def __str__(self) -> str:
        moved, stays = " and ".join(self.moved), " and ".join(self.stays)
        if self.units:
            torn = f"{self.units:,} unit{'s' if self.units > 1 else ''} of {self.dependency.given[0]} with two or more"
            return f"{self.dependency}, and {moved} would move without {stays}: it can tear apart {torn} members"
        part = "in all" if self.share >= 1 else f"in {max(self.share, 0.001):.1%}"
        return f"{self.dependency}, and {moved} would move without {stays}: it shows {part} of the records that change"


class ContradictionError(InputError):
    """A recipe breaks dependencies of the original, so that the file itself tells who was swapped."""

    def __init__(self, found: Sequence[Contradiction]) -> None:
        self.contradictions = tuple(found)
        more = f" And {len(found) - _SHOWN:,} more." if len(found) > _SHOWN else ""
        listed = " ".join(f"({place}) {each}." for place, each in enumerate(found[:_SHOWN], start=1))
        what = "a contradiction" if len(found) == 1 else f"{len(found):,} contradictions"
        apart = f"{UNITS_STAY} " if any(each.units for each in found) else ""
        self.hint = (
            f"{apart}{WAYS_OUT} To go on all the same: allow_contradictions=True (--allow-contradictions); "
            "the dossier of a release counts the records."
        )
        super().__init__(f"The file would tell who was swapped, by {what}. {listed}{more} {self.hint}")


class Contradictions(Shown, tuple[Contradiction, ...]):
    """What a recipe would break, as `contradictions` finds it."""


def contradictions(data: Data, recipe: Recipe) -> Contradictions:
    """Return the dependencies of a file that a recipe would break so that it shows, the most telling first.

    Left out is what the recipe keeps: columns that move together or with partners who agree on the others, tables that
    show no new combination, and exchanges that its rules forbid. A contradiction shows when one in 200 of the records
    that change has it or more, and when more swapped records than genuine ones look so, at 5 % of the records swapped.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.adult()
    >>> found = qd.contradictions(data, qd.RandomSwap(["education"], rate=0.02))
    >>> len(found), found[0].moved, found[0].stays, found[0].share
    (1, ('education',), ('education-num',), 1.0)
    >>> qd.contradictions(data, qd.RandomSwap(["education", "education-num"], rate=0.02))
    Contradictions(0)
    """
    require_data(data, "contradictions")
    recipe.check_columns(data)
    movement = recipe.movement(data)
    public = set(released_columns(data, recipe.steering_columns))
    crossed = [
        (each, group)
        for each in dependencies(data, movement.columns)
        if public.issuperset(each.columns)
        for group in crossing(each, movement)
    ]
    found: dict[Dependency, Contradiction] = {}
    columns = {name for each, _ in crossed for name in each.columns}
    part = data if recipe.partners_alike else looked_at(data, released_columns(data))
    trial = _Trial(part, recipe, movement, columns) if crossed else None
    for each, group in crossed:
        assert trial is not None
        share, before = trial.share(each, group), trial.before(each)
        known = found.get(each)
        units = _units_at_stake(data, each)
        shows = share > 0 if units else share >= NEARLY and USUAL_RATE * share > before
        if shows and (known is None or known.share < share):
            moved = tuple(name for name in each.columns if name in group)
            stays = tuple(name for name in each.columns if name not in group)
            found[each] = Contradiction(each, moved, stays, share, before, units)
    del trial  # it holds all codes, and so does what follows
    told = {name for each in found.values() for name in each.moved}
    known = [{*each.columns} for each in dependencies(data, movement.columns) if each.kind != "never together"]
    more = _against_groups(part, recipe, movement, told, known)
    return Contradictions(sorted([*found.values(), *more], key=_most_telling))


def _against_groups(
    data: Data, recipe: Recipe, movement: Movement, told: set[str], known: Sequence[set[str]]
) -> Iterator[Contradiction]:
    """Yield what is no dependency, and tells who was swapped all the same: swapped records stand against their groups.

    One is enough for each column of which nothing is `told` yet; what holds columns that are `known` is left out.
    A trial swap at the usual rate is made, so groups are torn as much as a swap would tear them. Where whole units
    move, those who belong together still agree; where near partners do, nearly everybody moves, and nobody stands out.
    """
    names = released_columns(data, recipe.steering_columns)
    if movement.unit is not None or recipe.partners_alike or data.n < CLEARLY or movement.columns <= told:
        return
    coded = Coded(data, names)
    trial: _Trial | None = None
    for group in movement.together:
        for moved in (name for name in group if name in names and name not in told):
            for dependency in _loose(data, coded, moved):
                every = set(dependency.columns)
                if not every <= set(names) or every <= {*group, *movement.same}:
                    continue
                if any(map(every.issuperset, known)) or any(map(every.issubset, movement.closed)):
                    continue
                if trial is None:
                    rows = coded.order[: max(int(USUAL_RATE * data.n), 1)]
                    trial = _Trial(data, recipe, movement, set(names), rows, coded)
                seen = _seen(coded, dependency, group, *trial.changed(group))
                if seen.swapped_count >= _FEWEST and USUAL_RATE * seen.swapped > (1 - USUAL_RATE) * seen.others:
                    along = tuple(name for name in dependency.columns if name in group)
                    stays = tuple(name for name in dependency.columns if name not in group)
                    yield Contradiction(dependency, along, stays, seen.swapped, seen.others)
                    break


def _loose(data: Data, coded: Coded, moved: str) -> Iterator[Dependency]:
    """Yield what nearly holds of a column that is to move: within groups, and from record to record of a unit."""
    for given, column, share in nearly_determined(data, coded, moved):
        yield Dependency("nearly determines", given, column, share)
    for each in dependencies(data):
        if each.kind == "all different" and moved not in each.columns:
            yield Dependency("hardly changes", each.columns, moved, each.share)


def _seen(coded: Coded, dependency: Dependency, group: tuple[str, ...], rows: Rows, donors: Rows) -> Against:
    if dependency.kind == "hardly changes":
        return stand_out(coded, dependency.given, dependency.column, rows, donors)
    return stand_against(coded, dependency.given, dependency.column, group, rows, donors)


def _most_telling(found: Contradiction) -> tuple[bool, bool, float]:
    """Order contradictions: units torn apart first, combinations that never occur last."""
    return found.dependency.kind == "never together", not found.units, -found.share


def _units_at_stake(data: Data, dependency: Dependency) -> int:
    """Count the units of two members or more within which a column is constant; 0 for any other dependency."""
    unit = dependency.given[0]
    if dependency.kind != "constant within" or data.codebook[unit].role != "unit" or not dependency.exact:
        return 0
    return int(data.units(unit).several.sum())


def crossing(dependency: Dependency, movement: Movement) -> list[tuple[str, ...]]:
    """Return the groups of columns that can break a dependency when they move."""
    names = set(dependency.columns)
    if movement.unit in dependency.given or any(names.issubset(table) for table in movement.closed):
        return []
    return [group for group in movement.together if names & set(group) and not names <= {*group, *movement.same}]


class _Trial:
    """Random exchanges, as a recipe allows them, of a part of the records."""

    def __init__(
        self,
        data: Data,
        recipe: Recipe,
        movement: Movement,
        columns: set[str],
        rows: Rows | None = None,
        coded: Coded | None = None,
    ) -> None:
        self._data, self._movement = data, movement
        if coded is None or not columns.issuperset(movement.same):  # a second one is as large as the first
            coded = Coded(data, [name for name in data.columns if name in {*columns, *movement.same}])
        self._coded = coded
        self._rows = self._coded.order[:_TRIED] if rows is None else rows
        texts = [
            text
            for name, param in recipe.params().items()
            if param.kind == RuleList.kind
            for text in recipe.parameters()[name]
        ]
        self._rules = Rules.of(data, texts, recipe.method_name)
        self._donors = self._next_of_class()
        self._near = _sources(recipe.changed(seed=0).plan(data), np.arange(data.n)) if recipe.partners_alike else {}

    def _next_of_class(self) -> Rows:
        """Return for each row the next one of its class, for the last the first: partners agree on these columns."""
        same = [name for name in self._movement.same if name in self._coded.codes]
        keys = [(self._coded.codes[name][self._rows], self._coded.sizes[name]) for name in same]
        of_class, classes = group_ids(keys, len(self._rows))
        order = np.argsort(of_class, kind="stable")
        ends = np.cumsum(np.bincount(of_class, minlength=classes))
        after = np.arange(1, len(order) + 1)
        after[ends - 1] = np.append(0, ends[:-1])
        donors = np.empty(len(order), dtype=np.int64)
        donors[order] = self._rows[order[after]]
        return donors

    def share(self, dependency: Dependency, group: tuple[str, ...]) -> float:
        """Return the share of the records that change and break a dependency which they kept before."""
        donors, changed = self._exchange(group)
        if not changed.any():
            return 0.0
        stay = dict.fromkeys(dependency.columns, self._rows)
        moved = stay | {name: donors for name in dependency.columns if name in group}
        new = broken(self._coded, dependency, moved) & ~broken(self._coded, dependency, stay)
        return float(new[changed].mean())

    def changed(self, group: tuple[str, ...]) -> tuple[Rows, Rows]:
        """Return the rows that change when columns move, and where they receive their values from."""
        donors, changed = self._exchange(group)
        return self._rows[changed], donors[changed]

    def _exchange(self, group: tuple[str, ...]) -> tuple[Rows, Flags]:
        """Return where each row receives from, and whether anything changes and no rule forbids it."""
        donors = self._near[group[0]][self._rows] if group[0] in self._near else self._donors
        changed = np.zeros(len(self._rows), dtype=np.bool_)
        for name in group:
            values = self._data[name].values
            changed |= unequal(values[self._rows], values[donors])
        return donors, changed & ~self._forbidden(group, donors)

    def _forbidden(self, group: tuple[str, ...], donors: Rows) -> Flags:
        """Tell which records would break a rule anew with the values of their donors."""
        found = np.zeros(len(self._rows), dtype=np.bool_)
        for conditions in self._rules.about(group).conditions:
            before, after = np.ones_like(found), np.ones_like(found)
            for condition in conditions:
                met = Where((condition,)).met(self._data)
                before &= met[self._rows]
                after &= met[donors if condition.variable in group else self._rows]
            found |= after & ~before
        return found

    def before(self, dependency: Dependency) -> float:
        """Return the share of the records that look like a contradiction in the original."""
        if dependency.kind == "never together":
            return scarce_share(self._coded, dependency.given[0], dependency.column, USUAL_RATE)
        return float(broken(self._coded, dependency, dict.fromkeys(dependency.columns, self._rows)).mean())


def refuse_contradictions(data: Data, recipe: Recipe) -> Contradictions:
    """Refuse a recipe that contradicts the file; what it returns is empty."""
    found = contradictions(data, recipe)
    if found:
        raise ContradictionError(found)
    return found


@dataclass(frozen=True)
class Contradicted:
    """What a plan did to the dependencies of a file: records that contradict one now and did not before.

    `by_dependency` counts them one by one, `records` counts every record once; `filled` are the combinations that
    never occurred in the original and do now.
    """

    records: int
    by_dependency: tuple[tuple[Dependency, int], ...]
    filled: tuple[Filled, ...]

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        listed = [{**each.as_dict(), "records": count} for each, count in self.by_dependency]
        return {"records": self.records, "by_dependency": listed, "filled": [each.as_dict() for each in self.filled]}


@dataclass(frozen=True)
class Filled:
    """A combination that never occurred in the original: its columns and labels, records expected and records now."""

    columns: tuple[str, str]
    labels: tuple[str, str]
    expected: float
    records: int

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)


def contradicted(data: Data, plan: Plan) -> Contradicted:
    """Count the records of a swapped file that contradict a dependency of the original; all of it is confidential.

    Example
    -------
    >>> import quadrille as qd
    >>> from quadrille.score.contradictions import contradicted
    >>> data = qd.datasets.adult()
    >>> contradicted(data, qd.RandomSwap(["education"], pairs=100, seed=1).plan(data)).records
    200
    """
    public = set(released_columns(data, plan.steering_columns))
    move_of = {name: place for place, move in enumerate(plan.moves) for name in move.columns}
    crossed = [
        each
        for each in dependencies(data, plan.columns)
        if public.issuperset(each.columns) and len({move_of.get(name) for name in each.columns}) > 1
        if not _of_whole_units(data, plan, each)
    ]
    coded = Coded(data, [name for name in data.columns if any(name in each.columns for each in crossed)])
    rows = plan.rows
    source = _sources(plan, rows)
    found: list[tuple[Dependency, int]] = []
    filled: list[Filled] = []
    any_of_them = np.zeros(len(rows), dtype=np.bool_)
    for each in crossed:
        at = {name: source.get(name, rows) for name in each.columns}
        new = broken(coded, each, at) & ~broken(coded, each, dict.fromkeys(each.columns, rows))
        if each.kind == "never together":
            filled += _filled(coded, each.given[0], each.column, at)
        elif new.any():
            found.append((each, int(new.sum())))
            any_of_them |= new
    return Contradicted(int(any_of_them.sum()), tuple(found), tuple(filled))


def _of_whole_units(data: Data, plan: Plan, dependency: Dependency) -> bool:
    """Tell whether a column follows from the number of the units with which it moved: their members still agree."""
    moved = next((move.units for move in plan.moves if dependency.column in move.columns), None)
    units = [name for name in dependency.given if data.codebook[name].role == "unit"]
    return moved is not None and any(np.array_equal(data.units(name).of, moved.of) for name in units)


def _sources(plan: Plan, rows: Rows) -> dict[str, Rows]:
    """Return, by column that moves, the row from which each of these rows gets its value."""
    made: dict[str, Rows] = {}
    for move in plan.moves:
        source = rows.copy()
        source[np.searchsorted(rows, move.rows)] = move.source
        made |= dict.fromkeys(move.columns, source)
    return made


def _filled(coded: Coded, a: str, b: str, source: Mapping[str, Rows]) -> list[Filled]:
    """Return the combinations of two columns that never occurred and do now."""
    held, expected = table_of(coded, a, b)
    never = absent_cells(held, expected) & (held == 0)
    now = np.zeros_like(held)
    first, second = (coded.classes(name)[0] for name in (a, b))
    np.add.at(now, (first[source[a]], second[source[b]]), 1)
    return [
        Filled((a, b), (_label(coded, a, i), _label(coded, b, j)), float(expected[i, j]), int(now[i, j]))
        for i, j in np.argwhere(never & (now > 0)).tolist()
    ]


def _label(coded: Coded, name: str, code: int) -> str:
    """Return the label of a class: of one value, or of the lowest and the highest."""
    column = coded.data[name]
    held = column.values[coded.classes(name)[0] == code]
    ends = dict.fromkeys((held.min(), held.max()))
    return " to ".join(column.labels[int(v)] if column.variable.coded else f"{float(v):g}" for v in ends)
