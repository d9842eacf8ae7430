"""The chart of a study's frontier: the candidates as they were drawn, and what theory predicts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import chart
from quadrille.chart import cell_sizes
from quadrille.data import Data, tidy
from quadrille.errors import QuadrilleError
from quadrille.measure import measure_of, orient
from quadrille.measure.base import Address
from quadrille.present import words
from quadrille.present.numbers import counted, finite
from quadrille.study.choose import non_dominated
from quadrille.study.study import Study
from quadrille.theory.bound import LOSSES, Bound, bound_for
from quadrille.theory.prediction import Predicted, Prediction, predict

_POINTS = 24


@dataclass(frozen=True)
class Floor:
    """A lower bound of a loss by `exposed`, or why there is none."""

    bound: Bound | None
    why_none: str = ""

    def gap(self, exposed: float, loss: float) -> float | None:
        """Return by how much a candidate lies above the bound at its own exposure, as a share of the bound."""
        if self.bound is None:
            return None
        ratio = float(self.bound.gap(exposed, loss))
        return ratio - 1 if np.isfinite(ratio) else None


def floor_of(data: Data, measures: Sequence[str], axes: tuple[str, str]) -> Floor:
    """Bound the loss on an axis by `exposed`, over all tables that any swap could make."""
    mine = [address for address in (axes[0], *measures) if measure_of(address).name == "exposed"]
    exposed, loss = (mine[0] if mine else None), axes[1]
    if exposed is None:
        return Floor(None, "the study has no exposed")
    if measure_of(loss).name not in LOSSES:
        return Floor(None, f"{loss} has no lower bound")
    risk, cost = Address.parse(exposed), Address.parse(loss)
    table = risk.margin or data.keys
    if frozenset(cost.margin or data.keys) != frozenset(table) or risk.where or cost.where:
        return Floor(None, f"{loss} and {exposed} are about different tables")
    n = int(measure_of(exposed).with_options(risk).options["n"])
    key = f"floor of {cost.name} of {table!r}, n = {n}"
    if key not in data.prepared:  # the charts of a study and its report show the same one
        data.prepared[key] = _bounded(data, n, tuple(table), cost.name)
    return cast("Floor", data.prepared[key])


def _bounded(data: Data, n: int, table: tuple[str, ...], loss: str) -> Floor:
    try:
        start = bound_for(None, data, 0.0, n=n, table=table, loss=loss).exposed
        asked = (start * (1 - np.linspace(0, 1, _POINTS))).tolist()
        return Floor(bound_for(None, data, asked, n=n, table=table, loss=loss))
    except QuadrilleError as error:
        return Floor(None, str(error).rstrip("."))


Row = dict[str, Any]
"""Plain values for a template."""

Scored = list[tuple[Row, float, float, bool]]
"""Candidates with a score on both axes: row, risk, loss (lower is better), whether on the frontier."""

MOST_DESIGNS = 200
MOST_SECONDS = 10.0
_MOST_REASONS = 3


def rows_of(study: Study) -> list[Row]:
    """Return the candidates as rows, each with the name of its design; what all share is not part of a name."""
    rows: list[Row] = study.frame().to_dicts()
    varied = len({row["other"] for row in rows if row["status"] == "done"}) > 1
    settings = study.settings()
    for row in rows:
        row["name"] = words.design(row if varied else {**row, "other": ""})
        row["settings"] = settings[row["design"]]
    return rows


def values_of_settings(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the other parameters of some designs, and the values that each takes."""
    designs = {row["design"]: row for row in rows}.values()
    found: dict[str, dict[str, None]] = {}
    for row in designs:
        for name, value in row["settings"].items():
            found.setdefault(name, {})[value] = None
    return {name: sorted(values, key=_in_order) for name, values in found.items()}


def _in_order(value: str) -> tuple[float, str]:
    """Sort numbers by size, after words."""
    try:
        return float(value), value
    except ValueError:
        return -np.inf, value


