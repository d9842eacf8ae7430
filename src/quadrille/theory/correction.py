"""The unbiased table from a swapped one, with its standard errors (correction.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from quadrille.data import tidy
from quadrille.errors import InputError, ParameterError, bad_parameter, unknown_name
from quadrille.params import as_float, one_of
from quadrille.recipe import Recipe
from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.private import PrivateSwap, moved
from quadrille.swap.random import RandomSwap
from quadrille.text import Shown
from quadrille.theory.expected import pair_scatter, pairs_between, transitions
from quadrille.theory.moments import Floats, chance_factors, chance_of, count_spread, factors
from quadrille.theory.tables import approximate
from quadrille.theory.tally import Labelled, labelled, refuse_totals

if TYPE_CHECKING:
    import polars as pl


LEAST_LEFT = 0.01
"""A contrast between levels that keeps less than this share of itself is lost; 1 - f of two levels."""

_UNIFORM = 12
"""The variance of a uniform number is the square of its range divided by this."""


def inverted(values: Floats, pairs: int, sampler: str) -> tuple[Floats, Floats]:
    """Return corrected counts and variances; the swapped variable's levels, all of them held, are in the columns."""
    counts, row = values.sum(axis=0), values.sum(axis=1, keepdims=True)
    q = transitions(counts, pairs_between(counts, pairs, sampler))
    back = _inverse(q, counts)
    corrected = values @ back
    even = row * counts / counts.sum()
    low, high = np.maximum(row + counts - counts.sum(), 0.0), np.minimum(row, counts)

    def variance(cell: Floats) -> Floats:
        # One more record in every level, spread as the rows are: no level is surely all in one row or in none.
        mean = (cell + row / counts.sum()) / (counts + 1)
        scatter = counts**2 * mean * (1 - mean) / np.maximum(counts - 1, 1)
        spread = scatter @ (q @ back**2 - np.eye(len(counts)))
        if len(counts) > 2:  # two levels exchange exactly as many as there are pairs
            spread = spread + _varying_pairs(counts, pairs, sampler, mean, back)
        return np.maximum(spread, 0.0)

    # The noisier the correction is against the range that the totals leave, the nearer to independence the table is at
    # which its variance is taken; in a large table nothing is left of that.
    room = (high - low) ** 2 / _UNIFORM
    trust = np.divide(room, room + variance(even), out=np.ones_like(room), where=room > 0)
    pulled = even + trust * (np.clip(corrected, low, high) - even)
    return corrected, variance(np.clip(pulled, low, high))


def _varying_pairs(counts: Floats, pairs: int, sampler: str, mean: Floats, back: Floats) -> Floats:
    """Return what the scatter of the numbers of pairs adds to the variances (correction.md, formula 5)."""
    gain = mean[:, None, :] - mean[:, :, None]
    return np.einsum("rab,ac,bc->rc", pair_scatter(counts, pairs, sampler, gain), back, back)


def _inverse(q: Floats, counts: Floats) -> Floats:
    """Invert Q, unless some contrast between levels is all but gone from the swapped table."""
    root = np.sqrt(counts)
    kept = np.linalg.eigvalsh(root[:, None] * q / root[None, :])  # n_a Q_ab is symmetric
    if np.abs(kept).min() < LEAST_LEFT:
        raise ParameterError(
            "So many swaps leave nothing to correct: the swapped table does not tell levels apart. What a recipe keeps "
            f"of their differences must be at least {100 * LEAST_LEFT:g} %, as with f up to {1 - LEAST_LEFT:g}."
        )
    return np.linalg.inv(q).astype(np.float64)


Drawn = Literal["pairs", "cycles", "private"]
"""How the records that move are drawn: a number of them, for pairs or for cycles; or each by chance."""

_OWNER = "correct"
MOST_F = 0.99
"""Beyond this f the standard errors are a hundredfold, and there is nothing left to correct."""

_LOST = (
    "the standard errors are larger than the range that the totals leave open: the table is too small for so many "
    "swaps, and the correction tells nothing"
)

