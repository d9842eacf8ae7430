"""A microdata file in memory: immutable columns of codes or numbers, weights in ticks, crosses, a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Codebook, Role, Variable, check_nesting
from quadrille.errors import InputError, unknown_name
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[Any]
Rows = Ints

MOST_DECIMALS = 15
MOST_TICKS = 1 << 62
"""Sums of ticks stay below this, so that adding and subtracting two of them stays within 64 bits."""
_TOTAL = float(MOST_TICKS)
_LEAST = 2.0**-960


@dataclass(frozen=True, eq=False, repr=False)
class Ticks(Shown):
    """Integer weights: weight = `values` / `per_unit`; `exact` when that is the file's weight to the last bit."""

    values: NDArray[np.int64]
    per_unit: float
    exact: bool

    def __post_init__(self) -> None:
        if not _fits(self.values):
            raise InputError("The weights add up to more ticks than whole numbers hold. Read the file anew.")

    def take(self, rows: Rows) -> Ticks | None:
        """Return the ticks of some records; None where they add up to too much, as with records taken repeatedly."""
        values = self.values[rows]
        values.setflags(write=False)
        return replace(self, values=values) if _fits(values) else None

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return int(self.values.sum()) / self.per_unit


def _fits(values: NDArray[np.int64]) -> bool:
    """Tell whether the sum stays below 2^62, up to rounding: far from 2^63, where whole numbers wrap."""
    return bool(values.sum(dtype=np.float64) < _TOTAL)


def to_ticks(weights: NDArray[np.float64], column: str) -> Ticks:
    """Turn weights into ticks: a decimal tick when one represents them exactly, else the finest binary one."""
    _refuse_bad(weights, column)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not _LEAST < total < np.inf:
        raise InputError(f"The weights of column {column!r} add up beyond the range of numbers. Rescale them.")
    for decimals in range(MOST_DECIMALS + 1):
        per_unit = 10.0**decimals
        if total * per_unit >= _TOTAL:
            break
        if _represents(weights[:1000], per_unit) and _represents(weights, per_unit):
            return _frozen(np.rint(weights * per_unit), per_unit, exact=True)
    per_unit = 2.0 ** (61 - int(np.floor(np.log2(total))))
    if total * per_unit >= _TOTAL * 0.999:
        per_unit /= 2
    scaled = weights * per_unit
    ticks = np.rint(scaled)
    return _frozen(ticks, per_unit, exact=bool((ticks == scaled).all()))


def _represents(weights: NDArray[np.float64], per_unit: float) -> bool:
    return bool((np.rint(weights * per_unit) / per_unit == weights).all())


def _frozen(values: NDArray[np.float64], per_unit: float, *, exact: bool) -> Ticks:
    ticks = values.astype(np.int64)
    ticks.setflags(write=False)
    return Ticks(ticks, per_unit, exact)


def _refuse_bad(weights: NDArray[np.float64], column: str) -> None:
    missing = int(np.isnan(weights).sum())
    if missing:
        raise InputError(f"Weight column {column!r} is missing in {missing:,} rows. Fill or drop these rows.")
    bad = int((~np.isfinite(weights) | (weights < 0)).sum())
    if bad:
        raise InputError(
            f"Weight column {column!r} is negative or infinite in {bad:,} rows. Weights must be 0 or more."
        )
    if not weights.any():
        raise InputError(f"Weight column {column!r} is 0 in every row. Choose another weight column.")


MOST_ROWS = 2**31 - 1
CHUNK = 1 << 16
"""Rows whose keys are worked out at a time: they stay in the cache of a processor."""
_MASK = (1 << 64) - 1


