"""The options that several commands share, each explained once, and those of a recipe: made from its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.text import read_text

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.params import Param
    from quadrille.recipe import Recipe


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
        help="CSV, Parquet, Excel, SPSS, Stata, SAS or dataset:NAME.",
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


DEFAULT, UNASKED = "random", "designed"
"""The method where none is named: of variables that are named with --swap, and of all key variables."""
ROOM = 20
"""A command with more parameters of its own has no room in its help for those of a method that is not named."""
_OF_METHOD = "Options of --method "
_EXAMPLES = {
    "RandomSwap": "dataset:cps8d --method random --swap Edu --rate 0.02",
    "PermutationSwap": "dataset:cps8d --method permutation --swap Edu --within Sex --rate 0.05",
    "PrivateSwap": "dataset:cps8d --method private --swap Edu --within MS,Race,Sex --epsilon 12",
    "RankSwap": "dataset:adult --method rank --swap age,hours-per-week --window 0.05",
    "CycleSwap": "dataset:island --method cycle --risk age,birth --same hh_size --area parish",
    "TargetedSwap": "dataset:island --method targeted --risk age,birth --rate 0.05 \\\n"
    "    --similar hh_size,tenure --similar hh_size",
    "ControlledSwap": "dataset:cps8d --method controlled --swap Edu --targets 0.02",
    "DesignedSwap": "dataset:cps8d --method designed --keep 2-way",
}
"""A call of each method that works as it stands, after the name of the command."""
_DESIGN = "design"
"""Where the context of a command keeps what the options of its design were given."""


class Sections(TyperCommand):
    """A command whose help lists rarely used options apart, and ends with an example."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments, then options by their panel: those without one first."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            own = "Arguments" if param.param_type_name == "argument" else "Options"
            if record is not None and param.name != "help":
                panels.setdefault(getattr(param, "rich_help_panel", None) or own, []).append(record)
        for title, records in sorted(panels.items(), key=lambda panel: panel[0] == RARELY):
            if records and self.shows(title):
                with formatter.section(title):
                    formatter.write_dl(records)

    def shows(self, title: str) -> bool:
        """Tell whether the help shows a section."""
        return True

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Show the example as it stands: a command is copied, not folded."""
        if example := self.example():
            with formatter.section("Example"):
                formatter.write("".join(f"  {line}\n" for line in example.splitlines()))

    def example(self) -> str:
        """Return the example that the help ends with."""
        return self.epilog or ""


class DesignCommand(Sections):
    """A command that takes the options of the method that --method names.

    Those of the other methods are read too, but not shown, so that a stray one can be explained.
    """

    """The method whose options the help shows where none is named."""
    _own: list[Any] | None = None
    _asked: str | None = None

    def shows(self, title: str) -> bool:
        """Show the options of a method that is named, and nothing else; of the default one only where there is room."""
        of_method = title.startswith(_OF_METHOD)
        return of_method == (self._asked is not None) or (of_method and len(self._own or ()) <= ROOM)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the options of the method, and put aside what they were given."""
        from quadrille.recipe import find_method

        self._own = self.params if self._own is None else self._own
        self._asked = _asked_method(args)
        options = _command_options(_method(self._asked or DEFAULT))
        if self._asked is not None and {"-h", "--help"} & set(args):
            try:
                find_method(self._asked)
            except QuadrilleError as error:
                ctx.fail(str(error))
        self.params = [*self._own[:1], *options, *self._own[1:]]
        rest = super().parse_args(ctx, args)
        words = {option.opts[0].removeprefix("--"): ctx.params.pop(option.name, None) for option in options}
        ctx.meta[_DESIGN] = {
            name: value for name, value in words.items() if value is not None and value is not False and value != ()
        }
        return rest

    def example(self) -> str:
        """Return the examples of the command, or one of the method that is named."""
        if self._asked is None:
            return super().example()
        method = _method(self._asked)
        if method.method_name in _EXAMPLES:
            out = " --out release" if self.name == "release" else ""
            return f"quadrille {self.name} {_EXAMPLES[method.method_name]}{out}"
        needed = [f" --{option} {param.metavar}" for option, param in options_of(method).items() if param.required]
        name = self._asked if ":" in self._asked else method.word()
        return f"quadrille {self.name} FILE --method {name}{''.join(needed)}"


def design_words(ctx: typer.Context) -> dict[str, Any]:
    """Return what was given to the options of the design, by the names of the options without dashes."""
    return ctx.meta.get(_DESIGN, {})


def recipe_of(ctx: typer.Context, method: str | None, file: Path | None) -> Recipe:
    """Make the recipe that the options of a command describe, or read it from its file."""
    from quadrille.recipe import find_method

    words = design_words(ctx)
    if file is not None:
        stray = ["method"] * (method is not None) + list(words)
        if stray:
            raise ParameterError(f"Give --recipe or --{stray[0]}, not both: the recipe says it all.")
        return read_recipe(file)
    made = find_method(method or _unnamed(words))
    params = options_of(made)
    for option in words:
        if option not in params:
            made.refuse(params_named(option))
            owners = " or ".join(sorted(each.word() for each in _methods() if option in options_of(each)))
            raise ParameterError(f"--{option} belongs to --method {owners}, and this is {made.word()} swapping.")
    for option, param in params.items():
        if param.required and option not in words:
            raise ParameterError(_needed(made.word(), option, param))
    return made(**{params[option].name: value_of(params[option], value) for option, value in words.items()})


