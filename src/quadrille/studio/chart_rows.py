"""The rows that a chart shows, for the table below it: the text twin of every picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

MOST_ROWS = 200


class Rows(NamedTuple):
    """Heads and rows of a table; `left` rows were left out."""

    head: list[str]
    rows: list[list[object]]
    left: int


def rows_of(spec: Mapping[str, Any]) -> Rows | None:
    """Return the largest table of values in a Vega-Lite specification; None where it holds none."""
    tables = list(_values(spec))
    if not tables:
        return None
    found = max(tables, key=len)
    head = list(dict.fromkeys(name for row in found[:MOST_ROWS] for name in row))
    shown = [[row.get(name) for name in head] for row in found[:MOST_ROWS]]
    return Rows(head, shown, len(found) - len(shown))


def _named(rows: object) -> dict[str, object]:
    return {"values": rows}


def _values(spec: object) -> Iterator[list[dict[str, object]]]:
    if isinstance(spec, list):
        for each in cast("list[object]", spec):
            yield from _values(each)
    if not isinstance(spec, Mapping):
        return
    for name, value in cast("Mapping[str, object]", spec).items():
        listed = cast("list[object]", value) if isinstance(value, list) else []
        if name == "values" and listed and all(isinstance(row, dict) for row in listed):
            yield cast("list[dict[str, object]]", listed)
        elif name == "datasets" and isinstance(value, Mapping):
            for rows in cast("Mapping[str, object]", value).values():
                yield from _values(_named(rows))
        else:
            yield from _values(cast("object", value))
