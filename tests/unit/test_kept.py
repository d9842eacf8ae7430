"""Which tables are kept: every word of `keep`, and what cannot be."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadrille.errors import ParameterError
from quadrille.swap import kept
from quadrille.swap.kept import kept_tables

FOUR = ("A", "B", "C", "D")
subsets = st.lists(st.sampled_from(FOUR), unique=True, min_size=1, max_size=3)


@given(st.lists(subsets | st.integers(1, 3), min_size=1), subsets)
def test_a_set_is_kept_if_and_only_if_it_is_part_of_one_that_is_asked_for(
    keep: list[list[str] | int], fixed: list[str]
) -> None:
    asked = [set(one) for word in keep for one in (combinations(FOUR, word) if isinstance(word, int) else [word])]
    asked += [{each} for each in FOUR] + [set(fixed)]
    found = kept_tables(["*".join(word) if isinstance(word, list) else word for word in keep], FOUR, fixed=fixed)
    for one in chain.from_iterable(combinations(FOUR, size) for size in range(1, 5)):
        assert any(set(one) <= set(table) for table in found) == any(set(one) <= each for each in asked)
    assert not any(set(one) < set(other) for one in found for other in found)
    assert list(found) == sorted(set(found))  # the letters are in the order of the variables
    assert all(table == tuple(sorted(table)) for table in found)


@pytest.mark.parametrize(
    "same",
    [
        ["2-way", 2, " 2 - way ", ["2-way"], ["1-way", 2], ["A*B", "2-way"]],
        ["A*B*C", "C * A*B", ["A*B*C"], [["B", "A", "C"]], "`A`*'B'*C", ["1-way", "A*B*C", "B*C"]],
        ["logit(D)", " logit( D ) ", "logit(`D`)", ["logit(D)", 2], ["A*B*C", "A*D", "B*D", "C*D"]],
    ],
)
def test_one_meaning_has_many_spellings(same: list[Any]) -> None:
    assert len({kept_tables(each, FOUR) for each in same}) == 1


def test_names_that_need_quotes() -> None:
    names = ("a*b", "2-way", "logit(c)", "d")
    assert kept_tables("`a*b`*`2-way`", names) == (("a*b", "2-way"), ("logit(c)",), ("d",))
    assert kept_tables("`2-way`", names) == kept_tables("1-way", names)
    assert kept_tables("logit(`logit(c)`)", names)[0] == ("a*b", "2-way", "d")


def test_fixed_variables_that_are_not_in_the_table_are_left_out() -> None:
    assert kept_tables(1, ("A", "B"), fixed=("Z", "B")) == (("A",), ("B",))


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("two", "no variable 'two' in 'keep' of DesignedSwap"),
        ("A*b", "no variable 'b'.*Did you mean: 'B'"),
        ("logit(Y)", "no variable 'Y'"),
        ("0-way", "must be about tables of 1 to 3 of the 4 variables. Got '0-way'"),
        (4, "must be about tables of 1 to 3 of the 4 variables. Got '4-way'"),
        (-1, "1 to 3"),
        ("A*A", "each variable once"),
        ("A**B", "must be like"),
        ("", "must be like"),
        ("logit()", "must be like"),
        ([], "must be like"),
        ([[]], "must be like"),
        (True, "must be like"),
        (1.5, "must be like"),
        (None, "must be like"),
        ([["A", 1]], "must be like"),
        ("A*B*C*D", r"table of all its variables \(A, B, C, D\), and then nothing can move. Keep tables of fewer"),
    ],
)
def test_what_cannot_be_kept(keep: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kept_tables(keep, FOUR)


def test_the_owner_is_named_and_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="'margins' parameter of least_loss"):
        kept_tables(9, FOUR, owner="least_loss", name="margins")
    with pytest.raises(ParameterError, match=r"all its variables \(A, B\)"):
        kept_tables("logit(A)", ("A", "B"))
    with pytest.raises(ParameterError, match=r"all its variables \(A\)"):
        kept_tables(1, ("A",))
    monkeypatch.setattr(kept, "MOST_TABLES", 5)
    with pytest.raises(ParameterError, match="asks for 6 tables of 2 variables, and up to 5 can be kept"):
        kept_tables(2, FOUR)
