"""The sections of the reports to the three readers: plain values for the templates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from quadrille import chart
from quadrille.data import Data, require_data, tidy
from quadrille.delta import PlanReport
from quadrille.errors import InputError, bad_parameter
from quadrille.expressions import Model, Term, quoted
from quadrille.measure import MEASURES
from quadrille.measure.axes import beside_the_n_rule
from quadrille.measure.base import Measure, Score
from quadrille.plan import Move, Plan
from quadrille.present import words
from quadrille.recipe import Recipe
from quadrille.report.input import Row
from quadrille.score.estimates import BeforeAfter, Estimate, before_after
from quadrille.score.evaluator import Evaluator, Scores, detail_rows
from quadrille.study.study import PAIRWISE

DEFAULT = ("hd1", "hd2", "hd1_norm", "r_ased", "c_ard", "v_ard", "ased_reg")
CORRELATIONS, REGRESSION = "r_ased", "ased_reg"
_OF_PAIRS = frozenset({"c_ard", "v_ard"})
_OWNER = "write_readers"


@dataclass(frozen=True)
class Material:
    """A swap and all that is told about it; `rivals` are the scores of plans that the method decided against."""

    data: Data
    plan: Plan
    recipe: Recipe | None
    account: PlanReport
    compared: BeforeAfter
    scores: Scores
    rivals: Mapping[str, Scores] = field(default_factory=dict[str, Scores])


def gather(
    data: Data,
    swap: Plan | Recipe,
    variables: Sequence[str] | None,
    outcomes: Sequence[str] | None,
    models: Sequence[str] | None,
    stratum: str | Sequence[str] | None,
    psu: str | None,
    measures: Sequence[str | Measure] | None,
) -> Material:
    """Draw, account for, compare and score a swap."""
    require_data(data, _OWNER)
    recipe = swap if isinstance(swap, Recipe) else None
    plan = swap.plan(data) if isinstance(swap, Recipe) else swap
    if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{_OWNER} needs a plan or a recipe, and got {type(plan).__name__!r}.")
    compared = before_after(data, plan, variables=variables, outcomes=outcomes, stratum=stratum, psu=psu)
    judge = Evaluator(data, _measures(data, plan, outcomes, models, measures))
    rivals: Mapping[str, Plan] = plan.details.alternatives if plan.details else dict[str, Plan]()
    return Material(
        data=data,
        plan=plan,
        recipe=recipe,
        account=plan.report(data),
        compared=compared,
        scores=judge.score(plan),
        rivals={name: judge.score(rival) for name, rival in rivals.items()},
    )


def _measures(
    data: Data,
    plan: Plan,
    outcomes: Sequence[str] | None,
    models: Sequence[str] | None,
    measures: Sequence[str | Measure] | None,
) -> list[str | Measure]:
    """Return the measures given, or the default ones that these data can have, and the models beside them."""
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
_FACTS = {
    "certain": "Certainties",
    "strata": "Targets by stratum",
    "pairs": "Pairs",
    "without_partner": "Targets without a partner",
    "rounds": "Rounds of the search",
    "bias": "Total swapping bias",
    "cost": "Total cost",
    "reasons": "Why targets have no partner",
    "greedy": "Beside the greedy search on the same targets",
    "exposed_before": "Exposed records before",
    "exposed_after": "Exposed records after",
    "left": "Small cells left, and why",
    "by_size": "Small cells by their size before",
    "just_large": "Cells just large enough after the swap",
    "design_loss": "Loss that was kept low",
}
_TITLES = {
    "r_ased": "Correlations, the largest change first",
    "c_ard": "Relative change of the contingency coefficient, by pair",
    "v_ard": "Relative change of Cramér's V, by pair",
}


def changed(material: Material) -> Row:
    """Say how much was changed, and nothing else."""
    account = material.account
    rows = [{"variable": each.variable, "share": words.share(each.rate_changed)} for each in account.variables]
    return {"rows": rows, "overall": words.share(account.changed / account.n)}


def account(material: Material) -> Row:
    """Account for the swap: asked, paired, really changed, per variable and in all."""
    known = material.account
    facts = {
        "Asked for": words.count(known.asked),
        "Pairs": words.count(known.pairs),
        "Records that took part": f"{known.records:,} ({words.share(known.records / known.n)})",
        "Records that changed": f"{known.changed:,} ({words.share(known.changed / known.n)})",
        "False swaps": f"{known.false_swaps:,}",
        "Compensating swaps": f"{known.compensating:,}",
    }
    rows = [
        {
            "variable": each.variable,
            "pairs": words.count(each.pairs),
            "records": f"{each.records:,}",
            "changed": f"{each.changed:,}",
            "paired": words.share(each.rate_paired),
            "share": words.share(each.rate_changed),
        }
        for each in known.variables
    ]
    design: dict[str, object] = {} if material.recipe is None else json.loads(material.recipe.design_json())
    told = {name: plain(value) for name, value in design.items()}
    return {"facts": facts, "rows": rows, "design": told, "warnings": list(known.warnings)}


def drawn(material: Material) -> Row:
    """Tell what the method remembers of the draw: targets, certainties, strata, targets without a partner."""
    details = material.plan.details
    if details is None:
        return {"known": False, "facts": {}, "tables": [], "lists": []}
    facts: dict[str, str] = {}
    tables: list[Row] = []
    for name, value in details.facts.items():
        if isinstance(value, Mapping):
            tables.append(_table(_told(name), _beside(name, cast("Mapping[str, object]", value), details.facts)))
        elif isinstance(value, list | tuple):
            tables.append(_table(_told(name), cast("Sequence[Mapping[str, object]]", value)))
        else:
            facts[_told(name)] = plain(value)
    lists = [
        {"title": name, "count": f"{len(rows):,}", "text": ", ".join(map(str, rows.tolist()))}
        for name, rows in details.rows.items()
        if len(rows)
    ]
    return {"known": True, "facts": facts, "tables": [t for t in tables if t["rows"]], "lists": lists}


def _told(name: str) -> str:
    return _FACTS.get(name, name.replace("_", " ").capitalize())


def _beside(name: str, value: Mapping[str, object], facts: Mapping[str, object]) -> list[dict[str, object]]:
    """Lay a mapping out as rows; beside the facts of this swap where it is about the same ones."""
    if value and set(value) <= set(facts):
        return [{"": _told(key), "this swap": facts[key], name: each} for key, each in value.items()]
    return [{"": key, "cells" if name == "left" else "targets": each} for key, each in value.items()]


def pairs(material: Material) -> Row:
    """List which rows exchanged which columns."""
    return {"moves": [_move(move) for move in material.plan.moves]}


def _move(move: Move) -> Row:
    sign = "←" if move.pairs is None else "↔"
    ones, others = (move.rows, move.source) if move.pairs is None else (move.pairs[:, 0], move.pairs[:, 1])
    lines = [f"{one} {sign} {other}" for one, other in zip(ones.tolist(), others.tolist(), strict=True)]
    return {
        "columns": words.listed(list(move.columns)),
        "paired": move.pairs is not None,
        "count": f"{len(lines):,}",
        "text": "\n".join(lines),
    }


def flags(material: Material) -> Row:
    """List the flagged estimates, those that changed most first."""
    compared = material.compared
    marked = [each for each in compared.estimates if each.flagged]
    marked.sort(key=lambda each: (-(each.se_ratio or 0.0), each.variable))
    return {
        "rows": [{**row, "what": _what(each)} for each, row in zip(marked, _rows(marked), strict=True)],
        "estimates": f"{len(compared.estimates):,}",
        "notes": list(compared.notes),
        **_rules(material),
    }


def percents(material: Material) -> Row:
    """Return the weighted percents before and after, a table per variable."""
    found = [each for each in material.compared.estimates if each.outcome is None]
    return {"tables": _by_variable(found), "weight": material.data.weight, **_rules(material)}


def means(material: Material) -> Row:
    """Return the weighted means before and after, a table per outcome and variable."""
    found = [each for each in material.compared.estimates if each.outcome is not None]
    return {"tables": _by_variable(found), "weight": material.data.weight, **_rules(material)}


def _rules(material: Material) -> Row:
    rules = material.compared.rules
    return {
        "design": material.compared.design,
        "relative": f"{100 * rules.relative:g} %",
        "min_cell": f"{rules.min_cell:,}",
        "se_ratio": f"{rules.se_ratio:g}",
    }


def _what(estimate: Estimate) -> str:
    return "percent" if estimate.outcome is None else f"mean of {estimate.outcome}"


def _by_variable(found: Sequence[Estimate]) -> list[Row]:
    groups: dict[tuple[str | None, str], list[Estimate]] = {}
    for each in found:
        groups.setdefault((each.outcome, each.variable), []).append(each)
    tables: list[Row] = []
    for (outcome, variable), members in groups.items():
        title = variable if outcome is None else f"{outcome} by {variable}"
        tables.append({"title": title, "rows": _rows(members)})
    return tables


def _rows(found: Sequence[Estimate]) -> list[Row]:
    decimals = {each.outcome: 0 for each in found}
    for outcome in decimals:
        decimals[outcome] = 2 if outcome is None else _decimals(e.before for e in found if e.outcome == outcome)
    return [_row(each, decimals[each.outcome]) for each in found]


def _row(each: Estimate, decimals: int) -> Row:
    def shown(value: float | None) -> str:
        return "–" if value is None else f"{value:,.{decimals}f}".replace("-", "−")

    return {
        "variable": each.variable,
        "category": each.category,
        "missing": each.missing,
        "n": f"{each.n:,}",
        "before": shown(each.before),
        "after": shown(each.after),
        "relative": "–" if each.relative is None else f"{100 * each.relative:.1f} %",
        "se_before": shown(each.se_before),
        "se_after": shown(each.se_after),
        "se_ratio": "–" if each.se_ratio is None else f"{each.se_ratio:.3f}",
        "differs": bool(each.differs),
        "se_high": bool(each.se_high),
        "reason": each.reason,
    }


def _decimals(values: Iterable[float | None]) -> int:
    """Return how many decimals show the largest value with five digits."""
    largest = max((abs(value) for value in values if value), default=1.0)
    return min(max(4 - math.floor(math.log10(largest)), 0), 6)


def scatter(material: Material) -> Row:
    """Draw percents, means and correlations after against before."""
    correlations = _correlations(material)
    points = [each.point() for each in material.compared.estimates] + correlations
    known = [point for point in points if point["before"] is not None and point["after"] is not None]
    drawn = {_SCATTER: chart.after_before(tidy(points))} if known else {}
    return {"charts": drawn, "correlations": bool(correlations)}


def _correlations(material: Material) -> list[dict[str, object]]:
    rows = [row for _, _, score in _of(material, {CORRELATIONS}) for row in detail_rows(score)]
    return correlation_points(rows)


def correlation_points(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Turn the rows behind `r_ased` into points; one is flagged when r changes by more than its standard error."""
    points: list[dict[str, object]] = []
    for row in rows:
        before, after, se = (words.finite(row.get(name)) for name in ("r_before", "r_after", "se"))
        if before is None or after is None:
            continue
        far = se is not None and abs(after - before) > se
        label = f"{row['column_a']} × {row['column_b']}"
        points.append({"kind": "correlations", "label": label, "before": before, "after": after, "flagged": far})
    return points


