"""`quadrille demo`: the whole path on the bundled file, from the original to a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quadrille.cli import show
from quadrille.cli.guard import warnings_told

if TYPE_CHECKING:
    from quadrille.io.bundle import Release

SWAPPED = "MS"
RATE = 0.05
MEASURES = {
    "hellinger": "Hellinger",
    "total_variation": "total\nvariation",
    "entropy_change": "entropy\nchange",
    "cramers_v_change": "change of\nCramér's V",
    "contingency_change": "change of\ncontingency",
}


def run(out: Path, seed: int | str | None, *, as_json: bool) -> None:
    """Inspect CPS-8d, swap one variable, score it, release it, and say where."""
    import quadrille as qd
    from quadrille.cli.profile import profile

    data = qd.datasets.cps8d()
    found = profile(data, "dataset:cps8d")
    recipe = qd.RandomSwap([SWAPPED], rate=RATE, seed=seed)
    others = [name for name in data.keys if name != SWAPPED]
    tables = [f"{name}({SWAPPED}*{other})" for other in others for name in MEASURES]
    whole = [name for name in MEASURES if not name.endswith(("_v_change", "contingency_change"))]
    with warnings_told(), show.working("Swapping, scoring and writing the release"):
        made = qd.release(data, recipe, out / "release", measures=[*whole, *tables], overwrite=True)
    if as_json:
        show.emit({"inspect": found.as_dict(), "release": made.as_dict()})
        return
    show.show_profile(found)
    show.show_account(made.account)
    _show_whole(made, whole)
    _show_matrix(made, others)
    _show_where(made)


def _show_whole(made: Release, whole: list[str]) -> None:
    show.title("Distortion of the full table of eight variables")
    rows = [(MEASURES[name].replace("\n", " "), show.number(made.scores[name])) for name in whole]
    show.grid(("measure", "value"), rows, numbers=(1,))


def _show_matrix(made: Release, others: list[str]) -> None:
    """Print one row per table of the swapped variable with another one, one column per measure."""
    show.title(f"Distortion of the tables with {SWAPPED}, the swapped variable")
    rows = [
        (f"{SWAPPED} x {other}", *(show.number(made.scores[f"{name}({SWAPPED}*{other})"]) for name in MEASURES))
        for other in others
    ]
    show.grid(("table", *MEASURES.values()), rows, numbers=range(1, 6))
    show.note("  A positive change of V or contingency: the association got weaker.")


def _show_where(made: Release) -> None:
    show.title("The release")
    public, confidential = made.public, made.confidential
    show.facts([("to publish", f"{public}/"), ("to lock away", f"{confidential}/ (it can undo the release)")])
    show.title("Next")
    show.facts(
        [
            ("read", f"{confidential / 'dossier.md'}"),
            ("", f"{public / 'methods.md'}"),
            ("try", "quadrille swap dataset:cps8d --swap Edu --rate 0.02 --same Sex"),
        ]
    )
