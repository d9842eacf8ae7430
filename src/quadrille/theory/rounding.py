"""Unbiased random rounding to a base: the error that swapping is compared with."""

from __future__ import annotations

from typing import SupportsFloat, cast

from quadrille.errors import bad_parameter
from quadrille.recipe import whole
from quadrille.theory.error import Error

MOST_BASE = 10**6


def checked_base(owner: str, base: object) -> int:
    """Check the base of rounding."""
    found = whole(owner, "base", base, least=1)
    if found > MOST_BASE:
        raise bad_parameter(owner, "base", f"at most {MOST_BASE:,}", base)
    return found


def rounding_error(count: int, base: int = 5) -> Error:
    """Return the error of rounding a count to a multiple of the base at random, without bias.

    The residue r = count mod base goes up with probability r / base and down otherwise: variance r (base - r). It does
    not grow with the count.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.rounding_error(294438).variance
    6.0
    """
    number = isinstance(cast("object", count), SupportsFloat) and not isinstance(count, bool)
    if not number or not 0 <= count < 1e300 or int(count) != count:
        raise bad_parameter("rounding_error", "count", "a whole number of 0 or more", count)
    residue = int(count) % checked_base("rounding_error", base)
    return Error(float(count), 0.0, float(residue * (base - residue)))
