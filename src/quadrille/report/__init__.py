"""Reports: HTML pages for the review board and the analyst, which need nothing but a browser and make no request."""

from __future__ import annotations

from importlib.util import find_spec

from quadrille.errors import QuadrilleError

if any(find_spec(name) is None for name in ("altair", "jinja2", "vl_convert")):
    raise QuadrilleError(
        "Reports need altair, jinja2 and vl-convert-python. Install them: pip install 'quadrille[report]'."
    )

from quadrille.report.build import write_report
from quadrille.report.readers import write_readers

__all__ = ["write_readers", "write_report"]
