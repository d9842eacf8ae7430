"""Quadrille: data swapping for confidential microdata. Read, plan, apply, score, release."""

from __future__ import annotations

import sys
import warnings
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadrille import chart, datasets, report, testing, theory
    from quadrille.attack.attack import Attack, attack
    from quadrille.codebook import Codebook, Variable
    from quadrille.data import Data
    from quadrille.errors import InfeasibleError, QuadrilleError
    from quadrille.inspect import inspect
    from quadrille.io import read, write
    from quadrille.io.frames import from_frame
    from quadrille.io.plan_file import write_plan
    from quadrille.measure import schema
    from quadrille.plan import Move, Plan
    from quadrille.recipe import Recipe
    from quadrille.release.policy import Policy
    from quadrille.release.release import check_policy, release
    from quadrille.score.by_area import area_flows
    from quadrille.score.contradictions import contradictions
    from quadrille.score.dependencies import dependencies
    from quadrille.score.estimates import before_after
    from quadrille.score.evaluator import Scores, measures, score
    from quadrille.score.published import table_changes
    from quadrille.simulation import simulate
    from quadrille.study.forecast import forecast
    from quadrille.study.grid import grid
    from quadrille.study.run import score_recipes, search
    from quadrille.study.study import Study
    from quadrille.swap.controlled import ControlledSwap
    from quadrille.swap.cycle import CycleSwap
    from quadrille.swap.designed import DesignedSwap
    from quadrille.swap.permutation import PermutationSwap
    from quadrille.swap.private import PrivateSwap
    from quadrille.swap.random import RandomSwap
    from quadrille.swap.rank import RankSwap
    from quadrille.swap.targeted import TargetedSwap

__version__ = "0.1.0"

_HOME = {
    "Attack": "attack.attack",
    "Codebook": "codebook",
    "ControlledSwap": "swap.controlled",
    "CycleSwap": "swap.cycle",
    "Data": "data",
    "DesignedSwap": "swap.designed",
    "InfeasibleError": "errors",
    "Move": "plan",
    "PermutationSwap": "swap.permutation",
    "Plan": "plan",
    "Policy": "release.policy",
    "PrivateSwap": "swap.private",
    "QuadrilleError": "errors",
    "RandomSwap": "swap.random",
    "RankSwap": "swap.rank",
    "Recipe": "recipe",
    "Scores": "score.evaluator",
    "Study": "study.study",
    "TargetedSwap": "swap.targeted",
    "Variable": "codebook",
    "area_flows": "score.by_area",
    "attack": "attack.attack",
    "before_after": "score.estimates",
    "check_policy": "release.release",
    "contradictions": "score.contradictions",
    "dependencies": "score.dependencies",
    "forecast": "study.forecast",
    "from_frame": "io.frames",
    "grid": "study.grid",
    "inspect": "inspect",
    "measures": "score.evaluator",
    "read": "io",
    "release": "release.release",
    "schema": "measure",
    "score": "score.evaluator",
    "score_recipes": "study.run",
    "search": "study.run",
    "simulate": "simulation",
    "table_changes": "score.published",
    "write": "io",
    "write_plan": "io.plan_file",
}

_MODULES = ("chart", "datasets", "report", "testing", "theory")

_OLD = {
    "check_measure": "testing.check_measure",
    "check_recipe": "testing.check_recipe",
    "designed_frontier": "DesignedSwap.curve(...)",
    "recipe_from_json": "Recipe.from_json",
    "rules_cost": "score_recipes(...)",
    "runs_table": "Study.runs",
    "scores_by_rate": "score_recipes(...)",
    "simulate_design": "simulate(...)",
    "write_codebook": "Codebook.write(...)",
}
"""What names of an earlier version are called now; with (...) where the call has changed, too."""

__all__ = [  # sorted as in _HOME; a test keeps the two lists equal
    "Attack",
    "Codebook",
    "ControlledSwap",
    "CycleSwap",
    "Data",
    "DesignedSwap",
    "InfeasibleError",
    "Move",
    "PermutationSwap",
    "Plan",
    "Policy",
    "PrivateSwap",
    "QuadrilleError",
    "RandomSwap",
    "RankSwap",
    "Recipe",
    "Scores",
    "Study",
    "TargetedSwap",
    "Variable",
    "area_flows",
    "attack",
    "before_after",
    "chart",
    "check_policy",
    "contradictions",
    "datasets",
    "dependencies",
    "forecast",
    "from_frame",
    "grid",
    "inspect",
    "measures",
    "read",
    "release",
    "report",
    "schema",
    "score",
    "score_recipes",
    "search",
    "simulate",
    "table_changes",
    "testing",
    "theory",
    "write",
    "write_plan",
]


class _Package(ModuleType):
    """The package, in which a public function comes before the room of the same name, such as `release`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):  # importing a room would put it in the place
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import quadrille` itself loads nothing heavy."""
    if name in _MODULES:
        return import_module(f"quadrille.{name}")
    if name in _OLD:
        return _renamed(name, _OLD[name])
    if name not in _HOME:
        raise AttributeError(f"module 'quadrille' has no attribute {name!r}")
    return getattr(import_module(f"quadrille.{_HOME[name]}"), name)


def _renamed(name: str, now: str) -> object:
    if "(" in now:
        raise AttributeError(f"quadrille.{name} is gone. Use quadrille.{now}.")
    warnings.warn(f"quadrille.{name} is now quadrille.{now}.", DeprecationWarning, stacklevel=3)
    return reduce(getattr, now.split("."), sys.modules[__name__])


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
