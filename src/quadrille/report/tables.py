"""Tables before and after the swap, and what became of the small cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data
from quadrille.present import words
from quadrille.report.input import Row

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST = 25
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


def one_way(before: Data, after: Data, name: str) -> Row:
    """Return the table of one variable before and after, rare categories of a long list folded into one row."""
    weighted = before.ticks is not None
    was, now = counts(before, (name,), weighted=False), counts(after, (name,), weighted=False)
    parts, labels = _folding(was, before[name].labels, _MOST)
    heavy_was, heavy_now = counts(before, (name,), weighted=True), counts(after, (name,), weighted=True)
    rows = [
        {
            "label": label,
            "before": words.count(was[part].sum()),
            "after": words.count(now[part].sum()),
            "share": words.share(float(was[part].sum()) / before.n),
            "weighted_before": words.count(heavy_was[part].sum()),
            "weighted_after": words.count(heavy_now[part].sum()),
            "weighted_change": _relative(float(heavy_was[part].sum()), float(heavy_now[part].sum())),
        }
        for label, part in zip(labels, parts, strict=True)
    ]
    return {"name": name, "weighted": weighted, "kept": bool((was == now).all()), "rows": rows}


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
        "value": words.number(value),
        "columns": column_labels,
        "rows": rows,
        "weighted": weighted,
    }


def _cell(was: float, now: float) -> Row:
    change = round(float(now) - float(was), 6)
    way = "up" if change > 0 else "down" if change < 0 else "same"
    return {"before": words.count(was), "change": words.signed(change), "way": way}


def _relative(was: float, now: float) -> str:
    return words.signed(100 * (now - was) / was, 2) + " %" if was else words.count(now)


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
    def of(cls, before: Data, after: Data) -> FullTable:
        """Count the cross of the key variables before and after; examples count on from the last record before."""
        cross = Cross.of(before, before.keys)
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
