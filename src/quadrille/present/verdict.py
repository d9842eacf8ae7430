"""What policies say to a release, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadrille.present.blocks import Block, Title, facts, table

if TYPE_CHECKING:
    from quadrille.release.judge import Judged, Verdict


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
