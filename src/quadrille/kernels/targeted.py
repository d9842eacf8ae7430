"""Who is at risk in which area, and drawing partners for units in proportion to risk, exactly, one pair after another.

The weights of the units of a class stand along the map as the leaves of a sum tree, so the units outside an area are
what is left of and right of a run of leaves. A draw picks a whole number below the sum of their weights and descends:
no key is shared between draws, and nothing is rounded. A unit that is used has weight 0 from then on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Floats, Ints, Whole, kernel, no_alloc
from quadrille.kernels.designed import Real
from quadrille.kernels.designed.neighbours import raw_loss
from quadrille.kernels.draw import Dice, below_large

Short = NDArray[np.int32]


@kernel
def least_in_table(combination: Short, of: Ints, area: Short, areas: Whole, table: Short, least: Short) -> None:
    """Count the rows of each combination in each area, in a table of zeros; `least` gets the least of each unit.

    `of` is the unit of each row, `area` the area of each unit.
    """
    for i in range(len(of)):
        table[np.int64(combination[i]) * areas + area[of[i]]] += 1
    for i in range(len(of)):
        unit = of[i]
        least[unit] = min(least[unit], table[np.int64(combination[i]) * areas + area[unit]])


@kernel
def least_in_runs(order: Short, combination: Short, of: Ints, area: Short, least: Short) -> None:
    """Do the same without a table, for rows sorted so that those of one combination and area stand together."""
    first, n = 0, len(order)
    while first < n:
        row = order[first]
        end = first + 1
        while end < n and combination[order[end]] == combination[row] and area[of[order[end]]] == area[of[row]]:
            end += 1
        for i in range(first, end):
            unit = of[order[i]]
            least[unit] = min(least[unit], end - first)
        first = end


class Profiles(NamedTuple):
    """Units sorted by class and, within a class, along the map, profile after profile; it never changes.

    Profile p owns the classes classes[p] to classes[p+1], class c the places start[c] to start[c+1] of `order` and as
    many leaves of a sum tree from tree[c] on; `path` is the lowest area of each place. `of[p, y]` is the class of unit
    y, `place[p, y]` its place within that class, -1 where it takes no part. The first place within class c of lowest
    area x is first[table[c] + x] where table[c] is not -1, else it is searched for. The area of level h around lowest
    area x is the run low[h, x] to high[h, x] of lowest areas.
    """

    classes: Ints
    start: Ints
    tree: Ints
    order: Short
    path: Short
    of: Short
    place: Short
    table: Ints
    first: Short
    low: Short
    high: Short


class UnitRules(NamedTuple):
    """What units are to plausibility rules, one bit each: of the conditions that stay and of those that move."""

    stay: Ints
    move: Ints


class LossTables(NamedTuple):
    """Tables whose loss is kept low: cell of a row = stay[table, row] + move[table, unit], in `now` and `before`.

    The members of unit y are rows[first[y]] to rows[first[y] + sizes[y]].
    """

    stay: Ints
    move: Ints
    kind: Ints
    price: Floats
    now: Floats
    before: Floats
    weight: Floats
    total: float
    rows: Ints
    first: Ints
    sizes: Ints


class Terms(NamedTuple):
    """How donors are looked for at one level: `weight` and `favoured` by unit, the tier is left out with tiers 0."""

    level: int
    near: int
    most: int
    tiers: int
    weight: Short
    favoured: NDArray[np.uint8]


class SumTrees(NamedTuple):
    """Sum trees with eight children to a node, of the weights of unused units and of those of the favoured; and counts.

    `built` tells which profiles have theirs. `path` and `nearest` are scratch.
    """

    built: NDArray[np.uint8]
    weights: Ints
    favoured: Ints
    numbers: Ints
    favoured_numbers: Ints
    path: Ints
    nearest: Ints


class Swapped(NamedTuple):
    """The pairs made so far with their phases, levels and profiles, how many, who is used, and who found nobody."""

    used: NDArray[np.uint8]
    failed: NDArray[np.uint8]
    pairs: Ints
    notes: NDArray[np.int8]
    made: Ints


ANY, PARENT, NEAREST, LEAST_LOSS = 0, 1, 2, 3
"""Where donors are looked for first."""
_TRIES = 64
"""Draws that a rule may reject before the admissible donors are listed."""
_DEAREST = 1e15
"""Where a loss has no bound, this is it."""


@no_alloc
def add(tree: Ints, base: Whole, size: Whole, i: Whole, amount: Whole) -> None:
    """Add to leaf i of a tree of so many leaves."""
    while True:
        tree[base + i] += amount
        if size <= 8:
            return
        base += size
        size = (size + 7) >> 3
        i >>= 3


@no_alloc
def sum_before(tree: Ints, base: Whole, size: Whole, i: Whole) -> Whole:
    """Return the sum of the leaves before leaf i; i may be the number of leaves."""
    total = np.int64(0)
    while True:
        first = 0 if size <= 8 else i & ~7
        for j in range(first, i):
            total += tree[base + j]
        if size <= 8:
            return total
        base += size
        size = (size + 7) >> 3
        i >>= 3


@no_alloc
def find(tree: Ints, base: Whole, size: Whole, value: Whole, path: Ints) -> Whole:
    """Return the leaf within which the running sum passes a value below the total."""
    depth = 0
    while True:
        path[depth] = base
        if size <= 8:
            break
        base += size
        size = (size + 7) >> 3
        depth += 1
    i = 0
    while True:
        base = path[depth]
        while value >= tree[base + i]:
            value -= tree[base + i]
            i += 1
        if depth == 0:
            return i
        i <<= 3
        depth -= 1


@no_alloc
def sum_up(tree: Ints, base: Whole, size: Whole) -> None:
    """Fill the nodes above the leaves."""
    while size > 8:
        above = base + size
        size_above = (size + 7) >> 3
        for j in range(size_above):
            total = np.int64(0)
            for i in range(8 * j, min(8 * j + 8, size)):
                total += tree[base + i]
            tree[above + j] = total
        base = above
        size = size_above


@no_alloc
def build(p: Whole, terms: Terms, trees: SumTrees, swapped: Swapped, profiles: Profiles) -> None:
    """Fill the trees of a profile."""
    counting = len(trees.numbers) > 0
    for c in range(profiles.classes[p], profiles.classes[p + 1]):
        begin, base = profiles.start[c], profiles.tree[c]
        size = profiles.start[c + 1] - begin
        for i in range(size):
            unit = profiles.order[begin + i]
            weight = np.int64(0) if swapped.used[unit] else np.int64(terms.weight[unit])
            favoured = weight if terms.tiers and terms.favoured[unit] else np.int64(0)
            trees.weights[base + i] = weight
            if terms.tiers:
                trees.favoured[base + i] = favoured
            if counting:
                trees.numbers[base + i] = 1 if weight else 0
                if terms.tiers:
                    trees.favoured_numbers[base + i] = 1 if favoured else 0
        sum_up(trees.weights, base, size)
        if terms.tiers:
            sum_up(trees.favoured, base, size)
        if counting:
            sum_up(trees.numbers, base, size)
            if terms.tiers:
                sum_up(trees.favoured_numbers, base, size)
    trees.built[p] = 1


@no_alloc
def empty_leaf(tree: Ints, base: Whole, size: Whole, i: Whole) -> None:
    """Set a leaf to 0."""
    if tree[base + i]:
        add(tree, base, size, i, -tree[base + i])


@no_alloc
def out_of_tier(unit: Whole, terms: Terms, trees: SumTrees, profiles: Profiles) -> None:
    """Take a unit out of the trees of the favoured."""
    for p in range(len(trees.built)):
        if trees.built[p] and terms.tiers:
            c = profiles.of[p, unit]
            base, size, i = profiles.tree[c], profiles.start[c + 1] - profiles.start[c], profiles.place[p, unit]
            empty_leaf(trees.favoured, base, size, i)
            if len(trees.numbers) > 0:
                empty_leaf(trees.favoured_numbers, base, size, i)


@no_alloc
def out_of_trees(unit: Whole, terms: Terms, trees: SumTrees, profiles: Profiles) -> None:
    """Take a used unit out of all trees."""
    out_of_tier(unit, terms, trees, profiles)
    for p in range(len(trees.built)):
        if trees.built[p]:
            c = profiles.of[p, unit]
            base, size, i = profiles.tree[c], profiles.start[c + 1] - profiles.start[c], profiles.place[p, unit]
            empty_leaf(trees.weights, base, size, i)
            if len(trees.numbers) > 0:
                empty_leaf(trees.numbers, base, size, i)


@no_alloc
def first_place(c: Whole, x: Whole, profiles: Profiles) -> Whole:
    """Return the first place within a class whose lowest area is x or comes after it."""
    table = profiles.table[c]
    if table >= 0:
        return np.int64(profiles.first[table + x])
    low, high = profiles.start[c], profiles.start[c + 1]
    while low < high:
        middle = (low + high) >> 1
        if profiles.path[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - profiles.start[c]


@no_alloc
def forbidden(one: Whole, other: Whole, rules: UnitRules) -> bool:
    """Tell whether a rule would be broken anew by one of two units that change places."""
    for w in range(rules.stay.shape[1]):
        mine, yours = rules.move[one, w], rules.move[other, w]
        if (rules.stay[one, w] & yours & ~mine) | (rules.stay[other, w] & mine & ~yours):
            return True
    return False


class Range(NamedTuple):
    """Places of a class from `low` to `high`, but for those of the target's own area, `own` to `own_end`."""

    low: Whole
    high: Whole
    own: Whole
    own_end: Whole


