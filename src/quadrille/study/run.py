"""Searching: score every candidate on all cores, store as you go, resume where it stopped; or a few recipes at once."""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, product
from math import hypot, sqrt
from pathlib import Path
from statistics import fmean, mean, stdev
from typing import TYPE_CHECKING, Any, cast

from quadrille.data import Data, tidy
from quadrille.errors import InputError, MismatchError, OutputError, ParameterError, bad_parameter
from quadrille.measure import orient, sides
from quadrille.measure.base import Measure, Score
from quadrille.params import whole
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.score.published import Tables, require_table, tables_of, worst_cells
from quadrille.study.forecast import Candidates, Recipes, check_candidates, expanded, without_contradictions
from quadrille.study.grid import Grid
from quadrille.study.store import DONE, Header, Pending, Result, Store, discard, intact, locked
from quadrille.study.study import Study, unswapped_scores
from quadrille.study.workers import IN_PROCESS_SECONDS, Chunk, Scorer, begin, cores, own_methods, process_pool, shared
from quadrille.study.workers import run as run_chunk
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

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


_CHUNK = 256
_CHUNK_SECONDS = 0.5
_LOOK_SECONDS = 0.2
_ROUND = 8
_COMMIT_ROWS = 500
_COMMIT_SECONDS = 0.5


def search(
    data: Data,
    recipes: Recipes | Candidates,
    measures: Sequence[str],
    *,
    out: str | Path = "study",
    workers: int | None = None,
    then: Sequence[str] = (),
    tables: Tables = (),
    progress: Progress | bool | None = None,
    stop: Callable[[], bool] | None = None,
    allow_contradictions: bool = False,
) -> Study:
    """Score every candidate release and store the results in a study; an unfinished study is resumed.

    Parameters
    ----------
    data : the file to be released.
    recipes : a grid, or recipes, grids and curves (`DesignedSwap.curve`) of any methods. Each recipe is scored once. A
        column that the data lack is refused before anything is written.
    measures : what to score, as in `score`; at least one. `exposed` joins `small_cells` by itself, here and in `then`.
    out : the study, one file that only its owner can read. It holds the seeds: keep it confidential.
    workers : processes to use; all cores by default.
    then : costly measures, scored only for candidates on the frontier or close to it.
    tables : the tables that are published, such as "Age*Edu". Their `worst_cell` is scored, and the study remembers
        them for reports and releases.
    progress : False for none; a function that gets the results; by default a bar on a terminal.
    stop : asked between candidates, several times a second; once it says True, what is done is stored and the study is
        returned as it is. The same search goes on from there.
    allow_contradictions : let recipes pass that break what the columns of the file say about one another; see
        `contradictions`. Otherwise they are refused before anything is written.

    Example
    -------
    >>> import quadrille as qd
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seed=range(2))
    >>> study = qd.search(qd.datasets.cps8d(), recipes, ["small_cells", "hellinger"], out="first", progress=False)
    >>> len(study), study.measures
    (8, ('small_cells', 'exposed', 'hellinger'))
    """
    workers = cores() if workers is None else whole("search", "workers", workers, least=1)
    path, published = Path(out), tables_of("search", tables)
    for table in published:
        require_table(data, table)
    measures = (*measures, *worst_cells(published, (*measures, *then))) if published else measures
    candidates = check_candidates(data, recipes, measures, then, begun=path)
    if not allow_contradictions:
        candidates = without_contradictions(candidates)
    header = Header(data.fingerprint, data.n, candidates.measures, candidates.then)
    with locked(path), _opened(path, header) as (store, new):
        total = _register(store, candidates, new=new)
        _score_unswapped(store, candidates)
        if published:
            store.keep_tables(published)
        done = store.count("results")
        with reporting(progress, candidates.measures, done, total) as tell:
            run = _Search(store, candidates, workers, tell, done, total, stop or _never)
            run.run()
        if candidates.later is not None and not run.stopped:
            _score_later(store, data, candidates.later, stop or _never)
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


def _register(store: Store, candidates: Candidates, *, new: bool) -> int:
    """Store the candidates and count them; a study that would have none of them is not left behind."""
    try:
        candidates.check.know(store.designs().values())
        total = store.add(_in_rounds(_designs_and_seeds(store, candidates)))
        if not total:
            raise ParameterError("The search has no candidate. Give a grid, or a list with a recipe.")
    except (InputError, ParameterError):
        if new or not store.count():
            store.path.unlink()
        raise
    return total


Block = tuple[Sequence[str], Sequence[int | str]]
"""Designs that have their seeds in common."""


