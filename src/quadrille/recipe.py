"""What a release is made by: a method, its parameters and a seed, as ~200 bytes of JSON."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from math import inf, nan
from operator import index
from typing import Any, ClassVar, NamedTuple, SupportsFloat, SupportsIndex, cast

import numpy as np

from quadrille import kernels
from quadrille.data import Data, Rows, require_data
from quadrille.errors import InputError, ParameterError, bad_parameter, infeasible, unknown_name
from quadrille.plan import Plan
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.where import Where

_KEPT_DRAWERS = 8
_KEYS = {"method": "variant"}
"""Parameters that JSON and job files know by another name: there, method is the recipe itself."""

COLUMN_LISTS = ("swap", "same", "different", "within", "boundary", "stratum", "sort", "rules")
COLUMN_NAMES = ("rate", "groups", "targets", "size", "must", "never", "bias")
"""Parameters of any method that list columns, or rules about columns, and those that may name one."""


class Exchange(NamedTuple):
    """A draw that is one exchange of random pairs, for kernels that draw and score in one go.

    So many pairs of the pool exchange `columns`; the words come from the sub-stream of that name.
    """

    columns: tuple[str, ...]
    pool: kernels.Pool
    pair_uniform: bool
    pairs: int
    stream: str


class Drawer:
    """The one-off preparation of a design for one data set; `draw` makes the plan of a seed.

    Drawing works on scratch memory that it leaves as it found it, one draw at a time. `exchange` describes the draw
    where it is simple enough for the fast lane of a search.
    """

    def __init__(self, draw: Callable[[Stream], Plan], *, exchange: Exchange | None = None) -> None:
        self._draw = draw
        self._lock = threading.Lock()
        self.exchange = exchange

    def draw(self, stream: Stream) -> Plan:
        """Draw the plan that belongs to a stream."""
        with self._lock:
            return self._draw(stream)


@dataclass(frozen=True)
class Recipe(ABC):
    """Base of all methods. A subclass is a frozen dataclass with a `seed` field and a `prepare` method.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.RandomSwap(["Edu"], rate=0.02, seed=7)
    >>> isinstance(recipe, qd.Recipe), qd.Recipe.from_json(recipe.to_json()) == recipe
    (True, True)
    """

    version: ClassVar[int] = 1
    methods: ClassVar[dict[str, type[Recipe]]] = {}

    def __init_subclass__(cls) -> None:
        Recipe.methods[cls.__name__] = cls

    @abstractmethod
    def prepare(self, data: Data) -> Drawer:
        """Check the parameters against the data and do all work that does not depend on the seed."""

    @property
    def secret_columns(self) -> tuple[str, ...]:
        """Columns that steer the draw and would give it away: they are left out of the public file."""
        return ()

    def plan(self, data: Data) -> Plan:
        """Return what this recipe does to these data: always the same plan.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> recipe = qd.RandomSwap(["Edu"], rate=0.02, seed=7)
        >>> recipe.plan(data)
        Plan(976 records, columns Edu)
        >>> recipe.plan(data) == recipe.plan(data)
        True
        """
        return self.drawer(data).draw(self.stream())

    def drawer(self, data: Data) -> Drawer:
        """Return the prepared drawer, kept for the next seeds of the same design on the same data."""
        kept, design = require_data(data, type(self).__name__).prepared, self.identity()
        drawer = kept.get(design)
        if not isinstance(drawer, Drawer):
            drawer = self.prepare(data)
            while len(kept) >= _KEPT_DRAWERS:
                kept.pop(next(iter(kept)), None)
            kept[design] = drawer
        return drawer

    def stream(self) -> Stream:
        """Return the random stream that belongs to this recipe, and to no other."""
        return Stream.of(cast("int | str", self.parameters()["seed"]), self.identity())

    def parameters(self) -> dict[str, Any]:
        """Return all parameters by name.

        >>> import quadrille as qd
        >>> given = qd.RandomSwap(["Edu"], rate=0.02, seed=7).parameters()
        >>> given["rate"], given["differ"]
        (0.02, 'all')
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def identity(self) -> str:
        """Return the canonical JSON without the seed: the design."""
        return self._json(without=("seed",))

    def to_json(self) -> str:
        """Return the canonical JSON: sorted keys, defaults left out.

        >>> import quadrille as qd
        >>> print(qd.RandomSwap(["Edu"], rate=0.02, seed=7).to_json())
        {"method":"RandomSwap","rate":0.02,"seed":7,"swap":["Edu"],"version":1}
        """
        return self._json(without=())

    def _json(self, without: tuple[str, ...]) -> str:
        document: dict[str, object] = {"method": type(self).__name__, "version": self.version}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in without and (field.default is MISSING or value != field.default):
                document[written_name(field.name)] = value
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Recipe:
        """Read a recipe back. Its method must have been imported.

        >>> import quadrille as qd
        >>> text = '{"method":"RandomSwap","rate":0.02,"seed":7,"swap":["Edu"],"version":1}'
        >>> qd.RandomSwap.from_json(text).rate
        0.02
        """
        try:
            parsed: object = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"The recipe is not valid JSON: {error.msg} in line {error.lineno}.") from None
        except (ValueError, RecursionError):  # what JSON allows and Python does not
            raise InputError("The recipe is not valid JSON: it nests too deeply or a number is too long.") from None
        if not isinstance(parsed, dict) or "method" not in parsed:
            raise InputError('A recipe must be a JSON object with a "method".')
        document = cast("dict[str, Any]", parsed)
        name = str(document.pop("method"))
        if name not in Recipe.methods:
            raise unknown_name("method", name, Recipe.methods, where="the recipe")
        method = Recipe.methods[name]
        version = document.pop("version", None)
        if version != method.version:
            raise InputError(
                f"The recipe is for version {version!r} of {name}; this Quadrille draws version {method.version}. "
                "Another version would draw another plan: use the release of Quadrille that wrote the recipe."
            )
        known = {written_name(field.name): field.name for field in fields(method)}
        for key in document:
            if key not in known:
                raise unknown_name("parameter", key, known, where=f"the recipe ({name})")
        try:
            return method(**{known[key]: value for key, value in document.items()})
        except TypeError as error:
            raise ParameterError(f"The recipe does not fit {name}: {error}.") from None


