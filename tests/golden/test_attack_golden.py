"""What an intruder finds in four releases of CPS-8d, to the printed digits."""

from __future__ import annotations

from functools import cache

import pytest

import quadrille as qd

RELEASES = {f"R{rate:02}": qd.RandomSwap(["Edu", "MS"], rate=rate / 100, seed=1) for rate in (1, 2, 10)}
RELEASES["D7"] = qd.Recipe.from_json('{"method":"DesignedSwap","seed":7,"version":1}')
RELEASES["Race"] = qd.RandomSwap(["Race"], rate=0.10, seed=1)
FIVE = "linked(Age*Edu*MS*Race*Sex)"
OTHERS = ("Age", "EmpTyp", "Edu", "MS", "Race", "Sex", "AvgHrs")
MEASURES = ["linked", "linked_small", FIVE, "attributed", "attributed_unique"]
MEASURES += [f"{name}(target={target})" for name in ("attributed", "attributed_unique") for target in ("AnnSal", "Edu")]


@cache
def scores(release: str) -> qd.Scores:
    data = qd.datasets.cps8d()
    return qd.score(data, RELEASES[release].plan(data), MEASURES)


def detail(release: str, address: str) -> dict[str, float]:
    return dict(scores(release).results[address][1].detail)


@pytest.mark.parametrize(
    ("release", "links", "small", "unique", "right"),
    [
        ("R01", "1656.96", "528.42", 352, 346),
        ("R02", "1617.12", "507.28", 332, 326),
        ("R10", "1435.55", "422.97", 283, 253),
        ("D7", "1388.59", "267.00", 34, 34),
    ],
)
def test_the_right_links_by_all_eight_keys(release: str, links: str, small: str, unique: int, right: int) -> None:
    found = detail(release, "linked")
    assert (f"{found['links']:.2f}", f"{detail(release, 'linked_small')['links']:.2f}") == (links, small)
    assert (found["unique_links"], found["unique_links_right"]) == (unique, right)
    assert scores(release)["linked"] == found["links"] / 48_842
    assert scores(release)["linked_small"] == detail(release, "linked_small")["links"] / 733


def test_the_right_links_before_and_by_chance(cps8d: qd.Data) -> None:
    nothing = qd.score(cps8d, qd.Plan([], data=cps8d), ["linked", "linked_small", FIVE])
    links = [dict(nothing.results[address][1].detail)["links"] for address in nothing]
    assert links == [1695, 547, 119]
    assert dict(nothing.results["linked"][1].detail)["unique_links_right"] == 361
    small = detail("R10", "linked_small")
    assert f"{small['chance'] * small['persons']:.3f}" == "0.015"


@pytest.mark.parametrize(("release", "links"), [("R10", "93.77"), ("D7", "104.10")])
def test_the_right_links_by_five_keys(release: str, links: str) -> None:
    assert f"{detail(release, FIVE)['links']:.2f}" == links


@pytest.mark.parametrize(
    ("release", "attributed", "right", "unique", "education", "all_eight"),
    [
        ("R01", ".1452", ".9994", ".973", ".941", ".960"),
        ("R02", ".1387", ".9990", ".957", ".941", ".946"),
        ("R10", ".1397", ".9977", ".898", ".839", ".852"),
        ("D7", ".1510", "1.0000", "1.000", "1.000", "1.000"),
    ],
)
def test_what_the_keys_tell_about_another_value(
    release: str, attributed: str, right: str, unique: str, education: str, all_eight: str
) -> None:
    salary, found = detail(release, "attributed(target=AnnSal)"), scores(release)
    assert f"{salary['before']:.4f}" == "0.1510"
    assert f"{found['attributed(target=AnnSal)']:.4f}".lstrip("0") == attributed
    assert f"{salary['right_among_claims']:.4f}".lstrip("0") == right
    assert f"{found['attributed_unique(target=AnnSal)']:.3f}".lstrip("0") == unique
    assert f"{found['attributed_unique(target=Edu)']:.3f}".lstrip("0") == education
    assert f"{found['attributed_unique']:.3f}".lstrip("0") == all_eight


def test_the_unique_persons_by_what_the_release_says_of_them() -> None:
    found = detail("R10", "attributed_unique")
    assert [found[name] for name in ("persons", "right", "wrong", "undecided", "gone")] == [953, 743, 9, 142, 59]
    assert detail("D7", "attributed_unique")["right"] == 953
    assert [detail("R10", f"attributed_unique(target={name})")["persons"] for name in ("AnnSal", "Edu")] == [170, 45]
    assert f"{scores('Race')['attributed_unique']:.3f}" == "0.737"


def test_a_guess_from_the_margin() -> None:
    rows = scores("R10").detail("attributed_unique")
    chance = dict(zip(rows["target"], rows["chance"], strict=True))
    assert (f"{chance['AnnSal']:.3f}", f"{chance['Edu']:.3f}") == ("0.653", "0.196")
    assert f"{(rows['chance'] * rows['persons']).sum() / rows['persons'].sum():.3f}" == "0.545"


def test_a_designed_swap_leaves_what_follows_from_the_keys_with_certainty() -> None:
    rows = scores("D7").detail("attributed").to_dicts()
    found = {row["target"]: row for row in rows}
    printed = dict(zip(OTHERS, (".01355", ".00319", ".00162", ".02999", ".03906", ".03368", ".00360"), strict=True))
    assert {name: f"{found[name]['value']:.5f}".lstrip("0") for name in OTHERS} == printed
    assert all(row["value"] == row["before"] and row["right_among_claims"] == 1 for row in rows)
    assert f"{found['AnnSal']['everybody']:.3f}" == "0.764"
    assert f"{found['AnnSal']['chance']:.3f}" == "0.636"
