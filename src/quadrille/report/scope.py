"""What every section looks at: the study, the data, the chosen candidate beside its rivals, all scored afresh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadrille.account import Account
from quadrille.chart import n_rule
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.measure_base import Call
from quadrille.plan import Plan
from quadrille.report import words
from quadrille.report.choice import choose
from quadrille.study.axes import kind_of
from quadrille.study.choose import Choice
from quadrille.study.frontier import non_dominated
from quadrille.study.results import Study
from quadrille.study.score import Evaluator, Scores

TOGETHER = ("small_cells", "exposed", "confidence")
"""Risk measures that are always shown together: a swap can fool the first one, not the others."""

TWO_WAY = "hellinger(2-way)"
_FRESH = ("hellinger", "total_variation", "entropy_change")

Row = dict[str, Any]
"""Plain values for a template."""


@dataclass(frozen=True)
class Candidate:
    """A candidate, drawn again from its recipe and scored."""

    number: int
    role: str
    design: Row
    plan: Plan
    account: Account
    scores: Scores


@dataclass(frozen=True)
class Scope:
    """The material of a report. `candidates` are the chosen one and its rivals; `before` scores an unswapped
    file; `rows` are all candidates of the study."""

    study: Study
    data: Data
    choice: Choice
    n: int
    measures: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    before: Scores
    rows: list[Row]

    @property
    def chosen(self) -> Candidate:
        """The candidate the report is about."""
        return self.candidates[0]

    @property
    def axes(self) -> tuple[str, str]:
        """The measures of risk and of loss."""
        return self.choice.axes

    @property
    def together(self) -> tuple[str, str, str]:
        """The addresses of small_cells, exposed and confidence."""
        return together(self.n)

    @cached_property
    def scored(self) -> list[tuple[Row, float, float, bool]]:
        """The candidates with a score on both axes: row, risk, loss (lower is better), whether on the frontier."""
        points, places = self.study.objectives(self.axes)
        front: NDArray[np.bool_] = non_dominated(points)
        return [
            (self.rows[place], *point, on)
            for place, point, on in zip(places.tolist(), points.tolist(), front.tolist(), strict=True)
        ]

    @cached_property
    def released(self) -> Data:
        """The file as the chosen candidate would release it, rows in their original order."""
        return self.chosen.plan.apply(self.data)

    @cached_property
    def companion(self) -> str | None:
        """The measure of the study that no swap can fool, unless it is an axis already; that of the n-rule shown."""
        found = [address for address in self.study.measures if kind_of(address).name == "exposed"]
        wanted = n_rule.missing(self.axes).values()
        mine = (address for want in wanted for address in found if n_rule.matches(address, want))
        return next(mine, next((address for address in found if address not in self.axes), None))


def together(n: int) -> tuple[str, str, str]:
    """Return the three risk measures for cells of fewer than n records."""
    small, exposed, confidence = (name if n == 3 else f"{name}(n={n})" for name in TOGETHER)
    return small, exposed, confidence


def look(study: Study, data: Data, candidate: int | None, risk: str | None, loss: str | None) -> Scope:
    """Choose, draw and score everything a report tells about single candidates."""
    axes = (study.axis("risk", risk), study.axis("loss", loss))
    if not data.keys:
        raise InputError("The data have no key variable, so there are no cells to report on. Declare some categorical.")
    choice = choose(study, candidate, axes)
    n = _small(study)
    pairs = len(data.keys) > 1
    fresh = (*_FRESH, *(("cramers_v_change", TWO_WAY) if pairs else ()))
    measures = tuple(dict.fromkeys((*together(n), *study.measures, *fresh)))
    judge = Evaluator(data, measures)
    roles = {choice.candidate: "chosen"}
    for option, role in ((choice.safer, "next safer"), (choice.gentler, "next gentler")):
        if option is not None:
            roles.setdefault(option.candidate, role)
    rows = _rows(study)
    designs = {row["id"]: row for row in rows if row["id"] in roles}
    candidates: list[Candidate] = []
    for number, role in roles.items():
        plan = study.recipe(number).plan(data)
        candidates.append(Candidate(number, role, designs[number], plan, plan.report(data), judge.score(plan)))
    before = judge.score(Plan([], data=data))
    return Scope(study, data, choice, n, measures, tuple(candidates), before, rows)


def _rows(study: Study) -> list[Row]:
    """Return the candidates as rows, each with the name of its design; what all share is not part of a name."""
    rows: list[Row] = study.frame().to_dicts()
    varied = len({row["other"] for row in rows if row["status"] == "done"}) > 1
    for row in rows:
        row["name"] = words.design(row if varied else {**row, "other": ""})
    return rows


def _small(study: Study) -> int:
    """Return the n of the study's n-rule, else the default."""
    calls = [Call.parse(address) for address in study.measures]
    for name in TOGETHER:
        for call in calls:
            if call.name == name:
                return kind_of(call.text).bound(call).options["n"]
    return kind_of(TOGETHER[0]).options["n"]
