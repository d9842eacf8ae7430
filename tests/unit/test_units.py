"""Households stay whole: what their members share is not moved record by record, and their numbers are new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.data import Data
from quadrille.params import SEED, Columns
from quadrille.plan import Move, Plan
from quadrille.randomness import Seed, Stream
from quadrille.recipe import Prepared, Recipe, random_order
from quadrille.score.contradictions import ContradictionError, contradictions

HOUSEHOLDS = 200


def persons(*, text: bool = False, scattered: bool = True) -> Data:
    """Persons of households whose numbers begin with the region."""
    rng = np.random.default_rng(3)
    hh = np.repeat(np.arange(HOUSEHOLDS), 1 + rng.integers(0, 4, HOUSEHOLDS))
    hh = rng.permutation(hh) if scattered else hh
    region = rng.integers(0, 5, HOUSEHOLDS)
    number = (region[hh] + 1) * 1_000_000 + hh
    columns = {"hh": [f"H{n}" for n in number] if text else number}
    columns |= {"region": [f"r{r}" for r in region[hh]], "sex": rng.choice(["f", "m"], len(hh))}
    columns |= {"job": rng.integers(0, 6, len(hh)), "age": rng.integers(0, 90, len(hh)) // 10}
    columns |= {"rent": rng.lognormal(6, 0.5, HOUSEHOLDS).round(2)[hh]}
    return qd.from_frame(pl.DataFrame(columns)).with_roles(unit="hh")


@dataclass(frozen=True)
class OwnSwap(Recipe):
    """A method from outside, which says nothing of units."""

    swap: Annotated[Sequence[str], Columns("the columns that move", least=1, moves=True)]
    _: KW_ONLY
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def prepare(self, data: Data) -> Prepared:
        def draw(stream: Stream) -> Plan:
            pairs = random_order(data.n, stream.sub("pairs"))[:100].reshape(-1, 2)
            return Plan([Move.exchange(tuple(self.swap), pairs)], data=data, asked=50)

        return Prepared(draw)


RECIPES = {
    "own": OwnSwap(["region"]),
    "private": qd.PrivateSwap(["region"], chance=0.3),
    "rank": qd.RankSwap(["rent"], window=0.2),
    "random": qd.RandomSwap(["region"], rate=0.05),
    "permutation": qd.PermutationSwap(["region"], rate=0.05),
    "controlled": qd.ControlledSwap(["region"], targets=0.05),
    "designed": qd.DesignedSwap(tables=[["region", "sex", "job"]]),
}


@pytest.mark.parametrize("method", RECIPES)
def test_a_method_that_would_tear_units_apart_is_refused_with_their_number(method: str, tmp_path: Path) -> None:
    data = persons()
    several = int(data.units("hh").several.sum())
    with pytest.raises(ContradictionError, match=rf"can tear apart {several} units of hh with two or more members"):
        qd.release(data, RECIPES[method], tmp_path / "release")
    assert not (tmp_path / "release").exists()


def test_one_household_of_two_persons_is_enough_to_refuse() -> None:
    rng = np.random.default_rng(1)
    hh, region = np.append(np.arange(999), 998), rng.integers(0, 5, 1000)
    region[999] = region[998]
    frame = pl.DataFrame({"hh": hh, "region": region, "sex": rng.choice(["f", "m"], 1000)})
    data = qd.from_frame(frame).with_roles(unit="hh")
    (found,) = [c for c in contradictions(data, qd.RandomSwap(["region"], rate=0.05)) if c.units]
    assert (found.units, found.moved, found.stays) == (1, ("region",), ("hh",))


def test_what_varies_within_units_is_swapped_and_so_is_a_region_whose_unit_is_left_out() -> None:
    data = persons()
    assert contradictions(data, qd.RandomSwap(["job"], rate=0.05)) == ()
    assert contradictions(data.with_roles(id=["hh"]), qd.RandomSwap(["region"], rate=0.05)) == ()


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_numbers_of_units_are_new_and_members_stay_together(text: bool, shuffle: bool, tmp_path: Path) -> None:
    data = persons(text=text)
    made = qd.release(data, qd.RandomSwap(["job"], rate=0.05), tmp_path / "release", format="parquet", shuffle=shuffle)
    public, before = pl.read_parquet(made.public / "data.parquet"), data.frame()
    old = before["hh"]
    if shuffle:
        old = old[pl.read_parquet(made.confidential / "order.parquet")["row"]]
        assert (public["hh"] != public["hh"].shift(1)).sum() + 1 == HOUSEHOLDS
    assert public["hh"].dtype == before["hh"].dtype
    assert not set(public["hh"]) & set(before["hh"])
    pairs = pl.DataFrame({"original": old.cast(pl.String), "public": public["hh"].cast(pl.String)}).unique()
    assert len(pairs) == pairs["original"].n_unique() == pairs["public"].n_unique() == HOUSEHOLDS
    kept = pl.read_parquet(made.confidential / "units.parquet").select("original", "public")
    assert kept.sort("original").equals(pairs.sort("original"))
    ranks = [pairs.sort(by)["public"].cast(pl.Int64).to_numpy() for by in ("original",)]
    assert abs(np.corrcoef(np.arange(HOUSEHOLDS), ranks[0])[0, 1]) < 0.4  # 5.6 standard errors


def test_units_are_indexed_wherever_their_rows_stand() -> None:
    for data in (persons(), persons(text=True), persons(scattered=False)):
        units, numbers = data.units("hh"), data.frame()["hh"].to_list()
        assert units.count == len(set(numbers)) == HOUSEHOLDS
        assert [numbers[units.first[u]] for u in units.of] == numbers
        assert units.sizes.sum() == data.n
        assert (np.diff(units.of[units.rows]) >= 0).all()


def test_a_record_without_a_number_is_a_unit_by_itself() -> None:
    for hh in ([7, None, 7, None], ["a", None, "a", None]):
        assert qd.from_frame(pl.DataFrame({"hh": hh, "x": [1, 2, 3, 4]})).units("hh").sizes.tolist() == [2, 1, 1]
