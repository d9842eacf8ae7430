"""Designs, methods and findings in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from quadrille.measure import measure_of
from quadrille.present.blocks import Pairs
from quadrille.present.numbers import count, counted, duration, pace, ratio, share

if TYPE_CHECKING:
    from quadrille.study.forecast import Forecast

NOT_PROTECTED = "What swapping does not protect against"
LIMITS = (
    "Records that are not swapped stand in the release as they were. A variable that identifies a person by itself "
    "still does.",
    "Variables that are not key variables do not count in the risks. If an intruder knows one of them, there are more "
    "small cells than are counted here.",
    "Rare categories and extreme numbers are known to exist, because every margin is exact; only in which record is "
    "uncertain.",
    "Somebody who knows much about a person can notice that a record fits, or that it does not.",
    "Attributes shared by a group: when all records of a large cell have the same value of a sensitive variable, "
    "anyone known to be in the cell is known to have it, whatever the size of the cell.",
    "A second release of the same data by another recipe can be compared with this one. Release once.",
    "Tables of the original published elsewhere can show, next to the release, where records were swapped.",
    "The seed, the plan, the study and the confidential reports undo or weaken the protection when they leak. They "
    "stay confidential after the release.",
    "No formal guarantee such as differential privacy is given. The risks are measured for the intruder described "
    "here, not bounded for every intruder.",
)
_EXACT_TABLES = (
    "The guarantee is about what the permutation adds. What the exact tables show, whoever looks, it does not cover; "
    "the risks are measured for the intruder described here."
)
DESIGNED, ALL_KEYS, OF_TABLES = "DesignedSwap", "all key variables", "the variables of its tables"
_NOTICEABLE = 0.05
_LITTLE_FALL = 0.1


def limits(*, guaranteed: bool) -> tuple[str, ...]:
    """Return what swapping does not protect against, also where something is guaranteed.

    >>> from quadrille.present.words import LIMITS, limits
    >>> limits(guaranteed=False) == LIMITS, limits(guaranteed=True)[:-1] == LIMITS[:-1]
    (True, True)
    """
    return (*LIMITS[:-1], _EXACT_TABLES) if guaranteed else LIMITS


def listed(items: list[str]) -> str:
    """Join with commas and a last 'and'.

    >>> from quadrille.present.words import listed
    >>> listed(["Age", "Sex", "Race"])
    'Age, Sex and Race'
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def design(parameters: Mapping[str, object]) -> str:
    """Name a design: what is swapped, how much, under which constraints.

    >>> from quadrille.present.words import design
    >>> design({"swap": "Edu + Race", "pairs": 488, "rate": 0.02, "same": "Sex", "different": "", "other": ""})
    'Edu + Race, 488 pairs, same Sex'
    """
    designed = parameters.get("method") == DESIGNED
    pairs, rate = parameters.get("pairs"), parameters.get("rate")
    much = (
        f"{count(pairs)} pairs" if isinstance(pairs, int) else f"rate {share(rate)}" if isinstance(rate, float) else ""
    )
    kept = [f"{word} {parameters[word]}" for word in ("same", "different") if parameters.get(word)]
    swapped = parameters.get("swap") or swapped_by_default(parameters)
    what = swapped if designed else parameters.get("swap") or parameters.get("method")
    parts = [f"designed swap of {what}" if designed else what, much, *kept, parameters.get("other")]
    return ", ".join(str(part) for part in parts if part)


def swapped_by_default(parameters: Mapping[str, object]) -> str:
    """Name what a designed swap may move when its recipe does not say."""
    return OF_TABLES if "tables " in str(parameters.get("other") or "") else ALL_KEYS


def forecast_facts(found: Forecast) -> Pairs:
    """Say what a search would do: how many candidates, how long it takes, and which designs cannot be done."""
    least, most = found.seeds
    seeds = counted(most, "seed") if least == most else f"{count(least)} to {counted(most, 'seed')}"
    checked = "all" if found.checked == found.designs else f"{count(found.checked)} of the"
    return (
        ("candidates", f"{count(found.candidates)}: {count(found.designs)} designs with {seeds} each"),
        ("time", _time(found)),
        ("infeasible", f"{count(len(found.refused))} designs ({checked} {count(found.designs)} were checked)"),
    )


