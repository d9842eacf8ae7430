"""Lemons, Dajani, You & Jordan (2014), US Census Bureau: six metrics of how different two tabulations are.

The study of 72 settings, each with 1,000 replicates, with two mechanisms: swapped records, as the paper describes it,
and cells drawn alike whatever their size, which gives the published tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import compress
from math import nan, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import tidy
from quadrille.papers.reproduction import (
    Check,
    Claim,
    Floats,
    Listing,
    Progress,
    Reproduction,
    check_arguments,
    published,
    save_figures,
)
from quadrille.simulation import MECHANISMS, METRICS, Mechanism
from quadrille.simulation.design import SimulationDesign
from quadrille.simulation.effects import ENTER, INTERCEPT, STAY, Model, Stratum, fit, named, spearman
from quadrille.simulation.run import ReplicateStore, simulate_missing
from quadrille.study.workers import cores

if TYPE_CHECKING:
    import polars as pl


SEED = 2014
COUNTIES = 10
TRACTS = {
    "five": {"uniform": ["5 x 20000"], "skewed": [5000, 5000, "3 x 30000"]},
    "eight": {"uniform": ["8 x 12500"], "skewed": [5000, 5000, "3 x 10000", "3 x 20000"]},
    "ten": {"uniform": ["10 x 10000"], "skewed": ["6 x 5000", 15000, 15000, 20000, 20000]},
}
SHARES = {
    "two": {"uniform": [0.5, 0.5], "skewed": [0.8, 0.2]},
    "five": {"uniform": ["5 x 0.2"], "skewed": [0.4, 0.3, 0.15, 0.1, 0.05]},
}
RATES = {"low": 0.01, "medium": 0.03, "high": 0.05}
STRATA = ("perturbation", "tract sizes", "level shares")


def design(mechanism: Mechanism, replicates: int) -> SimulationDesign:
    """Return the design, the same as examples/lemons-2014.toml but for mechanism and replicates."""
    return SimulationDesign.of(
        {
            "design": {
                "title": "Lemons, Dajani, You & Jordan (2014)",
                "replicates": replicates,
                "seed": SEED,
                "mechanism": mechanism,
                "counties": COUNTIES,
                "strata": list(STRATA),
            },
            "names": {
                "areas": ["tracts", "tract sizes"],
                "levels": ["levels", "level shares"],
                "rates": "perturbation",
            },
            "areas": TRACTS,
            "levels": SHARES,
            "rates": RATES,
            "baseline": {"perturbation": "high", "tracts": "ten", "levels": "five"},
        }
    )


def simulated(chosen: SimulationDesign, tell: Callable[[int], None]) -> Floats:
    """Return the metrics: setting by replicate by metric; `tell` hears of the replicates done."""
    with TemporaryDirectory() as folder, closing(ReplicateStore(Path(folder) / "replicates")) as store:
        simulate_missing(chosen, SEED, store, cores(), lambda done, _total: tell(done))
        return store.collect(len(chosen.trials), chosen.replicates)[:, :, : len(METRICS)]


def with_levels(chosen: SimulationDesign, levels: str) -> NDArray[np.bool_]:
    """Tell which settings have these levels, "two" or "five"."""
    position = [factor.name for factor in chosen.factors].index("levels")
    factor = chosen.factors[position]
    return np.array([factor.levels[trial.levels[position]] == levels for trial in chosen.trials])


def expected(chosen: SimulationDesign, levels: str) -> tuple[float, float]:
    """Return the expected chi_square and gini_difference of the cells mechanism, mean over settings with these levels.

    The net change of each of TJ cells has mean 0 and variance v = 2 rate N / (TJ), so that E chi_square = v sum 1/f and
    E gini_difference = v J sum 1/n^2 over areas of n records.
    """
    found: list[tuple[float, float]] = []
    for trial in compress(chosen.trials, with_levels(chosen, levels)):
        before = trial.setting().before
        variance = 2 * trial.rate * before.sum() / before.size
        square = variance * float((1 / before).sum())
        found.append((square, variance * before.shape[1] * float((1.0 / before.sum(axis=1) ** 2).sum())))
    squares, ginis = zip(*found, strict=True)
    return float(np.mean(squares)), float(np.mean(ginis))


@dataclass(frozen=True)
class Chosen:
    """The selected model of a metric beside the one of all factors; in a balanced design they share their effects."""

    selected: Model
    full: Model

    @property
    def left_out(self) -> tuple[str, ...]:
        """The factors that are not selected."""
        return tuple(name for name in self.full.factors if name not in self.selected.factors)


def selected(design: SimulationDesign, values: Floats) -> list[Chosen]:
    """Fit every metric twice: with selection and with all factors. A metric that does not vary has no model."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.int64)
    found: list[Chosen] = []
    for m, metric in enumerate(METRICS):
        one, full = (fit(metric, values[:, :, m], levels, design.factors, select=select) for select in (True, False))
        found += [Chosen(one, full)] if one is not None and full is not None else []
    return found


