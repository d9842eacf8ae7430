"""The bundled files are what the literature describes."""

from __future__ import annotations

import numpy as np

import quadrille as qd
from quadrille.summary import Table

PUBLISHED = {
    "Age": (8432, 33541, 6869),
    "EmpTyp": (6549, 33906, 5557, 2830),
    "Edu": (6408, 15784, 11687, 4085, 10878),
    "MS": (23044, 25798),
    "Race": (41762, 7080),
    "Sex": (32650, 16192),
    "AvgHrs": (11687, 22803, 14352),
    "AnnSal": (37155, 11687),
}


def test_cps8d_has_the_published_margins_in_codebook_order(cps8d: qd.Data) -> None:
    assert cps8d.n == 48_842
    assert cps8d.columns == list(PUBLISHED)
    for name, counts in PUBLISHED.items():
        assert tuple(np.bincount(cps8d[name].values)) == counts


def test_cps8d_has_the_published_cells(cps8d: qd.Data) -> None:
    count = Table(cps8d.keys).of(cps8d).count
    assert len(count) == 2880
    assert (count > 0).sum() == 1695
    assert (count == 1).sum() == 361
    assert (count == 2).sum() == 186
    assert count.max() == 1255


def test_cps8d_is_the_same_each_time() -> None:
    assert qd.datasets.cps8d() == qd.datasets.cps8d()
    assert qd.datasets.cps8d().fingerprint == qd.datasets.cps8d().fingerprint
