"""Published examples of controlled swapping: 45 records with given targets, and the systematic draw of ten."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import quadrille as qd
from controlled_oracle import DonorIndex, inclusion, outcomes, systematic_draw
from quadrille.data import Column, Data
from quadrille.swap.controlled.frame import systematic
from strategies import numbers

RECORDS = """
90320206 1 1 2 546.51 | 90110307 1 1 2 595.61 | 92820304 1 1 2 617.20 | 92510312 1 1 2 647.65 | 92210709 1 1 2 660.34
92820224 1 1 3 629.26
92810503 1 3 2 143.55 | 90520116 1 3 2 444.50 | 90320112 1 3 2 540.92 | 90311012 1 3 2 625.51
92610107 2 1 1 661.28 | 91510109 2 1 1 663.16 | 92210603 2 1 1 675.40 | 91210102 2 1 1 697.05 | 92210712 2 1 1 704.54
92210502 2 1 1 717.71 | 92810103 2 1 1 764.06 | 90710208 2 1 1 776.24
90520102 2 1 2 613.14 | 91710301 2 1 2 769.97 | 92310515 2 1 2 771.93 | 90710102 2 1 2 795.08
92510201 3 1 1 609.63 | 90310411 3 1 1 614.99 | 91210220 3 1 1 626.20 | 92210206 3 1 1 648.22 | 93010121 3 1 1 670.21
91510309 3 1 2 528.74 | 91110213 3 1 2 578.11 | 92010114 3 1 2 582.61 | 90410304 3 1 2 623.96 | 93010101 3 1 2 653.47
91010108 3 1 2 668.24 | 90810106 3 1 2 706.41
91010318 3 3 1 452.40 | 93210315 3 3 1 467.80 | 92310201 3 3 1 484.59 | 91010101 3 3 1 496.21 | 90910108 3 3 1 520.37
93110107 3 3 1 575.92
90410114 3 3 2 467.78 | 92720106 3 3 2 470.48 | 92720116 3 3 2 470.48 | 91710206 3 3 2 472.45
92410205 3 3 3 525.74
"""
ROWS = [line.split() for line in RECORDS.replace("\n", "|").split("|") if line.strip()]
IDS = [row[0] for row in ROWS]
T1, T2, T3, T4, T5 = "92210502", "92210603", "92720106", "92820224", "93010101"

WITHIN_RACE_AND_EDUC = {
    T1: ("91710301", "52.26"),
    T2: ("90520102", "62.26"),
    T3: ("93210315", "2.68"),
    T4: ("92820304", "12.06"),
    T5: ("92210206", "5.25"),
}
WITHOUT_BOUNDARY = {**WITHIN_RACE_AND_EDUC, T2: ("90311012", "49.89")}
del WITHOUT_BOUNDARY[T4]


def survey(targets: object) -> Data:
    def coded(name: str, place: int) -> Column:
        values = np.array([int(row[place]) for row in ROWS])
        categories = tuple(np.unique(values).tolist())
        return Column(qd.Variable(name, "ordinal", categories), np.searchsorted(categories, values).astype(np.uint8))

    columns = [coded("race", 1), coded("educ", 2), coded("age", 3)]
    flag = Column(qd.Variable("T", "nominal", (False, True)), np.isin(IDS, list(targets)).astype(np.uint8))
    return Data([*columns, flag, numbers("w", [float(row[4]) for row in ROWS], role="weight")])


def partners(data: Data, plan: qd.Plan) -> dict[str, tuple[str, str]]:
    """Per target its partner and its bias, by the first of the two formulas, in exact decimals."""
    found = {}
    for t, d in plan.pairs.tolist():
        (w_t, x_t), (w_d, x_d) = ((Fraction(ROWS[i][4]), int(ROWS[i][3])) for i in (t, d))
        bias = abs((w_t * x_d + w_d * x_t) - (w_t * x_t + w_d * x_d))
        found[IDS[t]] = (IDS[d], f"{float(bias):.2f}")
    return found


EXAMPLES = [
    pytest.param({"swap": "age", "boundary": ["race", "educ"]}, WITHIN_RACE_AND_EDUC, id="boundary"),
    pytest.param({"swap": ["race", "educ", "age"]}, WITHOUT_BOUNDARY, id="no boundary"),
]


def test_the_records_are_all_there() -> None:
    assert len(ROWS) == len(set(IDS)) == 45
    assert {T1, T2, T3, T4, T5} <= set(IDS)


@pytest.mark.parametrize("seed", [0, 1, 2, 12345, "ab" * 32])
@pytest.mark.parametrize(("settings", "expected"), EXAMPLES)
def test_given_targets_find_the_published_partners_with_the_published_biases(
    settings: dict[str, object], expected: dict[str, tuple[str, str]], seed: int | str
) -> None:
    data = survey(expected)
    plan = qd.ControlledSwap(**settings, targets=0, must="T", seed=seed).plan(data)
    assert partners(data, plan) == expected
    facts = plan.details.facts
    total = float(sum(Fraction(bias) for _, bias in expected.values()))
    assert facts["bias"] == pytest.approx(total, rel=1e-12)
    assert {key: facts[key] for key in ("targets", "pairs", "without_partner", "rounds", "certain")} == {
        "targets": len(expected),
        "pairs": len(expected),
        "without_partner": 0,
        "rounds": 1,
        "certain": 0,
    }


@pytest.mark.parametrize(("settings", "expected"), EXAMPLES)
def test_the_plain_search_agrees_with_the_published_partners(
    settings: dict[str, object], expected: dict[str, tuple[str, str]]
) -> None:
    values = [tuple(map(int, row[1:4])) for row in ROWS]
    bounded = "boundary" in settings
    targets = frozenset(IDS.index(t) for t in expected)
    market = DonorIndex(
        zone=[v[:2] if bounded else () for v in values],
        cell=[v[2:] if bounded else v for v in values],
        x=[Fraction(v[2]) for v in values],
        weight=[Fraction(row[4]) for row in ROWS],
        targets=targets,
        donors=frozenset(range(45)) - targets,
    )
    (only,) = outcomes(market)
    assert {IDS[t]: (IDS[d], f"{float(market.bias(t, d)):.2f}") for t, d, _ in only} == expected
    assert {number for *_, number in only} == {1}


SIZES = {"a": 1, "b": 10, "c": 2, **dict.fromkeys("defghij", 1)}


def ten_records() -> Data:
    letters = qd.Variable("name", "ordinal", tuple(SIZES))
    return Data([Column(letters, np.arange(10, dtype=np.uint8)), numbers("size", list(SIZES.values()))])


def test_the_largest_of_ten_records_is_a_certainty_and_two_more_are_drawn() -> None:
    data, names = ten_records(), list(SIZES)
    seen = set()
    for seed in range(200):
        details = qd.ControlledSwap("name", targets=0.3, size="size", seed=seed).plan(data).details
        assert [names[i] for i in details.rows["certain"]] == ["b"]
        drawn = "".join(names[i] for i in details.rows["targets"])
        assert len(drawn) == 3
        seen.add(drawn.replace("b", ""))
    pi = inclusion(list(SIZES.values()), 3)
    assert pi[2] == Fraction(2, 5) and {p for i, p in enumerate(pi) if i not in (1, 2)} == {Fraction(1, 5)}
    # With the cells all different there are five starts: r in (0, .2], (.2, .4], (.4, .6], (.6, .8], (.8, 1].
    others = [i for i in range(10) if i != 1]
    possible = {systematic_results([pi[i] for i in others], Fraction(k, 5), others) for k in range(1, 6)}
    assert seen == possible and {"cg", "af"} <= possible


def systematic_results(shares: list[Fraction], start: Fraction, places: list[int]) -> str:
    return "".join(list(SIZES)[places[i]] for i in systematic_draw(shares, start))


@pytest.mark.parametrize(("start", "expected"), [(Fraction("0.35"), "cg"), (Fraction("0.05"), "af")])
def test_the_published_starts_take_the_published_records(start: Fraction, expected: str) -> None:
    others = [name for name in SIZES if name != "b"]
    ticks = 100  # per unit of size, so that the start is a whole number of ticks
    sizes = np.array([SIZES[name] * ticks for name in others])
    at = start * int(sizes.sum())
    assert at.denominator == 1
    taken = systematic(np.cumsum(sizes), 2, int(at))
    assert "".join(others[i] for i in taken) == expected