@dataclass(frozen=True, eq=False, repr=False)
class Column(Shown):
    """One column: codes in codebook order (an empty field is the last code), or float64 numbers (NaN is empty).

    `dtype` names the type the column had in the file, for the way back.
    """

    variable: Variable
    values: Codes
    dtype: str = "String"
    nullable: bool = False

    def __post_init__(self) -> None:
        self._freeze()

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        """Look at the values through a view that cannot be written to."""
        values = self.values.view()
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def size(self) -> int:
        """Number of codes: categories, missing codes, and one for the empty field where it occurs."""
        return len(self.variable.values) + self.nullable

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each code: that of the codebook, else the value as text."""
        variable = self.variable
        return (*variable.names, *map(str, variable.missing), *(("(empty)",) if self.nullable else ()))

    @property
    def valid(self) -> int:
        """Number of codes that are not missing; they come first."""
        return len(self.variable.categories)

    @cached_property
    def held(self) -> Ints:
        """The number of records of each code."""
        from quadrille import kernels

        held = np.zeros(self.size, dtype=np.int64)
        kernels.count_codes(self.values, held)
        return held

    @cached_property
    def tally(self) -> tuple[int, int]:
        """How many different values there are and how many records have one; missing codes are none."""
        if self.variable.coded:
            counts = self.held[: self.valid]
            return int(np.count_nonzero(counts)), int(counts.sum())
        absent = np.isnan(self.values)
        values = self.values[~absent] if absent.any() else self.values
        return different(values), len(values)

    @property
    def one_missing(self) -> Codes:
        """The codes with all kinds of missing as one category, the last."""
        # Without missing codes `valid` itself may not fit into the type of the codes.
        return self.values if self.size == self.valid else np.minimum(self.values, self.valid)


def different(values: NDArray[Any]) -> int:
    """Count the different numbers; sorting them takes a hundredth of the time of a table of them."""
    ordered = np.sort(values)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + min(len(ordered), 1)


def united(a: Ints, b: Ints) -> Ints:
    """Return the numbers that are in either, ascending; two ascending lists are merged in the time of reading them."""
    both = np.concatenate((a, b))
    both.sort(kind="stable")
    return both[np.concatenate(([True], both[1:] != both[:-1]))[: len(both)]]


FIRST_MISSING = 0x7FF8_0000_0000_0001
"""The bits of the NaN that stands for the first missing code of a column of numbers; the others follow it."""


def missing_positions(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the position of each number's missing code in `Variable.missing`; negative when it has none."""
    positions = values.view(np.int64) - FIRST_MISSING
    positions[~np.isnan(values)] = -1
    return positions


