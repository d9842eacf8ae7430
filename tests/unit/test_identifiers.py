"""Direct identifiers are recognised by name and by value, and never released by default; what was declared stays."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quadrille as qd
from quadrille.codebook import Codebook, Role, Variable
from quadrille.data import Data
from quadrille.frames import build, from_frame
from quadrille.frames.identifiers import identifies, sort_of, suspicion
from quadrille.frames.stream import Batches, build_streamed
from quadrille.io.cautions import ReleaseWarning


def words(text: str) -> list[str]:
    return text.split()


DIRECT = words("""
    name Name NAME surname first_name firstName FirstName LASTNAME full_name patient_name hh_head_name q12_name
    email E-Mail eMail e_mail email_2 phone phone1 phone_number PhoneNumber home_phone Telefon Telefonnummer telefono
    ssn SSN SSN_text passport passport_no PassportNumber taxnumber TaxNumber tax_id AHV AHVNr AHV_Nr iban
    address home_address address_line_1 street_name Nachname Vorname Geburtsname Prénom nom nom_de_famille apellido
    nombre cognome achternaam Straße correo_electronico фамилия телефон 姓名
""")
RECORD = words("id ID Id caseid CaseID case_no hhid HHID hh_nr PersonNumber person_id respondentId identifiant serial")
NEITHER = words("""
    country_name occupation_name state_name product_name file_name name_de name_of_region phone_owner phone_type
    has_phone email_consent address_type region_id state_nr occupation_id class_no visit_number child_number
    nr_children valid paid covid hybrid grid status income weight age sex capital-gain education-num number no