Margins = tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True, eq=False, repr=False)
class Corrected(Shown):
    """The corrected table and its standard errors, cell by cell; `negative` counts cells that came out below 0.

    `f` is the factor that was used, or those of the classes. `unchecked` says what could not be checked, if anything.

    Example
    -------
    >>> import quadrille as qd
    >>> found = qd.theory.correct([[30, 20], [20, 30]], f=0.2)
    >>> found.negative, found.se.round(2).tolist()
    (0, [[1.9, 1.9], [1.9, 1.9]])
    """

    table: Floats
    se: Floats
    given: Labelled
    negative: int
    note: str
    f: float | Mapping[str, float] | None = None
    unchecked: str = ""

    def frame(self) -> pl.DataFrame:
        """Return one row per cell: labels, swapped count, corrected count, standard error.

        Example
        -------
        >>> import quadrille as qd
        >>> found = qd.theory.correct([[30, 20], [20, 30]], f=0.2).frame()
        >>> found.select("row", "column", "swapped", "corrected").rows()[:2]
        [('0', '0', 30.0, 31.25), ('0', '1', 20.0, 18.75)]
        """
        numbers = zip(self.given.values.ravel(), self.table.ravel(), self.se.ravel(), strict=True)
        return tidy(
            [
                {**cell, "swapped": float(was), "corrected": float(now), "se": float(se), "note": self.note}
                for cell, (was, now, se) in zip(self.given.cells(), numbers, strict=True)
            ]
        )


def correct(
    table: object,
    f: float | Mapping[object, float] | None = None,
    *,
    recipe: Recipe | None = None,
    swapped: str = "column",
    kind: Drawn = "pairs",
    margins: Margins | None = None,
    no_totals: bool = False,
) -> Corrected:
    """Return an unbiased estimate of the original table of counts from the swapped one.

    For a permutation of k of n records f = k / (n - 1), and T = (T' - f row column / n) / (1 - f), because row and
    column totals are as before. Where records are drawn by chance k is its expectation. For true swaps of one variable
    T = T' inv(Q). Standard errors are those of the swap alone, estimated at the corrected table.

    Parameters
    ----------
    table : 2-D array, nested lists, or a frame whose first column holds labels; or a mapping from class to such a
        table, for swaps within classes. The result is then the sum over classes.
    f : as published; one number, or one per class.
    recipe : instead of f, the recipe that was used: a PermutationSwap or a RandomSwap of one variable.
    swapped : "column", "row", or the name of the first column of a frame: where the swapped variable is. It matters for
        true swaps only.
    kind : "pairs", "cycles" or "private" (records drawn by chance), for the standard errors.
    margins : known totals of rows and of columns; they must equal those of the table.
    no_totals : a table in which a row or column equals the sum of the others is refused, unless this says that it is
        no total.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.correct([[30, 20], [20, 30]], f=0.2).table.round(3).tolist()
    [[31.25, 18.75], [18.75, 31.25]]
    """
    one_of(_OWNER, "kind", kind, get_args(Drawn))
    if (f is None) == (recipe is None):
        raise ParameterError("correct needs one of 'f' (as published) and 'recipe'.")
    if isinstance(table, Mapping):
        if recipe is not None:
            raise ParameterError("correct needs an f for each class, not a recipe, when the tables are given by class.")
        by_class = cast("Mapping[object, object]", table)
        return _by_class(by_class, f, swapped, kind, margins, no_totals=no_totals)
    given = labelled(table, _OWNER)
    if not no_totals:
        refuse_totals(given, _OWNER)
    _check_margins(given.values, margins)
    _refuse_part(f, int(given.values.sum()))
    turned = _turned(given, swapped)
    values = given.values.T if turned else given.values
    corrected, variance, note = _correct(values, f, recipe, kind)
    if turned:
        corrected, variance = corrected.T, variance.T
    return _result(corrected, variance, given, note)


