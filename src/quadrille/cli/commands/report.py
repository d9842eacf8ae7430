"""`quadrille report`: the report for the review board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_new, check_readers, load, names, open_study, refuse_sources, source_of


def report(
    study: opt.StudyFile,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="The data of the study. [default: what its job named]", show_default=False),
    ] = None,
    candidate: opt.Candidate = None,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    out: Annotated[Path, opt.value("FILE", "The HTML file to write.")] = Path("report.html"),
    readers: opt.Readers = False,
    var_stratum: opt.VarStratum = None,
    cluster: opt.Cluster = None,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    sampling: opt.Sampling = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Write the report for the review board, as one HTML file."""
    from quadrille.report import write_readers, write_report
    from quadrille.report.build import check_suffix
    from quadrille.report.input import reported

    check_readers(readers, var_stratum, cluster)
    known, folder = open_study(study), out.with_name(f"{out.stem}-readers") if readers else None
    source = source_of(known, file, codebook, weight)
    check_new(out, overwrite=overwrite, source=source[0])
    refuse_sources(known, out, folder, replaces=overwrite)
    check_suffix(out)
    with show.working("Reading and writing the report"):
        data = load(*source, sampling=sampling)
        if folder is not None:  # first, because a folder can fail in more ways than a file whose place was checked
            known.compare_with(data)
            about = reported(known, candidate, (known.axis("risk", risk), known.axis("loss", loss)))
            write_readers(
                data, about.choice.recipe, folder, stratum=names(var_stratum), cluster=cluster, overwrite=overwrite
            )
        path = write_report(known, data, out, candidate=candidate, risk=risk, loss=loss, overwrite=overwrite)
    if as_json:
        show.emit({"study": str(study), "report": str(path), "readers": folder and str(folder)})
    else:
        also = "" if folder is None else f" and {folder}/"
        if candidate is None and known.picked is None:
            show.note("Nobody has picked a candidate yet: the report shows one as an example, and says so.")
        show.note(f"Wrote {path}{also}. It is confidential; open it in a browser, no network is needed.")
