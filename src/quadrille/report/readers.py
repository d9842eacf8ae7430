"""Three reports on one swap, each for one reader: the analyst, the chair of the review board, its members."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from quadrille import chart
from quadrille.data import Data, Rows, require_data, tidy
from quadrille.delta import PlanReport
from quadrille.errors import InputError, bad_parameter
from quadrille.expressions import Model, Term, quoted
from quadrille.io.atomic import PRIVATE_FOLDER, check_free, new_folder, write_file
from quadrille.measure import MEASURES, beside_the_n_rule
from quadrille.measure.base import Measure, Score
from quadrille.plan import Move, Plan
from quadrille.present import Block, Table, Text, Title, facts, numbers, table, words
from quadrille.present.account import (
    WORDED,
    account_facts,
    alternatives_table,
    diagnosis,
    recipe_table,
    rule_facts,
    strata_table,
    target_facts,
    traces,
    variable_table,
)
from quadrille.present.numbers import count, counted, finite, fixed, ratio, share
from quadrille.present.scores import definitions, score_table
from quadrille.present.words import cycle_facts, rank_blocks, targeted
from quadrille.recipe import Recipe
from quadrille.report.build import render_page
from quadrille.report.input import Row
from quadrille.score.estimates import BeforeAfter, Estimate, before_after, design_of
from quadrille.score.evaluator import Evaluator, Scores, detail_rows
from quadrille.study.study import PAIRWISE

DEFAULT = ("hd1", "hd2", "hd1_norm", "r_ased", "c_ard", "v_ard", "ased_reg")
CORRELATIONS, REGRESSION = "r_ased", "ased_reg"
_OF_PAIRS = frozenset({"c_ard", "v_ard"})
_OWNER = "write_readers"


@dataclass(frozen=True)
class Material:
    """A swap and all that is said about it; `alternatives` are the scores of plans that the method decided against."""

    data: Data
    plan: Plan
    recipe: Recipe | None
    account: PlanReport
    compared: BeforeAfter
    scores: Scores
    alternatives: Mapping[str, Scores] = field(default_factory=dict[str, Scores])


def _measures(
    data: Data,
    plan: Plan,
    outcomes: Sequence[str] | None,
    models: Sequence[str] | None,
    measures: Sequence[str | Measure] | None,
) -> list[str | Measure]:
    """Return the measures given, or the default ones that these data can have, and the models."""
    if isinstance(models, str):
        raise bad_parameter(_OWNER, "models", "a list of models such as 'score ~ age + C(race)'", models)
    further = [f"{REGRESSION}({'; '.join(models)})"] if models else []
    if measures is not None:
        named = [each if isinstance(each, str) else each.name for each in measures]
        return [*measures, *(each for each in beside_the_n_rule(named) if each not in named), *further]
    moved = tuple(name for name in plan.columns if data.codebook[name].coded)
    pairs = len({*data.keys, *moved}) > 1
    default = [name for name in DEFAULT if name in MEASURES and (pairs or name not in _OF_PAIRS)]
    declared = {variable.name for variable in data.codebook if variable.role == "outcome"}
    if outcomes is None or set(outcomes) == declared:
        return [*default, *further]
    return [
        *(_with_outcomes(name, data, plan, outcomes) for name in default if outcomes or name != REGRESSION),
        *further,
    ]


def _with_outcomes(name: str, data: Data, plan: Plan, outcomes: Sequence[str]) -> str:
    """Return the address of a measure for outcomes that the codebook does not declare."""
    if name == CORRELATIONS:
        wanted = {*data.keys, *plan.columns, *outcomes} - {data.weight}
        return f"{name}({'*'.join(_quoted(each) for each in data.columns if each in wanted)})"
    if name == REGRESSION:
        moved = [each for each in plan.columns if each not in outcomes]
        terms = tuple(Term(each, classes=data.codebook[each].coded) for each in moved)
        return f"{name}({'; '.join(str(Model(outcome, terms)) for outcome in outcomes)})"
    return name


def _quoted(name: str) -> str:
    return f"`{name}`" if any(sign in name for sign in ",;=&") else quoted(name)


_MOST_COLUMNS = 14
_MOST_ROWS = 25
_SCATTER = "After against before"
_HEADS = {
    "column_a": "first",
    "column_b": "second",
    "n": "records",
    "se": "standard error",
    "se_before": "standard error before",
    "b_before": "coefficient before",
    "b_after": "coefficient after",
    "ased": "change in standard errors",
}
_TITLES = {
    "r_ased": "Correlations, the largest change first",
    "c_ard": "Relative change of the contingency coefficient, by pair",
    "v_ard": "Relative change of Cramér's V, by pair",
}


def changed(material: Material) -> Row:
    """Say how much was changed, and nothing else."""
    account = material.account
    overall = share(account.changed / account.n)
    rows = [(moved.variable, share(moved.rate_changed)) for moved in account.variables]
    caption = "Percent of the records whose value differs from the original"
    return {
        "overall": overall,
        "table": table(("variable", "changed"), [*rows, ("any of them", overall)], caption=caption, numbers=(1,)),
    }


def account(material: Material) -> Row:
    """Account for the swap: asked, paired, really changed, per variable and in all."""
    known = material.account
    moved = variable_table(known) if known.variables else Text("Nothing is swapped.")
    recipe = [] if material.recipe is None else [recipe_table(material.recipe)]
    return {"blocks": [facts(account_facts(known)), *traces(known), moved, *recipe]}


def drawn(material: Material) -> Row:
    """Say what the method remembers of the draw: targets, strata, rules, small cells, and whatever else."""
    details = material.plan.details
    if details is None:
        return {"blocks": [Text(_NO_TARGETS)], "lists": []}
    known = [*target_facts(details.facts), *cycle_facts(details.facts), *rule_facts(details.facts)]
    tables: list[Block] = [strata_table(details.facts)] if "strata" in details.facts else []
    tables += rank_blocks(details.facts)
    if details.alternatives:
        tables.append(alternatives_table(details.facts, details.alternatives))
    for name, value in details.facts.items():
        title = name.replace("_", " ").capitalize()
        if name in WORDED or name in details.alternatives or value in ({}, [], ()):
            continue
        rows = cast("Sequence[object]", value if isinstance(value, list | tuple) else ())
        if rows and all(isinstance(row, Mapping) for row in rows):
            tables.append(_table(title, cast("Sequence[Mapping[str, object]]", rows)))
        else:
            known.append((title, numbers.value(cast("object", value))))
    lists = [
        {"title": name, "count": count(len(rows)), "text": ", ".join(_with_ids(material.data, rows))}
        for name, rows in details.rows.items()
        if len(rows)
    ]
    outcome = [*targeted(details.facts), *diagnosis(material.account)]
    blocks = [*([facts(known)] if known else []), *tables, *outcome]
    return {"blocks": blocks, "lists": lists, "id": _id_column(material.data)}


_NO_TARGETS = "This method draws pairs directly: there are no targets, no certainties and no target without a partner."


def pairs(material: Material) -> Row:
    """List which rows exchanged which columns."""
    moves = [_move(material.data, move) for move in material.plan.moves]
    return {"moves": moves, "id": _id_column(material.data)}


def _id_column(data: Data) -> str | None:
    """Return the column by which the file's owner knows its records: the first with the role id."""
    return next((variable.name for variable in data.codebook if variable.role == "id"), None)