Key = tuple[str, str, str]
"""Table, row, column."""

CODES: dict[str, str] = dict(zip(("CS", "ESR", "DS", "GD", "HD", "HD3"), METRICS, strict=True))
BATCHES = 50
REPLICATES = 1000
"""Of each setting, in the paper."""
_LEVELS = {"2": "two", "5": "five"}
_RANGES = {"aa": "within A", "ab": "across", "bb": "within B"}
TERMS = {
    "intercept": (INTERCEPT, ""),
    "perturbation low": ("perturbation", "low"),
    "perturbation medium": ("perturbation", "medium"),
    "tracts five": ("tracts", "five"),
    "tracts eight": ("tracts", "eight"),
    "levels two": ("levels", "two"),
    "tract sizes skewed": ("tract sizes", "skewed"),
    "level shares skewed": ("level shares", "skewed"),
}
_PRINTED = {"Tract distribution Skewed": "tract sizes skewed", "Level distribution Skewed": "level shares skewed"}
CORRECTED = {("perturbation low", "HD3"): "-0.000053", ("perturbation medium", "HD3"): "-0.000027"}
"""Misprints that the other tables show to be such."""
IN_THE_TEXT = {("tract sizes skewed", "ESR"): "-0.0000038", ("level shares skewed", "ESR"): "-0.0000012"}
"""Table 5 prints both as "< -0.01" (x 10^-3); the text has -0.0038 and -0.0012."""
DISTRIBUTIONS = ("tract sizes", "level shares")
REMOVED: dict[str, tuple[str, ...]] = {**dict.fromkeys(METRICS, ()), "effective_swap_rate": DISTRIBUTIONS}
"""The factors that the stepwise selection of the paper removes, by metric (section 3.2)."""


