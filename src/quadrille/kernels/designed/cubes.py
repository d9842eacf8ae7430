"""Moves over cubes of cells, which leave every kept table as it is, and the search that makes them.

A cell and another value for each of m blocks of axes span a cube of 2^m corners. A move adds a record to every corner
in which an even number of blocks has changed and takes one from the others, or the other way round. Summed over the
two values of a block it is nothing: a table that lacks all axes of some block does not notice. So a move is admitted
when no kept table meets every block, and then no sequence of moves, stopped anywhere, can change a kept table.

The search proposes moves at small cells and takes those that lower the cost, and others now and then: fewer the lower
the temperature. Cost is lambda times the exposed records plus the loss, both sums over cells. Cubes that could be moved
are remembered with their small cell and tried again, since in a sparse table most cubes have an empty corner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Whole, kernel, no_alloc, prefetch, step
from quadrille.kernels.designed import NONE, NOTHING, FloatField, IntField, Real, Rows, ShortField, rows
from quadrille.kernels.designed.neighbours import exposure, raw_loss

Ints = NDArray[np.int64]
MOST_BLOCKS = 6
"""Blocks of a move, at most: 64 corners."""
MOST_AXES = 62
UNLIMITED = np.int32((1 << 31) - 1)
AROUND_WORDS = 5
"""Words that one try to displace a record takes."""
_TRIES_PER_BLOCK = 4
_MANY, _EARLY, AHEAD = 1 << 14, 6, 8
"""Occupied cells from which on steps are looked at early, how many steps early, and places for them."""
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)


class CubeTable:
    """A table that is protected, whose loss counts, or both; the first one has all axes, and holds the records."""

    protected: IntField
    loss: IntField
    importance: FloatField
    total: FloatField


class CubeCell:
    """A cell of a table: records before and now, how few and how many it may hold, and what can be inferred of it.

    `alone` counts the variables that can be read off from all the others, as long as anybody is in the cell.
    """

    key: IntField
    before: ShortField
    count: ShortField
    least: ShortField
    most: ShortField
    alone: ShortField


CELL_BYTES = rows(CubeCell, 0).itemsize


class Cubes(NamedTuple):
    """The cells of all tables, and how to find the cell of a key."""

    n: int
    new_cells: bool
    """Whether a cell of a protected table that held nobody may get records."""
    inference: float
    """Price of a value that can be inferred."""
    tables: Rows
    sizes: Ints
    """[axis]: number of levels."""
    strides: Ints
    """[axis]: what one level more adds to the key of the first table."""
    level_from: Ints
    """[axis]: the number of its first level, where the levels of all axes are numbered through."""
    adds: Ints
    """[table, level]: what a level adds to the key; the same for levels between which the table does not tell."""
    cells: Rows
    cell_at: NDArray[np.int32]
    """The cell of a key, -1 for none; where keys are too many for that, the cell at each place of a hash table."""
    keys: Ints
    """The key at each place of the hash table; empty where `cell_at` lists all keys."""
    levels: NDArray[np.int32]
    """[cell of the first table, axis]."""
    key_of: Ints
    """[table, cell of the first table]."""
    kept: NDArray[np.uint64]
    """The kept tables, as bits of axes; those of the most axes first."""
    kept_axes: NDArray[np.int32]
    """[kept table]: how many."""
    faces: NDArray[np.int32]
    """[set, place]: the smallest sets of axes that no kept table contains; -1 behind the last axis of a set."""
    order: NDArray[np.int32]
    """[axis, place]: occupied cells, those that differ in this axis only next to each other."""
    near_from: NDArray[np.int32]
    near: NDArray[np.int32]
    """[axis, cell]: where its neighbours in that axis begin, itself among them, and their number."""
    rules: NDArray[np.bool_]
    """[rule, axis, level]: whether the level meets the part of the rule that is about the axis."""
    progress: Ints
    """Cells in use, and twice the records that have moved."""


class Ahead(NamedTuple):
    """Steps that are looked at before their turn, by their number modulo the places."""

    blocks: Ints
    """[place, block]: the change of the key in the first table; 0 behind the last block."""
    size: Ints
    """[place]: number of blocks, 0 where no cube was found."""
    found: Ints
    """[place]: cubes that were ever remembered with the small cell, then."""
    used: Ints
    """[place]: cells in use, then."""


class Search(NamedTuple):
    """What a search remembers: for each small cell, cubes that could be moved there."""

    memory: Ints
    """[small cell, cube, block]: the change of the key in the first table; 0 behind the last block."""
    found: Ints
    """[small cell]: how many were ever remembered; the last ones overwrite others."""
    small_no: NDArray[np.int32]
    """[cell of the first table]: its number among the small cells, -1 for others."""
    ahead: Ahead
    """Cubes that are spanned before their turn."""


class Cube(NamedTuple):
    """Room for one move: the change of the key by block and table, and the cells of the corners by table."""

    blocks: Ints
    """[table, block]."""
    masks: NDArray[np.uint64]
    """[block]: its axes."""
    corners: Ints
    """[table, corner]: the cell, -1 for one that is not in use."""
    keys: Ints
    """[table, corner]."""


@step
def _below(word: Any, n: Any) -> Any:
    # Without rejection: a proposal need not be exactly uniform, and n is far below 2^32.
    return np.int64((np.uint64(word) * np.uint64(n)) >> _HALF)


@no_alloc
def _mixed(key: Whole) -> Any:
    """Scatter keys over the places of a hash table."""
    scattered = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return scattered ^ (scattered >> np.uint64(29))


@no_alloc
def find(key: Whole, cubes: Cubes) -> Whole:
    """Return the cell of a key, -1 if no record was or came there."""
    if not len(cubes.keys):
        return np.int64(cubes.cell_at[key])
    last = np.uint64(len(cubes.keys) - 1)
    place = _mixed(key) & last
    while cubes.cell_at[place] >= 0:
        if cubes.keys[place] == key:
            return np.int64(cubes.cell_at[place])
        place = (place + np.uint64(1)) & last
    return NONE


@no_alloc
def _put(key: Whole, cell: Whole, cubes: Cubes) -> None:
    if not len(cubes.keys):
        cubes.cell_at[key] = cell
        return
    last = np.uint64(len(cubes.keys) - 1)
    place = _mixed(key) & last
    while cubes.cell_at[place] >= 0:
        place = (place + np.uint64(1)) & last
    cubes.cell_at[place] = cell
    cubes.keys[place] = key


@kernel
def put_all(used: int, cubes: Cubes) -> None:
    """Enter the cells in use under their keys."""
    for cell in range(used):
        _put(cubes.cells[cell].key, np.int64(cell), cubes)


@no_alloc
def _against_rules(key: Whole, cubes: Cubes) -> bool:
    """Tell whether the records of a cell of the first table meet a rule."""
    for r in range(len(cubes.rules)):
        meets = True
        for a in range(len(cubes.sizes)):
            if not cubes.rules[r, a, key // cubes.strides[a] % cubes.sizes[a]]:
                meets = False
                break
        if meets:
            return True
    return False


@step
def _sign(corner: Any, s: Any) -> Any:
    parity = corner ^ (corner >> 4)
    parity ^= parity >> 2
    parity ^= parity >> 1
    return s if (parity & 1) == 0 else -s


@no_alloc
def _admitted(m: Whole, cube: Cube, cubes: Cubes) -> bool:
    """Tell whether every kept table misses a block."""
    for t in range(len(cubes.kept)):
        if cubes.kept_axes[t] < m:
            return True  # so few axes cannot meet all blocks, and the tables behind have no more
        missed = False
        for j in range(m):
            if cubes.kept[t] & cube.masks[j] == 0:
                missed = True
                break
        if not missed:
            return False
    return True


@no_alloc
def _corners_fit(t: Whole, c: Whole, m: Whole, s: Whole, cube: Cube, cubes: Cubes) -> bool:
    """Find the corners of a move in a table; False if one of them cannot gain or lose as it would have to."""
    width = np.int64(1)
    cube.keys[t, 0] = cubes.key_of[t, c]
    for j in range(-1, m):
        for i in range(width):
            corner = NOTHING if j < 0 else width + i
            if j >= 0:
                cube.keys[t, corner] = cube.keys[t, i] + cube.blocks[t, j]
            cell = c if t == 0 and j < 0 else find(cube.keys[t, corner], cubes)
            cube.corners[t, corner] = cell
            gain = _sign(corner, s)
            if cell < 0:
                if gain < 0 or (cubes.tables[t].protected and not cubes.new_cells):
                    return False
                if t == 0 and len(cubes.rules) and _against_rules(cube.keys[t, corner], cubes):
                    return False
            elif not cubes.cells[cell].least <= cubes.cells[cell].count + gain <= cubes.cells[cell].most:
                return False
        if j >= 0:
            width *= 2
    return True


@no_alloc
def _unnoticed(t: Whole, m: Whole, cube: Cube) -> bool:
    """Tell whether a table lacks all axes of some block, and so does not change."""
    lacking = False
    for j in range(m):
        lacking |= cube.blocks[t, j] == 0
    return lacking


@no_alloc
def _fits(c: Whole, m: Whole, s: Whole, cube: Cube, cubes: Cubes) -> bool:
    """Tell whether a move can be made: in every table, no corner lacks the record it must give, or must not gain."""
    for t in range(len(cubes.tables)):
        if not _unnoticed(t, m, cube) and not _corners_fit(np.int64(t), c, m, s, cube, cubes):
            return False
    return True


@no_alloc
def _cost(m: Whole, s: Whole, price: Real, cube: Cube, cubes: Cubes) -> Real:
    """Return what a move costs: exposed records and inferred values by their prices, and the loss times all records."""
    cost = 0.0
    for t in range(len(cubes.tables)):
        if _unnoticed(t, m, cube):
            continue
        kind, total = cubes.tables[t].loss, cubes.tables[t].total
        importance = cubes.tables[t].importance * total
        lambda_ = price * cubes.tables[t].protected
        for corner in range(1 << m):
            gain, cell = _sign(corner, s), cube.corners[t, corner]
            before, count = NOTHING, NOTHING
            if cell >= 0:
                before, count = np.int64(cubes.cells[cell].before), np.int64(cubes.cells[cell].count)
            if cubes.tables[t].protected:
                cost += lambda_ * (exposure(before, count + gain, cubes.n) - exposure(before, count, cubes.n))
                if cubes.inference > 0 and cell >= 0:
                    there = int(count + gain > 0) - int(count > 0)
                    cost += cubes.inference * cubes.cells[cell].alone * there
            if kind > 0:
                more = raw_loss(kind, float(before), float(count + gain), total)
                cost += importance * (more - raw_loss(kind, float(before), float(count), total))
    return cost


@no_alloc
def _room(m: Whole, cube: Cube, cubes: Cubes) -> bool:
    """Tell whether there is room for the cells that a move would make."""
    missing = NOTHING
    for t in range(len(cubes.tables)):
        if not _unnoticed(t, m, cube):
            for corner in range(1 << m):
                missing += cube.corners[t, corner] < 0
    return cubes.progress[0] + missing <= len(cubes.cells)


@no_alloc
def _moved_more(m: Whole, s: Whole, cube: Cube, cubes: Cubes) -> Whole:
    """Return by how much a move changes the sum of differences from before."""
    more = NOTHING
    for corner in range(1 << m):
        gain, cell = _sign(corner, s), cube.corners[0, corner]
        away = NOTHING if cell < 0 else np.int64(cubes.cells[cell].count) - cubes.cells[cell].before
        more += abs(away + gain) - abs(away)
    return more


@no_alloc
def _make(m: Whole, s: Whole, cube: Cube, cubes: Cubes) -> None:
    cubes.progress[1] += _moved_more(m, s, cube, cubes)
    for t in range(len(cubes.tables)):
        if _unnoticed(t, m, cube):
            continue
        for corner in range(1 << m):
            cell = cube.corners[t, corner]
            if cell < 0:
                cell = cubes.progress[0]
                cubes.progress[0] += 1
                _put(cube.keys[t, corner], cell, cubes)
                cubes.cells[cell].key = cube.keys[t, corner]
                cubes.cells[cell].most = UNLIMITED
            cubes.cells[cell].count += _sign(corner, s)


@no_alloc
def _set_block(j: Whole, a: Whole, level: Whole, to: Whole, cube: Cube, cubes: Cubes) -> None:
    """Add the change of an axis from one level to another to a block."""
    cube.masks[j] |= np.uint64(1) << np.uint64(a)
    first = cubes.level_from[a]
    for t in range(len(cubes.tables)):
        cube.blocks[t, j] += cubes.adds[t, first + to] - cubes.adds[t, first + level]


@no_alloc
def _clear(m: Whole, cube: Cube, cubes: Cubes) -> None:
    for j in range(m):
        cube.masks[j] = 0
        for t in range(len(cubes.tables)):
            cube.blocks[t, j] = 0


@no_alloc
def _face_size(face: Whole, cubes: Cubes) -> Whole:
    m = NOTHING
    while m < cubes.faces.shape[1] and cubes.faces[face, m] >= 0:
        m += 1
    return m


@no_alloc
def _any_levels(c: Whole, face: Whole, words: Any, at: Whole, cube: Cube, cubes: Cubes) -> Whole:
    """Make a block of each axis of a set, to any level; return the number of blocks."""
    m = _face_size(face, cubes)
    for j in range(m):
        a = np.int64(cubes.faces[face, j])
        level = np.int64(cubes.levels[c, a])
        to = level + 1 + _below(words[at + j], cubes.sizes[a] - 1)
        _set_block(np.int64(j), a, level, to if to < cubes.sizes[a] else to - cubes.sizes[a], cube, cubes)
    return m


@no_alloc
def _occupied_levels(c: Whole, face: Whole, words: Any, at: Whole, cube: Cube, cubes: Cubes) -> Whole:
    """Make a block of each axis of a set, to levels at which all corners so far have a neighbour; 0 if none is found.

    In a sparse table most cubes have a corner in which nobody ever was: better to notice it block by block.
    """
    m = _face_size(face, cubes)
    cube.keys[0, 0] = cubes.key_of[0, c]
    for j in range(m):
        a = np.int64(cubes.faces[face, j])
        level, dice, chosen = np.int64(cubes.levels[c, a]), np.uint64(words[at + j]), NONE
        for _ in range(_TRIES_PER_BLOCK):
            other = cubes.order[a, cubes.near_from[a, c] + _below(dice, cubes.near[a, c])]
            to = np.int64(cubes.levels[other, a])
            if to != level and _shifted(j, (to - level) * cubes.strides[a], cube, cubes):
                chosen = to
                break
            dice = (dice * np.uint64(1664525) + np.uint64(1013904223)) & _LOW
        if chosen < 0:
            return NOTHING
        _set_block(np.int64(j), a, level, chosen, cube, cubes)
    return m


@no_alloc
def _shifted(j: Whole, change: Whole, cube: Cube, cubes: Cubes) -> bool:
    """Tell whether all corners of j blocks are in use after a change of the key too; enter their keys."""
    width = 1 << j
    for i in range(width):
        key = cube.keys[0, i] + change
        if i > 0 and find(key, cubes) < 0:
            return False
        cube.keys[0, width + i] = key
    return True


@no_alloc
def _towards(c: Whole, other: Whole, m: Whole, low: Any, high: Any, cube: Cube, cubes: Cubes) -> Whole:
    """Put each axis in which another cell differs into a block at random; return the number of blocks, 0 for none."""
    dice = np.uint64(low) | (np.uint64(high) << _HALF)
    for a in range(len(cubes.sizes)):
        level, to = np.int64(cubes.levels[c, a]), np.int64(cubes.levels[other, a])
        if level != to:
            _set_block(np.int64(dice % np.uint64(m)), np.int64(a), level, to, cube, cubes)
            dice //= np.uint64(m)
            if dice == 0:
                dice = np.uint64(low) ^ np.uint64(a * 0x9E3779B9)
    for j in range(m):
        if cube.masks[j] == 0:
            return NOTHING
    return m if _admitted(m, cube, cubes) else NOTHING


@no_alloc
def _propose(c: Whole, word: Any, words: Any, at: Whole, cube: Cube, cubes: Cubes) -> Whole:
    """Span a cube at a cell, one way or another; return the number of blocks, 0 for none."""
    face = _below(words[at], len(cubes.faces))
    m = _face_size(face, cubes)
    _clear(m, cube, cubes)
    if word & 1:
        other = _below(words[at + 1], len(cubes.levels))
        return _towards(c, other, m, words[at + 2], words[at + 3], cube, cubes)
    if word & 2:
        return _occupied_levels(c, face, words, at + 1, cube, cubes)
    return _any_levels(c, face, words, at + 1, cube, cubes)


@no_alloc
def _recall(c: Whole, small: Whole, word: Any, cube: Cube, cubes: Cubes, search: Search) -> Whole:
    """Span a cube that could be moved at this small cell before; return the number of blocks."""
    which = _below(word, min(search.found[small], np.int64(search.memory.shape[1])))
    m = NOTHING
    while m < search.memory.shape[2] and search.memory[small, which, m] != 0:
        cube.blocks[0, m] = search.memory[small, which, m]
        m += 1
    if len(cubes.tables) > 1:
        _read_blocks(c, m, cube, cubes)
    return m


@no_alloc
def _read_blocks(c: Whole, m: Whole, cube: Cube, cubes: Cubes) -> None:
    """Find out from the changes of the key in the first table what the blocks are in the others."""
    for j in range(m):
        key, cube.blocks[0, j] = cubes.key_of[0, c] + cube.blocks[0, j], 0
        for t in range(1, len(cubes.tables)):
            cube.blocks[t, j] = 0
        for a in range(len(cubes.sizes)):
            level, to = np.int64(cubes.levels[c, a]), key // cubes.strides[a] % cubes.sizes[a]
            if level != to:
                _set_block(np.int64(j), np.int64(a), level, to, cube, cubes)


@no_alloc
def _remember(small: Whole, m: Whole, word: Any, cube: Cube, search: Search) -> None:
    room = np.int64(search.memory.shape[1])
    which = search.found[small] if search.found[small] < room else _below(word, room)
    search.found[small] += 1
    for j in range(search.memory.shape[2]):
        search.memory[small, which, j] = cube.blocks[0, j] if j < m else NOTHING


@no_alloc
def _cell_of_step(at: Whole, words: Any, targets: Any, cubes: Cubes) -> Whole:
    """Return the cell at which a step starts, one of the targets in three steps of four."""
    if words[at] & 7 < 6:
        return np.int64(targets[_below(words[at + 1], len(targets))])
    return _below(words[at + 1], len(cubes.levels))


@no_alloc
def _is_recalled(small: Whole, word: Any, search: Search) -> Any:
    return small >= 0 and search.found[small] > 0 and (word >> 4) & 15 < 10


@no_alloc
def _look(i: Whole, c: Whole, at: Whole, words: Any, cube: Cube, cubes: Cubes, search: Search) -> None:
    """Span the cube of a step at a cell, and keep it in the place of the step."""
    place, ahead = i % AHEAD, search.ahead
    small = np.int64(search.small_no[c])
    if _is_recalled(small, words[at], search):
        m = _recall(c, small, words[at + 2], cube, cubes, search)
    else:
        m = _propose(c, words[at] >> 8, words, at + 3, cube, cubes)
    for j in range(ahead.blocks.shape[1]):
        ahead.blocks[place, j] = cube.blocks[0, j] if j < m else NOTHING
    ahead.size[place] = m
    ahead.found[place] = search.found[small] if small >= 0 else NONE
    ahead.used[place] = cubes.progress[0]


@no_alloc
def _turn(i: Whole, c: Whole, at: Whole, words: Any, cube: Cube, cubes: Cubes, search: Search) -> Whole:
    """Return the number of blocks of a step's cube, as if it were spanned now: anew where something has changed."""
    place, ahead, small = i % AHEAD, search.ahead, np.int64(search.small_no[c])
    if ahead.used[place] != cubes.progress[0] or (small >= 0 and ahead.found[place] != search.found[small]):
        _look(i, c, at, words, cube, cubes, search)
    m = ahead.size[place]
    for j in range(m):
        cube.blocks[0, j] = ahead.blocks[place, j]
    if len(cubes.tables) > 1:
        _read_blocks(c, m, cube, cubes)
    return m


