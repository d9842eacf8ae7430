"""Which tables a swap keeps to the last record: what `keep` may say, and the sets of variables that it stands for."""

# ruff: noqa: D102  # what a method of a parameter does is said in `Param`
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, cast

from quadrille.errors import ParameterError, bad_parameter, unknown_name
from quadrille.expressions import split_outside_quotes, unquoted
from quadrille.params import Param

Keep = str | int | Sequence[str | int | Sequence[str]]
"""What may be kept: "2-way", 2, "Age*Edu*Sex", "logit(Salary)", or a list of these."""
Names = tuple[str, ...]

MOST_TABLES = 100_000

_WAYS = re.compile(r"(\d+)\s*-\s*way")
_PLAIN = re.compile(r"\w(?:[\w .-]*\w)?")
_LOGIT = re.compile(r"logit\s*\((.*)\)", re.DOTALL)
_MUST = 'like "2-way", 2, "A*B*C", "logit(Y)", or a list of these'

_TOO_FEW = (
    " (of two, keep what any swap keeps: 1-way; a codebook gives more columns the role key, with bands for numbers "
    "such as ages)"
)


@dataclass(frozen=True)
class Kept(Param):
    """The tables that stay as they are to the last record."""

    kind = "kept tables"
    metavar = "TABLES"
    repeated = True
    example = '["1-way", "2-way"]'

    def check(self, owner: str, parameter: str, value: object) -> object:
        """Return a word, or a tuple of several."""
        made = tuple(_word(each, owner, parameter) for each in _listed(value, owner, parameter))
        return made[0] if len(made) == 1 else made

    def columns(self, value: object) -> tuple[str, ...]:
        return tuple(sorted(named_variables(cast("Keep", value))))

    def read(self, given: Any) -> object:
        """Split at commas; quotes stay, since a table may hold several names."""
        return [part.strip() for text in given for part in split_outside_quotes(text, ",")]

    def shape(self) -> dict[str, object]:
        word: list[object] = [{"type": "string", "pattern": r"\S"}, {"type": "integer", "minimum": 1}]
        table = {"type": "array", "items": {"type": "string", "pattern": r"\S"}, "minItems": 1}
        return {"anyOf": [*word, {"type": "array", "items": {"anyOf": [*word, table]}, "minItems": 1}]}


