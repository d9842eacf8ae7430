"""The account of a plan: what was asked, what was paired and what really changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from quadrille.cross import Cross
from quadrille.data import Data, unequal
from quadrille.delta import Delta
from quadrille.plan import Move, Plan
from quadrille.traces import traces

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Moved:
    """One variable's part in a plan. Rates are shares of all records."""

    variable: str
    asked: int | None
    pairs: int | None
    records: int
    changed: int
    rate_paired: float
    rate_changed: float


@dataclass(frozen=True)
class Account:
    """What a plan does: counts of pairs and records, per variable and in all.

    `false_swaps` are pairs (records, where a move has no pairs) in which nothing changes. `compensating`
    counts the records that changed although the count of the full cell they left and of the one they
    reached is the same after as before: the released table does not show that they moved. `details` are facts that
    some methods add, such as the targets of each stratum. `warnings` say which traces an intruder could see: weights
    that no longer fit their strata.
    """

    n: int
    asked: int | None
    pairs: int | None
    records: int
    changed: int
    false_swaps: int
    compensating: int
    variables: tuple[Moved, ...]
    details: Mapping[str, object] = field(default_factory=dict[str, object])
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)

    def frame(self) -> pl.DataFrame:
        """Return one row per variable."""
        from quadrille import frames

        return frames.tidy([asdict(moved) for moved in self.variables])


def account(plan: Plan, data: Data) -> Account:
    """Account for a plan on its data."""
    plan.check(data)
    delta = Delta(data, plan)
    old, new = delta.cells(Cross.of(data, tuple(name for name in data.keys if name not in plan.aside)))
    differs = np.zeros(len(delta.rows), dtype=bool)
    for name in plan.columns:
        was, now = delta.values(name)
        differs |= unequal(was, now)
    return Account(
        n=data.n,
        asked=plan.asked,
        pairs=_pairs(plan),
        records=len(plan.rows),
        changed=int(differs.sum()),
        false_swaps=sum(_false(move, data) for move in plan.moves),
        compensating=_compensating(old, new),
        variables=tuple(_moved(move, name, plan, data) for move in plan.moves for name in move.columns),
        details={} if plan.details is None else plan.details.facts,
        warnings=tuple(traces(data, plan)),
    )


def _pairs(plan: Plan) -> int | None:
    if plan.pairs is not None:
        return len(plan.pairs)
    listed = [move.pairs for move in plan.moves if move.pairs is not None]
    return sum(map(len, listed)) if len(listed) == len(plan.moves) else None


def _moved(move: Move, name: str, plan: Plan, data: Data) -> Moved:
    rows, source = move.given
    values = data[name].values
    changed = int(unequal(values[rows], values[source]).sum())
    pairs = None if move.pairs is None else len(move.pairs)
    return Moved(name, plan.asked, pairs, len(rows), changed, len(rows) / data.n, changed / data.n)


def _false(move: Move, data: Data) -> int:
    rows, source = (move.pairs[:, 0], move.pairs[:, 1]) if move.pairs is not None else move.given
    same = np.ones(len(rows), dtype=bool)
    for name in move.columns:
        values = data[name].values
        same &= ~unequal(values[rows], values[source])
    return int(same.sum())


def _compensating(old: np.ndarray, new: np.ndarray) -> int:
    """Count changed records between cells whose counts have not changed."""
    if not len(old):
        return 0
    _, place = np.unique(np.concatenate((old, new)), return_inverse=True)
    left, reached = place[: len(old)], place[len(old) :]
    net = np.bincount(reached, minlength=place.max() + 1) - np.bincount(left, minlength=place.max() + 1)
    return int(((left != reached) & (net[left] == 0) & (net[reached] == 0)).sum())