def designed_for(ctx: typer.Context, made: Recipe, data: Data, tables: Sequence[tuple[str, ...]]) -> Recipe:
    """Let a designed swap keep the published tables low, unless its options name a loss or a file has the recipe."""
    from quadrille.study.designed import with_published

    given = design_words(ctx)
    if not tables or ctx.params.get("recipe") is not None or "keep-low" in given:
        return made
    return with_published(made, data, tables)


def _unnamed(words: Mapping[str, object]) -> str:
    """Return the method of options without --method: a designed swap, unless they say what is swapped, or how much."""
    known = options_of(_method(UNASKED))
    return UNASKED if "swap" not in words and all(option in known for option in words) else DEFAULT


def value_of(param: Param, given: Any) -> object:
    """Return the value that words stand for; what is no number stays a text, and the parameter refuses it by name."""
    if param.switch is not None:
        return param.switch
    if param.number is int:
        with suppress(ValueError):
            return int(given)
    return param.read(given)


def _needed(word: str, option: str, param: Param) -> str:
    if param.moves:
        return f"Name {_first_clause(param.help)} with --{option}, or a recipe with --recipe."
    return f"{word.capitalize()} swapping needs --{option}: {_first_clause(param.help)}."


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from its JSON file."""
    from quadrille.recipe import Recipe

    text = read_text(path, "the recipe")
    try:
        return Recipe.from_json(text)
    except QuadrilleError as error:
        raise InputError(f"{str(path)!r}: {error}") from None


def options_of(method: type[Recipe]) -> dict[str, Param]:
    """Return the parameters of a method by the names of their options.

    >>> from quadrille.cli.options import options_of
    >>> import quadrille as qd
    >>> list(options_of(qd.PermutationSwap))[:6]
    ['swap', 'rate', 'records', 'kind', 'within', 'groups']
    """
    return {param.option: param for param in method.params().values()}


def params_named(option: str) -> set[str]:
    """Return what the methods that have an option call its parameter."""
    return {params[option].name for each in _methods() if option in (params := options_of(each))}


def _methods() -> list[type[Recipe]]:
    from quadrille.recipe import known_methods

    return list(known_methods().values())


def _asked_method(args: Sequence[str]) -> str | None:
    """Return what the words of a command name as its method."""
    name = None
    for place, word in enumerate(args):
        if word == "--method":
            name = "".join(args[place + 1 : place + 2])
        elif word.startswith("--method="):
            name = word.partition("=")[2]
    return name


def _method(name: str) -> type[Recipe]:
    """Return the method of a name; what cannot be found is refused later, when the recipe is made."""
    from quadrille.recipe import find_method

    with suppress(QuadrilleError):
        return find_method(name)
    return find_method(DEFAULT)


def _command_options(method: type[Recipe]) -> list[Any]:
    """Return the options of a method, and hidden ones of the others that it does not have."""
    made = [*method_options(method)]
    for other in _methods():
        known = {option.name for option in made}
        made += [option for option in method_options(other, hidden=True) if option.name not in known]
    return made


@cache
def method_options(method: type[Recipe], *, hidden: bool = False) -> Sequence[Any]:
    """Return the options of a method, which typer makes from a function that has the method's parameters."""

    def design(**_: object) -> None: ...

    parameters = [
        Parameter(
            f"{_DESIGN}_{param.name}",
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                _type_of(param),
                typer.Option(
                    f"--{option}",
                    metavar=param.metavar or None,
                    help=_help(param),
                    hidden=hidden,
                    rich_help_panel=f"{_OF_METHOD}{method.word()}",
                ),
            ],
        )
        for option, param in options_of(method).items()
    ]
    design.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    design.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    program = typer.Typer(add_completion=False)
    program.command()(design)
    return typer.main.get_command(program).params


def _type_of(param: Param) -> Any:
    """Return the type of an option; a number is read as text, so that the parameter itself says what it must be."""
    if param.switch is not None:
        return bool
    return list[str] | None if param.repeated else str | None


def _help(param: Param) -> str:
    """Return in one line what a parameter means, and what holds without it."""
    default: object = "" if param.required or param.switch is not None else param.otherwise or param.default
    text = ("do not " if param.switch is False else "") + _first_clause(param.help or f"the parameter {param.name}")
    shown = f" [default: {default}]" if default not in ("", None, (), {}) else ""
    listed = text.replace(",", " ").split()[0] in getattr(param, "words", ())  # words are typed as they stand
    return f"{text if listed else text[:1].upper() + text[1:]}.{shown}"


def _first_clause(text: str) -> str:
    """Cut a text after its first clause: what follows a full stop or a semicolon and a blank is for the docs."""
    return text.partition(". ")[0].partition("; ")[0].rstrip(".")