@no_alloc
def draw_place(tree: Ints, base: Whole, size: Whole, where: Range, path: Ints, dice: Dice) -> Whole:
    """Draw a place in proportion to its weight; -1 when all weights are 0."""
    before = sum_before(tree, base, size, where.low)
    own = sum_before(tree, base, size, where.own)
    inside = sum_before(tree, base, size, where.own_end) - own
    total = sum_before(tree, base, size, where.high) - before - inside
    if total == 0:
        return np.int64(-1)
    value = before + below_large(total, dice)
    if value >= own:
        value += inside
    return np.int64(find(tree, base, size, value, path))


@no_alloc
def draw_listed(
    t: Whole, begin: Whole, tree: Ints, base: Whole, where: Range, rules: UnitRules, profiles: Profiles, dice: Dice
) -> Whole:
    """Do the same among the admissible places, one by one."""
    total = np.int64(0)
    for i in range(where.low, where.high):
        outside = i < where.own or i >= where.own_end
        if outside and tree[base + i] and not forbidden(t, profiles.order[begin + i], rules):
            total += tree[base + i]
    if total == 0:
        return np.int64(-1)
    value = below_large(total, dice)
    for i in range(where.low, where.high):
        outside = i < where.own or i >= where.own_end
        if outside and tree[base + i] and not forbidden(t, profiles.order[begin + i], rules):
            value -= tree[base + i]
            if value < 0:
                return np.int64(i)
    return np.int64(-1)


