"""What the reports to the three readers are made from: one swap, accounted for, compared and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quadrille.account import Account
from quadrille.data import Data, require_data
from quadrille.errors import InputError, bad_parameter
from quadrille.formula import Model, Term, quoted
from quadrille.measure import MEASURES
from quadrille.measure_base import Measure
from quadrille.plan import Plan
from quadrille.recipe import Recipe
from quadrille.study.axes import beside_the_n_rule
from quadrille.study.before_after import BeforeAfter, before_after
from quadrille.study.score import Evaluator, Scores

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
    account: Account
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
    rivals: Mapping[str, Plan] = plan.details.rivals if plan.details else dict[str, Plan]()
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
