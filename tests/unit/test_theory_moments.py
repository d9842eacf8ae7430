"""The closed forms of bias and variance: against every permutation, and against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import quadrille as qd
from quadrille.theory import Error, large_n_error, pairs_between, rounding_error, swap_error
from quadrille.theory.moments import EXACT_ENTRIES
from quadrille.theory.tables import add_up
from quadrille.theory.tally import Joint
from theory_oracle import KINDS, amounts, enumerated, exact_moments, in_classes, splits


def agrees(error: Error, values: np.ndarray, tolerance: float = 1e-10) -> None:
    assert abs(error.expected - values.mean()) < tolerance
    assert abs(error.variance - values.var()) < tolerance


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("kind", KINDS)
def test_moments_equal_those_of_all_permutations(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    for groups in splits(n) if kind == "across" else (None,):
        a, b = rng.normal(size=n) * 3 + 5, rng.normal(size=n) - 2
        for k in amounts(n, kind, groups):
            agrees(swap_error(a, b, k, kind, groups=groups), enumerated(a, b, k, kind, groups))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", ["a", "b"])
def test_counts_of_domains_with_the_weight_on_either_side(kind: str, weighted: str) -> None:
    rng = np.random.default_rng(5)
    n = 7
    weight, p, f = rng.uniform(1, 10, n), rng.random(n) < 0.5, rng.random(n) < 0.5
    a, b = (weight * p, f * 1.0) if weighted == "a" else (p * 1.0, weight * f)
    groups = np.array([0, 0, 0, 1, 1, 1, 1]) if kind == "across" else None
    for k in amounts(n, kind, groups):
        agrees(swap_error(a, b, k, kind, groups=groups), enumerated(a, b, k, kind, groups))


@pytest.mark.parametrize("kind", KINDS)
def test_classes_add_up_whatever_their_own_numbers(kind: str) -> None:
    rng = np.random.default_rng(2)
    within = np.array(["north"] * 5 + ["south"] * 4 + ["west"])
    order = rng.permutation(10)
    groups = np.array([0, 0, 1, 1, 1, 0, 1, 0, 1, 1])
    a, b = rng.normal(size=10), rng.normal(size=10)
    for north, south in ((2, 4), (4, 2), (0, 4)):
        parts = [
            enumerated(a[rows], b[rows], k, kind, groups[rows])
            for rows, k in ((slice(0, 5), north), (slice(5, 9), south), (slice(9, 10), 0))
        ]
        some = groups[order] if kind == "across" else None
        found = [
            swap_error(a[order], b[order], k, kind, groups=some, within=within[order])
            for k in ({"north": north, "south": south, "west": 0}, [north, south, 0])
        ]
        assert found[0] == found[1]
        agrees(found[0], in_classes(parts))


def test_one_record_of_a_class_stays_and_is_counted() -> None:
    a, b, within = [1.0, 2.0, 4.0, 3.0, 9.0], [2.0, 1.0, 7.0, 1.0, 2.0], [0, 0, 0, 1, 1]
    alone = swap_error(a, b, [3, 1], "cycles", within=within)
    assert alone.idle == 1
    assert (alone.bias, alone.variance) == pytest.approx(
        (swap_error(a[:3], b[:3], 3, "cycles").bias, swap_error(a[:3], b[:3], 3, "cycles").variance)
    )


@pytest.mark.parametrize("kind", ["pairs", "cycles"])
@pytest.mark.parametrize("k", [2, 10, 100, 10**7])
def test_a_hundred_million_records_to_twelve_digits(kind: str, k: int) -> None:
    rng = np.random.default_rng(k)
    counts = [3, 10**5 + 17, 4 * 10**7 + 1, 0, 1]
    counts[3] = 10**8 - sum(counts)
    for weights in ([1.0] * 5, (rng.random(5) * 1000).tolist()):
        a = [w * x for w, x in zip(weights, [1, 1, 0, 0, 1], strict=True)]
        b = [1.0, 0.0, 1.0, 0.0, 1.0]
        bias, variance = exact_moments(a, b, counts, k, kind)
        found = swap_error(a, b, k, kind, counts=counts)
        assert abs(Fraction(found.bias) / bias - 1) < 1e-12
        assert abs(Fraction(found.variance) / variance - 1) < 1e-12


@pytest.mark.parametrize("kind", ["pairs", "cycles"])
@pytest.mark.parametrize("k", [2, 10, 10**7])
def test_the_float_formulas_of_tables_keep_twelve_digits_at_a_hundred_million(kind: str, k: int) -> None:
    table = np.array([[4, 10**5 + 17], [4 * 10**7 + 1, 10**8 - 10**5 - 17 - 4 * 10**7 - 5]])
    _, bias, variance = add_up(Joint(table.reshape(1, 1, 2, 2)), kind, np.array([k]))
    for i, j in np.ndindex(2, 2):
        a, b = [1.0 * (x == i) for x in (0, 0, 1, 1)], [1.0 * (y == j) for y in (0, 1, 0, 1)]
        true_bias, true_variance = exact_moments(a, b, table.ravel().tolist(), k, kind)
        assert abs(Fraction(bias[2 * i + j]) / true_bias - 1) < 1e-12
        assert abs(Fraction(variance[2 * i + j]) / true_variance - 1) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", ["whole numbers", "real numbers"])
def test_many_records_agree_with_exact_sums(kind: str, values: str) -> None:
    """Beyond the limit sums are whole numbers or floats; a table of counts gives the exact ones."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 4, 12) * 1.0, rng.integers(0, 3, 12) * 1.0)
    if values == "real numbers":
        a, b = a * 0.37 + 1000, b * 1.7 - 3.3
    counts = rng.integers(1, EXACT_ENTRIES // 4, 12)
    groups = np.arange(12) % 2 if kind == "across" else None
    table = swap_error(a, b, 500, kind, groups=groups, counts=counts)
    assert counts.sum() > EXACT_ENTRIES
    spread_out = None if groups is None else np.repeat(groups, counts)
    listed = swap_error(np.repeat(a, counts), np.repeat(b, counts), 500, kind, groups=spread_out)
    assert listed.value == pytest.approx(table.value, rel=1e-12)
    assert listed.bias == pytest.approx(table.bias, rel=1e-9)
    assert listed.variance == pytest.approx(table.variance, rel=1e-9)


def test_large_values_do_not_cancel() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=6000), rng.normal(size=6000)
    plain, shifted = swap_error(a, b, 600), swap_error(a + 1e6, b - 1e6, 600)
    assert shifted.bias == pytest.approx(plain.bias, rel=1e-6)
    assert shifted.variance == pytest.approx(plain.variance, rel=1e-6)


