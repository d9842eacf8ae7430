"""What the maker of a release should know before it goes out."""

from __future__ import annotations

from quadrille.data import Column, Data
from quadrille.delta import traces
from quadrille.io.frames.identifiers import can_be_rounded, suspicion
from quadrille.plan import Plan
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe
from quadrille.release.earlier import Again


class ReleaseWarning(UserWarning):
    """Something about a release that its maker should know."""


class GuessableSeedWarning(ReleaseWarning):
    """The seed is a number: whoever guesses it can undo the release."""


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
    return found + [ReleaseWarning(text) for text in traces(data, plan, public.columns)]


def _identifying(column: Column) -> ReleaseWarning:
    """Warn of a column that was not taken for an identifier, and might be one."""
    what = "Give it the role id in the codebook, so that it is left out, or recode it."
    if can_be_rounded(column):
        what = "Round it, or recode it into classes."
    return ReleaseWarning(
        f"Column {column.variable.name!r} of the public file {suspicion(column)}, so records can be matched with "
        f"other files. {what}"
    )
