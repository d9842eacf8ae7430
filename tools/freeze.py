"""Write tests/golden/frozen anew from this version: `python tools/freeze.py [--overwrite]`, all files or none."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import quadrille as qd
from quadrille.swap.designed.pairs import DesignedPairs

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "golden"))

import test_frozen as now  # noqa: E402  # what is compared is what is written

SECRET = "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdef13579bdf02468ace"
YOUNG = "Age=<25 & MS=Married"


def survey() -> str:
    """Return a small weighted survey with geography, missing values and columns that steer a swap, as CSV."""
    frame = qd.datasets.adult().frame()[::30]
    head = "number,region,district,sex,race,Größe,MS,education,degree,occupation,hours,income,w,risk,certain,spared"
    lines = [head + ",share,pace"]
    for i, row in enumerate(frame.iter_rows(named=True)):
        region = (7 * i + row["age"]) % 4
        district = (i + row["education-num"]) % 3 + 1
        size = "" if i % 41 == 0 else 1 + (row["age"] * 3 + i) % 5
        hours = -9 if i % 23 == 0 else row["hours-per-week"]
        work = row["occupation"] or "?"
        some: list[object] = [1000 + i, "NESW"[region], f"{'NESW'[region]}{district}", row["sex"][0].lower()]
        some += [row["race"].split("-")[0], size, row["marital-status"].split("-")[0], row["education-num"]]
        some += [(row["education-num"] - 1) // 4, work, hours, row["income-per-year"]]
        some += [row["fnlwgt"] // 100 / 10, 1 + row["age"] % 9, int(i % 13 == 5 and i % 7 == 2), int(i % 13 == 3)]
        some += [0.02 if row["sex"] == "Male" else 0.05, (0.05, 0.1, 0.0, 0.2)[region]]
        lines.append(",".join(map(str, some)))
    return "\n".join(lines) + "\n"


def recipes() -> list[tuple[str, qd.Recipe]]:
    """Return recipes with every parameter away from its default at least once, and the data that they are for."""
    r, p, c, d = qd.RandomSwap, qd.PermutationSwap, qd.ControlledSwap, DesignedPairs
    kept = {"weight": 2.0, "distance": 1.0}
    return [
        ("cps8d", r(["Edu"], rate=0.02, seed=7)),
        ("cps8d", r(["Edu"], pairs=488, seed=SECRET)),
        ("cps8d", r("MS", pairs=1, seed=0)),
        ("cps8d", r(["Age", "Sex"], rate=0.1, same=["Race"], different=["MS"], seed=3)),
        ("cps8d", r(["Edu", "MS"], rate=0.05, differ="any", seed=4)),
        ("cps8d", r(["Edu", "MS", "Race"], rate=0.9, differ="none", seed=5)),
        ("cps8d", r(["MS", "Race", "Edu"], rate=0.03, order="one-by-one", seed=6)),
        ("cps8d", r(["AnnSal"], rate=0.04, sampler="pair-uniform", seed=2**70)),
        ("cps8d", r(["EmpTyp", "AvgHrs"], pairs=300, same=["Sex", "Age"], sampler="pair-uniform", seed=8)),
        ("cps8d", r(["MS"], rate=0.05, rules=[YOUNG], seed=9)),
        ("cps8d", r(["Age", "MS"], pairs=500, rules=[YOUNG, "Age>25-55 & Edu=Bach+"], sampler="pair-uniform", seed=1)),
        ("cps8d", r(["Age", "MS"], rate=0.02, order="one-by-one", rules=[YOUNG], differ="any", seed=10)),
        ("adult", r(["education", "occupation"], rate=0.05, same=["sex"], seed=11)),
        ("adult", r(["hours-per-week"], pairs=250, different=["native-country"], seed=12)),
        ("adult", r(["marital-status"], rate=0.01, rules=["age<25 & marital-status=Widowed"], seed=13)),
        ("state", r(["tract"], rate=0.1, seed=14)),
        ("state", r(["tract"], rate=0.2, same=["county", "size"], seed=15)),
        ("state", r(["county", "race", "tenure"], rate=0.1, order="one-by-one", seed=SECRET)),
        ("survey", r(["Größe"], pairs=60, same=["sex"], rules=["Größe=1 & MS=Married"], seed=16)),
        ("survey", r(["district", "occupation"], rate=0.15, order="one-by-one", different=["sex"], seed=17)),
        ("cps8d", p(["Age"], rate=0.05, seed=1)),
        ("cps8d", p(["Edu", "MS"], rate=0.03, kind="cycles", seed=2)),
        ("cps8d", p(["Age"], records=1221, kind="cycles", seed=SECRET)),
        ("cps8d", p(["Race"], rate=0.02, kind="across", groups="Sex", seed=3)),
        ("cps8d", p(["AnnSal"], rate=0.04, within=["Sex", "Edu"], seed=4)),
        ("adult", p(["education"], rate=0.05, within=["sex"], weight="moves", kind="cycles", seed=5)),
        ("adult", p(["race"], records=800, kind="across", groups="income-per-year", seed=6)),
        ("state", p(["tract"], rate=0.1, seed=7)),
        ("state", p(["tract"], rate=0.3, within=["county"], kind="cycles", seed=8)),
        ("survey", p(["MS", "Größe"], rate="pace", within=["region"], seed=9)),
        ("survey", p(["education"], rate="pace", within=["region"], kind="cycles", weight="moves", seed=10)),
        ("survey", p(["occupation"], rate=0.1, within=["region"], kind="across", groups="sex", seed=11)),
        ("cps8d", c(["Race", "Edu"], targets=0.01, boundary=["Sex"], seed=7)),
        ("cps8d", c(["Edu"], targets=0.02, rules=[YOUNG, "Edu=Bach+ & Age=<25"], seed=SECRET)),
        ("cps8d", c(["Age", "Edu", "MS"], targets=0.02, method="balanced", boundary=["Race"], seed=1)),
        ("cps8d", c(["Age", "EmpTyp"], targets=0.005, matching="optimal", seed=2)),
        ("adult", c(["education"], targets=0.01, boundary=["sex"], bias="hours-per-week", seed=3)),
        ("adult", c(["occupation", "race"], targets=0.005, on_missing="category", sort=["age"], seed=4)),
        ("adult", c(["workclass"], targets=0.01, linked={"workclass": ["occupation", "hours-per-week"]}, seed=5)),
        ("state", c(["tract"], targets=0.02, seed=6)),
        ("state", c(["tract"], targets=0.05, boundary=["county"], seed=7)),
        ("survey", c(["MS", "education"], targets="share", stratum=["sex"], size="risk", seed=8)),
        (
            "survey",
            c(["occupation"], targets=0.03, must="certain", never="spared", linked={"occupation": ["hours"]}, seed=9),
        ),
        ("survey", c(["Größe", "MS"], targets=0.04, method="balanced", never="spared", stratum=["region"], seed=10)),
        (
            "survey",
            c(["education"], targets=0.03, matching="optimal", cost=kept, bias="risk", boundary=["sex"], seed=11),
        ),
        ("survey", c(["MS"], targets=0.02, strict=True, sort=["region", "income"], seed=12)),
        (
            "survey",
            c(
                ["education", "Größe"],
                targets=0.03,
                matching="optimal",
                cost={"bias": 1, "weight": 0.5},
                linked={"education": ["degree"]},
                on_missing="category",
                rules=["Größe=1 & MS=Married"],
                method="balanced",
                seed=SECRET,
            ),
        ),
        ("cps8d", d(seed=7)),
        ("cps8d", d(["Age", "MS"], n=4, share=0.5, choose="cheapest", seed=1)),
        ("cps8d", d(treatment="either", loss={"hellinger": 1, "hellinger(Age*AnnSal)": 5}, spread=0, seed=2)),
        ("cps8d", d(treatment="camouflage", improve=False, max_pairs=100, seed=SECRET)),
        ("cps8d", d(treatment="empty", loss="total_variation", spread=0.5, seed=4)),
        ("cps8d", d(tables=[["Age", "Sex", "Race", "Edu"], ["MS", "Edu", "EmpTyp"]], n=10, price=0.5, seed=5)),
        (
            "cps8d",
            d(tables=["Age*MS*Edu*EmpTyp*AvgHrs"], together=[["Age", "MS"]], same=["Sex"], rules=[YOUNG], seed=6),
        ),
        ("cps8d", d(["Edu"], different=["Race"], loss="chi_square(Edu*Age)", price=2.0, improve=False, seed=8)),
        ("state", d(tables=[["county", "race"]], swap=["race"], same=["tenure"], loss="effective_swap_rate", seed=9)),
        ("survey", d(never="spared", n=2, rules=["Größe=1 & MS=Married"], seed=10)),
        (
            "survey",
            d(tables=[["district", "race"], ["sex", "MS", "Größe"]], n=5, share=0.8, together=["sex*MS"], seed=11),
        ),
    ]


def require_all_parameters() -> None:
    """Refuse to leave a parameter at its default in all recipes."""
    given: dict[str, set[str]] = {}
    for _, recipe in recipes():
        given.setdefault(type(recipe).__name__, set()).update(json.loads(recipe.to_json()))
    for method in now.METHODS:
        known = {"variant" if field.name == "method" else field.name for field in fields(method)}
        if missing := known - given[method.__name__] - ({"rules"} if method is qd.PermutationSwap else set()):
            raise SystemExit(f"No recipe of {method.__name__} sets {', '.join(sorted(missing))}.")


def as_json(document: object) -> str:
    """Write a document so that its changes can be read."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def written() -> list[dict[str, object]]:
    """Draw recipes that are not written canonically: other order, defaults, single names, sets like A*B."""
    texts = {
        "variant is the method of a controlled swap": (
            "cps8d",
            '{"variant": "balanced", "version": 1, "method": "ControlledSwap", "targets": 0.01, "swap": ["Age", "MS"], '
            '"boundary": "Sex", "seed": 7}',
        ),
        "the standard variant is the default": (
            "survey",
            '{"method":"ControlledSwap","variant":"standard","matching":"greedy","cost":null,"must":null,"never":null,'
            '"bias":null,"size":1,"on_missing":"impute","rules":[],"strict":false,"linked":{},"stratum":[],"sort":[],'
            '"boundary":[],"seed":7,"swap":["MS"],"targets":0.02,"version":1}',
        ),
        "defaults are written out": (
            "cps8d",
            '{"seed":7,"version":1,"swap":"Edu","rate":0.02,"pairs":null,"same":[],"different":[],"differ":"all",'
            '"order":"together","sampler":"first-uniform","rules":[],"method":"RandomSwap"}',
        ),
        "a rule is a single text": (
            "cps8d",
            '{"method":"RandomSwap","pairs":50,"rules":" Age=<25 & MS=Married ","seed":7,"swap":"MS","version":1}',
        ),
        "a rate is a whole number": (
            "state",
            '{"method":"PermutationSwap","rate":1,"seed":7,"swap":["age"],"version":1}',
        ),
        "permutation with defaults": (
            "cps8d",
            '{"groups":null,"kind":"pairs","method":"PermutationSwap","rate":null,"records":100,"rules":[],"seed":7,'
            '"swap":["Age"],"version":1,"weight":"stays","within":[]}',
        ),
        "tables are written with asterisks": (
            "cps8d",
            '{"method":"DesignedSwap","tables":["Age * MS*Edu*EmpTyp"],"together":["Age*MS"],"n":6,"seed":7,'
            '"version":1,"improve":true,"loss":"hellinger","max_pairs":null,"price":null,"share":1,"spread":0.1,"never":null}',
        ),
        "letters are escaped": (
            "survey",
            '{"method":"RandomSwap","pairs":9,"seed":7,"swap":["Gr\\u00f6\\u00dfe"],"version":1}',
        ),
    }
    return [{"why": why, "text": text, "drawn": now.drawn(text, name)} for why, (name, text) in texts.items()]


