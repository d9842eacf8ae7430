"""Direct identifiers are recognised by name and by value, and never released by default; what was declared stays."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyreadstat
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.codebook import Codebook, Role, Variable
from quadrille.data import Data
from quadrille.io.frames import build, from_frame
from quadrille.io.frames.identifiers import identifies, name_kind, suspicion
from quadrille.io.parquet import Batches, build_streamed
from quadrille.release.dossier import ReleaseWarning


def words(text: str) -> list[str]:
    return text.split()


DIRECT = words("""
    name Name NAME surname first_name firstName FirstName LASTNAME full_name patient_name hh_head_name q12_name
    email E-Mail eMail e_mail email_2 phone phone1 phone_number PhoneNumber home_phone Telefon Telefonnummer telefono
    ssn SSN SSN_text passport passport_no PassportNumber taxnumber TaxNumber tax_id AHV AHVNr AHV_Nr iban
    address home_address address_line_1 street_name Nachname Vorname Geburtsname Prénom nom nom_de_famille apellido
    nombre cognome achternaam Straße correo_electronico фамилия телефон 姓名
    name_of_respondent nameofrespondent name_child namechild rname MName lst_name frst_name first_nm NAMEFRST nom_usage
    nom_marital primer_nombre segundo_nombre hhhead_name guardian_name doctor_name nurse_name enumerator_name own_name
    apellido_paterno apellidoMaterno telefono_celular SSN_last4 cell_no own_phone_number celular movil whatsapp handynr
    Rufnr numtel cedula CNIC aadhar natid svnr nuss tckn kimlik_no socsecno ni_number id_card codfisc kontonr acct_no
    card_no plate_no addresse ipaddr housenum Nachnamen Familiennamen num_insee nir
""")
SHORT = words("mobile mob cell nid rut nrc tin ein CPR fnr nie nip hcn mbi vin adr own_mobile resp_cell")
POINT = words("lat latitude lon longitude gps gps_lat home_longitude")
RECORD = words("""
    id ID Id caseid CaseID case_no hhid HHID hh_nr PersonNumber person_id respondentId identifiant serial
    site_subject_id class_student_no group_member_id visit_patient_id wave_respondent_id uniqid unique_id hhidpn pidp
    hidp pidlink mergeid xwaveid idhh LINKID lopnr RINPERSOON CBSERIAL HSERIAL CPSID CPSIDP ResponseId StudyID RB030
    PB030 IDunit
""")
NEITHER = words("""
    country_name occupation_name state_name product_name file_name name_de name_of_region phone_owner phone_type
    email_consent address_type region_id state_nr occupation_id class_no visit_number child_number
    village_id ea_id drug_id msa_id lga_id fips_id occ_id icd_id nace_nr wahlkreis_nr insee code_insee block_group_id
    weighting_cell flat_lat never_mobile PHONEUSE name_usage_of_brand RB010
    nr_children valid paid covid hybrid grid status income weight age sex capital-gain education-num number no
