"""A release: `public/` for everybody and `confidential/` for those who hold the original, written as one."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data, Rows, code_dtype, refuse_uncounted
from quadrille.delta import PlanReport, margins_kept
from quadrille.errors import InputError, ParameterError, unless
from quadrille.io import RELEASED, file_bytes, not_held, streamed, write_pieces
from quadrille.io.atomic import (
    INSECURE_NOTE,
    NOTE,
    Contents,
    as_json,
    check_free,
    new_folder,
    private_folder,
    write_file,
)
from quadrille.io.space import MEMORY, Space, give_back, memory_limit
from quadrille.measure import beside_exposed, beside_the_n_rule
from quadrille.params import one_of
from quadrille.plan import Details, Plan
from quadrille.randomness import Stream, fresh_seed, is_secret
from quadrille.recipe import Recipe, random_order
from quadrille.release.dossier import (
    GuessableSeedWarning,
    Published,
    Record,
    ReleasedBeforeWarning,
    ReleaseWarning,
    SubtractionWarning,
    contradiction_warnings,
    dossier,
    draw_warnings,
    formula_warnings,
    kept_in_words,
    methods_note,
    published,
    release_warnings,
    serious_first,
    unjudged_warnings,
)
from quadrille.release.earlier import LEDGER, Again, Earlier, check_apart, earlier_releases, promise_of, released_again
from quadrille.release.judge import Case, PolicyError, Verdict, judge, scored
from quadrille.release.order import ONE_BUCKET, BucketOrder, fresh_order, pieces
from quadrille.release.policy import VARIABLE, Asked, Policy, asked_policies
from quadrille.score.by_area import keys_and_area, with_margin
from quadrille.score.contradictions import contradicted, contradictions, refuse_contradictions
from quadrille.score.evaluator import Scores, score
from quadrille.score.published import (
    CellLimits,
    Names,
    TableChanges,
    Tables,
    require_table,
    table_changes,
    tables_of,
    together,
)
from quadrille.study.designed import one_way_report
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.private import Guarantee, PrivateSwap
from quadrille.text import Shown

__all__ = [
    "DEFAULT",
    "GuessableSeedWarning",
    "PolicyError",
    "Release",
    "ReleaseWarning",
    "ReleasedBeforeWarning",
    "check_policy",
    "default_measures",
    "release",
]

DEFAULT = (
    "hellinger",
    "total_variation",
    "entropy_change",
    "cramers_v_change",
    "contingency_change",
    "ordinal_shift",
    "conditional_entropy",
)
"""The measures of a release unless others are named; those that the data cannot have are left out."""

_FOLDERS = ("public", "confidential")
_WEIGHTED = ("hd1", "hd2", "r_ased", "c_ard", "v_ard", "ased_reg")
"""For weighted files also what swapping does to weighted estimates."""

_NEEDS_PAIRS = frozenset({"cramers_v_change", "contingency_change"})
_MOST_PAIRED = 100
"""With more key variables than this, measures of all their pairs are computed only when they are asked for."""
_BY_RECORD = frozenset({"ordinal_shift", "conditional_entropy"})

Files = Mapping[str, bytes | memoryview]
Public = Mapping[str, Contents]


@dataclass(frozen=True, repr=False)
class Release(Shown):
    """What was written, and what it did."""

    path: Path
    files: tuple[Path, ...]
    scores: Scores
    account: PlanReport
    warnings: tuple[str, ...]
    not_held: tuple[str, ...] = ()
    """What the format of the public file cannot hold, line by line, as the methods note has it."""
    verdict: Verdict | None = None
    """What the policies say, line by line, where one was given or the machine names one."""
    left_out: tuple[str, ...] = ()
    """The columns with the role id: identifiers, declared or recognised, that are not in the public file."""
    again: Again | None = None
    """What earlier releases of the same data add, where such were found."""
    tables: TableChanges | None = None
    """What the swap does to the published tables, where the release or its policies name any."""
    guarantee: Guarantee | None = None
    """What is promised, or why nothing is, where the method has a guarantee (`PrivateSwap`)."""

    @property
    def public(self) -> Path:
        """The folder to publish."""
        return self.path / "public"

    @property
    def confidential(self) -> Path:
        """The folder to lock away: it can undo the release."""
        return self.path / "confidential"

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "path": str(self.path),
            "files": [str(file) for file in self.files],
            "account": self.account.as_dict(),
            "scores": self.scores.as_dict(),
            "warnings": list(self.warnings),
            "not_held": list(self.not_held),
            "left_out": list(self.left_out),
            "policy": None if self.verdict is None else self.verdict.as_dict(),
            "earlier": None if self.again is None else self.again.as_dict(),
            "tables": None if self.tables is None else self.tables.as_dict(),
            "guarantee": None if self.guarantee is None else self.guarantee.as_dict(),
        }


_WITH_AREA = ("exposed", "linked_small", "hellinger", "total_variation")
"""The measures where areas move and no key variable does, each with the lowest level."""


def default_measures(data: Data, moving: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the default measures that these data can have: tables need a key variable, associations two to 100.

    Where `moving` has levels of geography and no key variable, nothing changes but by area; where it has numbers only,
    no table of categories changes.

    >>> import quadrille as qd
    >>> from quadrille.release.release import default_measures
    >>> default_measures(qd.datasets.island().with_roles(key=["age", "birth"]), ["parish", "ward"])[0]
    'exposed(ward*age*birth)'
    >>> default_measures(qd.datasets.adult(), ["hours-per-week"])
    ('r_ased',)
    """
    moved = set(moving) - {data.weight}
    known = keys_and_area(data, moved)
    if known != data.keys and len(known) > 1:
        return tuple(with_margin(name, data, known) for name in _WITH_AREA)
    if moved and not any(data.codebook[name].coded for name in moved):
        return ("r_ased",)
    keys = len(data.keys)
    weighted = () if data.weight is None or keys < 2 else _WEIGHTED
    paired = _NEEDS_PAIRS if 1 < keys <= _MOST_PAIRED else ()
    possible = [name for name in DEFAULT if name in _BY_RECORD or name in paired or (keys and name not in _NEEDS_PAIRS)]
    return (*possible, *weighted)


