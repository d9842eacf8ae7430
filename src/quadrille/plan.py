"""What a release changes: which rows receive which columns from which other rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Codes, Data, Rows, Units, require_columns
from quadrille.errors import InputError, MismatchError, QuadrilleError
from quadrille.text import Shown

if TYPE_CHECKING:
    from quadrille.delta import PlanReport

Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Move(Shown):
    """After the move, `columns` at `rows` hold what `source` held. `pairs` lists exchanges, (m, 2), or is None.

    With `units`, `given` and `pairs` number units instead of rows: all members of a unit receive what the first row of
    the giving unit holds, so the columns must be the same for all members of a unit. `expanded` are the rows.

    Example
    -------
    >>> import numpy as np
    >>> import quadrille as qd
    >>> move = qd.Move.exchange(["Edu"], np.array([[0, 5], [3, 1]]))
    >>> move.rows.tolist(), move.source.tolist()
    ([0, 1, 3, 5], [5, 3, 1, 0])
    """

    columns: tuple[str, ...]
    given: tuple[Rows, Rows] = field(repr=False)
    pairs: Pairs | None = field(default=None, repr=False)
    units: Units | None = field(default=None, repr=False)

    @classmethod
    def exchange(cls, columns: Iterable[str], pairs: Pairs, units: Units | None = None) -> Move:
        """Make the move in which the two records, or units, of every pair exchange their values.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> qd.Move.exchange(["Edu"], np.array([[0, 5]])).source.tolist()
        [5, 0]
        """
        first, second = pairs[:, 0], pairs[:, 1]
        return cls(tuple(columns), (np.concatenate((first, second)), np.concatenate((second, first))), pairs, units)

    @cached_property
    def expanded(self) -> tuple[Rows, Rows]:
        """Rows that receive values, in the order of the draw, and the row that each receives them from.

        >>> import numpy as np
        >>> import polars as pl
        >>> import quadrille as qd
        >>> units = qd.from_frame(pl.DataFrame({"hh": ["b", "a", "b", "c"]})).units("hh")
        >>> rows, source = qd.Move.exchange(["area"], np.array([[0, 2]]), units).expanded  # households b and c
        >>> rows.tolist(), source.tolist()
        ([0, 2, 3], [3, 3, 0])
        """
        if self.units is None:
            return self.given
        rows, sizes = self.units.members(self.given[0])
        return rows, np.repeat(self.units.first[self.given[1]], sizes)

    @property
    def row_pairs(self) -> Pairs | None:
        """The pairs, where they are pairs of rows: None for pairs of units, and where there are none.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> qd.Move.exchange(["Edu"], np.array([[0, 5], [3, 1]])).row_pairs.tolist()
        [[0, 5], [3, 1]]
        """
        return self.pairs if self.units is None else None

    @cached_property
    def _order(self) -> Rows:
        return np.argsort(self.expanded[0], kind="stable")

    @cached_property
    def rows(self) -> Rows:
        """Rows that receive values, in ascending order.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> (move,) = qd.RandomSwap(["Edu"], pairs=2, seed=7).plan(data).moves
        >>> move.columns, len(move.rows), sorted(move.source) == move.rows.tolist()
        (('Edu',), 4, True)
        """
        return self.expanded[0][self._order]

    @cached_property
    def source(self) -> Rows:
        """Row that each of `rows` receives its values from.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> qd.Move(("Edu",), (np.array([7, 3, 5]), np.array([3, 5, 7]))).source.tolist()  # to rows 3, 5 and 7
        [5, 7, 3]
        """
        return self.expanded[1][self._order]

    def inverse(self) -> Move:
        """Return the move that puts everything back.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> cycle = qd.Move(("Edu",), (np.array([0, 1, 2]), np.array([1, 2, 0])))
        >>> cycle.source.tolist(), cycle.inverse().source.tolist()
        ([1, 2, 0], [2, 0, 1])
        """
        return Move(self.columns, (self.given[1], self.given[0]), self.pairs, self.units)


class DeferredFacts(Mapping[str, object]):
    """Facts that are worked out when somebody first looks at them: a search over many plans looks at none."""

    def __init__(self, make: Callable[[], dict[str, object]]) -> None:
        self._make = make

    @cached_property
    def _facts(self) -> dict[str, object]:
        return self._make()

    def __getitem__(self, name: str) -> object:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self._facts,)


@dataclass(frozen=True, eq=False, repr=False)
class Details(Shown):
    """What a method remembers of a draw beyond the moves: plain facts, lists of rows, and plans it decided against.

    The fact "warnings" is what the method has to say against the draw. All of it is confidential.
    """

    facts: Mapping[str, object]
    rows: Mapping[str, Rows] = field(default_factory=dict[str, Rows], repr=False)
    alternatives: Mapping[str, Plan] = field(default_factory=dict[str, "Plan"], repr=False)


class Plan(Shown):
    """A tuple of moves in which every column occurs at most once: one permutation per group of columns.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
    >>> plan, len(plan.pairs), plan.report(data).changed
    (Plan(976 records, columns Edu), 488, 976)
    >>> swapped = plan.apply(data)
    >>> plan.inverse().apply(swapped).fingerprint == data.fingerprint
    True
    """

    def __init__(
        self,
        moves: Iterable[Move],
        *,
        data: Data | None = None,
        before: str | None = None,
        after: str | None = None,
        asked: int | None = None,
        details: Details | None = None,
        steering_columns: tuple[str, ...] = (),
    ) -> None:
        self.moves = tuple(move for move in moves if len(move.given[0]))
        self.asked = asked
        self.details = details
        self.steering_columns = steering_columns
        """Columns that steered the draw: they are not released, so they are no key variables either."""
        self._data = data
        self._before = before
        self._after = after

    @classmethod
    def of_pairs(cls, data: Data, columns: Sequence[str], pairs: Pairs, *, asked: int | None = None) -> Plan:
        """Make a plan in which the records of each pair exchange `columns`; checks the pairs.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> qd.Plan.of_pairs(data, ["Edu", "MS"], np.array([[0, 5], [3, 1]]))
        Plan(4 records, columns Edu, MS)
        """
        require_columns(data, columns, "the plan")
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= data.n):
            raise QuadrilleError(f"A plan names rows outside the file. Rows run from 0 to {data.n - 1:,}.")
        if len(np.unique(pairs)) != pairs.size:
            raise QuadrilleError("A plan has a record in two pairs. Each record may take part once per move.")
        return cls([Move.exchange(columns, pairs)], data=data, asked=len(pairs) if asked is None else asked)

    @classmethod
    def of_unit_pairs(
        cls, data: Data, columns: Sequence[str], unit: str, pairs: Pairs, *, asked: int | None = None
    ) -> Plan:
        """Make a plan in which the units of each pair, numbered as in `data.units(unit)`, exchange `columns`.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> data = qd.datasets.households()
        >>> plan = qd.Plan.of_unit_pairs(data, ["region"], "hh_id", np.array([[0, 5], [3, 1]]))
        >>> plan.units.tolist(), len(plan.rows), plan.unit_pairs.tolist()
        ([0, 1, 3, 5], 13, [[0, 5], [3, 1]])
        """
        require_columns(data, [*columns, unit], "the plan")
        units = data.units(unit)
        refuse_mixed(data, units, columns, "the plan")
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= units.count):
            raise QuadrilleError(f"A plan names units outside the file. Units run from 0 to {units.count - 1:,}.")
        if len(np.unique(pairs)) != pairs.size:
            raise QuadrilleError("A plan has a unit in two pairs. Each unit may take part once per move.")
        return cls([Move.exchange(columns, pairs, units)], data=data, asked=len(pairs) if asked is None else asked)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that move.

        >>> import quadrille as qd
        >>> data = qd.datasets.state(records=3_200)
        >>> qd.RandomSwap(["tract"], rate=0.1, seed=7).plan(data).columns  # the county travels with its tract
        ('tract', 'county')
        """
        return tuple(name for move in self.moves for name in move.columns)

    @cached_property
    def rows(self) -> Rows:
        """Rows that take part in any move, in ascending order.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> len(plan.rows), round(len(plan.rows) / data.n, 4)
        (976, 0.02)
        """
        if len(self.moves) == 1:
            return self.moves[0].rows
        return np.unique(np.concatenate([np.empty(0, np.int64), *(move.expanded[0] for move in self.moves)]))

    @cached_property
    def units(self) -> Rows | None:
        """Units that take part in any move, in ascending order, or None when a move is not one of units.

        >>> import quadrille as qd
        >>> print(qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(qd.datasets.cps8d()).units)
        None
        """
        if not self.moves or any(move.units is None for move in self.moves):
            return None
        return np.unique(np.concatenate([move.given[0] for move in self.moves]))

    @cached_property
    def unit_pairs(self) -> Pairs | None:
        """All pairs of units, (m, 2), or None when a move is no exchange of pairs of units.

        >>> import quadrille as qd
        >>> print(qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(qd.datasets.cps8d()).unit_pairs)
        None
        """
        return None if self.units is None else _all_pairs([move.pairs for move in self.moves], len(self.units))

    @cached_property
    def pairs(self) -> Pairs | None:
        """All pairs, (m, 2), or None when some record is in two pairs or a move is no exchange of pairs.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> plan.pairs.shape
        (488, 2)
        >>> print(qd.PermutationSwap(["Edu"], rate=0.02, kind="cycles", seed=7).plan(data).pairs)
        None
        """
        return _all_pairs([move.row_pairs for move in self.moves], len(self.rows))

    @property
    def before(self) -> str:
        """Fingerprint of the data that the plan is for.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> plan.before == data.fingerprint
        True
        """
        if self._before is None:
            self._before = self._known_data.fingerprint
        return self._before

    @property
    def after(self) -> str:
        """Fingerprint of the data that the plan makes.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> plan.after == plan.apply(data).fingerprint
        True
        """
        if self._after is None:
            self._after = self._known_data.fingerprint_after(self.changed(self._known_data))
        return self._after

    @property
    def _known_data(self) -> Data:
        if self._data is None:
            raise QuadrilleError("This plan does not know its data. Draw it again from its recipe.")
        return self._data

    def check(self, data: Data) -> None:
        """Refuse data other than those the plan was made for.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> plan.check(data)
        >>> plan.check(plan.apply(data))
        Traceback (most recent call last):
        quadrille.errors.MismatchError: This plan was made for other data: the fingerprints differ. ...
        """
        if data is not self._data and data.fingerprint != self.before:
            raise MismatchError(
                "This plan was made for other data: the fingerprints differ. "
                "Use the file, codebook and weight with which the plan was drawn."
            )

    def apply(self, data: Data) -> Data:
        """Return the swapped data.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> swapped = plan.apply(data)
        >>> int((swapped["Edu"].values != data["Edu"].values).sum())
        976
        """
        self.check(data)
        return data.with_values(self.changed(data))

    def changed(self, data: Data) -> Mapping[str, tuple[Rows, Codes]]:
        """Return, by column that moves, the rows that receive values and the codes that they receive.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> rows, codes = qd.RandomSwap(["Edu"], pairs=2, seed=7).plan(data).changed(data)["Edu"]
        >>> len(rows), len(codes)
        (4, 4)
        """
        changed: dict[str, tuple[Rows, Codes]] = {}
        for move in self.moves:
            rows, source = move.expanded
            changed |= {name: (rows, data[name].values[source]) for name in move.columns}
        return changed

    def inverse(self) -> Plan:
        """Return the plan that undoes this one.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> plan.inverse().apply(plan.apply(data)) == data
        True
        """
        moves = [move.inverse() for move in self.moves]
        return Plan(moves, before=self.after, after=self.before, asked=self.asked)

    def then(self, other: Plan) -> Plan:
        """Return the plan that does this one first and `other`, drawn on its result, second.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> first = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> swapped = first.apply(data)
        >>> second = qd.RandomSwap(["MS"], rate=0.02, seed=8).plan(swapped)
        >>> both = first.then(second)
        >>> both.columns, both.apply(data) == second.apply(swapped)
        (('Edu', 'MS'), True)
        """
        if other.before != self.after:
            raise MismatchError(
                "The second plan was not made for what the first one makes. Draw it on the swapped data."
            )
        groups: dict[tuple[int, int], list[str]] = defaultdict(list)
        for name in dict.fromkeys(self.columns + other.columns):
            groups[self._move_of(name), other._move_of(name)].append(name)
        moves = [
            _compose(columns, self.moves[i] if i >= 0 else None, other.moves[j] if j >= 0 else None)
            for (i, j), columns in groups.items()
        ]
        return Plan(moves, before=self.before, after=other.after)

    def _move_of(self, name: str) -> int:
        return next((i for i, move in enumerate(self.moves) if name in move.columns), -1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        if self.before != other.before or set(self.columns) != set(other.columns):
            return False
        return all(
            np.array_equal(mine.rows, theirs.rows) and np.array_equal(mine.source, theirs.source)
            for name in self.columns
            for mine, theirs in [(self.moves[self._move_of(name)], other.moves[other._move_of(name)])]
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # equal plans may differ in the order of their rows

    def __repr__(self) -> str:
        return f"Plan({len(self.rows):,} records, columns {', '.join(self.columns) or 'none'})"

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the data: fingerprints stand in for them."""
        return {
            "moves": self.moves,
            "asked": self.asked,
            "details": self.details,
            "steering_columns": self.steering_columns,
            "_before": self.before,
            "_after": self.after,
            "_data": None,
        }

    def report(self, data: Data) -> PlanReport:
        """Account for the plan: asked, paired, really changed per variable; false and compensating swaps.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> plan = qd.RandomSwap(["Edu"], rate=0.02, seed=7).plan(data)
        >>> account = plan.report(data)
        >>> account.asked, account.pairs, account.changed, account.compensating
        (488, 488, 976, 22)
        """
        from quadrille.delta import account

        return account(self, data)


def refuse_mixed(data: Data, units: Units, columns: Sequence[str], where: str) -> None:
    """Refuse columns that are to move with whole units and differ between the members of some."""
    for name in columns:
        mixed = int(units.mixed(data[name].values).sum())
        if mixed:
            raise InputError(
                f"Column {name!r} differs within {mixed:,} of {units.count:,} units, and {where} needs one value per "
                "unit. Correct the file, name another unit, or leave the column out."
            )


def _all_pairs(listed: Sequence[Pairs | None], partners: int) -> Pairs | None:
    """Return the pairs of all moves; None where a move has none, or one of the partners is in two pairs."""
    known = [pairs for pairs in listed if pairs is not None]
    if len(known) != len(listed):
        return None
    pairs = np.concatenate([np.empty((0, 2), np.int64), *known])
    if pairs.size > partners:  # linked columns move in some of the pairs once more
        pairs = np.unique(pairs, axis=0)
    return pairs if pairs.size == partners else None


def _compose(columns: list[str], first: Move | None, second: Move | None) -> Move:
    """Follow each row, or unit, back through the second move and then the first."""
    if first is None or second is None:
        only = first or second
        assert only is not None
        return Move(tuple(columns), only.given, only.pairs, only.units)
    if not _same_units(first.units, second.units):
        raise QuadrilleError(
            f"Column {columns[0]!r} moves with units in one plan, and otherwise in the other: no single plan does "
            "both. Apply one after the other."
        )
    changed = np.union1d(first.given[0], second.given[0])
    source = _follow(_follow(changed, second), first)
    moved = changed != source
    return Move(tuple(columns), (changed[moved], source[moved]), units=first.units)


def _same_units(one: Units | None, other: Units | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one.of, other.of))


def _follow(numbers: Rows, move: Move) -> Rows:
    """Return the row, or unit, where the values came from before the move."""
    order = np.argsort(move.given[0], kind="stable")
    receivers, givers = move.given[0][order], move.given[1][order]
    place = np.minimum(np.searchsorted(receivers, numbers), len(receivers) - 1)
    return np.where(receivers[place] == numbers, givers[place], numbers)
