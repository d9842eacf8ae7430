"""Reading a policy file: TOML, checked before anything else is done.

Every section and every rule can be left out. A fault is told with its place, as in
"policy.toml, [measures] hellinger most: must be a number in [0, 1]. Got 5."
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from quadrille import swap
from quadrille.errors import InputError, QuadrilleError, unknown_name
from quadrille.io.policy import Policy, Required
from quadrille.io.policy_limits import limit_of, margin_of, rate_of
from quadrille.measure_base import Call, Measure
from quadrille.study.axes import kind_of
from quadrille.study.job.table import Table, frozen
from quadrille.study.toml import know_sections, parse_toml, read_bytes

FORMATS = ("csv", "parquet", "sav", "dta", "xpt")
"""What a release can be written as; a test keeps this equal to what it is written as."""

CELL_MEASURES = ("small_cells", "exposed", "confidence")
_SECTIONS = ("policy", "cells", "swap", "release", "measures")
_WHAT = "the policy"
_LEAST_CELL = 2
_MOST_CELL = 1_000_000


def read_policy(path: Path) -> Policy:
    """Read a policy file; the first fault is told with its place."""
    raw = read_bytes(path, _WHAT)  # once, so that the hash is that of the rules
    document = parse_toml(raw, path, _WHAT)
    know_sections(document, _SECTIONS, str(path))
    if not any(document.get(name) for name in _SECTIONS[1:]):
        raise InputError(f'{path}: the policy has no rule. Write one, such as [swap] with seeds = "secret".')
    head, cells, swapped, released, measures = (_section(path, document, name) for name in _SECTIONS)
    head.know(("name", "margin"))
    margin = margin_of(head) or 0.0
    return Policy(
        path=path.absolute(),
        sha256=sha256(raw).hexdigest(),
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
    methods = _some(table, "methods", "methods")
    for index, name in enumerate(methods):
        if name not in swap.Recipe.methods:
            table.refuse(str(unknown_name("method", name, swap.Recipe.methods)), "methods", index)
    return {
        "methods": methods,
        "rate": rate_of(table, "rate"),
        "changed": rate_of(table, "changed"),
        "never_swapped": _some(table, "never", "column names"),
        "secret_seeds": _word(table, "seeds", ("any", "secret")) == "secret",
    }


def _release_rules(table: Table) -> dict[str, Any]:
    table.know(("never", "shuffle", "publish_f", "formats", "warnings"))
    formats = _some(table, "formats", "formats")
    for index, name in enumerate(formats):
        if name not in FORMATS:
            table.refuse(str(unknown_name("format", name, FORMATS)), "formats", index)
    return {
        "never_released": _some(table, "never", "column names"),
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
    for index, variables in enumerate(_some(table, "tables", 'tables, like "Age*Sex*Region"') or ("",)):
        for name in limited:
            address = f"{name}({variables}, n={smallest})" if variables else f"{name}(n={smallest})"
            kind = _known(table, address, "tables" if variables else name, index if variables else None)
            if variables:
                _only_variables(table, address, index)
            found.append(Required("cells", address, limit_of(table, name, kind, margin)))
    return found


def _only_variables(table: Table, address: str, index: int) -> None:
    """Refuse a table that brings options of its own, such as another n."""
    call = Call.parse(address)
    if call.where is not None or call.margin is None or len(call.options) > 1:
        table.refuse(
            'must be variables and nothing else, like "Age*Sex*Region". Write other options under [measures].',
            "tables",
            index,
        )


def _measures(table: Table, margin: float) -> list[Required]:
    return [
        Required("measures", address, limit_of(table, address, _known(table, address, address), margin))
        for address in table.values
    ]


def _known(table: Table, address: str, key: str, index: int | None = None) -> Measure:
    """Return the measure of an address; one that is not understood is refused where it stands."""
    try:
        call = Call.parse(address)
        kind = kind_of(address).bound(call)
    except QuadrilleError as error:
        return table.refuse(str(error), key, index)
    if fault := _fault(call, kind):
        return table.refuse(fault, key, index)
    return kind


def _fault(call: Call, kind: Measure) -> str:
    """Say what is wrong with an address whatever the data are."""
    margin, options = call.margin or (), [name for name, _ in call.options]
    if not all(name.strip() for name in margin):
        return "a variable has no name. Write names between the asterisks, like Age*Sex."
    if len(set(margin)) < len(margin):
        return "a variable occurs twice. Name each variable once."
    if len(set(options)) < len(options):
        return "an option is given twice. Give each once."
    if call.models and kind.layout != "models":
        return f"{kind.name} takes variables, not a model. Put a name that holds a '~' in backticks."
    if margin and kind.layout == "models":
        return f"{kind.name} needs a model, not a list of variables."
    return ""


def _some(table: Table, key: str, what: str) -> tuple[str, ...]:
    """Return a list of texts, empty where it is absent: an empty one that is written would be a rule about nothing."""
    return table.texts(key, what, least=1 if key in table.values else 0)


def _flag(table: Table, key: str, *, absent: bool) -> bool:
    value = table.values.get(key, absent)
    return value if isinstance(value, bool) else table.demand("true or false", value, key)


def _word(table: Table, key: str, words: tuple[str, ...]) -> str:
    """Return one of a few words; the first when it is absent."""
    value = table.values.get(key, words[0])
    if isinstance(value, str) and value in words:
        return value
    return table.demand("one of " + ", ".join(f'"{word}"' for word in words), value, key)
