"""What designed swapping refuses, with one clear message that shows no data value, and what it leaves as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import quadrille as qd
from controlled_strategies import flag
from quadrille.data import Column, Data
from quadrille.errors import InfeasibleError, InputError, OverlapError, ParameterError, QuadrilleError
from quadrille.swap.designed.pairs import DesignedPairs
from strategies import column, numbers

CELLS = {(0, 0): 20, (0, 1): 12, (0, 2): 1, (1, 0): 9, (1, 1): 15, (1, 2): 6, (2, 0): 2, (2, 1): 8, (2, 2): 11}


def file_with(cells: dict[tuple[int, ...], int], *more: Column) -> Data:
    """A file with these counts of A x B."""
    codes = np.repeat(np.array(list(cells)), list(cells.values()), axis=0)
    return Data([column(name, codes[:, i]) for i, name in enumerate("ABC"[: codes.shape[1]])] + list(more))


def base(*more: Column) -> Data:
    """Two small cells, of one and of two records, among seven large ones; G to keep, x and id of no use."""
    rows = np.arange(sum(CELLS.values()))
    name = Column(qd.Variable("id", "nominal", tuple(rows.tolist()), role="id"), rows.astype(np.uint8))
    return file_with(CELLS, numbers("x", rows * 7654.25), name, *more)


@dataclass(frozen=True)
class Asked:
    """One of the methods, with what makes it quick and lets it move records of a table of two variables."""

    method: type[DesignedPairs]
    settings: dict[str, object]

    def plan(self, data: Data | None = None, /, **settings: object) -> qd.Plan:
        return self.method(**{"seed": 1, **self.settings, **settings}).plan(data or base())

    def facts(self, data: Data | None = None, /, **settings: object) -> dict[str, object]:
        return dict(self.plan(data, **settings).details.facts)

    def message(self, expected: type[QuadrilleError], data: Data | None = None, /, **settings: object) -> str:
        """The message of the error, after checking what every message must be like."""
        with pytest.raises(QuadrilleError) as caught:
            self.plan(data, **settings)
        text = str(caught.value)
        assert isinstance(caught.value, expected), text
        assert "\n" not in text and text.endswith((".", "?"))
        assert "7654" not in text and "A0" not in text  # data values
        return text


PAIRS, EXACT = Asked(DesignedPairs, {}), Asked(qd.DesignedSwap, {"keep": "1-way", "effort": 0.01})


@pytest.fixture(params=[PAIRS, EXACT], ids=["pairs", "exact"])
def asked(request: pytest.FixtureRequest) -> Asked:
    return request.param


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n", 1),
        ("n", 0),
        ("n", 2.5),
        ("n", True),
        ("share", 0),
        ("share", 1.5),
        ("share", float("nan")),
        ("share", True),
        ("spread", 2),
        ("spread", -0.1),
        ("spread", float("nan")),
        ("spread", True),
        ("price", -1),
        ("price", float("nan")),
        ("price", float("inf")),
        ("price", "dear"),
        ("max_pairs", 0),
        ("max_pairs", 2.5),
        ("choose", "dearest"),
        ("treatment", "hide"),
        ("improve", 1),
        ("never", ["off"]),
        ("swap", ["A", "A"]),
        ("swap", 3),
        ("tables", "A*B"),
        ("tables", [[]]),
        ("tables", [["A", "A"]]),
        ("tables", [3]),
        ("together", [["A", 1]]),
        ("together", "A*B"),
        ("loss", ""),
        ("loss", {}),
        ("loss", 3),
        ("loss", {"hellinger": 0}),
        ("loss", {"hellinger": -1}),
        ("loss", {"hellinger": float("nan")}),
        ("loss", {1: 1}),
        ("seed", -1),
    ],
)
def test_a_bad_parameter_is_named_with_its_range(asked: Asked, parameter: str, value: object) -> None:
    text = asked.message(ParameterError, **{parameter: value})
    assert text.startswith(f"The '{parameter}' parameter of DesignedSwap must be "), text


@pytest.mark.parametrize(
    "loss",
    [
        "helinger",
        "entropy_change",
        "hellinger(2-way)",
        "hellinger(A*B, where=A=A1)",
        {"hellinger": 1, "small_cells": 1},
    ],
)
def test_a_loss_that_is_no_sum_over_cells_is_refused_with_those_that_are(asked: Asked, loss: object) -> None:
    text = asked.message(ParameterError, loss=loss)
    assert "hellinger" in text and "total_variation" in text and "chi_square" in text


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("swap", ["nosuch"]),
        ("tables", [["A", "nosuch"]]),
        ("same", "nosuch"),
        ("different", ["nosuch"]),
        ("never", "nosuch"),
        ("loss", "hellinger(A*nosuch)"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_the_parameter(asked: Asked, parameter: str, value: object) -> None:
    text = asked.message(InputError, **{parameter: value})
    assert "There is no column 'nosuch'" in text and f"'{parameter}' of DesignedSwap" in text


def test_columns_that_must_move_together_must_be_swapped_and_stand_in_one_set(asked: Asked) -> None:
    assert "no column 'nosuch' in 'together' of DesignedSwap" in asked.message(InputError, together=[["A", "nosuch"]])
    assert "'B', which is not a swap variable" in asked.message(ParameterError, swap="A", together=[["A", "B"]])
    assert "two sets" in asked.message(ParameterError, together=[["A", "B"], ["B"]])
    three = file_with({(a, b, c): 1 + a + 5 * b + 3 * c for a in range(3) for b in range(2) for c in range(2)})
    text = asked.message(ParameterError, three, tables=[["A", "B"], ["B", "C"]], together=[["A", "B"]])
    assert "A, B move together" in text and "all of them or none" in text


@pytest.mark.parametrize(
    "settings",
    [
        {"swap": "A", "same": "A"},
        {"swap": "A", "different": "A"},
        {"same": "B", "different": "B"},
        {"swap": ["A"], "never": "A"},
        {"same": "B", "never": "B"},
    ],
)
def test_a_column_with_two_parts_is_refused_and_named(asked: Asked, settings: dict[str, object]) -> None:
    assert re.match(
        r"Column '[AB]' is in both '\w+' and '\w+' of DesignedSwap", asked.message(OverlapError, **settings)
    )


def test_a_variable_outside_the_protected_tables_is_no_swap_variable(asked: Asked) -> None:
    three = file_with({(a, b, c): 1 + a + 5 * b + 3 * c for a in range(3) for b in range(2) for c in range(2)})
    text = asked.message(ParameterError, three, tables=[["A", "B"]], swap=["A", "C"])
    assert "'C'" in text and "protects" in text


@pytest.mark.parametrize("settings", [{"tables": [["A", "x"]]}, {"same": "x"}, {"loss": "hellinger(A*x)"}])
def test_a_numeric_column_is_no_variable_of_a_table(asked: Asked, settings: dict[str, object]) -> None:
    assert "'x'" in asked.message(QuadrilleError, **settings)


def test_the_weight_is_no_swap_variable(asked: Asked) -> None:
    data = base(numbers("w", np.full(sum(CELLS.values()), 2.0), role="weight"))
    assert "'w'" in asked.message(QuadrilleError, data, swap=["w"])


def test_a_file_without_key_variables_says_what_to_do(asked: Asked) -> None:
    assert "'tables'" in asked.message(InputError, Data([numbers("x", np.arange(9.0))]))


def test_n_above_the_largest_cell_says_that_no_cell_can_give(asked: Asked) -> None:
    for n in (20, 21, 500):
        text = asked.message(InfeasibleError, n=n)
        assert f"n = {n}" in text and "Lower 'n'" in text
    assert asked.facts(n=19)["small_cells"] == 8


def test_variables_of_one_category_cannot_be_swapped(asked: Asked) -> None:
    assert "one category only" in asked.message(InfeasibleError, file_with({(0, 0): 5}))
    assert "one category only" in asked.message(InfeasibleError, file_with({(0, 0): 5, (0, 1): 2, (0, 2): 9}), swap="A")


def test_pairs_leave_a_table_as_it_is_in_which_one_variable_varies() -> None:
    made = PAIRS.plan(file_with({(0, 0): 50, (0, 1): 2, (0, 2): 9}))
    assert not made.moves and made.details.facts["left"] == {"no records can move the other way": 1}


def test_tables_are_kept_where_a_variable_has_one_category(cps8d: Data) -> None:
    first = qd.from_frame(cps8d.frame()[:3000])
    assert first["Age"].size == 1
    made = EXACT.plan(first, keep="2-way")
    assert len(made.rows) and qd.score(first, made, ["hellinger(2-way)"])["hellinger(2-way)"] == 0


def test_a_file_without_a_small_cell_gives_an_empty_plan_that_says_so(asked: Asked) -> None:
    made = asked.plan(file_with({(0, 0): 5, (0, 1): 6, (1, 0): 7, (1, 1): 4}))
    said = made.details.facts
    assert not made.moves and said["small_cells"] == said["exposed_before"] == said["exposed_after"] == 0
    assert said["left"] == {} and said["design_loss"] == 0


def test_a_file_whose_cells_all_hold_n_records_has_no_small_cell_and_gives_an_empty_plan(asked: Asked) -> None:
    made = asked.plan(file_with({(0, 0): 3, (0, 1): 3, (1, 0): 3, (1, 1): 3}))
    assert not made.moves and made.details.facts["small_cells"] == 0


def test_when_nobody_may_take_part_nothing_is_swapped_and_every_cell_says_why(asked: Asked) -> None:
    everybody = flag("off", np.ones(sum(CELLS.values())))
    made = asked.plan(base(everybody), never="off")
    assert not made.moves
    assert sum(made.details.facts["left"].values()) == made.details.facts["small_cells"] == 2


def test_no_cell_that_can_give_leaves_every_small_cell(asked: Asked) -> None:
    # (0, 0) may give, but whoever could move the other way is in a cell of n records or in the small cell itself
    said = asked.facts(file_with({(0, 0): 9, (0, 1): 1, (1, 0): 3, (1, 1): 3}))
    assert said["camouflaged"] == 0 and sum(said["left"].values()) == 1


def test_both_small_cells_are_camouflaged_or_emptied_as_asked(asked: Asked) -> None:
    assert asked.facts()["camouflaged"] == 2 and asked.facts()["exposed_after"] == 0
    assert asked.facts(treatment="camouflage")["camouflaged"] == 2
    assert asked.facts(treatment="empty")["emptied"] == 2 and asked.facts(treatment="empty")["exposed_after"] == 0


def test_where_leaving_is_cheaper_a_cell_is_emptied(asked: Asked) -> None:
    # by total variation every move costs the same: one record leaves (0, 2), four would have to come for n = 5
    said = asked.facts(loss="total_variation", n=5, tables=[["A", "B"]])
    assert said["emptied"] == 2 and said["camouflaged"] == 0
    assert asked.facts(loss="hellinger", n=3)["camouflaged"] == 2


def test_one_pair_for_each_record_that_is_missing() -> None:
    assert sum(len(move.pairs) for move in PAIRS.plan().moves) == 3
    small = PAIRS.plan(max_pairs=1)
    assert sum(len(move.pairs) for move in small.moves) == 1
    assert small.details.facts["left"] == {"no pairs left": 1}


def test_no_more_records_move_than_so_many_pairs_have(asked: Asked) -> None:
    for most in (1, 2, 3):
        made = asked.plan(max_pairs=most)
        assert len(made.rows) <= 2 * most == 2 * made.asked
        assert sum(made.details.facts["left"].values()) > 0 or most > 1


def test_a_share_of_the_cells_is_rounded_up_but_not_beyond_an_exact_product(asked: Asked) -> None:
    data = file_with({(a, b): 30 if (a + b) % 4 else 2 for a in range(20) for b in range(20)})
    for share, expected in ((0.5, 50), (0.07, 7), (0.29, 29), (0.001, 1), (1.0, 100)):
        said = asked.facts(data, share=share)
        assert said["camouflaged"] + said["emptied"] == expected
        assert said["left"] == ({"not chosen": 100 - expected} if expected < 100 else {})


def test_tables_may_be_written_with_stars_and_twice(asked: Asked) -> None:
    assert asked.plan(tables=["A*B"]) == asked.plan(tables=[["A", "B"]])
    twice, turned = asked.facts(tables=[["A", "B"], ["A", "B"]]), asked.facts(tables=[["A", "B"], ["B", "A"]])
    assert twice["small_cells"] == turned["small_cells"] == 2
