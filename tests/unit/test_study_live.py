"""A study is readable while it grows: results in order of their numbers, candidates and frontiers by plain SQL."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.errors import InputError, QuadrilleError
from quadrille.study import run
from quadrille.study.store import Header, Result, Store

AXES = ["exposed", "hellinger"]
GRID = {"swap": [["Edu"], ["MS"], ["Race", "AnnSal"]], "pairs": [50, 7081]}


@pytest.fixture(scope="module")
def study(cps8d: qd.Data, tmp_path_factory: pytest.TempPathFactory) -> qd.Study:
    out = tmp_path_factory.mktemp("live") / "study"
    return qd.search(cps8d, qd.grid(qd.RandomSwap, **GRID, seed=range(20)), AXES, out=out, workers=1, progress=False)


def test_every_design_is_scored_with_its_first_seeds_before_any_goes_on(study: qd.Study) -> None:
    seeds = study.frame()["seed_no"].to_list()
    assert seeds == [s for low, high in ((1, 9), (9, 17), (17, 21)) for _ in range(6) for s in range(low, high)]


@pytest.mark.parametrize("workers", [1, 2])
def test_numbers_of_results_ascend_in_the_order_in_which_they_are_stored(
    cps8d: qd.Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(run, "IN_PROCESS_SECONDS", 0.0)
    monkeypatch.setattr(run, "_CHUNK", 4)
    monkeypatch.setattr(run, "_COMMIT_ROWS", 1)
    told: list[int] = []
    seen: list[int] = []
    out = tmp_path / "study"

    def look(results: list[Result], _done: int, _total: int) -> None:
        told.extend(result.id for result in results)
        with closing(Store.open(out)) as store:
            seen.extend(result.id for result in store.since(seen[-1] if seen else 0))

    recipes = qd.grid(qd.RandomSwap, **GRID, seed=range(20))
    qd.search(cps8d, recipes, AXES, out=out, workers=workers, progress=look)
    assert told == seen == list(range(1, 121))


def test_since_returns_the_results_after_a_number_with_their_scores(study: qd.Study) -> None:
    with closing(Store.open(study.path)) as store:
        results = store.since(100)
        assert [result.id for result in results] == list(range(101, 121))
        assert store.since(100, most=3) == results[:3]
        assert store.since(120) == []
    expected = study.scores[100:]
    got = np.array([[np.nan if v is None else v for v in result.values] for result in results])
    assert np.array_equal(got, expected, equal_nan=True)


def test_a_candidate_is_read_alone_and_without_its_seed(study: qd.Study) -> None:
    study.note(9, "for the board")
    row = study.frame().row(8, named=True)
    with closing(Store.open(study.path)) as store:
        found = store.candidate(9)
        assert (found.seed_no, found.note, found.values) == (
            row["seed_no"],
            "for the board",
            (row[AXES[0]], row[AXES[1]]),
        )
        assert '"seed"' not in found.design
        with pytest.raises(InputError, match="no candidate 999"):
            store.candidate(999)


def test_the_frontier_of_the_data_base_is_that_of_the_study(study: qd.Study) -> None:
    expected = study.frontier(*AXES)
    with closing(Store.open(study.path)) as store:
        points = store.frontier(*AXES)
        assert [point.id for point in points] == expected["id"].to_list()
        assert [point.y for point in points] == expected["hellinger"].to_list()
        dominated = {row["id"]: row["dominated_by"] for row in study.dominated_by(*AXES).to_dicts()}
        counts = {number: store.dominance(number, *AXES) for number in (*dominated, 21)}
        assert {number: found[1] for number, found in counts.items() if found} == dominated
        assert sum(found[0] for found in counts.values() if found) == sum(dominated.values())
        with pytest.raises(QuadrilleError, match="no measure 'helinger'"):
            store.frontier("exposed", "helinger")


SCORE = st.one_of(st.none(), st.integers(-3, 3).map(float))


@given(st.lists(st.tuples(SCORE, SCORE), max_size=12), st.data())
@examples(24)
def test_law_frontiers_agree_for_any_scores_and_directions(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float | None, float | None]], data: st.DataObject
) -> None:
    measures = data.draw(st.sampled_from([("exposed", "hellinger"), ("conditional_entropy", "cramers_v_change")]))
    path = tmp_path_factory.mktemp("any") / "study"
    store = Store.create_or_open(path, Header("f", 10, measures, ()))
    design = qd.RandomSwap(["a"], pairs=1, seed=1).design_json()
    store.add((design, seed) for seed in range(len(rows)))
    if rows:
        store.write([Result(place + 1, 0, "", 0.0, values) for place, values in enumerate(rows)])
    found = {point.id for point in store.frontier(*measures)}
    store.finish()
    expected = qd.Study(path).frontier(*measures)
    assert found == (set(expected["id"]) if len(expected) else set())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_that_is_told_to_stop_stores_what_is_done_and_goes_on_later(
    cps8d: qd.Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: qd.Study, workers: int
) -> None:
    monkeypatch.setattr(run, "IN_PROCESS_SECONDS", 0.0)
    monkeypatch.setattr(run, "_CHUNK", 4)
    recipes, done = qd.grid(qd.RandomSwap, **GRID, seed=range(20)), []
    stopped = qd.search(
        cps8d,
        recipes,
        AXES,
        out=tmp_path / "s",
        workers=workers,
        stop=lambda: len(done) > 2,
        progress=lambda *n: done.append(n),
    )
    assert 0 < stopped.counts()["pending"] < 120
    whole = qd.search(cps8d, recipes, AXES, out=tmp_path / "s", workers=1, progress=False)
    assert whole.frame().drop("seconds", "note").equals(study.frame().drop("seconds", "note"))


def test_a_slow_candidate_does_not_keep_a_search_with_workers_from_stopping(
    cps8d: qd.Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow: list[float] = []

    class Search(run._Search):
        def _together(self) -> None:
            slow.append(time.monotonic())

            def never(seconds: float) -> list[Result]:
                time.sleep(min(seconds, 0.01))
                raise TimeoutError

            self._wait(never)

    monkeypatch.setattr(run, "_Search", Search)
    monkeypatch.setattr(run, "IN_PROCESS_SECONDS", 0.0)
    recipes = qd.grid(qd.RandomSwap, **GRID, seed=range(3))
    found = qd.search(cps8d, recipes, AXES, out=tmp_path / "s", workers=2, stop=lambda: bool(slow), progress=False)
    assert found.counts()["pending"] > 0


def test_chunks_take_half_a_second_also_where_designs_differ() -> None:
    pending = iter([run.Pending(number, 1 + (number > 40), "") for number in range(1, 400)])
    chunks, sizes = run._Chunks(pending, {1: "quick", 2: "slow"}), []
    for batch, _ in chunks:
        sizes.append([candidate.design for candidate in batch])
        chunks.learn([Result(each.id, 0, "", 0.01 if each.design == 1 else 0.2, ()) for each in batch])
    assert sizes[:3] == [[1], [1] * 4, [1] * 16]
    assert all(len(designs) <= 3 for designs in sizes[4:])
    assert sum(map(len, sizes)) == 399


def test_forgotten_seeds_are_gone_from_the_file_and_the_scores_stay(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[50], seeds=4)
    found = qd.search(cps8d, recipes, AXES, out=tmp_path / "s", workers=1, progress=False)
    seeds, scores = {number: found.recipe(number).seed for number in found.ids.tolist()}, found.scores.copy()
    assert all(str(seed).encode() in found.path.read_bytes() for seed in seeds.values())
    assert found.forget_seeds(keep=[3]) == 3
    kept = {number for number, seed in seeds.items() if seed == seeds[3]}
    assert len(kept) == 2
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for number, seed in seeds.items():
        assert (str(seed).encode() in held) == (number in kept)
    assert found.recipe(3).seed == seeds[3]
    with pytest.raises(InputError, match="seed of this candidate was forgotten"):
        found.recipe(next(number for number in seeds if number not in kept))
    assert np.array_equal(found.scores, scores)
    assert found.forget_seeds(keep=[3]) == 0
    fresh = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[50], seeds=4)
    again = qd.search(cps8d, fresh, AXES, out=tmp_path / "s", workers=1, progress=False)
    assert len(again) == 16, "the same grid, searched again, has fresh seeds"


def test_a_candidate_without_a_result_goes_with_its_seed(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[50], seeds=4)
    done: list[object] = []
    found = qd.search(
        cps8d, recipes, AXES, out=tmp_path / "s", workers=1, stop=lambda: bool(done), progress=lambda *n: done.append(n)
    )
    assert found.counts()["pending"] == 3
    found.forget_seeds(keep=[1])
    assert qd.Study(found.path).counts()["pending"] == 0
