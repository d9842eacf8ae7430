"""The program: its commands, which stand in `commands/`, and an example of each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, ParamSpec

import typer

from quadrille import __version__
from quadrille.cli.commands.attack import attack
from quadrille.cli.commands.demo import demo, reproduce
from quadrille.cli.commands.error import correct, error, guarantee
from quadrille.cli.commands.inspect import convert, doctor, inspect
from quadrille.cli.commands.release import release
from quadrille.cli.commands.score import measures, score
from quadrille.cli.commands.search import search
from quadrille.cli.commands.simulate import simulate
from quadrille.cli.commands.studio import studio
from quadrille.cli.commands.study import frontier, pick, report
from quadrille.cli.commands.swap import plan, swap
from quadrille.cli.guard import INTERRUPTED, check_limits, flush_quietly, guarded, ignore_signals, prepare_process
from quadrille.cli.options import DesignCommand, Sections, spread

P = ParamSpec("P")

app = typer.Typer(
    name="quadrille",
    help="Data swapping for confidential microdata: inspect, swap, search, choose, release.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"quadrille {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Data swapping for confidential microdata: inspect, swap, search, choose, release."""


def _add(function: Callable[P, None], example: str, *, kind: type[Sections] = Sections) -> None:
    """Make a function a command of the same name, guarded; its help ends with the example."""
    app.command(cls=kind, epilog=example)(guarded(spread(function)))


_add(
    inspect,
    "quadrille inspect dataset:cps8d --categories --reasons\n"
    "quadrille inspect survey.sas7bdat --catalog formats.sas7bcat --write-codebook survey.toml",
)
_add(convert, "quadrille convert survey.sav survey.parquet --write-codebook survey.toml")
_add(doctor, "quadrille doctor census.parquet --format csv")
_add(measures, "quadrille measures")
_add(
    swap,
    "quadrille swap dataset:cps8d --swap Edu --rate 0.02 --save-recipe recipe.json\n"
    "quadrille swap dataset:cps8d --method designed --measures exposed,hellinger",
    kind=DesignCommand,
)
_add(
    score,
    "quadrille score census.csv swapped.csv --geography county,tract --by county,tract\n"
    "quadrille score dataset:cps8d --recipe recipe.json --vary rate=0.01,0.05 --draws 5",
)
_add(search, "quadrille search job.toml --dry-run\nquadrille search job.toml --seeds 20")
_add(
    frontier,
    "quadrille frontier people.study --risk exposed --loss hellinger --chart frontier.png\n"
    "quadrille frontier survey.study --runs --chart runs.png",
)
_add(
    pick,
    'quadrille pick people.study --risk exposed --max-risk 0.01 --note "agreed on 12 May" --save-recipe chosen.json',
)
_add(
    attack,
    "quadrille attack dataset:cps8d --recipe recipe.json --target AnnSal\n"
    "quadrille attack survey.csv --release published.csv --knows file --json",
)
_add(
    release,
    "quadrille release dataset:cps8d --method designed --out release\n"
    "quadrille release survey.csv --study survey.study --pick --policy policy.toml --check",
    kind=DesignCommand,
)
_add(plan, "quadrille plan people.parquet --recipe recipe.json --out plan.parquet --id person")
_add(report, "quadrille report people.study --candidate 52 --out report.html --readers")
_add(
    error,
    'quadrille error dataset:cps8d --recipe recipe.json --margin "Age*MS" --chart error.png\n'
    "quadrille error table.csv --swapped column --recipe recipe.json",
)
_add(guarantee, "quadrille guarantee survey.csv --recipe private.json --chart curve.png")
_add(correct, "quadrille correct table.csv --methods-note methods.md --out corrected.csv")
_add(simulate, "quadrille simulate examples/simulate.toml --out simulated --charts charts")
_add(reproduce, "quadrille reproduce boudreau-2005 --charts figures")
_add(
    studio,
    "quadrille studio\nquadrille studio open survey.sav\nquadrille studio user add anna --role analyst",
)
_add(demo, "quadrille demo --out demo")


def main() -> None:
    """Run the program."""
    prepare_process()
    if not {"-h", "--help", "--version"} & set(sys.argv):
        check_limits()
    try:
        app(prog_name="quadrille")
    except KeyboardInterrupt:  # while the commands are put together; later they see to it themselves
        raise SystemExit(INTERRUPTED) from None
    finally:
        flush_quietly()
        ignore_signals()
