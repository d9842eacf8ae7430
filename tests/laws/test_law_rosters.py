"""Records are found, counted and hashed alike, whatever is kept of each and however many are read at a time."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_law_permutation import Permuted, permuted

from effort import examples
from quadrille import data as data_module
from quadrille import delta, summary
from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.randomness import Stream
from quadrille.score import evaluator as evaluator_module
from quadrille.score.evaluator import Evaluator
from quadrille.summary import Counted, Distinct, Table
from quadrille.swap import groups
from quadrille.swap.groups import Grouping, codes_of
from strategies import Case, cases, coded, files, restrictions

MEASURES = ["hellinger", "entropy_change", "exposed", "small_cells", "conditional_entropy", "cramers_v_change"]


@contextmanager
def limits(
    chunk: int, *, indexed: bool = False, keyed: bool = True, at_once: int = 1 << 22, dense: bool = True
) -> Generator[None]:
    """Read so many rows at a time; keep no order of rows, no table of keys, no table of all possible cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_module, "CHUNK", chunk)
        patch.setattr(groups, "INDEXED", 1 << 22 if indexed else 0)
        patch.setattr(summary, "AT_ONCE", at_once)
        patch.setattr(delta, "FEW", 0)
        if not keyed:
            patch.setattr(groups, "_KEY_LIMIT", 0)
            patch.setattr(groups, "_RANK_LIMIT", 0)
        if not dense:
            patch.setattr(summary, "_MOST_CELLS", 0)
            for module in (data_module, summary, evaluator_module):
                patch.setattr(module, "DENSE_LIMIT", 0)
        yield


few_rows = st.integers(1, 7)


def some(draw: st.DataObject, data: Data, least: int = 0) -> list[str]:
    return draw.draw(st.lists(st.sampled_from(data.columns), min_size=least, max_size=3, unique=True))


@examples(24)
@given(files(), st.data(), few_rows, st.booleans())
def test_rows_stand_in_the_order_of_their_groups_however_they_are_found(
    data: Data, draw: st.DataObject, chunk: int, keyed: bool
) -> None:
    names = some(draw, data)
    ranked = [np.unique(data[name].values, return_inverse=True)[1] for name in names]
    order = np.lexsort(ranked[::-1]) if names else np.arange(data.n)
    with limits(chunk, keyed=keyed):
        grouping = Grouping([codes_of(data, name) for name in names], data)
        joint = [tuple(codes[row] for codes in ranked) for row in order]
        ends = [i for i, (one, other) in enumerate(pairwise(joint), 1) if one != other]
        assert np.cumsum(grouping.counts)[:-1].tolist() == ends
        assert grouping.first.tolist() == order[[0, *ends]].tolist()
        assert grouping.of[order].tolist() == np.repeat(np.arange(len(grouping)), grouping.counts).tolist()
        kept = np.array(draw.draw(st.lists(st.booleans(), min_size=len(grouping), max_size=len(grouping))))
        kept |= ~kept.any()
        roster = grouping.roster(kept)
        places = np.array(draw.draw(st.lists(st.integers(0, int(roster.start[-1]) - 1), max_size=12)), dtype=np.int64)
        expected = order[np.repeat(kept, grouping.counts)]
        assert roster.look_up(places).tolist() == expected[places].tolist() == roster.rows(places).tolist()
        assert "order" not in roster.__dict__
        assert roster.order.tolist() == expected.tolist()


@examples(30)
@given(files(), st.data(), few_rows, st.booleans())
def test_groups_within_groups_are_those_of_both_columns_and_the_empty_ones_too(
    data: Data, draw: st.DataObject, chunk: int, keyed: bool
) -> None:
    outer, inner = some(draw, data), some(draw, data)
    with limits(chunk, keyed=keyed):
        first, second = (Grouping([codes_of(data, name) for name in names], data) for names in (outer, inner))
        roster = second.within(first)
    block = first.of * len(second) + second.of
    assert roster.counts.tolist() == np.bincount(block, minlength=len(first) * len(second)).tolist()
    assert roster.order.tolist() == np.argsort(block, kind="stable").tolist()


