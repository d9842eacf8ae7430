"""The command that simulates a design: every setting, replicated, with its analysis and charts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.errors import ParameterError

if TYPE_CHECKING:
    from quadrille.io.simulation import Simulation

DesignFile = Annotated[
    Path, typer.Argument(metavar="DESIGN", help="A design, TOML: areas, levels, rates and mechanisms, all crossed.")
]


def simulate(
    design: DesignFile,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write or go on with.")],
    charts: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also draw the charts, as PNG, into this folder.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Processes to use. [default: all cores]")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Simulate swaps between areas in every setting of a design; resumes."""
    from quadrille.cli import simulation_show
    from quadrille.io.simulation import simulate_design
    from quadrille.study.trials import Design

    if workers is not None and workers < 1:
        raise ParameterError(f"--workers must be a whole number of 1 or more. Got {workers}.")
    asked = Design.read(design)
    try:
        with show.progress_bar("Simulating") as progress:
            done = simulate_design(asked, out, workers=workers, progress=progress)
    except (KeyboardInterrupt, SystemExit):
        tell(f"stopped. The replicates so far are in {str(out)!r}; the same command goes on from there.")
        raise
    drawn = [] if charts is None else [str(path) for path in draw(done, charts)]
    if as_json:
        show.emit({"folder": str(out), **done.as_dict(), "charts": drawn})
        return
    simulation_show.show_simulation(done)
    show.title("Written")
    show.facts(
        [("folder", f"{out}/ (replicates.parquet, analysis.json, tables as CSV)"), *(("chart", path) for path in drawn)]
    )


def draw(done: Simulation, folder: Path) -> list[Path]:
    """Draw the charts of a simulation into a folder."""
    from quadrille import chart
    from quadrille.errors import OutputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot write the folder {str(folder)!r}: {error.strerror}. Choose another place.") from None
    pictures = {
        "correlations": chart.correlation_matrix(done.table("correlations")),
        "effects": chart.factor_effects(done.table("effects")),
        "distributions": chart.factor_distributions(done.table("summary")),
    }
    return [chart.save(picture, folder / f"{name}.png") for name, picture in pictures.items()]
