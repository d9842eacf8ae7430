"""The sections on tables before and after the swap, with their small cells, and on what an intruder finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quadrille import chart
from quadrille.attack.attack import attack
from quadrille.attack.input import Section
from quadrille.chart.attack import attack_sheets
from quadrille.data import Cross, Data, tidy
from quadrille.delta import margins_kept
from quadrille.present import Block, Table, table
from quadrille.present.numbers import count, counted, score, share, signed
from quadrille.present.scores import exposure, published_tables, section_blocks
from quadrille.report.input import TWO_WAY, ReportInput, Row
from quadrille.score.by_area import with_margin
from quadrille.score.evaluator import score as score_plan

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_SIZES = 4
_MOST_CATEGORIES = 15
_MOST_TABLES = 3
_HEAT = (TWO_WAY, "cramers_v_change")
_MOST = 25
_MOST_CELLS = 50
_MOST_ROWS, _MOST_COLUMNS = 16, 8
_CLASSES = ((1, 1), (2, 2), (3, 9), (10, 99), (100, 999), (1000, None))


def counts(data: Data, variables: tuple[str, ...], *, weighted: bool) -> Floats:
    """Count a table of one or two variables, in weights if asked."""
    cross = Cross.of(data, variables)
    cells = cross.cells(data)
    if weighted and data.ticks is not None:
        total = np.bincount(cells, weights=data.ticks.values, minlength=cross.possible) / data.ticks.per_unit
    else:
        total = np.bincount(cells, minlength=cross.possible).astype(np.float64)
    return total.reshape(cross.sizes)


def one_way(before: Data, after: Data, name: str) -> Table:
    """Return the table of one variable before and after, rare categories of a long list folded into one row."""
    weighted = before.ticks is not None
    was, now = (counts(data, (name,), weighted=False) for data in (before, after))
    heavy_was, heavy_now = (counts(data, (name,), weighted=True) for data in (before, after))
    rows: list[list[str]] = []
    for part, label in zip(*_folding(was, before[name].labels, _MOST), strict=True):
        records, old, new = (float(totals[part].sum()) for totals in (was, heavy_was, heavy_now))
        change = [count(old), count(new), _relative(old, new)] if weighted else []
        rows.append([label, count(records), count(now[part].sum()), share(records / before.n), *change])
    head = [
        "category",
        "before",
        "after",
        "share",
        *(["weighted before", "weighted after", "change"] if weighted else []),
    ]
    kept = ": exactly kept" if (was == now).all() else ""
    return table(head, rows, caption=f"{name}{kept}", numbers=range(1, len(head)))


def two_way(before: Data, after: Data, pair: tuple[str, str], value: float) -> Row:
    """Return the table of two variables: before, and by how much each cell changes."""
    weighted = before.ticks is not None
    was, now = counts(before, pair, weighted=weighted), counts(after, pair, weighted=weighted)
    down, row_labels = _folding(was.sum(axis=1), before[pair[0]].labels, _MOST_ROWS)
    across, column_labels = _folding(was.sum(axis=0), before[pair[1]].labels, _MOST_COLUMNS)
    rows = [
        {"label": label, "cells": [_cell(was[np.ix_(r, c)].sum(), now[np.ix_(r, c)].sum()) for c in across]}
        for label, r in zip(row_labels, down, strict=True)
    ]
    return {
        "first": pair[0],
        "second": pair[1],
        "value": score(value),
        "columns": column_labels,
        "rows": rows,
        "weighted": weighted,
    }


def _cell(was: float, now: float) -> Row:
    change = round(float(now) - float(was), 6)
    way = "up" if change > 0 else "down" if change < 0 else "same"
    return {"before": count(was), "change": signed(change).replace("-", "−"), "way": way}


def _relative(was: float, now: float) -> str:
    return signed(100 * (now - was) / was, 2) + " %" if was else count(now)


def _folding(totals: Floats, labels: Sequence[str], most: int) -> tuple[list[Ints], list[str]]:
    """Return groups of codes and their labels: the most frequent codes by themselves, the others in one group."""
    codes = np.arange(len(totals))
    if len(totals) <= most:
        return [codes[i : i + 1] for i in codes], list(labels)
    kept = np.sort(np.argsort(-totals, kind="stable")[: most - 1])
    others = np.setdiff1d(codes, kept)
    named: list[str] = [labels[int(i)] for i in kept]
    return [*(codes[i : i + 1] for i in kept), others], [*named, f"({len(others):,} others)"]


@dataclass(frozen=True)
class FullTable:
    """The cells that occur before or after: their counts f and g, one record in each, and where each record was."""

    f: Ints
    g: Ints
    example: Ints
    place: Ints

    @classmethod
    def of(cls, before: Data, after: Data, keys: Sequence[str]) -> FullTable:
        """Count the cross of the keys before and after; examples count on from the last record before."""
        cross = Cross.of(before, tuple(keys))
        both = np.concatenate((cross.cells(before), cross.cells(after)))
        cells, example, place = np.unique(both, return_index=True, return_inverse=True)
        old, new = place[: before.n], place[before.n :]
        return cls(np.bincount(old, minlength=len(cells)), np.bincount(new, minlength=len(cells)), example, old)

    def sizes(self, most: int) -> list[Row]:
        """Return cells and records by size of cell, before and after, with the genuine part after."""
        rows: list[Row] = []
        for size in range(1, most + 1):
            was, now = int((self.f == size).sum()), self.g == size
            genuine = int(np.minimum(self.f, self.g)[now].sum())
            rows.append({"size": size, "when": "before", "cells": was, "records": size * was, "genuine": None})
            cells = int(now.sum())
            rows.append({"size": size, "when": "after", "cells": cells, "records": size * cells, "genuine": genuine})
        return rows

    def swapped(self, taking_part: NDArray[np.bool_]) -> list[Row]:
        """Return the share of records that take part, by the size of their cell before."""
        size, rows = self.f[self.place], list[Row]()
        for order, (low, high) in enumerate(_CLASSES):
            inside = (size >= low) & (size <= (high or size.max()))
            records = int(inside.sum())
            label = f"{low:,}+" if high is None else str(low) if low == high else f"{low}–{high}"
            part = float(taking_part[inside].mean()) if records else None
            rows.append({"size": label, "order": order, "swapped": part, "records": records})
        return rows

    def genuine_by_category(self, before: Data, after: Data, name: str, n: int) -> tuple[Ints, Ints]:
        """Return, per category, the released records in small cells that match a true one, before and after."""
        values = np.concatenate((before[name].values, after[name].values))[self.example]
        size = before[name].size
        was = np.where(self.f < n, self.f, 0)
        now = np.where(self.g < n, np.minimum(self.f, self.g), 0)
        return tuple(np.bincount(values, weights=part, minlength=size).astype(np.int64) for part in (was, now))  # pyright: ignore[reportReturnType]


def tables(scope: ReportInput) -> Row:
    """Return the tables of the chosen candidate before and after, and the small cells."""
    data, released, keys = scope.data, scope.released, scope.keys
    full = FullTable.of(data, released, keys)
    taking_part = np.zeros(data.n, dtype=np.bool_)
    taking_part[scope.chosen.plan.rows] = True
    charts = _heat(scope)
    heated = list(charts)
    if full.f.min() <= max(_SIZES, scope.n - 1) or full.g.min() <= max(_SIZES, scope.n - 1):
        charts["Small cells"] = chart.small_cells(tidy(full.sizes(max(_SIZES, scope.n - 1))))
    charts["Who was swapped"] = chart.who_was_swapped(tidy(full.swapped(taking_part)))
    singles = [one_way(data, released, name) for name in keys]
    kept = [single for single in singles if _same(single)]
    return {
        "charts": charts,
        "published": _published(scope),
        "heated": heated,
        "one_way": singles,
        "changed": [single for single in singles if single not in kept],
        "kept": kept,
        "kept_in_words": f"{counted(len(kept), 'variable')} as before, to the last digit shown",
        "weighted": data.ticks is not None,
        "exact": margins_kept(data, scope.chosen.plan),
        "two_way": [two_way(data, released, pair, value) for pair, value in _most_changed(scope)],
        "categories": categories(scope, full),
    }


def _same(table: Table) -> bool:
    """Tell whether every row of a table of one variable says after what it says before."""
    places = {name: place for place, name in enumerate(table.head)}
    pairs = [("before", "after"), ("weighted before", "weighted after")]
    known = [(places[was], places[now]) for was, now in pairs if was in places]
    return all(row[was] == row[now] for row in table.rows for was, now in known)


def _published(scope: ReportInput) -> list[Block]:
    """Return what the chosen candidate does to the published tables, where any are named."""
    if scope.published is None:
        return []
    return published_tables(scope.published, _MOST_CELLS, loss=scope.choice.recipe.parameters().get("loss"))


def _pairs(scope: ReportInput, address: str) -> dict[tuple[str, str], float | None]:
    """Return what a measure says of every pair of keys; where areas move, of every level with every key."""
    if scope.keys == scope.data.keys:
        if len(scope.keys) < 2:
            return {}
        parts = scope.chosen.scores.results[address][1].parts
        return {(pair[0], pair[1]): value for pair, value in parts.items()}
    levels = [name for name in scope.data.codebook.geography if name in scope.chosen.plan.columns]
    name = address.partition("(")[0]
    wanted = {(a, b): with_margin(name, scope.data, (a, b)) for a in levels for b in scope.data.keys}
    scores = score_plan(scope.data, scope.chosen.plan, list(wanted.values()))
    return {pair: scores[each] for pair, each in wanted.items()}


def _heat(scope: ReportInput) -> dict[str, chart.Figure]:
    """Draw the measures that have a value for every pair of variables."""
    charts: dict[str, chart.Figure] = {}
    for address in _HEAT:
        rows = [{"first": a, "second": b, "value": value} for (a, b), value in _pairs(scope, address).items()]
        if rows:
            charts[f"Heatmap {address}"] = chart.distortion_heatmap(tidy(rows), measure=address)
    return charts


def _most_changed(scope: ReportInput) -> list[tuple[tuple[str, str], float]]:
    """Return the pairs of variables whose tables change most."""
    changed = [(pair, value) for pair, value in _pairs(scope, TWO_WAY).items() if value]
    return sorted(changed, key=lambda each: -each[1])[:_MOST_TABLES]


def categories(scope: ReportInput, full: FullTable) -> Table | None:
    """Return the categories whose records are most at risk after the swap, by the n-rule and by exposed."""
    small, n = scope.together[0], scope.n
    was, now = (scores.results[small][1].explain for scores in (scope.before, scope.chosen.scores))
    rows: list[tuple[float, tuple[str, ...]]] = []
    detail = (
        {}
        if was is None or now is None
        else {
            (row["variable"], row["category"]): (old, row)
            for old, row in zip(was()[n - 1 :], now()[n - 1 :], strict=True)
        }
    )
    for name in scope.keys:
        column = scope.data[name]
        true_was, true_is = full.genuine_by_category(scope.data, scope.released, name, n)
        records = np.bincount(column.values, minlength=column.size)
        for code, label in enumerate(column.labels):
            if (name, label) in detail and records[code]:
                old, new = detail[name, label]
                rows.append(_category(old, new, int(true_was[code]), int(true_is[code]), int(records[code])))
    if not rows:
        return None
    worst = [row for _, row in sorted(rows, key=lambda row: -row[0])[:_MOST_CATEGORIES]]
    rule, true = "small_cells: unswapped at risk", "exposed: genuine in the release"
    parts = [f"{what}, {when}" for what in (rule, true) for when in ("before", "after", "records")]
    caption = f"The {len(worst)} categories most exposed after the swap, by records in cells of fewer than {n}"
    return table(("variable", "category", "records", *parts), worst, caption=caption, numbers=range(2, 9))


def _category(old: Row, new: Row, true_was: int, true_is: int, records: int) -> tuple[float, tuple[str, ...]]:
    """Return how exposed a category is, to sort by, and its row."""
    rule = (share(old["risk"]), share(new["risk"]), count(new["at_risk"]))
    true = (share(true_was / records), share(true_is / records), count(true_is))
    return true_is / records, (new["variable"], new["category"], count(records), *rule, *true)


_IN_SHORT = (": attributed", ": right among claims")


def intruder(scope: ReportInput) -> Row:
    """Attack the chosen candidate as somebody would who knows all but the seed."""
    plan, recipe = scope.chosen.plan, scope.study.recipe(scope.chosen.number)
    keys = None if scope.keys == scope.data.keys else scope.keys
    found = attack(scope.data, plan, keys, n=scope.n, recipe=recipe)
    found = replace(found, sections=tuple(map(_in_short, found.sections)))
    not_made = [(section.title, section.reason) for section in found.sections if not section.findings]
    return {
        "charts": {
            f"What an intruder gains, part {place}": chart.attacks(part)
            for place, part in enumerate(attack_sheets(found.frame()), start=1)
        },
        "known": count(len(found.keys)),
        "exposure": exposure(scope.data, plan, scope.n),
        "blocks": [block for section in found.sections if section.findings for block in section_blocks(section)],
        "not_made": table(("attack", "why"), not_made, caption="Attacks that were not made"),
    }


def _in_short(section: Section) -> Section:
    """Keep one line per target and what all targets have together: a page for the board, not a listing."""
    together = [finding for finding in section.findings if finding.quantity.startswith("all targets")]
    if not together:
        return section
    single = [finding for finding in section.findings if finding.quantity.endswith(_IN_SHORT)]
    return replace(section, findings=(*together, *single))
