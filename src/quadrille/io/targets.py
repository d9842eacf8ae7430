"""What the dossier tells of targets and partners, for methods that draw targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from quadrille.io.markdown import table, value_text
from quadrille.plan import Details
from quadrille.study.score import Scores

Sections = dict[str, list[str]]
MOST_ROWS = 50


def targets_section(details: Details | None) -> Sections:
    """Tell how many targets each stratum has, how they were paired, and which have no partner."""
    if details is None or "targets" not in details.rows:
        return {}
    facts = cast("Mapping[str, Any]", details.facts)
    lines = [
        f"- Targets: {facts['targets']:,}, of which certain by their size: {facts['certain']:,}",
        f"- Pairs: {facts['pairs']:,}, found in {facts['rounds']:,} rounds",
        f"- Total swapping bias: {facts['bias']:.6g}",
        f"- Targets without partner, left as they were: {facts['without_partner']:,}",
        *(f"  - {reason}: {count:,}" for reason, count in facts["reasons"].items()),
    ]
    alone = details.rows["without partner"]
    if len(alone):
        more = f" and {len(alone) - MOST_ROWS:,} more" if len(alone) > MOST_ROWS else ""
        lines.append(f"  - Their rows, counted from 0: {', '.join(map(str, alone[:MOST_ROWS]))}{more}")
    lines.append("- All targets are listed in `targets.parquet`, their partners in `plan.parquet`.")
    head = ("stratum", "records", "never", "asked", "must", "certain", "drawn")
    strata = cast("list[dict[str, object]]", facts["strata"])
    rows = [[str(row[name]) for name in head] for row in strata[:MOST_ROWS]]
    more_strata = len(strata) - len(rows)
    rest = ["", f"{more_strata:,} more strata are in `account.json`."] if more_strata else []
    return {"Targets and partners": [*lines, "", *table(head, rows), *rest]}


def rivals_section(details: Details | None, scores: Scores, rivals: Mapping[str, Scores]) -> Sections:
    """Set the plan beside those the method decided against: cost, bias and every score."""
    if details is None or not rivals:
        return {}
    facts = cast("Mapping[str, Any]", details.facts)
    names = list(rivals)
    rows = [
        [name, value_text(facts[name]), *(value_text(facts[rival][name]) for rival in names)]
        for name in ("pairs", "cost", "bias")
    ]
    rows += [
        [address, value_text(value), *(value_text(rivals[rival][address]) for rival in names)]
        for address, value in scores.items()
    ]
    told = "The same targets matched in another way, for comparison; the first column was released."
    return {"Rivals": [told, "", *table(("", "released", *names), rows)]}
