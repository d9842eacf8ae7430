"""A private swap against a permutation swap of as many records: time, and memory by records moved.

Run `python -m bench.private` for a million records, or `python -m bench.private 10000000` for more.
"""

from __future__ import annotations

import sys
import tracemalloc

from bench.core import large_file
from bench.timing import Result, best
from quadrille.data import Data
from quadrille.recipe import Recipe
from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.private import PrivateSwap

MOVED = 50_000
WITHIN = ["Sex", "Race"]


def private_results(n: int = 10**6) -> list[Result]:
    """Compare draws of 5 % of the records, and the memory of drawing as many from a file a tenth as large."""
    data, small = large_file(n), large_file(n // 10)
    private = PrivateSwap(["Edu"], within=WITHIN, chance=0.05, seed=1)
    permuted = PermutationSwap(["Edu"], within=WITHIN, rate=0.05, kind="cycles", seed=1)
    sides = [(recipe.prepared(data), recipe.stream()) for recipe in (private, permuted)]
    ours, theirs = best(*(lambda p=p, s=s: p.draw(s) for p, s in sides))
    ready, also = best(lambda: private.prepare(data), lambda: permuted.prepare(data))
    few = MOVED * min(1.0, n / 10**6)
    here, there = (
        _peak(file, PrivateSwap(["Edu"], within=WITHIN, chance=few / file.n, seed=1)) for file in (data, small)
    )
    return [
        Result(
            f"private swap drawn, N = {n:,}, as a multiple of a permutation swap",
            ours / theirs,
            "<= 3",
            ours <= 3 * theirs,
            f"{ours / n * 1e9:.1f} ns per record of the file",
        ),
        Result("private swap prepared, as a multiple of the same", ready / also, "<= 3", ready <= 3 * also),
        Result(
            "memory of a draw of as many records, N against N / 10",
            here / there,
            "< 1.5",
            here < 1.5 * there,
            f"{here / few:.0f} bytes per record moved",
        ),
    ]


def _peak(data: Data, recipe: Recipe) -> float:
    """Return the most memory that a draw takes beyond what is prepared."""
    prepared, stream = recipe.prepared(data), recipe.stream()
    prepared.draw(stream)
    tracemalloc.start()
    prepared.draw(stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak)


if __name__ == "__main__":
    results = private_results(int(sys.argv[1]) if len(sys.argv) > 1 else 10**6)
    for each in results:
        print(f"{each.name}: {each.value:.2f} ({each.target}) {each.remark}")
    sys.exit(not all(each.met for each in results))
