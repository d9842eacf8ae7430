"""Every object that public names lead to is short in a terminal and a page in a notebook; neither tells a secret."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import pytest
from confidential_case import BOOK, POLICY, RATE, N, table

import quadrille as qd
from quadrille.codebook import Stored
from quadrille.measure.base import Address
from quadrille.params import SEED, Columns, Param
from quadrille.present.notebook import PAGES
from quadrille.recipe import Prepared, Recipe
from quadrille.release.policy import Limit, Published
from quadrille.study.choose import Option
from quadrille.study.designed import gains_of
from quadrille.study.forecast import Traced
from quadrille.study.study import Reason
from quadrille.text import Shown

SEEDS = (70431917, "c0ffee" * 10 + "c0de")
WITHOUT_PAGE = {
    *("Stored", "Address", "Where", "Condition", "expressions.Model", "expressions.Term", "Scale"),  # parts of texts
    *("Stream", "Prepared", "Movement"),  # how a recipe draws
    *("Required", "Limit", "Aligned", "Crossed"),  # parts of a policy, and of what earlier releases tell
    *("estimates.Rules", "Cloud", "Reason", "Step", "effects.Term"),  # parts of results
}
"""Classes that are short in a terminal, too, and are parts of what has a page."""


@cache
def imported(module: str) -> dict[str, tuple[str, str]]:
    """What a module imports from the package, under TYPE_CHECKING too."""
    tree = ast.parse(inspect.getsource(import_module(module)))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    return {a.asname or a.name: (str(n.module), a.name) for n in nodes for a in n.names if "quadrille" in str(n.module)}


def named_in(module: str, annotation: object) -> Iterator[type]:
    """The classes of the package that an annotation names."""
    for word in re.findall(r"[A-Za-z_]\w*", str(annotation)):
        value = vars(sys.modules[module]).get(word)
        if value is None and word in imported(module):
            home, name = imported(module)[word]
            value = getattr(import_module(home), name, None)
        if inspect.isclass(value) and value.__module__.startswith("quadrille."):
            yield value


def led_to(kind: type) -> Iterator[type]:
    """The classes of the public fields of a class, and of what its public methods and properties return."""
    for name, annotation in inspect.get_annotations(kind).items():
        if not name.startswith("_"):
            yield from named_in(kind.__module__, annotation)
    for name, value in vars(kind).items():
        method = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        method = value.func if isinstance(value, cached_property) else method
        if not name.startswith("_") and inspect.isfunction(method):
            yield from named_in(kind.__module__, method.__annotations__.get("return", ""))


@cache
def public_classes() -> frozenset[type]:
    """Every class that a user comes to: exported, returned by a public function, or part of such an object."""
    found: set[type] = set()
    todo: list[type] = []
    for module in (qd, *(getattr(qd, name) for name in qd._MODULES)):
        for value in (getattr(module, name) for name in module.__all__):
            if inspect.isclass(value):
                todo.append(value)
            elif inspect.isfunction(value):
                todo += named_in(value.__module__, value.__annotations__.get("return", ""))
    while todo:
        kind = todo.pop()
        if kind not in found and not issubclass(kind, Param | Exception):  # declarations and errors are no objects
            found.add(kind)
            todo += led_to(kind)
    return frozenset(found)


def parts(value: object, depth: int = 6) -> Iterator[object]:
    """An object and all that it is made of."""
    if type(value).__module__.startswith("quadrille."):
        yield value
    if not depth:
        return
    if is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from parts(getattr(value, each.name), depth - 1)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from parts(each, depth - 1)
    if isinstance(value, tuple | list):
        for each in value:
            yield from parts(each, depth - 1)


@dataclass(frozen=True)
class OwnSwap(Recipe):
    """A recipe written elsewhere, whose seed field says nothing of repr."""

    swap: Annotated[tuple[str, ...], Columns("the variables", least=1, moves=True)]
    seed: Annotated[object, SEED] = field(default=None)

    def prepare(self, data: qd.Data) -> Prepared:
        raise NotImplementedError


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """Objects of every public class, nearly all about a file with something to hide in every column."""
    home = tmp_path_factory.mktemp("home")
    data = qd.from_frame(table(), codebook=BOOK)
    return [*about_data(data), *about_candidates(data, home), *about_release(data, home), *about_theory(data)]


def about_data(data: qd.Data) -> list[object]:
    recipe = qd.RandomSwap(["Edu", "Region"], rate=RATE, seed=SEEDS[0])
    plan = recipe.plan(data)
    state = qd.datasets.state(records=3_200)
    permutation = qd.PermutationSwap(["Age"], rate=RATE, seed=SEEDS[1])
    targeted = qd.ControlledSwap(["Edu"], targets=0.08, seed=SEEDS[0])
    private = qd.PrivateSwap(["Age"], chance=RATE, seed=SEEDS[1])
    ranked, cyclic = qd.RankSwap(["Income"], window=RATE, seed=SEEDS[0]), qd.CycleSwap(flag="Forced", seed=SEEDS[1])
    recipes = (
        *(recipe, permutation, targeted, private, qd.DesignedSwap(seed=SEEDS[1]), OwnSwap(("Edu",), seed=SEEDS[0])),
        *(ranked, cyclic, qd.TargetedSwap(["Edu"], similar=[["Age"]], rate=RATE, seed=SEEDS[0])),
    )
    measures = ["hellinger", "hellinger(Edu, where=Region=north)", "ased_reg(Income ~ C(Age))"]
    units = qd.Plan.of_unit_pairs(data, ["Edu"], "Phone", np.array([[0, 5]]))
    broken = pl.DataFrame({"a": [f"a{i % 9}" for i in range(900)], "b": [f"b{i % 9 // 3}" for i in range(900)]})
    return [
        *(data, data["Edu"], data.ticks, data.units("Phone"), data.codebook, Stored("SPSS"), *recipes),
        *(param for each in recipes for param in each.params().values()),
        *(recipe.stream(), recipe.prepare(data), recipe.movement(data), permutation.classes(data)),
        *(private.strata(data), private.strata(data).grouping.roster(), private.guarantee(data)),
        *(plan, *plan.moves, plan.report(data), qd.before_after(data, plan), qd.inspect(state), qd.inspect(data)),
        qd.inspect(qd.datasets.island(), risk=["age"]).risk,
        *(qd.dependencies(state), qd.contradictions(qd.from_frame(broken), qd.RandomSwap(["b"], rate=0.1))),
        *(units, units.report(data)),
        *(qd.score(data, plan, measures), qd.score(data, plan, measures[:1], by=["Region"])),
        *(changes := qd.table_changes(data, plan, ["Edu*Region"]), changes.limits, *changes.tables),
        Published(percent=Limit(most=10)),
        *map(Address.parse, measures),
        *(scale for model in Address.parse(measures[2]).models for scale in model.scales(data)),
    ]


def about_candidates(data: qd.Data, home: Path) -> list[object]:
    grid = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Age"]], rate=[0.05, RATE, 0.5], seed=list(SEEDS))
    curve = qd.DesignedSwap.curve(keep="2-way", seed=SEEDS[0])
    infeasible = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[N], same=[["Phone"]], seed=SEEDS[0])
    study = qd.search(data, grid, ["exposed", "hellinger"], out=home / "study", progress=False)
    choice = study.pick("knee")
    study.keep_pick(choice)
    recipes = [qd.RandomSwap(["Edu"], rate=rate) for rate in (0.05, RATE)]
    design = {
        "design": {"replicates": 2, "seed": SEEDS[0], "mechanism": ["cells"]},
        "areas": {"equal": ["4 x 50"], "skewed": ["3 x 40", 80]},
        "levels": {"two": [0.8, 0.2], "three": [0.5, 0.3, 0.2]},
        "rates": {"low": 0.05, "high": 0.1},
    }
    simulated = qd.simulate(design=design, out=home / "simulated")
    setting = simulated.design.trials[0].setting()
    return [
        *(grid, curve, study, choice, study.picked, *study.recommended().values(), *study.clouds()),
        *(*study.reasons(), Reason("failed", "why", "what helps", 1), Option(1, 0.5, 0.25)),
        gains_of(("exposed", "hellinger"), np.eye(2), np.array([True, False])),
        *(qd.forecast(data, grid, ["exposed", "hellinger"]), qd.forecast(data, infeasible, ["exposed"])),
        *(qd.score_recipes(data, recipes, ["hellinger"], draws=2), Traced("a trace", 1, "Edu")),
        *(simulated, setting, setting.swapping()),
    ]


def about_release(data: qd.Data, home: Path) -> list[object]:
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    policy = qd.Policy.read(home / "policy.toml")
    recipe, other = (qd.RandomSwap(["Edu", "Region"], rate=rate, seed=SEEDS[1]) for rate in (RATE, 0.2))
    with pytest.warns(UserWarning):
        first = qd.release(data, recipe, home / "first", measures=["exposed"])
        second = qd.release(data, other, home / "second", measures=["exposed"], policy=policy, after=home / "first")
    return [policy, first, second, qd.attack(data, recipe), qd.check_policy(data, recipe, policy)]


def about_theory(data: qd.Data) -> list[object]:
    permutation = qd.PermutationSwap(["Age"], rate=RATE)
    corrected = qd.theory.correct([[30, 20], [20, 30]], f=0.2)
    return [
        *(corrected, corrected.given.margin, qd.theory.swap_error([1, 1, 0, 0], [1, 0, 1, 0], 2)),
        qd.theory.least_loss(qd.from_frame(table().drop("W")), [0.0], table="Age*Edu", margins="total"),
        qd.theory.compare_errors(data, permutation, "Age*Edu"),
        qd.theory.expected_chi_square(data, permutation, "Age*Edu"),
        qd.theory.rate_for(data, "Age*Edu", swap=["Age"], budget=100),
        qd.theory.predict(data, qd.RandomSwap(["Edu"], rate=RATE), ["exposed", "hellinger"]),
    ]


def seen(world: list[object]) -> dict[type, list[object]]:
    """The objects of the world by class; where there are many of one class, the first of them."""
    found: dict[type, list[object]] = {}
    for part in (part for root in world for part in parts(root)):
        for kind in type(part).__mro__:
            if len(found.setdefault(kind, [])) < 4 and all(part is not other for other in found[kind]):
                found[kind].append(part)
    return found


def name_of(kind: type) -> str:
    return kind.__name__ if kind.__name__ in WITHOUT_PAGE else f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"


def has_page(kind: type) -> bool:
    return name_of(kind) not in WITHOUT_PAGE


def test_there_is_an_object_of_every_public_class(world: list[object]) -> None:
    """So that a new class cannot escape the tests below: add an object of it to the world."""
    missing = {name_of(kind) for kind in public_classes()} - {name_of(kind) for kind in seen(world)}
    assert not missing


def test_every_public_class_has_a_page_unless_it_is_part_of_another() -> None:
    without = {name_of(kind) for kind in public_classes() if not issubclass(kind, Shown)}
    assert without == WITHOUT_PAGE & {name_of(kind) for kind in public_classes()}
    assert {name_of(kind) for kind in public_classes()} >= WITHOUT_PAGE


def secrets(data: pl.DataFrame) -> list[str]:
    """What neither a line nor a page may hold: seeds, and values that belong to one record."""
    values = [*data["Serial"], *map(str, data["Phone"]), *map(str, data["Income"]), *(f"{x:,}" for x in data["Income"])]
    return [*map(str, SEEDS), f"{SEEDS[0]:,}", *values]


def test_what_is_seen_is_short_and_tells_no_secret(world: list[object]) -> None:
    hidden = secrets(table())
    plans = [plan for plan in seen(world)[qd.Plan] if plan.pairs is not None]
    rows = [pair for plan in plans for pair in plan.pairs.tolist()]
    pairs = {f"{a}{between}{b}" for a, b in rows for between in (", ", " ")}
    assert len(pairs) > 50
    for kind, objects in seen(world).items():
        for each in objects if kind in public_classes() else ():
            line = repr(each)
            assert len(line) < 500, (kind, line)
            assert line.isprintable(), (kind, line)
            page = each._repr_html_() if issubclass(kind, Shown) else ""
            for secret in (*hidden, *pairs, "array("):
                assert secret not in line, (kind, secret)
                assert secret not in page, (kind, secret)


def test_parameters_are_short() -> None:
    declared = [param for method in Recipe.methods.values() for param in method.params().values()]
    assert len(declared) > 30
    assert max(len(repr(param)) for param in declared) < 500


class Page(HTMLParser):
    """The elements of a page, which must be closed in order, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] != "style":
            self.text.append(data.strip())


