"""Findings: scores as tables, what attacks on a release found, and what policies say to a release."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, cast

from quadrille import __version__
from quadrille.data import Data
from quadrille.errors import QuadrilleError
from quadrille.measure import measure_of, orient
from quadrille.measure.base import Address, Measure, Score
from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE
from quadrille.measure.population import sample_of
from quadrille.plan import Plan
from quadrille.present import Alert, Block, Facts, Items, Pairs, Table, Text, Title, facts, numbers, table
from quadrille.present.numbers import AS_IT_IS, NONE, count, score, statistic
from quadrille.score.by_area import keys_and_area, with_margin
from quadrille.score.evaluator import Evaluator, Scores
from quadrille.score.published import TableChanges

if TYPE_CHECKING:
    from quadrille.attack.attack import Attack
    from quadrille.attack.input import Finding, Section
    from quadrille.release.judge import Judged, Verdict
    from quadrille.study.choose import Choice
    from quadrille.study.study import Study

Values = Mapping[str, float | None]
BEST = "▸"
THREE = "Three candidates to look at; the limit is the agency's to set"
LONGEST_WHOLE = 12
"""Names of measures up to this length are not broken in the head of a table."""
MOST_CELLS = 10
"""How many cells of published tables fit a terminal."""


def scores(found: Scores) -> list[Block]:
    """Return the scores of a swap, and below them what must be said about some."""
    blocks: list[Block] = [Title("Scores"), score_table({"value": found})]
    notes = [(address, text) for address, (kind, result) in found.results.items() if (text := _said(kind, result))]
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


def of_population(found: Score) -> str:
    """Say how many who are alone in a sample are expected to be found in its population, before and after the swap.

    >>> from quadrille.measure.base import Score
    >>> from quadrille.present.scores import of_population
    >>> known = {"uniques": 347, "expected": 63.7, "uniques_before": 361, "expected_before": 86.7, "population": 488420}
    >>> of_population(Score(0.0013, known)).partition("; ")[0]
    '361 records alone in the file, 86.7 expected right matches to the population of 488,420'
    """
    detail = found.detail
    if "population" not in detail:
        return found.note
    counts = [numbers.count(round(detail[name])) for name in ("uniques_before", "population", "uniques")]
    before, after = (_expected(detail[name]) for name in ("expected_before", "expected"))
    rough = f" ({found.note})" if found.note else ""
    return (
        f"{counts[0]} records alone in the file, {before} expected right matches to the population of {counts[1]}; "
        f"after the swap {counts[2]} and {after}{rough}. {CAUTIOUS}"
    )


def _expected(value: float) -> str:
    return "fewer than 0.1" if 0 < value < 0.05 else numbers.fixed(value, 1)


CAUTIOUS = (
    "exposed takes the file for everybody: it is the cautious number, for an intruder who knows who is in the sample"
)


def _said(kind: Measure, found: Score) -> str:
    """Return what must be said about a score."""
    if kind.name == "population_risk":
        return of_population(found)
    return found.note or (inferred(found.detail) if kind.name == "attributed_unique" else "")


def score_table(
    columns: Mapping[str, Values],
    *,
    addresses: Iterable[str] | None = None,
    caption: str = "",
    rivals: Collection[str] = (),
) -> Table:
    """Return a row per measure and a column per swap; the best of the rivals is marked, unless they are alike."""
    listed = list(next(iter(columns.values())) if addresses is None else addresses)
    rows: list[tuple[str, ...]] = []
    for address in listed:
        kind, values = measure_of(address), [column[address] for column in columns.values()]
        signs = _best(address, [value if name in rivals else None for name, value in zip(columns, values, strict=True)])
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
    worst = _of_published(found)
    rows: list[tuple[str, ...]] = []
    if found.unswapped is not None:
        scores_before = (numbers.score(found.unswapped.get(address)) for address in addresses)
        rows.append((AS_IT_IS, "", *scores_before, *([numbers.share(0.0)] if worst else []), ""))
    for word, choice in choices.items():
        place = int((found.ids == choice.candidate).argmax())
        own = found.scores[place, columns].tolist()
        less = "" if choice.reduction is None else numbers.share(choice.reduction)
        largest = [_largest(found.scores[place, worst].tolist())] if worst else []
        rows.append((word, str(choice.candidate), *map(numbers.score, own), *largest, less))
    head = ("", "candidate", *short_names(addresses), *(["worst cell"] if worst else []), "risk taken away")
    reasons = facts((word, choice.reason) for word, choice in choices.items())
    return [table(head, rows, numbers=range(1, len(head)), whole=(0,)), reasons]


def _of_published(found: Study) -> list[int]:
    """Return which measures of a study are the worst cells of the published tables that it was told of."""
    known = {frozenset(variables) for variables in found.tables}
    parsed = map(Address.parse, found.measures)
    return [i for i, each in enumerate(parsed) if each.name == "worst_cell" and frozenset(each.margin or ()) in known]


def _largest(values: Sequence[float]) -> str:
    """Write the largest change of a cell of several tables; one without a score is left out."""
    known = [value for value in values if not isnan(value)]
    return numbers.share(max(known)) if known else ""


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


def published_tables(found: TableChanges, most: int = MOST_CELLS, *, loss: object = None) -> list[Block]:
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


_CAPTION = "What was found, the same before the swap, and by chance"
CONFIDENTIAL = "It compares the release with the original: keep it with the confidential files."
_KNOWS = {
    "design": "the released file and the design of the swap, but not the seed",
    "file": "the released file, and nothing of how it was made",
}


def attack(found: Attack) -> list[Block]:
    """Return all sections of an attack."""
    known = (
        ("persons", count(found.records)),
        ("keys", ", ".join(found.keys)),
        ("the intruder knows", _KNOWS[found.knows]),
        ("attacked by", f"Quadrille {__version__}"),
    )
    blocks: list[Block] = [Title("The intruder's view"), Alert("Confidential.", CONFIDENTIAL), Facts(known)]
    return [*blocks, *(block for section in found.sections for block in section_blocks(section))]


def section_blocks(section: Section) -> Iterator[Block]:
    """Yield one section: its story, its findings, what must be said about some, and advice."""
    yield Title(section.title)
    if not section.findings:
        yield Text(f"Not made: {section.reason}.")
        return
    yield Text(section.story)
    yield findings_table(section)
    if notes := _notes(section):
        yield Items(notes)
    if section.advice:
        yield Text(f"Advice: {section.advice}")


def _notes(section: Section) -> tuple[str, ...]:
    """Say once what must be said of one finding, of several or of all."""
    about: dict[str, list[str]] = {}
    for finding in section.findings:
        if finding.note:
            about.setdefault(finding.note, []).append(finding.quantity)
    return tuple(
        f"{note[0].upper()}{note[1:]}." if 1 < len(names) == len(section.findings) else f"{'; '.join(names)}: {note}."
        for note, names in about.items()
    )


def findings_table(section: Section) -> Table:
    """Return the findings of a section; the same before the swap, and by chance, stand next to each value."""
    head = ("quantity", "value", "before", "by chance", "of")
    return table(head, map(_row, section.findings), caption=_CAPTION, numbers=range(1, len(head)))


def _row(finding: Finding) -> tuple[str, ...]:
    numbers = (statistic(value) for value in (finding.value, finding.before, finding.chance))
    return finding.quantity, *numbers, NONE if finding.count is None else count(finding.count)


MOST_KEYS = 30
"""With more keys than this each in turn is too many to infer; these measures are then made when they are asked for."""


def exposure(data: Data, plan: Plan, n: int = 3) -> list[Block]:
    """Return who is exposed, next to what is inferred of whom and which small cells are linked, before and after.

    The three belong together: a swap that hides small cells and makes no new one leaves every inference as it was.
    """
    keys = keys_and_area(data, plan.columns)
    if not 1 < len(keys) <= MOST_KEYS:
        return []
    sampled = sample_of(data) is not None
    names = [name for name in _EXPOSURE if sampled or name != _OF_SAMPLE]
    options = {name: "" if n == 3 or name in _WITHOUT_N else f"n={n}" for name in names}
    wanted = {name: with_margin(name, data, keys, options[name]) for name in names}
    judge = Evaluator(data, list(wanted.values()))
    after, before = judge.score(plan), judge.score(Plan([], data=data))
    rows = [
        (address, _EXPOSURE[name], score(before[address]), score(after[address])) for name, address in wanted.items()
    ]
    inferred = wanted["attributed_unique"]
    persons, place = dict(after.results[inferred][1].detail), names.index("attributed_unique") + 1
    if cases := int(persons.get("persons", 0)):
        there, gone = cases - int(persons["gone"]), int(persons["gone"])
        right = f"{count(there)}, {count(int(persons['right']))} surely right" if there else "0"
        rows[place:place] = [
            ("", f"of these {count(cases)} cases: still in the release", count(cases), right),
            ("", "gone from the release", "0", count(gone)),
        ]
    listed = table(
        ("measure", "what it says", "before", "after"),
        rows,
        caption="Who is exposed, inferred and linked",
        numbers=(2, 3),
    )
    told = [Text(f"The file is a sample. {of_population(after.results[wanted[_OF_SAMPLE]][1])}.")] if sampled else []
    return [listed, Text(_MIXTURE), *told]


_OF_SAMPLE = "population_risk"
_WITHOUT_N = (_OF_SAMPLE, "attributed_unique")

_EXPOSURE = {
    "exposed": "persons who stand in small cells of the release as before, as a share of all",
    "population_risk": "expected right matches to the population of the sample, as a share of all records",
    "attributed_unique": "a value inferred right, of those who are alone with the other keys",
    "linked_small": "rows found by the keys, of those who are in small cells",
}
_MIXTURE = (
    "exposed and attributed_unique are read together: small cells that are filled up expose nobody, and still tell "
    "what follows from their keys. attributed_unique mixes persons who are still there with those who are gone: it is "
    "no chance that everybody shares."
)


def verdict(found: Verdict) -> list[Block]:
    """Return what each policy says, and, of several, the verdict of all."""
    blocks = [block for judged in found.policies for block in _judged(judged)]
    return [*blocks, facts([("both policies", found.outcome)])] if len(found.policies) > 1 else blocks


def _judged(found: Judged) -> list[Block]:
    rows = [(line.verdict, line.rule, line.asked, line.found) for line in found.lines]
    blocks: list[Block] = [
        Title(f"Policy: {found.policy}"),
        table(("verdict", "rule", "asked", "found"), rows, caption="The rules of the policy", whole=(0,)),
    ]
    why = [(line.verdict, f"{line.rule}: {line.why}") for line in found.lines if line.why]
    summary = facts([("verdict", found.summary()), ("policy file", found.source())])
    return [*blocks, *([facts(why)] if why else []), summary]
