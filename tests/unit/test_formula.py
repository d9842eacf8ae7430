"""Models as text: what is understood, what is refused and how, and the columns that variables become."""

from __future__ import annotations

import numpy as np
import pytest
from survey_case import survey

import quadrille as qd
from quadrille.data import Column, Data
from quadrille.errors import InputError
from quadrille.expressions import Model, Term, column_scales
from quadrille.measure.base import Address
from strategies import column, numbers


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("score ~ age", Model("score", (Term("age"),))),
        (" score~age+C(race) ", Model("score", (Term("age"), Term("race", classes=True)))),
        ("`hours-per-week` ~ C(`a+b`) + Age group", Model("hours-per-week", (Term("a+b", True), Term("Age group")))),
        ("y ~ C( race )", Model("y", (Term("race", classes=True),))),
        ("Cash ~ Class", Model("Cash", (Term("Class"),))),
    ],
)
def test_a_model_is_read_and_written(text: str, model: Model) -> None:
    assert Model.parse(text) == model
    assert Model.parse(str(model)) == model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("score", "one '~'"),
        ("a ~ b ~ c", "one '~'"),
        ("~ age", "lacks a name"),
        ("score ~ ", "lacks a name"),
        ("score ~ age + ", "lacks a name"),
        ("score ~ C()", "lacks a name"),
        ("score ~ age * sex", "no interactions"),
        ("score ~ age:sex", "no interactions"),
        ("score ~ hours-per-week", "backticks"),
        ("score ~ log(age)", "not understood"),
        ("score ~ 1 + age", "intercept"),
        ("score ~ 0 + age", "intercept"),
        ("score ~ age + age", "twice"),
        ("score ~ age + C(age)", "twice"),
        ("score ~ age + score", "own model"),
    ],
)
def test_a_model_that_is_not_understood_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Model.parse(text)


def test_an_address_holds_models_conditions_and_options() -> None:
    call = Address.parse("ased_reg(score ~ age + C(race); math ~ `a;b~c`, where=Sex=Male)")
    assert [str(model) for model in call.models] == ["score ~ age + C(race)", "math ~ `a;b~c`"]
    assert call.margin is None
    assert call.where is not None
    assert call.explicit
    assert not Address.parse("ased_reg").explicit
    assert not Address.parse("r_ased(max_levels=40)").explicit
    assert Address.parse("hd1(`a~b`*c)").margin == ("a~b", "c")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ased_reg(score ~ agee)", "agee"),
        ("ased_reg(score ~ educ)", r"C\(educ\)"),
        ("ased_reg(race ~ age)", "numeric outcome"),
        ("ased_reg(score ~ C(income))", "income"),
        ("ased_reg(score*age)", "model"),
        ("ased_reg(2-way)", "model"),
        ("hd1(score ~ age)", "backticks"),
        ("r_ased(2-way)", "name its variables"),
        ("hd3(2-way)", "name its variables"),
        ("hd1(income)", "numeric"),
        ("c_ard(race)", "two variables"),
        ("r_ased(age*age)", "twice"),
        ("hd2(min_cell=0)", "min_cell"),
        ("hd1(min_cell=5)", "option"),
    ],
)
def test_a_call_that_does_not_fit_its_measure_is_refused(address: str, message: str) -> None:
    data = survey(40)
    with pytest.raises(qd.QuadrilleError, match=message):
        qd.score(data, qd.RandomSwap("race", pairs=5, seed=1).plan(data), [address])


def labels(*columns: Column, most: int = 16) -> tuple[list[str], tuple[str, ...]]:
    data = Data(columns)
    scales, left_out = column_scales(data, tuple(data.columns), most)
    return [scale.label for scale in scales], left_out


def test_variables_become_columns_by_their_kind_and_levels() -> None:
    assert labels(column("A", [0, 1, 0, 1])) == (["A=A0"], ())
    assert labels(column("A", [0, 1, 2, 1])) == (["A=A0", "A=A1", "A=A2"], ())
    assert labels(column("A", [0, 1, 2, 1], kind="ordinal")) == (["A"], ())
    assert labels(column("A", [0, 1, 2, 1]), column("B", [0, 1, 0, 1]), most=2) == (["B=B0"], ("A",))
    assert labels(numbers("x", [1.0, 2.0])) == (["x"], ())
    binary = Column(qd.Variable("b", "nominal", (0, 1)), np.array([0, 1, 1], np.uint8))
    assert labels(binary) == (["b"], ())
    other = Column(qd.Variable("b", "nominal", (1, 2)), np.array([0, 1, 1], np.uint8))
    assert labels(other) == (["b=1"], ())


def test_ordinal_variables_enter_with_their_numbers_or_else_their_positions() -> None:
    data = survey(20)
    scales, _ = column_scales(data, ("age", "educ"), 16)
    assert scales[0].values == (20, 30, 45, 60, 80)
    assert scales[1].values == (0, 1, 2, 3)
