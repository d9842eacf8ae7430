"""The script that draws charts: the bundle of vl-convert in a function of its own, made once and kept."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse

from quadrille.studio.web import STATIC, Problem, settings_of

router = APIRouter(include_in_schema=False)
_MAKING = threading.Lock()
_MAKE = (
    "import sys, vl_convert; sys.stdout.reconfigure(encoding='utf-8'); "
    "bundle = vl_convert.javascript_bundle('globalThis.quadrilleVega = { vegaEmbed };'); "
    "print(f'(() => {{{bundle}}})();')"
)


@router.get("/favicon.ico")
def icon() -> Response:
    """Return the sign of the studio to browsers that ask for it by its old name."""
    return FileResponse(STATIC / "logo.svg", media_type="image/svg+xml")


@router.get("/static/vega.js")
def vega(request: Request) -> Response:
    """Return the bundle; it declares names such as `$`, which must not become those of the page."""
    path = settings_of(request).home.run / f"vega-{version('vl-convert-python')}.js"
    with _MAKING:
        if not path.exists():
            _make(path)
    return FileResponse(path, media_type="text/javascript")


def _make(path: Path) -> None:
    """Let another process make it: the bundler takes seconds and much memory, which it gives back at its end."""
    made = subprocess.run([sys.executable, "-c", _MAKE], capture_output=True, check=False, timeout=120)
    if made.returncode:
        raise Problem(
            500, "The script that draws charts could not be made.", do="Install the extra: quadrille[studio]."
        )
    fresh = path.with_suffix(".new")
    fresh.write_bytes(made.stdout)
    fresh.replace(path)
