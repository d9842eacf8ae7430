"""Compiled kernels of an older version of any file are not used."""

from __future__ import annotations

import os
from pathlib import Path

from quadrille.kernels.compile import forget_stale_kernels


def cached(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "__pycache__").glob("*.nb?"))


def test_a_change_of_one_file_clears_the_kernels_of_all(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text("CONSTANT = 1\n")
    assert forget_stale_kernels(tmp_path)
    for name in ("one.f.nbi", "one.f.1.nbc", "other.g.nbi"):
        (tmp_path / "__pycache__" / name).touch()
    assert not forget_stale_kernels(tmp_path)
    assert len(cached(tmp_path)) == 3
    os.utime(tmp_path / "other.py", (1, 1))
    assert forget_stale_kernels(tmp_path)
    assert cached(tmp_path) == []
    assert not forget_stale_kernels(tmp_path)


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("")
    (tmp_path / "__pycache__").write_text("a file in its place")
    assert not forget_stale_kernels(tmp_path)
