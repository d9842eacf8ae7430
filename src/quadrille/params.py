"""What a parameter is: declared once, next to the type of its field, and used wherever the parameter is.

    rate: Annotated[float | None, Share("share of the records that take part")] = None

Checks and their messages, JSON, the axes of a grid, job files, columns to look for in the data, options of the command
line, tables in the docs and JSON Schema all follow from the declaration.
"""

# ruff: noqa: D102  # what a method of a kind does is said once, in `Param`
from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from functools import cached_property
from math import inf, isfinite, nan
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    SupportsFloat,
    SupportsIndex,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from quadrille.data import MOST_ROWS
from quadrille.errors import ParameterError, bad_parameter, unknown_name
from quadrille.text import Table

REQUIRED = object()
"""The default of a parameter that has none."""


class Spot(NamedTuple):
    """One of the values that a parameter takes in a grid, and its place in a list of values."""

    value: object
    at: int | None


@dataclass(frozen=True)
class Param:
    """A parameter of any kind: what it means, and what follows from that.

    `unit` is what a number counts; `otherwise` what holds when it is left out; `must` what a message says that a value
    must be, where the words of the kind do not fit. `written` is its name in JSON and job files, `option` on the
    command line, where those differ. With `moves` the columns that it names are swapped; with `steers` they decide who
    is, and are left out of the public file. `name` and `default` are those of the field.
    """

    help: str = ""
    _: KW_ONLY
    unit: str = ""
    otherwise: str = ""
    must: str = ""
    written: str = ""
    option: str = ""
    moves: bool = False
    steers: bool = False
    name: str = ""
    default: object = REQUIRED

    kind: ClassVar[str] = "value"
    metavar: ClassVar[str] = "VALUE"
    repeated: ClassVar[bool] = False
    """Whether the option can be given several times."""
    example: ClassVar[str] = "..."
    optional: ClassVar[bool] = True
    """Whether a value that is the default can be taken as it is."""

    def of_field(self, name: str, annotation: object, default: object) -> Param:
        """Return the declaration with the name and the default of its field."""
        return replace(
            self, name=name, default=default, written=self.written or name, option=self.option or _dashed(name)
        )

    def check(self, owner: str, parameter: str, value: object) -> object:
        """Return a value in its normal form; raise an error that says what it must be."""
        return value

    def columns(self, value: object) -> tuple[str, ...]:
        """Return the columns that a value names."""
        return ()

    def axis(self, value: object) -> list[Spot]:
        """Return each of the values that a grid is given: one, or several in a list."""
        if not several(value):
            return [Spot(value, None)]
        return [Spot(each, at) for at, each in enumerate(cast("Iterable[object]", value))]

    def read(self, given: Any) -> object:
        """Return the value of what the command line was given."""
        return given

    @property
    def switch(self) -> object:
        """The value that an option without a value stands for; None when it takes one."""
        return None

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED

    @property
    def number(self) -> type[int | float] | None:
        """The type of a value that can only be a number."""
        return None

    def shape(self) -> dict[str, object]:
        """Return the part of the JSON Schema that says which values there are."""
        return {}

    def schema(self) -> dict[str, object]:
        """Return the JSON Schema of a value."""
        made = self.shape() | {"description": self.help, "x-kind": self.kind}
        if self.unit:
            made["x-unit"] = self.unit
        if self.default is None and "type" in made:
            kinds = made["type"]
            made["type"] = [*cast("list[str]", kinds if isinstance(kinds, list) else [kinds]), "null"]
        return made if self.required else made | {"default": self.default}