def release(
    data: Data,
    recipe: Recipe,
    out: str | Path = "release",
    *,
    measures: Sequence[str] = DEFAULT,
    tables: Tables = (),
    format: str = "csv",
    shuffle: bool = True,
    publish_f: bool = False,
    publish_kept: bool = False,
    overwrite: bool = False,
    policy: Policy | str | Path | None = None,
    after: str | Path | Sequence[str | Path] = (),
    insecure: bool = False,
    allow_contradictions: bool = False,
) -> Release:
    """Swap, score and write `out/public/` and `out/confidential/`; both appear whole or not at all.

    Parameters
    ----------
    data, recipe : what to release, and by which recipe.
    out : the folder to make; it must not exist, or be empty.
    measures : which scores to keep in the confidential folder.
    tables : the tables that are published, such as "Age*Edu": the dossier lists their cells that change too much, and a
        policy can limit that. Those that a policy names join them. Nothing of it goes into the public folder.
    format : of the public file: "csv", "parquet", "sav" (SPSS), "dta" (Stata) or "xpt" (SAS transport). Columns with
        the role id are left out. What the format cannot hold is refused, or listed in the methods note.
    shuffle : put the public rows in random order, so that they cannot be matched by position. The order is drawn afresh
        from the operating system, whatever the seed is; `confidential/order.parquet` keeps it, and that of a file of
        more than 4 million records is found again by what `order.json` says.
    publish_f : tell users in the methods note by which factor f, and for which variables, they can correct tables.
    publish_kept : tell users in the methods note which tables are exact, where the recipe keeps some (`DesignedSwap`).
    overwrite : replace an earlier release; a folder that holds anything else is never replaced.
    policy : the agency's policy, or the path of its TOML file; a release that fails it is refused. See `check_policy`.
        The policy that the variable QUADRILLE_POLICY names is checked as well, whatever is given here.
    after : folders of earlier releases. Where one is of the same data, the release repeats its plan, or a
        `ReleasedBeforeWarning` says what both together tell. A policy can name a folder that is always looked through.
    insecure : let a recipe with a number as seed pass, for tests and papers. Whoever guesses the number can draw the
        plan again; so the dossier says it, and the methods note is called `methods.INSECURE.md`.
    allow_contradictions : let a recipe pass that breaks what the columns of the file say about one another, so that
        the file tells who was swapped; see `contradictions`. The dossier counts the records.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> made = qd.release(data, qd.RandomSwap(["MS"], rate=0.02), "release")
    >>> sorted(file.name for file in made.public.iterdir())
    ['codebook.toml', 'data.csv', 'methods.md']
    """
    one_of("release", "format", format, RELEASED)
    folder = Path(out)
    check_free(folder, overwrite=overwrite, holds=_FOLDERS)
    guessable = not is_secret(recipe.parameters()["seed"])
    if guessable and not insecure:
        text = (
            "The seed is a number that can be guessed, and with it the release can be undone. Leave the seed out, so "
            "that it is drawn from the operating system; for tests and papers alone, allow it with"
        )
        raise unless(ParameterError, text, "insecure")
    asked, named_tables = asked_policies("release", policy), tables_of("release", tables)
    against = contradictions(data, recipe) if allow_contradictions else refuse_contradictions(data, recipe)
    known = earlier_releases("release", after, asked)
    check_apart(folder, known)
    public: _PublicFile = {"format": format, "shuffle": shuffle, "publish_f": publish_f}
    draft, factor = _draft(data, recipe, measures, named_tables, asked, known, **public)
    if draft.verdict is not None and draft.verdict.outcome == "fail":
        raise PolicyError(draft.verdict)
    name = INSECURE_NOTE if guessable else NOTE
    kept = kept_in_words(recipe, data) if publish_kept else ()
    exact, promise = margins_kept(draft.data, draft.plan), draft.promise and draft.promise.guarantee
    note = methods_note(
        draft.public, shuffled=shuffle, published=factor, kept=kept, exact=exact, promise=promise, name=name
    )
    outside, lines = _public_files(draft, format, note, name)
    broken = contradicted(data, draft.plan)
    record = replace(
        draft,
        warnings=serious_first([*(contradiction_warnings(broken) if against else ()), *draft.warnings]),
        one_way=one_way_report(data, recipe),
        contradicted=broken,
        alternatives=_alternative_scores(data, draft.plan, draft.scores),
    )
    inside = _write(folder, outside, record, overwrite=overwrite)
    for warning in record.warnings:
        warnings.warn(warning, stacklevel=2)
    files = [folder / "public" / name for name in outside] + [folder / "confidential" / name for name in inside]
    left_out = tuple(variable.name for variable in data.codebook if variable.role == "id")
    texts = tuple(map(str, record.warnings))
    return Release(
        *(folder, tuple(files), record.scores, record.account, texts, lines, record.verdict, left_out, record.again),
        tables=record.tables,
        guarantee=promise,
    )


