"""What `inspect` shows of a file with very many columns."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from cli_files import Run


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(3, "V0, V1, V2"), (20, "V17, V18,"), (21, "V0, V1, ... V20 (21)"), (300, "V0, V1, ... V299 (300)")],
)
def test_many_key_variables_are_counted_instead_of_listed(run: Run, folder: Path, columns: int, shown: str) -> None:
    pl.DataFrame({f"V{i}": [0, 1, 2, 1] for i in range(columns)}).write_csv(folder / "wide.csv")
    assert shown in run("inspect wide.csv").output
    assert len(json.loads(run("inspect wide.csv --json").output)["keys"]) == columns
