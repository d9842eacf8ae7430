"""What the name or the label of a column says about it: a person's, the number of a record, or nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from quadrille.frames.identifier_words import (
    AMOUNTS,
    AREAS,
    ENTITIES,
    FLAGS,
    INSTITUTIONS,
    LINKS,
    NAMES,
    NUMBERED,
    NUMBERS,
    OFFICIAL,
    PERSONAL,
    PERSONS,
    POINTS,
    ROWS,
    SERIAL,
    SHORT,
    split,
)
from quadrille.frames.names import heads, words

Sort = Literal["direct", "short", "point", "record", "institution", "row"]
"""A name, address or number of a person; a short word that may mean one; a place on a map; the number of a case, a
household or the like; that of a school or the like; the number of a row."""

_ASIDE_LABEL = re.compile(r"\([^)]*\)|\[[^\]]*\]|['’´`]s?\b")
_ASKED = split("what is are please enter give unique anonymous anonymised anonymized and or a an no")


def sort_of(name: str, label: str = "") -> Sort | None:
    """Say what a name tells, else a label: words in any case and several languages, joined or not.

    >>> from quadrille.frames.sorts import sort_of
    >>> [sort_of(name) for name in ("first_name", "SSN_text", "PersonNumber", "hhid", "country_name", "phone_owner")]
    ['direct', 'direct', 'record', 'record', None, None]
    >>> sort_of("V3", "Respondent's surname"), sort_of("V4", "Social security income")
    ('direct', None)
    """
    return _of_name(name) or _of_label(label)


def asks(name: str) -> bool:
    """Whether a name begins like a question about a thing: has_phone."""
    return bool(FLAGS.intersection(heads(name)[0][:1]))


def means_else(name: str) -> bool:
    """Whether a name is that of amounts, areas, times or other things that do not tell records apart."""
    return not (AREAS | AMOUNTS).isdisjoint(heads(name)[-1])


def _of_name(name: str) -> Sort | None:
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


def _of_label(label: str) -> Sort | None:
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


def _counts(kept: Sequence[str]) -> Sort | None:
    """Say whose number the last words are: the word directly before a word for number decides."""
    if kept[0] == "id" and kept[-1] in ENTITIES | INSTITUTIONS:
        return "record" if kept[-1] in ENTITIES else "institution"
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
