"""Several releases of one file: the printed figures, by hand, and what repeats nothing new."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

import quadrille as qd
from effort import examples
from quadrille.attack.channel import channel_of
from quadrille.attack.input import Finding, Section, attack_input
from quadrille.attack.releases import (
    SeveralReleases,
    releases,
    several_releases,
    several_section,
    warning_figures,
)
from quadrille.attack.undo import weigh
from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.errors import InputError, ParameterError
from quadrille.score.matching import crossed

DATA = qd.datasets.cps8d()
RANDOM = qd.RandomSwap(["Edu", "MS"], rate=0.10, seed=1)
DESIGNED = qd.Recipe.from_json('{"method":"DesignedSwap","seed":1,"version":1}')
PERMUTED = qd.PermutationSwap(["AnnSal"], rate=0.10, seed=1)
COUNTS = (1, 3, 5, 10, 20)


def seeds_apart(recipe: qd.Recipe, count: int) -> list[qd.Recipe]:
    """A design with several seeds."""
    return [recipe.changed(seed=seed) for seed in range(1, count + 1)]


@cache
def files_of(recipe: qd.Recipe) -> list[qd.Data]:
    return [each.plan(DATA).apply(DATA) for each in seeds_apart(recipe, COUNTS[-1])]


@cache
def found(recipe: qd.Recipe, releases: int) -> SeveralReleases:
    return several_releases(DATA, files_of(recipe)[:releases], design=recipe)


def test_golden_of_aligned_rows_true_swaps() -> None:
    restored = [found(RANDOM, count).restored or 0 for count in COUNTS]
    assert [round(value, 4) for value in restored] == [0.9, 0.973, 0.9916, 0.9989, 1.0]


def test_golden_of_aligned_rows_designed_swaps() -> None:
    """The printed .9984 and .9998 break ties between values by their code; here the earliest release breaks them."""
    restored = [found(DESIGNED, count).restored or 0 for count in COUNTS]
    assert [round(value, 4) for value in restored] == [0.9654, 0.9951, 0.9985, 0.9995, 0.9999]
    assert restored == pytest.approx([0.9654, 0.9951, 0.9984, 0.9998, 0.9999], abs=0.00035)


def test_golden_of_tables_corrected_and_averaged() -> None:
    results = [found(PERMUTED, count) for count in COUNTS]
    assert all(result.corrected for result in results)
    assert [round(result.exact, 3) for result in results] == [0.6, 0.71, 0.78, 0.851, 0.907]
    assert [round(result.small or 0, 3) for result in results] == [0.841, 0.901, 0.934, 0.963, 0.98]
    assert {(result.cells, result.small_cells) for result in results} == {(1_695, 547)}


def test_the_mean_of_tables_of_designed_swaps_tells_little() -> None:
    results = [found(DESIGNED, count) for count in COUNTS]
    assert not any(result.corrected for result in results)
    assert [round(result.small or 0, 2) for result in results] == [0.06] * 5


def test_crossing_designed_swaps_tells_small_cells_without_error() -> None:
    """Filled in one release, emptied in another: no order of the rows hides that."""
    recipe = qd.DesignedSwap(effort=0.05, seed=1)
    plans = [each.plan(DATA) for each in seeds_apart(recipe, 2)]
    result = several_releases(DATA, plans, design=recipe, aligned=False).crossed
    assert (result.cells, result.small) == (1_695, 547)
    assert result.right == result.told and 0.1 < result.told / 547 < 0.3
    assert result.unique > 0.8 * result.told
    section = several_section(several_releases(DATA, plans, design=recipe, aligned=False), aligned=False)
    found, small, unique = section.findings[-3:]
    assert (found.value, small.value) == (result.right / 547, 1) and unique.value == result.unique / result.told
    assert "which tells without knowing any row that they were small" in section.story
    assert "cells are large in one of them and not in another" in warning_figures(DATA, plans).warning


def test_crossing_by_hand() -> None:
    """(a, a) is three in one release and none in another; (b, b) was large and looks small in one."""
    data = file_of([[0, 1, 1, 1, 2, 2, 2], [0, 1, 1, 1, 2, 2, 2]])
    full = file_of([[0, 0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2, 2]])
    bare = file_of([[1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 2, 2, 2, 2]])
    assert crossed(data, [full, bare], ["v0", "v1"], 3) == (3, 1, 3, 1, 1)
    assert crossed(data, [full], ["v0", "v1"], 3).told == 0
    assert crossed(data, [full, full], ["v0", "v1"], 3).told == 0


def test_releases_are_weighed_together_cell_by_cell() -> None:
    """The fit of all variables is the table itself, so that every cell is worked out alone, in three rounds."""
    before = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6])
    channel = channel_of(before, np.array([0, 0, 0, 3, 3, 3, 4, 3, 4, 4, 4, 6]), 3)
    shown = [np.array([[3.0, 0.0], [4.0, 3.0]]), np.array([[0.0, 0.0], [5.0, 3.0]])]
    start = np.array([[1.5, 0.2], [4.5, 2.0]])
    for tables in (shown[:1], shown):
        found = weigh(tables, 3, channel, start, way=2)
        for i, mean in enumerate(start.ravel()):
            sizes = np.arange(
                int(shown[0].ravel()[i]) + 21
            )  # no further from the first release than cells are seen to go
            expected = float(mean)
            for _ in range(3):
                weight = poisson.pmf(sizes, expected)
                for table in tables:
                    weight = weight * channel.of(sizes, np.full(len(sizes), int(table.ravel()[i])))
                weight /= weight.sum()
                expected = float(weight @ sizes)
            assert found.few[i] == pytest.approx(weight[:5])
            assert found.table.ravel()[i] == pytest.approx(float(weight @ np.sqrt(sizes)) ** 2)
    assert found.few[0, 1:3].sum() == pytest.approx(1), "three here and none there: it was small"


def skewed() -> qd.Data:
    """A file of four variables with many small cells."""
    random = np.random.default_rng(5)
    held = [np.minimum(random.geometric(0.4, 8_000) - 1, 5) for _ in range(3)]
    return Data(
        Column(Variable(name, "nominal", tuple("abcdef")), codes.astype(np.uint8))
        for name, codes in zip("KLMO", [*held, (held[0] + random.integers(0, 3, 8_000)) % 6], strict=True)
    )


@cache
def weighed(*seeds: int) -> Section:
    recipe = qd.DesignedSwap(effort=0.02, seed=1)
    earlier = [recipe.changed(seed=seed, effort=0.1) for seed in seeds]
    return releases(attack_input(skewed(), recipe, None, None, 3, "design", None, None, earlier=earlier))


def test_two_designed_releases_tell_more_than_one_and_three_more_than_two() -> None:
    def values(start: str, *seeds: int) -> list[float]:
        return [float(one.value or 0) for one in weighed(*seeds).findings if one.quantity.startswith(start)]

    (one, two), (again, three) = (values("distance of the undone table", *seeds) for seeds in ((2,), (2, 3)))
    released = next(each.chance for each in weighed(2).findings if each.quantity.startswith("distance"))
    assert three < two < one == again < (released or 0)
    for quantity in ("cells of 3: those of one record before (AUC)", "small cells claimed at a chance"):
        (one, two), (_, three) = values(quantity, 2), values(quantity, 2, 3)
        assert one < two < three
    claims: list[Finding] = [each for each in weighed(2, 3).findings if each.quantity.startswith("cells claimed")]
    assert all(each.value is not None and each.value > 0.8 for each in claims), "as sure as they say"
    assert "weighs all releases brings the table from a distance of" in weighed(2).story


def test_what_is_no_second_draw_of_the_design_is_not_weighed() -> None:
    """The same plan again, another design, and another method."""
    recipe = qd.DesignedSwap(effort=0.02, seed=1)
    data = skewed()
    for other in (recipe, recipe.changed(seed=2, n=4), qd.RandomSwap(["K"], rate=0.1, seed=1)):
        section = releases(attack_input(data, recipe, None, None, 3, "design", None, None, earlier=[other]))
        assert not any("one release" in each.quantity and "undone" in each.quantity for each in section.findings)
    plan = recipe.changed(seed=2).plan(data)  # a plan is of the design that is given
    section = releases(attack_input(data, recipe, None, None, 3, "design", None, None, earlier=[plan]))
    assert any("undone" in each.quantity for each in section.findings)


def test_the_correction_is_that_of_theory() -> None:
    """Tables of single variables by a published f, the same by the chances of the design."""
    released = PERMUTED.plan(DATA).apply(DATA)
    table = np.zeros((5, 2))
    np.add.at(table, (released["Edu"].values, released["AnnSal"].values), 1)
    truth = np.zeros((5, 2))
    np.add.at(truth, (DATA["Edu"].values, DATA["AnnSal"].values), 1)
    corrected = np.rint(qd.theory.correct(table, recipe=PERMUTED).table)
    assert several_releases(DATA, [PERMUTED], ["Edu", "AnnSal"]).exact == (corrected == truth).mean()


def test_rows_in_any_order_give_the_same_tables() -> None:
    shuffled = [file.take(np.random.default_rng(1).permutation(DATA.n)) for file in files_of(PERMUTED)[:3]]
    result = several_releases(DATA, shuffled, design=PERMUTED, aligned=False)
    assert (result.exact, result.small) == (found(PERMUTED, 3).exact, found(PERMUTED, 3).small)
    assert result.restored is result.agree is result.right is None


def file_of(values: list[list[int]]) -> Data:
    variable = tuple("abc")
    return Data(
        Column(Variable(f"v{i}", "nominal", variable), np.array(codes, dtype=np.uint8))
        for i, codes in enumerate(values)
    )


column = st.lists(st.integers(0, 2), min_size=6, max_size=6)
table = st.tuples(column, column)


@examples(36)
@given(table, st.lists(table, min_size=1, max_size=5))
def test_every_figure_by_counting(truth: tuple[list[int], list[int]], shown: list[tuple[list[int], list[int]]]) -> None:
    result = several_releases(file_of([*truth]), [file_of([*each]) for each in shown], ["v0", "v1"])

    def mode(place: int, variable: int) -> int:
        votes = Counter(each[variable][place] for each in shown)
        return max(votes, key=lambda value: votes[value])  # the first of those as frequent

    right = [all(mode(i, v) == truth[v][i] for v in range(2)) for i in range(6)]
    agree = [all(len({each[v][i] for each in shown}) == 1 for v in range(2)) for i in range(6)]
    assert result.restored == pytest.approx(sum(right) / 6)
    assert result.agree == pytest.approx(sum(agree) / 6)
    if any(agree):
        assert result.right == pytest.approx(sum(r and a for r, a in zip(right, agree, strict=True)) / sum(agree))
    counts = Counter(zip(*truth, strict=True))
    tables = [Counter(zip(*each, strict=True)) for each in shown]
    exact = {cell: round(sum(one[cell] for one in tables) / len(tables)) == count for cell, count in counts.items()}
    small = [exact[cell] for cell, count in counts.items() if count < 3]
    assert result.exact == pytest.approx(sum(exact.values()) / len(exact))
    assert result.small == (pytest.approx(sum(small) / len(small)) if small else None)


def test_numbers_are_restored_like_categories() -> None:
    values = np.array([1.5, 2.5, float("nan"), 4.0])
    files = [values, values[[1, 0, 2, 3]], values[[0, 1, 3, 2]]]
    data, *releases = (qd.from_frame(pl.DataFrame({"x": each, "k": list("abab")})) for each in [values, *files])
    result = several_releases(data, releases, ["k"])
    assert (result.restored, result.agree, result.right) == (1, 0, None)


def test_the_same_plan_again_tells_nothing_new() -> None:
    result = warning_figures(DATA, [RANDOM, RANDOM.plan(DATA)])
    assert result.agree == 1 and result.restored == result.restored_one
    assert "repeats the same plan" in result.warning
    assert "It repeats" not in warning_figures(DATA, [PERMUTED, PERMUTED.changed(seed=2)]).warning


def test_a_second_release_shows_who_was_swapped() -> None:
    result = warning_figures(DATA, seeds_apart(RANDOM, 2))
    assert result.agree == pytest.approx(0.8121, abs=5e-5)
    assert result.right == pytest.approx(0.9966, abs=5e-5)
    assert result.restored == result.restored_one == pytest.approx(0.9, abs=1e-4)
    assert result.exact > result.exact_one
    assert "18.79 % of the records were swapped" in result.warning


def test_the_section_has_before_and_chance_next_to_each_value() -> None:
    section = several_section(several_releases(DATA, seeds_apart(PERMUTED, 3)))
    assert len(section.findings) == 10
    for finding in section.findings[:7]:
        assert finding.value is not None and finding.before == 1 and finding.chance is not None
        assert finding.chance < finding.value
    assert "3 releases" in section.story and section.advice
    unordered = several_section(several_releases(DATA, seeds_apart(PERMUTED, 3), aligned=False), aligned=False)
    assert unordered.findings[0].value is None and unordered.findings[0].note == "rows are not aligned"
    assert "averages 3 releases" in unordered.story


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="at least one release"):
        several_releases(DATA, [])
    with pytest.raises(ParameterError, match="'n' parameter of several_releases"):
        several_releases(DATA, [DATA], n=1)
    with pytest.raises(InputError, match="not aligned"):
        several_releases(DATA, [DATA.take(np.arange(10))])
    other = qd.from_frame(DATA.frame().with_columns(pl.col("Sex").cast(pl.String) + "x"))
    with pytest.raises(InputError, match="'Sex' of a release has other categories"):
        several_releases(DATA, [other], ["Sex"])
