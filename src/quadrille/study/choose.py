"""Which candidates deserve a look, and choosing one of them, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Flags, Floats, Ints
from quadrille.errors import InputError, ParameterError, QuadrilleError, bad_parameter
from quadrille.measure import measure_of, orient
from quadrille.params import one_of
from quadrille.recipe import Recipe
from quadrille.text import Shown

if TYPE_CHECKING:
    from quadrille.study.study import Study


Points = NDArray[np.float64]

_BLOCK = 512


def non_dominated(points: Points) -> Flags:
    """Tell which points no other point dominates: none is no larger everywhere and smaller somewhere.

    Equal points do not dominate one another. O(n log n) for two objectives.
    """
    if points.shape[1] == 2:
        return _non_dominated_pairs(points)
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    kept = np.zeros(len(distinct), dtype=bool)
    front = np.empty((0, points.shape[1]))
    # Sorted lexicographically, so a point can be dominated only by one before it.
    for start in range(0, len(distinct), _BLOCK):
        block = distinct[start : start + _BLOCK]
        alive = np.flatnonzero(~_dominated(block, front))
        alive = alive[~_dominated(block[alive], block[alive])]
        kept[start + alive] = True
        front = np.concatenate((front, block[alive]))
    return kept[place.ravel()]


def _dominated(points: Points, by: Points) -> Flags:
    """Tell which points some point of `by` dominates."""
    found = np.zeros(len(points), dtype=bool)
    for start in range(0, len(by), _BLOCK):
        other = by[None, start : start + _BLOCK, :]
        no_larger: Flags = np.all(other <= points[:, None, :], axis=2)
        smaller: Flags = np.any(other < points[:, None, :], axis=2)
        found |= np.any(no_larger & smaller, axis=1)
    return found


def _non_dominated_pairs(points: Points) -> Flags:
    if not len(points):
        return np.zeros(0, dtype=bool)
    order = np.lexsort((points[:, 1], points[:, 0]))
    x, y = points[order, 0], points[order, 1]
    first = np.concatenate(([True], x[1:] != x[:-1]))
    group = np.cumsum(first) - 1
    least = y[first]  # smallest y of each x, because y is sorted within x
    before = np.concatenate(([np.inf], np.minimum.accumulate(least)[:-1]))
    kept = np.empty(len(points), dtype=bool)
    kept[order] = (y == least[group]) & (y < before[group])
    return kept


def dominated_by(points: Points) -> Ints:
    """Count, for each point, the points that dominate it. O(n log n) for two objectives."""
    if points.shape[1] == 2:
        x = np.unique(points[:, 0], return_inverse=True)[1]
        y = np.unique(points[:, 1], return_inverse=True)[1]
        return kernels.count_dominating(x.astype(np.int64), y.astype(np.int64))
    counts = np.zeros(len(points), dtype=np.int64)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK, None, :]
        no_larger = (points[None, :, :] <= block).all(axis=2)
        counts[start : start + _BLOCK] = (no_larger & (points[None, :, :] < block).any(axis=2)).sum(axis=1)
    return counts


class Range(NamedTuple):
    """A candidate that wins risk + trade * loss for every trade-off between `low` and `high`."""

    point: int
    low: float
    high: float


def linear_winners(risk: NDArray[np.float64], loss: NDArray[np.float64]) -> list[Range]:
    """Return the winners of risk + trade * loss over all trade >= 0, with the breakpoints between them.

    They are the corners of the lower convex hull of the frontier; the first wins at trade 0 (least risk).
    """
    front = np.flatnonzero(non_dominated(np.stack((risk, loss), axis=1)))
    front = front[np.lexsort((front, loss[front], risk[front]))]
    corners: list[int] = []
    for i in front.tolist():
        if corners and (risk[corners[-1]], loss[corners[-1]]) == (risk[i], loss[i]):
            continue
        while len(corners) > 1 and not _turns(risk, loss, corners[-2], corners[-1], i):
            corners.pop()
        corners.append(i)
    breaks = [0.0]
    for one, other in pairwise(corners):
        breaks.append(float((risk[other] - risk[one]) / (loss[one] - loss[other])))
    return [Range(i, low, high) for i, low, high in zip(corners, breaks, [*breaks[1:], np.inf], strict=True)]


def _turns(risk: NDArray[np.float64], loss: NDArray[np.float64], a: int, b: int, c: int) -> bool:
    """Tell whether b lies strictly below the line from a to c."""
    cross = (risk[b] - risk[a]) * (loss[c] - loss[a]) - (loss[b] - loss[a]) * (risk[c] - risk[a])
    return bool(cross > 0)


def scaled(points: Points, front: Flags) -> Points:
    """Scale each objective so that the frontier's box is [0, 1]; an objective without spread becomes 0."""
    low, high = points[front].min(axis=0), points[front].max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    with np.errstate(over="ignore"):  # points far from a tiny box are far, however far
        return (points - low) / spread


