"""Plausibility rules: what no record may become by a swap, such as `Age<16 & MS=Widowed`.

A rule is a condition that no record may meet after a swap unless it met it before. Records that meet it already are
counted and may stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, require_columns
from quadrille.errors import InputError, bad_parameter
from quadrille.plan import Plan
from quadrille.where import Condition, Where

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

BITS = 31
"""Rules in one word of the kernels."""
_SHOWN = 3
IDLE = "none of its columns moves, so it excludes nothing"
_MUST = "a list of conditions that no record may come to meet, each once, like ['Age<16 & MS=Widowed']"


def rule_texts(owner: str, value: object) -> tuple[str, ...]:
    """Check a parameter that lists rules: conditions, or a single one."""
    listed = (value,) if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise bad_parameter(owner, "rules", _MUST, value)
    given = [text.strip() if isinstance(text, str) else text for text in cast("list[object]", listed)]
    if len(set(map(repr, given))) != len(given):
        raise bad_parameter(owner, "rules", _MUST, value)
    for text in given:
        if not isinstance(text, str) or not text:
            raise bad_parameter(owner, "rules", _MUST, value)
        try:
            Where.parse(text)
        except InputError:
            raise bad_parameter(owner, "rules", _MUST, text) from None
    return tuple(cast("list[str]", given))


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules that fit the columns and categories of a file."""

    texts: tuple[str, ...]
    conditions: tuple[tuple[Condition, ...], ...]
    data: Data

    @classmethod
    def of(cls, data: Data, texts: Sequence[str], owner: str) -> Rules:
        """Read rules; refuse unknown columns and categories, and a rule that all records break.

        >>> import quadrille as qd
        >>> from quadrille.rules import Rules
        >>> rules = Rules.of(qd.datasets.cps8d(), ["Age=<25 & MS=Married"], "RandomSwap")
        >>> rules.before
        (779,)
        """
        made = cls(tuple(texts), tuple(Where.parse(text).conditions for text in texts), data)
        for text, conditions in zip(made.texts, made.conditions, strict=True):
            place = f"the rule {text!r} of {owner}"
            require_columns(data, [condition.variable for condition in conditions], place)
            try:
                meets = _all(conditions, data)
            except InputError as error:
                raise InputError(f"In {place}: {error}") from None
            if meets.all():
                raise InputError(
                    f"Every record meets {place}. A rule says what no record may be, not what all must be: "
                    "turn it round, or leave it out."
                )
        return made

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __str__(self) -> str:
        shown = " or ".join(self.texts[:_SHOWN])
        more = len(self.texts) - _SHOWN
        return f"{shown} or {more} more rules" if more > 0 else shown

    @cached_property
    def before(self) -> tuple[int, ...]:
        """How many records break each rule before anything is swapped."""
        return tuple(int(_all(conditions, self.data).sum()) for conditions in self.conditions)

    def about(self, columns: Iterable[str]) -> Rules:
        """Return the rules that name any of these columns: the others cannot exclude a pair that exchanges them."""
        moved = set(columns)
        kept = [i for i, each in enumerate(self.conditions) if moved & {condition.variable for condition in each}]
        return Rules(tuple(self.texts[i] for i in kept), tuple(self.conditions[i] for i in kept), self.data)

    def on(self, data: Data) -> Rules:
        """Return the same rules for another state of the same file."""
        return Rules(self.texts, self.conditions, data)

    def edits(self, moved: Sequence[str], linked: Mapping[str, Sequence[str]] | None = None) -> kernels.Edits:
        """Split the rules, record by record, into what stays and what moves when pairs exchange `moved`.

        `linked` are columns that move as well, in pairs that differ on their parent. Rules that name no column that
        moves are left out.
        """
        links = linked or {}
        part = dict.fromkeys(moved, 1)
        for number, columns in enumerate(links.values(), start=2):
            part |= dict.fromkeys(columns, number)
        kept = self.about(part)
        words = np.zeros((2 + len(links), self.data.n, -(-len(kept.texts) // BITS)), dtype=np.int64)
        for r, conditions in enumerate(kept.conditions):
            for p in range(len(words)):
                mine = [each for each in conditions if part.get(each.variable, 0) == p]
                words[p, :, r // BITS] |= _all(mine, self.data).astype(np.int64) << (r % BITS)
        parents = [np.unique(self.data[name].values, return_inverse=True)[1] for name in links]
        parent = np.stack(parents).astype(np.int64) if parents else np.zeros((0, self.data.n), dtype=np.int64)
        return kernels.Edits(words[0], words[1], np.ascontiguousarray(words[2:]), parent)

    def created(self, plan: Plan) -> tuple[int, ...]:
        """Count, rule by rule, the records that break it after a plan and did not before."""
        after = plan.apply(self.data)
        return tuple(int((_all(each, after) & ~_all(each, self.data)).sum()) for each in self.conditions)


def rules_told(facts: Mapping[str, object]) -> list[tuple[str, str]]:
    """Tell what a plan remembers of its rules, as names and words: in all, then rule by rule; nothing without rules.

    >>> from quadrille.rules import rules_told
    >>> rows = [{"rule": "Age<16 & MS=Widowed", "broken_before": 2, "moved": "MS", "pairs_excluded": 50}]
    >>> for line in rules_told({"rules": rows, "pairs_excluded": 50, "pairs_without_rules": 4000}):
    ...     print(": ".join(line))
    rules: exclude 50 of 4,000 pairs (1.25 %)
    Age<16 & MS=Widowed: excludes 50 pairs that exchange MS; 2 records meet it already
    """
    rows = cast("Sequence[Mapping[str, object]]", facts.get("rules", ()))
    if not rows:
        return []
    excluded, possible = cast("int", facts["pairs_excluded"]), cast("int", facts.get("pairs_without_rules", 0))
    share = f" of {possible:,} pairs ({100 * excluded / possible:.3g} %)" if possible else " pairs"
    return [("rules", f"exclude {excluded:,}{share}"), *((str(row["rule"]), _row_told(row)) for row in rows)]


def _row_told(row: Mapping[str, object]) -> str:
    does = f"excludes {row['pairs_excluded']:,} pairs that exchange {row['moved']}"
    return f"{row.get('remark', does)}; {row['broken_before']:,} records meet it already"


def _all(conditions: Iterable[Condition], data: Data) -> Flags:
    return Where(tuple(conditions)).met(data)
