"""The fast lane of a search: random pairs that exchange together, scored on the full table in one kernel.

It draws the same pairs from the same words as the plain path, and gives the same scores. What it cannot do (weights,
other tables, a dead end in the draw, an undefined score) goes the plain way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quadrille import kernels
from quadrille.cross import Cross
from quadrille.data import Codes, Data
from quadrille.measure_base import Call
from quadrille.randomness import Stream
from quadrille.recipe import Exchange
from quadrille.study.axes import kind_of
from quadrille.summary import Table

_CODES = {
    "hellinger": kernels.HELLINGER,
    "total_variation": kernels.TOTAL_VARIATION,
    "entropy_change": kernels.ENTROPY_CHANGE,
    "small_cells": kernels.SMALL_CELLS,
    "exposed": kernels.EXPOSED,
    "confidence": kernels.CONFIDENCE,
}
_SMALL = (kernels.SMALL_CELLS, kernels.EXPOSED, kernels.CONFIDENCE)


class FastLane:
    """The full table of the key variables before, ready for any exchange of random pairs."""

    def __init__(self, data: Data, measures: Sequence[tuple[int, int]]) -> None:
        self._cross = Cross.of(data, data.keys)
        self._cells = self._cross.cells(data).astype(np.int32)
        count = Table(data.keys).of(data).count
        small = [float(count[count < n].sum()) if code in _SMALL else 0.0 for code, n in measures]
        cells = np.zeros((self._cross.possible, 4), dtype=np.int32)
        cells[:, 0] = count
        self._table = kernels.FullTable(
            cells=cells,
            total=float(data.n),
            roots=np.sqrt(np.arange(data.n + 1)),
            measures=np.array(measures, dtype=np.int64).T.copy(),
            start=np.array(small),
        )
        self._words = 0  # what the last draw of this exchange needed
        self._lane: tuple[Exchange, Codes, Codes, Codes] | None = None

    @classmethod
    def build(cls, data: Data, measures: Sequence[str]) -> FastLane | None:
        """Return the fast lane for these measures, or None if they need the plain path."""
        calls = [Call.parse(address) for address in measures]
        plain = any(call.margin or call.where or call.name not in _CODES for call in calls)
        if plain or data.weight is not None or not Cross.of(data, data.keys).dense:
            return None
        kinds = [kind_of(address).bound(call) for address, call in zip(measures, calls, strict=True)]
        return cls(data, [(_CODES[kind.name], kind.options.get("n", 0)) for kind in kinds])

    def run(self, exchange: Exchange, stream: Stream) -> tuple[float, ...] | None:
        """Draw and score one candidate; None when it must go the plain way."""
        log, part, cell_at = self._prepared(exchange)
        out = np.empty(len(self._table.start))
        _, pool, pair_uniform, pairs, name = exchange
        source = stream.sub(name)
        while True:
            dice = kernels.dice(source.words(self._words))
            done = kernels.score_candidate(pairs, pair_uniform, pool, log, dice, self._table, part, cell_at, out)
            if done >= 0:
                return tuple(out.tolist()) if done else None
            self._words *= 2

    def _prepared(self, exchange: Exchange) -> tuple[Codes, Codes, Codes]:
        """Return a log, the part of each cell's number that moves, and the cell at each place of the pool."""
        if self._lane is None or self._lane[0] is not exchange:
            self._words = 64 + 6 * exchange.pairs
            log = np.zeros(2 * exchange.pairs + 2, dtype=np.int64)
            self._lane = exchange, log, self._cross.part(exchange.columns), self._cells[exchange.pool.order]
        return self._lane[1:]
