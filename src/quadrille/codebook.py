"""What each column means: kind, categories in order, missing codes, role, levels of geography. TOML in and out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import InputError, ParameterError, Place, bad_parameter, unknown_name
from quadrille.text import UNSEEN, Shown, read_text

if TYPE_CHECKING:
    from quadrille.data import Column


Kind = Literal["nominal", "ordinal", "numeric"]
Role = Literal["id", "weight", "stratum", "cluster", "unit", "geography", "key", "outcome"]
Value = str | int | float | bool

KINDS: tuple[str, ...] = get_args(Kind)
ROLES: tuple[str, ...] = get_args(Role)
PROGRAMS = ("spss", "stata", "sas")
_UNSEEN = re.compile(f"[{UNSEEN}]")
_LARGEST = 10**300
_LISTS = ("categories", "labels", "missing", "missing_labels")
_PAIRS = ("missing_ranges", "labelled")
_NOT_KEYS = frozenset({"id", "weight", "stratum", "cluster", "unit", "outcome"})


@dataclass(frozen=True)
class Stored:
    """How a statistics program keeps a column: its display format, storage type, widths and level of measurement."""

    program: str
    format: str = ""
    type: str = ""
    width: int = 0
    display: int = 0
    measure: str = ""


@dataclass(frozen=True, repr=False)
class Variable(Shown):
    """One column: `categories` are the values in order, `labels` their names, `missing` the missing codes.

    Missing codes are values of their own and come after the categories; an empty field comes last. `ordered` is False
    for categories that were found as text and put in alphabetical order, which means nothing; a codebook that lists
    categories declares their order. `level` numbers nested levels of geography, 1 the coarsest: they move together.

    `label` says in words what the column is. An empty text among `labels` or `missing_labels` means none. Every number
    in `missing_ranges` (both ends belong to it) is a missing code; `labelled` names values that are neither categories
    nor missing codes. `stored` keeps what the file of a statistics program said beyond that. None of these five is part
    of the fingerprint of data: words about a column do not change what is swapped.

    A column can be recoded when it is read. `bands` are the lower ends of bands of numbers, which `categories` name if
    they are given; numbers beyond `top` and `bottom` are set to these; `merge` names the categories to make of others.
    The column as it was is kept only where `original` gives it a name of its own. A file that is recoded already stays
    as it is, so that one codebook describes the file before and after. `kind_open` is True for an entry of a codebook
    file that says no kind: it is guessed.

    Example
    -------
    >>> import quadrille as qd
    >>> health = qd.Variable("health", "ordinal", categories=("poor", "fair", "good"), missing=("refused",))
    >>> health.values
    ('poor', 'fair', 'good', 'refused')
    >>> import polars as pl
    >>> book = qd.Codebook((qd.Variable("age", bands=(0, 16, 25, 65)),))
    >>> qd.from_frame(pl.DataFrame({"age": [3, 17, 30, 99]}), codebook=book)["age"].labels
    ('0-15', '16-24', '25-64', '65+')
    """

    name: str
    kind: Kind = "nominal"
    categories: tuple[Value, ...] = ()
    labels: tuple[str, ...] = ()
    missing: tuple[Value, ...] = ()
    role: Role | None = None
    level: int | None = None
    ordered: bool = field(default=True, compare=False, repr=False)
    label: str = field(default="", repr=False)
    missing_labels: tuple[str, ...] = field(default=(), repr=False)
    missing_ranges: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    labelled: tuple[tuple[Value, str], ...] = field(default=(), repr=False)
    stored: Stored | None = field(default=None, repr=False)
    bands: tuple[float, ...] = field(default=(), repr=False, compare=False)
    top: float | None = field(default=None, repr=False, compare=False)
    bottom: float | None = field(default=None, repr=False, compare=False)
    merge: tuple[tuple[str, tuple[Value, ...]], ...] = field(default=(), repr=False, compare=False)
    original: str = field(default="", repr=False, compare=False)
    kind_open: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise self._bad("kind", f"one of {', '.join(KINDS)}", self.kind)
        if self.role is not None and self.role not in ROLES:
            raise self._bad("role", f"one of {', '.join(ROLES)}", self.role)
        self._check_level()
        self._check_recodes()
        kinds = set(map(type, self.values))
        # Among numbers a missing code may be a text, such as Stata's .a; among texts it cannot be a number.
        alike = {isinstance(value, str) for value in self.categories or (self.missing if self.coded else ())}
        if len(alike) > 1 or (alike == {True} and len(kinds) > 1):
            raise column_fault(self.name, "categories mix text and numbers. Write all of them alike.")
        distinct = set(map(_identity, self.values)) if bool in kinds else set(self.values)
        if len(distinct) != len(self.values):
            raise column_fault(self.name, "a category or missing code is listed twice. List each once.")
        self._check_words()

    @property
    def recodes(self) -> bool:
        """Whether the column is recoded when it is read.

        >>> import quadrille as qd
        >>> qd.Variable("income", "numeric", top=100_000).recodes
        True
        """
        return bool(self.bands or self.merge) or self.top is not None or self.bottom is not None

    def _check_recodes(self) -> None:
        if isinstance(cast("object", self.merge), Mapping):
            pairs = cast("Mapping[str, Sequence[Value]]", self.merge).items()
            object.__setattr__(self, "merge", tuple((name, tuple(values)) for name, values in pairs))
        if any(not isinstance(cast("object", end), int | float) or not isfinite(end) for end in self.bands):
            raise column_fault(self.name, "'bands' must be numbers, the lower end of each band.")
        if any(low >= high for low, high in pairwise(self.bands)):
            raise column_fault(self.name, "'bands' do not ascend. List the lower end of each band, the lowest first.")
        if self.bands and self.categories and len(self.categories) != len(self.bands):
            raise column_fault(
                self.name,
                f"there are {len(self.categories)} categories for {len(self.bands)} bands. Name each band, or none.",
            )
        if self.bands and (self.merge or self.top is not None or self.bottom is not None):
            raise column_fault(self.name, "there are bands and another recoding. The bands alone will do.")
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise column_fault(self.name, "the bottom code is not below the top code. Correct one of them.")
        listed = [value for _, values in self.merge for value in values]
        if not all(values for _, values in self.merge) or len(set(listed)) != len(listed):
            raise column_fault(self.name, "a merge is empty, or a value is merged twice. Name each value once.")
        if self.original and (not self.recodes or self.original == self.name):
            raise column_fault(self.name, "'original' names the column that keeps what is recoded. Name another one.")

    def _check_words(self) -> None:
        named = (
            ("category", "categories", self.labels, self.categories),
            ("missing code", "missing codes", self.missing_labels, self.missing),
        )
        for one, many, labels, values in named:
            if labels and len(labels) != len(values):
                raise column_fault(
                    self.name,
                    f"there are {len(labels)} labels for {len(values)} {many}. "
                    f"Give one label per {one}, in the same order, an empty one for none.",
                )
        if any(not low <= high for low, high in self.missing_ranges):
            raise column_fault(self.name, "a range of missing codes ends before it starts. Write [lowest, highest].")
        if self.stored is not None and self.stored.program not in PROGRAMS:
            raise self._bad("program", f"one of {', '.join(PROGRAMS)}", self.stored.program)

    def _check_level(self) -> None:
        if self.level is None:
            return
        if (
            isinstance(cast("object", self.level), bool)
            or not isinstance(cast("object", self.level), int)
            or self.level < 1
        ):
            raise self._bad("level", "a whole number of 1 or more, 1 for the coarsest", self.level)
        if self.role != "geography":
            raise column_fault(
                self.name, 'there is a level, which needs role = "geography". Add the role, or drop the level.'
            )
        if not self.coded:
            raise column_fault(self.name, "a level of geography is numeric. Areas are categories: declare it nominal.")

    def _bad(self, setting: str, must: str, got: object) -> ParameterError:
        error = bad_parameter(f"codebook column {self.name!r}", setting, must, got)
        error.place = Place("", "columns", 0, self.name, f"'{setting}' must be {must}. Got {got!r}.")
        return error

    @property
    def coded(self) -> bool:
        """Whether values are categories rather than numbers.

        >>> import quadrille as qd
        >>> qd.Variable("health", "ordinal").coded, qd.Variable("income", "numeric").coded
        (True, False)
        """
        return self.kind != "numeric"

    @property
    def values(self) -> tuple[Value, ...]:
        """Return the categories, then the missing codes: position is code."""
        return self.categories + self.missing

    @property
    def names(self) -> tuple[str, ...]:
        """What each category is called: its label, else the value as text.

        >>> import quadrille as qd
        >>> qd.Variable("health", "ordinal", categories=(1, 2), labels=("poor", "good"), missing=(9,)).names
        ('poor', 'good')
        """
        if not self.labels:
            return tuple(map(str, self.categories))
        return tuple(label or str(value) for label, value in zip(self.labels, self.categories, strict=True))

    @property
    def value_labels(self) -> dict[Value, str]:
        """The label of every value that has one: categories, missing codes and others.

        >>> import quadrille as qd
        >>> sex = qd.Variable("sex", categories=(1, 2), labels=("f", "m"), missing=(9,), missing_labels=("refused",))
        >>> sex.value_labels
        {1: 'f', 2: 'm', 9: 'refused'}
        """
        pairs = (
            *zip(self.categories, self.labels or (), strict=False),
            *zip(self.missing, self.missing_labels or (), strict=False),
            *self.labelled,
        )
        return {value: label for value, label in pairs if label}


_OF_DATA = tuple(each for each in fields(Variable) if each.repr)
"""The fields of a variable that are more than words about it."""


def _identity(value: Value) -> tuple[str, Value]:
    return ("bool" if isinstance(value, bool) else "", value)


@dataclass(frozen=True, repr=False)
class Codebook(Shown):
    """The variables of a file, in file order.

    `sampling` says which share of a population the file holds, where it is a sample and its weights do not tell.

    Example
    -------
    >>> import quadrille as qd
    >>> health = qd.Variable("health", "ordinal", categories=("poor", "good"))
    >>> book = qd.Codebook((qd.Variable("id", "numeric", role="id"), health))
    >>> book.names, book.keys, book["id"].role
    (['id', 'health'], ('health',), 'id')
    >>> qd.Codebook.from_toml(book.to_toml()) == book
    True
    """

    variables: tuple[Variable, ...] = ()
    sampling: float | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.sampling is not None and not _is_share(self.sampling):
            raise bad_parameter("the codebook", "sampling", "a number in (0, 1]", self.sampling)
        names = self.names
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"The column name {twice!r} occurs more than once. Give each column its own name.")
        of_level: dict[int, str] = {}
        for variable in self.variables:
            if variable.level is not None and of_level.setdefault(variable.level, variable.name) != variable.name:
                raise InputError(
                    f"Columns {of_level[variable.level]!r} and {variable.name!r} have the same level of geography, "
                    f"{variable.level}. Give each level its own number, 1 for the coarsest."
                )

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise unknown_name("column", name, self.names)

    @property
    def names(self) -> list[str]:
        """Column names in file order."""
        return [variable.name for variable in self.variables]

    @property
    def identity(self) -> str:
        """What of the codebook is part of the fingerprint of data, as one text: it never changes its form.

        >>> import quadrille as qd
        >>> one, other = (qd.Variable("Sex", "nominal", label=label) for label in ("", "sex of the person"))
        >>> qd.Codebook((one,)).identity == qd.Codebook((other,)).identity
        True
        """
        variables = ", ".join(
            f"Variable({', '.join(f'{each.name}={getattr(variable, each.name)!r}' for each in _OF_DATA)})"
            for variable in self.variables
        )
        return f"Codebook(variables=({variables}{',' if len(self.variables) == 1 else ''}))"

    @property
    def keys(self) -> tuple[str, ...]:
        """The key variables: those with role `key`, else every categorical variable that may serve as one."""
        declared = tuple(v.name for v in self.variables if v.role == "key")
        return declared or tuple(v.name for v in self.variables if v.coded and v.role not in _NOT_KEYS)

    @property
    def geography(self) -> tuple[str, ...]:
        """The nested levels of geography, the coarsest first. A geography column without a level stands alone.

        >>> import quadrille as qd
        >>> qd.datasets.state(records=3_200).codebook.geography
        ('county', 'tract')
        """
        levels = sorted((v.level, v.name) for v in self.variables if v.level is not None)
        return tuple(name for _, name in levels)

    def with_geography(self, levels: Sequence[str]) -> Codebook:
        """Return the codebook in which these columns are the levels of geography, the coarsest first.

        >>> import quadrille as qd
        >>> book = qd.Codebook((qd.Variable("tract"), qd.Variable("sex"))).with_geography(["county", "tract"])
        >>> [(variable.name, variable.level) for variable in book]
        [('tract', 2), ('sex', None), ('county', 1)]
        """
        named = [levels] if isinstance(levels, str) else list(levels)
        if len(set(named)) != len(named):
            raise InputError(
                "A column is named twice as a level of geography. Name each level once, the coarsest first."
            )
        if self.geography and self.geography != tuple(named):
            raise InputError(
                "The codebook has levels of geography already, and others are named. Change one of the two."
            )
        declared = {v.name: v for v in self.variables}
        for level, name in enumerate(named, start=1):
            given = declared.get(name, Variable(name))
            if given.role not in (None, "geography"):
                raise InputError(
                    f"Column {name!r} has the role {given.role} in the codebook and cannot be a level of geography."
                )
            declared[name] = replace(given, role="geography", level=given.level or level)
        return Codebook(tuple(declared.values()), self.sampling)

    def to_toml(self, *, guessed: Codebook | None = None) -> str:
        """Write the codebook as TOML text, defaults left out.

        With `guessed`, the codebook that the file would have without a word about it, only what differs from it is
        written, and the rest stands there as comments, one line for each column.

        >>> import quadrille as qd
        >>> print(qd.Codebook((qd.Variable("sex", categories=("f", "m"), role="key"),)).to_toml())
        [columns.sex]
        kind = "nominal"
        role = "key"
        categories = [
            "f",
            "m",
        ]
        """
        import tomli_w

        if guessed is not None:
            return _seen(_short(self, guessed))
        said = {} if self.sampling is None else {"sampling": self.sampling}
        return _seen(tomli_w.dumps({**said, "columns": {v.name: _plain(v) for v in self.variables}}))

    @classmethod
    def from_toml(cls, text: str, *, where: str = "codebook") -> Codebook:
        """Read a codebook from TOML text."""
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            known = isinstance(error, tomllib.TOMLDecodeError)
            told = str(error) if known else "it nests too deeply or a number is too long"
            raise InputError(f"{where} is not valid TOML: {told}.") from None
        columns, sampling = document.get("columns"), document.get("sampling")
        if not isinstance(columns, dict) or not set(document) <= {"columns", "sampling"}:
            raise InputError(
                f"{where} must hold one table per column, headed [columns.NAME], and nothing else, "
                "but for a line 'sampling' before them."
            )
        if sampling is not None and not _is_share(sampling):
            raise InputError(f"{where}: 'sampling' must be the share of the population in the file, in (0, 1].")
        tables = cast("dict[str, object]", columns)
        return cls(tuple(_variable(name, table, where) for name, table in tables.items()), sampling)

    @classmethod
    def read(cls, path: str | Path) -> Codebook:
        """Read a codebook from a TOML file.

        >>> import quadrille as qd
        >>> qd.datasets.cps8d().codebook.write("people.toml")
        >>> book = qd.Codebook.read("people.toml")
        >>> len(book), book["Sex"].categories
        (8, ('Male', 'Female'))
        """
        text = read_text(path, "the codebook")
        return cls.from_toml(text, where=f"Codebook {str(path)!r}")

    def write(self, path: str | Path, *, guessed: Codebook | None = None) -> None:
        """Write the codebook as a TOML file, which appears whole or not at all; with `guessed` a short one.

        >>> import quadrille as qd
        >>> qd.datasets.cps8d().codebook.write("people.toml")
        >>> qd.Codebook.read("people.toml")["Age"].categories
        ('<25', '25-55', '>55')
        """
        from quadrille.io.atomic import new_file

        with new_file(Path(path), self.to_toml(guessed=guessed).encode("utf-8"), private=True):
            pass


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


_HEAD = """\
# A line that starts with # is what is guessed, with categories in their order.
# Take the # away to change it; what is said here comes before any guess.
[columns]
"""
_WIDTH = 80


def _seen(text: str) -> str:
    """Write the signs that nobody sees as escapes: in TOML they stand in quoted texts only, or in comments."""
    return _UNSEEN.sub(lambda found: f"\\U{ord(found[0]):08x}", text)


def _short(book: Codebook, guessed: Codebook) -> str:
    """Write what differs from the guess, one line per column, and the guess as comments."""
    usual = {variable.name: variable for variable in guessed}
    lines = [_line(variable, usual.get(variable.name)) for variable in book]
    said = "" if book.sampling is None else f"sampling = {book.sampling}\n"
    return said + _HEAD + "".join(lines)


def _line(variable: Variable, guessed: Variable | None) -> str:
    told, usual = _plain(variable), {} if guessed is None else _plain(guessed)
    name = _inline({variable.name: 0}).removeprefix("{ ").partition(" = ")[0]
    if told != usual:
        kept = {key: value for key, value in told.items() if usual.get(key) != value or key == "role"}
        if set(kept) - {"role", "label"} or not kept:
            kept = {"kind": variable.kind, **kept}
        return f"{name} = {_inline(kept)}\n"
    shown = {key: value for key, value in told.items() if key in ("kind", "role", "level")}
    listed = variable.categories if variable.coded and variable.role != "id" else ()
    return _folded(f"# {name} = {_inline(shown)}", listed) + "\n"


def _folded(line: str, values: Sequence[Value]) -> str:
    """Add as many values as fit into the line, and the number of the others."""
    texts = list(map(_inline, values))
    for shown in range(min(len(texts), _WIDTH), 0, -1):
        more = f" and {len(texts) - shown:,} more" if shown < len(texts) else ""
        whole = f"{line}  # {', '.join(texts[:shown])}{more}"
        if len(whole) <= _WIDTH:
            return whole
    return f"{line}  # {len(texts):,} categories" if texts else line


def _inline(value: object) -> str:
    """Write a value in one line of TOML."""
    import tomli_w

    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        keys = (tomli_w.dumps({key: 0}).rpartition(" = ")[0] for key in table)
        return (
            "{ " + ", ".join(f"{key} = {_inline(each)}" for key, each in zip(keys, table.values(), strict=True)) + " }"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, cast('list[object]', value)))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def _plain(variable: Variable) -> dict[str, object]:
    table: dict[str, object] = {} if variable.kind_open else {"kind": variable.kind}
    for name in ("role", "level", "label", *_LISTS, *_PAIRS, "bands", "top", "bottom", "original"):
        value: object = getattr(variable, name)
        if value is not None and value not in ((), ""):
            table[name] = _lists(value)
    if variable.merge:
        table["merge"] = {name: list(values) for name, values in variable.merge}
    if variable.stored is not None:
        table["stored"] = {name: value for name, value in asdict(variable.stored).items() if value}
    return table


def _lists(value: object) -> object:
    return [_lists(each) for each in cast("tuple[object, ...]", value)] if isinstance(value, tuple) else value


def column_fault(name: str, text: str, where: str = "") -> InputError:
    """Build the error for what is wrong with a column of a codebook; `where` is the file, if there is one."""
    error = InputError(f"{where}, [columns.{name}]: {text}" if where else f"In codebook column {name!r} {text}")
    error.place = Place(where, "columns", 0, name, text)
    return error


def _variable(name: str, table: object, where: str) -> Variable:
    try:
        listed = _settings(table)
    except InputError as error:
        raise column_fault(name, str(error), where) from None
    # Areas and listed categories are categories, whatever they look like.
    decided = "kind" in listed or "categories" in listed or listed.get("role") == "geography"
    return Variable(name, **listed, kind_open=not decided)


def _settings(table: object) -> dict[str, Any]:
    """Return the settings of a column as `Variable` takes them."""
    if not isinstance(table, Mapping):
        raise InputError("must be a table with kind, categories, role and so on.")
    known = [each.name for each in fields(Variable) if each.name not in ("name", "ordered", "kind_open")]
    listed: dict[str, Any] = {}
    for key, value in cast("Mapping[str, object]", table).items():
        if key not in known:
            raise unknown_name("setting", key, known)
        listed[key] = _setting(key, value)
        if key in (*_LISTS, *_PAIRS) and _unusable(listed[key]):
            raise InputError(f"'{key}' holds nan, or a number beyond 10^300, which is no value. Leave it out.")
    return listed


def _unusable(value: object) -> bool:
    """Whether a value, or one in lists of values, is a number that no column of numbers holds."""
    if isinstance(value, tuple):
        return any(map(_unusable, cast("tuple[object, ...]", value)))
    return isnan(value) if isinstance(value, float) else isinstance(value, int) and abs(value) > _LARGEST


def _setting(key: str, value: object) -> object:
    """Check one setting of a column and return it as `Variable` takes it."""
    if key == "stored":
        return _stored(value)
    if key in _PAIRS:
        return _pairs(key, value)
    if key in ("top", "bottom", "bands"):
        return _numbers(key, value)
    if key == "merge":
        return _merges(value)
    if key in _LISTS:
        texts = key.endswith("labels")
        if not isinstance(value, list) or not all(
            isinstance(v, str if texts else Value) for v in cast("list[object]", value)
        ):
            raise InputError(f"'{key}' must be a list of texts{'' if texts else ' or numbers'}.")
        return tuple(cast("list[Value]", value))
    if key == "level":
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError("'level' must be a whole number.")
    elif not isinstance(value, str):
        raise InputError(f"'{key}' must be a text.")
    return value


def _numbers(key: str, value: object) -> object:
    """Read a number, or a list of them."""
    several = isinstance(value, list)
    listed: list[object] = cast("list[object]", value) if several else [value]
    numbers = [each for each in listed if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) < len(listed) or any(map(_unusable, numbers)) or not numbers or several != (key == "bands"):
        raise InputError(f"'{key}' must be {'a list of numbers' if key == 'bands' else 'a number'}.")
    return tuple(numbers) if key == "bands" else numbers[0]


def _merges(value: object) -> tuple[tuple[str, tuple[Value, ...]], ...]:
    """Read the categories to make, each with the values that become it."""
    table = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {"": None}
    lists = {name: cast("list[object]", each) if isinstance(each, list) else [None] for name, each in table.items()}
    if not all(name and isinstance(v, Value) for name, values in lists.items() for v in values):
        raise InputError('\'merge\' must be a table such as {"Other" = ["a", "b"]}.')
    return tuple((name, tuple(cast("list[Value]", values))) for name, values in lists.items())


def _pairs(key: str, value: object) -> tuple[tuple[object, object], ...]:
    """Read pairs of numbers, or of a value and its label."""
    what = "[lowest, highest]" if key == "missing_ranges" else "[value, label]"
    pairs = cast("list[object]", value) if isinstance(value, list) else [None]
    found: list[tuple[object, object]] = []
    for pair in pairs:
        ends = cast("list[object]", pair) if isinstance(pair, list) else []
        numbers = key == "missing_ranges" and all(isinstance(e, int | float) and not isinstance(e, bool) for e in ends)
        named = key == "labelled" and len(ends) == 2 and isinstance(ends[0], Value) and isinstance(ends[1], str)
        if len(ends) != 2 or not (numbers or named):
            raise InputError(f"'{key}' must be a list of pairs {what}.")
        found.append((ends[0], ends[1]))
    return tuple(found)


def _stored(value: object) -> Stored:
    kinds = {each.name: int if each.type == "int" else str for each in fields(Stored)}
    table: Mapping[str, object] = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
    if not table.get("program"):
        raise InputError("'stored' must be a table with program, format and so on.")
    for key, each in table.items():
        if key not in kinds:
            raise unknown_name("setting", key, kinds, where="stored")
        if not isinstance(each, kinds[key]) or isinstance(each, bool):
            raise InputError(f"'{key}' of stored must be a {'text' if kinds[key] is str else 'whole number'}.")
    return Stored(**cast("dict[str, Any]", table))


Ints = NDArray[np.int64]


def check_nesting(levels: Sequence[Column]) -> None:
    """Refuse levels, the coarsest first, of which an area lies in two areas of a coarser one.

    Records without a value of the finer level say nothing. Those without one of the coarser level must be all of an
    area, or none. One pass over the records per pair of levels.
    """
    for place, finer in enumerate(levels):
        for coarser in reversed(levels[:place]):
            _check_pair(finer, coarser)


def records_in(level: Column) -> Ints:
    """Return the number of records of each area that the codebook lists."""
    return np.bincount(level.values, minlength=level.size)[: level.valid]


def _check_pair(finer: Column, coarser: Column) -> None:
    known = finer.values < finer.valid
    apart = _in_two_areas(finer, coarser, known & (coarser.values < coarser.valid))
    name, whole = finer.variable.name, coarser.variable.name
    if apart:
        raise InputError(
            f"The levels of geography are not nested: {apart:,} of {finer.valid:,} areas of {name!r} lie in more than "
            f"one area of {whole!r}. {_advice(finer, coarser)}"
        )
    partly = _in_two_areas(finer, coarser, known)
    if partly:
        raise InputError(
            f"The levels of geography are not nested: in {partly:,} of {finer.valid:,} areas of {name!r} the value of "
            f"{whole!r} is missing for some records and known for others. Fill it in, or clear it for the whole area."
        )


def _in_two_areas(finer: Column, coarser: Column, counted: NDArray[np.bool_]) -> int:
    """Count the finer areas whose counted records lie in two coarser ones."""
    fine = finer.values if counted.all() else finer.values[counted]
    whole = coarser.one_missing
    whole = whole if counted.all() else whole[counted]
    last = np.zeros(finer.size, dtype=whole.dtype)
    last[fine] = whole
    return len(np.unique(fine[last[fine] != whole]))


def _advice(finer: Column, coarser: Column) -> str:
    name, whole = finer.variable.name, coarser.variable.name
    counted = (finer.values < finer.valid) & (coarser.values < coarser.valid)
    if not _in_two_areas(coarser, finer, counted):
        return f"It is the other way round: level 1 is the coarsest, so {name!r} comes before {whole!r}."
    return (
        f"If the codes of {name!r} start anew in each {whole!r}, join the two into one code; otherwise correct these "
        f"records, or take the level away from one of the columns."
    )
