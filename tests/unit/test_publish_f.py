"""The factor f in a methods note: what it is, what it gives away and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

import quadrille as qd
from quadrille.errors import ParameterError
from quadrille.release.dossier import read_published

SECRET_WORDS = ("seed", "rate", "2442", "2,442", "1221", "1,221", "plan")


def note(data: qd.Data, recipe: qd.Recipe, folder: Path, **options: bool) -> str:
    made = qd.release(data, recipe, folder / "made", **options)
    return (made.public / "methods.md").read_text(encoding="utf-8")


def test_without_publish_f_the_note_tells_nothing(cps8d: qd.Data, tmp_path: Path) -> None:
    text = note(cps8d, qd.PermutationSwap(["Age"], rate=0.05), tmp_path)
    assert "Correcting a table" not in text
    assert "Age" not in text


def test_with_it_the_note_gives_f_and_the_variables_and_no_secret(cps8d: qd.Data, tmp_path: Path) -> None:
    text = note(cps8d, qd.PermutationSwap(["Age"], rate=0.05), tmp_path, publish_f=True)
    said = read_published(text, "the note")
    assert said.swapped == ("Age",)
    assert said.kind == "pairs"
    assert said.f[""] == pytest.approx(2442 / 48841, rel=1e-11)
    section = text.split("## Correcting a table")[1]
    assert not [word for word in SECRET_WORDS if word in section.lower()]
    assert "which variables took part" not in text.split("## What users should know")[1]


def test_classes_have_an_f_of_their_own(cps8d: qd.Data, tmp_path: Path) -> None:
    text = note(cps8d, qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"]), tmp_path, publish_f=True)
    said = read_published(text, "the note")
    assert len(said.f) == 2
    assert all(0.049 < f < 0.051 for f in said.f.values())


@pytest.mark.parametrize(
    "recipe",
    [
        qd.RandomSwap(["MS"], pairs=10),
        qd.PermutationSwap(["Edu"], records=8),
        qd.PermutationSwap(["Edu"], rate=1.0),
        qd.PermutationSwap(["Edu"], rate=0.01, within=["Age", "EmpTyp", "MS", "Race", "Sex", "AvgHrs"]),
        qd.PermutationSwap(["Edu"], rate=0.01, kind="across", groups="Sex"),
        qd.ControlledSwap(["Edu"], targets=0.01),
    ],
)
def test_where_there_is_no_single_f_nothing_is_written(recipe: qd.Recipe, cps8d: qd.Data, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="eave 'publish_f' out"):
        qd.release(cps8d, recipe, tmp_path / "made", publish_f=True)
    assert not list(tmp_path.iterdir())


def test_the_note_does_not_tell_whether_the_weight_moved(tmp_path: Path) -> None:
    data = qd.datasets.adult()
    stays = note(data, qd.PermutationSwap(["race"], rate=0.01), tmp_path / "a", allow_contradictions=True)
    moved = qd.PermutationSwap(["race"], rate=0.01, weight="moves")
    moves = note(data, moved, tmp_path / "b", allow_contradictions=True)
    assert stays == moves
    assert "stayed with its record" not in stays


def test_classes_by_a_column_that_is_not_released_are_not_named(tmp_path: Path) -> None:
    frame = qd.datasets.cps8d().frame()
    book = qd.Codebook((qd.Variable("Sex", role="id"),))
    data = qd.from_frame(frame, codebook=book)
    with pytest.raises(ParameterError, match="'Sex' bounds the classes and is not released"):
        qd.release(data, qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"]), tmp_path / "made", publish_f=True)
