"""A second file is summarised by itself: own weights, categories matched by label, rows in any order."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError, ParameterError

TABLES = ["hellinger", "total_variation(A*B)", "entropy_change", "cramers_v_change(A*B)", "contingency_change(A*B)"]


def frame(a: list[str | None], b: list[int], w: list[float] | None = None) -> pl.DataFrame:
    columns = {"A": a, "B": b}
    return pl.DataFrame(columns if w is None else {**columns, "w": w})


def test_rows_in_any_order_give_the_same_scores_and_no_record_measure() -> None:
    before = qd.from_frame(frame(["x", "y", "x", "z", "y", "x"], [1, 2, 2, 1, 3, 3]))
    after = frame(["y", "x", "x", "z", "y", "x"], [1, 2, 2, 1, 3, 3])
    straight = qd.score(before, qd.from_frame(after), TABLES)
    shuffled = qd.score(before, qd.from_frame(after[[5, 3, 0, 1, 4, 2]]), [*TABLES, "conditional_entropy"])
    for measure in TABLES:
        assert shuffled[measure] == pytest.approx(straight[measure], abs=1e-15)
    assert shuffled["conditional_entropy"] is None
    assert "aligned" in shuffled.note("conditional_entropy")


def test_categories_are_matched_by_label_whatever_their_order_or_type() -> None:
    before = qd.from_frame(frame(["x", "y", "x", "z"], [1, 2, 2, 1]))
    order = qd.Codebook((qd.Variable("A", categories=("z", "unseen", "y", "x")),))
    other = frame(["y", "x", "x", "z"], [1, 2, 2, 1]).with_columns(pl.col("B").cast(pl.String))
    plain = qd.score(before, qd.from_frame(frame(["y", "x", "x", "z"], [1, 2, 2, 1])), TABLES)
    matched = qd.score(before, qd.from_frame(other, codebook=order), TABLES)
    for measure in TABLES:
        assert matched[measure] == pytest.approx(plain[measure], abs=1e-15)


def test_a_category_or_an_empty_field_seen_in_one_file_only_counts() -> None:
    before = qd.from_frame(frame(["x", "x", "y", "y"], [1, 1, 1, 1]))
    after = qd.from_frame(frame(["x", "new", None, "y"], [1, 1, 1, 1]))
    assert qd.score(before, after, ["total_variation(A)"])["total_variation(A)"] == pytest.approx(0.5)
    back = qd.score(after, before, ["total_variation(A)"])["total_variation(A)"]
    assert back == pytest.approx(0.5)


def test_each_file_has_its_own_weights() -> None:
    before = qd.from_frame(frame(["x", "y"], [1, 1], [1.0, 3.0]), weight="w")
    after = qd.from_frame(frame(["x", "y"], [1, 1], [0.5, 0.5]), weight="w")
    assert qd.score(before, after, ["total_variation(A)"])["total_variation(A)"] == pytest.approx(0.25)


def test_a_weight_in_one_file_only_is_refused() -> None:
    weighted = qd.from_frame(frame(["x", "y"], [1, 1], [1.0, 3.0]), weight="w")
    plain = qd.from_frame(frame(["x", "y"], [1, 1]))
    with pytest.raises(InputError, match="One of the two files"):
        qd.score(weighted, plain, ["hellinger(A)"])


def test_a_column_that_the_second_file_lacks_is_named() -> None:
    before = qd.from_frame(frame(["x", "y"], [1, 2]))
    with pytest.raises(InputError, match=r"no column 'B' in the second file"):
        qd.score(before, qd.from_frame(pl.DataFrame({"A": ["x", "y"]})), ["hellinger(A*B)"])


def test_with_aligned_rows_the_second_file_gives_what_the_plan_gives(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["Age", "MS"], rate=0.1, order="one-by-one", seed=3).plan(cps8d)
    measures = ["ordinal_shift", "conditional_entropy", "hellinger"]
    from_plan, from_files = qd.score(cps8d, plan, measures), qd.score(cps8d, plan.apply(cps8d), measures)
    for measure in measures:
        assert from_files[measure] == pytest.approx(from_plan[measure], rel=1e-12)
    shuffled = plan.apply(cps8d).frame().sample(fraction=1.0, shuffle=True, seed=1)
    assert qd.score(cps8d, qd.from_frame(shuffled), measures)["ordinal_shift"] is None
    assert np.isfinite(from_plan["ordinal_shift"])


@pytest.mark.parametrize("mask", [[False], True, np.zeros((3, 2), dtype=bool), np.arange(6)])
def test_a_mask_of_swapped_records_that_does_not_fit_is_refused(mask: object) -> None:
    before = qd.from_frame(frame(["x", "y", "x", "z", "y", "x"], [1, 2, 2, 1, 3, 3]))
    after = qd.from_frame(frame(["y", "x", "x", "z", "y", "x"], [1, 2, 2, 1, 3, 3]))
    with pytest.raises(InputError, match="true or false for each"):
        qd.score(before, after, ["small_cells"], swapped=mask)  # type: ignore[arg-type]


def test_a_mask_beside_a_plan_and_a_frame_in_the_place_of_data_are_refused(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["MS"], pairs=10, seed=1).plan(cps8d)
    with pytest.raises(ParameterError, match="A plan knows who was swapped"):
        qd.score(cps8d, plan, ["small_cells"], swapped=np.zeros(cps8d.n, dtype=bool))
    for call in (lambda data: qd.score(data, plan, ["hellinger"]), qd.RandomSwap(["MS"], pairs=10, seed=1).plan):
        with pytest.raises(InputError, match=r"Use qd\.read or qd\.from_frame first"):
            call(pl.DataFrame({"MS": ["a", "b"]}))


def test_categories_that_share_a_label_stay_apart() -> None:
    def book(*values: str) -> qd.Codebook:
        names = {"a": "First", "o": "Other", "p": "Other", "z": "Last", "q": "New"}
        return qd.Codebook((qd.Variable("A", categories=values, labels=tuple(names[value] for value in values)),))

    before = qd.from_frame(frame(["a", "o", "p", "z"], [1, 1, 1, 1]), codebook=book("a", "o", "p", "z"))
    after = qd.from_frame(frame(["z", "q", None, "p"], [1, 1, 1, 1]), codebook=book("z", "q", "p"))
    assert qd.score(before, after, ["total_variation(A)"])["total_variation(A)"] == pytest.approx(0.5)
    assert qd.score(after, before, ["total_variation(A)"])["total_variation(A)"] == pytest.approx(0.5)
