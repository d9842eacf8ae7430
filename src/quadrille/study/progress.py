"""How a search shows that it is getting on: done, per second, time left, size of the frontier so far."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from quadrille.study.axes import orient, sides
from quadrille.study.store import DONE, Result

Progress = Callable[[Sequence[Result], int, int], None]
"""Told of new results, of the number done and of the number of all candidates."""


class Front:
    """The frontier of two objectives, kept up to date one point at a time."""

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = []

    def add(self, x: float, y: float) -> None:
        """Take in a point, and let go of those that it dominates."""
        place = bisect_right(self._points, (x, y))
        if place and self._points[place - 1][1] <= y:
            return
        end = place
        while end < len(self._points) and self._points[end][1] >= y:
            end += 1
        self._points[bisect_left(self._points, (x, y)) : end] = [(x, y)]

    def __len__(self) -> int:
        return len(self._points)


@contextmanager
def reporting(progress: Progress | bool | None, measures: Sequence[str], done: int, total: int) -> Generator[Progress]:
    """Yield what results are told to: the function given, a bar on a terminal, or nothing."""
    if callable(progress):
        yield progress
    elif progress is False or not sys.stderr.isatty() or done == total:
        yield lambda _results, _done, _total: None
    else:
        with _bar(measures, done, total) as tell:
            yield tell


@contextmanager
def _bar(measures: Sequence[str], done: int, total: int) -> Generator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[front]}"),
    )
    axes = sides(measures)
    front = Front()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Searching", total=total, completed=done, pace="", front="")

        def tell(results: Sequence[Result], now: int, _total: int) -> None:
            for result in results:
                pair = None if axes is None else [result.values[i] for i in axes]
                if pair and result.status == DONE and None not in pair:
                    front.add(*(orient(measures[i], v) for i, v in zip(axes or (), pair, strict=True) if v is not None))
            speed = bar.tasks[0].speed
            pace = f"{speed:,.0f} per second" if speed else ""
            bar.update(task, completed=now, pace=pace, front=f"frontier {len(front)}" if axes else "")

        yield tell
