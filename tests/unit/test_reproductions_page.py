"""The page of papers counts what the command prints under "Errata and notes", and names every paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quadrille import papers
from quadrille.papers.reproduction import Reproduction

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| \[.*\| \[(\d+)\]\(([\w-]+)\.md(?:#[\w-]+)?\) \|$", re.MULTILINE)
COUNTED = {
    page.removeprefix("errata-"): int(count)
    for count, page in ROW.findall((ROOT / "docs/reproductions.md").read_text())
}


def row(paper: str) -> str:
    page = (ROOT / "docs/reproductions.md").read_text()
    return next(line for line in page.splitlines() if line.startswith("| [") and f"{paper}.md" in line)


def test_every_paper_has_a_row() -> None:
    assert sorted(COUNTED) == sorted(papers.PAPERS)


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_the_count_of_errata_and_notes_is_that_of_the_command(paper: str) -> None:
    module = papers.get(paper)
    printed = getattr(module, "ERRATA", None)
    if printed is None:  # they carry figures of the run, so a short one is made
        printed = module.reproduce(seeds=40).errata
    assert COUNTED[paper] == len(printed)


@pytest.mark.parametrize("paper", ["boudreau-2005", "dohrmann-2009", "gomatam-karr-sanil-2003"])
def test_the_page_of_a_paper_lists_as_many(paper: str) -> None:
    listed = (ROOT / f"docs/{paper}.md").read_text().split("## Errata and notes")[1].split("\n## ")[0]
    assert len(re.findall(r"^\d+\. ", listed, re.MULTILINE)) == COUNTED[paper]


def counted(found: Reproduction) -> str:
    return f"{sum(claim.holds for claim in found.claims)} of {len(found.claims)} claims hold"


def test_the_count_of_claims_that_hold_is_that_of_the_command() -> None:
    """Of the paper whose verdicts need no draws; at night those of others."""
    assert counted(papers.get("boudreau-2005").reproduce(seeds=2)) in row("boudreau-2005")


@pytest.mark.nightly
def test_the_claims_that_hold_on_both_sources_are_those_of_the_page() -> None:
    claims = papers.get("dohrmann-2009").reproduce().claims
    held = [
        {c.text.partition(": ")[2] for c in claims if c.text.startswith(source) and c.holds} for source in ("s", "a")
    ]
    assert f"{len(held[0] & held[1])} of {len(claims) // 2} claims hold on both" in row("dohrmann-2009")


@pytest.mark.nightly
@pytest.mark.parametrize("paper", ["gomatam-karr-2003", "gomatam-karr-sanil-2003", "lemons-2014"])
def test_the_counts_of_the_default_run_are_those_of_the_page(paper: str) -> None:
    found = papers.get(paper).reproduce()
    if paper != "lemons-2014":
        assert counted(found) in row(paper)
        agree = sum(check.agrees for check in found.checks)
        assert paper != "gomatam-karr-2003" or f"{agree} of {len(found.checks)} cells agree" in row(paper)
        return
    for mechanism, words in (("cells", "claims hold"), ("records", "")):
        mine = [claim.holds for claim in found.claims if claim.text.startswith(f"{mechanism}:")]
        assert f"{sum(mine)} of {len(mine)} {words}".strip() in row(paper)
        agree = found.figures[f"{mechanism}, numbers that agree"]
        assert f"{agree:.0f}" in row(paper)


def test_the_readme_names_every_paper() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [paper for paper in papers.PAPERS if f"`{paper}`" not in readme] == []
