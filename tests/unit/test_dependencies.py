"""What columns say about one another: found where it is so, and nowhere else."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from lookalikes import LOOKALIKES
from quadrille import kernels
from quadrille.score.coded import Coded
from quadrille.score.dependencies import Dependency, broken, dependencies

N = 2_000
RNG = np.random.default_rng(3)
A, B = RNG.integers(0, 12, N), RNG.integers(0, 5, N)
X, Y = RNG.lognormal(5, 1, N).round(2), RNG.lognormal(4, 1, N).round(2)


def found(**columns: object) -> dict[str, Dependency]:
    data = qd.from_frame(pl.DataFrame(columns))
    return {str(each): each for each in dependencies(data)}


def with_exceptions(values: np.ndarray, share: float) -> np.ndarray:
    made = values.copy()
    rows = RNG.choice(N, int(share * N), replace=False)
    made[rows] = np.roll(values, 7)[rows]
    return made


PLANTED: dict[str, dict[str, object]] = {
    "a determines b": {"a": A, "b": A % 3},
    "a and b together determine c": {"a": A, "b": B, "c": (A * 7 + B * 3) % 4},
    "b follows from a, range by range": {"a": X, "b": np.digitize(X, [50, 100, 200, 400])},
    "c = a + b": {"a": X, "b": Y, "c": (X + Y).round(2)},
    "c = a - 2 b": {"a": X, "b": Y, "c": (X - 2 * Y).round(2)},
    "c = 1 - a - b": {"a": (B == 0).astype(int), "b": (B == 1).astype(int), "c": (B > 1).astype(int)},
    "c is a multiple of a * b": {"a": X, "b": Y, "c": (X * Y / 3).round(2)},
    "c is a multiple of b / a": {"a": X, "b": Y, "c": (100 * Y / X).round(1)},
    "3 combinations of a and b never occur, or hardly": {"a": A, "b": np.where(A < 3, B % 4, B)},
}


@pytest.mark.parametrize("text", PLANTED)
def test_what_is_planted_is_found_and_held_by_every_record(text: str) -> None:
    made = found(**PLANTED[text])
    assert text in made
    each = made[text]
    assert each.kind == "never together" or each.exact


HH = np.sort(np.r_[np.arange(700), RNG.integers(0, 700, N - 700)])
HEAD = np.where(np.diff(HH, prepend=-1) > 0, "head", RNG.choice(["partner", "child"], N))
PAY = RNG.integers(0, 300, N)
IN_GROUPS: dict[str, dict[str, object]] = {
    "each hh has exactly one record with a category of a": {"hh": HH, "a": HEAD},
    "b counts the records with a category of a within hh": {
        "hh": HH,
        "a": HEAD,
        "b": np.bincount(HH, weights=HEAD == "child").astype(int)[HH],
    },
    "b is the sum of a within hh": {"hh": HH, "a": PAY, "b": np.bincount(HH, weights=PAY).astype(int)[HH]},
    "no two records of one hh have the same a": {
        "hh": HH,
        "a": np.arange(N) - np.maximum.accumulate(np.where(np.diff(HH, prepend=-1) > 0, np.arange(N), 0)),
    },
}


@pytest.mark.parametrize("text", IN_GROUPS)
@pytest.mark.parametrize("role", [None, "hh"])
def test_what_groups_have_in_common_is_found_and_one_exchange_breaks_it(text: str, role: str | None) -> None:
    columns = IN_GROUPS[text]
    values = np.asarray(columns["a"])
    data = qd.from_frame(pl.DataFrame(columns))
    data = data.with_roles(unit=role) if role else data
    each = {str(e): e for e in dependencies(data)}[text]
    coded = Coded(data, data.columns)
    rows = np.arange(N)
    stay = dict.fromkeys(each.columns, rows)
    assert each.exact and not broken(coded, each, stay).any()
    donor = np.roll(rows, 1_003)
    now = values[donor]
    changed = now != values
    spoilt = broken(coded, each, stay | {"a": donor})
    if "category" in text:
        category = "head" if "exactly one" in text else "child"
        changed = (now == category) != (values == category)
    if "no two" in text:
        held = set(zip(HH.tolist(), values.tolist(), strict=True))
        changed &= np.array([pair in held for pair in zip(HH.tolist(), now.tolist(), strict=True)])
    assert changed.any() and (spoilt == changed).all()
    with_few: dict[str, object] = {**columns, "a": np.where(RNG.random(N) < 0.05, np.roll(values, 9), values)}
    assert text not in found(**with_few)


@pytest.mark.parametrize("text", ["a determines b", "b follows from a, range by range", "c = a + b"])
def test_one_exception_in_five_hundred_is_nearly_a_dependency_and_one_in_fifty_is_none(text: str) -> None:
    columns = dict(PLANTED[text])
    last = max(columns)
    values = np.asarray(columns[last])
    near = found(**{**columns, last: with_exceptions(values, 0.002)})
    assert 0.995 <= near[text].share < 1
    assert text not in found(**{**columns, last: with_exceptions(values, 0.05)})


def test_columns_that_have_nothing_to_do_with_each_other_say_nothing() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        columns: dict[str, object] = {f"k{i}": rng.integers(0, 2 + 3 * i, 1_000) for i in range(5)}
        columns |= {f"x{i}": rng.lognormal(5, 1, 1_000).round(2) for i in range(3)}
        columns["rare"] = (rng.random(1_000) < 0.004).astype(int)
        assert found(**columns) == {}, seed


def test_a_column_that_tells_all_records_apart_determines_nothing() -> None:
    assert found(x=np.arange(N) * 0.5 + RNG.permutation(N), b=B, a=A) == {}


def test_identifiers_are_left_out_and_areas_and_units_have_their_own_word() -> None:
    book = qd.Codebook((qd.Variable("i", "numeric", role="id"), qd.Variable("u", "numeric", role="unit")))
    frame = pl.DataFrame({"i": A, "u": A + 100 * B, "b": A % 3, "c": B})
    listed = [str(each) for each in dependencies(qd.from_frame(frame, codebook=book))]
    assert listed == ["b is constant within u", "c is constant within u"]


def test_the_words_hold_no_number_of_the_data() -> None:
    born = found(age=A + 20, born=2023 - 20 - A, c=B)
    assert set(born) == {"age determines born"}
    (each,) = (e for e in found(a=X, b=Y, c=(1984.25 - X - Y).round(2)).values() if e.kind == "sum")
    assert str(each) == "c = a constant - a - b"
    assert "1984" not in repr(each.as_dict())


def test_what_was_found_once_is_kept_and_can_be_asked_for_by_column() -> None:
    data = LOOKALIKES["schools"]()
    assert dependencies(data) is dependencies(data)
    assert {each.column for each in dependencies(data, ["grade"])} >= {"age", "kind"}
    with pytest.raises(qd.QuadrilleError, match="grade"):
        dependencies(data, ["grad"])


@examples(36)
@given(st.data())
def test_the_share_is_that_of_the_commonest_values_counted_one_by_one(draw: st.DataObject) -> None:
    n = draw.draw(st.integers(2, 80))
    codes = st.lists(st.integers(0, 5), min_size=n, max_size=n)
    x, y = (np.array(draw.draw(codes), dtype=np.int32) for _ in range(2))
    rows, start = kernels.shared_groups(kernels.rows_by_code(np.arange(n), x, 6), x, x)
    lacking = kernels.lacking_majority(rows, start, y, np.zeros(6, dtype=np.int64), n)
    members = [[int(b) for a, b in zip(x, y, strict=True) if a == value] for value in set(x.tolist())]
    assert len(rows) == sum(len(each) for each in members if len(each) > 1)
    assert lacking == sum(len(each) - max(map(each.count, each)) for each in members)


@examples(36)
@given(st.data())
def test_rows_are_put_in_order_grouped_and_mixed_as_plain_sorting_does(draw: st.DataObject) -> None:
    n = draw.draw(st.integers(1, 60))
    a, b = (np.array(draw.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=np.int32) for _ in range(2))
    mixed = np.array(draw.draw(st.permutations(range(n))))
    by_b = kernels.rows_by_code(mixed, b, 5)
    assert (by_b == mixed[np.argsort(b[mixed], kind="stable")]).all()
    rows, start = kernels.shared_groups(kernels.rows_by_code(by_b, a, 5), a, b)
    groups = [sorted(rows[i:j].tolist()) for i, j in pairwise(start.tolist())]
    members = [[i for i in range(n) if (a[i], b[i]) == both] for both in sorted({*zip(a, b, strict=True)})]
    assert groups == [each for each in members if len(each) > 1]
    values = np.arange(n, dtype=np.int32)
    expected = np.empty_like(values)
    expected[np.argsort(a, kind="stable")] = mixed[np.argsort(a[mixed], kind="stable")]
    assert (kernels.mixed_within(values, a, 5, mixed) == expected).all()


@examples(36)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_changes_falls_and_rises_are_counted_one_by_one(listed: list[int]) -> None:
    values = np.array(listed, dtype=np.int32)
    steps = np.diff(values)
    expected = int((steps != 0).sum()), int((steps < 0).sum()), int((steps > 0).sum())
    assert kernels.changes_in_order(np.arange(len(values)), values, len(values)) == expected


def test_rows_chosen_by_hash_have_whole_groups_and_the_share_asked_for() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 300, 50_000).astype(np.int32) for _ in range(2))
    rows = kernels.rows_of_whole_groups(a, b, 300, 3)
    chosen = np.zeros(50_000, dtype=bool)
    chosen[rows] = True
    key = a.astype(np.int64) * 300 + b
    assert not np.isin(key[~chosen], key[chosen]).any()
    assert abs(len(rows) / 50_000 - 1 / 8) < 0.01


@pytest.mark.parametrize("name", LOOKALIKES)
def test_no_record_of_the_original_breaks_what_always_holds(name: str) -> None:
    data = LOOKALIKES[name]()
    coded = Coded(data, data.columns)
    own = dict.fromkeys(data.columns, np.arange(data.n))
    exact = [each for each in dependencies(data) if each.exact]
    assert bool(exact) == (name != "no numbers")  # a file of columns of which each is free, but for a household's
    assert not any(broken(coded, each, own).any() for each in exact)


@pytest.mark.nightly
def test_a_million_records_of_forty_columns_take_less_than_a_minute() -> None:
    rng, n = np.random.default_rng(1), 1_000_000
    columns: dict[str, np.ndarray] = {f"k{i}": rng.integers(0, (2, 3, 5, 8, 12, 20, 40)[i % 7], n) for i in range(22)}
    columns |= {f"x{i}": rng.lognormal(9, 1, n).round(2) for i in range(10)}
    columns["place"] = rng.integers(0, 2_000, n)
    columns |= {"district": columns["place"] // 20, "county": columns["place"] // 200}
    columns |= {"total": (columns["x0"] + columns["x1"]).round(2), "ratio": (columns["x2"] / columns["x3"]).round(3)}
    columns |= {"class": np.digitize(columns["x4"], [3_000, 9_000, 20_000]), "age": rng.integers(0, 95, n)}
    columns["age_group"] = columns["age"] // 10
    data = qd.from_frame(pl.DataFrame(columns))
    started = time.perf_counter()
    listed = {str(each) for each in dependencies(data)}
    assert time.perf_counter() - started < 60
    assert len(data.columns) == 40
    assert {"place determines district", "total = x0 + x1", "age determines age_group"} <= listed
