"""Columns of text become numbers and dates, where the codebook leaves open what they are.

Whether the day, the month or the year comes first is told from all dates of a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from quadrille.codebook import Variable
from quadrille.errors import InputError
from quadrille.io.frames.columns import settled, wants_in_file
from quadrille.io.frames.values import NUMBER, few_whole, parse_numbers, too_large, without_marks
from quadrille.io.layout import Layout, say

_NOTHING = r"^(?:NA|NaN|\.|\s+)$"
"""Words for a missing value that R, Python, SAS and Stata write among numbers, and blanks."""

_COMMA = r"^-?(?:(?:0|[1-9][0-9]*)(?:,[0-9]*)?|,[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_GROUPS = r"^-?[1-9][0-9]{0,2}(?:,[0-9]{3})+$"
_SAMPLE = 1000


def settled_by_text(variable: Variable, table: pl.DataFrame) -> Variable:
    """Tell numbers among which missing codes are text by the rest of the column, where the codebook says no kind."""
    codes = [code for code in variable.missing if isinstance(code, str)]
    if not variable.kind_open or variable.recodes or not codes or variable.name not in table.columns:
        return variable
    rest = parse_numbers(without_marks(table[variable.name], variable)[0])
    if not rest.dtype.is_numeric():
        return variable
    told, others = settled(variable, rest), [code for code in variable.missing if code not in codes]
    found = rest.drop_nulls().unique().sort().to_list() if told.coded else []
    return replace(told, categories=tuple(value for value in found if value not in others))


@dataclass
class ParsedText:
    """A table of text with numbers and dates parsed where the codebook leaves the type open, and what was found.

    A decimal mark, and whether the day or the month comes first, holds for the whole file.
    """

    table: pl.DataFrame
    given: Mapping[str, Variable]
    said: Layout
    where: str
    decimal: str = "."
    dates: str = ""
    remarks: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        texts = {series.name: series for series in self.table.get_columns() if series.dtype == pl.String}
        wanted = {name: wants_in_file(self.given.get(name)) for name in texts}
        void: list[str] = []
        columns = dict(texts)
        numbers = {name: parse_numbers(text) for name, text in texts.items() if wanted[name] in ("any", "number")}
        for name in [name for name, series in numbers.items() if series.dtype == pl.String]:
            columns[name], emptied = _without_words(texts[name], self.given.get(name))
            if emptied:
                void.append(name)
                numbers[name] = parse_numbers(columns[name])
        self.decimal = self.said.decimal or self._decimal(columns, numbers)
        if self.decimal == ",":
            swapped = {name: _with_points(columns[name], self.given.get(name)) for name in numbers}
            columns |= {name: text for name, text in swapped.items() if wanted[name] == "number"}
            numbers = {name: parse_numbers(text) for name, text in swapped.items()}
        for name, text in columns.items():
            variable = self.given.get(name)
            if variable is not None and "" in variable.missing:
                columns[name] = text.fill_null("")
            elif wanted[name] == "number":
                columns[name] = _with_infinite(text)
            elif wanted[name] == "any" and numbers[name].dtype.is_numeric():
                columns[name] = few_whole(numbers[name])
        loose = [text for name, text in columns.items() if text.dtype == pl.String and wanted[name] == "any"]
        dates = dates_of(loose, self.said.dates)
        columns |= {series.name: series for series in dates.columns}
        self.dates = dates.order
        names = [name for name in void if wanted[name] == "number" or columns[name].dtype.is_numeric()]
        told = [f"NA, NaN, . and blanks are missing in: {', '.join(names)}"] if names else []
        self.remarks += [*dates.remarks, *told]
        self.table = self.table.with_columns(list(columns.values()))

    def _decimal(self, texts: Mapping[str, pl.Series], numbers: Mapping[str, pl.Series]) -> str:
        """Tell whether the numbers have decimal commas; refuse a file that leaves it open."""
        open_ones = [texts[name] for name, series in numbers.items() if series.dtype == pl.String]
        commas = [text for text in open_ones if _has_commas(text)]
        if not commas:
            return "."
        clear = [text for text in commas if not text.drop_nulls().str.contains(_GROUPS + "|^-?[0-9]*$").all()]
        floats = [name for name, series in numbers.items() if series.dtype.is_float()]
        points = [name for name in floats if texts[name].str.contains(".", literal=True).any()]
        if clear and not points:
            return ","
        names = ", ".join(repr(text.name) for text in commas[:5])
        why = (
            f"and points in {', '.join(map(repr, points[:5]))}: one of the two marks decimals"
            if points
            else "with three digits after each, so that they mark decimals or thousands"
        )
        raise InputError(
            f"{self.where} has numbers with commas in {names}, {why}. {say('decimal', ',', '.')} "
            "What is no number then stays text."
        )


def _has_commas(text: pl.Series) -> bool:
    """Whether every text is a number, some of them with a comma."""
    present = text.drop_nulls()
    sample = present.gather_every(max(1, len(present) // _SAMPLE))
    numbers = sample.str.contains(_COMMA).all() and present.str.contains(_COMMA).all()
    return numbers and bool(present.str.contains(",", literal=True).any())


def _with_points(text: pl.Series, variable: Variable | None) -> pl.Series:
    """Write decimals with a point instead of a comma, and a point, which is then none, with a comma."""
    codes = [code for code in (() if variable is None else variable.missing) if isinstance(code, str)]
    return text.str.replace_many([",", "."], [".", ","]).zip_with(~text.is_in(codes).fill_null(value=False), text)


def _without_words(text: pl.Series, variable: Variable | None) -> tuple[pl.Series, bool]:
    """Empty the fields that hold a word for a missing value, or blanks, where all the others are numbers."""
    wanted, missing = wants_in_file(variable), () if variable is None else variable.missing
    sample = text.gather_every(max(1, len(text) // _SAMPLE)).drop_nulls()
    if wanted not in ("any", "number") or not sample.str.contains(f"{NUMBER}|{_COMMA}|{_NOTHING}").all():
        return text, False
    listed = text.is_in([code for code in missing if isinstance(code, str)])
    void = (text.str.contains(_NOTHING) & ~listed).fill_null(value=False)
    if not void.any():
        return text, False
    rest = text.set(void, None)
    numeric = wanted == "number" or parse_numbers(rest).dtype.is_numeric() or _has_commas(rest)
    return (rest, True) if numeric else (text, False)


def _with_infinite(text: pl.Series) -> pl.Series:
    """Return declared numbers as such when some of them are infinite, else the text, which is checked later."""
    infinite = text.is_in(["inf", "-inf"]).fill_null(value=False)
    if not infinite.any():
        return text
    rest = text.filter(~infinite).drop_nulls()
    numbers = parse_numbers(rest)
    plain = rest.is_empty() or numbers.dtype.is_float() or (numbers.dtype.is_integer() and not too_large(numbers))
    return text.cast(pl.Float64) if plain else text


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
