"""Words that identifiers are called by, in small letters and without accents, as `names.words` returns them."""

from __future__ import annotations


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
    "surname surnames lastname lname firstname fname forename givenname familyname fullname middlename "
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
    "farm firm company enterprise business establishment dwelling building fall akten personen personal personnel "
    "mitglieds patienten matrikel registrierungs individuo persona personne persoon vp"
)
"""Who or what has numbers that tell records apart."""

INSTITUTIONS = split("school hospital clinic college university schule hopital ecole escuela")
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
