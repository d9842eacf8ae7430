"""Settings shared by all tests. This folder is on the import path, so `strategies` and `oracles` can be imported."""

from __future__ import annotations

import gc
import json
import os
import secrets
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, seed, settings

import quadrille as qd
from quadrille import randomness
from quadrille.swap.designed.pairs import DesignedPairs

sys.path.insert(0, str(Path(__file__).parent))

PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
for profile, count in (("test", 20), ("nightly", 1_000)):
    settings.register_profile(
        profile, max_examples=count, deadline=None, database=None, print_blob=True, suppress_health_check=PATIENT
    )
settings.load_profile("test")
Collected = Generator[None, pytest.CollectReport, pytest.CollectReport]
LONG = (
    "test_commands.py",
    "test_designed_study.py",
    "test_faults.py",
    "test_gomatam_karr_sanil_2003.py",
    "test_process.py",
    "test_search_crash.py",
    "test_studio_pages.py",
    "test_undo_public.py",
)
"""Files that take ten seconds of a core or more, and have to be run by one worker each."""


class Secrets:
    """Secret seeds that are the same in every run of a test: laws draw other cases each time, and nothing else does.

    A test of a swap with a secret seed would else fail once in many runs: five pairs at random may undo each other.
    The night asks the operating system, as users do.
    """

    def __init__(self) -> None:
        self.random = Random(0)

    def token_hex(self, count: int) -> str:
        night = settings.get_current_profile_name() == "nightly"
        return secrets.token_hex(count) if night else self.random.randbytes(count).hex()


SECRETS = Secrets()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw other cases in every run, from a seed that is shown; workers are given the seed of their run."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbelow(10**9))
    randomness.secrets = SECRETS  # pyright: ignore[reportAttributeAccessIssue]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    SECRETS.random = Random(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without looking for garbage, of which there is none: that takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Collected:
    """Let one of two workers read the test files from the last to the first.

    In a fresh copy of the project each file has to be compiled once: the two meet in the middle, and each finds on disk
    what the other has compiled.
    """
    report = yield
    if isinstance(collector, pytest.Directory) and os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in one order for all workers, files that take long first, and give each law a seed of its own.

    A long file that comes last keeps one core busy while the other has nothing left to do. With one seed for all, laws
    on the same files would try the same files.
    """
    items.sort(key=lambda item: (item.path.name not in LONG, item.path))
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            name = f"{config.option.hypothesis_seed} {item.path.name} {item.originalname}"
            seed(int.from_bytes(sha256(name.encode()).digest()[:8]))(getattr(item.obj, "__func__", item.obj))


def pytest_collection_finish() -> None:
    """Leave what was imported and collected alone: looking through it for garbage takes a twentieth of all the time.

    Nor is every part of a chart checked against the schema when it is made: the whole chart is when it is read, parts
    and all, and only once where tests draw the same. Altair copies charts over and over, part by part, also the
    hundreds that each does not have; these are passed over.
    """
    if (altair := sys.modules.get("altair.utils.schemapi")) is not None:
        altair.disable_debug_mode()
        altair._deep_copy = partial(copied, altair.SchemaBase, altair.Undefined)
        altair.validate_jsonschema = once(altair.validate_jsonschema)
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def copied(base: type, undefined: object, part: Any, by_ref: set[str]) -> Any:
    """Copy a part of a chart as Altair does, but for what is not defined."""

    def entries(held: dict[str, Any]) -> dict[str, Any]:
        return {key: each if each is undefined or key in by_ref else copy(each) for key, each in held.items()}

    copy = partial(copied, base, undefined, by_ref=by_ref)
    if isinstance(part, base):
        made = cast("Any", part)
        if (copier := getattr(type(made), "__deepcopy__", None)) is not None:
            return copier(made, {})
        return made.__class__(*map(copy, made._args), **entries(made._kwds))
    if isinstance(part, list):
        return [copy(each) for each in part]
    return entries(part) if isinstance(part, dict) else part


def once(check: Callable[..., object]) -> Callable[..., object]:
    """Pass over what has been found to follow the same schema before."""
    valid: set[tuple[int, str]] = set()

    def checked(spec: object, schema: object, *rest: object, **options: object) -> object:
        seen = id(schema), json.dumps(spec, default=repr)
        if seen in valid:
            return None
        found = check(spec, schema, *rest, **options)
        if found is None:
            valid.add(seen)
        return found

    return checked


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how the same cases are drawn again."""
    profile = settings.get_current_profile_name()
    words = f"--hypothesis-profile={profile} --hypothesis-seed={config.option.hypothesis_seed}"
    terminalreporter.write_line(f"The laws draw the same cases again with: pytest {words}")


def pytest_sessionstart() -> None:
    """Let each of two workers compile about half of the kernels; the other half it then finds on disk."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker not in ("gw0", "gw1"):
        return
    data = qd.datasets.cps8d()
    if worker == "gw0":
        qd.DesignedSwap(effort=0.01, seed=1).plan(data)
        DesignedPairs(improve=False, seed=1).plan(data)
        return
    plan = qd.RandomSwap(["Edu"], pairs=50, seed=1).plan(data)
    qd.score(data, plan, ["small_cells", "hellinger", "cramers_v_change"])
    qd.ControlledSwap(["Age"], targets=0.05, boundary=["Sex"], seed=1).plan(data)


@pytest.fixture(scope="session")
def cps8d() -> qd.Data:
    return qd.datasets.cps8d()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt, here and in processes started here, also where the shell started the tests without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
