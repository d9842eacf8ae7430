"""Moves that nobody needs for their own sake: whoever changes level needs a partner who changes the other way.

A bucket is for the moves of one class from one level of a mover to another. It keeps the cheapest base cells to move
from, as a heap that is brought up to date as it is read, and a stack of the fillers in use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quadrille.kernels.compile import Whole, kernel, no_alloc
from quadrille.kernels.designed import EXHAUSTED_LISTED, NONE, NOTHING, Fillers, Floats, Lattice, Real
from quadrille.kernels.designed.neighbours import BACK, FORTH, HELLINGER, NEVER, move, move_cost, return_cost
from quadrille.kernels.draw import Dice, below

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
