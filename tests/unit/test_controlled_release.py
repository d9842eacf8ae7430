"""A release by controlled swapping: nothing that steered the draw goes out, and the dossier tells all of it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.release.release import Release, ReleaseWarning

N = 600
STEERING = ("share_of_targets", "forced", "spared")


def survey() -> qd.Data:
    rng = np.random.default_rng(3)
    region = rng.integers(0, 3, N)
    lonely = np.arange(N) == 5
    return qd.from_frame(
        pl.DataFrame(
            {
                "zone": np.where(lonely, 9, rng.integers(0, 2, N)),
                "region": region,
                "educ": rng.integers(1, 6, N),
                "age": rng.integers(1, 9, N),
                "share_of_targets": np.array([0.04, 0.08, 0.12])[region],
                "forced": lonely,
                "spared": np.arange(N) % 50 == 7,
                "risk": rng.choice([1.0, 2.5], N),
                "w": np.round(rng.lognormal(3, 0.5, N), 2),
            }
        ),
        weight="w",
    )


def recipe(**more: object) -> qd.ControlledSwap:
    return qd.ControlledSwap(
        ["educ", "age"],
        targets="share_of_targets",
        must="forced",
        never="spared",
        stratum=["region"],
        boundary=["zone"],
        size="risk",
        **more,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        return qd.release(survey(), recipe(matching="optimal"), tmp_path_factory.mktemp("out") / "release")


def test_what_steered_the_draw_is_not_in_the_public_file(made: Release) -> None:
    assert not set(STEERING) & set(pl.read_csv(made.public / "data.csv").columns)
    public = "".join(path.read_text(encoding="utf-8") for path in made.public.iterdir())
    assert not any(name in public for name in STEERING)


def test_public_texts_tell_no_target_and_no_count_of_the_draw(made: Release) -> None:
    facts = json.loads((made.confidential / "account.json").read_text(encoding="utf-8"))["details"]
    assert facts["targets"] == 47
    texts = (made.public / "methods.md").read_text(encoding="utf-8")
    assert "target" not in texts.lower()
    assert str(facts["targets"]) not in texts


def test_a_score_of_risk_that_stays_in_the_file_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(ReleaseWarning, match="'risk' decided which records were likely targets"):
        qd.release(survey(), recipe(), tmp_path / "release")


def test_the_dossier_lists_the_target_without_partner_and_why(made: Release) -> None:
    dossier = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    assert "- no partner: 1 target, left as it was; no donor in another cell of its zone: 1\n" in dossier
    assert "- Rows of targets without partner, counted from 0: 5\n" in dossier
    targets = pl.read_parquet(made.confidential / "targets.parquet")
    assert targets.filter(~pl.col("partner"))["row"].to_list() == [5]
    assert len(targets) == 47


def test_the_dossier_counts_targets_by_stratum(made: Release) -> None:
    dossier = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in dossier.splitlines() if line.startswith("| region = ")]
    assert [row[0] for row in rows] == ["region = 0", "region = 1", "region = 2"]
    for row, share in zip(rows, (0.04, 0.08, 0.12), strict=True):
        records, never, asked, must, certain, drawn = map(int, row[1:])
        assert asked == int(share * (records - never) + 0.5)
        assert must + certain + drawn == asked


def test_the_dossier_sets_optimal_beside_greedy(made: Release) -> None:
    lines = (made.confidential / "dossier.md").read_text(encoding="utf-8").split("## Alternatives")[1].splitlines()
    cells = {row[0]: row[1:] for row in (line.strip("| ").split(" | ") for line in lines if line.startswith("| "))}
    assert float(cells["cost"][0]) <= float(cells["cost"][1])
    assert cells["pairs"] == ["46", "46"]
    assert {"bias", "hellinger"} <= set(cells)


def test_the_plan_of_linked_columns_has_each_pair_once(tmp_path: Path) -> None:
    data = survey()
    plan = qd.ControlledSwap(["educ", "age"], targets=0.05, linked={"educ": ["risk"]}, seed=1).plan(data)
    assert plan.pairs is not None
    assert len(plan.pairs) == 30
    account = plan.report(data)
    assert (account.asked, account.pairs, account.records) == (30, 30, 60)
