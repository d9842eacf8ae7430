"""The rules of choice from a study, as the words of the command line give them."""

from __future__ import annotations

from math import isfinite

from quadrille.errors import ParameterError

RULES = ("knee", "least-loss", "least-risk", "linear", "ideal", "lexicographic", "dohrmann")


def checked_rule(
    rule: str | None, trade: float | None, weights: str | None
) -> tuple[str | None, tuple[float, float] | None]:
    """Check the rule and what goes with it."""
    if rule is not None and rule not in RULES:
        raise ParameterError(f"--rule must be one of {', '.join(RULES)}. Got {rule!r}.")
    for option, value, needs in (("--trade", trade, "linear"), ("--weights", weights, "ideal")):
        if value is not None and rule not in (None, needs):
            raise ParameterError(f"{option} goes with --rule {needs}, not with --rule {rule}.")
    if trade is not None and weights is not None:
        raise ParameterError("Give --trade or --weights, not both: they are two rules.")
    if trade is not None and not (isfinite(trade) and trade >= 0):
        raise ParameterError(f"--trade must be a number of 0 or more. Got {trade}.")
    return None if rule is None else rule.replace("-", " "), _weights(weights)


def _weights(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        risk, loss = map(float, text.split(","))
        usable = isfinite(risk + loss) and min(risk, loss) >= 0 and max(risk, loss) > 0
    except ValueError:
        usable = False
        risk = loss = 0.0
    if not usable:
        raise ParameterError("--weights must be two numbers of 0 or more, not both 0, as in 2,1.")
    return risk, loss