@no_alloc
def draw_admissible(
    t: Whole, c: Whole, tree: Ints, where: Range, rules: UnitRules, profiles: Profiles, path: Ints, dice: Dice
) -> Whole:
    """Draw a place that no rule forbids: rejection first, which is the same law as a draw among the admissible."""
    base, begin = profiles.tree[c], profiles.start[c]
    size = profiles.start[c + 1] - begin
    if rules.stay.shape[1] == 0:
        return draw_place(tree, base, size, where, path, dice)
    for _ in range(_TRIES):
        i = draw_place(tree, base, size, where, path, dice)
        if i < 0 or dice.cursor[1]:
            return np.int64(-1)
        if not forbidden(t, profiles.order[begin + i], rules):
            return i
    return draw_listed(t, begin, tree, base, where, rules, profiles, dice)


@no_alloc
def draw_nearest(
    t: Whole,
    c: Whole,
    tree: Ints,
    numbers: Ints,
    own: Whole,
    own_end: Whole,
    terms: Terms,
    trees: SumTrees,
    rules: UnitRules,
    profiles: Profiles,
    dice: Dice,
) -> Whole:
    """Draw among the admissible places that are nearest on either side of the target's own area."""
    base, begin = profiles.tree[c], profiles.start[c]
    size = profiles.start[c + 1] - begin
    before, after = sum_before(numbers, base, size, own), sum_before(numbers, base, size, own_end)
    count = sum_before(numbers, base, size, size)
    if rules.stay.shape[1] == 0:
        low, high = own, own_end
        if before > 0:
            low = find(numbers, base, size, max(np.int64(0), before - terms.most), trees.path)
        if after < count:
            high = find(numbers, base, size, min(count, after + terms.most) - 1, trees.path) + 1
        return draw_place(tree, base, size, Range(low, high, own, own_end), trees.path, dice)
    listed, total = 0, np.int64(0)
    for side in range(2):
        taken, rank = 0, before - 1 if side == 0 else after
        while taken < terms.most and 0 <= rank < count:
            i = find(numbers, base, size, rank, trees.path)
            rank += -1 if side == 0 else 1
            if not forbidden(t, profiles.order[begin + i], rules):
                trees.nearest[listed] = i
                total += tree[base + i]
                listed += 1
                taken += 1
    if total == 0:
        return np.int64(-1)
    value = below_large(total, dice)
    for k in range(listed):
        value -= tree[base + trees.nearest[k]]
        if value < 0:
            return np.int64(trees.nearest[k])
    return np.int64(-1)


