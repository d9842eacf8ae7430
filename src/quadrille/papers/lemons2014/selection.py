"""Stepwise selection of the factors of Table 5: which enter, in which order, and what the selected model explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quadrille.papers.lemons2014.study import Floats
from quadrille.papers.reproduction import Claim, Listing
from quadrille.study.simulate import METRICS
from quadrille.study.trials.design import Design
from quadrille.study.trials.effects import ENTER, STAY, Model, fit

RULE = f"stepwise selection (enter {ENTER:.2f}, stay {STAY:.2f})".replace("0.", ".")


@dataclass(frozen=True)
class Chosen:
    """The selected model of a metric beside the one of all factors; in a balanced design they share their effects."""

    selected: Model
    full: Model

    @property
    def left_out(self) -> tuple[str, ...]:
        """The factors that are not selected."""
        return tuple(name for name in self.full.factors if name not in self.selected.factors)


def selected(design: Design, values: Floats) -> list[Chosen]:
    """Fit every metric twice: with selection and with all factors. A metric that does not vary has no model."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.int64)
    found: list[Chosen] = []
    for m, metric in enumerate(METRICS):
        one, full = (fit(metric, values[:, :, m], levels, design.factors, select=select) for select in (True, False))
        found += [Chosen(one, full)] if one is not None and full is not None else []
    return found


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


def keeps_all(mechanism: str, chosen: list[Chosen]) -> Claim:
    """Judge whether the selection keeps what Table 5 prints."""
    lost = [f"{each.selected.metric} leaves out {' and '.join(each.left_out)}" for each in chosen if each.left_out]
    kept = sum(len(each.selected.factors) for each in chosen)
    evidence = f"{kept} of {sum(len(each.full.factors) for each in chosen)} selected"
    text = f"{mechanism}: {RULE} keeps all five factors for every metric, as Table 5 prints them"
    return Claim(text, not lost, "; ".join([evidence, *lost]))
