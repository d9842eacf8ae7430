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

    `value` numbers the original swap values of records that have missing ones, -1 for the others; None without any.
    `x_by_cell`: all records of a cell have the same x. `edits` are those of the plausibility rules, None without any.
    """

    weight: Ints
    x: Floats
    target: Flags
    donor: Flags
    value: Ints | None = None
    x_by_cell: bool = True
    edits: kernels.Edits | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """Pairs (target, donor) with their biases in ticks, targets without partner, and the number of rounds.

    `lonely` are those without partner that had no donor in another cell of their zone from the beginning, `barred`
    those to whom the rules left none of them.
    """

    pairs: Pairs
    bias: Floats
    alone: Ints
    lonely: Ints
    rounds: int
    barred: Ints


def make_market(rows: Ints, cells: Cells, records: Records) -> kernels.Market:
    """Sort donors and targets among some rows; rows come sorted by cell and weight."""
    donors, targets = rows[records.donor[rows]], rows[records.target[rows]]
    cell, weight = cells.cell[donors], records.weight[donors]
    run_start = np.flatnonzero(_starts(cell, weight))
    bounds = np.searchsorted(cells.zone, np.arange(int(cells.zone.max(initial=-1)) + 2))
    value = np.full(1, NO_VALUE) if records.value is None else records.value
    target_value = np.full(len(targets), NO_VALUE) if records.value is None else records.value[targets]
    edits = records.edits or kernels.no_edits(0)
    choosy: Flags = target_value != NO_VALUE
    if records.edits is not None:
        # Nobody who meets neither the part of a rule that stays nor the part that moves can break it, or make others.
        choosy = choosy | ((edits.stay | edits.move)[targets] != 0).any(axis=1)
    if choosy.any():
        order = np.lexsort((choosy, cells.cell[targets]))  # stable: by weight within both
        targets, target_value, choosy = targets[order], target_value[order], choosy[order]
    return kernels.Market(
        donors=donors,
        run_start=np.append(run_start, len(donors)),
        run_weight=weight[run_start],
        cell_start=np.searchsorted(cell[run_start], np.arange(cells.count + 1)),
        zone_first=bounds[cells.zone],
        zone_last=bounds[cells.zone + 1] - 1,
        targets=targets,
        line=2 * cells.cell[targets] + choosy,
        target_cell=cells.cell[targets],
        target_value=target_value,
        target_weight=records.weight[targets],
        choosy=choosy,
        weight=_read_only(records.weight),
        x=_read_only(records.x),
        value=_read_only(value),
        one_x=records.x_by_cell,
        edits=edits,
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
    asked, line = kernels.nothing_asked(market), kernels.open_line(market)
    stock = kernels.open_stock(market)
    dice = kernels.dice(stream.words(8 * len(market.targets) + 64))
    crowd = np.zeros(1, dtype=np.int64)
    rounds, active = 0, len(line.first)
    while active:
        read = int(dice.cursor[0])
        left = int(kernels.pair_round(active, crowd, asked, line, stock, market, dice))
        if left < 0:
            # The round begins again, with more words of the same stream.
            dice = kernels.dice(stream.words(2 * len(dice.words)))
            dice.cursor[0] = read
            continue
        rounds += 1
        active = left
    paired = asked.partner >= 0
    pairs = np.stack((market.targets[paired], asked.partner[paired]), axis=1)
    alone, lonely = market.targets[~paired], _lonely(market, market.target_cell[~paired])
    asked_in_vain = np.flatnonzero(~paired)[~lonely] if market.edits.stay.shape[1] else np.empty(0, dtype=np.int64)
    barred = [t for t in asked_in_vain.tolist() if kernels.rules_leave_nobody(t, market)]
    return Found(pairs, asked.bias[paired], alone, alone[lonely], rounds, market.targets[barred])


def _lonely(market: kernels.Market, cell: Ints) -> Flags:
    """Tell in which of these cells' zones no other cell has a donor."""
    before = market.run_start[market.cell_start]
    in_zone = before[market.zone_last[cell] + 1] - before[market.zone_first[cell]]
    return in_zone == before[cell + 1] - before[cell]
