"""What the maker of a release should know before it goes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from quadrille.data import Column, Data
from quadrille.delta import traces
from quadrille.inspect import repeated_identifiers, weight_remarks
from quadrille.io.frames.identifiers import can_be_rounded, suspicion
from quadrille.plan import Plan
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe
from quadrille.release.earlier import Again

MUCH_EXPOSED = 0.02
"""A larger share of exposed records is warned of."""

FEW_SWAPPED = 10
"""A swap of fewer records is warned of."""
_KEPT_ORDER = (
    "The public rows stand in the order of the original, so records can be matched with other files by their position, "
    "and the swapped ones with them. Let the release shuffle them."
)


class ReleaseWarning(UserWarning):
    """Something about a release that its maker should know."""


class GuessableSeedWarning(ReleaseWarning):
    """The seed is a number: whoever guesses it can undo the release."""


class SubtractionWarning(ReleaseWarning):
    """Exact tables of two files of nearly the same persons can be subtracted."""


class ReleasedBeforeWarning(ReleaseWarning):
    """The data were released before by another plan: both files together tell more than each."""


def release_warnings(
    public: Data, recipe: Recipe, data: Data, plan: Plan, again: Again | None = None
) -> list[ReleaseWarning]:
    """Return what to warn of: a guessable seed, earlier releases, targets left alone, columns that give away."""
    found: list[ReleaseWarning] = []
    if not is_secret(recipe.parameters()["seed"]):
        found.append(
            GuessableSeedWarning(
                "The seed is a number that can be guessed, and with it the release can be undone. "
                "Leave the seed out, so that it is drawn from the operating system."
            )
        )
    if again is not None and again.repeats is None:
        found.append(ReleasedBeforeWarning(again.text()))
    alone = plan.details.rows.get("without partner", ()) if plan.details else ()
    if len(alone):
        stand = (
            "1 target has no partner and stands"
            if len(alone) == 1
            else f"{len(alone):,} targets have no partner and stand"
        )
        found.append(
            ReleaseWarning(
                f"{stand} in the public file as in the original. "
                "The dossier tells more; a coarser boundary or other targets may help."
            )
        )
    found += _of_small_cells(plan, data.n)
    size = recipe.parameters().get("size")
    if size in public.columns and size != public.weight:
        found.append(
            ReleaseWarning(
                f"Column {size!r} decided which records were likely targets and stays in the public file. "
                "If it is a score of risk, give it the role id in the codebook, so that it is left out."
            )
        )
    others = [public[name] for name in public.columns if name != public.weight]
    found += [_identifying(column) for column in others if column.variable.role != "weight" and suspicion(column)]
    of_file = (*repeated_identifiers([data[name] for name in data.columns]), *weight_remarks(public))
    found += map(ReleaseWarning, of_file)
    return found + [ReleaseWarning(text) for text in traces(data, plan, public.columns)]


def unjudged_warnings(plan: Plan, *, shuffled: bool) -> list[ReleaseWarning]:
    """Return what a policy has lines of its own for: how much is swapped, and the order of the rows."""
    found: list[ReleaseWarning] = []
    if len(plan.rows) < FEW_SWAPPED:
        found.append(
            ReleaseWarning(
                f"Only {len(plan.rows)} records take part in the swap: the public file is nearly the original. "
                "Ask for more, or relax the constraints."
            )
        )
    return found if shuffled else [*found, ReleaseWarning(_KEPT_ORDER)]


def _of_small_cells(plan: Plan, records: int) -> list[ReleaseWarning]:
    """Warn of a designed swap that leaves many exposed, and of kept tables that show small cells of their own."""
    facts = cast("Mapping[str, Any]", plan.details.facts if plan.details else {})
    found: list[ReleaseWarning] = []
    exposed, before = facts.get("exposed_after", 0), facts.get("exposed_before", 0)
    if exposed > MUCH_EXPOSED * records:
        found.append(
            ReleaseWarning(
                f"{exposed:,} of {records:,} records are still exposed, of {before:,} before: the file has too many "
                "small cells for this design. Merge categories or drop keys first, or keep fewer tables."
            )
        )
    if small := facts.get("small_kept_cells", 0):
        found.append(
            ReleaseWarning(
                f"The kept tables have {small:,} {'cell' if small == 1 else 'cells'} of few records, which anybody can "
                "read off the release as they are. Merge categories, or keep fewer tables."
            )
        )
    return found


def _identifying(column: Column) -> ReleaseWarning:
    """Warn of a column that was not taken for an identifier, and might be one."""
    what = "Give it the role id in the codebook, so that it is left out, or recode it."
    if can_be_rounded(column):
        what = "Round it, or recode it into classes."
    return ReleaseWarning(
        f"Column {column.variable.name!r} of the public file {suspicion(column)}, so records can be matched with "
        f"other files. {what}"
    )
