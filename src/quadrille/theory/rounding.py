"""Unbiased random rounding to a base: the error that swapping is compared with."""

from __future__ import annotations

from math import isfinite
from typing import SupportsFloat, cast

from quadrille.errors import bad_parameter
from quadrille.recipe import whole
from quadrille.theory.error import Error


def rounding_error(count: int, base: int = 5) -> Error:
    """Return the error of rounding a count to a multiple of the base at random, without bias.

    The residue r = count mod base goes up with probability r / base and down otherwise: variance r (base - r). It does
    not grow with the count.

    >>> rounding_error(294438).variance
    6.0
    """
    number = isinstance(cast("object", count), SupportsFloat) and not isinstance(count, bool)
    if not number or not isfinite(count) or int(count) != count or count < 0:
        raise bad_parameter("rounding_error", "count", "a whole number of 0 or more", count)
    residue = int(count) % whole("rounding_error", "base", base, least=1)
    return Error(float(count), 0.0, float(residue * (base - residue)))
