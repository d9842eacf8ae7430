"""Words that identifiers are called by, in small letters and without accents, as `names.words` returns them."""

from __future__ import annotations


def split(text: str) -> frozenset[str]:
    """Return words written in one text as a set."""
    return frozenset(text.split())


NAMES = split("name names nom noms nombre nombres nome nomi naam namn navn nimi nev isim imie jmeno meno ime имя")
"""Names of persons where nothing else is said; a country_name is none."""

PERSONS = split(
    "first last sur fore given family full middle maiden birth nick person personal persons patient respondent resp "
    "client customer employee worker student pupil teacher member user contact owner tenant insured participant "
    "subject interviewee interviewer mother father parent child spouse partner husband wife head hh household hhh "
    "householder self legal real complete de la del du der von des the my your his her q"
)
"""Words before "name" with which it is a person's."""

PERSONAL = split(
    "surname surnames lastname lname firstname fname forename givenname familyname fullname middlename maidenname "
    "nickname personname patientname respondentname respname clientname customername employeename studentname "
    "membername username contactname ownername namefirst namelast namesurname birthname christianname initials "
    "nachname vorname vornamen familienname geburtsname zuname rufname vollname kundenname patientenname "
    "prenom prenoms nomfamille nomdefamille nomcomplet nomprenom nomnaissance nomdenaissance patronyme "
    "apellido apellidos primerapellido segundoapellido nombrecompleto sobrenome apelido nomecompleto cognome "
    "voornaam achternaam familienaam fornamn efternamn fornavn etternavn efternavn etunimi sukunimi nazwisko "
    "prijmeni priezvisko vezeteknev keresztnev soyad soyadi soyisim adsoyad prezime фамилия отчество фио 姓名 氏名 "
    "名前 이름 성명 "
    "email emails mail emailaddress emailaddr mailaddress correo correoelectronico courriel epost sahkoposti "
    "phone telephone telephon telefon telefono telefone telefoon telefonnummer tel fon fone cellphone cellular "
    "mobilephone mobilenumber mobilnummer handy handynummer gsm fax puhelin rufnummer telefonnr phonenumber phoneno "
    "телефон 电话 手机 電話番号 전화번호 "
    "address addr adress adresse anschrift adres direccion domicilio endereco indirizzo osoite adresa wohnadresse "
    "homeaddress postaladdress postanschrift streetaddress ipaddress ip адрес 地址 住所 주소 "
    "street streetname housenumber houseno strasse straße strassenname hausnummer hausnr rue calle straat gata "
    "ssn socialsecurity socsec nin nino nhs nationalid passport passeport pasaporte passaporte reisepass paspoort "
    "ausweis ausweisnummer personalausweis driverlicense drivinglicence driverslicense licenseplate licenceplate "
    "numberplate kennzeichen steuernummer steuerid steueridnr idnr taxid taxno vatid ahv ahvn ahvnr ahvnummer avs "
    "sozialversicherungsnummer versichertennummer sozialversicherung insee nir cpf cnpj dni nif curp pesel "
    "personnummer personennummer fodselsnummer cprnummer cprnr bsn burgerservicenummer codicefiscale fiscalcode "
    "henkilotunnus aadhaar amka egn jmbg oib rodnecislo 身份证 身份证号 "
    "iban bankaccount accountnumber accountno kontonummer creditcard creditcardnumber cardnumber kreditkarte login "
    "userid loginname mrn medicalrecordnumber imei"
)
"""Names, addresses and official numbers of persons: direct identifiers."""

NUMBERED = split(
    "tax taxpayer vat ss sin socialsecurity social socialinsurance nationalinsurance insurance nhs ahv avs national "
    "citizen passport passeport phone telephone tel telefon mobile fax bank bankaccount iban creditcard license "
    "licence driverlicense drivinglicence idcard identitycard identity steuer pass ausweis seguridadsocial "
    "versicherten sozialversicherungs medicare medicaid healthcard"
)
"""What is a direct identifier together with a word for number."""

NUMBERS = ("number", "nummer", "numero", "numer", "num", "nbr", "nr", "no", "id", "ident")
"""Words for the number of something, where the thing comes first."""

SERIAL = split(
    "id ids pid hid hhid uid uuid guid caseid personid respid ident identifier identifiant identificador "
    "identificativo identifikator serial serialno serialnumber ssn nr recid idnum idnumber idno identnr kennung "
    "lfdnr laufnr laufnummer aktenzeichen fallnummer matrikelnummer haushaltsnummer folio pseudonym psn usubjid "
    "subjid seqn idind idhog idhogar idmen numen rowid rownum rownumber recno token"
)
"""Words for what tells records apart, whatever comes before."""

ENTITIES = split(
    "id case person pers p persons individual ind household hh haushalt haushalts hogar menage famiglia family fam "
    "unit resp respondent record rec row serial patient client customer kunden member employee staff student "
    "pupil teacher subject participant proband account policy file registration questionnaire interview form sample "
    "animal farm firm company enterprise business establishment school hospital dwelling building fall akten "
    "personen personal personnel mitglieds patienten matrikel registrierungs individuo persona personne persoon vp"
)
"""Who or what has numbers that tell records apart."""

AREAS = split(
    "region state country county district canton kanton province provincia tract block ward area zone city town "
    "municipality municipio commune comune gemeinde kreis bezirk land bundesland place nuts geo location site "
    "occupation industry sector category cat type kind group class classification stratum strata psu cluster segment "
    "cell year month day wave round visit item question version language currency product brand model job dept "
    "department field course topic status color colour batch"
)
"""What has numbers that are categories, so that region_id identifies nobody."""

ROWS = split("index idx row rows rowname rownames unnamed obs observation sequence seq seqno position lineno")
"""Numbers of rows, when nearly all are different: the order of the file in a column."""

FLAGS = split("has have hat had own owns owned use uses used any with without consent share got gave refused lacks")
"""First words of a question about a thing: has_phone is a yes or a no."""
