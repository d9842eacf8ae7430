"""The texts of a release: the methods note for everybody, the dossier for the holder of the data, and the warnings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from datetime import datetime
from textwrap import wrap
from typing import Any, ClassVar, cast

import numpy as np

from quadrille import __version__
from quadrille.data import Column, Data, Rows
from quadrille.delta import PlanReport, margins_kept, warnings_of
from quadrille.errors import InputError, ParameterError
from quadrille.inspect import (
    COARSER_DATES,
    beside_the_key,
    inspect,
    longitudes,
    quoted,
    repeated_identifiers,
    unnamed_units,
    weight_remarks,
    weights,
)
from quadrille.io.atomic import NOTE
from quadrille.io.frames.identifiers import can_be_rounded, holds_dates, suspicion
from quadrille.plan import Details, Plan
from quadrille.present import Block, Items, Text, Title, facts, numbers, table, words
from quadrille.present.account import (
    EXACT,
    NOT_EXACT,
    account,
    alternatives_table,
    diagnosis_of,
    exact_for_users,
    limits,
    price_of_keeping,
    recipe_table,
    strata_table,
)
from quadrille.present.numbers import share, statistic
from quadrille.present.profile import column_table, contradicted, profile_facts
from quadrille.present.render import as_markdown
from quadrille.present.scores import definitions, exposure, published_tables, score_table, scores, verdict
from quadrille.present.words import NOTHING, guarantee, meaning
from quadrille.present.words import promise as in_words
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe, carried
from quadrille.release.earlier import NUMBERS, ON_CPS8D, Again, Promise
from quadrille.release.judge import Verdict
from quadrille.release.order import BucketOrder
from quadrille.score.by_area import keys_and_area, with_margin
from quadrille.score.contradictions import Contradicted
from quadrille.score.evaluator import Evaluator, Scores, score
from quadrille.score.published import TableChanges
from quadrille.study.choose import CLEARLY
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.designed.problem import protected_tables
from quadrille.swap.kept import named_variables
from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.private import Guarantee, PrivateSwap
from quadrille.text import shown

_F = r"[0-9]{1,18}(?:\.[0-9]{1,30})?(?:e[+-]?[0-9]{1,2})?"
_LINE = re.compile(rf"^- f(?: \((?P<where>.*)\))?: (?P<f>{_F})(?:, (?P<n>[0-9]{{1,18}}) records)?$", re.MULTILINE)
_SWAPPED = re.compile(r"^- swapped: (?P<names>.+)$", re.MULTILINE)
_RECORDS = re.compile(r"^- records: (?P<n>[0-9]{1,18})$", re.MULTILINE)
_KIND = re.compile(r"^- kind: (?P<kind>pairs|cycles|private)$", re.MULTILINE)


FEWEST = 10
"""In every class at least this many records must have moved, and have stayed, before its f is published."""


@dataclass(frozen=True)
class Published:
    """What a note says for the correction of tables: f, or an f for each class by its label.

    For a permutation of k of n records f = k / (n - 1), in every class apart. Published are f, the kind of permutation,
    the names of the swapped variables and, where there are classes, which and how many records each has, which anyone
    can count in the file; never a seed, a plan or a pair. Where f would tell who was swapped, it is not published.
    """

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
    if not isinstance(recipe, PermutationSwap | PrivateSwap) or recipe.parameters().get("kind") == "across":
        raise ParameterError(
            "There is no factor f to publish for this recipe: only PermutationSwap of kind pairs or cycles and "
            "PrivateSwap have one. Leave 'publish_f' out."
        )
    hidden = [name for name in recipe.within if name not in public.codebook]
    if hidden:
        raise ParameterError(
            f"Column {hidden[0]!r} bounds the classes and is not released, so f cannot be published by class. "
            "Leave 'publish_f' out."
        )
    if isinstance(recipe, PrivateSwap):
        return _published_chances(recipe, data)
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


def _published_chances(recipe: PrivateSwap, data: Data) -> Published:
    """Return f = E K / (n - 1) of each stratum: it follows from the size, whatever was drawn, and tells nothing."""
    strata = recipe.strata(data)
    listed = zip(strata.labels, strata.expected.tolist(), strata.n.tolist(), strict=True)
    found = {label if recipe.within else "": (mean / max(n - 1, 1), n) for label, mean, n in listed}
    sizes = {label: n for label, (_, n) in found.items()} if recipe.within else {}
    factors = {label: f for label, (f, _) in found.items()}
    return Published(recipe.columns_moved(data), "private", data.n, factors, sizes)


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
    >>> from quadrille.release.dossier import kept_in_words
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


MOST_ROWS = 50


def _targets(details: Details | None) -> list[Block]:
    """Return the targets of each stratum, and the rows of those without a partner."""
    if details is None or "targets" not in details.rows:
        return []
    alone = details.rows["without partner"].tolist()
    more = f" and {len(alone) - MOST_ROWS:,} more" if len(alone) > MOST_ROWS else ""
    listed = [f"Rows of targets without partner, counted from 0: {', '.join(map(str, alone[:MOST_ROWS]))}{more}"]
    further = len(cast("Sized", details.facts["strata"])) - MOST_ROWS
    return [
        Title("Targets by stratum"),
        strata_table(details.facts, MOST_ROWS),
        *([Text(f"{further:,} more strata are in `account.json`.")] if further > 0 else []),
        Items((*(listed if alone else ()), "All targets are in `targets.parquet`, their partners in `plan.parquet`.")),
    ]


def _alternatives(record: Record) -> list[Block]:
    """Set the plan next to those the method decided against: pairs, cost, bias and every score."""
    if record.plan.details is None or not record.alternatives:
        return []
    return [
        Title("Alternatives"),
        Text("The same targets matched in another way, for comparison; this swap was released."),
        alternatives_table(record.plan.details.facts, record.alternatives),
        score_table({"this swap": record.scores, **record.alternatives}),
    ]


def methods_note(
    public: Data,
    *,
    shuffled: bool,
    published: Published | None = None,
    kept: Sequence[str] = (),
    exact: bool = True,
    promise: Guarantee | None = None,
    name: str = NOTE,
) -> str:
    """Return the note that goes out with the file, in a file of that name.

    It is made from the public file alone, and from the factor f, the kept tables and the guarantee where these are to
    be published; `exact` says that each category has as many records as before, which units of unequal size do not
    leave so. It does not know the plan or the original, so it cannot give them away. A guarantee that does not hold
    leaves no trace.
    """
    told = promise is not None and promise.holds
    weighted = _WEIGHTED if exact else _WEIGHTED_UNITS
    weight = f"\n{weighted.format(weight=shown(public.weight))}" if public.weight is not None else ""
    order = "The order of the records carries no information. " if shuffled else ""
    silent = published is None and not told
    secret = _ALL_SECRET if silent else _CHANCE_SECRET if told else _REST_SECRET
    variables = " or which variables" if silent else ""
    columns = _design_columns(public)
    note = _METHODS.format(
        exact=_EXACT if exact else _EXACT_UNITS,
        weight=weight,
        order=order,
        columns=columns,
        secret=secret,
        variables=variables,
        version=__version__,
    )
    if kept:
        listed = "\n".join(f"- {line}." for line in EXACT)
        note = note.rstrip("\n") + "\n" + _KEPT.format(kept=", ".join(kept), exact=listed, not_exact=NOT_EXACT)
    if promise is not None and told:
        note = note.rstrip("\n") + "\n" + _GUARANTEE.format(promise=_folded(f"{in_words(promise)} {meaning(promise)}"))
    return note if published is None else note.rstrip("\n") + "\n" + published.section(name)


def _folded(text: str) -> str:
    return "\n".join(wrap(shown(text), _NOTE_WIDTH, break_long_words=False, break_on_hyphens=False))


_NOTE_WIDTH = 100
_GUARANTEE = """
## What is guaranteed

