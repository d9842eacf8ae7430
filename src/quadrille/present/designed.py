"""What a designed swap says about itself: small cells treated and left, who is still exposed, what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from quadrille.delta import PlanReport
from quadrille.present.blocks import Alert, Block, Facts, Items, Table, Text, Title, facts, table
from quadrille.present.numbers import count, counted, score, share, statistic

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
_OUTCOMES = ("camouflaged", "emptied", "left")
_OF_TABLES = ("kept", "kept_tables", "records_moved", "values_moved", "small_kept_cells", "cells_in_small_kept")
OF_CELLS = (
    *("small_cells", *_OUTCOMES, "displaced", "new_cells", "exposed_before", "exposed_after", "by_size", "just_large"),
    *("design_loss", "weighted_change", *_OF_TABLES),
)
"""The details of a plan that are worded here."""

_SEVERAL = "Counts are over all protected tables: a record may be in a small cell of several."
_GENUINE = (
    "Cells that are just large enough. Genuine is the share of their records that were there before: what somebody who "
    "knows the method may rely on."
)


def sizes_of_small(n: int) -> str:
    """Name the sizes of cells of fewer than n records.

    >>> from quadrille.present.designed import sizes_of_small
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
    >>> from quadrille.present.designed import diagnosis_of
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
