"""What an object says of itself when somebody looks at it: a line in a terminal, a page in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from quadrille.present import Block, Items, Text, Title, facts, numbers, table
from quadrille.present.account import account, plan_facts, recipe_table, released
from quadrille.present.numbers import count, counted
from quadrille.present.profile import data_facts, dependency_blocks, profile, variable_table
from quadrille.present.render import as_html
from quadrille.present.scores import (
    Values,
    attack,
    definitions,
    published_tables,
    scores,
    section_blocks,
    study,
    verdict,
)
from quadrille.present.words import forecast_facts, guarantee

if TYPE_CHECKING:
    from quadrille.codebook import Codebook, Variable
    from quadrille.data import Data
    from quadrille.inspect import Profile
    from quadrille.measure.base import Measure
    from quadrille.plan import Plan
    from quadrille.recipe import Recipe
    from quadrille.score.contradictions import Contradiction
    from quadrille.score.dependencies import Dependency
    from quadrille.study.choose import Choice
    from quadrille.study.forecast import Forecast
    from quadrille.study.grid import Grid

MOST_ROWS = 20
"""A page shows this many rows of a table; the object has them all."""
_LONGEST, _LONGEST_TEXT = 240, 60
_UNSEEN = frozenset({"seed", "seeds", "key", "constant"})
"""Fields that no page and no line shows: secrets, and the constant of a sum, which may be a value of the data."""
_STYLE = """<style>
.quadrille { max-width: 62rem; line-height: 1.45; }
.quadrille h3 { font-size: 1.15em; margin: .8em 0 .3em; }
.quadrille p { margin: .4em 0; }
.quadrille .scroll { overflow-x: auto; }
.quadrille table { border-collapse: collapse; margin: .4em 0; font-size: .95em; }
.quadrille caption { text-align: left; white-space: nowrap; opacity: .75; padding: .2em 0; }
.quadrille caption:empty { display: none; }
.quadrille table th, .quadrille table td { text-align: left; vertical-align: top; padding: .15em 1.2em .15em 0;
  border-bottom: 1px solid rgba(128, 128, 128, .3); background: none; white-space: normal; }
