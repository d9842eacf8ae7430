"""Whoever has `public/` alone and looks for contradictions finds no more swapped records than by chance."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import quadrille as qd
from lookalikes import FIRST_ATTEMPTS, LOOKALIKES, SOUND
from quadrille.data import Data
from quadrille.release.dossier import ReleaseWarning
from quadrille.score.contradictions import ContradictionError
from undo import about, by_unit, chance_of, suspects, swapped_rows

BY_CHANCE = 1e-6
"""A file has up to some thousand laws to break, and each is looked at once."""

BUNDLED: dict[str, list[qd.Recipe]] = {
    "cps8d": [
        qd.RandomSwap(["Edu"], rate=0.05),
        qd.RandomSwap(["Age", "Sex"], rate=0.05),
        qd.PermutationSwap(["Race"], rate=0.05, kind="cycles"),
        qd.DesignedSwap(effort=0.1),
        qd.PrivateSwap(["Age", "MS"], within=["Sex"], chance=0.05),
    ],
    "adult": [
        qd.RandomSwap(["education", "education-num"], rate=0.05, same=["age"]),
        qd.RandomSwap(["workclass", "occupation"], rate=0.05, differ="any"),
        qd.ControlledSwap(["education"], targets=0.02, boundary=["sex"], linked={"education": ["education-num"]}),
        qd.RankSwap(["age", "hours-per-week"], window=0.02),
        qd.PrivateSwap(["native-country"], within=["race"], chance=0.05),
    ],
    "state": [
        qd.RandomSwap(["tract"], rate=0.05),
        qd.RandomSwap(["income"], rate=0.05),
        qd.PermutationSwap(["tract"], rate=0.05, within=["county"]),
        qd.RankSwap(["income"], window=0.05),
    ],
    "island": [
        qd.TargetedSwap(["birth", "age"], k=2, similar=[["hh_size", "tenure"], ["hh_size"]], rate=0.05),
        qd.TargetedSwap(["birth", "age"], k=2, similar=[["hh_size"]], rate=0.1, near="parent"),
        qd.CycleSwap(risk=["birth", "age"], k=2, same=["hh_size"]),
        qd.PrivateSwap(["birth"], within=["region"], chance=0.05),
    ],
    "census": [qd.CycleSwap(risk=["hincome", "ageGroup", "gender"], k=2, same=["hsize"], area="nuts2")],
    "households": [
        qd.RandomSwap(["citizen"], rate=0.1),
        qd.ControlledSwap(["citizen"], targets=0.02, boundary=["sex"]),
    ],
}

AT_NIGHT: dict[str, list[qd.Recipe]] = {
    "cps8d": [qd.ControlledSwap(["Edu"], targets=0.02, boundary=["Sex"])],
    "adult": [qd.DesignedSwap(["workclass", "occupation"], keep="1-way", effort=0.02)],
    "state": [
        qd.ControlledSwap(["income"], targets=0.02, boundary=["county"]),
        qd.PrivateSwap(["income"], within=["county"], chance=0.05),
    ],
    "island": [
        qd.RandomSwap(["birth"], rate=0.05),
        qd.PermutationSwap(["birth"], rate=0.05),
        qd.RankSwap(["age"], window=0.05),
        qd.ControlledSwap(["birth"], targets=0.02, boundary=["region"]),
    ],
    "census": [
        qd.RandomSwap(["gender"], rate=0.05),
        qd.PermutationSwap(["national"], rate=0.05),
        qd.PrivateSwap(["national"], within=["gender"], chance=0.05),
    ],
    "households": [
        qd.PermutationSwap(["citizen"], rate=0.05, kind="cycles"),
        qd.PrivateSwap(["citizen"], within=["sex"], chance=0.05),
    ],
}
"""The other methods that the bundled files allow."""


REFUSED_BY_DEFAULT = {"adult", "island", "census", "households", *LOOKALIKES} - {"schools"}
"""Files that the default swap would contradict, of whatever roles somebody has told."""


def bundled(name: str) -> Data:
    if name == "state":
        return qd.datasets.state(records=20_000)
    if name == "census":
        return qd.datasets.census(4_000)
    if name == "households":
        return qd.datasets.households().take(np.arange(5_000))
    whole: Data = getattr(qd.datasets, name)()
    return whole if name in ("cps8d", "island") else whole.take(np.arange(0, whole.n, 3))


def least_chance(data: Data, recipe: qd.Recipe, folder: Path, *, allow: bool) -> float:
    """Release, let the intruder look, and return how unlikely the best of his finds is if he found by chance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that identify: it is not what this is about
        known = recipe.changed(seed=17)  # the same plan every time, so that the test is the same
        made = qd.release(data, known, folder, measures=["hellinger"], allow_contradictions=allow, insecure=True)
    swapped = swapped_rows(made.path)
    movement = known.movement(data)
    if movement.unit is None:
        return min((chance_of(rows, swapped) for _, rows in suspects(made.public)), default=1.0)
    # Households at risk move, and they are rare: what is odd in columns that do not move was odd before.
    units = by_unit(made.public, movement.unit, swapped)
    laws = [rows for law, rows in suspects(made.public) if about(law) & movement.columns]
    return min((chance_of(by_unit(made.public, movement.unit, rows), units) for rows in laws), default=1.0)


