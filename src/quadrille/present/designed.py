"""What a designed swap says about itself: small cells treated and left, who is still exposed, what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from quadrille.delta import PlanReport
from quadrille.present.blocks import Alert, Block, Facts, Items, Table, Text, Title, facts, table
from quadrille.present.numbers import count, score, share

LIMITS = (
    "It protects the cells of the stated tables. Other keys need a table of their own.",
    "The choice of cells and records depends on the data, so no formal privacy follows.",
    "Somebody who knows the method knows that small cells were treated, and that those still small are genuine.",
)
_OUTCOMES = ("camouflaged", "emptied", "left")
OF_CELLS = ("small_cells", *_OUTCOMES, "exposed_before", "exposed_after", "by_size", "just_large", "design_loss")
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
        treated = (
            f"{count(found['small_cells'])} cells of {sizes_of_small(self.n)}: {count(found['camouflaged'])} "
            f"camouflaged (filled up to {self.n}), {count(found['emptied'])} emptied, "
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
                ("loss kept low", f"{score(found['design_loss'])}, after {count(found['rounds'])} rounds"),
            ]
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
    >>> diagnosis_of(qd.DesignedSwap(share=0.5, seed=7).plan(data).report(data)).facts.pairs[0]
    ('treated', '547 cells of 1 or 2 records: ... camouflaged (filled up to 3), 0 emptied, ... left as they were')
    """
    found = cast("Mapping[str, Any]", account.details)
    return Diagnosis(found, account.n) if "camouflaged" in found else None


def diagnosis(account: PlanReport, tables: Sequence[object] = ()) -> list[Block]:
    """Say which cells were treated and how, which were not and why, and who is left; nothing for other methods."""
    known = diagnosis_of(account)
    if known is None:
        return []
    several = [Text(_SEVERAL)] if len(tables) > 1 else []
    return [Title("Small cells"), known.facts, *several, known.by_size, Text(_GENUINE), known.just_large, known.beware]


def limits() -> Items:
    """Say what must be known of every designed swap."""
    return Items(LIMITS)
