"""Which columns identify persons or records: by what they are called and how many different values they have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Column


def split(text: str) -> frozenset[str]:
    """Return words written in one text as a set."""
    return frozenset(text.split())


NAMES = split("name names nom noms nombre nombres nome nomi naam namn navn nimi nev isim imie jmeno meno ime имя")
"""Names of persons where nothing else is said; a country_name is none."""

PERSONS = split(
    "first last frst lst sur fore given family full middle maiden birth nick person persons personal patient patients "
    "respondent respondents resp client customer employee worker student pupil teacher member user contact owner "
    "tenant insured participant subject interviewee interviewer enumerator supervisor informant guardian caregiver "
    "doctor physician nurse midwife mother father parent child spouse partner husband wife sibling brother sister kin "
    "head hh household hhh hhhead hoh householder applicant beneficiary self legal real complete primer segundo "
    "tercer entrevistado entrevistada encuestado usage marital jeune fille enquete befragten befragte befragter "
    "patienten"
)
"""Words before or after "name" with which it is a person's."""

LINKS = split("de la del du der von des of the my your his her their q")
"""Words that may stand between "name" and a person."""

PERSONAL = split(
    "surname surnames sname lastname lname firstname fname forename givenname familyname fullname middlename "
    "maidenname nickname kontaktname personname patientname respondentname respname clientname "
    "customername employeename studentname membername username contactname ownername namefirst namelast "
    "namefrst namelst namesurname rname mname firstnm lastnm fullnm birthname christianname initials "
    "nachname nachnamen vorname vornamen familienname familiennamen geburtsname zuname rufname vollname "
    "kundenname patientenname prenom prenoms nomfamille nomdefamille nomcomplet nomprenom nomnaissance "
    "nomdenaissance patronyme apellido apellidos primerapellido segundoapellido nombrecompleto "
    "sobrenome apelido nomecompleto cognome voornaam achternaam familienaam fornamn efternamn fornavn "
    "etternavn efternavn etunimi sukunimi nazwisko prijmeni priezvisko vezeteknev keresztnev soyad "
    "soyadi soyisim adsoyad prezime фамилия отчество фио 姓名 氏名 名前 이름 성명 email emails mail contactemail "
    "mailadresse emailaddress emailaddr mailaddress correo correoelectronico courriel epost sahkoposti "
    "phone telephone telephon telefon telefono telefone telefoon telefonnummer tel fon fone cellphone "
    "cellular mobilephone mobilenumber mobilnummer handy handynummer gsm fax puhelin rufnummer "
    "telefonnr phonenumber phoneno mobileno celular movil whatsapp handynr rufnr numtel whatsappnumber "
    "telno telnr phno mobno mobnr mobnumber cellno cellnr cellnum cellnumber телефон 电话 手机 電話番号 전화번호 "
    "address addr adress addresse adresse anschrift adres direccion domicilio endereco indirizzo osoite "
    "adresa wohnadresse homeaddress postaladdress postanschrift streetaddress ipaddress ipaddr ip адрес "
    "地址 住所 주소 street streetname housenumber housenum houseno strasse straße strassenname hausnummer "
    "hausnr rue calle straat gata ssn socialsecurity socsec socsecno nin nino nhs nationalid passport "
    "passeport pasaporte passaporte reisepass paspoort ausweis ausweisnummer personalausweis "
    "driverlicense drivinglicence driverslicense licenseplate licenceplate numberplate kennzeichen "
    "steuernummer steuerid steueridnr idnr taxid taxno vatid ahv ahvn ahvnr ahvnummer avs "
    "sozialversicherungsnummer versichertennummer sozialversicherung svnr svnummer numinsee nir cpf "
    "cnpj dni nif curp pesel personnummer personennummer fodselsnummer cprnummer cprnr bsn "
    "burgerservicenummer codicefiscale fiscalcode henkilotunnus aadhaar aadhar cedula cnic natid nuss "
    "tckn kimlik tckimlik codfisc idcard amka egn jmbg oib rodnecislo 身份证 身份证号 iban bankaccount "
    "accountnumber accountno acctno acctnum acctnumber kontonummer kontonr cardno cardnr plateno "
    "platenumber creditcard creditcardnumber cardnumber kreditkarte login userid loginname deviceid mrn "
    "medicalrecordnumber imei"
)
"""Names, addresses and official numbers of persons: direct identifiers."""

SHORT = split(
    "mobile mob cell adr nid rut nrc tin ein cpr fnr nie nip hcn mbi vin latitude longitude lat lon lng gps latnum "
    "longnum coordinates easting northing"
)
"""Words that mean a number or the place of a person when nothing else is said, and other things in longer names."""