@no_alloc
def shift(unit: Whole, source: Whole, target: Whole, tables: LossTables) -> Real:
    """Give the members of a unit the place of `target` instead of `source`; return what that costs."""
    cost = 0.0
    for table in range(len(tables.kind)):
        gone, come = tables.move[table, source], tables.move[table, target]
        if gone == come:
            continue
        kind, price = tables.kind[table], tables.price[table]
        for k in range(tables.first[unit], tables.first[unit] + tables.sizes[unit]):
            row = tables.rows[k]
            weight = tables.weight[row]
            for way in range(2):
                cell = tables.stay[table, row] + (come if way else gone)
                amount = weight if way else -weight
                before, now = tables.before[cell], tables.now[cell]
                was = min(raw_loss(kind, before, now, tables.total), _DEAREST)
                cost += price * (min(raw_loss(kind, before, now + amount, tables.total), _DEAREST) - was)
                tables.now[cell] = now + amount
    return cost


@no_alloc
def exchange(one: Whole, other: Whole, tables: LossTables) -> Real:
    """Let two units change places in the tables; return what that costs."""
    return shift(one, one, other, tables) + shift(other, other, one, tables)


@no_alloc
def take_back(one: Whole, other: Whole, tables: LossTables) -> None:
    """Undo the exchange of two units."""
    shift(one, other, one, tables)
    shift(other, one, other, tables)


@no_alloc
def draw_cheapest(
    t: Whole,
    c: Whole,
    tree: Ints,
    where: Range,
    terms: Terms,
    rules: UnitRules,
    tables: LossTables,
    profiles: Profiles,
    path: Ints,
    dice: Dice,
) -> Whole:
    """Draw some places, each in proportion to its weight, and return that whose exchange costs the tables least."""
    best, least = np.int64(-1), np.inf
    for _ in range(terms.most):
        i = draw_admissible(t, c, tree, where, rules, profiles, path, dice)
        if i < 0 or dice.cursor[1]:
            return np.int64(-1)
        if i == best:
            continue
        donor = np.int64(profiles.order[profiles.start[c] + i])  # of one type, so that one form is compiled
        cost = exchange(t, donor, tables)
        take_back(t, donor, tables)
        if cost < least:
            best, least = i, cost
    return best


