"""Finding partners for targets within zones: the published greedy search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.plan import Pairs
from quadrille.randomness import Stream
from quadrille.swap.cells import Cells, Floats
from quadrille.swap.groups import Ints

Flags = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)
NO_VALUE = -1


@dataclass(frozen=True, eq=False)
class Records:
    """What decides about partners, per record: weight in ticks, x of the bias, and who is a target or a donor.

    `value` numbers the original swap values where some of them were imputed, else it is None: then the cell tells them.
    """

    weight: Ints
    x: Floats
    target: Flags
    donor: Flags
    value: Ints | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """Pairs (target, donor) with their biases in ticks, targets without partner, and the number of rounds."""

    pairs: Pairs
    bias: Floats
    alone: Ints
    rounds: int


def make_market(rows: Ints, cells: Cells, records: Records) -> kernels.Market:
    """Sort the donors among some rows by cell, original value and weight; rows come sorted by cell and weight."""
    donors = rows[records.donor[rows]]
    targets = rows[records.target[rows]]
    cell = cells.cell[donors]
    value = np.full(len(donors), NO_VALUE) if records.value is None else records.value[donors]
    if records.value is not None:
        resorted = np.lexsort((records.weight[donors], value, cell))
        donors, cell, value = donors[resorted], cell[resorted], value[resorted]
    weight = records.weight[donors]
    new_kind = _starts(cell, value)
    new_run = new_kind | _starts(weight)
    run_start = np.flatnonzero(new_run)
    kind_place = np.flatnonzero(new_kind)
    bounds = np.searchsorted(cells.zone, np.arange(int(cells.zone.max(initial=-1)) + 2))
    return kernels.Market(
        donors=donors,
        run_start=np.append(run_start, len(donors)),
        run_weight=weight[run_start],
        kind_start=np.append(np.searchsorted(run_start, kind_place), len(run_start)),
        kind_value=value[kind_place],
        cell_start=np.searchsorted(cell[kind_place], np.arange(cells.count + 1)),
        zone_first=bounds[cells.zone],
        zone_last=bounds[cells.zone + 1] - 1,
        targets=targets,
        target_cell=cells.cell[targets],
        target_value=np.full(len(targets), NO_VALUE - 1) if records.value is None else records.value[targets],
        target_weight=records.weight[targets],
        weight=_read_only(records.weight),
        x=_read_only(records.x),
    )


def _read_only(values: NDArray[T]) -> NDArray[T]:
    """Return a view that cannot be written to: one kind of array, so that one compiled search serves all files."""
    view = values.view()
    view.setflags(write=False)
    return view


def _starts(*columns: Ints) -> Flags:
    """Mark the places at which any of the columns differs from the place before."""
    first = np.zeros(len(columns[0]), dtype=bool)
    first[:1] = True
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    return first


def find_partners(market: kernels.Market, stream: Stream) -> Found:
    """Run the greedy search: rounds of nearest cells, closest weights and smallest biases."""
    asked = kernels.nothing_asked(market)
    stock = kernels.open_stock(market, len(market.weight))
    waiting = np.arange(len(market.targets))
    dice = kernels.dice(stream.words(8 * len(waiting) + 64))
    rounds = 0
    while len(waiting):
        read = int(dice.cursor[0])
        losers = int(kernels.pair_round(waiting, asked, stock, market, dice))
        if losers < 0:
            # The round begins again, with more words of the same stream.
            dice = kernels.dice(stream.words(2 * len(dice.words)))
            dice.cursor[0] = read
            continue
        rounds += 1
        waiting = waiting[:losers]
    paired = asked.partner >= 0
    pairs = np.stack((market.targets[paired], asked.partner[paired]), axis=1)
    return Found(pairs, asked.bias[paired], market.targets[~paired], rounds)
