"""The intruder's view of the chosen candidate: attack by attack its story, what was found, and what helps."""

from __future__ import annotations

from dataclasses import replace

from quadrille import chart
from quadrille.attack.attack import attack
from quadrille.attack.input import Section
from quadrille.present.blocks import table
from quadrille.present.numbers import count
from quadrille.present.scores import exposure, section_blocks
from quadrille.report.input import ReportInput, Row

_IN_SHORT = (": attributed", ": right among claims")


def intruder(scope: ReportInput) -> Row:
    """Attack the chosen candidate as somebody would who knows all but the seed."""
    plan, recipe = scope.chosen.plan, scope.study.recipe(scope.chosen.number)
    found = attack(scope.data, plan, n=scope.n, recipe=recipe)
    found = replace(found, sections=tuple(map(_in_short, found.sections)))
    not_made = [(section.title, section.reason) for section in found.sections if not section.findings]
    return {
        "charts": {"What an intruder gains": chart.attacks(found.frame())},
        "known": count(len(found.keys)),
        "exposure": exposure(scope.data, plan, scope.n),
        "blocks": [block for section in found.sections if section.findings for block in section_blocks(section)],
        "not_made": table(("attack", "why"), not_made, caption="Attacks that were not made"),
    }


def _in_short(section: Section) -> Section:
    """Keep one line per target and what all targets have together: a page for the board, not a listing."""
    together = [finding for finding in section.findings if finding.quantity.startswith("all targets")]
    if not together:
        return section
    single = [finding for finding in section.findings if finding.quantity.endswith(_IN_SHORT)]
    return replace(section, findings=(*together, *single))
