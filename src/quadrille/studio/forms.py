"""Forms made from the schema of a method, and job files made from forms: what a method takes is said in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import tomli_w

from quadrille.errors import Place
from quadrille.studio.store import toml

FRONT = frozenset(
    {"swap", "keep", "rate", "pairs", "records", "targets", "chance", "epsilon", "window", "correlation", "risk"}
    | {"similar", "k", "within", "same", "different", "area", "price", "coin", "boundary", "flag", "curve", "effort"}
)
"""The parameters of any method that are asked for at once; all others stand under "More"."""
SETS = ("singles", "pairs", "singles and pairs")
"""Words of a job file for many sets of swap variables."""
_ASIDE = frozenset({"method", "seed", "version"})
_NO_SCHEMA: dict[str, Any] = {"properties": {}}
_LIST_OF_LINES = frozenset({"rules", "column sets"})
MOST_BOXES = 60
"""With more columns than this, names are typed."""


@dataclass(frozen=True)
class Field:
    """A parameter as a form asks for it; `kind` is that of the schema, `widget` how it is asked."""

    name: str
    kind: str
    widget: str
    help: str
    unit: str
    required: bool
    default: object
    choices: tuple[str, ...] = ()
    value: str = ""
    chosen: tuple[str, ...] = ()
    mode: str = ""

    @property
    def label(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ").capitalize()

    @property
    def usual(self) -> str:
        """The default in words; "" where there is none."""
        if self.required or self.default in (None, [], ""):
            return ""
        return written(self.default)

    @property
    def touched(self) -> bool:
        """Whether something was filled in."""
        return bool(self.value or self.chosen or self.mode)


@dataclass(frozen=True)
class GridForm:
    """One [[grid]] of a job: a method, its fields, and what the form has no field for, as TOML."""

    number: int
    method: str
    front: tuple[Field, ...]
    more: tuple[Field, ...]
    seeds: str
    rest: str = ""

    @property
    def opened(self) -> bool:
        """Whether a field under "More" was filled in."""
        return bool(self.rest) or any(each.touched for each in self.more)


@dataclass(frozen=True)
class Faults:
    """What is wrong with a form: beside each field, and about the whole."""

    beside: dict[str, str] = field(default_factory=dict[str, str])
    whole: str = ""


def written(value: object) -> str:
    """Write a value as a form shows it: lists with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        listed = cast("Sequence[object]", value)
        return ", ".join(
            "*".join(map(str, cast("list[object]", each))) if isinstance(each, list) else written(each)
            for each in listed
        )
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value)


def fields_of(schema: Mapping[str, Any], columns: Sequence[str], grid: Mapping[str, object]) -> list[Field]:
    """Return the fields of a method with the values of a grid; columns are offered by name."""
    required = set(schema.get("required", ()))
    made: list[Field] = []
    for name, entry in cast("dict[str, dict[str, Any]]", schema["properties"]).items():
        if name in _ASIDE or name == "linked":
            continue
        kind = str(entry.get("x-kind", "value"))
        asked = Field(
            name,
            kind,
            _widget(kind, name, columns),
            str(entry.get("description", "")),
            str(entry.get("x-unit", "")),
            name in required,
            entry.get("default"),
            _choices(kind, entry, columns),
        )
        made.append(_filled(asked, grid.get(name), present=name in grid))
    return made


def _widget(kind: str, name: str, columns: Sequence[str]) -> str:
    if kind == "columns" and len(columns) <= MOST_BOXES:
        return "sets" if name == "swap" else "boxes"
    if kind in _LIST_OF_LINES:
        return "lines"
    return {"word": "select", "flag": "flag", "column": "column"}.get(kind, "text")


