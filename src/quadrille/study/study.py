"""A study as it is read: candidates, scores, frontiers, choices, and runs that differ by seed only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, tidy
from quadrille.errors import InputError, MismatchError, QuadrilleError, unknown_name
from quadrille.measure import measure_of, orient
from quadrille.measure.base import Address, Side
from quadrille.plan import Plan
from quadrille.recipe import Recipe, find_method, method_of_file
from quadrille.score.evaluator import Evaluator
from quadrille.study.choose import (
    RECOMMENDED,
    Choice,
    Cloud,
    Pick,
    choose,
    clouds,
    described,
    dominated_by,
    linear_winners,
    non_dominated,
    nothing_scored,
)
from quadrille.study.designed import Gains, gains_of
from quadrille.study.store import STATUS, Header, Store, intact, locked
from quadrille.swap.designed import DesignedSwap
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

    from quadrille.chart import Figure
    from quadrille.params import Param


Floats = NDArray[np.float64]
ALL_KEYS, OF_TABLES = "all key variables", "the variables of its tables"
"""What a method moves that knows it by itself."""
_STATUSES = (None, *range(len(STATUS)))
_NEAR = 10
"""A candidate dominated by at most this many others is next to the frontier."""


class Reason(NamedTuple):
    """Why some candidates are infeasible or failed, what would help, and how many they are."""

    status: str
    reason: str
    hint: str
    candidates: int


class Study(Shown):
    """The results of a search. Reads its file; never holds the data.

    Example
    -------
    >>> import quadrille as qd
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
    >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
    >>> study
    Study('example', 8 candidates)
    >>> study.counts()["done"], study.measures
    (8, ('exposed', 'hellinger'))
    >>> study.ids.tolist(), study.scores.shape
    ([1, 2, 3, 4, 5, 6, 7, 8], (8, 2))
    >>> study.pick("least loss", max_risk=0.02).recipe.swap
    ('Edu',)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with closing(Store.open(self.path)) as store:
            self.header: Header = store.header

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r}, {len(self):,} candidates)"

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures of the study, costly ones last."""
        return self.header.measures + self.header.then

    @cached_property
    def _loaded(self) -> tuple[list[tuple[Any, ...]], dict[int, str]]:
        with closing(Store.open(self.path)) as store, intact(self.path):
            rows, designs = list(cast("Iterator[tuple[Any, ...]]", store.rows())), store.designs()
            known = {number for number, text in designs.items() if {"method", "version"} <= set(json.loads(text))}
            for _, design, _, status, _, _, _, *scores in rows:
                if design not in known or status not in _STATUSES or not all(map(_is_score, scores)):
                    raise ValueError
            return rows, designs

    @property
    def _rows(self) -> list[tuple[Any, ...]]:
        return self._loaded[0]

    @cached_property
    def _designs(self) -> dict[int, dict[str, Any]]:
        return {number: json.loads(text) for number, text in self._loaded[1].items()}

    @cached_property
    def scores(self) -> Floats:
        """Scores, one row per candidate and one column per measure; NaN where there is none."""
        values = [[np.nan if v is None else v for v in row[7:]] for row in self._rows]
        return np.array(values, dtype=np.float64).reshape(len(self._rows), len(self.measures))

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """The numbers of the candidates."""
        return np.array([row[0] for row in self._rows], dtype=np.int64)

    def frame(self, rows: Sequence[int] | None = None) -> pl.DataFrame:
        """Return one row per candidate: number, design, seed_no, status, scores.

        `seed_no` is a running number that tells the seeds of the study apart; it is never the seed. `rows` are the
        positions of some candidates; without it, all.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.frame().select("id", "swap", "pairs", "seed_no", "status").row(0)
        (1, 'Edu', 244, 1, 'done')
        """
        places = range(len(self)) if rows is None else rows
        shown: list[dict[str, object]] = []
        for place in places:
            number, design, seed_no, status, reason, seconds, note, *scores = self._rows[place]
            shown.append(
                {
                    "id": number,
                    **self.design(design),
                    "seed_no": seed_no,
                    "status": "pending" if status is None else STATUS[status],
                    "reason": reason and reason.replace("\n", " "),
                    **dict(zip(self.measures, scores, strict=True)),
                    "seconds": seconds,
                    "note": note,
                }
            )
        return tidy(shown)

    def design(self, number: int) -> dict[str, object]:
        """Return a design as columns of a table: method, swap variables, rate and pairs, constraints.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> design = study.design(1)
        >>> design["method"], design["swap"], design["pairs"], round(design["rate"], 4)
        ('RandomSwap', 'Edu', 244, 0.01)
        """
        parameters = dict(self._designs[number])
        shown: dict[str, object] = {"design": number, "method": parameters.pop("method")}
        parameters.pop("version")
        for name in ("swap", "same", "different"):
            shown[name] = written(parameters.pop(name, []))
        shown["swap"] = shown["swap"] or _moved(str(shown["method"]), parameters)
        shown["rate"] = _rate(parameters, self.header.records)
        shown["pairs"] = parameters.pop("pairs", None)
        shown["other"] = ", ".join(f"{name} {written(value)}" for name, value in _settings(parameters))
        return shown

    def settings(self) -> dict[int, dict[str, str]]:
        """Return the other parameters of each design in words: those that any design sets, defaults included.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.TargetedSwap, risk=[["age"]], similar=[[["hh_size"]]], near=["any", 5], seed=1)
        >>> study = qd.search(qd.datasets.island(), recipes, ["hellinger(ward*status)"], out="example", progress=False)
        >>> study.settings()[1]
        {'near': 'any', 'risk': 'age', 'similar': 'hh_size'}
        """
        given = {number: dict(_settings(self._designs[number])) for number in self.designs}
        named = {name for own in given.values() for name in own}
        found: dict[int, dict[str, str]] = {}
        for number, own in given.items():
            known: Mapping[str, Param] = {}
            with suppress(QuadrilleError):  # a method of one's own that is not at hand
                known = find_method(str(self._designs[number]["method"])).params()
            defaults = {name: known[name].default for name in known.keys() & named if not known[name].required}
            found[number] = {name: _in_words(value) for name, value in _settings(defaults | own)}
        return found

    def require(self, data: Data) -> None:
        """Refuse data other than those of the study: a candidate would be another release there."""
        if self.header.fingerprint != data.fingerprint:
            raise MismatchError(
                f"The study {str(self.path)!r} was made for other data. "
                "Use the file, codebook and weight that it was made with."
            )

    @property
    def designs(self) -> list[int]:
        """The numbers of the designs that have candidates."""
        return sorted({row[1] for row in self._rows})

    def designs_of(self, rows: NDArray[np.int64]) -> int:
        """Return how many designs the candidates at these rows have."""
        found: set[int] = {self._rows[row][1] for row in rows}
        return len(found)

    def axis(self, side: Side, given: str | None) -> str:
        """Return the measure of an axis: the one named, or the first of that side.

        One of the other side can be named only where the study has none of this side.
        """
        own = [address for address in self.measures if measure_of(address).side == side]
        if given is not None:
            if own and self._measure(given) not in own:
                raise InputError(
                    f"{given!r} is a measure of {measure_of(given).side}, not of {side}. "
                    f"The study {str(self.path)!r} has for {side}: {', '.join(own)}."
                )
            return self._measure(given)
        if own:
            return own[0]
        raise InputError(f"The study {str(self.path)!r} has no {side} measure. Search with one, or name the axes.")

    def _measure(self, given: str) -> str:
        if given not in self.measures:
            raise unknown_name("measure", given, self.measures, where=f"the study {str(self.path)!r}")
        return given

    def objectives(self, addresses: Sequence[str]) -> tuple[Floats, NDArray[np.int64]]:
        """Return the oriented scores of the candidates that have all of them, and their rows; others are left out."""
        columns = [self.measures.index(address) for address in addresses]
        finite = np.flatnonzero(np.isfinite(self.scores[:, columns]).all(axis=1))
        oriented: list[Floats] = []
        for address, column in zip(addresses, columns, strict=True):
            scores: Floats = self.scores[finite, column]
            oriented.append(orient(address, scores))
        return np.stack(oriented, axis=1), finite

    @cached_property
    def unswapped(self) -> dict[str, float | None] | None:
        """The scores of the file as it is, by measure; None in a study of an earlier version.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.unswapped
        {'exposed': 0.0150..., 'hellinger': 0.0}
        """
        with closing(Store.open(self.path)) as store, intact(self.path):
            return store.unswapped()

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The published tables that the search was told of: reports and releases look at them.

        >>> import quadrille as qd
        >>> recipes, data = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[244], seed=[1]), qd.datasets.cps8d()
        >>> measures = ["exposed", "hellinger"]
        >>> study = qd.search(data, recipes, measures, out="told", tables=["Age*Edu"], progress=False)
        >>> study.tables, study.measures
        ((('Age', 'Edu'),), ('exposed', 'hellinger', 'worst_cell(Age*Edu)'))
        """
        with closing(Store.open(self.path)) as store, intact(self.path):
            return store.tables()

    def compare_with(self, data: Data) -> None:
        """Score the file as it is where the study, made by an earlier version, does not know it; nothing is written.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(data, recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.compare_with(data)
        >>> [f"{risk:.4f}" for risk in study.unswapped_at(["exposed"])]
        ['0.0150']
        """
        self.require(data)
        if self.unswapped is None:
            self.__dict__["unswapped"] = unswapped_scores(data, self.measures, [Evaluator(data, self.measures)])

    def unswapped_at(self, addresses: Sequence[str]) -> tuple[float | None, ...]:
        """Return the scores of the file as it is, oriented like those of candidates; None where they are not known.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> [f"{value:.4f}" for value in study.unswapped_at(["exposed", "hellinger"])]
        ['0.0150', '0.0000']
        """
        known = self.unswapped or {}
        scores = [known.get(address) for address in addresses]
        return tuple(
            None if score is None else orient(address, score) for address, score in zip(addresses, scores, strict=True)
        )

    @property
    def picked(self) -> Pick | None:
        """What somebody picked and kept with `keep_pick`; None as long as nobody has.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.picked is None
        True
        """
        with closing(Store.open(self.path)) as store, intact(self.path):
            found = store.picked()
            if found is None:
                return None
            risk, loss = map(str, found["axes"])
            return Pick(int(found["candidate"]), str(found["rule"]), str(found["reason"]), (risk, loss))

    def keep_pick(self, choice: Choice) -> None:
        """Keep a choice as the one that was picked: reports propose it, and charts put a ring around it.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.keep_pick(study.pick(max_risk=0.0142))
        >>> study.picked.candidate, study.picked.reason
        (8, 'least hellinger with exposed at most 0.0142')
        """
        kept = {"candidate": choice.candidate, "rule": choice.rule, "reason": choice.reason, "axes": choice.axes}
        with closing(Store.open(self.path)) as store:
            store.keep_pick(kept)

    def recommended(self, risk: str | None = None, loss: str | None = None) -> dict[str, Choice]:
        """Return the candidates to show to those who set the limit: "gentle", "balanced" and "safe".

        Each lowers the risk of the file as it is by a quarter at least; one that does not exist is left out.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu", "MS", "Age"]], pairs=[2442, 12210], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="three", progress=False)
        >>> {word: choice.candidate for word, choice in study.recommended().items()}
        {'gentle': 3, 'safe': 3}

        No candidate here halves the risk, so none is balanced.
        """
        axes, points, rows = self._plane(risk, loss)
        if not len(points):
            return {}
        found: dict[str, Choice] = {}
        for word in RECOMMENDED:
            with suppress(QuadrilleError):
                found[word] = choose(self, axes, points, rows, word, None, None, None, None)
        return found

    def _plane(self, risk: str | None, loss: str | None) -> tuple[tuple[str, str], Floats, NDArray[np.int64]]:
        """Return two axes, and the objectives on them."""
        axes = (self.axis("risk", risk), self.axis("loss", loss))
        return axes, *self.objectives(axes)

    def frontier(self, risk: str | None = None, loss: str | None = None, *more: str) -> pl.DataFrame:
        """Return the candidates that no other dominates, in order of risk; any number of further objectives.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.frontier("exposed", "hellinger").select("id", "swap", "pairs").rows()
        [(8, 'MS', 488), (6, 'MS', 244), (5, 'MS', 244), (1, 'Edu', 244), (2, 'Edu', 244)]
        """
        addresses = [self.axis("risk", risk), self.axis("loss", loss), *map(self._measure, more)]
        points, rows = self.objectives(addresses)
        kept = rows[non_dominated(points)] if len(rows) else rows
        frame = self.frame(kept.tolist())
        return frame.sort([addresses[0], addresses[1]]) if len(frame) else frame

    def dominated_by(self, risk: str | None = None, loss: str | None = None) -> pl.DataFrame:
        """Return, for every candidate that has both scores, how many others dominate it; 0 is the frontier.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.dominated_by("exposed", "hellinger")["dominated_by"].to_list()
        [0, 0, 2, 2, 0, 0, 1, 0]
        """
        _, points, rows = self._plane(risk, loss)
        counts = dominated_by(points).tolist()
        return tidy([{"id": i, "dominated_by": n} for i, n in zip(self.ids[rows].tolist(), counts, strict=True)])

    def chart(self, risk: str | None = None, loss: str | None = None) -> Figure:
        """Draw the candidates by risk and loss, the picked one with a ring; see `quadrille.chart.frontier`.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.chart().to_dict()["title"]["text"]
        'Risk and loss of 8 candidate releases'
        """
        from quadrille.report.frontier_chart import draw_frontier, rows_of, scored

        axes = (self.axis("risk", risk), self.axis("loss", loss))
        found = scored(self, axes, rows_of(self))
        if not found:
            raise InputError(f"{nothing_scored(axes)} There is nothing to draw.")
        pick = self.picked
        return draw_frontier(self, axes, found, None if pick is None else pick.candidate)

    def trade_offs(self, risk: str | None = None, loss: str | None = None) -> pl.DataFrame:
        """Return who wins risk + t * loss for which t: one row per winner, from t = 0 (least risk) upwards.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.trade_offs("exposed", "hellinger").select("id", "from", "to").rows()[-1]
        (2, 0.2356..., inf)
        """
        _, points, rows = self._plane(risk, loss)
        ids, (x, y) = self.ids[rows].tolist(), points.T
        winners = linear_winners(x, y) if len(points) else []
        return tidy(
            [{"id": ids[w.point], "risk": x[w.point], "loss": y[w.point], "from": w.low, "to": w.high} for w in winners]
        )

    def near_frontier(self) -> list[int]:
        """Return the numbers of the candidates on the frontier or dominated by few others."""
        _, points, rows = self._plane(None, None)
        return self.ids[rows[dominated_by(points) <= _NEAR]].tolist()

    def pick(
        self,
        rule: str | None = None,
        *,
        risk: str | None = None,
        loss: str | None = None,
        max_risk: float | None = None,
        max_loss: float | None = None,
        trade: float | None = None,
        weights: tuple[float, float] | None = None,
        ignore_hd: bool = False,
    ) -> Choice:
        """Choose a candidate and say why.

        Parameters
        ----------
        rule : "balanced" (default: of the candidates that at least halve the risk of the file as it is, the largest
            reduction of risk per loss), "gentle" (least loss with the risk lowered by a quarter or more), "safe" (least
            loss with the risk lowered by nine tenths or more; where none reaches that, the least risk),
            "knee" (farthest below the line between the two ends of the frontier; on some frontiers that is a risky
            end, and the explanation says so), "least loss" (with `max_risk`), "least risk" (with `max_loss`), "linear"
            (least risk + trade * loss), "ideal" (least weighted distance to the ideal point), "lexicographic" (risk
            first, then loss), "dohrmann" (of the three runs with the smallest pairwise and regression measures the
            smallest Hellinger distance; `ignore_hd` leaves the distance out, as advised when many cells are small).
            That rule alone does without a measure of risk: then the two first measures of loss are the axes.
        risk, loss : the measures that are the axes; by default the first of either side.
        max_risk, max_loss : limits, in the units of the measure; of a measure of which more is better, such as
            `conditional_entropy`, the least value that is allowed.

        The limit is the agency's to set. Where none is given and no rule is named, a candidate that does not clearly
        protect is never chosen: `pick` refuses and says so.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> print(study.pick("knee", risk="exposed", loss="hellinger").explain())
        The file as it is: exposed 0.0150076, hellinger 0. Candidate 6 lowers exposed by 4.37 %.
        Candidate 6: exposed 0.0143524, hellinger 0.0191276.
        Why: the knee of the frontier, farthest from the line between its two ends after scaling both to 0-1.
        It dominates 2 of the other 7 candidates; the frontier has 5.
        It is not recommended: it does not lower exposed of the file as it is by 25 % or more.
        The next safer one, 8, lowers exposed by 0.000573 and costs 0.00852 in hellinger.
        The next gentler one, 5, saves 7.44e-05 in hellinger and raises exposed by 0.000123.
        It minimises exposed + t * hellinger for every t from 0.0673 to 0.111.
        """
        axes = self._axes_without_risk(loss) if rule == "dohrmann" and risk is None else None
        axes = axes or (self.axis("risk", risk), self.axis("loss", loss))
        points, rows = self.objectives(axes)
        return choose(self, axes, points, rows, rule, max_risk, max_loss, trade, weights, ignore_hd)

    def _axes_without_risk(self, loss: str | None) -> tuple[str, str] | None:
        """Return two axes of loss for a study that has no measure of risk."""
        if any(measure_of(address).side == "risk" for address in self.measures):
            return None
        first = self.axis("loss", loss)
        return first, next((address for address in self.measures if address != first), first)

    def choice(self, candidate: int, *, risk: str | None = None, loss: str | None = None) -> Choice:
        """Describe a candidate that was named, in the way of one that a rule has picked.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> choice = study.choice(3)
        >>> choice.reason, choice.better.candidate
        ('it was named, not chosen by a rule', 6)
        """
        axes, points, rows = self._plane(risk, loss)
        place = np.flatnonzero(self.ids[rows] == candidate)
        if not len(place):
            why = "has no score on both axes" if (self.ids == candidate).any() else "does not exist"
            raise InputError(f"Candidate {candidate} of the study {str(self.path)!r} {why}. Name another one.")
        return described(self, axes, points, rows, int(place[0]), "named", "it was named, not chosen by a rule")

    def clouds(self, risk: str | None = None, loss: str | None = None) -> list[Cloud]:
        """Return, per design, mean and spread over its seeds and the share of seeds on the frontier.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> [(cloud.design, cloud.seeds, cloud.share, cloud.on_frontier) for cloud in study.clouds()]
        [(1, 2, 1.0, True), (2, 2, 0.0, False), (3, 2, 1.0, True), (4, 2, 1.0, True)]
        """
        _, points, rows = self._plane(risk, loss)
        designs = np.array([self._rows[row][1] for row in rows], dtype=np.int64)
        seed_nos = np.array([self._rows[row][2] for row in rows], dtype=np.int64)
        return clouds(points, designs, seed_nos)

    def gains(self, risk: str | None = None, loss: str | None = None) -> Gains:
        """Compare the designed candidates with all others: how many they beat, and what the best of either side score.

        >>> import quadrille as qd
        >>> cloud = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race"]], pairs=[244, 2442], seed=1)
        >>> curve = qd.DesignedSwap.curve(prices=[0.03, 0.3], coins=[0], inferences=[0], effort=0.1, seed=1)
        >>> measures = ["exposed", "hellinger"]
        >>> study = qd.search(qd.datasets.cps8d(), [cloud, curve], measures, out="both", progress=False)
        >>> found = study.gains()
        >>> found.beaten, found.random, found.designed
        (4, 4, 4)
        """
        axes, points, rows = self._plane(risk, loss)
        methods = [self._designs[self._rows[row][1]]["method"] for row in rows]
        return gains_of(axes, points, np.array([method == DesignedSwap.__name__ for method in methods], dtype=bool))

    def recipe(self, candidate: int) -> Recipe:
        """Return the recipe of a candidate, with its seed.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> recipe = study.recipe(8)
        >>> recipe.swap, recipe.pairs, recipe.seed
        (('MS',), 488, 1)
        """
        with closing(Store.open(self.path)) as store, intact(self.path):
            design, seed = store.recipe_parts(candidate)
            text = json.dumps({**json.loads(design), "seed": seed})
        return Recipe.from_json(text)

    @property
    def source(self) -> dict[str, str | None]:
        """The data file, codebook, weight and levels of geography that the study was made with, where it knows."""
        with closing(Store.open(self.path)) as store:
            return store.source()

    def remember(
        self,
        file: str,
        codebook: str | None,
        weight: str | None,
        geography: Sequence[str] = (),
        roles: Mapping[str, object] | None = None,
        layout: str | None = None,
    ) -> None:
        """Keep the names of data file, codebook and columns with a role, so that a report finds them."""
        levels = json.dumps(list(geography)) if geography else None
        named = {**({"roles": json.dumps(roles)} if roles else {}), **({"layout": layout} if layout else {})}
        with closing(Store.open(self.path)) as store:
            store.remember({"file": file, "codebook": codebook, "weight": weight, "geography": levels, **named})

    def note(self, candidate: int, text: str) -> None:
        """Pin a note to a candidate.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="example", progress=False)
        >>> study.note(1, "for the board")
        >>> study.frame()["note"][0]
        'for the board'
        """
        with closing(Store.open(self.path)) as store:
            store.recipe_parts(candidate)
            store.note(candidate, text)
        self.__dict__.pop("_loaded", None)

    def forget_seeds(self, keep: Sequence[int]) -> int:
        """Overwrite the seeds in the study but those of the candidates named, and return how many were overwritten.

        After a release nobody needs the seeds of what was not released. Scores stay, plans cannot be drawn any more;
        designs share their seeds, so a seed that one of `keep` has is kept for all. Candidates without a result go.
        A copy of the file, and what a disk keeps of overwritten blocks, is not reached.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[244], seeds=5)
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["exposed", "hellinger"], out="done", progress=False)
        >>> study.forget_seeds(keep=[3])
        4
        """
        with locked(self.path):
            store = Store.open(self.path)
            try:
                return store.forget_seeds(keep)
            finally:
                store.finish()
                self.__dict__.pop("_loaded", None)

    def counts(self) -> dict[str, int]:
        """Count the candidates by status."""
        codes = [row[3] for row in self._rows]
        return {"pending": codes.count(None), **{name: codes.count(code) for code, name in enumerate(STATUS)}}

    def reasons(self) -> list[Reason]:
        """Return why candidates could not be done, and what would help, the most frequent reason first.

        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Race"]], pairs=[244, 8000], seed=range(2))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["hellinger"], out="too-many", progress=False)
        >>> [(why.candidates, why.status, why.reason) for why in study.reasons()]
        [(2, 'infeasible', '8,000 pairs cannot be drawn for swapping Race: the maximum is 7,080.')]
        """
        undone: list[tuple[str, str]] = [(STATUS[row[3]], row[4] or "") for row in self._rows if row[3]]
        reasons: list[Reason] = []
        for (status, text), candidates in Counter(undone).most_common():
            reason, _, hint = text.partition("\n")
            reasons.append(Reason(status, reason, hint, candidates))
        return reasons

    def runs(self, design: int | None = None) -> pl.DataFrame:
        """Return the scores of the runs of a design: a row per measure, a column "run N" per run, N its candidate.

        Columns `family` ("HD", "pairwise", "regression", "other"), `measure` and `better` come first; rows are in the
        order of the families. Runs without any score are left out. A study of several designs needs the number of one.

        Example
        -------
        >>> import quadrille as qd
        >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[244], seed=range(3))
        >>> study = qd.search(qd.datasets.cps8d(), recipes, ["hellinger"], out="three-runs", progress=False)
        >>> study.runs().columns
        ['family', 'measure', 'better', 'run 1', 'run 2', 'run 3']
        """
        known = self.designs
        if design is None and len(known) > 1:
            raise InputError(
                f"The study {str(self.path)!r} has {len(known):,} designs, and runs differ by seed only. "
                "Name one with design=, by its number in study.frame()."
            )
        wanted = known[0] if design is None else design
        if wanted not in known:
            raise InputError(
                f"The study {str(self.path)!r} has no design {design!r}. Its designs are in study.frame()."
            )
        runs = [row for row in self._rows if row[1] == wanted and any(score is not None for score in row[7:])]
        if not runs:
            raise InputError(f"No run of this design in the study {str(self.path)!r} has a score. Finish the search.")
        rows: list[dict[str, object]] = []
        for address in sorted(self.measures, key=lambda address: FAMILIES.index(family(address))):
            column = 7 + self.measures.index(address)
            scores = {f"{RUN}{row[0]}": row[column] for row in runs}
            better = measure_of(address).direction
            rows.append({"family": family(address), "measure": address, "better": better, **scores})
        return tidy(rows)


