"""What `inspect` says about a file: reasons that are true, and hints that can be acted on."""

from __future__ import annotations

import warnings
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyreadstat
import pytest

import quadrille as qd
from quadrille.codebook import Codebook, Variable
from quadrille.data import Data
from quadrille.inspect import called_area, called_weight, checks, reason
from quadrille.io.frames import from_frame
from quadrille.release.dossier import ReleaseWarning

N = 100


def hints(columns: dict[str, object], *book: Variable) -> str:
    return "\n".join(checks(from_frame(pl.DataFrame(columns), codebook=Codebook(book))))


def why(column: pl.Series) -> str:
    data = from_frame(pl.DataFrame([column]))
    return reason(data[column.name], data, ())


@pytest.mark.parametrize("dtype", [pl.String, pl.Int64, pl.Float64, pl.Date])
def test_a_column_without_any_value_is_called_so(dtype: type[pl.DataType]) -> None:
    empty = pl.Series("x", [None] * N, dtype=dtype)
    assert why(empty) == "every field is missing, so there is nothing to tell the kind by"
    assert "Column 'x' has no value in any record." in hints({"x": empty})


def test_a_column_of_one_value_and_gaps_is_not_called_constant() -> None:
    assert "the same value in every record" not in hints({"x": ["a", None] * 50})
    assert "the same value in every record" in hints({"x": ["a"] * N})


@pytest.mark.parametrize("name", ["email", "SSN_text", "surname"])
def test_nobody_is_advised_to_group_identifiers(name: str) -> None:
    text = hints({name: [f"v{i // 2}" for i in range(N)], "x": [0, 1] * 50})
    assert f"left out of releases: {name!r}. To release one on purpose" in text
    assert "Group" not in text
    assert "Recode" not in text


def test_what_the_user_declares_is_not_told_again() -> None:
    data = from_frame(pl.DataFrame({"id": range(N)}), codebook=Codebook((Variable("id", "numeric", role="id"),)))
    assert checks(data, ["id"]) == []
    assert len(checks(data)) == 1


@pytest.mark.parametrize("name", ["x", "income"])
def test_amounts_that_all_differ_are_to_be_rounded_and_numbers_of_records_left_out(name: str) -> None:
    assert "Round it before a release." in hints({name: np.arange(N)[::-1] / 7})
    whole = hints({name: np.arange(N)[::-1]})
    assert ("Round it" in whole) == (name == "income")
    assert ('Give it the role "id"' in whole) == (name == "x")


@pytest.mark.parametrize("labels", [("same", "same", "other"), ("same", "other", "same")])
def test_two_categories_with_one_label_are_pointed_out(labels: tuple[str, ...]) -> None:
    cells = [1, 2, 3] * 20
    text = hints({"x": cells}, Variable("x", "ordinal", (1, 2, 3), labels))
    assert "Categories of 'x' have the same label" in text
    assert "same label" not in hints({"x": cells}, Variable("x", "ordinal", (1, 2, 3), ("same", "", "")))


@pytest.mark.parametrize(
    "name", ["weight", "hhweight", "wgt_final", "Gewicht", "poids", "peso", "W", "w1", "finalwt", "fnlwgt", "pWeight"]
)
def test_weights_are_suggested_in_several_languages(name: str) -> None:
    text = hints({name: np.arange(N) * 0.37, "x": [0, 1] * 50})
    assert f"Column {name!r} is called like a weight." in text
    assert 'role = "weight"' in text


def test_a_weight_next_to_a_height_is_that_of_a_body_and_hides_no_other() -> None:
    body = {"weight0": np.arange(N) * 0.37, "height0": np.arange(N) * 0.7}
    assert "called like a weight" not in hints(body)
    assert "Column 'wgt' is called like a weight." in hints({**body, "wgt": np.arange(N) * 0.3})


@pytest.mark.parametrize("name", ["birth_weight", "weight_kg", "Körpergewicht", "overweight", "wage", "two", "growth"])
def test_other_things_are_not_called_weights(name: str) -> None:
    assert not called_weight(name)


