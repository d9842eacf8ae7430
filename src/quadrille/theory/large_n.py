"""The error of a count in a large file, from proportions alone (derivations/moments.md, formula 10)."""

from __future__ import annotations

from typing import SupportsFloat

from quadrille.errors import ParameterError, bad_parameter
from quadrille.recipe import one_of, share, whole
from quadrille.theory.error import Error
from quadrille.theory.labelled import MOST_RECORDS
from quadrille.theory.moments import LARGEST
from quadrille.theory.spread import Kind

_OWNER = "large_n_error"


def large_n_error(
    n: int, domain: float, moved: float, stayed: float, *, rate: float, kind: Kind = "pairs", weight: float = 1.0
) -> Error:
    """Return the leading terms of bias and variance of a count among n records of equal weight.

    With dD, dP, dF the shares of the domain, of its moved part and of its stayed part, and c = dD - dP dF: bias
    -w k c; variance w^2 n rate { (1-rate) dD (1 - 2 (dF + dP - dD)) + dF dP (1 - rate dF) - rate dP^2 dF (1 - dF) +
    kappa c^2 }, kappa = -(2 - 3 rate) for pairs and -3 (1 - rate) for cycles.

    Accuracy, measured against the exact moments: the relative error of the RMSE falls as 1/n. For dD, dP, dF = 0.1,
    0.3, 0.2 and pairs it is 0.0010 at n = 1,000, 1.0e-05 at n = 100,000 and 1.0e-07 at n = 10,000,000, at rates from
    0.01 to 0.3; that of the standard deviation is as small, for cycles up to 0.0023 at n = 1,000.

    Example
    -------
    >>> import quadrille as qd
    >>> round(qd.theory.large_n_error(100_000, 0.1, 0.3, 0.2, rate=0.05).rmse, 3)
    200.932
    """
    one_of(_OWNER, "kind", kind, ("pairs", "cycles"))
    if whole(_OWNER, "n", n, least=2) > MOST_RECORDS:
        raise bad_parameter(_OWNER, "n", f"at most {MOST_RECORDS:,}", n)
    tau = share(_OWNER, "rate", rate)
    if not _is_number(weight) or not 0 < weight <= LARGEST:
        raise bad_parameter(_OWNER, "weight", f"a number above 0, up to {LARGEST:g}", weight)
    for name, value in (("domain", domain), ("moved", moved), ("stayed", stayed)):
        if not _is_number(value) or not 0 <= value <= 1:
            raise bad_parameter(_OWNER, name, "a share between 0 and 1", value)
    if domain > min(moved, stayed) or domain < moved + stayed - 1:
        raise ParameterError(f"The shares given to {_OWNER} do not fit together: the domain is where both parts meet.")
    c = domain - moved * stayed
    kappa = -3 * (1 - tau) if kind == "cycles" else -(2 - 3 * tau)
    inner = (
        (1 - tau) * domain * (1 - 2 * (stayed + moved - domain))
        + stayed * moved * (1 - tau * stayed)
        - tau * moved**2 * stayed * (1 - stayed)
        + kappa * c**2
    )
    return Error(weight * n * domain, -weight * tau * n * c, max(weight**2 * n * tau * inner, 0.0))


def _is_number(value: object) -> bool:
    return isinstance(value, SupportsFloat) and not isinstance(value, bool)
