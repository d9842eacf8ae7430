"""The comparison with other methods: what they promise holds, and the page has a place for every table."""

from __future__ import annotations

import re

import numpy as np
import pytest
from bench.compare_methods import (
    END,
    PAGE,
    PICTURE,
    START,
    File,
    Method,
    adult_eight,
    below,
    files,
    filled,
    methods,
    outcome,
    sizes,
    table,
)
from bench.inference import Inference, inference
from bench.other_methods import Ints, codes, grown, locally_suppressed, post_randomised, sequential_trees

import quadrille as qd

N = 3
DATA = qd.datasets.cps8d()
VALUES, SIZES = codes(DATA), sizes(DATA)


def cell_sizes(values: Ints) -> Ints:
    return np.unique(values, axis=0, return_counts=True)[1]


def test_the_page_has_a_filled_place_for_every_table_and_the_picture() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for word in ("cps8d", "adult"):
        block = re.search(f"{re.escape(START.format(word))}(.*?){re.escape(END)}", text, re.DOTALL)
        assert block is not None, "Write the markers back, then: python -m bench.compare_methods"
        names = re.findall(r"^\| ([a-z][^|]*) \|", block[1], re.MULTILINE)
        assert {"before", "designed swap", "local suppression", "sequential trees"} <= set(names)
    assert PICTURE.exists() and f"images/{PICTURE.name}" in text


@pytest.mark.nightly
@pytest.mark.parametrize("method", list(methods()), ids=lambda method: method.name)
@pytest.mark.parametrize("file", files(), ids=lambda file: file.word)
def test_the_page_shows_what_a_run_finds(file: File, method: Method) -> None:
    row = table({method.name: outcome(file.data, method.release(file, method.seed), method)}).splitlines()[-1]
    block = PAGE.read_text(encoding="utf-8").partition(START.format(file.word))[2].partition(END)[0]
    assert row in block.splitlines()
    if method.name == "before":
        assert below(file) in block


def test_a_page_without_a_marker_is_refused() -> None:
    with pytest.raises(SystemExit, match="no place for the table of adult"):
        filled(f"{START.format('cps8d')}\n{END}", {"cps8d": "| a |", "adult": "| b |"})


def test_suppression_leaves_no_small_cell_and_changes_nothing_else() -> None:
    after = locally_suppressed(VALUES, SIZES, N)
    assert cell_sizes(after).min() >= N
    suppressed = after == SIZES
    assert (after == VALUES)[~suppressed].all()
    assert 733 <= suppressed.any(axis=1).sum() <= 733 + N


def test_suppression_of_a_record_that_is_like_no_other_takes_company() -> None:
    values = np.array([[0, 0]] * 10 + [[1, 1]])
    after = locally_suppressed(values, np.array([2, 2]), N)
    assert sorted(cell_sizes(after)) == [3, 8]


def test_post_randomisation_keeps_the_expected_margins_and_the_share_asked_for() -> None:
    after = post_randomised(VALUES, 0.95, seed=1)
    for j, size in enumerate(SIZES):
        share = np.bincount(VALUES[:, j], minlength=size) / len(VALUES)
        moved = 0.05 * (1 - (share**2).sum())
        assert abs((after[:, j] != VALUES[:, j]).mean() - moved) < 4 * np.sqrt(moved / len(VALUES))
        margin = np.bincount(after[:, j], minlength=size) / len(VALUES)
        assert (np.abs(margin - share) < 4 * np.sqrt(2 * 0.05 * share / len(VALUES))).all()
    others = post_randomised(VALUES, 0.95, seed=1, invariant=False)
    assert abs((others != VALUES).mean() - 0.05) < 4 * np.sqrt(0.05 / VALUES.size)


def test_a_tree_finds_the_split_that_separates_and_respects_the_least_leaf() -> None:
    values = np.array([[0, 0], [1, 0], [0, 1], [1, 1]] * 10)
    tree = grown(values, values[:, 1], np.array([2, 2, 2]), least=5)
    assert tree.by == 1
    assert sorted(len(leaf.rows) for leaf in tree.leaves(values)) == [20, 20]
    assert grown(values[:12], values[:12, 1], np.array([2, 2, 2]), least=5).goes_left is None


def test_trees_draw_values_of_the_file_with_margins_as_expected() -> None:
    values = VALUES[::10]
    drawn = sequential_trees(values, SIZES, seed=1)
    assert drawn.shape == values.shape
    for j, size in enumerate(SIZES):
        share = np.bincount(values[:, j], minlength=size) / len(values)
        margin = np.bincount(drawn[:, j], minlength=size) / len(values)
        assert (np.abs(margin - share) <= 4 * np.sqrt(2 * share / len(values))).all()


def test_inference_by_hand() -> None:
    before = np.array([[0, 0], [0, 0], [1, 1]])
    after = np.array([[0, 0], [1, 0], [1, 1]])
    two = np.array([2, 2])
    nothing_changed = inference(before, before, two)
    assert (nothing_changed.cases, nothing_changed.right, nothing_changed.gone) == (2, 1.0, 0.0)
    assert nothing_changed.guess == pytest.approx(1 / 3)
    # The last record is unique on both: of two released with 1 first one has 1 second; with 1 second, all have 1 first.
    assert inference(before, after, two).right == 0.75
    assert inference(before, np.zeros((3, 2), dtype=np.int64), two).gone == 1.0


def test_a_suppressed_value_read_as_any_value_still_tells() -> None:
    before = np.array([[0, 0], [0, 1], [0, 0], [1, 1]])
    after = np.array([[0, 0], [0, 1], [0, 0], [2, 1]])
    two = np.array([2, 2])
    # Unique is only the last record, by its first value. It is gone, or among those that may have that value.
    assert inference(before, after, two) == Inference(1, 0.0, 1.0, 0.5)
    assert inference(before, after, two, open_ended=True) == Inference(1, 1.0, 0.0, 0.5)


def test_the_figures_known_for_cps_8d() -> None:
    for rate, right in ((0.02, 0.946), (0.10, 0.852)):
        released = qd.RandomSwap(["Edu", "MS"], rate=rate, seed=1).plan(DATA).apply(DATA)
        found = inference(VALUES, codes(released), SIZES)
        assert found.cases == 953
        assert [round(found.right, 3), round(found.guess, 3)] == [right, 0.545]


def test_the_adult_file_of_eight_variables_is_sparse() -> None:
    data = adult_eight()
    counts = cell_sizes(codes(data))
    assert [len(data.columns), len(counts), int((counts < N).sum())] == [8, 10_170, 7_325]