@no_alloc
def _ask_for_corners(i: Whole, c: Whole, cells: bool, cubes: Cubes, search: Search) -> None:
    """Ask for the places of the keys of a cube, or for the cells at them."""
    place, ahead = i % AHEAD, search.ahead
    for corner in range(1 << ahead.size[place] if ahead.size[place] else 0):
        key = cubes.key_of[0, c]
        for j in range(ahead.size[place]):
            key += ahead.blocks[place, j] * (corner >> j & 1)
        if not cells:
            prefetch(cubes.cell_at, 4 * key)
        elif cubes.cell_at[key] >= 0:
            prefetch(cubes.cells, np.int64(CELL_BYTES) * cubes.cell_at[key])


@no_alloc
def _ask_for_cell(at: Whole, words: Any, targets: Any, cubes: Cubes, search: Search) -> None:
    """Ask for what is known of the cell at which a step starts, and of the one towards which it may go."""
    c = _cell_of_step(at, words, targets, cubes)
    prefetch(search.small_no, 4 * c)
    prefetch(cubes.key_of, 8 * c)
    prefetch(cubes.levels, 4 * c * cubes.levels.shape[1])
    prefetch(cubes.levels, 4 * _below(words[at + 4], len(cubes.levels)) * cubes.levels.shape[1])


