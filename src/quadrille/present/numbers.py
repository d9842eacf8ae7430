"""One way to write each kind of quantity: the terminal, the dossier, the reports and the charts show the same digits.

JSON holds the full number; every text here is a correct rounding of it. A minus is written as `-`, in the terminal and
in Markdown, and set as a true minus in HTML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite, isinf, isnan
from typing import cast

from quadrille.text import percent

NONE = "-"
UNDEFINED = "undefined"
AS_IT_IS = "the file as it is"
"""What candidates are compared with."""


def count(number: float | None) -> str:
    """Write a number of records, pairs or cells, or a weighted count: whole, with commas.

    >>> from quadrille.present.numbers import count
    >>> count(48842), count(None)
    ('48,842', '-')
    """
    return NONE if number is None else f"{number:,.0f}"


def total(weights: float) -> str:
    """Write the total of the weights of a file.

    >>> from quadrille.present.numbers import total
    >>> total(1234567.25)
    '1,234,567.25'
    """
    return f"{weights:,.10g}"


def share(value: float | None, digits: int = 4) -> str:
    """Write a share as per cent with four digits; "0 %" is none and "100 %" is all, never nearly.

    What is estimated from few draws has fewer digits.

    >>> from quadrille.present.numbers import share
    >>> share(0.0150076), share(0.9423), share(1.0), share(0.0000012), share(0.99999)
    ('1.501 %', '94.23 %', '100 %', '0.00012 %', '99.999 %')
    """
    return UNDEFINED if value is None else percent(value, digits)


def score(value: float | None) -> str:
    """Write the value of a measure, of whichever one: six digits, as limits are given, so 0.01 is 1 %.

    >>> from quadrille.present.numbers import score
    >>> score(0.0228231456), score(1.0), score(None), score(float("inf"))
    ('0.0228231', '1', 'undefined', 'infinite')
    """
    if value is None or isnan(value):
        return UNDEFINED
    return "infinite" if isinf(value) else f"{value:.6g}"


def statistic(value: float | None, digits: int = 4) -> str:
    """Write what sums scores or estimates up (a mean, a standard deviation, an effect): four digits.

    Tables of many columns, which must fit a terminal, have room for three.

    >>> from quadrille.present.numbers import statistic
    >>> statistic(1234.5), statistic(-0.00012345), statistic(None), statistic(float("inf"))
    ('1,234.5', '-0.0001234', '-', 'infinite')
    """
    if value is None or isnan(value):
        return NONE
    if isinf(value):
        return "infinite"
    return f"{value:,.1f}" if abs(value) >= 10 ** min(digits, 3) else f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int) -> str:
    """Write an estimate with the decimals of its column.

    >>> from quadrille.present.numbers import fixed
    >>> fixed(1204.256, 2), fixed(None, 2)
    ('1,204.26', '-')
    """
    return NONE if value is None or isnan(value) else f"{value:,.{decimals}f}"


def ratio(value: float | None) -> str:
    """Write a relative difference or a gap as per cent with one decimal.

    >>> from quadrille.present.numbers import ratio
    >>> ratio(0.12345), ratio(None)
    ('12.3 %', '-')
    """
    return NONE if value is None else f"{100 * value:.1f} %"


def odds(value: float) -> str:
    """Write how many times as likely something is.

    >>> from quadrille.present.numbers import odds
    >>> odds(2.718), odds(22026.5), odds(6.94e10)
    ('2.7', '22,026', '6.9e10')
    """
    if value < 1e6:
        return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
    mantissa, _, power = f"{value:.1e}".partition("e")
    return "more than any number that fits" if mantissa == "inf" else f"{mantissa}e{int(power)}"


def epsilon(value: float) -> str:
    """Write an epsilon so that it is never less than it is.

    >>> from quadrille.present.numbers import epsilon
    >>> epsilon(12.755), epsilon(11.9999999), epsilon(2.4849)
    ('12.76', '12', '2.49')
    """
    rounded = round(value + 0.005 - 1e-7, 2)
    return f"{rounded:g}"


def signed(value: float, decimals: int = 0) -> str:
    """Write a difference with its sign.

    >>> from quadrille.present.numbers import signed
    >>> signed(12), signed(-1204.25, 1), signed(0.0001)
    ('+12', '-1,204.2', '0')
    """
    text = f"{value:+,.{decimals}f}"
    return text if any(digit in "123456789" for digit in text) else "0"


def value(value: object) -> str:
    """Write any fact that a method or a measure remembers: a count, a statistic, a flag or a text.

    >>> from quadrille.present.numbers import value
    >>> value(12345), value(0.0123456), value(True), value(None), value("Age")
    ('12,345', '0.01235', 'yes', '-', 'Age')
    """
    if isinstance(value, float):
        return statistic(value)
    return count(value) if isinstance(value, int) and not isinstance(value, bool) else parameter(value)


def parameter(value: object) -> str:
    """Write the value of a parameter or of a fact: lists with commas, sets of columns with stars, weights by name.

    >>> from quadrille.present.numbers import parameter
    >>> parameter(0.02), parameter(["Age", "Sex"]), parameter([["Age", "Sex"], ["Edu"]]), parameter({"hellinger": 2.0})
    ('0.02', 'Age, Sex', 'Age*Sex, Edu', 'hellinger: 2.0')
    """
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {parameter(part)}" for name, part in cast("Mapping[str, object]", value).items())
    if isinstance(value, list | tuple):
        return ", ".join(_set_of_columns(part) for part in cast("Sequence[object]", value))
    return value if isinstance(value, str) else json.dumps(value)


def _set_of_columns(value: object) -> str:
    return "*".join(map(str, cast("list[object]", value))) if isinstance(value, list | tuple) else parameter(value)


def counted(number: int, one: str, many: str | None = None) -> str:
    """Say how many: '1 seed', '1,204 seeds'.

    >>> from quadrille.present.numbers import counted
    >>> counted(1204, "seed"), counted(1, "has", "have")
    ('1,204 seeds', '1 has')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def pace(seconds: float) -> str:
    """Write the time of a candidate, never with a power of ten.

    >>> from quadrille.present.numbers import pace
    >>> pace(0.000094), pace(0.25), pace(12)
    ('0.094 ms', '250 ms', '12.0 s')
    """
    if seconds < 0.01:
        return f"{max(1000 * seconds, 0.001):.2g} ms"
    return f"{1000 * seconds:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it.

    >>> from quadrille.present.numbers import duration
    >>> duration(0.2), duration(600), duration(9000)
    ('1 s', '10 minutes', '2.5 hours')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"


def finite(value: object) -> float | None:
    """Return a number that can be shown, else None."""
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
