"""The least loss that any swap can have at a given exposure, as far as it is cheap to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quadrille.data import Data
from quadrille.errors import QuadrilleError
from quadrille.measure_base import Call
from quadrille.study.axes import kind_of
from quadrille.theory.bound import Bound, least_loss
from quadrille.theory.certificate import LOSSES

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
    """Bound the loss on an axis by `exposed`: over all tables with as many records, which takes no time."""
    mine = [address for address in (axes[0], *measures) if kind_of(address).name == "exposed"]
    exposed, loss = (mine[0] if mine else None), axes[1]
    if exposed is None:
        return Floor(None, "the study has no exposed")
    if kind_of(loss).name not in LOSSES:
        return Floor(None, f"{loss} has no lower bound")
    risk, cost = Call.parse(exposed), Call.parse(loss)
    table = risk.margin or data.keys
    if frozenset(cost.margin or data.keys) != frozenset(table) or risk.where or cost.where:
        return Floor(None, f"{loss} and {exposed} are about different tables")
    n = int(kind_of(exposed).bound(risk).options["n"])
    try:
        start = least_loss(data, 0.0, n=n, table=table, loss=cost.name, margins="total").exposed
        asked = (start * (1 - np.linspace(0, 1, _POINTS))).tolist()
        return Floor(least_loss(data, asked, n=n, table=table, loss=cost.name, margins="total"))
    except QuadrilleError as error:
        return Floor(None, str(error).rstrip("."))