{promise}

The method is that of Bailie, Gong and Meng, A Refreshment Stirred, Not Shaken, Algorithm 1. Their
bound is never below this epsilon, which is the least that holds for all files of these sizes.
"""


_KEPT = """
## Tables that are exact

These tables of counts are, to the last record, those of the original: {kept}.
Whatever is computed from them alone is exact, without weights:

{exact}

Not exact are {not_exact}.
"""


_METHODS = """\
# Methods note: data swapping

These microdata describe real persons, households or organisations. To protect them, the file was
treated by data swapping before it was released.

## What data swapping is

Some records were chosen and exchanged the values of some variables with other records.
Each value in the file is a true value of some record, but not always of the record in which it
stands. The file does not say which records{variables} took part. Swapping does not
invent, round or remove any value.

## What is exactly as in the original

- The number of records.
{exact}{weight}
## What users should know

- Tables, correlations and models of several variables can differ from the original. An association
  can be weaker than it was, or stronger.
- The difference matters most in small cells and small groups. Draw no conclusion from a handful of
  records.
- Standard errors computed in the usual way leave out the uncertainty that swapping adds.
- A record that is alone in its combination of categories can be a true case, or one that swapping
  made: the file does not say which. Nor does a combination that no record has mean that there is
  no such case. Do not try to find out whom a
  record belongs to: the answer can be wrong, and the attempt is misuse.