def written_name(parameter: str) -> str:
    """Return the name of a parameter in JSON and job files."""
    return _KEYS.get(parameter, parameter)


def columns_in(parameter: str, value: object) -> tuple[str, ...]:
    """Return the columns that a value of a parameter names."""
    if parameter == "rules":
        texts = (value,) if isinstance(value, str) else cast("Sequence[object]", value)
        return tuple(name for text in texts if isinstance(text, str) for name in Where.parse(text).variables)
    if parameter in COLUMN_LISTS:
        listed = (value,) if isinstance(value, str) else cast("Sequence[object]", value)
        return tuple(name for name in listed if isinstance(name, str))
    if parameter in COLUMN_NAMES:
        return (value,) if isinstance(value, str) else ()
    if parameter in ("tables", "together"):
        sets = cast("Sequence[Sequence[str]]", value)
        return tuple(name.strip() for each in sets for name in (each.split("*") if isinstance(each, str) else each))
    if parameter == "linked" and isinstance(value, Mapping):
        links = cast("Mapping[str, Sequence[str]]", value)
        return tuple(name for parent, followers in links.items() for name in (parent, *columns_in("swap", followers)))
    return ()


def names(owner: str, parameter: str, value: object, *, least: int = 0) -> tuple[str, ...]:
    """Check a parameter that lists columns: a list of distinct names, or one name."""
    listed = (value,) if isinstance(value, str) else value
    must = "a list of column names" + (f", at least {least}" if least else "")
    if not isinstance(listed, list | tuple):
        raise bad_parameter(owner, parameter, must, value)
    given = tuple(cast("list[object]", listed))
    if len(given) < least or not all(isinstance(name, str) for name in given):
        raise bad_parameter(owner, parameter, must, value)
    if len(set(given)) != len(given):
        raise bad_parameter(owner, parameter, "a list without repetitions", value)
    return cast("tuple[str, ...]", given)


