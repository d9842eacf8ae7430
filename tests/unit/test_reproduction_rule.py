"""The one rule by which a number agrees with a published one, in all papers, and how it is shown."""

from __future__ import annotations

import ast
import io
import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from effort import examples
from quadrille import papers
from quadrille.papers.reproduction import ABOUT, MOST_ERRORS, Check, Claim, Reproduction, agrees

FOLDER = Path(papers.__file__).parent
ROOT = Path(__file__).parents[2]
PRINTED = st.decimals(-1000, 1000, places=3).map(str)


@pytest.mark.parametrize(
    ("printed", "ours", "error", "expected"),
    [
        ("5.03", 5.0349, 0.0, True),
        ("5.03", 5.0372, 0.0, False),
        ("5.03", 5.0372, 0.0025, True),
        ("5.03", 5.0372, 0.0023, False),
        ("5800", 5750.0, 0.0, False),
        ("5.8e3", 5750.0, 0.0, True),
        ("5.8e3", 5397.72, 0.0, False),
        ("2", 18.0, 0.0, False),
        ("0.66", 0.6608, 0.0, True),
        ("0.92", 0.9249, 1e-9, True),
        ("0.99", float("nan"), 1.0, False),
    ],
)
def test_a_number_agrees_within_3_standard_errors_or_within_the_rounding_of_its_print(
    printed: str, ours: float, error: float, expected: bool
) -> None:
    assert agrees(printed, ours, error) is expected


@examples(36)
@given(printed=PRINTED, steps=st.integers(-20, 20), errors=st.integers(0, 7))
def test_the_rule_is_the_larger_of_both_distances(printed: str, steps: int, errors: int) -> None:
    """Oracle in whole steps of a tenth of the last digit; a difference that is the limit itself is left out."""
    ours = Decimal(printed) + steps * Decimal("0.0001")
    limit = max(5, 3 * errors)
    if abs(steps) != limit:
        assert agrees(printed, float(ours), errors * 0.0001) is (abs(steps) < limit)


def test_a_claim_about_numbers_holds_when_all_agree_names_the_farthest_and_the_reason() -> None:
    near = Check("T", "r", "c", "1.00", 1.02, 0.01)
    far = Check("T", "other", "", "1.00", 1.05, 0.01, "the reason")
    assert Claim.of("text", [near]).holds
    claim = Claim.of("text", [near, far])
    assert not claim.holds
    assert claim.evidence == "1 of 2 agree; farthest other: published 1.00, ours 1.050, z -5.00; the reason"
    exact = Claim.of("text", [Check("T", "r", "c", "5.8e3", 5397.72)])
    assert exact.evidence == "r, c: published 5,800, ours 5,398, differs"


def test_tables_show_print_and_verdict_and_say_the_rule_and_the_reasons_once() -> None:
    checks = (Check("T", "r", "c", "1.00", 1.5, 0.25), Check("T", "s", "d", "2", 18.0, 0.0, "the reason"))
    found = Reproduction(paper="p", title="t", setting={}, claims=(), errata=(), figures={}, checks=checks)
    console = Console(file=io.StringIO(), width=80)
    found.render(console)
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "1.00 1.500 -2.00 agrees" in text and "2 18 differs" in text
    assert text.count("standard errors of the difference") == 1 and "Where they differ: The reason." in text
    shown = json.loads(json.dumps(found.as_dict(), allow_nan=False))["checks"]
    assert [(one["published"], one["agrees"], one["z"]) for one in shown] == [(1.0, True, -2.0), (2.0, False, None)]
    assert replace(checks[0], ours=float("nan")).as_dict()["ours"] is None


def numbers_of(path: Path) -> list[tuple[str, float]]:
    """Return the numbers between 0 and 1 that a module gives a name in capitals, or compares with."""
    found: list[tuple[str, float]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):
            found += [
                ("compared", one.value)
                for one in ast.walk(node)
                if isinstance(one, ast.Constant) and isinstance(one.value, float)
            ]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            name = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
            if isinstance(node.value.value, float) and name.isupper() and not name.startswith("_"):
                found.append((name, node.value.value))
    return found


def test_no_paper_has_a_tolerance_of_its_own() -> None:
    """What is left are limits in the claims themselves, and constants of the designs."""
    found = {name for path in FOLDER.rglob("*.py") if path.name != "files.py" for name, _ in numbers_of(path)}
    assert found == {"MOST_ERRORS", "ABOUT", "USUALLY", "UNRELATED", "ALPHA", "RATE", "PUBLISHED_RATE", "compared"}
    compared = {value for path in FOLDER.rglob("*.py") for name, value in numbers_of(path) if name == "compared"}
    assert compared == {1e-10, 1e-3, 1e-4}
    assert (MOST_ERRORS, ABOUT) == (3.0, 0.15)


def test_the_rule_stands_on_the_page_of_papers_and_papers_have_at_most_14_files() -> None:
    page = " ".join((ROOT / "docs/reproductions.md").read_text(encoding="utf-8").split())
    assert f"within {MOST_ERRORS:.0f} standard errors of the difference, or it is ours rounded as in print" in page
    assert f"within {100 * ABOUT:.0f} %" in page
    files = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py"))
    assert len(files) <= 14
    assert {Path(name).stem for name in files if "/" in name} == {"__init__", "run", "files"}


@pytest.mark.parametrize("paper", ["boudreau-2005", "lemons-2014"])
def test_no_page_of_a_paper_promises_a_share_as_tolerance(paper: str) -> None:
    text = (ROOT / f"docs/{paper}.md").read_text(encoding="utf-8")
    assert not re.search(r"within (\.02|\.00001|\d+ ?%)", text)
