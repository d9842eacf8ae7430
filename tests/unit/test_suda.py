"""Special uniques: against all subsets of keys by brute force, and the printed figures of the bundled file."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.attack import suda
from quadrille.attack.suda import special_uniques, special_uniques_section
from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.errors import InputError, ParameterError

Records = list[tuple[int, ...]]


def file_of(records: Records, levels: int | None = None) -> Data:
    columns = list(zip(*records, strict=True))
    return Data(
        Column(
            Variable(f"k{i}", "nominal", tuple(map(str, range(levels or max(codes) + 1)))),
            np.array(codes, dtype=np.uint16),
        )
        for i, codes in enumerate(columns)
    )


def minimal_uniques(records: Records) -> list[list[tuple[int, ...]]]:
    """The sets on which each record is alone and on no proper subset: every subset is counted."""
    keys = range(len(records[0]))
    subsets = [chosen for size in range(1, len(keys) + 1) for chosen in combinations(keys, size)]
    alone: list[set[tuple[int, ...]]] = [set() for _ in records]
    for chosen in subsets:
        values = [tuple(record[key] for key in chosen) for record in records]
        counts = Counter(values)
        for place, value in enumerate(values):
            if counts[value] == 1:
                alone[place].add(chosen)
    return [[s for s in sets if not any(set(t) < set(s) for t in sets)] for sets in alone]


def files(levels: int, most: int = 40) -> st.SearchStrategy[Records]:
    return st.lists(st.tuples(*[st.integers(0, levels)] * 5), min_size=1, max_size=most)


def check(records: Records, found: suda.SpecialUniques) -> None:
    m = len(records[0])
    truth = minimal_uniques(records)
    assert found.scores.tolist() == [sum(factorial(m - len(s)) for s in sets) for sets in truth]
    every = [s for sets in truth for s in sets]
    assert found.sizes == dict(sorted(Counter(map(len, every)).items()))
    assert found.by_set == {tuple(f"k{i}" for i in s): count for s, count in Counter(every).items()}
    total = sum(factorial(m - len(s)) for s in every)
    for key in range(m):
        part = sum(factorial(m - len(s)) for s in every if key in s)
        assert found.contributions[f"k{key}"] == (part / total if total else 0)
    relative = [
        sum((2 ** (m - len(s)) - 1) * factorial(len(s)) * factorial(m - len(s)) / factorial(m) for s in sets)
        for sets in truth
    ]
    assert found.relative_scores == pytest.approx(relative, abs=1e-12)


@examples(36)
@given(files(2))
def test_scores_are_those_of_all_subsets_by_brute_force(records: Records) -> None:
    data = file_of(records)
    check(records, special_uniques(data, data.columns))


@examples(36)
@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 7, 255, 300])] * 5), min_size=1, max_size=12))
def test_keys_of_many_values_are_looked_up_by_hashing_with_the_same_result(records: Records) -> None:
    data = file_of([*records, (3, 4, 5, 6, 8), (9, 10, 11, 12, 13), (3, 10, 5, 12, 8)], levels=301)
    check([*records, (3, 4, 5, 6, 8), (9, 10, 11, 12, 13), (3, 10, 5, 12, 8)], special_uniques(data, data.columns))


@examples(30)
@given(files(3), st.integers(1, 4))
def test_fewer_sizes_leave_out_larger_sets_only(records: Records, most: int) -> None:
    data = file_of(records)
    every, small = special_uniques(data, data.columns), special_uniques(data, data.columns, most=most)
    assert small.sizes == {size: count for size, count in every.sizes.items() if size <= most}
    assert small.by_set == {names: count for names, count in every.by_set.items() if len(names) <= most}
    assert not small.complete


@examples(30)
@given(files(2, most=20))
def test_alike_records_are_never_special(records: Records) -> None:
    data = file_of(records + records)
    assert special_uniques(data, data.columns).records == 0


def test_golden_of_the_bundled_file() -> None:
    """Equal to the compiled suda2 of sdcMicro, record by record, when the figures were made."""
    found = special_uniques(qd.datasets.cps8d())
    assert found.sizes == {4: 27, 5: 161, 6: 301, 7: 139, 8: 14}
    assert (found.records, found.scores.sum()) == (361, 2369)
    assert np.sort(found.scores)[:-6:-1].tolist() == [126, 122, 68, 66, 65]
    assert found.theta == pytest.approx(0.0097072, abs=5e-8)
    assert found.dis.max() == pytest.approx(0.354241, abs=5e-7)
    assert found.dis.sum() == pytest.approx(9.196136, abs=5e-7)
    shares = {name: round(100 * share, 2) for name, share in found.contributions.items()}
    assert shares == {
        "Age": 83.28,
        "EmpTyp": 74.63,
        "Edu": 81.89,
        "MS": 49.13,
        "Race": 51.41,
        "Sex": 42.59,
        "AvgHrs": 61.29,
        "AnnSal": 67.33,
    }
    assert int((found.relative_scores > 0).sum()) == 347
    assert found.relative_scores.sum() == pytest.approx(75.5357, abs=5e-5)
    assert found.relative_scores.max() == pytest.approx(1.464286, abs=5e-7)


RANDOM = qd.RandomSwap(["Edu", "MS"], rate=0.10, seed=1)
DESIGNED = qd.Recipe.from_json('{"method":"DesignedSwap","seed":7,"version":1}')


@pytest.mark.parametrize(("recipe", "records", "total", "left"), [(RANDOM, 347, 1969, 35), (DESIGNED, 34, 566, 10)])
def test_golden_after_a_swap(recipe: qd.Recipe, records: int, total: int, left: int) -> None:
    """The tenth is 36 records, and four more tie with the last; of any 36 of the 40, 31 to 35 and 6 to 10 are left."""
    data = qd.datasets.cps8d()
    section = special_uniques_section(data, recipe.plan(data).apply(data))
    value = {finding.quantity: finding for finding in section.findings}
    assert value["records alone on some keys"].value == records and value["records alone on some keys"].before == 361
    assert value["sum of scores"].value == total and value["sum of scores"].before == 2369
    top = value["most special tenth, still alone and in place"]
    assert top.count == 40 and top.value is not None
    assert round(top.value * 40) == left
    assert top.before == 1 and top.chance == 1 / data.n


def test_nothing_changed_leaves_every_special_unique_in_place() -> None:
    data = qd.datasets.cps8d()
    for finding in special_uniques_section(data, data).findings:
        assert finding.value == finding.before


def test_rows_in_another_order_are_found_by_their_values() -> None:
    data = qd.datasets.cps8d()
    backwards = data.take(np.arange(data.n)[::-1])
    section = special_uniques_section(data, backwards, aligned=False)
    assert [f.value for f in section.findings if f.quantity == "most special tenth, still alone"] == [1.0]


def test_a_file_without_uniques_has_a_story_and_no_tenth() -> None:
    data = file_of([(0, 1), (0, 1), (1, 1), (1, 1)])
    section = special_uniques_section(data, data, ["k0", "k1"])
    assert "Nobody" in section.story
    assert special_uniques(data, ["k0"]).theta is None
    assert [f.value for f in section.findings if "tenth" in f.quantity] == [None]


def test_more_than_twelve_keys_are_looked_at_in_sets_of_four_and_it_is_said() -> None:
    records = [tuple(int(i == j) for j in range(13)) for i in range(13)]
    data = file_of(records)
    found = special_uniques(data, data.columns)
    assert (found.most, found.complete, found.sizes) == (4, False, {1: 13})
    notes = [finding.note for finding in special_uniques_section(data, data, data.columns).findings]
    assert "sets of up to 4 of 13 keys" in notes


def test_theta_and_dis_are_one_when_the_file_is_the_population() -> None:
    found = special_uniques(qd.datasets.cps8d(), sampling=1.0)
    assert found.theta == 1
    assert set(found.dis[found.scores > 0]) == {1.0}


def test_bad_input_is_refused() -> None:
    data = qd.datasets.cps8d()
    with pytest.raises(ParameterError, match="'sampling' parameter of special_uniques"):
        special_uniques(data, sampling=0)
    with pytest.raises(ParameterError, match="'most' parameter of special_uniques"):
        special_uniques(data, most=0)
    with pytest.raises(InputError, match="named twice"):
        special_uniques(data, ["Age", "Age"])
    with pytest.raises(InputError, match="101 keys are too many"):
        special_uniques(data, [f"k{i}" for i in range(101)])
    with pytest.raises(InputError, match="'Aeg'"):
        special_uniques(data, ["Aeg"])
    with pytest.raises(InputError, match="numeric"):
        special_uniques(qd.datasets.adult(), ["fnlwgt"])
    with pytest.raises(InputError, match="not aligned"):
        special_uniques_section(data, data.take(np.arange(10)))
