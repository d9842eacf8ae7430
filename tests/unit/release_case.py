"""The file and the recipe on which releases are tested, and ways to look at a folder and to make a step fail."""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

import quadrille as qd

N = 400
PAIRS = 37


def table() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "Serial": [f"PERSON-{i:05d}" for i in range(N)],
            "Region": rng.choice(["north", "south", "east"], N),
            "Band": rng.choice([1, 2, 3, 9], N),
            "Income": pl.Series(rng.choice([1200.5, 2300.25, 990.0, np.nan], N), nan_to_null=True),
            "Smoker": rng.choice([True, False], N),
            "Factor": rng.choice([1.25, 0.5, 2.0], N),
        }
    )


BOOK = qd.Codebook(
    (
        qd.Variable("Serial", role="id"),
        qd.Variable("Region", "nominal", ("north", "south", "east"), ("North", "South", "East, far")),
        qd.Variable("Band", "ordinal", (1, 2, 3), ("low", "middle", "high"), missing=(9,)),
        qd.Variable("Income", "numeric", role="outcome"),
        qd.Variable("Factor", "numeric", role="weight"),
    )
)


def make_data() -> qd.Data:
    return qd.from_frame(table(), codebook=BOOK)


def make_recipe() -> qd.RandomSwap:
    return qd.RandomSwap(["Region", "Band"], pairs=PAIRS, same=["Smoker"], differ="any")


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def failing_at(call: int, error: BaseException, real: Callable[..., object]) -> Callable[..., object]:
    count = iter(range(10**6))

    def sometimes(*args: object, **kwargs: object) -> object:
        if next(count) == call:
            raise error
        return real(*args, **kwargs)

    return sometimes


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Let no file grow beyond a size: writing fails as on a full disk. The log of the tests may be one of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
