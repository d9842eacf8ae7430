"""What designed swaps gain over the random ones of the same study, in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quadrille.study.results import Study

    Points = NDArray[np.float64]


@dataclass(frozen=True)
class Gains:
    """Risk and loss of telling candidates, as (risk, loss); None where there is no such candidate."""

    axes: tuple[str, str]
    random: int
    designed: int
    beaten: int
    gentlest_random: tuple[float, float] | None
    at_no_more_loss: tuple[float, float] | None
    safest_random: tuple[float, float] | None
    at_no_more_risk: tuple[float, float] | None
    safest_designed: tuple[float, float] | None

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)

    @property
    def told(self) -> list[tuple[str, str]]:
        """The numbers as names and sentences."""
        rows = [
            ("beaten", f"{self.beaten:,} of {self.random:,} random candidates, by one of {self.designed:,} designed")
        ]
        if self.gentlest_random:
            rows.append(("gentlest", self._beside(self.gentlest_random, self.at_no_more_loss, "loss")))
        if self.safest_random:
            rows.append(("safest", self._beside(self.safest_random, self.at_no_more_risk, "risk")))
        if self.safest_designed:
            rows.append(("beyond", f"the safest designed swap has {self._point(self.safest_designed)}"))
        return rows

    def _beside(self, one: tuple[float, float], other: tuple[float, float] | None, what: str) -> str:
        told = "none" if other is None else self._point(other)
        return f"random {self._point(one)}; designed at no more {what}: {told}"

    def _point(self, at: tuple[float, float]) -> str:
        return f"{self.axes[0]} {at[0]:.5f}, {self.axes[1]} {at[1]:.4f}"


def gains(study: Study, axes: tuple[str, str]) -> Gains:
    """Compare the designed candidates of a study with the others, on two axes."""
    import numpy as np

    from quadrille.study.frontier import dominated_by

    points, rows = study.objectives(axes)
    methods = study.frame(rows.tolist())["method"].to_list() if len(rows) else []
    ours = np.array([method == "DesignedSwap" for method in methods], dtype=bool)
    random, designed = points[~ours], points[ours]
    beaten = sum(int(dominated_by(np.vstack((one[None], designed)))[0] > 0) for one in random)
    gentle, safe = _least(random, 1), _least(random, 0)
    return Gains(
        axes=axes,
        random=len(random),
        designed=len(designed),
        beaten=beaten,
        gentlest_random=gentle,
        at_no_more_loss=None if gentle is None else _least(designed[designed[:, 1] <= gentle[1]], 0),
        safest_random=safe,
        at_no_more_risk=None if safe is None else _least(designed[designed[:, 0] <= safe[0]], 1),
        safest_designed=_least(designed, 0),
    )


def _least(points: Points, column: int) -> tuple[float, float] | None:
    """Return the point with the least value in a column; of equal ones the least in the other."""
    if not len(points):
        return None
    risk, loss = min(points.tolist(), key=lambda point: (point[column], point[1 - column]))
    return risk, loss