POINTS = split("latitude longitude lat lon lng gps latnum longnum coordinates easting northing")
"""Places on a map, whose numbers have decimals."""

NUMBERED = split(
    "ni nat kimlik tax taxpayer vat ss sin socialsecurity social socialinsurance nationalinsurance insurance nhs ahv "
    "avs national citizen passport passeport phone telephone tel telefon mobile fax bank bankaccount iban creditcard "
    "license licence driverlicense drivinglicence idcard identitycard identity steuer pass ausweis seguridadsocial "
    "versicherten sozialversicherungs medicare medicaid healthcard"
)
"""What is a direct identifier together with a word for number."""

NUMBERS = ("number", "nummer", "numero", "numer", "num", "nbr", "nr", "no", "id", "ident")
"""Words for the number of something, where the thing comes first."""

SERIAL = split(
    "id ids pid hid hhid uid uuid guid caseid personid respid ident identifier identifiant identificador "
    "identificativo identifikator serial serialno serialnumber ssn nr recid idnum idnumber idno identnr kennung lfdnr "
    "laufnr laufnummer aktenzeichen fallnummer matrikelnummer haushaltsnummer folio pseudonym psn usubjid subjid seqn "
    "idind idhog idhogar idmen numen rowid rownum rownumber recno token uniqid uniqueid hhidpn pidp hidp pidlink "
    "mergeid xwaveid idhh linkid lopnr rinpersoon cbserial hserial cpsid cpsidp responseid studyid serialid cid "
    "hidakt hhnrakt idstud stidstd cntstuid histid hhidnr lopenr identificationnumber"
)
"""Words for what tells records apart, whatever comes before."""

OFFICIAL = split("rb030 pb030 hb030 db030 rx030 px030 rb220 rb230 rb240 pb160 pb170 pb180")
"""Numbers of persons and households in EU-SILC, whose names are codes."""

ENTITIES = split(
    "id case person pers p persons individual ind household hh haushalt haushalts hogar menage famiglia family fam "
    "unit resp respondent record rec row serial patient client customer kunden member employee staff student pupil "
    "teacher subject participant proband account policy file registration questionnaire interview form sample animal "
    "int intv interv "
    "farm firm company enterprise business establishment dwelling building fall akten personen personal personnel "
    "mitglieds patienten matrikel registrierungs individuo persona personne persoon vp"
)
"""Who or what has numbers that tell records apart."""

INSTITUTIONS = split("school sch cntsch hospital clinic college university schule hopital ecole escuela")
"""What has numbers that many records share: they tell records apart only in a file of institutions."""

AREAS = split(
    "region state country county district canton kanton province provincia tract block ward area zone city town "
    "municipality municipio commune comune gemeinde kreis bezirk land bundesland place nuts geo location site "
    "occupation industry sector category cat type kind group class classification stratum strata psu cluster segment "
    "cell year month day date time week quarter period term semester jahr annee ano anno age alter wave round visit "
    "item question version language currency product brand model job dept department field course topic status color "
    "colour batch village ea lga msa fips occ icd nace drug wahlkreis parish precinct constituency isco isic naics"
)
"""What has numbers that are categories, so that region_id identifies nobody."""

AMOUNTS = split(
    "income incomes wage wages salary pay paid earnings amount price cost costs turnover sales revenue rent tax taxes "
    "expenditure spending assets debt wealth value size weight height score einkommen lohn gehalt umsatz miete betrag "
    "gewicht revenu salaire montant loyer poids ingreso ingresos salario renta monto importe reddito"
)
"""Quantities, which are no running numbers even where they rise from each record to the next."""

ROWS = split("index idx row rows rowname rownames unnamed obs observation sequence seq seqno position lineno")
"""Numbers of rows, when nearly all are different: the order of the file in a column."""

FLAGS = split("has have hat had own owns owned use uses used any with without consent share got gave refused lacks")
"""First words of a question about a thing: has_phone is a yes or a no, while its values are few."""


_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=[0-9])|(?<=[0-9])(?=[^\W\d_])")
_ASIDE = split(
    "text txt str string char raw orig original clean cleaned full complete line home work private privat business "
    "mobile celular movil primary secondary main current new old first last paterno materno"
)


