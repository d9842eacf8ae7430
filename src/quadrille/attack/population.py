"""Matching the release to the population: is the person with these keys the one behind the record that has them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import (
    NEEDS_DESIGN,
    NO_RECIPE,
    AttackInput,
    Codes,
    Finding,
    NoClosedForm,
    Section,
    Transition,
    transition_of,
)
from quadrille.data import Data, Floats, Ints
from quadrille.errors import InputError, bad_parameter
from quadrille.measure.population import expected_counts, mean_one_in
from quadrille.present import numbers
from quadrille.recipe import Recipe
from quadrille.score.matching import matched
from quadrille.swap.groups import group_ids

ATTACK, TITLE = "population", "Matching to the population"
_NOT_MADE = "How many others there are outside the file with the keys of a person is not looked at."
Basis = Literal["population counts", "the file is the population", "2-way log-linear model", "tree of 2-way margins"]

_PAIRS = 1 << 22
"""Pairs of a released unique and a cell of the population that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class PopulationRisk:
    """The chance that a match to a record alone in the release is right, for each such record.

    `before` has the same for the records alone in the original file. `size` is the number of persons in the population
    and `basis` where its counts come from. `by_plan` tells that the chances are what matches to this release give, and
    not what the design lets one expect.
    """

    chances: Floats
    before: Floats
    size: float
    basis: Basis
    by_plan: bool = False

    @property
    def expected(self) -> float:
        """The expected number of right matches."""
        return float(self.chances.sum())


def population_risk(
    data: Data,
    released: Data,
    recipe: Recipe,
    keys: Sequence[str] | None = None,
    *,
    population: Data | None = None,
    sampling: float | None = None,
) -> PopulationRisk:
    """Return the chance that matches between released uniques and the population are right.

    The file is a sample, a share pi of the population. The intruder knows somebody in the population with keys j, finds
    one record of the release with them, and takes it for hers. With F_k persons with keys k in the population and M_kj
    the chance that a record with keys k is released with keys j,

        P(right) = M_jj / (1 - pi M_jj) / sum_k F_k M_kj / (1 - pi M_kj),

    and 0 when F_j = 0: then he knows nobody with these keys. Without counts of the population the chance is estimated
    as M_jj (1 - exp(-h)) / h, h = mu_j (1 - pi) / pi, with mu_j the expected count of a log-linear model of the
    release.

    Parameters
    ----------
    data, released : the file before and after the swap.
    recipe : the design: what is known of it without its seed. Only designs with closed forms have chances M.
    keys : what the intruder knows of a person; the key variables by default.
    population : a file of the whole population with the same keys, a row per person or with a weight that counts them.
    sampling : pi, where there is no such file; 1 when the file is the population.

    Example
    -------
    >>> import quadrille as qd
    >>> from quadrille.attack.population import population_risk
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Edu"], rate=0.1, seed=7)
    >>> found = population_risk(data, recipe.plan(data).apply(data), recipe, sampling=1)
    >>> found.basis, len(found.before), round(float(found.before.sum()))
    ('the file is the population', 361, 361)

    Reference: Shlomo & Skinner, Assessing the protection provided by misclassification-based disclosure limitation
    methods for survey microdata, Annals of Applied Statistics 4(3), 2010.
    """
    names = data.keys if keys is None else tuple(keys)
    if not names:
        raise InputError("The match to a population needs key variables. Name them, or give columns the role key.")
    if population is None and sampling is None:
        raise InputError(
            "The match to a population needs a file of it (population), or the share of it that is in the file "
            "(sampling; 1 when the file is the population)."
        )
    if sampling is not None and not 0 < sampling <= 1:
        raise bad_parameter("population_risk", "sampling", "a number in (0, 1]", sampling)
    if population is None and sampling == 1:
        population = data
    file, release, everybody = _common(data, released, population, names)
    transition = transition_of(file, recipe, names)
    before, after = _Table.of(file, names), _Table.of(release, names)
    if everybody is None:
        assert sampling is not None
        chances, basis = _estimated(after, transition, sampling)
        origin, _ = _estimated(before, None, sampling)
        return PopulationRisk(chances, origin, file.n / sampling, basis)
    whole = _Table.of(everybody, names)
    size = float(whole.count.sum())
    share = min(file.n / size if sampling is None else sampling, 1.0)
    basis = "the file is the population" if population is data else "population counts"
    chances = _exact(after.alone(), whole, transition, share)
    return PopulationRisk(chances, _one_in(before.alone(), whole), size, basis)


