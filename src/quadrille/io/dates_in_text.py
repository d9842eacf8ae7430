"""Dates in delimited text: whether the day, the month or the year comes first, told from all of them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from quadrille.io.layout import say

_SAMPLE = 1000
_YEAR_LAST = r"^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})$"
_YEAR_FIRST = r"^(\d{4})([./-])(\d{1,2})([./-])(\d{1,2})$"
_ISO = r"^\d{4}-\d{2}-\d{2}$"


@dataclass(frozen=True)
class Dates:
    """The columns that are dates, written as in ISO 8601; which part came first; what stays open."""

    columns: list[pl.Series]
    order: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Column:
    """A column of dates, and the orders of day, month and year in which all of them exist."""

    text: pl.Series
    orders: dict[str, pl.Series]


def dates_of(texts: list[pl.Series], said: str | None) -> Dates:
    """Read the columns in which every text is a date; ISO dates stay as they are.

    With dots the day comes before the month. With slashes or hyphens, one column with a day beyond the twelfth tells
    it for all. Where none does, the dates stay text.
    """
    found = [column for text in texts if (column := _column(text)) is not None]
    clear = {next(iter(column.orders)) for column in found if len(column.orders) == 1} - {"ymd"}
    open_ones = [column for column in found if len(column.orders) > 1]
    order = said if said in ("dmy", "mdy") else next(iter(clear)) if len(clear) == 1 else None
    read: list[pl.Series] = []
    remarks: list[str] = []
    used: list[str] = []
    for column in found:
        orders = column.orders if len(column.orders) == 1 else {k: v for k, v in column.orders.items() if k == order}
        if said is not None and said not in column.orders:
            orders = {}
        for name, days in orders.items():
            read.append(days)
            used.append(name)
    if open_ones and order is None:
        names = ", ".join(column.text.name for column in open_ones)
        remarks.append(
            f"dates stay text, since the day or the month may come first, in: {names}. {say('dates', 'dmy', 'mdy')}"
        )
    if len(set(used)) > 1:
        remarks.append("dates are written in more than one order; each column is read in its own")
    return Dates(read, used[0] if len(set(used)) == 1 else "", tuple(remarks))


def _column(text: pl.Series) -> _Column | None:
    present = text.drop_nulls()
    sample = present.gather_every(max(1, len(present) // _SAMPLE))
    for pattern in (_YEAR_LAST, _YEAR_FIRST):
        if not present.is_empty() and sample.str.contains(pattern).all() and present.str.contains(pattern).all():
            orders = _orders(text, year_first=pattern == _YEAR_FIRST)
            return _Column(text, orders) if orders and not sample.str.contains(_ISO).all() else None
    return None


def _orders(text: pl.Series, *, year_first: bool) -> dict[str, pl.Series]:
    parts = text.str.replace_all("[./]", "-")
    if year_first:
        forms = {"ymd": "%Y-%m-%d"}
    elif text.str.contains(".", literal=True).any():
        forms = {"dmy": "%d-%m-%Y"}
    else:
        forms = {"dmy": "%d-%m-%Y", "mdy": "%m-%d-%Y"}
    days = {order: parts.str.to_date(form, strict=False) for order, form in forms.items()}
    return {order: d.dt.strftime("%Y-%m-%d") for order, d in days.items() if d.null_count() == text.null_count()}
