"""Swapping against other methods on two files: writes the table and the chart of docs/against-other-methods.md.

Run: python -m bench.compare_methods, which takes minutes; with --seeds 5 it prints how far draws differ instead.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from textwrap import fill

import altair as alt
import numpy as np
import polars as pl

import quadrille as qd
from bench.inference import Inference, inference
from bench.other_methods import (
    SUPPRESSED,
    Ints,
    codes,
    locally_suppressed,
    post_randomised,
    sequential_trees,
    with_codes,
)
from quadrille.chart import save, theme
from quadrille.chart.theme import HUES, INK, SHAPES, Place, Plane
from quadrille.codebook import Kind, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.measure import MEASURES
from quadrille.recipe import known_methods

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "against-other-methods.md"
PICTURE = ROOT / "docs" / "images" / "against-other-methods.png"
_PAGE_WIDTH = 120
START, END = "<!-- comparison of {} -->", "<!-- end of comparison -->"
N = 3
RANDOM_SEED, DESIGNED_SEED = 1, 7

AGES, HOURS = (25, 35, 45, 55, 65), (35, 41, 50)


def adult_eight() -> Data:
    """Return the Adult file with eight variables: age and hours in classes, an unknown workclass as one more."""
    full = qd.datasets.adult()
    kept = ("workclass", "education", "marital-status", "race", "sex", "income-per-year")
    columns = [_classes(full, "age", AGES), *(_plain(full[name]) for name in kept)]
    columns.insert(6, _classes(full, "hours-per-week", HOURS))
    return Data(columns)


def adult_nine() -> Data:
    """Return the same with occupation and relationship, and without the hours: sparser still."""
    full, eight = qd.datasets.adult(), adult_eight()
    columns = [eight[name] for name in eight.columns if name != "hours-per-week"]
    return Data([*columns, *(_plain(full[name]) for name in ("occupation", "relationship"))])


def _classes(data: Data, name: str, cuts: tuple[int, ...]) -> Column:
    names = tuple(f"from {low}" for low in (0, *cuts))
    return _column(name, "ordinal", names, np.digitize(data[name].values, cuts))


def _plain(column: Column) -> Column:
    return _column(column.variable.name, column.variable.kind, column.labels, column.values)


def _column(name: str, kind: Kind, categories: tuple[str, ...], values: Ints) -> Column:
    return Column(Variable(name, kind, categories), values.astype(code_dtype(len(categories))))


@dataclass(frozen=True)
class File:
    """A file to protect, and which of its variables the swaps that must be told exchange."""

    name: str
    word: str
    data: Data
    exchanged: tuple[str, ...]
    controlled: tuple[str, ...]
    boundary: str


def files() -> list[File]:
    """Return the two files of the comparison."""
    return [
        File("CPS-8d", "cps8d", qd.datasets.cps8d(), ("Edu", "MS"), ("Race", "Edu"), "Sex"),
        File("Adult", "adult", adult_eight(), ("education", "marital-status"), ("race", "education"), "sex"),
    ]


Release = Callable[[File, int], Data]


@dataclass(frozen=True)
class Method:
    """A row of the table: its family, and how a file is released with a seed.

    `rows`: each released row is still that of a person. `open_ended`: a suppressed value may be any value.
    """

    name: str
    family: str
    release: Release
    seed: int = RANDOM_SEED
    rows: bool = True
    open_ended: bool = False


def methods() -> Iterator[Method]:
    """Return all methods that this version of the package knows, and the others."""
    yield Method("before", "before", lambda file, _: file.data)
    for rate in (0.01, 0.02, 0.10):
        name = f"random swap, {100 * rate:g} %"
        yield Method(name, "random swaps", lambda file, seed, rate=rate: _random(file, seed, rate))
    yield Method("controlled swap, 5 % targets", "random swaps", _controlled)
    for name, settings in DESIGNED.items():
        if set(settings) <= {"version", *known_methods()["DesignedSwap"].params()}:
            yield Method(name, "designed swaps", lambda file, seed, s=settings: _designed(file, seed, s), DESIGNED_SEED)
    yield Method("post-randomisation, 5 %", "other methods", _post_randomised)
    yield Method("local suppression", "other methods", _suppressed, open_ended=True)
    yield Method("sequential trees", "other methods", _trees, rows=False)


DESIGNED: dict[str, dict[str, object]] = {
    "designed swap": {"version": 1},
    "designed swap, keep 1-way": {"keep": "1-way"},
    "designed swap, keep 1-way, coin .5": {"keep": "1-way", "coin": 0.5, "inference": 0.0},
    "designed swap, keep 2-way": {"keep": "2-way"},
    "designed swap, keep 2-way, inference .3": {"keep": "2-way", "inference": 0.3},
    "designed swap, keep 3-way": {"keep": "3-way"},
}
"""Settings of designed swaps; those that the package does not know are left out of the comparison."""


def _random(file: File, seed: int, rate: float) -> Data:
    return qd.RandomSwap(file.exchanged, rate=rate, seed=seed).plan(file.data).apply(file.data)


def _controlled(file: File, seed: int) -> Data:
    recipe = qd.ControlledSwap(file.controlled, targets=0.05, boundary=[file.boundary], seed=seed)
    return recipe.plan(file.data).apply(file.data)


def _designed(file: File, seed: int, settings: dict[str, object]) -> Data:
    recipe = qd.Recipe.from_json(json.dumps({"method": "DesignedSwap", "seed": seed, **settings}))
    return recipe.plan(file.data).apply(file.data)


def _post_randomised(file: File, seed: int) -> Data:
    return with_codes(file.data, post_randomised(codes(file.data), 0.95, seed))


def _suppressed(file: File, _: int) -> Data:
    return with_codes(file.data, locally_suppressed(codes(file.data), sizes(file.data), N), (SUPPRESSED,))


def _trees(file: File, seed: int) -> Data:
    return with_codes(file.data, sequential_trees(codes(file.data), sizes(file.data), seed))


def sizes(data: Data) -> Ints:
    """Return the number of categories of each column."""
    return np.array([data[name].size for name in data.columns], dtype=np.int64)


@dataclass(frozen=True)
class Outcome:
    """What one method did to one file; `changed` is None where rows are no longer those of persons."""

    exposed: float
    inferred: float
    gone: float
    hellinger: float
    two_way: float
    largest: int
    exact: int
    changed: int | None


def outcome(data: Data, released: Data, method: Method) -> Outcome:
    """Measure a release against the file it was made from."""
    scores = qd.score(data, released, ["exposed", "hellinger", "hellinger(2-way)"])
    before, after = codes(data), codes(released)
    found = _inferred(data, released, method)
    changes = list(_two_way_changes(before, after, sizes(data)))
    return Outcome(
        scores["exposed"] or 0.0,
        found.right,
        found.gone,
        scores["hellinger"] or 0.0,
        scores["hellinger(2-way)"] or 0.0,
        max(changes),
        sum(change == 0 for change in changes),
        int((before != after).any(axis=1).sum()) if method.rows else None,
    )


def _two_way_changes(before: Ints, after: Ints, sizes: Ints) -> Iterator[int]:
    """Yield, for each pair of variables, the largest change of a cell of the original's categories."""
    for i, j in combinations(range(len(sizes)), 2):
        tables = np.zeros((2, sizes[i] + 1, sizes[j] + 1), dtype=np.int64)
        for table, values in zip(tables, (before, after), strict=True):
            np.add.at(table, (values[:, i], values[:, j]), 1)
        yield int(np.abs(tables[0] - tables[1])[:-1, :-1].max())