SCORED = (0, 3, 6, 19, 25, 28, 30, 40, 46, 47, 56)
"""Which of the recipes are scored."""


def some(make: Callable[..., object], *given: object) -> object:
    """Make something in a folder of its own."""
    with TemporaryDirectory() as folder:
        return make(Path(folder), *given)


def write(name: str, document: object) -> None:
    """Write one file, and let what comes next read it."""
    (now.FROZEN / name).write_text(as_json(document), encoding="utf-8")
    now.frozen.cache_clear()


def write_plans() -> None:
    """Write data, recipes, plans and scores."""
    (now.FROZEN / "survey.csv").write_text(survey(), encoding="utf-8")
    write("data.json", {name: now.dataset(name).fingerprint for name in sorted({name for name, _ in recipes()})})
    now.PLANS = [now.drawn(recipe.to_json(), name) for name, recipe in recipes()]
    write("plans.json", now.PLANS)
    write("written.json", written())
    write("measures.json", now.listed_measures())
    chosen = [now.PLANS[number] for number in SCORED]
    told = [{"recipe": c["recipe"], "data": c["data"], "scores": now.scored(c["recipe"], c["data"])} for c in chosen]
    write("scores.json", told)
    text = now.PLANS[15]["recipe"]
    write("areas.json", {"recipe": text, "data": "state", "scores": now.scored_by_area(text, "state")})


