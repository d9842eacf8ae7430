"""Attacks follow their definitions; without a change they find what was there before, and noise gives chance."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from effort import examples, tries
from quadrille.attack.attack import Attack
from quadrille.attack.input import Finding
from strategies import Case, cases, coded, file_of, files

ALONE = "alone with the other keys, still there and inferred right"


def findings(attack: Attack) -> dict[str, Finding]:
    return {finding.quantity: finding for section in attack.sections for finding in section.findings}


@examples(25)
@given(files(), st.data())
def test_when_nothing_changed_every_value_is_that_before(data: qd.Data, draw: st.DataObject) -> None:
    keys = draw.draw(st.lists(st.sampled_from(coded(data)), min_size=1, max_size=4, unique=True))
    nothing = qd.Plan([], data=data)
    for release in (nothing, data):
        attack = qd.attack(data, release, keys=keys, n=draw.draw(st.integers(2, 4)))
        for finding in findings(attack).values():
            if finding.before is not None and finding.value is not None:
                assert finding.value == pytest.approx(finding.before), finding


@examples(24)
@given(cases(), st.data())
def test_links_and_inferences_follow_their_definitions(case: Case, draw: st.DataObject) -> None:
    assume(len(coded(case.data)) > 1)
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=2, max_size=4, unique=True))
    n = draw.draw(st.integers(2, 4))
    after = case.plan.apply(case.data)
    old, new = oracles.records(case.data, names), oracles.records(after, names)
    f, g = Counter(old), Counter(new)
    found = findings(qd.attack(case.data, case.plan, keys=names, n=n))
    right = [(x == z) / g[x] for x, z in zip(old, new, strict=True) if g[x]]
    few = [(x == z) / g[x] for x, z in zip(old, new, strict=True) if g[x] and f[x] < n]
    assert found["expected right links"].value == pytest.approx(sum(right))
    assert found[f"expected right links, persons in cells of fewer than {n}"].value == pytest.approx(sum(few))
    assert found["single rows that are theirs"].value == sum(
        x == z and g[x] == 1 for x, z in zip(old, new, strict=True)
    )
    for place, target in enumerate(names):
        _follows(found, target, place, old, new)


def _follows(found: dict[str, Finding], target: str, place: int, old: list[tuple], new: list[tuple]) -> None:  # type: ignore[type-arg]
    shown: dict[tuple, Counter] = defaultdict(Counter)  # type: ignore[type-arg]
    for row in new:
        shown[row[:place] + row[place + 1 :]][row[place]] += 1
    others = [row[:place] + row[place + 1 :] for row in old]
    claims = [(row, shown[q]) for row, q in zip(old, others, strict=True) if len(shown[q]) == 1]
    right = sum(row[place] in values for row, values in claims)
    assert found[f"{target}: attributed"].value == pytest.approx(right / len(old))
    assert found[f"{target}: right among claims"].count == len(claims)
    times = Counter(others)
    alone = [(row, shown[q]) for row, q in zip(old, others, strict=True) if times[q] == 1]
    if alone:
        mean = sum(values[row[place]] / max(sum(values.values()), 1) for row, values in alone) / len(alone)
        assert found[f"{target}: {ALONE}"].value == pytest.approx(mean)
        gone = found[f"{target}: alone with the other keys, gone"]
        assert gone.value == pytest.approx(sum(not values for _, values in alone) / len(alone))


@examples(24)
@given(cases(), st.data())
def test_where_no_cell_is_made_or_emptied_all_that_followed_with_certainty_still_does(
    case: Case, draw: st.DataObject
) -> None:
    assume(len(coded(case.data)) > 1)
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=2, max_size=3, unique=True))
    after = case.plan.apply(case.data)
    assume(set(oracles.records(case.data, names)) == set(oracles.records(after, names)))
    for quantity, finding in findings(qd.attack(case.data, case.plan, keys=names)).items():
        if quantity.endswith((": attributed", ": right among claims")) and finding.value is not None:
            assert finding.value == finding.before


def _shuffled(data: qd.Data, random: np.random.Generator) -> qd.Data:
    """Return the file with every column shuffled by itself, in the order of the original rows."""
    rows = np.arange(data.n)
    return data.with_values({name: (rows, random.permutation(data[name].values)) for name in data.columns})


@pytest.mark.parametrize(
    ("sizes", "quantities"),
    [
        ((2, 2, 3), ("expected right links", "expected right links, persons in cells of fewer than 9")),
        ((6, 5, 7), ("A: attributed", "B: attributed", "A: alone with the other keys, right among those still there")),
        (
            (7, 6, 4, 4),
            (
                "claims of one value, the surest half: right",
                "claims of one value, the least sure tenth: right",
            ),
        ),
    ],
    ids=["every combination occurs", "few share a combination", "claims by certainty"],
)
def test_columns_shuffled_apart_leave_an_intruder_with_chance(
    sizes: tuple[int, ...], quantities: tuple[str, ...]
) -> None:
    random = np.random.default_rng(1)
    n = 400
    latent = random.integers(0, max(sizes), n)
    columns = {
        name: np.where(random.random(n) < 0.2, random.integers(0, size, n), latent * size // max(sizes))
        for name, size in zip("ABCD", sizes, strict=False)
    }
    data = file_of(**columns, row=np.arange(n) % 7)
    gaps: dict[str, list[float]] = defaultdict(list)
    for _ in range(tries(150, nightly=2_000)):
        stays = {"row": (np.arange(n), data["row"].values)}  # so that it can be told which row is whose
        found = findings(qd.attack(data, _shuffled(data, random).with_values(stays), keys=[*columns], n=9))
        for quantity in quantities:
            one = found.get(quantity)
            if one is not None and one.value is not None and one.chance is not None:
                gaps[quantity].append(one.value - one.chance)
    for quantity in quantities:
        gap = np.array(gaps[quantity])
        assert len(gap) > 100 and gap.std() > 0
        assert abs(gap.mean()) <= 4 * gap.std(ddof=1) / len(gap) ** 0.5, quantity


def test_sizes_of_cells_agree_by_chance_alone_when_columns_are_shuffled_apart(cps8d: qd.Data) -> None:
    random = np.random.default_rng(2)
    gaps: dict[str, list[float]] = defaultdict(list)
    for _ in range(tries(12, nightly=100)):
        for quantity, finding in findings(qd.attack(cps8d, _shuffled(cps8d, random), target="AnnSal")).items():
            if quantity.startswith("cells of") and finding.value is not None and finding.chance is not None:
                gaps[quantity].append(finding.value - finding.chance)
    assert len(gaps) == 12
    for quantity, found in gaps.items():
        gap = np.array(found)
        assert abs(gap.mean()) <= 4 * gap.std(ddof=1) / len(gap) ** 0.5, quantity


@examples(25)
@given(cases(), st.data())
def test_attacks_and_measures_agree(case: Case, draw: st.DataObject) -> None:
    assume(len(coded(case.data)) > 1)
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=2, max_size=3, unique=True))
    found, table = findings(qd.attack(case.data, case.plan, keys=names)), "*".join(names)
    others = "*".join(names[1:])
    targets = [f"{name}({others}, target={names[0]})" for name in ("attributed", "attributed_unique")]
    scores = qd.score(case.data, case.plan, [f"linked({table})", f"linked_small({table})", *targets])
    linked, small, attributed, unique = scores.values()
    few = found["expected right links, persons in cells of fewer than 3"]
    assert linked * case.data.n == pytest.approx(found["expected right links"].value)
    assert attributed == pytest.approx(found[f"{names[0]}: attributed"].value)
    assert small is None if not few.count else small * few.count == pytest.approx(few.value)
    alone = found[f"{names[0]}: {ALONE}"]
    assert unique is None if not alone.count else unique == pytest.approx(alone.value)
