"""Charts: a tidy frame in, an Altair chart out. Everything works without a network."""

from __future__ import annotations

from importlib.util import find_spec

from quadrille.errors import QuadrilleError

if any(find_spec(name) is None for name in ("altair", "vl_convert")):
    raise QuadrilleError("Charts need altair and vl-convert-python. Install them: pip install 'quadrille[report]'.")

from quadrille.chart.attack import attacks
from quadrille.chart.cell_sizes import error_by_size, small_cells, treatment_costs, who_was_swapped
from quadrille.chart.effects import factor_distributions, factor_effects, metrics_by_rate, parameter_effects, runs
from quadrille.chart.frontier import epsilon_loss, frontier, seed_cloud
from quadrille.chart.matrices import correlation_matrix, distortion_heatmap, flows
from quadrille.chart.ranking import ranking
from quadrille.chart.save import inline_html, place, runtime, save, script
from quadrille.chart.scatter import after_before, predicted_realised
from quadrille.chart.theme import Figure

__all__ = [
    "Figure",
    "after_before",
    "attacks",
    "correlation_matrix",
    "distortion_heatmap",
    "epsilon_loss",
    "error_by_size",
    "factor_distributions",
    "factor_effects",
    "flows",
    "frontier",
    "inline_html",
    "metrics_by_rate",
    "parameter_effects",
    "place",
    "predicted_realised",
    "ranking",
    "runs",
    "runtime",
    "save",
    "script",
    "seed_cloud",
    "small_cells",
    "treatment_costs",
    "who_was_swapped",
]