def test_pages_are_whole_and_say_something(world: list[object]) -> None:
    for kind, objects in seen(world).items():
        for each in objects if kind in public_classes() and has_page(kind) else ():
            read = Page(each._repr_html_())
            assert not read.open, kind
            assert len(" ".join(read.text)) > 3, kind
            assert "http" not in each._repr_html_()


def test_every_page_belongs_to_a_class() -> None:
    for name in PAGES:
        module, _, kind = name.rpartition(".")
        assert issubclass(getattr(import_module(module), kind), Shown), name


def test_a_page_says_what_the_terminal_says() -> None:
    data = qd.from_frame(table(), codebook=BOOK)
    plan = qd.RandomSwap(["Edu"], rate=RATE, seed=1).plan(data)
    page = plan.report(data)._repr_html_()
    assert "What is swapped" in page
    assert f"{len(plan.pairs)} asked, {len(plan.pairs)} drawn" in page
    names = Page(data._repr_html_()).text
    assert {"Serial", "Income", "weight"} <= set(names)


def test_a_recipe_from_elsewhere_shows_no_seed() -> None:
    assert repr(OwnSwap(("Edu",), seed=SEEDS[0])) == "OwnSwap(swap=('Edu',))"


def test_names_from_outside_are_harmless_in_a_page() -> None:
    data = qd.from_frame(pl.DataFrame({"<script>alert(1)</script>": ["a", "b"], "b": [1, 2]}))
    assert "<script" not in data._repr_html_() + data.codebook._repr_html_()


def test_words_for_looking_are_loaded_when_somebody_looks() -> None:
    script = (
        "import sys, quadrille as qd; data = qd.datasets.cps8d(); before = 'quadrille.present' in sys.modules; "
        "repr(data.codebook); print(before, 'quadrille.present.notebook' in sys.modules, 'altair' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False True False\n"
