"""What attacks on a release found: for each its story, its findings and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quadrille.present.blocks import Alert, Block, Facts, Items, Table, Text, Title, table
from quadrille.present.numbers import NONE, count, statistic

if TYPE_CHECKING:
    from quadrille.attack.attack import Attack
    from quadrille.attack.finding import Finding, Section

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
    notes = [f"{finding.quantity}: {finding.note}." for finding in section.findings if finding.note]
    if notes:
        yield Items(tuple(notes))
    if section.advice:
        yield Text(section.advice)


def findings_table(section: Section) -> Table:
    """Return the findings of a section; the same before the swap, and by chance, stand next to each value."""
    head = ("quantity", "value", "before", "by chance", "of")
    return table(head, map(_row, section.findings), caption=section.title, numbers=range(1, len(head)))


def _row(finding: Finding) -> tuple[str, ...]:
    numbers = (statistic(value) for value in (finding.value, finding.before, finding.chance))
    return finding.quantity, *numbers, NONE if finding.count is None else count(finding.count)