def check_policy(
    data: Data,
    recipe: Recipe,
    policy: Policy | str | Path | None = None,
    *,
    tables: Tables = (),
    format: str = "csv",
    shuffle: bool = True,
    publish_f: bool = False,
    after: str | Path | Sequence[str | Path] = (),
) -> Verdict:
    """Say line by line what a policy says to a release, without writing anything.

    The parameters are those of `release`, and so is what is checked: the policy given, and the one that the variable
    QUADRILLE_POLICY names. `verdict.policies` has them one by one, `verdict.lines` the lines of all. The verdict of a
    line is "pass", "fail" or "review": a person must look.

    Example
    -------
    >>> from pathlib import Path
    >>> import quadrille as qd
    >>> _ = Path("policy.toml").write_text("[measures]\\nhellinger = {most = 0.01}")
    >>> verdict = qd.check_policy(qd.datasets.cps8d(), qd.RandomSwap(["MS"], rate=0.02), "policy.toml")
    >>> verdict.outcome, verdict.lines[0].rule, verdict.lines[0].asked
    ('fail', '[measures] hellinger', 'at most 0.01')
    """
    one_of("check_policy", "format", format, RELEASED)
    asked = asked_policies("check_policy", policy)
    if not asked:
        raise ParameterError(f"Name a policy: check_policy(data, recipe, policy), or by the variable {VARIABLE}.")
    known = earlier_releases("check_policy", after, asked)
    if isinstance(recipe, PrivateSwap) and recipe.fresh:
        recipe = recipe.changed(seed=None)  # what is checked is no draw that a release could be picked from
    public: _PublicFile = {"format": format, "shuffle": shuffle, "publish_f": publish_f}
    draft, _ = _draft(data, recipe, (), tables_of("check_policy", tables), asked, known, **public)
    assert draft.verdict is not None
    return draft.verdict


