"""Settings shared by all tests. This folder is on the import path, so `strategies` and `oracles` can be imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import quadrille as qd

sys.path.insert(0, str(Path(__file__).parent))

PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile(
    "laws", max_examples=80, deadline=None, derandomize=True, database=None, suppress_health_check=PATIENT
)
# pytest --hypothesis-profile=search looks further, each time elsewhere
settings.register_profile("search", max_examples=1000, deadline=None, database=None, suppress_health_check=PATIENT)
settings.load_profile("laws")


def pytest_sessionstart() -> None:
    """Let each of two workers compile about half of the kernels; the other half it then finds on disk."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker not in ("gw0", "gw1"):
        return
    data = qd.datasets.cps8d()
    if worker == "gw0":
        qd.DesignedSwap(seed=1).plan(data)
        return
    plan = qd.RandomSwap(["Edu"], pairs=50, seed=1).plan(data)
    qd.score(data, plan, ["small_cells", "hellinger", "cramers_v_change"])
    qd.ControlledSwap(["Age"], targets=0.05, boundary=["Sex"], seed=1).plan(data)


@pytest.fixture(scope="session")
def cps8d() -> qd.Data:
    return qd.datasets.cps8d()
