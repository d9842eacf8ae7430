"""The options that several commands share, each explained once: one word has one meaning in the whole program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ABOUT_THE_FILE = "About the file"
RARELY = "Less often"


def _papers() -> list[str]:
    from quadrille.papers import PAPERS

    return list(PAPERS)


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet, SPSS, Stata or SAS file, or dataset:NAME.",
    ),
]
JobFile = Annotated[
    Path, typer.Argument(metavar="JOB", help="A job file, TOML: data, measures and grids of candidates.")
]
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A study, as written by quadrille search.")]
Paper = Annotated[str, typer.Argument(metavar="PAPER", help="Which paper.", autocompletion=_papers)]

Codebook = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Codebook of the file, TOML. [default: guessed]", rich_help_panel=ABOUT_THE_FILE),
]
Weight = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Name of the weight column.", rich_help_panel=ABOUT_THE_FILE)
]
Geography = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Levels of geography, the coarsest first: county,tract.",
        rich_help_panel=ABOUT_THE_FILE,
    ),
]
Catalog = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Catalog (.sas7bcat) with the value labels of a .sas7bdat file.",
        rich_help_panel=ABOUT_THE_FILE,
    ),
]
WriteCodebook = Annotated[
    Path | None, typer.Option("--write-codebook", metavar="FILE", help="Also write the codebook, TOML.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=RARELY)]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what an earlier run has written.", rich_help_panel=RARELY)
]

Method = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="random, controlled, permutation, designed or MODULE:CLASS; with --help its options. [default: random]",
    ),
]
RecipeFile = Annotated[
    Path | None, typer.Option("--recipe", metavar="FILE", help="A recipe, JSON, as --save-recipe keeps it.")
]
SaveRecipe = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep the recipe and its seed here, for you alone.")
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="For tests and papers only. [default: secret]"),
]
Draws = Annotated[int | None, typer.Option(metavar="NUMBER", help="How often each recipe is drawn. [default: 1]")]
Workers = Annotated[int | None, typer.Option(metavar="NUMBER", help="Processes to use. [default: all cores]")]
Measures = Annotated[
    list[str] | None,
    typer.Option(metavar="LIST", help='As in "hellinger,cramers_v_change(A*B)"; see: measures.'),
]
Risk = Annotated[
    str | None, typer.Option(metavar="MEASURE", help="Measure of risk. [default: the first one of the study]")
]
Loss = Annotated[
    str | None, typer.Option(metavar="MEASURE", help="Measure of loss. [default: the first one of the study]")
]
Candidate = Annotated[int | None, typer.Option(metavar="ID", help="Number of the candidate, as pick prints it.")]
Chart = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it into this .png, .svg or .html.")]
Charts = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also draw the charts, as PNG, into this folder.")]
Where = Annotated[
    str | None, typer.Option(metavar="CONDITION", help='Only these records, as in "Sex=Male & Age!=<25".')
]
VarStratum = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Strata, for standard errors in --readers.", rich_help_panel=RARELY),
]
VarUnit = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Sampling units, for standard errors in --readers.", rich_help_panel=RARELY),
]
Readers = Annotated[
    bool,
    typer.Option("--readers", help="Also write reports for analyst, chair and board."),
]
Swapped = Annotated[
    str | None, typer.Option(metavar="WORD", help="Where the swapped variable is in a table of counts: row or column.")
]
NoTotals = Annotated[
    bool,
    typer.Option(
        "--no-totals",
        help="No row or column is a total, even if one equals the sum of the others.",
        rich_help_panel=RARELY,
    ),
]
