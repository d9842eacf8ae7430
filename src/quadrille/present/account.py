"""The account of a plan: what was asked for, paired and changed; of a designed swap, cells treated and left as well."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from quadrille.delta import PlanReport, UnitsMoved
from quadrille.plan import Plan
from quadrille.present import Alert, Block, Facts, Items, Pairs, Table, Text, Title, facts, numbers, table
from quadrille.present.numbers import count, counted, score, share, statistic
from quadrille.present.scores import published_tables, scores, verdict
from quadrille.present.words import (
    OF_CYCLES,
    OF_RANKS,
    OF_TARGETED,
    cycle_facts,
    guarantee,
    left_out,
    rank_blocks,
    targeted,
)
from quadrille.recipe import Recipe

if TYPE_CHECKING:
    from quadrille.release.release import Release

_OF_TARGETS = ("targets", "certain", "strata", "pairs", "without_partner", "rounds", "bias", "cost", "reasons")
_OF_RULES = ("rules", "pairs_excluded", "pairs_without_rules")
_OUTCOMES = ("camouflaged", "emptied", "left")
_OF_TABLES = ("kept", "kept_tables", "records_moved", "values_moved", "small_kept_cells", "cells_in_small_kept")
_OF_CELLS = (
    *("small_cells", *_OUTCOMES, "displaced", "new_cells", "exposed_before", "exposed_after", "by_size", "just_large"),
    *("design_loss", "weighted_change", *_OF_TABLES),
)
WORDED = frozenset((*_OF_TARGETS, *_OF_RULES, *_OF_CELLS, *OF_RANKS, *OF_CYCLES, "warnings")) | OF_TARGETED
"""The details of a plan that have words of their own here; a method may remember others."""


def account(report: PlanReport, tables: Sequence[object] = ()) -> list[Block]:
    """Return the account of a plan; `tables` are those that a designed swap protects, where they are named."""
    details = report.details
    known = (*account_facts(report), *target_facts(details), *cycle_facts(details), *rule_facts(details))
    blocks: list[Block] = [Title("What is swapped"), facts(known)]
    if report.variables:
        blocks.append(variable_table(report))
    return [*blocks, *rank_blocks(details), *targeted(details), *diagnosis(report, tables)]


def plan_facts(plan: Plan) -> Pairs:
    """Return what a plan says without its data: how many pairs and records, and which columns change places."""
    pairs = plan.pairs if plan.units is None else plan.unit_pairs
    drawn = "not in pairs" if pairs is None else f"{count(len(pairs))} drawn"
    return (
        ("pairs", drawn if plan.asked is None else f"{count(plan.asked)} asked, {drawn}"),
        ("records", f"{count(len(plan.rows))} take part"),
        ("columns", "; ".join(", ".join(move.columns) for move in plan.moves) or "none"),
    )


def released(done: Release, steering: Sequence[str] = (), loss: object = None) -> list[Block]:
    """Return what a release did, where it is, and what is not in it; `loss` is what a designed swap keeps low."""
    tables = [] if done.tables is None else published_tables(done.tables, loss=loss)
    judged = [] if done.verdict is None else verdict(done.verdict)
    promised = [] if done.guarantee is None else guarantee(done.guarantee)
    blocks = [*account(done.account), *scores(done.scores), *tables, *promised, *judged]
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
    """Return the numbers of pairs and records; many methods are asked for no number of pairs in particular."""
    drawn = "not in pairs" if report.pairs is None else f"{count(report.pairs)} drawn"
    return (
        ("pairs", drawn if report.asked is None else f"{count(report.asked)} asked, {drawn}"),
        *_unit_facts(report.units),
        ("records", _taking_part(report.records, report.n)),
        ("changed", f"{count(report.changed)} ({share(report.changed / report.n)})"),
        ("false swaps", f"{count(report.false_swaps)} (nothing changes)"),
        ("compensating", f"{count(report.compensating)} (records change, the full table does not show it)"),
    )


def _unit_facts(units: UnitsMoved | None) -> Pairs:
    """Return how many whole units, such as households, a plan moves."""
    if units is None:
        return ()
    sizes = () if units.unequal is None else (("of unequal size", f"{counted(units.unequal, 'pair')} of units"),)
    return (("units", f"{_taking_part(units.units, units.n)}, {count(units.changed)} changed"), *sizes)


def _taking_part(part: int, n: int) -> str:
    return f"{count(part)} of {count(n)} take part ({share(part / n)})"


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
    return [Alert("Beware.", warning) for warning in report.warnings]


def target_facts(details: Mapping[str, object]) -> Pairs:
    """Return, for methods that draw targets, how many there are, how they were paired, and why some have no partner."""
    if "targets" not in details:
        return ()
    known = cast("Mapping[str, Any]", details)
    alone = known["without_partner"]
    left = f"{counted(alone, 'target')}, left as {'it was' if alone == 1 else 'they were'}" if alone else "none"
    reasons = (f"{reason}: {count(number)}" for reason, number in known["reasons"].items())
    return (
        (
            "targets",
            f"{count(known['targets'])} drawn to get a partner, {count(known['certain'])} of them certain by size",
        ),
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


LIMITS = (
    "It protects the cells of the stated tables. Other keys need a table of their own.",
    "Somebody who knows all protected variables of a person but one reads off the last, if the person's combination is "
    "still there: attributed_unique counts that. A higher price of an inference leaves fewer there, a coin makes it "
    "uncertain, and variables named as sensitive are left out of the table.",
    "Where exceptions were emptied, groups look purer than they were: attributed can rise.",
    "Kept tables are exact for everybody: they show their own small cells, and they can be subtracted from others.",
    "The choice of cells and records depends on the data, so no formal privacy follows.",
    "Somebody who knows the method knows that small cells were treated, and that those still small are genuine, unless "
    "a coin decided.",
)

_SEVERAL = "Counts are over all protected tables: a record may be in a small cell of several."
_GENUINE = (
    "Cells that are just large enough. Genuine is the share of their records that were there before: what somebody who "
    "knows the method may rely on."
)


def sizes_of_small(n: int) -> str:
    """Name the sizes of cells of fewer than n records.

    >>> from quadrille.present.account import sizes_of_small
    >>> sizes_of_small(2), sizes_of_small(3), sizes_of_small(5)
    ('one record', '1 or 2 records', '1 to 4 records')
    """
    return {2: "one record", 3: "1 or 2 records"}.get(n, f"1 to {n - 1} records")


@dataclass(frozen=True)
class Diagnosis:
    """The facts of a designed swap, in words and tables."""

    found: Mapping[str, Any]
    records: int

    @property
    def n(self) -> int:
        """Cells of fewer records are small."""
        return len(self.found["by_size"]) + 1

    @property
    def facts(self) -> Facts:
        """Cells treated and how, cells left and why, records exposed, and what it costs."""
        found = self.found
        left = found["left"]
        displaced = f"{count(found['displaced'])} displaced to empty ones, " if found.get("displaced") else ""
        treated = (
            f"{count(found['small_cells'])} cells of {sizes_of_small(self.n)}: {count(found['camouflaged'])} "
            f"camouflaged (filled up to {self.n}), {count(found['emptied'])} emptied, {displaced}"
            f"{count(sum(left.values()))} left as they were"
        )
        before, after = found["exposed_before"], found["exposed_after"]
        exposed = (
            f"{count(before)} records before ({share(before / self.records)}), "
            f"{count(after)} after ({share(after / self.records)})"
        )
        return facts(
            [
                ("treated", treated),
                *(("left", f"{count(cells)} cells: {reason}") for reason, cells in left.items()),
                ("exposed", exposed),
                *self._kept(),
                ("loss kept low", self._loss()),
            ]
        )

    def _loss(self) -> str:
        rounds = self.found.get("rounds")
        return score(self.found["design_loss"]) + ("" if rounds is None else f", after {count(rounds)} rounds")

    def _kept(self) -> list[tuple[str, str]]:
        """Say which tables are as they were, and on how many records."""
        found = self.found
        if "kept" not in found:
            return []
        tables = counted(found["kept_tables"], "table")
        rows = [
            ("kept", f"{tables} ({', '.join(found['kept'])}), identical to the last record"),
            (
                "moved",
                f"{counted(found['records_moved'], 'record')}, the fewest that make this table, with "
                f"{counted(found['values_moved'], 'value')}",
            ),
        ]
        if "weighted_change" in found:
            most = statistic(found["weighted_change"])
            rows.append(("weighted", f"a cell of the kept tables changes by a weight of {most} at most"))
        return rows

    @property
    def kept_small(self) -> Alert | None:
        """Warn of small cells of the kept tables, which the release shows as they are."""
        cells, inside = self.found.get("small_kept_cells", 0), self.found.get("cells_in_small_kept", 0)
        if not cells:
            return None
        return Alert(
            "Kept tables have small cells.",
            f"{counted(cells, 'cell')} of fewer than {self.n} records of the kept tables can be seen in the release as "
            f"{'it is' if cells == 1 else 'they are'}; {counted(inside, 'combination')} of the protected variables "
            f"{'lies' if inside == 1 else 'lie'} inside. Merge categories, or keep fewer tables.",
        )

    @property
    def by_size(self) -> Table:
        """The outcome for the small cells of each size."""
        rows = [
            (
                *(count(row[name]) for name in ("records", "cells", *_OUTCOMES)),
                count(row["records"] * row["cells"]),
                count(row["exposed"]),
            )
            for row in self.found["by_size"]
        ]
        head = ("size", "cells", *_OUTCOMES, "exposed before", "exposed after")
        return table(head, rows, caption="Small cells by their size before the swap", numbers=range(7), whole=range(5))

    @property
    def just_large(self) -> Table:
        """Cells of n to n + 2 records, and the share of their records that is genuine."""
        rows = [
            (
                *(count(row[name]) for name in ("records", "cells_before", "cells_after", "unchanged")),
                "-" if row["genuine_share"] is None else share(row["genuine_share"]),
            )
            for row in self.found["just_large"]
        ]
        head = ("size", "cells before", "cells after", "unchanged", "genuine")
        caption = f"Cells of {self.n} to {self.n + 2} records: before, after, and the share of their records after"
        return table(head, rows, caption=f"{caption} that is genuine", numbers=range(5))

    @property
    def beware(self) -> Alert:
        """Why the n-rule alone is no proof, with the numbers of this file."""
        return Alert(
            "Beware.",
            "The n-rule (small_cells) alone can be fooled: swaps that undo one another would bring it near 0 and "
            f"leave all {count(self.found['exposed_before'])} records exposed. Judge by exposed, with small_cells next "
            "to it.",
        )


def diagnosis_of(account: PlanReport) -> Diagnosis | None:
    """Return what a plan says about small cells; None for other methods than designed swapping.

    >>> import quadrille as qd
    >>> from quadrille.present.account import diagnosis_of
    >>> data = qd.datasets.cps8d()
    >>> diagnosis_of(qd.DesignedSwap(effort=0.1, seed=7).plan(data).report(data)).facts.pairs[2]
    ('kept', '28 tables (2-way), identical to the last record')
    """
    found = cast("Mapping[str, Any]", account.details)
    return Diagnosis(found, account.n) if "camouflaged" in found else None


def diagnosis(account: PlanReport, tables: Sequence[object] = ()) -> list[Block]:
    """Say which cells were treated and how, which were not and why, and who is left; nothing for other methods."""
    known = diagnosis_of(account)
    if known is None:
        return []
    several = [Text(_SEVERAL)] if len(tables) > 1 else []
    small = [] if known.kept_small is None else [known.kept_small]
    return [
        *(Title("Small cells"), known.facts, *small, *several, known.by_size, Text(_GENUINE), known.just_large),
        known.beware,
    ]


def price_of_keeping(kept: PlanReport, one_way: PlanReport) -> list[Block]:
    """Set the exposure of a swap that keeps tables next to that of one that keeps the one-way tables only."""
    mine, other = diagnosis_of(kept), diagnosis_of(one_way)
    if mine is None or other is None:
        return []
    rows = [
        (
            ", ".join(each.found["kept"]),
            count(each.found["exposed_after"]),
            share(each.found["exposed_after"] / each.records),
            score(each.found["design_loss"]),
            count(each.found["records_moved"]),
        )
        for each in (mine, other)
    ]
    head = ("kept", "records exposed", "share", "loss", "records moved")
    return [table(head, rows, caption="What keeping the tables costs", numbers=range(1, 5))]


EXACT = (
    "every table of the kept variables together, its percentages, odds ratios and measures of association",
    "with all tables of two: correlations of codes, principal components, correspondence analysis",
    "with all tables of two: linear regressions with main effects, their coefficients and classical standard errors",
    "log-linear models whose terms are among the kept tables",
)
NOT_EXACT = (
    "tables of more variables, weighted tables, logistic regressions unless kept by name, robust standard errors"
)


def exact_for_users(account: PlanReport) -> list[Block]:
    """Say what a data user gets from the release exactly as from the original."""
    known = diagnosis_of(account)
    if known is None or "kept" not in known.found:
        return []
    return [
        Title("Exact for data users"),
        Text(f"Kept: {', '.join(known.found['kept'])}. Whatever is computed from these alone is exact, unweighted:"),
        Items(EXACT),
        Text(f"Not exact: {NOT_EXACT}."),
    ]


def limits() -> Items:
    """Say what must be known of every designed swap."""
    return Items(LIMITS)
