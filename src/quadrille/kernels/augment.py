"""An alternating path in a graph of records, odd cycles included (the blossom search of Edmonds, 1965)."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.draw import admissible
from quadrille.kernels.pool import Flags, Ints, Pool, Whole


@kernel
def common_base(a: Whole, b: Whole, base: Ints, mate: Ints, parent: Ints) -> Whole:
    """Return the nearest vertex, counted by blossom bases, that both a and b descend from."""
    seen = np.zeros(len(mate), dtype=np.bool_)
    while True:
        a = base[a]
        seen[a] = True
        if mate[a] < 0:
            break
        a = parent[mate[a]]
    while True:
        b = base[b]
        if seen[b]:
            return b
        b = parent[mate[b]]


@kernel
def mark_blossom(v: Whole, top: Whole, child: Whole, base: Ints, mate: Ints, parent: Ints, inside: Flags) -> None:
    """Mark the bases between v and the top of a blossom, and turn the parents round."""
    while base[v] != top:
        inside[base[v]] = True
        inside[base[mate[v]]] = True
        parent[v] = child
        child = mate[v]
        v = parent[mate[v]]


@kernel
def search_from(root: Whole, group: Ints, mate: Ints, parent: Ints, frozen: Flags, pool: Pool) -> Whole:
    """Search an augmenting path from an unmatched vertex; return its other end or -1. `parent` tells the way back.

    What a search without success has reached can be on no augmenting path: it is frozen for the searches after it.
    """
    count = len(group)
    base = np.arange(count)
    reached = np.zeros(count, dtype=np.bool_)
    queue = np.empty(count, dtype=np.int64)
    parent[:] = -1
    reached[root] = True
    queue[0], head, tail = root, 0, 1
    while head < tail:
        v = queue[head]
        head += 1
        for to in range(count):
            if frozen[to] or base[v] == base[to] or mate[v] == to or not admissible(group[v], group[to], pool):
                continue
            if to == root or (mate[to] >= 0 and parent[mate[to]] >= 0):
                top = common_base(v, to, base, mate, parent)
                inside = np.zeros(count, dtype=np.bool_)
                mark_blossom(v, top, to, base, mate, parent, inside)
                mark_blossom(to, top, v, base, mate, parent, inside)
                for i in range(count):
                    if inside[base[i]]:
                        base[i] = top
                        if not reached[i]:
                            reached[i] = True
                            queue[tail] = i
                            tail += 1
            elif parent[to] < 0:
                parent[to] = v
                if mate[to] < 0:
                    return np.int64(to)
                reached[mate[to]] = True
                queue[tail] = mate[to]
                tail += 1
    for v in range(count):
        if reached[v] or parent[v] >= 0:
            frozen[v] = True
    return np.int64(-1)


@kernel
def augment(group: Ints, mate: Ints, pool: Pool) -> bool:
    """Match one pair more if possible: change `mate` along a path and tell whether there was one."""
    parent = np.empty(len(group), dtype=np.int64)
    frozen = np.zeros(len(group), dtype=np.bool_)
    tried = np.zeros(len(pool.unused), dtype=np.bool_)
    for root in range(len(group)):
        if mate[root] >= 0 or frozen[root] or tried[group[root]]:
            continue
        tried[group[root]] = True
        v = search_from(root, group, mate, parent, frozen, pool)
        if v >= 0:
            while v >= 0:
                before = parent[v]
                after = mate[before]
                mate[v] = before
                mate[before] = v
                v = after
            return True
    return False
