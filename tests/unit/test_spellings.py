"""One text in two spellings of Unicode: counted, reported, merged on request, and never compared as two."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError
from quadrille.inspect import checks, spelled_twice

TOWNS = ["K\u00f6ln", "Ko\u0308ln", "Bonn", "\u00c5rhus", "A\u030arhus", "\u212brhus", "Bonn", "Ulm"]
COMPOSED = ["K\u00f6ln", "K\u00f6ln", "Bonn", "\u00c5rhus", "\u00c5rhus", "\u00c5rhus", "Bonn", "Ulm"]


def file_of(towns: list[str], codebook: qd.Codebook | None = None) -> qd.Data:
    frame = pl.DataFrame({"town": towns, "sex": ["f", "m"] * 4})
    return qd.from_frame(frame, codebook=codebook)


def test_spellings_that_look_alike_are_counted_without_naming_them() -> None:
    (hint,) = [hint for hint in checks(file_of(TOWNS)) if "Unicode" in hint]
    assert hint.startswith("In 'town' 2 categories are spelled in several ways of Unicode")
    assert not any(town in hint for town in TOWNS)
    assert not [hint for hint in checks(file_of(COMPOSED)) if "Unicode" in hint]
    assert spelled_twice(file_of(COMPOSED)["town"]) == {}


def test_the_codebook_that_is_proposed_merges_them() -> None:
    merge = spelled_twice(file_of(TOWNS)["town"])
    assert merge == {"K\u00f6ln": ("Ko\u0308ln",), "\u00c5rhus": ("A\u030arhus", "\u212brhus")}
    merged = file_of(TOWNS, qd.Codebook((qd.Variable("town", merge=tuple(merge.items())),)))
    assert merged["town"].labels == file_of(COMPOSED)["town"].labels
    assert (merged["town"].values == file_of(COMPOSED)["town"].values).all()


def test_escapes_in_a_codebook_file_merge_them(tmp_path: Path) -> None:
    (tmp_path / "book.toml").write_text(
        '[columns.town]\nmerge = { "K\\u00f6ln" = ["Ko\\u0308ln"] }\n', encoding="ascii"
    )
    assert file_of(TOWNS, qd.Codebook.read(tmp_path / "book.toml"))["town"].valid == file_of(TOWNS)["town"].valid - 1


def test_files_that_spell_a_category_differently_are_not_compared_as_if_it_were_two() -> None:
    with pytest.raises(
        InputError, match="'town' has 2 categories that the second file spells in another way"
    ) as caught:
        qd.score(
            file_of(COMPOSED),
            file_of(["Ko\u0308ln", "Ko\u0308ln", "Bonn", *["A\u030arhus"] * 3, "Bonn", "Ulm"]),
            ["hellinger(town)"],
        )
    assert "K" not in str(caught.value).replace("NFKC", "")
    new = file_of(["K\u00f6ln", "K\u00f6ln", "Bonn", "\u00c5rhus", "Trier", "\u00c5rhus", "Bonn", "Ulm"])
    assert qd.score(file_of(COMPOSED), new, ["hellinger(town)"])["hellinger(town)"] is not None
