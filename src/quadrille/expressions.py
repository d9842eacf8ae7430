"""The little languages: conditions (`Sex=Male & Hours>=40`), models (`score ~ age + C(race)`), plausibility rules.

A rule is a condition that no record may meet after a swap unless it met it before. Records that meet it already are
counted and may stay as they are.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, nan
from typing import Any, cast

import numpy as np

from quadrille import kernels
from quadrille.codebook import Variable
from quadrille.data import Column, Data, Flags, Floats, missing_positions, require_columns
from quadrille.errors import InputError, bad_parameter
from quadrille.plan import Plan

_EQUALITY = re.compile(r"\s*(?P<name>`[^`]+`|[^=!`]+?)\s*(?P<sign>!?=)\s*(?P<labels>.+?)\s*", re.DOTALL)
_COMPARISON = re.compile(
    r"\s*(?P<name>`[^`]+`|[^=!<>`]+?)\s*(?P<sign><=|>=|<|>)\s*(?P<bound>'[^']+'|\"[^\"]+\"|[^=|'\"<>]+?)\s*", re.DOTALL
)
"""A comparison has its sign right behind the name: `Age=<25` and `Over>60=yes` are equalities."""
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """One variable equals one of some labels, or none of them; with a `sign` it lies on one side of a bound."""

    variable: str
    labels: tuple[str, ...]
    negated: bool = False
    sign: str = ""

    def allowed(self, data: Data) -> Flags:
        """Tell, for each code of the variable, whether it meets the condition."""
        column = data.coded(self.variable, purpose="a condition (where=) of a measure")
        if self.sign:
            return _beyond(column, self.sign, self.labels[0])
        codes = [code for label in self.labels for code in _codes(column, label)]
        allowed = np.zeros(column.size, dtype=bool)
        allowed[codes] = True
        return ~allowed if self.negated else allowed

    def met(self, data: Data) -> Flags:
        """Tell, for each record, whether it meets the condition; the variable may also hold numbers."""
        column = data[self.variable]
        if column.variable.coded:
            return self.allowed(data)[column.values]
        marks = _missing_marks(column.variable)
        if self.sign:
            if self.labels[0] in marks:
                raise InputError(_missing_bound(column.variable))
            return cast("Flags", _COMPARE[self.sign](column.values, _number(self.labels[0], column.variable)))
        met = np.isin(column.values, [_number(label, column.variable) for label in self.labels if label not in marks])
        wanted = [marks[label] for label in self.labels if label in marks]
        if wanted or "" in self.labels:
            positions = missing_positions(column.values)
            met |= np.isin(positions, wanted)
            met |= np.isnan(column.values) & (positions < 0) & ("" in self.labels)
        return ~met if self.negated else met


@dataclass(frozen=True)
class Where:
    """Records that meet every condition."""

    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str) -> Where:
        """Read conditions joined by `&`; labels joined by `|`; names in backticks and labels in quotes if need be.

        >>> from quadrille.expressions import Where
        >>> Where.parse("Sex=Male & Hours>=40").variables
        ('Sex', 'Hours')
        """
        return cls(tuple(_condition(part) for part in split_outside_quotes(text, "&")))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that decide."""
        return tuple(dict.fromkeys(condition.variable for condition in self.conditions))

    def met(self, data: Data) -> Flags:
        """Tell, for each record, whether it meets every condition."""
        met = np.ones(data.n, dtype=bool)
        for condition in self.conditions:
            met &= condition.met(data)
        return met


def _condition(text: str) -> Condition:
    match = _COMPARISON.fullmatch(text)
    if match is not None:
        return Condition(unquoted(match["name"]), (unquoted(match["bound"]),), sign=match["sign"])
    match = _EQUALITY.fullmatch(text)
    if match is None:
        raise InputError(
            f"The condition {text.strip()!r} is not understood. Write Sex=Male & Age!=<25|25-55, or Hours>=40."
        )
    labels = tuple(unquoted(label) for label in split_outside_quotes(match["labels"], "|"))
    return Condition(unquoted(match["name"]), labels, negated=match["sign"] == "!=")


