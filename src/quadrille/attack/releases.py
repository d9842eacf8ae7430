"""Several releases of one file: what independent swaps of the same data give away together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import (
    FEW_ROUNDS,
    AttackInput,
    Finding,
    KeyTable,
    NoClosedForm,
    Release,
    Section,
    Transition,
    auc,
    feasible_way,
    hellinger,
    transition_of,
)
from quadrille.attack.undo import Weighed, kept_places, weigh
from quadrille.data import Cross, Data, Floats, Ints
from quadrille.errors import InputError, bad_parameter
from quadrille.plan import Plan
from quadrille.present import numbers
from quadrille.recipe import Recipe
from quadrille.score.matching import Crossed, changed_columns, crossed
from quadrille.swap.designed import DesignedSwap

ATTACK, TITLE = "releases", "Several releases of one file"

_MOST_ENTRIES = 1 << 24


@dataclass(frozen=True)
class SeveralReleases:
    """What an intruder has who holds all releases, and, with the name `_one`, who holds the first of them only.

    `restored` is the share of records all of whose values he gets right, each by its mode over the releases; among
    values as frequent he takes that of the earliest release. `agree` is the share of records on which all releases
    agree, `right` the share of these that are as in the original. The three are None when rows are not aligned. `exact`
    is the share of the cells of the original whose counts he finds from tables alone: averaged, corrected where the
    design allows it, and rounded; `small` is the same of the cells of fewer than n records. `corrected` says whether
    tables were corrected. `chance` and `guessed` are what the margins alone give of `restored` and of `exact`.
    `crossed` counts the cells that are n or more in one release and fewer in another, and what they were.
    """

    releases: int
    cells: int
    small_cells: int
    unique_cells: int
    records: int
    restored: float | None
    restored_one: float | None
    agree: float | None
    right: float | None
    chance: float | None
    exact: float
    exact_one: float
    small: float | None
    small_one: float | None
    guessed: float
    guessed_small: float | None
    corrected: bool
    crossed: Crossed

    @property
    def warning(self) -> str:
        """The sentence to warn with before data are released once more."""
        told = f"These data were released before, and this would be release {self.releases} of them."
        if self.agree == 1:
            return f"{told} It repeats the same plan, so that nothing new is given away."
        rows = ""
        if self.restored is not None and self.agree is not None and self.right is not None:
            rows = (
                f" Who lays the rows side by side sees that {numbers.share(1 - self.agree)} of the records were "
                f"swapped in one of them; of the others {numbers.share(self.right)} are true. One release has "
                f"{numbers.share(self.restored_one)} of the records right, all together {numbers.share(self.restored)}."
            )
        return (
            f"{told}{rows} Tables alone tell {numbers.share(self.exact)} of the counts, those of one release "
            f"{numbers.share(self.exact_one)}.{_told(self.crossed)} Release the same plan again, or count this as a "
            "new risk."
        )


def several_releases(
    data: Data,
    releases: Sequence[Release],
    keys: Sequence[str] | None = None,
    *,
    design: Recipe | None = None,
    n: int = 3,
    aligned: bool = True,
) -> SeveralReleases:
    """Restore the original file, and its table of the keys, from several releases of it.

    Parameters
    ----------
    data : the original file.
    releases : recipes, plans or released files, at least one.
    keys : the variables of the table; the key variables by default.
    design : the recipe behind plans and files, for the correction of their tables; its seed plays no part.
    n : cells of fewer than n records are small.
    aligned : whether the rows of all releases are those of the same persons; the values of a row are compared then.

    Example
    -------
    >>> import quadrille as qd
    >>> from quadrille.attack.releases import several_releases
    >>> designs = [qd.RandomSwap(["Edu", "MS"], rate=0.10, seed=seed) for seed in (1, 2, 3)]
    >>> found = several_releases(qd.datasets.cps8d(), designs)
    >>> round(found.restored_one, 4), round(found.restored, 4)
    (0.9, 0.973)
    """
    names = data.keys if keys is None else tuple(keys)
    if not names or not releases:
        raise InputError("The attack on several releases needs at least one release and one key variable.")
    if n < 2:
        raise bad_parameter("several_releases", "n", "a whole number of 2 or more", n)
    files = [_file(data, release, names) for release in releases]
    table = _Table(data, names)
    designs = [release if isinstance(release, Recipe) else design for release in releases]
    every = [table.estimate(file, each) for file, each in zip(files, designs, strict=True)]
    mean = np.mean([found for found, _ in every], axis=0)
    exact, exact_one, guessed = map(table.exact, (mean, every[0][0], table.independent()))
    rows, one = (_rows(data, files), _rows(data, files[:1])) if aligned else (None, None)
    small = table.count < n
    return SeveralReleases(
        releases=len(files),
        cells=len(small),
        small_cells=int(small.sum()),
        unique_cells=int((table.count == 1).sum()),
        records=data.n,
        restored=None if rows is None else float(rows.right.mean()),
        restored_one=None if one is None else float(one.right.mean()),
        agree=None if rows is None else float(rows.agree.mean()),
        right=None if rows is None else _share(rows.right[rows.agree]),
        chance=None if rows is None else rows.chance,
        exact=float(exact.mean()),
        exact_one=float(exact_one.mean()),
        small=_share(exact[small]),
        small_one=_share(exact_one[small]),
        guessed=float(guessed.mean()),
        guessed_small=_share(guessed[small]),
        corrected=all(corrected for _, corrected in every),
        crossed=crossed(data, files, names, n),
    )


def _share(right: NDArray[np.bool_]) -> float | None:
    return float(right.mean()) if len(right) else None


def warning_figures(
    data: Data, releases: Sequence[Recipe | Plan], keys: Sequence[str] | None = None, *, n: int = 3
) -> SeveralReleases:
    """Return the figures to warn with before data that were released are released again; see `warning`.

    `releases` are the recipes or plans of the earlier releases and, last, of the one that is planned.

    Example
    -------
    >>> import quadrille as qd
    >>> from quadrille.attack.releases import warning_figures
    >>> recipe = qd.RandomSwap(["Edu"], rate=0.02, seed=7)
    >>> print(warning_figures(qd.datasets.cps8d(), [recipe, recipe]).warning)
    These data were released before, and this would be release 2 of them. It repeats the same plan, so that nothing ...
    """
    return several_releases(data, releases, keys, n=n)


def _file(data: Data, release: Release, names: Sequence[str]) -> Data:
    """Return the released file, in the categories of the original."""
    if isinstance(release, Recipe):
        release = release.plan(data)
    file = release.apply(data) if isinstance(release, Plan) else release
    for name in names:
        mine, theirs = data.coded(name, purpose="a key"), file.coded(name, purpose="a key")
        if mine.variable != theirs.variable or mine.nullable != theirs.nullable:
            raise InputError(f"Column {name!r} of a release has other categories. Read it with the file's codebook.")
    return file


@dataclass(frozen=True, eq=False)
class _Rows:
    """For every record whether all its values are restored, and whether all releases agree on it."""

    right: NDArray[np.bool_]
    agree: NDArray[np.bool_]
    chance: float


def _rows(data: Data, files: Sequence[Data]) -> _Rows:
    """Take the mode of each value over aligned files."""
    if any(file.n != data.n for file in files):
        raise InputError("A release has another number of records: its rows are not aligned with the file.")
    right, agree, chance = np.ones(data.n, dtype=np.bool_), np.ones(data.n, dtype=np.bool_), 1.0
    for name in data.columns:
        if not all(name in file.codebook for file in files):
            continue
        true, *shown = _codes([data[name].values, *(file[name].values for file in files)])
        if all(np.array_equal(true, each) for each in shown):
            continue
        votes = np.array([np.sum([one == other for other in shown], axis=0) for one in shown])
        mode = np.array(shown)[np.argmax(votes, axis=0), np.arange(data.n)]
        right &= mode == true
        agree &= votes[0] == len(files)
        chance *= float(((np.bincount(true) / data.n) ** 2).sum())
    return _Rows(right, agree, chance)


def _codes(columns: Sequence[NDArray[np.generic]]) -> list[Ints]:
    """Give the values of a column in several files the same codes; numbers are ranked, missing ones are alike."""
    if columns[0].dtype.kind != "f":
        return [column.astype(np.int64) for column in columns]
    together = np.unique(np.concatenate(columns), return_inverse=True)[1].ravel()
    return [part.astype(np.int64) for part in np.split(together, len(columns))]


class _Table:
    """The cells of the original that are occupied: their numbers, a row in each, their counts."""

    def __init__(self, data: Data, names: tuple[str, ...]) -> None:
        self.data, self.cross = data, Cross.of(data, names)
        self.cells, self.leader, self.count = np.unique(self.cross.cells(data), return_index=True, return_counts=True)
        self._known: dict[str, _Corrected | None] = {}

    def exact(self, estimate: Floats) -> NDArray[np.bool_]:
        """Return which counts an estimate gives when it is rounded."""
        return np.rint(estimate) == self.count

    def estimate(self, file: Data, design: Recipe | None) -> tuple[Floats, bool]:
        """Return the counts of the cells as a release shows them, and whether they are corrected for its design."""
        corrected = None if design is None else self._corrected(design)
        if corrected is not None:
            return corrected.table(file), True
        cells, counts = np.unique(self.cross.cells(file), return_counts=True)
        place = np.minimum(np.searchsorted(cells, self.cells), len(cells) - 1)
        return np.where(cells[place] == self.cells, counts[place], 0).astype(np.float64), False

    def _corrected(self, design: Recipe) -> _Corrected | None:
        name = design.design_json()
        if name not in self._known:
            try:
                self._known[name] = _Corrected.of(self, transition_of(self.data, design, self.cross.variables))
            except NoClosedForm:
                self._known[name] = None
        return self._known[name]

    def independent(self) -> Floats:
        """Return the counts that the margins of the single variables would give."""
        expected = np.full(len(self.cells), float(self.data.n))
        for name in self.cross.variables:
            codes = self.data[name].values
            expected *= (np.bincount(codes) / self.data.n)[codes[self.leader]]
        return expected


@dataclass(frozen=True, eq=False)
class _Corrected:
    """The table of held keys by moved keys, for its correction: T = T' inv(M)."""

    transition: Transition
    held: Cross
    rows: Ints
    leader: Ints
    whole: _Table

    @classmethod
    def of(cls, whole: _Table, transition: Transition) -> _Corrected:
        held = Cross.of(whole.data, transition.held)
        rows, leader = np.unique(held.cells(whole.data), return_index=True)
        if len(rows) * len(transition.shown) > _MOST_ENTRIES:
            raise NoClosedForm("The table is too large to be corrected.")
        found = cls(transition, held, rows, leader, whole)
        found.table(whole.data)
        return found

    @cached_property
    def _row_codes(self) -> dict[str, Ints]:
        return {name: self.whole.data[name].values[self.leader].astype(np.int64) for name in self.transition.held}

    def _places(self, file: Data, rows: Ints | None = None) -> Ints:
        row = np.searchsorted(self.rows, self.held.cells(file, rows))
        return row * len(self.transition.shown) + np.searchsorted(
            self.transition.shown, self.transition.moving.cells(file, rows)
        )

    def table(self, file: Data) -> Floats:
        """Return the corrected counts of the cells of the original."""
        shape = (len(self.rows), len(self.transition.shown))
        counts = np.bincount(self._places(file), minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        return self.transition.undo(counts, self._row_codes).ravel()[self._places(self.whole.data, self.whole.leader)]


_ADVICE = (
    "One release for each file and set of keys. A second one repeats the same plan, from the same seed, or is a new "
    "risk that adds to the first. Candidates that were not chosen never get out."
)


def releases(given: AttackInput) -> Section:
    """Report what the release gives away together with earlier ones; the release itself comes first."""
    if not given.earlier:
        reason = "needs other releases of the same data: give them with earlier="
        return Section(ATTACK, TITLE, "What several releases give away together is not looked at.", reason=reason)
    earlier = [
        release.plan(given.data)
        if isinstance(release, Recipe) and (given.design is None or _same_design(release, given.design))
        else release
        for release in given.earlier
    ]
    files = [release for release in earlier if isinstance(release, Data)]
    aligned = given.aligned and all(changed_columns(given.data, file) is not None for file in files)
    every = [given.released, *earlier]
    found = several_releases(given.data, every, given.keys, design=given.design, n=given.n, aligned=aligned)
    return several_section(found, aligned=aligned, together=tuple(_weighed(given, earlier)))


def _same_design(mine: Recipe, theirs: Recipe) -> bool:
    """Tell whether two recipes are one design; how long was searched for a designed swap makes no difference."""
    if isinstance(mine, DesignedSwap) and isinstance(theirs, DesignedSwap):
        mine, theirs = mine.changed(effort=1.0), theirs.changed(effort=1.0)
    return mine.design_json() == theirs.design_json()


def several_section(found: SeveralReleases, *, aligned: bool = True, together: tuple[Finding, ...] = ()) -> Section:
    """Report what several releases give away together, next to what one of them does.

    `together` is what they give away when they are weighed by swaps of made-up files.
    """
    many, tables = f"{found.releases} releases", "corrected by the design" if found.corrected else "not corrected"

    def row(quantity: str, value: float | None, chance: float | None, count: int, note: str = "") -> Finding:
        return Finding(ATTACK, quantity, value, 1.0, chance, count, note)

    unaligned = "" if aligned else "rows are not aligned"
    findings = (
        row("records restored, one release", found.restored_one, found.chance, found.records, unaligned),
        row(f"records restored, {many}", found.restored, found.chance, found.records, unaligned),
        row("right where all releases agree", found.right, found.chance, found.records, unaligned),
        row("cells exact, one release", found.exact_one, found.guessed, found.cells, tables),
        row(f"cells exact, {many}", found.exact, found.guessed, found.cells, tables),
        row("small cells exact, one release", found.small_one, found.guessed_small, found.small_cells, tables),
        row(f"small cells exact, {many}", found.small, found.guessed_small, found.small_cells, tables),
    )
    story = _story(found) + _told(found.crossed) + _weighed_story(together)
    return Section(ATTACK, TITLE, story, (*findings, *_crossed(found), *together), _ADVICE)


_SURE = 0.8
_DISTANCE = "distance of the undone table from the original (Hellinger)"
_CLAIMED = f"small cells claimed at a chance above {_SURE}"
_RIGHT = f"cells claimed at a chance above {_SURE} to be small"


def _weighed(given: AttackInput, earlier: Sequence[Release]) -> Iterator[Finding]:
    """Undo the table of a designed swap by the first release, and by all releases of its design together.

    Recipes among the earlier releases are other designs; plans and files are of this one. What a cell became in one
    release and in another are two draws of the same design: chances multiply.
    """
    of_the_design = [each for each in earlier if not isinstance(each, Recipe)]
    rehearsed, recipe = given.rehearsal if of_the_design else None, given.designed
    if rehearsed is None or recipe is None:
        return
    table = rehearsed.table
    way, every = feasible_way(table, FEW_ROUNDS), _tables(given, of_the_design, table)
    if way is None or len(every) < 2:
        return
    kept, before = kept_places(given, recipe, table.names), table.spread(table.f)
    for many, tables in (("one release", every[:1]), (f"{len(every)} releases", every)):
        found = weigh(tables, recipe.n, rehearsed.channel, rehearsed.fitted, kept=kept, way=way)
        yield from _undone(found, before, every[0], recipe.n, many)


def _tables(given: AttackInput, earlier: Sequence[Plan | Data], table: KeyTable) -> list[Floats]:
    """Return the different tables of releases of one design, the attacked one first; a repeated plan tells nothing."""
    every = [table.spread(table.g)]
    for release in earlier:
        file = release.apply(given.data) if isinstance(release, Plan) else release
        if all(name in file.codebook for name in table.names):
            other = _tabulated(_file(given.data, file, table.names), table)
            every += [other] * (not any(np.array_equal(other, known) for known in every))
    return every


def _tabulated(file: Data, table: KeyTable) -> Floats:
    """Return the counts of a file in all possible cells of a table."""
    cell = np.ravel_multi_index([file[name].values.astype(np.int64) for name in table.names], table.sizes)
    return np.bincount(cell, minlength=table.possible).reshape(table.sizes).astype(np.float64)


def _undone(found: Weighed, before: Floats, released: Floats, n: int, many: str) -> Iterator[Finding]:
    """Compare what the releases tell with the table before; `released` is the first of them."""

    def row(quantity: str, value: float | None, was: float | None, chance: float | None, of: int) -> Finding:
        return Finding(ATTACK, f"{quantity}, {many}", value, was, chance, of, "weighed by swaps of made-up files")

    occupied, small, at = before > 0, ((before > 0) & (before < n)).reshape(-1), (released == n).reshape(-1)
    claimed = found.few[:, 1:n].sum(axis=1) > _SURE
    cells, few, claims, right = (int(part.sum()) for part in (occupied, small, claimed, claimed & small))
    yield row(_DISTANCE, hellinger(before, found.table), 0.0, hellinger(before, released), cells)
    alone = auc(found.few[at, 1], before.reshape(-1)[at] == 1)
    yield row(f"cells of {n}: those of one record before (AUC)", alone, None, 0.5, int(at.sum()))
    yield row(_CLAIMED, right / few if few else None, 1.0, claims / cells, few)
    yield row(_RIGHT, right / claims if claims else None, None, few / cells, claims)


def _weighed_story(together: tuple[Finding, ...]) -> str:
    """Say what several releases give away to somebody who weighs them."""
    if not together:
        return ""
    (one, _, _, _), (all_of_them, _, found, right) = together[:4], together[4:]
    return (
        f" Whoever swaps made-up files by the design and weighs all releases brings the table from a distance of "
        f"{numbers.statistic(one.chance)} to {numbers.statistic(all_of_them.value)}, by one release to "
        f"{numbers.statistic(one.value)}, and claims {numbers.counted(right.count or 0, 'cell')} to have been small, "
        f"{numbers.share(right.value)} of them rightly: {numbers.share(found.value)} of all small cells."
    )


def _crossed(found: SeveralReleases) -> Iterator[Finding]:
    """Report the cells that the releases together tell to be small, next to as many drawn at random."""
    cells, small, told, right, unique = found.crossed
    many = f"{found.releases} releases"
    by_chance = told / cells if cells else None
    yield Finding(
        ATTACK,
        f"small cells found by crossing {many}",
        right / small if small else None,
        1.0,
        by_chance,
        small,
        "large in one release and not in another; one release alone tells none",
    )
    note = "" if told else "no cell is large in one release and not in another"
    for what, part, whole in (("were small", right, small), ("were one record", unique, found.unique_cells)):
        value, chance = part / told if told else None, whole / cells if cells else None
        yield Finding(ATTACK, f"cells told to be small by {many} that {what}", value, None, chance, told, note)


def _told(found: Crossed) -> str:
    if not found.told:
        return ""
    return (
        f" {numbers.counted(found.told, 'cell is', 'cells are')} large in one of them and not in another, which tells "
        f"without knowing any row that they were small: {numbers.count(found.right)} were, "
        f"{numbers.share(found.right / found.small if found.small else None)} of all small cells, "
        f"{numbers.count(found.unique)} of them a single person."
    )


def _story(found: SeveralReleases) -> str:
    if found.restored is None or found.restored_one is None:
        return (
            f"A person is one of a few with some keys. Somebody who averages {found.releases} releases knows how many "
            f"they are in {numbers.share(found.exact)} of all cases, instead of {numbers.share(found.exact_one)}."
        )
    return (
        f"A person's values were swapped in one of {found.releases} releases and are true in the others. Somebody who "
        f"lays them side by side gives {numbers.share(found.restored)} of all persons their own values back; one "
        f"release has {numbers.share(found.restored_one)} of them right."
    )
