"""`quadrille attack`: what an intruder learns from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_new, load, names, second
from quadrille.cli.options import read_recipe
from quadrille.errors import ParameterError


def attack(
    file: opt.File,
    about: opt.FileOptions = opt.NOTHING_SAID,
    recipe: opt.RecipeFile = None,
    release: Annotated[
        str | None, opt.value("FILE", "The released file; with --recipe, which made it, the intruder knows the design.")
    ] = None,
    keys: Annotated[
        list[str] | None, opt.value("COLUMNS", "What he knows of a person. [default: the key variables]")
    ] = None,
    target: Annotated[
        list[str] | None, opt.value("COLUMNS", "What he wants to learn. [default: each key from the others]")
    ] = None,
    columns: Annotated[
        list[str] | None, opt.value("COLUMNS", "Other columns of the released file, which are not protected.")
    ] = None,
    small: Annotated[int, opt.value("NUMBER", "Cells of fewer records than this are small.")] = 3,
    knows: Annotated[
        str, opt.value("WORD", "design (all but the seed) or file (nothing of how it was made).")
    ] = "design",
    population: Annotated[str | None, opt.value("FILE", "A file of the whole population, with the same keys.")] = None,
    earlier: Annotated[
        list[Path] | None, opt.value("FILE", "A recipe, JSON, of another release of these data. May be given again.")
    ] = None,
    chart: opt.Chart = None,
    codebook_after: opt.CodebookAfter = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Attack a release as an intruder would, next to the original and to chance."""
    if recipe is None and release is None:
        raise ParameterError("Name the release: --recipe FILE, or --release FILE with the released file.")
    if release is None and codebook_after is not None:
        raise ParameterError("--codebook-after describes the file of --release. Name that file.")
    for source in filter(None, (file, release, population)):
        check_new(chart, overwrite=overwrite, source=source)
    import quadrille as qd

    with show.working("Reading and attacking"):
        data = about.load(file)
        design = None if recipe is None else read_recipe(recipe)
        made = design if release is None else second(release, data, codebook_after, about)
        assert made is not None
        found = qd.attack(
            data,
            made,
            names(keys) or None,
            names(target) or None,
            small,
            knows,
            names(columns),
            recipe=None if release is None else design,
            population=None if population is None else load(population, about.codebook, layout=about.layout),
            sampling=about.sampling,
            earlier=[read_recipe(path) for path in earlier or ()],
        )
        if chart is not None:
            qd.chart.save(qd.chart.attacks(found.frame()), chart)
    if as_json:
        show.emit({"file": file, **found.as_dict(), "chart": chart and str(chart)})
        return
    show.show_attack(found)
    show.written([chart] if chart else [])
