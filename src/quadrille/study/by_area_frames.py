"""Scores by area as tidy rows: area by area, their spread, and the areas most and least affected."""

from __future__ import annotations

from math import isinf, isnan

import numpy as np

from quadrille.areas import Floats, Ints
from quadrille.errors import bad_parameter
from quadrille.measure.difference import DIVERSITIES, zero_note
from quadrille.study.by_area import AreaScores

Row = dict[str, object]

AREA = ("level", "area", "address", "before", "after", "changed", "value", "zero_cells", "note")
RANKED = ("affected", "rank", "of", *AREA, "equal", "ranked_by")
"""The columns of the tables, for those without a row."""
BY_VALUE, BY_SIZE, UPWARDS = "value", "absolute value", "value, lowest first"
NO_AREA = "these records have no area"
NOBODY = "no record to score: none fulfils the condition"
NOT_LARGER = "larger is not more perturbed"


def area_rows(found: AreaScores) -> list[Row]:
    """Return one row per area."""
    return [_row(found, place) for place in range(len(found.areas))]


def _row(found: AreaScores, place: int) -> Row:
    return {
        "level": found.level,
        "area": found.areas[place],
        "address": found.call.text,
        "before": int(found.before[place]),
        "after": int(found.after[place]),
        "changed": int(found.changed[place]),
        "value": _plain(float(found.value[place])),
        "zero_cells": None if found.zero is None else int(found.zero[place]),
        "note": "; ".join(filter(None, ("" if found.known[place] else NO_AREA, found.notes[place]))),
    }


def _plain(value: float) -> float | None:
    return None if isnan(value) else value


def spread_rows(found: AreaScores) -> list[Row]:
    """Return the row that tells how the values of the areas spread."""
    every: Floats = found.value[found.known]
    value = every[~np.isnan(every)]
    zero = None if found.zero is None else int(found.zero[found.known].sum())
    undefined = len(every) - len(value)
    notes = [_undefined(found, undefined)] if undefined else []
    notes += _left_out(found)
    notes += [zero_note(zero, left_out=not found.kind.options.get("infinite"))] if zero else []
    notes += [NOT_LARGER] if found.kind.name in DIVERSITIES else []
    return [
        {
            "level": found.level,
            "variable": "*".join(found.call.margin or ()),
            "measure": found.call.name,
            "address": found.call.text,
            "areas": len(value),
            "undefined": undefined,
            **_moments(value),
            "whole": found.whole,
            "zero_cells": zero,
            "note": "; ".join(notes),
        }
    ]


def _undefined(found: AreaScores, count: int) -> str:
    """Say how many areas have no value, and why, where all have the same reason."""
    known = zip(found.notes, found.value.tolist(), found.known.tolist(), strict=True)
    reasons = {note for note, value, is_area in known if is_area and isnan(value)}
    why = f" ({next(iter(reasons))})" if len(reasons) == 1 else ""
    return f"{count:,} of {int(found.known.sum()):,} areas have no value{why}"


def _left_out(found: AreaScores) -> list[str]:
    """Say how many records have no area, and how many areas no record."""
    if not len(found.areas):
        return [NOBODY]
    notes: list[str] = []
    if not found.known.all():
        before, after = (int(side[~found.known].sum()) for side in (found.before, found.after))
        records = "1 record has" if before == after == 1 else f"{before:,} records have"
        records = records if before == after else f"{before:,} records before and {after:,} after have"
        notes.append(f"{records} no area: left out")
    if found.unlisted:
        areas = "1 declared area has" if found.unlisted == 1 else f"{found.unlisted:,} declared areas have"
        notes.append(f"{areas} no record that counts")
    return notes


def _moments(value: Floats) -> dict[str, float | None]:
    """Return mean, sd, 5th and 95th percentile; an infinite value leaves no sd, and all from it on infinite."""
    if not len(value):
        return dict.fromkeys(("mean", "sd", "p5", "p95"))
    finite = bool(np.isfinite(value).all())
    sd = float(value.std(ddof=1)) if finite and len(value) > 1 else None
    with np.errstate(invalid="ignore"):  # between two infinities there is nothing to interpolate
        p5, p95 = (float(each) for each in np.percentile(value, [5, 95]))
    low, high = (float("inf") if isnan(each) or isinf(each) else each for each in (p5, p95))
    return {"mean": float(value.mean()), "sd": sd, "p5": low, "p95": high}


def ranking_rows(found: AreaScores, top: int, min_records: int) -> list[Row]:
    """Return the rows of the areas most affected, then of those least affected, best rank first."""
    for name, number, least in (("top", top, 1), ("min_records", min_records, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise bad_parameter("ranking", name, f"a whole number of {least} or more", number)
    order, how = _order(found)
    order = order[found.before[order] >= min_records]
    most = order[:top]
    least = order[max(len(order) - top, len(most)) :]
    value, count = np.unique(found.value[order], return_counts=True)
    alike = dict(zip(value.tolist(), count.tolist(), strict=True))
    rows: list[Row] = []
    for affected, places, start in (("most", most, 0), ("least", least, len(order) - len(least))):
        for rank, place in enumerate(places.tolist(), start + 1):
            row = _row(found, place)
            equal = alike[float(found.value[place])]
            rows.append({"affected": affected, "rank": rank, "of": len(order), **row, "equal": equal, "ranked_by": how})
    return rows


def _order(found: AreaScores) -> tuple[Ints, str]:
    """Return the places of the areas with a value, the most affected first; of equals the smaller area first."""
    places = np.flatnonzero(found.known & ~np.isnan(found.value))
    value = found.value[places]
    signed, higher = found.kind.direction == "nearer 0", found.kind.direction == "higher"
    key = -np.abs(value) if signed else value if higher else -value
    return places[np.lexsort((found.before[places], key))], BY_SIZE if signed else UPWARDS if higher else BY_VALUE
