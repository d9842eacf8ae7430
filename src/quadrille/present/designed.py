"""What a designed swap says about itself, in words and rows: for the dossier, the report and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from quadrille.delta import PlanReport
from quadrille.present.markdown import table

Sections = dict[str, list[str]]
Rows = list[tuple[str, ...]]

SIZE_HEAD = ("size", "cells", "camouflaged", "emptied", "left", "exposed before", "exposed after")
NEAR_HEAD = ("size", "cells before", "cells after", "unchanged", "genuine")
LIMITS = (
    "It protects the cells of the stated tables. Other keys need a table of their own.",
    "The choice of cells and records depends on the data, so no formal privacy follows.",
    "Somebody who knows the method knows that small cells were treated, and that those still small are genuine.",
)


@dataclass(frozen=True)
class Diagnosis:
    """The facts of a designed swap, each as text."""

    facts: Mapping[str, Any]
    records: int

    @property
    def n(self) -> int:
        """Cells of fewer records are small."""
        return len(self.facts["by_size"]) + 1

    @property
    def sizes(self) -> str:
        """The sizes of small cells, in words."""
        return {2: "one record", 3: "1 or 2 records"}.get(self.n, f"1 to {self.n - 1} records")

    @property
    def treated(self) -> str:
        """How many cells were treated, and how."""
        facts = self.facts
        left = sum(facts["left"].values())
        return (
            f"{facts['small_cells']:,} cells of {self.sizes}: {facts['camouflaged']:,} camouflaged (filled up to "
            f"{self.n}), {facts['emptied']:,} emptied, {left:,} left as they were"
        )

    @property
    def exposed(self) -> str:
        """How many records are exposed before and after."""
        before, after = self.facts["exposed_before"], self.facts["exposed_after"]
        return f"{before:,} records before ({self.share(before)}), {after:,} after ({self.share(after)})"

    @property
    def near(self) -> str:
        """What became of the cells that are just large enough: what an intruder may think of them."""
        first = self.facts["just_large"][0]
        share = first["genuine_share"]
        told = "" if share is None else f"; {share:.0%} of their records were there before".replace("%", " %")
        return f"{first['cells_before']:,} cells of {first['records']} before, {first['cells_after']:,} after{told}"

    @property
    def n_rule(self) -> str:
        """Why the n-rule alone is no proof, with the numbers of this file."""
        return (
            "The n-rule (small_cells) alone can be fooled: swaps that undo one another would bring it near 0 and leave "
            f"all {self.facts['exposed_before']:,} records exposed. Judge by exposed, with small_cells beside it."
        )

    @property
    def left(self) -> Rows:
        """Why cells were left, and how many."""
        return [(reason, f"{count:,}") for reason, count in self.facts["left"].items()]

    @property
    def by_size(self) -> Rows:
        """What became of the small cells of each size."""
        names = ("cells", "camouflaged", "emptied", "left")
        return [
            (
                str(row["records"]),
                *(f"{row[name]:,}" for name in names),
                f"{row['records'] * row['cells']:,}",
                f"{row['exposed']:,}",
            )
            for row in self.facts["by_size"]
        ]

    @property
    def just_large(self) -> Rows:
        """Cells of n to n + 2 records, and the share of their records that is genuine."""
        return [
            (
                str(row["records"]),
                *(f"{row[name]:,}" for name in ("cells_before", "cells_after", "unchanged")),
                "-" if row["genuine_share"] is None else f"{100 * row['genuine_share']:.1f} %",
            )
            for row in self.facts["just_large"]
        ]

    def share(self, records: int) -> str:
        """Write a number of records as a share of all."""
        return f"{100 * records / self.records:.3f} %" if self.records else "-"


def diagnosis_of(account: PlanReport) -> Diagnosis | None:
    """Return what a plan says about small cells; None for other methods than designed swapping.

    >>> import quadrille as qd
    >>> from quadrille.present.designed import diagnosis_of
    >>> data = qd.datasets.cps8d()
    >>> diagnosis_of(qd.DesignedSwap(share=0.5, seed=7).plan(data).report(data)).treated
    '547 cells of 1 or 2 records: ... camouflaged (filled up to 3), 0 emptied, ... left as they were'
    """
    facts = cast("Mapping[str, Any]", account.details)
    return Diagnosis(facts, account.n) if "camouflaged" in facts else None


def designed_section(account: PlanReport, tables: Sequence[object] = ()) -> Sections:
    """Tell in the dossier which cells were treated and how, which were not and why, and who is left.

    `tables` are the protected ones, where they are named.
    """
    found = diagnosis_of(account)
    if found is None:
        return {}
    several = ["- Counts are over all protected tables: a record may be in a small cell of several."]
    left = table(("why cells were left", "cells"), found.left) if found.left else ["No small cell was left."]
    return {
        "Small cells": [
            f"- Treated: {found.treated}",
            f"- Exposed: {found.exposed}",
            f"- Loss that was kept low: {found.facts['design_loss']:.6g}, after {found.facts['rounds']} rounds",
            *(several if len(tables) > 1 else []),
            "",
            *left,
            "",
            *table(SIZE_HEAD, found.by_size),
            "",
            "Cells that are just large enough. *Genuine* is the share of their records that were there before: what "
            "somebody who knows the method may rely on.",
            "",
            *table(NEAR_HEAD, found.just_large),
            "",
            f"**Beware.** {found.n_rule}",
            "",
            *(f"- {line}" for line in LIMITS),
        ]
    }