def associations(material: Material) -> Row:
    """Return the details of the measures of pairs."""
    tables = _details(material, {*PAIRWISE})
    return {"tables": tables, "notes": _notes(material, {*PAIRWISE}), "most": _MOST_ROWS}


def regressions(material: Material) -> Row:
    """Return the details of the regressions."""
    models: dict[str, list[dict[str, object]]] = {}
    for _, _, score in _of(material, {REGRESSION}):
        for row in score.explain() if score.explain else ():
            models.setdefault(str(row.get("model")), []).append({k: v for k, v in row.items() if k != "model"})
    tables = [_table(model, rows) for model, rows in models.items()]
    return {"tables": tables, "notes": _notes(material, {REGRESSION})}


def _of(material: Material, names: set[str]) -> list[tuple[str, Measure, Score]]:
    return [(address, kind, score) for address, (kind, score) in material.scores.results.items() if kind.name in names]


def _details(material: Material, names: set[str]) -> list[Row]:
    tables: list[Row] = []
    for address, kind, score in _of(material, names):
        rows = detail_rows(score)
        if kind.name == CORRELATIONS:
            rows.sort(key=lambda row: -(words.finite(row.get("ased")) or 0.0))
        title = f"{_TITLES.get(kind.name, address)} ({address} {words.number(score.value)})"
        table = _table(title, rows, decimals=4)
        if table["rows"] and 0 < len(table["columns"]) <= _MOST_COLUMNS:
            tables.append(table)
    return tables


