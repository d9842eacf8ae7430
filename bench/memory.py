"""How much memory reading a large Parquet file takes, beside the size of the codes that it leaves behind.

Run `python -m bench.memory` for ten million rows, or `python -m bench.memory 1000000` for fewer. The file is written in
pieces and read in a process of its own, whose highest resident size is taken from the operating system.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from quadrille.io.parquet import BATCH

ROWS = 10_000_000
_PIECE = 1_000_000
_CHILD = """
import json, sys
import polars as pl
import quadrille as qd
def status(name):  # the resource module would count what the parent process had as well
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) * 1024
pl.DataFrame({"a": ["x"]}).write_parquet(sys.argv[2])
qd.read(sys.argv[2])  # so that everything is imported before the measurement
before = status("VmRSS")
data = qd.read(sys.argv[1])
codes = sum(data[name].values.nbytes for name in data.columns)
peak = status("VmHWM")
print(json.dumps({"codes": codes, "above": peak - before, "rows": data.n}))
"""


def memory_of_reading(rows: int = ROWS) -> tuple[float, float, float]:
    """Return, in megabytes, the codes, one batch of the file, and what reading takes at most."""
    with tempfile.TemporaryDirectory() as name:
        path, small = Path(name) / "large.parquet", Path(name) / "small.parquet"
        batch = write_large(path, rows)
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, str(path), str(small)], capture_output=True, text=True, check=True
        )
    found = json.loads(done.stdout)
    assert found["rows"] == rows
    return found["codes"] / 1e6, batch / 1e6, found["above"] / 1e6


def write_large(path: Path, rows: int) -> int:
    """Write eight columns of text, two of whole numbers and one of decimals; return the size of a batch in memory."""
    starts = range(0, rows, _PIECE)
    parts = [path.with_suffix(f".{start}") for start in starts]
    for part, start in zip(parts, starts, strict=True):
        _piece(start, min(_PIECE, rows - start)).write_parquet(part)
    pl.scan_parquet(parts).sink_parquet(path)
    size = int(pl.scan_parquet(path).head(BATCH).collect().estimated_size())
    for part in parts:
        part.unlink()
    return size


def _piece(start: int, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(start)
    names = np.array([f"category {letter}" for letter in "abcdefg"])
    text = {f"t{i}": names[rng.integers(0, len(names), rows)] for i in range(8)}
    numbers = {f"n{i}": rng.integers(0, 40, rows) for i in range(2)}
    return pl.DataFrame({**text, **numbers, "x": rng.normal(size=rows)})


if __name__ == "__main__":
    codes, batch, above = memory_of_reading(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
    limit = 2 * codes + batch
    print(f"codes {codes:.0f} MB, batch {batch:.0f} MB, reading takes {above:.0f} MB (at most {limit:.0f} MB)")
    sys.exit(above > limit)
