"""The options that several commands share, each explained once: one word has one meaning in the whole program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

ABOUT_THE_FILE = "About the file"
RARELY = "Less often"


def value(metavar: str, help: str, *names: str, panel: str | None = None) -> Any:
    """Describe an option that takes a value; its name is that of the parameter, unless `names` say another."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


def flag(name: str, help: str, *, panel: str | None = None) -> Any:
    """Describe an option without a value."""
    return typer.Option(name, help=help, rich_help_panel=panel)


def _papers() -> list[str]:
    from quadrille.papers import PAPERS

    return list(PAPERS)


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet, Excel, SPSS, Stata or SAS file, or dataset:NAME.",
    ),
]
JobFile = Annotated[
    Path, typer.Argument(metavar="JOB", help="A job file, TOML: data, measures and grids of candidates.")
]
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A study, as written by quadrille search.")]
Paper = Annotated[str, typer.Argument(metavar="PAPER", help="Which paper.", autocompletion=_papers)]

Codebook = Annotated[
    Path | None,
    value("FILE", "Codebook of the file, TOML. [default: guessed]", panel=ABOUT_THE_FILE),
]
CodebookAfter = Annotated[
    Path | None,
    value("FILE", "Codebook of the second file, where it differs.", panel=ABOUT_THE_FILE),
]
Weight = Annotated[str | None, value("COLUMN", "Name of the weight column.", panel=ABOUT_THE_FILE)]
Geography = Annotated[
    list[str] | None,
    value("COLUMNS", "Levels of geography, the coarsest first: county,tract.", panel=ABOUT_THE_FILE),
]
Key = Annotated[list[str] | None, value("COLUMNS", "Key variables.", panel=ABOUT_THE_FILE)]
Outcome = Annotated[list[str] | None, value("COLUMNS", "Outcomes: no key variables.", panel=ABOUT_THE_FILE)]
Id = Annotated[list[str] | None, value("COLUMNS", "More identifiers, never released.", panel=ABOUT_THE_FILE)]
Unit = Annotated[str | None, value("COLUMN", "Number of the household or the like.", panel=ABOUT_THE_FILE)]
Sampling = Annotated[
    float | None,
    value("SHARE", "The file is a sample of this share of a population.", panel=ABOUT_THE_FILE),
]
Layout = Annotated[
    str | None,
    value("SETTINGS", 'As in "separator=; decimal=,". [default: detected]', panel=ABOUT_THE_FILE),
]
Catalog = Annotated[
    Path | None,
    value("FILE", "Catalog (.sas7bcat) with the value labels of a .sas7bdat file.", panel=ABOUT_THE_FILE),
]
WriteCodebook = Annotated[Path | None, value("FILE", "Also write the codebook, TOML.", "--write-codebook")]
Json = Annotated[bool, flag("--json", "Print one JSON document and nothing else.", panel=RARELY)]
Overwrite = Annotated[bool, flag("--overwrite", "Replace what an earlier run has written.", panel=RARELY)]

AllowContradictions = Annotated[
    bool,
    flag("--allow-contradictions", "Go on where the file tells who was swapped.", panel=RARELY),
]

Method = Annotated[
    str | None,
    value(
        "WORD",
        "designed, random, controlled, permutation or MODULE:CLASS; with --help its options. [default: designed]",
    ),
]
RecipeFile = Annotated[Path | None, value("FILE", "A recipe, JSON, as --save-recipe keeps it.", "--recipe")]
SaveRecipe = Annotated[Path | None, value("FILE", "Keep the recipe and its seed here, for you alone.")]
Seed = Annotated[
    int | None,
    value("NUMBER", "For tests and papers only. [default: secret]"),
]
Draws = Annotated[int | None, value("NUMBER", "How often each recipe is drawn. [default: 1]")]
Workers = Annotated[int | None, value("NUMBER", "Processes to use. [default: all cores]")]
Measures = Annotated[
    list[str] | None,
    value("LIST", 'As in "hellinger,cramers_v_change(A*B)"; see: measures.'),
]
Risk = Annotated[str | None, value("MEASURE", "Measure of risk. [default: the first one of the study]")]
Loss = Annotated[str | None, value("MEASURE", "Measure of loss. [default: the first one of the study]")]
Candidate = Annotated[int | None, value("ID", "Number of the candidate, as pick prints it.")]
Chart = Annotated[Path | None, value("FILE", "Draw it into this .png, .svg or .html.")]
Charts = Annotated[Path | None, value("FOLDER", "Also draw the charts, as PNG, into this folder.")]
Where = Annotated[str | None, value("CONDITION", 'Only these records, as in "Sex=Male & Age!=<25".')]
VarStratum = Annotated[
    list[str] | None,
    value("COLUMNS", "Strata, for standard errors in --readers.", panel=RARELY),
]
Cluster = Annotated[
    str | None,
    value("COLUMN", "Clusters, for standard errors in --readers.", panel=RARELY),
]
Readers = Annotated[
    bool,
    flag("--readers", "Also write reports for analyst, chair and board."),
]
Swapped = Annotated[str | None, value("WORD", "Where the swapped variable is in a table of counts: row or column.")]
NoTotals = Annotated[
    bool,
    flag("--no-totals", "No row or column is a total, even if one equals the sum of the others.", panel=RARELY),
]
