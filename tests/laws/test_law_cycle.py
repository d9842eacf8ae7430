"""Laws of cyclic swapping, on random households and records, whatever is flagged."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from oracles import counts
from quadrille.data import Data
from quadrille.errors import InfeasibleError, InputError
from strategies import seeds


@st.composite
def files(draw: st.DrawFn) -> Data:
    """Persons of households, or records, in tracts of counties, with two keys, a flag, and some areas missing."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(2, 60))
    size = random.integers(1, draw(st.sampled_from([2, 5])), count)
    of = random.permutation(np.repeat(np.arange(count), size))
    tracts = draw(st.integers(2, 7))
    shares = random.dirichlet(np.full(tracts, draw(st.sampled_from([0.3, 5.0]))))
    tract = random.choice(tracts, count, p=shares)
    missing = random.random(count) < draw(st.sampled_from([0.0, 0.0, 0.15]))
    flag = random.random(count) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    key, other = random.integers(0, draw(st.integers(1, 4)), count), random.integers(0, 3, count)
    frame = pl.DataFrame(
        {
            "hh": of.tolist(),
            "county": [None if missing[h] else f"c{tract[h] // 2}" for h in of],
            "tract": [None if missing[h] else f"t{tract[h]}" for h in of],
            "key": [f"k{key[h]}" for h in of],
            "other": [f"o{other[h]}" for h in of],
            "flag": flag[of].tolist(),
        }
    )
    unit = {"unit": "hh"} if draw(st.booleans()) else {}
    return qd.from_frame(frame).with_roles(geography=["county", "tract"], **unit)


@examples(75)
@given(
    files(),
    st.integers(2, 5),
    st.sampled_from(["borrow", "leave"]),
    st.sampled_from(["county", "tract"]),
    seeds,
    st.booleans(),
)
def test_laws_of_cycles(data: Data, n: int, leftover: str, level: str, seed: int | str, carry: bool) -> None:
    recipe = qd.CycleSwap(
        flag="flag", same=["key"], area=level, n=n, leftover=leftover, carry=["other"] * carry, seed=seed
    )
    try:
        plan = qd.testing.check_recipe(recipe, data)
    except (InfeasibleError, InputError) as error:
        assert any(said in str(error) for said in ("can move", "true for nobody", "one area"))
        assume(False)
        raise
    (move,) = plan.moves
    has_units = any(variable.role == "unit" for variable in data.codebook)
    first = data.units("hh").first if has_units else np.arange(data.n)
    key, flag = (data[name].values[first].astype(int) for name in ("key", "flag"))
    area, known = data[level].values[first].astype(int), data["tract"].values[first] < data["tract"].valid
    flagged, to, of = flag == data["flag"].labels.index("True"), *move.given
    assert (key[to] == key[of]).all() and (area[to] != area[of]).all() and known[to].all()
    facts = plan.details.facts
    movers, borrowed = set(to.tolist()), facts["borrowed"]
    assert len(movers - set(np.flatnonzero(flagged).tolist())) == borrowed <= sum(facts["set_aside"].values())
    assert borrowed == 0 or leftover == "borrow"

    expected, sizes = 0, defaultdict(list)
    for cell in np.unique(key):
        held = Counter(area[(key == cell) & flagged & known].tolist())
        total, most = sum(held.values()), max(held.values(), default=0)
        able = 0 if len(held) < 2 else total - max(0, 2 * most - total)
        expected += able
        if able:
            large = max(most - max(0, 2 * most - total), 1)
            q = max(large, min(able // 2, (2 * able + n) // (2 * n)))
            sizes[cell] = [able // q + (i < able % q) for i in range(q)]
    assert facts["moved_in_cycles"] == expected, "as many move as can"
    assert facts["cycles"] == dict(sorted(Counter(size for each in sizes.values() for size in each).items()))
    assert facts["flagged"] == flagged.sum()
    assert facts["left"] == flagged.sum() - expected - borrowed

    source, seen = dict(zip(to.tolist(), of.tolist(), strict=True)), set[int]()
    found: Counter[int] = Counter()
    for start in to.tolist():
        cycle, unit = list[int](), start
        while unit not in seen:
            seen.add(unit)
            cycle.append(unit)
            unit = source[unit]
        if cycle:
            found[len(cycle)] += 1
            assert len({area[u] for u in cycle}) == len(cycle), "all members are from different areas"
    found[2] -= borrowed
    assert dict(+found) == facts["cycles"]

    before, after = data.take(first), plan.apply(data).take(first)
    for names in (("key", "county"), ("key", "tract"), ("county", "tract")):
        assert counts(before, names) == counts(after, names)
    if leftover == "borrow":
        lenders = Counter(zip(key[~flagged & known].tolist(), area[~flagged & known].tolist(), strict=True))
        for unit in to[~flagged[to]]:
            lenders[int(key[unit]), int(area[unit])] -= 1
        for unit in np.flatnonzero(flagged & known):
            if int(unit) not in movers:
                free = sum(c for (cell, place), c in lenders.items() if cell == key[unit] and place != area[unit])
                assert free == 0, "nobody is left who could have borrowed a partner"