def _inferred(data: Data, released: Data, method: Method) -> Inference:
    """Infer by the package's measure where it has one; it reads a suppressed value as one more category."""
    found = inference(codes(data), codes(released), sizes(data), open_ended=method.open_ended)
    if "attributed_unique" in MEASURES and not method.open_ended:
        return replace(found, right=qd.score(data, released, ["attributed_unique"])["attributed_unique"] or 0.0)
    return found


# The page

HEAD = (
    "method",
    "exposed",
    "inferred",
    "gone",
    "8-way",
    "2-way, mean",
    "2-way, largest change",
    "2-way tables exact",
    "records changed",
)


def table(found: dict[str, Outcome]) -> str:
    """Return the outcomes as a table in Markdown."""
    rows = [HEAD, ("---", *["---:"] * (len(HEAD) - 1))]
    rows += [(name, *_cells(each)) for name, each in found.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(each: Outcome) -> tuple[str, ...]:
    return (
        _share(each.exposed, 4),
        _share(each.inferred, 3),
        _share(each.gone, 3),
        _share(each.hellinger, 4),
        _share(each.two_way, 4),
        f"{each.largest:,}",
        f"{each.exact} of 28",
        "all are drawn" if each.changed is None else f"{each.changed:,}",
    )


def _share(value: float, digits: int) -> str:
    """Write a share without its leading zero."""
    return "0" if value == 0 else "1" if value == 1 else f"{value:.{digits}f}".removeprefix("0")


def filled(page: str, tables: dict[str, str]) -> str:
    """Return the page with each table between its markers."""
    for word, text in tables.items():
        start = START.format(word)
        block = re.compile(f"{re.escape(start)}.*?{re.escape(END)}", re.DOTALL)
        if not block.search(page):
            raise SystemExit(f"{PAGE.name} has no place for the table of {word}: write {start} and {END} into it.")
        page = block.sub(lambda _, whole=f"{start}\n\n{text}\n\n{END}": whole, page)
    return page


# The chart

_SIZE = (400, 270)
_FAMILIES = ("before", "random swaps", "designed swaps", "other methods")
_SHORT = {
    "random swap, ": "random ",
    "controlled swap, 5 % targets": "controlled",
    "designed swap, ": "",
    "designed swap": "designed",
    "post-randomisation, 5 %": "post-randomisation",
}


def picture(found: dict[str, dict[str, Outcome]], families: dict[str, str]) -> alt.VConcatChart:
    """Draw both risks against the loss, a column of panels for each file."""
    risks = {"exposed": "exposed, share of records", "inferred": "inferred, rare persons"}
    rows = [
        alt.hconcat(
            *(_panel(file if risk == "exposed" else "", each, risk, title, families) for file, each in found.items()),
            spacing=30,
        )
        for risk, title in risks.items()
    ]
    return theme.finish(
        alt.vconcat(*rows, spacing=24),
        "Swapping and other methods on two files",
        "Across: how far the table of all eight variables has moved. Up: what is left of the risk, above that rare "
        "combinations are shown as they are, below that the eighth value of a person follows from seven others. "
        "Nearer to the lower left corner is better; no method is in it.",
    )


def _panel(heading: str, found: dict[str, Outcome], risk: str, title: str, families: dict[str, str]) -> alt.LayerChart:
    xs = [each.hellinger for each in found.values()]
    ys = [getattr(each, risk) for each in found.values()]
    axes = (
        alt.Axis(tickCount=6, format=".2"),
        alt.Axis(tickCount=5, format=".1%" if max(ys) < 0.1 else ".0%" if risk == "exposed" else "", minExtent=40),
    )
    across, up = (-0.04 * max(xs), 1.12 * max(xs)), (-0.06 * max(ys), 1.08 * max(ys))
    plane = Plane(("" if heading else "Hellinger distance of the eight-way table", title), across, up, axes, _SIZE)
    points = pl.DataFrame({"family": [families[name] for name in found], "x": xs, "y": ys})
    legend = alt.Legend(title=None, orient="bottom")
    colour, shape = theme.looks("family", _FAMILIES, (INK, *HUES), ("cross", *SHAPES), legend)
    marks = alt.Chart(points).mark_point(filled=True, size=75, opacity=0.9)
    marks = marks.encode(x=plane.x("x"), y=plane.y("y"), color=colour, shape=shape)
    layers = [*_labels(list(found), [plane.pixels(*point) for point in zip(xs, ys, strict=True)], plane), marks]
    return theme.layered(layers, *_SIZE, title=theme.heading(heading) if heading else None)


def _labels(names: list[str], points: list[Place], plane: Plane) -> list[alt.Chart]:
    """Write each name where it covers no point and no other name, with a line where its point is farther off."""
    taken = [(x - 6, x + 6, y - 6, y + 6) for x, y in points]
    rows: list[dict[str, object]] = []
    for name, point in zip(names, points, strict=True):
        for long, short in _SHORT.items():
            name = name.replace(long, short)  # noqa: PLW2901
        width = 0.95 * theme.text_width(name, 11) + 4
        left, down = next(
            (place for place in _places(point, width) if not _covers(place, width, taken)), next(_places(point, width))
        )
        taken.append((left, left + width, down - 7, down + 7))
        x, y = plane.values(left + width / 2, down)
        (from_x, from_y), far = plane.values(*point), abs(down - point[1]) > 15
        rows.append({"text": name, "x": x, "y": y, "x2": from_x if far else x, "y2": from_y if far else y})
    frame = pl.DataFrame(rows)
    lines = alt.Chart(frame).mark_rule(color=theme.PALE).encode(x=plane.x("x"), y=plane.y("y"), x2="x2:Q", y2="y2:Q")
    blank = alt.Chart(frame).mark_text(fontSize=11, stroke="white", strokeWidth=4)
    words = alt.Chart(frame).mark_text(fontSize=11, color=INK)
    return [lines, *(each.encode(x=plane.x("x"), y=plane.y("y"), text="text:N") for each in (blank, words))]


def _places(point: Place, width: float) -> Iterator[Place]:
    """Yield places for a name, its left end and its height: beside its point, below, above, then farther off."""
    x, y = point
    for far in (0, 15, -15, 30, -30, 45, -45, 60, -60):
        for left in ((x - width / 2,) if far else ()) + (x + 9, x - 9 - width):
            yield left, y + far


def _covers(place: Place, width: float, taken: list[tuple[float, float, float, float]]) -> bool:
    (left, down), right = place, place[0] + width
    if not (left >= 2 and right <= _SIZE[0] - 2 and 8 <= down <= _SIZE[1] - 8):
        return True
    return any(left < end and start < right and down - 7 < low and high < down + 7 for start, end, high, low in taken)


def main() -> None:
    """Write the tables and the chart."""
    if "--seeds" in sys.argv:
        spread(int(sys.argv[sys.argv.index("--seeds") + 1]))
        return
    found: dict[str, dict[str, Outcome]] = {}
    tables: dict[str, str] = {}
    for file in files():
        found[file.name] = {}
        for method in methods():
            found[file.name][method.name] = outcome(file.data, method.release(file, method.seed), method)
            print(file.name, method.name, *_cells(found[file.name][method.name]), sep="  ", flush=True)
        tables[file.word] = f"{table(found[file.name])}\n\n{below(file)}"
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    save(picture(found, {method.name: method.family for method in methods()}), PICTURE)


def below(file: File) -> str:
    """Say how many cases the inferences are about, and how good a guess is."""
    values = codes(file.data)
    found = inference(values, values, sizes(file.data))
    return fill(
        f"{file.name}: {file.data.n:,} records. *Inferred* is a mean of {found.cases:,} cases; for a guess from the "
        f"distribution of the eighth variable alone it is {_share(found.guess, 3)}.",
        width=_PAGE_WIDTH,
    )


def spread(seeds: int) -> None:
    """Print mean and standard deviation over several seeds of each method."""
    for file in files():
        for method in methods():
            drawn = [outcome(file.data, method.release(file, 1 + s), method) for s in range(seeds)]
            for measure in ("exposed", "inferred", "gone", "hellinger", "two_way"):
                values = [getattr(each, measure) for each in drawn]
                print(f"{file.name}  {method.name}  {measure}  {np.mean(values):.4f} +- {np.std(values, ddof=1):.4f}")


if __name__ == "__main__":
    main()
