"""What moving a record between neighbouring cells does to counts, exposure and loss; fillers balance such moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Floats, Whole, kernel, no_alloc
from quadrille.kernels.designed import EXHAUSTED_LISTED, NONE, NOTHING, Fillers, Lattice, Real
from quadrille.kernels.draw import Dice, below

Ints = NDArray[np.int64]

HELLINGER, TOTAL_VARIATION, CHI_SQUARE = 1, 2, 3
"""Losses of a table; 0 is none."""
NEVER = np.inf
"""The cost of what must not be done."""
FORTH, BACK = np.int64(1), np.int64(-1)


@no_alloc
def raw_loss(kind: Whole, before: Real, after: Real, total: Real) -> Real:
    """Return what a cell adds to the raw loss of its table."""
    if kind == HELLINGER:
        return -np.sqrt(before * max(after, 0.0)) / total
    if kind == TOTAL_VARIATION:
        return 0.5 * abs(after - before) / total
    if before > 0:
        return (after - before) ** 2 / before
    return NEVER if after > 1e-9 else 0.0


@no_alloc
def exposure(before: Whole, after: Whole, n: Whole) -> Whole:
    """Return how many records of a cell are exposed: in a small cell, and matching a true record."""
    return min(before, after) if 0 < after < n else NOTHING


@no_alloc
def level_of(m: Whole, base: Whole, lattice: Lattice) -> Whole:
    """Return the level of a base cell in a mover."""
    return np.int64(lattice.base_levels[m, base].level)


@no_alloc
def neighbour(m: Whole, cell: Whole, level: Whole, lattice: Lattice) -> Whole:
    """Return the cell that differs from a cell in this level of a mover only, or -1 where there is none."""
    low = np.int64(lattice.places[m, cell].first)
    high = last = low + lattice.places[m, cell].size
    while low < high:  # neighbours are in ascending order of level
        middle = (low + high) // 2
        if lattice.neighbours[m, middle].level < level:
            low = middle + 1
        else:
            high = middle
    if low < last and lattice.neighbours[m, low].level == level:
        return np.int64(lattice.neighbours[m, low].cell)
    return NONE


@no_alloc
def step_in(t: Whole, m: Whole, base: Whole, to: Whole, lattice: Lattice) -> tuple[bool, Whole, Whole]:
    """Return whether a move changes a table, the cell that is left and the one that is reached, -1 for a new one."""
    goal = np.int64(lattice.seen_level[t, m, to])
    if lattice.seen_level[t, m, level_of(m, base, lattice)] == goal:
        return False, NONE, NONE
    left = np.int64(lattice.cell_of[t, base])
    return True, left, neighbour(m, left, goal, lattice)


@no_alloc
def cell_cost(t: Whole, cell: Whole, weight: Real, lattice: Lattice) -> Real:
    """Return the change of the raw loss of a table when a cell gains this weight; a new cell (-1) held none."""
    kind, total = lattice.tables[t].loss, lattice.tables[t].total
    if cell < 0:
        return raw_loss(kind, 0.0, weight, total)
    before, after = lattice.cells[cell].weight_before, lattice.cells[cell].weight
    return raw_loss(kind, before, after + weight, total) - raw_loss(kind, before, after, total)


@no_alloc
def is_forbidden(m: Whole, base: Whole, to: Whole, lattice: Lattice) -> Whole:
    """Tell whether a record of a base cell would break a plausibility rule at a level of a mover."""
    return lattice.forbidden[m, lattice.base_levels[m, base].pattern, lattice.level_pattern[m, to]]


@no_alloc
def move_cost(m: Whole, base: Whole, to: Whole, treated: Whole, lattice: Lattice) -> Real:
    """Return the price of moving a record of a base cell to a level of a mover; infinite where it must not be done.

    A cell that a record leaves is not small afterwards, and one that it reaches is not small before, save the cell that
    is treated. In tables other than that cell's, a small cell may also grow, shrink or run empty.
    """
    if lattice.forbidden.size and is_forbidden(m, base, to, lattice):
        return NEVER
    cost, n = 0.0, lattice.n
    own = NONE if treated < 0 else lattice.cells[treated].table
    for t in range(len(lattice.tables)):
        changes, left, reached = step_in(t, m, base, to, lattice)
        if not changes:
            continue
        if lattice.tables[t].protected:
            lenient = own >= 0 and own != t
            if reached < 0 or lattice.cells[reached].count == 0:
                return NEVER
            held = lattice.cells[left].count
            if left != treated and held <= n and not (lenient and held < n):
                return NEVER
            if reached != treated and lattice.cells[reached].count < n and not lenient:
                return NEVER
        if lattice.tables[t].loss > 0:
            weight = lattice.bases[base].mean_weight
            change = cell_cost(t, left, -weight, lattice) + cell_cost(t, reached, weight, lattice)
            cost += lattice.tables[t].slope * change
    return cost


@no_alloc
def return_cost(m: Whole, base: Whole, to: Whole, lattice: Lattice) -> Real:
    """Return the price of taking a move back; infinite where that would leave a cell too small."""
    cost = 0.0
    for t in range(len(lattice.tables)):
        changes, left, reached = step_in(t, m, base, to, lattice)
        if not changes:
            continue
        if lattice.tables[t].protected and lattice.cells[reached].count <= lattice.n:
            return NEVER
        if lattice.tables[t].loss > 0:
            cost += lattice.tables[t].slope * back_cost(t, left, reached, lattice.bases[base].mean_weight, lattice)
    return cost


@no_alloc
def back_cost(t: Whole, left: Whole, reached: Whole, weight: Real, lattice: Lattice) -> Real:
    """Return the change of the raw loss of a table when a weight that went from `left` to `reached` comes back."""
    if reached < 0:
        return cell_cost(t, left, weight, lattice) - cell_cost(t, reached, weight, lattice)
    return cell_cost(t, left, weight, lattice) + cell_cost(t, reached, -weight, lattice)


@no_alloc
def move(m: Whole, base: Whole, to: Whole, records: Whole, lattice: Lattice) -> None:
    """Move a record of a base cell to a level of a mover (FORTH), or take that back (BACK)."""
    weight = lattice.bases[base].mean_weight
    for t in range(len(lattice.tables)):
        changes, left, reached = step_in(t, m, base, to, lattice)
        if not changes:
            continue
        if lattice.tables[t].loss > 0:
            if records < 0:
                change = back_cost(t, left, reached, weight, lattice)
            else:
                change = cell_cost(t, left, -weight, lattice) + cell_cost(t, reached, weight, lattice)
            lattice.tables[t].raw_loss += change
        add_to(left, -records, -weight * records, t, lattice)
        if reached >= 0:
            add_to(reached, records, weight * records, t, lattice)
    lattice.bases[base].free -= records
    lattice.totals.moved += records


@no_alloc
def add_to(cell: Whole, records: Whole, weight: Real, t: Whole, lattice: Lattice) -> None:
    """Change what a cell holds."""
    held, n = lattice.cells[cell], lattice.n
    if lattice.tables[t].protected:
        change = exposure(held.before, held.count + records, n) - exposure(held.before, held.count, n)
        lattice.totals.exposed += change
    held.count += records
    held.weight += weight


@kernel
def loss_now(lattice: Lattice) -> Real:
    """Return the loss so far: the weighted sum over tables, the root of the raw loss for Hellinger distances."""
    loss = 0.0
    for table in lattice.tables:
        raw = table.raw_loss
        if table.loss == HELLINGER:
            raw = np.sqrt(max(raw, 0.0))
        loss += table.importance * raw
    return loss


@kernel
def fit_margins(
    counts: NDArray[np.float64],
    unsure: NDArray[np.bool_],
    sizes: Ints,
    margins: Ints,
    sweeps: int,
    expected: NDArray[np.float64],
) -> None:
    """Fit `expected` to these margins of `counts`, from what it holds; the first axis runs fastest.

    In an unsure cell is nobody or one, with odds of what is expected there: each sweep puts that in for its count.
    Sums run in a fixed order and nothing but sums, products and quotients is taken: every machine gives the same.
    """
    levels = np.empty((len(sizes), len(counts)), dtype=np.int16)
    stride = 1
    for a in range(len(sizes)):
        for cell in range(len(counts)):
            levels[a, cell] = cell // stride % sizes[a]
        stride *= sizes[a]
    at = np.empty(len(counts), dtype=np.int64)
    for _ in range(sweeps):
        for cell in range(len(counts)):
            if unsure[cell]:
                counts[cell] = expected[cell] / (1.0 + expected[cell])
        for i in range(len(margins)):
            cells = 1
            at[:] = 0
            for a in margins[i]:
                for cell in range(len(counts)):
                    at[cell] = at[cell] * sizes[a] + levels[a, cell]
                cells *= sizes[a]
            wanted = np.zeros(cells)
            fitted = np.zeros(cells)
            for cell in range(len(counts)):
                wanted[at[cell]] += counts[cell]
                fitted[at[cell]] += expected[cell]
            for place in range(cells):
                wanted[place] = wanted[place] / fitted[place] if fitted[place] > 0 else 0.0
            for cell in range(len(counts)):
                expected[cell] *= wanted[at[cell]]


@kernel
def pair_images(
    waiting: Ints, score: NDArray[np.float64], width: float, sizes: Ints, mirrors: Ints, partner: Ints
) -> None:
    """Pair cells with their images in one mirror after the other, where the scores of the two are within a width.

    A mirror takes level l of an axis to k - l, modulo the number of levels: so the image of the image is the cell. It
    has -1 for an axis that it leaves as it is. `waiting` are the cells to pair; `partner` is -1 for all without one.
    """
    left = len(waiting)
    for mirror in mirrors:
        for i in range(left):
            cell = waiting[i]
            if partner[cell] >= 0:
                continue
            image, stride = cell, 1
            for a in range(len(sizes)):
                if mirror[a] >= 0:
                    level = cell // stride % sizes[a]
                    image += ((mirror[a] - level) % sizes[a] - level) * stride
                stride *= sizes[a]
            # An image that is not waiting has a score of infinity.
            if image > cell and partner[image] < 0 and abs(score[image] - score[cell]) <= width:
                partner[cell], partner[image] = image, cell
        kept = 0
        for i in range(left):
            if partner[waiting[i]] < 0:
                waiting[kept] = waiting[i]
                kept += 1
        left = kept


FRONT = 15
"""How many of the cheapest fillers a choice by chance looks at: four levels of a heap."""
CLOSED, EXHAUSTED = np.int64(-1), np.int64(-2)
SHARPNESS = 3.0
"""Whatever costs as much more than the best as is tolerated has e^-3 of its chance."""


class Route(NamedTuple):
    """From a level of a mover, in a class, to another level: the bucket (-1: nobody is there), its block, the mover."""

    bucket: Whole
    block: Whole
    mover: Whole
    to: Whole


@no_alloc
def find_route(m: Whole, class_: Whole, start: Whole, to: Whole, fillers: Fillers) -> Route:
    """Find the bucket for moves from one level to another."""
    key = (m * fillers.classes + class_) * fillers.levels + start
    low, high = NOTHING, np.int64(len(fillers.blocks))
    while low < high:
        middle = (low + high) // 2
        if fillers.blocks[middle].key < key:
            low = middle + 1
        else:
            high = middle
    if low == len(fillers.blocks) or fillers.blocks[low].key != key:
        return Route(NONE, NONE, m, to)
    return Route(fillers.blocks[low].buckets_from + to, low, m, to)


@no_alloc
def falling(y: Real) -> Real:
    """Return e to the power of -y for y of 0 to 8: by products only, so that every machine has the same."""
    power = 1.0 - y / 1024.0
    for _ in range(10):
        power *= power
    return power


@no_alloc
def draw_by(chance: Floats, dice: Dice) -> Whole:
    """Draw a place in proportion to its chance."""
    target = chance.sum() * (below(np.int64(1 << 30), dice) + 0.5) / (1 << 30)
    for i in range(len(chance)):
        target -= chance[i]
        if target < 0:
            return np.int64(i)
    return np.int64(np.argmax(chance))


@kernel
def choose_near(cost: Floats, tolerance: Real, dice: Dice) -> Whole:
    """Choose the cheapest, or by chance one whose cost is within the tolerance of it."""
    best = np.argmin(cost)
    if tolerance <= 0:
        return np.int64(best)
    chance = np.zeros(len(cost))
    for i in range(len(cost)):
        if cost[i] <= cost[best] + tolerance:
            chance[i] = falling(SHARPNESS * (cost[i] - cost[best]) / tolerance)
    return draw_by(chance, dice)


@no_alloc
def sink(first: Whole, length: Whole, i: Whole, sign: Real, fillers: Fillers) -> None:
    """Let entry i of the heap at `first` sink: the least price on top for sign 1, the greatest for sign -1."""
    heap = fillers.heap
    while 2 * i + 1 < length:  # the children of entry i are entries 2i + 1 and 2i + 2
        child = 2 * i + 1
        if child + 1 < length and sign * heap[first + child + 1].price < sign * heap[first + child].price:
            child += 1
        upper, lower = heap[first + i], heap[first + child]
        if sign * upper.price <= sign * lower.price:
            return
        upper.base, lower.base = lower.base, upper.base
        upper.price, lower.price = lower.price, upper.price
        i = child


@no_alloc
def make_heap(first: Whole, length: Whole, sign: Real, fillers: Fillers) -> None:
    """Order the entries from `first` as a heap."""
    for i in range(length // 2 - 1, -1, -1):
        sink(first, length, np.int64(i), sign, fillers)


@no_alloc
def enter(place: Whole, base: Whole, price: Real, fillers: Fillers) -> None:
    """Write an entry of a heap."""
    fillers.heap[place].base = base
    fillers.heap[place].price = price


@no_alloc
def close_all(fillers: Fillers) -> None:
    """Close all heaps: they are gathered anew when they are needed."""
    for q in range(len(fillers.buckets)):
        fillers.buckets[q].length = CLOSED
    fillers.stock.heap_used = NOTHING


@kernel
def set_slopes(fillers: Fillers, lattice: Lattice) -> None:
    """Set the price of a small change of each raw loss, where the draw stands, in proportion to the largest.

    Prices in the heaps are compared with one another, so they must be of one time: slopes are left as they are until
    one of them is off by a twentieth, and then all heaps are closed.
    """
    slope, off = np.zeros(len(lattice.tables)), False
    for t in range(len(slope)):
        table = lattice.tables[t]
        slope[t] = table.importance
        if table.loss == HELLINGER:
            slope[t] /= 2 * np.sqrt(max(table.raw_loss, 0.05 / table.total))
    slope /= slope.max()
    for t in range(len(slope)):
        off |= abs(slope[t] - lattice.tables[t].slope) > 0.05 * slope[t]
    if off:
        for t in range(len(slope)):
            lattice.tables[t].slope = slope[t]
        close_all(fillers)


@no_alloc
def take_room(q: Whole, room: Whole, fillers: Fillers) -> None:
    """Give a bucket room for its heap; when no room is left all heaps are closed."""
    if fillers.stock.heap_used + room > len(fillers.heap):
        close_all(fillers)
    fillers.buckets[q].heap_at = fillers.stock.heap_used
    fillers.stock.heap_used += room


@kernel
def room_for(block: Whole, least: Whole) -> Whole:
    """Return how many entries a heap has: an eighth of the base cells, so that large blocks are rarely gone through."""
    return min(max(least, block // 8), block)


@no_alloc
def open_bucket(route: Route, fillers: Fillers, lattice: Lattice) -> None:
    """Gather the cheapest base cells to move from.

    While more are looked at than there is room for, the heap has its dearest on top, where a cheaper one takes its
    place; then it is turned over.
    """
    block, bucket = fillers.blocks[route.block], fillers.buckets[route.bucket]
    room = room_for(block.end - block.first, fillers.room)
    if bucket.length < 0:
        take_room(route.bucket, room, fillers)
    first, length, limit = bucket.heap_at, NOTHING, NEVER
    for place in range(block.first, block.end):
        b = np.int64(fillers.by_block[route.mover, place])
        if lattice.bases[b].free <= 0:
            continue
        cost = move_cost(route.mover, b, route.to, NONE, lattice)
        if cost == NEVER:
            continue
        if length < room:
            enter(first + length, b, cost, fillers)
            length += 1
            if length == room:
                make_heap(first, room, -1.0, fillers)
            continue
        if cost < fillers.heap[first].price:
            enter(first, b, cost, fillers)
            sink(first, room, NOTHING, -1.0, fillers)
        limit = fillers.heap[first].price
    make_heap(first, length, 1.0, fillers)
    bucket.limit = limit
    bucket.length = length


@no_alloc
def cheapest(route: Route, fillers: Fillers, lattice: Lattice) -> Real:
    """Bring the top of a bucket's heap up to date and return its price; infinite when there is none.

    An entry whose price has changed sinks to its new place. Once the top is dearer than what was left out of the heap,
    or nothing is left in it, the heap is gathered anew, and that once only.
    """
    if route.bucket < 0 or fillers.buckets[route.bucket].length == EXHAUSTED:
        return NEVER
    bucket, opened = fillers.buckets[route.bucket], False
    while True:
        if not opened and (bucket.length <= 0 or fillers.heap[bucket.heap_at].price > bucket.limit):
            open_bucket(route, fillers, lattice)
            opened = True
        if bucket.length <= 0:
            exhaust(route.bucket, fillers)
            return NEVER
        first, top = bucket.heap_at, fillers.heap[bucket.heap_at]
        free = lattice.bases[top.base].free > 0
        cost = move_cost(route.mover, top.base, route.to, NONE, lattice) if free else NEVER
        if cost == top.price:
            return cost
        if cost == NEVER:
            bucket.length -= 1
            last = fillers.heap[first + bucket.length]
            enter(first, last.base, last.price, fillers)
        else:
            top.price = cost
        sink(first, bucket.length, NOTHING, 1.0, fillers)


@no_alloc
def exhaust(q: Whole, fillers: Fillers) -> None:
    """Mark a bucket as exhausted, until what has been done is undone."""
    fillers.buckets[q].length = EXHAUSTED
    if fillers.stock.exhausted < EXHAUSTED_LISTED:
        fillers.stock.first_exhausted[fillers.stock.exhausted] = q
    fillers.stock.exhausted += 1


@no_alloc
def reopen(fillers: Fillers) -> None:
    """Let buckets that were exhausted since the mark be looked at again; they keep their room.

    Where they are too many to be listed, all exhausted ones are.
    """
    count = fillers.stock.exhausted
    listed = count <= EXHAUSTED_LISTED
    for i in range(count if listed else len(fillers.buckets)):
        q = fillers.stock.first_exhausted[i] if listed else i
        if fillers.buckets[q].length == EXHAUSTED:
            fillers.buckets[q].length = NOTHING
    fillers.stock.exhausted = NOTHING


@kernel
def choose_filler(
    route: Route, partner: Whole, tolerance: Real, fillers: Fillers, lattice: Lattice, dice: Dice
) -> Whole:
    """Choose one of a bucket's cheapest base cells, by chance among those within the tolerance of the best.

    With a partner (a base cell, -1 for none) only those that differ from it where partners must. Returns -1 for none.
    """
    first, length = fillers.buckets[route.bucket].heap_at, fillers.buckets[route.bucket].length
    if partner < 0:
        length = min(length, FRONT) if tolerance > 0 else 1
    cost = np.full(length, NEVER)
    for i in range(length):
        b = fillers.heap[first + i].base
        if lattice.bases[b].free > 0 and (partner < 0 or unlike(partner, b, fillers)):
            cost[i] = move_cost(route.mover, b, route.to, NONE, lattice)
    if cost.min() == NEVER:
        return NONE
    return fillers.heap[first + choose_near(cost, tolerance, dice)].base


@no_alloc
def unlike(a: Whole, b: Whole, fillers: Fillers) -> bool:
    """Tell whether two base cells differ in every column in which partners must."""
    alike = False
    for d in range(len(fillers.different)):
        alike |= fillers.different[d, a] == fillers.different[d, b]
    return not alike


@no_alloc
def add_filler(route: Route, b: Whole, fillers: Fillers, lattice: Lattice) -> None:
    """Put a filler to use."""
    slot, bucket = fillers.stock.unused_slot, fillers.buckets[route.bucket]
    filler = fillers.slots[slot]
    fillers.stock.unused_slot = filler.older
    filler.base = b
    filler.older = bucket.newest
    bucket.newest = slot
    move(route.mover, b, route.to, FORTH, lattice)


@no_alloc
def drop_filler(route: Route, fillers: Fillers, lattice: Lattice) -> Whole:
    """Take the newest filler of a bucket out of use and return its base cell."""
    bucket = fillers.buckets[route.bucket]
    slot, filler = bucket.newest, fillers.slots[bucket.newest]
    bucket.newest = filler.older
    filler.older = fillers.stock.unused_slot
    fillers.stock.unused_slot = slot
    move(route.mover, filler.base, route.to, BACK, lattice)
    return filler.base


@no_alloc
def newest_back(route: Route, fillers: Fillers, lattice: Lattice) -> Real:
    """Return the price of taking the newest filler of a bucket back; infinite where there is none."""
    if route.bucket < 0 or fillers.buckets[route.bucket].newest < 0:
        return NEVER
    newest = fillers.slots[fillers.buckets[route.bucket].newest]
    return return_cost(route.mover, newest.base, route.to, lattice)
