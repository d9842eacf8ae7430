"""`quadrille release`: what to publish and what to keep; with --check only what the policies say to it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.commands.inspect import show_needs
from quadrille.cli.guard import BAD_INPUT, tell, warnings_told
from quadrille.cli.inputs import BUNDLED, check_readers, names, open_study, published_tables
from quadrille.cli.options import design_words, designed_for, recipe_of
from quadrille.cli.show import measured
from quadrille.errors import InputError, ParameterError
from quadrille.io import RELEASED
from quadrille.present.numbers import AS_IT_IS

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.recipe import Recipe
    from quadrille.release.judge import Verdict
    from quadrille.release.release import Release
    from quadrille.study.study import Study


class PublicFile(TypedDict):
    """How the public file is to be written."""

    format: str
    shuffle: bool
    publish_f: bool
    after: Sequence[Path]
    tables: Sequence[tuple[str, ...]]


def release(
    ctx: typer.Context,
    file: opt.File,
    study: Annotated[
        Path | None,
        opt.value("STUDY", "Release --candidate ID of this study, or --pick."),
    ] = None,
    candidate: opt.Candidate = None,
    pick: Annotated[bool, opt.flag("--pick", "The candidate that `quadrille pick` chose.")] = False,
    method: opt.Method = None,
    recipe: opt.RecipeFile = None,
    measures: opt.Measures = None,
    tables: opt.Tables = None,
    policy: Annotated[
        Path | None,
        opt.value("FILE", "A policy, TOML; QUADRILLE_POLICY is checked as well."),
    ] = None,
    check: Annotated[
        bool,
        opt.flag("--check", "Write nothing, only judge; of a study: its frontier."),
    ] = False,
    dry_run: Annotated[bool, opt.flag("--dry-run", "Only say what memory and time it takes.")] = False,
    out: Annotated[Path | None, opt.value("FOLDER", "The folder to make. [default: release]")] = None,
    format: Annotated[
        str,
        opt.value("WORD", f"Public file: {', '.join(RELEASED[:-1])} or {RELEASED[-1]}."),
    ] = "csv",
    after: Annotated[
        list[Path] | None,
        opt.value("FOLDER", "An earlier release of these data: warn, or repeat it."),
    ] = None,
    keep_order: Annotated[bool, opt.flag("--keep-order", "Do not shuffle the public rows.", panel=opt.RARELY)] = False,
    publish_f: Annotated[
        bool,
        opt.flag("--publish-f", "Publish how users can correct tables.", panel=opt.RARELY),
    ] = False,
    publish_kept: Annotated[
        bool,
        opt.flag("--publish-kept", "Publish which tables are exact.", panel=opt.RARELY),
    ] = False,
    insecure: Annotated[
        bool,
        opt.flag("--insecure", "Let a number as seed pass: tests and papers only.", panel=opt.RARELY),
    ] = False,
    allow_contradictions: opt.AllowContradictions = False,
    readers: opt.Readers = False,
    var_stratum: opt.VarStratum = None,
    cluster: opt.Cluster = None,
    about: opt.FileOptions = opt.NOTHING_SAID,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Swap a file and write what to publish and to keep."""
    import quadrille as qd
    from quadrille.io.needs import refuse_too_large
    from quadrille.params import one_of

    check_readers(readers, var_stratum, cluster)
    one_of("release", "format", format, RELEASED)
    if dry_run:
        show_needs(file, format, as_json=as_json)
        return
    if not file.startswith(BUNDLED):
        refuse_too_large(file, format)
    if check:
        written = {"--out": out, "--readers": readers, "--overwrite": overwrite, "--insecure": insecure}
        written["--publish-kept"] = publish_kept
        _check_alone({**written, "--measures": measures})
    public: PublicFile = {
        "format": format,
        "shuffle": not keep_order,
        "publish_f": publish_f,
        "after": after or (),
        "tables": published_tables(tables),
    }
    stray = ["recipe"] * (recipe is not None) + ["method"] * (method is not None) + list(design_words(ctx))
    if study is not None and stray:
        raise ParameterError(f"Give --study or --{stray[0]}, not both: a candidate has its recipe.")
    if check and study is not None and candidate is None and not pick:
        data = about.load(file)
        known = open_study(study)
        public["tables"] = published_tables(tables, known)
        _check_frontier(known, data, policy, public, as_json=as_json)
        return
    with verdict_shown(as_json=as_json), warnings_told(), show.working("Reading, swapping, scoring and writing"):
        known = None if study is None else open_study(study)
        if known is None and (candidate is not None or pick):
            raise ParameterError(f"--{'pick' if pick else 'candidate'} chooses from a study: name it with --study.")
        made = recipe_of(ctx, method, recipe) if known is None else _candidate(known, candidate, pick=pick)
        data = about.load(file)
        if known is None:
            made = designed_for(ctx, made, data, public["tables"])
        else:
            known.require(data)
            public["tables"] = published_tables(tables, known)
        if check:
            _check(data, made, policy, public, as_json=as_json)
            return
        wanted = measured(made, measures, data)
        if known is not None and not measures:
            wanted = list(dict.fromkeys((*known.measures, *wanted)))
        pages = _reader_pages(data, made, var_stratum, cluster) if readers else None
        allowed = {"overwrite": overwrite, "insecure": insecure, "publish_kept": publish_kept}
        allowed["allow_contradictions"] = allow_contradictions
        done = qd.release(data, made, out or "release", measures=wanted, policy=policy, **allowed, **public)
        if pages is not None:
            from quadrille.report.readers import write_pages

            write_pages(pages, done.confidential / "readers")
    if as_json:
        show.emit(done.as_dict())
    else:
        _show_release(done, made)


