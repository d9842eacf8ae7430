"""What attacks on a release found: for each its story, its findings and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quadrille import __version__
from quadrille.data import Data
from quadrille.measure.base import Score
from quadrille.measure.population import sample_of
from quadrille.plan import Plan
from quadrille.present.blocks import Alert, Block, Facts, Items, Table, Text, Title, table
from quadrille.present.numbers import NONE, count, score, statistic
from quadrille.present.scores import matched_to_population
from quadrille.score.evaluator import Evaluator

if TYPE_CHECKING:
    from quadrille.attack.attack import Attack
    from quadrille.attack.finding import Finding, Section

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


_MOST_KEYS = 30
"""With more keys than this each in turn is too many to infer; these measures are then made when they are asked for."""


def exposure(data: Data, plan: Plan, n: int = 3) -> list[Block]:
    """Return who is exposed, next to what is inferred of whom and which small cells are linked, before and after.

    The three belong together: a swap that hides small cells and makes no new one leaves every inference as it was.
    """
    if not 1 < len(data.keys) <= _MOST_KEYS:
        return []
    sampled = sample_of(data) is not None
    names = [name for name in _EXPOSURE if sampled or name != _OF_SAMPLE]
    wanted = {name: name if n == 3 or name in _WITHOUT_N else f"{name}(n={n})" for name in names}
    judge = Evaluator(data, list(wanted.values()))
    after, before = judge.score(plan), judge.score(Plan([], data=data))
    rows = [
        (address, _EXPOSURE[name], score(before[address]), score(after[address])) for name, address in wanted.items()
    ]
    persons, place = dict(after.results["attributed_unique"][1].detail), names.index("attributed_unique") + 1
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
    told = [Text(_said(after.results[_OF_SAMPLE][1]))] if sampled else []
    return [listed, Text(_MIXTURE), *told]


def _said(found: Score) -> str:
    """Say what is known of the population of a sample."""
    said = "; ".join(filter(None, (matched_to_population(found.detail), found.note)))
    return f"The file is a sample. {said[0].upper()}{said[1:]}."


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
