"""The files of both sources, by size, and what a scenario needs of them."""

from __future__ import annotations

from functools import lru_cache

from quadrille.data import Data
from quadrille.papers.dohrmann2009 import census, literacy
from quadrille.papers.dohrmann2009.design import Scenario, Source

OUTCOMES: dict[Source, tuple[str, ...]] = {"simulated": literacy.OUTCOMES, "adult": census.OUTCOMES}


@lru_cache(maxsize=2)
def file_of(source: Source, size: int) -> Data:
    """Return the file of that source and size: always the same one."""
    return literacy.simulated(size) if source == "simulated" else census.sample(size)


def file_for(source: Source, size: int, scenario: Scenario) -> Data:
    """Return the file with the variables of a scenario, the outcomes and the weight only."""
    data = file_of(source, size)
    assert data.weight is not None
    names = (*scenario.variables, *OUTCOMES[source], data.weight)
    return Data([data[name] for name in names], weight=data.weight, ticks=data.ticks)
