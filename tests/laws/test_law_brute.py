"""Every measure against its definition, worked out in full on files at the edge; every method against enumeration.

The files have weights from 1e-8 to 1e8, 0 among them, missing codes and empty fields, infinite and missing numbers, and
so few records that cells appear and vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp, inf, isfinite, isinf, isnan, nan, sqrt
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_law_attack_measures import ATTACK
from test_law_attack_measures import truth as truth_of_attacks
from test_law_risk import RISK
from test_law_risk import truth as truth_of_risk
from test_law_utility import hd, known, shape, signed_v

import oracles
import quadrille as qd
from effort import examples
from oracles import PAIR_MEASURES, TABLE_MEASURES, close, differences, matrices
from quadrille.data import Data
from quadrille.errors import QuadrilleError
from quadrille.measure import MEASURES
from quadrille.recipe import known_methods
from strategies import Case, coded, feasible, files, numbers, recipes

TESTS = Path(__file__).parents[1]
ENUMERATED = {
    "RandomSwap": "unit/test_fairness.py::test_without_dead_ends_plans_occur_with_their_sequential_probabilities",
    "PermutationSwap": "unit/test_permutation_fairness.py::test_every_permutation_of_its_kind_has_the_same_chance",
    "PrivateSwap": "unit/test_private_fairness.py::test_every_permutation_of_four_records_has_its_chance_over_seeds",
    "RankSwap": "unit/test_rank_swap.py::test_small_files_have_the_enumerated_chances",
    "CycleSwap": "unit/test_cycle_swap.py::test_small_files_have_equally_likely_outcomes",
    "TargetedSwap": "golden/test_targeted_tiny.py::test_a_partner_is_drawn_in_proportion_to_its_risk",
    "ControlledSwap": "unit/test_controlled_partners.py::test_ties_are_broken_with_equal_chances",
    "DesignedSwap": "unit/test_designed_fairness.py::test_small_files_have_the_enumerated_outcomes",
}
"""Where the chances of a method are compared with all outcomes of a small file."""


def test_every_method_is_compared_with_enumeration() -> None:
    ours = {name for name, method in known_methods().items() if method.__module__.startswith("quadrille.")}
    assert set(ENUMERATED) == ours
    for place in ENUMERATED.values():
        file, name = place.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), place


@dataclass(frozen=True)
class Two:
    """A file, what a plan makes of it, and a pair of its categorical variables."""

    case: Case
    after: Data
    pair: tuple[str, str]

    @property
    def before(self) -> Data:
        return self.case.data

    @property
    def tables(self) -> tuple[oracles.Counter, oracles.Counter]:
        return oracles.table(self.before, self.pair), oracles.table(self.after, self.pair)

    @property
    def weight(self) -> float:
        return float(sum(oracles.weights(self.before)))


Value = tuple[float | None, float]
"""What a measure should be, and the size of what is added up."""


@st.composite
def extremes(draw: st.DrawFn) -> Two:
    data = draw(files(least=2, most=3, largest=14, wide=False, numeric=False))
    pools = [draw(st.sampled_from([[0.0, 1.0, 2.5, -3.0, nan], [0.0, 1.0, 4.0, inf, nan]])) for _ in "xy"]
    outcomes = [
        numbers(name, np.array(draw(st.lists(st.sampled_from(pool), min_size=data.n, max_size=data.n))), role="outcome")
        for name, pool in zip("xy", pools, strict=True)
    ]
    data = Data([*(data[name] for name in data.columns), *outcomes], weight=data.weight)
    recipe = feasible(draw(recipes(data)), data)
    pair = draw(st.permutations(coded(data)))[:2]
    case = Case(data, recipe, recipe.plan(data))
    return Two(case, case.plan.apply(data), (pair[0], pair[1]))


# Tables


def of_tables(how: Callable[[oracles.Counter, oracles.Counter], float | None], two: Two) -> Value:
    was, now = two.tables
    return (0.0 if +was == +now else how(was, now)), 10.0


def of_areas(name: str, two: Two) -> Value:
    was, now = two.tables
    f, g = matrices(was, now)
    if not f.sum() or +was == +now:
        return (0.0 if f.sum() else None), 1.0
    return differences(f, g)[name]


def worst(two: Two) -> Value:
    value = oracles.worst_cell(two.before, two.after, two.pair, 10)
    return value, value or 1.0


def distance(two: Two, *, least: int, each: bool, norm: bool) -> Value:
    """The mean over the margins, of a variable each or of the pair."""
    if not two.weight:
        return None, 1.0
    margins = [(name,) for name in two.pair] if each else [two.pair]
    values = [hd(two.before, two.after, margin, least) for margin in margins]
    value = oracles.mean(values)
    return (value if value is None else value / (sqrt(two.weight) if norm else 1.0)), 1.0 if norm else sqrt(two.weight)


def relative(coefficient: Callable[[Mapping], float | None], two: Two) -> Value:
    was, now = known(two.before, two.pair), known(two.after, two.pair)
    if was == now or not was or not now:
        return None, 1.0
    old, new = coefficient(was), coefficient(now)
    if old is None or new is None:
        return None, 1.0
    if shape(was) != shape(now):
        old, new = abs(old), abs(new)
    value = abs(old - new) / abs(old) if abs(old) > 1e-12 and abs(old - new) > 1e-12 else None
    return value, 1e4 / max(abs(old), 1e-12) * max(value or 1.0, 1.0)


# Records


def shift(two: Two) -> Value:
    ordinal = two.before[two.pair[0]].variable.kind == "ordinal"
    return (oracles.ordinal_shift(two.before, two.after, two.pair[0]) if ordinal else None), 1.0


def risk(name: str, two: Two) -> Value:
    return truth_of_risk(two.case, two.after, list(two.pair), 3, np.ones(two.before.n, dtype=bool))[name], 1.0


def attacks(name: str, two: Two) -> Value:
    names = list(two.pair)
    return truth_of_attacks(two.before, two.after, names, 3, None, np.ones(two.before.n, dtype=bool))[name], 1.0


def one_in(f: int, h: float) -> float:
    """The mean of 1 / (f + X), X Poisson with mean h: a series for small h, else by parts from f = 1 upwards."""
    if h < 20:
        terms, chance = 0.0, exp(-h)
        for x in range(150):
            terms += chance / (f + x)
            chance *= h / (x + 1)
        return terms
    value = (1 - exp(-h)) / h
    for k in range(2, f + 1):
        value = (1 - (k - 1) * value) / h
    return value


def population(two: Two) -> Value:
    """Of two variables the table is its own log-linear model; the file is the whole population on average."""
    old, new = (oracles.records(file, two.pair) for file in (two.before, two.after))
    f, g, total = oracles.Counter(old), oracles.Counter(new), sum(oracles.weights(two.before))
    if not total:
        return None, 1.0
    cells = oracles.table(two.before, two.pair)
    value = 0.0
    for was, now in zip(old, new, strict=True):
        if was == now and g[now] == 1:
            persons = float(cells[now] * two.before.n / total)
            value += one_in(f[now], max(persons - f[now], 0.0))
    return value / two.before.n, 1.0


# Correlations and models, by exact fractions


def sums(data: Data, *, both: bool) -> tuple[list[tuple[Fraction, Fraction, Fraction]], bool]:
    """The records with both numbers and a weight; and whether a number is infinite (for a model: beside another)."""
    rows, endless = [], False
    for x, y, w in zip(data["x"].values.tolist(), data["y"].values.tolist(), oracles.weights(data), strict=True):
        if not w:
            continue
        infinite = isinf(x) or isinf(y)
        endless |= infinite and (not both or not (isnan(x) or isnan(y)))
        if isfinite(x) and isfinite(y):
            rows.append((Fraction(x), Fraction(y), w))
    return rows, endless


def centred(rows: list[tuple[Fraction, Fraction, Fraction]]) -> tuple[Fraction, ...]:
    """Weight, means, and sums of squares and of the product around them."""
    weight = sum(w for *_, w in rows)
    a, b = (sum(row[i] * row[2] for row in rows) / weight for i in (0, 1))
    return (
        weight,
        a,
        b,
        sum(w * (x - a) ** 2 for x, _, w in rows),
        sum(w * (y - b) ** 2 for _, y, w in rows),
        sum(w * (x - a) * (y - b) for x, y, w in rows),
    )


NEARLY = Fraction(1, 10**6)
"""Where less than this is left of a sum of squares, what is left is rounding, and no figure is asked for."""


def correlated(two: Two) -> Value:
    if not {"x", "y"} & set(two.case.plan.columns):
        return nan, 1.0
    was, now = (sums(file, both=False) for file in (two.before, two.after))
    if was[1] or now[1] or not was[0] or not now[0]:
        return None if was[1] or now[1] else nan, 1.0
    found, scale = [], 1.0
    for _, a, b, xx, yy, xy in map(centred, (was[0], now[0])):
        if xx == 0 or yy == 0:
            return nan, 1.0
        if min(xx, yy) < NEARLY * max(1, a * a, b * b) * two_weight(two) or xy * xy > (1 - NEARLY) * xx * yy:
            return nan, 1.0
        found.append(float(xy) / sqrt(xx) / sqrt(yy))
        scale = max(scale, 1 / (1 - found[-1] ** 2))
    r, s = found
    if abs(r - s) < 1e-6:
        return nan, 1.0
    return abs(r - s) / ((1 - r * r) / sqrt(len(was[0]))), 1e8 * scale


def two_weight(two: Two) -> Fraction:
    return sum(oracles.weights(two.before), Fraction(0))


def modelled(two: Two) -> Value:
    was, now = (sums(file, both=True) for file in (two.before, two.after))
    if was[1] or now[1]:
        return None, 1.0
    if min(len(was[0]), len(now[0])) < 3:
        return nan, 1.0
    fits = []
    for rows in (was[0], now[0]):
        weight, outcome, term, left, xx, xy = centred(rows)
        if min(xx, left) < NEARLY * weight or left * xx - xy * xy < NEARLY * left * xx:
            return nan, 1.0
        slope = xy / xx
        spread = (left - slope * xy) / (len(rows) - 2)
        errors = sqrt(spread * (1 / weight + term * term / xx)), sqrt(spread / xx)
        fits.append(((outcome - slope * term, slope), errors))
    (old, errors), (new, _) = fits
    values = [abs(float(p - q)) / error for p, q, error in zip(old, new, errors, strict=True)]
    return sum(values) / 2, 1e8 * max(1.0, *(abs(float(v)) / e for v, e in zip(old, errors, strict=True)), *values)


BRUTE: dict[str, tuple[str, Callable[[Two], Value]]] = {
    **{name: ("", partial(of_tables, how)) for name, how in (TABLE_MEASURES | PAIR_MEASURES).items()},
    **{
        name: ("", partial(of_areas, name))
        for name in (
            "chi_square",
            "effective_swap_rate",
            "deviance",
            "gini_difference",
            "shannon_difference",
            "renyi_difference",
        )
    },
    **{
        f"hd{number}{norm}": (
            "" if number in (1, 3) else ", min_cell=2",
            partial(distance, least=2 if number in (2, 4) else 0, each=number > 2, norm=bool(norm)),
        )
        for number in (1, 2, 3, 4)
        for norm in ("", "_norm")
    },
    "worst_cell": ("", worst),
    "c_ard": ("", partial(relative, oracles.contingency)),
    "v_ard": ("", partial(relative, signed_v)),
    "ordinal_shift": ("", shift),
    "conditional_entropy": (
        "",
        lambda two: (oracles.conditional_entropy(two.before, two.after, two.pair), 10.0),
    ),
    **{name: ("", partial(risk, name)) for name in RISK},
    "population_risk": (", sampling=1", population),
    **{name: ("", partial(attacks, name)) for name in ATTACK},
    "r_ased": ("", correlated),
    "ased_reg": ("", modelled),
}
"""What is added to the address of each measure, and its definition once more."""


def address_of(name: str, pair: tuple[str, str]) -> str:
    place = {"r_ased": "x*y", "ased_reg": "x ~ y", "ordinal_shift": f"`{pair[0]}`"}
    return f"{name}({place.get(name, f'`{pair[0]}`*`{pair[1]}`')}{BRUTE[name][0]})"


def test_every_measure_is_compared_with_its_definition() -> None:
    assert set(BRUTE) == set(MEASURES)


@examples(8)
@given(extremes())
def test_every_measure_is_what_its_definition_gives_on_files_at_the_edge(two: Two) -> None:
    swapped = np.isin(np.arange(two.before.n), two.case.plan.rows)
    for name, (_, definition) in BRUTE.items():
        address, (truth, scale) = address_of(name, two.pair), definition(two)
        try:
            plan = qd.score(two.before, two.case.plan, [address])
            pair = qd.score(two.before, two.after, [address], swapped=swapped, moved=two.case.plan.columns)
        except QuadrilleError:
            assert name == "ordinal_shift" and truth is None, address
            continue
        for scores in (plan, pair):
            value = scores[address]
            assert value is not None or scores.note(address), address
            if truth is not None and isnan(truth):  # rounding decides what is left of it
                assert value is None or value >= 0, address
            elif name in ("c_ard", "v_ard"):  # 0 where nothing changed
                assert close(value or None, truth, scale), (address, value, truth)
            else:
                unchanged = value == 0 and "nothing changed" in scores.note(address)
                assert unchanged or close(value, truth, scale), (address, value, truth)