@pytest.mark.parametrize(
    "name",
    ["Bundesland", "Kreis", "canton", "Kanton", "provincia", "province", "region", "county", "plz", "home_state"],
)
def test_areas_are_suggested_in_several_languages(name: str) -> None:
    assert called_area(name)
    assert f"Column {name!r} is called like areas." in hints({name: [f"a{i % 4}" for i in range(N)]})


@pytest.mark.parametrize("name", ["reward", "status", "estate", "statement", "blocked", "native-country", "forward"])
def test_other_things_are_not_called_areas(name: str) -> None:
    assert not called_area(name)


@pytest.mark.parametrize("role", [None, "geography"])
def test_areas_that_are_not_nested_are_pointed_out_with_and_without_the_role(role: str | None) -> None:
    coarse = ["a", "b"] * 50
    fine = [f"{area}{i % 5 // 2}" for i, area in enumerate(coarse)]
    book = [Variable(name, role="geography") for name in ("region", "county")] if role else []
    assert "add: --geography region,county" in hints({"region": coarse, "county": fine}, *book)
    fine[0] = fine[1]
    assert "are not nested: 1 area of 'county' lies in several of 'region'" in hints(
        {"region": coarse, "county": fine}, *book
    )
    fine[2], fine[5] = fine[3], fine[4]
    assert "areas of 'county' lie in several" in hints({"region": coarse, "county": fine}, *book)


def test_the_measure_of_spss_is_kept_for_text_and_named_when_it_is_not_followed(tmp_path: Path) -> None:
    path, table = tmp_path / "in.sav", pl.DataFrame({"size": ["L", "M", "S", "S"] * 20, "age": [1.0, 2.0] * 40})
    table = table.with_columns(pay=np.arange(80) * 1.5)
    measures = {"size": "ordinal", "age": "scale", "pay": "scale"}
    pyreadstat.write_sav(table.to_pandas(), str(path), variable_measure=measures)  # pyright: ignore[reportArgumentType]
    data = qd.read(path)
    reasons = {name: reason(data[name], data, ()) for name in data.columns}
    assert data["size"].variable.kind == "ordinal"
    assert reasons["size"] == "SPSS calls it ordinal"
    assert "The order of the categories is missing for 'size'" in "\n".join(checks(data))
    assert reasons["age"].startswith("whole numbers, 2 different")
    assert reasons["age"].endswith("; SPSS calls it scale")
    assert reasons["pay"] == "SPSS calls it scale"


@pytest.mark.parametrize(
    ("name", "cells", "expected"),
    [
        ("ssn", list(range(N)), "called like a name, an address or a number of a person: left out of releases"),
        ("caseid", list(range(N)), "numbers with many different values, called like an identifier: left out"),
        ("caseid", [f"c{i}" for i in range(N)], "text with many different values, called like an identifier"),
        ("x", [f"c{i}" for i in range(N)], "text that is different in almost every record"),
        ("x", list(range(N)), "numbers that tell records apart: running"),
        ("mobile", list(range(N)), "called like a name, an address or a number of a person"),
        ("x", [2**60 + i for i in range(N)], "numbers that tell records apart: running or very large ones"),
    ],
)
def test_the_reason_for_an_identifier_is_the_one_it_was_taken_for(
    name: str, cells: list[object], expected: str
) -> None:
    assert why(pl.Series(name, cells)).startswith(expected)


# --- weights, repeated identifiers, and releases that hide little ---


