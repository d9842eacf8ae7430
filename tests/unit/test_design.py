"""Designs of simulations: full factorial, in order, and every fault told with its place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quadrille.errors import InputError, QuadrilleError
from quadrille.papers import lemons_2014
from quadrille.simulation.design import SimulationDesign

EXAMPLES = Path(__file__).parents[2] / "examples"
Document = dict[str, Any]

GOOD: Document = {
    "design": {"replicates": 10, "seed": 1, "mechanism": ["records", "cells"], "counties": 2},
    "names": {"areas": ["tracts", "sizes"], "rates": "rate"},
    "areas": {"few": {"even": ["2 x 100"], "odd": [50, 150]}, "many": {"even": ["4 x 50"], "odd": ["3 x 20", 140]}},
    "levels": {"two": [0.8, 0.2]},
    "rates": {"low": 0.02, "high": 0.1},
    "baseline": {"rate": "high"},
}


def changed(change: Callable[[Document], object]) -> Document:
    document = copy.deepcopy(GOOD)
    change(document)
    return document


def test_every_combination_of_all_levels_is_a_setting_in_order() -> None:
    design = SimulationDesign.of(GOOD)
    assert [(f.name, f.levels, f.baseline) for f in design.factors] == [
        ("tracts", ("few", "many"), "few"),
        ("sizes", ("even", "odd"), "even"),
        ("levels", ("two",), "two"),
        ("rate", ("low", "high"), "high"),
        ("mechanism", ("records", "cells"), "records"),
    ]
    assert len(design.trials) == len({trial.levels for trial in design.trials}) == 16
    assert [trial.levels for trial in design.trials] == sorted(trial.levels for trial in design.trials)
    last = design.trials[-1]
    assert (last.areas, last.shares, last.rate, last.mechanism) == ((20, 20, 20, 140) * 2, (0.8, 0.2), 0.1, "cells")
    assert design.total == 160
    assert design.strata == tuple(factor.name for factor in design.factors)


def test_the_example_is_the_study_of_the_paper() -> None:
    read, built = SimulationDesign.read(EXAMPLES / "lemons-2014.toml"), lemons_2014.design("cells", 1000)
    assert read.identity == built.identity
    assert (read.seed, read.strata, read.factors) == (built.seed, built.strata, built.factors)
    assert len(read.trials) == 72
    assert {sum(trial.areas) for trial in read.trials} == {1_000_000}
    assert sorted({len(trial.areas) for trial in read.trials}) == [50, 80, 100]


def test_words_of_the_analysis_do_not_change_the_identity_and_settings_do() -> None:
    same = changed(lambda d: d["design"].update(title="another", strata=["rate"], seed=2))
    assert SimulationDesign.of(same).identity == SimulationDesign.of(GOOD).identity
    other = changed(lambda d: d["rates"].update(low=0.03))
    assert SimulationDesign.of(other).identity != SimulationDesign.of(GOOD).identity


BAD: list[tuple[Callable[[Document], object], str]] = [
    (lambda d: d["areas"]["few"].update(odd=[50, 0]), r"\[areas.few\] odd\[2\]: must be a whole number of 1 or more"),
    (lambda d: d["areas"]["few"].update(odd=[50, -5]), r"\[areas.few\] odd\[2\]: must be a whole number of 1 or more"),
    (lambda d: d["areas"]["few"].update(odd=[50, 1.5]), r"odd\[2\]: must be a whole number of 1 or more"),
    (lambda d: d["areas"]["few"].update(odd=["0 x 5"]), r'odd\[1\]: must be .* Got "0 x 5"'),
    (lambda d: d["areas"]["few"].update(odd=["many"]), r'odd\[1\]: must be .* Got "many"'),
    (lambda d: d["areas"]["few"].update(odd=["999999 x 5"]), "odd: has more than 50,000 entries"),
    (lambda d: d["areas"]["few"].update(odd=[]), r"odd: must be a list of the records of each area"),
    (lambda d: (d["areas"]["few"].update(odd=[50]), d["design"].update(counties=1)), "odd: there is one area only"),
    (lambda d: d["areas"]["many"].pop("odd"), r"\[areas.many\]: 'odd' is missing. The design needs every combination"),
    (lambda d: d["areas"].update(few=[1, 2]), r"\[areas\] few: must be a table with the levels of 'sizes'"),
    (lambda d: d["areas"].update(few={}), r"\[areas.few\]: there is no level of 'sizes'"),
    (lambda d: d["levels"].update(two={"a": [1, 1]}), r"\[levels\] two: is a table, and one list is wanted"),
    (lambda d: d["levels"].update(two=[0, 0]), r"\[levels\] two: the shares sum to zero"),
    (lambda d: d["levels"].update(two=[0.5, -0.5]), r"\[levels\] two\[2\]: must be a number of 0 or more"),
    (lambda d: d["levels"].update(two=[1.0]), "two: a variable has two levels or more"),
    (lambda d: d["levels"].update(two=[1.0, float("nan")]), r"two\[2\]: must be a number of 0 or more"),
    (lambda d: d["rates"].update(low=0), r"\[rates\] low: must be a number in \(0, 1\]"),
    (lambda d: d["rates"].update(low=1.5), r"\[rates\] low: must be a number in \(0, 1\]"),
    (lambda d: d["rates"].update(low=[0.1]), r"\[rates\] low: must be a number in \(0, 1\]"),
    (lambda d: d["rates"].update(low=1e-9), "setting few, even, low, records: .* gives no pair at all"),
    (lambda d: d["rates"].update(high=0.02), "are the same table, rate and mechanism"),
    (lambda d: d.update(rates={}), r"the section \[rates\] is missing or empty"),
    (lambda d: d.pop("areas"), r"the section \[areas\] is missing or empty"),
    (lambda d: d["rates"].update({" ": 0.1}), "a level of 'rate' has no name"),
    (lambda d: d["names"].update(levels="tracts"), r"\[names\]: two factors have the name 'tracts'"),
    (lambda d: d["names"].update(levels="replicate"), "'replicate' is a column of the results"),
    (lambda d: d["names"].update(levels="mechanism"), "'mechanism' is a column of the results"),
    (lambda d: d["names"].update(areas=["a", "a"]), r'\[names\] areas\[2\]: "a" is listed twice'),
    (lambda d: d["names"].update(rates=["a", "b"]), "rates are the levels of one factor"),
    (lambda d: d["names"].update(area="a"), "There is no setting 'area'. Did you mean: 'areas'?"),
    (lambda d: d["design"].update(mechanism="households"), r'\[design\] mechanism: must be "records" or "cells"'),
    (lambda d: d["design"].update(mechanism=["cells", "x"]), r"\[design\] mechanism\[2\]: must be"),
    (lambda d: d["design"].update(mechanism=[]), r"\[design\] mechanism: must be a list of mechanisms, at least 1"),
    (lambda d: d["design"].pop("replicates"), "'replicates' is missing, as in replicates = 1000"),
    (lambda d: d["design"].update(replicates=0), "replicates: must be a whole number from 1"),
    (lambda d: d["design"].update(seed=-1), "seed: must be a whole number of 0 or more"),
    (lambda d: d["design"].update(counties=0), "counties: must be a whole number from 1"),
    (lambda d: d["design"].update(counties=40_000), r"counties: \d+,000 areas in all; 50,000 are the most"),
    (lambda d: d["design"].update(strata=["x"]), r"strata\[1\]: must be one of the factors tracts, sizes"),
    (lambda d: d["baseline"].update(rate="none"), r"\[baseline\] rate: must be one of the levels low, high"),
    (lambda d: d["baseline"].update(rates="low"), r"\[baseline\]: There is no setting 'rates'"),
    (lambda d: d.update(rate={}), "There is no section 'rate'. Did you mean: 'rates'?"),
    (lambda d: d["rates"].update({f"r{i}": (i + 1) / 10**5 for i in range(3000)}), "24,016 settings; 20,000 are"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_a_fault_is_told_with_its_place(change: Callable[[Document], object], message: str) -> None:
    with pytest.raises(QuadrilleError, match=f"^the design.*{message}"):
        SimulationDesign.of(changed(change))


def test_more_pairs_than_there_can_be_are_told_with_their_setting() -> None:
    document = changed(lambda d: (d["areas"]["few"].update(odd=[20, 500]), d["rates"].update(high=0.9)))
    document["design"]["counties"] = 1
    with pytest.raises(InputError, match=r"setting few, odd, high, records: .*the maximum is 20"):
        SimulationDesign.of(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[design\n", r"line 1, column 8: this is not valid TOML"),
        ("[rates]\nlow = 0.1\nlow = 0.2\n", r"line 3.*: this is not valid TOML: Cannot overwrite a value"),
        ("design = 3\n", "design must be a section"),
    ],
)
def test_a_file_that_is_no_design_is_told_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "design.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        SimulationDesign.read(path)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read the design .*No such file"):
        SimulationDesign.read(tmp_path / "none.toml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8 text"):
        SimulationDesign.read(tmp_path / "binary")