- {order}Columns that the data provider
  declared to be direct identifiers, or that the software recognised as such, were left out.
- `codebook.toml` describes the columns: kind, order of the categories, labels, missing codes.
{columns}- {secret} stays confidential,
  because it would help to undo the protection. The data provider answers questions about a
  particular result.

## How to cite

State that the data were treated by data swapping, and cite the software as: Quadrille, version
{version}.

Literature: Dalenius and Reiss, Data-swapping: a technique for disclosure control, Journal of
Statistical Planning and Inference. Gomatam and Karr, Distortion measures for categorical data
swapping, National Institute of Statistical Sciences.
"""

_EXACT = """\
- The distribution of every single variable over the records: each category has as many records as
  before; a numeric variable has the same values, so that its mean, quantiles and variance are
  unchanged.
"""
_EXACT_UNITS = """\
- The number of households or other units, and the distribution over them of every single variable
  that all members of a unit share, areas among them. The number of records in an area can differ.
- The distribution over the records of every single variable that members do not share: each
  category has as many records as before.
"""
_ALL_SECRET = "How much was swapped, which variables took part and how the records were chosen"
_CHANCE_SECRET = "Which records took part, and how many,"
_REST_SECRET = "Which records took part and how they were chosen"
_WEIGHTED = """\
The weight is `{weight}`. Numbers of records are exact for each variable, whereas weighted totals by
category can differ a little from the original.
"""
_WEIGHTED_UNITS = """\
The weight is `{weight}`. Weighted totals by category can differ a little from the original.
"""
_COLUMNS = {
    "stratum": ("{} is the stratum of the sample.", "{} are the strata of the sample."),
    "cluster": (
        "{} is the cluster (primary sampling unit) of the sample.",
        "{} are the clusters (primary sampling units) of the sample.",
    ),
    "unit": (
        "{} numbers the households or other units that records belong to.",
        "{} number the households or other units that records belong to.",
    ),
}


def _design_columns(public: Data) -> str:
    """Name the columns that estimates need; roles that would tell what was moved are not among them."""
    lines: list[str] = []
    for role, (one, several) in _COLUMNS.items():
        names = [f"`{shown(variable.name)}`" for variable in public.codebook if variable.role == role]
        if names:
            lines.append(f"- {(several if len(names) > 1 else one).format(words.listed(names))}\n")
    return "".join(lines)


@dataclass(frozen=True)
class Record:
    """A release: what it is worked out from first, then what is known when its files are made."""

    data: Data
    public: Data
    recipe: Recipe
    plan: Plan
    account: PlanReport
    scores: Scores
    warnings: tuple[ReleaseWarning, ...]
    order: Rows | BucketOrder | None
    """The original row of each public one, counted from 0, or what finds it; None where they stand in their order."""
    verdict: Verdict | None = None
    again: Again | None = None
    tables: TableChanges | None = None
    """What the swap does to the published tables, where any are named."""
    one_way: PlanReport | None = None
    """Of a swap that keeps tables: the same without, to see what keeping them costs."""
    contradicted: Contradicted | None = None
    """The records that contradict what the columns of the original say about one another."""
    alternatives: Mapping[str, Scores] = field(default_factory=dict[str, Scores])
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    written: datetime = datetime.min
    promise: Promise | None = None
    """What is guaranteed, where the method can."""


def dossier(record: Record) -> str:
    """Return the readable record of a release, for the confidential folder."""
    blocks: list[Block] = [
        *_files(record),
        Title("Warnings"),
        Items(tuple(map(str, record.warnings))) if record.warnings else Text("None."),
        *([] if record.promise is None else guarantee(record.promise.guarantee)),
        *([] if record.contradicted is None else contradicted(record.contradicted)),
        *_earlier(record.again),
        *([] if record.verdict is None else verdict(record.verdict)),
        *_data(record),
        *_recipe(record.recipe, record.plan),
        *account(record.account, cast("Sequence[object]", record.recipe.parameters().get("tables", ()))),
        *([] if record.one_way is None else price_of_keeping(record.account, record.one_way)),
        *([] if diagnosis_of(record.account) is None else [limits()]),
        *exact_for_users(record.account),
        *_targets(record.plan.details),
        *scores(record.scores),
        *_published_tables(record.tables, record.recipe),
        *_intruder(record),
        Title("What the measures are"),
        definitions(kind for kind, _ in record.scores.results.values()),
        *_alternatives(record),
        Title(words.NOT_PROTECTED),
        Items(words.limits(guaranteed=record.promise is not None and record.promise.guarantee.holds)),
    ]
    return (
        "# Release dossier: confidential\n\n"
        f"Written by Quadrille {__version__} on {record.written:%Y-%m-%d at %H:%M:%S} UTC.\n"
        "Whoever has the seed or the plan in this folder can undo the release. Never publish any part of it.\n\n"
        f"{as_markdown(blocks)}\n"
    )


def _published_tables(found: TableChanges | None, recipe: Recipe) -> list[Block]:
    """List the cells of published tables that change too much; all cells are in a file of their own."""
    if found is None:
        return []
    listed = published_tables(found, MOST_ROWS, loss=recipe.parameters().get("loss"))
    return [*listed, Text("Every cell, before and after, is in `tables.parquet`.")]


def _intruder(record: Record) -> list[Block]:
    """Set what is exposed next to what is inferred and linked."""
    found = exposure(record.data, record.plan, record.recipe.n if isinstance(record.recipe, DesignedPairs) else 3)
    return [Title("The intruder's view"), *found] if found else []


def _files(record: Record) -> list[Block]:
    rows = [(f"`public/{name}`", f"`{digest}`") for name, digest in record.hashes.items()]
    shuffled = "random order, drawn from the operating system; `order.parquet` has the original row of each"
    order = shuffled if record.order is not None else "their original order, as asked"
    if isinstance(record.order, BucketOrder):
        order = (
            f"random order (order: 2, in {record.order.buckets:,} buckets), drawn from the operating system; "
            "`order.json` has its seed, from which `quadrille.release.order.BucketOrder` finds the original row of each"
        )
    return [
        Title("Files"),
        table(("file", "SHA-256"), rows),
        Text(f"The rows of the public file are in {order}."),
    ]


def _earlier(again: Again | None) -> list[Block]:
    """Say what earlier releases of the same data add to this one, beside what was measured on a known file."""
    if again is None:
        return []
    title, found = Title("Released before"), again.aligned
    if found is None:
        return [title, Text(again.text())]
    counts = [
        (f"records that this release changes, of {numbers.count(found.records)}", numbers.count(found.changed)),
        ("of them shown by a comparison of matched rows", numbers.count(found.shown)),
        ("records as in the original, in this release alone", numbers.count(found.alone)),
        (f"records restored by the most frequent values of {found.releases} releases", numbers.count(found.restored)),
    ]
    if again.crossed is not None:
        counts += [
            ("cells large in one release and not in another", numbers.count(again.crossed.told)),
            (f"of them small before, of {numbers.count(again.crossed.small)}", numbers.count(again.crossed.right)),
            ("of them a single record", numbers.count(again.crossed.unique)),
        ]
    measured = [(each.what, *map(numbers.share, each.shares)) for each in ON_CPS8D]
    heads = ("measured on CPS-8d, by number of releases", *map(str, NUMBERS))
    return [
        title,
        facts(counts),
        Text(
            "Rows can be matched where they keep their order, or by columns that hardly two records share. Where they "
            "cannot, the mean of the tables is corrected and rounded. Of designed swaps that gains little; but a cell "
            "that is large in one release and small or empty in another was small before."
        ),
        table(heads, measured, numbers=range(1, len(heads))),
    ]


def _data(record: Record) -> list[Block]:
    found = inspect(record.data)
    identifiers = [column.name for column in found.columns if column.role == "id"]
    left_out = words.left_out(identifiers, record.recipe.steering_columns)
    prints = [
        ("fingerprint before", f"`{record.plan.before}`"),
        ("fingerprint after, rows in their original order", f"`{record.plan.after}`"),
    ]
    known = facts((*profile_facts(found).pairs, *prints))
    return [Title("Data"), known, column_table(found.columns), *map(Text, left_out)]


def _recipe(recipe: Recipe, plan: Plan) -> list[Block]:
    seed = (
        "64 hexadecimal digits (drawn from the operating system unless they were given)"
        if is_secret(recipe.parameters()["seed"])
        else "INSECURE: a number that can be guessed, allowed on purpose; for tests and papers, not for a release"
    )
    moves = [f"Move {place} of `plan.parquet`: {', '.join(move.columns)}" for place, move in enumerate(plan.moves)]
    listed = Items(("The seed itself is in `recipe.json`.", *moves))
    return [Title("Recipe"), recipe_table(recipe, ("seed", seed)), listed]


MUCH_EXPOSED = 0.02
"""A larger share of exposed records is warned of, where a swap was designed to leave few."""
MOSTLY_EXPOSED = 0.1
"""The same for other swaps."""

FEW_SWAPPED = 10
"""A swap of fewer records is warned of."""
_KEPT_ORDER = (
    "The public rows stand in the order of the original, so records can be matched with other files by their position, "
    "and the swapped ones with them. Let the release shuffle them."
)


class ReleaseWarning(UserWarning):
    """Something about a release that its maker should know."""

    place: ClassVar[int] = 4
    """Where it stands among the warnings of a release: the most serious ones come first."""


class GuessableSeedWarning(ReleaseWarning):
    """The seed is a number: whoever guesses it can undo the release."""

    place: ClassVar[int] = 0


class KeptOrderWarning(ReleaseWarning):
    """The public rows stand in the order of the original."""

    place: ClassVar[int] = 0


class VoidGuaranteeWarning(ReleaseWarning):
    """The method has a guarantee, and something about the release voids it."""

    place: ClassVar[int] = 0


class ShownWarning(ReleaseWarning):
    """Something in the public file shows who was swapped."""

    place: ClassVar[int] = 1


class SubtractionWarning(ShownWarning):
    """Exact tables of two files of nearly the same persons can be subtracted."""


class ReleasedBeforeWarning(ShownWarning):
    """The data were released before by another plan: both files together tell more than each."""


class ProtectionWarning(ReleaseWarning):
    """The swap leaves many at risk, or changes next to nothing."""

    place: ClassVar[int] = 2


class IdentifyingWarning(ReleaseWarning):
    """Columns of the public file can be known of a person, and no measure of risk counts them."""

    place: ClassVar[int] = 3


def serious_first(found: Iterable[ReleaseWarning]) -> tuple[ReleaseWarning, ...]:
    """Return warnings in the order in which to read them, each once.

    >>> from quadrille.release.dossier import IdentifyingWarning, ProtectionWarning, ReleaseWarning, serious_first
    >>> listed = [ReleaseWarning("formulas"), IdentifyingWarning("ages"), ProtectionWarning("few")]
    >>> list(map(str, serious_first([*listed, *listed])))
    ['few', 'ages', 'formulas']
    """
    return tuple(sorted({str(each): each for each in found}.values(), key=lambda each: each.place))


def release_warnings(
    public: Data,
    recipe: Recipe,
    data: Data,
    plan: Plan,
    again: Again | None = None,
    promise: Guarantee | None = None,
) -> list[ReleaseWarning]:
    """Return what to warn of: a guessable seed, earlier releases, targets left alone, columns that give away."""
    found: list[ReleaseWarning] = []
    if not is_secret(recipe.parameters()["seed"]):
        found.append(
            GuessableSeedWarning(
                "The seed is a number that can be guessed, and with it the release can be undone. "
                "Leave the seed out, so that it is drawn from the operating system."
            )
        )
    if promise is not None and not promise.holds:
        reasons = "; ".join(promise.void)
        found.append(VoidGuaranteeWarning(f"{NOTHING} The methods note gives none. The reasons: {reasons}."))
    if promise is not None and (few := promise.moves * promise.records) < FEW_SWAPPED:
        found.append(
            ProtectionWarning(
                f"Only {statistic(few)} records are expected to move: the public file is nearly the original. A larger "
                "chance moves more, and so does a smaller epsilon."
            )
        )
    if again is not None and again.repeats is None:
        found.append(ReleasedBeforeWarning(again.text()))
    alone = plan.details.rows.get("without partner", ()) if plan.details else ()
    if len(alone):
        stand = (
            "1 target has no partner and stands"
            if len(alone) == 1
            else f"{len(alone):,} targets have no partner and stand"
        )
        found.append(
            ProtectionWarning(
                f"{stand} in the public file as in the original. "
                "The dossier tells more; a coarser boundary or other targets may help."
            )
        )
    size = recipe.parameters().get("size")
    if size in public.columns and size != public.weight:
        found.append(
            ShownWarning(
                f"Column {size!r} decided which records were likely targets and stays in the public file. "
                "If it is a score of risk, give it the role id in the codebook, so that it is left out."
            )
        )
    others = [public[name] for name in public.columns if name != public.weight]
    unnamed = weights(public) if public.weight is None else ()
    known = (*_identifying(others), *beside_the_key(others), *longitudes(data), *unnamed_units(data))
    of_file = (*weight_remarks(public), *unnamed, *repeated_identifiers([data[name] for name in data.columns]))
    return [*found, *map(IdentifyingWarning, known), *map(ReleaseWarning, of_file)]


def draw_warnings(data: Data, plan: Plan, public: Data) -> list[ReleaseWarning]:
    """Return what to warn of that only the draw shows: small cells that are left, and traces of who was swapped."""
    shown = map(ShownWarning, warnings_of(data, plan, public.columns))
    return [*shown, *_of_small_cells(data, plan), *map(ReleaseWarning, _unequal_units(data, plan))]


def _unequal_units(data: Data, plan: Plan) -> list[str]:
    """Say that areas have other numbers of records than before, where units of different size moved."""
    if margins_kept(data, plan):
        return []
    return [
        "Units of different size changed places, so their areas have more or fewer records than before, and published "
        "counts of persons no longer fit. Let partners agree on the size: put it into every profile."
    ]


def contradiction_warnings(found: Contradicted) -> list[ReleaseWarning]:
    """Warn of records that contradict the file, where that was allowed."""
    records = max(found.records, sum(each.records for each in found.filled))
    if not records:
        return []
    many = "1 record contradicts" if records == 1 else f"{records:,} records contradict"
    return [
        ShownWarning(
            f"{many} what the original says, as was allowed: they show who was swapped. The dossier lists how."
        )
    ]


_FORMULA = re.compile(r"[=@\t\r\uff1d\uff20]|[+\-\uff0b\uff0d](?!\Z|[\d.,\s]+(?:[eE][+-]?\d+)?%?\Z)")
"""How a text begins that a spreadsheet takes for a formula; a number with a sign is none, nor is a sign alone."""


def formula_warnings(public: Data) -> list[ReleaseWarning]:
    """Warn of texts that a spreadsheet would run as formulas when it opens the public file; they are kept."""
    found: list[str] = []
    for name in public.columns:
        variable = public[name].variable
        codes = [code for code, value in enumerate(variable.values) if _is_formula(value)] if variable.coded else []
        records = int(np.isin(public[name].values, codes).sum()) if codes else 0
        found += [f"{name} ({'1 record' if records == 1 else f'{records:,} records'})"] if records else []
        found += [f"{name} (the name itself)"] if _is_formula(name) else []
    if not found:
        return []
    return [
        ReleaseWarning(
            f"Spreadsheet programs run texts that begin with =, +, - or @ as formulas: {', '.join(found)}. They are "
            "published as they are. Recode them with merge in the codebook, or release another format than csv."
        )
    ]


def _is_formula(value: object) -> bool:
    return isinstance(value, str) and _FORMULA.match(value) is not None


def unjudged_warnings(data: Data, plan: Plan, *, shuffled: bool) -> list[ReleaseWarning]:
    """Return what a policy has lines of its own for: how much is swapped and hidden, and the order of the rows."""
    found: list[ReleaseWarning] = []
    if len(plan.rows) < FEW_SWAPPED:
        found.append(
            ProtectionWarning(
                f"Only {len(plan.rows)} records take part in the swap: the public file is nearly the original. "
                "Ask for more, or relax the constraints."
            )
        )
    found += _of_protection(data, plan)
    return found if shuffled else [*found, KeptOrderWarning(_KEPT_ORDER)]


def _of_protection(data: Data, plan: Plan) -> list[ReleaseWarning]:
    """Warn of a swap that leaves nearly all of those exposed who were: no such candidate is recommended by `pick`."""
    if not data.keys:
        return []
    known = keys_and_area(data, plan.columns)
    measure = "exposed" if known == data.keys else with_margin("linked_small", data, known)
    judge = Evaluator(data, [measure])
    after, before = (judge.score(each)[measure] for each in (plan, Plan([], data=data)))
    if not before or after is None or after <= (1 - CLEARLY) * before:
        return []
    if known != data.keys:  # nothing changes about the keys, but where persons are found by them
        return [
            ProtectionWarning(
                f"The swap hides few: by {words.listed([*known])}, {share(after)} of the records in cells of one or "
                f"two are still found, {share(before)} were before. Let the risk variables be those that "
                "others know, and swap more of those at risk."
            )
        ]
    if after > MOSTLY_EXPOSED:
        return []
    return [
        ProtectionWarning(
            f"The swap hides few: {share(after)} of the records stand in cells of one or two and are genuine, "
            f"{share(before)} did before. A designed swap, more records or other variables hide more."
        )
    ]


def _of_small_cells(data: Data, plan: Plan) -> list[ReleaseWarning]:
    """Warn of a swap that leaves many exposed, and of kept tables that show small cells of their own."""
    facts = cast("Mapping[str, Any]", plan.details.facts if plan.details else {})
    found: list[ReleaseWarning] = []
    records, exposed, before = data.n, facts.get("exposed_after", 0), facts.get("exposed_before", 0)
    left = score(data, plan, ["exposed"])["exposed"] if data.keys and "exposed_after" not in facts else None
    if (left or 0) > MOSTLY_EXPOSED:
        found.append(
            ProtectionWarning(
                f"{share(left or 0)} of the records stand in cells of one or two after the swap and are genuine: the "
                f"{len(data.keys)} key variables have too many combinations for a swap to hide many. Merge "
                "categories, or name the key variables: what nobody knows of others gets the role outcome."
            )
        )
    if exposed > MUCH_EXPOSED * records:
        found.append(
            ProtectionWarning(
                f"{exposed:,} of {records:,} records are still exposed, of {before:,} before: the file has too many "
                "small cells for this design. Merge categories or drop keys first, or keep fewer tables."
            )
        )
    if small := facts.get("small_kept_cells", 0):
        found.append(
            ProtectionWarning(
                f"The kept tables have {small:,} {'cell' if small == 1 else 'cells'} of few records, which anybody can "
                "read off the release as they are. Merge categories, or keep fewer tables."
            )
        )
    return found


def _identifying(columns: Sequence[Column]) -> list[str]:
    """Warn of columns that were not taken for identifiers, and might be some; those of one kind together."""
    listed: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        why = suspicion(column) if column.variable.role != "weight" else None
        if why is not None:
            what = "Give it the role id in the codebook, so that it is left out, or recode it."
            if can_be_rounded(column):
                what = "Round it, or recode it into classes."
            if holds_dates(column):
                what = COARSER_DATES
            listed.setdefault((why, what), []).append(column.variable.name)
    return [
        f"Column {names[0]!r} of the public file {why}, so records can be matched with other files. {what}"
        if len(names) == 1
        else f"Each of the columns {quoted(names)} of the public file {why}, so records can be matched with other "
        f"files. {what}"
        for (why, what), names in listed.items()
    ]