@dataclass(frozen=True)
class Columns(Param):
    """A list of distinct columns, or one."""

    least: int = 0

    kind = "columns"
    metavar = "COLUMNS"
    repeated = True
    example = '[["A"], ["B", "C"]]'

    def check(self, owner: str, parameter: str, value: object) -> object:
        return names(owner, parameter, value, least=self.least)

    def columns(self, value: object) -> tuple[str, ...]:
        return tuple(each for each in _as_list(value) if isinstance(each, str))

    def axis(self, value: object) -> list[Spot]:
        """Several values are a list of lists."""
        if not several(value):
            return [Spot((value,) if isinstance(value, str) else value, None)]
        listed = list(cast("Iterable[object]", value))
        if all(isinstance(each, str) for each in listed):
            return [Spot(tuple(listed), None)]
        values = [tuple(_as_list(each)) if several(each) or isinstance(each, str) else each for each in listed]
        return [Spot(each, at) for at, each in enumerate(values)]

    def read(self, given: Any) -> object:
        return split_names(given)

    def shape(self) -> dict[str, object]:
        return {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": self.least}


@dataclass(frozen=True)
class RuleList(Columns):
    """Conditions that no record may come to meet."""

    kind = "rules"
    metavar = "CONDITION"

    def check(self, owner: str, parameter: str, value: object) -> object:
        from quadrille.expressions import rule_texts

        return rule_texts(owner, value)

    def columns(self, value: object) -> tuple[str, ...]:
        from quadrille.expressions import Where

        return tuple(name for text in super().columns(value) for name in Where.parse(text).variables)

    def read(self, given: Any) -> object:
        return given


@dataclass(frozen=True)
class ColumnSets(Param):
    """A list of sets of columns, each a list or written A*B."""

    least: int = 1

    kind = "column sets"
    metavar = "SETS"
    repeated = True

    def check(self, owner: str, parameter: str, value: object) -> object:
        must = "a list of lists of column names, like [['Age', 'Sex'], ['Age', 'Race']]"
        if not isinstance(value, list | tuple):
            raise bad_parameter(owner, parameter, must, value)
        sets = (_crossed(each) for each in cast("list[object]", value))
        return tuple(names(owner, parameter, each, least=self.least) for each in sets)

    def columns(self, value: object) -> tuple[str, ...]:
        return tuple(name for each in self.normal(value) for name in each)

    def normal(self, value: object) -> tuple[tuple[str, ...], ...]:
        """Return the sets as lists of columns."""
        sets = (_as_list(_crossed(each)) for each in _as_list(value))
        return tuple(tuple(name for name in each if isinstance(name, str)) for each in sets)

    def axis(self, value: object) -> list[Spot]:
        """Several values are a list of lists of sets."""
        if any(map(_nested, _as_list(value))):
            return super().axis(value)
        return [Spot(tuple(_as_list(value)) if several(value) else value, None)]

    def read(self, given: Any) -> object:
        from quadrille.expressions import split_outside_quotes, unquoted

        sets = [part for text in given for part in split_outside_quotes(text, ",")]
        return [[unquoted(name) for name in split_outside_quotes(each, "*")] for each in sets]

    def shape(self) -> dict[str, object]:
        one = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": self.least}
        return {"type": "array", "items": {"anyOf": [one, {"type": "string", "minLength": 1}]}}


@dataclass(frozen=True)
class Profiles(ColumnSets):
    """Lists of columns on which two may agree, in order of preference; an empty one fits everybody.

    On the command line the option is given once for each list, with "" for the empty one.
    """

    least: int = 0

    metavar = "COLUMNS"

    def check(self, owner: str, parameter: str, value: object) -> object:
        return super().check(owner, parameter, value) or ((),)

    def normal(self, value: object) -> tuple[tuple[str, ...], ...]:
        return super().normal(value) or ((),)

    def read(self, given: Any) -> object:
        return [split_names([text]) if text.strip() else [] for text in given]


@dataclass(frozen=True)
class ColumnName(Param):
    """A column, or `instead`, a number that stands for none."""

    instead: int | None = None

    kind = "column"
    metavar = "COLUMN"

    def check(self, owner: str, parameter: str, value: object) -> object:
        if not isinstance(value, str) and (self.instead is None or isinstance(value, bool) or value != self.instead):
            raise bad_parameter(owner, parameter, self.must or "the name of a column", value)
        return value

    def columns(self, value: object) -> tuple[str, ...]:
        return (value,) if isinstance(value, str) else ()

    def shape(self) -> dict[str, object]:
        column: dict[str, object] = {"type": "string"}
        return column if self.instead is None else {"anyOf": [column, {"const": self.instead}]}


@dataclass(frozen=True)
class Number(Param):
    """A number within an interval, such as "(0, 1]"; with `or_column` also a column that holds it."""

    within: str = "[0, inf)"
    or_column: bool = False

    kind = "number"
    metavar = "NUMBER"

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The ends of the interval."""
        low, high = self.within[1:-1].split(",")
        return float(low), float(high)

    def check(self, owner: str, parameter: str, value: object) -> object:
        return value if self.or_column and isinstance(value, str) else self.as_number(owner, parameter, value)

    def as_number(self, owner: str, parameter: str, value: object) -> float:
        """Return a number within the interval; raise an error for anything else."""
        number, (low, high) = as_float(value), self.limits
        least, most = self.within[0] == "[", self.within[-1] == "]"
        if not (low < number < high or (number == low and least) or (number == high and most)):
            raise bad_parameter(owner, parameter, self.must or f"a number in {self.within}", value)
        return number

    def columns(self, value: object) -> tuple[str, ...]:
        return (value,) if isinstance(value, str) else ()

    def read(self, given: Any) -> object:
        try:
            return float(given)
        except ValueError:
            return given

    @property
    def number(self) -> type[int | float] | None:
        return None if self.or_column else float

    def shape(self) -> dict[str, object]:
        low, high = self.limits
        made: dict[str, object] = {"type": "number", "minimum" if self.within[0] == "[" else "exclusiveMinimum": low}
        if isfinite(high):
            made["maximum" if self.within[-1] == "]" else "exclusiveMaximum"] = high
        return {"anyOf": [made, {"type": "string"}]} if self.or_column else made


@dataclass(frozen=True)
class Share(Number):
    """A share, by default above 0 and up to 1."""

    within: str = "(0, 1]"

    kind = "share"
    metavar = "SHARE"


@dataclass(frozen=True)
class Count(Param):
    """A whole number, not beyond the most records that a file can have: sums and products of such fit into 64 bits."""

    least: int = 1
    most: int = MOST_ROWS

    kind = "count"
    metavar = "NUMBER"

    def check(self, owner: str, parameter: str, value: object) -> int:
        count = whole(owner, parameter, value, least=self.least)
        if count > self.most:
            raise bad_parameter(owner, parameter, f"a whole number from {self.least:,} to {self.most:,}", value)
        return count

    @property
    def number(self) -> type[int | float] | None:
        return int

    def shape(self) -> dict[str, object]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Word(Param):
    """One of a few words: those of the field's type, where it is a Literal. `switched` makes an option of one word."""

    words: tuple[str, ...] = ()
    switched: str = ""

    kind = "word"
    metavar = "WORD"

    def of_field(self, name: str, annotation: object, default: object) -> Param:
        words = self.words or cast("tuple[str, ...]", get_args(annotation) if get_origin(annotation) is Literal else ())
        return super(Word, replace(self, words=words)).of_field(name, annotation, default)

    def check(self, owner: str, parameter: str, value: object) -> object:
        one_of(owner, parameter, value, self.words)
        return value

    @property
    def switch(self) -> object:
        return self.switched or None

    def shape(self) -> dict[str, object]:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class WordOrCount(Word):
    """One of a few words, or a whole number."""

    least: int = 1

    kind = "word or count"
    metavar = "WORD|NUMBER"

    def check(self, owner: str, parameter: str, value: object) -> object:
        if isinstance(value, str) and value in self.words:
            return value
        if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < self.least:
            raise bad_parameter(owner, parameter, self._must, value)
        return operator.index(value)

    @property
    def _must(self) -> str:
        return f"one of {', '.join(map(repr, self.words))}, or a whole number of {self.least} or more"

    def read(self, given: Any) -> object:
        return int(given) if given.isdecimal() else given

    def shape(self) -> dict[str, object]:
        return {"anyOf": [super().shape(), {"type": "integer", "minimum": self.least}]}


@dataclass(frozen=True)
class Flag(Param):
    """Yes or no; the option says the other of the two than the default."""

    kind = "flag"
    metavar = ""

    def of_field(self, name: str, annotation: object, default: object) -> Param:
        made = replace(self, option=self.option or _dashed(("no_" if default is True else "") + name))
        return super(Flag, made).of_field(name, annotation, default)

    def check(self, owner: str, parameter: str, value: object) -> object:
        if not isinstance(value, bool):
            raise bad_parameter(owner, parameter, self.must or "True or False", value)
        return value

    @property
    def switch(self) -> object:
        return self.default is not True

    def shape(self) -> dict[str, object]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Links(Param):
    """Columns that travel with others: {column: [columns]}."""

    kind = "links"
    metavar = "VAR=COLUMNS"
    repeated = True

    def check(self, owner: str, parameter: str, value: object) -> object:
        if value == {}:
            return None
        must = "like {'Edu': ['Degree', 'Years']}: columns that travel with a swap variable, each named once"
        given = _mapping(owner, parameter, must, value)
        made = {parent: names(owner, parameter, each, least=1) for parent, each in given.items()}
        listed = [name for followers in made.values() for name in followers]
        if len(set(listed)) != len(listed):
            raise bad_parameter(owner, parameter, must, dict(given))
        return dict(sorted(made.items()))

    def columns(self, value: object) -> tuple[str, ...]:
        links = cast("Mapping[str, object]", value if isinstance(value, Mapping) else {})
        return tuple(
            name for parent, each in links.items() for name in (parent, *_as_list(each)) if isinstance(name, str)
        )

    def read(self, given: Any) -> object:
        """Read PARENT=A,B as often as it is given."""
        links: dict[str, list[str]] = {}
        for text in given:
            parent, sign, followers = text.partition("=")
            if not sign or not parent.strip() or not followers.strip():
                raise bad_parameter("the command", f"--{self.option}", "like Edu=Degree,Years", text)
            links.setdefault(split_names([parent])[0], []).extend(split_names([followers]))
        return links

    def shape(self) -> dict[str, object]:
        return {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}, "minItems": 1}}


