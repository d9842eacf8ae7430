"""Which columns look like identifiers, weights and areas by what they are called. No data values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadrille.data import Column, Data

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
)
_OF_WEIGHT = re.compile(r"final|norm|normed|normali[sz]ed|trimmed|calibrated|cal|adj|adjusted|design|base")
_MASS = re.compile(r"body|birth|over|under|light|korper|koerper|geburt|naissance|corporal|kg|lbs?$|gramm?s?$")


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

    >>> from quadrille.cli.advice_roles import called_weight
    >>> [called_weight(name) for name in ("hhweight", "wgt_final", "Gewicht", "poids", "birth_weight", "weight_kg")]
    [True, True, True, True, False, False]
    """
    from quadrille.frames.names import words

    parts = [word for word in words(name) if not word.isdigit()]
    while len(parts) > 1 and _OF_WEIGHT.fullmatch(parts[-1]):
        parts.pop()
    joined = "".join(parts)
    named = any(_WEIGHTS.fullmatch(word) for word in (joined, *parts[-1:])) or _WEIGHT.search(joined)
    return bool(named) and _MASS.search(joined) is None


def called_area(name: str) -> bool:
    """Whether a name is that of areas, in several languages.

    >>> from quadrille.cli.advice_roles import called_area
    >>> [called_area(name) for name in ("Bundesland", "home_state", "provincia", "ward", "reward", "marital_status")]
    [True, True, True, True, False, False]
    """
    from quadrille.frames.names import words

    parts = words(name)
    return any(_PLACES.fullmatch(word) for word in parts) or _PLACE.search("".join(parts)) is not None


def weights(data: Data) -> list[str]:
    """Look at the sum of the weights, or for a weight that nobody named."""
    if data.ticks is None or data.weight is None:
        numbers = [v for v in data.codebook if v.role is None and not any(isinstance(c, str) for c in v.categories)]
        named = next((v.name for v in numbers if called_weight(v.name)), None)
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
    total = int(data.ticks.values.sum()) / data.ticks.per_unit
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
    import numpy as np

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
