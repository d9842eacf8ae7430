"""The section on designed swaps: their curve beside random ones, the bound, cells treated and left, the n-rule."""

from __future__ import annotations

from quadrille import chart
from quadrille.data import tidy
from quadrille.measure import measure_of
from quadrille.present import words
from quadrille.present.designed import LIMITS, NEAR_HEAD, SIZE_HEAD, Diagnosis, diagnosis_of
from quadrille.report.input import ReportInput, Row
from quadrille.report.tables import FullTable
from quadrille.score.evaluator import score
from quadrille.study.designed import cell_costs, undoing_plan
from quadrille.swap.designed import DesignedSwap

_MOST_ROWS = 25


def has_designed(scope: ReportInput) -> bool:
    """Whether any candidate of the study is a designed swap."""
    return any(row["method"] == words.DESIGNED for row in scope.rows)


def designed(scope: ReportInput) -> Row:
    """Return the curve with its bound, the diagnosis of the chosen candidate, and the warning on the n-rule."""
    found = diagnosis_of(scope.chosen.account)
    charts = {} if found is None else _charts(scope, found)
    return {
        "charts": charts,
        "curve": _curve(scope),
        "gained": _gained(scope),
        "diagnosis": None if found is None else _told(found),
        "warning": _fooled(scope),
        "limits": list(LIMITS),
    }


def _curve(scope: ReportInput) -> Row:
    """Return the designed candidates that no other beats, with the least loss at their exposure and the gap."""
    floor = scope.ahead.floor
    bound = None if floor is None else floor.bound
    exposed = _exposed(scope)
    columns = list(dict.fromkeys(each for each in (scope.axes[0], exposed, scope.axes[1]) if each is not None))
    best = [row for row, _, _, on in scope.scored if on and row["method"] == words.DESIGNED]
    best.sort(key=lambda row: row[scope.axes[1]])
    kept = {place * (len(best) - 1) // (_MOST_ROWS - 1) for place in range(_MOST_ROWS)}
    rows: list[Row] = []
    for row in (each for place, each in enumerate(best) if len(best) <= _MOST_ROWS or place in kept):
        at = None if exposed is None or bound is None else words.finite(row[exposed])
        gap = None if floor is None or at is None else floor.gap(at, row[scope.axes[1]])
        least = None if bound is None or at is None else float(bound.at(at))
        rows.append(
            {
                "number": row["id"],
                "design": row["name"],
                "values": [words.score(address, words.finite(row[address])) for address in columns],
                "least": "–" if least is None else words.number(least),
                "gap": "–" if gap is None else f"{100 * gap:.1f} %",
                "chosen": row["id"] == scope.chosen.number,
            }
        )
    why = "" if bound is not None else floor.why_none if floor is not None else "no bound was asked for"
    return {"columns": columns, "rows": rows, "bounded": bound is not None, "why_none": why}


def _exposed(scope: ReportInput) -> str | None:
    """Return the measure of exposure: the axis, or the first one of the study."""
    known = [each for each in (scope.axes[0], *scope.study.measures) if measure_of(each).name == "exposed"]
    return known[0] if known else None


def _gained(scope: ReportInput) -> str:
    """Say how many other candidates lie above the curve of designed swaps."""
    curve = [(x, y) for row, x, y, _ in scope.scored if row["method"] == words.DESIGNED]
    others = [(x, y) for row, x, y, _ in scope.scored if row["method"] != words.DESIGNED]
    if not others or not curve:
        return ""
    beaten = sum(any(a <= x and b <= y and (a < x or b < y) for a, b in curve) for x, y in others)
    return (
        f"Of the {words.count(len(others))} other candidates of the study {words.count(beaten)} are beaten by a "
        f"designed one, on {scope.axes[0]} and {scope.axes[1]}."
    )


def _charts(scope: ReportInput, found: Diagnosis) -> dict[str, chart.Figure]:
    """Draw the small cells before and after, and what protecting a record costs."""
    sizes = FullTable.of(scope.data, scope.released).sizes(found.n + 3)
    charts: dict[str, chart.Figure] = {"Designed small cells": chart.small_cells(tidy(sizes))}
    recipe = scope.study.recipe(scope.chosen.number)
    if isinstance(recipe, DesignedSwap):
        costs = cell_costs(scope.data, recipe)
        if costs["cost"].is_not_null().any():
            loss = "hellinger²" if recipe.loss == "hellinger" else "loss"
            charts["Cost of protecting a record"] = chart.treatment_costs(costs, loss=loss)
    return charts


def _told(found: Diagnosis) -> Row:
    return {
        "treated": found.treated,
        "exposed": found.exposed,
        "near": found.near,
        "n": found.n,
        "left": [{"reason": reason, "cells": count} for reason, count in found.left],
        "size_head": SIZE_HEAD,
        "by_size": found.by_size,
        "near_head": NEAR_HEAD,
        "just_large": found.just_large,
    }


def _fooled(scope: ReportInput) -> Row:
    """Score a plan that fools the n-rule on these data beside the chosen candidate and the file as it is."""
    small, exposed, confidence = scope.together
    wanted = [small, exposed, "hellinger"]
    undone = score(scope.data, undoing_plan(scope.data, scope.n), wanted)
    names = ("the file as it is", "swaps that undo one another", f"No. {scope.chosen.number}, chosen")
    scored = (scope.before, undone, scope.chosen.scores)
    rows = [
        {"name": name, "values": [words.score(address, each[address]) for address in wanted]}
        for name, each in zip(names, scored, strict=True)
    ]
    sure = words.score(confidence, scope.chosen.scores[confidence])
    return {"columns": wanted, "rows": rows, "confidence": sure}