def test_error_knows_its_roots() -> None:
    error = Error(value=20.0, bias=-3.0, variance=16.0)
    assert (error.sd, error.rmse, error.expected, error.relative_rmse) == (4.0, 5.0, 17.0, 0.25)
    assert Error(0.0, 1.0, 0.0).relative_rmse is None


BAD = {
    "odd k for pairs": ({"k": 3}, "even"),
    "odd k for across": ({"k": 3, "kind": "across", "groups": [0, 0, 1, 1]}, "even"),
    "k = 1": ({"k": 1, "kind": "cycles"}, "one record alone"),
    "negative k": ({"k": -2}, "whole number"),
    "half a record": ({"k": 2.5}, "whole number"),
    "more than all": ({"k": 6}, "at most the number of records"),
    "unknown kind": ({"k": 2, "kind": "rings"}, "one of"),
    "a group too small": ({"k": 4, "kind": "across", "groups": [0, 1, 1, 1]}, "smaller group has 1"),
    "no groups": ({"k": 2, "kind": "across"}, "groups"),
    "groups in vain": ({"k": 2, "groups": [0, 0, 1, 1]}, "groups"),
    "three groups": ({"k": 2, "kind": "across", "groups": [0, 1, 2, 2]}, "two groups"),
    "one k for classes": ({"k": 2, "within": [0, 0, 1, 1]}, "each of the 2 classes"),
    "a class lacks its k": ({"k": {0: 2}, "within": [0, 0, 1, 1]}, "for each class"),
    "odd k in a class": ({"k": [2, 3], "within": [0, 0, 1, 1]}, "even in every class"),
    "too many in a class": ({"k": [4, 2], "within": [0, 0, 1, 1]}, "cannot move in a class"),
    "short within": ({"k": [2], "within": [0, 0]}, "one value per record"),
    "negative counts": ({"k": 2, "counts": [1, 1, 1, -1]}, "0 or more"),
    "counts beyond 64 bits": ({"k": 2, "counts": [10**19, 1, 1, 1]}, "more than 9,007,199,254,740,992 records"),
    "counts beyond floats": ({"k": 2, "counts": [10**400, 1, 1, 1]}, "list of numbers"),
    "broken counts": ({"k": 2, "counts": [1, 1, 1, 1.5]}, "whole numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case: str) -> None:
    options, says = BAD[case]
    with pytest.raises(qd.QuadrilleError, match=says):
        swap_error([1, 1, 0, 0], [1, 0, 1, 0], **options)


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        ([1, np.nan], [1, 0], "missing or infinite in 1 entries"),
        ([1, 0], [1, 0, 1], "one value per record"),
        ([], [], "one number per record"),
        (["x", "y"], [1, 0], "list of numbers"),
        (["1", "2"], [1, 0], "list of numbers"),
        ([1e200, 0], [1, 0], "'a' of swap_error is too large"),
        ([1, 0], [0, 1e-200], "'b' of swap_error is too small"),
        ([[1, 0]], [[1, 0]], "one number per record"),
    ],
)
def test_bad_vectors_are_refused(a: list, b: list, says: str) -> None:
    with pytest.raises(qd.QuadrilleError, match=says):
        swap_error(a, b, 2)


