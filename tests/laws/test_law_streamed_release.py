"""A large file is written piece by piece, in an order that is as uniform as any, and loses nothing on the way."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import quadrille as qd
from effort import examples, tries
from quadrille import io
from quadrille.errors import OutputError, ParameterError
from quadrille.io.space import MEMORY, Space, bytes_of
from quadrille.release import order as order_module
from quadrille.release import release as release_module
from quadrille.release.order import BucketOrder, pieces
from quadrille.release.release import ReleaseWarning
from strategies import files


@contextmanager
def small_limits(*, bucket: int = 3, chunk: int = 2, piece: int = 4) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_module, "ONE_BUCKET", 0)
        patch.setattr(order_module, "BUCKET", bucket)
        patch.setattr(order_module, "CHUNK", chunk)
        patch.setattr(order_module, "PIECE", piece)
        yield


def written(data: qd.Data, order: BucketOrder | None, ending: str, space: Space) -> bytes:
    file, columns = BytesIO(), [data[name] for name in data.columns]
    io.write_pieces(file, f"data.{ending}", columns, pieces(columns, order, space))
    return file.getvalue()


@examples(25)
@given(files(), st.sampled_from(["csv", "parquet"]), st.integers(1, 7), st.integers(1, 9), st.booleans())
def test_pieces_of_any_size_make_the_file_that_the_whole_would_make(
    data: qd.Data, ending: str, chunk: int, piece: int, mapped: bool
) -> None:
    order = BucketOrder(data.n, seed="ab" * 32)
    space = Space(0 if mapped else 1 << 30)
    with small_limits(chunk=chunk, piece=piece):
        rows = order.rows()
        assert sorted(rows.tolist()) == list(range(data.n))
        shuffled, kept = written(data, order, ending, space), written(data, None, ending, space)
    for contents, expected in ((shuffled, data.take(rows)), (kept, data)):
        if ending == "csv":
            assert contents == bytes(io.file_bytes(expected, "data.csv")[0])
        else:
            assert pl.read_parquet(BytesIO(contents)).equals(expected.frame())
            assert pl.read_parquet_schema(BytesIO(contents)) == expected.frame().schema


@examples(15)
@given(st.integers(1, 60), st.integers(1, 30), st.integers(1, 9))
def test_the_order_does_not_depend_on_how_many_rows_are_read_at_a_time(n: int, bucket: int, chunk: int) -> None:
    order = BucketOrder(n, seed="12" * 32)
    with small_limits(bucket=bucket, chunk=chunk):
        found = order.rows().tolist()
    with small_limits(bucket=bucket, chunk=1 << 16):
        assert order.rows().tolist() == found


@pytest.mark.parametrize(("n", "bucket"), [(4, 1), (5, 2)])
def test_every_order_has_the_same_chance(n: int, bucket: int) -> None:
    draws = tries(16 * factorial(n), nightly=400 * factorial(n))
    with small_limits(bucket=bucket):
        seeds = (f"{number:064x}" for number in range(draws))
        counts = Counter(tuple(BucketOrder(n, seed).rows().tolist()) for seed in seeds)
    expected = draws / factorial(n)
    statistic = sum((counts[each] - expected) ** 2 / expected for each in permutations(range(n)))
    # The seeds are fixed, so this is one number; a bucket of one row in four or five is the common case here.
    assert chi2.sf(statistic, factorial(n) - 1) > 1e-4


def test_old_and_new_places_of_a_large_file_are_unrelated() -> None:
    n = 200_000
    with small_limits(bucket=1 << 12, chunk=1 << 14):
        rows = BucketOrder(n, seed="7" * 64).rows()
    assert abs(np.corrcoef(rows, np.arange(n))[0, 1]) < 4 / np.sqrt(n)


@pytest.fixture(scope="module")
def people() -> qd.Data:
    return qd.datasets.cps8d().take(range(2_000))


def released(data: qd.Data, recipe: qd.RandomSwap, out: Path, **how: Any) -> release_module.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        return qd.release(data, recipe, out, measures=["hellinger"], allow_contradictions=True, **how)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_release_in_pieces_holds_the_swapped_records(
    people: qd.Data, tmp_path: Path, ending: str, shuffle: bool
) -> None:
    recipe = qd.RandomSwap(["Edu"], rate=0.1)
    with small_limits(bucket=300, chunk=128, piece=700):
        made = released(people, recipe, tmp_path / "out", format=ending, shuffle=shuffle)
        confidential = {path.name for path in made.confidential.iterdir()}
        assert ("order.json" in confidential, "order.parquet" in confidential) == (shuffle, False)
        found = qd.read(made.public / f"data.{ending}", codebook=made.public / "codebook.toml").frame()
        swapped = recipe.plan(people).apply(people).frame()
        if shuffle:
            kept = json.loads((made.confidential / "order.json").read_text())
            assert kept["order"] == 2
            swapped = swapped[BucketOrder(kept["records"], kept["seed"]).rows()]
            assert "order: 2" in (made.confidential / "dossier.md").read_text()
            assert kept["seed"] not in (made.confidential / "dossier.md").read_text()
    assert found.cast(pl.String).equals(swapped.cast(pl.String))
    digest = sha256((made.public / f"data.{ending}").read_bytes()).hexdigest()
    assert digest in (made.confidential / "dossier.md").read_text()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("after", [0, 100])
def test_a_full_disk_is_reported_and_leaves_nothing(
    people: qd.Data, tmp_path: Path, ending: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quadrille.io import atomic

    def full(self: atomic._Hashed, part: bytes) -> int:
        if self.tell() + len(part) > after:
            raise OSError(28, os.strerror(28))
        return write(self, part)

    write = atomic._Hashed.write
    monkeypatch.setattr(atomic._Hashed, "write", full)
    with small_limits(bucket=300, piece=500), pytest.raises(OutputError, match="No space left on device"):
        released(people, qd.RandomSwap(["Edu"], rate=0.1), tmp_path / "out", format=ending)
    assert not list(tmp_path.iterdir())


def test_columns_beyond_the_limit_lie_in_files_without_a_name(tmp_path: Path) -> None:
    space = Space(100, tmp_path)
    small, large = space.empty(100, np.uint8), space.empty(1000, np.float64)
    large[:] = np.arange(1000)
    assert (len(small), float(large.sum()), list(tmp_path.iterdir())) == (100, 499_500.0, [])
    assert isinstance(large.base, memoryview)  # of a file, not of memory
    assert len(space.empty(0, np.uint8)) == 0


def test_a_disk_too_small_for_columns_is_told_with_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutputError, match=r"cannot hold 8\.0 GB for them: No space left on device"):
        Space(0, tmp_path).empty(10**9, np.float64)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "size"), [("8GB", 8 * 10**9), ("1.5 GiB", 3 << 29), ("300m", 3 * 10**8), ("7", 7)])
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "8 PB", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=f"{MEMORY} must be a size such as 8GB"):
        bytes_of(text)
