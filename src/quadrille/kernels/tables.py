"""Columns of codes and tables of them: keys of combinations, net changes of cells, sums; who is alone on some."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Ints, Whole, kernel, step


@kernel
def add_ticks(cells: Ints, ticks: Ints, out: Ints) -> None:
    """Add each record's ticks to its cell; cell -1 is outside the table."""
    for i in range(len(cells)):
        if cells[i] >= 0:
            out[cells[i]] += ticks[i]


@kernel
def sort_into_groups(group: Ints, count: Whole, start: Ints, order: NDArray[np.int32]) -> None:
    """Sort record numbers by group, stable; `start` gets the first place of each group and the total."""
    for i in range(len(group)):
        start[group[i] + 1] += 1
    for g in range(count):
        start[g + 1] += start[g]
    place = start[:-1].copy()
    for i in range(len(group)):
        order[place[group[i]]] = i
        place[group[i]] += 1


@step
def note(cell: Whole, scratch: Ints, listed: Ints, found: Whole) -> Whole:
    """List a cell when it is met for the first time."""
    if scratch[2, cell] == 0:
        scratch[2, cell] = 1
        listed[found] = cell
        return found + 1
    return found


@kernel
def collect(candidates: Ints, scratch: Ints) -> tuple[Ints, Ints]:
    """Return the candidate cells that changed, with their net changes, and leave the scratch clean."""
    cells = np.empty(len(candidates), dtype=np.int64)
    net = np.empty((2, len(candidates)), dtype=np.int64)
    kept = 0
    for cell in candidates:
        if scratch[0, cell] != 0 or scratch[1, cell] != 0:
            cells[kept] = cell
            net[0, kept] = scratch[0, cell]
            net[1, kept] = scratch[1, cell]
            kept += 1
        scratch[0, cell] = 0
        scratch[1, cell] = 0
        scratch[2, cell] = 0
    return cells[:kept], net[:, :kept]


@kernel
def list_cells(old: Ints, new: Ints, scratch: Ints, possible: Whole) -> Ints:
    """Return the cells met, ascending: all of a small table, without looking; -1 is outside."""
    if possible <= 16 * len(old):
        return np.arange(0, possible, dtype=np.int64)
    listed = np.empty(2 * len(old), dtype=np.int64)
    found = 0
    for i in range(len(old)):
        if old[i] != new[i]:
            if old[i] >= 0:
                found = note(old[i], scratch, listed, found)
            if new[i] >= 0:
                found = note(new[i], scratch, listed, found)
    return np.sort(listed[:found])


@kernel
def net_of_rows(old: Ints, new: Ints, ticks: Ints, scratch: Ints, possible: Whole) -> tuple[Ints, Ints]:
    """Return the net change of every touched cell; `ticks` is empty for counts only, cell -1 is outside."""
    candidates = list_cells(old, new, scratch, possible)
    weighted = len(ticks) > 0
    for i in range(len(old)):
        was, now = old[i], new[i]
        if was != now:
            if was >= 0:
                scratch[0, was] -= 1
                if weighted:
                    scratch[1, was] -= ticks[i]
            if now >= 0:
                scratch[0, now] += 1
                if weighted:
                    scratch[1, now] += ticks[i]
    return collect(candidates, scratch)


@kernel
def net_of_cells(
    cells: Ints, net: Ints, lookup: NDArray[np.int32], scratch: Ints, possible: Whole
) -> tuple[Ints, Ints]:
    """Carry net changes over to a margin: `lookup` gives the margin's cell, -1 outside."""
    reached = np.empty(len(cells), dtype=np.int64)
    for i in range(len(cells)):
        cell = lookup[cells[i]]
        reached[i] = cell
        if cell >= 0:
            scratch[0, cell] += net[0, i]
            scratch[1, cell] += net[1, i]
    return collect(list_cells(reached, np.full(len(cells), -1), scratch, possible), scratch)


@kernel
def chi_square(table: NDArray[np.float64]) -> tuple[float, Whole, Whole]:
    """Return chi-square divided by the total, and the numbers of rows and columns that occur."""
    rows = np.zeros(table.shape[0])
    columns = np.zeros(table.shape[1])
    total = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            rows[i] += table[i, j]
            columns[j] += table[i, j]
            total += table[i, j]
    value = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            expected = rows[i] * columns[j] / total
            if expected > 0:
                value += (table[i, j] - expected) ** 2 / expected
    return value / total, (rows > 0).sum(), (columns > 0).sum()


