"""What there is to say about a study: its counts, its frontier, its knee, and what to beware of. Never a seed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadrille.errors import QuadrilleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quadrille.study.choose import Choice
    from quadrille.study.results import Study


@dataclass(frozen=True)
class Overview:
    """A study on two axes; `points` and `front` belong to the candidates that have both scores."""

    study: Study
    axes: tuple[str, str]
    ids: NDArray[np.int64]
    points: NDArray[np.float64]
    front: NDArray[np.bool_]
    knee: Choice | None
    warnings: tuple[str, ...]

    @property
    def place(self) -> int | None:
        """The row of the knee among the points."""
        return None if self.knee is None else int((self.ids == self.knee.candidate).argmax())

    @property
    def shown(self) -> tuple[str, ...]:
        """The measures to show: the two axes, and beside the n-rule always what cannot be fooled."""
        exposed = [address for address in self.study.measures if kind(address) == "exposed"]
        beside = exposed if any(kind(address) == "small_cells" for address in self.axes) else []
        return tuple(dict.fromkeys((*self.axes, *beside)))

    def rows(self) -> list[dict[str, Any]]:
        """Return the candidates on the frontier: number, design and all scores."""
        return [_row(self.study, found) for found in self.study.frontier(*self.axes).to_dicts()]


def overview(study: Study, risk: str | None = None, loss: str | None = None) -> Overview:
    """Look at a study on two axes."""
    import numpy as np

    from quadrille.study.clouds import seed_warning
    from quadrille.study.frontier import non_dominated

    axes = (study.axis("risk", risk), study.axis("loss", loss))
    points, rows = study.objectives(axes)
    if not len(points):
        return Overview(study, axes, study.ids[rows], points, np.zeros(0, dtype=bool), None, ())
    told = seed_warning(study.clouds(*axes))
    warnings = (told,) if told else ()
    knee = study.pick("knee", risk=axes[0], loss=axes[1])
    return Overview(study, axes, study.ids[rows], points, non_dominated(points), knee, warnings)


def kind(address: str) -> str:
    """Return the name of the measure that an address names."""
    from quadrille.study.axes import kind_of

    return kind_of(address).name


def _row(study: Study, found: dict[str, Any]) -> dict[str, Any]:
    from quadrille.swap.random import RandomSwap

    names = ("id", "design", "method", "swap", "rate", "pairs", "same", "different", "other", "note")
    row = {name: found[name] for name in names}
    if row["pairs"] is None and isinstance(recipe := study.recipe(row["id"]), RandomSwap):
        row["pairs"] = recipe.count(study.header.records)
    return {**row, "scores": {address: found[address] for address in study.measures}}


def candidate_row(study: Study, candidate: int) -> dict[str, Any]:
    """Return one candidate: number, design and all scores."""
    place = int((study.ids == candidate).argmax())
    return _row(study, study.frame()[[place]].to_dicts()[0])


def constraints(row: dict[str, Any]) -> list[str]:
    """Name what a design asks for besides swap variables and rate."""
    parts = [f"{name} {row[name]}" for name in ("same", "different") if row[name]]
    return [*parts, *(row["other"].split(", ") if row["other"] else [])]


def reasons(study: Study) -> list[tuple[str, str, int]]:
    """Return why candidates could not be done: status, reason and how many, the most frequent first."""
    counts = study.counts()
    if not counts["infeasible"] + counts["failed"]:
        return []  # a table of all candidates would be large
    frame = study.frame()
    pairs = zip(frame["status"].to_list(), frame["reason"].to_list(), strict=True)
    found = Counter((status, reason or "") for status, reason in pairs if status in ("infeasible", "failed"))
    return [(status, reason, count) for (status, reason), count in found.most_common()]


def choice_document(choice: Choice) -> dict[str, object]:
    """Return a choice as plain values, its design opened up; the seed stays out."""
    return {**choice.as_dict(), "design": json.loads(choice.recipe.identity())}


def search_document(study: Study) -> dict[str, object]:
    """Return what a search found, for JSON."""
    why = [{"status": status, "reason": reason, "candidates": count} for status, reason, count in reasons(study)]
    document: dict[str, object] = {"study": str(study.path), "candidates": len(study), "counts": study.counts()}
    document |= {"reasons": why, "measures": list(study.measures)}
    try:
        seen = overview(study)
    except QuadrilleError as error:  # a search by risk or by loss alone has no frontier
        return {**document, "axes": None, "frontier": None, "knee": None, "warnings": [str(error)]}
    knee = None if seen.knee is None else choice_document(seen.knee)
    count = int(seen.front.sum())
    return {**document, "axes": seen.axes, "frontier": count, "knee": knee, "warnings": list(seen.warnings)}


def open_study(path: Path) -> Study:
    """Open a study."""
    import quadrille as qd

    return qd.Study(path)


def thinned(rows: Sequence[dict[str, Any]], most: int, keep: int | None) -> list[dict[str, Any]]:
    """Return at most about `most` rows, evenly spread, with both ends and the candidate `keep`."""
    if len(rows) <= most:
        return list(rows)
    kept = {place * (len(rows) - 1) // (most - 1) for place in range(most)}
    return [row for place, row in enumerate(rows) if place in kept or row["id"] == keep]