def _in_rounds(blocks: Iterable[Block]) -> Iterator[tuple[str, int | str]]:
    """Return the candidates in the order in which they are scored: all designs with few seeds first, then with more.

    A search that is looked at, or stopped, has then seen every design. Each round is as long as all before it, as
    preparing a design once more costs as much as some twenty candidates.
    """
    waiting: list[Block] = []
    for designs, seeds in blocks:
        yield from product(designs, seeds[:_ROUND])
        if len(seeds) > _ROUND:
            waiting.append((designs, seeds))
    done = _ROUND
    while waiting:
        for designs, seeds in waiting:
            yield from product(designs, seeds[done : 2 * done])
        done *= 2
        waiting = [block for block in waiting if len(block[1]) > done]


def _designs_and_seeds(store: Store, candidates: Candidates) -> Iterator[Block]:
    """Return the designs and seeds of all candidates; a grid of secret seeds goes on with those the study has."""
    versions = _versions(store)
    for given in candidates:
        candidate, method = given, given.method if isinstance(given, Grid) else type(given)
        held = versions.get(method.method_name, set())
        if method.stream_version in held:  # the study goes on with the plans that it began with
            method = method.versions()[method.stream_version]
            candidate = _in_version(candidate, method)
        _refuse_other_version(store.path, method, held)
        if isinstance(candidate, Grid):
            seeds = candidate.seeds
            yield candidate.designs, store.seeds_of_grid(candidate.identity(), seeds) if candidate.secret else seeds
        else:
            yield (candidate.design_json(),), (candidate.parameters()["seed"],)


def _in_version(candidate: Grid | Recipe, method: type[Recipe]) -> Grid | Recipe:
    return replace(candidate, method=method) if isinstance(candidate, Grid) else method(**candidate.parameters())


def _versions(store: Store) -> dict[str, set[object]]:
    """Return the versions of each method that the study holds."""
    found: dict[str, set[object]] = {}
    with intact(store.path):
        for design in store.designs().values():
            document = json.loads(design)
            found.setdefault(document["method"], set()).add(document["version"])
    return found


def _refuse_other_version(path: Path, method: type[Recipe], held: Set[object]) -> None:
    """Refuse a version of a method that the study does not hold next to another: their plans are not comparable."""
    if not held or method.version in held:
        return
    ways = [
        f"write version = {number} next to its method in the job file (in Python: {made.__module__}.{made.__name__})"
        for number, made in method.versions().items()
        if number in held
    ]
    raise MismatchError(
        f"The study {str(path)!r} holds {method.method_name} of version {' and '.join(sorted(map(str, held)))}, and "
        f"this search would add version {method.version}, which draws other plans. "
        + "".join(f"To go on with the study, {way}. " for way in ways[:1])
        + f"To search with version {method.version}, use another name for the study."
    )


def _never() -> bool:
    return False


class _StoppedError(Exception):
    """Leaves a search in the middle, so that its workers end at once."""


class _Search:
    """One run over the candidates that have no result yet; `stopped` tells that it was left before the end."""

    def __init__(
        self,
        store: Store,
        candidates: Candidates,
        workers: int,
        tell: Progress,
        done: int,
        total: int,
        stop: Callable[[], bool],
    ) -> None:
        self.stopped = False
        self._store = store
        self._candidates = candidates
        self._workers = workers
        self._tell = tell
        self._done = done
        self._total = total
        self._stop = stop
        self._pending = store.pending()
        self._chunks = _Chunks(self._pending, store.designs())
        self._waiting: list[Result] = []
        self._committed = time.perf_counter()

    def run(self) -> None:
        """Begin in this process; call for workers when there is work for more than a moment."""
        try:
            if self._done < self._total and self._alone():
                self._together()
        except _StoppedError:
            self.stopped = True
        finally:
            self._pending.close()
            self._commit()

    def _look(self) -> None:
        if self._stop():
            raise _StoppedError

    def _alone(self) -> bool:
        """Work until all is done, or until it is clear that workers would help."""
        self._look()
        scorer = Scorer(self._candidates.data, self._candidates.measures, self._candidates.evaluator)
        self._take(scorer.run(next(self._chunks)))  # the first loads the kernels and tells nothing about the pace
        started, before = time.perf_counter(), self._done
        self._look()
        for chunk in self._chunks:
            self._take(scorer.run(chunk))
            spent = time.perf_counter() - started
            left = spent / (self._done - before) * (self._total - self._done)
            self._look()
            if self._workers > 1 and left > IN_PROCESS_SECONDS:
                return True
        return False

    def _together(self) -> None:
        """Keep every worker busy with three chunks at a time, and store results as they come."""
        own = own_methods(self._store.designs().values())
        with (
            shared(self._candidates.data) as data,
            process_pool(self._workers, begin, (data, self._candidates.measures, own), run_chunk) as send,
        ):
            flying = deque(send(chunk) for chunk in islice(self._chunks, 3 * self._workers))
            while flying:
                results = self._wait(flying.popleft())
                flying.extend(send(chunk) for chunk in islice(self._chunks, 1))
                self._take(results)
                self._look()

    def _wait(self, result: Callable[[float], list[Result]]) -> list[Result]:
        """Wait for the results of a chunk, and look in between whether to stop: a candidate may take long."""
        while True:
            try:
                return result(_LOOK_SECONDS)
            except TimeoutError:
                self._look()

    def _take(self, results: Sequence[Result]) -> None:
        self._chunks.learn(results)
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


