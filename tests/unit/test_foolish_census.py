"""What an outsider may get wrong with a census of households: each is refused or warned of at the release."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import quadrille as qd
from quadrille.release.dossier import ReleaseWarning

LEVELS = ("region", "district", "parish", "ward")
BOOK = "".join(f'[columns.{name}]\nrole = "geography"\nlevel = {n}\n' for n, name in enumerate(LEVELS, 1))
UNIT = '[columns.household]\nrole = "unit"\n'
MEASURES = ["exposed(ward*age*birth)"]
SIZE: dict[str, Any] = {"similar": [["hh_size"]], "near": "parent"}


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    frame = qd.datasets.island().frame()
    return frame.filter(pl.col("district").is_in(["N1", "S1"]))


def released(folder: Path, data: qd.Data, recipe: qd.Recipe, **options: Any) -> tuple[qd.Data, str]:
    """Release, and return the public file and all that was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        qd.release(data, recipe, folder / "r", measures=MEASURES, **options)
    texts = " ".join(str(each.message) for each in caught if issubclass(each.category, ReleaseWarning))
    return qd.read(folder / "r/public/data.csv", codebook=folder / "r/public/codebook.toml"), texts


def read(frame: pl.DataFrame, book: str = UNIT + BOOK) -> qd.Data:
    return qd.from_frame(frame, codebook=qd.Codebook.from_toml(book))


def targeted(**options: Any) -> qd.Recipe:
    return qd.TargetedSwap(["age", "birth"], **(SIZE | options))


def test_without_the_role_of_the_household_its_number_tells_the_old_ward(frame: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(qd.QuadrilleError, match="ward follows from household"):
        released(tmp_path, read(frame, BOOK), targeted())


def test_a_household_that_is_left_out_as_an_identifier_is_missed(frame: pl.DataFrame, tmp_path: Path) -> None:
    public, texts = released(tmp_path, read(frame.rename({"household": "serial"}).drop("tenure"), BOOK), targeted())
    assert "serial" not in public.columns
    assert "Several records share a value of the identifier 'serial'" in texts and 'role = "unit"' in texts


@pytest.mark.parametrize("near", ["any", "parent"])
def test_a_region_inside_the_code_of_the_stratum_is_refused_however_near(
    frame: pl.DataFrame, tmp_path: Path, near: str
) -> None:
    stratum = pl.concat_str("region", pl.col("hh_size").cast(pl.String), separator="-")
    data = read(frame.with_columns(stratum=stratum), UNIT + BOOK + '[columns.stratum]\nrole = "stratum"\n')
    with pytest.raises(qd.QuadrilleError, match="region is constant within stratum, and region would move"):
        released(tmp_path, data, targeted(near=near))


def test_a_place_that_is_no_level_or_lies_in_another_number_is_refused(frame: pl.DataFrame, tmp_path: Path) -> None:
    enumerated = frame.with_columns(enum=pl.col("ward").rank("dense").cast(pl.Int64) + 1_000)
    with pytest.raises(qd.QuadrilleError, match="enum is constant within ward, and ward would move without enum"):
        released(tmp_path, read(enumerated), targeted())
    with pytest.raises(qd.QuadrilleError, match="ward determines region"):
        released(
            tmp_path, read(frame.drop("district", "parish"), UNIT + BOOK.split("[columns.district]")[0]), targeted()
        )


def test_a_k_of_one_puts_nobody_at_risk(frame: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(qd.QuadrilleError, match="nobody is at risk, and the rate gives no pair"):
        targeted(k=1).plan(read(frame))
    assert "Nobody is at risk" in released(tmp_path, read(frame), targeted(k=1, rate=0.05))[1]


def test_everybody_at_risk_is_warned_of(frame: pl.DataFrame, tmp_path: Path) -> None:
    recipe = qd.TargetedSwap(["age", "birth", "sex", "status"], k=50, similar=[["hh_size"]])
    assert "are at risk at level region" in released(tmp_path, read(frame), recipe)[1]


def test_a_profile_without_the_size_changes_the_numbers_of_persons(frame: pl.DataFrame, tmp_path: Path) -> None:
    data = read(frame)
    public, texts = released(tmp_path, data, targeted(similar=[["tenure"]]))
    before, after = (each.frame()["ward"].value_counts().sort("ward") for each in (data, public))
    assert not before.equals(after)
    assert "Units of different size changed places" in texts
    note = " ".join((tmp_path / "r/public/methods.md").read_text().split())
    assert "The number of records in an area can differ" in note
    assert "each category has as many records as before; a numeric variable" not in note
    dossier = (tmp_path / "r/confidential/dossier.md").read_text()
    assert "Units of different size changed places" in dossier


def test_with_the_size_the_note_says_that_all_is_exact_and_it_is(frame: pl.DataFrame, tmp_path: Path) -> None:
    data = read(frame)
    public, texts = released(tmp_path, data, targeted())
    for name in LEVELS:
        before, after = (each.frame()[name].value_counts().sort(name) for each in (data, public))
        assert before.equals(after)
    assert "Units of different size" not in texts
    assert "each category has as many records as" in (tmp_path / "r/public/methods.md").read_text()
    assert "contradicts the swap\n\nNo record contradicts" in (tmp_path / "r/confidential/dossier.md").read_text()


def test_numbers_of_persons_and_households_do_not_get_out(frame: pl.DataFrame, tmp_path: Path) -> None:
    running = frame.with_columns(person_id=pl.col("household") * 100 + pl.int_range(pl.len()).over("household"))
    public, _ = released(tmp_path, read(running), targeted())
    assert "person_id" not in public.columns
    numbers = public.frame()["household"]
    assert sorted(set(numbers)) == list(range(1, numbers.n_unique() + 1))
    assert not set(numbers) & set(frame["household"])
    members = frame.with_columns(person=pl.int_range(1, pl.len() + 1).over("household"))
    assert any("'person' numbers the members" in hint for hint in qd.inspect(read(members)).hints)


def test_a_number_as_seed_and_the_order_of_the_original(frame: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(qd.QuadrilleError, match="a number that can be guessed"):
        released(tmp_path, read(frame), targeted(seed=1))
    assert "order of the original" in released(tmp_path, read(frame), targeted(), shuffle=False)[1]


@pytest.mark.parametrize("risk", [["ward", "age"], ["household"], ["age", "age"], []])
def test_places_and_numbers_of_households_are_no_risk_variables(frame: pl.DataFrame, risk: list[str]) -> None:
    with pytest.raises(qd.QuadrilleError):
        qd.TargetedSwap(risk, **SIZE).plan(read(frame))
    with pytest.raises(qd.QuadrilleError):
        qd.inspect(read(frame), risk=risk)