@no_alloc
def donor_in(
    t: Whole,
    p: Whole,
    tree: Ints,
    numbers: Ints,
    terms: Terms,
    trees: SumTrees,
    rules: UnitRules,
    tables: LossTables,
    profiles: Profiles,
    dice: Dice,
) -> Whole:
    """Return a donor of a target from one tier of its class; -1 when there is none."""
    c = profiles.of[p, t]
    base, begin = profiles.tree[c], profiles.start[c]
    size = profiles.start[c + 1] - begin
    x = profiles.path[begin + profiles.place[p, t]]
    own = first_place(c, profiles.low[terms.level, x], profiles)
    own_end = first_place(c, profiles.high[terms.level, x], profiles)
    inside = sum_before(tree, base, size, own_end) - sum_before(tree, base, size, own)
    if sum_before(tree, base, size, size) == inside:
        return np.int64(-1)
    i = np.int64(-1)
    if terms.near == NEAREST:
        i = draw_nearest(t, c, tree, numbers, own, own_end, terms, trees, rules, profiles, dice)
    elif terms.near == LEAST_LOSS:
        everywhere = Range(0, size, own, own_end)
        i = draw_cheapest(t, c, tree, everywhere, terms, rules, tables, profiles, trees.path, dice)
    else:
        if terms.near == PARENT:
            for g in range(terms.level - 1, -1, -1):
                low = first_place(c, profiles.low[g, x], profiles)
                high = first_place(c, profiles.high[g, x], profiles)
                i = draw_admissible(t, c, tree, Range(low, high, own, own_end), rules, profiles, trees.path, dice)
                if i >= 0 or dice.cursor[1]:
                    break
        if i < 0:
            i = draw_admissible(t, c, tree, Range(0, size, own, own_end), rules, profiles, trees.path, dice)
    return np.int64(-1) if i < 0 else np.int64(profiles.order[begin + i])


@no_alloc
def pair_up(
    t: Whole,
    phase: Whole,
    terms: Terms,
    trees: SumTrees,
    rules: UnitRules,
    tables: LossTables,
    swapped: Swapped,
    profiles: Profiles,
    dice: Dice,
) -> Whole:
    """Find a donor of a target, in the first profile that has any, and note the pair; -1 when there is none."""
    for p in range(len(trees.built)):
        if not trees.built[p]:
            build(p, terms, trees, swapped, profiles)
        d = np.int64(-1)
        if terms.tiers:
            d = donor_in(t, p, trees.favoured, trees.favoured_numbers, terms, trees, rules, tables, profiles, dice)
        if d < 0 and not dice.cursor[1]:
            d = donor_in(t, p, trees.weights, trees.numbers, terms, trees, rules, tables, profiles, dice)
        if dice.cursor[1]:
            return np.int64(-1)
        if d < 0:
            continue
        k = swapped.made[0]
        swapped.pairs[k, 0], swapped.pairs[k, 1] = t, d
        swapped.notes[k, 0], swapped.notes[k, 1], swapped.notes[k, 2] = phase, terms.level, p
        swapped.made[0] = k + 1
        for unit in (t, d):
            swapped.used[unit] = 1
            out_of_trees(unit, terms, trees, profiles)
        if terms.near == LEAST_LOSS:
            exchange(t, d, tables)
        return d
    return np.int64(-1)


@kernel
def swap_targets(
    targets: Ints,
    phase: Whole,
    limit: Whole,
    terms: Terms,
    trees: SumTrees,
    rules: UnitRules,
    tables: LossTables,
    swapped: Swapped,
    profiles: Profiles,
    dice: Dice,
) -> None:
    """Give targets that are still unused a donor each, in turn, until there are so many pairs in all."""
    for t in targets:
        if swapped.made[0] >= limit or dice.cursor[1]:
            return
        if not swapped.used[t] and pair_up(t, phase, terms, trees, rules, tables, swapped, profiles, dice) < 0:
            swapped.failed[t] = 1


class Slots(NamedTuple):
    """Units by lowest area, as the classes of `areas`, with the weights of those that may be drawn as targets.

    `open` is how many units of each area are still wanted; `aside` marks targets that found nobody, and `exhausted`
    counts what was still wanted of an area where no target was left.
    """

    areas: Profiles
    weights: Ints
    open: Ints
    aside: NDArray[np.uint8]
    exhausted: Ints
    path: Ints


@no_alloc
def out_of_slots(unit: Whole, slots: Slots) -> None:
    """Take a unit out of those that may be drawn as targets."""
    areas = slots.areas
    x = areas.of[0, unit]
    empty_leaf(slots.weights, areas.tree[x], areas.start[x + 1] - areas.start[x], areas.place[0, unit])


@no_alloc
def draw_target(x: Whole, slots: Slots, dice: Dice) -> Whole:
    """Draw a unit of an area in proportion to its weight; -1 when none is left."""
    areas = slots.areas
    base, size = areas.tree[x], areas.start[x + 1] - areas.start[x]
    total = sum_before(slots.weights, base, size, size)
    if total == 0:
        return np.int64(-1)
    i = find(slots.weights, base, size, below_large(total, dice), slots.path)
    return np.int64(areas.order[areas.start[x] + i])