def words(name: str) -> tuple[str, ...]:
    """Split a name where its words begin, in small letters without accents.

    >>> from quadrille.io.frames.identifiers import words
    >>> words("SSN_text"), words("PersonNumber"), words("hh-nr2"), words("Prénom")
    (('ssn', 'text'), ('person', 'number'), ('hh', 'nr', '2'), ('prenom',))
    """
    letters = unicodedata.normalize("NFKD", name)
    bare = unicodedata.normalize("NFC", "".join(c for c in letters if not ("\u0300" <= c <= "\u036f")))
    parts = re.split(r"[\W_]+", _BOUNDARY.sub(" ", bare))
    return tuple(part.casefold() for part in parts if part)


def head(name: str) -> tuple[str, ...]:
    """Return the words without numbers, and without last words that say only where or how a value is kept.

    >>> from quadrille.io.frames.identifiers import head
    >>> head("address_line_1"), head("phone2_home"), head("text")
    (('address',), ('phone',), ('text',))
    """
    return heads(name)[-1]


def heads(name: str) -> list[tuple[str, ...]]:
    """Return the words without numbers, then again without each last word that says only where or how.

    >>> from quadrille.io.frames.identifiers import heads
    >>> heads("phone2_home")
    [('phone', 'home'), ('phone',)]
    """
    kept = tuple(word for word in words(name) if not word.isdigit())
    found = [kept]
    while len(kept) > 1 and kept[-1] in _ASIDE:
        kept = kept[:-1]
        found.append(kept)
    return found


NameKind = Literal["direct", "short", "point", "record", "institution", "row"]
"""A name, address or number of a person; a short word that may mean one; a place on a map; the number of a case, a
household or the like; that of a school or the like; the number of a row."""

_ASIDE_LABEL = re.compile(r"\([^)]*\)|\[[^\]]*\]|['’´`]s?\b")
_ASKED = split("what is are please enter give unique anonymous anonymised anonymized and or a an no")


def name_kind(name: str, label: str = "") -> NameKind | None:
    """Say what a name tells, else a label: words in any case and several languages, joined or not.

    >>> from quadrille.io.frames.identifiers import name_kind
    >>> [name_kind(name) for name in ("first_name", "SSN_text", "PersonNumber", "hhid", "country_name", "phone_owner")]
    ['direct', 'direct', 'record', 'record', None, None]
    >>> name_kind("V3", "Respondent's surname"), name_kind("V4", "Social security income")
    ('direct', None)
    """
    return _of_name(name) or _of_label(label)


def asks(name: str) -> bool:
    """Whether a name begins like a question about a thing: has_phone."""
    return bool(FLAGS.intersection(heads(name)[0][:1]))


def means_else(name: str) -> bool:
    """Whether a name is that of amounts, areas, times or other things that do not tell records apart."""
    return not (AREAS | AMOUNTS).isdisjoint(heads(name)[-1])


def _of_name(name: str) -> NameKind | None:
    shorter = [kept for kept in map(_unasked, heads(name)) if kept]
    if not shorter:
        return None
    if any(_is_direct(part) for part in shorter):
        return "direct"
    if any(_is_short(part) for part in shorter):
        return "point" if any(part[-1] in POINTS for part in shorter) else "short"
    if "".join(words(name)) in OFFICIAL:
        return "record"
    return _counts(shorter[-1]) or ("row" if "".join(shorter[-1]) in ROWS else None)


def _of_label(label: str) -> NameKind | None:
    """Say what a label tells when it names an identifier and says nothing else beside whose it is."""
    kept = [word for word in words(_ASIDE_LABEL.sub(" ", label)) if len(word) > 1 and not word.isdigit()]
    of_whom = PERSONS | LINKS | _ASKED
    inner = [word for word in kept if word not in of_whom]
    if kept and set(kept) & NAMES and not set(inner) - NAMES:
        return "direct"
    start = next((i for i, word in enumerate(kept) if word not in of_whom), len(kept))
    end = next((i for i, word in reversed(list(enumerate(kept))) if word not in of_whom), -1)
    joined = "".join(kept[start : end + 1])
    if joined in PERSONAL or _has(joined, NUMBERED) or _has("".join(kept), NUMBERED):
        return "direct"
    if joined in POINTS and len(joined) > len("long"):
        return "point"
    return "record" if joined in SERIAL or _has(joined, ENTITIES) else None