def _right_matches(given: AttackInput) -> PopulationRisk:
    """Return 1 / F for each record alone in the release that has kept its keys, and 0 for the others; or its mean.

    That is how often a match is right, counted with the plan: where the design has no chances M.
    """
    who, share = given.population, given.sampling
    file, release, everybody = _common(given.data, given.released, given.data if share == 1 else who, given.keys)
    table, before = given.table, _Table.of(file, given.keys)
    rows = np.flatnonzero(table.g[table.after] == 1)
    own = table.before[rows] == table.after[rows]
    uniques: Codes = {name: release[name].values[rows].astype(np.int64) for name in given.keys}
    if everybody is not None:
        whole = _Table.of(everybody, given.keys)
        basis = "the file is the population" if share == 1 else "population counts"
        chances, origin, size = _one_in(uniques, whole), _one_in(before.alone(), whole), float(whole.count.sum())
    else:
        assert share is not None
        each, basis = _means(before, share)
        shown, known, cells = _joint_ids(uniques, before.codes, before.sizes, given.keys)
        of_cell = np.zeros(cells)
        of_cell[known] = each
        chances, origin, size = of_cell[shown], each[before.count == 1], file.n / share
    return PopulationRisk(np.where(own, chances, 0.0), origin, size, basis, by_plan=True)


def _common(
    data: Data, released: Data, population: Data | None, names: tuple[str, ...]
) -> tuple[Data, Data, Data | None]:
    """Bring the files to common categories of the keys; only that of the population keeps a weight."""
    file, release = matched(_unweighted(data), _unweighted(released), names)
    if population is None:
        return file, release, None
    counted = Data([population.coded(name, purpose="a key") for name in names])
    release, _ = matched(release, counted, names)
    file, counted = matched(file, counted, names)
    columns = [counted[name] for name in names]
    weight = population.weight
    if weight is not None:
        columns.append(population[weight])
    return file, release, Data(columns, weight=weight, ticks=population.ticks)


def _unweighted(data: Data) -> Data:
    return data if data.weight is None else Data([data[name] for name in data.columns if name != data.weight])


@dataclass(frozen=True, eq=False)
class _Table:
    """The combinations of keys that occur: their codes and counts."""

    codes: Codes
    count: Floats
    sizes: dict[str, int]

    @classmethod
    def of(cls, data: Data, names: tuple[str, ...]) -> _Table:
        of, cells = group_ids([(data[name].values, data[name].size) for name in names], data.n)
        leader = np.zeros(cells, dtype=np.int64)
        leader[of] = np.arange(data.n)
        weights = None if data.ticks is None else data.ticks.values / data.ticks.per_unit
        codes = {name: data[name].values[leader].astype(np.int64) for name in names}
        count = np.bincount(of, weights=weights, minlength=cells).astype(np.float64)
        return cls(codes, count, {name: data[name].size for name in names})

    def alone(self) -> Codes:
        """Return the codes of the combinations of one record."""
        one = self.count == 1
        return {name: codes[one] for name, codes in self.codes.items()}


def _joint_ids(first: Codes, second: Codes, sizes: dict[str, int], names: Sequence[str]) -> tuple[Ints, Ints, int]:
    """Number the combinations of some keys in two lists alike."""
    length, other = len(next(iter(first.values()))), len(next(iter(second.values())))
    columns = [(np.concatenate([first[name], second[name]]), sizes[name]) for name in names]
    of, count = group_ids(columns, length + other)
    return of[:length], of[length:], count


def _one_in(uniques: Codes, whole: _Table) -> Floats:
    """Return 1 / F for each unique; 0 when nobody of the population has its keys."""
    mine, theirs, cells = _joint_ids(uniques, whole.codes, whole.sizes, tuple(whole.codes))
    persons = np.bincount(theirs, weights=whole.count, minlength=cells)[mine]
    return np.divide(1.0, persons, out=np.zeros_like(persons), where=persons > 0)


