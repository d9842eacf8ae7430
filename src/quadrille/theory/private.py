"""What each epsilon of a private swap costs, before any draw (private.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, cast

from quadrille.data import Data, require_data, tidy
from quadrille.errors import ParameterError, bad_parameter
from quadrille.params import as_float, several
from quadrille.swap.epsilon import chance_for, least_in_words
from quadrille.swap.private import PrivateSwap
from quadrille.theory.prediction import predict

if TYPE_CHECKING:
    import polars as pl

ONE, OWN = "one chance", "own chances"
DESIGNS = (ONE, OWN)
_CURVE = "epsilon_curve"


def epsilon_curve(
    data: Data, recipe: PrivateSwap, epsilons: Sequence[float] = (), *, loss: str = "hellinger"
) -> pl.DataFrame:
    """Return what a private swap costs at each epsilon, before any draw: with one chance, and with own chances.

    One row per epsilon and design ("one chance" for all strata, "own chances"): `epsilon`, `design`, `chance` (None
    where every stratum has its own), `moved` (the expected share of records that move) and the predicted `loss`. An
    epsilon that no chance gives is left out.
    `chart.epsilon_loss` draws the frame.

    Parameters
    ----------
    data, recipe : the file and the private swap; its chance or epsilon and its seed play no part.
    epsilons : which; by default the least that can be reached, and eleven whole ones from there on.
    loss : the measure of loss, one that `predict` knows.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=12)
    >>> found = qd.theory.epsilon_curve(qd.datasets.cps8d(), recipe, [12, 10])
    >>> found["loss"].round(4).to_list()
    [0.0455, 0.0303, 0.1171, 0.0882]
    """
    require_data(data, _CURVE)
    if not isinstance(cast("object", recipe), PrivateSwap):
        raise ParameterError(f"{_CURVE} needs a PrivateSwap: no other recipe has an epsilon.")
    least, size = least_of(data, recipe)
    rows: list[dict[str, object]] = []
    for epsilon in _checked(epsilons) or _spread_out(least):
        if epsilon < least - 1e-9:
            continue
        one = min(max(chance_for(size, epsilon), 1e-9), 1 - 1e-9)
        designs = ((ONE, {"chance": one, "epsilon": None}), (OWN, {"chance": None, "epsilon": epsilon}))
        for design, given in designs:
            ahead = predict(data, recipe.changed(**given, seed=0), [loss])
            row = {"epsilon": epsilon, "design": design, "chance": given["chance"], "moved": ahead.rate}
            rows.append({**row, "loss": ahead[loss], "measure": loss, "reason": ahead.detail(loss).reason})
    if not rows:
        raise ParameterError(
            f"No chance reaches any of these epsilons: the largest stratum has {size:,} records, and the least epsilon "
            f"is {least:.3f}. Ask for larger ones, or make the strata smaller with 'within'."
        )
    return tidy(rows)


def least_of(data: Data, recipe: PrivateSwap) -> tuple[float, int]:
    """Return the least epsilon that a private swap of a file can have, and the size of the largest stratum.

    >>> import quadrille as qd
    >>> from quadrille.theory.private import least_of
    >>> least, size = least_of(qd.datasets.cps8d(), qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=12))
    >>> round(least, 3), size
    (4.906, 18245)
    """
    recipe.check_columns(data)
    strata = recipe.changed(chance=0.5, epsilon=None, seed=0).strata(data)
    size = int(strata.n[strata.threshold > 0].max())
    sizes = {n for n, chance in strata.kinds if chance}
    return max(map(least_in_words, sizes)), size


def _checked(epsilons: object) -> list[float]:
    listed = list(cast("Iterable[object]", epsilons)) if several(epsilons) else [epsilons]
    values = [as_float(value) for value in listed]
    if not all(0 <= value < inf for value in values):
        raise bad_parameter(_CURVE, "epsilons", "numbers of 0 or more, not infinite", listed)
    return values


_POINTS = 11


def _spread_out(least: float) -> list[float]:
    """Return the least epsilon, and whole ones from there on."""
    return [least, *(float(int(least) + step) for step in range(1, _POINTS + 1))]
