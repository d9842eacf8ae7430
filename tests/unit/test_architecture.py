"""docs/architecture.md and its pictures are what the code and its layers make now."""

from __future__ import annotations

import runpy
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools/architecture.py"))
HOUSE: Any = TOOL["House"].read()


def test_the_page_and_its_pictures_are_what_the_generator_makes_now() -> None:
    made: dict[Path, str] = TOOL["written"]()
    old = [path.name for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    assert not old, "Write them anew: .venv/bin/python tools/architecture.py"


def test_the_picture_has_every_room_of_the_contract_in_its_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers: list[str] = next(one["layers"] for one in contracts if one["type"] == "layers")
    picture = (ROOT / "docs" / TOOL["ROOMS"]).read_text(encoding="utf-8")
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for number, layer in enumerate(layers, start=1):
        names = [name.strip() for name in layer.replace(":", "|").split("|")]
        if ":" in layer:
            assert f">nouns: {' · '.join(names)}</text>" in picture and f"| {number} | `nouns` |" in page
        else:
            assert all(f">{name}</text>" in picture and f"| {number} | `{name}` |" in page for name in names)


def test_no_import_contradicts_the_layers_and_every_arrow_is_an_import() -> None:
    assert HOUSE.faults() == []
    assert set(HOUSE.arrows) <= set(HOUSE.imports)
    assert all(HOUSE.level(a) < HOUSE.level(b) for a, b in HOUSE.arrows)


def test_every_import_is_an_arrow_or_follows_from_arrows() -> None:
    reached: dict[str, set[str]] = {}
    for room in reversed(HOUSE.rooms):
        below = {b for a, b in HOUSE.arrows if a == room}
        reached[room] = below.union(*(reached[other] for other in below))
    assert all(b in reached[a] for a, b in set(HOUSE.imports) - HOUSE.excepted)


def test_boxes_and_passing_arrows_of_a_layer_keep_apart() -> None:
    drawing: Any = TOOL["Drawing"](HOUSE)
    for row, x in zip(drawing.rows, drawing.x, strict=True):
        ends = [(x[place] - drawing.width(place) / 2, x[place] + drawing.width(place) / 2) for place in row]
        assert all(right < left for (_, right), (left, _) in pairwise(ends))
        assert ends[0][0] > 30 and ends[-1][1] < TOOL["WIDTH"]


def test_a_step_that_has_moved_stops_the_script() -> None:
    with pytest.raises(SystemExit, match="mend STEPS"):
        TOOL["Step"]("Plan", "", "recipe", "Recipe.draw_it").place()
    with pytest.raises(SystemExit, match="mend STEPS"):
        TOOL["Step"]("Study", "", "study.run", "nothing").place()