def warnings_ahead(
    data: Data,
    recipe: Recipe,
    policy: Policy | None = None,
    *,
    tables: Tables = (),
    format: str = "csv",
    shuffle: bool = True,
) -> tuple[str, ...]:
    """Return what a release would warn of, without writing anything: whoever signs it reads that first."""
    refuse_contradictions(data, recipe)
    asked = asked_policies("release", policy)
    public: _PublicFile = {"format": format, "shuffle": shuffle, "publish_f": False}
    known = earlier_releases("release", (), asked)
    draft, _ = _draft(data, recipe, ["exposed"], tables_of("release", tables), asked, known, **public)
    return tuple(map(str, draft.warnings))


class _PublicFile(TypedDict):
    """How the public file is written."""

    format: str
    shuffle: bool
    publish_f: bool


def _draft(
    data: Data,
    recipe: Recipe,
    measures: Sequence[str],
    tables: tuple[Names, ...],
    asked: Sequence[Asked],
    known: Sequence[Earlier],
    *,
    format: str,
    shuffle: bool,
    publish_f: bool,
) -> tuple[Record, Published | None]:
    """Work out a release that is not yet written, and the factor f where it is to be published."""
    for table in tables:
        require_table(data, table)
    promise = promise_of(data, recipe, known, asked, shuffle=shuffle)  # before anything is drawn
    plan = recipe.plan(data)
    if promise is None and not len(plan.rows):  # a draw with a guarantee may move nothing: refusing it would be picking
        raise InputError(
            "The recipe swaps nothing in these data, so the public file would be the original. Ask for more, relax the "
            "boundary or the constraints, or choose other variables."
        )
    usual = default_measures(data, plan.columns) if measures is DEFAULT else measures
    wanted = beside_exposed(beside_the_n_rule(usual), data)
    if promise is None:
        refuse_uncounted(data, plan.rows)
    else:  # whoever is drawn: a refusal of some draws would pick among them
        refuse_uncounted(data, np.arange(data.n), "may move")
    scores, cannot = scored(data, plan, wanted, asked)
    swapped = plan.apply(data)
    order = _public_order(swapped, format) if shuffle else None
    public = _public(swapped, None if isinstance(order, BucketOrder) else order, recipe.steering_columns)
    factor = published(recipe, plan, data, public) if publish_f else None
    again = released_again(data, plan, known, recipe.n if isinstance(recipe, DesignedPairs) else 3)
    account, verdict = plan.report(data), None
    given = release_warnings(public, recipe, data, plan, again, promise and promise.guarantee)
    of_draw = draw_warnings(data, plan, public)
    given += of_draw if promise is None else []
    if known and again is None and isinstance(recipe, DesignedSwap) and recipe.keep != "1-way":
        given.append(SubtractionWarning(_SUBTRACTION))
    given += formula_warnings(public) if format == "csv" else []
    if asked:
        texts, columns = tuple(map(str, given)), public.columns
        how = (columns, format, shuffle, publish_f, texts, again, tables, promise and promise.guarantee)
        case = Case(data, recipe, plan, account, scores, cannot, *how)
        verdict = judge(asked, case)
        given += _to_review(verdict)
    given += [] if promise is None else of_draw  # no verdict may depend on the draw
    given += unjudged_warnings(data, plan, shuffled=shuffle)
    given = serious_first(given)
    changes = _table_changes(data, plan, tables, asked)
    found = Record(data, public, recipe, plan, account, scores, given, order, verdict, again, changes)
    return replace(found, promise=promise), factor


