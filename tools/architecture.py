"""Writes docs/architecture.md and its two pictures from the code: who lives where, and who may call whom.

    .venv/bin/python tools/architecture.py

The layers are those that import-linter enforces (pyproject.toml), the arrows are the imports in src/quadrille, and the
way of a candidate is looked up by importing each of its steps: the script fails when one has moved.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import quadrille

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "quadrille"
DOCS = ROOT / "docs"
ROOMS, WAY = "images/architecture-rooms.svg", "images/architecture-way.svg"
NOUNS = "nouns"

Edge = tuple[str, str]


@dataclass(frozen=True)
class House:
    """The rooms, from the top layer to the bottom, and what they import.

    A room is a folder or a module of the package; the modules of a layer that may import one another, joined by ":" in
    the contract, are one room: the nouns. `excepted` are the imports that the contract lets pass.
    """

    layers: tuple[tuple[str, ...], ...]
    nouns: tuple[str, ...]
    excepted: frozenset[Edge]

    @classmethod
    def read(cls) -> House:
        """Read the contract."""
        contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
        contract = next(one for one in contracts["contracts"] if one["type"] == "layers")
        shared = [line for line in contract["layers"] if ":" in line]
        nouns = tuple(name.strip() for line in shared for name in line.split(":"))
        layers = [(NOUNS,) if ":" in line else tuple(map(str.strip, line.split("|"))) for line in contract["layers"]]
        lines = [line.split(" -> ") for line in contract.get("ignore_imports", ())]
        tops = [tuple(module.split(".")[1] for module in line) for line in lines]
        excepted = frozenset(tuple(NOUNS if name in nouns else name for name in pair) for pair in tops)
        return cls(tuple(layers), nouns, excepted)  # pyright: ignore[reportArgumentType]

    @cached_property
    def rooms(self) -> tuple[str, ...]:
        """All rooms, from the top."""
        return tuple(room for layer in self.layers for room in layer)

    def room(self, module: str) -> str | None:
        """Return the room of a part of the package; None for what is no room, such as `__main__`."""
        return NOUNS if module in self.nouns else module if module in self.rooms else None

    def level(self, room: str) -> int:
        """Return the number of a room's layer, counted from the top."""
        return next(i for i, layer in enumerate(self.layers) if room in layer)

    def files(self, room: str) -> list[Path]:
        """Return the files of a room."""
        parts = self.nouns if room == NOUNS else (room,)
        paths = [(SOURCE / f"{part}.py", *sorted((SOURCE / part).rglob("*.py"))) for part in parts]
        return [path for group in paths for path in group if path.is_file()]

    @cached_property
    def imports(self) -> dict[Edge, int]:
        """Which rooms import which others, and how often."""
        counts: dict[Edge, int] = {}
        for room in self.rooms:
            for path in self.files(room):
                for target in map(self.room, imported(path)):
                    if target is not None and target != room:
                        counts[room, target] = counts.get((room, target), 0) + 1
        return counts

    @cached_property
    def arrows(self) -> list[Edge]:
        """The imports downwards that do not follow from others: what is drawn."""
        below = {
            room: {b for a, b in self.imports if a == room and self.level(b) > self.level(a)} for room in self.rooms
        }
        reached: dict[str, set[str]] = {}
        for room in reversed(self.rooms):
            reached[room] = below[room].union(*(reached[other] for other in below[room]))
        return [
            (room, other)
            for room in self.rooms
            for other in self.rooms
            if other in below[room] and not any(other in reached[between] for between in below[room] - {other})
        ]

    def faults(self) -> list[str]:
        """Say what contradicts the contract: modules without a room, imports upwards or across."""
        tops = {path.stem for path in SOURCE.glob("*.py")} | {path.parent.name for path in SOURCE.glob("*/__init__.py")}
        homeless = [
            f"{name} has no layer" for name in sorted(tops - {"__init__", "__main__"}) if self.room(name) is None
        ]
        wrong = [
            f"{a} must not import {b}"
            for a, b in self.imports
            if self.level(a) >= self.level(b) and (a, b) not in self.excepted
        ]
        return homeless + wrong