@dataclass(frozen=True)
class Weights(Param):
    """A number for each of some names: {name: number}."""

    names: tuple[str, ...] = ()

    kind = "weights"
    metavar = "NAME=NUMBER"
    repeated = True

    def check(self, owner: str, parameter: str, value: object) -> object:
        made: dict[str, float] = {}
        for name, each in _mapping(owner, parameter, self.must, value).items():
            made[name] = as_float(each)
            if name not in self.names or not 0 <= made[name] < inf:
                raise bad_parameter(owner, parameter, self.must, value)
        if not any(made.values()):
            raise bad_parameter(owner, parameter, self.must, value)
        return dict(sorted(made.items()))

    def read(self, given: Any) -> object:
        return weighted(given, self.option, self.must)

    def shape(self) -> dict[str, object]:
        number = {"type": "number", "minimum": 0}
        named: dict[str, object] = dict.fromkeys(self.names, number)
        return {"type": "object", "properties": named, "additionalProperties": False, "minProperties": 1}


@dataclass(frozen=True)
class Losses(Param):
    """A measure of loss, or several with their weights."""

    kind = "losses"
    metavar = "MEASURES"
    repeated = True

    def check(self, owner: str, parameter: str, value: object) -> object:
        must = 'a measure such as "hellinger(Age*Sex)", or measures with weights above 0, like {"hellinger": 1}'
        if isinstance(value, str) and value:
            return value
        if not value:
            raise bad_parameter(owner, parameter, must, value)
        weights = _mapping(owner, parameter, must, value)
        price = Number(must=NOT_INFINITE)
        made = {address: price.as_number(owner, parameter, each) for address, each in weights.items()}
        if min(made.values()) <= 0:
            raise bad_parameter(owner, parameter, must, value)
        return dict(sorted(made.items()))

    def read(self, given: Any) -> object:
        """Read a loss, or several with weights: hellinger=1,hellinger(Age*Sex)=5."""
        must = 'measures with their weights, each once, like "hellinger=1,hellinger(Age*Sex)=5"'
        weights = weighted(given, self.option, must)
        only = next(iter(weights))
        return only if len(given) == len(weights) == 1 and given[0].strip() == only else weights

    def shape(self) -> dict[str, object]:
        several = {
            "type": "object",
            "additionalProperties": {"type": "number", "exclusiveMinimum": 0},
            "minProperties": 1,
        }
        return {"anyOf": [{"type": "string", "minLength": 1}, several]}


