"""One session for all tests on Spark: two threads on this machine, no network but its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def start(master: str, logs: Path, **settings: str) -> Any:
    """Start a session whose events are logged in a folder."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = pytest.importorskip("pyspark.sql").SparkSession
    builder = session.builder.master(master).config("spark.eventLog.dir", logs.as_uri())
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="session")
def spark(logs: Path) -> Generator[Any]:
    """A session in which a task may fail three times."""
    made = start("local[2,4]", logs)
    yield made
    made.stop()