def _exact(uniques: Codes, whole: _Table, transition: Transition, share: float) -> Floats:
    """Return the chances by the counts of the population: a record can come from cells with the same held keys only."""
    mine, theirs, groups = _joint_ids(uniques, whole.codes, whole.sizes, transition.held)
    order = np.argsort(theirs, kind="stable")
    first = np.searchsorted(theirs[order], np.arange(groups + 1))
    length = (first[1:] - first[:-1])[mine]
    own = transition.of(uniques, uniques)
    found = np.zeros(len(mine))
    start = 0
    while start < len(mine):
        stop = max(int(np.searchsorted(np.cumsum(length[start:]), _PAIRS)), 1) + start
        part = np.arange(start, min(stop, len(mine)))
        shown = np.repeat(part, length[part])
        step = np.arange(len(shown)) - np.repeat(np.cumsum(length[part]) - length[part], length[part])
        cell = order[first[mine[shown]] + step]
        origin = {name: codes[cell] for name, codes in whole.codes.items()}
        to = {name: codes[shown] for name, codes in uniques.items()}
        chance = transition.of(origin, to)
        # Both sides times 1 - pi M_jj: with pi = 1 a value that always stays would divide by 0.
        left, rest = 1 - share * own[shown], 1 - share * chance
        odds = np.where(left == rest, 1.0, np.divide(left, rest, out=np.full(len(rest), np.inf), where=rest > 0))
        weight = np.where(chance > 0, whole.count[cell] * chance * odds, 0.0)
        same = np.logical_and.reduce([origin[name] == to[name] for name in transition.moved], axis=0)
        total = np.bincount(shown - start, weights=weight, minlength=len(part))
        known = np.bincount(shown - start, weights=same * whole.count[cell], minlength=len(part)) > 0
        found[part] = np.divide(own[part], total, out=np.zeros(len(part)), where=known & (total > 0))
        start = stop
    return found


def _estimated(table: _Table, transition: Transition | None, share: float) -> tuple[Floats, Basis]:
    """Return the chances by the expected counts of a log-linear model."""
    each, basis = _means(table, share)
    chances = each[table.count == 1]
    if transition is not None:
        uniques = table.alone()
        chances = chances * transition.of(uniques, uniques)
    return chances, basis


def _means(table: _Table, share: float) -> tuple[Floats, Basis]:
    """Return the mean of 1 / F of each combination, by the expected counts of a log-linear model."""
    expected, fitted = expected_counts(list(table.codes.values()), list(table.sizes.values()), table.count)
    each = mean_one_in(table.count, expected * (1 - share) / share)
    return each, "2-way log-linear model" if fitted else "tree of 2-way margins"


_ADVICE = (
    "A larger population behind each combination of keys protects more than a swap: coarsen keys, above all those that "
    "are not swapped, or release a smaller sample. A higher rate lowers the chance of everybody alike."
)
_NOTES: dict[Basis, str] = {
    "population counts": "by the counts of the population",
    "the file is the population": "the file is the population",
    "2-way log-linear model": "an estimate by all 2-way margins, 6 to 14 % too high on the bundled file",
    "tree of 2-way margins": "a rough estimate: the keys have too many combinations for a model with all 2-way margins",
}


def population(given: AttackInput) -> Section:
    """Report the match to a population, if that or its share in the file is known, and the chances of the design."""
    reason = ""
    if given.population is None and given.sampling is None:
        reason = "say what share of the population the file is, with sampling=, or give a file of it, with population="
    elif given.design is None:
        reason = NO_RECIPE if given.recipe is None else NEEDS_DESIGN
    if reason or given.design is None:
        return Section(ATTACK, TITLE, _NOT_MADE, reason=reason)
    who, share = given.population, given.sampling
    try:
        risk = population_risk(given.data, given.released, given.design, given.keys, population=who, sampling=share)
    except NoClosedForm as why:
        if not given.aligned:
            return Section(ATTACK, TITLE, _NOT_MADE, reason=str(why))
        risk = _right_matches(given)
    return population_section(risk)


def population_section(risk: PopulationRisk) -> Section:
    """Report how well released uniques can be matched to a population."""
    found, note = risk.chances, _NOTES[risk.basis]
    if risk.by_plan:
        note += "; counted with the plan, as the design has no chances in closed form"
    count, guess = len(found), 1 / risk.size

    def mean(chances: Floats) -> float | None:
        return float(chances.mean()) if len(chances) else None

    findings = (
        Finding(ATTACK, "expected right matches", risk.expected, float(risk.before.sum()), count * guess, count, note),
        Finding(ATTACK, "mean chance that a match is right", mean(found), mean(risk.before), guess, count, note),
        Finding(ATTACK, "largest chance", _most(found), _most(risk.before), guess, count, note),
    )
    return Section(ATTACK, TITLE, _story(risk), findings, _ADVICE)


def _most(chances: NDArray[np.float64]) -> float | None:
    return float(chances.max()) if len(chances) else None


def _story(risk: PopulationRisk) -> str:
    if not len(risk.chances):
        return "Nobody is alone in the release by these keys: there is no record to match."
    return (
        "Somebody finds one record with the keys of a person she knows, who may or may not be in the file, and takes "
        f"it for his. She is right with a chance of {numbers.share(float(risk.chances.mean()))} on average, "
        f"and of {numbers.share(float(risk.chances.max()))} for the record that is worst off."
    )