@no_alloc
def _ask_for_memory(at: Whole, whole: bool, words: Any, targets: Any, cubes: Cubes, search: Search) -> None:
    """Ask for how many cubes are remembered with the cell at which a step starts, or for the one that is recalled."""
    small = np.int64(search.small_no[_cell_of_step(at, words, targets, cubes)])
    if small < 0:
        return
    if not whole:
        prefetch(search.found, 8 * small)
    elif _is_recalled(small, words[at], search):
        room = np.int64(search.memory.shape[1])
        which = _below(words[at + 2], min(search.found[small], room))
        prefetch(search.memory, 8 * (small * room + which) * search.memory.shape[2])


@kernel
def anneal(
    targets: NDArray[np.int32],
    price: float,
    temperature: float,
    elsewhere: float,
    most_moved: int,
    words: NDArray[np.uint32],
    words_per_step: int,
    exponential: NDArray[np.float64],
    cube: Cube,
    cubes: Cubes,
    search: Search,
) -> int:
    """Take as many steps as there are words for; return how many moves were made.

    `elsewhere` is the temperature of moves that do not start at one of the targets. In a table that is larger than the
    processor's cache most time would be spent waiting for cells: so the cube of a step is spanned some steps before
    its turn, and what it needs is asked for. That changes nothing in what is done.
    """
    made, steps = 0, np.int64(len(words) // words_per_step)
    early = np.int64(_EARLY) if len(cubes.levels) > _MANY and not len(cubes.keys) else NOTHING
    for now in range(-4 * early, steps):
        i, at = np.int64(now), now * words_per_step
        if early:
            if i + 4 * early < steps:
                _ask_for_cell(at + 4 * early * words_per_step, words, targets, cubes, search)
            if 0 <= i + 3 * early < steps:
                _ask_for_memory(at + 3 * early * words_per_step, False, words, targets, cubes, search)
            if 0 <= i + 2 * early < steps:
                _ask_for_memory(at + 2 * early * words_per_step, True, words, targets, cubes, search)
            if 0 <= i + early < steps:
                there = at + early * words_per_step
                c = _cell_of_step(there, words, targets, cubes)
                _look(i + early, c, there, words, cube, cubes, search)
                _ask_for_corners(i + early, c, False, cubes, search)
            if 0 <= i + early // 2 < steps:
                there = at + early // 2 * words_per_step
                _ask_for_corners(i + early // 2, _cell_of_step(there, words, targets, cubes), True, cubes, search)
        if i < 0:
            continue
        word, c = words[at], _cell_of_step(at, words, targets, cubes)
        small, s = np.int64(search.small_no[c]), np.int64(1) if word & 8 else np.int64(-1)
        recalled = _is_recalled(small, word, search)
        if not early:
            _look(i, c, at, words, cube, cubes, search)
        m = _turn(i, c, at, words, cube, cubes, search)
        if m == 0 or not _fits(c, m, s, cube, cubes):
            continue
        if small >= 0 and not recalled:
            _remember(small, m, words[at + 2], cube, search)
        cost = _cost(m, s, price, cube, cubes)
        if not cost <= (temperature if word & 7 < 6 else elsewhere) * exponential[(word >> 16) & 4095]:
            continue
        if cubes.progress[1] + _moved_more(m, s, cube, cubes) > most_moved:
            continue
        if not _room(m, cube, cubes):
            continue
        _make(m, s, cube, cubes)
        made += 1
    return made


@kernel
def displace(
    c: int,
    goals: NDArray[np.int32],
    both_ways: bool,
    most_moved: int,
    words: NDArray[np.uint32],
    apply: bool,
    cube: Cube,
    cubes: Cubes,
) -> int:
    """Move the one record of a cell to an empty cell by the cheapest exact move found.

    The empty cells are given by their levels, in the order in which they are tried, and `cubes` lets new cells arise.
    Return which of them can be reached, -1 for none. With `apply` the move is made, and both cells stay as they are
    from then on. `both_ways` asks whether the record could as well come from there: then the answer is the same for a
    pair of cells, whichever of them holds it.
    """
    tries = len(words) // (AROUND_WORDS * max(len(goals), 1))
    for i in range(len(goals)):
        best, best_at = np.inf, NONE
        for k in range(tries):
            at = np.int64((i * tries + k) * AROUND_WORDS)
            m = _around(np.int64(c), goals[i], words, at, cube, cubes)
            if m > 0 and _displaces(np.int64(c), m, both_ways, most_moved, cube, cubes):
                cost = _cost(m, NONE, 0.0, cube, cubes)
                if cost < best:
                    best, best_at = cost, at
        if best_at >= 0:
            if apply:
                m = _around(np.int64(c), goals[i], words, best_at, cube, cubes)
                _displaces(np.int64(c), m, both_ways, most_moved, cube, cubes)
                _make(m, NONE, cube, cubes)
                _freeze(m, cube, cubes)
            return i
    return -1


@no_alloc
def _around(c: Whole, goal: Any, words: Any, at: Whole, cube: Cube, cubes: Cubes) -> Whole:
    """Span a cube whose first block leads to a goal; the others lead towards an occupied cell."""
    m = _face_size(_below(words[at], len(cubes.faces)), cubes)
    _clear(m, cube, cubes)
    for a in range(len(cubes.sizes)):
        if goal[a] != cubes.levels[c, a]:
            _set_block(NOTHING, np.int64(a), np.int64(cubes.levels[c, a]), np.int64(goal[a]), cube, cubes)
    other = _below(words[at + 1], len(cubes.levels))
    dice = np.uint64(words[at + 2]) | (np.uint64(words[at + 3]) << _HALF)
    single = (words[at + 4] & 1) == 1
    for a in range(len(cubes.sizes)):
        level, to = np.int64(cubes.levels[c, a]), np.int64(cubes.levels[other, a])
        if goal[a] != level or level == to:
            continue
        j = 1 + np.int64(dice % np.uint64(m - 1))
        dice = dice // np.uint64(m - 1) if m > 2 else dice
        if not single or cube.masks[j] == 0:
            _set_block(j, np.int64(a), level, to, cube, cubes)
    for j in range(m):
        if cube.masks[j] == 0:
            return NOTHING
    return m if _admitted(m, cube, cubes) else NOTHING


@no_alloc
def _displaces(c: Whole, m: Whole, both_ways: bool, most_moved: Whole, cube: Cube, cubes: Cubes) -> bool:
    """Find the corners of a move that takes the record of a cell to an empty one; False if it cannot be made.

    In protected tables every other corner must be large afterwards, and if it is to go both ways either way.
    """
    if not _fits(c, m, NONE, cube, cubes) or not _room(m, cube, cubes):
        return False
    if both_ways and len(cubes.rules) and _against_rules(cube.keys[0, 0], cubes):
        return False
    for t in range(len(cubes.tables)):
        if not cubes.tables[t].protected or _unnoticed(t, m, cube):
            continue
        for corner in range(1, 1 << m):
            cell = cube.corners[t, corner]
            if corner == 1:
                if cell >= 0 and cubes.cells[cell].count + cubes.cells[cell].before > 0:
                    return False
                continue
            if cell < 0 or cubes.cells[cell].count + (NONE if both_ways else _sign(corner, NONE)) < cubes.n:
                return False
            if both_ways and not cubes.cells[cell].least < cubes.cells[cell].count < cubes.cells[cell].most:
                return False
    return cubes.progress[1] + _moved_more(m, NONE, cube, cubes) <= most_moved


@no_alloc
def _freeze(m: Whole, cube: Cube, cubes: Cubes) -> None:
    """Let the cell that was left and the one that was reached be as they are."""
    for t in range(len(cubes.tables)):
        if cubes.tables[t].protected and not _unnoticed(t, m, cube):
            for corner in range(2):
                cell = find(cube.keys[t, corner], cubes)
                cubes.cells[cell].least = cubes.cells[cell].most = cubes.cells[cell].count


@kernel
def keep_empty(key: int, cubes: Cubes) -> None:
    """Let nobody come to a cell that holds nobody."""
    if find(np.int64(key), cubes) < 0 and cubes.progress[0] < len(cubes.cells):
        cell = cubes.progress[0]
        cubes.progress[0] += 1
        _put(np.int64(key), cell, cubes)
        cubes.cells[cell].key = key
