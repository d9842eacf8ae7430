"""A file at a glance: columns and their roles, weight, cells, and what to look at before swapping. No data values."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import records_in
from quadrille.data import Column, Data, different, uncounted_weights
from quadrille.errors import ParameterError
from quadrille.io.frames.identifiers import (
    MOST_ORDINAL,
    can_be_rounded,
    has_decimals,
    heads,
    holds_dates,
    name_kind,
    names_point,
    nearly_all,
    split,
    suspicion,
    words,
)
from quadrille.io.frames.values import counted_in
from quadrille.io.stat_read import was_moment
from quadrille.measure.population import Sample, sample_of
from quadrille.score.dependencies import Dependency, dependencies
from quadrille.summary import Table
from quadrille.text import Shown, percent

if TYPE_CHECKING:
    from quadrille.swap.targeted.risk import RiskByLevel

_PLACE = re.compile(
    r"region|bundesland|province|provin[cz]|canton|kanton|county|district|distrit|bezirk|kreis|municip|commune|comune|"
    r"gemeinde|kommun|departement|departamento|prefecture|voivodeship|wojewodztwo|powiat|gmina|fylke|"
    r"estado$|ciudad|comunidad|postal|postleitzahl|codigopostal|codepostal|okres|obec|maakunta|kunta$"
)
_PLACES = re.compile(
    r"state|land|area|city|town|stadt|ort|ville|citta|tract|block|ward|nuts|zip|zipcode|plz|lan|kraj"
    r"|oblast|parish|borough|gemeente|lau|fips|puma|msa"
)
_WEIGHT = re.compile(r"(?:weights?|wgts?|wghts?|wt|gewichte?)$")
_WEIGHTS = re.compile(
    r"w|poids|peso|pesos|ponderation|ponderacion|ponderazione|ponderador|pond|fexp|factorexpansion|expansionfactor"
    r"|hochrechnung|hochrechnungsfaktor|hrf|vikt|vekt|vaegt|waga|vaha"
    r"|pw|wt(?:mec|int|saf|dr|finl)\w*|p?wgtp|rb050|rb060|pb040|db090"
)
_OF_WEIGHT = re.compile(r"final|norm|normed|normali[sz]ed|trimmed|calibrated|cal|adj|adjusted|design|base")
_STRATUM = re.compile(r"(?:(?:sdm)?v?(?:strat(?:um|a|e)?|stra)|db050|schicht|estrato|strato|warstwa|vrstva)\d*")
_CLUSTER = re.compile(r"(?:clusters?|(?:sdm)?v?psu|db060|upm|upe|ppsu|klumpen|grappe|grappolo|conglomerado)\d*")
_HOUSEHOLD = re.compile(
    r"(?:hh|hid|hhid|households?|haushalte?s?|menage|hogar|vivienda|famiglia|family|families|hushold|hushall|gospodarstwo"
    r"|dwelling|hb030|db030|rb040|px030)"
)
_OF_SILC = re.compile(r"[dhpr][bx]0\d0")
_AGE = re.compile(
    r"(?:age|ages|ageyrs?|ageinyears|ridageyr|agep|alter|alder|edad|eta|idade|leeftijd|wiek|vek|ika|yas|yob|byear|birthyr"
    r"|birthyear|yearofbirth|yearbirth|gebjahr|geburtsjahr|anneenaissance|anneedenaissance|anonacimiento|annonascita"
    r"|anonascimento|geboortejaar|fodselsar|rx010|rx020|px020|rb080|pb140)"
)
_OF_AGE = split(
    "year years yrs jahre jahren ans anos anni person persons pers resp respondent r head hh member self interview at "
    "in of the completed exact last"
)
_HEIGHTS = {"weight": "height", "wgt": "hgt", "wt": "ht"}
_MASS = re.compile(r"body|birth|over|under|light|korper|koerper|geburt|naissance|corporal|kg|lbs?$|gramm?s?$")


_MANY_DETERMINED = 5
_SOME_DETERMINED = 2
_HOUSEHOLD_SIZE = 6
"""Where so few records share a value on average, it takes fewer columns on which they agree to tell a unit."""
_MANY_ALONE = 0.1


def left_out(columns: Sequence[Column], declared: Collection[str]) -> list[str]:
    """Say which columns are taken for identifiers, unless the user says so, and how to release one on purpose."""
    names = [c.variable.name for c in columns if c.variable.role == "id" and c.variable.name not in declared]
    if not names:
        return []
    return [
        f"Taken for identifiers and left out of releases: {', '.join(map(repr, names))}. To release one on purpose, "
        'give it another role in the codebook: "unit" for the number of a household, else "key" or "outcome".'
    ]


def called_weight(name: str) -> bool:
    """Whether a name is that of a weight of records, in several languages; a body has another kind of weight.

    >>> from quadrille.inspect import called_weight
    >>> [called_weight(name) for name in ("hhweight", "wgt_final", "Gewicht", "poids", "birth_weight", "weight_kg")]
    [True, True, True, True, False, False]
    """
    parts = [word for word in words(name) if not word.isdigit()]
    while len(parts) > 1 and _OF_WEIGHT.fullmatch(parts[-1]):
        parts.pop()
    joined = "".join(parts)
    named = any(_WEIGHTS.fullmatch(word) for word in (_parts(name)[-1], joined, *parts[-1:])) or _WEIGHT.search(joined)
    return bool(named) and _MASS.search(joined) is None


def called_area(name: str) -> bool:
    """Whether a name is that of areas, in several languages.

    >>> from quadrille.inspect import called_area
    >>> [called_area(name) for name in ("Bundesland", "home_state", "provincia", "ward", "reward", "marital_status")]
    [True, True, True, True, False, False]
    """
    parts = words(name)
    return any(_PLACES.fullmatch(word) for word in parts) or _PLACE.search("".join(parts)) is not None


def weights(data: Data) -> list[str]:
    """Look at the sum of the weights, or for a weight that nobody named."""
    if data.ticks is None or data.weight is None:
        numbers = [v for v in data.codebook if v.role is None and not any(isinstance(c, str) for c in v.categories)]
        named = next((v.name for v in numbers if called_weight(v.name) and not _of_a_body(v.name, data.columns)), None)
        if named is None:
            return []
        return [
            f"Column {named!r} is called like a weight. If it is one, add --weight {named}, "
            'or give it role = "weight" in the codebook.'
        ]
    hints: list[str] = []
    if not data.ticks.exact:
        hints.append(
            f"The weights in {data.weight!r} have more digits than fit and are rounded, "
            "each by less than one part in 10^15 of their sum."
        )
    total = data.ticks.total
    if abs(total - data.n) > 0.005 * data.n and total < data.n:
        hints.append(
            f"The weights in {data.weight!r} sum to less than the number of records. Weights that count persons sum to "
            "the population, others to the number of records: check whether this is the right column."
        )
    elif abs(total - round(total)) > 1e-9 * total and abs(total - data.n) > 0.005 * data.n:
        hints.append(
            f"The weights in {data.weight!r} sum neither to the number of records nor to a whole number. "
            "Check the sum against the published population: records or digits may be lost."
        )
    return hints


def _of_a_body(name: str, columns: Sequence[str]) -> bool:
    """Whether a weight stands next to a height of the same name: weight0 and height0, wt and ht."""
    others, own = {column.casefold() for column in columns}, name.casefold()
    return any(one in own and own.replace(one, other) in others for one, other in _HEIGHTS.items())


def of_design(data: Data) -> list[str]:
    """Look for strata, clusters, household numbers and numbers of members that nobody named.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.inspect import of_design
    >>> frame = pl.DataFrame({"hh_id": [1, 1, 2, 3, 3, 3], "person": [1, 2, 1, 1, 2, 3], "psu": list("aabbbb")})
    >>> for hint in of_design(qd.from_frame(frame)):
    ...     print(hint.partition(",")[0])
    Column 'psu' is called like a cluster of the sample. If it is one
    Column 'hh_id' is called like the number of a household
    Column 'person' numbers the members within each 'hh_id'
    """
    hints: list[str] = []
    for column in (data[name] for name in data.columns):
        name, role = column.variable.name, column.variable.role
        parts = _parts(name)
        for pattern, what, fit in (
            (_STRATUM, "a stratum", "stratum"),
            (_CLUSTER, "a cluster of the sample", "cluster"),
        ):
            if role is None and any(pattern.fullmatch(part) for part in parts):
                hints.append(
                    f'Column {name!r} is called like {what}. If it is one, give it role = "{fit}" in the codebook, '
                    "so that it is no key variable."
                )
    unit = next((v.name for v in data.codebook if v.role == "unit"), None) or _household(data)
    if unit is None:
        return hints
    if data.codebook[unit].role != "unit":
        hints.append(
            f"Column {unit!r} is called like the number of a household, and several records share one. Give it "
            'role = "unit" in the codebook: then its members stay together, and what they have in common is seen.'
        )
    hints += [
        f"Column {name!r} numbers the members within each {unit!r}, so that it is no key variable. Give it "
        'role = "id" in the codebook.'
        for name in data.columns
        if data.codebook[name].role is None and name != unit and _numbers_members(data, name, unit)
    ]
    return hints


def unnamed_units(data: Data) -> list[str]:
    """Look for identifiers that several records share, and for columns that are shared and determine most others.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.inspect import unnamed_units
    >>> person = [i // 2 for i in range(400)]
    >>> fixed = {f"x{k}": [(i + k) ** 3 % 7 // 3 for i in person] for k in range(6)}
    >>> data = qd.from_frame(pl.DataFrame({"case": person, **fixed, "wave": [1, 2] * 200}))
    >>> unnamed_units(data)[0].partition(":")[0]
    "Several records share a value of 'case' and agree on most other columns"
    """
    told = Counter(
        each.given[0]
        for each in dependencies(data)
        if each.kind in ("determines", "constant within") and len(each.given) == 1
    )
    hints = [
        f"Several records share a value of the identifier {name!r}. If they belong together, as the members of a "
        'household or the years of a person do, give it role = "unit": then they stay together, and what they have in '
        "common is seen."
        for name in data.columns
        if data.codebook[name].role == "id" and name != _household(data) and _shared(data[name])
        if not names_point(name) and not holds_dates(data[name])
    ]
    for name, count in told.items():
        several = _shared(data[name]) and data[name].tally[0] > MOST_ORDINAL
        most = count >= _MANY_DETERMINED and 3 * count > len(data.columns)
        few = count >= _SOME_DETERMINED and data[name].tally[1] < _HOUSEHOLD_SIZE * data[name].tally[0]
        free = data.codebook[name].role is None and name != data.weight and not has_decimals(data[name])
        if free and several and (most or few):
            where = "most" if most else str(count)
            hints.append(
                f"Several records share a value of {name!r} and agree on {where} other columns: it seems to number "
                'units, such as persons or households. Give it role = "unit" in the codebook, so that their '
                'records stay together, or role = "id", so that it is left out.'
            )
    return hints


COARSER_DATES = 'Publish ages in bands, or years, instead, and give the dates the role "id" in the codebook.'


_MOST_QUOTED = 8


def quoted(names: Sequence[str]) -> str:
    """List names of columns; many are cut short.

    >>> from quadrille.inspect import quoted
    >>> quoted(["pay", "rent"]), quoted([f"v{i}" for i in range(30)])[-24:]
    ("'pay', 'rent'", "'v6', 'v7' and 22 others")
    """
    more = f" and {len(names) - _MOST_QUOTED:,} others" if len(names) > _MOST_QUOTED + 1 else ""
    return ", ".join(map(repr, names[:_MOST_QUOTED] if more else names)) + more


def beside_the_key(columns: Sequence[Column]) -> list[str]:
    """Name ages, years of birth and fine areas that are numbers of many values, so that no risk measure counts them.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.inspect import beside_the_key
    >>> data = qd.from_frame(pl.DataFrame({"sex": ["f", "m"] * 60, "age": [i % 90 for i in range(120)]}))
    >>> beside_the_key([data[name] for name in data.columns])[0].partition(", which")[0]
    "No measure of risk counts 'age', called like an age"
    """
    named: dict[str, list[str]] = {}
    for column in columns:
        variable = column.variable
        if variable.coded or variable.role is not None or not column.tally[1] or has_decimals(column):
            continue
        name = variable.name
        what = "an age" if called_age(name) else "areas" if called_area(name) and not called_weight(name) else None
        if what and suspicion(column) is None:
            named.setdefault(what, []).append(name)
    return [
        f"No measure of risk counts {quoted(names)}, called like {what}, which others know of a person: its many "
        'numbers make it no key variable. Recode it in the codebook (bands or merge) with the role "key", or give it '
        'the role "outcome" if nobody can know it.'
        for what, names in named.items()
    ]


_ACROSS = ("lat", "latitude", "latnum")


def longitudes(data: Data) -> list[str]:
    """Name a longitude that is only called long, by the latitude next to it: the place that both are is known of many.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.inspect import longitudes
    >>> places = {"lat": [44.9 + i / 700 for i in range(99)], "long": [-93.2 - i / 900 for i in range(99)]}
    >>> longitudes(qd.from_frame(pl.DataFrame(places)))[0].partition(" is")[0]
    "Column 'long' next to 'lat'"
    """
    beside = {kept: name for name in data.columns for kept in heads(name)[-1:] if kept and kept[-1] in _ACROSS}
    hints: list[str] = []
    for column in (data[name] for name in data.columns):
        kept = heads(column.variable.name)[-1]
        if column.variable.role is not None or kept[-1:] != ("long",) or not has_decimals(column):
            continue
        other = next((beside[each] for word in _ACROSS if (each := (*kept[:-1], word)) in beside), None)
        if other is not None:
            hints.append(
                f"Column {column.variable.name!r} next to {other!r} is a place on a map, which others know. Give it "
                'the role "id" in the codebook, so that it is left out, and publish areas instead.'
            )
    return hints


def called_age(name: str) -> bool:
    """Whether a name is that of the age or the year of birth of a person, in several languages.

    >>> from quadrille.inspect import called_age
    >>> [called_age(name) for name in ("age", "RIDAGEYR", "Alter", "year_of_birth", "RB080", "wage", "age_of_house")]
    [True, True, True, True, True, False, False]
    """
    parts = tuple(word for word in words(name) if not word.isdigit())
    inner = [word for word in parts if word not in _OF_AGE]
    return any(_AGE.fullmatch(text) for text in ("".join(parts), "".join(words(name)), "".join(inner)))


def _shared(column: Column) -> bool:
    """Whether most records share their value with a few others."""
    distinct, present = column.tally
    return present / 20 < distinct and not nearly_all(distinct, present)


def _parts(name: str) -> tuple[str, ...]:
    """Return the words of a name and all of it: the letters and digits of RB050 belong together."""
    parts = words(name)
    return (*parts, "".join(parts))


def _household(data: Data) -> str | None:
    """Return the column that is called like the number of a household, if records share its values."""
    for name in data.columns:
        variable = data.codebook[name]
        parts = _parts(name)
        if variable.role in (None, "id") and any(_HOUSEHOLD.fullmatch(part) for part in parts):
            distinct, present = data[name].tally
            number = name_kind(name, variable.label) is not None or _OF_SILC.fullmatch(parts[-1]) is not None
            if number and data.n / 20 < distinct < present:
                return name
    return None


def _numbers_members(data: Data, name: str, unit: str) -> bool:
    """Whether a column of whole numbers runs from 1 to the size of each unit."""
    variable = data.codebook[name]
    if not variable.coded or variable.missing or not all(type(value) is int for value in variable.categories):
        return False
    units, column = data.units(unit), data[name]
    if column.nullable or not units.several.any() or not variable.categories:
        return False
    numbers = np.array(variable.categories, dtype=np.int64)[column.values[units.rows]]
    order = np.lexsort((numbers, units.of[units.rows]))
    start = np.repeat(np.cumsum(units.sizes) - units.sizes, units.sizes)
    return bool((numbers[order] == np.arange(data.n) - start + 1).all())


def weight_remarks(data: Data) -> list[str]:
    """Say what is odd about the weight, in the file and in a release: it tells records apart, or some are 0.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.inspect import weight_remarks
    >>> data = qd.from_frame(pl.DataFrame({"sex": ["m", "f", "f"], "w": [1.5, 0, 1.5]}), weight="w")
    >>> weight_remarks(data)[0].partition(":")[0]
    "1 record has the weight 0 in 'w'"
    """
    if data.ticks is None or data.weight is None:
        return []
    name, found = data.weight, list[str]()
    if lost := uncounted_weights(data):
        found.append(f"{lost}. Weighted tables leave these records out: trim the weights.")
    zero = int((data.ticks.values == 0).sum()) - (0 if data.uncounted is None else int(data.uncounted.sum()))
    if zero:
        who = "1 record has" if zero == 1 else f"{zero:,} records have"
        it = "it" if zero == 1 else "them"
        found.append(
            f"{who} the weight 0 in {name!r}: weighted tables leave {it} out, and a release shows {it}. "
            f"Drop {it}, or check the weight."
        )
    if name_kind(name) is not None and not called_weight(name):
        found.append(
            f"The weight {name!r} is called like an identifier and would be published. "
            "If it is one, name another weight."
        )
    elif data.n > MOST_ORDINAL and nearly_all(different(data.ticks.values), data.n):
        found.append(
            f"The weight {name!r} is different in nearly every record, so records can be matched with other files. "
            "Round it before a release."
        )
    elif data.n > MOST_ORDINAL and (alone := _alone(data.ticks.values)) > _MANY_ALONE:
        found.append(
            f"{percent(alone)} of the records have a weight {name!r} that no other record has, so they can be matched "
            "with other files that hold it. Round it before a release."
        )
    return found


def _alone(values: NDArray[np.int64]) -> float:
    """Return the share of the values that occur once."""
    ordered = np.concatenate(([-1], np.sort(values), [-1]))
    changes = ordered[1:] != ordered[:-1]
    return float((changes[1:] & changes[:-1]).mean())


def spelled_twice(column: Column) -> dict[str, tuple[str, ...]]:
    """Return the texts that are spelled in several ways of Unicode: composed, with the other spellings in the column.

    An accented letter is one character (NFC) or a letter and its accent (NFD); they look alike and are different text.
    What is returned is the `merge` of a codebook that makes them one.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.inspect import spelled_twice
    >>> frame = pl.DataFrame({"town": ["K\u00f6ln", "Ko\u0308ln", "Bonn"]})
    >>> merge = spelled_twice(qd.from_frame(frame)["town"])
    >>> book = qd.Codebook((qd.Variable("town", merge=tuple(merge.items())),))
    >>> qd.from_frame(frame)["town"].valid, qd.from_frame(frame, codebook=book)["town"].valid
    (3, 2)
    """
    texts = [value for value in column.variable.categories if isinstance(value, str) and not value.isascii()]
    ways: dict[str, list[str]] = {}
    for text in texts:
        ways.setdefault(unicodedata.normalize("NFC", text), []).append(text)
    return {
        composed: tuple(text for text in found if text != composed) for composed, found in ways.items() if found[1:]
    }


def _spellings(column: Column) -> list[str]:
    twice = len(spelled_twice(column))
    if not twice:
        return []
    which = "1 category is" if twice == 1 else f"{twice:,} categories are"
    return [
        f"In {column.variable.name!r} {which} spelled in several ways of Unicode (composed and decomposed letters, NFC "
        "and NFD), which look alike and count as different. Make them one by merge in the codebook, such as merge = "
        '{ "\\u00e9" = ["e\\u0301"] }; in Python, quadrille.inspect.spelled_twice lists them.'
    ]


def repeated_identifiers(columns: Sequence[Column]) -> list[str]:
    """Name identifiers that nearly every record has for itself, and some share."""
    hints: list[str] = []
    for column in columns:
        distinct, present = column.tally
        if column.variable.role != "id" or distinct == present or not nearly_all(distinct, present):
            continue
        if names_point(column.variable.name) or holds_dates(column):
            continue
        if name_kind(column.variable.name, column.variable.label) in (None, "record"):
            more = "1 record repeats" if present - distinct == 1 else f"{present - distinct:,} records repeat"
            hints.append(
                f"In {column.variable.name!r} {more} the identifier of another. A record that stands in the file "
                "twice is in no cell of one: look for duplicates before a release."
            )
    return hints


def geography(columns: Sequence[Column]) -> list[str]:
    """Look for areas inside areas among columns that are areas without a level, or are called so without a role."""
    places = [c for c in columns if c.variable.coded and c.variable.level is None and c.valid > 1 and _is_area(c)]
    places.sort(key=lambda column: column.valid)
    hints: list[str] = []
    told: set[str] = set()
    for coarse, fine in pairwise(places):
        hint = _two_levels(coarse, fine)
        if hint:
            hints.append(hint)
            told |= {coarse.variable.name, fine.variable.name}
    for variable in (column.variable for column in places):
        if variable.role is None and variable.name not in told:
            hints.append(
                f"Column {variable.name!r} is called like areas. If it holds areas, "
                'give it role = "geography" in the codebook.'
            )
    return hints


def _is_area(column: Column) -> bool:
    variable = column.variable
    return variable.role == "geography" or (variable.role is None and called_area(variable.name))


def _two_levels(coarse: Column, fine: Column) -> str:
    """Say whether the finer areas lie in the coarser ones; nothing when both are the same areas by two names."""
    both = (coarse.values < coarse.valid) & (fine.values < fine.valid)
    pairs = np.unique(np.stack([column.values[both].astype(np.int64) for column in (fine, coarse)]), axis=1)
    torn = int((np.bincount(pairs[0]) > 1).sum())
    a, b = coarse.variable.name, fine.variable.name
    if torn:
        lie = f"1 area of {b!r} lies" if torn == 1 else f"{torn:,} areas of {b!r} lie"
        what = "are areas" if {coarse.variable.role, fine.variable.role} == {"geography"} else "are called like areas"
        return (
            f"Columns {a!r} and {b!r} {what} but are not nested: {lie} in several of {a!r}. Levels of geography must "
            "be nested: correct these areas, or give the two no levels."
        )
    nested = f"Columns {a!r} and {b!r} look like areas inside areas. If they are, add: --geography {a},{b}"
    return nested if coarse.valid < fine.valid else ""


MANY_CATEGORIES = 1000
FEW_RECORDS = 5
_SAID = "as the codebook says"
_PROGRAM = {"spss": "SPSS", "stata": "Stata", "sas": "SAS"}


def reason(column: Column, data: Data, declared: Collection[str] | Mapping[str, str]) -> str:
    """Say in a few words why a column has its kind and role."""
    variable = column.variable
    if variable.name in declared:
        return cast("Mapping[str, str]", declared)[variable.name] if isinstance(declared, Mapping) else _SAID
    if variable.name == data.weight:
        return "named as the weight"
    if variable.name in data.codebook.geography:
        return "named as a level of geography"
    if variable.role == "id":
        return _why_identifier(column)
    stored = variable.stored
    if stored is None or not stored.measure:
        return _why_kind(column)
    said = f"{_PROGRAM[stored.program]} calls it {stored.measure}"
    same = "scale" if variable.kind == "numeric" else variable.kind
    return said if stored.measure == same else f"{_why_kind(column)}; {said}"


def _why_identifier(column: Column) -> str:
    sort = name_kind(column.variable.name, column.variable.label)
    what = "text" if column.dtype == "String" else "numbers"
    if sort in ("direct", "short", "point"):
        why = "called like a name, an address or a number of a person"
    elif sort is not None:
        why = f"{what} with many different values, called like an identifier"
    elif what == "text":
        why = "text that is different in almost every record, or addresses of mail"
    else:
        why = "numbers that tell records apart: running or very large ones, or nominal ones that all differ"
    return f"{why}: left out of releases"


def _why_kind(column: Column) -> str:
    variable, count = column.variable, f"{column.valid:,}"
    if not column.tally[1]:
        return "every field is missing" + ("" if variable.categories else ", so there is nothing to tell the kind by")
    if unit := _counted_in(column):
        return f"dates or times that are kept as numbers: {unit}"
    if not variable.coded:
        return f"numbers, more than {MOST_ORDINAL} different or with decimals"
    if _is_moment(column):
        return "dates or times"
    if column.dtype == "Boolean":
        return "true or false"
    if variable.labels and all(variable.labels) and variable.stored is not None:
        return f"every value has a label in the file ({count})"
    if any(isinstance(value, str) for value in variable.categories):
        return f"text, {count} different" + ("" if variable.ordered else "; the alphabet is no order")
    return f"whole numbers, {count} different: at most {MOST_ORDINAL} are taken for ordered categories"


def checks(data: Data, declared: Collection[str] = ()) -> list[str]:
    """Return everything worth looking at before swapping; `declared` are the columns of the user's own codebook."""
    columns = [data[name] for name in data.columns]
    found = [hint for column in columns for hint in (*_of_column(column, data), *_labels(column), *_spellings(column))]
    about_weight = (*weights(data), *weight_remarks(data), *of_design(data), *unnamed_units(data))
    return [
        *(*left_out(columns, declared), *repeated_identifiers(columns), *found),
        *(*_order(columns), *beside_the_key(columns), *longitudes(data), *about_weight, *geography(columns)),
    ]


def _of_column(column: Column, data: Data) -> list[str]:
    name, role = column.variable.name, column.variable.role
    free = role not in ("id", "geography") and name != data.weight
    why, (distinct, present) = suspicion(column) if free else None, column.tally
    if why is not None:
        if holds_dates(column):
            return [f"Column {name!r} {why}. {COARSER_DATES}"]
        if can_be_rounded(column):
            return [f"Column {name!r} {why}, so records can be matched with other files. Round it before a release."]
        return [
            f'Column {name!r} looks like an identifier: it {why}. Give it the role "id" in the codebook if it is one.'
        ]
    if free and not present:
        return [f"Column {name!r} has no value in any record. It cannot be swapped and tells nothing apart."]
    if free and distinct == 1 and present == data.n > 1:
        return [f"Column {name!r} has the same value in every record. It cannot be swapped and tells nothing apart."]
    if free and role is None and not column.variable.coded and distinct <= MOST_ORDINAL and not has_decimals(column):
        return [
            f"Column {name!r} holds {distinct} different whole numbers that are written with decimals, so it is taken "
            'for numbers and is no key variable. If they are categories, give it kind = "ordinal" in the codebook.'
        ]
    return _recoding(column, data) if name in data.keys and role != "geography" else []


def _labels(column: Column) -> list[str]:
    """Name columns in which categories have the same label, so that nobody can tell them apart in a table."""
    labels = [label for label in column.variable.labels if label]
    if len(set(labels)) == len(labels):
        return []
    return [
        f"Categories of {column.variable.name!r} have the same label, so tables do not tell them apart. "
        "Give each its own label in the codebook, or merge them."
    ]


def _recoding(column: Column, data: Data) -> list[str]:
    """Suggest coarser categories where there are too many, or where many are nearly empty."""
    name = column.variable.name
    if column.valid > MANY_CATEGORIES:
        how = "cut it into classes of similar size" if column.variable.kind == "ordinal" else "group them"
        how = "years or months will do" if _is_moment(column) else how
        return [
            f"Column {name!r} has {column.valid:,} categories. Recode it into classes, "
            f'or give it a role such as "outcome" if it is no key variable. A dozen are usual: {how}.'
        ]
    counts = column.held[: column.valid]
    rare = int(((counts > 0) & (counts < FEW_RECORDS)).sum())
    if data.n >= 20 * FEW_RECORDS and rare > 1 and rare * 2 > column.valid:
        how = "Merge neighbours" if column.variable.kind == "ordinal" else "Group similar ones"
        how = "Recode it into years or months" if _is_moment(column) else how
        return [
            f"{rare:,} of the {column.valid:,} categories of {name!r} have fewer than {FEW_RECORDS} records. "
            f"{how}, or leave the column out of the key."
        ]
    return []


def _is_moment(column: Column) -> bool:
    """Whether a column holds dates or times, also as text because missing codes stand among them."""
    if column.dtype.startswith(("Date", "Time")):
        return True
    texts = column.dtype == "String" and all(isinstance(value, str) for value in column.variable.categories)
    return texts and column.variable.coded and was_moment(column.variable) is not None


def _counted_in(column: Column) -> str:
    """Say what a column of numbers counts that its program shows as dates or times; nothing for other columns."""
    stored = column.variable.stored
    return "" if stored is None or _is_moment(column) else counted_in(stored.program, stored.format)


def _order(columns: Sequence[Column]) -> list[str]:
    """Name ordinal columns whose order is only the alphabet."""
    names = [c.variable.name for c in columns if c.variable.kind == "ordinal" and not c.variable.ordered]
    if not names:
        return []
    return [
        f"The order of the categories is missing for {', '.join(map(repr, names))}: ordinal, but in the order of the "
        "alphabet. List the categories in the codebook, lowest first."
    ]


@dataclass(frozen=True, repr=False)
class ColumnProfile(Shown):
    """One column; `categories` is None for numbers, `labels` is filled only when asked for."""

    name: str
    kind: str
    role: str | None
    key: bool
    categories: int | None
    missing: float
    level: int | None = None
    labels: tuple[str, ...] | None = None
    label: str = ""
    reason: str = ""


@dataclass(frozen=True, repr=False)
class WeightProfile(Shown):
    """The weight: its sum, and whether whole numbers of ticks represent it exactly."""

    column: str
    total: float
    exact: bool


@dataclass(frozen=True, repr=False)
class CellProfile(Shown):
    """The full cross of the key variables: possible and occupied cells, cells of one and of two records."""

    possible: int
    occupied: int
    ones: int
    twos: int


@dataclass(frozen=True, repr=False)
class LevelProfile(Shown):
    """A level of geography: its areas, those without a record, and the records of the smallest and largest other."""

    column: str
    areas: int
    empty: int
    smallest: int
    median: float
    largest: int

    def __str__(self) -> str:
        ends = f"{self.smallest:,}" if self.smallest == self.largest else f"{self.smallest:,} to {self.largest:,}"
        areas = "1 area" if self.areas == 1 else f"{self.areas:,} areas"
        return f"{self.column}: {areas} of {ends} record{'s' if self.largest > 1 else ''}"


@dataclass(frozen=True, repr=False)
class Profile(Shown):
    """A file at a glance: its columns, weight, key variables, cells and levels of geography, and hints.

    >>> import quadrille as qd
    >>> found = qd.inspect(qd.datasets.cps8d())
    >>> found.records, found.cells.ones, found.columns[0].kind, found.as_dict()["hints"]
    (48842, 361, 'ordinal', ())
    """

    records: int
    columns: tuple[ColumnProfile, ...]
    weight: WeightProfile | None
    keys: tuple[str, ...]
    cells: CellProfile | None
    hints: tuple[str, ...]
    geography: tuple[LevelProfile, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    """What the columns say about one another: see `dependencies`."""
    read_as: tuple[str, ...] = ()
    recoded: tuple[str, ...] = ()
    sample: Sample | None = None
    """What is known of the population, where the file has a weight or is said to be a sample."""
    risk: RiskByLevel | None = None
    """Who is at risk at each level of geography, where risk variables were named."""

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """The columns of each role, key variables among them."""
        named = [(column.role or "key" * column.key, column.name) for column in self.columns]
        return {role: tuple(name for own, name in named if own == role) for role, _ in named if role}

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {**asdict(self), "dependencies": [each.as_dict() for each in self.dependencies]}


def inspect(
    data: Data,
    *,
    labels: bool = False,
    declared: Collection[str] = (),
    risk: Sequence[str] | None = None,
    k: int | None = None,
) -> Profile:
    """Look at a file before swapping: what each column is taken for and why, and what had better be mended first.

    labels : also list the categories of each column, but for identifiers.
    declared : the columns that the user's own codebook describes, whose kinds and roles are no guesses; or why so.
    risk : count who is at risk at each level of geography: whose combination of these columns is rare in the area.
    k : rare is a count below k; 3 unless said otherwise.

    >>> import quadrille as qd
    >>> found = qd.inspect(qd.datasets.state())
    >>> found.roles["geography"], str(found.geography[0])
    (('county', 'tract'), 'county: 67 areas of 325 to 39,795 records')
    >>> found = qd.inspect(qd.datasets.census(), risk=["ageGroup", "national"], k=3).risk
    >>> [(level.level, level.units, level.smallest) for level in found.levels]
    [('nuts1', 0, 284), ('nuts2', 0, 44), ('nuts3', 2017, 1), ('lau2', 7408, 1)]
    """
    columns = tuple(_column(data[name], data, declared, labels=labels) for name in data.columns)
    weight = None
    if data.weight is not None and data.ticks is not None:
        weight = WeightProfile(data.weight, data.ticks.total, data.ticks.exact)
    levels = tuple(_level(data[name]) for name in data.codebook.geography)
    hints = (*checks(data, declared), *_empty(levels))
    return Profile(
        data.n,
        columns,
        weight,
        data.keys,
        cells_of(data),
        hints,
        levels,
        dependencies(data),
        data.read_as,
        data.recoded,
        sample_of(data),
        _risk(data, risk, k),
    )


def _risk(data: Data, risk: Sequence[str] | None, k: int | None) -> RiskByLevel | None:
    if risk is None:
        if k is not None:
            raise ParameterError(
                "The 'k' parameter of inspect says which counts of the 'risk' columns are rare. Name them."
            )
        return None
    from quadrille.swap.targeted.risk import risk_by_level

    return risk_by_level(data, risk, 3 if k is None else k)


def _column(column: Column, data: Data, declared: Collection[str], *, labels: bool) -> ColumnProfile:
    variable = column.variable
    shown = labels and variable.coded and variable.role != "id"
    return ColumnProfile(
        name=variable.name,
        kind=variable.kind,
        role="weight" if variable.name == data.weight else variable.role,
        key=variable.name in data.keys,
        categories=len(variable.categories) if variable.coded else None,
        missing=(data.n - column.tally[1]) / max(data.n, 1),
        level=variable.level,
        labels=variable.names if shown else None,
        label=variable.label,
        reason=reason(column, data, declared),
    )


def _level(column: Column) -> LevelProfile:
    records = records_in(column)
    held = records[records > 0]
    few, many = (int(held.min()), int(held.max())) if len(held) else (0, 0)
    middle = float(np.median(held)) if len(held) else 0.0
    return LevelProfile(column.variable.name, len(records), len(records) - len(held), few, middle, many)


def _empty(levels: tuple[LevelProfile, ...]) -> list[str]:
    return [
        f"{level.empty:,} of {level.areas:,} areas of {level.column!r} have no record. They can neither give nor "
        "receive one, so they stay empty in every swap."
        for level in levels
        if level.empty
    ]


def cells_of(data: Data) -> CellProfile | None:
    """Count the cells of the full cross of the key variables; None where there is no key variable.

    >>> import quadrille as qd
    >>> from quadrille.inspect import cells_of
    >>> found = cells_of(qd.datasets.cps8d())
    >>> found.occupied, found.ones, found.twos
    (1695, 361, 186)
    """
    if not data.keys:
        return None
    table = Table(data.keys).of(data)
    ones, twos = (int(np.count_nonzero(table.count == size)) for size in (1, 2))
    return CellProfile(table.cross.possible, int(np.count_nonzero(table.count)), ones, twos)