def _table_changes(data: Data, plan: Plan, tables: tuple[Names, ...], asked: Sequence[Asked]) -> TableChanges | None:
    """Return what becomes of the published tables of the release and its policies, by the limits of the first one.

    A table of a policy that these data cannot have fails in its verdict, and is left out here.
    """
    rules = [each.policy.published for each in asked if each.policy.published is not None]
    listed = together(tables, (table for each in rules for table in each.tables if _possible(data, table)))
    limits = rules[0].cell_limits if rules else CellLimits()
    return table_changes(data, plan, listed, **asdict(limits)) if listed else None


def _possible(data: Data, table: Names) -> bool:
    try:
        require_table(data, table)
    except InputError:
        return False
    return True


_SUBTRACTION = (
    "The earlier releases are of other data, and this one keeps tables exactly. If both are about nearly the same "
    "persons and kept the same tables, subtracting one from the other shows who was added or left out. Release changes "
    'to a file that was released before with keep="1-way".'
)


def _public_order(swapped: Data, format: str) -> Rows | BucketOrder:
    """Draw the order of the public rows; that of a large file is never whole in memory, unless units stay together."""
    units = [swapped.units(name) for name in _unit_columns(swapped)]
    large = swapped.n > ONE_BUCKET and not units and streamed(f"data.{format}")
    return BucketOrder(swapped.n) if large else fresh_order(swapped.n, units)


def _unit_columns(data: Data) -> list[str]:
    return [variable.name for variable in data.codebook if variable.role == "unit"]


def renumbered(column: Column) -> Column:
    """Return fresh numbers of the units, from the operating system: nothing of the old ones, nor of their order.

    Numbers stay numbers and text becomes text of digits; what is missing stays missing.
    """
    variable, values = column.variable, column.values
    absent = values >= column.valid if variable.coded else np.isnan(values)
    old, of = np.unique(values[~absent], return_inverse=True)
    fresh = _free_numbers(variable, len(old))
    fresh = fresh[random_order(len(fresh), Stream.of(fresh_seed(), "public numbers of units"))]
    plain = replace(variable, labels=(), labelled=(), stored=None)
    text = column.dtype in _TEXT
    dtype = "String" if text else "Float64" if column.dtype.startswith("Float") else "Int64"
    if not variable.coded:
        numbers = values.copy()
        numbers[~absent] = fresh[of]
        return Column(plain, numbers, dtype, column.nullable)
    order = np.argsort(fresh)
    rank = np.empty(len(old), dtype=np.int64)
    rank[order] = np.arange(len(old))
    width = len(str(fresh.max(initial=0)))
    listed = [f"{number:0{width}}" if text else number for number in fresh[order].tolist()]
    if dtype == "Float64":
        listed = [float(number) for number in listed]
    codes = values.astype(np.int64) - column.valid + len(old)
    codes[~absent] = rank[of]
    plain = replace(plain, categories=tuple(listed))
    return Column(plain, codes.astype(code_dtype(len(plain.values) + 1)), dtype, column.nullable)


_TEXT = ("String", "Categorical", "Enum")


def _free_numbers(variable: Variable, count: int) -> Rows:
    """Return so many numbers from 1 that are no missing codes of a column."""
    codes = {str(value).strip().lstrip("0") for value in variable.missing}
    found: list[int] = []
    number = 0
    while len(found) < count:
        number += 1
        inside = any(low <= number <= high for low, high in variable.missing_ranges)
        if not inside and str(number) not in codes:
            found.append(number)
    return np.array(found, dtype=np.int64)


