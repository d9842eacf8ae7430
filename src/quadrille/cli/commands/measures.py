"""`quadrille measures`: every measure and its definition."""

from __future__ import annotations

from quadrille.cli import options as opt
from quadrille.cli import show


def measures(as_json: opt.Json = False) -> None:
    """List the measures and their definitions."""
    import quadrille as qd

    rows = qd.measures().to_dicts()
    if as_json:
        show.emit(rows)
        return
    for row in rows:
        show.title(str(row["name"]))
        shown = ("definition", "options", "side", "better", "range", "reference")
        show.facts([(name, str(row[name])) for name in shown if row[name]])
