"""Charts: a tidy frame in, an Altair chart out. Everything works without a network."""

from __future__ import annotations

from importlib.util import find_spec

from quadrille.errors import QuadrilleError

if any(find_spec(name) is None for name in ("altair", "vl_convert")):
    raise QuadrilleError("Charts need altair and vl-convert-python. Install them: pip install 'quadrille[report]'.")

from quadrille.chart.after_before import after_before
from quadrille.chart.correlation_matrix import correlation_matrix
from quadrille.chart.distortion_heatmap import distortion_heatmap
from quadrille.chart.error_by_size import error_by_size
from quadrille.chart.factors import factor_distributions, factor_effects
from quadrille.chart.flows import flows
from quadrille.chart.frontier import frontier
from quadrille.chart.metrics_by_rate import metrics_by_rate
from quadrille.chart.parameter_effects import parameter_effects
from quadrille.chart.predicted_realised import predicted_realised
from quadrille.chart.ranking import ranking
from quadrille.chart.runs import runs
from quadrille.chart.save import inline_html, place, runtime, save, script
from quadrille.chart.seed_cloud import seed_cloud
from quadrille.chart.small_cells import small_cells
from quadrille.chart.theme import Figure
from quadrille.chart.treatment_costs import treatment_costs
from quadrille.chart.who_was_swapped import who_was_swapped

__all__ = [
    "Figure",
    "after_before",
    "correlation_matrix",
    "distortion_heatmap",
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