def _with_ids(data: Data, rows: Rows) -> list[str]:
    """Name rows by their number and, in brackets, by the id of the file, where it has one."""
    name = _id_column(data)
    if name is None or not len(rows):
        return list(map(str, rows.tolist()))
    ids: list[object] = data.take(rows).frame()[name].to_list()
    return [str(row) if each is None else f"{row} ({each})" for row, each in zip(rows.tolist(), ids, strict=True)]


def _move(data: Data, move: Move) -> Row:
    sign = "←" if move.pairs is None else "↔"
    ones, others = (move.rows, move.source) if move.pairs is None else (move.pairs[:, 0], move.pairs[:, 1])
    if move.pairs is not None and move.units is not None:  # a unit is named by its first row
        ones, others = move.units.first[ones], move.units.first[others]
    lines = [
        f"{one} {sign} {other}" for one, other in zip(*(_with_ids(data, rows) for rows in (ones, others)), strict=True)
    ]
    return {
        "columns": words.listed(list(move.columns)),
        "count": counted(len(lines), "row" if move.pairs is None else "pair")
        + (", units by their first rows" if move.pairs is not None and move.units is not None else ""),
        "text": "\n".join(lines),
    }


def flags(material: Material) -> Row:
    """List the flagged estimates, those that changed most first."""
    compared, rules = material.compared, material.compared.rules
    marked = [estimate for estimate in compared.estimates if estimate.flagged]
    marked.sort(key=lambda estimate: (-(estimate.se_ratio or 0.0), estimate.variable))
    decimals = _decimals_of(marked)
    rows = [
        (
            e.variable,
            _category(e),
            "percent" if e.outcome is None else f"mean of {e.outcome}",
            count(e.n),
            *(fixed(value, decimals[e.outcome]) for value in (e.before, e.after)),
            ratio(e.relative),
            fixed(e.se_ratio, 3),
            _flag(e),
        )
        for e in marked
    ]
    head = ("variable", "category", "estimate", "records", "before", "after", "relative difference")
    total = count(len(compared.estimates))
    caption = f"Flagged: {len(rows)} of {total} estimates, those with the largest ratio of standard errors first"
    listed = table((*head, "ratio of standard errors", "flag"), rows, caption=caption, numbers=range(3, 8))
    return {
        "table": listed,
        "estimates": total,
        "texts": [Text(text) for text in (compared.design, *compared.notes)],
        "relative": share(rules.relative),
        "min_cell": count(rules.min_cell),
        "se_ratio": f"{rules.se_ratio:g}",
    }