def _to_review(verdict: Verdict) -> list[ReleaseWarning]:
    text = "The policy {!r} wants a person to look at: {}. The dossier says why."
    return [
        ReleaseWarning(text.format(judged.policy, ", ".join(line.rule for line in lines)))
        for judged in verdict.policies
        if (lines := judged.having("review"))
    ]


def _alternative_scores(data: Data, plan: Plan, scores: Scores) -> dict[str, Scores]:
    """Score the plans that the method decided against by the same measures."""
    if plan.details is None:
        return {}
    return {name: score(data, alternative, list(scores)) for name, alternative in plan.details.alternatives.items()}


def _public(swapped: Data, order: Rows | None, secret: Sequence[str] = ()) -> Data:
    """Return the file as it goes out: no identifiers, nothing that steered the draw, rows in the order given."""
    columns = [
        Column(_described(column.variable, swapped), _ordered(column, order), column.dtype, column.nullable)
        for column in map(_fresh_units, (swapped[name] for name in swapped.columns))
        if column.variable.role != "id" and column.variable.name not in secret
    ]
    if not columns:
        raise InputError("Every column is an identifier or secret, so nothing can be released. Correct the codebook.")
    return Data(columns, weight=swapped.weight, remarks=swapped.remarks)


def _fresh_units(column: Column) -> Column:
    return renumbered(column) if column.variable.role == "unit" else column


def _described(variable: Variable, data: Data) -> Variable:
    """Let the codebook name the weight, also where it was named outside of it; what was recoded is done with."""
    if variable.recodes:
        variable = replace(variable, bands=(), top=None, bottom=None, merge=(), original="")
    return replace(variable, role="weight") if variable.name == data.weight else variable


def without_roles(public: Data) -> Data:
    """Take roles and levels away: keys, areas and outcomes would tell what was moved. The note names the weight."""
    columns = [
        Column(replace(column.variable, role=None, level=None), column.values, column.dtype, column.nullable)
        for column in (public[name] for name in public.columns)
    ]
    return Data(columns, remarks=public.remarks)


def _ordered(column: Column, order: Rows | None) -> Rows:
    return column.values if order is None else column.values[order]


def _public_files(record: Record, format: str, note: str, note_name: str) -> tuple[Public, tuple[str, ...]]:
    """Return the public files, and line by line what the format does not hold; the note says so too.

    A large file is written piece by piece, in its order; of a small one `public` has the records in their order.
    """
    name, public, order = f"data.{format}", without_roles(record.public), record.order
    contents: Contents
    if isinstance(order, BucketOrder) or (order is None and public.n > ONE_BUCKET and streamed(name)):
        contents, lines = partial(_write_pieces, name=name, public=public, order=order), not_held(public, name)
    else:
        contents, lines = file_bytes(public, name)
    if lines:
        note = note.rstrip("\n") + "\n" + _NOT_HELD.format(name=name, lines="\n".join(f"- {each}" for each in lines))
    files = {name: contents, "codebook.toml": public.codebook.to_toml().encode(), note_name: note.encode()}
    return files, lines


def _write_pieces(file: BinaryIO, name: str, public: Data, order: BucketOrder | None) -> None:
    """Write the public records piece by piece; those on their way stay in memory as long as they fit."""
    columns = [public[each] for each in public.columns]
    held = sum(column.values.nbytes for column in columns)
    left = memory_limit() - (held if os.environ.get(MEMORY) else 0)  # what is free does not count what is held
    write_pieces(file, name, columns, pieces(columns, order, Space(left)))
    give_back()


_NOT_HELD = """
## What the file does not hold

The format of `{name}` cannot hold everything that the original file held. `codebook.toml` has the
labels and the missing codes.

{lines}
"""