def knee(points: Points) -> int:
    """Return the frontier point farthest below the chord between the two ends of the frontier, after scaling."""
    front = non_dominated(points)
    at = scaled(points, front)
    depth = np.where(front, 1 - at.sum(axis=1), -np.inf)
    return int(np.argmax(depth))


def nearest_ideal(points: Points, weights: NDArray[np.float64]) -> int:
    """Return the point with the least weighted distance to the ideal point, after scaling."""
    front = non_dominated(points)
    distance = np.hypot(*(np.sqrt(weights) * scaled(points, front)).T)
    return int(np.argmin(np.where(front, distance, np.inf)))


NOISE_SHARE = 0.5


class Cloud(NamedTuple):
    """One design over its seeds; `share` is the share of seeds in which it is on that seed's frontier."""

    design: int
    seeds: int
    mean_risk: float
    sd_risk: float
    mean_loss: float
    sd_loss: float
    share: float
    on_frontier: bool


def clouds(points: Floats, designs: Ints, seed_nos: Ints) -> list[Cloud]:
    """Return the cloud of each design. A design is on the frontier when its mean over seeds is.

    `seed_nos` are running numbers that tell the seeds apart, never the seeds.
    """
    numbers, place = np.unique(designs, return_inverse=True)
    count = np.bincount(place)
    mean = np.stack([np.bincount(place, weights=points[:, i]) / count for i in (0, 1)], axis=1)
    square = np.stack([np.bincount(place, weights=(points[:, i] - mean[place, i]) ** 2) for i in (0, 1)], axis=1)
    sd = np.sqrt(square / np.maximum(count - 1, 1)[:, None])
    on = np.zeros(len(numbers), dtype=np.int64)
    for seed_no in np.unique(seed_nos):
        rows = np.flatnonzero(seed_nos == seed_no)
        on += np.bincount(place[rows[non_dominated(points[rows])]], minlength=len(numbers))
    front = non_dominated(mean)
    return [
        Cloud(int(n), int(c), float(m[0]), float(s[0]), float(m[1]), float(s[1]), float(k / c), bool(f))
        for n, c, m, s, k, f in zip(numbers, count, mean, sd, on, front, strict=True)
    ]


def seed_warning(found: list[Cloud]) -> str:
    """Say in plain words when the frontier is seed noise; empty when it is not, or cannot be told."""
    if any(cloud.seeds < 2 for cloud in found):
        return (
            "Some designs have one seed only, so nobody can tell whether they are on the frontier by design or by "
            "luck. Search with several seeds."
        )
    front = [cloud for cloud in found if cloud.on_frontier]
    lucky = [cloud for cloud in front if cloud.share < NOISE_SHARE]
    if len(lucky) * 2 < len(front):
        return ""
    return (
        f"Of the {len(front)} designs on the frontier of the means, {len(lucky)} are on it in fewer than half of "
        "their seeds: much of this frontier is seed noise, not design. Compare designs by their means over seeds."
    )


SHORT_LIST = 3
PAIRWISE_AND_REGRESSION = ("r_ased", "c_ard", "v_ard", "ased_reg")
DISTANCES = ("hd1", "hd2", "hd3", "hd4")