def _time(found: Forecast) -> str:
    if found.seconds is None or found.seconds_each is None:
        return "unknown: no design could be drawn"
    return (
        f"about {duration(found.seconds)} with {counted(found.workers, 'worker')}, an estimate from "
        f"{count(found.timed)} candidates of {pace(found.seconds_each)} each"
    )


def left_out(identifiers: Sequence[str], steering: Sequence[str]) -> list[str]:
    """Say which columns are not in the public file, and why.

    >>> from quadrille.present.words import left_out
    >>> left_out(["caseid"], ["caseid", "zone"])[1]
    'Left out because they steer the draw: zone.'
    """
    others = [name for name in steering if name not in identifiers]
    advice = "To release one on purpose, give it another role in the codebook."
    return [
        *([f"Left out as identifiers: {', '.join(identifiers)}. {advice}"] if identifiers else []),
        *([f"Left out because they steer the draw: {', '.join(others)}."] if others else []),
    ]


def method(name: object) -> str:
    """Name a method in one word.

    >>> from quadrille.present.words import method
    >>> method("DesignedSwap")
    'designed'
    """
    return str(name).removesuffix("Swap").lower()


def axis(address: str) -> str:
    """Name a measure as an axis on which lower is better."""
    direction = measure_of(address).direction
    return f"|{address}|" if direction == "nearer 0" else f"−{address}" if direction == "higher" else address


@dataclass(frozen=True)
class Finding:
    """What two risk measures say together; `kind` decides how it is shown."""

    kind: Literal["agree", "disagree", "unknown"]
    text: str


def agreement(before: tuple[float | None, float | None], after: tuple[float | None, float | None]) -> Finding:
    """Compare the n-rule with `exposed`, given as (small_cells, exposed) before and after the swap.

    They disagree when the n-rule fell by more than `exposed` did, and the gap is both above 5 points of per cent and
    above a third of the fall.
    """
    (rule_was, true_was), (rule_is, true_is) = before, after
    if rule_is is None or true_is is None:
        return Finding("unknown", _ALL_SWAPPED)
    if not rule_was or not true_was:
        return Finding("unknown", _NO_SMALL_CELLS)
    rule, true = 1 - rule_is / rule_was, 1 - true_is / true_was
    amounts = {"rule": _moved(rule), "true": _moved(true), "left": share(true_is / true_was)}
    if rule - true > max(_NOTICEABLE, rule / 3):
        return Finding("disagree", _DISAGREE.format(**amounts))
    return Finding("agree", _AGREE.format(**amounts) + (_LITTLE.format(**amounts) if true < _LITTLE_FALL else ""))


def _moved(fall: float) -> str:
    amount = ratio(abs(fall))
    if amount == ratio(0):
        return "did not change"
    return f"rose by {amount}" if fall < 0 else f"fell by {amount}"


_ALL_SWAPPED = (
    "Every record takes part in the swap, so the n-rule (small_cells), which looks at the others only, says nothing. "
    "Judge by exposed and confidence."
)
_NO_SMALL_CELLS = "The original file has no small cell, so there is no such risk to lower."
_AGREE = "The two risk measures agree: the n-rule (small_cells) {rule} and exposed {true}."
_LITTLE = (
    " That is little: exposed is still at {left} of what it was. If the board finds the risk before the swap too "
    "high, it is still too high."
)
_DISAGREE = (
    "The two risk measures disagree. The n-rule (small_cells) {rule}, but exposed {true} and is still at {left} of "
    "what it was: small cells of the original stand in the release unchanged. The n-rule calls a record safe as soon "
    "as it takes part in a swap. Here swaps compensate one another: records change places with their like, and the "
    "released table changes less. Do not rely on the n-rule for this candidate; judge it by exposed and confidence."
)
