"""Moves that nobody needs for their own sake: whoever changes level needs a partner who changes the other way.

A bucket is for the moves of one class from one level of a mover to another. It keeps the cheapest base cells to move
from, as a heap that is brought up to date as it is read, and a stack of the fillers in use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.designed.neighbours import BACK, FORTH, HELLINGER, NEVER, move, move_cost, return_cost
from quadrille.kernels.designed.state import (
    NONE,
    NOTHING,
    At,
    Board,
    Floats,
    Real,
    fixed,
    now,
    put,
    put_value,
    real,
    value,
)
from quadrille.kernels.draw import below
from quadrille.kernels.pool import Dice, Whole

FRONT = 15
"""How many of the cheapest fillers a choice by chance looks at: four levels of a heap."""
CLOSED, DEAD = np.int64(-1), np.int64(-2)
DEATHS_KEPT = 64
"""So many buckets found dead are listed one by one."""
SHARPNESS = 3.0
"""Whatever costs as much more than the best as is tolerated has e^-3 of its chance."""


class Way(NamedTuple):
    """From a level of a mover, in a class, to another level: the bucket (-1: nobody is there), its block, the mover."""

    bucket: Whole
    block: Whole
    mover: Whole
    to: Whole


@kernel
def way(m: Whole, klass: Whole, start: Whole, to: Whole, x: Board) -> Way:
    """Find the bucket for moves from one level to another."""
    key = (m * x.at[At.CLASSES] + klass) * x.at[At.LEVELS] + start
    low, high, first = NOTHING, x.at[At.BLOCKS], x.at[At.BLOCK_KEY]
    while low < high:
        middle = (low + high) // 2
        if x.now[first + middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == x.at[At.BLOCKS] or x.now[first + low] != key:
        return Way(NONE, NONE, m, to)
    return Way(fixed(At.BUCKET_FROM, low, x) + to, low, m, to)


@kernel
def falling(y: Real) -> Real:
    """Return e to the power of -y for y of 0 to 8: by products only, so that every machine has the same."""
    power = 1.0 - y / 1024.0
    for _ in range(10):
        power *= power
    return power


@kernel
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


@kernel
def sink(first: Whole, length: Whole, i: Whole, sign: Real, x: Board) -> None:
    """Let entry i of the heap at `first` sink: the least price on top for sign 1, the greatest for sign -1."""
    heap, price = x.at[At.HEAP] + first, x.at[At.PRICE] + first
    while 2 * i + 1 < length:
        child = 2 * i + 1
        if child + 1 < length and sign * x.value[price + child + 1] < sign * x.value[price + child]:
            child += 1
        if sign * x.value[price + i] <= sign * x.value[price + child]:
            return
        x.now[heap + i], x.now[heap + child] = x.now[heap + child], x.now[heap + i]
        x.value[price + i], x.value[price + child] = x.value[price + child], x.value[price + i]
        i = child


@kernel
def make_heap(first: Whole, length: Whole, sign: Real, x: Board) -> None:
    """Order the entries from `first` as a heap."""
    for i in range(length // 2 - 1, -1, -1):
        sink(first, length, np.int64(i), sign, x)


@kernel
def enter(place: Whole, base: Whole, price: Real, x: Board) -> None:
    """Write an entry of a heap."""
    put(At.HEAP, place, base, x)
    put_value(At.PRICE, place, price, x)


@kernel
def close_all(x: Board) -> None:
    """Close all heaps: they are gathered anew when they are needed."""
    for q in range(x.at[At.BUCKETS]):
        put(At.LENGTH, q, CLOSED, x)
    put(At.HEAP_USED, NOTHING, NOTHING, x)


@kernel
def set_slopes(x: Board) -> None:
    """Set the price of a small change of each raw loss, where the draw stands, in proportion to the largest.

    Prices in the heaps are compared with one another, so they must be of one time: slopes are left as they are until
    one of them is off by a twentieth, and then all heaps are closed.
    """
    tables = x.at[At.TABLES]
    slope, off = np.zeros(tables), False
    for t in range(tables):
        slope[t] = real(At.IMPORTANCE, t, x)
        if fixed(At.LOSS, t, x) == HELLINGER:
            slope[t] /= 2 * np.sqrt(max(value(At.SUM, t, x), 0.05 / real(At.TOTAL, t, x)))
    slope /= slope.max()
    for t in range(tables):
        off |= abs(slope[t] - value(At.SLOPE, t, x)) > 0.05 * slope[t]
    if off:
        x.value[x.at[At.SLOPE] : x.at[At.SLOPE] + tables] = slope
        close_all(x)


@kernel
def take_room(q: Whole, room: Whole, x: Board) -> None:
    """Give a bucket room for its heap; when no room is left all heaps are closed."""
    if now(At.HEAP_USED, NOTHING, x) + room > x.at[At.HEAP_SIZE]:
        close_all(x)
    put(At.HEAP_AT, q, now(At.HEAP_USED, NOTHING, x), x)
    put(At.HEAP_USED, NOTHING, now(At.HEAP_USED, NOTHING, x) + room, x)


@kernel
def room_for(block: Whole, least: Whole) -> Whole:
    """Return how many entries a heap has: an eighth of the base cells, so that large blocks are rarely gone through."""
    return min(max(least, block // 8), block)


@kernel
def open_bucket(road: Way, x: Board) -> None:
    """Gather the cheapest base cells to move from."""
    begin, end = fixed(At.BLOCK_FROM, road.block, x), fixed(At.BLOCK_TO, road.block, x)
    room = room_for(end - begin, x.at[At.ROOM])
    if now(At.LENGTH, road.bucket, x) < 0:
        take_room(road.bucket, room, x)
    first, found, limit = now(At.HEAP_AT, road.bucket, x), NOTHING, NEVER
    for place in range(begin, end):
        b = fixed(At.ORDER, road.mover * x.at[At.BASES] + place, x)
        if now(At.FREE, b, x) <= 0:
            continue
        cost = move_cost(road.mover, b, road.to, NONE, x)
        if cost == NEVER:
            continue
        if found < room:
            enter(first + found, b, cost, x)
            found += 1
            if found == room:
                make_heap(first, room, -1.0, x)
            continue
        if cost < value(At.PRICE, first, x):
            enter(first, b, cost, x)
            sink(first, room, NOTHING, -1.0, x)
        limit = value(At.PRICE, first, x)
    make_heap(first, found, 1.0, x)
    put_value(At.LIMIT, road.bucket, limit, x)
    put(At.LENGTH, road.bucket, found, x)


@kernel
def cheapest(road: Way, x: Board) -> Real:
    """Bring the top of a bucket's heap up to date and return its price; infinite when there is none."""
    q = road.bucket
    if q < 0 or now(At.LENGTH, q, x) == DEAD:
        return NEVER
    opened = now(At.LENGTH, q, x) == CLOSED
    if opened:
        open_bucket(road, x)
    while now(At.LENGTH, q, x) > 0 or not opened:
        first, length = now(At.HEAP_AT, q, x), now(At.LENGTH, q, x)
        if length <= 0 or (not opened and value(At.PRICE, first, x) > value(At.LIMIT, q, x)):
            open_bucket(road, x)
            opened = True
            continue
        b = now(At.HEAP, first, x)
        cost = move_cost(road.mover, b, road.to, NONE, x) if now(At.FREE, b, x) > 0 else NEVER
        if cost == value(At.PRICE, first, x):
            return cost
        if cost == NEVER:
            length -= 1
            put(At.LENGTH, q, length, x)
            enter(first, now(At.HEAP, first + length, x), value(At.PRICE, first + length, x), x)
        else:
            put_value(At.PRICE, first, cost, x)
        sink(first, length, NOTHING, 1.0, x)
    bury(q, x)
    return NEVER


