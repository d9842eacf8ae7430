"""One folder per paper: published numbers beside ours.

A folder is named after its paper and is what the paper says, shown and judged: `reproduce(seeds, sampler, progress)`
with the defaults `DEFAULT_SEEDS` and `DEFAULT_SAMPLER`, claims and errata, and, where the paper has figures that are
drawn, `figures(reproduction)` and `write_figures(reproduction, folder)`. Its `run`, where one file is not enough, has
the paper's design and numbers, and ours; `files` makes the data, where they are made. Tables of the papers are in
`published/`; what papers share, above all the rule by which numbers agree, is in `reproduction`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from quadrille.errors import unknown_name

_MODULES = {
    "boudreau-2005": "boudreau_2005",
    "dohrmann-2009": "dohrmann_2009",
    "gomatam-karr-2003": "gomatam_karr_2003",
    "gomatam-karr-sanil-2003": "gomatam_karr_sanil_2003",
    "lemons-2014": "lemons_2014",
}
PAPERS = tuple(_MODULES)


def get(name: str) -> ModuleType:
    """Return the module that reproduces a paper."""
    if name not in _MODULES:
        raise unknown_name("paper", name, PAPERS)
    return import_module(f"quadrille.papers.{_MODULES[name]}")
