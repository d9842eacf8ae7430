"""Searching: score every candidate on all cores, store as you go, resume where it stopped."""

from __future__ import annotations

import sys
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path

from quadrille.data import Data, require_columns
from quadrille.errors import InputError, OutputError, ParameterError, bad_parameter
from quadrille.measure.axes import beside_the_n_rule, measure_of, orient, sides
from quadrille.measure.base import Address
from quadrille.params import whole
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study.grid import Grid
from quadrille.study.store import DONE, Header, Pending, Result, Store, discard, locked
from quadrille.study.study import Study
from quadrille.study.workers import IN_PROCESS_SECONDS, Chunk, Scorer, begin, cores, process_pool
from quadrille.study.workers import run as run_chunk

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


class CandidateCheck:
    """Looks at every recipe or grid that a search is given, at each list of columns once."""

    def __init__(self, data: Data, measures: Sequence[str]) -> None:
        self._data = data
        self._following = [
            each for each in measures if measure_of(each).follows_plan and not Address.parse(each).explicit
        ]
        self._free = [each for each in measures if not Address.parse(each).explicit]
        self._seen: set[tuple[str, tuple[str, ...]]] = set()
        self._moved: frozenset[str] | None = None
        self._steering_columns: tuple[str, ...] | None = None

    def know(self, designs: Iterable[str]) -> None:
        """Take the candidates into account that a study has already."""
        for design in designs if self._following else ():
            self._compare(self._moved_columns(Recipe.from_json(design)))

    def check(self, each: Recipe | Grid) -> None:
        """Refuse a recipe or a grid that this search cannot do."""
        if isinstance(each, Grid):
            each.require_columns(self._data)
            self._compare_steering(next(iter(each)).steering_columns)
            moving = [(name, values) for name, values in each.axes if each.method.params()[name].moves]
            for chosen in product(*(values for _, values in moving)):
                moved = each.method.moved(dict(zip((name for name, _ in moving), chosen, strict=True)))
                self._compare(moved or frozenset(self._data.keys))
            return
        self._compare_steering(each.steering_columns)
        for name, columns in each.columns().items():
            if (name, columns) not in self._seen:
                require_columns(self._data, columns, f"'{name}' of {type(each).__name__}")
                self._seen.add((name, columns))
        self._compare(self._moved_columns(each))

    def _compare_steering(self, steering_columns: tuple[str, ...]) -> None:
        if self._free and self._steering_columns not in (None, steering_columns):
            raise InputError(
                f"The measure {self._free[0]!r} is taken over the key variables without the columns that steer a draw, "
                "and the candidates are steered by different ones. Name its variables, or give these columns the role "
                "stratum in the codebook."
            )
        self._steering_columns = steering_columns

    def _compare(self, moved: frozenset[str]) -> None:
        if self._following and self._moved not in (None, moved):
            address = self._following[0]
            raise InputError(
                f"The measure {address!r} looks at the columns that a candidate moves, and the candidates move "
                f"different ones, so their scores could not be compared. Name its variables, as in {address}(A*B)."
            )
        self._moved = moved

    def _moved_columns(self, recipe: Recipe) -> frozenset[str]:
        """Return the columns that a recipe moves; of one that names none, all keys."""
        return recipe.moved(recipe.parameters()) or frozenset(self._data.keys)


Recipes = Grid | Iterable[Recipe | Grid]

_CHUNK = 256
_COMMIT_ROWS = 500
_COMMIT_SECONDS = 0.5


def search(
    data: Data,
    recipes: Recipes,
    measures: Sequence[str],
    *,
    out: str | Path = "study",
    workers: int | None = None,
    then: Sequence[str] = (),
    progress: Progress | bool | None = None,
) -> Study:
    """Score every candidate release and store the results in a study; an unfinished study is resumed.

    Parameters
    ----------
    data : the file to be released.
    recipes : a grid, or recipes and grids of any methods. Each recipe is scored once. A column that the data lack is
        refused before anything is written.
    measures : what to score, as in `score`; at least one. `exposed` joins `small_cells` by itself, here and in `then`.
    out : the study, one file that only its owner can read. It holds the seeds: keep it confidential.
    workers : processes to use; all cores by default.
    then : costly measures, scored only for candidates on the frontier or close to it.
    progress : False for none; a function that is told of results; by default a bar on a terminal.

    Example
    -------
    >>> import quadrille as qd
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
    >>> study = qd.search(qd.datasets.cps8d(), recipes, ["small_cells", "hellinger"], out="first", progress=False)
    >>> len(study), study.measures
    (8, ('small_cells', 'exposed', 'hellinger'))
    """
    workers = cores() if workers is None else whole("search", "workers", workers, least=1)
    path = Path(out)
    measures, then = with_exposed(measures, then)
    Evaluator(data, [*measures, *then])  # refuses what cannot be measured before anything is written
    if len({*measures, *then}) < len(measures) + len(then):
        raise bad_parameter("search", "measures", "measures that are named once each", [*measures, *then])
    admission = CandidateCheck(data, [*measures, *then])
    if not isinstance(recipes, Iterator):  # what is made one by one is checked one by one
        for each in [recipes] if isinstance(recipes, Grid) else recipes:
            admission.check(each)
    header = Header(data.fingerprint, data.n, tuple(measures), tuple(then))
    with locked(path), _opened(path, header) as (store, new):
        total = _register(store, recipes, admission, new=new)
        done = store.count("results")
        with reporting(progress, measures, done, total) as tell:
            _Search(store, data, workers, tell, done, total).run()
        if then:
            _score_later(store, data, then)
    return Study(path)