def code_dtype(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest unsigned type that holds `size` codes."""
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32


@dataclass(frozen=True, eq=False, repr=False)
class Units(Shown):
    """Households or other units of records: `of` numbers the unit of each row, from 0, in the order of first rows.

    `first` is the first row of each unit, `sizes` its number of members, `rows` all rows unit by unit. A record whose
    number is missing is a unit by itself.
    """

    of: Rows
    first: Rows
    sizes: Rows
    rows: Rows

    @property
    def count(self) -> int:
        """The number of units."""
        return len(self.first)

    @property
    def several(self) -> NDArray[np.bool_]:
        """Which units have two members or more."""
        return self.sizes > 1

    @cached_property
    def start(self) -> Rows:
        """Where the rows of each unit begin in `rows`."""
        return np.cumsum(self.sizes) - self.sizes

    def members(self, units: Rows) -> tuple[Rows, Rows]:
        """Return the rows of some units, unit by unit, and the number of rows of each."""
        sizes = self.sizes[units]
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return self.rows[np.repeat(self.start[units], sizes) + within], sizes

    def mixed(self, values: Codes) -> NDArray[np.bool_]:
        """Tell in which units members differ in these values, one per row."""
        found = np.zeros(self.count, dtype=np.bool_)
        found[self.of[unequal(values, values[self.first[self.of]])]] = True
        return found


def _units(column: Column) -> Units:
    values, n = column.values, len(column.values)
    absent = values >= column.valid if column.variable.coded else np.isnan(values)
    if column.variable.coded:
        key = values.astype(np.int64)
    else:
        key = np.unique(np.where(absent, 0, values), return_inverse=True)[1].astype(np.int64)
    alone = int(absent.sum())
    if alone:
        key[absent] = int(key.max()) + 1 + np.arange(alone)
    first = np.full(int(key.max()) + 1, n, dtype=np.int64)
    first[key[::-1]] = np.arange(n - 1, -1, -1)  # of several rows of one unit the first is written last
    is_first = first[key] == np.arange(n)
    number = np.empty_like(first)
    number[key[is_first]] = np.arange(int(is_first.sum()))
    of = number[key]
    rows = np.arange(n) if bool((of[1:] >= of[:-1]).all()) else np.argsort(of, kind="stable")
    return Units(of, np.flatnonzero(is_first), np.bincount(of), rows)


class Data(Shown):
    """An immutable microdata file. Build it with `read`, `from_frame` or a bundled data set.

    `ticks` are the weights in ticks where they are known already. `nested` tells that the levels of geography are
    known to be nested, so that they need not be checked again.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> data.n, data.columns[:3], data["Sex"].labels
    (48842, ['Age', 'EmpTyp', 'Edu'], ('Male', 'Female'))
    >>> data.take([0, 1, 2])
    Data(3 records, 8 columns)
    """

    def __init__(
        self,
        columns: Iterable[Column],
        *,
        weight: str | None = None,
        ticks: Ticks | None = None,
        nested: bool = False,
        remarks: Sequence[str] = (),
        sampling: float | None = None,
    ) -> None:
        self._columns = tuple(columns)
        self.codebook = Codebook(tuple(column.variable for column in self._columns), sampling)
        self._by_name = {column.variable.name: column for column in self._columns}
        if not self._columns:
            raise InputError("The file has no columns.")
        self.n = len(self._columns[0].values)
        if any(len(column.values) != self.n for column in self._columns):
            raise InputError("The columns differ in length. Every column needs one value per record.")
        if self.n == 0:
            raise InputError("The file has no records.")
        if self.n > MOST_ROWS:
            raise InputError(f"The file has {self.n:,} records; at most {MOST_ROWS:,} are supported.")
        if not nested:
            check_nesting([self[name] for name in self.codebook.geography])
        self.weight = weight if weight is not None else self._declared_weight()
        self._ticks = ticks or self._make_ticks()
        self._body: int | None = None
        self.remarks = tuple(remarks)
        """What the file held beside columns and was left behind, one line each; never part of the data."""
        self.read_as: tuple[str, ...] = ()
        """How the text of the file was read where it is not written in the usual way; never part of the data."""
        self.recoded: tuple[str, ...] = ()
        """What the codebook recoded when the file was read, one line per column; never part of the data."""
        self.prepared: dict[str, object] = {}
        """Preparations of recipes for these data, kept for the next seed; never part of the data."""

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "prepared": {}}

    def _declared_weight(self) -> str | None:
        declared = [v.name for v in self.codebook if v.role == "weight"]
        if len(declared) > 1:
            raise InputError(
                f"The codebook gives {len(declared)} columns the role weight. Keep one, or name it with weight=."
            )
        return declared[0] if declared else None

    def _make_ticks(self) -> Ticks | None:
        if self.weight is None:
            return None
        column = self[self.weight]
        if column.variable.coded:
            raise InputError(f"Weight column {self.weight!r} is categorical. Declare it numeric in the codebook.")
        return to_ticks(column.values, self.weight)

    @property
    def columns(self) -> list[str]:
        """Column names in file order.

        >>> import quadrille as qd
        >>> qd.datasets.cps8d().columns
        ['Age', 'EmpTyp', 'Edu', 'MS', 'Race', 'Sex', 'AvgHrs', 'AnnSal']
        """
        return list(self._by_name)

    @property
    def keys(self) -> tuple[str, ...]:
        """The key variables of the codebook.

        >>> import quadrille as qd
        >>> qd.datasets.adult().keys[:3]
        ('workclass', 'education', 'marital-status')
        """
        return self.codebook.keys

    @property
    def sampling(self) -> float | None:
        """The share of the population that is in the file, where it was said; weights may tell it, too.

        >>> import quadrille as qd
        >>> qd.datasets.cps8d().with_sampling(0.02).sampling
        0.02
        """
        return self.codebook.sampling

    def with_sampling(self, sampling: float | None) -> Data:
        """Return the same records as a sample that holds this share of a population; 1 is all of it.

        The share is no part of the fingerprint: what is swapped does not depend on it.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> sample = data.with_sampling(0.1)
        >>> sample.sampling, sample == data, sample.fingerprint == data.fingerprint
        (0.1, True, True)
        """
        data = copy(self)
        data.codebook = replace(self.codebook, sampling=sampling)
        return data

    @property
    def ticks(self) -> Ticks | None:
        """The weights as integer ticks, or None when the file has no weight.

        >>> import polars as pl
        >>> import quadrille as qd
        >>> data = qd.from_frame(pl.DataFrame({"sex": ["m", "f"], "w": [1.5, 2.25]}), weight="w")
        >>> data.ticks.values.tolist(), data.ticks.per_unit
        ([150, 225], 100.0)
        """
        return self._ticks

    @cached_property
    def uncounted(self) -> NDArray[np.bool_] | None:
        """Which records have a weight above 0 that is too small next to the others to be a tick; None if there is none.

        >>> import polars as pl
        >>> import quadrille as qd
        >>> data = qd.from_frame(pl.DataFrame({"sex": ["m", "f"], "w": [1e12, 1e-9]}), weight="w")
        >>> data.uncounted.tolist()
        [False, True]
        """
        if self._ticks is None or self._ticks.exact or self.weight is None:
            return None
        lost = (self._ticks.values == 0) & (self[self.weight].values > 0)
        return lost if lost.any() else None

    def __getitem__(self, name: str) -> Column:
        if name not in self._by_name:
            raise unknown_name("column", name, self._by_name)
        return self._by_name[name]

    def __len__(self) -> int:
        return self.n

    @property
    def records(self) -> int:
        """The number of records: that of the rows, but where each row stands for several.

        >>> import quadrille as qd
        >>> qd.datasets.cps8d().records
        48842
        """
        return self.n

    def records_in(self, rows: NDArray[np.bool_]) -> int:
        """Return how many records some rows stand for.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> data.records_in(data["Sex"].values == 1)
        16192
        """
        return int(rows.sum())

    def __repr__(self) -> str:
        weight = f", weight={self.weight!r}" if self.weight else ""
        return f"Data({self.n:,} records, {len(self._columns)} columns{weight})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Data):
            return NotImplemented
        return (
            self.codebook == other.codebook
            and self.weight == other.weight
            and all(
                mine.dtype == theirs.dtype
                and np.array_equal(mine.values, theirs.values, equal_nan=not mine.variable.coded)
                for mine, theirs in zip(self._columns, other._columns, strict=True)
            )
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def coded(self, name: str, *, purpose: str) -> Column:
        """Return a categorical column, or explain that this purpose needs one.

        >>> import quadrille as qd
        >>> qd.datasets.cps8d().coded("Sex", purpose="a table").labels
        ('Male', 'Female')
        >>> qd.datasets.adult().coded("fnlwgt", purpose="a table")
        Traceback (most recent call last):
        quadrille.errors.InputError: Column 'fnlwgt' is numeric, and a table needs categories. ...
        """
        column = self[name]
        if not column.variable.coded:
            raise InputError(
                f"Column {name!r} is numeric, and {purpose} needs categories. "
                "Declare it ordinal in the codebook, or recode it into classes."
            )
        return column

    def frame(self) -> pl.DataFrame:
        """Return the file as a polars frame, with its original values and types.

        >>> import quadrille as qd
        >>> frame = qd.datasets.cps8d().frame()
        >>> frame.shape, frame.select("Age", "Sex").row(0)
        ((48842, 8), ('<25', 'Male'))
        """
        from quadrille.io import frames

        return frames.to_frame(self)

    def take(self, rows: Rows) -> Data:
        """Return some of the records, in this order; a row may occur repeatedly.

        Categories stay the same, and ticks too, unless repeated records add up beyond what these ticks can count.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> data.take([48_841, 0]).frame().select("Age", "Sex").rows()
        [('>55', 'Female'), ('<25', 'Male')]
        """
        columns = [replace(column, values=column.values[rows]) for column in self._columns]
        ticks = None if self._ticks is None else self._ticks.take(rows)
        return Data(columns, weight=self.weight, ticks=ticks, nested=True, remarks=self.remarks, sampling=self.sampling)

    def part(self, start: int, stop: int) -> Data:
        """Return records that follow one another, as a view: nothing is copied.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> data.part(10, 13) == data.take([10, 11, 12])
        True
        """
        columns = [replace(column, values=column.values[start:stop]) for column in self._columns]
        ticks = None if self._ticks is None else replace(self._ticks, values=self._ticks.values[start:stop])
        return Data(columns, weight=self.weight, ticks=ticks, nested=True, remarks=self.remarks, sampling=self.sampling)

    def arrays(self) -> list[Codes]:
        """Return what the records lie in: the values of every column, and the ticks where there are any."""
        return [column.values for column in self._columns] + ([] if self._ticks is None else [self._ticks.values])

    def with_arrays(self, arrays: Sequence[Codes]) -> Data:
        """Return the same data in other arrays than those of `arrays`, also in empty ones that are to be filled later.

        The fingerprint is kept where it is known: the values are taken to be the same.
        """
        data = copy(self)
        values = zip(self._columns, arrays[: len(self._columns)], strict=True)
        data._columns = tuple(replace(column, values=value) for column, value in values)
        data._by_name = {column.variable.name: column for column in data._columns}
        data._ticks = self._ticks and replace(self._ticks, values=arrays[-1])
        data.__dict__.pop("uncounted", None)
        return data

    def with_roles(
        self,
        *,
        key: Sequence[str] = (),
        outcome: Sequence[str] = (),
        id: Sequence[str] = (),
        unit: str | None = None,
        weight: str | None = None,
        geography: Sequence[str] = (),
    ) -> Data:
        """Return the same records with other roles of their columns.

        The key variables, the unit, the weight and the levels of geography (the coarsest first) are then those named
        here; outcomes and identifiers come on top of those known. What is not named stays. A weight becomes numbers and
        a level of geography categories; key variables must be categories already.

        >>> import quadrille as qd
        >>> data = qd.datasets.adult().with_roles(key=["sex", "race"], outcome=["income-per-year"], weight="fnlwgt")
        >>> data.keys, data["income-per-year"].variable.role, data.weight
        (('race', 'sex'), 'outcome', 'fnlwgt')
        """
        named = _named_roles(key, outcome, id, unit, weight, geography)
        require_columns(self, list(named), "the data")
        if weight is None and self.weight in named:
            raise InputError(f"Column {self.weight!r} is the weight of the data. Name another weight too.")
        replaced = set(named.values()) - {"outcome", "id"}
        levels = {name: level for level, name in enumerate(_listed(geography), start=1)}
        columns = [
            _with_role(column, named.get(column.variable.name), levels.get(column.variable.name), replaced)
            for column in self._columns
        ]
        data = Data(columns, weight=weight or self.weight, remarks=self.remarks, sampling=self.sampling)
        data.read_as, data.recoded = self.read_as, self.recoded
        return data

    def units(self, name: str) -> Units:
        """Return the units, such as households, whose numbers stand in a column; their rows may be scattered.

        >>> import polars as pl
        >>> import quadrille as qd
        >>> units = qd.from_frame(pl.DataFrame({"hh": ["b", "a", "b"], "age": [40, 30, 7]})).units("hh")
        >>> units.count, units.of.tolist(), units.first.tolist(), units.sizes.tolist()
        (2, [0, 1, 0], [0, 1], [2, 1])
        """
        kept = f"units of {name}"
        if kept not in self.prepared:
            self.prepared[kept] = _units(self[name])
        return cast("Units", self.prepared[kept])

    def with_values(self, changed: Mapping[str, tuple[Rows, Codes]]) -> Data:
        """Return a copy in which `changed[name] = (rows, values)` holds; the fingerprint follows the change.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> other = data.with_values({"Sex": (np.array([0, 1]), np.array([1, 0]))})  # codes: positions in the codebook
        >>> other["Sex"].values[:2].tolist(), other == data
        ([1, 0], False)
        """
        body = self._body_hash
        columns: list[Column] = []
        for column in self._columns:
            name = column.variable.name
            if name in changed:
                rows, values = changed[name]
                fresh = column.values.copy()
                fresh[rows] = values
                body += hash_of(name, rows, fresh[rows]) - hash_of(name, rows, column.values[rows])
                columns.append(replace(column, values=fresh))
            else:
                columns.append(column)
        nested = not set(changed) & set(self.codebook.geography)
        ticks = self._ticks_after(changed)
        data = Data(
            columns, weight=self.weight, ticks=ticks, nested=nested, remarks=self.remarks, sampling=self.sampling
        )
        data._body = body & _MASK
        return data

    def _ticks_after(self, changed: Mapping[str, tuple[Rows, Codes]]) -> Ticks | None:
        """Return the ticks of weights that stay or change places; None when there are weights of another size.

        The tick stays the same, so that sums before and after compare exactly.
        """
        ticks = self._ticks
        if ticks is None or self.weight is None or self.weight not in changed:
            return ticks
        rows, values = changed[self.weight]
        if not np.array_equal(np.sort(values), np.sort(self[self.weight].values[rows])):
            return None
        fresh = ticks.values.copy()
        fresh[rows] = np.rint(values * ticks.per_unit).astype(np.int64)
        fresh.setflags(write=False)
        return replace(ticks, values=fresh)

    @property
    def fingerprint(self) -> str:
        """A hash of names, categories and every value; additive over cells, so that a plan can update it.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> data.fingerprint == qd.datasets.cps8d().fingerprint, data.fingerprint == data.take(range(100)).fingerprint
        (True, False)
        """
        return f"{self._head_hash}{self._body_hash:016x}"

    def fingerprint_after(self, changed: Mapping[str, tuple[Rows, Codes]]) -> str:
        """Return the fingerprint that `with_values(changed)` has, without making it.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> changed = {"Sex": (np.array([0, 1]), np.array([1, 0]))}
        >>> data.fingerprint_after(changed) == data.with_values(changed).fingerprint
        True
        """
        body = self._body_hash
        for name, (rows, values) in changed.items():
            body += hash_of(name, rows, values) - hash_of(name, rows, self[name].values[rows])
        return f"{self._head_hash}{body & _MASK:016x}"

    @cached_property
    def _head_hash(self) -> str:
        return head_of(self, self.records)

    @property
    def _body_hash(self) -> int:
        if self._body is None:
            self._body = sum(hash_of(name, None, self[name].values) for name in self.columns) & _MASK
        return self._body


Find = Callable[[Ints, Ints, Ints], Rows]
"""Finds the records at some places, given the group of each row (-1 for none) and the first place of each group."""


class Combinations(Data):
    """Records that are elsewhere: a row for each combination that occurs of some columns, and how many records have it.

    A draw that looks at counts and gives places can be made from it; `find` then says which records these are.
    """

    def __init__(self, columns: Iterable[Column], times: Ints, find: Find, *, sampling: float | None = None) -> None:
        super().__init__(columns, nested=True, sampling=sampling)
        self.times, self.find = times, find
        self._records = int(times.sum())

    @property
    def records(self) -> int:
        """The number of records of all rows."""
        return self._records

    def records_in(self, rows: NDArray[np.bool_]) -> int:
        """Return how many records some rows stand for."""
        return int(self.times[rows].sum())


def _listed(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _named_roles(
    key: Sequence[str],
    outcome: Sequence[str],
    id: Sequence[str],
    unit: str | None,
    weight: str | None,
    geography: Sequence[str],
) -> dict[str, Role]:
    """Return the role of each column that is named; one column has one role."""
    several = {"key": key, "outcome": outcome, "id": id, "geography": geography}
    one_each = {"unit": unit, "weight": weight}
    several |= {role: [name] for role, name in one_each.items() if name is not None}
    pairs: list[tuple[str, Role]] = [
        (name, cast("Role", role)) for role, names in several.items() for name in _listed(names)
    ]
    named: dict[str, Role] = dict(pairs)
    if len(named) < len(pairs):
        twice = next(name for name in named if sum(name == other for other, _ in pairs) > 1)
        raise InputError(f"Column {twice!r} is named for two roles, or twice. A column has one role.")
    return named


def _with_role(column: Column, role: Role | None, level: int | None, replaced: Collection[str]) -> Column:
    """Return a column in a role; one that had a role which now belongs to others has none."""
    variable = column.variable
    if role is None:
        gone = variable.role in replaced
        return replace(column, variable=replace(variable, role=None, level=None)) if gone else column
    if role == "key" and not variable.coded:
        raise InputError(
            f"Column {variable.name!r} is numeric, and a key variable needs categories. "
            "Give it bands in the codebook, or declare it ordinal there."
        )
    if role == "weight" and variable.coded:
        column = _as_numbers(column)
    if role == "geography" and not variable.coded:
        column = _as_categories(column)
    return replace(column, variable=replace(column.variable, role=role, level=level))


def _as_numbers(column: Column) -> Column:
    """Return categories that are numbers as numbers."""
    variable = column.variable
    if not variable.categories or any(isinstance(value, str | bool) for value in variable.categories):
        raise InputError(f"Weight column {variable.name!r} is categorical. Declare it numeric in the codebook.")
    codes = np.arange(FIRST_MISSING, FIRST_MISSING + len(variable.missing), dtype=np.int64).view(np.float64)
    numbers = np.concatenate([np.array([float(value) for value in variable.categories]), codes, [np.nan]])
    plain = replace(variable, kind="numeric", categories=(), labels=(), level=None, role=None)
    return Column(plain, numbers[column.values], column.dtype)


def _as_categories(column: Column) -> Column:
    """Return whole numbers as categories in ascending order."""
    variable, values = column.variable, column.values
    absent = np.isnan(values)
    found = np.unique(values[~absent])
    if not bool((found == np.floor(found)).all()):
        raise InputError(f"Column {variable.name!r} holds numbers with decimals, and areas are categories.")
    categories = tuple(found.tolist() if column.dtype.startswith("Float") else map(int, found.tolist()))
    empty = absent & (missing_positions(values) < 0)
    last = len(categories) + len(variable.missing)
    codes = np.where(absent, len(categories) + missing_positions(values), np.searchsorted(found, values))
    codes[empty] = last
    plain = replace(variable, kind="nominal", categories=categories)
    return Column(plain, codes.astype(code_dtype(last + 1)), column.dtype, nullable=bool(empty.any()))


def unequal(a: Codes, b: Codes) -> NDArray[np.bool_]:
    """Compare values one by one; an empty number equals an empty number, and a missing code equals itself only."""
    differs = a != b
    if a.dtype.kind == b.dtype.kind == "f":
        both = np.isnan(a) & np.isnan(b)
        differs[both] = np.maximum(missing_positions(a[both]), -1) != np.maximum(missing_positions(b[both]), -1)
    return differs


def require_data(data: object, where: str) -> Data:
    """Refuse a frame or anything else in the place of data, and say how to make data of it."""
    if not isinstance(data, Data):
        raise InputError(f"{where} needs Data, and got {type(data).__name__!r}. Use qd.read or qd.from_frame first.")
    return data


def uncounted_weights(data: Data) -> str:
    """Say how many weights count as 0 because they are too small next to the others; nothing if none does."""
    if data.uncounted is None:
        return ""
    lost = int(data.uncounted.sum())
    who = "1 weight above 0 counts" if lost == 1 else f"{lost:,} weights above 0 count"
    return f"{who} as 0 in {data.weight!r}: too small next to the largest for whole numbers of 64 bits"


def refuse_uncounted(data: Data, rows: Rows, done: str = "moves") -> None:
    """Refuse to move records whose weight counts as 0 and is not: what a swap does to their cells would not show."""
    if data.uncounted is None:
        return
    moved = int(data.uncounted[rows].sum())
    if moved:
        raise InputError(
            f"{uncounted_weights(data)}, and the swap {done} {moved:,} of these records. Trim the weights: their range "
            "must stay below about 10^18 divided by the number of records."
        )


def require_columns(data: Data, names: Sequence[str], where: str) -> None:
    """Raise the nearest-name error for the first column that the data lack."""
    for name in names:
        if name not in data.codebook:
            raise unknown_name("column", name, data.columns, where=where)


def head_of(data: Data, n: int) -> str:
    """Return the part of the fingerprint of n records with such columns that does not depend on their values."""
    kinds = [(data[name].dtype, data[name].nullable) for name in data.columns]
    head = f"({data.codebook.identity}, {data.weight!r}, {n!r}, {kinds!r})"
    return hashlib.blake2b(head.encode(), digest_size=8).hexdigest()


def salt_of(name: str) -> np.uint64:
    """Return what tells the hashes of a column from those of others."""
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))


def hash_of(name: str, rows: Rows | None, values: Codes) -> int:
    """Sum, modulo 2^64, of a mixed hash of (column, row, value) over the rows given; None for all from the first on."""
    from quadrille import kernels

    salt = salt_of(name)
    bits = values.view(np.uint64) if values.dtype == np.float64 else values
    if rows is None:
        return int(kernels.hash_rows(read_only(bits), 0, salt))
    return int(kernels.hash_at(read_only(bits), read_only(np.asarray(rows, dtype=np.int64)), salt))


def read_only(values: Codes) -> Codes:
    """Return a view that cannot be written to: kernels are compiled for these, and once for each type is enough."""
    view = values.view()
    view.setflags(write=False)
    return view


Cells = NDArray[np.int64]


def keys_of(
    columns: Sequence[Codes], strides: Sequence[int], n: int, into: Cells | None = None
) -> Iterator[tuple[int, Cells]]:
    """Yield, chunk by chunk, the first row and the keys of the rows: the sums of stride * code.

    They are written `into` an array of all rows; without one, those of the next chunk take their place.
    """
    from quadrille import kernels

    views = [read_only(codes) for codes in columns]
    memory = np.empty(min(n, CHUNK), dtype=np.int64) if into is None else into
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        keys = memory[: end - start] if into is None else into[start:end]
        keys[:] = 0
        for codes, stride in zip(views, strides, strict=True):
            kernels.add_codes(codes[start:end], stride, keys)
        yield start, keys


DENSE_LIMIT = 1 << 20
"""Tables up to this many possible cells are plain arrays; larger ones keep occupied cells only."""

_KEY_LIMIT = 1 << 62


@dataclass(frozen=True, repr=False)
class Cross(Shown):
    """All combinations of the categories of `variables`, first variable slowest.

    A cell's number is sum(stride * code). Up to 2^62 possible cells the strides are those of mixed-radix
    numbers. Beyond, they are fixed odd 64-bit numbers and a cell's number is a hash: `exact` is False.
    """

    variables: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, data: Data, variables: tuple[str, ...]) -> Cross:
        """Cross these variables of the data."""
        return cls(variables, tuple(data.coded(name, purpose="a table").size for name in variables))

    @cached_property
    def possible(self) -> int:
        """Number of possible cells."""
        return prod(self.sizes)

    @property
    def dense(self) -> bool:
        """Whether a table over this cross is a plain array."""
        return self.possible <= DENSE_LIMIT

    @property
    def exact(self) -> bool:
        """Whether a cell's number identifies it beyond doubt and can be taken apart again."""
        return self.possible < _KEY_LIMIT

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """What one step in each variable adds to a cell's number."""
        if self.exact:
            return tuple(prod(self.sizes[i + 1 :]) for i in range(len(self.sizes)))
        return tuple(_hash_stride(i) for i in range(len(self.sizes)))

    def stride(self, name: str) -> int:
        """Return the stride of one variable."""
        return self.strides[self.variables.index(name)]

    def cells(self, data: Data, rows: Rows | None = None) -> Cells:
        """Return the cell of every record, or of the records given."""
        columns = [data[name].values for name in self.variables]
        if rows is not None:
            columns = [codes[rows] for codes in columns]
        out = np.empty(data.n if rows is None else len(rows), dtype=np.int64)
        for _ in keys_of(columns, self.strides, len(out), out):
            pass
        return out

    def codes(self, cells: Cells, name: str) -> Cells:
        """Take apart: the code of one variable in each cell."""
        return cells // self.stride(name) % self.sizes[self.variables.index(name)]

    def part(self, columns: Iterable[str]) -> NDArray[np.int32]:
        """Return, for every possible cell of a dense cross, the share of its number that comes from `columns`."""
        every = np.arange(self.possible, dtype=np.int64)
        part = np.zeros(len(every), dtype=np.int32)
        for name in set(columns) & set(self.variables):
            part += (self.codes(every, name) * self.stride(name)).astype(np.int32)
        return part

    def project(self, cells: Cells, onto: Cross) -> Cells:
        """Return the cells of a margin, `onto`, that these cells belong to."""
        out = np.zeros(len(cells), dtype=np.int64)
        for name, stride in zip(onto.variables, onto.strides, strict=True):
            out += self.codes(cells, name) * stride
        return out


def _hash_stride(position: int) -> int:
    digest = hashlib.blake2b(str(position).encode(), digest_size=8, person=b"quadrille stride").digest()
    return int.from_bytes(digest, "little", signed=True) | 1


def tidy(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Return a small table of results: one row per mapping, columns in order of first appearance."""
    import polars as pl

    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pl.DataFrame([pl.Series(name, values, strict=False) for name, values in columns.items()])