def _choices(kind: str, entry: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    if kind in ("columns", "column"):
        return tuple(columns)
    return tuple(map(str, entry.get("enum", ())))


def _filled(asked: Field, value: object, *, present: bool) -> Field:
    from dataclasses import replace

    if not present:
        return asked
    if asked.widget == "sets":
        if isinstance(value, str):
            return replace(asked, mode=value) if value in SETS else replace(asked, mode="together", chosen=(value,))
        listed = cast("list[Any]", value) if isinstance(value, list) else []
        if all(isinstance(each, str) for each in listed):
            return replace(asked, mode="together" if listed else "", chosen=tuple(listed))
        lines = "\n".join(written(each) for each in listed)
        return replace(asked, mode="lines", value=lines)
    if asked.widget == "boxes":
        listed = cast("list[Any]", value) if isinstance(value, list) else [value]
        if all(isinstance(each, str) for each in listed):
            return replace(asked, chosen=tuple(listed))
        return replace(asked, widget="lines", value="\n".join(written(each) for each in listed))
    if asked.widget == "lines":
        listed = cast("list[Any]", value) if isinstance(value, list) else [value]
        return replace(asked, value="\n".join(written(each) for each in listed))
    return replace(asked, value=written(value))


def value_of(asked: Field, given: Sequence[str], mode: str, lines: str) -> object:
    """Return what a field says as a job file has it; None when it was left alone.

    A text that is no number stays a text: the method itself says what is wrong with it.
    """
    texts = [text.strip() for text in given if text.strip()]
    if asked.widget == "sets":
        if mode in SETS:
            return mode
        if mode == "lines":
            return [_names(line) for line in lines.splitlines() if line.strip()] or None
        return list(dict.fromkeys(texts)) or None
    if asked.widget == "boxes":
        return list(dict.fromkeys(texts)) or None
    if not texts:
        return None
    text = texts[0]
    if asked.widget == "lines":
        rows = [line.strip() for line in text.splitlines() if line.strip()]
        return [_names(row) for row in rows] if asked.kind == "columns" else rows
    if asked.kind == "columns":
        return _names(text)
    if asked.widget == "flag":
        return {"yes": True, "no": False}.get(text)
    if asked.kind in ("share", "number", "count", "word or count"):
        numbers = [_number(part) for part in text.split(",") if part.strip()]
        return numbers[0] if len(numbers) == 1 else numbers
    if asked.kind in ("weights", "links"):
        return _inline(text)
    if asked.kind == "kept tables":
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return parts[0] if len(parts) == 1 else parts
    return text


def _names(line: str) -> list[str]:
    return [name.strip() for name in re.split(r"[,*+]", line) if name.strip()]


def _number(text: str) -> object:
    text = text.strip()
    percent = text.endswith("%")
    bare = text.removesuffix("%").strip()
    try:
        number = float(bare) / 100 if percent else int(bare) if re.fullmatch(r"[+-]?\d+", bare) else float(bare)
    except ValueError:
        return text
    return float(f"{number:.15g}") if percent else number


def _inline(text: str) -> object:
    try:
        return toml(f"value = {{{text.strip('{} ')}}}")["value"]
    except ValueError:
        return text


def grid_form(
    number: int, grid: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]], columns: Sequence[str]
) -> GridForm:
    """Return the form of one [[grid]]."""
    method = str(grid.get("method", "RandomSwap"))
    schema = schemas.get(method, _NO_SCHEMA)
    known = fields_of(schema, columns, grid)
    names = {each.name for each in known} | {"method", "seeds"}
    rest = {key: value for key, value in grid.items() if key not in names}
    front = tuple(each for each in known if each.required or each.name in FRONT)
    more = tuple(each for each in known if each not in front)
    return GridForm(
        number, method, front, more, written(grid.get("seeds", "")), tomli_w.dumps(rest).strip() if rest else ""
    )


def grid_of(
    number: int, sent: Mapping[str, Sequence[str]], schemas: Mapping[str, Mapping[str, Any]], columns: Sequence[str]
) -> tuple[dict[str, object], str]:
    """Return the [[grid]] that a form was filled with, and what is wrong with its lines of TOML."""

    def one(name: str) -> str:
        return next(iter(sent.get(f"g{number}.{name}", ())), "").strip()

    method = one("method")
    made: dict[str, object] = {"method": method}
    before = one("was") or method
    kinds = {each.name: each.kind for each in fields_of(schemas.get(method, _NO_SCHEMA), columns, {})}
    for asked in fields_of(
        schemas.get(before, _NO_SCHEMA), columns, {}
    ):  # of a method that was changed the common ones stay
        given = sent.get(f"g{number}.{asked.name}", ())
        value = value_of(asked, given, one(f"{asked.name}.mode"), one(f"{asked.name}.lines"))
        if value is not None and kinds.get(asked.name) == asked.kind:
            made[asked.name] = value
    if seeds := one("seeds"):
        made["seeds"] = _number(seeds)
    fault = ""
    if rest := one("rest"):
        try:
            made |= toml(rest)
        except ValueError as error:
            fault = f"These lines are no TOML: {error}. Write them as in a job file, such as curve = true."
    return made, fault


def gathered(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the fields of a form with all their values."""
    made: dict[str, list[str]] = {}
    for name, value in pairs:
        made.setdefault(name, []).append(value)
    return made


def grid_numbers(sent: Mapping[str, Sequence[str]]) -> list[int]:
    """Return the numbers of the grids that a form has, in order."""
    found = (re.fullmatch(r"g(\d+)\.method", name) for name in sent)
    return sorted(int(match[1]) for match in found if match)


def faults(message: str, place: Place | None) -> Faults:
    """Put what is wrong with a job file beside the field that it is about, in its own words.

    >>> from quadrille.errors import Place
    >>> from quadrille.studio.forms import faults
    >>> place = Place("job.toml", "grid", 2, "rate", "must be a number in (0, 1]. Got 3.")
    >>> faults("job.toml, [grid 2] rate: must be a number in (0, 1]. Got 3.", place).beside
    {'g1.rate': 'must be a number in (0, 1]. Got 3.'}
    """
    if place is None or place.section not in ("data", "search", "grid"):
        return Faults(whole=message)
    if not place.key:
        return Faults(whole=place.text)
    beside = f"g{max(place.nth, 1) - 1}.{place.key}" if place.section == "grid" else place.key
    return Faults({beside: place.text})


def document(text: str | None) -> dict[str, Any]:
    """Return a job file as a document; an empty one where it cannot be read."""
    try:
        return toml(text or "")
    except ValueError:
        return {}


def grids_of(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the [[grid]] tables of a job."""
    found: Any = job.get("grid", [])
    listed = cast("list[Any]", found if isinstance(found, list) else [found])
    return [each for each in listed if isinstance(each, dict)]