def _unasked(kept: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without a first one that asks for a thing."""
    return kept[1:] if kept and kept[0] in FLAGS else kept


def _is_direct(kept: Sequence[str]) -> bool:
    """Whether the last words, joined, are a name, an address or an official number of a person."""
    tails = ["".join(kept[start:]) for start in range(len(kept))]
    return any(tail in PERSONAL or _has(tail, NUMBERED) for tail in tails) or _is_name(kept)


def _is_name(kept: Sequence[str]) -> bool:
    """Whether a word is "name" in some language, first or last, and the others say that it is a person's."""
    if not kept:
        return False
    if kept[-1] in NAMES:
        return all(word in PERSONS or word in LINKS or len(word) == 1 for word in kept[:-1])
    if kept[0] in NAMES and len(kept) > 1:
        return kept[-1] in PERSONS and all(word in PERSONS or word in LINKS for word in kept[1:])
    joined = "".join(kept)
    before, after = joined.removesuffix("name"), joined.removeprefix("name")
    return (joined != before and before.removesuffix("s") in PERSONS) or (
        joined != after and after.removeprefix("of") in PERSONS
    )


def _is_short(kept: Sequence[str]) -> bool:
    """Whether the last word is a short one, and the others say at most whose it is."""
    if not kept or kept[-1] not in SHORT:
        return False
    whose = PERSONS | SHORT | LINKS | {"home", "work", "private", "house", "dwelling"}
    return all(word in whose or len(word) == 1 for word in kept[:-1])


def _counts(kept: Sequence[str]) -> NameKind | None:
    """Say whose number the last words are: the word directly before a word for number decides."""
    joined = "".join(kept)  # IDunit has its words where no rule of capitals finds them
    whose = kept[-1] if kept[0] == "id" else joined.removeprefix("id") if joined.startswith("id") else ""
    if whose in ENTITIES | INSTITUTIONS and (kept[0] == "id" or len(whose) > len("int")):
        return "record" if whose in ENTITIES else "institution"
    for start in range(len(kept)):
        tail, before = "".join(kept[start:]), kept[start - 1] if start else ""
        if _has(tail, INSTITUTIONS):
            return "institution"
        if _has(tail, ENTITIES) or (tail in SERIAL and before not in AREAS):
            return "record"
    return None


def _has(tail: str, things: frozenset[str]) -> bool:
    """Whether a word is one of some things and a word for number: taxnumber, caseid, school_no."""
    return any(tail.endswith(number) and tail.removesuffix(number) in things for number in NUMBERS)


MOST_ORDINAL = 50
"""Integers with at most this many distinct values are guessed to be ordinal."""

_MANY = 1_000
"""As many numbers of cases or households tell records apart, also where each has many records."""

_YES_OR_NO = 2
"""A column that is called like a thing of a person may tell whether there is one."""

_ANSWERS = 5
"""A question about a thing, such as has_phone, has at most as many answers."""

_NOTABLE = 20
"""From as many different values on, a released column that is called like a thing of a person is worth a warning."""

_FEW_ROWS = 50
"""A running number is recognised in files of more records."""


def names_identifier(name: str) -> bool:
    """Whether a name says that the column tells records apart: surname, ssn, id, caseId, hh_nr and the like."""
    return name_kind(name) is not None


def names_point(name: str) -> bool:
    """Whether a name is that of places on a map, which identify although they have decimals."""
    return name_kind(name) == "point"


def identifies(name: str, distinct: int, present: int, label: str = "") -> bool:
    """Whether a column of text or whole numbers with such a name and as many different values is an identifier.

    `present` counts the fields that are not empty. Duplicates and empty fields are tolerated, since real files have
    both; but few values are categories, whatever the column is called. A label counts where the name tells nothing,
    and less: it stands for more than a few values.
    """
    kind = name_kind(name)
    if kind is None:
        return distinct > MOST_ORDINAL and _identifies(name_kind("", label), distinct, present)
    return not (asks(name) and distinct <= _ANSWERS) and _identifies(kind, distinct, present)


def _identifies(kind: NameKind | None, distinct: int, present: int) -> bool:
    match kind:
        case "direct":
            flag = distinct <= _YES_OR_NO and 2 * distinct <= present
            return distinct > MOST_ORDINAL or (10 * distinct > present and not flag)
        case "short" | "point":
            return distinct > MOST_ORDINAL or (distinct > _ANSWERS and nearly_all(distinct, present))
        case "record":
            return distinct >= _MANY or 10 * distinct > present > 0
        case "institution" | "row":
            return nearly_all(distinct, present)
        case None:
            return False


def tells_apart(distinct: int, present: int) -> bool:
    """Whether text identifies records whatever it is called: different in nearly every one of many."""
    return distinct > MOST_ORDINAL and nearly_all(distinct, present)


def nearly_all(distinct: int, present: int) -> bool:
    """Whether at least nine fields in ten have a value of their own."""
    return 10 * distinct >= 9 * present > 0


@dataclass
class Run:
    """Numbers that come in file order, batch by batch: do they count the records?

    They do when they are whole, rise from each record to the next, and either all steps are equal or the numbers are
    so dense that amounts would meet: of n amounts within a range r, about n^2 / (2 r) pairs are equal.
    """

    name: str
    rising: bool = True
    rows: int = 0
    first: float = 0.0
    last: float = 0.0
    step: float | None = None
    even: bool = True

    def __post_init__(self) -> None:
        """Amounts, years, areas and the like are no running numbers, though a file may list them one by one."""
        self.rising = not means_else(self.name)

    def extend(self, values: NDArray[np.float64]) -> None:
        """Go on with the next values; an empty field, as not a number, ends the run."""
        if not self.rising or not len(values):
            return
        if not np.isfinite(values).all():
            self.rising = False
            return
        steps = np.diff(values, prepend=self.last) if self.rows else np.diff(values)
        self.rising = bool((steps > 0).all() and (values == np.floor(values)).all())
        if self.rising and len(steps):
            self.step = float(steps[0]) if self.step is None else self.step
            self.even = self.even and bool((steps == self.step).all())
        self.first, self.last = self.first if self.rows else float(values[0]), float(values[-1])
        self.rows += len(values)

    @property
    def counts(self) -> bool:
        """Whether the numbers so far count records."""
        dense = 20 * (self.last - self.first) < self.rows**2
        return self.rising and self.rows > _FEW_ROWS and (self.even or dense)


def suspicion(column: Column) -> str | None:
    """Say what speaks for an identifier in a column that is not taken for one: to go on after "Column 'x' "."""
    variable, records = column.variable, len(column.values)
    distinct, present = column.tally
    if variable.role == "id" or records < 2:
        return None
    if distinct == present and present >= records - 1:
        return "has a different value in every record"
    # Amounts are often different in most records; a number of persons differs in all but a few.
    if tells_apart(distinct, present) if variable.coded else 100 * distinct >= 99 * records:
        return "has a different value in nearly every record"
    if holds_dates(column):
        return "holds dates to the day, such as those of birth, which others know"
    kind = name_kind(variable.name, variable.label)
    if kind != "point" and has_decimals(column):
        return None
    if kind in ("direct", "short", "point") and distinct >= (_NOTABLE if kind == "direct" else MOST_ORDINAL):
        return "is called like a name, an address or a number of a person"
    if kind in ("record", "institution") and distinct > MOST_ORDINAL and variable.role is None:
        return "is called like an identifier and has many different values"
    return None


_DAYS = 366
"""Dates of more days than a year has are those of lives, not those of one round of interviews."""
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:[T ].*)?")


