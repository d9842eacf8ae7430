"""Laws of rank swapping, on any file of numbers and ordered categories, with ties, missing values, weights, classes."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.data import Data
from quadrille.errors import InfeasibleError, InputError, ParameterError
from strategies import column, numbers, seeds


@st.composite
def files(draw: st.DrawFn) -> Data:
    """Two columns of numbers with ties, infinite and missing values, an ordinal one, classes and at times a weight."""
    n = draw(st.integers(2, 80))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = draw(st.integers(1, 30))

    def values() -> np.ndarray:
        made = random.choice(random.normal(size=kinds).round(1), n) if draw(st.booleans()) else random.normal(size=n)
        made[random.random(n) < draw(st.sampled_from([0.0, 0.0, 0.2]))] = np.nan
        made[random.random(n) < draw(st.sampled_from([0.0, 0.0, 0.1]))] = np.inf
        made[random.random(n) < draw(st.sampled_from([0.0, 0.1]))] *= 0.0
        return made

    with np.errstate(invalid="ignore"):
        columns = [numbers("x", values()), numbers("y", values())]
    columns.append(column("o", random.integers(0, 6, n), 5, kind="ordinal", nullable=True))
    columns.append(column("g", random.integers(0, draw(st.integers(1, 4)), n), 4))
    if draw(st.booleans()):
        columns.append(numbers("w", random.integers(0, 9, n) + (np.arange(n) == 0), role="weight"))
    return Data(columns)


@st.composite
def recipes(draw: st.DrawFn, data: Data) -> qd.RankSwap:
    swap = draw(st.lists(st.sampled_from(["x", "y", "o"]), min_size=1, max_size=3, unique=True))
    share = st.floats(0.01, 1).map(lambda p: round(p, 3))
    kernel = draw(st.sampled_from(["window", "window", "buckets", "normal"]))
    amount: dict[str, object] = {"kernel": kernel}
    if kernel == "buckets":
        amount["buckets"] = draw(st.integers(1, 90))
    else:
        wishes = ["window"] if kernel == "normal" else ["window", "window", "correlation", "r0", "k0"]
        wish = draw(st.sampled_from(wishes))
        amount[wish] = draw(share if wish == "window" else st.sampled_from([0.3, 0.8, 0.95]))
    weighted = kernel == "window" and "window" in amount and data.weight is not None and draw(st.booleans())
    differ = draw(st.sampled_from(["none", "none", "any"]))
    rules = ["g=g0 & x>0"] if draw(st.integers(0, 3)) == 0 and len(np.unique(data["g"].values)) > 1 else []
    tails = draw(st.sampled_from(["swap", "leave"] + ["shuffle"] * (differ == "none" and not rules)))
    return qd.RankSwap(
        swap,
        together=draw(st.booleans()),
        within=["g"] if draw(st.booleans()) else [],
        tails=tails,
        tail=0.0 if tails == "swap" else draw(st.sampled_from([0.05, 0.2, 0.5])),
        weighted=weighted,
        differ=differ,
        rules=rules,
        seed=draw(seeds),
        **amount,
    )


def drawn(recipe: qd.RankSwap, data: Data) -> qd.Plan:
    """The plan, where the file and the recipe have one; a refusal says what to do."""
    try:
        return qd.testing.check_recipe(recipe, data)
    except (InputError, InfeasibleError, ParameterError) as error:
        assert str(error).endswith(".")
        assume(False)
        raise


def ranks(data: Data, name: str) -> np.ndarray:
    """The values in an order that `argsort` respects, NaN where missing."""
    values = data[name].values
    if not data[name].variable.coded:
        return values
    return np.where(values < data[name].valid, values, np.nan).astype(float)


@examples(60)
@given(st.data())
def test_laws_of_rank_swapping(case: st.DataObject) -> None:
    data = case.draw(files())
    recipe = case.draw(recipes(data))
    plan = drawn(recipe, data)
    assert plan.details is not None
    known = {row["variable"]: row for row in plan.details.facts["ranks"]}
    classes = data["g"].values if recipe.within else np.zeros(data.n, dtype=int)
    for group in recipe.groups:
        move = next((move for move in plan.moves if move.columns == group), None)
        values, row = ranks(data, group[0]), known[group[0]]
        assert row["missing"] == np.isnan(values).sum() and row["ranked"] == data.n - row["missing"]
        moved = move.rows if move else np.empty(0, dtype=int)
        assert not np.isnan(values[moved]).any(), "what is missing stays missing"
        for g in np.unique(classes):
            inside = (classes == g) & ~np.isnan(values)
            within(recipe, values, moved[inside[moved]], move, inside, row)
        if recipe.tails == "swap" and not recipe.rules and recipe.differ == "none" and recipe.kernel != "window":
            assert row["left_over"] == sum(int(((classes == g) & ~np.isnan(values)).sum()) % 2 for g in set(classes))


def within(
    recipe: qd.RankSwap, values: np.ndarray, rows: np.ndarray, move: object, inside: np.ndarray, row: dict[str, object]
) -> None:
    """Within a class no value moves farther than the window: at least that many values lie between, ties aside."""
    m = int(inside.sum())
    if recipe.kernel != "window" or recipe.weighted or not len(rows):
        return
    width = floor(Fraction(str(float(row["window"]))) * m)
    tail = floor(Fraction(str(recipe.tail)) * m)
    bound = max(width, tail) if recipe.tails == "shuffle" else width
    present = np.sort(values[inside])
    source = dict(zip(move.rows.tolist(), move.source.tolist(), strict=True))
    own, other = values[rows], values[[source[r] for r in rows]]
    low, high = np.minimum(own, other), np.maximum(own, other)
    between = np.searchsorted(present, high, "left") - np.searchsorted(present, low, "right") + 1
    assert (np.where(low == high, 0, between) <= bound).all()
    if width >= m / 2 and recipe.tails == "swap" and recipe.differ == "none" and not recipe.rules:
        assert len(rows) >= m - 1, "at most one is left over"
    if recipe.tails == "leave" and tail:
        assert (own >= present[tail - 1]).all() and (own <= present[m - tail]).all()
    assert row["farthest"] <= max(row["width"], floor(Fraction(str(recipe.tail)) * m) if m == row["ranked"] else m)


@examples(36)
@given(st.data())
def test_a_recoding_in_the_same_order_leaves_the_pairs(case: st.DataObject) -> None:
    data = case.draw(files())
    window = case.draw(st.floats(0.05, 1).map(lambda p: round(p, 3)))
    kernel = case.draw(st.sampled_from(["window", "normal"]))
    recipe = qd.RankSwap(
        ["x"], window=window, kernel=kernel, differ=case.draw(st.sampled_from(["any", "none"])), seed=3
    )
    plan = drawn(recipe, data)
    _, codes = np.unique(data["x"].values, return_inverse=True)
    coded = np.where(np.isnan(data["x"].values), np.nan, codes.ravel() ** 3 + 5.0)
    again = recipe.plan(Data([numbers("x", coded), *(data[name] for name in data.columns[1:])], weight=data.weight))
    assert again.pairs is not None and plan.pairs is not None
    assert again.pairs.tolist() == plan.pairs.tolist()


@examples(24)
@given(
    st.integers(3, 60),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["r_ased(x*y)", "ased_reg(y ~ x)", "c_ard", "hellinger", "ordinal_shift(o)", "exposed"]),
)
def test_measures_follow_numbers_that_are_swapped_by_rank(n: int, seed: int, together: bool, address: str) -> None:
    random = np.random.default_rng(seed)
    values = [random.integers(0, 40, n) / 4 for _ in range(2)]
    values[0][random.random(n) < 0.1] = np.nan
    data = Data(
        [
            *(numbers(name, each) for name, each in zip("xy", values, strict=True)),
            column("o", random.integers(0, 5, n), 5, kind="ordinal"),
            column("g", random.integers(0, 3, n), 3),
        ]
    )
    assume((~np.isnan(values[0])).sum() > 1)
    plan = qd.RankSwap(["x", "o"], window=0.5, together=together, seed=1).plan(data)
    assert len(qd.testing.check_measure(address, data, plan)) == 1