def unswapped_scores(data: Data, measures: Sequence[str], evaluators: Sequence[Evaluator]) -> dict[str, float | None]:
    """Score a plan that changes nothing."""
    values = [value for evaluator in evaluators for value in evaluator.values(Plan([], data=data))[0]]
    return dict(zip(measures, values, strict=True))


def _is_score(value: object) -> bool:
    return value is None or isinstance(value, float)


def _rate(parameters: Mapping[str, Any], n: int) -> float | None:
    """Return the share of records that take part, as far as the parameters tell."""
    if (pairs := parameters.get("pairs")) is not None:
        return 2 * pairs / n
    if (records := parameters.get("records")) is not None:
        return records / n
    if isinstance(targets := parameters.get("targets"), float):
        return 2 * targets  # every target with its partner
    rate = parameters.get("rate")
    return rate if isinstance(rate, float) else None


_SHOWN_APART = frozenset({"method", "version", "seed", "swap", "same", "different", "pairs"})


def _settings(parameters: Mapping[str, object]) -> list[tuple[str, object]]:
    """Return the parameters that have no column of their own, by name; a rate that is a number has one."""
    return sorted(
        (name, value)
        for name, value in parameters.items()
        if name not in _SHOWN_APART and not (name == "rate" and isinstance(value, float))
    )