def compare(design: SimulationDesign, values: Floats) -> list[Check]:
    """Set all published numbers beside those of a simulation; `error` allows for the replicates of both."""
    ours = statistics(design, values)
    replicates = values.shape[1]
    batches = [statistics(design, part) for part in np.array_split(values, min(BATCHES, replicates // 10), axis=1)]
    checks: list[Check] = []
    for key, printed in numbers().items():
        spread = float(np.std([batch[key] for batch in batches], ddof=1)) / sqrt(len(batches))
        error = spread * sqrt(1 + replicates / REPLICATES)
        checks.append(Check(*key, printed, ours[key], error, _reason(design, key, printed)))
    return checks


def _reason(design: SimulationDesign, key: Key, printed: str) -> str:
    """Say what the likely reason is, should a number differ."""
    table, row, column = key
    if design.trials[0].mechanism == "records":
        return "swapped records do not give the tables of the paper: see the notes"
    if key == ("Table 2", "shannon_difference, five", "sd"):
        return "the sd of shannon_difference is a misprint: see the notes"
    if table in ("Table 3", "Table 4"):
        cut = "correlations of .995 and more are printed as .99, cut off and not rounded"
        return cut if printed == "0.99" else "chance and the rounding to two decimals together"
    if (row, column) == ("RMSE", "gini_difference"):
        return "the RMSE of gini_difference is about .0055, half way between two numbers of three decimals"
    if column in METRICS[3:] or row.split(",")[0] in METRICS[3:]:
        return (
            "all numbers about group B come from the same replicates, and those with two levels lie about 3 standard "
            "errors from ours together; other seeds of ours come nearer"
        )
    if column == "effective_swap_rate":
        return "cells drawn alike give no effect of tract sizes on effective_swap_rate, and the text has a small one"
    return "sizes of uneven tracts and shares of uneven levels are not printed, and those used here are not quite right"


def numbers() -> dict[Key, str]:
    """Return all published numbers as printed, misprints corrected, those that the table withholds from the text."""
    found: dict[Key, str] = {}
    for row in published("lemons_table2.csv"):
        for column in ("mean", "sd", "p05", "p95"):
            found["Table 2", f"{CODES[row['metric']]}, {_LEVELS[row['levels']]}", column] = row[column]
    for row in published("lemons_table3.csv"):
        for code, metric in CODES.items():
            if row.get(code):
                found["Table 3", CODES[row["metric"]], metric] = row[code]
    for row in published("lemons_table4.csv"):
        stratum = ", ".join(row[name].lower() for name in ("perturbation", "tracts", "levels"))
        for kind, words in _RANGES.items():
            for end, word in (("low", "least"), ("high", "largest")):
                found["Table 4", stratum, f"{words}, {word}"] = row[f"{kind}_{end}"]
    for row in published("lemons_table5.csv"):
        term = _PRINTED.get(row["term"], row["term"] if row["term"] in ("R2", "RMSE") else row["term"].lower())
        for code, metric in CODES.items():
            if text := {**CORRECTED, **IN_THE_TEXT}.get((term, code), row[code]):
                found["Table 5", term, metric] = text
    return found


def statistics(design: SimulationDesign, values: Floats) -> dict[Key, float]:
    """Return all numbers of Tables 2 to 5 for some replicates of every setting."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.int64)
    names = [factor.name for factor in design.factors]
    found: dict[Key, float] = {}
    for word in SHARES:
        inside = values[with_levels(design, word)].reshape(-1, len(METRICS))
        parts = (inside.mean(axis=0), inside.std(axis=0, ddof=1), *np.quantile(inside, (0.05, 0.95), axis=0))
        for column, row in zip(("mean", "sd", "p05", "p95"), parts, strict=True):
            for metric, value in zip(METRICS, row.tolist(), strict=True):
                found["Table 2", f"{metric}, {word}", column] = value
    matrix = spearman(values)
    for i, one in enumerate(METRICS):
        for j, other in enumerate(METRICS):
            found["Table 3", one, other] = float(matrix[i, j])
    positions = [names.index(name) for name in design.strata]
    for chosen in sorted({tuple(row) for row in levels[:, positions].tolist()}):
        inside = (levels[:, positions] == np.array(chosen)).all(axis=1)
        stratum = Stratum(named([design.factors[i] for i in positions], chosen), spearman(values[inside]))
        for words in _RANGES.values():
            for end, value in zip(("least", "largest"), stratum.range(words), strict=True):
                found["Table 4", ", ".join(stratum.levels.values()), f"{words}, {end}"] = value
    for m, metric in enumerate(METRICS):
        model = fit(metric, values[:, :, m], levels, design.factors, select=False)
        found |= {("Table 5", row, metric): value for row, value in _column(model).items()}
    return found


def _column(model: Model | None) -> dict[str, float]:
    if model is None:
        return dict.fromkeys((*TERMS, "R2", "RMSE"), nan)
    effects = {row: model.effect(*term) for row, term in TERMS.items()} | {"R2": model.r2, "RMSE": model.rmse}
    return {row: nan if value is None else value for row, value in effects.items()}


DEFAULT_SEEDS = 1000
DEFAULT_SAMPLER = "both"
SAMPLERS = ("both", *MECHANISMS)
LEAST_SEEDS = 40


def reproduce(
    seeds: int = DEFAULT_SEEDS, sampler: str = DEFAULT_SAMPLER, progress: Progress | None = None
) -> Reproduction:
    """Simulate the study, set Tables 2 to 5 beside the published ones, and judge.

    `seeds` is the number of replicates of each setting, `sampler` the mechanism: "both", "records" or "cells".
    """
    check_arguments(seeds, sampler, SAMPLERS, least=LEAST_SEEDS)
    chosen = [each for each in ("cells", "records") if sampler in ("both", each)]
    found: Found = {}
    for turn, mechanism in enumerate(chosen):
        plan = design(cast("Mechanism", mechanism), seeds)
        values = simulated(plan, _after(progress, turn * plan.total, len(chosen) * plan.total))
        found[mechanism] = (plan, values, compare(plan, values))
    checks = [(mechanism, check) for mechanism, (_, _, checks) in found.items() for check in checks]
    shown = [selection(mechanism, selected(plan, values)) for mechanism, (plan, values, _) in found.items()]
    if "cells" in found:
        shown.append(closed_forms(*found["cells"][:2]))
    return Reproduction(
        paper="lemons-2014",
        title="Lemons, Dajani, You & Jordan (2014), US Census Bureau: measuring the difference between tabulations "
        "before and after swapping",
        setting={"settings": 72, "replicates": f"{seeds:,} each", "mechanisms": " and ".join(chosen)},
        claims=tuple(all_claims(found)),
        errata=tuple(errata(found)),
        figures=_figures(found),
        checks=tuple(replace(check, table=f"{TITLES[check.table]}: {mechanism}") for mechanism, check in checks),
        listings=tuple(shown),
        points=tuple(_point(mechanism, check) for mechanism, check in checks),
    )


def _after(progress: Progress | None, before: int, total: int) -> Callable[[int], None]:
    """Return what tells of the replicates of one mechanism after those of the other."""
    return lambda done: progress(before + done, total) if progress else None


def figures(reproduction: Reproduction) -> dict[str, pl.DataFrame]:
    """Return the frames of the charts: our pooled correlations with each mechanism."""
    found: dict[str, pl.DataFrame] = {}
    for mechanism in MECHANISMS:
        rows = [
            {"first": each["row"], "second": each["column"], "spearman": each["ours"]}
            for each in reproduction.points
            if (each["mechanism"], each["table"]) == (mechanism, "Table 3")
        ]
        if rows:
            found[f"correlations-{mechanism}"] = tidy(rows)
    return found


def write_figures(reproduction: Reproduction, folder: str | Path) -> list[Path]:
    """Draw the correlation matrices as PNG files in a folder; return their paths."""
    from quadrille import chart

    frames = figures(reproduction).items()
    return save_figures({name: chart.correlation_matrix(frame) for name, frame in frames}, folder)


def _figures(found: Found) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for mechanism, (_, _, checks) in found.items():
        agree, by = sum(check.agrees for check in checks), {check.key: check for check in checks}
        numbers[f"{mechanism}, numbers that agree"] = float(agree)
        numbers[f"{mechanism}, numbers that differ"] = float(len(checks) - agree)
        for word in ("two", "five"):
            numbers[f"{mechanism}, mean {METRICS[0]}, {word} levels"] = by[
                "Table 2", f"{METRICS[0]}, {word}", "mean"
            ].ours
    return numbers


def _point(mechanism: str, check: Check) -> Mapping[str, object]:
    place = dict(zip(("table", "row", "column"), check.key, strict=True))
    return {"mechanism": mechanism, **place, "published": check.published, "ours": check.ours, "error": check.error}


ELEVEN = [(a, b) for i, a in enumerate(METRICS) for b in METRICS[i + 1 :] if "deviance" not in (a, b)]
ELEVEN.insert(1, ("chi_square", "deviance"))
"""The pooled correlations that are compared: all but those that repeat chi_square with deviance in its place."""
TITLES = {
    "Table 2": "Table 2, spread of the metrics, two and five levels",
    "Table 3": "Table 3, Spearman correlations, all settings pooled",
    "Table 4": "Table 4, ranges of Spearman correlations by perturbation, tract sizes and level shares",
    "Table 5": "Table 5, main effects of all five factors",
}
UNRELATED = 0.2
"""Rank correlations below this in size are taken for none."""
By = Mapping[Key, Check]
Found = dict[str, tuple[SimulationDesign, Floats, Sequence[Check]]]
"""By mechanism: the design, its metrics and the published numbers beside them."""


def _number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        return f"{value:.6f}"
    return f"{value:.2f}" if abs(value) >= 2 else f"{value:.5f}"


def closed_forms(design: SimulationDesign, values: Floats) -> Listing:
    """Set the means of the cells mechanism beside their closed forms."""
    rows: list[tuple[str | int | float, ...]] = []
    for word in ("two", "five"):
        mean, error = _means(design, values, word)
        for metric, value in zip(("chi_square", "gini_difference"), expected(design, word), strict=True):
            m = METRICS.index(metric)
            rows.append(
                (f"{metric}, {word} levels", _number(value), _number(mean[m]), f"{(mean[m] - value) / error[m]:+.1f}")
            )
    note = "With v = 2 rate N / (TJ), E chi_square = v sum 1/f and E gini_difference = v J sum 1/n^2."
    return Listing("Means of mechanism cells and their closed forms", ("", "expected", "ours", "z"), tuple(rows), note)


def _means(design: SimulationDesign, values: Floats, word: str) -> tuple[list[float], list[float]]:
    """Return means over the settings with so many levels, and their standard errors."""
    inside = values[with_levels(design, word)]
    error = np.sqrt(inside.var(axis=1, ddof=1).sum(axis=0) / inside.shape[1]) / len(inside)
    return inside.mean(axis=(0, 1)).tolist(), error.tolist()


def all_claims(found: Found) -> list[Claim]:
    """Judge the numbers by the cells mechanism, and whether the mechanism that the paper describes gives its tables."""
    judged: list[Claim] = []
    for mechanism, (plan, values, checks) in sorted(found.items()):
        if mechanism == "cells":
            expectation = expectations(plan, values, {check.key: check for check in checks})
            text = "cells: the published means of gini_difference are those expected"
            judged += [*_numbers(checks), Claim.of(text, expectation)]
        else:
            judged.append(_described(checks))
        judged += [*_conclusions(mechanism, values, checks), *selections(mechanism, selected(plan, values))]
    return judged


def _numbers(checks: Sequence[Check]) -> list[Claim]:
    by = {check.key: check for check in checks}
    parts = {
        "means and sds of chi_square": [
            by["Table 2", f"chi_square, {word}", column] for word in ("two", "five") for column in ("mean", "sd")
        ],
        "the eleven pooled Spearman correlations": [by["Table 3", a, b] for a, b in ELEVEN],
        "the effects on effective_swap_rate": [
            check for check in checks if check.row in TERMS and check.column == "effective_swap_rate"
        ],
        "the effects on chi_square": [by["Table 5", term, "chi_square"] for term in TERMS],
        "all numbers of Tables 2 to 5": checks,
    }
    return [Claim.of(f"cells: {what} are the published ones", part) for what, part in parts.items()]


RULE = f"selection (enter {ENTER:.2f}, stay {STAY:.2f})".replace("0.", ".")


def selection(mechanism: str, chosen: list[Chosen]) -> Listing:
    """Return which factors enter for each metric, with their p-values, and R2 and RMSE of both models."""
    rows: list[tuple[str | int | float, ...]] = []
    for each in chosen:
        metric = each.selected.metric
        entered = [step for step in each.selected.steps if step.entered and step.factor in each.selected.factors]
        for turn, step in enumerate(entered, 1):
            rows.append((metric, step.factor, f"enters {turn}.", "p < .0001" if step.p < 1e-4 else f"p = {step.p:.4f}"))
        rows += [(metric, name, "left out", "") for name in each.left_out]
        for what, one, full in (
            ("R2", each.selected.r2, each.full.r2),
            ("RMSE", each.selected.rmse, each.full.rmse),
        ):
            rows.append((metric, what, f"{one:.4g}", f"all factors: {full:.4g}"))
    note = (
        "Table 5 above is of the model with all five factors, as the paper prints all terms for all metrics. The "
        "design is balanced, so that the effects of factors that are selected are the same in both models."
    )
    return Listing(f"Table 5, {RULE}: mechanism {mechanism}", ("", "", "", ""), tuple(rows), note)


def selections(mechanism: str, chosen: Sequence[Chosen]) -> list[Claim]:
    """Judge by metric which factors the selection removes, as section 3.2 of the paper says."""
    judged: list[Claim] = []
    for each in chosen:
        metric = each.selected.metric
        theirs = f"removes {' and '.join(REMOVED[metric])}" if REMOVED[metric] else "keeps all five factors"
        ours = f"removed: {' and '.join(each.left_out) or 'none'}"
        text = f"{mechanism}: {RULE} {theirs} for {metric}"
        judged.append(Claim(text, set(each.left_out) == set(REMOVED[metric]), ours))
    return judged


def expectations(design: SimulationDesign, values: Floats, by: By) -> list[Check]:
    """Set the published means of gini_difference beside those expected, which need no draw."""
    m, found = METRICS.index("gini_difference"), list[Check]()
    for word in ("two", "five"):
        error = _means(design, values, word)[1][m] * sqrt(values.shape[1] / REPLICATES)
        printed = by["Table 2", f"gini_difference, {word}", "mean"].printed
        found.append(Check("closed form", f"{word} levels", "", printed, expected(design, word)[1], error))
    return found


def _described(checks: Sequence[Check]) -> Claim:
    by = {check.key: check for check in checks}
    differ = sum(not check.agrees for check in checks)
    two, five, effect = _squares(by)
    evidence = (
        f"mean chi_square {two.ours:.2f} and {five.ours:.2f} against {two.printed} and {five.printed}; effect of "
        f"skewed levels on it {effect.ours:+.2f} against {effect.published:+.2f}; {differ} of {len(checks)} numbers "
        "differ"
    )
    return Claim("records: swapping records, as the paper describes it, gives its tables", differ == 0, evidence)


def _conclusions(mechanism: str, values: Floats, checks: Sequence[Check]) -> list[Claim]:
    """Judge what the tables say, with either mechanism."""
    ours = {check.key: check.ours for check in checks}
    a, b = METRICS[:3], METRICS[3:]
    inside = [ours["Table 3", x, y] for x, y in ((a[0], a[1]), (a[0], a[2]), (a[1], a[2]))]
    other = [ours["Table 3", x, y] for x, y in ((b[0], b[1]), (b[0], b[2]), (b[1], b[2]))]
    across = [ours["Table 3", x, y] for x in a for y in b]
    skewed = [v for k, v in ours.items() if k[0] == "Table 4" and k[1].endswith("skewed, skewed") and "across" in k[2]]
    effects = {term: ours["Table 5", term, "chi_square"] for term in TERMS}
    steps = {
        metric: tuple(ours["Table 5", f"perturbation {word}", metric] for word in ("low", "medium"))
        for metric in METRICS
    }
    risen = ", ".join(f"{metric} {_number(low)} and {_number(medium)}" for metric, (low, medium) in steps.items())
    negative = float((values[:, :, 3:] < 0).mean())
    return [
        Claim(
            f"{mechanism}: metrics agree within each group of three, and less across",
            min(*inside, *other) > max(across),
            f"pooled correlations {min(inside):.2f} to {max(inside):.2f} within A, {min(other):.2f} to "
            f"{max(other):.2f} within B, {min(across):.2f} to {max(across):.2f} across",
        ),
        Claim(
            f"{mechanism}: with skewed tracts and skewed levels the two groups have nothing to do with each other",
            max(map(abs, skewed)) < UNRELATED,
            f"correlations across from {min(skewed):.2f} to {max(skewed):.2f}; the limit is {UNRELATED:.2f} in size",
        ),
        Claim(
            f"{mechanism}: every metric rises with the rate, on average: low below medium below high",
            all(low < medium < 0 for low, medium in steps.values()),
            f"effects of low and medium against high: {risen}; {100 * negative:.0f} % of the values of group B are "
            "below 0",
        ),
        Claim(
            f"{mechanism}: skewed tracts and skewed levels both raise chi_square",
            min(effects["tract sizes skewed"], effects["level shares skewed"]) > 1,
            f"tracts {effects['tract sizes skewed']:+.2f}, levels {effects['level shares skewed']:+.2f}",
        ),
    ]


PRINT = (
    "Rates, skewed shares and skewed tract sizes are not stated. Those used here are the ones that fit.",
    'Table 5: "x 10^3" stands for 10^-3. Table 6 shows gender and age. Tables 6 to 8 are of survey microdata that are '
    "not public; `quadrille score --by` gives the same tables for any file.",
    'Table 5 prints "< -0.01" (x 10^-3) for the effects of tract sizes and level shares on effective_swap_rate. Shown '
    "and compared are -0.0038 and -0.0012 (x 10^-3) of the text, in that order.",
    "The selection of section 3.2 removes the two distribution factors for effective_swap_rate, and Table 5 prints "
    "their effects all the same.",
)
"""What needs no run."""


def errata(found: Found) -> list[str]:
    """Return the errata, those that the mechanisms of this run show first."""
    said: list[str] = []
    if "records" in found:
        said.append(_errata_words({check.key: check for check in found["records"][2]}))
    if "cells" in found:
        design, values, checks = found["cells"]
        by = {check.key: check for check in checks}
        said += [_followed(by), *_misprints(by), _pooled(by, values)]
        said.append(_noise(by, expectations(design, values, by)[0]))
    return [*said, *PRINT]


def _errata_words(by: By) -> str:
    two, five, skewed = _squares(by)
    return (
        "The mechanism: the paper swaps randomly chosen households between tracts. That gives chi_square a mean "
        f"proportional to the number of levels less one ({two.ours:.2f} with two, {five.ours:.2f} with five), and "
        f"makes it indifferent to their shares (effect of skewed shares {skewed.ours:+.2f}). Tables 2 to 5 show "
        f"neither: {two.published:.2f}, {five.published:.2f} and {skewed.published:+.2f}."
    )


def _followed(by: By) -> str:
    two, five, skewed = _squares(by)
    return (
        "The mechanism: Tables 2 to 5 follow when every pair takes two tracts and two levels with equal chances, "
        "whatever their counts, so that small cells change as much as large ones. Mean chi_square with two and five "
        f"levels and effect of skewed shares: {two.ours:.2f}, {five.ours:.2f} and {skewed.ours:+.2f}; published "
        f"{two.published:.2f}, {five.published:.2f} and {skewed.published:+.2f}."
    )


def _squares(by: By) -> tuple[Check, Check, Check]:
    two, five = (by["Table 2", f"chi_square, {word}", "mean"] for word in ("two", "five"))
    return two, five, by["Table 5", "level shares skewed", "chi_square"]


def _misprints(by: By) -> Iterator[str]:
    sd, rmse = by["Table 2", "shannon_difference, five", "sd"], by["Table 5", "RMSE", "shannon_difference"]
    yield (
        "Table 2: the sd of the Shannon difference with five levels is printed as .00460. Its own percentiles, -.00614 "
        f"and .01575, and the RMSE of .008 in Table 5 do not fit that; ours are {sd.ours:.4f} and {rmse.ours:.4f}."
    )
    low, medium = (by["Table 5", f"perturbation {word}", "renyi_difference"].ours for word in ("low", "medium"))
    yield (
        "Table 5: the effects of low and medium perturbation on the Renyi difference are printed as -.00053 and "
        f"-.00027. They are compared as -.000053 and -.000027; ours are {low:.6f} and {medium:.6f}."
    )


def _pooled(by: By, values: Floats) -> str:
    check = by["Table 3", "chi_square", "gini_difference"]
    each = [float(spearman(rows[None])[0, METRICS.index("gini_difference")]) for rows in values]
    mean = float(np.nanmean(each)) if not np.isnan(each).all() else nan
    return (
        "Table 3 is the correlation of all replicates pooled, not the average over settings, which is what the text "
        f"says. Of chi_square with gini_difference: published {check.published:.2f}, ours pooled {check.ours:.2f}, "
        f"averaged over settings {mean:.2f}. Table 4 likewise pools the six settings of a stratum."
    )


def _noise(by: By, expectation: Check) -> str:
    low = by["Table 2", "gini_difference, two", "p05"]
    b = [check for check in by.values() if set(check.key) & set(METRICS[3:]) or check.row.split(",")[0] in METRICS[3:]]
    differ = sum(not check.agrees for check in b)
    return (
        "Means of the three differences of diversity are small against their spread over replicates. With two levels "
        f"the published mean of gini_difference is {expectation.shown[2]} standard errors from its expectation. Its "
        f"published 5th percentile with two levels is {low.published:.5f}, ours {low.ours:.5f} (z {low.shown[2]}). Of "
        f"the {len(b)} numbers about these three metrics {differ} differ."
    )