def _survey(**columns: object) -> pl.DataFrame:
    codes = np.arange(400)
    return pl.DataFrame({"sex": codes % 2, "age": codes // 2 % 5, "edu": codes * 7 % 11 % 4, **columns})


EDU = qd.RandomSwap(["edu"], rate=0.2)


def _said(data: qd.Data, out: Path, recipe: qd.Recipe = EDU, *, shuffle: bool = True) -> tuple[str, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qd.release(data, recipe, out, allow_contradictions=True, shuffle=shuffle).warnings


@pytest.mark.parametrize(
    ("weights", "name", "text"),
    [
        (np.where(np.arange(400) < 3, 0.0, 1.5), "w", "3 records have the weight 0 in 'w'"),
        (1 + np.random.default_rng(1).random(400), "w", "The weight 'w' is different in nearly every record"),
        (
            np.maximum(np.arange(400.0), 320.0) + 1,
            "w",
            "19.75 % of the records have a weight 'w' that no other record has",
        ),
        (np.arange(400) % 300 + 1.0, "person_id", "The weight 'person_id' is called like an identifier"),
    ],
)
def test_an_odd_weight_is_remarked_on_by_inspect_and_by_a_release(
    weights: np.ndarray, name: str, text: str, tmp_path: Path
) -> None:
    data = qd.from_frame(_survey(**{name: weights}), weight=name)
    assert any(text in hint for hint in qd.inspect(data).hints)
    assert any(text in warning for warning in _said(data, tmp_path / "r"))


def test_identifiers_that_repeat_are_remarked_on_by_inspect_and_by_a_release(tmp_path: Path) -> None:
    data = qd.from_frame(_survey(caseid=np.maximum(np.arange(400), 2)))
    text = "In 'caseid' 2 records repeat the identifier of another"
    assert any(text in hint for hint in qd.inspect(data).hints)
    assert any(text in warning for warning in _said(data, tmp_path / "r"))
    assert not any("repeat" in hint for hint in qd.inspect(qd.from_frame(_survey(caseid=np.arange(400)))).hints)


def _panel(**more: object) -> Data:
    """200 persons in two years, with more columns that stay the same than columns that change."""
    person = np.arange(400) // 2
    rng = np.random.default_rng(4)
    fixed = {f"x{k}": rng.integers(0, 3, 200)[person] for k in range(6)}
    return qd.from_frame(pl.DataFrame({**more, **fixed, "year": [1, 2] * 200, "sick": rng.integers(0, 2, 400)}))


def test_a_number_of_units_that_nobody_named_is_pointed_out_and_warned_of(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).permutation(4_000)[:200][np.arange(400) // 2]
    data, text = _panel(zper=numbers), "Several records share a value of 'zper' and agree on most other columns"
    assert any(text in hint for hint in qd.inspect(data).hints)
    recipe = qd.RandomSwap(["sick"], rate=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert any(text in warning for warning in qd.release(data, recipe, tmp_path / "r").warnings)
    for named in (data.with_roles(unit="zper"), data.with_roles(id=["zper"])):
        assert not any(text in hint for hint in qd.inspect(named).hints)


def test_an_identifier_that_several_records_share_may_be_a_unit() -> None:
    text = "Several records share a value of the identifier 'person_id'"
    assert any(text in hint for hint in qd.inspect(_panel(person_id=1000 + np.arange(400) // 2)).hints)
    assert not any(
        "Several records share" in hint for hint in qd.inspect(_panel(person_id=1000 + np.arange(400))).hints
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [("WTMEC2YR", "a weight"), ("pw", "a weight"), ("PERWT", "a weight"), ("PWGTP", "a weight"), ("RB050", "a weight"),
     ("SDMVSTRA", "a stratum"), ("DB050", "a stratum"), ("SDMVPSU", "a cluster"), ("DB060", "a cluster")],
)  # fmt: skip
def test_columns_of_the_design_of_known_surveys_are_pointed_out(name: str, what: str) -> None:
    values = np.arange(400) % 7 + (0.5 if what == "a weight" else 0)
    hints = qd.inspect(qd.from_frame(_survey(**{name: values}))).hints
    assert any(f"{name!r} is called like {what}" in hint for hint in hints)


@pytest.mark.parametrize("name", ["hh_id", "RB040", "PX030"])
def test_the_number_of_a_household_is_pointed_out_also_by_its_code_in_eu_silc(name: str) -> None:
    data = qd.from_frame(_survey(**{name: 70_000 + np.random.default_rng(2).integers(0, 150, 400)}))
    assert any(f"{name!r} is called like the number of a household" in hint for hint in qd.inspect(data).hints)


def test_a_release_that_hides_hardly_anybody_says_so_and_one_that_hides_most_does_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    data = qd.from_frame(pl.DataFrame({f"k{i}": rng.integers(0, 6, 6_000) for i in range(4)}))
    for recipe, said in ((qd.RandomSwap(["k1"], rate=0.01), True), (qd.DesignedSwap(keep="1-way", effort=0.02), False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = qd.release(data, recipe, tmp_path / recipe.word(), measures=["exposed"])
        assert any("The swap hides few" in warning for warning in made.warnings) == said
        assert ("The swap hides few" in (made.confidential / "dossier.md").read_text()) == said


def test_a_release_in_the_original_order_says_so(tmp_path: Path) -> None:
    data = qd.from_frame(_survey())
    assert any("order of the original" in warning for warning in _said(data, tmp_path / "kept", shuffle=False))
    assert not any("order of the original" in warning for warning in _said(data, tmp_path / "shuffled"))


def test_one_swapped_pair_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(ReleaseWarning, match="Only 2 records"):
        qd.release(qd.from_frame(_survey()), qd.RandomSwap(["edu"], pairs=1), tmp_path / "r", allow_contradictions=True)


@pytest.mark.parametrize("name", ["intnum", "persnum", "INTNUM", "int_no"])
def test_numbers_of_persons_and_interviews_are_left_out_whatever_they_are_called(name: str) -> None:
    numbers = np.random.default_rng(1).permutation(4_000)[:400] + 1
    assert qd.from_frame(_survey(**{name: numbers}))[name].variable.role == "id"


def test_whole_numbers_written_with_decimals_are_said_to_be_no_key() -> None:
    data = qd.from_frame(_survey(health=np.arange(400) % 7 * 1.0, pay=np.arange(400) % 7 * 1.5))
    told = [hint for hint in qd.inspect(data).hints if "written with decimals" in hint]
    assert len(told) == 1 and told[0].startswith("Column 'health' holds 7 different")


# --- what others know of a person: dates, ages, fine areas, households ---

DAYS = [date(1930, 1, 1) + timedelta(days=int(day)) for day in np.random.default_rng(5).integers(0, 25_000, 400)]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("dob", DAYS),
        ("v3", [str(day) for day in DAYS]),
        ("geburtsdatum", [day.strftime("%d.%m.%Y") for day in DAYS]),
        ("x1", [10_000 * day.year + 100 * day.month + day.day for day in DAYS]),
        ("x2", [1_000_000 * day.day + 10_000 * day.month + day.year for day in DAYS]),
    ],
)
def test_dates_to_the_day_are_warned_of_however_they_are_written(
    name: str, cells: list[object], tmp_path: Path
) -> None:
    path = tmp_path / "file.csv"
    pl.concat([_survey(**{name: cells})] * 3).write_csv(path)
    data, text = qd.read(path), f"Column '{name}' holds dates to the day"
    assert any(hint.startswith(text) for hint in qd.inspect(data).hints)
    assert any("holds dates to the day" in warning for warning in _said(data, tmp_path / "r"))


@pytest.mark.parametrize("cells", [range(19650001, 19650401), [19651300 + i for i in range(400)], np.arange(400) + 1.5])
def test_other_numbers_are_no_dates(cells: object) -> None:
    data = qd.from_frame(pl.concat([_survey(x=cells)] * 3))
    assert not any("dates to the day" in hint for hint in qd.inspect(data).hints)


@pytest.mark.parametrize(
    ("name", "numbers", "what"),
    [("age", 90, "an age"), ("AGEP", 90, "an age"), ("gebjahr", 90, "an age"), ("RB080", 90, "an age"),
     ("plz", 300, "areas")],
)  # fmt: skip
def test_numbers_that_others_know_and_no_measure_counts_are_pointed_out_and_warned_of(
    name: str, numbers: int, what: str, tmp_path: Path
) -> None:
    data = qd.from_frame(_survey(**{name: np.arange(400) * 7 % numbers + 1900}))
    text = f"No measure of risk counts {name!r}, called like {what}, which others know"
    assert any(text in hint for hint in qd.inspect(data).hints)
    assert any(text in warning for warning in _said(data, tmp_path / "r"))
    said = data.with_roles(outcome=[name])
    assert not any(text in warning for warning in (*qd.inspect(said).hints, *_said(said, tmp_path / "again")))


def test_the_number_of_a_household_is_seen_by_two_columns_on_which_its_members_agree(tmp_path: Path) -> None:
    """A file of few columns: the household has a region and a tenure, its number has no telling name."""
    rng = np.random.default_rng(6)
    of = np.repeat(np.arange(600), 1 + rng.integers(0, 5, 600))
    shared = {"region": rng.integers(0, 9, 600)[of], "tenure": rng.integers(0, 3, 600)[of]}
    own = {name: rng.integers(0, 6, len(of)) for name in ("edu", "sex", "job")}
    data = qd.from_frame(pl.DataFrame({"nquest": rng.permutation(600)[of], **shared, **own}))
    text = "Several records share a value of 'nquest' and agree on 2 other columns"
    assert any(text in hint for hint in qd.inspect(data).hints)
    assert any(text in warning for warning in _said(data, tmp_path / "r"))


def test_a_longitude_called_long_is_pointed_out_by_the_latitude_next_to_it(tmp_path: Path) -> None:
    frame = _survey(lat=44.9 + np.arange(400) / 999, long=-93.2 - np.arange(400) // 3 / 777)
    frame = frame.with_columns(stay_long=np.arange(400) // 3 / 8)
    data = qd.from_frame(frame)
    assert data.codebook["lat"].role == "id"
    text = "Column 'long' next to 'lat' is a place on a map"
    assert [hint.startswith(text) for hint in qd.inspect(data).hints if "place on a map" in hint] == [True]
    assert any(warning.startswith(text) for warning in _said(data, tmp_path / "r"))
    assert not any("place on a map" in hint for hint in qd.inspect(data.with_roles(id=["lat", "long"])).hints)


def test_couples_show_a_swap_of_sexes_and_that_is_warned_of(tmp_path: Path) -> None:
    data = qd.datasets.households()
    text = "Two records of one 'hh_id' who are alike in 'age' nearly always differ in 'sex'"
    sexes, citizens = (qd.RandomSwap([name], rate=0.05) for name in ("sex", "citizen"))
    assert sum(text in warning for warning in _said(data, tmp_path / "r", sexes)) == 1
    assert not any("Two records of one" in warning for warning in _said(data, tmp_path / "s", citizens))
    alone = data.with_roles(id=["hh_id"])
    assert not any("Two records of one" in warning for warning in _said(alone, tmp_path / "t", sexes))


def test_warnings_stand_in_order_each_once_and_a_value_that_most_received_is_warned_of(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(9), 2_000
    columns = {f"k{i}": rng.integers(0, 20, n) for i in range(3)}
    columns |= {"ill": np.arange(n) % 50 == 7, "age": rng.integers(0, 95, n), "pay": rng.permutation(n) / 7}
    columns |= {"rent": rng.permutation(n) / 3, "note": ["=1+1"] * n}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ill = qd.RandomSwap(["ill"], pairs=35)  # of 40 who are, under 4 % of all records
        made = qd.release(qd.from_frame(pl.DataFrame(columns)), ill, tmp_path / "out", measures=["exposed"])
    starts = ["Most records with a value of 'ill' received it by the swap", "9", "Each of the columns 'pay', 'rent'"]
    starts += ["No measure of risk counts 'age', called like an age", "Spreadsheet programs"]
    assert len(made.warnings) == len(starts)
    for text, start in zip(made.warnings, starts, strict=True):
        assert text.startswith(start), text
    assert "% of the records stand in cells of one or two" in made.warnings[1]