def _notes(material: Material, names: set[str]) -> list[str]:
    return [f"{address}: {score.note}." for address, _, score in _of(material, names) if score.note]


def utility(material: Material) -> Row:
    """Return the utility measures of the swap; those that look at single records tell how much was swapped."""
    fit = [a for a, (kind, _) in material.scores.results.items() if kind.side == "loss" and not kind.by_record]
    return _utility(material, fit, {})


def utility_of_all(material: Material) -> Row:
    """Return all measures, of the swap and of the plans that the method decided against."""
    return _utility(material, list(material.scores.results), material.rivals)


def _utility(material: Material, addresses: Sequence[str], rivals: Mapping[str, Mapping[str, float | None]]) -> Row:
    results = material.scores.results
    rows = [
        {
            "measure": address,
            "better": results[address][0].direction,
            "values": [words.score(address, each[address]) for each in (material.scores, *rivals.values())],
            "note": results[address][1].note,
        }
        for address in addresses
    ]
    kinds = {results[address][0].name: results[address][0] for address in addresses}
    definitions = [{"name": k.name, "text": k.definition, "reference": k.reference} for k in kinds.values()]
    return {"columns": ["this swap", *rivals] if rivals else ["value"], "rows": rows, "definitions": definitions}


def _table(title: str, rows: Sequence[Mapping[str, object]], decimals: int | None = None) -> Row:
    """Lay rows out as text; a column is set as numbers when all its values are."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {
        name: all(isinstance(row.get(name), int | float | None) and not isinstance(row.get(name), bool) for row in rows)
        for name in columns
    }
    return {
        "title": title,
        "columns": [{"name": _HEADS.get(name, name.replace("_", " ")), "numeric": numeric[name]} for name in columns],
        "rows": [[{"text": plain(row.get(c), decimals), "numeric": numeric[c]} for c in columns] for row in rows],
    }


def plain(value: object, decimals: int | None = None) -> str:
    """Write any plain value.

    >>> from quadrille.report.readers_sections import plain
    >>> plain(12345.6), plain(0.0123456), plain(-0.5, 4), plain(["a", 1200]), plain(None)
    ('12,346', '0.01235', '−0.5000', 'a, 1,200', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        digits = decimals if decimals is not None else 0 if abs(value) >= 1e4 else None
        return words.number(value) if digits is None else f"{value:,.{digits}f}".replace("-", "−")
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, cast("Sequence[object]", value)))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