def correct_published(
    table: object,
    f: Mapping[str, float],
    *,
    records: int | None = None,
    sizes: Mapping[str, int] | None = None,
    kind: Drawn = "pairs",
    of_class: str | None = None,
    class_column: str | None = None,
    swapped: str = "column",
    no_totals: bool = False,
    where: str = "the note",
) -> Corrected:
    """Return `correct` of a published table, with what a methods note says of the swap.

    A table that does not count all records of the file, or of its class, is refused: f is for tables of all of them.

    Parameters
    ----------
    table : a frame whose first column holds labels.
    f : the published factor of each class by its label, such as "Sex = Male"; by "" for the file as a whole.
    records, sizes : the number of records of the file, and of each class, as far as the note says.
    kind, swapped, no_totals : as in `correct`.
    of_class : the class that the table counts, where f is given by class; its values, "Male", do where they are clear.
    class_column : or the column of the table that holds the classes; the result is their sum. A row that a class lacks
        counts none there.
    where : what to call the note in messages.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> table = pl.DataFrame({"MS": ["a", "b"], "young": [30, 20], "old": [20, 30]})
    >>> qd.theory.correct_published(table, {"": 0.2}, records=100).table.round(3).tolist()
    [[31.25, 18.75], [18.75, 31.25]]
    """
    from quadrille.io.frames import to_polars

    if of_class is not None and class_column is not None:
        raise ParameterError("Give 'of_class' for a table of one class, or 'class_column' for one of all of them.")
    note = _Note(f, records, sizes or {}, where)
    if (of_class is not None or class_column is not None) and "" in f:
        raise ParameterError(f"{where[0].upper()}{where[1:]} has one f for the whole file and no classes. Name none.")
    frame = to_polars(table)
    if class_column is not None:
        tables, factor = note.by_class(frame, class_column), f
    else:
        label = note.class_of(of_class)
        note.check_total(frame, label)
        tables, factor = frame, f[label]
    found = correct(tables, cast("Any", factor), swapped=swapped, kind=kind, no_totals=no_totals)
    by_class = of_class is not None or class_column is not None
    return replace(found, f=factor, unchecked=_UNCHECKED if by_class and not sizes else "")


_UNCHECKED = "not checked: whether the table counts all records of the class; the note does not say how many"


@dataclass(frozen=True)
class _Note:
    """What a methods note says: f by class, or by "" for the file as a whole, and numbers of records."""

    f: Mapping[str, float]
    records: int | None
    sizes: Mapping[str, int]
    where: str

    def class_of(self, name: str | None) -> str:
        """Return the class of a table as the note writes it."""
        if name is not None:
            return self._named(name)
        if "" in self.f:
            return ""
        labels = [repr(label) for label in self.f]
        some = ", ".join(labels[:3]) + (f" and {len(labels) - 3:,} more" if len(labels) > 3 else "")
        raise ParameterError(
            f"{self.where[0].upper()}{self.where[1:]} gives f by class: {some}. Name the class that the table counts "
            "with --class, or the column of the table that holds the classes with --class-column (in Python: of_class, "
            "class_column)."
        )

    def _named(self, name: str) -> str:
        """Return a class as the note writes it; its values alone do where they are not ambiguous."""
        plain = _plain(name)
        alike = [label for label in self.f if plain in (_plain(label), _plain(_values(label)))]
        if len(alike) != 1:
            raise unknown_name("class", name, self.f, where=self.where)
        return alike[0]

    def check_total(self, table: pl.DataFrame, label: str) -> None:
        """Refuse a table that does not count all records of the file, or of its class."""
        expected = self.sizes.get(label) if label else self.records
        numbers = [value for row in table.rows() for value in row[1:]]
        counted = int(sum(numbers)) if all(isinstance(value, int | float) for value in numbers) else None
        if expected is not None and counted != expected:
            which = f"of the class {label!r}" if label else "of the file"
            raise InputError(
                f"The table does not count all {expected:,} records {which}, and f is for tables of all of them. "
                "Correct the whole table, then take the part you need."
            )

    def by_class(self, table: pl.DataFrame, column: str) -> dict[str, pl.DataFrame]:
        """Split a table by its column of classes; a row that a class lacks counts none there."""
        if column not in table.columns:
            raise unknown_name("column", column, table.columns, where="the table")
        if table.width <= 2:
            raise InputError("Besides the column of classes the table needs one of labels and at least one of counts.")
        rest = table.drop(column)
        head = rest.columns[0]
        labels = [self._named("" if value is None else str(value)) for value in table[column].to_list()]
        lacking = [label for label in self.f if label not in labels]
        if lacking:
            raise InputError(
                f"The table lacks {len(lacking):,} of the {len(self.f):,} classes of the note, such as {lacking[0]!r}. "
                "Give the table of all of them, or of one with --class (in Python: of_class)."
            )
        none = dict.fromkeys(rest.columns[1:], 0)
        every = dict.fromkeys(rest[head].to_list())
        tables: dict[str, pl.DataFrame] = {}
        for label in self.f:
            own = [row for row, of in zip(rest.to_dicts(), labels, strict=True) if of == label]
            by_row = {row[head]: row for row in own}
            if len(by_row) < len(own):
                raise InputError(
                    f"The class {label!r} has two rows with the same label. Add them up, or name them apart."
                )
            tables[label] = tidy([by_row.get(name, {head: name, **none}) for name in every])
            self.check_total(tables[label], label)
        return tables


