"""Plausibility rules once more, record by record in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from oracles import meets, values
from quadrille.data import Data
from strategies import Restriction, restrictions

Record = dict[str, object]
Test = Callable[[Record], bool]


def as_records(data: Data) -> list[Record]:
    columns = {name: values(data, name) for name in data.columns}
    return [{name: columns[name][i] for name in columns} for i in range(data.n)]


def exchanged(one: Record, other: Record, moved: Sequence[str], linked: Mapping[str, Sequence[str]]) -> Record:
    """What `one` holds after the exchange; linked columns move where the parent differs."""
    names = [*moved, *(name for parent, each in linked.items() if one[parent] != other[parent] for name in each)]
    return one | {name: other[name] for name in names}


def spoiling(
    data: Data, tests: Sequence[Test], moved: Sequence[str], linked: Mapping[str, Sequence[str]] | None = None
) -> np.ndarray:
    """Which pairs would make one of the two break a rule that it did not break before, (n, n)."""
    known = as_records(data)
    spoils = np.zeros((data.n, data.n), dtype=bool)
    for i, one in enumerate(known):
        for j, other in enumerate(known):
            new = exchanged(one, other, moved, linked or {})
            spoils[i, j] = any(test(new) and not test(one) for test in tests)
    return spoils | spoils.T


def as_test(rule: Restriction) -> Test:
    return lambda record: all(record[name] in allowed for name, allowed in rule.allowed.items())


@st.composite
def rule_sets(draw: st.DrawFn, data: Data, most: int = 3) -> list[Restriction]:
    """Rules that some record keeps, each different."""
    found = draw(st.lists(restrictions(data), min_size=1, max_size=most, unique_by=lambda rule: rule.text))
    kept = [rule for rule in found if not all(meets(data, rule.allowed))]
    assume(kept)
    return kept


def created(before: Data, after: Data, rules: Sequence[Restriction]) -> int:
    """How many records break a rule after and did not before."""
    pairs = (zip(meets(before, rule.allowed), meets(after, rule.allowed), strict=True) for rule in rules)
    return sum(now and not was for pair in pairs for was, now in pair)