def percents(material: Material) -> Row:
    """Return the weighted percents of every category before and after."""
    weight = material.data.weight
    basis = f"sum of the weights ({weight})" if weight else "records; the file has no weight"
    text = f"Percents of the {basis}, missing values among them. Categories that no record has are left out."
    found = [estimate for estimate in material.compared.estimates if estimate.outcome is None]
    tables = _estimates(found, "percent") or [Text("There is no categorical variable to compare.")]
    return {"blocks": [Text(text), *tables]}


def means(material: Material) -> Row:
    """Return the weighted means of every outcome before and after."""
    found = [estimate for estimate in material.compared.estimates if estimate.outcome is not None]
    if not found:
        return {"blocks": [Text(_NO_OUTCOME)]}
    text = (
        f"{'Weighted means' if material.data.weight else 'Means'} of the outcome in each category. Records without a "
        "value of the outcome are left out; “records” are those with one, before the swap."
    )
    return {"blocks": [Text(text), *_estimates(found, "mean")]}


_NO_OUTCOME = "There is no outcome to compare: name some, or give numeric columns the role outcome in the codebook."


def _estimates(found: Sequence[Estimate], unit: str) -> list[Block]:
    """Return a table for each variable, and outcome, with the flagged rows marked."""
    groups: dict[tuple[str | None, str], list[Estimate]] = {}
    for estimate in found:
        groups.setdefault((estimate.outcome, estimate.variable), []).append(estimate)
    head = ("category", "records", f"{unit} before", f"{unit} after", "relative difference")
    errors = ("standard error before", "standard error after", "ratio", "flag")
    tables: list[Block] = []
    for (outcome, variable), members in groups.items():
        decimals = _decimals_of(members)[outcome]
        rows = [
            (
                _category(e),
                count(e.n),
                *(fixed(value, decimals) for value in (e.before, e.after)),
                ratio(e.relative),
                *(fixed(value, decimals) for value in (e.se_before, e.se_after)),
                fixed(e.se_ratio, 3),
                _flag(e),
            )
            for e in members
        ]
        title = variable if outcome is None else f"{outcome} by {variable}"
        marked = [place for place, e in enumerate(members) if e.flagged]
        listed = table((*head, *errors), rows, caption=title, numbers=range(1, 8), marked=marked, mark="flagged")
        tables.append(listed)
    return tables