def scored(study: Study, axes: tuple[str, str], rows: Sequence[Row]) -> Scored:
    """Return the candidates with a score on both axes."""
    points, places = study.objectives(axes)
    front: NDArray[np.bool_] = non_dominated(points)
    return [
        (rows[place], *point, on)
        for place, point, on in zip(places.tolist(), points.tolist(), front.tolist(), strict=True)
    ]


def companion_of(study: Study, axes: tuple[str, str]) -> str | None:
    """Return the measure of the study that no swap can fool, unless it is an axis already; that of the n-rule shown."""
    found = [address for address in study.measures if measure_of(address).name == "exposed"]
    wanted = cell_sizes.missing(axes).values()
    mine = (address for want in wanted for address in found if cell_sizes.matches(address, want))
    return next(mine, next((address for address in found if address not in axes), None))


@dataclass(frozen=True)
class FrontierPredictions:
    """What theory expects of the designs of a study: a row per design, and why some have no prediction.

    `designs` counts those of the study; at most 200, evenly spread, are looked at. `why_none` is set where none was.
    """

    rows: tuple[Row, ...] = ()
    designs: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    why_none: str = ""
    floor: Floor | None = None
    """A lower bound of the loss, where there are designed swaps to be compared with it."""

    @property
    def known(self) -> list[Row]:
        """The designs with a prediction on both axes."""
        return [row for row in self.rows if row["risk"] is not None and row["loss"] is not None]

    @property
    def text(self) -> str:
        """Say what the predicted curve is, or why there is none."""
        common = self.reasons.most_common(_MOST_REASONS)
        why = "; ".join(f"{reason} ({counted(count, 'design')})" for reason, count in common)
        if not self.known:
            return f"There is no predicted curve: {self.why_none or why}." + self._bounded
        said = (
            "The dashed line with white diamonds is the frontier that theory predicts before any draw: each design at "
            f"the mean over its seeds. {len(self.known):,} of {self.designs:,} designs have a prediction"
        )
        looked = f" ({len(self.rows):,} were looked at)" if len(self.rows) < self.designs else ""
        return f"{said}{looked}. " + (f"The others have none: {why}. " if why else "") + _LUCK + self._bounded

    @property
    def _bounded(self) -> str:
        return _FLOOR if self.floor is not None and self.floor.bound is not None else ""

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "designs": self.designs,
            "points": list(self.rows),
            "not_predicted": [{"reason": reason, "designs": count} for reason, count in self.reasons.most_common()],
            "told": self.text,
            **self._floor(),
        }

    def _floor(self) -> dict[str, object]:
        if self.floor is None:
            return {}
        points = [] if self.floor.bound is None else self.floor.bound.frame().to_dicts()
        return {"bound": {"points": points, "why_none": self.floor.why_none or None}}


_FLOOR = " The thin dotted line is a lower bound: at each exposure no swap of any kind loses less."
_LUCK = "Single draws scatter around their design; the luckiest of many lie below the curve."


