"""What every section looks at: the study, the data, the chosen candidate and its rivals, all scored afresh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from quadrille.data import Data
from quadrille.delta import PlanReport
from quadrille.errors import InputError
from quadrille.measure import beside_exposed, measure_of
from quadrille.measure.base import Address
from quadrille.plan import Plan
from quadrille.present.scores import MOST_KEYS
from quadrille.report import frontier_chart
from quadrille.report.frontier_chart import FrontierPredictions, Row, Scored
from quadrille.score.by_area import keys_and_area, with_margin
from quadrille.score.contradictions import Contradicted, contradicted
from quadrille.score.evaluator import Evaluator, Scores
from quadrille.score.published import Names, TableChanges, table_changes
from quadrille.study.choose import Choice
from quadrille.study.study import Study


@dataclass(frozen=True)
class Reported:
    """The candidate that a report is about; an example as long as nobody has picked or named one."""

    choice: Choice
    is_example: bool


def reported(study: Study, candidate: int | None, axes: tuple[str, str]) -> Reported:
    """Return the candidate named, else the one that was picked, else an example: the balanced one, or the safest."""
    risk, loss = axes
    picked = study.picked
    if candidate is None and picked is not None:
        choice = study.choice(picked.candidate, risk=risk, loss=loss)
        return Reported(replace(choice, rule=picked.rule, reason=f"it was picked: {picked.reason}"), is_example=False)
    if candidate is not None:
        return Reported(study.choice(candidate, risk=risk, loss=loss), is_example=False)
    three = study.recommended(risk, loss)
    word = next((word for word in ("balanced", "safe", "gentle") if word in three), None)
    return Reported(study.pick("least risk", risk=risk, loss=loss) if word is None else three[word], is_example=True)


def reasons(study: Study, choice: Choice) -> list[str]:
    """Say in plain words why this candidate, and what stands against it."""
    points, _ = study.objectives(choice.axes)
    here = np.array([choice.risk, choice.loss])
    better = int(((points <= here).all(axis=1) & (points < here).any(axis=1)).sum())
    lines = choice.explain().splitlines()
    if not better:
        return lines
    which = "1 candidate is" if better == 1 else f"{better:,} candidates are"
    against = (
        f"It is not on the frontier: {which} at least as good on both axes and better on one. "
        "The board should hear why none of them was chosen."
    )
    until = next(place for place, line in enumerate(lines) if line.startswith("It dominates"))
    return [*lines[: until + 1], against]


TOGETHER = ("small_cells", "exposed", "confidence")
"""Risk measures that are always shown together: a swap can fool the first one, not the others."""

INFERRED, TWO_WAY = "attributed_unique", "hellinger(2-way)"
_FRESH = ("hellinger", "total_variation", "entropy_change")


BETTER = "better"
"""The role of a candidate that is at least as good on both axes as the one that is reported."""


@dataclass(frozen=True)
class Candidate:
    """A candidate, drawn again from its recipe and scored."""

    number: int
    role: str
    design: Row
    plan: Plan
    account: PlanReport
    scores: Scores


@dataclass(frozen=True)
class ReportInput:
    """The material of a report. `candidates` are the chosen one and its rivals; `before` scores an unswapped
    file; `rows` are all candidates of the study."""

    study: Study
    data: Data
    choice: Choice
    n: int
    keys: tuple[str, ...]
    """What the intruder knows of a person: the key variables, and the area where areas move."""
    measures: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    before: Scores
    rows: list[Row]
    is_example: bool = False
    """Whether nobody has picked the candidate of the report."""
    published: TableChanges | None = None
    """What the chosen candidate does to the published tables, where any are named."""

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
        return together(self.n, self.data, self.keys)

    @property
    def risks(self) -> tuple[str, ...]:
        """The risk measures that are always shown."""
        return risks(self.n, self.data, self.keys)

    @property
    def inferred(self) -> str:
        """The address of attributed_unique."""
        return with_margin(INFERRED, self.data, self.keys)

    @cached_property
    def scored(self) -> Scored:
        """The candidates with a score on both axes: row, risk, loss (lower is better), whether on the frontier."""
        return frontier_chart.scored(self.study, self.axes, self.rows)

    @cached_property
    def predictions(self) -> FrontierPredictions:
        """What theory expects of the designs of the study."""
        return frontier_chart.predictions_of(self.study, self.data, self.axes, self.scored)

    @cached_property
    def contradicted(self) -> Contradicted:
        """The records of the chosen candidate that contradict what the columns of the file say about one another."""
        return contradicted(self.data, self.chosen.plan)

    @cached_property
    def released(self) -> Data:
        """The file as the chosen candidate would release it, rows in their original order."""
        return self.chosen.plan.apply(self.data)

    @cached_property
    def companion(self) -> str | None:
        """The measure of the study that no swap can fool, unless it is an axis already; that of the n-rule shown."""
        return frontier_chart.companion_of(self.study, self.axes)


def together(n: int, data: Data, keys: Sequence[str]) -> tuple[str, str, str]:
    """Return the three risk measures for cells of fewer than n records."""
    small, exposed, confidence = (with_margin(name, data, keys, "" if n == 3 else f"n={n}") for name in TOGETHER)
    return small, exposed, confidence


def risks(n: int, data: Data, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the risk measures that are always shown: what is inferred stands right behind `exposed`."""
    three = together(n, data, keys)
    listed = beside_exposed(three, data)
    behind = listed.index(three[1]) + 1
    inferred = [with_margin(INFERRED, data, keys)] if 1 < len(keys) <= MOST_KEYS else []
    return (*listed[:behind], *inferred, *listed[behind:])


