"""From variables to columns of numbers: `score ~ age + C(race)`, and the columns that correlations are taken of."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data, require_columns
from quadrille.errors import InputError
from quadrille.where import split_outside_quotes, unquoted

Floats = NDArray[np.float64]

EXAMPLE = "ased_reg(score ~ age + C(race))"
_SIGNS = re.compile(r"[-:*^/|()~+%]")
_CLASS = re.compile(r"C\s*\((?P<name>.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Scale:
    """One column of numbers made from a variable.

    `values` gives a number for each category; `level` makes it 1 in this category and 0 in the others; with neither
    the variable's own numbers stand. `known` is the number of categories that the file before has.
    """

    variable: str
    label: str
    values: tuple[float, ...] | None = None
    level: int | None = None
    known: int = 0

    def numbers(self, column: Column) -> Floats | None:
        """Return the number of each code, NaN where there is none; None for a column of numbers."""
        if self.values is None and self.level is None:
            return None
        numbers = np.full(column.size, np.nan)
        if self.values is not None:
            numbers[: self.known] = self.values
        else:
            numbers[: self.known] = np.arange(self.known) == self.level
        return numbers


@dataclass(frozen=True)
class Term:
    """A variable on the right side: as numbers, or as one dummy per category."""

    variable: str
    classes: bool = False


@dataclass(frozen=True)
class Model:
    """A regression with an intercept: the outcome, and the terms."""

    outcome: str
    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Model:
        """Read `outcome ~ term + C(term)`; names with blanks or signs may, names with signs must, be in backticks."""
        sides = split_outside_quotes(text, "~")
        if len(sides) != 2:
            raise InputError(f"The model {text.strip()!r} needs one '~' between outcome and terms, as in {EXAMPLE}.")
        outcome = _name(sides[0], text)
        terms = tuple(_term(part, text) for part in split_outside_quotes(sides[1], "+"))
        names = [term.variable for term in terms]
        if len(set(names)) != len(names):
            raise InputError(f"A term occurs twice in the model {text.strip()!r}. Name each variable once.")
        if outcome in names:
            raise InputError(f"The outcome {outcome!r} is also a term of its own model. Leave it out on the right.")
        return cls(outcome, terms)

    @property
    def variables(self) -> tuple[str, ...]:
        """The terms' variables, then the outcome."""
        return (*(term.variable for term in self.terms), self.outcome)

    def __str__(self) -> str:
        terms = [f"C({quoted(term.variable)})" if term.classes else quoted(term.variable) for term in self.terms]
        return f"{quoted(self.outcome)} ~ {' + '.join(terms)}"

    def scales(self, data: Data, *, positions: bool = False) -> tuple[Scale, ...]:
        """Return the columns of the terms, all occurring levels of C(x) included, then that of the outcome.

        `positions` lets an ordinal variable without numbers enter with the positions of its categories.
        """
        require_columns(data, self.variables, f"the model '{self}'")
        scales: list[Scale] = []
        for term in self.terms:
            if term.classes:
                column = data.coded(term.variable, purpose=f"C({term.variable})")
                scales += _dummies(column, occurring(column))
            else:
                scales.append(_linear(data[term.variable], positions=positions))
        return (*scales, _linear(data[self.outcome], positions=positions, side="outcome"))


def quoted(name: str) -> str:
    """Write a name so that a model can hold it."""
    return f"`{name}`" if _SIGNS.search(name) or name != name.strip() or name.isdecimal() else name


def default_model(data: Data, outcome: str, moved: tuple[str, ...]) -> Model:
    """Return the model of an outcome on the moved columns: nominal ones as dummies, others as numbers."""
    terms = [Term(name, data.codebook[name].kind == "nominal") for name in moved if name not in (outcome, data.weight)]
    return Model(outcome, tuple(terms))


def has_numbers(variable: Variable, *, positions: bool = False) -> bool:
    """Tell whether a variable can enter as numbers."""
    return not variable.coded or _are_numbers(variable) or (positions and variable.kind == "ordinal")


def column_scales(data: Data, variables: tuple[str, ...], most: int) -> tuple[tuple[Scale, ...], tuple[str, ...]]:
    """Return the columns that correlations are taken of, and the variables left out for having too many levels.

    Numbers and ordinal variables, and 0/1, as they are; of a nominal variable with two levels one dummy, with up to
    `most` one dummy per level.
    """
    scales: list[Scale] = []
    left_out: list[str] = []
    for name in variables:
        column = data[name]
        if column.variable.kind != "nominal":
            scales.append(_linear(column, positions=True))
            continue
        levels = occurring(column)
        if _are_numbers(column.variable) and {float(column.variable.categories[i]) for i in levels} == {0.0, 1.0}:
            scales.append(_linear(column))
        elif len(levels) > most:
            left_out.append(name)
        else:
            scales += _dummies(column, levels[:1] if len(levels) == 2 else levels)
    return tuple(scales), tuple(left_out)


def occurring(column: Column) -> list[int]:
    """Return the codes of the categories that occur, missing ones left out."""
    counts = np.bincount(column.values, minlength=column.size)[: column.valid]
    return np.flatnonzero(counts).tolist()


def _linear(column: Column, *, positions: bool = False, side: str = "term") -> Scale:
    variable = column.variable
    if not variable.coded:
        return Scale(variable.name, variable.name)
    if _are_numbers(variable):
        values = tuple(float(value) for value in variable.categories)
    elif positions and variable.kind == "ordinal":
        values = tuple(float(i) for i in range(column.valid))
    elif side == "outcome":
        raise InputError(f"The outcome {variable.name!r} has text categories. A regression needs a numeric outcome.")
    else:
        raise InputError(
            f"The term {variable.name!r} has text categories. Write C({quoted(variable.name)}) for dummies."
        )
    return Scale(variable.name, variable.name, values, known=column.valid)


def _dummies(column: Column, levels: list[int]) -> list[Scale]:
    name, labels = column.variable.name, column.labels
    return [Scale(name, f"{name}={labels[level]}", level=level, known=column.valid) for level in levels]


def _are_numbers(variable: Variable) -> bool:
    return bool(variable.categories) and not any(isinstance(value, str) for value in variable.categories)


def _term(part: str, model: str) -> Term:
    classes = _CLASS.fullmatch(part.strip())
    return Term(_name(classes["name"], model), classes=True) if classes else Term(_name(part, model))


def _name(part: str, model: str) -> str:
    name = part.strip()
    if len(name) > 2 and name[0] == name[-1] == "`" and "`" not in name[1:-1]:
        return unquoted(name)
    if not name:
        raise InputError(f"The model {model.strip()!r} lacks a name. Write it like {EXAMPLE}.")
    if name in ("0", "1"):
        raise InputError(
            f"The model {model.strip()!r} lists {name}. The intercept is always part of a model; leave it."
        )
    if _SIGNS.search(name) or "`" in name:
        raise InputError(
            f"The model {model.strip()!r} holds a sign that is not understood. Terms are names and C(name), joined "
            "by +; there are no interactions. Put names with signs in backticks: `hours-per-week`."
        )
    return name
