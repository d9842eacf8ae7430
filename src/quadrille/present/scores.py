"""Scores as tables: of one swap, of a swap next to others, of a file before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from quadrille.measure import measure_of, orient
from quadrille.measure.base import Address, Measure
from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE
from quadrille.present import numbers
from quadrille.present.blocks import Block, Items, Table, Text, Title, facts, table
from quadrille.score.evaluator import Scores
from quadrille.score.published import TableChanges

Values = Mapping[str, float | None]
BEST = "▸"
MOST_CELLS = 10
"""How many cells of published tables fit a terminal."""


def scores(found: Scores) -> list[Block]:
    """Return the scores of a swap, and below them what must be said about some."""
    blocks: list[Block] = [Title("Scores"), score_table({"value": found})]
    notes = [
        (address, text)
        for address, (kind, result) in found.results.items()
        if (text := result.note or (inferred(result.detail) if kind.name == "attributed_unique" else ""))
    ]
    if notes:
        blocks.append(facts(notes))
    if any(kind.name in DIVERSITIES for kind, _ in found.results.values()):
        blocks.append(Text(NOT_MONOTONE))
    return blocks


def inferred(detail: Mapping[str, float]) -> str:
    """Say what became of persons who were alone with their keys: one mean is not a chance for everybody.

    >>> from quadrille.present.scores import inferred
    >>> inferred({"persons": 953, "right": 420, "wrong": 3, "undecided": 9, "gone": 521, "right_among_claims": 0.993})
    'of 953 cases 420 still there and inferred right, 3 wrong, 9 undecided, 521 gone; 99.3 % right among claims'
    """
    if not detail.get("persons"):
        return ""
    parts = {name: numbers.count(int(detail[name])) for name in ("persons", "right", "wrong", "undecided", "gone")}
    claims = detail.get("right_among_claims")
    text = (
        "of {persons} cases {right} still there and inferred right, {wrong} wrong, {undecided} undecided, {gone} gone"
    ).format(**parts)
    return text if claims is None else f"{text}; {numbers.share(claims)} right among claims"


def score_table(
    columns: Mapping[str, Values], *, addresses: Iterable[str] | None = None, caption: str = "", best: bool = False
) -> Table:
    """Return a row per measure and a column per swap; `best` marks the best of a row, unless all are alike."""
    listed = list(next(iter(columns.values())) if addresses is None else addresses)
    rows: list[tuple[str, ...]] = []
    for address in listed:
        kind, values = measure_of(address), [column[address] for column in columns.values()]
        signs = _best(address, values) if best else [""] * len(values)
        texts = [sign + numbers.score(value) for sign, value in zip(signs, values, strict=True)]
        rows.append((address, kind.side, kind.direction, *texts))
    head = ("measure", "side", "better", *columns)
    return table(head, rows, caption=caption, numbers=range(3, len(head)))


def _best(address: str, values: list[float | None]) -> list[str]:
    ranks = [None if value is None else orient(address, value) for value in values]
    known = {rank for rank in ranks if rank is not None}
    least = min(known) if len(known) > 1 else None
    return [f"{BEST} " if rank is not None and rank == least else "" for rank in ranks]


def definitions(kinds: Iterable[Measure]) -> Items:
    """Return what measures measure, and where that is from."""
    return Items(tuple(f"{kind.name}: {kind.definition}. Source: {kind.reference}." for kind in dict.fromkeys(kinds)))


def published(found: TableChanges, most: int = MOST_CELLS, *, loss: object = None) -> list[Block]:
    """Return what a swap does to the published tables: each in a line, then the cells over the limits, worst first.

    `loss` is what a designed swap keeps low, where there is one: it is said which of the tables are in it.
    """
    head = ("table", "cells", "changed", "over limits", "largest change", "points")
    rows = [
        (
            each.name,
            *(numbers.count(value) for value in (len(each), each.changed, int(each.over.sum()))),
            f"{numbers.statistic(each.worst_percent)} %",
            numbers.statistic(each.worst_points),
        )
        for each in found.tables
    ]
    limits = found.limits
    basis = "in sums of weights" if found.weighted else "in records"
    said = (
        f"Over the limits are cells that change by more than {limits.percent:g} %, or whose share of the table changes "
        f"by more than {limits.points:g} percentage {'point' if limits.points == 1 else 'points'}, {basis}. A cell "
        f"of fewer than {limits.floor:,} records counts as one of {limits.floor:,}, or the smallest would always come "
        "first."
    )
    caption = "The published tables: cells, how many change and are over the limits, the largest change"
    overview = table(head, rows, caption=caption, numbers=range(1, len(head)))
    return [Title("Published tables"), overview, Text(said + _kept_low(found, loss)), *_worst_cells(found, most)]


def _kept_low(found: TableChanges, loss: object) -> str:
    """Say which of the tables are in the loss of a designed swap."""
    named = cast("Iterable[str]", loss if isinstance(loss, Mapping) else [loss] if isinstance(loss, str) else [])
    margins = {frozenset(address.margin or ()) for address in map(Address.parse, named)}
    low = [each.name for each in found.tables if frozenset(each.variables) in margins]
    return f" The swap was chosen so that the change is small, too, in {', '.join(low)}." if low else ""


def _worst_cells(found: TableChanges, most: int) -> list[Block]:
    if not found.count_over:
        return [Text("No cell is over the limits.")]
    head = ("cell", "records", *(("weighted",) if found.weighted else ()), "change", "points")
    rows = [
        (
            str(each["cell"]),
            _step(each["records_before"], each["records_after"]),
            *((_step(each["before"], each["after"]),) if found.weighted else ()),
            _percent(cast("float | None", each["percent"])),
            numbers.signed(cast("float", each["points"]), 2),
        )
        for each in found.worst(most, over=True)
    ]
    left = found.count_over - len(rows)
    more = [Text(f"{numbers.count(left)} more cells are over the limits.")] if left else []
    caption = "The cells over the limits, worst first, before and after"
    amounts = range(1, len(head))
    return [table(head, rows, caption=caption, numbers=amounts, whole=amounts), *more]


def _step(before: object, after: object) -> str:
    """Write a count before and after."""
    return " → ".join(numbers.count(cast("float", amount)) for amount in (before, after))


def _percent(change: float | None) -> str:
    """Write the change of a cell; from nothing there are no per cent."""
    return "was empty" if change is None else f"{numbers.signed(change, 1)} %"
