"""Searching: score every candidate on all cores, store as you go, resume where it stopped."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from quadrille.data import Data
from quadrille.errors import InputError, OutputError, ParameterError, bad_parameter
from quadrille.recipe import Recipe, whole
from quadrille.study.admission import Admission
from quadrille.study.axes import beside_the_n_rule
from quadrille.study.grid import Grid
from quadrille.study.progress import Progress, reporting
from quadrille.study.results import Study
from quadrille.study.score import Evaluator
from quadrille.study.store import Header, Pending, Result, Store, discard, locked
from quadrille.study.work import Bench, Chunk, begin, workshop
from quadrille.study.work import run as run_chunk

Recipes = Grid | Iterable[Recipe | Grid]

IN_PROCESS_SECONDS = 2.0
"""Work that takes less than this is done in the process itself: starting workers costs about 0.7 s."""

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
    workers = _cores() if workers is None else whole("search", "workers", workers, least=1)
    path = Path(out)
    measures, then = with_exposed(measures, then)
    Evaluator(data, [*measures, *then])  # refuses what cannot be measured before anything is written
    if len({*measures, *then}) < len(measures) + len(then):
        raise bad_parameter("search", "measures", "measures that are named once each", [*measures, *then])
    admission = Admission(data, [*measures, *then])
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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _register(store: Store, recipes: Recipes, admission: Admission, *, new: bool) -> int:
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


def _candidates(store: Store, recipes: Recipes, admission: Admission) -> Iterator[tuple[str, int | str]]:
    """Return design and seed of every candidate; a grid of secret seeds goes on with those the study has."""
    for each in [recipes] if isinstance(recipes, Grid) else recipes:
        admission.check(each)
        if isinstance(each, Grid):
            seeds = store.seeds_of_grid(each.identity(), each.seeds) if each.secret else list(each.seeds)
            for design in each.designs():
                for seed in seeds:
                    yield design, seed
        else:
            yield each.identity(), each.parameters()["seed"]


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
        bench = Bench(self._data, self._store.header.measures)
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
        with workshop(self._workers, begin, (self._data, self._store.header.measures), run_chunk) as send:
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