def _category(estimate: Estimate) -> str:
    return f"{estimate.category} (missing)" if estimate.missing else estimate.category


def _flag(estimate: Estimate) -> str:
    signs = [sign for sign, on in (("▲ differs", estimate.differs), ("◆ SE", estimate.se_high)) if on]
    return "; ".join(filter(None, [", ".join(signs), estimate.reason]))


def _decimals_of(found: Sequence[Estimate]) -> dict[str | None, int]:
    """Return the decimals of each outcome: those that show its largest value with five digits; two for percents."""
    largest: dict[str | None, float] = {}
    for estimate in found:
        largest[estimate.outcome] = max(largest.get(estimate.outcome, 0.0), abs(estimate.before or 0.0))
    return {
        outcome: 2 if outcome is None else min(max(4 - math.floor(math.log10(value or 1.0)), 0), 6)
        for outcome, value in largest.items()
    }


def scatter(material: Material) -> Row:
    """Draw percents, means and correlations after against before."""
    rows = [row for _, _, score in _of(material, {CORRELATIONS}) for row in detail_rows(score)]
    correlations = correlation_points(rows)
    points = [estimate.point() for estimate in material.compared.estimates] + correlations
    known = [point for point in points if point["before"] is not None and point["after"] is not None]
    drawn = {_SCATTER: chart.after_before(tidy(points))} if known else {}
    return {"charts": drawn, "correlations": bool(correlations)}


