"""What follows about a rare person from the rest of a release: the measure `attributed_unique`, in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Inference:
    """Over every variable as target and every record that is unique on all others, a case each.

    `right` is the mean share of the true value among the released records with the same others, 0 where there are
    none; `gone` the share of cases without any. `guess` is what `right` would be from the target's distribution alone.
    """

    cases: int
    right: float
    gone: float
    guess: float


def inference(before: Ints, after: Ints, sizes: Ints, *, open_ended: bool = False) -> Inference:
    """Infer each variable from all others. Code `sizes[j]` is a suppressed value of variable j.

    `open_ended` reads it as "any value", as an intruder does: a record matches all that its remaining values allow, and
    tells nothing where the target itself is suppressed. Else it is one more category.
    """
    right: list[Floats] = []
    found: list[NDArray[np.bool_]] = []
    guess: list[Floats] = []
    for j, size in enumerate(sizes):
        keys, target = np.delete(before, j, 1), before[:, j]
        _, first, count = np.unique(keys, axis=0, return_index=True, return_counts=True)
        alone = first[count == 1]
        shown = after[after[:, j] != size] if open_ended else after
        others = np.delete(shown, j, 1), shown[:, j]
        matching, same = _matches((keys[alone], target[alone]), others, np.delete(sizes, j), open_ended)
        right.append(same / np.maximum(matching, 1))
        found.append(matching > 0)
        guess.append((np.bincount(target, minlength=int(size)) / len(target))[target[alone]])
    every = np.concatenate(right)
    return Inference(
        len(every), float(every.mean()), 1 - float(np.concatenate(found).mean()), float(np.concatenate(guess).mean())
    )


def _matches(
    asked: tuple[Ints, Ints], released: tuple[Ints, Ints], sizes: Ints, open_ended: bool
) -> tuple[Floats, Floats]:
    """Count, for each pair of keys and target, the released records that match the keys, and those that match both."""
    (keys, target), (others, shown) = asked, released
    suppressed = (others == sizes) & open_ended
    matching, same = np.zeros(len(keys)), np.zeros(len(keys))
    for pattern in np.unique(suppressed, axis=0):
        wanted, rows = np.where(pattern, sizes, keys), (suppressed == pattern).all(axis=1)
        matching += _counts(wanted, others[rows])
        same += _counts(np.column_stack((wanted, target)), np.column_stack((others, shown))[rows])
    return matching, same


def _counts(asked: Ints, rows: Ints) -> Ints:
    """Return how often each asked row occurs."""
    _, place = np.unique(np.concatenate((asked, rows)), axis=0, return_inverse=True)
    place = place.ravel()
    return np.bincount(place[len(asked) :], minlength=int(place.max()) + 1)[place[: len(asked)]]


__all__ = ["Inference", "inference"]
