"""The policy of an agency on the command line: check a release against it, and show what it says."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.commands import search
from quadrille.cli.designs import Design, takes_design
from quadrille.cli.guard import BAD_INPUT, tell
from quadrille.cli.inputs import load
from quadrille.cli.show import show_verdict
from quadrille.errors import ParameterError

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.release.judge import Verdict

PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="A policy, TOML. A release that fails it, or that of QUADRILLE_POLICY, is refused.",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="POLICY",
        help="A policy, TOML. That of QUADRILLE_POLICY is checked as well.",
        show_default=False,
    ),
]
Format = Annotated[str, typer.Option(metavar="WORD", help="Public file: csv, parquet, sav, dta or xpt.")]
KeepOrder = Annotated[bool, typer.Option("--keep-order", help="Do not shuffle the public rows.")]
PublishF = Annotated[bool, typer.Option("--publish-f", help="Put into the public note how users can correct tables.")]


class Options(TypedDict):
    """How the public file is to be written."""

    format: str
    shuffle: bool
    publish_f: bool


@takes_design
def policy(
    file: opt.File,
    design: Design,
    policy: PolicyFile = None,
    study: opt.FromStudy = None,
    candidate: opt.Candidate = None,
    pick: opt.Pick = False,
    format: Format = "csv",
    keep_order: KeepOrder = False,
    publish_f: PublishF = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    geography: opt.Geography = None,
    as_json: opt.Json = False,
) -> None:
    """Check a release against a policy; writes nothing.

    With --study and no candidate: which candidates of the frontier keep it.
    """
    import quadrille as qd
    from quadrille.release.policy import asked_policies

    asked = asked_policies("policy", policy)
    if not asked:
        raise ParameterError("Name the policy: quadrille policy FILE POLICY.")
    whole = study is not None and candidate is None and not pick
    given: Options = {"format": format, "shuffle": not keep_order, "publish_f": publish_f}
    with show.working("Reading"):
        chosen = None if whole else search.candidate_of(study, candidate, pick, design)
        data = load(file, codebook, weight, geography)
    if whole and study is not None:
        _check_frontier(study, data, policy, given, design, as_json=as_json)
        return
    if chosen is not None:
        search.require_data(chosen[0], data)
    with show.working("Swapping and scoring"):
        found = qd.check_policy(data, design.recipe() if chosen is None else chosen[1], policy, **given)
    if as_json:
        show.emit(found.as_dict())
    else:
        show_verdict(found)
    if found.outcome == "fail":
        failed = [each for each in found.policies if each.outcome == "fail"]
        lines = " and ".join(f"the policy {each.policy!r} in {_lines(len(each.having('fail')))}" for each in failed)
        tell(f"the release would fail {lines}.")
        raise typer.Exit(BAD_INPUT)


def _check_frontier(
    path: Path, data: Data, policy: Path | None, given: Options, design: Design, *, as_json: bool
) -> None:
    """Say which candidates of a frontier keep the policies; an error when none does."""
    import quadrille as qd
    from quadrille.cli.study_show import open_study, overview

    if words := list(design.given):
        raise ParameterError(f"Give --study or --{words[0]}, not both: a candidate has its recipe.")
    study = open_study(path)
    search.require_data(study, data)
    seen = overview(study)
    rows = seen.rows()
    found: list[Verdict] = []
    with show.progress_bar("Checking the frontier") as progress:
        for row in rows:
            found.append(qd.check_policy(data, study.recipe(row["id"]), policy, **given))
            if progress is not None:
                progress(len(found), len(rows))
    if as_json:
        listed = [{"candidate": row["id"], **each.as_dict()} for row, each in zip(rows, found, strict=True)]
        show.emit({"study": str(path), "axes": seen.axes, "frontier": listed})
    else:
        _show_frontier(seen.axes, rows, found)
    if all(each.outcome == "fail" for each in found):
        names = " and ".join(repr(each.policy) for each in found[0].policies)
        what = "policy" if len(found[0].policies) == 1 else "policies"
        tell(f"no candidate on the frontier keeps the {what} {names}.")
        raise typer.Exit(BAD_INPUT)


def _show_frontier(axes: tuple[str, str], rows: Sequence[Mapping[str, Any]], found: Sequence[Verdict]) -> None:
    show.title("The frontier, judged by the policy")
    shown = [
        (str(row["id"]), each.outcome, *(show.number(row["scores"][axis]) for axis in axes), _trouble(each))
        for row, each in zip(rows, found, strict=True)
    ]
    show.grid(("candidate", "verdict", *axes, "why"), shown, numbers=(0, 2, 3), whole=(0, 1))


def _trouble(found: Verdict) -> str:
    """Name the rules that fail, or those that a person must look at."""
    rules = dict.fromkeys(line.rule for line in found.having(found.outcome))
    return ", ".join(rules) if found.outcome != "pass" else ""


@contextmanager
def verdict_shown(*, as_json: bool) -> Generator[None]:
    """Show the verdict of a release that is refused, before the error is told."""
    from quadrille.release.judge import PolicyError

    try:
        yield
    except PolicyError as error:
        if as_json:
            show.emit({"path": None, "files": [], "policy": error.verdict.as_dict()})
        else:
            show_verdict(error.verdict)
        raise


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