def _missing_marks(variable: Variable) -> dict[str, int]:
    """Return the position of every missing code of numbers, by the code as text and by its label."""
    words = variable.value_labels
    codes = list(enumerate(variable.missing))
    return {words[value]: at for at, value in codes if value in words} | {str(value): at for at, value in codes}


def _codes(column: Column, label: str) -> list[int]:
    """Return the codes that a word stands for: a value, else every category and missing code with this label."""
    variable = column.variable
    if column.nullable and label == "":
        return [len(variable.values)]
    words = variable.value_labels
    values = [code for code, value in enumerate(variable.values) if str(value) == label]
    labelled = [code for code, value in enumerate(variable.values) if words.get(value) == label]
    if not values and not labelled:
        raise InputError(
            f"A condition names a category that column {variable.name!r} does not have. "
            f"It has {len(variable.values):,}; `quadrille inspect --categories` lists them."
        )
    return values or labelled


def _beyond(column: Column, sign: str, bound: str) -> Flags:
    """Tell which codes lie on one side of a bound; missing ones never do.

    Categories that are numbers are compared with any number, others by their declared order.
    """
    variable = column.variable
    if variable.kind != "ordinal" or not variable.ordered:
        raise InputError(
            f"A condition compares column {variable.name!r}, whose categories have no order. Name categories with =, "
            "or declare the column ordinal, with its categories in order, in the codebook."
        )
    beyond = np.zeros(column.size, dtype=bool)
    numbers = not any(isinstance(value, str) for value in variable.categories)
    if numbers and bound not in variable.labels:
        limit = _number(bound, variable)
        beyond[: column.valid] = [_COMPARE[sign](float(value), limit) for value in variable.categories]
        return beyond
    code, *others = _codes(column, bound)
    if others:
        raise InputError(
            f"A condition compares column {variable.name!r} with a label that {len(others) + 1} categories share. "
            "Give the value of the one that is meant."
        )
    if code >= column.valid:
        raise InputError(_missing_bound(variable))
    beyond[: column.valid] = _COMPARE[sign](np.arange(column.valid), code)
    return beyond


def _number(text: str, variable: Variable) -> float:
    """Read a number to compare with; an empty text stands for an empty field."""
    if text == "":
        return nan
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not isfinite(number):
        raise InputError(
            f"A condition compares column {variable.name!r}, which holds numbers, with something that is none."
        )
    return number


def _missing_bound(variable: Variable) -> str:
    return f"A condition compares column {variable.name!r} with a missing code, which is neither small nor large."


def split_outside_quotes(text: str, separator: str) -> list[str]:
    """Split at a separator, but not inside quotes, backticks or brackets."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"`":
            quote = sign
        elif sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        if sign == separator and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def unquoted(text: str) -> str:
    """Strip spaces and one pair of quotes or backticks."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] in "'\"`" and text[-1] == text[0] else text


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


BITS = 31
"""Rules in one word of the kernels."""
_SHOWN = 3
IDLE = "none of its columns moves, so it excludes nothing"
_MUST = "a list of conditions that no record may come to meet, each once, like ['Age<16 & MS=Widowed']"


