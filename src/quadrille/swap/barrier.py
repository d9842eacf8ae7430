"""Plausibility rules in a controlled swap: which donors a target passes over, and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quadrille import kernels
from quadrille.data import Data
from quadrille.rules import Rules
from quadrille.swap.cells import Cells
from quadrille.swap.groups import Ints
from quadrille.swap.partners import NO_VALUE, Records
from quadrille.swap.plausible import Candidates, Told, count_pairs, rules_facts


@dataclass(frozen=True, eq=False)
class Barrier:
    """The rules of a recipe, those that a pair may break, and their bits; `edits` is None when there are none."""

    rules: Rules
    bound: Rules
    columns: tuple[str, ...]
    edits: kernels.Edits | None

    @classmethod
    def of(cls, data: Data, texts: Sequence[str], moved: Sequence[str], linked: Mapping[str, Sequence[str]]) -> Barrier:
        """Read the rules for pairs that exchange `moved`, and what is linked where the parent differs."""
        rules = Rules.of(data, texts, "ControlledSwap")
        columns = (*moved, *(name for followers in linked.values() for name in followers))
        bound = rules.about(columns)
        return cls(rules, bound, columns, bound.edits(moved, linked) if bound else None)

    def excluded(self, rows: Ints, cells: Cells, records: Records) -> Told:
        """Count the pairs of a target and a donor, in different cells of a zone, that the rules exclude."""
        if self.edits is None:
            return Told(self.columns, 0, 0)
        rows = rows[records.target[rows] | records.donor[rows]]
        conditions = [cells.cell[rows]]
        if records.value is not None:
            value = records.value[rows]  # a record without missing values agrees with nobody
            conditions.append(np.where(value == NO_VALUE, records.value.max() + 1 + np.arange(len(rows)), value))
        target, donor = records.target[rows].astype(np.int64), records.donor[rows].astype(np.int64)
        candidates = Candidates(cells.zone[cells.cell[rows]], conditions, target, donor, both=False)
        return count_pairs(self.bound, self.columns, self.edits.take(rows), candidates)

    def facts(self, told: Sequence[Told]) -> dict[str, object]:
        """Return what a plan remembers of the rules, over all groups in which partners were looked for."""
        by_rule = {text: sum(each.by_rule[text] for each in told) for text in self.bound.texts}
        possible, excluded = (sum(getattr(each, name) for each in told) for name in ("possible", "excluded"))
        return rules_facts(self.rules, [Told(self.columns, possible, excluded, by_rule)])