def look(
    study: Study,
    data: Data,
    candidate: int | None,
    risk: str | None,
    loss: str | None,
    tables: Sequence[Names] = (),
) -> ReportInput:
    """Choose, draw and score everything a report says about single candidates."""
    axes = (study.axis("risk", risk), study.axis("loss", loss))
    if not data.keys:
        raise InputError("The data have no key variable, so there are no cells to report on. Declare some categorical.")
    study.compare_with(data)
    about = reported(study, candidate, axes)
    choice = about.choice
    n = _small(study)
    roles = {choice.candidate: "example" if about.is_example else "chosen"}
    near = ((choice.safer, "next safer"), (choice.gentler, "next gentler"))
    for option, role in near if choice.better is None else ((choice.better, BETTER),):
        if option is not None:
            roles.setdefault(option.candidate, role)
    plans = {number: study.recipe(number).plan(data) for number in roles}
    keys = keys_and_area(data, plans[choice.candidate].columns)
    fresh = [with_margin(name, data, keys) for name in _FRESH]
    if keys == data.keys and len(keys) > 1:
        fresh += ["cramers_v_change", TWO_WAY]
    measures = tuple(dict.fromkeys((*risks(n, data, keys), *study.measures, *fresh)))
    judge = Evaluator(data, measures)
    rows = frontier_chart.rows_of(study)
    designs = {row["id"]: row for row in rows if row["id"] in roles}
    candidates: list[Candidate] = []
    for number, role in roles.items():
        plan = plans[number]
        candidates.append(Candidate(number, role, designs[number], plan, plan.report(data), judge.score(plan)))
    before = judge.score(Plan([], data=data))
    published = table_changes(data, candidates[0].plan, tables) if tables else None
    drawn = tuple(candidates)
    return ReportInput(study, data, choice, n, keys, measures, drawn, before, rows, about.is_example, published)


def _small(study: Study) -> int:
    """Return the n of the study's n-rule, else the default."""
    calls = [Address.parse(address) for address in study.measures]
    for name in TOGETHER:
        for call in calls:
            if call.name == name:
                return measure_of(call.text).with_options(call).options["n"]
    return measure_of(TOGETHER[0]).options["n"]