""")
ROLES: list[Role] = ["key", "outcome", "stratum", "unit"]


def role_of(name: str, cells: Sequence[object]) -> str | None:
    return from_frame(pl.DataFrame({name: pl.Series(cells, strict=False)}))[name].variable.role


@pytest.mark.parametrize("name", DIRECT)
def test_words_for_persons_are_known_in_any_case_and_language(name: str) -> None:
    assert sort_of(name) == "direct"


@pytest.mark.parametrize("name", RECORD)
def test_words_for_numbers_of_records_are_known(name: str) -> None:
    assert sort_of(name) == "record"


@pytest.mark.parametrize("name", NEITHER)
def test_other_words_are_left_alone(name: str) -> None:
    assert sort_of(name) is None


@given(st.text(max_size=30))
def test_any_text_can_be_the_name_of_a_column(name: str) -> None:
    assert sort_of(name) in (None, "direct", "record", "row")


@given(st.sampled_from([*DIRECT, *RECORD]), st.integers(0, 400), st.integers(0, 400))
def test_more_different_values_never_speak_against_an_identifier(name: str, distinct: int, empty: int) -> None:
    present = 400
    few, more = sorted((distinct, min(distinct + 1, present)))
    assert identifies(name, few, present) <= identifies(name, more, present)
    assert identifies(name, few, present) <= identifies(name, few, max(few, present - empty))  # empty fields neither


@pytest.mark.parametrize("rows", [2, 5, 40, 1_000])
@pytest.mark.parametrize("name", ["surname", "email", "phone_number", "SSN", "caseid", "hhid", "PersonNumber"])
@settings(max_examples=10)
@given(start=st.integers(0, 2**40), seed=st.integers(0, 999), share=st.floats(0, 0.3))
def test_a_named_identifier_is_one_in_files_of_any_size_with_duplicates_and_gaps(
    name: str, rows: int, start: int, seed: int, share: float
) -> None:
    rng, twice = np.random.default_rng(seed), int(share * rows)
    order = np.arange(rows)
    order[rng.integers(0, rows, twice)] = order[rng.integers(0, rows, twice)]
    numbers: list[int | None] = [start + int(i) for i in order]
    numbers[-1] = numbers[-1] if rows < 5 else None
    assert role_of(name, numbers) == "id"
    assert role_of(name, [None if x is None else float(x) for x in numbers]) == "id"  # as pandas reads gaps
    assert role_of(name, [None if x is None else f"x{x}" for x in numbers]) == "id"


@pytest.mark.parametrize("rows", [40, 1_000])
@pytest.mark.parametrize("name", [*DIRECT, *RECORD])
def test_few_values_are_categories_whatever_they_are_called(name: str, rows: int) -> None:
    assert role_of(name, [f"c{i % 3}" for i in range(rows)]) is None
    assert role_of(name, [i % 2 for i in range(rows)]) is None
    assert role_of(name, [i % 2 == 0 for i in range(rows)]) is None


@pytest.mark.parametrize("rows", [5, 40, 1_000])
@pytest.mark.parametrize("name", ["income", "weight", "turnover", "region_id", "country_name", "age"])
def test_numbers_that_are_all_different_are_no_identifier_without_the_name(name: str, rows: int) -> None:
    assert role_of(name, [17 * i + 1 for i in range(rows)]) is None
    assert role_of(name, [1.5 * i + 0.25 for i in range(rows)]) is None


def test_numbers_with_decimals_are_no_identifier_even_with_the_name() -> None:
    assert role_of("id", [i + 0.5 for i in range(100)]) is None


@pytest.mark.parametrize(("different", "role"), [(100, "id"), (90, "id"), (89, None), (40, None)])
def test_text_that_nearly_tells_rows_apart_is_an_identifier(different: int, role: str | None) -> None:
    assert role_of("x", [f"v{min(i, different - 1)}" for i in range(100)]) == role
    assert role_of("x", [f"v{min(i, different - 1)}" for i in range(100)] + [None] * 300) == role


def test_addresses_of_mail_are_recognised_by_their_form() -> None:
    assert role_of("contact", [f"p{i % 7}@x.org" for i in range(200)]) == "id"
    assert role_of("contact", ["by phone", "by mail", "@home"] * 30) is None


@pytest.mark.parametrize("role", [None, *ROLES])
def test_what_the_codebook_says_wins(role: Role | None) -> None:
    frame = pl.DataFrame({"ssn": range(1000), "name": [f"n{i}" for i in range(1000)]})
    book = Codebook((Variable("ssn", "numeric", role=role), Variable("name", role=role)))
    data = from_frame(frame, codebook=book)
    assert [data.codebook[name].role for name in data.columns] == [role, role]


def test_weight_and_geography_named_outside_of_the_codebook_win() -> None:
    frame = pl.DataFrame({"pid": range(1, 101), "street": [f"s{i}" for i in range(100)], "x": [0, 1] * 50})
    data = from_frame(frame, weight="pid", geography=["street"])
    assert data.weight == "pid"
    assert data.codebook["street"].role == "geography"


@given(
    name=st.sampled_from(["id", "surname", "hhid", "x", "row", "phone"]),
    cells=st.lists(st.none() | st.integers(0, 90), min_size=1, max_size=150),
    form=st.sampled_from(["whole", "float", "text"]),
    size=st.integers(1, 60),
)
def test_a_file_read_in_batches_has_the_same_identifiers(
    name: str, cells: list[int | None], form: str, size: int
) -> None:
    dtype = {"whole": pl.Int64(), "float": pl.Float64(), "text": pl.String()}[form]
    table = pl.DataFrame({name: pl.Series(cells, dtype=pl.Int64).cast(dtype)})

    def read(column: str) -> Iterator[pl.Series]:
        for start in range(0, table.height, size):
            yield table[column].slice(start, size)

    whole = build(table, codebook=None, weight=None, where="the table")
    streamed = build_streamed(Batches(table.clear(), table.height, read), codebook=None, weight=None, where="the table")
    assert streamed.codebook == whole.codebook


def people(rows: int) -> pl.DataFrame:
    """Return records with direct identifiers as files have them: with duplicates, gaps and numbers kept as text."""
    rng = np.random.default_rng(5)
    number = np.arange(rows) + 123_456_789
    number[1] = number[0]
    return pl.DataFrame(
        {
            "SSN": number,
            "SSN_text": [f"{x // 10**6}-{x % 10**6}" for x in number],
            "name": [f"Name {i % max(rows * 2 // 5, 5)}" for i in range(rows)],
            "email": [f"p{i // 3}@x.org" for i in range(rows)],
            "caseid": [None if i % 50 == 7 else i for i in range(rows)],
            "hhid": np.arange(rows) // 3,
            "sex": rng.permutation(np.arange(rows) % 2) + 1,
            "income": rng.permutation(rows) * 7,
        }
    )


def released(data: Data, out: Path) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = qd.release(data, qd.RandomSwap(["sex"], rate=1.0), out, measures=["hellinger(sex)"])
    return pl.read_csv(made.public / "data.csv").columns


@pytest.mark.parametrize("rows", [6, 40, 1_000])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "sav", "dta"])
def test_no_direct_identifier_is_released_by_default(tmp_path: Path, rows: int, suffix: str) -> None:
    path, table = tmp_path / f"in.{suffix}", people(rows)
    if suffix in ("csv", "parquet"):
        getattr(table, f"write_{suffix}")(path)
    else:
        getattr(pyreadstat, f"write_{suffix}")(table.to_pandas(), str(path))
    assert released(qd.read(path), tmp_path / "out") == ["sex", "income"]


def test_an_identifier_is_released_on_purpose_with_a_warning(tmp_path: Path) -> None:
    data = from_frame(people(60), codebook=Codebook((Variable("name", role="outcome"),)))
    with pytest.warns(ReleaseWarning, match="Column 'name' of the public file is called like a name"):
        made = qd.release(data, qd.RandomSwap(["sex"], rate=1.0), tmp_path / "out", measures=["hellinger(sex)"])
    assert "name" in pl.read_csv(made.public / "data.csv").columns


@pytest.mark.parametrize(
    ("variable", "cells", "why"),
    [
        (Variable("x", "numeric"), [*range(99), 98], "in nearly every record"),
        (Variable("x", "numeric"), [*range(98), 97, 97], None),
        (Variable("x"), [f"n{min(i, 89)}" for i in range(100)], "in nearly every record"),
        (Variable("x", "numeric"), range(100), "in every record"),
        (Variable("x", "numeric"), [None, *range(9)], "in every record"),
        (Variable("x", "numeric"), [None] * 50 + [*range(50)], None),
        (Variable("x", "numeric"), [i % 60 for i in range(100)], None),
        (Variable("surname", role="key"), [f"n{i % 5}" for i in range(100)], "called like a name"),
        (Variable("surname", role="key"), [f"n{i % 4}" for i in range(100)], None),
        (Variable("school_id", "numeric"), [i % 60 for i in range(900)], "called like an identifier"),
        (Variable("school_id", "numeric", role="unit"), [i % 60 for i in range(900)], None),
        (Variable("phone", "numeric"), [i % 60 + 0.5 for i in range(900)], None),
        (Variable("x", role="id"), [f"n{i}" for i in range(100)], None),
    ],
)
def test_what_might_be_an_identifier_is_said(variable: Variable, cells: Sequence[object], why: str | None) -> None:
    column = from_frame(pl.DataFrame({variable.name: list(cells)}), codebook=Codebook((variable,)))[variable.name]
    found = suspicion(column)
    assert (why is None and found is None) or (why is not None and found is not None and why in found)


@pytest.mark.parametrize("name", ["cps8d", "adult", "state"])
def test_no_column_of_a_bundled_file_is_taken_for_an_identifier(name: str) -> None:
    made: Data = getattr(qd.datasets, name)()
    again = from_frame(made.frame())
    assert not [variable.name for variable in again.codebook if variable.role == "id"]