def correlation_points(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Turn the rows behind `r_ased` into points; one is flagged when r changes by more than its standard error."""
    points: list[dict[str, object]] = []
    for row in rows:
        before, after, se = (finite(row.get(name)) for name in ("r_before", "r_after", "se"))
        if before is None or after is None:
            continue
        far = se is not None and abs(after - before) > se
        label = f"{row['column_a']} × {row['column_b']}"
        points.append({"kind": "correlations", "label": label, "before": before, "after": after, "flagged": far})
    return points


def associations(material: Material) -> Row:
    """Return the details of the measures of pairs, of many pairs those that changed most and, folded away, all."""
    tables: list[Row] = []
    for address, kind, score in _of(material, {*PAIRWISE}):
        rows = detail_rows(score)
        if kind.name == CORRELATIONS:
            rows.sort(key=lambda row: -(finite(row.get("ased")) or 0.0))
        title = f"{_TITLES.get(kind.name, address)} ({address} {numbers.score(score.value)})"
        whole = _table(title, rows)
        if whole.rows and 0 < len(whole.head) <= _MOST_COLUMNS:
            some = replace(whole, rows=whole.rows[:_MOST_ROWS], caption=f"{title}; the {_MOST_ROWS} that changed most")
            tables.append({"all": whole, "some": some if len(whole.rows) > _MOST_ROWS else None})
    return {"tables": tables, "notes": _notes(material, {*PAIRWISE})}


def regressions(material: Material) -> Row:
    """Return the details of the regressions."""
    models: dict[str, list[dict[str, object]]] = {}
    for _, _, score in _of(material, {REGRESSION}):
        for row in score.explain() if score.explain else ():
            models.setdefault(str(row.get("model")), []).append({k: v for k, v in row.items() if k != "model"})
    tables = [_table(model, rows) for model, rows in models.items()]
    none = Text("No regression was asked for, or none has a detail to show.")
    return {"blocks": [*(tables or [none]), *_notes(material, {REGRESSION})]}


def _of(material: Material, names: set[str]) -> list[tuple[str, Measure, Score]]:
    return [(address, kind, score) for address, (kind, score) in material.scores.results.items() if kind.name in names]


def _notes(material: Material, names: set[str]) -> list[Text]:
    return [Text(f"{address}: {score.note}.") for address, _, score in _of(material, names) if score.note]


def utility(material: Material) -> Row:
    """Return the utility measures of the swap; those that look at single records tell how much was swapped."""
    fit = [a for a, (kind, _) in material.scores.results.items() if kind.side == "loss" and not kind.by_record]
    return _utility(material, fit, {"value": material.scores})


def utility_of_all(material: Material) -> Row:
    """Return all measures, of the swap and of the plans that the method decided against."""
    columns = (
        {"this swap": material.scores, **material.alternatives} if material.alternatives else {"value": material.scores}
    )
    return _utility(material, list(material.scores.results), columns)


def _utility(material: Material, addresses: Sequence[str], columns: Mapping[str, Scores]) -> Row:
    results = material.scores.results
    notes = [(address, note) for address in addresses if (note := results[address][1].note)]
    return {
        "blocks": [
            score_table(columns, addresses=addresses, caption="Measures of what the swap does to the file"),
            *([facts(notes)] if notes else []),
            Title("What they measure"),
            definitions(results[address][0] for address in addresses),
        ]
    }


def _table(title: str, rows: Sequence[Mapping[str, object]]) -> Table:
    """Lay rows out as text; a column is set as numbers when all its values are."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    numeric = [
        place
        for place, name in enumerate(columns)
        if all(isinstance(row.get(name), int | float | None) and not isinstance(row.get(name), bool) for row in rows)
    ]
    lines = [[numbers.value(row.get(name)) for name in columns] for row in rows]
    heads = [_HEADS.get(name, name.replace("_", " ")) for name in columns]
    return table(heads, lines, caption=title, numbers=numeric)


Section = tuple[str, str, Callable[[Material], Row]]

_BEFORE_AFTER: tuple[Section, ...] = (
    ("flags", "What to look at first", flags),
    ("scatter", "After against before", scatter),
    ("percents", "Weighted percents", percents),
    ("means", "Means of the outcomes", means),
    ("associations", "Associations", associations),
    ("regressions", "Regressions", regressions),
)

_PAGES: dict[str, tuple[str, str, tuple[Section, ...]]] = {
    "analyst": (
        "Data swapping: report to the analyst",
        "Whoever has this page can undo the swap: it lists which records exchanged their values. It is for the analyst "
        "who makes the release, and for nobody else.",
        (
            ("account", "What was swapped", account),
            ("targets", "How it was drawn", drawn),
            *_BEFORE_AFTER,
            ("utility", "Utility measures", utility_of_all),
            ("pairs", "Which records exchanged values", pairs),
        ),
    ),
    "chair": (
        "Data swapping: report to the chair of the review board",
        "This page says how much of the file was changed, which would help to undo the protection. It is for the chair "
        "of the review board alone.",
        (("changed", "How much was changed", changed),),
    ),
    "board": (
        "Data swapping: report to the members of the review board",
        "This page shows estimates and counts of the original file, small ones among them. It is for the members of "
        "the review board alone and must not be published, in whole or in part.",
        (*_BEFORE_AFTER, ("utility", "Utility measures", utility)),
    ),
}

FILES = tuple(f"{name}.html" for name in _PAGES)


