"""A search scores every candidate once, stores it, resumes, and refuses what does not belong to the study."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError, MismatchError, OutputError, ParameterError, QuadrilleError
from quadrille.study import forecast, run
from quadrille.study import grid as grids
from quadrille.study.store import Store

MEASURES = ["small_cells", "exposed", "hellinger"]


@pytest.fixture(scope="module")
def grid() -> object:
    return qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"], ["Race", "AnnSal"]], pairs=[50, 7081], seed=range(4))


@pytest.fixture(scope="module")
def study(cps8d: qd.Data, grid: object, tmp_path_factory: pytest.TempPathFactory) -> qd.Study:
    return qd.search(cps8d, grid, MEASURES, out=tmp_path_factory.mktemp("study") / "study")


def scores(study: qd.Study) -> pl.DataFrame:
    return study.frame().drop("seconds")


def test_every_candidate_has_the_score_of_its_recipe(cps8d: qd.Data, study: qd.Study) -> None:
    frame = study.frame().filter(pl.col("status") == "done")
    assert len(frame) == 20
    for row in frame[[0, 5, 9, 16]].to_dicts():
        plan = study.recipe(row["id"]).plan(cps8d)
        expected = qd.score(cps8d, plan, MEASURES)
        for measure in MEASURES:
            assert row[measure] == pytest.approx(expected[measure], abs=1e-12)


def test_what_cannot_be_done_is_recorded_with_the_reason(study: qd.Study) -> None:
    frame = study.frame().filter(pl.col("status") == "infeasible")
    assert set(frame["swap"]) == {"Race + AnnSal"}
    assert all("the maximum is 7,080" in reason for reason in frame["reason"])
    assert study.counts() == {"pending": 0, "done": 20, "infeasible": 4, "failed": 0}


BAD = {
    "a recipe": [qd.RandomSwap(["Edu"], pairs=10, seed=1), qd.RandomSwap(["MS"], pairs=10, same=["Edo"], seed=1)],
    "a grid": qd.grid(qd.RandomSwap, swap=[["MS"], ["MS", "Edo"]], pairs=[10, 20], seeds=2),
    "a grid beside a recipe": (
        qd.RandomSwap(["Edu"], pairs=10, seed=1),
        qd.grid(qd.RandomSwap, swap="MS", different=[[], ["Edo"]], pairs=10),
    ),
}


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_an_unknown_column_is_refused_before_anything_is_written(
    cps8d: qd.Data, tmp_path: Path, name: str, one_by_one: bool
) -> None:
    recipes = iter([BAD[name]] if isinstance(BAD[name], grids.Grid) else BAD[name]) if one_by_one else BAD[name]
    with pytest.raises(InputError, match=r"no column 'Edo' in '(swap|same|different)' of RandomSwap.*mean: 'Edu'"):
        qd.search(cps8d, recipes, MEASURES, out=tmp_path / "study")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_column_leaves_a_study_as_it_was(cps8d: qd.Data, tmp_path: Path) -> None:
    found = qd.search(cps8d, [qd.RandomSwap(["Edu"], pairs=10, seed=1)], MEASURES, out=tmp_path / "study")
    before = scores(found)
    for recipes in (BAD["a recipe"], iter(BAD["a recipe"])):
        with pytest.raises(InputError, match="no column 'Edo'"):
            qd.search(cps8d, recipes, MEASURES, out=found.path)
        assert scores(qd.Study(found.path)).equals(before)


def test_what_a_method_refuses_fails_its_candidates_and_not_the_search(tmp_path: Path) -> None:
    data = qd.from_frame(
        pl.DataFrame({"a": ["x", "y"] * 20, "b": ["u", "u", "v", "v"] * 10, "w": [1.0, 1.0, 2.0, 1.0] * 10}), weight="w"
    )
    recipes = [qd.RandomSwap(["w"], pairs=1, seed=1), qd.RandomSwap(["a"], pairs=1, seed=1)]
    found = qd.search(data, recipes, ["hellinger"], out=tmp_path / "study")
    assert found.counts()["failed"] == 1
    assert "is the weight" in found.frame()["reason"][0]


def test_columns_of_a_grid_are_looked_at_by_value_and_not_by_design(
    cps8d: qd.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    monkeypatch.setattr(forecast, "require_columns", lambda data, names, where: looked.append(names))
    large = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], same=[[], ["Sex"]], pairs=range(1, 1001), seed=range(50))
    forecast.CandidateCheck(cps8d, MEASURES).check(large)
    assert len(looked) == 3
    one_by_one = forecast.CandidateCheck(cps8d, MEASURES)
    for recipe in islice(large, 500):
        one_by_one.check(recipe)
    assert len(looked) == 3 + 1


def test_the_frame_numbers_the_seeds_and_never_shows_them(cps8d: qd.Data, tmp_path: Path) -> None:
    secret = 918_273_645
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=10, seed=[secret, secret + 1])
    frame = qd.search(cps8d, recipes, MEASURES, out=tmp_path / "study").frame()
    assert "seed" not in frame.columns
    assert frame["seed_no"].to_list() == [1, 2, 1, 2]
    assert str(secret)[:8] not in str(frame.to_dicts())


def test_a_study_is_one_file_for_its_owner_alone(study: qd.Study) -> None:
    assert [path.name for path in study.path.parent.iterdir()] == ["study"]
    assert stat.S_IMODE(study.path.stat().st_mode) == 0o600


def test_searching_again_computes_nothing_and_changes_nothing(cps8d: qd.Data, grid: object, study: qd.Study) -> None:
    before = study.path.read_bytes()
    told: list[object] = []
    again = qd.search(cps8d, grid, MEASURES, out=study.path, progress=lambda *news: told.append(news))
    assert told == []
    assert scores(again).equals(scores(study))
    assert len(before) == study.path.stat().st_size


def test_more_candidates_are_added_and_known_ones_are_kept(cps8d: qd.Data, tmp_path: Path) -> None:
    small = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[20], seed=range(3))
    large = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[20, 30], seed=range(5))
    first = scores(qd.search(cps8d, small, MEASURES, out=tmp_path / "study"))
    both = scores(qd.search(cps8d, [small, large, small], MEASURES, out=tmp_path / "study"))
    assert len(both) == 10
    assert both[:3].equals(first)


def test_a_grid_of_secret_seeds_goes_on_with_the_seeds_of_the_study(cps8d: qd.Data, tmp_path: Path) -> None:
    def search(pairs: list[int]) -> qd.Study:
        recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=pairs, seeds=3)
        return qd.search(cps8d, recipes, MEASURES, out=tmp_path / "study")

    assert len(search([20])) == len(search([20])) == 3
    assert len(search([20, 30])) > 3


@pytest.mark.parametrize("workers", [1, 2])
def test_the_number_of_workers_changes_no_score(
    cps8d: qd.Data, grid: object, study: qd.Study, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "IN_PROCESS_SECONDS", 0.0)  # workers as soon as a chunk is done
    monkeypatch.setattr(run, "_CHUNK", 2)
    again = qd.search(cps8d, grid, MEASURES, out=tmp_path / "study", workers=workers)
    assert scores(again).equals(scores(study))


def test_other_data_and_other_measures_are_refused(cps8d: qd.Data, grid: object, study: qd.Study) -> None:
    other = cps8d.take(np.arange(1000))
    with pytest.raises(MismatchError, match="made for other data"):
        qd.search(other, grid, MEASURES, out=study.path, allow_contradictions=True)
    with pytest.raises(MismatchError, match="has other measures: small_cells, exposed, hellinger"):
        qd.search(cps8d, grid, ["hellinger"], out=study.path)


def test_other_costly_measures_are_refused(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes, out = [qd.RandomSwap(["MS"], pairs=10, seed=1)], tmp_path / "study"
    qd.search(cps8d, recipes, ["exposed", "hellinger"], then=["total_variation"], out=out, workers=1)
    for then in ([], ["entropy_change"]):
        with pytest.raises(MismatchError, match="other measures: exposed, hellinger, then total_variation"):
            qd.search(cps8d, recipes, ["exposed", "hellinger"], then=then, out=out, workers=1)


def test_a_second_search_on_the_same_study_is_refused(cps8d: qd.Data, grid: object, tmp_path: Path) -> None:
    lock = tmp_path / ".study.lock"
    handle = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(OutputError, match="Another search is working"):
        qd.search(cps8d, grid, MEASURES, out=tmp_path / "study")
    os.close(handle)
    assert not (tmp_path / "study").exists()
    qd.search(cps8d, grid, MEASURES, out=tmp_path / "study")
    assert not lock.exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"measures": []}, ParameterError),
        ({"measures": ["hellinger", "hellinger"]}, QuadrilleError),
        ({"measures": ["helinger"]}, InputError),
        ({"then": ["hellinger"]}, QuadrilleError),
        ({"then": ["cramers_v_change", "cramers_v_change"]}, QuadrilleError),
        ({"workers": 0}, ParameterError),
        ({"recipes": []}, ParameterError),
        ({"out": "/proc/no/study"}, OutputError),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_and_leaves_no_file(
    cps8d: qd.Data, grid: object, tmp_path: Path, change: dict[str, object], error: type[Exception]
) -> None:
    call = {"recipes": grid, "measures": MEASURES, "out": tmp_path / "study", **change}
    with pytest.raises(error):
        qd.search(cps8d, call.pop("recipes"), call.pop("measures"), **call)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_exposed_joins_small_cells_among_the_costly_measures_too(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[100, 400], seed=range(2))
    found = qd.search(cps8d, recipes, ["confidence", "hellinger"], then=["small_cells(n=2)"], out=tmp_path / "study")
    assert found.header.then == ("small_cells(n=2)", "exposed(n=2)")
    frame = found.frame()
    assert frame["exposed(n=2)"].is_null().to_list() == frame["small_cells(n=2)"].is_null().to_list()
    early = qd.search(cps8d, recipes, ["exposed", "hellinger"], then=["small_cells"], out=tmp_path / "early")
    assert (early.header.measures, early.header.then) == (("exposed", "hellinger"), ("small_cells",))


def test_costly_measures_are_scored_next_to_the_frontier_only(cps8d: qd.Data, tmp_path: Path) -> None:
    swaps = [[name] for name in cps8d.columns]
    recipes = qd.grid(qd.RandomSwap, swap=swaps, pairs=[100, 400], seed=range(4))
    found = qd.search(cps8d, recipes, ["small_cells", "hellinger"], then=["cramers_v_change"], out=tmp_path / "study")
    frame = found.frame()
    scored = frame.filter(pl.col("cramers_v_change").is_not_null())
    assert 0 < len(scored) < len(frame)
    assert set(found.frontier()["id"]) <= set(scored["id"])
    ahead = found.dominated_by()
    assert set(scored["id"]) == set(ahead.filter(pl.col("dominated_by") <= 10)["id"])
    assert 10 in ahead["dominated_by"]
    row = scored.to_dicts()[0]
    expected = qd.score(cps8d, found.recipe(row["id"]).plan(cps8d), ["cramers_v_change"])["cramers_v_change"]
    assert row["cramers_v_change"] == pytest.approx(expected, abs=1e-15)


def test_a_full_disk_is_told_and_the_study_so_far_is_intact(
    cps8d: qd.Data, grid: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Store.write
    calls: list[list[object]] = []

    def full(self: Store, results: list[object]) -> None:
        calls.append(results)
        if len(calls) >= 3:
            with self.writing():
                raise sqlite3.OperationalError("database or disk is full")
        write(self, results)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "_COMMIT_ROWS", 2)
    monkeypatch.setattr(run, "_CHUNK", 2)
    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(OutputError, match=r"disk is full.*intact"):
        qd.search(cps8d, grid, MEASURES, out=tmp_path / "study", workers=1)
    monkeypatch.undo()
    assert qd.Study(tmp_path / "study").counts()["done"] == len(calls[0]) + len(calls[1])
    assert qd.search(cps8d, grid, MEASURES, out=tmp_path / "study").counts()["pending"] == 0


@pytest.mark.parametrize("contents", [b"", b"no study", b"SQLite format 3\0" + bytes(100)])
def test_a_file_that_is_no_study_is_refused(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "study").write_bytes(contents)
    with pytest.raises(InputError, match=r"not a study|no study"):
        qd.Study(tmp_path / "study")
    with pytest.raises(InputError, match="There is no study"):
        qd.Study(tmp_path / "nothing")


def test_notes_are_pinned_to_candidates(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[20], seed=range(3))
    found = qd.search(cps8d, recipes, MEASURES, out=tmp_path / "study")
    found.note(2, "the board likes this one")
    assert found.frame()["note"].to_list() == [None, "the board likes this one", None]
    with pytest.raises(InputError, match="no candidate 9"):
        found.note(9, "nobody")


def test_a_study_of_a_sample_begun_before_its_population_risk_joined_goes_on_with_its_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = qd.datasets.cps8d().with_sampling(0.02)
    recipes = [qd.RandomSwap(["Edu"], pairs=20 + seed, seed=seed) for seed in range(4)]
    with monkeypatch.context() as earlier:
        earlier.setattr("quadrille.study.forecast.sample_of", lambda _: None)
        begun = qd.search(data, recipes[:2], ["exposed"], out=tmp_path / "study", workers=1, progress=False)
    assert begun.measures == ("exposed",)
    study = qd.search(data, recipes, ["exposed"], out=tmp_path / "study", workers=1, progress=False)
    assert study.measures == ("exposed",) and len(study) == 4
    assert qd.search(data, recipes, ["exposed"], out=tmp_path / "new", workers=1, progress=False).measures == (
        "exposed",
        "population_risk",
    )
