"""Runs: the candidates of one design, which differ by seed only, as a table of measures by runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadrille import frames
from quadrille.errors import InputError
from quadrille.measure_base import Call
from quadrille.study.axes import kind_of
from quadrille.study.results import Study

if TYPE_CHECKING:
    import polars as pl

PAIRWISE = frozenset({"r_ased", "c_ard", "v_ard"})
REGRESSION = frozenset({"ased_reg"})
FAMILIES = ("HD", "pairwise", "regression", "other")
RUN = "run "
"""How the name of a run's column begins; the candidate's number follows."""


def family(address: str) -> str:
    """Return the family of a measure: "HD", "pairwise", "regression" or "other".

    >>> from quadrille.study.runs import family
    >>> family("hd1_norm"), family("c_ard(A*B)"), family("ased_reg"), family("exposed")
    ('HD', 'pairwise', 'regression', 'other')
    """
    name = Call.parse(address).name
    if name.startswith("hd") and name[2:3].isdigit():
        return "HD"
    return "pairwise" if name in PAIRWISE else "regression" if name in REGRESSION else "other"


def runs_table(study: Study, design: int | None = None) -> pl.DataFrame:
    """Return the scores of all runs of a design: a row per measure, a column "run N" per run, N the candidate's number.

    Columns `family` ("HD", "pairwise", "regression", "other"), `measure` and `better` come first; rows are in the
    order of the families. Runs without any score are left out. A study of several designs needs `design`, its number.

    Example
    -------
    >>> import quadrille as qd
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[244], seed=range(3))
    >>> study = qd.search(qd.datasets.cps8d(), recipes, ["hellinger"], out="three-runs", progress=False)
    >>> qd.runs_table(study).columns
    ['family', 'measure', 'better', 'run 1', 'run 2', 'run 3']
    """
    rows = study.frame().to_dicts()
    known = sorted({int(row["design"]) for row in rows})
    if design is None and len(known) > 1:
        raise InputError(
            f"The study {str(study.path)!r} has {len(known):,} designs, and runs differ by seed only. "
            "Name one with design=, by its number in study.frame()."
        )
    wanted = known[0] if design is None else design
    if wanted not in known:
        raise InputError(f"The study {str(study.path)!r} has no design {design!r}. Its designs are in study.frame().")
    runs = [row for row in rows if row["design"] == wanted and any(row[m] is not None for m in study.measures)]
    if not runs:
        raise InputError(f"No run of this design in the study {str(study.path)!r} has a score. Finish the search.")
    runs.sort(key=lambda row: int(row["id"]))
    ordered = sorted(study.measures, key=lambda address: FAMILIES.index(family(address)))
    return frames.tidy(
        [
            {
                "family": family(address),
                "measure": address,
                "better": kind_of(address).direction,
                **{f"{RUN}{run['id']}": run[address] for run in runs},
            }
            for address in ordered
        ]
    )