""")
ROLES: list[Role] = ["key", "outcome", "stratum", "unit"]


def role_of(name: str, cells: Sequence[object]) -> str | None:
    return from_frame(pl.DataFrame({name: pl.Series(cells, strict=False)}))[name].variable.role


def roles_of(names: Sequence[str], cells: Sequence[object]) -> dict[str, str | None]:
    """Return the roles of columns of different names and the same values."""
    data = from_frame(pl.DataFrame({name: pl.Series(cells, strict=False) for name in names}))
    return {name: data[name].variable.role for name in names}


@pytest.mark.parametrize(
    ("names", "sort"), [(DIRECT, "direct"), (RECORD, "record"), (NEITHER, None), (SHORT, "short"), (POINT, "point")]
)
def test_words_of_any_case_and_language_are_known_for_what_they_name(names: list[str], sort: str | None) -> None:
    assert {name: name_kind(name) for name in names} == dict.fromkeys(names, sort)


def test_short_words_need_many_values() -> None:
    names = [*SHORT, *POINT]
    assert roles_of(names, [i // 3 + 7 for i in range(900)]) == dict.fromkeys(names, "id")
    assert roles_of(names, [f"v{i // 3}" for i in range(900)]) == dict.fromkeys(names, "id")
    assert roles_of(names, [i % 50 for i in range(100)]) == dict.fromkeys(names)


def test_places_on_a_map_identify_though_they_have_decimals() -> None:
    assert role_of("gps_lat", [48 + i // 3 / 7919 for i in range(900)]) == "id"
    assert role_of("latitude", [48 + i % 9 / 7 for i in range(900)]) is None
    assert role_of("mobile", [48 + i // 3 / 7919 for i in range(900)]) is None


@pytest.mark.parametrize("name", ["has_phone", "own_mobile", "uses_email", "has_id_card"])
def test_a_question_about_a_thing_is_none_while_its_answers_are_few(name: str) -> None:
    assert role_of(name, [i % 5 for i in range(20)]) is None
    assert role_of(name, [f"v{i // 3}" for i in range(900)]) == "id"


LABELS: dict[str, str | None] = {
    "Respondent's surname": "direct",
    "Surname of the respondent": "direct",
    "Name of respondent (as in passport)": "direct",
    "Q12. What is your first name?": "direct",
    "Social security number": "direct",
    "Telephone number of household": "direct",
    "E-mail address": "direct",
    "Unique respondent ID": "record",
    "Household identification number": "record",
    "Case number": "record",
    "Latitude of dwelling": None,
    "Longitude": "point",
    "Name of country": None,
    "Social security income": None,
    "Number of persons in household": None,
    "Telephone calls per month": None,
    "Age of respondent": None,
    "Region": None,
    "": None,
}


def test_labels_tell_when_they_name_an_identifier_and_nothing_else() -> None:
    assert {label: name_kind("V3", label) for label in LABELS} == LABELS


@given(st.text(max_size=60))
def test_any_text_can_be_a_label(label: str) -> None:
    assert name_kind("V3", label) in (None, "direct", "point", "record")


@pytest.mark.parametrize("suffix", ["sav", "dta"])
def test_identifiers_are_recognised_by_their_labels(tmp_path: Path, suffix: str) -> None:
    labels = {"V1": "Sex", "V2": "Respondent's surname", "V3": "Social security number", "V4": "Surname"}
    table = pl.DataFrame(
        {
            "V1": [i % 2 + 1.0 for i in range(600)],
            "V2": [f"n{i * 7 % 90}" for i in range(600)],
            "V3": [1e8 + i * 7 % 200 for i in range(600)],
            "V4": [f"n{i % 30}" for i in range(600)],
        }
    )
    getattr(pyreadstat, f"write_{suffix}")(table.to_pandas(), str(tmp_path / f"in.{suffix}"), column_labels=labels)
    data = qd.read(tmp_path / f"in.{suffix}")
    assert [variable.role for variable in data.codebook] == [None, "id", "id", None]
    assert suspicion(data["V4"]) == "is called like a name, an address or a number of a person"


@given(st.text(max_size=30))
def test_any_text_can_be_the_name_of_a_column(name: str) -> None:
    assert name_kind(name) in (None, "direct", "short", "point", "record", "institution", "row")


@given(st.sampled_from([*DIRECT, *RECORD]), st.integers(0, 400), st.integers(0, 400))
def test_more_different_values_never_speak_against_an_identifier(name: str, distinct: int, empty: int) -> None:
    present = 400
    few, more = sorted((distinct, min(distinct + 1, present)))
    assert identifies(name, few, present) <= identifies(name, more, present)
    assert identifies(name, few, present) <= identifies(name, few, max(few, present - empty))  # empty fields neither


@pytest.mark.parametrize("rows", [2, 5, 40, 1_000])
@examples(10)
@given(start=st.integers(0, 2**40), seed=st.integers(0, 999), share=st.floats(0, 0.3))
def test_a_named_identifier_is_one_in_files_of_any_size_with_duplicates_and_gaps(
    rows: int, start: int, seed: int, share: float
) -> None:
    names = ["surname", "email", "phone_number", "SSN", "caseid", "hhid", "PersonNumber"]
    ids = dict.fromkeys(names, "id")
    rng, twice = np.random.default_rng(seed), int(share * rows)
    order = np.arange(rows)
    order[rng.integers(0, rows, twice)] = order[rng.integers(0, rows, twice)]
    numbers: list[int | None] = [start + int(i) for i in order]
    numbers[-1] = numbers[-1] if rows < 5 else None
    assert roles_of(names, numbers) == ids
    assert roles_of(names, [None if x is None else float(x) for x in numbers]) == ids  # as pandas reads gaps
    assert roles_of(names, [None if x is None else f"x{x}" for x in numbers]) == ids


@pytest.mark.parametrize("rows", [40, 1_000])
def test_few_values_are_categories_whatever_they_are_called(rows: int) -> None:
    names = [*DIRECT, *RECORD]
    assert roles_of(names, [f"c{i % 3}" for i in range(rows)]) == dict.fromkeys(names)
    assert roles_of(names, [i % 2 for i in range(rows)]) == dict.fromkeys(names)
    assert roles_of(names, [i % 2 == 0 for i in range(rows)]) == dict.fromkeys(names)


@pytest.mark.parametrize("rows", [5, 40, 1_000])
@pytest.mark.parametrize("name", ["income", "weight", "turnover", "region_id", "country_name", "age"])
def test_numbers_that_are_all_different_are_no_identifier_without_the_name(name: str, rows: int) -> None:
    assert role_of(name, [17 * (i * 7 % rows) + 1 for i in range(rows)]) is None
    assert role_of(name, np.sort(np.random.default_rng(rows).integers(0, 10**6, rows)).tolist()) is None
    assert role_of(name, [1.5 * i + 0.25 for i in range(rows)]) is None


@given(
    rows=st.integers(51, 300), start=st.integers(-(10**9), 10**9), step=st.integers(1, 10**6), seed=st.integers(0, 99)
)
def test_a_running_number_is_an_identifier_whatever_it_is_called(rows: int, start: int, step: int, seed: int) -> None:
    even = [start + step * i for i in range(rows)]
    gaps = np.random.default_rng(seed).integers(1, 3, rows).cumsum() + start
    for cells in (even, [float(x) for x in even], gaps.tolist()):
        assert role_of("x", cells) == "id"
        assert role_of("x", cells[::-1]) is None
        assert role_of("x", [*cells[:-1], None]) is None
        assert role_of("x", [x + 0.5 for x in cells]) is None
        assert role_of("x", cells[:50]) is None
        assert role_of("year", cells) is None
        assert role_of("net_income", cells) is None


@given(rows=st.integers(51, 2000), spread=st.integers(1, 10**5), seed=st.integers(0, 999))
def test_amounts_in_the_order_of_the_file_are_no_running_number(rows: int, spread: int, seed: int) -> None:
    amounts = np.sort(np.random.default_rng(seed).integers(0, rows * spread, rows))
    assert role_of("x", amounts.tolist()) is None


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


def running(rows: int, step: int, gap: bool) -> list[int | None]:
    return [*range(5, 5 + rows * step, step), *([None] if gap else [])]


@given(
    name=st.sampled_from(["id", "surname", "hhid", "x", "row", "phone", "lat", "year", "has_phone", "school_id"]),
    cells=st.lists(st.none() | st.integers(0, 90), min_size=1, max_size=150)
    | st.builds(running, st.integers(1, 99), st.integers(1, 9), st.booleans()),
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
        (Variable("x", "numeric", label="Surname"), [i % 60 for i in range(100)], "called like a name"),
        (Variable("x", "numeric"), [*range(99), 98], "in nearly every record"),
        (Variable("x", "numeric"), [*range(98), 97, 97], None),
        (Variable("x"), [f"n{min(i, 89)}" for i in range(100)], "in nearly every record"),
        (Variable("x", "numeric"), range(100), "in every record"),
        (Variable("x", "numeric"), [None, *range(9)], "in every record"),
        (Variable("x", "numeric"), [None] * 50 + [*range(50)], None),
        (Variable("x", "numeric"), [i % 60 for i in range(100)], None),
        (Variable("surname", role="key"), [f"n{i % 20}" for i in range(100)], "called like a name"),
        (Variable("surname", role="key"), [f"n{i % 19}" for i in range(100)], None),
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


def cells_of(survey: str, name: str, rows: int) -> Sequence[object]:
    """Return as many different values as the column of the survey has, in a file of so many rows, not in order."""
    kept = int(SURVEYS[survey][name])
    return [(i * 7919 % rows) % kept * 3 + 11 for i in range(rows)]


SURVEYS: dict[str, dict[str, int]] = {
    "ACS": {"SERIALNO": 4000, "PWGTP": 300, "AGEP": 96, "RELP": 18, "OCCP": 520, "PUMA": 230, "ST": 51, "NAICSP": 260}
    | {"TEL": 2, "TAXP": 68, "SPORDER": 9, "PINCP": 4000, "INSP": 100},
    "GSS": {"id": 9999, "phone": 6, "occ10": 480, "vstrat": 300, "intid": 120, "ssn": 2, "email": 2, "emailhr": 60},
    "ESS": {"idno": 2000, "name": 1, "region": 270, "psu": 3000, "stratum": 900, "isco08": 520, "nwspol": 300},
    "DHS": {"caseid": 9800, "hhid": 7500, "v001": 400, "v002": 300, "v003": 8, "v005": 400, "v021": 400, "hvidx": 20},
    "IPUMS": {"SERIAL": 7700, "HISTID": 9999, "CBSERIAL": 7700, "CPSID": 7700, "CPSIDP": 9999, "LINKID": 9999}
    | {"NAMELAST": 4000, "NAMEFRST": 400, "STREET": 3000, "OCC": 480, "PERNUM": 14, "STATEFIP": 51, "CITY": 900},
    "NHANES": {"SEQN": 9200, "RIDAGEYR": 81, "SDMVSTRA": 15, "RXDDRUG": 900, "LBXGLU": 300},
    "EU-SILC": {"RB030": 9999, "PB030": 9000, "HB030": 5000, "DB060": 900, "PB140": 80, "PL051": 43},
    "SOEP": {"pid": 1100, "hid": 1001, "cid": 1001, "hidakt": 1001, "persnr": 1100, "hhnrakt": 1001, "pnr": 12}
    | {"syear": 15, "gebjahr": 90, "pglabgro": 8000, "kkz": 400},
    "UK": {"CASENO": 9999, "HSERIAL": 2700, "pidp": 9999, "hidp": 2700, "PERSNO": 12, "RECNO": 12, "PWT18": 1500},
    "PISA, TIMSS": {"CNTSTUID": 9999, "IDSTUD": 9999, "STIDSTD": 9999, "CNTSCHID": 280, "IDSCHOOL": 200, "IDCNTRY": 40},
}
WITHHELD = words("""
    SERIALNO id idno caseid hhid SERIAL HISTID CBSERIAL CPSID CPSIDP LINKID NAMELAST NAMEFRST STREET SEQN RB030 PB030
    HB030 pid hid cid hidakt persnr hhnrakt CASENO HSERIAL pidp hidp CNTSTUID IDSTUD STIDSTD