def imported(path: Path) -> Iterator[str]:
    """Yield the part of the package that each import of a module names; imports for type checking do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "quadrille":
            yield from (_home(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quadrille."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("quadrille."))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "qd":
            yield _home(node.attr)


def _home(name: str) -> str:
    """Return the part of the package where a public name lives."""
    if (SOURCE / f"{name}.py").is_file() or (SOURCE / name / "__init__.py").is_file():
        home: dict[str, str] = vars(quadrille)["_HOME"]
        return home.get(name, name).split(".")[0]
    return str(vars(quadrille)["_HOME"].get(name, "")).split(".")[0]


# The picture of the rooms: boxes in layers, long arrows led past the boxes between.

BOX, HEIGHT, GAP, BAND, LANE, WIDTH = 112.0, 30.0, 20.0, 62.0, 16.0, 1000.0
Place = str | tuple[str, str]
"""A room, or an arrow that passes a layer."""


@dataclass
class Drawing:
    """Where the rooms and the arrows between them stand."""

    house: House

    def __post_init__(self) -> None:
        self.rows: list[list[Place]] = [list(layer) for layer in self.house.layers]
        self.paths: dict[Edge, list[Place]] = {}
        for a, b in self.house.arrows:
            between = range(self.house.level(a) + 1, self.house.level(b))
            for level in between:
                self.rows[level].append((a, b))
            self.paths[a, b] = [a, *([(a, b)] * len(between)), b]
        self._order()
        self.x = self._positions()

    def width(self, place: Place) -> float:
        """Return the room that a place takes."""
        return LANE if isinstance(place, tuple) else max(BOX, 8.0 * len(self.label(place)) + 24)

    def label(self, room: str) -> str:
        """Return what stands on the box of a room."""
        return "nouns: " + " · ".join(self.house.nouns) if room == NOUNS else room

    def _near(self, level: int, place: Place, step: int) -> list[Place]:
        """Return what a place is joined to, one layer up or down."""
        near: list[Place] = []
        for path in self.paths.values():
            for i, spot in enumerate(path):
                at = self.house.level(path[0]) + i  # pyright: ignore[reportArgumentType]
                if at == level and spot == place and 0 <= i + step < len(path):
                    near.append(path[i + step])
        return near

    def _order(self) -> None:
        """Order every layer by the mean place of what it is joined to, up and down in turn; keep the best."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(16):
            step = -1 if sweep % 2 == 0 else 1
            levels = range(len(self.rows)) if step < 0 else reversed(range(len(self.rows)))
            for level in levels:
                wish = {place: self._mean(level, place, step) for place in self.rows[level]}
                self.rows[level].sort(key=wish.__getitem__)
            if (crossings := self._crossings()) < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _mean(self, level: int, place: Place, step: int) -> float:
        """Return where, from 0 to 1, the things stand that a place is joined to; its own place where it is to none."""
        other = self.rows[level + step] if 0 <= level + step < len(self.rows) else []
        near = [other.index(spot) / len(other) for spot in self._near(level, place, step)]
        row = self.rows[level]
        return sum(near) / len(near) if near else row.index(place) / len(row)

    def _crossings(self) -> int:
        total = 0
        for level in range(len(self.rows) - 1):
            joins = [
                (self.rows[level].index(place), self.rows[level + 1].index(spot))
                for place in self.rows[level]
                for spot in self._near(level, place, 1)
            ]
            total += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(joins) for c, d in joins[:i])
        return total

    def _positions(self) -> list[dict[Place, float]]:
        """Move every place towards what it is joined to, as far as its neighbours let it."""
        x = [{place: WIDTH * (i + 1) / (len(row) + 1) for i, place in enumerate(row)} for row in self.rows]
        for sweep in range(40):
            levels = range(len(x)) if sweep % 2 == 0 else reversed(range(len(x)))
            for level in levels:
                wish: list[float] = []
                for place in self.rows[level]:
                    near = [x[level + step][spot] for step in (-1, 1) for spot in self._near(level, place, step)]
                    wish.append(sum(near) / len(near) if near else x[level][place])
                x[level] = dict(zip(self.rows[level], self._apart(self.rows[level], wish), strict=True))
        return x

    def _apart(self, row: list[Place], wish: list[float]) -> list[float]:
        """Return places near the wished ones that do not overlap: the mean of pushing right and of pushing left."""
        space = [(self.width(a) + self.width(b)) / 2 + GAP for a, b in pairwise(row)]
        right, left = list(wish), list(wish)
        for i, gap in enumerate(space):
            right[i + 1] = max(right[i + 1], right[i] + gap)
        for i in range(len(space) - 1, -1, -1):
            left[i] = min(left[i], left[i + 1] - space[i])
        mean = [(a + b) / 2 for a, b in zip(right, left, strict=True)]
        low = min(spot - self.width(place) / 2 for spot, place in zip(mean, row, strict=True))
        high = max(spot + self.width(place) / 2 for spot, place in zip(mean, row, strict=True))
        shift = max(0.0, 50 - low) - max(0.0, high - WIDTH + 30)
        return [spot + shift for spot in mean]

    def svg(self) -> str:
        """Return the picture."""
        parts: list[str] = []
        for level in range(len(self.rows)):
            parts.append(
                f'<rect class="band" x="6" y="{_top(level) - 9:.0f}" width="{WIDTH - 12:.0f}" height="48" rx="6"/>'
            )
            parts.append(_text(24, _top(level) + 20, str(level + 1), "number"))
        parts += [self._arrow(path) for path in self.paths.values()]
        parts += [self._exception(a, b, lane) for lane, (a, b) in enumerate(sorted(self.house.excepted))]
        for level, layer in enumerate(self.house.layers):
            parts += [self._box(level, room) for room in layer]
        return _svg(WIDTH, _top(len(self.rows)) - 8, "The rooms of the package in layers, and what they import", parts)

    def _box(self, level: int, room: str) -> str:
        x, width = self.x[level][room], self.width(room)
        box = (
            f'<rect class="box" x="{x - width / 2:.1f}" y="{_top(level):.0f}" width="{width:.0f}" height="30" rx="5"/>'
        )
        return box + _text(x, _top(level) + 20, self.label(room), "room")

    def _port(self, room: str, edge: Edge, *, out: bool) -> float:
        """Return where on a box an arrow starts or ends: those that lead further left stand further left."""
        level = self.house.level(room)
        mine = [(path[1 if out else -2], one) for one, path in self.paths.items() if one[0 if out else 1] == room]
        at = level + (1 if out else -1)
        mine.sort(key=lambda pair: (self.x[at][pair[0]], pair[1]))
        place = next(i for i, (_, one) in enumerate(mine) if one == edge)
        step = min(LANE + GAP, self.width(room) * 0.8 / max(1, len(mine) - 1))
        return self.x[level][room] + (place - (len(mine) - 1) / 2) * step

    def _arrow(self, path: list[Place]) -> str:
        edge: Any = (path[0], path[-1])
        level = self.house.level(edge[0])
        x, y = self._port(edge[0], edge, out=True), _top(level) + HEIGHT
        line = f"M{x:.1f} {y:.0f}"
        for step, place in enumerate(path[1:], start=1):
            last = step == len(path) - 1
            to = self._port(edge[1], edge, out=False) if last else self.x[level + step][place]
            end = _top(level + step) - (6 if last else 0)
            line += f"C{x:.1f} {y + 20:.0f} {to:.1f} {end - 20:.0f} {to:.1f} {end:.0f}"
            if not last:
                line += f"L{to:.1f} {end + HEIGHT:.0f}"
            x, y = to, end + HEIGHT
        return f'<path class="arrow" d="{line}" marker-end="url(#head)"/>'

    def _exception(self, a: str, b: str, lane: int) -> str:
        """Return the arrow of an import upwards: along the right edge, each in a lane of its own."""
        start, end = self.house.level(a), self.house.level(b)
        x, y = self.x[start][a] + self.width(a) / 2, _top(start) + HEIGHT / 2
        to, under = self.x[end][b] + self.width(b) / 2 - 12, _top(end) + HEIGHT + 5
        turn = f"H{WIDTH - 22 + 7 * lane:.0f}V{under + 9 + 4 * lane:.0f}H{to:.1f}V{under:.0f}"
        return f'<path class="arrow dashed" d="M{x:.1f} {y:.0f}{turn}" marker-end="url(#head)"/>'


