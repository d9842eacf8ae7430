"""Print every measured ratio beside its target; exit 1 when one is missed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table

from bench.controlled import controlled_results
from bench.core import candidate_results, growth_results, memory_result
from bench.designed import exact_results
from bench.moves import cycle_results, rank_results
from bench.nation import nation_results
from bench.private import private_results
from bench.reading import inspecting_ratios, reading_ratios
from bench.search import candidate_ratios, search_results
from bench.search import memory_result as search_memory
from bench.simulate import simulate_results
from bench.studio import studio_results
from bench.targeted import targeted_results
from bench.theory import table_error_results
from bench.timing import Result


def main() -> int:
    """Run all benchmarks."""
    console = Console(width=None if sys.stdout.isatty() else 150)
    results = [*candidate_results(), *growth_results(), memory_result()]
    results += [_reading(*row) for row in [*reading_ratios(), *inspecting_ratios()]]
    results += [*candidate_ratios(), *search_results(), search_memory()]
    results += _apart(controlled_results)
    results += exact_results()
    results += nation_results()
    results += _apart(targeted_results)
    results += [*private_results(), *rank_results(), *cycle_results()]
    results += table_error_results()
    results += simulate_results()
    results += studio_results()
    table = Table(title="Ratios, each against its baseline in the same run; preparation excluded on both sides")
    for heading in ("what", "measured", "target", "met", "remark"):
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for result in results:
        table.add_row(result.name, f"{result.value:.2f}", result.target, "yes" if result.met else "NO", result.remark)
    console.print(table)
    return 0 if all(result.met for result in results) else 1


def _apart(measured: Callable[[], list[Result]]) -> list[Result]:
    """Measure in a process of its own: growth over two sizes depends on the memory that earlier rows have used."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured).result()


def _reading(name: str, ratio: float, target: str) -> Result:
    return Result(name, ratio, target, ratio <= float(target.rsplit(maxsplit=1)[-1]))


if __name__ == "__main__":
    sys.exit(main())