def _word(value: object, owner: str, parameter: str) -> str:
    """Return one thing to keep as a text."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return f"{value}-way"
    if isinstance(value, str) and value.strip():
        return value.strip()
    names = cast("Sequence[object]", value if isinstance(value, list | tuple) else ())
    if names and all(isinstance(each, str) and each.strip() for each in names):
        return "*".join(map(_quoted, cast("Sequence[str]", names)))
    raise bad_parameter(owner, parameter, _MUST, cast("object", value))


def _quoted(name: str) -> str:
    """Write the name of a variable so that it is read as nothing else."""
    if _PLAIN.fullmatch(name) and not _WAYS.fullmatch(name):
        return name
    return f'"{name}"' if "`" in name else f"`{name}`"


def kept_tables(
    keep: Keep, variables: Sequence[str], *, fixed: Iterable[str] = (), owner: str = "DesignedSwap", name: str = "keep"
) -> tuple[Names, ...]:
    """Return the largest tables that are kept; whatever is a part of one of them is kept with it.

    Every variable is in one at least, because every swap keeps the one-way tables. Variables stand in the order of
    `variables`, and so do the tables. All variables at once are refused: then nothing could move.

    Parameters
    ----------
    keep : "1-way", "2-way", ... or an integer: the tables of so many variables, from 1 to all but one; "A*B*C": the
        table of these; "logit(Y)": what a logistic regression of Y on all the others needs, that is the joint table
        of the others and the tables of Y by each of them; or a list of such.
    variables : those of the table.
    fixed : variables that do not move: their joint table is kept too.
    owner, name : whose parameter it is, for messages.

    Example
    -------
    >>> from quadrille.swap.kept import kept_tables
    >>> kept_tables("2-way", ["Age", "Edu", "Sex"])
    (('Age', 'Edu'), ('Age', 'Sex'), ('Edu', 'Sex'))
    >>> kept_tables(["Sex*Age", 1], ["Age", "Edu", "Sex", "Pay"])
    (('Age', 'Sex'), ('Edu',), ('Pay',))
    >>> kept_tables("logit(Pay)", ["Age", "Edu", "Sex", "Pay"])
    (('Age', 'Edu', 'Sex'), ('Age', 'Pay'), ('Edu', 'Pay'), ('Sex', 'Pay'))
    >>> kept_tables("1-way", ["Age", "Edu", "Sex", "Pay"], fixed=["Age", "Sex"])
    (('Age', 'Sex'), ('Edu',), ('Pay',))
    """
    place = {variable: at for at, variable in enumerate(variables)}
    ways, named = 1, [frozenset(place).intersection(fixed)]
    for word in _listed(keep, owner, name):
        read = _read(word, place, owner, name)
        if isinstance(read, int):
            ways = max(ways, read)
        else:
            named += read
    if comb(len(place), ways) > MOST_TABLES:
        raise ParameterError(
            f"The '{name}' parameter of {owner} asks for {comb(len(place), ways):,} tables of {ways} variables, and up "
            f"to {MOST_TABLES:,} can be kept. Name the tables that matter, or ask for fewer variables per table."
        )
    large = [each for each in set(named) if len(each) > ways and not any(each < other for other in named)]
    if any(len(each) == len(place) for each in large) or ways >= len(place):
        raise ParameterError(
            f"The '{name}' parameter of {owner} keeps the table of all its variables ({', '.join(place)}), and then "
            "nothing can move. Keep tables of fewer variables."
        )
    small = (each for each in combinations(place, ways) if not any(large_one.issuperset(each) for large_one in large))
    tables = [*small, *(tuple(sorted(each, key=place.__getitem__)) for each in large)]
    return tuple(sorted(tables, key=lambda table: [place[variable] for variable in table]))


def named_variables(keep: Keep) -> frozenset[str]:
    """Return the variables that `keep` names one by one.

    >>> from quadrille.swap.kept import named_variables
    >>> sorted(named_variables(["2-way", "Age*Edu", "logit(Pay)"])), sorted(named_variables("2-way"))
    (['Age', 'Edu', 'Pay'], [])
    """
    found: set[str] = set()
    for word in _listed(keep, "DesignedSwap", "keep"):
        if isinstance(word, str) and not _WAYS.fullmatch(word.strip()):
            outcome = _LOGIT.fullmatch(word.strip())
            found |= {unquoted(outcome[1])} if outcome else set(map(unquoted, split_outside_quotes(word, "*")))
        elif isinstance(word, list | tuple):
            found |= {each for each in cast("Sequence[object]", word) if isinstance(each, str)}
    return frozenset(found)


def _listed(keep: object, owner: str, name: str) -> list[object]:
    listed = list(cast("Sequence[object]", keep)) if isinstance(keep, list | tuple) else [keep]
    if not listed:
        raise bad_parameter(owner, name, _MUST, listed)
    return listed


def _read(word: object, place: dict[str, int], owner: str, name: str) -> int | list[frozenset[str]]:
    """Return a number of variables, or sets of them."""
    if isinstance(word, str) and (found := _WAYS.fullmatch(word.strip())):
        word = int(found[1])
    if isinstance(word, int) and not isinstance(word, bool):
        if not 1 <= word < max(len(place), 2):
            only = _TOO_FEW if len(place) <= 2 else ""
            must = f"about tables of 1 to {max(len(place) - 1, 1)} of the {len(place)} variables{only}"
            raise bad_parameter(owner, name, must, f"{word}-way")
        return word
    if isinstance(word, str) and (found := _LOGIT.fullmatch(word.strip())):
        (outcome,) = _named([found[1]], place, owner, name)
        others = frozenset(place) - {outcome}
        return [others, *(frozenset({outcome, other}) for other in others)]
    parts = split_outside_quotes(word, "*") if isinstance(word, str) else word
    if not isinstance(parts, list | tuple):
        raise bad_parameter(owner, name, _MUST, word)
    listed = cast("Sequence[object]", parts)
    if not listed or not all(isinstance(each, str) for each in listed):
        raise bad_parameter(owner, name, _MUST, word)
    return [_named(cast("Sequence[str]", listed), place, owner, name)]


def _named(parts: Sequence[str], place: dict[str, int], owner: str, name: str) -> frozenset[str]:
    listed = [unquoted(part) for part in parts]
    for variable in listed:
        if not variable:
            raise bad_parameter(owner, name, _MUST, "*".join(parts))
        if variable not in place:
            raise ParameterError(str(unknown_name("variable", variable, place, where=f"'{name}' of {owner}")))
    if len(set(listed)) != len(listed):
        raise bad_parameter(owner, name, "tables that name each variable once", "*".join(parts))
    return frozenset(listed)
