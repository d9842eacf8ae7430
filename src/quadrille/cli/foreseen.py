"""The frontier that theory expects of the designs of a search. Nothing is drawn for it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quadrille.cli import show

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.recipe import Recipe
    from quadrille.theory.prediction import Prediction

MOST_SECONDS = 10.0
MOST_ROWS = 25
MOST_REASONS = 5


@dataclass(frozen=True)
class DesignAhead:
    """What is expected of a design: a value per measure, None where there is none, and why not."""

    design: str
    values: dict[str, float | None]
    basis: dict[str, str | None]
    reason: str
    on_frontier: bool


@dataclass(frozen=True)
class Foreseen:
    """The predictions of some designs; `axes` are the first risk and loss, None when the job lacks a side."""

    axes: tuple[str, str] | None
    designs: tuple[DesignAhead, ...]

    @property
    def frontier(self) -> list[DesignAhead]:
        """The designs that no other is expected to beat, by risk."""
        risk = "" if self.axes is None else self.axes[0]
        return sorted((each for each in self.designs if each.on_frontier), key=lambda each: each.values[risk] or 0.0)

    @property
    def missing(self) -> list[DesignAhead]:
        """The designs without a value on both axes."""
        return [each for each in self.designs if any(each.values[axis] is None for axis in self.axes or ())]


def foresee(data: Data, recipes: Sequence[tuple[str, Recipe]], measures: Sequence[str]) -> Foreseen:
    """Predict the measures of designs, as far as time allows; each comes with its name."""
    from quadrille.errors import QuadrilleError
    from quadrille.study.axes import beside_the_n_rule, sides
    from quadrille.theory.prediction import Predicted, Prediction, predict

    wanted = beside_the_n_rule(measures)
    both = sides(wanted)
    axes = None if both is None else (wanted[both[0]], wanted[both[1]])
    found: list[tuple[str, Prediction]] = []
    started = time.perf_counter()
    for name, recipe in recipes:
        if time.perf_counter() - started > MOST_SECONDS and found:
            break
        try:
            found.append((name, predict(data, recipe, wanted)))
        except QuadrilleError as error:
            found.append((name, Prediction({address: Predicted(None, reason=str(error)) for address in wanted})))
    best = _best([each for _, each in found], axes)
    return Foreseen(axes, tuple(_ahead(name, each, place in best) for place, (name, each) in enumerate(found)))


def _ahead(name: str, each: Prediction, on_frontier: bool) -> DesignAhead:
    reasons = dict.fromkeys(one.reason for one in each.found.values() if one.value is None)
    values = {address: one.value for address, one in each.found.items()}
    basis: dict[str, str | None] = {address: one.basis for address, one in each.found.items()}
    return DesignAhead(name, values, basis, "; ".join(reasons), on_frontier)


def _best(found: Sequence[Prediction], axes: tuple[str, str] | None) -> set[int]:
    """Return the places of the designs that no other is expected to beat."""
    import numpy as np

    from quadrille.study.axes import orient
    from quadrille.study.frontier import non_dominated

    rows: list[tuple[float, ...]] = []
    places: list[int] = []
    for place, each in enumerate(found):
        values = [(axis, each[axis]) for axis in axes or ()]
        point = tuple(orient(axis, value) for axis, value in values if value is not None)
        if len(point) == len(values) and point:
            rows.append(point)
            places.append(place)
    if not rows:
        return set()
    return {place for place, best in zip(places, non_dominated(np.array(rows)).tolist(), strict=True) if best}


def show_foreseen(seen: Foreseen, designs: int) -> None:
    """Print the predicted frontier, and how many designs have no prediction and why."""
    if seen.axes is None or not seen.designs:
        return
    missing, front = seen.missing, seen.frontier
    known = len(seen.designs) - len(missing)
    show.title(f"Predicted frontier of {seen.axes[0]} and {seen.axes[1]}, before any draw")
    if known:
        few = f", {designs:,} in all" if known < designs else ""
        best = f"{len(front):,} design{'s' * (len(front) > 1)}"
        show.note(f"  {best} that no other is expected to dominate, of {known:,} predicted{few}.")
        show.note("  Values are means over seeds: the luckiest of many draws do better.")
        _picture(seen)
        _table(_few(front), list(seen.designs[0].values))
        if any("rough" in each.basis.values() for each in front):
            show.note("  Where fewer than 100 records move, roots such as hellinger are rough; --json says which.")
        if len(front) > MOST_ROWS:
            show.note(f"  {MOST_ROWS} of the {len(front):,} are shown; --json lists all.")
    if missing:
        show.note("")
        show.note(f"  No prediction for {len(missing):,} design{'s' * (len(missing) > 1)}:")
        reasons = Counter(each.reason for each in missing).most_common(MOST_REASONS)
        show.facts([(f"{count:,}", reason) for reason, count in reasons])


def _picture(seen: Foreseen) -> None:
    """Draw the predicted designs in text, where there are several."""
    import numpy as np

    from quadrille.cli.scatter import DOMINATED, FRONTIER, scatter
    from quadrille.study.axes import orient

    assert seen.axes is not None
    known = [each for each in seen.designs if all(each.values[axis] is not None for axis in seen.axes)]
    if len(known) > 1:
        points = np.array([[orient(axis, each.values[axis] or 0.0) for axis in seen.axes] for each in known])
        show.note("")
        for line in scatter(points, np.array([each.on_frontier for each in known]), seen.axes).splitlines():
            show.note(f"  {line}")
        show.note(f"  {FRONTIER} expected frontier   {DOMINATED} expected to be dominated")
        show.note("")


def _table(front: Sequence[DesignAhead], measures: Sequence[str]) -> None:
    """Print designs; what all of them ask for is said once, above."""
    known = [address for address in measures if any(each.values[address] is not None for each in front)]
    parts = [each.design.split(", ") for each in front]
    shared = [part for part in parts[0] if len(parts) > 1 and all(part in others for others in parts)]
    if shared:
        show.note(f"  All have {', '.join(shared)}.")
    show.note("")
    rows = [
        (", ".join(part for part in own if part not in shared), *(show.number(each.values[a]) for a in known))
        for own, each in zip(parts, front, strict=True)
    ]
    show.grid(("design", *known), rows, numbers=range(1, len(known) + 1))


def _few(front: Sequence[DesignAhead]) -> list[DesignAhead]:
    """Return some members, evenly spread, with both ends."""
    if len(front) <= MOST_ROWS:
        return list(front)
    return [front[place * (len(front) - 1) // (MOST_ROWS - 1)] for place in range(MOST_ROWS)]
