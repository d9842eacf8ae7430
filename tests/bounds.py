"""The lower bound for CPS-8d, proved anew from stored prices and multipliers in milliseconds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import quadrille as qd
from quadrille.theory import Bound, Point
from quadrille.theory.bound import LOSSES, certify, counts_of

STORED = Path(__file__).parent / "golden" / "bound_cps8d.json"


def stored_bound(data: qd.Data) -> Bound:
    """Return the bound; what is stored is not trusted, `certify` proves the inequality that it stands for."""
    counts = counts_of(data, data.keys)
    points: list[Point] = []
    for each in json.loads(STORED.read_text()):
        line, _ = certify(counts, LOSSES["hellinger"], 3, each["price"], np.array(each["multipliers"]))
        points.append(Point(each["exposed"], line.at(each["exposed"]) ** 0.5, line.price, "optimal", line))
    exposed = qd.score(data, data, ["exposed"])["exposed"]
    assert exposed is not None
    return Bound(tuple(points), data.keys, 3, "hellinger", "1-way", exposed)
