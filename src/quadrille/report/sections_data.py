"""Sections on the data: their profile, and the tables before and after the swap."""

from __future__ import annotations

import numpy as np

from quadrille import chart
from quadrille.data import Column, Cross, Data, tidy
from quadrille.present import words
from quadrille.report.input import TWO_WAY, ReportInput, Row
from quadrille.report.tables import FullTable, one_way, two_way
from quadrille.text import large

_SIZES = 4
_MOST_CATEGORIES = 15
_MOST_TABLES = 3
_HEAT = (TWO_WAY, "cramers_v_change")


def profile(scope: ReportInput) -> Row:
    """Describe the file: records, weight, columns, cells."""
    data = scope.data
    cross = Cross.of(data, data.keys)
    _, counts = np.unique(cross.cells(data), return_counts=True)
    total = None if data.ticks is None else int(data.ticks.values.sum()) / data.ticks.per_unit
    return {
        "records": words.count(data.n),
        "weight": data.weight,
        "weight_total": words.count(total),
        "columns": [_column(data[name], data) for name in data.columns],
        "key_variables": words.listed(list(data.keys)),
        "possible": large(cross.possible),
        "occupied": words.count(len(counts)),
        "ones": words.count((counts == 1).sum()),
        "twos": words.count((counts == 2).sum()),
    }


def _column(column: Column, data: Data) -> Row:
    variable = column.variable
    absent = column.values >= column.valid if variable.coded else np.isnan(column.values)
    return {
        "name": variable.name,
        "kind": variable.kind,
        "role": ("weight" if variable.name == data.weight else variable.role) or "",
        "key": variable.name in data.keys,
        "categories": words.count(len(variable.categories)) if variable.coded else "",
        "missing": words.share(float(absent.mean())),
    }


def tables(scope: ReportInput) -> Row:
    """Return the tables of the chosen candidate before and after, and what became of the small cells."""
    data, released, keys = scope.data, scope.released, scope.data.keys
    full = FullTable.of(data, released)
    taking_part = np.zeros(data.n, dtype=np.bool_)
    taking_part[scope.chosen.plan.rows] = True
    charts = _heat(scope)
    heated = list(charts)
    if full.f.min() <= max(_SIZES, scope.n - 1) or full.g.min() <= max(_SIZES, scope.n - 1):
        charts["Small cells"] = chart.small_cells(tidy(full.sizes(max(_SIZES, scope.n - 1))))
    charts["Who was swapped"] = chart.who_was_swapped(tidy(full.swapped(taking_part)))
    return {
        "charts": charts,
        "heated": heated,
        "one_way": [one_way(data, released, name) for name in keys],
        "weighted": data.ticks is not None,
        "two_way": [two_way(data, released, pair, value) for pair, value in _most_changed(scope)],
        "categories": categories(scope, full),
    }


def _heat(scope: ReportInput) -> dict[str, chart.Figure]:
    """Draw the measures that have a value for every pair of variables."""
    charts: dict[str, chart.Figure] = {}
    for address in _HEAT if len(scope.data.keys) > 1 else ():
        parts = scope.chosen.scores.results[address][1].parts
        rows = [{"first": pair[0], "second": pair[1], "value": value} for pair, value in parts.items()]
        charts[f"Heatmap {address}"] = chart.distortion_heatmap(tidy(rows), measure=address)
    return charts


def _most_changed(scope: ReportInput) -> list[tuple[tuple[str, str], float]]:
    """Return the pairs of variables whose tables change most."""
    if len(scope.data.keys) < 2:
        return []
    parts = scope.chosen.scores.results[TWO_WAY][1].parts
    changed = [((pair[0], pair[1]), value) for pair, value in parts.items() if value]
    return sorted(changed, key=lambda each: -each[1])[:_MOST_TABLES]


def categories(scope: ReportInput, full: FullTable) -> list[Row]:
    """Return the categories whose records are most at risk after the swap, by the n-rule and by exposed."""
    small, n = scope.together[0], scope.n
    was, now = (scores.results[small][1].explain for scores in (scope.before, scope.chosen.scores))
    if was is None or now is None:
        return []
    rows: list[Row] = []
    detail = {
        (row["variable"], row["category"]): (old, row) for old, row in zip(was()[n - 1 :], now()[n - 1 :], strict=True)
    }
    for name in scope.data.keys:
        column = scope.data[name]
        true_was, true_is = full.genuine_by_category(scope.data, scope.released, name, n)
        records = np.bincount(column.values, minlength=column.size)
        for code, label in enumerate(column.labels):
            if (name, label) in detail and records[code]:
                old, new = detail[name, label]
                rows.append(_category(old, new, int(true_was[code]), int(true_is[code]), int(records[code])))
    return sorted(rows, key=lambda row: -row["order"])[:_MOST_CATEGORIES]


def _category(old: Row, new: Row, true_was: int, true_is: int, records: int) -> Row:
    return {
        "variable": new["variable"],
        "category": new["category"],
        "records": words.count(records),
        "rule_before": words.share(old["risk"]),
        "rule_after": words.share(new["risk"]),
        "at_risk": words.count(new["at_risk"]),
        "exposed_before": words.share(true_was / records),
        "exposed_after": words.share(true_is / records),
        "genuine": words.count(true_is),
        "order": true_is / records,
    }
