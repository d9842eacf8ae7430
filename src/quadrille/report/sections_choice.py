"""Sections on the chosen candidate: the summary, its rivals, its seeds, the measures."""

from __future__ import annotations

from statistics import fmean, stdev

from quadrille.measure import measure_of, orient
from quadrille.present import words
from quadrille.report.input import TOGETHER, TWO_WAY, Candidate, ReportInput, Row, reasons
from quadrille.score.evaluator import Scores

_MANY_DOTS = 200


def summary(scope: ReportInput) -> Row:
    """Say what is proposed, why, what it does to risk and what it costs."""
    small, exposed, _ = scope.together
    before, after = scope.before, scope.chosen.scores
    finding = words.agreement((before[small], before[exposed]), (after[small], after[exposed]))
    return {
        "candidate": scope.chosen.number,
        "design": scope.chosen.design["name"],
        "note": scope.chosen.design["note"],
        "warnings": list(scope.chosen.account.warnings),
        "why": reasons(scope.study, scope.choice),
        "risk": _risk_in_words(scope),
        "loss": _loss_in_words(scope),
        "finding": {"kind": finding.kind, "text": finding.text},
        "table": [_before_after(scope, address) for address in dict.fromkeys((*scope.together, *scope.axes))],
    }


def _before_after(scope: ReportInput, address: str) -> Row:
    return {
        "measure": address,
        "side": measure_of(address).side,
        "before": words.score(address, scope.before[address]),
        "after": words.score(address, scope.chosen.scores[address]),
        "better": measure_of(address).direction,
    }


def _detail(scores: Scores, address: str, name: str) -> int:
    return int(scores.results[address][1].detail.get(name, 0))


def _risk_in_words(scope: ReportInput) -> list[str]:
    """Return the three risk measures as sentences, with the counts behind them."""
    small, exposed, confidence = scope.together
    before, after, n = scope.before, scope.chosen.scores, scope.n
    sizes = "one record" if n == 2 else "1 or 2 records" if n == 3 else f"1 to {n - 1} records"
    lines = [
        f"Before: {_detail(before, small, 'at_risk'):,} of {scope.data.n:,} records ({words.share(before[small])}) "
        f"are in cells of {sizes}. Somebody who knows the key variables of such a person can recognise the record.",
    ]
    if after[small] is not None:
        at_risk, unswapped = _detail(after, small, "at_risk"), _detail(after, small, "unswapped")
        lines.append(
            f"small_cells, the n-rule: of the {unswapped:,} records that are not swapped, {at_risk:,} "
            f"({words.share(after[small])}) are in such cells of the release."
        )
    genuine, shown = _detail(after, exposed, "genuine"), _detail(after, exposed, "in_small_cells")
    lines.append(
        f"exposed: of the {shown:,} released records in such cells, {genuine:,} match a true record of the same "
        f"combination; that is {words.share(after[exposed])} of all records."
    )
    if after[confidence] is not None:
        lines.append(
            f"confidence: somebody who sees such a cell in the release and takes it for genuine is right in "
            f"{words.share(after[confidence])} of the cases."
        )
    return lines


def _loss_in_words(scope: ReportInput) -> str:
    address = scope.axes[1]
    value, account = words.score(address, scope.chosen.scores[address]), scope.chosen.account
    return (
        f"The price: {address} is {value} (0 before any swap). {account.records:,} records "
        f"({words.share(account.records / account.n)}) take part and {account.changed:,} of them change."
    )


def rivals(scope: ReportInput) -> Row:
    """Set the chosen candidate beside the next safer and the next gentler one."""
    return {
        "candidates": [_head(candidate) for candidate in scope.candidates],
        "missing": [
            word
            for word, option in (("safer", scope.choice.safer), ("gentler", scope.choice.gentler))
            if option is None
        ],
        "measures": [_compared(scope, address) for address in scope.measures],
        "account": _accounts(scope.candidates),
        "variables": [{"role": c.role, "rows": _variables(c)} for c in scope.candidates],
    }