@kernel
def count_dominating(x: Ints, y: Ints) -> Ints:
    """Count the points with no larger x and y, equal points excepted; x and y are ranks from 0."""
    order = np.argsort(x * (y.max() + 1) + y) if len(x) else np.empty(0, dtype=np.int64)
    tree = np.zeros(y.max() + 2 if len(x) else 1, dtype=np.int64)
    counts = np.zeros(len(x), dtype=np.int64)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and x[order[end]] == x[order[start]] and y[order[end]] == y[order[start]]:
            end += 1
        i, below = y[order[start]] + 1, 0
        while i > 0:
            below += tree[i]
            i -= i & -i
        for j in range(start, end):
            counts[order[j]] = below
        i = y[order[start]] + 1
        while i < len(tree):
            tree[i] += end - start
            i += i & -i
        start = end
    return counts


@kernel
def small_cell_change(cells: Ints, new: Ints, count: Ints, n: Whole) -> tuple[Whole, Whole]:
    """Return by how many the unswapped records in cells of 1 to n-1 records, and all unswapped records, change.

    Cell 2c counts the unswapped records of cell c and 2c+1 the swapped ones; `count` is the table before.
    """
    at_risk, unswapped = np.int64(0), np.int64(0)
    i = 0
    while i < len(cells):
        cell = cells[i] >> 1
        was, others = count[2 * cell], count[2 * cell + 1]
        now, fresh = was, others
        while i < len(cells) and cells[i] >> 1 == cell:
            if cells[i] & 1:
                fresh = new[i]
            else:
                now = new[i]
            i += 1
        unswapped += now - was
        if 0 < now + fresh < n:
            at_risk += now
        if 0 < was + others < n:
            at_risk -= was
    return at_risk, unswapped


Codes32 = NDArray[np.int32]


@kernel
def rows_of_whole_groups(a: Codes32, b: Codes32, size: Whole, shift: Whole) -> Ints:
    """Return the rows of one in 2^shift combinations of two columns, chosen by a hash: their groups are whole."""
    found = np.empty(len(a), dtype=np.int64)
    count = 0
    for i in range(len(a)):
        key = np.uint64(a[i]) * np.uint64(size) + np.uint64(b[i])
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        if key >> np.uint64(64 - shift) == 0:
            found[count] = i
            count += 1
    return found[:count].copy()


@kernel
def rows_by_code(rows: Ints, codes: Codes32, size: Whole) -> Ints:
    """Return the rows in the order of their codes, stable: what sorting gives, in the time of counting."""
    place = np.zeros(size + 1, dtype=np.int64)
    for row in rows:
        place[codes[row] + 1] += 1
    for code in range(size):
        place[code + 1] += place[code]
    ordered = np.empty(len(rows), dtype=np.int64)
    for row in rows:
        code = codes[row]
        ordered[place[code]] = row
        place[code] += 1
    return ordered


@kernel
def places_in_order(keys: Ints, cells: Ints) -> Ints:
    """Return where each cell stands or would stand among sorted keys; cells that ascend are found near each other."""
    places = np.empty(len(cells), dtype=np.int64)
    low, before = 0, np.int64(0)
    for i in range(len(cells)):
        cell = cells[i]
        if i == 0 or cell < before:
            low = 0
        step, high = 1, low
        while high < len(keys) and keys[high] < cell:
            low = high + 1
            high += step
            step *= 2
        high = min(high, len(keys))
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < cell:
                low = middle + 1
            else:
                high = middle
        places[i], before = low, cell
    return places


@kernel
def mixed_within(values: Codes32, codes: Codes32, size: Whole, order: Ints) -> Codes32:
    """Return values in another order among the rows of one code: in the order of the rows, they come as in `order`."""
    place = np.zeros(size + 1, dtype=np.int64)
    for row in range(len(codes)):
        place[codes[row] + 1] += 1
    for code in range(size):
        place[code + 1] += place[code]
    next_of, by_code = place.copy(), np.empty_like(values)
    for row in order:
        by_code[next_of[codes[row]]] = values[row]
        next_of[codes[row]] += 1
    mixed = np.empty_like(values)
    for row in range(len(codes)):
        mixed[row] = by_code[place[codes[row]]]
        place[codes[row]] += 1
    return mixed