def predictions_of(study: Study, data: Data, axes: tuple[str, str], found: Scored) -> FrontierPredictions:
    """Predict the designs of the scored candidates, as far as time allows. Nothing is drawn."""
    first: dict[int, Row] = {}
    for row, *_ in found:
        first.setdefault(row["design"], row)
    designs = list(first.values())
    count = min(len(designs), MOST_DESIGNS)
    companion = companion_of(study, axes) or _n_rule_beside(study, axes, found)
    measures = list(dict.fromkeys((*axes, *((companion,) if companion else ()))))
    rows: list[Row] = []
    reasons: Counter[str] = Counter()
    started = time.perf_counter()
    for row in (designs[place * len(designs) // count] for place in range(count)):
        if rows and time.perf_counter() - started > MOST_SECONDS:
            break
        got = _predicted(study, data, row["id"], measures)
        risk, loss = (_oriented(axis, got[axis]) for axis in axes)
        beside = {"companion": got[companion]} if companion else {}
        rows.append({"label": row["name"], "risk": risk, "loss": loss, **beside})
        if risk is None or loss is None:
            reasons["; ".join(dict.fromkeys(got.detail(axis).reason for axis in axes if got[axis] is None))] += 1
    designed = any(row["method"] == words.DESIGNED for row in designs)
    floor = floor_of(data, study.measures, axes) if designed else None
    return FrontierPredictions(
        tuple(rows), len(designs), reasons, "" if rows else "no candidate has a score on both axes", floor
    )


def _predicted(study: Study, data: Data, candidate: int, measures: Sequence[str]) -> Prediction:
    try:
        return predict(data, study.recipe(candidate), measures)
    except QuadrilleError as error:
        return Prediction({address: Predicted(None, reason=str(error).rstrip(".")) for address in measures})


def _oriented(axis: str, value: float | None) -> float | None:
    return None if value is None else orient(axis, value)


def draw_frontier(
    study: Study,
    axes: tuple[str, str],
    found: Scored,
    chosen: int | None,
    predictions: FrontierPredictions | None = None,
) -> chart.Figure:
    """Draw the candidates of a study by risk and loss, with prediction and lower bound where there are such."""
    beside = shown_beside(study, axes, found) or _n_rule_beside(study, axes, found)
    coloured = _told_apart(found)
    points = [
        {
            "risk": risk,
            "loss": loss,
            "swap": row["swap"]
            or (words.swapped_by_default(row) if row["method"] == words.DESIGNED else row["method"]),
            "method": words.method(row["method"]),
            "rate": row["rate"],
            "on_frontier": on,
            "chosen": row["id"] == chosen,
            "label": f"No. {row['id']}: {row['name']}",
            **({"companion": finite(row[beside])} if beside else {}),
            **({coloured: row["settings"][coloured]} if coloured else {}),
        }
        for row, risk, loss, on in found
    ]
    risk, loss = map(words.axis, axes)
    predicted = tidy(list(predictions.rows)) if predictions is not None and predictions.known else None
    floor = None if predictions is None or predictions.floor is None else predictions.floor.bound
    bound = None if floor is None else floor.frame()
    return chart.frontier(
        tidy(points),
        risk=risk,
        loss=loss,
        companion=beside,
        predicted=predicted,
        bound=bound,
        unswapped=_as_it_is(study, axes, beside),
        colour=coloured or "swap",
    )


_MOST_COLOURS = 7


def _told_apart(found: Scored) -> str | None:
    """Return the parameter that colours show where all candidates swap the same: the one that tells most about them.

    That is the share of the variance of risk and of loss that lies between its values, both added.
    """
    rows = [row for row, *_ in found]
    if len({(row["method"], row["swap"]) for row in rows}) != 1:
        return None
    axes = np.array([[risk, loss] for _, risk, loss, _ in found])
    spread = np.maximum(axes.var(axis=0), np.finfo(float).tiny)
    told: dict[str, float] = {}
    for name, values in values_of_settings(rows).items():
        if 1 < len(values) <= _MOST_COLOURS:
            of = np.array([values.index(row["settings"][name]) for row in rows])
            parts = [axes[of == k] for k in range(len(values))]
            between = sum(len(part) * (part.mean(axis=0) - axes.mean(axis=0)) ** 2 for part in parts) / len(axes)
            told[name] = float((between / spread).sum())
    return max(told, key=lambda name: told[name], default=None)


def _as_it_is(study: Study, axes: tuple[str, str], beside: str | None) -> tuple[float, float | None] | None:
    """Return risk, and second risk, of the file as it is, where they are known."""
    risk = study.unswapped_at(axes)[0]
    return None if risk is None else (risk, (study.unswapped or {}).get(beside) if beside else None)


def _n_rule_beside(study: Study, axes: tuple[str, str], found: Scored) -> str | None:
    """Return the n-rule for the second panel where designed swaps are judged by `exposed`."""
    if not any(row["method"] == words.DESIGNED for row, *_ in found):
        return None
    return next((each for each in study.measures if cell_sizes.is_n_rule(each) and each not in axes), None)


def shown_beside(study: Study, axes: tuple[str, str], found: Scored) -> str | None:
    """Return the measure of the second panel, if any candidate has a value of it."""
    companion = companion_of(study, axes)
    known = companion and any(finite(row[companion]) is not None for row, *_ in found)
    return companion if known else None
