"""The words that the name of a column is made of."""

from __future__ import annotations

import re
import unicodedata

from quadrille.frames.identifier_words import split

_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=[0-9])|(?<=[0-9])(?=[^\W\d_])")
_ASIDE = split(
    "text txt str string char raw orig original clean cleaned full complete line home work private privat business "
    "mobile celular movil primary secondary main current new old first last paterno materno"
)


def words(name: str) -> tuple[str, ...]:
    """Split a name where its words begin, in small letters without accents.

    >>> from quadrille.frames.names import words
    >>> words("SSN_text"), words("PersonNumber"), words("hh-nr2"), words("Prénom")
    (('ssn', 'text'), ('person', 'number'), ('hh', 'nr', '2'), ('prenom',))
    """
    letters = unicodedata.normalize("NFKD", name)
    bare = unicodedata.normalize("NFC", "".join(c for c in letters if not ("\u0300" <= c <= "\u036f")))
    parts = re.split(r"[\W_]+", _BOUNDARY.sub(" ", bare))
    return tuple(part.casefold() for part in parts if part)


def head(name: str) -> tuple[str, ...]:
    """Return the words without numbers, and without last words that say only where or how a value is kept.

    >>> from quadrille.frames.names import head
    >>> head("address_line_1"), head("phone2_home"), head("text")
    (('address',), ('phone',), ('text',))
    """
    return heads(name)[-1]


def heads(name: str) -> list[tuple[str, ...]]:
    """Return the words without numbers, then again without each last word that says only where or how.

    >>> from quadrille.frames.names import heads
    >>> heads("phone2_home")
    [('phone', 'home'), ('phone',)]
    """
    kept = tuple(word for word in words(name) if not word.isdigit())
    found = [kept]
    while len(kept) > 1 and kept[-1] in _ASIDE:
        kept = kept[:-1]
        found.append(kept)
    return found