@contextmanager
def _opened(path: Path, header: Header) -> Generator[tuple[Store, bool]]:
    """Open the study for writing and tell whether it is new; a full disk leaves no new one without a result."""
    new, useless = not path.exists(), False
    store = Store.create_or_open(path, header)
    try:
        yield store, new
    except OutputError:
        useless = new and not store.count("results")
        raise
    finally:
        store.finish()
        if useless:
            discard(path)


def with_exposed(measures: Sequence[str], then: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what a study scores: `exposed` beside every `small_cells`, each time once; what is named twice stays."""
    early = beside_the_n_rule(measures)
    late = beside_the_n_rule(then)
    return early, [each for each in late if each not in early or (each in measures and each in then)]


def _register(store: Store, recipes: Recipes, admission: CandidateCheck, *, new: bool) -> int:
    """Store the candidates and count them; a study that would have none of them is not left behind."""
    try:
        admission.know(store.designs().values())
        total = store.add(_candidates(store, recipes, admission))
        if not total:
            raise ParameterError("The search has no candidate. Give a grid, or a list with a recipe.")
    except (InputError, ParameterError):
        if new or not store.count():
            store.path.unlink()
        raise
    return total


def _candidates(store: Store, recipes: Recipes, admission: CandidateCheck) -> Iterator[tuple[str, int | str]]:
    """Return design and seed of every candidate; a grid of secret seeds goes on with those the study has."""
    for each in [recipes] if isinstance(recipes, Grid) else recipes:
        admission.check(each)
        if isinstance(each, Grid):
            seeds = store.seeds_of_grid(each.identity(), each.seeds) if each.secret else list(each.seeds)
            for design in each.designs():
                for seed in seeds:
                    yield design, seed
        else:
            yield each.design_json(), each.parameters()["seed"]


class _Search:
    """One run over the candidates that have no result yet."""

    def __init__(self, store: Store, data: Data, workers: int, tell: Progress, done: int, total: int) -> None:
        self._store = store
        self._data = data
        self._workers = workers
        self._tell = tell
        self._done = done
        self._total = total
        self._pending = store.pending()
        self._chunks = _chunked(self._pending, store.designs())
        self._waiting: list[Result] = []
        self._committed = time.perf_counter()

    def run(self) -> None:
        """Begin in this process; call for workers when there is work for more than a moment."""
        try:
            if self._done < self._total and self._alone():
                self._together()
        finally:
            self._pending.close()
            self._commit()

    def _alone(self) -> bool:
        """Work until all is done, or until it is clear that workers would help."""
        bench = Scorer(self._data, self._store.header.measures)
        self._take(bench.run(next(self._chunks)))  # the first loads the kernels and tells nothing about the pace
        started, before = time.perf_counter(), self._done
        for chunk in self._chunks:
            self._take(bench.run(chunk))
            spent = time.perf_counter() - started
            left = spent / (self._done - before) * (self._total - self._done)
            if self._workers > 1 and left > IN_PROCESS_SECONDS:
                return True
        return False

    def _together(self) -> None:
        """Keep every worker busy with three chunks at a time, and store results as they come."""
        with process_pool(self._workers, begin, (self._data, self._store.header.measures), run_chunk) as send:
            flying = deque(send(chunk) for chunk in islice(self._chunks, 3 * self._workers))
            while flying:
                results = flying.popleft()()
                flying.extend(send(chunk) for chunk in islice(self._chunks, 1))
                self._take(results)

    def _take(self, results: Sequence[Result]) -> None:
        self._waiting += results
        self._done += len(results)
        if len(self._waiting) >= _COMMIT_ROWS or time.perf_counter() - self._committed > _COMMIT_SECONDS:
            self._commit()
        self._tell(results, self._done, self._total)

    def _commit(self) -> None:
        if self._waiting:
            self._store.write(self._waiting)
        self._waiting = []
        self._committed = time.perf_counter()


def _chunked(pending: Iterator[Pending], designs: dict[int, str]) -> Iterator[Chunk]:
    """Cut the candidates into chunks: a single one first, then larger ones, so that the pace is known soon."""
    size = 1
    while batch := list(islice(pending, size)):
        yield batch, {candidate.design: designs[candidate.design] for candidate in batch}
        size = min(4 * size, _CHUNK)


def _score_later(store: Store, data: Data, then: Sequence[str]) -> None:
    """Score the costly measures of the candidates on the frontier and next to it."""
    study = Study(store.path)
    evaluator = Evaluator(data, then)
    for candidate in study.near_frontier():
        if not store.has_later(candidate):
            values, reason = evaluator.values(study.recipe(candidate).plan(data))
            store.write_later([(candidate, reason, values)])
