"""Standard errors of weighted shares and means by Taylor linearisation, as survey practice computes them.

A ratio R = sum(w y) / sum(w x) has the linearised values u = w (y - R x) / sum(w x). With sampling units (PSUs) drawn
with replacement within strata, var(R) = sum over strata of n / (n - 1) * sum over its n units of (u_unit - mean u)^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, require_columns
from quadrille.errors import InputError, bad_parameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHERE = "the sampling design"


@dataclass(frozen=True, eq=False)
class Design:
    """Which unit each record was sampled with (`psu`), in which stratum each unit is (`stratum`), and how to say it."""

    psu: Ints
    stratum: Ints
    text: str

    @cached_property
    def units(self) -> Ints:
        """Number of units of each stratum."""
        return np.bincount(self.stratum)

    @property
    def strata(self) -> int:
        """Number of strata."""
        return len(self.units)

    @property
    def lonely(self) -> int:
        """Number of strata with a single unit; they say nothing about variation and contribute nothing."""
        return int((self.units == 1).sum())

    def totals(self, values: Floats, rows: Ints | None = None) -> Floats:
        """Add values up by unit; `rows` are the records that they belong to, all without it."""
        psu = self.psu if rows is None else self.psu[rows]
        return np.asarray(np.bincount(psu, weights=values, minlength=len(self.stratum)), dtype=np.float64)

    def error(self, totals: Floats) -> float:
        """Return the standard error of the sum of linearised values, given their totals by unit."""
        mean = np.bincount(self.stratum, weights=totals) / self.units
        spread = np.bincount(self.stratum, weights=(totals - mean[self.stratum]) ** 2)
        several = self.units > 1
        n = self.units[several]
        return float(np.sqrt((n / (n - 1) * spread[several]).sum()))

    def ratio(self, top: Floats, bottom: Floats) -> tuple[float, float]:
        """Return the ratio of two sums and its standard error, given their totals by unit."""
        size = float(bottom.sum())
        ratio = float(top.sum()) / size
        return ratio, self.error((top - ratio * bottom) / size)


def se_after(se_before: float, before: float, after: float) -> float:
    """Return the standard error of a swapped estimate: sqrt(SE_before^2 + (after - before)^2).

    >>> from quadrille.study.linearisation import se_after
    >>> round(se_after(13.1005, 200.6773, 197.9714), 4)
    13.377
    """
    return float(np.hypot(se_before, after - before))


def weights_of(data: Data) -> Floats:
    """Return the weight of every record; 1 without a weight."""
    return np.ones(data.n) if data.ticks is None else data.ticks.values / data.ticks.per_unit


def design_of(data: Data, stratum: str | Sequence[str] | None = None, psu: str | None = None) -> Design:
    """Read the design from the data; without `psu` every record is a unit, without `stratum` there is one stratum.

    Units of the same name in different strata are different units.
    """
    if psu is not None and not isinstance(psu, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise bad_parameter("before_after", "psu", "the name of a column", psu)
    columns = (stratum,) if isinstance(stratum, str) else tuple(stratum or ())
    strata = np.zeros(data.n, dtype=np.int64)
    for name in columns:
        strata = _joined(strata, _present(data, name))
    if psu is None:
        design = Design(np.arange(data.n), strata, "")
    else:
        _, first, unit = np.unique(_joined(strata, _present(data, psu)), return_index=True, return_inverse=True)
        design = Design(unit, strata[first], "")
    return Design(design.psu, design.stratum, _said(design, columns, psu))


def _present(data: Data, name: str) -> Ints:
    """Return a column of the design as numbers from 0; a record without a value has no place in the design."""
    require_columns(data, [name], WHERE)
    column = data[name]
    missing = column.values >= column.valid if column.variable.coded else np.isnan(column.values)
    if missing.any():
        raise InputError(
            f"Column {name!r} of {WHERE} is missing in {int(missing.sum()):,} rows. "
            "Every record needs its stratum and its PSU: fill these rows, or leave the design out."
        )
    return np.unique(column.values, return_inverse=True)[1].astype(np.int64)


def _joined(outer: Ints, inner: Ints) -> Ints:
    return np.unique(outer * (int(inner.max()) + 1) + inner, return_inverse=True)[1].astype(np.int64)


def _said(design: Design, strata: Sequence[str], psu: str | None) -> str:
    """Say which design the standard errors assume."""
    units = (
        "every record is its own sampling unit (no PSU was given)"
        if psu is None
        else f"{len(design.stratum):,} PSUs ({psu}), drawn with replacement"
    )
    within = f"within {design.strata:,} strata ({', '.join(strata)})" if strata else "in one stratum (none was given)"
    alone = (
        f" {design.lonely:,} of the strata have a single unit and contribute nothing, so the standard errors are too "
        "small."
        if design.lonely
        else ""
    )
    return f"Taylor linearisation: {units}, {within}.{alone}"