def _reader_pages(data: Data, recipe: Recipe, stratum: Sequence[str] | None, cluster: str | None) -> dict[str, bytes]:
    """Make the pages of the readers before anything is written; a release without them needs no templates."""
    from quadrille.report.readers import reader_pages

    return reader_pages(data, recipe, stratum=names(stratum), cluster=cluster)


def _check_alone(options: Mapping[str, object]) -> None:
    """Refuse what --check would ignore."""
    for option, value in options.items():
        if value:
            why = "judges by what the policy measures" if option == "--measures" else "writes nothing"
            raise ParameterError(f"--check {why}: leave {option} out.")


def _candidate(study: Study, candidate: int | None, *, pick: bool) -> Recipe:
    """Return the recipe of the candidate to release."""
    if candidate is not None and pick:
        raise ParameterError("Give --candidate or --pick, not both.")
    if candidate is None and not pick:
        raise ParameterError("Say which candidate of the study to release: --candidate ID, or --pick.")
    if candidate is None:
        if (picked := study.picked) is None:
            raise ParameterError(
                f"Nobody has picked a candidate of the study {str(study.path)!r} yet. Look at `quadrille pick "
                f"{quote(str(study.path))}`, pick by a limit or a criterion, and release then; or name --candidate ID."
            )
        return study.recipe(picked.candidate)
    if not (study.ids == candidate).any():
        raise InputError(
            f"The study {str(study.path)!r} has no candidate {candidate}. Its candidates are 1 to {len(study):,}."
        )
    return study.recipe(candidate)


def _show_release(done: Release, recipe: Recipe) -> None:
    from quadrille.present.account import released

    show.render(released(done, recipe.steering_columns, recipe.parameters().get("loss")))


def _check(data: Data, recipe: Recipe, policy: Path | None, public: PublicFile, *, as_json: bool) -> None:
    """Say what the policies say to a release, and write nothing."""
    import quadrille as qd

    verdict = qd.check_policy(data, recipe, _policy(policy), **public)
    if as_json:
        show.emit(verdict.as_dict())
    else:
        show.show_verdict(verdict)
    if verdict.outcome == "fail":
        failed = [judged for judged in verdict.policies if judged.outcome == "fail"]
        lines = " and ".join(f"the policy {each.policy!r} in {_lines(len(each.having('fail')))}" for each in failed)
        tell(f"the release would fail {lines}.")
        raise typer.Exit(BAD_INPUT)


def _policy(policy: Path | None) -> Path | None:
    from quadrille.release.policy import asked_policies

    if not asked_policies("release", policy):
        raise ParameterError("Name the policy to check: --policy FILE.")
    return policy


def _check_frontier(study: Study, data: Data, policy: Path | None, public: PublicFile, *, as_json: bool) -> None:
    """Say which candidates of a frontier keep the policies; an error when none does."""
    import quadrille as qd
    from quadrille.cli.study_show import overview

    study.require(data)
    policy, seen = _policy(policy), overview(study)
    rows, verdicts = seen.rows(), list[Any]()
    with show.progress_bar("Checking the frontier") as progress:
        for row in rows:
            verdicts.append(qd.check_policy(data, study.recipe(row["id"]), policy, **public))
            if progress is not None:
                progress(len(verdicts), len(rows))
    if as_json:
        listed = [{"candidate": row["id"], **verdict.as_dict()} for row, verdict in zip(rows, verdicts, strict=True)]
        show.emit({"study": str(study.path), "axes": seen.axes, "frontier": listed})
    else:
        _show_frontier(seen.axes, rows, verdicts, study.unswapped)
    if all(verdict.outcome == "fail" for verdict in verdicts):
        policies = [judged.policy for judged in verdicts[0].policies]
        what = "policy" if len(policies) == 1 else "policies"
        tell(f"no candidate on the frontier keeps the {what} {' and '.join(map(repr, policies))}.")
        raise typer.Exit(BAD_INPUT)


def _show_frontier(
    axes: tuple[str, str],
    rows: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Verdict],
    unswapped: Mapping[str, float | None] | None,
) -> None:
    show.title("The frontier, judged by the policy")
    lines = [
        (str(row["id"]), verdict.outcome, *(show.number(row["scores"][axis]) for axis in axes), _trouble(verdict))
        for row, verdict in zip(rows, verdicts, strict=True)
    ]
    if unswapped is not None:
        lines.insert(0, ("", "", *(show.number(unswapped.get(axis)) for axis in axes), AS_IT_IS))
    show.grid(("candidate", "verdict", *axes, "why"), lines, numbers=(0, 2, 3), whole=(0, 1))


def _trouble(verdict: Verdict) -> str:
    """Name the rules that fail, or those that a person must look at."""
    rules = dict.fromkeys(line.rule for line in verdict.having(verdict.outcome))
    return ", ".join(rules) if verdict.outcome != "pass" else ""


@contextmanager
def verdict_shown(*, as_json: bool) -> Generator[None]:
    """Show the verdict of a release that is refused, before the error is reported."""
    from quadrille.release.judge import PolicyError

    try:
        yield
    except PolicyError as error:
        if as_json:
            show.emit({"path": None, "files": [], "policy": error.verdict.as_dict()})
        else:
            show.show_verdict(error.verdict)
        raise


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
