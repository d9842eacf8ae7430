"""The account of a plan: what was asked for, what was paired, what really changed, and what steered the draw."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from quadrille.delta import PlanReport
from quadrille.plan import Plan
from quadrille.present import numbers
from quadrille.present.blocks import Alert, Block, Pairs, Table, Text, Title, facts, table
from quadrille.present.designed import OF_CELLS, diagnosis, diagnosis_of
from quadrille.present.numbers import count, counted, share
from quadrille.present.scores import scores
from quadrille.present.verdict import verdict
from quadrille.present.words import left_out
from quadrille.recipe import Recipe

if TYPE_CHECKING:
    from quadrille.release.release import Release

_OF_TARGETS = ("targets", "certain", "strata", "pairs", "without_partner", "rounds", "bias", "cost", "reasons")
_OF_RULES = ("rules", "pairs_excluded", "pairs_without_rules")
WORDED = frozenset((*_OF_TARGETS, *_OF_RULES, *OF_CELLS))
"""The details of a plan that have words of their own here; a method may remember others."""


def account(report: PlanReport, tables: Sequence[object] = ()) -> list[Block]:
    """Return the account of a plan; `tables` are those that a designed swap protects, where they are named."""
    known = (*account_facts(report), *target_facts(report.details), *rule_facts(report.details))
    blocks: list[Block] = [Title("What is swapped"), facts(known)]
    if report.variables:
        blocks.append(variable_table(report))
    return [*blocks, *diagnosis(report, tables)]


def plan_facts(plan: Plan) -> Pairs:
    """Return what a plan says without its data: how many pairs and records, and which columns change places."""
    drawn = "not in pairs" if plan.pairs is None else f"{count(len(plan.pairs))} drawn"
    return (
        ("pairs", drawn if plan.asked is None else f"{count(plan.asked)} asked, {drawn}"),
        ("records", f"{count(len(plan.rows))} take part"),
        ("columns", "; ".join(", ".join(move.columns) for move in plan.moves) or "none"),
    )


def released(done: Release, steering: Sequence[str] = ()) -> list[Block]:
    """Return what a release did, where it is, and what is not in it."""
    blocks = [*account(done.account), *scores(done.scores), *([] if done.verdict is None else verdict(done.verdict))]
    places = (
        ("to publish", f"{done.public}/"),
        ("to lock away", f"{done.confidential}/ (it can undo the release)"),
    )
    blocks += [Title("Written"), facts(places)]
    if done.again is not None and done.again.repeats is not None:
        blocks.append(Text(done.again.text()))
    blocks += [Text(text) for text in left_out(done.left_out, steering)]
    return [
        *blocks,
        *([Title("Not in the file"), facts(("-", text) for text in done.not_held)] if done.not_held else []),
    ]


def account_facts(report: PlanReport) -> Pairs:
    """Return the numbers of pairs and records; a designed swap may be asked for no number of pairs in particular."""
    drawn = "not in pairs" if report.pairs is None else f"{count(report.pairs)} drawn"
    free = report.asked is None and (report.pairs is None or diagnosis_of(report) is not None)
    return (
        ("pairs", drawn if free else f"{count(report.asked)} asked, {drawn}"),
        ("records", f"{count(report.records)} of {count(report.n)} take part ({share(report.records / report.n)})"),
        ("changed", f"{count(report.changed)} ({share(report.changed / report.n)})"),
        ("false swaps", f"{count(report.false_swaps)} (nothing changes)"),
        ("compensating", f"{count(report.compensating)} (records change, the full table does not show it)"),
    )


def variable_table(report: PlanReport) -> Table:
    """Return each variable's part in a plan."""
    rows = [
        (m.variable, count(m.pairs), count(m.records), count(m.changed), share(m.rate_paired), share(m.rate_changed))
        for m in report.variables
    ]
    head = ("variable", "pairs", "records", "changed", "share paired", "share changed")
    return table(head, rows, caption="The variables, with shares of all records", numbers=range(1, 6))


def traces(report: PlanReport) -> list[Alert]:
    """Return what an intruder could see of a plan."""
    return [Alert("It leaves a trace.", warning) for warning in report.warnings]