def by_dohrmann(study: Study, rows: Ints, *, ignore_hd: bool = False) -> tuple[int, str]:
    """Return the place, among these rows of the study, of the run that the rule chooses, and why.

    The runs with the smallest pairwise and regression measures (mean of their ranks) make the short list; the smallest
    Hellinger distance among them wins, unless there is none or it is to be ignored.
    """
    ranked = [address for address in study.measures if _family(address) in PAIRWISE_AND_REGRESSION]
    if not ranked:
        raise InputError(
            f"The study {str(study.path)!r} has none of the measures that the rule 'dohrmann' looks at first: "
            f"{', '.join(PAIRWISE_AND_REGRESSION)}. Search with one of them."
        )
    scores = np.stack([_column(study, rows, address) for address in ranked], axis=1)
    complete = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(complete):
        raise InputError(f"No candidate of the study {str(study.path)!r} has a score for each of {', '.join(ranked)}.")
    ranks = np.mean([_ranks(column) for column in scores[complete].T], axis=0)
    order = complete[np.argsort(ranks, kind="stable")]
    first = f"the smallest mean rank on {', '.join(ranked)}"
    designs = study.designs_of(rows[complete])
    if designs > 1:
        first += f" (over {designs:,} designs, though the rule is meant for runs that differ by seed only)"
    distance = None if ignore_hd else next((a for a in study.measures if _family(a) in DISTANCES), None)
    values = None if distance is None else _column(study, rows[order[:SHORT_LIST]], distance)
    if values is None or not np.isfinite(values).any():
        why = "the Hellinger distance is ignored" if ignore_hd else "there is no Hellinger distance to go by"
        return int(order[0]), f"{first}; {why}"
    place = int(order[np.nanargmin(values)])
    return place, f"of the {len(values)} runs with {first}, the smallest {distance}"


def _family(address: str) -> str:
    return measure_of(address).name.removesuffix("_norm")


def _column(study: Study, rows: Ints, address: str) -> Floats:
    scores: Floats = study.scores[rows, study.measures.index(address)]
    return orient(address, scores)


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of their ranks."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


CLEARLY, HALF, MOSTLY = 0.25, 0.5, 0.9
"""Shares of the risk of the file as it is. A candidate that does not lower it by `CLEARLY` is never recommended."""
RECOMMENDED = ("gentle", "balanced", "safe")
RULES = (*RECOMMENDED, "knee", "least loss", "least risk", "linear", "ideal", "lexicographic", "dohrmann")


@dataclass(frozen=True, repr=False)
class Option(Shown):
    """A candidate with its two scores, lower is better."""

    candidate: int
    risk: float
    loss: float


@dataclass(frozen=True, repr=False)
class Pick(Shown):
    """What somebody picked and kept with the study."""

    candidate: int
    rule: str
    reason: str
    axes: tuple[str, str]