@kernel
def bury(q: Whole, x: Board) -> None:
    """Mark a bucket as dead, until what has been done is undone."""
    put(At.LENGTH, q, DEAD, x)
    if now(At.DEATHS, NOTHING, x) < DEATHS_KEPT:
        put(At.DIED, now(At.DEATHS, NOTHING, x), q, x)
    x.now[x.at[At.DEATHS]] += 1


@kernel
def revive(x: Board) -> None:
    """Let buckets that have died since the mark be looked at again; they keep their room."""
    died = now(At.DEATHS, NOTHING, x)
    for i in range(died if died <= DEATHS_KEPT else x.at[At.BUCKETS]):
        q = now(At.DIED, i, x) if died <= DEATHS_KEPT else i
        if now(At.LENGTH, q, x) == DEAD:
            put(At.LENGTH, q, NOTHING, x)
    put(At.DEATHS, NOTHING, NOTHING, x)


@kernel
def choose_filler(road: Way, partner: Whole, tolerance: Real, x: Board, dice: Dice) -> Whole:
    """Choose one of a bucket's cheapest base cells, by chance among those within the tolerance of the best.

    With a partner (a base cell, -1 for none) only those that differ from it where partners must. Returns -1 for none.
    """
    first, length = now(At.HEAP_AT, road.bucket, x), now(At.LENGTH, road.bucket, x)
    if partner < 0:
        length = min(length, FRONT) if tolerance > 0 else 1
    cost = np.full(length, NEVER)
    for i in range(length):
        b = now(At.HEAP, first + i, x)
        if now(At.FREE, b, x) > 0 and (partner < 0 or unlike(partner, b, x)):
            cost[i] = move_cost(road.mover, b, road.to, NONE, x)
    if cost.min() == NEVER:
        return NONE
    return now(At.HEAP, first + choose_near(cost, tolerance, dice), x)


@kernel
def unlike(a: Whole, b: Whole, x: Board) -> bool:
    """Tell whether two base cells differ in every column in which partners must."""
    for d in range(x.at[At.UNLIKES]):
        row = d * x.at[At.BASES]
        if fixed(At.UNLIKE, row + a, x) == fixed(At.UNLIKE, row + b, x):
            return False
    return True


@kernel
def add_filler(road: Way, b: Whole, x: Board) -> None:
    """Put a filler to use."""
    slot = now(At.UNUSED_SLOT, NOTHING, x)
    put(At.UNUSED_SLOT, NOTHING, now(At.UNDER, slot, x), x)
    put(At.BASE, slot, b, x)
    put(At.UNDER, slot, now(At.HEAD, road.bucket, x), x)
    put(At.HEAD, road.bucket, slot, x)
    move(road.mover, b, road.to, FORTH, x)


@kernel
def drop_filler(road: Way, x: Board) -> Whole:
    """Take the newest filler of a bucket out of use and return its base cell."""
    slot = now(At.HEAD, road.bucket, x)
    put(At.HEAD, road.bucket, now(At.UNDER, slot, x), x)
    put(At.UNDER, slot, now(At.UNUSED_SLOT, NOTHING, x), x)
    put(At.UNUSED_SLOT, NOTHING, slot, x)
    b = now(At.BASE, slot, x)
    move(road.mover, b, road.to, BACK, x)
    return b


@kernel
def newest_back(road: Way, x: Board) -> Real:
    """Return the price of taking the newest filler of a bucket back; infinite where there is none."""
    if road.bucket < 0 or now(At.HEAD, road.bucket, x) < 0:
        return NEVER
    return return_cost(road.mover, now(At.BASE, now(At.HEAD, road.bucket, x), x), road.to, x)
