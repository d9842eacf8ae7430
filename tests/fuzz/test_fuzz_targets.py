"""Every reader, parser and command takes or refuses whatever it is given: the seeds of the fuzzer, and damaged ones.

`make fuzz` tries a hundred thousand inputs and more; this is the same on a small scale.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
import typer
from fuzz.__main__ import fuzz_target
from fuzz.calls import LONG
from fuzz.mutation import MOST_BYTES, mutate
from fuzz.seeds import CORPUS, seeds_of
from fuzz.store import MOST_KEPT, Store
from fuzz.targets import STAT, TARGETS, BrokenLawError, Target, outcome
from hypothesis import example, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from fuzz import __main__ as fuzz_program
from quadrille.cli import app
from quadrille.errors import InputError
from quadrille.recipe import known_methods

METHODS = [method for method in known_methods().values() if method.__module__.startswith("quadrille.")]
EXAMPLES = {"call": 12, "study": 5, "measure": 30, "recipe": 20}


@pytest.fixture(autouse=True)
def _isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadrille.io.stat_read.ISOLATED", True)  # the targets turn it off, here it comes back


def test_every_target_has_seeds_and_every_folder_of_seeds_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(seeds_of(name) for name in TARGETS)


@pytest.mark.parametrize("name", ["recipe", "job"])
def test_every_method_is_among_the_seeds(name: str) -> None:
    seeds = b"\n".join(seeds_of(name)).decode()
    assert [method.method_name for method in METHODS if method.method_name not in seeds] == []


def test_every_command_and_every_method_is_called_by_a_seed() -> None:
    calls = [raw.decode().splitlines() for raw in seeds_of("call")]
    commands = set(typer.main.get_command(app).commands) - set(LONG)  # type: ignore[attr-defined]
    assert commands - {words[0] for words in calls if words} == set()
    methods = {method.word() for method in METHODS} - {"random"}  # which needs no name
    assert methods - {word for words in calls for word in words} == set()


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"call"}))
def test_the_seeds_are_taken_or_refused(name: str, tmp_path: Path) -> None:
    words = {outcome(TARGETS[name], raw, tmp_path) for raw in seeds_of(name)}
    assert name == "sas7bdat" or [word for word in words if "Error" not in word], (
        "some seed is fine, so that damage matters"
    )


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in STAT])
def test_damaged_seeds_are_taken_or_refused(name: str) -> None:
    target, seeds = TARGETS[name], seeds_of(name)

    @examples(EXAMPLES.get(name, 30))
    @given(st.randoms(use_true_random=False))
    def law(random: Random) -> None:
        with TemporaryDirectory() as folder:
            outcome(target, mutate(seeds, random, target.words), Path(folder))

    law()


@pytest.mark.parametrize("name", sorted(name for name, target in TARGETS.items() if target.guided))
def test_any_bytes_are_taken_or_refused(name: str) -> None:
    @examples(20)
    @given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "ignore"))))
    @example(b"")
    @example(b"\xff\xfe\x00")
    @example(b"[" * 5_000)
    @example(b'{"a":' * 5_000)
    @example(b"a=" + b"9" * 5_000)
    def law(raw: bytes) -> None:
        with TemporaryDirectory() as folder:
            outcome(TARGETS[name], raw, Path(folder))

    law()


@pytest.mark.parametrize("name", ["sav", "dta"])
def test_damaged_files_of_statistics_programs_are_taken_or_refused(name: str, tmp_path: Path) -> None:
    """They can crash the library that reads them, so a worker tries them; a crash is tried again as users read."""
    store = Store(tmp_path, name)
    fuzz_target(store, seconds=60, inputs=60)
    assert store.count() >= 60
    assert store.findings() == []


# The fuzzer itself


def test_a_broken_law_and_a_foreign_error_are_no_refusal(tmp_path: Path) -> None:
    def broken(_raw: bytes, _folder: Path) -> str:
        raise ZeroDivisionError

    def wordless(_raw: bytes, _folder: Path) -> str:
        raise InputError(" ")

    def endless(_raw: bytes, _folder: Path) -> str:
        raise InputError("x" * 10_000)

    with pytest.raises(ZeroDivisionError):
        outcome(Target("x", broken), b"", tmp_path)
    for run in (wordless, endless):
        with pytest.raises(BrokenLawError):
            outcome(Target("x", run), b"", tmp_path)


def test_damage_is_the_same_for_the_same_number_and_bounded() -> None:
    seeds = [b"Sex,Age\nZQm,1\n" * 3, bytes(MOST_BYTES)]
    made = [mutate(seeds, Random(number)) for number in range(300)]
    assert made == [mutate(seeds, Random(number)) for number in range(300)]
    assert len(set(made)) > 200
    assert max(map(len, made)) <= MOST_BYTES


def test_a_run_remembers_what_it_learnt_and_found(tmp_path: Path) -> None:
    store = Store(tmp_path, "where")
    assert (store.count(), store.findings()) == (0, [])
    store.counted(7)
    store.keep(b"Sex=new")
    store.find(b"raw", "what", "kind")
    store.find(b"raw2", "what2", "kind")
    again = Store(tmp_path, "where")
    assert again.count() == 7
    assert b"Sex=new" in again.seeds()
    ((path, what),) = again.findings()
    assert (path.read_bytes(), what) == (b"raw", "what")
    for number in range(MOST_KEPT + 5):
        store.keep(str(number).encode())
    assert len(again.seeds()) == len(seeds_of("where")) + MOST_KEPT


def test_a_worker_finds_what_is_wrong_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzz import worker

    def bad(raw: bytes, _folder: Path) -> str:
        import os

        if raw.startswith(b"Sex"):
            raise KeyError("Sex")
        if raw.startswith(b"Age"):
            os.write(2, b"thread panicked")
        return "fine"

    monkeypatch.setitem(TARGETS, "where", Target("where", bad))
    monkeypatch.setattr(worker, "_bound_memory", lambda: None)
    store = Store(tmp_path, "where")
    worker.work(store, 600.0, 60)
    told = [what for _, what in store.findings()]
    assert store.count() == 60
    assert any("KeyError" in what for what in told) and any("panicked" in what for what in told)


def test_a_seed_may_take_its_time_and_an_input_may_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a fresh copy the seeds are the first that call what is to be compiled, which takes longer than any input."""
    from fuzz import worker

    seeds = set(seeds_of("where"))
    taken = iter(range(10**9))
    monkeypatch.setattr("time.process_time", lambda: 100.0 * next(taken))
    monkeypatch.setattr(worker, "_bound_memory", lambda: None)
    monkeypatch.setitem(TARGETS, "where", Target("where", lambda raw, _: "fine"))
    store = Store(tmp_path, "where")
    worker.work(store, 600.0, 3)
    ((path, what),) = store.findings()
    assert path.read_bytes() not in seeds and "100.0 s of processor time" in what


@pytest.mark.parametrize(("code", "hangs"), [("while True: pass", True), ("import time; time.sleep(1.5)", False)])
def test_a_worker_hangs_by_its_own_time_and_not_by_that_of_a_busy_machine(
    code: str, hangs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_program, "PATIENCE", 0.3)
    with subprocess.Popen([sys.executable, "-c", code]) as worker:
        assert fuzz_program._ended(worker, Store(tmp_path, "where")) is not hangs
        assert (worker.returncode != 0) == hangs


def test_the_survey_is_what_the_seeds_say() -> None:
    from fuzz.seeds import survey

    assert isinstance(survey(), qd.Data) and survey().n == 40 and survey().weight == "Weight"