def write_studies() -> None:
    """Write a study and two simulations, and what they show."""
    path = now.FROZEN / "study.db"
    path.unlink(missing_ok=True)
    study = now.searched(path)
    study.note(3, "for the board")
    write("study.json", now.seen(qd.Study(path)))
    write("shown.json", some(now.study_shown))
    for design in now.DESIGNS:
        folder = now.FROZEN / now.simulation(design)
        shutil.rmtree(folder, ignore_errors=True)
        qd.simulate(design=now.FROZEN / design, out=folder, workers=1)
        for table in folder.glob("*.csv"):
            table.unlink()
    write("simulations.json", {design: some(now.simulated, design) for design in now.DESIGNS})


def write_files() -> None:
    """Write what jobs, policies and codebooks come to."""
    write("jobs.json", {job: some(now.job_done, job) for job in now.JOBS})
    verdicts = {f"{name}: {n}": some(now.judged, now.POLICIES[name], n) for name, n in now.JUDGED}
    write("verdicts.json", verdicts)
    write("frontier.json", some(now.frontier_judged))
    write("codebooks.json", some(now.books))
    write("inspected.json", some(now.inspected))


def refuse() -> None:
    """Leave what is there as it is, unless it is to be overwritten."""
    if any(now.FROZEN.glob("*.json")) and "--overwrite" not in sys.argv[1:]:
        raise SystemExit(f"{now.FROZEN} holds what earlier versions wrote. To write it anew: --overwrite")


def main() -> None:
    """Write all files."""
    refuse()
    require_all_parameters()
    write_plans()
    write_studies()
    write_files()


if __name__ == "__main__":
    main()
