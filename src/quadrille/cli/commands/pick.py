"""`quadrille pick`: choose a candidate of a study, and say why."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Annotated

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.cli.inputs import (
    check_new,
    load,
    open_study,
    published_tables,
    refuse_sources,
    release_command,
    source_of,
)
from quadrille.errors import OutputError, ParameterError, QuadrilleError

if TYPE_CHECKING:
    from quadrille.score.published import TableChanges
    from quadrille.study.choose import Choice
    from quadrille.study.study import Study

CRITERIA = (
    "gentle",
    "balanced",
    "safe",
    "knee",
    "least-loss",
    "least-risk",
    "linear",
    "ideal",
    "lexicographic",
    "dohrmann",
)


def pick(
    study: opt.StudyFile,
    criterion: Annotated[
        str | None,
        opt.value("WORD", f"{', '.join(CRITERIA)}. [default: what a limit implies; without one, show three]"),
    ] = None,
    max_risk: Annotated[float | None, opt.value("NUMBER", "Least loss with at most this risk.")] = None,
    max_loss: Annotated[float | None, opt.value("NUMBER", "Least risk with at most this loss.")] = None,
    trade: Annotated[float | None, opt.value("NUMBER", "Least risk + NUMBER * loss.")] = None,
    weights: Annotated[str | None, opt.value("A,B", "Nearest to the ideal point, risk weighted A and loss B.")] = None,
    ignore_hd: Annotated[
        bool,
        opt.flag("--ignore-hd", "With --criterion dohrmann: many cells are small, leave HD out.", panel=opt.RARELY),
    ] = False,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    tables: opt.Tables = None,
    note: Annotated[str | None, opt.value("TEXT", "Pin this note to the candidate.")] = None,
    save_recipe: opt.SaveRecipe = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Choose a candidate and say why; without a limit show three to choose from."""
    from quadrille.cli import study_show
    from quadrille.cli.study_show import candidate_row, choice_document, overview
    from quadrille.io.atomic import new_file

    check_new(save_recipe, overwrite=overwrite, source=str(study))
    rule, pair = _checked(criterion, trade, weights)
    known = open_study(study)
    refuse_sources(known, save_recipe)
    if ignore_hd and rule != "dohrmann":
        raise ParameterError("--ignore-hd goes with --criterion dohrmann.")
    if (criterion, max_risk, max_loss, trade, weights) == (None,) * 5:
        needs: dict[str, object] = {"--tables": tables, "--note": note, "--save-recipe": save_recipe}
        _show_three(known, risk, loss, needs, as_json=as_json)
        return
    limits = {"max_risk": max_risk, "max_loss": max_loss}
    chosen = known.pick(rule, risk=risk, loss=loss, **limits, trade=trade, weights=pair, ignore_hd=ignore_hd)
    changes = _table_changes(known, chosen, tables)
    if save_recipe is not None:
        with new_file(save_recipe, (chosen.recipe.to_json() + "\n").encode(), private=True):
            pass
    if note is not None:
        known.note(chosen.candidate, note)
    _keep(known, chosen)
    row, warnings = candidate_row(known, chosen.candidate), overview(known, *chosen.axes).warnings
    if as_json:
        saved = save_recipe and str(save_recipe)
        written = {"note": row["note"], "save_recipe": saved, "warnings": list(warnings)}
        written["tables"] = changes and changes.as_dict()
        show.emit({"study": str(study), **choice_document(chosen), "scores": row["scores"], **written})
    else:
        study_show.show_choice(chosen, row, warnings, release_command(known), known.unswapped, changes)


def _show_three(study: Study, risk: str | None, loss: str | None, needs: dict[str, object], *, as_json: bool) -> None:
    """Show a gentle, a balanced and a safe candidate: which one is right is not the software's to say."""
    from quadrille.cli.study_show import compared_document, overview, show_recommended, show_warnings
    from quadrille.study.choose import nothing_scored

    for option, value in needs.items():
        if value is not None:
            raise ParameterError(
                f"{option} needs a choice: set a limit (--max-risk, --max-loss) or name a --criterion."
            )
    seen = overview(study, risk, loss)
    if not len(seen.points):
        raise QuadrilleError(nothing_scored(seen.axes))
    if as_json:
        told = "Nothing was picked: the limit is the agency's to set."
        document = {"study": str(study.path), "axes": seen.axes, **compared_document(seen), "told": told}
        show.emit({**document, "warnings": list(seen.warnings)})
    else:
        show_recommended(seen)
        show_warnings(seen.warnings)


def _table_changes(study: Study, chosen: Choice, tables: list[str] | None) -> TableChanges | None:
    """Return what the candidate does to the published tables, where any are named; that needs the data of the study.

    The choice itself needs no data: where they cannot be read and nobody named tables in this call, that is reported.
    """
    import quadrille as qd

    published = published_tables(tables, study)
    if not published:
        return None
    try:
        data = load(*source_of(study, None, None, None))
        study.require(data)
    except QuadrilleError as error:
        if tables:
            raise
        tell(f"the published tables are not shown, because the data of the study cannot be used: {error}")
        return None
    return qd.table_changes(data, chosen.recipe.plan(data), published)


def _keep(study: Study, chosen: Choice) -> None:
    """Keep the choice with the study; one that cannot be written to still has its choice shown."""
    try:
        study.keep_pick(chosen)
    except OutputError as error:
        tell(f"the choice is not kept with the study: {error}")


def _checked(
    criterion: str | None, trade: float | None, weights: str | None
) -> tuple[str | None, tuple[float, float] | None]:
    """Check the criterion and what goes with it."""
    if criterion is not None and criterion not in CRITERIA:
        raise ParameterError(f"--criterion must be one of {', '.join(CRITERIA)}. Got {criterion!r}.")
    for option, value, needs in (("--trade", trade, "linear"), ("--weights", weights, "ideal")):
        if value is not None and criterion not in (None, needs):
            raise ParameterError(f"{option} goes with --criterion {needs}, not with --criterion {criterion}.")
    if trade is not None and weights is not None:
        raise ParameterError("Give --trade or --weights, not both: they are two criteria.")
    if trade is not None and not (isfinite(trade) and trade >= 0):
        raise ParameterError(f"--trade must be a number of 0 or more. Got {trade}.")
    return None if criterion is None else criterion.replace("-", " "), _weights(weights)


def _weights(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        risk, loss = map(float, text.split(","))
        usable = isfinite(risk + loss) and min(risk, loss) >= 0 and max(risk, loss) > 0
    except ValueError:
        usable = False
        risk = loss = 0.0
    if not usable:
        raise ParameterError("--weights must be two numbers of 0 or more, not both 0, as in 2,1.")
    return risk, loss
