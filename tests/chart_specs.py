"""Reading what a chart is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Spec = dict[str, Any]


def layers(spec: Spec) -> Iterator[Spec]:
    """Return the single layers of a chart, those of its panels too."""
    parts = [part for key in ("layer", "hconcat", "vconcat") for part in spec.get(key, [])]
    if not parts:
        yield spec
    for part in parts:
        yield from layers(part)


def panels(spec: Spec) -> list[Spec]:
    """Return the panels of a chart, row by row."""
    return [panel for row in spec["vconcat"] for panel in row.get("hconcat", [row])]
