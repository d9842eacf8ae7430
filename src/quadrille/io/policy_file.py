"""Reading a policy file: TOML, checked before anything else is done.

Every section and every rule can be left out. A fault is told with its place, as in
"policy.toml, [measures] hellinger most: must be a number in [0, 1]. Got 5."
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, cast

from quadrille import swap
from quadrille.errors import InputError, QuadrilleError, unknown_name
from quadrille.io.policy import Limit, Policy, Required
from quadrille.measure_base import Call, Measure
from quadrille.study.axes import kind_of
from quadrille.study.job.table import Table, frozen
from quadrille.study.toml import know_sections, read_toml

FORMATS = ("csv", "parquet", "sav", "dta", "xpt")
"""What a release can be written as; a test keeps this equal to what it is written as."""

CELL_MEASURES = ("small_cells", "exposed", "confidence")
_SECTIONS = ("policy", "cells", "swap", "release", "measures")
_LEAST_CELL = 2
_MOST_CELL = 1_000_000
_LARGEST = 1e300


def read_policy(path: Path) -> Policy:
    """Read a policy file; the first fault is told with its place."""
    document = read_toml(path, "the policy")
    if not path.is_file():  # a pipe is read once, and its hash would be that of nothing
        raise InputError(f"The policy {str(path)!r} is not a file that can be read again. Give the path of a file.")
    know_sections(document, _SECTIONS, str(path))
    if not any(document.get(name) for name in _SECTIONS[1:]):
        raise InputError(f'{path}: the policy has no rule. Write one, such as [swap] with seeds = "secret".')
    head, cells, swapped, released, measures = (_section(path, document, name) for name in _SECTIONS)
    head.know(("name", "margin"))
    margin = _margin(head) or 0.0
    return Policy(
        path=path,
        sha256=sha256(path.read_bytes()).hexdigest(),
        name=head.text("name") or path.name,
        measures=(*_cells(cells, margin), *_measures(measures, margin)),
        **_swap_rules(swapped),
        **_release_rules(released),
    )


def _section(path: Path, document: Mapping[str, object], name: str) -> Table:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{path}: {name} must be a section, headed [{name}].")
    values = cast("dict[str, object]", found)
    return Table(f"{path}, [{name}]", {key: frozen(value) for key, value in values.items()})


def _swap_rules(table: Table) -> dict[str, Any]:
    table.know(("methods", "rate", "changed", "never", "seeds"))
    methods = table.texts("methods", "methods", least=1 if "methods" in table.values else 0)
    for index, name in enumerate(methods):
        if name not in swap.Recipe.methods:
            table.refuse(str(unknown_name("method", name, swap.Recipe.methods)), "methods", index)
    return {
        "methods": methods,
        "rate": _rate(table, "rate"),
        "changed": _rate(table, "changed"),
        "never_swapped": table.texts("never", "column names"),
        "secret_seeds": _word(table, "seeds", ("any", "secret")) == "secret",
    }


def _release_rules(table: Table) -> dict[str, Any]:
    table.know(("never", "shuffle", "publish_f", "formats", "warnings"))
    formats = table.texts("formats", "formats", least=1 if "formats" in table.values else 0)
    for index, name in enumerate(formats):
        if name not in FORMATS:
            table.refuse(str(unknown_name("format", name, FORMATS)), "formats", index)
    return {
        "never_released": table.texts("never", "column names"),
        "shuffled": _flag(table, "shuffle", absent=False),
        "publish_f": _flag(table, "publish_f", absent=True),
        "formats": formats,
        "warnings": _word(table, "warnings", ("review", "fail", "pass")),
    }


def _cells(table: Table, margin: float) -> list[Required]:
    """Return the limits on small cells, for every protected table."""
    table.know(("smallest", "tables", *CELL_MEASURES))
    if not table.values:
        return []
    table.require("smallest", "3")
    smallest = table.number("smallest", _MOST_CELL) or 0
    if smallest < _LEAST_CELL:
        table.demand(f"{_LEAST_CELL} or more: cells of fewer records are small", smallest, "smallest")
    limited = [name for name in CELL_MEASURES if name in table.values]
    if not limited:
        table.refuse(f"gives no limit. Add one or more of {', '.join(CELL_MEASURES)}, as in exposed = {{most = 0.02}}.")
    found: list[Required] = []
    for index, margin_of in enumerate(table.texts("tables", 'tables, like "Age*Sex*Region"') or ("",)):
        for name in limited:
            address = f"{name}({margin_of}, n={smallest})" if margin_of else f"{name}(n={smallest})"
            kind = _known(table, address, "tables" if margin_of else name, index if margin_of else None)
            found.append(Required("cells", address, _limit(table, name, kind, margin)))
    return found


def _measures(table: Table, margin: float) -> list[Required]:
    return [
        Required("measures", address, _limit(table, address, _known(table, address, address), margin))
        for address in table.values
    ]


def _known(table: Table, address: str, key: str, index: int | None = None) -> Measure:
    """Return the measure of an address; one that is not understood is refused where it stands."""
    try:
        return kind_of(address).bound(Call.parse(address))
    except QuadrilleError as error:
        return table.refuse(str(error), key, index)


def _limit(table: Table, key: str, kind: Measure, margin: float) -> Limit:
    """Read the limits of a measure; of a signed one its size is limited."""
    low, high = kind.range
    if kind.direction == "nearer 0":
        low, high = 0.0, max(abs(low), abs(high))
    return _between(table, key, low, high, margin)


def _rate(table: Table, key: str) -> Limit | None:
    return _between(table, key, 0.0, 1.0, None) if key in table.values else None


def _between(table: Table, key: str, low: float, high: float, margin: float | None) -> Limit:
    """Read {least = ..., most = ...}, within what the value can be; margin None: a margin makes no sense here."""
    written = table.values[key]
    names = ("least", "most") if margin is None else ("least", "most", "margin")
    if not isinstance(written, dict):
        table.demand("a table of limits, like {most = 0.05}", written, key)
    given = Table(f"{table.place} {key}", cast("dict[str, object]", written))
    given.know(names)
    least, most = (_number(given, name, low, high) for name in ("least", "most"))
    if least is not None and most is not None and least > most:
        given.refuse(f"'least' is above 'most'. Got {least:g} and {most:g}.")
    if margin is None and least is None and most is None:
        given.refuse("gives no limit. Add 'least' or 'most'.")
    own = None if margin is None else _margin(given)
    return Limit(least, most, margin or 0.0 if own is None else own)


def _number(table: Table, key: str, low: float, high: float) -> float | None:
    value = table.values.get(key)
    if value is None:
        return None
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and low <= value <= high
        and abs(value) <= _LARGEST
    ):
        return float(value)
    return table.demand("a number" + _range(low, high), value, key)


def _range(low: float, high: float) -> str:
    if isfinite(low) and isfinite(high):
        return f" in [{low:g}, {high:g}]"
    return f" of {low:g} or more" if isfinite(low) else f" of {high:g} or less" if isfinite(high) else ""


def _margin(table: Table) -> float | None:
    value = _number(table, "margin", 0.0, 1.0)
    if value == 1.0:
        table.demand("a number in [0, 1)", value, "margin")
    return value


def _flag(table: Table, key: str, *, absent: bool) -> bool:
    value = table.values.get(key, absent)
    return value if isinstance(value, bool) else table.demand("true or false", value, key)


def _word(table: Table, key: str, words: tuple[str, ...]) -> str:
    """Return one of a few words; the first when it is absent."""
    value = table.values.get(key, words[0])
    if isinstance(value, str) and value in words:
        return value
    return table.demand("one of " + ", ".join(f'"{word}"' for word in words), value, key)
