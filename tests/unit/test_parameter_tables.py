"""The tables of parameters in the docs are what the declarations in the code make now."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import quadrille as qd
from quadrille.measure import MEASURES
from quadrille.recipe import Recipe
from quadrille.release.policy import SECTIONS

ROOT = Path(__file__).parents[2]
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools/parameter_tables.py"))
PAGES: dict[Path, str] = TOOL["pages"]()
TEXT = "".join(PAGES.values())
OURS = [kind for kind in Recipe.methods.values() if kind.__module__.startswith("quadrille.")]


def test_the_tables_are_what_the_generator_makes_now() -> None:
    old = [page.name for page, text in PAGES.items() if page.read_text(encoding="utf-8") != text]
    assert not old, "Write them anew: .venv/bin/python tools/parameter_tables.py"


def test_every_recipe_every_section_and_every_option_has_a_table() -> None:
    names = [*(kind.__name__ for kind in OURS), "measures", "policy"]
    assert all(f"<!-- parameters of {name} -->" in TEXT for name in names)
    for kind in OURS:
        assert all(f"| `{name}` |" in TOOL["table"](kind.__name__) for name in kind.params())
    assert all(f"| `[{section}]` " in TOOL["table"]("policy") for section in SECTIONS)
    options = {(measure.name, param.name) for measure in MEASURES.values() for param in measure.declares}
    assert all(f"`{name}`" in TOOL["table"]("measures") for pair in options for name in pair)


def test_the_schema_of_a_measure_has_what_an_address_can_hold() -> None:
    for measure in MEASURES.values():
        schema: dict[str, Any] = measure.schema()
        assert schema["properties"]["measure"] == {"const": measure.name}
        assert list(schema["properties"]) == ["measure", *measure.params()]
        assert {name: schema["properties"][name]["default"] for name in measure.options} == measure.options


def test_the_schema_of_a_policy_has_every_setting() -> None:
    schema: dict[str, Any] = qd.Policy.schema()
    assert list(schema["properties"]) == [*SECTIONS, "measures"]
    assert schema["properties"]["swap"]["properties"]["seeds"]["enum"] == ["any", "secret"]
    assert schema["properties"]["cells"]["required"] == ["smallest"]