@dataclass(frozen=True)
class SeedOf(Param):
    """What the draw is made from: 256 secret bits, or a whole number for tests and papers."""

    kind = "seed"
    metavar = "NUMBER"
    optional = False

    def check(self, owner: str, parameter: str, value: object) -> object:
        from quadrille.randomness import checked_seed

        return checked_seed(value, owner)

    def read(self, given: Any) -> object:
        """Take up to 63 digits for a number; 64 hexadecimal digits are a secret, whatever they look like."""
        try:
            return given if len(given) >= 64 else int(given)
        except ValueError:
            return given

    def shape(self) -> dict[str, object]:
        secret = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
        return {"anyOf": [{"type": "integer", "minimum": 0}, secret, {"type": "null"}]}


NOT_INFINITE = "a number of 0 or more, not infinite"
SEED = SeedOf("a whole number, for tests and papers only; 256 secret bits otherwise", otherwise="secret")
_KNOWN: Mapping[str, Param] = {"swap": Columns("the variables to swap", moves=True), "seed": SEED}
"""What a field of these names is when it does not say."""


def declared(owner: type) -> dict[str, Param]:
    """Return the parameters that the fields of a dataclass declare, in order."""
    try:
        hints = get_type_hints(owner, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"The parameters of {owner.__name__} cannot be read: {error}. Import it at the top of the module, not "
            "under TYPE_CHECKING."
        ) from None
    made: dict[str, Param] = {}
    for field in fields(owner):
        hint, default = hints[field.name], REQUIRED if field.default is MISSING else field.default
        notes = getattr(hint, "__metadata__", ())
        param = next((note for note in notes if isinstance(note, Param)), _KNOWN.get(field.name, Param()))
        made[field.name] = param.of_field(field.name, hint.__origin__ if notes else hint, default)
    return made


