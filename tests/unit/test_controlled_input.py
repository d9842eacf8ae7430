"""What controlled swapping refuses, with one clear message that shows no data value, and what it accepts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from controlled_strategies import flag
from quadrille.data import Column, Data
from quadrille.errors import InputError, OverlapError, ParameterError, QuadrilleError
from strategies import column, numbers

N = 12
VALUE = 7654.25  # stands for a confidential value, and must not be seen in any message


def base(*more: Column) -> Data:
    """Twelve records: A and B to swap, Z a boundary, S a stratum, free text, an identifier and a weight."""
    rows = np.arange(N)
    columns = [
        column("A", rows % 3, kind="ordinal"),
        column("B", rows % 4, kind="ordinal"),
        column("Z", rows % 2),
        column("S", rows // 6),
        numbers("x", rows * 1.5),
        Column(qd.Variable("code", "nominal", tuple(range(N)), role="id"), rows.astype(np.uint8)),
    ]
    return Data([*columns, *more, numbers("w", 1.0 + rows, role="weight")])


def values_with(bad: float) -> list[float]:
    return [1.0 + i for i in range(N - 1)] + [bad]


def plan(data: Data | None = None, /, **settings: object) -> qd.Plan:
    return qd.ControlledSwap(**{"swap": "A", "targets": 0.25, "seed": 1, **settings}).plan(data or base())


def message(expected: type[QuadrilleError], data: Data | None = None, /, **settings: object) -> str:
    """The message of the error, after checking what every message must be like."""
    with pytest.raises(QuadrilleError) as caught:
        plan(data, **settings)
    text = str(caught.value)
    assert isinstance(caught.value, expected), text
    assert "\n" not in text and text.endswith((".", "?"))
    assert "7654" not in text and "7,654" not in text
    return text


# ---- parameters that are wrong by themselves ----


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("targets", 0.5),
        ("targets", -0.1),
        ("targets", 1),
        ("targets", float("nan")),
        ("targets", True),
        ("targets", None),
        ("targets", [0.1]),
        ("swap", []),
        ("swap", ["A", "A"]),
        ("swap", 3),
        ("size", 2),
        ("size", True),
        ("size", ["x"]),
        ("must", 3),
        ("must", ["Z"]),
        ("never", True),
        ("bias", ["A"]),
        ("method", "fair"),
        ("matching", "best"),
        ("on_missing", "drop"),
        ("strict", 1),
        ("strict", "yes"),
        ("boundary", {"Z"}),
        ("linked", ["B"]),
        ("linked", {"A": []}),
        ("linked", {"A": ["B", "B"]}),
        ("linked", {1: ["B"]}),
        ("seed", -1),
    ],
)
def test_a_bad_parameter_is_named_with_its_range(parameter: str, value: object) -> None:
    text = message(ParameterError, **{parameter: value})
    assert text.startswith(f"The '{parameter}' parameter of ControlledSwap must be ")


@pytest.mark.parametrize(
    "cost",
    [{"distance": -1}, {"length": 1}, {}, {"bias": 0}, 1, {"bias": "much"}, {"weight": float("nan")}, {"weight": True}],
)
def test_a_bad_cost_is_refused(cost: object) -> None:
    assert "'cost' parameter" in message(ParameterError, matching="optimal", cost=cost)


def test_a_cost_without_the_optimal_matching_is_refused() -> None:
    assert "optimal" in message(ParameterError, cost={"bias": 1})


@pytest.mark.parametrize(
    "settings",
    [
        {"boundary": "A"},
        {"linked": {"A": ["A"]}},
        {"boundary": "Z", "linked": {"A": ["Z"]}},
        {"swap": ["A", "B"], "linked": {"A": ["B"]}},
        {"must": "Z", "never": "Z"},
    ],
)
def test_a_column_with_two_parts_is_refused_and_named(settings: dict[str, object]) -> None:
    assert re.match(
        r"Column '[ABZ]' is (in )?both '\w+' and '\w+' of ControlledSwap", message(OverlapError, **settings)
    )


def test_a_variable_linked_to_two_parents_is_refused() -> None:
    assert "linked" in message(ParameterError, swap=["A", "B"], linked={"A": ["x"], "B": ["x"]})


def test_a_variable_linked_to_a_column_that_is_not_swapped_is_refused() -> None:
    assert "'B', which is not a swap variable" in message(ParameterError, linked={"B": ["x"]})


@pytest.mark.parametrize(
    "settings",
    [
        {"swap": ["A", "nosuch"]},
        {"targets": "nosuch"},
        {"size": "nosuch"},
        {"must": "nosuch"},
        {"never": "nosuch"},
        {"stratum": ["S", "nosuch"]},
        {"sort": "nosuch"},
        {"boundary": "nosuch"},
        {"bias": "nosuch"},
        {"linked": {"A": ["nosuch"]}},
    ],
)
def test_a_column_that_is_not_there_is_named_with_the_parameter(settings: dict[str, object]) -> None:
    (parameter,) = settings
    text = message(InputError, **settings)
    assert "There is no column 'nosuch'" in text and f"'{parameter}' of ControlledSwap" in text


# ---- columns that cannot serve ----


@pytest.mark.parametrize("bad", [0.0, -VALUE, np.nan, np.inf])
def test_sizes_must_be_above_0(bad: float) -> None:
    text = message(InputError, base(numbers("risk", values_with(bad))), size="risk")
    assert "'risk'" in text and "1 rows" in text and "size" in text


def test_sizes_of_never_records_do_not_matter() -> None:
    last = flag("off", np.arange(N) == N - 1)
    for bad in (0.0, -1.0, np.nan, np.inf):
        assert len(plan(base(numbers("risk", values_with(bad)), last), size="risk", never="off").pairs)


@pytest.mark.parametrize("sizes", [[1e308] * N, [5e-324] * N])
def test_sizes_beyond_the_range_of_numbers_are_called_sizes_or_work(sizes: list[float]) -> None:
    data = base(numbers("risk", sizes))
    try:
        drawn = plan(data, size="risk").details.rows["targets"]
    except InputError as error:
        assert "size" in str(error).lower() and "weight" not in str(error).lower()
    else:
        assert len(drawn) == 3


def test_a_text_column_is_no_size_and_no_share() -> None:
    for parameter in ("size", "targets"):
        assert "must hold numbers" in message(InputError, **{parameter: "Z"})


@pytest.mark.parametrize("bad", [np.nan, -VALUE, np.inf])
def test_weights_must_be_numbers_of_0_or_more(bad: float) -> None:
    with pytest.raises(InputError, match=r"'w'.* in 1 rows") as caught:
        Data([column("A", np.arange(N) % 3), numbers("w", values_with(bad), role="weight")])
    assert "7654" not in str(caught.value)


@pytest.mark.parametrize("bad", [0.5, VALUE, -0.1, np.nan])
def test_a_column_of_shares_must_lie_in_the_range(bad: float) -> None:
    text = message(InputError, base(numbers("share", [0.2] * (N - 1) + [bad])), targets="share")
    assert "'share'" in text and "1 rows" in text


def test_a_column_of_shares_must_be_constant_within_each_stratum() -> None:
    data = base(numbers("share", [0.1] * 6 + [0.3] * 6))
    assert "varies within 1 of 1 strata" in message(InputError, data, targets="share")
    assert "varies within 2 of 2 strata" in message(InputError, data, targets="share", stratum="Z")
    details = plan(data, targets="share", stratum="S").details
    assert [row["asked"] for row in details.facts["strata"]] == [1, 2]


@pytest.mark.parametrize("parameter", ["must", "never"])
def test_must_and_never_are_true_or_false_in_every_row(parameter: str) -> None:
    settings = {"targets": 0.25, parameter: "flag"}
    for values in ([VALUE] * N, [1.0, 0.0] * 5 + [np.nan, 0.0], [1.0, 0.0] * 5 + [0.5, 0.0]):
        assert f"'flag', given as '{parameter}'" in message(InputError, base(numbers("flag", values)), **settings)
    names = Column(qd.Variable("flag", "nominal", ("x7654", "y")), np.arange(N, dtype=np.uint8) % 2)
    assert "true or false" in message(InputError, base(names), **settings)
    empty = Column(qd.Variable("flag", "nominal", (False, True)), np.arange(N, dtype=np.uint8) % 3, nullable=True)
    assert "4 rows" in message(InputError, base(empty), **settings)


@pytest.mark.parametrize(
    "words", [(False, True), (0, 1), ("0", "1"), ("false", "true"), ("No", "Yes"), ("FALSE", "TRUE")]
)
def test_the_usual_ways_to_write_true_and_false_are_understood(words: tuple[object, object]) -> None:
    chosen = np.isin(np.arange(N), [2, 5])
    data = base(Column(qd.Variable("flag", "nominal", words), chosen.astype(np.uint8)))
    assert plan(data, targets=0, must="flag").details.rows["targets"].tolist() == [2, 5]


def test_a_record_cannot_be_must_and_never() -> None:
    both = base(flag("on", np.arange(N) < 4), flag("off", np.arange(N) > 1))
    assert message(InputError, both, must="on", never="off").startswith("2 records are in both 'must' and 'never'")


@pytest.mark.parametrize("settings", [{"targets": 0}, {"targets": 0.01}, {"targets": 0.4, "never": "all"}])
def test_no_target_at_all_is_an_error(settings: dict[str, object]) -> None:
    text = message(ParameterError, base(flag("all", np.ones(N))), **settings)
    assert "no target" in text


def test_a_numeric_swap_variable_or_boundary_is_refused() -> None:
    assert "'x' is numeric" in message(InputError, swap=["A", "x"])
    assert "'x' is numeric" in message(InputError, boundary="x")


@pytest.mark.parametrize("settings", [{"swap": "w"}, {"linked": {"A": ["w"]}}])
def test_the_weight_is_never_swapped(settings: dict[str, object]) -> None:
    assert "'w' is the weight" in message(InputError, **settings)


@pytest.mark.parametrize("settings", [{"swap": "code"}, {"linked": {"A": ["code"]}}])
def test_an_identifier_is_never_swapped(settings: dict[str, object]) -> None:
    assert "'code' has the role id" in message(InputError, **settings)


def test_a_numeric_bias_variable_must_be_complete() -> None:
    assert "'gaps' is missing in 1 rows" in message(InputError, base(numbers("gaps", values_with(np.nan))), bias="gaps")
    assert len(plan(bias="x").pairs) == 3


def test_a_bias_variable_must_be_finite() -> None:
    text = message(InputError, base(numbers("far", values_with(np.inf))), bias="far")
    assert "'far'" in text and "1 rows" in text


# ---- the order of categories ----


def csv(folder: Path, text: list[str], codebook: str | None = None) -> Data:
    path = folder / "file.csv"
    path.write_text("\n".join(["band,n", *(f"{value},{i}" for i, value in enumerate(text))]) + "\n")
    if codebook is None:
        return qd.read(path)
    (folder / "codebook.toml").write_text(codebook)
    return qd.read(path, codebook=folder / "codebook.toml")


def test_text_in_no_declared_order_is_refused_unless_there_are_two_categories(tmp_path: Path) -> None:
    data = csv(tmp_path, ["secret low", "mid", "high"] * 4)
    text = message(InputError, data, swap="band")
    assert "'band'" in text and "order" in text and "codebook" in text and "secret" not in text
    assert "order" in message(InputError, data, swap="n", bias="band")
    assert len(plan(csv(tmp_path, ["f", "m"] * 6), swap="band").pairs) == 3
    declared = '[columns.band]\nkind = "ordinal"\ncategories = ["secret low", "mid", "high"]\n'
    assert len(plan(csv(tmp_path, ["secret low", "mid", "high"] * 4, declared), swap="band").pairs) == 3


def test_whole_numbers_read_from_a_file_are_in_numeric_order(tmp_path: Path) -> None:
    """The neighbours of 2 are 0 and 10, of -1 only 0: text order would say otherwise."""
    data = csv(tmp_path, ["10", "2", "-1", "0", "10", "2", "-1", "0", "2", "-1", "0", "10"])
    value = pl.Series(data.frame()["band"]).to_list()
    order = {-1: (0,), 0: (-1, 2), 2: (0, 10), 10: (2,)}
    for seed in range(30):
        made = plan(data, swap="band", targets=0.1, seed=seed)
        for t, d in made.pairs.tolist():
            assert value[d] in order[value[t]]


def test_the_bias_is_measured_in_numeric_codes_and_else_in_positions() -> None:
    codes = np.array([1, 0, 2], np.uint8)
    rest = [flag("T", [1, 0, 0]), numbers("w", [5.0, 2.0, 4.0], role="weight")]
    numeric = Data([Column(qd.Variable("A", "ordinal", (1, 2, 30)), codes), *rest])
    text = Data([Column(qd.Variable("A", "ordinal", ("a", "b", "c")), codes), *rest])
    wide = plan(numeric, targets=0, must="T")
    assert wide.pairs.tolist() == [[0, 1]] and wide.details.facts["bias"] == 3
    narrow = plan(text, targets=0, must="T")
    assert narrow.pairs.tolist() == [[0, 2]] and narrow.details.facts["bias"] == 1


def test_a_frame_is_refused_with_a_hint() -> None:
    with pytest.raises(InputError, match="from_frame"):
        qd.ControlledSwap("A", targets=0.1).plan(pl.DataFrame({"A": [1, 2]}))