@kernel
def shared_groups(ordered: Ints, a: Codes32, b: Codes32) -> tuple[Ints, Ints]:
    """Return the rows that agree on two columns with a neighbour, group by group, and where each group starts.

    The rows come in the order of the two columns, so that those who agree stand together.
    """
    rows, start = np.empty(len(ordered), dtype=np.int64), np.zeros(len(ordered) + 1, dtype=np.int64)
    kept, groups, first = 0, 0, 0
    for i in range(1, len(ordered) + 1):
        if i < len(ordered) and a[ordered[i]] == a[ordered[first]] and b[ordered[i]] == b[ordered[first]]:
            continue
        if i - first > 1:
            rows[kept : kept + i - first] = ordered[first:i]
            kept += i - first
            groups += 1
            start[groups] = kept
        first = i
    return rows[:kept].copy(), start[: groups + 1].copy()


@kernel
def lacking_majority(rows: Ints, start: Ints, values: Codes32, counts: Ints, limit: Whole) -> Whole:
    """Count the records that lack the commonest value of their group; stop above the limit.

    Group g is `rows[start[g]:start[g + 1]]`. `counts` is zeroed memory for every value, and is left zeroed.
    """
    lacking = 0
    for g in range(len(start) - 1):
        most = 0
        for i in range(start[g], start[g + 1]):
            value = values[rows[i]]
            counts[value] += 1
            most = max(most, counts[value])
        for i in range(start[g], start[g + 1]):
            counts[values[rows[i]]] = 0
        lacking += start[g + 1] - start[g] - most
        if lacking > limit:
            return lacking
    return lacking


@kernel
def changes_in_order(rows: Ints, values: Codes32, limit: Whole) -> tuple[Whole, Whole, Whole]:
    """Count, row after row, how often a value differs from the one before, and how often it falls and rises.

    Stops when the changes, the falls and the rises are all above the limit.
    """
    falls, rises = 0, 0
    for i in range(1, len(rows)):
        before, now = values[rows[i - 1]], values[rows[i]]
        falls += now < before
        rises += now > before
        if falls > limit and rises > limit:
            break
    return falls + rises, falls, rises


@kernel
def count_pairs_of_codes(a: Codes32, b: Codes32, size: Whole, out: Ints) -> None:
    """Count the records of every combination of two columns."""
    for i in range(len(a)):
        out[np.int64(a[i]) * size + b[i]] += 1


Bits = NDArray[np.uint64]
_BLOCK = 1 << 12