def object_schema(title: str, params: Iterable[Param], fixed: Mapping[str, object]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these parameters, and properties whose value is `fixed`."""
    listed = list(params)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {name: {"const": value} for name, value in fixed.items()}
        | {param.written: param.schema() for param in listed},
        "required": [*fixed, *(param.written for param in listed if param.required)],
        "additionalProperties": False,
    }


def names(owner: str, parameter: str, value: object, *, least: int = 0) -> tuple[str, ...]:
    """Check a parameter that lists columns: a list of distinct names, or one name."""
    listed = (value,) if isinstance(value, str) else value
    must = "a list of column names" + (f", at least {least}" if least else "")
    if not isinstance(listed, list | tuple):
        raise bad_parameter(owner, parameter, must, value)
    given = tuple(cast("list[object]", listed))
    if len(given) < least or not all(isinstance(name, str) for name in given):
        raise bad_parameter(owner, parameter, must, value)
    if len(set(given)) != len(given):
        raise bad_parameter(owner, parameter, "a list without repetitions", value)
    return cast("tuple[str, ...]", given)


def one_of(owner: str, parameter: str, value: object, options: tuple[str, ...]) -> None:
    """Check a parameter that takes one of a few words."""
    if value not in options:
        raise bad_parameter(owner, parameter, "one of " + ", ".join(map(repr, options)), value)


def whole(owner: str, parameter: str, value: object, *, least: int) -> int:
    """Check a parameter that is a whole number."""
    if type(value) is int and value >= least:  # the protocol below takes its time
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < least:
        raise bad_parameter(owner, parameter, f"a whole number of {least} or more", value)
    return operator.index(value)


def share(owner: str, parameter: str, value: object) -> float:
    """Check a parameter that is a share above 0 and up to 1."""
    return _SHARE.as_number(owner, parameter, value)


_SHARE = Share()


def as_float(value: object) -> float:
    """Return a number as a float: infinite when it is beyond all floats, NaN when it is none."""
    if type(value) is float:
        return value
    try:
        return float(value) if isinstance(value, SupportsFloat) and not isinstance(value, bool) else nan
    except OverflowError:
        return inf


def several(value: object) -> bool:
    """Whether a value is a list of values: a text and a mapping are one."""
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping)


def split_names(texts: Sequence[str]) -> list[str]:
    """Split lists of column names at commas; quotes keep a name together."""
    from quadrille.expressions import split_outside_quotes, unquoted

    return [unquoted(part) for text in texts for part in split_outside_quotes(text, ",")]


def weighted(texts: Sequence[str], option: str, must: str) -> dict[str, float]:
    """Read names with weights, each once: hellinger=1,hellinger(Age*Sex)=5; without a weight it is 1."""
    from quadrille.expressions import split_outside_quotes

    found: dict[str, float] = {}
    for part in (part.strip() for text in texts for part in split_outside_quotes(text, ",")):
        margin, bracket, weight = part.rpartition(")")
        name, sign, weight = weight.partition("=")
        address = margin + bracket + name.strip()
        try:
            if address in found:
                raise ValueError
            found[address] = float(weight) if sign else 1.0
        except ValueError:
            raise bad_parameter("the command", f"--{option}", must, part) from None
    return found


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _as_list(value: object) -> list[Any]:
    return list(cast("Iterable[object]", value)) if several(value) else [value]


def _nested(value: object) -> bool:
    """Whether a value is a list of lists."""
    return isinstance(value, list | tuple) and any(
        isinstance(each, list | tuple) for each in cast("list[object]", value)
    )


def _crossed(value: object) -> object:
    return [name.strip() for name in value.split("*")] if isinstance(value, str) else value


def _mapping(owner: str, parameter: str, must: str, value: object) -> Mapping[str, object]:
    given = cast("Mapping[object, object]", value)
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in given):
        raise bad_parameter(owner, parameter, must, given)
    return cast("Mapping[str, object]", given)


@dataclass(frozen=True)
class UpTo(Count):
    """A whole number from `least` to `most`."""

    most: int = 999_999_999

    example = "3"

    def check(self, owner: str, parameter: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            must = self.must or f"a whole number from {self.least:,} to {self.most:,}"
            raise bad_parameter(owner, parameter, must, value)
        return value


@dataclass(frozen=True)
class Digits(UpTo):
    """A whole number in the address of a measure; with `most` 1 a switch, which is off when it is left out."""

    def check(self, owner: str, parameter: str, value: object) -> int:
        text, places = str(value), len(str(UpTo.most))
        if not text.isdecimal() or len(text) > places or int(text) < 1:
            raise bad_parameter(owner, parameter, f"a whole number of 1 or more, with at most {places} digits", value)
        if int(text) > self.most:
            raise bad_parameter(owner, parameter, "1, or left out", value)
        return int(text)


@dataclass(frozen=True)
class ShareText(Share):
    """A share in the address of a measure."""

    def check(self, owner: str, parameter: str, value: object) -> object:
        return super().check(owner, parameter, self.read(value))


@dataclass(frozen=True)
class Setting(Param, ABC):
    """A parameter that only files have: it reads itself from its table, and says where a fault is."""

    @abstractmethod
    def of_table(self, table: Table) -> object:
        """Return the value, which is there."""


@dataclass(frozen=True)
class Text(Setting):
    """A text that is not empty."""

    kind = "text"

    def of_table(self, table: Table) -> object:
        return table.text(self.written)

    def shape(self) -> dict[str, object]:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Texts(Setting):
    """A list of `what`, each once; where only some are `known`, an unknown one is reported as no such `one`."""

    what: str = "texts"
    one: str = "text"
    known: Callable[[], Sequence[str]] = tuple

    kind = "texts"

    def of_table(self, table: Table) -> object:
        """An empty list that is written would be a rule about nothing."""
        listed = table.texts(self.written, self.what, least=1)
        known = self.known()
        for index, text in enumerate(listed):
            if known and text not in known:
                table.refuse(str(unknown_name(self.one, text, known)), self.written, index)
        return listed

    def shape(self) -> dict[str, object]:
        known = list(self.known())
        one = {"type": "string", "enum": known} if known else {"type": "string"}
        return {"type": "array", "items": one, "uniqueItems": True, "minItems": 1}


@dataclass(frozen=True)
class ConditionText(Text):
    """A condition on records, such as Sex=Male & Hours>=40."""

    kind = "condition"


@dataclass(frozen=True)
class Models(Texts):
    """Regressions, such as score ~ age + C(race)."""

    kind = "models"


def setting(table: Table, param: Param) -> object:
    """Return a setting as its declaration reads it, or its default; a fault is reported with its place."""
    key = param.written
    if key not in table.values:
        if param.required:
            table.require(key, param.example)
        return param.default
    if isinstance(param, Setting):
        return param.of_table(table)
    try:
        return param.check(table.place, key, table.values[key])
    except ParameterError as error:  # texts as TOML writes them
        return table.demand((error.must or str(error)).replace("'", '"'), table.values[key], key)
