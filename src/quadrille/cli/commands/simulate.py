"""`quadrille simulate`: every setting of a design, replicated, with its analysis and charts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.errors import ParameterError

if TYPE_CHECKING:
    import polars as pl

    from quadrille.simulation.run import Simulation

DesignFile = Annotated[
    Path, typer.Argument(metavar="DESIGN", help="A design, TOML: areas, levels, rates and mechanisms, all crossed.")
]


def simulate(
    design: DesignFile,
    out: Annotated[Path, opt.value("FOLDER", "The folder to write or go on with.")],
    charts: opt.Charts = None,
    workers: opt.Workers = None,
    as_json: opt.Json = False,
) -> None:
    """Simulate swaps between areas in every setting of a design; resumes."""
    from quadrille.cli import show as simulation_show
    from quadrille.simulation import simulate
    from quadrille.simulation.design import SimulationDesign

    if workers is not None and workers < 1:
        raise ParameterError(f"--workers must be a whole number of 1 or more. Got {workers}.")
    asked = SimulationDesign.read(design)
    if charts is not None:
        _make(charts)  # what cannot be written is reported before the work, not after it
    try:
        with show.progress_bar("Simulating") as progress:
            done = simulate(design=asked, out=out, workers=workers, progress=progress)
    except (KeyboardInterrupt, SystemExit):
        tell(f"stopped. The replicates so far are in {str(out)!r}; the same command goes on from there.")
        raise
    paths, missing = ([], {}) if charts is None else draw(done, charts)
    drawn = [str(path) for path in paths]
    if as_json:
        show.emit({"folder": str(out), **done.as_dict(), "charts": drawn, "charts_without_content": missing})
        return
    simulation_show.show_simulation(done)
    show.title("Written")
    show.facts(
        [
            ("folder", f"{out}/ (replicates.parquet, analysis.json, tables as CSV)"),
            *(("chart", path) for path in drawn),
            *(("no chart", f"{name}: {reason}") for name, reason in missing.items()),
        ]
    )


def _make(folder: Path) -> None:
    from quadrille.errors import OutputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot write the folder {str(folder)!r}: {error.strerror}. Choose another place.") from None


def draw(done: Simulation, folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Draw the charts of a simulation into a folder; also say of each that has nothing to show why that is so."""
    from quadrille import chart

    missing = _nothing_to_show(done)
    charts: dict[str, tuple[Callable[[pl.DataFrame], Any], str]] = {
        "correlations": (chart.correlation_matrix, "correlations"),
        "effects": (chart.factor_effects, "effects"),
        "distributions": (chart.factor_distributions, "summary"),
    }
    _make(folder)
    wanted = {name: each for name, each in charts.items() if name not in missing}
    return [chart.save(make(done.table(table)), folder / f"{name}.png") for name, (make, table) in wanted.items()], (
        missing
    )


def _nothing_to_show(done: Simulation) -> dict[str, str]:
    """Say which charts would be empty, and why."""
    found = done.analysis
    missing: dict[str, str] = {}
    if done.table("correlations")["spearman"].null_count() == done.table("correlations").height:
        missing["correlations"] = "fewer than two metrics vary over the replicates"
    if not any(model and model.factors for model in found.models.values()):
        several = any(len(factor.levels) > 1 for factor in found.factors)
        missing["effects"] = "no factor was selected" if several else "the design has one setting"
    return missing