def _in_words(value: object) -> str:
    """Write a value, with words for those that say nothing by themselves."""
    if value is None or value == ():
        return "none"
    return ("no", "yes")[value] if isinstance(value, bool) else written(value)


def written(value: object) -> str:
    """Write a value of a parameter in words: lists with plus signs, what is linked by its parent."""
    if isinstance(value, list):
        listed = cast("list[object]", value)
        return " + ".join(
            "*".join(cast("list[str]", each)) or "anybody" if isinstance(each, list) else str(each) for each in listed
        )
    if isinstance(value, dict):
        links = cast("dict[str, object]", value)
        return "; ".join(f"{parent}: {written(each)}" for parent, each in links.items())
    return str(value)


PAIRWISE = frozenset({"r_ased", "c_ard", "v_ard"})
REGRESSION = frozenset({"ased_reg"})
FAMILIES = ("HD", "pairwise", "regression", "other")
RUN = "run "
"""How the name of a run's column begins; the candidate's number follows."""


def family(address: str) -> str:
    """Return the family of a measure: "HD", "pairwise", "regression" or "other".

    >>> from quadrille.study.study import family
    >>> family("hd1_norm"), family("c_ard(A*B)"), family("ased_reg"), family("exposed")
    ('HD', 'pairwise', 'regression', 'other')
    """
    name = Address.parse(address).name
    if name.startswith("hd") and name[2:3].isdigit():
        return "HD"
    return "pairwise" if name in PAIRWISE else "regression" if name in REGRESSION else "other"


def _moved(method: str, parameters: Mapping[str, Any]) -> str:
    """Name what a method moves that has no list of swap variables: its own columns, or those it knows by itself."""
    if "tables" in parameters:
        return OF_TABLES
    known = method_of_file(method, where="the study")
    named = written(
        [name for p in known.params().values() if p.moves for name in p.columns(parameters.get(p.written, ()))]
    )
    return " + ".join(filter(None, (known.always_moves, named))) or ALL_KEYS