def _top(level: int) -> float:
    return 18 + level * BAND


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


STYLE = """
:root { --paper: #ffffff; --ink: #1d2733; --soft: #f1f4f8; --line: #5b6b7d; --fill: #dcebfa; --edge: #2f6fae; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e6ebf0; --soft: #1c222a; --line: #93a3b5; --fill: #1f3c58; --edge: #78b0e6; }
}
.paper { fill: var(--paper); } .band { fill: var(--soft); } .box { fill: var(--fill); stroke: var(--edge); }
text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.room { font-weight: 600; text-anchor: middle; } .number { fill: var(--line); text-anchor: middle; }
.code { font: 12px ui-monospace, monospace; } .small { font-size: 12px; fill: var(--line); }
.arrow { fill: none; stroke: var(--line); stroke-width: 1.3; } .dashed { stroke-dasharray: 5 4; }
.head { fill: var(--line); }
"""


def _svg(width: float, height: float, title: str, parts: list[str]) -> str:
    head = '<path class="head" d="M0 0L8 4L0 8z"/>'
    size = 'viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    marker = f'<marker id="head" {size}>{head}</marker>'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f"<defs>{marker}</defs>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


# The way of one candidate: what it is in turn, and which function makes that of what was before.


@dataclass(frozen=True)
class Step:
    """What a candidate is, in which words, and by which function it becomes that."""

    noun: str
    words: str
    module: str = ""
    function: str = ""

    def place(self) -> str:
        """Return where the function is defined; fail when it is not there."""
        owner: Any = importlib.import_module(f"quadrille.{self.module}")
        *outer, last = self.function.split(".")
        for name in outer:
            owner = getattr(owner, name, None)
        if last in getattr(owner, "__dataclass_fields__", ()):  # a function that an object holds
            return str(owner.__module__).removeprefix("quadrille.")
        step = getattr(owner, last, None)
        if step is None or isinstance(step, ModuleType):
            raise SystemExit(f"{self.function} is not in quadrille.{self.module}: mend STEPS in tools/architecture.py.")
        return str(step.__module__).removeprefix("quadrille.")