def _values(label: str) -> str:
    """Take the names of the variables off a class such as "Region = north, Sex = Male"."""
    return ", ".join(part.partition(" = ")[2] or part for part in label.split(", "))


def _plain(label: str) -> str:
    return "".join(label.split()).casefold()


def _correct(values: Floats, f: object, recipe: Recipe | None, kind: Drawn) -> tuple[Floats, Floats, str]:
    """Return corrected counts and their variances; the swapped variable is in the columns."""
    n = int(values.sum())
    if n <= 1:
        return values, np.zeros_like(values), "fewer than two records: nothing was swapped"
    if isinstance(recipe, RandomSwap):
        return _random(values, recipe, n)
    if recipe is not None:
        kind, f = _published(recipe, n)
    return (*_by_f(values, _checked_f(f), kind), "")


def _by_f(values: Floats, f: float, kind: Drawn) -> tuple[Floats, Floats]:
    n = float(values.sum())
    row, column = values.sum(axis=1, keepdims=True), values.sum(axis=0, keepdims=True)
    corrected = (values - f * row * column / n) / (1 - f)
    cell = np.clip(corrected, np.maximum(row + column - n, 0.0), np.minimum(row, column))
    if kind == "private":
        found = chance_factors(np.array([int(n)]), np.array([chance_of(f, int(n))]))
    else:
        step = 1 if kind == "cycles" else 2
        k = min(max(step * round(f * (n - 1) / step), 2 if f else 0), int(n) // step * step)
        found = factors(kind, (np.float64(n),), np.float64(k))
    spread = count_spread(n, row, column, cell)
    variance = found.variance(spread)
    return corrected, np.maximum(variance, 0.0) / (1 - f) ** 2


def _random(values: Floats, recipe: RandomSwap, n: int) -> tuple[Floats, Floats, str]:
    """Undo true swaps of one variable, whose levels are the columns."""
    if len(recipe.swap) != 1 or recipe.same or recipe.different or recipe.rules:
        raise ParameterError(
            "correct can undo a RandomSwap of one variable without 'same', 'different' and 'rules' only."
        )
    pairs = recipe.count(n)
    if recipe.differ == "none":
        return (*_by_f(values, _checked_f(2 * pairs / (n - 1)), "pairs"), "")
    present = values.sum(axis=0) > 0
    corrected, variance = np.zeros_like(values), np.zeros_like(values)
    corrected[:, present], variance[:, present] = inverted(values[:, present], pairs, recipe.sampler)
    levels = int(present.sum())
    return corrected, variance, "" if levels <= 2 else approximate(levels)


def _published(recipe: Recipe, n: int) -> tuple[Drawn, float]:
    """Return the kind and f of a permutation of the whole table."""
    if isinstance(recipe, PrivateSwap) and not recipe.within:
        return "private", moved(n, recipe.chance_in(n)).mean / (n - 1)
    if not isinstance(recipe, PermutationSwap | PrivateSwap):
        raise ParameterError(
            f"correct knows PermutationSwap, PrivateSwap and RandomSwap; {recipe.method_name} has no correction in "
            "closed form."
        )
    if isinstance(recipe, PrivateSwap) or recipe.within or isinstance(recipe.rate, str):
        raise ParameterError("The recipe swaps within classes: give a table and an f for each class, as two mappings.")
    if recipe.kind == "across":
        raise ParameterError('Swaps of kind="across" have no single f: the change depends on both groups.')
    if recipe.records is not None:
        return recipe.kind, recipe.records / (n - 1)
    assert recipe.rate is not None
    return recipe.kind, int(recipe.records_at(np.array([recipe.rate]), np.array([n]))[0]) / (n - 1)


def _by_class(
    tables: Mapping[object, object],
    f: float | Mapping[object, float] | None,
    swapped: str,
    kind: Drawn,
    margins: Margins | None,
    *,
    no_totals: bool,
) -> Corrected:
    """Correct class by class and add up; classes are swapped independently."""
    given = {name: labelled(table, _OWNER) for name, table in tables.items()}
    if not given or (isinstance(f, Mapping) and set(f) != set(given)):
        raise ParameterError("correct needs one table and one f for each class.")
    if len({(each.rows, each.columns) for each in given.values()}) > 1:
        raise InputError("The tables of the classes differ in rows or columns. Give all of them the same.")
    total = replace(next(iter(given.values())), values=np.sum([each.values for each in given.values()], axis=0))
    if not no_totals:  # a small table may equal a total by chance, so their sum is looked at
        refuse_totals(total, _OWNER)
    _turned(total, swapped)  # says what is wrong with the word; rows and columns enter alike
    _check_margins(total.values, margins)
    parts = [
        _correct(each.values, f[name] if isinstance(f, Mapping) else f, None, kind) for name, each in given.items()
    ]
    corrected = np.sum([part[0] for part in parts], axis=0)
    variance = np.sum([part[1] for part in parts], axis=0)
    return _result(corrected, variance, total, "")


def _result(corrected: Floats, variance: Floats, given: Labelled, note: str) -> Corrected:
    negative = int((corrected < -1e-9).sum())
    many = f"{negative:,} corrected cells are" if negative > 1 else "1 corrected cell is"
    said = f"{many} negative: estimates of small counts" if negative else ""
    lost = _LOST if _is_lost(given.values, variance) else ""
    return Corrected(corrected, np.sqrt(variance), given, negative, "; ".join(filter(None, (note, said, lost))))


def _is_lost(values: Floats, variance: Floats) -> bool:
    """Tell whether every cell's standard error is larger than the range that its row and column leave open."""
    row, column = values.sum(axis=1, keepdims=True), values.sum(axis=0, keepdims=True)
    room = np.minimum(row, column) - np.maximum(row + column - values.sum(), 0.0)
    return bool((room > 0).any() and (variance > room**2)[room > 0].all())


def _checked_f(f: object) -> float:
    factor = as_float(f)
    if not factor >= 0:
        raise bad_parameter(_OWNER, "f", f"a number from 0 to {MOST_F}", f)
    if factor > MOST_F:
        raise ParameterError(
            f"The 'f' parameter of correct must be at most {MOST_F}. Got {f!r}: a swap of nearly every record leaves "
            "nothing to correct."
        )
    return factor


def _refuse_part(f: object, n: int) -> None:
    """Refuse a table in which f would move less than one record: it is not the one that f is for."""
    if f is not None and 0 < (factor := _checked_f(f)) * (n - 1) < 1 - 1e-9:
        raise ParameterError(
            f"The 'f' parameter of correct is k / (n - 1) for k moved records: {factor:g} is less than one of the "
            f"table's {n:,}. f is for tables of all records, or of all records of a class."
        )


def _turned(given: Labelled, swapped: str) -> bool:
    """Tell whether the swapped variable is in the rows."""
    if swapped not in ("row", "column", given.row_name):
        raise bad_parameter(_OWNER, "swapped", f'"column", "row" or the name of the rows, {given.row_name!r}', swapped)
    return swapped in ("row", given.row_name)


def _check_margins(values: Floats, margins: Margins | None) -> None:
    if margins is None:
        return
    totals: Sequence[tuple[str, Floats]] = (("row", values.sum(axis=1)), ("column", values.sum(axis=0)))
    for (name, found), stated in zip(totals, _stated(margins), strict=True):
        if stated.shape != found.shape or (stated != found).any():
            raise InputError(
                f"The {name} totals of the table differ from those given in 'margins'. The correction rests on totals "
                "that the swap kept: take a table that was not rounded or suppressed."
            )


def _stated(margins: object) -> list[Floats]:
    """Read the totals of rows and of columns."""
    try:
        found = [np.asarray(known, dtype=float) for known in cast("Sequence[ArrayLike]", margins)]
    except (TypeError, ValueError):
        found = []
    if len(found) != 2:
        raise ParameterError("The 'margins' parameter of correct must be two lists of numbers: row and column totals.")
    return found