class _Chunks:
    """The candidates in chunks of about half a second: a single one first, then larger ones as far as they are quick.

    Whoever watches hears of a chunk when it is done, and a search stops between two.
    """

    def __init__(self, pending: Iterator[Pending], designs: dict[int, str]) -> None:
        self._pending = pending
        self._designs = designs
        self._design_of: dict[int, int] = {}
        self._seconds: dict[int, float] = {}
        self._latest = 0.0
        self._most = 1

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        batch: list[Pending] = []
        expected = 0.0
        while len(batch) < self._most and expected < _CHUNK_SECONDS and (candidate := next(self._pending, None)):
            batch.append(candidate)
            self._design_of[candidate.id] = candidate.design
            expected += self._seconds.get(candidate.design, self._latest)
        if not batch:
            raise StopIteration
        self._most = min(4 * self._most, _CHUNK)
        return batch, {candidate.design: self._designs[candidate.design] for candidate in batch}

    def learn(self, results: Sequence[Result]) -> None:
        """Note what the candidates of each design take; a design that is new is thought to be like the latest."""
        for result in results:
            self._latest = self._seconds[self._design_of.pop(result.id)] = result.seconds


def _score_unswapped(store: Store, candidates: Candidates) -> None:
    """Score the file as it is, which every candidate is to be compared with."""
    if store.unswapped() is None:
        evaluators = [candidates.evaluator, *([] if candidates.later is None else [candidates.later])]
        store.keep_unswapped(unswapped_scores(candidates.data, (*candidates.measures, *candidates.then), evaluators))


def _score_later(store: Store, data: Data, evaluator: Evaluator, stop: Callable[[], bool]) -> None:
    """Score the costly measures of the candidates on the frontier and next to it."""
    study = Study(store.path)
    for candidate in study.near_frontier():
        if stop():
            return
        if not store.has_later(candidate):
            values, reason = evaluator.values(study.recipe(candidate).plan(data))
            store.write_later([(candidate, reason, values)])


PAIRS = "pairs"
"""Stands among the measures for what is no measure: how many pairs a draw makes."""
_OWNER = "score_recipes"

Named = Recipe | Mapping[str, Recipe] | Recipes


@dataclass(frozen=True, repr=False)
class RecipeScores(Shown):
    """The scores of some designs, several draws each."""

    runs: pl.DataFrame
    """A row per draw and measure: recipe, rate, run, measure, better, value, note, as `chart.metrics_by_rate` takes it.
    `rate` is the share of the records that take part, both partners counted."""

    def frame(self) -> pl.DataFrame:
        """Return a row per recipe and measure: mean, sd and standard_error over the draws that have a value.

        `difference` is the mean minus that of the first recipe, and `difference_error` its standard error, to tell an
        effect from chance. One draw alone has no sd.
        """
        cells: dict[tuple[object, str], list[dict[str, Any]]] = {}
        for row in self.runs.iter_rows(named=True):
            cells.setdefault((row["recipe"], row["measure"]), []).append(row)
        first = next(iter(cells))[0]
        means = {key: _mean(rows) for key, rows in cells.items()}
        return tidy([row | _difference(row, means[first, key[1]], key[0] == first) for key, row in means.items()])

    def notes(self) -> list[tuple[str, str]]:
        """Return what must be said of some measures, such as why one has no value: each with its notes, once."""
        noted = self.runs.filter(self.runs["note"] != "").select("measure", "note").unique(maintain_order=True)
        return list(noted.iter_rows())


