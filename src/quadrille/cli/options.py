"""The options that several commands share, each explained once: one word has one meaning in the whole program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from quadrille.data import Data

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
        "targeted, cycle, random, rank, controlled, permutation, "
        "private, designed or MODULE:CLASS; each has its --help.",
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
Tables = Annotated[
    list[str] | None,
    value("LIST", 'Published tables, as in "Age*Edu,MS*Race*Sex".'),
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


@dataclass(frozen=True)
class FileOptions:
    """What the command line says of a file: each field is an option of every command that reads one."""

    codebook: Codebook = None
    weight: Weight = None
    geography: Geography = None
    key: Key = None
    outcome: Outcome = None
    id: Id = None
    unit: Unit = None
    sampling: Sampling = None
    layout: Layout = None

    @property
    def roles(self) -> Mapping[str, Any]:
        """The columns that are given a role, as `Data.with_roles` takes them."""
        from quadrille.cli.inputs import names

        several = {"key": names(self.key), "outcome": names(self.outcome), "id": names(self.id)}
        return {role: columns for role, columns in {**several, "unit": self.unit}.items() if columns}

    def load(self, file: str, catalog: Path | None = None) -> Data:
        """Read the file."""
        from quadrille.cli.inputs import load

        return load(file, self.codebook, self.weight, self.geography, self.roles, self.layout, catalog, self.sampling)


NOTHING_SAID = FileOptions()


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Put the options of a file where the command has its parameter `about`; a command without it stays as it is."""
    signature = inspect.signature(command)
    if "about" not in signature.parameters:
        return command
    kinds = get_type_hints(command, include_extras=True) | get_type_hints(FileOptions, include_extras=True)
    names = [each.name for each in fields(FileOptions)]
    defaults = {name: own.default for name, own in signature.parameters.items()} | dict.fromkeys(names)
    listed = [each for name in signature.parameters for each in (names if name == "about" else [name])]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kinds[name])
        for name in listed
    ]

    @wraps(command)
    def call(**given: Any) -> None:
        about = FileOptions(**{name: given.pop(name) for name in names})
        command(about=about, **given)

    vars(call)["__signature__"] = signature.replace(parameters=options)
    call.__annotations__ = kinds
    return call
