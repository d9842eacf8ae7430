"""What plausibility rules forbid in a designed swap: moves of a base cell to a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import ParameterError
from quadrille.kernels import At
from quadrille.rules import Rules
from quadrille.swap.groups import Ints
from quadrille.swap.plausible import Candidates, Forbidden, Told, count_pairs


@dataclass(frozen=True, eq=False)
class Limits:
    """The rules, and for each mover which records they keep from which values; nothing where there are no rules."""

    rules: Rules
    columns: tuple[tuple[str, ...], ...]
    forbidden: tuple[Forbidden, ...]

    @classmethod
    def of(cls, rules: Rules, movers: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]]) -> Limits:
        """Find out what the rules forbid; `movers` are the columns that decide the level, `columns` all that move."""
        for seen, moved in zip(movers, columns, strict=True):
            for name in moved:
                if name not in seen and rules.about([name]):
                    raise ParameterError(
                        f"A rule of DesignedSwap names {name!r}, which is carried along and in no protected table. "
                        "Name a table that has it with 'tables', or leave the rule out."
                    )
        made = tuple(Forbidden.of(rules, moved) for moved in columns) if rules else ()
        return cls(rules, tuple(columns), made)

    @property
    def patterns(self) -> list[tuple[Ints, int]]:
        """What records are to the rules, mover by mover: a further division of the base cells."""
        return [(each.pattern, len(each.creates)) for each in self.forbidden]

    def arrays(self, leader: Ints, level: Ints, levels: int) -> dict[At, NDArray[np.int64]]:
        """Lay out the patterns of base cells and levels, and which levels a pattern must not take."""
        movers, most = len(self.forbidden), max((len(each.creates) for each in self.forbidden), default=0)
        pattern = np.zeros((movers, len(leader)), dtype=np.int64)
        of_level = np.zeros((movers, levels), dtype=np.int64)
        table = np.zeros((movers, most, most), dtype=np.int64)
        for m, each in enumerate(self.forbidden):
            pattern[m] = each.pattern[leader]
            of_level[m, level[m]] = pattern[m]
            table[m, : len(each.creates), : len(each.creates)] = each.creates
        return {At.PATTERN: pattern, At.LEVEL_PATTERN: of_level, At.FORBIDDEN: table}

    def told(self, leader: Ints, level: Ints, klass: Ints, unlike: Ints, records: Ints) -> list[Told]:
        """Count the pairs of records that may be paired, but for the rules, and that the rules exclude."""
        found: list[Told] = []
        for m, moved in enumerate(self.columns if self.rules else ()):
            about = self.rules.about(moved)
            edits = about.edits(moved).take(leader)
            pairs = Candidates(klass, [level[m], *unlike], records, records, both=True)
            found.append(count_pairs(about, moved, edits, pairs))
        return found
