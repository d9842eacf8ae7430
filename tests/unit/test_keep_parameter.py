"""What `keep` may say: each way of writing it is one text in the recipe, which names the same tables again."""

from __future__ import annotations

import json

import pytest

import quadrille as qd
from quadrille.errors import ParameterError
from quadrille.swap.kept import kept_tables, named_variables

ODD = ["Age*Sex", "2-way", "it's", "a `b`", "logit(x)", "plain", "with blank", "x, y"]


def keep(value: object) -> object:
    return qd.DesignedSwap(keep=value, seed=1).parameters()["keep"]


def test_one_thing_is_a_text_and_several_are_a_tuple() -> None:
    assert keep(3) == keep(["3-way"]) == keep(" 3-way ") == "3-way"
    assert keep([["Age", "Sex"], 1]) == ("Age*Sex", "1-way")
    assert json.loads(qd.DesignedSwap(keep=[["Age", "Sex"], 1], seed=1).to_json())["keep"] == ["Age*Sex", "1-way"]


@pytest.mark.parametrize("name", ODD)
def test_a_variable_of_any_name_can_stand_in_a_list(name: str) -> None:
    made = keep([[name, "Pay"]])
    assert named_variables(made) == {name, "Pay"}  # type: ignore[arg-type]
    assert kept_tables(made, ["Pay", name, "Other"]) == (("Pay", name), ("Other",))  # type: ignore[arg-type]
    assert named_variables(keep([[name]])) == {name}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [0, -1, True, 1.5, "", " ", [], [[]], [[""]], [["A", " "]], [[["A"]]], {"A": 1}, None]
)
def test_anything_else_is_refused_with_examples(value: object) -> None:
    with pytest.raises(ParameterError, match='keep\' parameter of DesignedSwap must be like "2-way", 2, "A\\*B\\*C"'):
        keep(value)


def test_words_of_the_command_line_are_split_at_commas_outside_quotes() -> None:
    read = qd.DesignedSwap.params()["keep"].read
    assert read(["2-way, Age*Sex", "`a, b`*`c d`"]) == ["2-way", "Age*Sex", "`a, b`*`c d`"]
    assert named_variables(keep(read(["`a, b`*`c d`"]))) == {"a, b", "c d"}  # type: ignore[arg-type]


def test_a_grid_takes_one_value_or_several() -> None:
    several = qd.grid(qd.DesignedSwap, keep=["1-way", ["2-way", "Age*Edu*Sex"]], seed=1)
    assert [recipe.parameters()["keep"] for recipe in several] == ["1-way", ("2-way", "Age*Edu*Sex")]