def score_recipes(
    data: Data,
    recipes: Named,
    measures: Sequence[str],
    *,
    draws: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RecipeScores:
    """Draw and score recipes several times each, in this process, and compare them in one table.

    Parameters
    ----------
    data : the file to be released.
    recipes : one, several, a grid or a curve; a dict gives them names, otherwise they are numbered from 1. Recipes
        that differ by seed only are draws of one recipe.
    measures : what to score, as in `score`. The word "pairs" stands for the number of pairs that a draw makes.
    draws : draws of every recipe. One whose seed is a number is drawn with the seeds that follow it, too; else every
        draw has a secret seed. Without `draws` every recipe is drawn once, with its own seed.
    progress : is called with the number of draws done and the number of all.

    Of the result, `frame()` has a row per recipe and measure with the means, and `runs` a row per draw and measure.

    What rules cost, and what more swapping does:

    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> ruled = qd.RandomSwap(["Age"], rate=0.1, rules=["Age=<25 & MS=Married"], seed=1)
    >>> free = qd.RandomSwap(["Age"], rate=0.1, seed=1)
    >>> table = qd.score_recipes(data, {"free": free, "ruled": ruled}, ["pairs", "hellinger"], draws=3).frame()
    >>> table["difference"][3] < -5 * table["difference_error"][3]
    True
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], rate=[0.01, 0.05], seed=range(2))
    >>> table = qd.score_recipes(data, recipes, ["hellinger"]).frame()
    >>> table.select("recipe", "measure", "better", "rate", "draws").rows()
    [(1, 'hellinger', 'lower', 0.0099..., 2), (2, 'hellinger', 'lower', 0.0499..., 2)]
    >>> table.columns[5:]
    ['mean', 'sd', 'standard_error', 'difference', 'difference_error']
    """
    seeded = [draw for name, recipe in _named(recipes, data) for draw in _seeded(name, recipe, draws)]
    if not seeded:
        raise bad_parameter(_OWNER, "recipes", "one recipe or more", [])
    if draws is not None and len({recipe.to_json() for _, recipe in seeded}) < len(seeded):
        raise ParameterError(f"{_OWNER} takes 'draws', or recipes with several seeds each, not both.")
    scored = [address for address in measures if address != PAIRS]
    evaluator = Evaluator(data, scored) if scored or not measures else None
    numbers: dict[str, int] = {}
    rows: list[dict[str, object]] = []
    for run, (name, recipe) in enumerate(seeded):
        design = numbers.setdefault(recipe.design_json(), len(numbers) + 1)
        plan = recipe.plan(data)
        results: Mapping[str, tuple[Measure, Score]] = {} if evaluator is None else evaluator.score(plan).results
        common = {"recipe": name or design, "rate": len(plan.rows) / data.n, "run": run + 1}
        for address in measures:
            if address == PAIRS:
                found = {"better": "", "value": plan.report(data).pairs, "note": ""}
            else:
                kind, score = results[address]
                found = {"better": kind.direction, "value": score.value, "note": score.note}
            rows.append({**common, "measure": address, **found})
        if progress is not None:
            progress(run + 1, len(seeded))
    return RecipeScores(tidy(rows))


def _named(recipes: Named, data: Data) -> Iterator[tuple[str, Recipe]]:
    """Return every recipe with the name that it has."""
    if isinstance(recipes, Mapping):
        yield from cast("Mapping[str, Recipe]", recipes).items()
        return
    for candidate in [recipes] if isinstance(recipes, Recipe) else expanded(recipes, data):
        for recipe in [candidate] if isinstance(candidate, Recipe) else candidate:
            yield "", recipe


def _seeded(name: str, recipe: Recipe, draws: int | None) -> Iterator[tuple[str, Recipe]]:
    """Return a recipe with the seed of every draw."""
    if draws is None:
        yield name, recipe
        return
    seed = recipe.parameters()["seed"]
    for number in range(whole(_OWNER, "draws", draws, least=1)):
        yield name, replace(cast("Any", recipe), seed=seed + number if isinstance(seed, int) else None)


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise the draws of a recipe; one without a value counts nowhere."""
    values = [row["value"] for row in rows if row["value"] is not None]
    spread = stdev(values) if len(values) > 1 else None
    return {
        **{name: rows[0][name] for name in ("recipe", "measure", "better")},
        "rate": mean(row["rate"] for row in rows),
        "draws": len(values),
        "mean": fmean(values) if values else None,
        "sd": spread,
        "standard_error": None if spread is None else spread / sqrt(len(values)),
    }


def _difference(row: Mapping[str, Any], first: Mapping[str, Any], alone: bool) -> dict[str, Any]:
    known = not alone and None not in (row["mean"], first["mean"])
    sure = known and None not in (row["standard_error"], first["standard_error"])
    return {
        "difference": row["mean"] - first["mean"] if known else None,
        "difference_error": hypot(row["standard_error"], first["standard_error"]) if sure else None,
    }