def _confidential_files(record: Record) -> Files:
    plan = record.plan
    moves = [list(move.columns) for move in plan.moves]
    hashes = {"sha256": dict(record.hashes), "fingerprint": {"before": plan.before, "after": plan.after}}
    return {
        "recipe.json": (record.recipe.to_json() + "\n").encode(),
        "plan.parquet": plan_bytes(plan),
        **_order_files(record.order),
        **_unit_files(record),
        "account.json": _json({**record.account.as_dict(), "moves": moves}),
        "scores.json": _json(record.scores.as_dict()),
        "hashes.json": _json(hashes),
        "dossier.md": dossier(record).encode(),
        **({} if record.tables is None else {"tables.parquet": _frame_bytes(record.tables.frame())}),
        **({} if record.verdict is None else {"policy.json": _json(record.verdict.as_dict())}),
        **({} if record.promise is None else {LEDGER: _json(record.promise.as_dict(record.data))}),
        **({"targets.parquet": _target_bytes(plan.details)} if plan.details and "targets" in plan.details.rows else {}),
    }


def _order_files(order: Rows | BucketOrder | None) -> Files:
    """Return the original row of each public one, or what finds it again."""
    if isinstance(order, BucketOrder):
        return {"order.json": _json(order.as_dict())}
    return {} if order is None else {"order.parquet": _parquet({"row": order})}


def _unit_files(record: Record) -> Files:
    """Return which number each unit has in the public file, where there are units: column, number before, and now."""
    names = [name for name in _unit_columns(record.data) if name in record.public.columns]
    if not names:
        return {}
    after = record.plan.apply(record.data).frame().select(names)
    assert not isinstance(record.order, BucketOrder)  # files with units are in one
    after = after if record.order is None else after[record.order]
    public = record.public.frame()
    parts = [
        pl.DataFrame({"original": after[name].cast(pl.String), "public": public[name].cast(pl.String)})
        .unique(maintain_order=True)
        .select(pl.lit(name).alias("column"), "original", "public")
        for name in names
    ]
    return {"units.parquet": _frame_bytes(pl.concat(parts))}


def plan_bytes(plan: Plan) -> memoryview:
    """Return the plan as a table: in this move, this row receives its values from that source."""
    none = np.empty(0, dtype=np.int64)
    columns = {
        "move": np.repeat(np.arange(len(plan.moves)), [len(move.rows) for move in plan.moves]),
        "row": np.concatenate((none, *(move.rows for move in plan.moves))),
        "source": np.concatenate((none, *(move.source for move in plan.moves))),
    }
    return _parquet(columns)


def _target_bytes(details: Details) -> memoryview:
    """Return the targets as a table: row, whether it was certain by size, whether it has a partner.

    Where it has none, `nobody_there` tells that no donor was in another cell of its zone; else all were taken.
    """
    targets = details.rows["targets"]
    columns = {
        "row": targets,
        "certain": np.isin(targets, details.rows["certain"]),
        "partner": ~np.isin(targets, details.rows["without partner"]),
        "nobody_there": np.isin(targets, details.rows["nobody there"]),
    }
    return _parquet(columns)


def _parquet(columns: Mapping[str, Rows | NDArray[np.bool_]]) -> memoryview:
    return _frame_bytes(pl.DataFrame(dict(columns)))


def _frame_bytes(frame: pl.DataFrame) -> memoryview:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getbuffer()


def _json(document: object) -> bytes:
    return (as_json(document) + "\n").encode()


def _write(folder: Path, public: Public, record: Record, *, overwrite: bool) -> Files:
    """Write both folders, and return the confidential files; their dossier has the hashes of the public ones."""
    with new_folder(folder, overwrite=overwrite, holds=_FOLDERS) as fresh:
        outside, inside = fresh / "public", private_folder(fresh / "confidential")
        outside.mkdir()
        hashes = {name: write_file(outside / name, contents) for name, contents in public.items()}
        confidential = _confidential_files(replace(record, hashes=hashes, written=datetime.now(UTC)))
        for name, contents in confidential.items():
            write_file(inside / name, contents, private=True)
    return confidential