def target_facts(details: Mapping[str, object]) -> Pairs:
    """Return, for methods that draw targets, how many there are, how they were paired, and why some have no partner."""
    if "targets" not in details:
        return ()
    known = cast("Mapping[str, Any]", details)
    alone = known["without_partner"]
    left = f"{counted(alone, 'target')}, left as {'it was' if alone == 1 else 'they were'}" if alone else "none"
    reasons = (f"{reason}: {count(number)}" for reason, number in known["reasons"].items())
    return (
        ("targets", f"{count(known['targets'])} drawn, {count(known['certain'])} of them certain by size"),
        (
            "partners",
            f"{counted(known['pairs'], 'pair')} in {counted(known['rounds'], 'round')}, "
            f"total swapping bias {numbers.statistic(known['bias'])}",
        ),
        ("no partner", "; ".join((left, *reasons))),
    )


def rule_facts(details: Mapping[str, object]) -> Pairs:
    """Return what a plan remembers of its rules: in all, then rule by rule; nothing without rules.

    >>> from quadrille.present.account import rule_facts
    >>> rows = [{"rule": "Age<16 & MS=Widowed", "broken_before": 2, "moved": "MS", "pairs_excluded": 50}]
    >>> for line in rule_facts({"rules": rows, "pairs_excluded": 50, "pairs_without_rules": 4000}):
    ...     print(": ".join(line))
    rules: exclude 50 of 4,000 pairs (1.25 %)
    Age<16 & MS=Widowed: excludes 50 pairs that exchange MS; 2 records meet it already
    """
    known = cast("Mapping[str, Any]", details)
    if not known.get("rules"):
        return ()
    if "pairs_excluded" not in known:  # a design that never lets a record come to meet one
        met = ((row["rule"], counted(row["broken_before"], "record meets", "records meet")) for row in known["rules"])
        return (("rules", "no record comes to meet one"), *((str(rule), f"{told} it already") for rule, told in met))
    excluded, possible = known["pairs_excluded"], known.get("pairs_without_rules", 0)
    of_all = f" of {count(possible)} pairs ({share(excluded / possible)})" if possible else " pairs"
    return (
        ("rules", f"exclude {count(excluded)}{of_all}"),
        *((str(row["rule"]), _rule(row)) for row in known["rules"]),
    )


def _rule(row: Mapping[str, Any]) -> str:
    does = f"excludes {row['pairs_excluded']:,} pairs that exchange {row['moved']}"
    return f"{row.get('remark', does)}; {counted(row['broken_before'], 'record meets', 'records meet')} it already"


def strata_table(details: Mapping[str, object], most: int | None = None) -> Table:
    """Return the targets of each stratum, or of the first ones."""
    head = ("stratum", "records", "never", "asked", "must", "certain", "drawn")
    strata = cast("Sequence[Mapping[str, Any]]", details["strata"])[:most]
    rows = [(str(row["stratum"]), *(count(row[name]) for name in head[1:])) for row in strata]
    return table(head, rows, caption="Targets by stratum", numbers=range(1, len(head)))


def alternatives_table(details: Mapping[str, object], names: Iterable[str]) -> Table:
    """Set a plan next to those that its method decided against: pairs, cost and bias."""
    known = cast("Mapping[str, Any]", details)
    columns = {"this swap": known, **{name: known[name] for name in names}}
    rows = [(name, *(numbers.value(column[name]) for column in columns.values())) for name in ("pairs", "cost", "bias")]
    caption = "The same targets matched in another way"
    return table(("", *columns), rows, caption=caption, numbers=range(1, len(columns) + 1))


_IN_RELEASE = "The recipe; its seed is in recipe.json of the release"


def recipe_table(recipe: Recipe, *further: tuple[str, str], caption: str = _IN_RELEASE) -> Table:
    """Return the parameters of a recipe that are not at their default; never the seed."""
    design: dict[str, object] = json.loads(recipe.design_json())
    rows = [(name, numbers.parameter(value)) for name, value in design.items()]
    return table(("parameter", "value"), (*rows, *further), caption=caption)