@examples(24)
@given(cases(), few_rows, st.booleans(), st.booleans())
def test_a_random_swap_draws_the_same_plan_however_rows_are_found(
    case: Case, chunk: int, keyed: bool, indexed: bool
) -> None:
    with limits(chunk, keyed=keyed, indexed=indexed):
        assert case.recipe.plan(case.data.take(np.arange(case.data.n))) == case.plan


@examples(24)
@given(permuted(), few_rows, st.booleans(), st.booleans())
def test_a_permutation_swap_draws_the_same_plan_however_rows_are_found(
    case: Permuted, chunk: int, keyed: bool, indexed: bool
) -> None:
    with limits(chunk, keyed=keyed, indexed=indexed):
        again = case.recipe.plan(case.data.take(np.arange(case.data.n)))
    assert again == case.plan
    assert [move.given[0].tolist() for move in again.moves] == [move.given[0].tolist() for move in case.plan.moves]


def test_a_large_file_is_put_in_order_once_many_draws_have_been_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "INDEXED", 0)
    codes = np.array([1, 0, 1], dtype=np.uint8)
    roster = Grouping([(codes, 2)], Data([Column(Variable("x", categories=("a", "b")), codes)])).roster()
    for _ in range(groups.STREAMED_DRAWS):
        assert roster.rows(np.array([2, 0])).tolist() == [2, 1]
        assert "order" not in roster.__dict__
    assert roster.rows(np.array([2, 0])).tolist() == [2, 1]
    assert "order" in roster.__dict__


def content(tally: summary.Tally) -> list[object]:
    parts = (tally.keys, tally.count, tally.ticks)
    return [None if part is None else part.tolist() for part in parts]


@examples(36)
@given(files(), st.data(), few_rows, few_rows, st.booleans())
def test_a_table_is_counted_alike_by_parts_and_from_the_combinations_of_more_variables(
    data: Data, draw: st.DataObject, chunk: int, at_once: int, dense: bool
) -> None:
    where = summary.Where.parse(draw.draw(restrictions(data)).text) if draw.draw(st.booleans()) else None
    names = tuple(draw.draw(st.lists(st.sampled_from(coded(data)), min_size=1, max_size=3, unique=True)))
    kind = draw.draw(st.sampled_from([Table, summary.Participation, summary.Arrival, summary.Transition]))
    table: Counted = kind(names, where)
    more = tuple(dict.fromkeys((*table.needs, *coded(data)[:2])))
    with limits(1 << 16, dense=dense):
        expected = content(table.of(data))
    with limits(chunk, at_once=at_once, dense=dense):
        assert content(table.of(data)) == expected
        whole = Table(more).of(data)
        if whole.cross.exact:
            assert content(table.of_distinct(Distinct.of(data, whole))) == expected


@examples(24)
@given(cases(least=2, most=4), few_rows, few_rows, st.booleans())
def test_scores_are_the_same_whatever_is_counted_together(case: Case, chunk: int, at_once: int, dense: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluator, "_distinct_for", lambda *_: None)
        expected = Evaluator(case.data, MEASURES).score(case.plan)
    with limits(chunk, at_once=at_once, dense=dense):
        scores = Evaluator(case.data, MEASURES).score(case.plan)
    for name, value in expected.items():
        assert (scores[name] is None) == (value is None)
        assert value is None or abs(scores[name] - value) <= 1e-12


def mixed(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


@examples(30)
@given(files(), st.data())
def test_the_fingerprint_is_a_sum_over_all_values_of_a_hash_of_column_row_and_value(
    data: Data, draw: st.DataObject
) -> None:
    total = 0
    for name in data.columns:
        salt = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        for row, value in enumerate(data[name].values.tolist()):
            bits = struct.unpack("<Q", struct.pack("<d", value))[0] if isinstance(value, float) else value
            total += mixed(mixed((row + salt) % 2**64) ^ bits)
    assert data.fingerprint.endswith(f"{total % 2**64:016x}")
    held = {name: np.bincount(data[name].values, minlength=data[name].size).tolist() for name in coded(data)}
    assert {name: data[name].held.tolist() for name in held} == held


@examples(30)
@given(st.integers(0, 2**64), st.integers(0, 200), st.integers(0, 200))
def test_words_from_any_place_on_are_part_of_one_sequence(seed: int, start: int, count: int) -> None:
    stream = Stream.of(seed, "anywhere")
    assert stream.words(count, start).tolist() == stream.words(start + count)[start:].tolist()
