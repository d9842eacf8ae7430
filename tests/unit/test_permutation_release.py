"""Traces that an intruder can see: every recipe warns of weights that no longer fit the strata beside them."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import quadrille as qd
from quadrille.data import Column, Data, code_dtype
from quadrille.delta import traces
from quadrille.recipe import Recipe
from quadrille.release.release import GuessableSeedWarning, ReleaseWarning
from strategies import column, numbers

N = 120
OF_STRATUM = np.array([1.5, 2.25, 8.0])


def stratum(name: str, codes: np.ndarray) -> Column:
    categories = tuple(f"{name}{i}" for i in range(int(codes.max()) + 1))
    return Column(qd.Variable(name, "nominal", categories, role="stratum"), codes.astype(code_dtype(9)))


def survey(weights: np.ndarray | None = None) -> Data:
    """Two columns, a stratum S of three values, and the weight of each stratum unless others are given."""
    s = np.arange(N) % 3
    w = OF_STRATUM[s] if weights is None else weights
    columns = [column("A", np.arange(N) // 3 % 4), column("B", np.arange(N) // 7 % 2), stratum("S", s)]
    return Data([*columns, numbers("w", w, role="weight")])


def told(recipe: Recipe, data: Data) -> list[str]:
    return traces(data, recipe.plan(data), data.columns)


SWAPPED = r"Column 'S' is a stratum and was swapped while the weight 'w' stayed: .* Do not swap the stratum, or let"
APART = r"The weight 'w' moved while the stratum 'S' stayed, .* Let the weight stay .* or swap within strata"


@pytest.mark.parametrize(
    "recipe",
    [
        qd.RandomSwap(["S"], pairs=10),
        qd.RandomSwap(["A", "S"], pairs=10, order="one-by-one"),
        qd.ControlledSwap(["A", "S"], targets=0.1),
    ],
)
def test_every_recipe_warns_when_a_stratum_is_swapped_apart_from_its_weight(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.warns(ReleaseWarning, match=SWAPPED):
        made = qd.release(survey(), recipe, tmp_path / "release", allow_contradictions=True)
    assert any("is a stratum" in text for text in made.warnings)
    dossier = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    assert "is a stratum and was swapped" in dossier


@pytest.mark.parametrize("kind", ["pairs", "cycles"])
def test_permutation_swapping_warns_of_either_trace(kind: str, tmp_path: Path) -> None:
    for number, (recipe, message) in enumerate(
        [
            (qd.PermutationSwap(["S"], rate=0.3, kind=kind), SWAPPED),
            (qd.PermutationSwap(["A"], rate=0.3, kind=kind, weight="moves"), APART),
        ]
    ):
        (text,) = told(recipe, survey())
        assert re.match(message, text)
        with pytest.warns(ReleaseWarning, match=message):
            made = qd.release(survey(), recipe, tmp_path / str(number), allow_contradictions=True)
        contradicted, trace = made.warnings
        assert re.fullmatch(r"[1-9]\d* records contradict what the original says, as was allowed: .*", contradicted)
        assert trace == text


def irregular(share: float) -> np.ndarray:
    """Weights of the strata, but for this share of the records of stratum 0, which differ."""
    weights = OF_STRATUM[np.arange(N) % 3].copy()
    weights[: int(share * N)] = 100 + np.arange(int(share * N))
    return weights


SILENT = {
    "nothing of a stratum moves": (qd.RandomSwap(["A"], pairs=10), None),
    "the weight moves with the stratum": (qd.PermutationSwap(["A", "S"], rate=0.3, weight="moves"), None),
    "the weight moves within strata": (qd.PermutationSwap(["A"], rate=0.3, weight="moves", within=["S"]), None),
    "one weight for all": (qd.PermutationSwap(["S"], rate=0.3), np.full(N, 2.5)),
    "one weight for all, moving": (qd.PermutationSwap(["A"], rate=0.3, weight="moves"), np.full(N, 2.5)),
    "weights of their own": (qd.PermutationSwap(["A"], rate=0.3, weight="moves"), 1.0 + np.arange(N)),
    "no stratum of one weight": (qd.PermutationSwap(["A"], rate=0.3, weight="moves"), irregular(0.2)),
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said_where_no_weight_gives_itself_away(name: str) -> None:
    recipe, weights = SILENT[name]
    assert told(recipe, survey(weights)) == []


def test_nearly_one_weight_in_each_stratum_is_enough_for_a_trace() -> None:
    many = np.arange(N) % 30
    data = survey()
    odd = OF_STRATUM[many % 3].copy()
    odd[0] = 99.0  # one of thirty strata has two weights
    data = Data([data["A"], data["B"], stratum("S", many), numbers("w", odd, role="weight")])
    assert len(told(qd.PermutationSwap(["A"], rate=0.3, weight="moves", seed=2), data)) == 1


def test_a_stratum_that_moves_with_the_weight_does_not_hide_one_that_stays() -> None:
    first, second = np.arange(N) % 3, np.arange(N) // 3 % 2
    weights = OF_STRATUM[first] * (1 + second)
    data = Data(
        [
            column("A", np.arange(N) // 6 % 4),
            stratum("S", first),
            stratum("T", second),
            numbers("w", weights, role="weight"),
        ]
    )
    (apart,) = told(qd.PermutationSwap(["S"], rate=0.3, weight="moves", seed=1), data)
    assert "while the stratum 'T' stayed" in apart
    assert told(qd.PermutationSwap(["S", "T"], rate=0.3, weight="moves", seed=1), data) == []


def test_a_file_without_weight_or_stratum_leaves_no_trace_of_this_kind() -> None:
    data = Data([column("A", np.arange(N) % 4), stratum("S", np.arange(N) % 3)])
    assert told(qd.RandomSwap(["S"], pairs=10), data) == []
    data = Data([column("A", np.arange(N) % 4), numbers("w", 1.0 + np.arange(N) % 2, role="weight")])
    assert told(qd.PermutationSwap(["A"], rate=0.3, weight="moves"), data) == []


def test_the_account_of_every_plan_says_which_traces_it_leaves() -> None:
    data = survey()
    for recipe in (
        qd.RandomSwap(["S"], pairs=10, seed=1),
        qd.ControlledSwap(["A", "S"], targets=0.1, seed=1),
        qd.PermutationSwap(["S"], rate=0.3, seed=1),
        qd.PermutationSwap(["A"], rate=0.3, weight="moves", seed=1),
    ):
        account = recipe.plan(data).report(data)
        assert list(account.warnings) == told(recipe, data)
        assert len(account.warnings) == 1
        assert account.as_dict()["warnings"] == account.warnings
    assert qd.RandomSwap(["A"], pairs=10, seed=1).plan(data).report(data).warnings == ()


def test_a_column_that_is_not_released_leaves_no_trace() -> None:
    data = survey()
    plan = qd.RandomSwap(["S"], pairs=10, seed=1).plan(data)
    assert traces(data, plan, ["A", "B", "w"]) == []


def test_a_release_of_permutation_swapping_is_whole(tmp_path: Path) -> None:
    data = survey()
    rate = numbers("rates", np.array([0.2, 0.4, 0.6])[np.arange(N) % 3])
    data = Data([*(data[name] for name in data.columns), rate])
    recipe = qd.PermutationSwap(["A"], rate="rates", within=["S"], kind="cycles")
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuessableSeedWarning)
        made = qd.release(data, recipe, tmp_path / "release")
    public = (made.public / "data.csv").read_text(encoding="utf-8")
    assert "rates" not in public
    assert made.account.details["records"] == made.account.records == 8 + 16 + 24
    assert "rates" not in "".join(path.read_text(encoding="utf-8") for path in made.public.iterdir())


LIKE_A_STRATUM = (
    r"Column 'R' tells the weight 'w', as a stratum does: .* Do not swap the column, or let the weight move"
)


def undeclared(weights: np.ndarray) -> Data:
    """A column R of three values that nobody declares a stratum, one of many values, and a weight."""
    return Data(
        [column("R", np.arange(N) % 3), numbers("I", np.arange(N) // 2 * 1.0), numbers("w", weights, role="weight")]
    )


def by_region(noise: float = 0.0, odd: int = 0) -> np.ndarray:
    rng = np.random.default_rng(5)
    weights = np.round(OF_STRATUM[np.arange(N) % 3] * np.exp(noise * rng.standard_normal(N)), 4)
    weights[:odd] = 100 + np.arange(odd)
    return weights


@pytest.mark.parametrize(
    "weights", [by_region(), by_region(odd=6), by_region(noise=0.02)], ids=["one", "nearly", "near"]
)
def test_a_swapped_column_that_tells_the_weight_is_warned_of_though_no_stratum(weights: np.ndarray) -> None:
    data = undeclared(weights)
    for recipe in (qd.RandomSwap(["R"], pairs=10), qd.PermutationSwap(["R"], rate=0.3)):
        (text,) = told(recipe, data)
        assert re.match(LIKE_A_STRATUM, text)
    assert told(qd.PermutationSwap(["R"], rate=0.3, weight="moves"), data) == []


QUIET = {
    "one weight": np.full(N, 2.5),
    "all but one weight the same": np.where(np.arange(N) == 0, 9.0, 2.5),
    "one in eight has another weight": np.where(np.arange(N) % 8 == 0, 9.0, 2.5),
    "weights apart from the column": OF_STRATUM[np.arange(N) // 3 % 3],
    "weights that overlap": by_region(noise=0.6),
}


@pytest.mark.parametrize("case", QUIET)
def test_columns_that_do_not_tell_the_weight_are_not_warned_of(case: str) -> None:
    data = undeclared(QUIET[case])
    for swap in (["R"], ["I"]):
        assert told(qd.RandomSwap(swap, pairs=10), data) == []