@kernel
def mark_lone(
    codes: NDArray[np.uint32],
    lone: NDArray[np.bool_],
    keys: Ints,
    strides: Ints,
    slots: NDArray[np.int32],
    direct: bool,
    known: Bits,
    found: NDArray[np.int32],
) -> Whole:
    """Find the cells that are alone on `keys`, mark them in `known`, count them in `found`, return how many.

    `codes[k, c]` is the code of key k in cell c, `lone` says whether the cell has one record. Cells in `known` are
    alone on some of the keys already: they meet nobody, and are passed over. `slots` has a place for every combination
    when `direct`; else its length is a power of 2, more than the number of cells, and places are found by hashing.
    """
    cells = codes.shape[1]
    nobody = np.int32(cells)
    slots[:] = nobody
    mask = len(slots) - 1
    place = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, cells, _BLOCK):
        size = min(_BLOCK, cells - start)
        place[:size] = 0
        for k in range(len(keys)):
            column, stride = codes[keys[k]], strides[k]
            for i in range(size):
                place[i] += column[start + i] * stride
        for i in range(size):
            cell = start + i
            if known[cell >> 6] >> np.uint64(cell & 63) & np.uint64(1):
                continue
            at = place[i]
            if not direct:
                at = _slot_of(cell, at, codes, keys, slots, mask)
            other = slots[at]
            # A slot holds its first cell, and the complement of it from the second record on.
            if other == nobody:
                slots[at] = cell if lone[cell] else ~cell
            elif other >= 0:
                slots[at] = ~other
    count = 0
    for at in range(len(slots)):
        cell = slots[at]
        if 0 <= cell < nobody:
            known[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
            found[cell] += 1
            count += 1
    return count


@kernel
def _slot_of(
    cell: Whole, mixed: Whole, codes: NDArray[np.uint32], keys: Ints, slots: NDArray[np.int32], mask: Whole
) -> Whole:
    """Return the slot of the cell's combination: where a cell that agrees on all keys is, or the first free one."""
    at = (mixed ^ (mixed >> 29)) & mask
    while True:
        other = slots[at]
        if other == codes.shape[1]:
            return at
        if other < 0:
            other = ~other
        same = True
        for k in range(len(keys)):
            if codes[keys[k], other] != codes[keys[k], cell]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & mask


Codes = NDArray[Any]
Groups = NDArray[np.int32]


@kernel
def add_codes(codes: Codes, stride: Whole, keys: Ints) -> None:
    """Add a column's part to the keys of some rows."""
    for i in range(len(keys)):
        keys[i] += np.int64(codes[i]) * stride


@kernel
def count_keys(keys: Ints, count: Groups) -> None:
    """Count the rows of every key; those with a negative one are left out."""
    for i in range(len(keys)):
        if keys[i] >= 0:
            count[keys[i]] += 1


@kernel
def count_codes(codes: Codes, count: Ints) -> None:
    """Count the rows of every code."""
    for i in range(len(codes)):
        count[codes[i]] += 1


@kernel
def runs(keys: Ints, distinct: Ints, count: Ints) -> Whole:
    """Return how many different keys there are in sorted ones; list and count them, where there is room for that."""
    found = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[i - 1]:
            if found < len(distinct):
                distinct[found] = keys[i]
                count[found] = 0
            found += 1
        if found <= len(distinct):
            count[found - 1] += 1
    return found


@kernel
def first_rows(keys: Ints, group: Groups, row: Whole, first: Ints) -> Whole:
    """Note the first row of each group that has none so far; return how many groups have got one.

    `row` is that of the first key, `group` the group of every key, -1 outside.
    """
    found = 0
    for i in range(len(keys)):
        g = group[keys[i]]
        if g >= 0 and first[g] < 0:
            first[g] = row + i
            found += 1
    return found


@kernel
def put_rows(keys: Ints, group: Groups, row: Whole, place: Ints, order: NDArray[np.int32]) -> None:
    """Put rows at the next places of their groups: `place[g]` moves on by one for each."""
    for i in range(len(keys)):
        g = group[keys[i]]
        if g >= 0:
            order[place[g]] = row + i
            place[g] += 1


@kernel
def find_rows(keys: Ints, group: Groups, row: Whole, place: Ints, next_wanted: Ints, places: Ints, rows: Ints) -> None:
    """Find the rows at some sorted places, without putting all rows in order.

    `place[g]` is where the next row of group g stands, and `next_wanted[g]` points at the first of its places in
    `places` that has not come yet; a place may be wanted repeatedly.
    """
    for i in range(len(keys)):
        g = group[keys[i]]
        if g < 0:
            continue
        at = next_wanted[g]
        while at < len(places) and places[at] == place[g]:
            rows[at] = row + i
            at += 1
        next_wanted[g] = at
        place[g] += 1


@step
def mix(x: Whole) -> Whole:
    """Scramble 64 bits so that every input bit reaches every output bit (two multiply-shift rounds)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def hash_rows(values: Codes, first: Whole, salt: Whole) -> Whole:
    """Sum, modulo 2^64, a hash of (salt, row, value) over rows that follow one another."""
    total = np.uint64(0)
    for i in range(len(values)):
        total += mix(mix(np.uint64(first + i) + np.uint64(salt)) ^ np.uint64(values[i]))
    return total


@kernel
def hash_at(values: Codes, rows: Ints, salt: Whole) -> Whole:
    """Sum, modulo 2^64, a hash of (salt, row, value) over some rows."""
    total = np.uint64(0)
    for i in range(len(values)):
        total += mix(mix(np.uint64(rows[i]) + np.uint64(salt)) ^ np.uint64(values[i]))
    return total


@kernel
def put_in_buckets(words: NDArray[np.uint32], first: Whole, mask: Whole, place: Ints, places: Ints) -> None:
    """Give rows their places: each row draws 16 bits, the last ones of which name its bucket.

    Row `first` is the first; two rows share a word. `place[b]` is the next free place of bucket b and moves on by one.
    """
    for i in range(len(places)):
        row = first + i
        bucket = (np.int64(words[(row >> 1) - (first >> 1)]) >> (16 * (row & 1))) & mask
        places[i] = place[bucket]
        place[bucket] += 1


@kernel
def scatter(values: Codes, places: Ints, out: Codes) -> None:
    """Put each value at its place."""
    for i in range(len(places)):
        out[places[i]] = values[i]
