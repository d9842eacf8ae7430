"""The n-rule never alone: a chart that shows `small_cells` shows `exposed` next to it, which no swap can fool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from quadrille.errors import ParameterError, QuadrilleError
from quadrille.measure import measure_of
from quadrille.measure.base import Address

_N_RULE, _BESIDE = "small_cells", "exposed"
COMPANION = "companion"
"""The column of a second risk, where it is not named by its measure."""


def is_n_rule(measure: str) -> bool:
    """Whether a measure is the n-rule, whatever its margin and options."""
    return measure.partition("(")[0].strip() == _N_RULE


def beside(measure: str) -> str:
    """Return the measure that belongs beside an n-rule: of the same margin, with the same options.

    >>> from quadrille.chart.n_rule import beside
    >>> beside("small_cells(Age*Sex, n=5)")
    'exposed(Age*Sex, n=5)'
    """
    return _BESIDE + measure.strip().removeprefix(_N_RULE)


def matches(one: str, other: str) -> bool:
    """Whether two addresses mean the same measure, however they are written.

    >>> from quadrille.chart.n_rule import matches
    >>> matches("exposed(Sex*Age)", "exposed(Age*Sex, n=3)"), matches("exposed", "exposed(n=5)")
    (True, False)
    """
    return one.strip() == other.strip() or _meaning(one) == _meaning(other)


def _meaning(address: str) -> tuple[object, ...]:
    try:
        call = Address.parse(address)
        margin = None if call.margin is None else frozenset(call.margin)
        return call.name, margin, call.where, tuple(measure_of(call.text).with_options(call).options.items())
    except QuadrilleError:  # an axis may carry any text
        return (address.strip(),)


def missing(shown: Iterable[str], there: Sequence[str] = ()) -> dict[str, str]:
    """Return what is missing beside each n-rule among the measures shown; `there` are further ones."""
    shown = list(shown)
    wanted = {rule: beside(rule) for rule in shown if is_n_rule(rule)}
    return {rule: want for rule, want in wanted.items() if not any(matches(want, each) for each in (*shown, *there))}


def require_companions(owner: str, rows: pl.DataFrame, of: str = "frame", where: str = "") -> None:
    """Refuse an n-rule in column `measure` without `exposed` there; `where` says which rows these are."""
    for rule, want in missing(rows["measure"].unique(maintain_order=True)).items():
        raise refusal(owner, rule, f"Column 'measure' of the {of} has no {want!r} with a value{where}.")


def refusal(owner: str, rule: str, lack: str) -> ParameterError:
    """Build the message for an n-rule that would stand alone."""
    return ParameterError(
        f"{owner} cannot show {rule} alone: swaps can fool the n-rule, so {beside(rule)} stands beside it. {lack} "
        "A search scores it by itself; in a score of your own, name both measures."
    )


def with_companion(
    owner: str, frame: pl.DataFrame, axes: tuple[str, str], given: str | None
) -> tuple[pl.DataFrame, str | None]:
    """Return the frame with the second risk in column `companion`, and its measure; None where there is no need.

    Beside the n-rule it is `exposed`, found in the frame by its name. Any other second risk is drawn when it is
    `given`; its values are in a column of that name, or in `companion`.
    """
    alone = missing(axes)
    if len(alone) > 1:
        raise ParameterError(f"{owner} has room for one n-rule. Draw {' and '.join(alone)} one at a time.")
    rule, want = next(iter(alone.items()), (None, given))
    if want is None:
        return frame, None
    if rule is not None and given is not None and not matches(given, want):
        raise refusal(owner, rule, f"Leave out companion={given!r}.")
    if given is not None and COMPANION in frame.columns:
        return frame, want
    named = next((name for name in frame.columns if matches(name, want)), None)
    if named is not None:
        return frame.with_columns(frame[named].alias(COMPANION)), want
    if rule is not None:
        raise refusal(owner, rule, f"The frame has no column {want!r}.")
    return frame, want