def one_of(owner: str, parameter: str, value: object, options: tuple[str, ...]) -> None:
    """Check a parameter that takes one of a few words."""
    if value not in options:
        raise bad_parameter(owner, parameter, "one of " + ", ".join(map(repr, options)), value)


def whole(owner: str, parameter: str, value: object, *, least: int) -> int:
    """Check a parameter that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < least:
        raise bad_parameter(owner, parameter, f"a whole number of {least} or more", value)
    return index(value)


def share(owner: str, parameter: str, value: object) -> float:
    """Check a parameter that is a share above 0 and up to 1."""
    number = as_float(value)
    if not 0 < number <= 1:
        raise bad_parameter(owner, parameter, "a number in (0, 1]", value)
    return number


def as_float(value: object) -> float:
    """Return a number as a float: infinite when it is beyond all floats, NaN when it is none."""
    try:
        return float(value) if isinstance(value, SupportsFloat) and not isinstance(value, bool) else nan
    except OverflowError:
        return inf


def random_order(n: int, stream: Stream) -> Rows:
    """Return the numbers 0..n-1 in uniformly random order."""

    def attempt(words: Words) -> Rows | None:
        order, dice = np.arange(n, dtype=np.int64), kernels.dice(words)
        kernels.shuffle(order, dice)
        return None if dice.cursor[1] else order

    return draw_until_enough(attempt, stream, guess=n + 64)


def refuse_fixed(data: Data, swapped: Sequence[str]) -> None:
    """Refuse to swap what must stay with its record: identifiers and the weight."""
    for name in swapped:
        if data.codebook[name].role == "id":
            raise InputError(
                f"Column {name!r} has the role id: it is never released, so it cannot be swapped. "
                "If it identifies nobody, give it another role in the codebook, such as key or outcome."
            )
        if name == data.weight:
            raise InputError(f"Column {name!r} is the weight: it stays with its record and cannot be swapped.")


def carried(data: Data, swap: Sequence[str], stay: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the levels of geography that travel with the swapped ones, the coarsest first.

    An area lies in its county, so a record that gets another area gets the county of it too. Carried columns decide
    nothing about who is paired with whom. Levels in `stay` need not travel: partners agree on them.

    >>> import quadrille as qd
    >>> from quadrille.recipe import carried
    >>> data = qd.datasets.state(records=3_200)
    >>> carried(data, ["tract"]), carried(data, ["tract"], stay=["county"]), carried(data, ["tenure"])
    (('county',), (), ())
    """
    levels = data.codebook.geography
    if not set(levels) & set(swap):
        return ()
    return tuple(name for name in levels if name not in swap and name not in stay)


def carried_fact(columns: Sequence[str]) -> dict[str, object]:
    """Return what a plan remembers of the columns that it carries along: nothing if there are none."""
    return {"carried_along": ", ".join(columns)} if columns else {}


def refuse_one_area(data: Data, moved: Sequence[str]) -> None:
    """Refuse to swap nothing but geography when all records lie in one area: nobody has a partner outside."""
    columns = [data[name] for name in moved if name != data.weight]
    if all(c.variable.role == "geography" and bool((c.values == c.values[0]).all()) for c in columns):
        raise infeasible(one_area(columns[0].variable.name), 1, 0, exact=True)


def one_area(name: str) -> str:
    """Say that a swap between areas needs two of them."""
    return (
        f"All records lie in one area of {name!r}, so none has a partner in another area and nothing can be swapped. "
        "Swapping between areas needs two areas or more."
    )


def settle(recipe: Recipe, values: Mapping[str, object]) -> None:
    """Store checked values in a frozen recipe that is being made."""
    for name, value in values.items():
        object.__setattr__(recipe, name, value)