STEPS = (
    Step("file", "csv, parquet, sav, dta, sas7bdat, xpt"),
    Step("Data", "immutable columns, with their codebook", "io", "read"),
    Step("Plan", "who receives which columns from whom", "recipe", "Recipe.plan"),
    Step("Delta", "the touched rows, before and after", "delta", "Delta"),
    Step("Change", "the touched cells, old and new", "summary", "Tally.change"),
    Step("Score", "a value, or why there is none", "measure.base", "Measure.score"),
    Step("Scores", "all measures of one plan", "score.evaluator", "Evaluator.score"),
    Step("Study", "one row per candidate, in one file", "study.run", "search"),
    Step("release", "public/ and confidential/", "release.release", "release"),
)


def way() -> str:
    """Return the picture of one candidate's way."""
    parts: list[str] = []
    for i, step in enumerate(STEPS):
        y = 20 + i * 66
        if step.function:
            parts.append(f'<path class="arrow" d="M90 {y - 36}V{y - 6}" marker-end="url(#head)"/>')
            parts.append(_text(108, y - 15, f"{step.function}  in  {step.place()}", "code"))
        parts.append(f'<rect class="box" x="20" y="{y}" width="140" height="30" rx="5"/>')
        parts.append(_text(90, y + 20, step.noun, "room"))
        parts.append(_text(176, y + 20, step.words, "small"))
    return _svg(560, 66 * len(STEPS), "One candidate's way from a file to a release", parts)


def holds(house: House, room: str) -> str:
    """Return what a room holds: the first sentence of its docstring."""
    if room == NOUNS:
        return "What the software is about: " + ", ".join(f"`{name}`" for name in house.nouns) + "."
    path = next(path for path in house.files(room) if path.name in ("__init__.py", f"{room}.py"))
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0].replace("|", "\\|") if text else ""


def page(house: House) -> str:
    """Return docs/architecture.md."""
    lines = ["| layer | room | what it holds | files | may import | imports |", "|---|---|---|---|---|---|"]
    for room in house.rooms:
        level, last = house.level(room) + 1, len(house.layers)
        below = f"layers {level + 1} to {last}" if level + 1 < last else f"layer {last}" if level < last else "nothing"
        used = [f"`{other}`" for other in house.rooms if (room, other) in house.imports]
        cells = [str(level), f"`{room}`", holds(house, room), str(len(house.files(room))), below, ", ".join(used)]
        lines.append("| " + " | ".join(cells) + " |")
    *first, last = [f"`{a}` to `{b}`" for a, b in sorted(house.excepted)] or [""]
    pairs = " and ".join(filter(None, [", ".join(first), last]))
    upwards = UPWARDS.format(pairs=pairs) if pairs else ""
    return TEXT.format(rooms=ROOMS, way=WAY, table="\n".join(lines), upwards=upwards, files=_files(house))


def _files(house: House) -> str:
    """List the files of the rooms that have several, each with the first sentence of its docstring."""
    lines: list[str] = []
    for room in (room for room in house.rooms if room != NOUNS and len(house.files(room)) > 1):
        lines.append(f"- `{room}`")
        for path in house.files(room):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if path.name != "__init__.py" and text:
                lines.append(f"    - `{path.relative_to(SOURCE / room)}`: {text.splitlines()[0]}")
    return "\n".join(lines)


TEXT = """# The map of the code

A room is a folder of `src/quadrille`, or a module. Rooms stand in layers, and a room imports from the layers below it,
never from its own or from above. import-linter enforces exactly this (`[tool.importlinter]` in `pyproject.toml`). This
page and its pictures are written by `tools/architecture.py` from that contract and from the imports themselves, and a
test fails when they differ.

## Who may call whom

![The rooms in layers]({rooms})

An arrow is an import that does not follow from other arrows; the table lists all.{upwards}

## One candidate's way

![From a file to a release]({way})

## Who lives where

{table}

## File by file

{files}
"""
UPWARDS = (
    " Dashed is what the contract excepts, {pairs}:\nwork that is done there, and loaded only when it is called for."
)


def written() -> dict[Path, str]:
    """Return the page and its pictures."""
    house = House.read()
    if faults := house.faults():
        raise SystemExit("The code is not as its layers say: " + "; ".join(faults) + ".")
    return {DOCS / "architecture.md": page(house), DOCS / ROOMS: Drawing(house).svg(), DOCS / WAY: way()}


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(re.sub(r"[ \t]+\n", "\n", text), encoding="utf-8")
        sys.stdout.write(f"Wrote {path.relative_to(ROOT)}.\n")
