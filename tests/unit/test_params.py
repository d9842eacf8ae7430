"""A parameter is declared once: its checks, its JSON Schema and its option say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import quadrille as qd
from quadrille.cli.options import method_options, options_of
from quadrille.errors import ParameterError
from quadrille.params import Param
from quadrille.recipe import Recipe, find_method, known_methods

FROZEN = json.loads((Path(__file__).parents[1] / "golden/frozen/plans.json").read_text())
METHODS = [method for method in known_methods().values() if method.__module__.startswith("quadrille.")]
ALL_VERSIONS = [version for method in METHODS for version in method.versions().values()]
schema = qd.schema
LEAST: dict[str, dict[str, Any]] = {
    "RandomSwap": {"swap": ["A"], "rate": 0.5},
    "PermutationSwap": {"swap": ["A"], "rate": 0.5},
    "ControlledSwap": {"swap": ["A"], "targets": 0.1},
    "DesignedSwap": {},
    "RankSwap": {"swap": ["A"], "window": 0.5},
    "CycleSwap": {"flag": "A"},
    "TargetedSwap": {"risk": ["A"], "similar": [["A"]]},
    "PrivateSwap": {"swap": ["A"], "chance": 0.5},
}
"""The parameters that a recipe cannot do without."""
TRIED: tuple[object, ...] = (
    *(2**31 - 1, 2**31, 2**63, 10**20),
    *(0, 1, 2, 3, -1, 0.3, 0.5, 1.5, -0.5, True, False, "A", "", "all", "pairs", "nothing", "random"),
    *(["A"], ["A", "A"], [], [3], [["A", "B"]], [["A"], []], {"A": ["B"]}, {"distance": 1.0}, {"hellinger": 1.0}),
    *({"hellinger": 0}, {"distance": -1}, {}, None, "0" * 64, "g" * 64, "2-way", "A*B", ["2-way", ["A", "B"]], [" "]),
    *(["2-way", 0], [["A", " "]], [[["A"]]], " ", 1000, 1001),
)


CASES = [
    pytest.param(method, name, id=f"{method.__name__}.{name}") for method in ALL_VERSIONS for name in method.params()
]


@pytest.mark.parametrize("text", sorted({row["recipe"] for row in FROZEN}))
def test_the_schema_takes_every_recipe_that_was_ever_written(text: str) -> None:
    document = json.loads(text)
    method = find_method(document["method"]).versions()[document["version"]]
    Draft202012Validator(method.schema()).validate(document)
    assert Recipe.from_json(text).to_json() == text


@pytest.mark.parametrize("method", ALL_VERSIONS)
def test_the_schema_is_a_schema_and_refuses_what_it_does_not_know(method: type[Recipe]) -> None:
    made = method.schema()
    Draft202012Validator.check_schema(made)
    valid = {"method": method.method_name, **LEAST[method.method_name]}
    assert Draft202012Validator(made).is_valid(valid)
    assert not Draft202012Validator(made).is_valid({**valid, "swop": ["A"]})
    assert not Draft202012Validator(made).is_valid({**valid, "version": method.version + 1})
    assert (made == schema(method.word())) == (method in METHODS), "a name stands for the version of today"


def accepted(method: type[Recipe], name: str, value: object) -> bool:
    """Whether a recipe takes a value by itself; that it does not go with another parameter is no fault of the value."""
    given = {**LEAST[method.method_name], name: value}
    if name == "records":
        given |= {"rate": None, "kind": "cycles"}  # pairs take an even number
    if name == "pairs":
        given["rate"] = None
    if name == "epsilon":
        given["chance"] = None
    try:
        method(**given)
    except ParameterError as error:
        return error.parameter != name
    return True


@pytest.mark.parametrize(("method", "name"), CASES)
def test_a_value_that_the_schema_refuses_is_refused_by_the_recipe_and_the_other_way_round(
    method: type[Recipe], name: str
) -> None:
    param = method.params()[name]
    form = Draft202012Validator(method.schema()["properties"][param.written])
    # What only Python takes: a name for a list of one, whole numbers for numbers and the other way round.
    for value in TRIED:
        if isinstance(value, str) and param.kind in ("columns", "rules", "column sets"):
            continue
        if form.is_valid(value) and name != "rules":
            assert accepted(method, name, value), value
        elif not isinstance(value, bool) and value is not None and value not in ({}, [], "") and name != "rules":
            assert not accepted(method, name, value), value


@pytest.mark.parametrize(("method", "name"), CASES)
def test_every_parameter_says_what_it_means_and_has_an_option(method: type[Recipe], name: str) -> None:
    param = method.params()[name]
    assert param.help and param.kind != Param.kind
    (option,) = [each for each in method_options(method) if each.opts == [f"--{param.option}"]]
    assert option.help and len(option.help) < 110
    assert options_of(method)[param.option] is param


def test_a_bad_parameter_tells_its_name_what_it_must_be_and_what_it_got() -> None:
    with pytest.raises(ParameterError) as caught:
        qd.RandomSwap(["Edu"], rate=3)
    error = caught.value
    assert (error.parameter, error.must, error.value) == ("rate", "a number in (0, 1]", 3)
    assert str(error) == "The 'rate' parameter of RandomSwap must be a number in (0, 1]. Got 3."


def test_a_recipe_written_by_hand_needs_no_version_and_no_seed() -> None:
    made = Recipe.from_json('{"method": "random", "swap": ["Edu"], "rate": 0.02}')
    assert made == qd.RandomSwap(["Edu"], rate=0.02, seed=made.parameters()["seed"])
    assert len(made.parameters()["seed"]) == 64


def test_a_method_is_found_by_its_name_its_short_name_and_its_place() -> None:
    assert find_method("DesignedSwap") is find_method("designed") is find_method("quadrille.swap.designed:DesignedSwap")
    with pytest.raises(qd.QuadrilleError, match="Did you mean: 'RandomSwap'"):
        find_method("RandomSwop")
    for place, said in (("nowhere:Swap", "cannot be imported"), ("json:loads", "is not a method")):
        with pytest.raises(qd.QuadrilleError, match=said):
            find_method(place)


COUNTS = [(method, name) for method in METHODS for name, param in method.params().items() if param.kind == "count"]


@pytest.mark.parametrize(("method", "name"), COUNTS, ids=lambda each: each if isinstance(each, str) else each.word())
@pytest.mark.parametrize("value", [2**31, 2**63, 10**20])
def test_a_count_beyond_the_most_records_of_a_file_is_refused_before_any_sum_of_it_can_wrap(
    method: type[Recipe], name: str, value: int
) -> None:
    with pytest.raises(ParameterError, match="2,147,483,647") as caught:
        method(**LEAST[method.method_name] | {name: value})
    assert caught.value.parameter == name