@dataclass(frozen=True, repr=False)
class Choice(Shown):
    """The candidate chosen: its recipe, why it was chosen, what it dominates and what its neighbours would cost."""

    candidate: int
    recipe: Recipe
    axes: tuple[str, str]
    rule: str
    risk: float
    loss: float
    reason: str
    dominates: int
    candidates: int
    left_out: int
    frontier: int
    safer: Option | None
    gentler: Option | None
    trades: tuple[float, float] | None
    beside: dict[str, float] = field(default_factory=dict[str, float])
    better: Option | None = None
    unswapped: float | None = None
    reduction: float | None = None

    @property
    def protects(self) -> bool:
        """Whether the risk is known to lie clearly below that of the file as it is."""
        return self.reduction is not None and self.reduction >= CLEARLY

    def explain(self) -> str:
        """Say in plain words why this one, what it dominates, and what the next ones would cost."""
        risk, loss = self.axes
        minimised = " + t * ".join(f"(1 - {axis})" if _is_turned(axis) else axis for axis in self.axes)
        lines = [
            *self._as_it_is(),
            f"Candidate {self.candidate}: {_told(risk, self.risk)}, {_told(loss, self.loss)}{self._beside()}.",
            f"Why: {self.reason}.",
            f"It dominates {self.dominates:,} of the other {self.candidates - 1:,} candidates; "
            f"the frontier has {self.frontier:,}.",
        ]
        if self.reduction is not None and not self.protects:
            lines.append(_not_recommended(self.axes[0]))
        lines += [self._better()] if self.better else [self._safer(), self._gentler()]
        if self.trades:
            low, high = self.trades
            span = f"from {low:.3g} to {high:.3g}" if np.isfinite(high) else f"of {low:.3g} or more"
            lines.append(f"It minimises {minimised} for every t {span}.")
        if self.left_out:
            lines.append(f"{self.left_out:,} candidates without both scores were left out.")
        return "\n".join(lines)

    def _as_it_is(self) -> list[str]:
        if self.unswapped is None:
            return []
        risk = self.axes[0]
        told = f"The file as it is: {_told(risk, self.unswapped)}, {self.axes[1]} 0"
        if self.reduction is None:
            return [f"{told}."]
        if _is_turned(risk):
            gains = f"{_percent(self.reduction)} of the gain in {risk} that the best candidate reaches"
            return [f"{told}. Candidate {self.candidate} makes {gains}."]
        does = "lowers" if self.reduction >= 0 else "raises"
        return [f"{told}. Candidate {self.candidate} {does} {risk} by {_percent(abs(self.reduction))}."]

    def _beside(self) -> str:
        return "".join(f", {address} {value:.6g}" for address, value in self.beside.items() if address not in self.axes)

    def _better(self) -> str:
        assert self.better is not None
        risk, loss = self.axes
        return (
            f"It is dominated: candidate {self.better.candidate} has {_told(risk, self.better.risk)} and "
            f"{_told(loss, self.better.loss)}."
        )

    def _safer(self) -> str:
        risk, loss = self.axes
        is_risk = measure_of(risk).side == "risk"
        if self.safer is None:
            return "No candidate is safer." if is_risk else f"No candidate has less {risk}."
        less, more = self.risk - self.safer.risk, self.safer.loss - self.loss
        other = "The next safer one" if is_risk else f"The next one with less {risk}"
        does = "raises" if _is_turned(risk) else "lowers"
        return f"{other}, {self.safer.candidate}, {does} {risk} by {less:.3g} and costs {more:.3g} in {loss}."

    def _gentler(self) -> str:
        if self.gentler is None:
            return "No candidate is gentler."
        less, more = self.loss - self.gentler.loss, self.gentler.risk - self.risk
        risk, loss, other = *self.axes, self.gentler.candidate
        does = "lowers" if _is_turned(risk) else "raises"
        return f"The next gentler one, {other}, saves {less:.3g} in {loss} and {does} {risk} by {more:.3g}."

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON; the seed stays out."""
        unknown = {name for name in ("unswapped", "reduction") if self.__dict__[name] is None}
        hidden = {"recipe", "trades", *unknown}
        values = {k: v for k, v in self.__dict__.items() if k not in hidden}
        for name in ("safer", "gentler", "better"):
            values[name] = None if values[name] is None else dict(values[name].__dict__)
        trades = None if self.trades is None else [t if np.isfinite(t) else None for t in self.trades]
        return {**values, "design": self.recipe.design_json(), "trades": trades, "explanation": self.explain()}


def _is_turned(address: str) -> bool:
    """Tell whether a measure is better when higher, so that its axis holds it with the sign turned."""
    return measure_of(address).direction == "higher"


def _told(address: str, value: float) -> str:
    """Name a measure with its value as scores have it, not as the axis does."""
    return f"{address} {-value if _is_turned(address) else value:.6g}"


def _not_recommended(risk: str) -> str:
    does = "improve" if _is_turned(risk) else "lower"
    return f"It is not recommended: it does not {does} {risk} of the file as it is by {_percent(CLEARLY)} or more."


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def reductions(points: Floats, unswapped: float | None, *, turned: bool) -> Floats | None:
    """Return by which share each candidate lowers the risk of the file as it is; None where that cannot be told.

    Of a risk that is better when higher there is no zero to go down to: then it is the share of the largest gain.
    """
    if unswapped is None:
        return None
    gained = unswapped - points[:, 0]
    whole = float(gained.max(initial=0.0)) if turned else unswapped
    return gained / whole if whole > 0 else None


def _recommend(rule: str, study: Study, axes: tuple[str, str], points: Floats, shares: Floats | None) -> int:
    """Return the place of the gentle, the balanced or the safe candidate, never one that does not clearly protect."""
    if shares is None:
        raise QuadrilleError(_no_reference(study, axes[0]))
    least = HALF if rule == "balanced" else CLEARLY
    enough = np.flatnonzero(shares >= least)
    if not len(enough):
        most = f"the safest one by {_percent(max(0.0, float(shares.max())))}"
        raise QuadrilleError(
            f"No candidate lowers {axes[0]} of the file as it is by {_percent(least)} or more; {most}, so none is "
            f"recommended as {rule}. Search further, with more records, other variables or designed swaps, or set a "
            "limit of your own (max_risk, max_loss)."
        )
    risk, loss, share = points[enough, 0], points[enough, 1], shares[enough]
    mostly = share >= MOSTLY
    if rule == "balanced":
        with np.errstate(divide="ignore"):
            per_loss = np.where(loss > 0, share / np.where(loss > 0, loss, 1.0), np.inf)
        order = np.lexsort((loss, risk, -per_loss))
    elif rule == "gentle":
        order = np.lexsort((risk, loss))
    else:
        order = np.lexsort((risk, loss, ~mostly)) if mostly.any() else np.lexsort((loss, risk))
    return int(enough[order[0]])


def _no_reference(study: Study, risk: str) -> str:
    if study.unswapped is None:
        return (
            f"The study {str(study.path)!r} was made by an earlier version and does not know the risk of the file as "
            "it is, so no candidate can be recommended. Search once more with the same job, which adds it, or set a "
            "limit (max_risk, max_loss) or name a rule."
        )
    if study.unswapped.get(risk) is None:
        return (
            f"{risk} has no value for the file as it is, in which no variable is swapped, so no candidate can be "
            "recommended by it. Name another measure of risk, set a limit (max_risk, max_loss) or name a rule."
        )
    return (
        f"By {risk} no candidate is better than the file as it is, or the file has no such risk, so none is "
        "recommended. Look at another measure of risk, or search further."
    )


def nothing_scored(axes: tuple[str, str]) -> str:
    """Say that a study has nothing to choose from."""
    return f"No candidate of the study has both {axes[0]} and {axes[1]}: none is done yet, or none can be done."


def choose(
    study: Study,
    axes: tuple[str, str],
    points: Floats,
    rows: Ints,
    rule: str | None,
    max_risk: float | None,
    max_loss: float | None,
    trade: float | None,
    weights: tuple[float, float] | None,
    ignore_hd: bool = False,
) -> Choice:
    """Choose by a rule among the candidates that have both scores and keep the limits."""
    rule = rule or _implied(max_risk, max_loss, trade, weights)
    one_of("pick", "rule", rule, RULES)
    _refuse_idle(rule, trade, weights)
    if not len(points):
        raise QuadrilleError(nothing_scored(axes))
    allowed = np.ones(len(points), dtype=bool)
    for column, (name, limit) in enumerate({"max_risk": max_risk, "max_loss": max_loss}.items()):
        if limit is not None:
            if not _is_number(limit) or not limit >= 0:
                raise bad_parameter("pick", name, "a number of 0 or more", limit)
            allowed &= points[:, column] <= (-limit if _is_turned(axes[column]) else limit)
    if not allowed.any():
        best = points.min(axis=0)
        least = [f"the {_least(axis)} is {abs(best[i]):.6g}" for i, axis in enumerate(axes)]
        raise QuadrilleError(
            f"No candidate keeps the limits; {' and '.join(least)}. Relax the limits or search further."
        )
    inside = np.flatnonzero(allowed)
    within = _within(axes, max_risk, max_loss)
    if rule == "dohrmann":
        found, reason = by_dohrmann(study, rows[inside], ignore_hd=ignore_hd)
    elif rule in RECOMMENDED:
        shares = reductions(points, study.unswapped_at(axes)[0], turned=_is_turned(axes[0]))
        found = _recommend(rule, study, axes, points[inside], None if shares is None else shares[inside])
        reason = _reason(rule, axes, trade, weights)
    else:
        found, reason = _apply(rule, points[inside], trade, weights), _reason(rule, axes, trade, weights)
    return described(study, axes, points, rows, int(inside[found]), rule, reason + within)


def _implied(
    max_risk: float | None, max_loss: float | None, trade: float | None, weights: tuple[float, float] | None
) -> str:
    if trade is not None:
        return "linear"
    if weights is not None:
        return "ideal"
    if max_risk is not None:
        return "least loss"
    return "least risk" if max_loss is not None else "balanced"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _refuse_idle(rule: str, trade: float | None, weights: tuple[float, float] | None) -> None:
    """Refuse what the rule does not look at: who gives it believes that it counts."""
    for name, value, owner in (("trade", trade, "linear"), ("weights", weights, "ideal")):
        if value is not None and rule != owner:
            raise ParameterError(f"The '{name}' parameter of pick is for the rule {owner!r}, not for {rule!r}.")


def _apply(rule: str, points: Floats, trade: float | None, weights: tuple[float, float] | None) -> int:
    if rule == "knee":
        return knee(points)
    if rule == "ideal":
        pair: tuple[float, ...] = (1.0, 1.0) if weights is None else tuple(weights)
        given = np.array([value if _is_number(value) else np.nan for value in pair], dtype=np.float64)
        if given.shape != (2,) or not np.isfinite(given).all() or (given < 0).any() or not given.any():
            raise ParameterError("The 'weights' parameter of pick must be two numbers of 0 or more, not both 0.")
        return nearest_ideal(points, given)
    if rule == "linear":
        if trade is None or not (_is_number(trade) and 0 <= trade < np.inf):
            raise ParameterError("The rule 'linear' needs 'trade', a number of 0 or more: risk + trade * loss.")
        order = np.lexsort((points[:, 1], points[:, 0] + trade * points[:, 1]))
        return int(order[0])
    first, second = (1, 0) if rule == "least loss" else (0, 1)
    return int(np.lexsort((points[:, second], points[:, first]))[0])


def _within(axes: tuple[str, str], max_risk: float | None, max_loss: float | None) -> str:
    given = zip(axes, (max_risk, max_loss), strict=True)
    limits = [
        f"{axis} {'at least' if _is_turned(axis) else 'at most'} {limit:g}"
        for axis, limit in given
        if limit is not None
    ]
    return f" with {' and '.join(limits)}" if limits else ""


def _reason(rule: str, axes: tuple[str, str], trade: float | None, weights: tuple[float, float] | None) -> str:
    risk, loss = axes
    better = "improves" if _is_turned(risk) else "lowers"
    reasons = {
        "gentle": f"least {loss} of those that clearly protect: it {better} {risk} by {_percent(CLEARLY)} or more",
        "balanced": f"most risk taken away per {loss}, of those that {better[:-1]} {risk} by {_percent(HALF)} or more",
        "safe": f"least {loss} of those that {better[:-1]} {risk} by {_percent(MOSTLY)} or more; if there is none, "
        + _least(risk),
        "knee": "the knee of the frontier, farthest from the line between its two ends after scaling both to 0-1",
        "ideal": f"closest to the ideal point, weights {weights or (1.0, 1.0)}, after scaling the frontier to 0-1",
        "linear": f"least {risk} + {trade} * {loss}",
        "least loss": _least(loss),
        "least risk": _least(risk),
        "lexicographic": f"{_least(risk)}, and among equals {_least(loss)}",
    }
    return reasons[rule]


def _least(address: str) -> str:
    return f"{'largest' if _is_turned(address) else 'least'} {address}"


def _exposed(study: Study, row: int) -> dict[str, float]:
    """Return what stands beside the n-rule: the scores of `exposed` that the study has."""
    columns = [i for i, address in enumerate(study.measures) if measure_of(address).name == "exposed"]
    return {study.measures[i]: float(study.scores[row, i]) for i in columns if np.isfinite(study.scores[row, i])}


def described(
    study: Study, axes: tuple[str, str], points: Floats, rows: Ints, place: int, rule: str, reason: str
) -> Choice:
    """Say of the candidate at a place what it dominates and what its neighbours on the frontier would cost."""
    front = np.flatnonzero(non_dominated(points))
    front = front[np.lexsort((points[front, 1], points[front, 0]))]
    here = points[place]
    safer = [i for i in front if points[i, 0] < here[0]]
    gentler = [i for i in front if points[i, 1] < here[1]]
    worse = (points >= here).all(axis=1) & (points > here).any(axis=1)
    wins = [w for w in linear_winners(points[:, 0], points[:, 1]) if (points[w.point] == here).all()]
    ids = study.ids[rows]
    unswapped = study.unswapped_at(axes)[0]
    shares = reductions(points, unswapped, turned=_is_turned(axes[0]))
    ahead = [i for i in front if (points[i] <= here).all() and (points[i] < here).any()]

    def option(found: list[int], last: bool) -> Option | None:
        if not found:
            return None
        i = found[-1 if last else 0]
        return Option(int(ids[i]), float(points[i, 0]), float(points[i, 1]))

    return Choice(
        candidate=int(ids[place]),
        recipe=study.recipe(int(ids[place])),
        axes=axes,
        rule=rule,
        risk=float(here[0]),
        loss=float(here[1]),
        reason=reason,
        dominates=int(worse.sum()),
        candidates=len(points),
        left_out=len(study) - len(points),
        frontier=len(front),
        safer=option(safer, last=True),
        gentler=option(gentler, last=False),
        trades=(wins[0].low, wins[0].high) if wins else None,
        beside=_exposed(study, int(rows[place])),
        better=option(ahead, last=False),
        unswapped=unswapped,
        reduction=None if shares is None else float(shares[place]),
    )
