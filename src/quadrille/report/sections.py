"""The sections of the report to the review board: blocks and charts for the templates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from quadrille import chart
from quadrille.data import Cross, Data, tidy
from quadrille.delta import Delta
from quadrille.inspect import inspect
from quadrille.measure import measure_of
from quadrille.plan import Plan
from quadrille.present import Block, Items, Table, Text, table, words
from quadrille.present.account import (
    Diagnosis,
    account_facts,
    diagnosis_of,
    limits,
    sizes_of_small,
    traces,
    variable_table,
)
from quadrille.present.numbers import NONE, count, counted, finite, ratio, score, share
from quadrille.present.profile import column_table, contradiction_alerts, dependency_blocks, filled_table, profile_facts
from quadrille.present.scores import inferred, of_population, score_table
from quadrille.present.words import guarantee, targeted
from quadrille.report.frontier_chart import draw_frontier, shown_beside, values_of_settings
from quadrille.report.input import INFERRED, TOGETHER, TWO_WAY, Candidate, ReportInput, Row, reasons
from quadrille.report.tables import FullTable
from quadrille.score.by_area import area_flows
from quadrille.score.evaluator import Scores
from quadrille.score.evaluator import score as score_plan
from quadrille.study.choose import non_dominated, seed_warning
from quadrille.study.designed import cell_costs, undoing_plan
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.private import PrivateSwap

if TYPE_CHECKING:
    import polars as pl

_MOST_AREAS = 30
"""A chart of flows between more areas is hard to read."""
_MANY_DOTS = 200
_PARAMETERS = {
    "method": "method",
    "swap": "variables swapped",
    "pairs": "number of pairs",
    "rate": "share that takes part",
    "same": "must agree within a pair",
    "different": "must differ within a pair",
}
_MOST_LEVELS, _MOST_STRIPS, _MOST_REASONS = 40, 12, 15
_ALL_ROWS, _MOST_ROWS = 40, 25


# The chosen candidate


def summary(scope: ReportInput) -> Row:
    """Say what is proposed, why, what it does to risk and what it costs."""
    small, exposed, _ = scope.together
    before, after = scope.before, scope.chosen.scores
    finding = words.agreement((before[small], before[exposed]), (after[small], after[exposed]))
    return {
        "candidate": scope.chosen.number,
        "is_example": scope.is_example,
        "protects": scope.choice.protects,
        "leaves_the_risk": scope.choice.reduction is not None and not scope.choice.protects,
        "design": scope.chosen.design["name"],
        "note": scope.chosen.design["note"],
        "traces": [*traces(scope.chosen.account), *contradiction_alerts(scope.contradicted)],
        "why": Items(tuple(reasons(scope.study, scope.choice))),
        "meaning": Items((*_risk_in_words(scope), _loss_in_words(scope))),
        "finding": {"kind": finding.kind, "text": finding.text},
        "table": score_table(
            {"before": before, "after": after},
            addresses=dict.fromkeys((*scope.risks, *scope.axes)),
            caption="Risk and loss before and after the swap, as plain numbers: 0.01 is 1 %",
        ),
    }


def _detail(scores: Scores, address: str, name: str) -> int:
    return int(scores.results[address][1].detail.get(name, 0))


def _risk_in_words(scope: ReportInput) -> list[str]:
    """Return the risk measures as sentences, with the counts behind them."""
    small, exposed, confidence = scope.together
    before, after = scope.before, scope.chosen.scores
    lines = [
        f"Before: {_detail(before, small, 'at_risk'):,} of {scope.data.n:,} records ({share(before[small])}) are in "
        f"cells of {sizes_of_small(scope.n)}. Somebody who knows the key variables of such a person can recognise the "
        "record.",
    ]
    if after[small] is not None:
        at_risk, unswapped = _detail(after, small, "at_risk"), _detail(after, small, "unswapped")
        lines.append(
            f"small_cells, the n-rule: of the {unswapped:,} records that are not swapped, {at_risk:,} "
            f"({share(after[small])}) are in such cells of the release."
        )
    genuine, shown = _detail(after, exposed, "genuine"), _detail(after, exposed, "in_small_cells")
    lines.append(
        f"exposed: of the {shown:,} released records in such cells, {genuine:,} match a true record of the same "
        f"combination; that is {share(after[exposed])} of all records."
    )
    if scope.inferred in scope.measures and (cases := inferred(after.results[scope.inferred][1].detail)):
        lines.append(f"{INFERRED}: {cases}. A case is a person who is alone with all other keys, and one key inferred.")
    if after[confidence] is not None:
        lines.append(
            f"confidence: somebody who sees such a cell in the release and takes it for genuine is right in "
            f"{share(after[confidence])} of the cases."
        )
    of_sample = [address for address in scope.measures if measure_of(address).name == "population_risk"]
    for address in of_sample[:1]:
        lines.append(f"The file is a sample. {address}: {of_population(after.results[address][1])}.")
    return lines


def _loss_in_words(scope: ReportInput) -> str:
    address, account = scope.axes[1], dict(account_facts(scope.chosen.account))
    value = score(scope.chosen.scores[address])
    whole = f"Units: {account['units']}. " if "units" in account else ""
    moved = f"{whole}Records: {account['records']}; changed: {account['changed']}."
    return f"The price: {address} is {value} (0 before any swap). {moved}"


def rivals(scope: ReportInput) -> Row:
    """Set the chosen candidate next to the next safer and the next gentler one."""
    heads = [f"No. {candidate.number}, {candidate.role}" for candidate in scope.candidates]
    missing = (("safer", scope.choice.safer), ("gentler", scope.choice.gentler))
    scores = {"the file as it is": scope.before}
    scores |= {head: candidate.scores for head, candidate in zip(heads, scope.candidates, strict=True)}
    notes = {
        f"{address}: {note}": None
        for address in scope.measures
        for candidate in scope.candidates
        if (note := candidate.scores.note(address))
    }
    return {
        "is_beaten": scope.choice.better is not None,
        "missing": [word for word, option in missing if option is None and scope.choice.better is None],
        "designs": [
            {"head": head, "design": words.design(candidate.design), "traces": traces(candidate.account)}
            for head, candidate in zip(heads, scope.candidates, strict=True)
        ],
        "blocks": [
            score_table(scores, addresses=scope.measures, caption="All measures", rivals=heads),
            *([Items(tuple(notes))] if notes else []),
            accounts(heads, scope.candidates),
            _variables(heads, scope.candidates),
        ],
    }


def accounts(heads: Sequence[str], candidates: Sequence[Candidate]) -> Table:
    """Return what was asked, paired and changed, a row per fact and a column per candidate."""
    known = [dict(account_facts(candidate.account)) for candidate in candidates]
    names = dict.fromkeys(name for each in sorted(known, key=len, reverse=True) for name in each)
    rows = [(name, *(each.get(name, NONE) for each in known)) for name in names]
    caption = "The account: what was asked, what was paired, what really changed"
    return table(("fact", *heads), rows, caption=caption)


def _variables(heads: Sequence[str], candidates: Sequence[Candidate]) -> Table:
    """Return the account by variable, candidate by candidate."""
    tables = [variable_table(candidate.account) for candidate in candidates]
    rows = [(head, *row) for head, each in zip(heads, tables, strict=True) for row in each.rows]
    head = ("candidate", *tables[0].head)
    return table(head, rows, caption="The account by variable, with shares of all records", numbers=range(2, len(head)))


def has_flows(scope: ReportInput) -> bool:
    """Whether the chosen candidate moves records between areas."""
    return bool(set(scope.chosen.plan.columns) & set(scope.data.codebook.geography))


def flows(scope: ReportInput) -> Row:
    """Say who was at risk and moved how far, and draw where they went at the finest level that can still be read."""
    plan = scope.chosen.plan
    moved = [name for name in scope.data.codebook.geography if name in plan.columns]
    blocks = [*targeted(scope.chosen.account.details), *_flows_by_level(scope.data, plan, moved[-1])]
    few = [name for name in moved if len(scope.data[name].labels) <= _MOST_AREAS] or moved[:1]
    for name in reversed(few):  # a swap within a coarse level has flows at finer ones only
        if (between := _flows_at(scope.data, plan, name)) is not None:
            return {"blocks": blocks, "charts": {"Flows": chart.flows(between)}}
    return {"blocks": blocks, "charts": {}}


def _flows_at(data: Data, plan: Plan, level: str) -> pl.DataFrame | None:
    """Return the flows between the areas of a level; None where nobody leaves an area."""
    before, after = Delta(data, plan).cells(Cross.of(data, (level,)))
    return None if np.array_equal(before, after) else area_flows(data, plan, level)


def _flows_by_level(data: Data, plan: Plan, lowest: str) -> list[Block]:
    """Count who moved by the coarsest level of geography crossed."""
    between = _flows_at(data, plan, lowest)
    if between is None:
        return [Text("Nobody changes the area.")]
    sums: dict[str, Counter[str]] = {}
    whats = [name for name in ("units", "records") if name in between.columns]
    for row in between.iter_rows(named=True):
        sums.setdefault(row.get("crosses", lowest), Counter()).update({name: row[name] for name in whats})
    levels = [name for name in data.codebook.geography if name in sums]
    rows = [(level, *(count(sums[level][name]) for name in whats)) for level in levels]
    caption = "Who moved, by the coarsest level of geography crossed"
    return [table(("coarsest level", *whats), rows, caption=caption, numbers=range(1, len(whats) + 1))]


def seeds(scope: ReportInput) -> Row:
    """Return the spread of each measure over the seeds of the chosen design, and where the chosen one lies."""
    design = scope.chosen.design["design"]
    same = [row for row in scope.rows if row["design"] == design and row["status"] == "done"]
    rows = [_spread(address, same, scope.chosen.number) for address in scope.study.measures]
    return {"seeds": len(same), "rows": [row for row in rows if row is not None]}


def _spread(address: str, same: list[Row], chosen: int) -> Row | None:
    values = {row["id"]: value for row in same if (value := finite(row[address])) is not None}
    if chosen not in values:
        return None
    own, low, high = values[chosen], min(values.values()), max(values.values())
    width = high - low or 1.0
    rank = 1 + sum(value < own for value in values.values())
    dots = sorted({round(100 * (value - low) / width, 1) for value in values.values()})
    return {
        "measure": address,
        "mean": score(fmean(values.values())),
        "sd": score(stdev(values.values())) if len(values) > 1 else NONE,
        "min": score(low),
        "max": score(high),
        "chosen": score(own),
        "place": f"{rank:,} of {len(values):,}",
        "dots": dots[:: 1 + len(dots) // _MANY_DOTS],
        "dot": round(100 * (own - low) / width, 1),
    }


def measures(scope: ReportInput) -> Row:
    """Return the definition of every measure in the report."""
    kinds = dict.fromkeys(measure_of(address) for address in scope.measures if address != TWO_WAY)
    rows = [
        (
            kind.name,
            kind.side,
            kind.direction,
            f"{kind.range[0]:g} to {kind.range[1]:g}".replace("-", "−").replace("inf", "∞"),
            kind.definition + (f" (here n = {scope.n})" if kind.name in TOGETHER else ""),
            kind.reference,
        )
        for kind in kinds
    ]
    head = ("measure", "side", "better", "range", "definition", "reference")
    letters = Text("f and g are the counts of a cell before and after the swap, N is the number of records.")
    return {"blocks": [letters, table(head, rows, caption="Definitions of all measures in this report")]}


def profile(scope: ReportInput) -> Row:
    """Describe the file: records, weight, columns, cells."""
    found = inspect(scope.data)
    cells = Text("A cell is one combination of the key variables, which an intruder may know.")
    known = dependency_blocks(found.dependencies, "quadrille inspect --json")[1:]  # the section has its own title
    filled = filled_table(scope.contradicted)
    return {"blocks": [profile_facts(found), cells, column_table(found.columns), *known, *filled]}


# The search


def design(scope: ReportInput) -> Row:
    """Say what was searched, the outcome, and why some of it could not be done."""
    rows = scope.rows
    designs = {row["design"]: row for row in rows}
    seeds = Counter(row["design"] for row in rows).values()
    failed = Counter((row["status"], row["reason"] or "") for row in rows if row["status"] in ("infeasible", "failed"))
    unknown = Counter(row["reason"] for row in rows if row["status"] == "done" and row["reason"])
    status = [(name, count(n)) for name, n in scope.study.counts().items() if n]
    return {
        "candidates": count(len(rows)),
        "designs": counted(len(designs), "design"),
        "seeds": counted(min(seeds), "seed") if min(seeds) == max(seeds) else f"{min(seeds):,} to {max(seeds):,} seeds",
        "measures": list(scope.study.header.measures),
        "then": list(scope.study.header.then),
        "blocks": [
            table(
                ("parameter", "values", "which"), _parameters(designs.values()), caption="What was varied", numbers=(1,)
            ),
            table(("status", "candidates"), status, caption="Outcome of the candidates", numbers=(1,)),
            *_reasons(
                "Why candidates could not be done", [(f"{word}: {why}", n) for (word, why), n in failed.most_common()]
            ),
            *_reasons("Why scores are undefined", unknown.most_common()),
        ],
    }


def _reasons(caption: str, found: list[tuple[str, int]]) -> list[Block]:
    if not found:
        return []
    rows = [(reason, count(n)) for reason, n in found[:_MOST_REASONS]]
    more = len(found) - len(rows)
    listed = table(("reason", "candidates"), rows, caption=caption, numbers=(1,))
    return [listed, *([Text(f"And {counted(more, 'more reason')}.")] if more else [])]


def _levels(name: str, designs: Iterable[Row]) -> list[str]:
    """Return the values that a parameter takes, in order."""
    values = {row[name] for row in designs if row[name] not in (None, "")}
    return [_level(name, value) for value in sorted(values)]


def _level(name: str, value: object) -> str:
    if isinstance(value, float | int):
        return share(value) if name == "rate" else f"{value:,}"
    return str(value) if value else "(none)"


def _parameters(designs: Iterable[Row]) -> list[tuple[str, str, str]]:
    listed, rows = list(designs), list[tuple[str, str, str]]()
    for name, title in _PARAMETERS.items():
        levels = _levels(name, listed)
        more = f"; and {len(levels) - _MOST_LEVELS:,} more" if len(levels) > _MOST_LEVELS else ""
        if levels:
            rows.append((title, count(len(levels)), "; ".join(levels[:_MOST_LEVELS]) + more))
    for name, values in values_of_settings(listed).items():
        more = f"; and {len(values) - _MOST_LEVELS:,} more" if len(values) > _MOST_LEVELS else ""
        rows.append((name, count(len(values)), "; ".join(values[:_MOST_LEVELS]) + more))
    return rows


def frontier(scope: ReportInput) -> Row:
    """Return the charts of the search, the frontier as a table, and what to beware of."""
    risk, loss = scope.axes
    best = [row for row, *_ in sorted((each for each in scope.scored if each[3]), key=lambda each: each[1:3])]
    shown = _thinned(best, scope.chosen.number) if len(best) > _ALL_ROWS else best
    ringed = None if scope.is_example else scope.chosen.number
    charts = {"Frontier": draw_frontier(scope.study, scope.axes, scope.scored, ringed, scope.predictions)}
    repeated = max(Counter(row["design"] for row, *_ in scope.scored).values()) > 1
    if repeated:
        charts["Seed cloud"] = _seed_chart(scope)
    if effects := _effects(scope):
        charts["Parameter effects"] = chart.parameter_effects(tidy(effects))
    thinned = f": {len(shown)} of {len(best):,}, evenly spread" if len(shown) < len(best) else ""
    return {
        "charts": charts,
        "predicted": scope.predictions.text,
        "table": _candidates(scope, shown, (risk, scope.companion, loss), f"The frontier, safest first{thinned}"),
        "total": counted(len(best), "is", "are"),
        "scored": count(len(scope.scored)),
        "warning": seed_warning(scope.study.clouds(risk, loss)),
        "repeated": repeated,
        "alone": scope.companion is None and not any(axis.startswith("exposed") for axis in scope.axes),
    }


def _candidates(
    scope: ReportInput,
    rows: Sequence[Row],
    measures: Iterable[str | None],
    caption: str,
    further: Sequence[tuple[str, Sequence[str]]] = (),
) -> Table:
    """Return candidates by number, design and scores, the chosen one marked; `further` columns with their heads."""
    columns = list(dict.fromkeys(address for address in measures if address is not None))
    chosen = [place for place, row in enumerate(rows) if row["id"] == scope.chosen.number]
    lines = [
        (
            str(row["id"]),
            row["name"] + (f" ({scope.chosen.role})" if place in chosen else ""),
            *(score(finite(row[address])) for address in columns),
            *(texts[place] for _, texts in further),
        )
        for place, row in enumerate(rows)
    ]
    before = [score(scope.before[address]) for address in columns]
    lines.insert(0, ("", "the file as it is", *before, *("" for _ in further)))
    head = ("candidate", "design", *columns, *(name for name, _ in further))
    marked = [place + 1 for place in chosen]
    return table(head, lines, caption=caption, numbers=(0, *range(2, len(head))), marked=marked)


def _thinned(best: list[Row], chosen: int) -> list[Row]:
    """Return about 25 members of the frontier, evenly spread, with both ends and the chosen one."""
    if len(best) <= _MOST_ROWS:
        return best
    kept = {place * (len(best) - 1) // (_MOST_ROWS - 1) for place in range(_MOST_ROWS)}
    return [row for place, row in enumerate(best) if place in kept or row["id"] == chosen]


def _seed_chart(scope: ReportInput) -> chart.Figure:
    """Draw the designs over their seeds; a point is on the frontier when no other of the same seed beats it."""
    by_seed: dict[int, list[int]] = defaultdict(list)
    for place, (row, *_) in enumerate(scope.scored):
        by_seed[row["seed_no"]].append(place)
    winners: set[int] = set()
    for places in by_seed.values():
        on = non_dominated(np.array([scope.scored[place][1:3] for place in places]))
        winners.update(place for place, wins in zip(places, on.tolist(), strict=True) if wins)
    rows = [
        {
            "design": row["name"],
            "risk": x,
            "loss": y,
            "on_frontier": place in winners,
            **({"companion": finite(row[scope.companion])} if scope.companion else {}),
        }
        for place, (row, x, y, _) in enumerate(scope.scored)
    ]
    risk, loss = map(words.axis, scope.axes)
    companion = shown_beside(scope.study, scope.axes, scope.scored)
    return chart.seed_cloud(tidy(rows), risk=risk, loss=loss, companion=companion)


def _effects(scope: ReportInput) -> list[Row]:
    """Return one row per candidate, measure and parameter that takes several values, in the order of the values."""
    measures = [address for address in (scope.axes[0], scope.companion, scope.axes[1]) if address is not None]
    return [
        {"parameter": parameter, "level": level, "measure": measure, "value": finite(row[measure])}
        for parameter, strips in _strips([row for row, *_ in scope.scored])
        for level, members in strips
        for measure in measures
        for row in members
    ]


def _strips(rows: list[Row]) -> list[tuple[str, list[tuple[str, list[Row]]]]]:
    """Return the parameters that take several values, few enough to draw, each value with its candidates.

    Many sets of swap variables are told apart by the variables they include; many numbers by ranges of them.
    """
    found: list[tuple[str, list[tuple[str, list[Row]]]]] = []
    paired = all(row["pairs"] is not None for row in rows)
    for name, title in _PARAMETERS.items():
        levels = sorted({row[name] for row in rows if row[name] is not None})
        if len(levels) < 2 or (name == "rate" and paired):
            continue
        if len(levels) <= _MOST_STRIPS:
            found.append((title, [(_level(name, lv), [row for row in rows if row[name] == lv]) for lv in levels]))
        elif name == "swap":
            found.append(("swap variables include", _by_variable(rows)))
        elif name in ("pairs", "rate"):
            found.append((title, _by_range(name, levels, rows)))
    for name, values in values_of_settings(rows).items():
        if 1 < len(values) <= _MOST_STRIPS:
            found.append((name, [(value, [r for r in rows if r["settings"].get(name) == value]) for value in values]))
    return found


def _by_variable(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    names = dict.fromkeys(name for row in rows for name in row["swap"].split(" + "))
    strips = [(name, [row for row in rows if name in row["swap"].split(" + ")]) for name in names]
    return sorted(strips, key=lambda strip: -len(strip[1]))[:_MOST_STRIPS]


def _by_range(name: str, levels: list[float], rows: list[Row]) -> list[tuple[str, list[Row]]]:
    edges = [levels[i * len(levels) // _MOST_STRIPS] for i in range(_MOST_STRIPS)]
    strips: list[tuple[str, list[Row]]] = []
    for low, high in zip(edges, [*edges[1:], None], strict=True):
        members = [row for row in rows if row[name] is not None and row[name] >= low and (not high or row[name] < high)]
        top = max(row[name] for row in members)
        label = _level(name, low) if top == low else f"{_level(name, low)} – {_level(name, top)}"
        strips.append((label, members))
    return strips


# Designed swaps


def has_promise(scope: ReportInput) -> bool:
    """Whether the method of the chosen candidate has a guarantee."""
    return isinstance(scope.study.recipe(scope.chosen.number), PrivateSwap)


def promised(scope: ReportInput) -> Row:
    """Say what the design of the chosen candidate promises, and that its draw, which was chosen, does not."""
    recipe = scope.study.recipe(scope.chosen.number)
    assert isinstance(recipe, PrivateSwap)
    return {"blocks": guarantee(recipe.guarantee(scope.data))[1:]}  # the section has the title


def has_designed(scope: ReportInput) -> bool:
    """Whether any candidate of the study is a designed swap."""
    return any(row["method"] == words.DESIGNED for row in scope.rows)


def designed(scope: ReportInput) -> Row:
    """Return the curve with its bound, the diagnosis of the chosen candidate, and the warning on the n-rule."""
    found = diagnosis_of(scope.chosen.account)
    floor = scope.predictions.floor
    bounded = floor is not None and floor.bound is not None
    return {
        "charts": {} if found is None else _cell_charts(scope, found),
        "curve": _curve(scope),
        "bounded": bounded,
        "why_none": "" if bounded else "no bound was asked for" if floor is None else floor.why_none,
        "gained": _gained(scope),
        "diagnosis": found,
        "fooled": _fooled(scope),
        "limits": limits(),
        "confidence": share(scope.chosen.scores[scope.together[2]]),
    }


def _curve(scope: ReportInput) -> Table:
    """Return the designed candidates that no other beats, with the least loss at their exposure and the gap."""
    floor, loss = scope.predictions.floor, scope.axes[1]
    exposed = next((a for a in (scope.axes[0], *scope.study.measures) if measure_of(a).name == "exposed"), None)
    best = [row for row, _, _, on in scope.scored if on and row["method"] == words.DESIGNED]
    best = _thinned(sorted(best, key=lambda row: row[loss]), scope.chosen.number)
    caption, further = "The curve of designed swaps, gentlest first", list[tuple[str, list[str]]]()
    if floor is not None and floor.bound is not None and exposed is not None:
        at = [finite(row[exposed]) for row in best]
        least = [None if x is None else float(floor.bound.at(x)) for x in at]
        gaps = [None if x is None else floor.gap(x, row[loss]) for x, row in zip(at, best, strict=True)]
        further = [
            ("least possible loss", [NONE if x is None else score(x) for x in least]),
            ("gap", list(map(ratio, gaps))),
        ]
        caption += ", with the least loss that any swap can have at the same exposure"
    return _candidates(scope, best, (scope.axes[0], exposed, loss), caption, further)


def _gained(scope: ReportInput) -> str:
    """Say how many other candidates lie above the curve of designed swaps."""
    curve = [(x, y) for row, x, y, _ in scope.scored if row["method"] == words.DESIGNED]
    others = [(x, y) for row, x, y, _ in scope.scored if row["method"] != words.DESIGNED]
    if not others or not curve:
        return ""
    beaten = sum(any(a <= x and b <= y and (a < x or b < y) for a, b in curve) for x, y in others)
    return (
        f"Of the {count(len(others))} other candidates of the study {count(beaten)} are beaten by a "
        f"designed one, on {scope.axes[0]} and {scope.axes[1]}."
    )


def _cell_charts(scope: ReportInput, found: Diagnosis) -> dict[str, chart.Figure]:
    """Draw the small cells before and after, and what protecting a record costs."""
    sizes = FullTable.of(scope.data, scope.released, scope.keys).sizes(found.n + 3)
    charts: dict[str, chart.Figure] = {"Designed small cells": chart.small_cells(tidy(sizes))}
    recipe = scope.study.recipe(scope.chosen.number)
    if isinstance(recipe, DesignedPairs) and recipe.version == 1:  # only pairs have a price for each cell
        costs = cell_costs(scope.data, recipe)
        if costs["cost"].is_not_null().any():
            loss = "hellinger²" if recipe.loss == "hellinger" else "loss"
            charts["Cost of protecting a record"] = chart.treatment_costs(costs, loss=loss)
    return charts


def _fooled(scope: ReportInput) -> Table:
    """Score a plan that fools the n-rule on these data next to the chosen candidate and the file as it is."""
    wanted = [*scope.together[:2], "hellinger"]
    scored = {
        "the file as it is": scope.before,
        "swaps that undo one another": score_plan(scope.data, undoing_plan(scope.data, scope.n), wanted),
        f"No. {scope.chosen.number}, {scope.chosen.role}": scope.chosen.scores,
    }
    rows = [(name, *(score(scores[address]) for address in wanted)) for name, scores in scored.items()]
    caption = "The n-rule next to exposed, on these data"
    return table(("swap", *wanted), rows, caption=caption, numbers=range(1, 4))
