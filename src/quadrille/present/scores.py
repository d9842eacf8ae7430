"""Scores as tables: of one swap, of a swap next to others, of a file before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quadrille.measure import measure_of, orient
from quadrille.measure.base import Measure
from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE
from quadrille.present import numbers
from quadrille.present.blocks import Block, Items, Table, Text, Title, facts, table
from quadrille.score.evaluator import Scores

Values = Mapping[str, float | None]
BEST = "▸"


def scores(found: Scores) -> list[Block]:
    """Return the scores of a swap, and below them what must be said about some."""
    blocks: list[Block] = [Title("Scores"), score_table({"value": found})]
    notes = [
        (address, text)
        for address, (kind, result) in found.results.items()
        if (text := "; ".join(filter(None, (_OF_DETAIL.get(kind.name, lambda _: "")(result.detail), result.note))))
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


def matched_to_population(detail: Mapping[str, float]) -> str:
    """Say how many of those who are alone in a sample are expected to be found in its population, before and after.

    >>> from quadrille.present.scores import matched_to_population
    >>> known = {"uniques": 347, "expected": 63.7, "uniques_before": 361, "expected_before": 86.7, "population": 488420}
    >>> matched_to_population(known).partition("; ")[0]
    '361 records alone in the file, 86.7 expected right matches to the population of 488,420'
    """
    if "population" not in detail:
        return ""
    counts = [numbers.count(round(detail[name])) for name in ("uniques_before", "population", "uniques")]
    before, after = (f"{detail[name]:,.1f}" for name in ("expected_before", "expected"))
    return (
        f"{counts[0]} records alone in the file, {before} expected right matches to the population of {counts[1]}; "
        f"after the swap {counts[2]} and {after}. {CAUTIOUS}"
    )


CAUTIOUS = (
    "exposed takes the file for everybody: it is the cautious number, for an intruder who knows who is in the sample"
)
_OF_DETAIL = {"attributed_unique": inferred, "population_risk": matched_to_population}


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