def test_rounding_has_no_bias_and_the_variance_of_its_two_outcomes() -> None:
    for base in (1, 3, 5, 10):
        for count in range(25):
            down, residue = count - count % base, count % base
            values = np.array([down] * (base - residue) + [down + base] * residue)
            agrees(rounding_error(count, base), values)
    for count, base in ((-1, 5), (2.5, 5), (True, 5), (7, 0), (7, 2.5)):
        with pytest.raises(qd.QuadrilleError):
            rounding_error(count, base)


MEASURED = {  # relative error of RMSE and sd for shares .1, .3, .2: as stated in the docstring
    ("pairs", 1_000): (1.1e-3, 1.1e-3),
    ("pairs", 100_000): (1.1e-5, 1.1e-5),
    ("pairs", 10_000_000): (1.1e-7, 1.1e-7),
    ("cycles", 1_000): (2.2e-3, 2.4e-3),
    ("cycles", 100_000): (1.1e-5, 2.4e-5),
    ("cycles", 10_000_000): (1.1e-7, 2.4e-7),
}


@pytest.mark.parametrize(("kind", "n"), MEASURED)
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_the_large_n_form_is_as_accurate_as_stated(kind: str, n: int, rate: float) -> None:
    counts = [n // 10, n // 5, n // 10, 6 * n // 10]
    exact = swap_error([1, 1, 0, 0], [1, 0, 1, 0], round(rate * n), kind, counts=counts)
    found = large_n_error(n, 0.1, 0.3, 0.2, rate=rate, kind=kind)
    rmse, sd = MEASURED[kind, n]
    assert rmse / 4 < abs(found.rmse / exact.rmse - 1) < rmse
    assert sd / 4 < abs(found.sd / exact.sd - 1) < sd
    assert found.value == pytest.approx(exact.value)


def test_the_large_n_form_refuses_shares_that_do_not_fit() -> None:
    for shares in ((0.3, 0.2, 0.5), (0.0, 0.6, 0.7), (0.1, 1.2, 0.3)):
        with pytest.raises(qd.QuadrilleError):
            large_n_error(1000, *shares, rate=0.1)
    weighted = large_n_error(1000, 0.1, 0.3, 0.2, rate=0.1, weight=3.0)
    plain = large_n_error(1000, 0.1, 0.3, 0.2, rate=0.1)
    assert weighted.rmse == pytest.approx(3 * plain.rmse)


@pytest.mark.parametrize("labels", [["a", None], [1.0, float("nan")], ["a", 2.5, None], [None, None]])
def test_labels_that_are_missing_are_refused(labels: list[object]) -> None:
    n = len(labels)
    with pytest.raises(qd.QuadrilleError, match="missing in"):
        swap_error([1.0] * n, [1.0] * n, [2], within=labels)  # type: ignore[arg-type]
    with pytest.raises(qd.QuadrilleError, match="missing in"):
        swap_error([1.0] * n, [1.0] * n, 2, kind="across", groups=labels)  # type: ignore[arg-type]


def test_labels_may_be_objects() -> None:
    labels = np.array(["a", "a", "b", "b"], dtype=object)
    assert swap_error([1, 0, 1, 0], [1, 1, 0, 1], [2, 2], within=labels).value == 1.0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"weight": float("nan")}, "'weight'"),
        ({"weight": 1e200}, "'weight'"),
        ({"domain": "0.1"}, "'domain'"),
        ({"domain": float("nan")}, "'domain'"),
        ({"n": 10**400}, "'n'"),
    ],
)
def test_the_large_n_form_refuses_what_is_no_number(options: dict, says: str) -> None:
    good = {"n": 1000, "domain": 0.1, "moved": 0.3, "stayed": 0.2, "rate": 0.1}
    with pytest.raises(qd.QuadrilleError, match=says):
        large_n_error(**good | options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"counts": None}, "'counts'"),
        ({"counts": [3, -1]}, "'counts'"),
        ({"pairs": -1}, "'pairs'"),
        ({"pairs": float("nan")}, "'pairs'"),
        ({"sampler": "any"}, "'sampler'"),
        ({"admissible": np.ones(3)}, "'admissible'"),
        ({"pairs": 9}, "cannot be drawn"),
    ],
)
def test_numbers_of_pairs_refuse_bad_arguments(options: dict, says: str) -> None:
    with pytest.raises(qd.QuadrilleError, match=says):
        pairs_between(**{"counts": [5, 4, 3], "pairs": 2} | options)
    assert not pairs_between([5, 4, 3], 0).any()


def test_sums_of_the_largest_numbers_are_worked_out_without_a_warning() -> None:
    for size in (1e70, 1e-70):
        error = swap_error([size, size, 0, 0], [1, 0, 1, 0], 2)
        assert error.rmse == pytest.approx(size * swap_error([1, 1, 0, 0], [1, 0, 1, 0], 2).rmse)


def test_a_count_or_base_beyond_all_measure_is_refused() -> None:
    for bad in ({"count": 10**400}, {"count": 3, "base": 10**300}):
        with pytest.raises(qd.QuadrilleError, match="rounding_error"):
            rounding_error(**bad)