def _head(candidate: Candidate) -> Row:
    design = words.design(candidate.design)
    warnings = list(candidate.account.warnings)
    return {"number": candidate.number, "role": candidate.role, "design": design, "warnings": warnings}


def _compared(scope: ReportInput, address: str) -> Row:
    """Return one measure of all candidates; the best ones are marked unless all are alike."""
    values = [candidate.scores[address] for candidate in scope.candidates]
    ranks = [None if value is None else orient(address, value) for value in values]
    known = [rank for rank in ranks if rank is not None]
    best = min(known) if len(set(known)) > 1 else None
    notes = dict.fromkeys(note for c in scope.candidates if (note := c.scores.note(address)))
    return {
        "measure": address,
        "side": measure_of(address).side,
        "better": measure_of(address).direction,
        "values": [
            {"text": words.score(address, value), "best": best is not None and rank == best}
            for value, rank in zip(values, ranks, strict=True)
        ],
        "note": "; ".join(notes),
    }


def _accounts(candidates: tuple[Candidate, ...]) -> list[Row]:
    """Return what was asked, paired and changed, a row per fact and a column per candidate."""
    accounts = [candidate.account for candidate in candidates]
    facts = {
        "pairs asked for": [words.count(a.asked) for a in accounts],
        "pairs drawn": [words.count(a.pairs) for a in accounts],
        "records that take part": [f"{a.records:,} ({words.share(a.records / a.n)})" for a in accounts],
        "records that change": [f"{a.changed:,} ({words.share(a.changed / a.n)})" for a in accounts],
        "false swaps (nothing changes)": [words.count(a.false_swaps) for a in accounts],
        "compensating (the full table does not show it)": [words.count(a.compensating) for a in accounts],
    }
    return [{"fact": fact, "values": values} for fact, values in facts.items()]


def _variables(candidate: Candidate) -> list[Row]:
    return [
        {
            "variable": moved.variable,
            "pairs": words.count(moved.pairs),
            "records": words.count(moved.records),
            "changed": words.count(moved.changed),
            "share": words.share(moved.rate_changed),
        }
        for moved in candidate.account.variables
    ]


def seeds(scope: ReportInput) -> Row:
    """Return the spread of each measure over the seeds of the chosen design, and where the chosen one lies."""
    design = scope.chosen.design["design"]
    same = [row for row in scope.rows if row["design"] == design and row["status"] == "done"]
    rows = [_spread(address, same, scope.chosen.number) for address in scope.study.measures]
    return {"seeds": len(same), "rows": [row for row in rows if row is not None]}


def _spread(address: str, same: list[Row], chosen: int) -> Row | None:
    values = {row["id"]: value for row in same if (value := words.finite(row[address])) is not None}
    if chosen not in values:
        return None
    own, low, high = values[chosen], min(values.values()), max(values.values())
    width = high - low or 1.0
    rank = 1 + sum(value < own for value in values.values())
    dots = sorted({round(100 * (value - low) / width, 1) for value in values.values()})
    return {
        "measure": address,
        "mean": words.score(address, fmean(values.values())),
        "sd": words.score(address, stdev(values.values())) if len(values) > 1 else "–",
        "min": words.score(address, low),
        "max": words.score(address, high),
        "chosen": words.score(address, own),
        "place": f"{rank:,} of {len(values):,}",
        "dots": dots[:: 1 + len(dots) // _MANY_DOTS],
        "dot": round(100 * (own - low) / width, 1),
    }


def measures(scope: ReportInput) -> Row:
    """Return the definition of every measure in the report."""
    kinds = dict.fromkeys(measure_of(address) for address in scope.measures if address != TWO_WAY)
    rows = [
        {
            "name": kind.name,
            "side": kind.side,
            "better": kind.direction,
            "range": f"{kind.range[0]:g} to {kind.range[1]:g}".replace("-", "−").replace("inf", "∞"),
            "definition": kind.definition,
            "reference": kind.reference,
            "options": f"here n = {scope.n}" if kind.name in TOGETHER else "",
        }
        for kind in kinds
    ]
    return {"rows": rows}
