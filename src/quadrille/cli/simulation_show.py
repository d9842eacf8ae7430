"""The analysis of a simulation as tables that fit a terminal of 80 columns."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, cast

from quadrille.cli import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quadrille.io.simulation import Simulation
    from quadrille.study.trials.analysis import Analysis, Stratum
    from quadrille.study.trials.effects import Model

MOST_STRATA = 24
_SIGNS = (
    "The last three are differences of diversity, original minus perturbed, and take either sign. Where areas differ "
    "in composition, swapping makes them more alike and these fall below 0: larger does not mean more perturbed."
)


def show_simulation(done: Simulation) -> None:
    """Print what was simulated, then spread, correlations and effects."""
    found, design = done.analysis, done.design
    show.title(design.title or design.place)
    zero, redrawn = (int(found.values[:, :, i].sum()) for i in (-2, -1))
    lines = [
        ("settings", f"{len(design.trials):,}, each with {_counted(design.replicates, 'replicate')}"),
        ("factors", "; ".join(f"{f.name}: {', '.join(f.levels)}" for f in design.factors)),
    ]
    if zero:
        lines.append(("zero cells", f"{zero:,} empty cells are filled; chi_square and deviance leave them out"))
    if redrawn:
        lines.append(("drawn again", f"{redrawn:,} pairs"))
    show.facts(lines)
    _spread(found)
    _matrix(found)
    _strata(found.strata)
    _effects(found)


def _spread(found: Analysis) -> None:
    show.title("Metrics over all settings")
    rows = [row for row in found.summary if row["factor"] == "all"]
    names = ("mean", "sd", "p5", "median", "p95")
    lines = [[str(row["metric"]), *(_number(row[name]) for name in names)] for row in rows]
    show.grid(("metric", *names), lines, numbers=range(1, 6))
    show.note("")
    show.facts([("", _SIGNS)])


def _matrix(found: Analysis) -> None:
    show.title("Spearman correlations, all settings pooled")
    names = list(found.models)
    lines = [
        [f"{i + 1} {name}", *(_correlation(float(found.pooled[i, j])) for j in range(len(names)))]
        for i, name in enumerate(names)
    ]
    show.grid(("metric", *(str(i + 1) for i in range(len(names)))), lines, numbers=range(1, 7))


def _strata(strata: Sequence[Stratum]) -> None:
    if len(strata) < 2:
        return
    show.title("Spearman correlations by stratum, least to largest")
    lines = [
        [", ".join(each.levels.values()), *(_range(each.range(kind)) for kind in ("within A", "across", "within B"))]
        for each in strata[:MOST_STRATA]
    ]
    head = (", ".join(strata[0].levels), "within A", "A with B", "within B")
    show.grid(head, lines, numbers=range(1, 4), whole=range(1, 4))
    more = len(strata) - len(lines)
    told = "A: chi_square, effective_swap_rate, deviance. B: gini_, shannon_ and renyi_difference."
    show.note("")
    show.facts([("", told + (f" {more:,} more strata are in strata.csv." if more else ""))])


def _effects(found: Analysis) -> None:
    models = [model for model in found.models.values() if model]
    show.title("Main effects, stepwise selection (enter .10, stay .05)")
    if not models:
        show.note("  No metric varies.")
        return
    for start in range(0, len(models), 3):
        _effects_of(found, models[start : start + 3])
        show.note("")
    baseline = ", ".join(f"{f.name} {f.baseline}" for f in found.factors if len(f.levels) > 1)
    told = "n.s.: not selected. R2 of settings: of a model with an effect of its own for every setting."
    show.facts([("", f"Baseline: {baseline or 'none'}. {told}")])


def _effects_of(found: Analysis, models: Sequence[Model]) -> None:
    """Print the effects on some metrics, as many as have room."""
    lines = [["intercept", *(_effect(model, "intercept", "") for model in models)]]
    lines += [
        [f"{factor.name}: {level}", *(_effect(model, factor.name, level) for model in models)]
        for factor in found.factors
        for level in factor.levels
        if level != factor.baseline
    ]
    lines.append(["R2", *(f"{model.r2:.4f}" for model in models)])
    lines.append(["R2 of settings", *(f"{model.ceiling:.4f}" for model in models)])
    lines.append(["RMSE", *("-" if isnan(model.rmse) else _number(model.rmse) for model in models)])
    numbers = range(1, len(models) + 1)
    show.grid(("", *(model.metric.replace("_", "\n", 1) for model in models)), lines, numbers=numbers, whole=numbers)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _effect(model: Model, factor: str, level: str) -> str:
    value = model.effect(factor, level)
    return "n.s." if value is None else _number(value)


def _number(value: object) -> str:
    if value is None:
        return "-"
    number = float(cast("Any", value))
    return f"{number:.3g}" if abs(number) < 1e-4 or abs(number) >= 1e6 else f"{number:.{3 if abs(number) >= 1 else 5}f}"


def _correlation(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2f}"


def _range(found: tuple[float, float]) -> str:
    return "-" if isnan(found[0]) else f"{found[0]:.2f} to {found[1]:.2f}"
