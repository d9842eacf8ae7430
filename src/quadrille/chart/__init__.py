"""Charts: a tidy frame in, an Altair chart out. Everything works without a network."""

from __future__ import annotations

from importlib.util import find_spec

from quadrille.errors import QuadrilleError

if any(find_spec(name) is None for name in ("altair", "vl_convert")):
    raise QuadrilleError("Charts need altair and vl-convert-python. Install them: pip install 'quadrille[report]'.")

from quadrille.chart.after_before import after_before
from quadrille.chart.distortion_heatmap import distortion_heatmap
from quadrille.chart.error_by_size import error_by_size
from quadrille.chart.frontier import frontier
from quadrille.chart.html import inline_html, place, runtime, script
from quadrille.chart.parameter_effects import parameter_effects
from quadrille.chart.predicted_realised import predicted_realised
from quadrille.chart.runs import runs
from quadrille.chart.save import save
from quadrille.chart.seed_cloud import seed_cloud
from quadrille.chart.small_cells import small_cells
from quadrille.chart.theme import Figure
from quadrille.chart.who_was_swapped import who_was_swapped

__all__ = [
    "Figure",
    "after_before",
    "distortion_heatmap",
    "error_by_size",
    "frontier",
    "inline_html",
    "parameter_effects",
    "place",
    "predicted_realised",
    "runs",
    "runtime",
    "save",
    "script",
    "seed_cloud",
    "small_cells",
    "who_was_swapped",
]
