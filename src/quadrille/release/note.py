"""The factor f by which users can correct tables: how it follows from a plan, and its lines in the methods note.

For a permutation of k of n records f = k / (n - 1), in every class apart. Published are f, the kind of permutation, the
names of the swapped variables and, where there are classes, which and how many records each has, which anyone can
count in the file; never a seed, a plan or a pair. Where f would tell
who was swapped, it is not published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from quadrille.data import Data
from quadrille.errors import InputError, ParameterError
from quadrille.io.atomic import NOTE
from quadrille.plan import Plan
from quadrille.recipe import Recipe, carried
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.problem import protected_tables
from quadrille.swap.kept import named_variables
from quadrille.swap.permutation import PermutationSwap

_F = r"[0-9]{1,18}(?:\.[0-9]{1,30})?(?:e[+-]?[0-9]{1,2})?"
_LINE = re.compile(rf"^- f(?: \((?P<where>.*)\))?: (?P<f>{_F})(?:, (?P<n>[0-9]{{1,18}}) records)?$", re.MULTILINE)
_SWAPPED = re.compile(r"^- swapped: (?P<names>.+)$", re.MULTILINE)
_RECORDS = re.compile(r"^- records: (?P<n>[0-9]{1,18})$", re.MULTILINE)
_KIND = re.compile(r"^- kind: (?P<kind>pairs|cycles)$", re.MULTILINE)


FEWEST = 10
"""In every class at least this many records must have moved, and have stayed, before its f is published."""


@dataclass(frozen=True)
class Published:
    """What a note says for the correction of tables: f, or an f for each class by its label."""

    swapped: tuple[str, ...]
    kind: str
    records: int
    f: dict[str, float]
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """Records of each class; empty where the note does not tell."""

    def section(self, note: str = NOTE) -> str:
        """Return the section of the methods note, whose file has that name."""
        lines = [
            f"- f ({label}): {f:.12g}, {self.sizes[label]} records" if label else f"- f: {f:.12g}"
            for label, f in self.f.items()
        ]
        listed = "\n".join(
            [f"- swapped: {', '.join(self.swapped)}", f"- kind: {self.kind}", f"- records: {self.records}", *lines]
        )
        return _SECTION.format(listed=listed, note=note)


_SECTION = """
## Correcting a table

The published factor f lets users remove the bias that swapping puts into a table of counts. Let T'
be a table of all records: the swapped variables (columns) against variables that were not swapped
(rows), R and C its row and column totals and n its total. Then

    T = (T' - f R C / n) / (1 - f)

estimates the original table without bias. A table of a part of the file cannot be corrected in this
way. Where f is given by class, correct the table of each class apart and add up. Single cells become
more variable, and small ones can come out negative. `quadrille correct TABLE.csv --methods-note {note}`
does the sum and gives standard errors; with f by class, a column of the table that holds the classes
is named with `--class-column`.

{listed}
"""


def published(recipe: Recipe, plan: Plan, data: Data, public: Data) -> Published:
    """Work out what to publish for a plan, or say why nothing of the kind can be published."""
    if not isinstance(recipe, PermutationSwap) or recipe.kind == "across":
        raise ParameterError(
            "There is no factor f to publish for this recipe: only PermutationSwap of kind pairs or cycles has one. "
            "Leave 'publish_f' out."
        )
    hidden = [name for name in recipe.within if name not in public.codebook]
    if hidden:
        raise ParameterError(
            f"Column {hidden[0]!r} bounds the classes and is not released, so f cannot be published by class. "
            "Leave 'publish_f' out."
        )
    assert plan.details is not None
    classes = cast("list[dict[str, Any]]", plan.details.facts["classes"])
    small = sum(min(each["k"], each["n"] - each["k"]) < FEWEST for each in classes)
    if small:
        raise ParameterError(
            f"In {small:,} of {len(classes):,} classes fewer than {FEWEST} records moved, or fewer stayed: "
            "their f would tell who was swapped. Use larger classes, or leave 'publish_f' out."
        )
    factors = {str(each["class"]) if recipe.within else "": each["k"] / (each["n"] - 1) for each in classes}
    moved = (*recipe.swap, *carried(data, recipe.swap, recipe.within))
    sizes = {str(each["class"]): int(each["n"]) for each in classes} if recipe.within else {}
    return Published(moved, recipe.kind, data.n, factors, sizes)


def read_published(note: str, where: str) -> Published:
    """Read the factor f back from a methods note."""
    found, swapped, kind, n = _LINE.findall(note), _SWAPPED.search(note), _KIND.search(note), _RECORDS.search(note)
    if not found or swapped is None or kind is None or n is None:
        raise InputError(f"{where} publishes no factor f. Ask the publisher for it, and give it with --f.")
    names = tuple(name.strip() for name in swapped["names"].split(","))
    sizes = {label: int(size) for label, _, size in found if size}
    return Published(names, kind["kind"], int(n["n"]), {label: float(f) for label, f, _ in found}, sizes)


def kept_in_words(recipe: Recipe, data: Data) -> tuple[str, ...]:
    """Return the tables that a recipe keeps, for the note; refuse where it keeps none but those that every swap keeps.

    >>> import quadrille as qd
    >>> from quadrille.release.note import kept_in_words
    >>> recipe = qd.DesignedSwap(tables=[["Age", "Sex", "Race"]], keep=["2-way", "Age*Edu"])
    >>> kept_in_words(recipe, qd.datasets.cps8d())
    ('all tables of up to 2 of Age, Sex, Race, Edu', 'Age by Edu')
    """
    if not isinstance(recipe, DesignedSwap) or recipe.keep == "1-way":
        raise ParameterError(
            "There is no kept table to publish for this recipe: only DesignedSwap keeps tables of two variables or "
            "more. Leave 'publish_kept' out."
        )
    listed = [recipe.keep] if isinstance(recipe.keep, str) else cast("tuple[str, ...]", recipe.keep)
    inside = dict.fromkeys(name for table in protected_tables(recipe, data) for name in table)
    named = ", ".join(dict.fromkeys((*inside, *sorted(named_variables(recipe.keep)))))
    return tuple(
        f"all tables of up to {word.split('-')[0]} of {named}" if word.endswith("-way") else word.replace("*", " by ")
        for word in listed
    )