@no_alloc
def close_area(x: Whole, slots: Slots, terms: Terms, trees: SumTrees, profiles: Profiles) -> None:
    """Take the units of an area of which no more are wanted out of the favoured."""
    for place in range(slots.areas.start[x], slots.areas.start[x + 1]):
        unit = np.int64(slots.areas.order[place])
        terms.favoured[unit] = 0
        out_of_tier(unit, terms, trees, profiles)


@no_alloc
def served(unit: Whole, slots: Slots, terms: Terms, trees: SumTrees, profiles: Profiles) -> None:
    """Count a unit of an area that takes part."""
    out_of_slots(unit, slots)
    x = np.int64(slots.areas.of[0, unit])
    if slots.open[x] > 0:
        slots.open[x] -= 1
        if slots.open[x] == 0:
            close_area(x, slots, terms, trees, profiles)


@kernel
def fill_quotas(
    wanted: Ints,
    phase: Whole,
    limit: Whole,
    slots: Slots,
    terms: Terms,
    trees: SumTrees,
    rules: UnitRules,
    tables: LossTables,
    swapped: Swapped,
    profiles: Profiles,
    dice: Dice,
    slot_dice: Dice,
) -> None:
    """Serve a list of areas, each as often as it stands there: draw a target and a donor, from open areas first."""
    for x in wanted:
        while slots.open[x] > 0 and swapped.made[0] < limit:
            t = draw_target(x, slots, slot_dice)
            if slot_dice.cursor[1]:
                return
            if t < 0:
                slots.exhausted[x] = slots.open[x]
                slots.open[x] = 0
                close_area(x, slots, terms, trees, profiles)
                break
            d = pair_up(t, phase, terms, trees, rules, tables, swapped, profiles, dice)
            if dice.cursor[1]:
                return
            if d < 0:
                slots.aside[t] = 1
                out_of_slots(t, slots)
                continue
            served(t, slots, terms, trees, profiles)
            served(d, slots, terms, trees, profiles)
            break


@kernel
def begin_in_areas(
    areas: Ints,
    phase: Whole,
    limit: Whole,
    slots: Slots,
    terms: Terms,
    trees: SumTrees,
    rules: UnitRules,
    tables: LossTables,
    swapped: Swapped,
    profiles: Profiles,
    dice: Dice,
    slot_dice: Dice,
) -> None:
    """Draw so many targets of each area, all at first, and then give each a donor; none is replaced."""
    targets = np.empty(int(slots.open.max()), dtype=np.int64)
    for x in areas:
        drawn = 0
        while drawn < slots.open[x]:
            t = draw_target(x, slots, slot_dice)
            if slot_dice.cursor[1]:
                return
            if t < 0:
                slots.exhausted[x] = slots.open[x] - drawn
                break
            targets[drawn] = t
            out_of_slots(t, slots)
            drawn += 1
        for k in range(drawn):
            if swapped.made[0] >= limit:
                return
            d = pair_up(targets[k], phase, terms, trees, rules, tables, swapped, profiles, dice)
            if dice.cursor[1]:
                return
            if d < 0:
                slots.aside[targets[k]] = 1
            else:
                out_of_slots(d, slots)


@kernel
def plant(weights: Ints, weight: Short, used: NDArray[np.uint8], areas: Profiles) -> None:
    """Fill the trees of the units that may be drawn as targets, area by area."""
    for x in range(len(areas.start) - 1):
        begin, base = areas.start[x], areas.tree[x]
        size = areas.start[x + 1] - begin
        for i in range(size):
            unit = areas.order[begin + i]
            weights[base + i] = 0 if used[unit] else weight[unit]
        sum_up(weights, base, size)


@kernel
def first_places(start: Ints, path: Short, table: Ints, areas: Whole, first: Short) -> None:
    """Tabulate the first place of each lowest area within the classes that have a table."""
    for c in range(len(start) - 1):
        if table[c] < 0:
            continue
        i = start[c]
        for x in range(areas + 1):
            while i < start[c + 1] and path[i] < x:
                i += 1
            first[table[c] + x] = i - start[c]