def rule_texts(owner: str, value: object) -> tuple[str, ...]:
    """Check a parameter that lists rules: conditions, or a single one."""
    listed = (value,) if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise bad_parameter(owner, "rules", _MUST, value)
    given = [text.strip() if isinstance(text, str) else text for text in cast("list[object]", listed)]
    if len(set(map(repr, given))) != len(given):
        raise bad_parameter(owner, "rules", _MUST, value)
    for text in given:
        if not isinstance(text, str) or not text:
            raise bad_parameter(owner, "rules", _MUST, value)
        try:
            Where.parse(text)
        except InputError:
            raise bad_parameter(owner, "rules", _MUST, text) from None
    return tuple(cast("list[str]", given))


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules that fit the columns and categories of a file."""

    texts: tuple[str, ...]
    conditions: tuple[tuple[Condition, ...], ...]
    data: Data

    @classmethod
    def of(cls, data: Data, texts: Sequence[str], owner: str) -> Rules:
        """Read rules; refuse unknown columns and categories, and a rule that all records break.

        >>> import quadrille as qd
        >>> from quadrille.expressions import Rules
        >>> rules = Rules.of(qd.datasets.cps8d(), ["Age=<25 & MS=Married"], "RandomSwap")
        >>> rules.before
        (779,)
        """
        made = cls(tuple(texts), tuple(Where.parse(text).conditions for text in texts), data)
        for text, conditions in zip(made.texts, made.conditions, strict=True):
            place = f"the rule {text!r} of {owner}"
            require_columns(data, [condition.variable for condition in conditions], place)
            try:
                meets = _all(conditions, data)
            except InputError as error:
                raise InputError(f"In {place}: {error}") from None
            if meets.all():
                raise InputError(
                    f"Every record meets {place}. A rule says what no record may be, not what all must be: "
                    "turn it round, or leave it out."
                )
        return made

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __str__(self) -> str:
        shown = " or ".join(self.texts[:_SHOWN])
        more = len(self.texts) - _SHOWN
        return f"{shown} or {more} more rules" if more > 0 else shown

    @cached_property
    def before(self) -> tuple[int, ...]:
        """How many records break each rule before anything is swapped."""
        return tuple(self.data.records_in(_all(conditions, self.data)) for conditions in self.conditions)

    def about(self, columns: Iterable[str]) -> Rules:
        """Return the rules that name any of these columns: the others cannot exclude a pair that exchanges them."""
        moved = set(columns)
        kept = [i for i, each in enumerate(self.conditions) if moved & {condition.variable for condition in each}]
        return Rules(tuple(self.texts[i] for i in kept), tuple(self.conditions[i] for i in kept), self.data)

    def on(self, data: Data) -> Rules:
        """Return the same rules for another state of the same file."""
        return Rules(self.texts, self.conditions, data)

    def edits(self, moved: Sequence[str], linked: Mapping[str, Sequence[str]] | None = None) -> kernels.Edits:
        """Split the rules, record by record, into what stays and what moves when pairs exchange `moved`.

        `linked` are columns that move as well, in pairs that differ on their parent. Rules that name no column that
        moves are left out.
        """
        links = linked or {}
        part = dict.fromkeys(moved, 1)
        for number, columns in enumerate(links.values(), start=2):
            part |= dict.fromkeys(columns, number)
        kept = self.about(part)
        words = np.zeros((2 + len(links), self.data.n, -(-len(kept.texts) // BITS)), dtype=np.int64)
        for r, conditions in enumerate(kept.conditions):
            for p in range(len(words)):
                mine = [each for each in conditions if part.get(each.variable, 0) == p]
                words[p, :, r // BITS] |= _all(mine, self.data).astype(np.int64) << (r % BITS)
        parents = [np.unique(self.data[name].values, return_inverse=True)[1] for name in links]
        parent = np.stack(parents).astype(np.int64) if parents else np.zeros((0, self.data.n), dtype=np.int64)
        return kernels.Edits(words[0], words[1], np.ascontiguousarray(words[2:]), parent)

    def created(self, plan: Plan) -> tuple[int, ...]:
        """Count, rule by rule, the records that break it after a plan and did not before."""
        after = plan.apply(self.data)
        return tuple(int((_all(each, after) & ~_all(each, self.data)).sum()) for each in self.conditions)


def _all(conditions: Iterable[Condition], data: Data) -> Flags:
    return Where(tuple(conditions)).met(data)
