"""What each column means: its kind, its categories in order, its missing codes, its role. TOML in and out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args

from quadrille.errors import InputError, bad_parameter, unknown_name

Kind = Literal["nominal", "ordinal", "numeric"]
Role = Literal["id", "weight", "stratum", "unit", "geography", "key", "outcome"]
Value = str | int | float | bool

KINDS: tuple[str, ...] = get_args(Kind)
ROLES: tuple[str, ...] = get_args(Role)
_LISTS = ("categories", "labels", "missing")
_NOT_KEYS = frozenset({"id", "weight", "stratum", "unit", "outcome"})


@dataclass(frozen=True)
class Variable:
    """One column: `categories` are the values in order, `labels` their names, `missing` the missing codes.

    Missing codes are values of their own and come after the categories; an empty field comes last. `ordered` is False
    for categories that were found as text and put in alphabetical order, which means nothing; a codebook that lists
    categories declares their order.
    """

    name: str
    kind: Kind = "nominal"
    categories: tuple[Value, ...] = ()
    labels: tuple[str, ...] = ()
    missing: tuple[Value, ...] = ()
    role: Role | None = None
    level: int | None = None
    ordered: bool = field(default=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = f"codebook column {self.name!r}"
        if self.kind not in KINDS:
            raise bad_parameter(where, "kind", f"one of {', '.join(KINDS)}", self.kind)
        if self.role is not None and self.role not in ROLES:
            raise bad_parameter(where, "role", f"one of {', '.join(ROLES)}", self.role)
        kinds = set(map(type, self.values))
        if str in kinds and len(kinds) > 1:
            raise InputError(f"In {where} categories mix text and numbers. Write all of them alike.")
        distinct = set(map(_identity, self.values)) if bool in kinds else set(self.values)
        if len(distinct) != len(self.values):
            raise InputError(f"In {where} a category or missing code is listed twice. List each once.")
        if self.labels and len(self.labels) != len(self.categories):
            raise InputError(
                f"In {where} there are {len(self.labels)} labels for {len(self.categories)} categories. "
                "Give one label per category, in the same order."
            )

    @property
    def coded(self) -> bool:
        """Whether values are categories rather than numbers."""
        return self.kind != "numeric"

    @property
    def values(self) -> tuple[Value, ...]:
        """Return the categories, then the missing codes: position is code."""
        return self.categories + self.missing


def _identity(value: Value) -> tuple[str, Value]:
    return ("bool" if isinstance(value, bool) else "", value)


@dataclass(frozen=True)
class Codebook:
    """The variables of a file, in file order."""

    variables: tuple[Variable, ...] = ()

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"The column name {twice!r} occurs more than once. Give each column its own name.")

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
    def keys(self) -> tuple[str, ...]:
        """The key variables: those with role `key`, else every categorical variable that may serve as one."""
        declared = tuple(v.name for v in self.variables if v.role == "key")
        return declared or tuple(v.name for v in self.variables if v.coded and v.role not in _NOT_KEYS)

    def to_toml(self) -> str:
        """Write the codebook as TOML text, defaults left out."""
        import tomli_w

        return tomli_w.dumps({"columns": {v.name: _plain(v) for v in self.variables}})

    @classmethod
    def from_toml(cls, text: str, *, where: str = "codebook") -> Codebook:
        """Read a codebook from TOML text."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{where} is not valid TOML: {error}.") from None
        columns = document.get("columns")
        if not isinstance(columns, dict) or set(document) != {"columns"}:
            raise InputError(f"{where} must hold one table per column, headed [columns.NAME], and nothing else.")
        tables = cast("dict[str, object]", columns)
        return cls(tuple(_variable(name, table, where) for name, table in tables.items()))

    @classmethod
    def read(cls, path: str | Path) -> Codebook:
        """Read a codebook from a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise InputError(f"Cannot read the codebook {str(path)!r}: {reason}. Check the path.") from None
        return cls.from_toml(text, where=f"Codebook {str(path)!r}")


def _plain(variable: Variable) -> dict[str, object]:
    table: dict[str, object] = {"kind": variable.kind}
    for name in ("role", "level", "categories", "labels", "missing"):
        value: object = getattr(variable, name)
        if value is not None and value != ():
            table[name] = list(cast("tuple[Value, ...]", value)) if name in _LISTS else value
    return table


def _variable(name: str, table: object, where: str) -> Variable:
    place = f"{where}, [columns.{name}]"
    if not isinstance(table, Mapping):
        raise InputError(f"{place}: must be a table with kind, categories, role and so on.")
    settings = cast("Mapping[str, object]", table)
    known = [each.name for each in fields(Variable) if each.name not in ("name", "ordered")]
    for key, value in settings.items():
        if key not in known:
            raise unknown_name("setting", key, known, where=place)
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(v, Value) for v in cast("list[object]", value)):
                raise InputError(f"{place}: '{key}' must be a list of texts or numbers.")
        elif key == "level":
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(f"{place}: 'level' must be a whole number.")
        elif not isinstance(value, str):
            raise InputError(f"{place}: '{key}' must be a text.")
    listed: dict[str, Any] = {}
    for key, value in settings.items():
        listed[key] = tuple(cast("list[Value]", value)) if key in _LISTS else value
    return Variable(name, **listed)
