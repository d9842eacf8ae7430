"""Standard errors by linearisation: equal to plain formulas, to a design worked by hand, and to known identities."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.data import Data
from quadrille.errors import InputError, ParameterError
from quadrille.score.estimates import design_of, se_after, weights_of

SEEDS = st.integers(0, 2**32 - 1)


def survey(
    seed: int, *, n: int = 60, strata: int = 4, units: int = 3, weighted: bool = True
) -> tuple[Data, pl.DataFrame]:
    """A file with strata, clusters whose numbers repeat in every stratum, weights and an outcome."""
    dice = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "h": dice.integers(0, strata, n),
            "unit": dice.integers(0, units, n),
            "y": dice.normal(200, 30, n),
            "w": dice.integers(1, 500, n) / 4 if weighted else np.ones(n),
        }
    )
    book = qd.Codebook((qd.Variable("h", "nominal"), qd.Variable("unit", "nominal"), qd.Variable("y", "numeric")))
    return qd.from_frame(frame, codebook=book, weight="w"), frame


def plain(frame: pl.DataFrame, y: np.ndarray, x: np.ndarray, *, by_unit: bool = True) -> float:
    """The formula of the textbooks, loop by loop: strata, then the units inside, each a plain sum."""
    w, h = frame["w"].to_numpy(), frame["h"].to_numpy()
    unit = frame["unit"].to_numpy() if by_unit else np.arange(len(w))
    ratio = (w * y).sum() / (w * x).sum()
    u = w * (y - ratio * x) / (w * x).sum()
    variance = 0.0
    for stratum in set(h.tolist()):
        totals = [u[(h == stratum) & (unit == each)].sum() for each in set(unit[h == stratum].tolist())]
        if len(totals) > 1:
            variance += len(totals) / (len(totals) - 1) * sum((t - sum(totals) / len(totals)) ** 2 for t in totals)
    return variance**0.5


@examples(24)
@given(SEEDS, st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_a_ratio_has_the_error_of_the_textbook_formula(seed: int, strata: int, units: int, by_unit: bool) -> None:
    data, frame = survey(seed, strata=strata, units=units)
    design = design_of(data, "h", "unit" if by_unit else None)
    y, inside = frame["y"].to_numpy(), (frame["y"] > 195).to_numpy().astype(float)
    w = weights_of(data)
    for top, bottom in ((inside, np.ones(data.n)), (y * inside, inside)):
        if bottom.any():
            ratio, se = design.ratio(design.totals(w * top), design.totals(w * bottom))
            assert ratio == pytest.approx((w * top).sum() / (w * bottom).sum(), rel=1e-12)
            assert se == pytest.approx(plain(frame, top, bottom, by_unit=by_unit), rel=1e-9, abs=1e-9)


@examples(24)
@given(SEEDS, st.integers(2, 80))
def test_with_equal_weights_and_records_as_units_the_error_of_a_mean_is_s_over_root_n(seed: int, n: int) -> None:
    data, frame = survey(seed, n=n, weighted=False)
    y = frame["y"].to_numpy()
    design = design_of(data)
    mean, se = design.ratio(design.totals(y), design.totals(np.ones(n)))
    assert mean == pytest.approx(y.mean(), rel=1e-12)
    assert se == pytest.approx(y.std(ddof=1) / np.sqrt(n), rel=1e-9)


@examples(24)
@given(SEEDS, st.integers(2, 80))
def test_with_equal_weights_the_error_of_a_share_is_the_binomial_one(seed: int, n: int) -> None:
    data, frame = survey(seed, n=n, weighted=False)
    inside = (frame["y"] > 200).to_numpy().astype(float)
    design = design_of(data)
    share, se = design.ratio(design.totals(inside), design.totals(np.ones(n)))
    assert se == pytest.approx(np.sqrt(share * (1 - share) / (n - 1)), rel=1e-9, abs=1e-12)


def test_a_design_worked_by_hand() -> None:
    # Stratum 1: units a (values 1, 3) and b (5); stratum 2: units a (2) and b (4, 3). Weights 1; mean 18 / 6 = 3.
    # Totals of (y - 3) / 6 by unit: -2/6, 2/6; -1/6, 1/6. Each stratum: 2 / 1 * (2 * (half the gap)^2).
    frame = pl.DataFrame({"h": [1, 1, 1, 2, 2, 2], "p": list("aababb"), "y": [1.0, 3.0, 5.0, 2.0, 4.0, 3.0]})
    data = qd.from_frame(frame)
    design = design_of(data, "h", "p")
    mean, se = design.ratio(design.totals(frame["y"].to_numpy()), design.totals(np.ones(6)))
    assert mean == 3.0
    assert se == pytest.approx(np.sqrt(2 * (2 * (2 / 6) ** 2) + 2 * (2 * (1 / 6) ** 2)), rel=1e-12)
    assert (design.strata, len(design.stratum), design.lonely) == (2, 4, 0)


@examples(24)
@given(SEEDS, st.floats(0.001, 1000))
def test_neither_the_unit_of_the_weight_nor_the_order_of_the_rows_matters(seed: int, factor: float) -> None:
    data, frame = survey(seed)
    order = np.random.default_rng(seed).permutation(data.n)
    mixed = data.take(order)
    y, w = frame["y"].to_numpy(), weights_of(data)
    design, other = design_of(data, "h", "unit"), design_of(mixed, "h", "unit")
    _, se = design.ratio(design.totals(w * y), design.totals(w))
    _, again = other.ratio(other.totals((factor * w * y)[order]), other.totals((factor * w)[order]))
    assert again == pytest.approx(se, rel=1e-9)


def test_the_error_covers_the_truth_as_often_as_it_promises() -> None:
    # 2,000 samples of 4 strata x 5 units drawn with replacement; the 95 % interval by Student's t of 16 degrees of
    # freedom (2.12) should cover in 95 % of them. Standard error of the coverage 0.0049; allowed: 4 of them.
    dice, covered, runs = np.random.default_rng(20090101), 0, 2000
    level = np.array([1.0, 2.0, 4.0, 7.0])
    frame = pl.DataFrame({"h": np.repeat(np.arange(4), 15), "p": np.tile(np.repeat(np.arange(5), 3), 4)})
    data = qd.from_frame(frame.with_columns(y=pl.lit(0.5)))
    design = design_of(data, "h", "p")
    one = design.totals(np.ones(60))
    for _ in range(runs):
        unit = np.repeat(dice.normal(0, 1, 20), 3)
        y = np.repeat(level, 15) + unit + dice.normal(0, 1, 60)
        mean, se = design.ratio(design.totals(y), one)
        covered += abs(mean - level.mean()) < 2.1199 * se
    assert abs(covered / runs - 0.95) < 4 * 0.0049


def test_strata_with_one_unit_contribute_nothing_and_are_told() -> None:
    frame = pl.DataFrame({"h": [1, 1, 2, 3], "y": [1.0, 2.0, 50.0, 90.0]})
    design = design_of(qd.from_frame(frame), "h")
    assert design.lonely == 2
    assert "2 of the strata have a single unit and contribute nothing" in design.text
    assert design.error(np.array([1.0, 2.0, 50.0, 90.0])) == pytest.approx(np.sqrt(2 * 0.5), rel=1e-12)


def test_the_design_is_told() -> None:
    data, _ = survey(1)
    assert "every record is its own sampling unit (no cluster was given), in one stratum" in design_of(data).text
    assert "within 4 strata (h)" in design_of(data, "h").text
    assert "12 clusters (unit), drawn with replacement, within 4 strata (h)" in design_of(data, "h", "unit").text
    both = design_of(data, ["h", "unit"])
    assert "within 12 strata (h, unit)" in both.text


def test_a_bad_design_is_refused() -> None:
    data = qd.from_frame(pl.DataFrame({"h": ["a", None, "b"], "p": [1.5, None, None], "y": [1.0, 2.0, 3.0]}))
    with pytest.raises(InputError, match=r"'h' of the sampling design is missing in 1 rows"):
        design_of(data, "h")
    with pytest.raises(InputError, match=r"'p' of the sampling design is missing in 2 rows"):
        design_of(data, None, "p")
    with pytest.raises(InputError, match=r"no column 'k' in the sampling design"):
        design_of(data, "k")
    with pytest.raises(ParameterError, match="'cluster'"):
        design_of(data, None, ["p"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("se", "before", "after", "expected", "ratio"),
    [(2.4978, 16.8029, 16.8573, 2.49839, 1.00024), (13.1005, 200.6773, 197.9714, 13.3770, 1.02111)],
)
def test_the_published_errors_after_a_swap(
    se: float, before: float, after: float, expected: float, ratio: float
) -> None:
    found = se_after(se, before, after)
    assert found == pytest.approx(expected, abs=5.1e-5 if expected > 10 else 5.1e-6)
    assert found / se == pytest.approx(ratio, abs=5.1e-6)
