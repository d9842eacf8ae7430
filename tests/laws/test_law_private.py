"""Private swaps of any file: what stays exact, what the moments are, and what a guarantee counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from math import isclose, sqrt

from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from oracles import records, table
from private_oracle import moved_moments, total_moments
from quadrille.data import Data
from quadrille.errors import InfeasibleError, QuadrilleError
from quadrille.swap.private import WORDS, swap_epsilon
from strategies import file_of, files, seeds


@dataclass(frozen=True)
class Private:
    """A file, a private swap that can be drawn on it, and its strata by the values that make them."""

    data: Data
    recipe: qd.PrivateSwap

    @property
    def strata(self) -> dict[tuple[object, ...], list[int]]:
        found: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for row, values in enumerate(records(self.data, self.recipe.within)):
            found[values].append(row)
        return found

    def varied(self, rows: list[int]) -> bool:
        """Whether both what moves and what stays have two combinations among some rows."""
        moving = [name for name in self.data.columns if name in self.recipe.columns_moved(self.data)]
        staying = [name for name in self.data.columns if name not in moving]
        return all(len({records(self.data, names)[row] for row in rows}) > 1 for names in (moving, staying))


@st.composite
def private(draw: st.DrawFn, **options: object) -> Private:
    data = draw(files(**{"least": 2, "most": 4, **options}))
    free = [name for name in data.columns if name != data.weight]
    swap = draw(st.lists(st.sampled_from(free), min_size=1, max_size=2, unique=True))
    rest = [name for name in free if name not in swap]
    within = draw(st.lists(st.sampled_from(rest), max_size=2, unique=True)) if rest else []
    weight = draw(st.sampled_from(["stays", "moves"])) if data.weight else "stays"
    much = draw(
        st.one_of(st.floats(0.01, 0.99).map(lambda p: {"chance": p}), st.floats(0, 12).map(lambda e: {"epsilon": e}))
    )
    recipe = qd.PrivateSwap(swap, within=within, weight=weight, seed=draw(seeds), **much)
    try:
        recipe.guarantee(data)
    except InfeasibleError as error:
        assert "nothing can be swapped" in str(error)
        assert not any(Private(data, recipe).varied(rows) for rows in Private(data, recipe).strata.values())
        assume(False)
    except QuadrilleError as error:
        assert "the least is" in str(error)
        assume(False)
    return Private(data, recipe)


@given(private())
@examples(36)
def test_the_laws_of_all_recipes_hold(case: Private) -> None:
    qd.testing.check_recipe(case.recipe, case.data)


@given(private())
@examples(36)
def test_the_held_table_and_the_strata_by_what_moves_are_exact_and_none_of_the_moved_stays(case: Private) -> None:
    data, plan = case.data, case.recipe.plan(case.data)
    after = plan.apply(data)
    held, moving = case.recipe.guarantee(data).invariants
    assert {*held, *moving} == set(data.columns)
    for names in (held, moving):
        assert Counter(records(data, names)) == Counter(records(after, names))
    assert table(data, [n for n in held if n != data.weight]) == table(
        after, [n for n in held if n != data.weight]
    ) or (case.recipe.weight == "moves")
    for move in plan.moves:
        assert (move.rows != move.source).all()
        assert sorted(move.source.tolist()) == move.rows.tolist()
    still = {row for rows in case.strata.values() if len(rows) == 1 or not case.varied(rows) for row in rows}
    assert not still & set(plan.rows.tolist())
    if case.recipe.within:
        before = records(data, case.recipe.within)
        assert all(
            before[row] == before[source]
            for move in plan.moves
            for row, source in zip(move.rows.tolist(), move.source.tolist(), strict=True)
        )


@given(private())
@examples(36)
def test_a_guarantee_counts_strata_as_plain_python_does(case: Private) -> None:
    found, strata = case.recipe.guarantee(case.data), list(case.strata.values())
    able = [len(rows) for rows in strata if case.varied(rows)]
    assert found.largest == max(able)
    assert found.singles == sum(len(rows) == 1 for rows in strata)
    assert found.few == sum(len(rows) for rows in strata if 2 <= len(rows) <= 4)
    assert found.still == case.data.n - sum(able)
    chances = {n: case.recipe.chance_in(n) for n in able}
    assert isclose(found.epsilon, max(swap_epsilon(n, p) for n, p in chances.items()), abs_tol=1e-12)
    if case.recipe.epsilon is not None:
        assert found.epsilon <= case.recipe.epsilon + 1e-12
    expected = sum(float(moved_moments(n, Fraction(round(chances[n] * WORDS), WORDS))[0]) for n in able)
    assert isclose(found.moves * case.data.n, expected, rel_tol=1e-8, abs_tol=1e-9)
    assert sum((found.strata["n"] * found.strata["count"]).to_list()) == case.data.n
    levels = qd.theory.predict(case.data, case.recipe, ["exposed"])
    assert levels.rate is None or isclose(levels.rate, found.moves, abs_tol=1e-9)
    assert -1e-12 <= found.own <= 1 + 1e-12


@given(
    n=st.integers(3, 6),
    hundredths=st.integers(2, 98),
    random=st.randoms(use_true_random=False),
)
@examples(24)
def test_moments_of_every_cell_are_those_over_all_permutations(n: int, hundredths: int, random: object) -> None:
    a, b = ([random.randrange(2) for _ in range(n)] for _ in range(2))  # type: ignore[attr-defined]
    assume(len(set(a)) == len(set(b)) == 2)
    recipe = qd.PrivateSwap("A", chance=hundredths / 100, seed=1)
    data = file_of(A=a, B=b)
    cells = qd.theory.table_error(data, recipe, "A*B").to_dicts()
    chance = Fraction(round(hundredths / 100 * WORDS), WORDS)
    for cell in cells:
        x, y = ([int(f"{name}{v}" == cell[name]) for v in values] for name, values in (("A", a), ("B", b)))
        mean, variance = total_moments(x, y, chance)
        assert isclose(cell["expected"], mean, abs_tol=1e-10)
        assert isclose(cell["sd"], sqrt(variance), abs_tol=1e-6) and isclose(cell["sd"] ** 2, variance, abs_tol=1e-10)