.quadrille tbody th { font-weight: normal; }
.quadrille table .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.quadrille dl.facts { margin: .4em 0; }
.quadrille dl.facts div { display: flex; gap: 1em; }
.quadrille dl.facts dt { flex: 0 0 10em; font-weight: normal; opacity: .75; }
.quadrille dl.facts dd { margin: 0; }
.quadrille .disagree { border-left: 3px solid #d55e00; padding-left: .8em; }
</style>"""


def page(seen: object) -> str:
    """Return what a notebook shows of an object: its blocks as HTML, in the notebook's own colours.

    >>> import quadrille as qd
    >>> from quadrille.present.notebook import page
    >>> "<dt>records</dt><dd>48,842</dd>" in page(qd.datasets.cps8d())
    True
    """
    return f'<div class="quadrille">{_STYLE}\n{as_html(blocks(seen))}\n</div>'


def blocks(seen: object) -> list[Block]:
    """Return what there is to say of an object; where nothing has been worded for it, its fields and its table.

    >>> import quadrille as qd
    >>> from quadrille.present.notebook import blocks
    >>> blocks(qd.RandomSwap(["Edu"], rate=0.02))[0]
    Title(text='RandomSwap')
    """
    for kind in type(seen).__mro__:
        worded = PAGES.get(f"{kind.__module__}.{kind.__qualname__}")
        if worded is not None:
            return list(worded(seen))
    return _in_general(seen)


def line(seen: object) -> str:
    """Return an object in one line: its single values, and of its lists only how long they are.

    >>> import quadrille as qd
    >>> from quadrille.present.notebook import line
    >>> line(qd.RandomSwap(["Edu"], rate=0.02, seed=7))
    "RandomSwap(swap=('Edu',), rate=0.02)"
    >>> line(qd.datasets.cps8d().codebook)
    'Codebook(8 variables)'
    """
    text = ", ".join(_recipe_parts(cast("Recipe", seen)) if hasattr(seen, "design_json") else _parts(seen))
    return f"{type(seen).__name__}({text if len(text) <= _LONGEST else text[: _LONGEST - 4] + ' ...'})"


def _fields(seen: object) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object that may be seen, but for those that say nothing."""
    for field in fields(seen) if is_dataclass(seen) else ():
        value: object = getattr(seen, field.name)
        usual = isinstance(value, bool) and value is (field.default is True)
        silent = value is None or usual or _length(value) == 0
        hidden = field.name in _UNSEEN or field.name.startswith("_") or not field.repr
        if not silent and not hidden and (isinstance(value, type) or not callable(value)):
            yield field.name, value


def _parts(seen: object) -> Iterator[str]:
    """Yield the fields of an object in short. Lists can hold values of records, so they are only counted."""
    if isinstance(seen, Mapping):  # scores, by address
        yield from (f"{name}={numbers.score(value)}" for name, value in cast("Values", seen).items())
        return
    for name, value in _fields(seen):
        if isinstance(value, str | Path):
            yield f"{name}={_cut(str(value))!r}"
        elif isinstance(value, int | float):
            yield f"{name}={value if isinstance(value, int) else numbers.score(value)}"
        elif isinstance(value, type):
            yield value.__name__
        elif (length := _length(value)) is not None:
            yield counted(length, _one(name), name) if name.endswith("s") else f"{name} ({count(length)})"
        else:
            yield f"{name}={type(value).__name__}(...)"
    if isinstance(seen, tuple):
        yield count(len(cast("tuple[object, ...]", seen)))


def _one(names: str) -> str:
    return f"{names[:-3]}y" if names.endswith("ies") else names[:-1]


def _recipe_parts(recipe: Recipe) -> Iterator[str]:
    """Yield the parameters of a recipe that are not at their default, as one would write them; never the seed."""
    for name, param in recipe.params().items():
        value = getattr(recipe, name)
        if name not in _UNSEEN and value != param.default:
            yield f"{name}={value!r}"


def _length(value: object) -> int | None:
    """Return how many entries a list, a mapping or an array has."""
    if hasattr(value, "dtype"):
        return int(cast("Any", value).size)
    return len(cast("Collection[object]", value)) if isinstance(value, Collection) else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."


def _in_general(seen: object) -> list[Block]:
    """Return the fields of an object, and its table where it has one."""
    known: list[tuple[str, str]] = []
    for name, value in _fields(seen):
        length = _length(value) if not isinstance(value, str) else None
        if length is not None:
            known.append((_words(name), count(length)))
        elif isinstance(value, str | int | float):
            known.append((_words(name), numbers.value(value)))
    made: list[Block] = [Title(type(seen).__name__), *([facts(known)] if known else [])]
    return [*made, *_frame(cast("Any", seen).frame())] if hasattr(seen, "frame") else made


def _words(name: str) -> str:
    return name.replace("_", " ")


def _frame(frame: Any) -> list[Block]:
    """Return the first rows of a table of results, without the columns that are empty."""
    rows: list[dict[str, object]] = frame.head(MOST_ROWS).to_dicts()
    head = [name for name in frame.columns if any(row[name] not in (None, "") for row in rows)]
    right = [place for place, name in enumerate(head) if frame[name].dtype.is_numeric()]
    lines = [[numbers.value("" if row[name] is None else row[name]) for name in head] for row in rows]
    more = len(frame) - len(rows)
    listed = table(map(_words, head), lines, numbers=right)
    return [listed, *([Text(f"And {counted(more, 'more row')}; its frame has all.")] if more else [])]


def _data(data: Data) -> list[Block]:
    return [Title("Data"), data_facts(data), variable_table(list(data.codebook), data.keys)]


def _codebook(codebook: Codebook) -> list[Block]:
    return [Title("Codebook"), variable_table(list(codebook), codebook.keys)]


def _variable(variable: Variable) -> list[Block]:
    return [Title(variable.name), variable_table([variable], ())]


def _plan(plan: Plan) -> list[Block]:
    return [Title("Plan"), facts(plan_facts(plan)), Text("It can undo the release: keep it confidential.")]


def _recipe(recipe: Recipe) -> list[Block]:
    return [Title(recipe.method_name), recipe_table(recipe, caption="The parameters that are not at their default")]


def _measure(measure: Measure) -> list[Block]:
    return [Title(measure.name), definitions([measure])]


def _profile(found: Profile) -> list[Block]:
    return profile(found, "Profile")


def _dependencies(found: Sequence[Dependency]) -> list[Block]:
    none: list[Block] = [Title("Dependencies"), Text("No column says what another one holds.")]
    return dependency_blocks(found, "the object") or none


def _contradictions(found: Sequence[Contradiction]) -> list[Block]:
    told = (
        Items(tuple(map(str, found)))
        if found
        else Text("The recipe breaks nothing that the columns say about one another.")
    )
    return [Title("Contradictions"), told]


def _choice(choice: Choice) -> list[Block]:
    return [
        Title(f"Candidate {choice.candidate}"),
        Items(tuple(choice.explain().splitlines())),
        *_recipe(choice.recipe),
    ]


def _forecast(found: Forecast) -> list[Block]:
    why = [(each.design, " ".join(filter(None, (each.reason, each.hint)))) for each in found.refused[:MOST_ROWS]]
    designs = found.predicted.frontier[:MOST_ROWS]
    measures = list(designs[0].values) if designs else []
    rows = [(each.design, *(numbers.score(each.values[address]) for address in measures)) for each in designs]
    caption = "The designs that no other is expected to dominate, before any draw"
    expected = [table(("design", *measures), rows, caption=caption, numbers=range(1, len(measures) + 1))]
    refused = [table(("design", "why it cannot be done"), why)]
    return [
        Title("Forecast"),
        facts(forecast_facts(found)),
        *(refused if why else []),
        *(expected if designs else []),
        *(Text(f"Warning: {each.warning}") for each in found.warnings),
    ]


def _grid(grid: Grid) -> list[Block]:
    known = (("candidates", count(len(grid))), ("seeds", counted(len(grid.seeds), "seed") + " for each design"))
    rows = [
        (name, count(len(values)), "; ".join(map(numbers.parameter, values[:MOST_ROWS]))) for name, values in grid.axes
    ]
    listed = table(("parameter", "values", "which"), rows, numbers=(1,))
    return [Title(f"Grid of {grid.method.method_name}"), facts(known), listed]


PAGES: Mapping[str, Callable[[Any], Iterable[Block]]] = {
    "quadrille.attack.attack.Attack": attack,
    "quadrille.attack.input.Section": section_blocks,
    "quadrille.codebook.Codebook": _codebook,
    "quadrille.codebook.Variable": _variable,
    "quadrille.data.Data": _data,
    "quadrille.delta.PlanReport": account,
    "quadrille.inspect.Profile": _profile,
    "quadrille.measure.base.Measure": _measure,
    "quadrille.plan.Plan": _plan,
    "quadrille.recipe.Recipe": _recipe,
    "quadrille.release.judge.Verdict": verdict,
    "quadrille.release.release.Release": released,
    "quadrille.score.contradictions.Contradictions": _contradictions,
    "quadrille.score.dependencies.Dependencies": _dependencies,
    "quadrille.score.evaluator.Scores": scores,
    "quadrille.score.published.TableChanges": published_tables,
    "quadrille.study.choose.Choice": _choice,
    "quadrille.swap.private.Guarantee": guarantee,
    "quadrille.study.forecast.Forecast": _forecast,
    "quadrille.study.grid.Grid": _grid,
    "quadrille.study.study.Study": study,
}
"""What is worded for a class and all that derive from it. By name, as most of them live in rooms above this one."""
