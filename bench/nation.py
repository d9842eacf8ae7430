"""A census of a nation on one machine: read, swap, measure and release a file of any size, with its cost per stage.

Run `python -m bench.nation` for ten million records (the row of `make bench`), `make nation` for 330 million: the file
is made first, 0.8 GB in Parquet, and the release takes as much again. Every recipe runs in a process of its own; CPU
seconds count all its threads, and the peak is the highest resident size that the operating system has seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.timing import Result

ROWS = 10_000_000
NATION = 330_000_000
SIZES = {"state": 51, "age": 18, "sex": 2, "race": 7, "hispanic": 2, "tenure": 3, "marital": 5, "education": 8}
GROUP = 1 << 20
RECIPES = {
    "RandomSwap 1 %": ("RandomSwap", {"swap": ["state"], "rate": 0.01}),
    "RandomSwap 2 %": ("RandomSwap", {"swap": ["state"], "rate": 0.02, "same": ["age", "sex"]}),
    "PermutationSwap 1 %": ("PermutationSwap", {"swap": ["tenure"], "rate": 0.01, "within": ["state"]}),
    "PermutationSwap 2 %": ("PermutationSwap", {"swap": ["education"], "rate": 0.02, "within": ["state"]}),
}


def write_nation(path: Path, rows: int) -> None:
    """Write records whose columns hang together a little, row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = {name: pa.array([f"{name} {code:02}" for code in range(size)]) for name, size in SIZES.items()}
    schema = pa.schema([(name, pa.dictionary(pa.int8(), pa.string())) for name in SIZES])
    shares = {name: 1 / np.arange(1, size + 1) ** 0.8 for name, size in SIZES.items()}
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:  # text, as others write it
        for start in range(0, rows, GROUP):
            random, count = np.random.default_rng([20, start]), min(GROUP, rows - start)
            columns, before = [], np.zeros(count, dtype=np.int64)
            for name, size in SIZES.items():
                cut = np.cumsum(shares[name] / shares[name].sum())[:-1].astype(np.float32)
                codes = np.searchsorted(cut, random.random(count, dtype=np.float32), side="right")
                codes = np.where(random.random(count, dtype=np.float32) < 0.1, before % size, codes)
                columns.append(pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), lists[name]))
                before = codes
            writer.write_table(pa.table(columns, schema=schema), row_group_size=GROUP)


def run_stages(path: Path, out: Path, recipe: str, measured: bool) -> dict[str, object]:
    """Read, draw, measure and release; return per stage the CPU and wall seconds and the peak above the start."""
    import quadrille as qd
    from quadrille.release.release import default_measures

    name, parameters = RECIPES[recipe]
    _warm_up(path.parent, name, parameters)
    stages: dict[str, dict[str, float]] = {}
    start = _memory("VmRSS")

    def stage(label: str, work: Callable[[], object]) -> object:
        reset_peak()
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        stages[label] = {
            "cpu": time.process_time() - cpu,
            "wall": time.perf_counter() - wall,
            "peak": (_memory("VmHWM") - start) / 2**30,
            "after": (_memory("VmRSS") - start) / 2**30,
        }
        return result

    data = stage("read", lambda: qd.read(path))
    made = getattr(qd, name)(seed=None, **parameters)
    if measured:
        plan = stage("draw", lambda: made.plan(data))
        stage("measure", lambda: qd.score(data, plan, default_measures(data)))
    stage("release", lambda: qd.release(data, made, out, format="parquet"))
    codes = sum(data[column].values.nbytes for column in data.columns)
    peak = max(each["peak"] for each in stages.values()) + start / 2**30
    return {"rows": data.n, "bytes": codes / data.n, "stages": stages, "peak": peak, "start": start / 2**30}


def _warm_up(folder: Path, name: str, parameters: dict[str, object]) -> None:
    """Run the same on a small file, so that everything is imported and compiled before anything is measured."""
    import quadrille as qd

    small = folder / f"small-{os.getpid()}.parquet"
    write_nation(small, 30_000)
    data = qd.read(small)
    recipe = getattr(qd, name)(seed=None, **parameters)
    qd.score(data, recipe.plan(data), ["hellinger"])
    qd.release(data, recipe, folder / f"small-{os.getpid()}", format="parquet")


def reset_peak() -> None:
    """Let the operating system forget the highest resident size so far."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024


def measured(path: Path, out: Path, recipe: str, *, apart: bool = True) -> dict[str, Any]:
    """Run the stages in a process of its own."""
    call = [sys.executable, "-m", "bench.nation", "--stages", str(path), str(out), recipe, "yes" if apart else ""]
    return json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)


CPU, PEAK = 12.0, 0.9


def nation_results() -> list[Result]:
    """Read, swap, measure and release ten million records of eight columns, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("NATION_DIR")) as name:
        path = Path(name) / "nation.parquet"
        write_nation(path, ROWS)
        found = measured(path, Path(name) / "out", "RandomSwap 1 %", apart=False)
    stages = found["stages"]
    cpu = sum(each["cpu"] for each in stages.values())
    held, most = max((each["peak"] * 2**30 / ROWS, label) for label, each in stages.items())
    limit = 2 * found["bytes"] + 2
    remark = ", ".join(f"{label} {each['cpu']:.1f} CPU s" for label, each in stages.items())
    what = "10^7 records of 8 columns read, swapped, measured, released"
    return [
        Result(f"{what}, CPU seconds", cpu, f"<= {CPU:.0f}", cpu <= CPU, remark),
        Result(
            f"{what}, peak GiB", found["peak"], f"<= {PEAK}", found["peak"] <= PEAK, f"{found['start']:.2f} at start"
        ),
        Result("its memory above the start, bytes a record", held, f"<= {limit:.0f}", held <= limit, f"in {most}"),
    ]


def main(arguments: list[str]) -> int:
    """Make the file, run the recipes on it, and print what each stage costs."""
    if arguments[:1] == ["--stages"]:
        path, out, recipe, apart = arguments[1:]
        sys.stdout.write(json.dumps(run_stages(Path(path), Path(out), recipe, bool(apart))))
        return 0
    rows = int(arguments[0]) if arguments else ROWS
    recipes = arguments[1:] or list(RECIPES)
    with tempfile.TemporaryDirectory(dir=os.environ.get("NATION_DIR")) as name:
        path = Path(name) / "nation.parquet"
        write_nation(path, rows)
        print(f"{rows:,} records, {path.stat().st_size / 1e6:,.0f} MB")
        for number, recipe in enumerate(recipes):
            found = measured(path, Path(name) / f"out-{number}", recipe)
            _show(recipe, found)
    return 0


def _show(recipe: str, found: dict[str, object]) -> None:
    print(
        f"{recipe}: {found['bytes']:.0f} bytes a record, peak {found['peak']:.2f} GiB ({found['start']:.2f} at start)"
    )
    rows = found["rows"]
    for label, cost in found["stages"].items():
        held = cost["peak"] * 2**30 / rows
        print(
            f"  {label:8} {cost['cpu']:8.1f} CPU s {cost['wall']:8.1f} s, peak above the start {cost['peak']:6.2f} "
            f"GiB, {held:6.1f} bytes a record; afterwards {cost['after']:.2f} GiB"
        )
    total = sum(cost["cpu"] for cost in found["stages"].values())
    print(f"  all      {total:8.1f} CPU s {sum(cost['wall'] for cost in found['stages'].values()):8.1f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
