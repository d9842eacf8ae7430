"""The options that several commands share, each explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _papers() -> list[str]:
    from quadrille.papers import PAPERS

    return list(PAPERS)


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A microdata file (.csv, .csv.gz, .tsv, .parquet, .sav, .por, .dta, .sas7bdat, .xpt) or dataset:NAME.",
    ),
]
JobFile = Annotated[
    Path, typer.Argument(metavar="JOB", help="A job file, TOML: data, measures and grids of candidates.")
]
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A study, as written by quadrille search.")]
Before = Annotated[str, typer.Argument(metavar="BEFORE", help="The original file, or dataset:NAME.")]
After = Annotated[str, typer.Argument(metavar="AFTER", help="The file to compare with it.")]
Paper = Annotated[str, typer.Argument(metavar="PAPER", help="Which paper.", autocompletion=_papers)]

Codebook = Annotated[Path | None, typer.Option(metavar="FILE", help="Codebook of the file, TOML. Guessed when absent.")]
CodebookAfter = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Codebook of the second file, where it differs from --codebook.")
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="Name of the weight column.")]
Geography = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Nested levels of geography, the coarsest first: county,tract."),
]
Catalog = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Catalog (.sas7bcat) with the value labels of a .sas7bdat file.")
]
WriteCodebook = Annotated[
    Path | None, typer.Option("--write-codebook", metavar="FILE", help="Also write the codebook, TOML, to this file.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]

Swap = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Variables to swap: A,B or repeated. Quote names that hold a comma. [designed: all key variables]",
    ),
]
Method = Annotated[
    str | None, typer.Option(metavar="WORD", help="random, controlled, permutation or designed. [default: random]")
]
Rate = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE", help="Share of the records that take part, in (0, 1]; permutation: or a column of class rates."
    ),
]
Pairs = Annotated[int | None, typer.Option(metavar="NUMBER", help="Number of pairs, instead of --rate.")]
Same = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that must agree within a pair.")]
Different = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that must differ within a pair.")]
Differ = Annotated[
    str | None, typer.Option(metavar="WORD", help="Swap variables that must differ: all, any or none. [default: all]")
]
Order = Annotated[str | None, typer.Option(metavar="WORD", help="together or one-by-one. [default: together]")]
Sampler = Annotated[
    str | None, typer.Option(metavar="WORD", help="first-uniform or pair-uniform. [default: first-uniform]")
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="CONDITION",
        help='No pair may make a record meet it: "Age<16 & MS=Widowed". Repeat for more. Not for permutation.',
    ),
]
Targets = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="Controlled: share of records drawn as targets, in [0, 0.5), or a column."),
]
Size = Annotated[str | None, typer.Option(metavar="COLUMN", help="Controlled: measure of size for the draw.")]
Must = Annotated[str | None, typer.Option(metavar="COLUMN", help="Controlled: 1 for records that must be targets.")]
Never = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Controlled, designed: 1 for records that must not be touched.")
]
Stratum = Annotated[
    list[str] | None, typer.Option(metavar="COLUMNS", help="Controlled: strata of the draw of targets.")
]
Sort = Annotated[
    list[str] | None, typer.Option(metavar="COLUMNS", help="Controlled: order of the draw. [default: the cells]")
]
Boundary = Annotated[
    list[str] | None, typer.Option(metavar="COLUMNS", help="Controlled: columns on which partners agree.")
]
Bias = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Controlled: x of the bias. [default: the last swap variable]")
]
Linked = Annotated[
    list[str] | None,
    typer.Option(metavar="VAR=COLUMNS", help="Controlled: columns that travel with a swap variable: Edu=Degree,Years."),
]
Records = Annotated[
    int | None, typer.Option(metavar="NUMBER", help="Permutation: number of records moved, instead of --rate.")
]
PermutationKind = Annotated[
    str | None, typer.Option("--kind", metavar="WORD", help="Permutation: pairs, cycles or across. [default: pairs]")
]
Within = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Permutation: classes within which to swap.")]
Groups = Annotated[str | None, typer.Option(metavar="COLUMN", help="Permutation: the two groups of --kind across.")]
MoveWeight = Annotated[bool, typer.Option("--move-weight", help="Permutation: the weight moves with the variables.")]
Variant = Annotated[
    str | None, typer.Option(metavar="WORD", help="Controlled: standard or balanced. [default: standard]")
]
Matching = Annotated[str | None, typer.Option(metavar="WORD", help="Controlled: greedy or optimal. [default: greedy]")]
OnMissing = Annotated[
    str | None, typer.Option(metavar="WORD", help="Controlled: impute or category. [default: impute]")
]
Strict = Annotated[bool | None, typer.Option("--strict", help="Controlled: an error when a target has no partner.")]
SmallBelow = Annotated[
    int | None, typer.Option("--n", metavar="NUMBER", help="Designed: cells of fewer records are small. [default: 3]")
]
Share = Annotated[
    float | None, typer.Option(metavar="SHARE", help="Designed: share of the small cells to treat. [default: 1]")
]
Choose = Annotated[
    str | None, typer.Option(metavar="WORD", help="Designed: which ones, random or cheapest. [default: random]")
]
Treatment = Annotated[
    str | None,
    typer.Option(metavar="WORD", help="Designed: cheaper, either, camouflage or empty. [default: cheaper]"),
]
DesignLoss = Annotated[
    list[str] | None,
    typer.Option(
        "--loss",
        metavar="MEASURES",
        help='Designed: what to keep low, as in "hellinger=1,hellinger(Age*Sex)=5". [default: hellinger]',
    ),
]
Spread = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Designed: choose among ways that cost up to so much more. [default: 0.1]"),
]
Price = Annotated[
    float | None, typer.Option(metavar="NUMBER", help="Designed: treat where loss + price * exposed falls.")
]
NoImprove = Annotated[bool | None, typer.Option("--no-improve", help="Designed: do not treat cells anew.")]
Together = Annotated[
    list[str] | None, typer.Option(metavar="SETS", help="Designed: sets of variables that move as one: A*B,C*D.")
]
Tables = Annotated[
    list[str] | None,
    typer.Option(metavar="SETS", help="Designed: protected tables: A*B*C,A*D. [default: the key variables]"),
]
MaxPairs = Annotated[int | None, typer.Option(metavar="NUMBER", help="Designed: most pairs.")]
Seed = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="A whole number, for tests and papers only. [default: 256 secret bits]"),
]
RecipeFile = Annotated[
    Path | None,
    typer.Option("--recipe", metavar="FILE", help="Recipe as JSON, instead of the options that describe one."),
]
SaveRecipe = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep the recipe and its seed in this file, readable by you alone.")
]
Measures = Annotated[
    list[str] | None,
    typer.Option(metavar="LIST", help='Measures, as in "hellinger,cramers_v_change(A*B)". See: quadrille measures.'),
]
Risk = Annotated[
    str | None, typer.Option(metavar="MEASURE", help="Measure of risk. [default: the first one of the study]")
]
Loss = Annotated[
    str | None, typer.Option(metavar="MEASURE", help="Measure of loss. [default: the first one of the study]")
]
ReportFile = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="The data of the study. [default: what its job named]", show_default=False),
]
FromStudy = Annotated[
    Path | None,
    typer.Option("--study", metavar="STUDY", help="Release a candidate of this study: --candidate ID or --pick."),
]
Candidate = Annotated[int | None, typer.Option(metavar="ID", help="Number of the candidate, as pick prints it.")]
Pick = Annotated[bool, typer.Option("--pick", help="The candidate at the knee of the frontier.")]
VarStratum = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Design strata, for the standard errors in these reports."),
]
VarUnit = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Primary sampling units, for the standard errors in these reports.")
]
Where = Annotated[
    str | None, typer.Option(metavar="CONDITION", help='Only these records, as in "Sex=Male & Age!=<25".')
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run has written.")]