def write_readers(
    data: Data,
    swap: Plan | Recipe,
    out: str | Path,
    *,
    variables: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    stratum: str | Sequence[str] | None = None,
    cluster: str | None = None,
    measures: Sequence[str | Measure] | None = None,
    overwrite: bool = False,
) -> dict[str, Path]:
    """Write `analyst.html`, `chair.html` and `board.html` into a folder that only its owner can enter.

    The analyst sees everything but the seed: pairs, targets, what really changed, estimates before and after. The
    chair sees the percent changed per variable and overall. The members of the board see estimates before and after,
    associations, regressions and utility measures, and nothing about how the file was swapped. All three pages are
    confidential, need nothing but a browser, and make no request.

    Parameters
    ----------
    data : the file before.
    swap : the plan, or the recipe that draws it.
    out : the folder to make; it must not exist, or be empty.
    variables, outcomes, stratum, cluster : as in `before_after`.
    models : further regressions to compare, such as "score ~ age + C(race)".
    measures : the utility measures; by default HD1, HD2, those of pairs and of regressions.
    overwrite : replace an earlier folder of such reports.

    Example
    -------
    >>> import tempfile
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(qd.report.write_readers(data, qd.RandomSwap(["MS"], rate=0.02), f"{folder}/readers"))
    ['analyst', 'board', 'chair']
    """
    folder = Path(out)
    check_free(folder, overwrite=overwrite, holds=FILES)
    pages = reader_pages(
        data,
        swap,
        variables=variables,
        outcomes=outcomes,
        models=models,
        stratum=stratum,
        cluster=cluster,
        measures=measures,
    )
    return write_pages(pages, folder, overwrite=overwrite)


def reader_pages(
    data: Data,
    swap: Plan | Recipe,
    *,
    variables: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    stratum: str | Sequence[str] | None = None,
    cluster: str | None = None,
    measures: Sequence[str | Measure] | None = None,
) -> dict[str, bytes]:
    """Return the pages of `write_readers` by their reader, so that they can be written together with other files."""
    require_data(data, _OWNER)
    design_of(data, stratum, cluster)  # a wrong column is reported before the draw
    plan = swap.plan(data) if isinstance(swap, Recipe) else swap
    if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{_OWNER} needs a plan or a recipe, and got {type(plan).__name__!r}.")
    compared = before_after(data, plan, variables=variables, outcomes=outcomes, stratum=stratum, cluster=cluster)
    judge = Evaluator(data, _measures(data, plan, outcomes, models, measures))
    alternatives: Mapping[str, Plan] = plan.details.alternatives if plan.details else {}
    material = Material(
        data=data,
        plan=plan,
        recipe=swap if isinstance(swap, Recipe) else None,
        account=plan.report(data),
        compared=compared,
        scores=judge.score(plan),
        alternatives={name: judge.score(alternative) for name, alternative in alternatives.items()},
    )
    written = datetime.now(UTC)
    made: dict[str, Row] = {}
    return {name: render(material, name, written, made).encode() for name in _PAGES}


def write_pages(pages: Mapping[str, bytes], folder: Path, *, overwrite: bool = False) -> dict[str, Path]:
    """Write the pages into a folder that only its owner can enter."""
    with new_folder(folder, overwrite=overwrite, holds=FILES) as fresh:
        fresh.chmod(PRIVATE_FOLDER)
        for name, page in pages.items():
            write_file(fresh / f"{name}.html", page, private=True)
    return {name: folder / f"{name}.html" for name in pages}


def render(material: Material, reader: str, written: datetime, made: dict[str, Row]) -> str:
    """Return the page of one reader; `made` keeps the sections that two readers share."""
    title, warning, parts = _PAGES[reader]
    for _, _, fill in parts:
        if fill.__name__ not in made:
            made[fill.__name__] = fill(material)
    filled: dict[str, Row] = {name: {"title": heading, **made[fill.__name__]} for name, heading, fill in parts}
    known = [("Records in the file", count(material.data.n))]
    return render_page(filled, written, material.data, known, title=title, warning=warning, folder="readers_")
