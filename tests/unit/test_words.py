"""One word, one meaning: what a unit, a cluster and a stratum are; words that are explained where they appear."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quadrille.cli.app import app
from quadrille.codebook import ROLES, Codebook
from quadrille.delta import PlanReport
from quadrille.present.account import account_facts, target_facts
from quadrille.study.choose import RULES

ROOT = Path(__file__).parents[2]
SOURCE, DOCS = ROOT / "src" / "quadrille", ROOT / "docs"
FOREIGN = {"io/frames/identifiers.py", "inspect.py"}
"""Where names of columns in files of others are recognised, whatever these call a cluster."""


def texts() -> Iterator[tuple[str, str]]:
    """All that a person can read: the texts in the code, the templates, the pages of the documentation."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        place = str(path.relative_to(SOURCE))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and place not in FOREIGN:
                yield place, node.value
    for path in (*sorted(SOURCE.rglob("*.j2")), *sorted(DOCS.rglob("*.md"))):
        if path.name != "command-line.md":  # made from the code
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def names() -> Iterator[tuple[str, str]]:
    """The names of parameters, fields and variables."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "arg", None) or getattr(node, "id", None) or getattr(node, "attr", None)
            if isinstance(name, str):
                yield str(path.relative_to(SOURCE)), name


def test_a_primary_sampling_unit_is_called_a_cluster() -> None:
    wrong = re.compile(r"\bPSUs?\b|\bpsus?\b|(?<!primary )sampling units?\b(?! \(no cluster)", re.IGNORECASE)
    found = [(place, match.group()) for place, text in texts() for match in wrong.finditer(text)]
    allowed = ("score/estimates.py", "docs/before-and-after.md")  # "every record is its own sampling unit"
    assert not [each for each in found if not (each[1] == "sampling unit" and each[0] in allowed)]
    assert not [(place, name) for place, name in names() if "psu" in re.split(r"_|(?=[A-Z])", name.lower())]


def test_primary_sampling_units_are_named_only_to_say_what_a_cluster_is() -> None:
    for place, text in texts():
        for match in re.finditer(r"primary sampling units?", text):
            assert "cluster" in text[max(0, match.start() - 80) : match.end() + 80].lower(), place


def test_options_call_a_unit_a_household_and_a_cluster_a_cluster() -> None:
    import typer.main

    commands = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    helps = {word: option.help for each in commands.values() for option in each.params for word in option.opts}
    assert "household" in helps["--unit"] and "luster" in helps["--cluster"] and "trata" in helps["--var-stratum"]
    assert not {word for word in helps if re.search(r"psu|var-unit|fraction", word)}


def test_every_role_is_in_the_glossary_and_old_codebooks_are_read() -> None:
    glossary = (DOCS / "glossary.md").read_text(encoding="utf-8")
    said = next(line for line in glossary.splitlines() if line.startswith("| **role**"))
    assert all(role in said for role in ROLES)
    for word in ("unit", "cluster", "stratum", "weight", "outcome", "knee", "target", "compensating swap"):
        assert f"\n| **{word}** |" in glossary, word
    old = Codebook.from_toml('[columns.psu]\nkind = "nominal"\nrole = "unit"\n')
    assert old["psu"].role == "unit"


def test_words_of_the_trade_are_explained_where_they_appear() -> None:
    report = PlanReport(asked=2, pairs=2, n=9, records=4, changed=2, false_swaps=1, compensating=2, variables=())
    facts = dict(account_facts(report))
    assert "the full table does not show it" in facts["compensating"] and "nothing changes" in facts["false swaps"]
    told = {"targets": 2, "certain": 0, "pairs": 2, "rounds": 1, "bias": 0.0, "without_partner": 0, "reasons": {}}
    assert "to get a partner" in dict(target_facts(told))["targets"]
    assert "knee" in RULES
    reasons = (SOURCE / "study" / "choose.py").read_text(encoding="utf-8")
    assert "the knee of the frontier, farthest from the line between its two ends" in reasons


@pytest.mark.parametrize("page", ["searching.md", "guides/choosing-a-release.md", "designed-swapping.md"])
def test_a_page_that_speaks_of_the_knee_says_what_it_is(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    if re.search(r"\bknee\b", text):
        assert re.search(r"farthest|glossary\.md", text)
