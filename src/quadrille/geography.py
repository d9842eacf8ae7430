"""Nested levels of geography: every area of a finer level lies in one area of each coarser level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import InputError

if TYPE_CHECKING:
    from quadrille.data import Column

Ints = NDArray[np.int64]

NOBODY = -1
"""Stands for the coarser area of an area without records."""


def check_nesting(levels: Sequence[Column]) -> None:
    """Refuse levels, the coarsest first, of which an area lies in two areas of a coarser one.

    Records without a value of the finer level say nothing. Those without one of the coarser level must be all of an
    area, or none. One pass over the records per pair of levels.
    """
    for place, finer in enumerate(levels):
        for coarser in reversed(levels[:place]):
            _check_pair(finer, coarser)


def areas_within(finer: Column, coarser: Column) -> Ints:
    """Return the code of the coarser area that each area of the finer level lies in, `NOBODY` without records.

    All missing codes of the coarser level count as one, the first after its areas.

    >>> import quadrille as qd
    >>> from quadrille.geography import areas_within
    >>> data = qd.datasets.state(records=3_200)
    >>> lies_in = areas_within(data["tract"], data["county"])
    >>> data["tract"].labels[60], data["county"].labels[lies_in[60]]
    ('03-002', '03')
    """
    areas = np.full(finer.size, NOBODY, dtype=np.int64)
    areas[finer.values] = coarser.one_missing
    return areas[: finer.valid]


def records_in(level: Column) -> Ints:
    """Return the number of records of each area that the codebook lists."""
    return np.bincount(level.values, minlength=level.size)[: level.valid]


def _check_pair(finer: Column, coarser: Column) -> None:
    known = finer.values < finer.valid
    apart = _in_two_areas(finer, coarser, known & (coarser.values < coarser.valid))
    name, whole = finer.variable.name, coarser.variable.name
    if apart:
        raise InputError(
            f"The levels of geography are not nested: {apart:,} of {finer.valid:,} areas of {name!r} lie in more than "
            f"one area of {whole!r}. {_advice(finer, coarser)}"
        )
    partly = _in_two_areas(finer, coarser, known)
    if partly:
        raise InputError(
            f"The levels of geography are not nested: in {partly:,} of {finer.valid:,} areas of {name!r} the value of "
            f"{whole!r} is missing for some records and known for others. Fill it in, or clear it for the whole area."
        )


def _in_two_areas(finer: Column, coarser: Column, counted: NDArray[np.bool_]) -> int:
    """Count the finer areas whose counted records lie in two coarser ones."""
    fine = finer.values if counted.all() else finer.values[counted]
    whole = coarser.one_missing
    whole = whole if counted.all() else whole[counted]
    last = np.zeros(finer.size, dtype=whole.dtype)
    last[fine] = whole
    return len(np.unique(fine[last[fine] != whole]))


def _advice(finer: Column, coarser: Column) -> str:
    name, whole = finer.variable.name, coarser.variable.name
    counted = (finer.values < finer.valid) & (coarser.values < coarser.valid)
    if not _in_two_areas(coarser, finer, counted):
        return f"It is the other way round: level 1 is the coarsest, so {name!r} comes before {whole!r}."
    return (
        f"If the codes of {name!r} start anew in each {whole!r}, join the two into one code; otherwise correct these "
        f"records, or take the level away from one of the columns."
    )
