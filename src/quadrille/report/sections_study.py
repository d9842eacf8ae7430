"""Sections on the search: what was tried, the frontier, the seeds, the parameters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from quadrille import chart
from quadrille.data import tidy
from quadrille.present import words
from quadrille.report.frontier_chart import draw_frontier, shown_beside
from quadrille.report.input import ReportInput, Row
from quadrille.study.frontier import non_dominated, seed_warning

_PARAMETERS = {
    "method": "method",
    "swap": "variables swapped",
    "pairs": "number of pairs",
    "rate": "share of records that take part",
    "same": "must agree within a pair",
    "different": "must differ within a pair",
    "other": "other parameters",
}
_MOST_LEVELS, _MOST_STRIPS, _MOST_REASONS = 40, 12, 15
_ALL_ROWS, _MOST_ROWS = 40, 25


def design(scope: ReportInput) -> Row:
    """Say what was searched, what became of it and why some of it could not be done."""
    rows = scope.rows
    designs = {row["design"]: row for row in rows}
    seeds = Counter(row["design"] for row in rows).values()
    failed = Counter((row["status"], row["reason"] or "") for row in rows if row["status"] in ("infeasible", "failed"))
    unknown = Counter(row["reason"] for row in rows if row["status"] == "done" and row["reason"])
    return {
        "candidates": words.count(len(rows)),
        "designs": words.count(len(designs)),
        "seeds": words.count(min(seeds)) if min(seeds) == max(seeds) else f"{min(seeds):,} to {max(seeds):,}",
        "measures": list(scope.study.header.measures),
        "then": list(scope.study.header.then),
        "status": [{"status": name, "count": words.count(n)} for name, n in scope.study.counts().items() if n],
        "parameters": _parameters(designs.values()),
        "reasons": _reasons([(f"{status}: {text}", n) for (status, text), n in failed.most_common()]),
        "undefined": _reasons(unknown.most_common()),
    }


def _reasons(found: list[tuple[str, int]]) -> Row:
    rows = [{"reason": reason, "count": words.count(n)} for reason, n in found[:_MOST_REASONS]]
    return {"rows": rows, "more": len(found) - len(rows)}


def _levels(name: str, designs: Iterable[Row]) -> list[str]:
    """Return the values that a parameter takes, in order."""
    values = {row[name] for row in designs if row[name] not in (None, "")}
    return [_level(name, value) for value in sorted(values)]


def _level(name: str, value: object) -> str:
    if isinstance(value, float | int):
        return f"{100 * value:.4g} %" if name == "rate" else f"{value:,}"
    return str(value) if value else "(none)"


def _parameters(designs: Iterable[Row]) -> list[Row]:
    designs, rows = list(designs), list[Row]()
    for name, title in _PARAMETERS.items():
        levels = _levels(name, designs)
        more = f"; and {len(levels) - _MOST_LEVELS:,} more" if len(levels) > _MOST_LEVELS else ""
        if levels:
            rows.append({"name": title, "count": len(levels), "levels": "; ".join(levels[:_MOST_LEVELS]) + more})
    return rows


def frontier(scope: ReportInput) -> Row:
    """Return the charts of the search, the frontier as a table, and what to beware of."""
    risk, loss = scope.axes
    best = sorted(((row, r, x) for row, r, x, on in scope.scored if on), key=lambda each: each[1:])
    shown = _thinned(best, scope.chosen.number)
    columns = list(dict.fromkeys(address for address in (risk, scope.companion, loss) if address is not None))
    rows = [
        {
            "number": row["id"],
            "design": row["name"],
            "values": [words.score(address, row[address]) for address in columns],
            "chosen": row["id"] == scope.chosen.number,
        }
        for row, _, _ in shown
    ]
    charts = {"Frontier": draw_frontier(scope.study, scope.axes, scope.scored, scope.chosen.number, scope.ahead)}
    repeated = max(Counter(row["design"] for row, *_ in scope.scored).values()) > 1
    if repeated:
        charts["Seed cloud"] = _seed_chart(scope)
    if effects := _effects(scope):
        charts["Parameter effects"] = chart.parameter_effects(tidy(effects))
    return {
        "charts": charts,
        "ahead": scope.ahead.told,
        "columns": columns,
        "rows": rows,
        "total": words.count(len(best)),
        "scored": words.count(len(scope.scored)),
        "thinned": len(rows) < len(best),
        "warning": seed_warning(scope.study.clouds(risk, loss)),
        "repeated": repeated,
        "alone": scope.companion is None and not any(axis.startswith("exposed") for axis in scope.axes),
    }


def _thinned(best: list[tuple[Row, float, float]], chosen: int) -> list[tuple[Row, float, float]]:
    """Return at most about 25 members of the frontier, evenly spread, with both ends and the chosen one."""
    if len(best) <= _ALL_ROWS:
        return best
    kept = {place * (len(best) - 1) // (_MOST_ROWS - 1) for place in range(_MOST_ROWS)}
    return [each for place, each in enumerate(best) if place in kept or each[0]["id"] == chosen]


def _companion(scope: ReportInput) -> str | None:
    """Return the measure of the second panel, if any candidate has a value of it."""
    return shown_beside(scope.study, scope.axes, scope.scored)


def _beside(scope: ReportInput, row: Row) -> Row:
    return {"companion": words.finite(row[scope.companion])} if scope.companion else {}


def _seed_chart(scope: ReportInput) -> chart.Figure:
    """Draw the designs over their seeds; a point is on the frontier when no other of the same seed beats it."""
    by_seed: dict[int, list[int]] = defaultdict(list)
    for place, (row, *_) in enumerate(scope.scored):
        by_seed[row["seed_no"]].append(place)
    winners: set[int] = set()
    for places in by_seed.values():
        on = non_dominated(np.array([scope.scored[place][1:3] for place in places]))
        winners.update(place for place, wins in zip(places, on.tolist(), strict=True) if wins)
    rows = [
        {"design": row["name"], "risk": x, "loss": y, "on_frontier": place in winners, **_beside(scope, row)}
        for place, (row, x, y, _) in enumerate(scope.scored)
    ]
    risk, loss = map(words.axis, scope.axes)
    return chart.seed_cloud(tidy(rows), risk=risk, loss=loss, companion=_companion(scope))


def _effects(scope: ReportInput) -> list[Row]:
    """Return one row per candidate, measure and parameter that takes several values, in the order of the values."""
    measures = [each for each in (scope.axes[0], scope.companion, scope.axes[1]) if each is not None]
    rows = [row for row, *_ in scope.scored]
    effects: list[Row] = []
    for parameter, strips in _strips(rows):
        effects += [
            {"parameter": parameter, "level": level, "measure": measure, "value": words.finite(row[measure])}
            for level, members in strips
            for measure in measures
            for row in members
        ]
    return effects


def _strips(rows: list[Row]) -> list[tuple[str, list[tuple[str, list[Row]]]]]:
    """Return the parameters that take several values, few enough to draw, each value with its candidates.

    Many sets of swap variables are told apart by the variables they include; many numbers by ranges of them.
    """
    found: list[tuple[str, list[tuple[str, list[Row]]]]] = []
    paired = all(row["pairs"] is not None for row in rows)
    for name, title in _PARAMETERS.items():
        levels = sorted({row[name] for row in rows if row[name] is not None})
        if len(levels) < 2 or (name == "rate" and paired):
            continue
        if len(levels) <= _MOST_STRIPS:
            strips = [(_level(name, level), [row for row in rows if row[name] == level]) for level in levels]
        elif name == "swap":
            strips = _by_variable(rows)
        elif name in ("pairs", "rate"):
            strips = _by_range(name, levels, rows)
        else:
            continue
        grouped = name == "swap" and len(levels) > _MOST_STRIPS
        found.append(("swap variables include" if grouped else title, strips))
    return found


def _by_variable(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    names = dict.fromkeys(name for row in rows for name in row["swap"].split(" + "))
    strips = [(name, [row for row in rows if name in row["swap"].split(" + ")]) for name in names]
    return sorted(strips, key=lambda strip: -len(strip[1]))[:_MOST_STRIPS]


def _by_range(name: str, levels: list[float], rows: list[Row]) -> list[tuple[str, list[Row]]]:
    edges = [levels[i * len(levels) // _MOST_STRIPS] for i in range(_MOST_STRIPS)]
    strips: list[tuple[str, list[Row]]] = []
    for low, high in zip(edges, [*edges[1:], None], strict=True):
        members = [row for row in rows if row[name] is not None and row[name] >= low and (not high or row[name] < high)]
        top = max(row[name] for row in members)
        label = _level(name, low) if top == low else f"{_level(name, low)} – {_level(name, top)}"
        strips.append((label, members))
    return strips