def cases(recipes: dict[str, list[qd.Recipe]], *marks: pytest.MarkDecorator) -> list[object]:
    return [
        pytest.param(
            name,
            recipe,
            id=f"{name}-{recipe.word()}-{'-'.join(sorted(recipe.moved(recipe.parameters())))}",
            marks=marks,
        )
        for name, listed in recipes.items()
        for recipe in listed
    ]


@pytest.mark.parametrize(("name", "recipe"), cases(SOUND))
def test_a_release_of_a_look_alike_contradicts_nothing(name: str, recipe: qd.Recipe, tmp_path: Path) -> None:
    assert least_chance(LOOKALIKES[name](), recipe, tmp_path / "release", allow=False) > BY_CHANCE


@pytest.mark.parametrize(("name", "recipe"), [*cases(BUNDLED), *cases(AT_NIGHT, pytest.mark.nightly)])
def test_a_release_of_a_bundled_file_contradicts_nothing(name: str, recipe: qd.Recipe, tmp_path: Path) -> None:
    assert least_chance(bundled(name), recipe, tmp_path / "release", allow=False) > BY_CHANCE


@pytest.mark.parametrize("roles", ["as it is guessed", "with its roles"])
@pytest.mark.parametrize("name", [name for name in (*BUNDLED, *LOOKALIKES) if name != "state"])  # it has two keys
def test_the_default_swap_of_a_file_contradicts_nothing_or_is_refused(name: str, roles: str, tmp_path: Path) -> None:
    """What `quadrille release FILE` does without another word."""
    data = bundled(name) if name in BUNDLED else LOOKALIKES[name]()
    data = data if roles == "with its roles" else qd.from_frame(data.frame())
    recipe = qd.DesignedSwap(effort=0.02)
    if name in REFUSED_BY_DEFAULT:
        with pytest.raises(ContradictionError):
            qd.release(data, recipe, tmp_path / "release")
        assert not (tmp_path / "release").exists()
    else:
        assert least_chance(data, recipe, tmp_path / "release", allow=False) > BY_CHANCE


@pytest.mark.parametrize(("name", "recipe"), cases(FIRST_ATTEMPTS))
def test_what_is_refused_would_have_been_found_by_the_intruder(name: str, recipe: qd.Recipe, tmp_path: Path) -> None:
    data = LOOKALIKES[name]()
    with pytest.raises(ContradictionError):
        qd.release(data, recipe, tmp_path / "release")
    assert not (tmp_path / "release").exists()
    assert least_chance(data, recipe, tmp_path / "release", allow=True) < 1e-20


def test_what_couples_show_is_warned_of_and_found_by_the_intruder(tmp_path: Path) -> None:
    recipe = qd.RandomSwap(["sex"], rate=0.05)
    with pytest.warns(ReleaseWarning, match="nearly always differ in 'sex'"):
        qd.release(bundled("households"), recipe, tmp_path / "warned", measures=["hellinger"])
    assert least_chance(bundled("households"), recipe, tmp_path / "release", allow=False) < 1e-20
