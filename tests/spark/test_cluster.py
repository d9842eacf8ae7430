"""A master and two workers on this machine: the same plan, and the same records when one of the workers is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import polars as pl
import pytest

import quadrille as qd

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

DRIVER = """
import sys, time
from pathlib import Path
from conftest import start
import quadrille as qd
from quadrille import spark as module

def main(master, folder):
    folder = Path(folder)
    (folder / "logs").mkdir()
    spark = start(master, folder / "logs", **{"spark.executor.memory": "512m", "spark.executor.cores": "1"})
    source = module.Source(spark, folder / "table")
    recipe = qd.Recipe.from_json((folder / "recipe.json").read_text())
    made, flag = module._keyed, str(folder / "writing")

    def slow(key):
        place = made(key)

        def slowly(row):
            open(flag, "a").close()
            time.sleep(0.5)
            return place(row)

        slowly.__annotations__ = place.__annotations__
        return slowly

    module._keyed = slow
    plan = source.plan(recipe)
    source.release(recipe, folder / "release", measures=["exposed"], insecure=True)
    qd.write_plan(qd.Plan(plan.moves, data=(data := qd.read(folder / "whole.parquet"))), data, folder / "plan.parquet")
    spark.stop()

main(*sys.argv[1:])
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Generator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a master and two workers of one core, and stop them by their process ids."""
    home = Path(pytest.importorskip("pyspark").__file__).parent
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    started: list[subprocess.Popen[bytes]] = []

    def launch(name: str, *more: str) -> None:
        call = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *more]
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        with (tmp_path / f"{name}-{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(call, env=environment, stdout=log, stderr=log))

    launch("master.Master", "--port", str(port), "--webui-port", "0")
    for number in range(2):
        folder = str(tmp_path / f"work-{number}")
        address = f"spark://127.0.0.1:{port}"
        launch("worker.Worker", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", folder, address)
    yield f"spark://127.0.0.1:{port}", started
    for process in started:
        process.kill()
        process.wait()


def test_plan_and_records_are_those_of_one_machine_when_a_worker_is_killed_in_the_write(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    master, processes = cluster
    frame = qd.datasets.cps8d().frame().select(pl.all().cast(pl.String))
    frame.write_parquet(tmp_path / "whole.parquet")
    data = qd.read(tmp_path / "whole.parquet")
    (tmp_path / "table").mkdir()
    for number, start in enumerate(range(0, data.n, 5_000)):
        frame[start : start + 5_000].write_parquet(tmp_path / "table" / f"{number:02}.parquet")
    recipe = qd.RandomSwap(["Edu"], rate=0.02, same=["Sex"], seed=1)
    (tmp_path / "recipe.json").write_text(recipe.to_json())
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    driver = subprocess.Popen([sys.executable, str(script), master, str(tmp_path)], env=environment)
    deadline = time.monotonic() + 600
    while not (tmp_path / "writing").exists() and driver.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (tmp_path / "writing").exists()
    processes[-1].kill()
    try:
        assert driver.wait(600) == 0
    finally:
        driver.kill()
    qd.write_plan(recipe.plan(data), data, tmp_path / "expected.parquet")
    assert pl.read_parquet(tmp_path / "plan.parquet").equals(pl.read_parquet(tmp_path / "expected.parquet"))
    released = pl.read_parquet(tmp_path / "release" / "public" / "data" / "*.parquet")
    expected = recipe.plan(data).apply(data).frame()
    assert released.sort(released.columns).equals(expected.sort(expected.columns))
