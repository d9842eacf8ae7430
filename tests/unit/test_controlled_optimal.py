"""Optimal matching against all matchings of tiny files: most pairs first, then least cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from controlled_strategies import flag
from quadrille.data import Column, Data
from strategies import numbers

LEVELS = (0, 1, 3, 10)
PARTS = ("distance", "weight", "bias")


def tiny(cells: list[int], weight: list[float], targets: int, kind: str = "ordinal", zone: object = None) -> Data:
    """The first records are targets."""
    n = len(cells)
    columns = [Column(qd.Variable("A", kind, LEVELS), np.array(cells, np.uint8))]
    zones = np.zeros(n, np.uint8) if zone is None else np.asarray(zone, np.uint8)
    columns.append(Column(qd.Variable("Z", "nominal", ("u", "v")), zones))
    return Data([*columns, flag("T", np.arange(n) < targets), numbers("w", weight, role="weight")])


def optimal(data: Data, cost: dict[str, float] | None = None, seed: int = 1, **more: object) -> qd.Plan:
    settings = {"swap": "A", "targets": 0, "must": "T", "boundary": "Z", "matching": "optimal", **more}
    return qd.ControlledSwap(**settings, cost=cost, seed=seed).plan(data)


def cost_of(data: Data, t: int, d: int, parts: dict[str, float]) -> float:
    """The declared cost: distance as a share of the largest, weights in mean weights, bias in both."""
    w, column = data["w"].values, data["A"]
    apart = abs(LEVELS[column.values[t]] - LEVELS[column.values[d]]) / (LEVELS[-1] - LEVELS[0])
    weight = abs(w[t] - w[d]) / w.mean()
    distance = float(apart > 0) if column.variable.kind == "nominal" else apart
    return parts["distance"] * distance + parts["weight"] * weight + parts["bias"] * weight * apart


def matchings(targets: list[int], options: dict[int, list[int]]) -> Iterator[list[tuple[int, int]]]:
    if not targets:
        yield []
        return
    first, *others = targets
    for rest in matchings(others, options):
        yield rest
        taken = {d for _, d in rest}
        yield from ([(first, d), *rest] for d in options[first] if d not in taken)


def best(data: Data, targets: int, parts: dict[str, float]) -> tuple[int, float]:
    """The most pairs and, of those matchings, the least cost."""
    a, z = data["A"].values, data["Z"].values
    donors = range(targets, data.n)
    options = {t: [d for d in donors if z[d] == z[t] and a[d] != a[t]] for t in range(targets)}
    totals = [
        (-len(found), sum(cost_of(data, t, d, parts) for t, d in found)) for found in matchings(list(options), options)
    ]
    pairs, cost = min(totals)
    return -pairs, cost


@st.composite
def tiny_files(draw: st.DrawFn) -> tuple[Data, int, dict[str, float] | None]:
    """At most one donor lighter and one heavier than all targets in each cell, so that all donors are candidates."""
    targets = draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    slots = [(z, cell, side) for z in (0, 1) for cell in range(4) for side in (0, 1)]
    count = draw(st.integers(1, 6))
    donors = [slots[i] for i in random.permutation(len(slots))[:count]]
    cells = [*random.integers(0, 4, targets).tolist(), *(cell for _, cell, _ in donors)]
    zone = [*random.integers(0, 2, targets).tolist(), *(z for z, *_ in donors)]
    middle = random.integers(100, 200, targets) if draw(st.booleans()) else np.full(targets, 150)
    heavy = [float(random.integers(200, 400) if side else random.integers(1, 100)) for *_, side in donors]
    data = tiny(cells, [*map(float, middle), *heavy], targets, draw(st.sampled_from(["ordinal", "nominal"])), zone)
    cost = draw(st.one_of(st.none(), st.fixed_dictionaries(dict.fromkeys(PARTS, st.sampled_from([0, 0.5, 1, 20])))))
    return data, targets, cost if cost is None or any(cost.values()) else None


@given(tiny_files())
def test_no_matching_has_more_pairs_and_none_with_as_many_costs_less(
    made: tuple[Data, int, dict[str, float] | None],
) -> None:
    data, targets, cost = made
    plan = optimal(data, cost)
    parts = dict.fromkeys(PARTS, 1.0) if cost is None else cost
    pairs, least = best(data, targets, parts)
    facts = plan.details.facts
    assert facts["pairs"] == pairs
    assert facts["cost"] == pytest.approx(least, rel=1e-12, abs=1e-12)
    assert sum(cost_of(data, t, d, parts) for t, d in plan.pairs.tolist()) == pytest.approx(least, rel=1e-12, abs=1e-12)
    greedy = plan.details.alternatives["greedy"]
    paid = sum(cost_of(data, t, d, parts) for t, d in greedy.pairs.tolist())
    assert facts["greedy"]["cost"] == pytest.approx(paid, rel=1e-12, abs=1e-12)
    assert facts["greedy"]["pairs"] == len(greedy.pairs)
    bias = sum(
        abs(data["w"].values[t] - data["w"].values[d]) * abs(LEVELS[data["A"].values[t]] - LEVELS[data["A"].values[d]])
        for t, d in plan.pairs.tolist()
    )
    assert facts["bias"] == pytest.approx(bias, rel=1e-12)


def test_it_finds_a_partner_for_a_target_that_greedy_leaves_alone() -> None:
    # Greedy gives the donor of cell 2 to the target of cell 1; it was the only one for the target of cell 0.
    data = tiny([1, 0, 0, 2], [5.0, 9.0, 9.0, 5.0], 2)
    plan = optimal(data)
    assert plan.details.facts["greedy"]["without_partner"] == 1
    assert sorted(plan.pairs.tolist()) == [[0, 2], [1, 3]]
    assert plan.details.facts["without_partner"] == 0
    assert len(optimal(data, strict=True).pairs) == 2


@pytest.mark.parametrize(("cost", "partner"), [({"distance": 1}, 1), ({"weight": 1}, 2), ({"bias": 1}, 2)])
def test_the_parts_of_the_cost_can_be_weighed(cost: dict[str, float], partner: int) -> None:
    data = tiny([0, 1, 3], [10.0, 40.0, 10.0], 1)
    assert optimal(data, cost).pairs.tolist() == [[0, partner]]


def test_pairs_that_cost_nothing_are_pairs() -> None:
    data = tiny([0, 0, 1, 2], [1.0, 1.0, 1.0, 1.0], 2)
    plan = optimal(data, {"weight": 1})
    assert len(plan.pairs) == 2 and plan.details.facts["cost"] == 0


@pytest.mark.parametrize("scale", [1e-30, 1e-17, 1e-9, 1.0, 1e9, 1e30])
def test_the_unit_of_the_cost_does_not_matter(scale: float) -> None:
    random = np.random.default_rng(4)
    data = tiny(random.integers(0, 4, 40).tolist(), random.integers(1, 1000, 40).astype(float).tolist(), 15)
    plan = optimal(data, dict.fromkeys(PARTS, scale))
    known = optimal(data, dict.fromkeys(PARTS, 1.0))
    assert plan.details.facts["pairs"] == known.details.facts["pairs"]
    assert plan.details.facts["cost"] / scale <= plan.details.facts["greedy"]["cost"] / scale * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e-17, 1e-9, 1e9, 1e30])
def test_the_best_of_two_partners_is_found_in_any_unit_of_cost(scale: float) -> None:
    data = tiny([1, 0, 2], [10.0, 11.0, 13.0], 1)
    assert optimal(data, {"weight": scale}).pairs.tolist() == [[0, 1]]


def test_it_costs_less_than_greedy_on_a_file_where_greedy_is_short_sighted() -> None:
    random = np.random.default_rng(9)
    data = tiny(random.integers(0, 4, 300).tolist(), random.lognormal(3, 1, 300).tolist(), 100)
    facts = optimal(data).details.facts
    assert facts["pairs"] == facts["greedy"]["pairs"] == 100
    assert facts["cost"] < facts["greedy"]["cost"]
