"""Scores as tables: of one swap, of a swap next to others, of a file before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quadrille.errors import QuadrilleError
from quadrille.measure import measure_of, orient
from quadrille.measure.base import Measure
from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE
from quadrille.present import numbers
from quadrille.present.blocks import Block, Items, Pairs, Table, Text, Title, facts, table
from quadrille.present.numbers import AS_IT_IS, count
from quadrille.score.evaluator import Scores

if TYPE_CHECKING:
    from quadrille.study.choose import Choice
    from quadrille.study.study import Study

Values = Mapping[str, float | None]
BEST = "▸"
THREE = "Three candidates to look at; the limit is the agency's to set"
LONGEST_WHOLE = 12
"""Names of measures up to this length are not broken in the head of a table."""


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


def study(found: Study) -> list[Block]:
    """Return what a study holds, and the candidates to show to those who set the limit."""
    pick = found.picked
    picked = () if pick is None else (("picked", f"candidate {pick.candidate}: {pick.reason}"),)
    try:
        axes = found.axis("risk", None), found.axis("loss", None)
    except QuadrilleError as error:  # a search by risk or by loss alone has no frontier
        return [Title("Study"), facts((*study_facts(found.path, found.counts()), *picked)), Text(str(error))]
    known = study_facts(found.path, found.counts(), axes, len(found.frontier(*axes)))
    choices = found.recommended(*axes)
    three = [Title(THREE), *recommended(found, choices, judged_by(found, axes))] if choices else []
    return [Title("Study"), facts((*known, *picked)), *three]


def study_facts(
    path: object, counts: Mapping[str, int], axes: tuple[str, str] | None = None, frontier: int = 0
) -> Pairs:
    """Say where a study is, how many candidates it has, and how many of them are on the frontier of two axes."""
    listed = ", ".join(f"{count(number)} {status}" for status, number in counts.items() if number)
    known = (
        ("study", f"{path} (it holds the seeds: keep it confidential)"),
        ("candidates", f"{count(sum(counts.values()))}: {listed}"),
    )
    on = () if axes is None else (("frontier", f"{count(frontier)} candidates on {axes[0]} and {axes[1]}"),)
    return (*known, *on)


def judged_by(found: Study, axes: tuple[str, str]) -> tuple[str, ...]:
    """Return the measures to show: the two axes, and next to the n-rule always what cannot be fooled."""
    exposed = [address for address in found.measures if measure_of(address).name == "exposed"]
    n_rule = any(measure_of(address).name == "small_cells" for address in axes)
    return tuple(dict.fromkeys((*axes, *(exposed if n_rule else []))))


def recommended(found: Study, choices: Mapping[str, Choice], addresses: Sequence[str]) -> list[Block]:
    """Return recommended candidates next to one another, the file as it is first, and why each of them."""
    columns = [found.measures.index(address) for address in addresses]
    rows: list[tuple[str, ...]] = []
    if found.unswapped is not None:
        scores_before = (numbers.score(found.unswapped.get(address)) for address in addresses)
        rows.append((AS_IT_IS, "", *scores_before, ""))
    for word, choice in choices.items():
        own = found.scores[int((found.ids == choice.candidate).argmax()), columns].tolist()
        less = "" if choice.reduction is None else numbers.share(choice.reduction)
        rows.append((word, str(choice.candidate), *map(numbers.score, own), less))
    head = ("", "candidate", *short_names(addresses), "risk taken away")
    reasons = facts((word, choice.reason) for word, choice in choices.items())
    return [table(head, rows, numbers=range(1, len(head)), whole=(0,)), reasons]


def short_names(measures: Sequence[str]) -> list[str]:
    """Return short headings: the name of a long address, where no other one has it."""
    names = [address.partition("(")[0] for address in measures]
    return [
        name if len(address) > LONGEST_WHOLE and names.count(name) == 1 else address
        for name, address in zip(names, measures, strict=True)
    ]


def definitions(kinds: Iterable[Measure]) -> Items:
    """Return what measures measure, and where that is from."""
    return Items(tuple(f"{kind.name}: {kind.definition}. Source: {kind.reference}." for kind in dict.fromkeys(kinds)))
