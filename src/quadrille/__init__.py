"""Quadrille: data swapping for confidential microdata. Read, plan, apply, score, release."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadrille import chart, datasets, report, theory
    from quadrille.checks import check_measure, check_recipe
    from quadrille.codebook import Codebook, Variable
    from quadrille.data import Data
    from quadrille.errors import InfeasibleError, QuadrilleError
    from quadrille.frames import from_frame
    from quadrille.io import read, write, write_codebook
    from quadrille.io.bundle import check_policy, release
    from quadrille.io.policy import Policy
    from quadrille.io.simulation import simulate_design
    from quadrille.plan import Move, Plan
    from quadrille.recipe import Recipe
    from quadrille.study.area_flows import area_flows
    from quadrille.study.before_after import before_after
    from quadrille.study.designed import designed_frontier
    from quadrille.study.grid import grid
    from quadrille.study.rates import scores_by_rate
    from quadrille.study.results import Study
    from quadrille.study.rules_cost import rules_cost
    from quadrille.study.run import search
    from quadrille.study.runs import runs_table
    from quadrille.study.score import Scores, measures, score
    from quadrille.study.simulate import simulate
    from quadrille.swap import recipe_from_json
    from quadrille.swap.controlled import ControlledSwap
    from quadrille.swap.designed import DesignedSwap
    from quadrille.swap.permutation import PermutationSwap
    from quadrille.swap.random import RandomSwap

__version__ = "0.1.0"

_HOME = {
    "Codebook": "codebook",
    "ControlledSwap": "swap.controlled",
    "Data": "data",
    "DesignedSwap": "swap.designed",
    "InfeasibleError": "errors",
    "Move": "plan",
    "PermutationSwap": "swap.permutation",
    "Plan": "plan",
    "Policy": "io.policy",
    "QuadrilleError": "errors",
    "RandomSwap": "swap.random",
    "Recipe": "recipe",
    "Scores": "study.score",
    "Study": "study.results",
    "Variable": "codebook",
    "area_flows": "study.area_flows",
    "before_after": "study.before_after",
    "check_measure": "checks",
    "check_policy": "io.bundle",
    "check_recipe": "checks",
    "designed_frontier": "study.designed",
    "from_frame": "frames",
    "grid": "study.grid",
    "measures": "study.score",
    "read": "io",
    "recipe_from_json": "swap",
    "release": "io.bundle",
    "rules_cost": "study.rules_cost",
    "runs_table": "study.runs",
    "score": "study.score",
    "scores_by_rate": "study.rates",
    "search": "study.run",
    "simulate": "study.simulate",
    "simulate_design": "io.simulation",
    "write": "io",
    "write_codebook": "io",
}

_MODULES = ("chart", "datasets", "report", "theory")

__all__ = [  # sorted as in _HOME; a test keeps the two lists equal
    "Codebook",
    "ControlledSwap",
    "Data",
    "DesignedSwap",
    "InfeasibleError",
    "Move",
    "PermutationSwap",
    "Plan",
    "Policy",
    "QuadrilleError",
    "RandomSwap",
    "Recipe",
    "Scores",
    "Study",
    "Variable",
    "area_flows",
    "before_after",
    "chart",
    "check_measure",
    "check_policy",
    "check_recipe",
    "datasets",
    "designed_frontier",
    "from_frame",
    "grid",
    "measures",
    "read",
    "recipe_from_json",
    "release",
    "report",
    "rules_cost",
    "runs_table",
    "score",
    "scores_by_rate",
    "search",
    "simulate",
    "simulate_design",
    "theory",
    "write",
    "write_codebook",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import quadrille` itself loads nothing heavy."""
    if name in _MODULES:
        return import_module(f"quadrille.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'quadrille' has no attribute {name!r}")
    return getattr(import_module(f"quadrille.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
