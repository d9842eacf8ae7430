"""The runs of one source, over several processes, and their analysis: published models, and ours by elimination."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, product

import numpy as np

from quadrille.data import Data
from quadrille.papers.dohrmann_2009.files import (
    METHODS,
    OUTCOMES,
    RATES,
    SHAPES,
    SIZES,
    Method,
    Scenario,
    Source,
    file_for,
    scenarios,
    settings,
)
from quadrille.papers.reproduction import Floats, published
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study.workers import end_with, process_pool

Make = Callable[[tuple[str, ...], float, Method, int], Recipe]
Addresses = Callable[[Source, Scenario], list[str]]
Done = Callable[[int], None]

NAMES = ("HD1", "HD2", "R_ASED", "C_ARD", "ASED_REG")
"""The measures of the study, in the order of the last axis of a table."""
MOST_LEVELS = 32
"""Nominal variables up to this many categories enter the correlations: the usual limit leaves one of 32 out."""


@dataclass(frozen=True)
class Runs:
    """Scores of one source: `values` by (size, scenario, rate, method, seed, measure), NaN where undefined.

    `reasons` counts the undefined scores by what is said of them.
    """

    source: Source
    values: Floats
    reasons: dict[str, int]

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return self.values.shape[4]

    @property
    def means(self) -> Floats:
        """Means over seeds: (size, scenario, rate, method, measure); NaN where a seed is undefined."""
        return self.values.mean(axis=4)

    @property
    def cv(self) -> Floats:
        """Coefficients of variation over seeds, in percent; NaN where a seed is undefined or all are 0."""
        means = self.means
        spread = self.values.std(axis=4, ddof=1)
        return 100 * np.divide(spread, means, out=np.full_like(means, np.nan), where=means > 0)


@dataclass(frozen=True)
class Task:
    """What a worker does at a time: one scenario on one file, both rates, both methods, all seeds."""

    source: Source
    size: int
    scenario: int
    seeds: int
    make: Make
    addresses: Addresses


def controlled(swap: tuple[str, ...], targets: float, method: Method, seed: int) -> Recipe:
    """Return the recipe of a run."""
    from quadrille.swap.controlled import ControlledSwap

    return ControlledSwap(swap, targets=targets, method=method, seed=seed)


def utility(source: Source, scenario: Scenario) -> list[str]:
    """Return the addresses of the five measures for a scenario."""
    every = "*".join((*scenario.variables, *OUTCOMES[source]))
    crossed = "*".join(scenario.variables)
    return [
        f"hd1({crossed})",
        f"hd2({crossed})",
        f"r_ased({every}, max_levels={MOST_LEVELS})",
        f"c_ard({crossed})",
        "ased_reg",
    ]


def run_source(
    source: Source,
    seeds: int,
    done: Done | None = None,
    *,
    workers: int = 2,
    sizes: Sequence[int] = SIZES,
    make: Make = controlled,
    addresses: Addresses = utility,
) -> Runs:
    """Draw and score every run of a source; `done` hears of every scenario and file, with its number of runs.

    `sizes` are the files to run, all by default; the others stay undefined.
    """
    tasks = [
        Task(source, size, scenario, seeds, make, addresses)
        for size in range(len(SIZES))  # the largest file first, so that no worker is left with it at the end
        if SIZES[size] in sizes
        for scenario in range(len(SHAPES))
    ]
    values = np.full((len(SIZES), len(SHAPES), len(RATES), len(METHODS), seeds, len(NAMES)), np.nan)
    reasons: Counter[str] = Counter()
    for task, (scores, said) in zip(tasks, _results(tasks, workers), strict=True):
        values[task.size, task.scenario] = scores
        reasons.update(said)
        if done:
            done(len(RATES) * len(METHODS) * seeds)
    return Runs(source, values, dict(reasons))


def work(task: Task) -> tuple[Floats, Counter[str]]:
    """Draw and score the runs of a task: (rate, method, seed, measure), and why any score is undefined."""
    scenario = scenarios(task.source)[task.scenario]
    data = file_for(task.source, SIZES[task.size], scenario)
    evaluator = Evaluator(data, task.addresses(task.source, scenario))
    found = np.empty((len(RATES), len(METHODS), task.seeds, len(NAMES)))
    said: Counter[str] = Counter()
    for r, rate in enumerate(RATES):
        for m, method in enumerate(METHODS):
            for seed in range(task.seeds):
                recipe = task.make(scenario.variables, rate, method, seed)
                found[r, m, seed] = _scores(evaluator, data, recipe, said)
    return found, said


def _scores(evaluator: Evaluator, data: Data, recipe: Recipe, said: Counter[str]) -> Floats:
    scores = evaluator.score(recipe.plan(data))
    for name, (address, value) in zip(NAMES, scores.items(), strict=True):
        if value is None:
            said[f"{name}: {scores.note(address)}"] += 1
    return np.array([np.nan if value is None else value for value in scores.values()])


def _results(tasks: list[Task], workers: int) -> Iterator[tuple[Floats, Counter[str]]]:
    """Work through the tasks in this process, or in workers that end with it."""
    if workers == 1:
        yield from map(work, tasks)
        return
    with process_pool(workers, end_with, (), work) as send:
        for result in [send(task) for task in tasks]:
            yield result()


# The paper's analysis: what a run's loss, and its spread over seeds, depend on.

Factors = Mapping[str, tuple[tuple[str, ...], Floats]]
"""By name of the factor: the names of its columns, and the columns, (record, column)."""
Term = tuple[str, ...]

ALPHA = 0.05
INTERCEPT = "intercept"
_RANK = 1e-9
_LEAST = 3
"""Fewer responses than this cannot be told from one another by any term."""


@dataclass(frozen=True)
class Fit:
    """A model after elimination: coefficients by column name, and what was dropped with its p-value.

    `aliased` are terms that the data cannot tell from those before them.
    """

    terms: tuple[Term, ...]
    coefficients: dict[str, float]
    errors: dict[str, float]
    r_square: float
    n: int
    dropped: dict[Term, float]
    aliased: tuple[Term, ...]


def all_terms(factors: tuple[str, ...]) -> list[Term]:
    """Return the factors, then all products of two.

    >>> from quadrille.papers.dohrmann_2009.run import all_terms
    >>> all_terms(("rate", "size"))
    [('rate',), ('size',), ('rate', 'size')]
    """
    return [(name,) for name in factors] + list(combinations(factors, 2))


def columns_of(term: Term, factors: Factors) -> tuple[list[str], Floats]:
    """Return the names and the columns of a term: "rate x size 8153" and so on."""
    names, values = factors[term[0]]
    labels = list(names)
    for factor in term[1:]:
        others, more = factors[factor]
        labels = [f"{a} x {b}" for a in labels for b in others]
        values = (values[:, :, None] * more[:, None, :]).reshape(len(values), -1)
    return labels, values


def eliminate(response: Floats, factors: Factors, terms: list[Term], alpha: float = ALPHA) -> Fit:
    """Fit all terms, then drop the one with the largest p-value above `alpha` that may go, until none is left."""
    if len(response) < _LEAST:
        return Fit((), {}, {}, 0.0, len(response), {}, tuple(terms))
    system = _System(response, factors, terms)
    kept, aliased = system.independent(terms)
    dropped: dict[Term, float] = {}
    while True:
        model = _Model(system, kept)
        p = {term: model.p_value(term) for term in kept if not _needed(term, kept)}
        worst = max(p, key=p.__getitem__, default=None)
        if worst is None or p[worst] <= alpha:
            return model.fit(dropped, tuple(aliased))
        dropped[worst] = p[worst]
        kept = [term for term in kept if term != worst]


def _needed(term: Term, terms: list[Term]) -> bool:
    """Tell whether a product that is still there contains the term."""
    return any(set(term) < set(other) for other in terms)


class _System:
    """Response and all columns, each of length 1, turned into a triangle: every model is fitted from that."""

    def __init__(self, response: Floats, factors: Factors, terms: list[Term]) -> None:
        blocks = [([INTERCEPT], np.ones((len(response), 1))), *(columns_of(term, factors) for term in terms)]
        self.labels = [label for labels, _ in blocks for label in labels]
        x = np.hstack([values for _, values in blocks])
        self.scale = np.maximum(np.linalg.norm(x, axis=0), np.finfo(float).tiny)
        triangle = np.linalg.qr(np.hstack((x / self.scale, response[:, None])))[1]
        self.x, self.y = triangle[:, :-1], triangle[:, -1]
        self.n = len(response)
        self.total = float(((response - response.mean()) ** 2).sum())
        ends = list(accumulate(len(labels) for labels, _ in blocks))
        self.places = {term: list(range(a, b)) for term, a, b in zip(terms, ends[:-1], ends[1:], strict=True)}

    def independent(self, terms: list[Term]) -> tuple[list[Term], list[Term]]:
        """Split the terms into those that add as many dimensions as they have columns, and the others."""
        kept: list[Term] = []
        left: list[Term] = []
        basis = self.x[:, :1]
        for term in terms:
            columns = self.x[:, self.places[term]]
            for _ in range(2):  # the second time removes what rounding left
                columns = columns - basis @ (basis.T @ columns)
            own, size, _ = np.linalg.svd(columns, full_matrices=False)
            if size[-1] > _RANK and basis.shape[1] + len(size) < self.n:
                kept.append(term)
                basis = np.hstack((basis, own))
            else:
                left.append(term)
        return kept, left


class _Model:
    """One least-squares fit."""

    def __init__(self, system: _System, terms: list[Term]) -> None:
        self._system, self._terms = system, terms
        self._columns = [0, *(place for term in terms for place in system.places[term])]
        q, r = np.linalg.qr(system.x[:, self._columns])
        self._b = np.linalg.solve(r, q.T @ system.y)
        rest = system.y - q @ (q.T @ system.y)
        self._residual = float(rest @ rest)
        self._df = system.n - len(self._columns)
        inverse = np.linalg.solve(r, np.eye(len(r)))
        self._cov = inverse @ inverse.T

    def p_value(self, term: Term) -> float:
        """Return the p-value of the F test that all coefficients of a term are 0."""
        from scipy.special import fdtrc

        place = [self._columns.index(column) for column in self._system.places[term]]
        b, cov = self._b[place], self._cov[np.ix_(place, place)]
        explained = float(b @ np.linalg.solve(cov, b)) / len(b)
        noise = self._residual / self._df
        if noise == 0:
            return 1.0 if explained == 0 else 0.0
        return float(fdtrc(float(len(b)), float(self._df), explained / noise))

    def fit(self, dropped: dict[Term, float], aliased: tuple[Term, ...]) -> Fit:
        """Return the result in the units of the columns."""
        system = self._system
        labels = [system.labels[i] for i in self._columns]
        scale = system.scale[self._columns]
        errors = np.sqrt(np.diag(self._cov) * self._residual / self._df) / scale
        return Fit(
            tuple(self._terms),
            dict(zip(labels, map(float, self._b / scale), strict=True)),
            dict(zip(labels, map(float, errors), strict=True)),
            1 - self._residual / system.total if system.total else 1.0,
            system.n,
            dropped,
            aliased,
        )


FACTORS = ("cells", "rate", "standard", "size", "variables", "nominal")
LEVELS = {"size": tuple(f"size {size}" for size in SIZES[:-1])}
"""Names of the columns of a factor that has several."""
FILES = {"values": "dohrmann_tables_A1_A3.csv", "cv": "dohrmann_tables_A2_A4.csv"}
PUBLISHED_CV = {
    "HD1": (34.2, 5.2, 186.3),
    "HD2": (42.4, 5.3, 182.4),
    "R_ASED": (24.9, 4.3, 68.3),
    "C_ARD": (61.0, 9.6, 178.3),
    "ASED_REG": (29.1, 6.0, 91.4),
}
"""Coefficients of variation in percent: mean, least, largest."""

_R_SQUARE, _DROPPED = "R-square", "n.s."


@dataclass(frozen=True)
class Column:
    """The published model of one response: the terms it began with, and the coefficients that stayed, by column."""

    response: str
    r_square: float
    considered: tuple[Term, ...]
    coefficients: dict[str, float]


def columns(table: str) -> dict[str, Column]:
    """Return the columns of a published table, "values" (A-1 and A-3) or "cv" (A-2 and A-4), by name of the measure."""
    rows = published(FILES[table])
    responses = [name for name in rows[0] if name != "term"]
    return {name.split()[-1]: _column(name, {row["term"]: row[name] for row in rows}) for name in responses}


def names_of(term: Term) -> list[str]:
    """Name the columns of a term.

    >>> from quadrille.papers.dohrmann_2009.run import names_of
    >>> names_of(("rate", "size"))
    ['rate x size 18102', 'rate x size 8153', 'rate x size 3648']
    """
    return [" x ".join(parts) for parts in product(*(LEVELS.get(factor, (factor,)) for factor in term))]


def _column(response: str, entries: dict[str, str]) -> Column:
    r_square = float(entries.pop(_R_SQUARE))
    found: dict[str, str] = {}
    for printed, entry in entries.items():
        found |= dict.fromkeys(_spelled(printed), entry)
    considered = [term for term in all_terms(FACTORS) if any(found[name] for name in names_of(term))]
    # A product whose factors are not considered themselves cannot have been in a hierarchical model: the table has
    # one such entry, "n.s." for nominal x size in the column of C_ARD.
    kept = tuple(term for term in considered if all((factor,) in considered for factor in term))
    numbers = {name: float(entry) for name, entry in found.items() if entry not in ("", _DROPPED)}
    return Column(response, r_square, kept, numbers)


def _spelled(printed: str) -> list[str]:
    """Return our names for a printed one: factors in our order, one name per file where the print has one for all."""
    if printed == INTERCEPT:
        return [printed]
    parts = {part.split()[0]: part for part in printed.split(" x ")}
    levels = {factor: LEVELS.get(factor, (factor,)) for factor in FACTORS if factor in parts}
    named = ((parts[factor],) if parts[factor] in every else every for factor, every in levels.items())
    return [" x ".join(names) for names in product(*named)]


LOGGED = ("R_ASED", "C_ARD", "ASED_REG")
"""Measures whose logarithm is the response; the spread over seeds is logged for all. Logarithms are decimal."""


@dataclass(frozen=True)
class Result:
    """One response: the model that begins with the terms of the paper, that with all terms, the published one.

    `left_out` counts responses that are undefined, or 0 where the logarithm is taken.
    """

    measure: str
    table: str
    fit: Fit
    full: Fit
    printed: Column
    left_out: int

    def effect(self, factor: str, *, ours: bool = True) -> float:
        """Return the effect of one unit of a factor, averaged over the design."""
        return average_effect(factor, self.fit.coefficients if ours else self.printed.coefficients)


def analyse(runs: Runs) -> list[Result]:
    """Regress the five measures, then the spread of each over seeds, on the factors of the design."""
    found: list[Result] = []
    for table, values in (("values", runs.values), ("cv", runs.cv[..., None, :])):
        printed = columns(table)
        for m, measure in enumerate(NAMES):
            logged = table == "cv" or measure in LOGGED
            found.append(_result(measure, table, values[..., m], printed[measure], logged=logged))
    return found


def _result(measure: str, table: str, values: Floats, printed: Column, *, logged: bool) -> Result:
    repeats = values.shape[-1]
    flat = values.reshape(-1)
    usable = np.isfinite(flat) & ((flat > 0) | (not logged))
    response = np.log10(flat[usable]) if logged else flat[usable]
    factors = {name: (labels, columns[usable]) for name, (labels, columns) in design_factors(repeats).items()}
    fit = eliminate(response, factors, list(printed.considered))
    full = eliminate(response, factors, all_terms(FACTORS))
    return Result(measure, table, fit, full, printed, int((~usable).sum()))


def design_factors(repeats: int = 1) -> Factors:
    """Return the factors of the design, a row per setting and repeat, in the order of a table of runs."""
    plan = scenarios("simulated")  # cells, variables and nominal categories are the same for all sources
    rows = list(settings())
    single: dict[str, Floats] = {
        "cells": np.array([[float(plan[s.scenario].cells)] for s in rows]),
        "rate": np.array([[RATES[s.rate]] for s in rows]),
        "standard": np.array([[float(METHODS[s.method] == "standard")] for s in rows]),
        "size": np.array([[float(SIZES[s.size] == size) for size in SIZES[:-1]] for s in rows]),
        "variables": np.array([[float(len(plan[s.scenario].variables))] for s in rows]),
        "nominal": np.array([[float(plan[s.scenario].nominal)] for s in rows]),
    }
    return {name: (LEVELS.get(name, (name,)), np.repeat(columns, repeats, axis=0)) for name, columns in single.items()}


def average_effect(factor: str, coefficients: Mapping[str, float]) -> float:
    """Return the effect of one unit of a factor with a single column, the other factors at their mean in the design.

    The coefficient of a factor alone is its effect where all others are 0, which no file is; this is what it does on
    average.
    """
    means = {
        label: float(mean)
        for labels, values in design_factors().values()
        for label, mean in zip(labels, values.mean(axis=0), strict=True)
    }
    total = 0.0
    for name, value in coefficients.items():
        parts = name.split(" x ")
        if factor in parts:
            total += value * float(np.prod([means[part] for part in parts if part != factor]))
    return total


def sign_of(name: str, coefficients: Mapping[str, float], considered: tuple[Term, ...]) -> str:
    """Return "+" or "-", "0" for a coefficient that was dropped, "" for one that was not considered."""
    if name in coefficients:
        return "+" if coefficients[name] > 0 else "-"
    return "0" if any(name in names_of(term) for term in considered) else ""