""")


@pytest.mark.parametrize("survey", SURVEYS)
def test_of_real_surveys_the_numbers_of_records_are_withheld_and_nothing_else(survey: str) -> None:
    found = [name for name in SURVEYS[survey] if role_of(name, cells_of(survey, name, 10_000)) == "id"]
    assert found == [name for name in SURVEYS[survey] if name in WITHHELD]


@pytest.mark.parametrize(("different", "role"), [(300, None), (899, None), (900, "id")])
def test_numbers_of_schools_identify_only_in_a_file_of_schools(different: int, role: str | None) -> None:
    for name in ("school_id", "schoolid", "hospital_no", "id_school"):
        assert role_of(name, [(i * 7) % 1000 % different for i in range(1000)]) == role


def test_a_weight_is_no_identifier_and_numbers_with_decimals_are_to_be_rounded(tmp_path: Path) -> None:
    draws = np.random.default_rng(3).permutation(200) / 7 + 1
    data = from_frame(pl.DataFrame({"sex": [1, 2] * 100, "w": draws, "pay": draws[::-1]}), weight="w")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        qd.release(data, qd.RandomSwap(["sex"], rate=1.0), tmp_path / "out", measures=["hellinger(sex)"])
    told = [str(one.message) for one in caught if "matched with other files" in str(one.message)]
    assert len(told) == 2
    assert told[0].startswith("Column 'pay'")
    assert told[0].endswith("Round it, or recode it into classes.")
    assert told[1].startswith("The weight 'w' is different in nearly every record")


@pytest.mark.parametrize("name", ["cps8d", "adult", "state"])
def test_no_column_of_a_bundled_file_is_taken_for_an_identifier(name: str) -> None:
    made: Data = getattr(qd.datasets, name)()
    again = from_frame(made.frame())
    assert not [variable.name for variable in again.codebook if variable.role == "id"]