def holds_dates(column: Column) -> bool:
    """Whether a column holds many dates to the day: as dates, as text, or as numbers such as 19650312.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.io.frames.identifiers import holds_dates
    >>> days = [10_000 * year + 100 * month + 15 for year in range(1940, 1980) for month in range(1, 13)]
    >>> holds_dates(qd.from_frame(pl.DataFrame({"x": days}))["x"])
    True
    """
    if column.tally[0] <= _DAYS:
        return False
    if column.variable.coded:
        texts = [value for value in column.variable.categories if isinstance(value, str)]
        return len(texts) > _DAYS and all(map(_DATE.fullmatch, texts))
    first = column.values[:_DAYS]
    likely = [parts for parts in (_year_first, _year_last) if _are_days(*parts(first[~np.isnan(first)]))]
    return any(_are_days(*parts(column.values[~np.isnan(column.values)])) for parts in likely)


def _year_first(numbers: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    return numbers // 10_000, numbers // 100 % 100, numbers % 100


def _year_last(numbers: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    return numbers % 10_000, numbers // 10_000 % 100, numbers // 1_000_000


def _are_days(year: NDArray[np.float64], month: NDArray[np.float64], day: NDArray[np.float64]) -> bool:
    """Whether all are the year, the month and the day of dates."""
    for part, low, high in ((year, 1850, 2100), (month, 1, 12), (day, 1, 31)):
        if not ((part >= low) & (part <= high) & (part == np.floor(part))).all():
            return False
    return True


def can_be_rounded(column: Column) -> bool:
    """Whether a column holds amounts, by its decimals or its name: fewer digits make them less telling."""
    variable = column.variable
    if variable.coded or name_kind(variable.name, variable.label) is not None:
        return False
    return has_decimals(column) or means_else(variable.name)


def has_decimals(column: Column) -> bool:
    """Whether a column holds numbers that are not all whole."""
    if column.variable.coded:
        return False
    present = column.values[~np.isnan(column.values)]
    return not bool((present == np.floor(present)).all())
