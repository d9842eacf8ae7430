"""Small files that look like those of agencies, invented by formula: columns that say much about one another.

Each comes with recipes that somebody would try first, which contradict the file, and with recipes that do not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

import quadrille as qd
from quadrille.data import Data

N = 4_000


def persons_in_households() -> Data:
    """Persons with households, in the manner of EU-SILC: region, tenure and income belong to the household."""
    rng = np.random.default_rng(11)
    households = N * 2 // 5
    members = 1 + rng.integers(0, 4, households)
    hh = np.repeat(np.arange(households), members)[:N]
    region = rng.integers(0, 8, households)
    urban = (rng.random(households) < 0.3 + 0.05 * region).astype(int)
    income = rng.lognormal(10, 0.6, households).round(2)
    size = np.bincount(hh, minlength=households)
    age, sex = rng.integers(0, 90, len(hh)), rng.integers(1, 3, len(hh))
    status = np.where(age < 16, 1, rng.integers(1, 6, len(hh)))
    pay = np.where(age < 16, 0.0, rng.lognormal(9, 0.8, len(hh)).round(2))
    benefits = np.where(rng.random(len(hh)) < 0.3, rng.lognormal(7, 0.5, len(hh)).round(2), 0.0)
    return qd.from_frame(
        pl.DataFrame(
            {
                "household": hh,
                "region": [f"R{r + 1}" for r in region[hh]],
                "stratum": region[hh] * 10 + urban[hh],
                "tenure": rng.choice(["owner", "tenant", "free"], households)[hh],
                "size": size[hh],
                "equivalised": (income / np.sqrt(size)).round(2)[hh],
                "age": age,
                "born": 2023 - age,
                "age_group": [f"{10 * (a // 10):02}+" for a in age],
                "sex": sex,
                "marital": status,
                "pay": pay,
                "benefits": benefits,
                "income": (pay + benefits).round(2),
                "health": rng.integers(1, 6, len(hh)),
            }
        ),
        codebook=qd.Codebook((qd.Variable("household", "numeric", role="unit"),)),
    )


def persons_without_numbers() -> Data:
    """The same persons without the number of their household: its income in fives, which others have too, tells it."""
    frame = persons_in_households().frame()
    income = (frame["equivalised"] / 5).round() * 5
    kept = frame.select("region", "tenure", "size", "age", "sex", "health", equivalised=income)
    return qd.from_frame(kept)


def loans() -> Data:
    """Applications for loans with many derived columns: a decision twice, ratios, classes, dummies."""
    rng = np.random.default_rng(12)
    value = (rng.lognormal(12.3, 0.5, N) / 1000).round() * 1000
    loan = (value * rng.uniform(0.3, 1.0, N) / 1000).round() * 1000 + 5000
    income = rng.lognormal(11, 0.5, N).round()
    action = rng.choice([1, 2, 3], N, p=[0.7, 0.1, 0.2])
    race = rng.choice(["A", "B", "C", "D"], N, p=[0.6, 0.2, 0.15, 0.05])
    state = rng.integers(0, 10, N)
    return qd.from_frame(
        pl.DataFrame(
            {
                "state": [f"S{s}" for s in state],
                "county": state * 5 + rng.integers(0, 5, N),
                "purpose": rng.choice(["buy", "build", "refinance"], N),
                "race": race,
                "race_A": (race == "A").astype(int),
                "race_B": (race == "B").astype(int),
                "race_other": ((race != "A") & (race != "B")).astype(int),
                "sex": rng.choice(["f", "m"], N),
                "action": action,
                "reject": (action == 3).astype(int),
                "loan": loan,
                "value": value,
                "ratio": (loan / value).round(4),
                "income": income,
                "income_month": (income / 12).round(2),
                "income_class": np.digitize(income, [30_000, 50_000, 80_000, 120_000]),
                "term": rng.choice([120, 180, 240, 360], N),
            }
        )
    )


def earnings() -> Data:
    """Employees with their earnings: hours times wage is pay, pay and bonus are the total."""
    rng = np.random.default_rng(13)
    industry = rng.integers(0, 20, N)
    hours, wage = rng.integers(8, 60, N), rng.lognormal(3, 0.4, N).round(2)
    pay = (hours * wage).round(2)
    bonus = np.where(rng.random(N) < 0.4, (pay * rng.uniform(0, 0.3, N)).round(2), 0.0)
    full = hours >= 35
    return qd.from_frame(
        pl.DataFrame(
            {
                "industry": [f"I{i:02}" for i in industry],
                "sector": np.array(["farming", "making", "trade", "services"])[industry // 5],
                "public": np.where(industry >= 15, "yes", "no"),
                "occupation": rng.integers(1, 10, N),
                "education": rng.integers(1, 6, N),
                "sex": rng.choice(["f", "m"], N),
                "hours": hours,
                "full_time": np.where(full, "full", "part"),
                "wage": wage,
                "pay": pay,
                "bonus": bonus,
                "total": (pay + bonus).round(2),
                "pay_class": np.digitize(pay, [200, 500, 800, 1200]),
            }
        )
    )


def schools() -> Data:
    """Pupils in schools, in districts, in counties: what is true of a school is true of all its pupils."""
    rng = np.random.default_rng(14)
    count = 120
    district = np.sort(rng.integers(0, 30, count))
    county = district // 5
    kind = rng.choice(["primary", "middle", "high"], count)
    school = np.sort(rng.integers(0, count, N))
    lowest = {"primary": 1, "middle": 5, "high": 9}
    grade = np.array([lowest[k] for k in kind])[school] + rng.integers(0, 4, N)
    return qd.from_frame(
        pl.DataFrame(
            {
                "county": [f"C{c}" for c in county[school]],
                "district": [f"D{d:02}" for d in district[school]],
                "school": [f"S{s:03}" for s in school],
                "kind": kind[school],
                "urban": (county[school] < 2).astype(int),
                "grade": grade,
                "age": grade + 5,
                "sex": rng.choice(["f", "m"], N),
                "meals": rng.choice(["free", "reduced", "full"], N),
                "language": rng.choice(["home", "other"], N, p=[0.8, 0.2]),
                "score": rng.normal(500, 100, N).round(1),
            }
        ),
        geography=["county", "district", "school"],
    )


def members() -> Data:
    """Members of households whose size is not said: one head each, its children counted, incomes summed."""
    rng = np.random.default_rng(15)
    households = N * 2 // 5
    hh = np.sort(np.r_[np.arange(households), rng.integers(0, households, N - households)])
    first = np.r_[True, hh[1:] != hh[:-1]]
    relation = np.where(first, "head", rng.choice(["partner", "child", "other"], N, p=[0.4, 0.45, 0.15]))
    income = np.where(relation == "child", 0, rng.integers(5, 60, N) * 500)
    return qd.from_frame(
        pl.DataFrame(
            {
                "area": [f"A{a}" for a in rng.integers(0, 6, households)[hh]],
                "household": hh,
                "relation": relation,
                "children": np.bincount(hh, weights=relation == "child").astype(int)[hh],
                "income": income,
                "total": np.bincount(hh, weights=income).astype(int)[hh],
                "sex": rng.choice(["f", "m"], N),
                "health": rng.integers(1, 6, N),
            }
        ),
        geography=["area"],
    ).with_roles(unit="household")


def panel() -> Data:
    """Persons in seven years: hardly anything changes from year to year."""
    rng = np.random.default_rng(16)
    years = 7
    person = np.repeat(np.arange(N // years), years)
    start = np.arange(len(person)) % years == 0

    def lasting(values: int, change: float) -> np.ndarray:
        """Values that last from year to year."""
        fresh = np.where(start | (rng.random(len(person)) < change), np.arange(len(person)), 0)
        return rng.integers(0, values, len(person))[np.maximum.accumulate(fresh)]

    return qd.from_frame(
        pl.DataFrame(
            {
                "person": person,
                "year": 2010 + np.arange(len(person)) % years,
                "married": np.array(["no", "yes"])[lasting(2, 0.05)],
                "job": lasting(9, 0.08),
                "ill": rng.choice(["no", "yes"], len(person)),
                "satisfied": rng.integers(0, 5, len(person)),
            }
        )
    ).with_roles(unit="person")


LOOKALIKES: dict[str, Callable[[], Data]] = {
    "persons": persons_in_households,
    "no numbers": persons_without_numbers,
    "loans": loans,
    "earnings": earnings,
    "schools": schools,
    "members": members,
    "panel": panel,
}

FIRST_ATTEMPTS: dict[str, list[qd.Recipe]] = {
    "persons": [
        qd.RandomSwap(["region"], rate=0.05),
        qd.RandomSwap(["age"], rate=0.05),
        qd.RandomSwap(["pay"], rate=0.05),
        qd.PermutationSwap(["tenure"], rate=0.05),
    ],
    "no numbers": [
        qd.RandomSwap(["region"], rate=0.05),
        qd.RandomSwap(["equivalised"], rate=0.05),
        qd.PrivateSwap(["region"], within=["sex"], chance=0.05),
    ],
    "loans": [
        qd.RandomSwap(["action"], rate=0.05),
        qd.RandomSwap(["race"], rate=0.05),
        qd.RandomSwap(["income"], rate=0.05),
        qd.RandomSwap(["loan"], rate=0.05),
        qd.RandomSwap(["state"], rate=0.05),
    ],
    "earnings": [
        qd.RandomSwap(["industry"], rate=0.05),
        qd.RandomSwap(["hours"], rate=0.05),
        qd.RandomSwap(["bonus"], rate=0.05),
        qd.RandomSwap(["pay_class"], rate=0.05),
    ],
    "schools": [
        qd.RandomSwap(["grade"], rate=0.05),
        qd.RandomSwap(["school"], rate=0.05),
        qd.RandomSwap(["age"], rate=0.05),
    ],
    "members": [
        qd.RandomSwap(["relation"], rate=0.05, same=["children"]),
        qd.RandomSwap(["relation", "income"], rate=0.05, differ="any"),
    ],
    "panel": [
        qd.RandomSwap(["married"], rate=0.05),
        qd.RandomSwap(["job"], rate=0.05, same=["year"]),
        qd.RandomSwap(["year"], rate=0.05),
        qd.PermutationSwap(["married", "job"], rate=0.05, kind="cycles"),
        qd.PrivateSwap(["job"], within=["ill"], chance=0.05),
    ],
}
"""What somebody would try first, and what contradicts the file."""

SOUND: dict[str, list[qd.Recipe]] = {
    "persons": [
        qd.RandomSwap(["age", "born", "age_group", "marital", "pay", "benefits", "income"], rate=0.1, differ="any"),
        qd.RandomSwap(["sex"], rate=0.1),
        qd.PermutationSwap(["health"], rate=0.1, kind="cycles"),
    ],
    "no numbers": [
        qd.RandomSwap(["age", "sex"], rate=0.1),
        qd.PrivateSwap(["health"], within=["sex"], chance=0.1),
        qd.RankSwap(["equivalised"], window=0.05),
    ],
    "loans": [
        qd.RandomSwap(["action", "reject"], rate=0.1, differ="any"),
        qd.RandomSwap(["race", "race_A", "race_B", "race_other"], rate=0.1, differ="any"),
        qd.PermutationSwap(["loan", "value", "ratio"], rate=0.1),
        qd.RandomSwap(["income", "income_month", "income_class"], rate=0.1, differ="any"),
        qd.RandomSwap(["county"], rate=0.1, same=["state"]),
    ],
    "earnings": [
        qd.RandomSwap(["industry", "sector", "public"], rate=0.1, differ="any"),
        qd.RandomSwap(["hours", "full_time", "wage", "pay", "bonus", "total", "pay_class"], rate=0.1, differ="any"),
        qd.RandomSwap(["occupation", "education"], rate=0.1),
    ],
    "schools": [
        qd.RandomSwap(["school", "kind", "urban", "grade", "age"], rate=0.1, differ="any"),
        qd.RandomSwap(["grade", "age"], rate=0.1, same=["kind"]),
        qd.RandomSwap(["meals"], rate=0.1),
    ],
    "members": [
        qd.RandomSwap(["sex", "health"], rate=0.1),
        qd.PermutationSwap(["health"], rate=0.1, within=["relation"]),
        qd.TargetedSwap(["sex", "health"], k=55, similar=[["children"]], rate=0.05),
        qd.CycleSwap(risk=["sex", "health"], k=55, same=["children"]),
    ],
    "panel": [
        qd.RandomSwap(["ill", "satisfied"], rate=0.1),
        qd.PrivateSwap(["satisfied"], within=["ill"], chance=0.1),
        qd.ControlledSwap(["satisfied"], targets=0.02, boundary=["ill"]),
    ],
}
"""Recipes that move together what belongs together."""
