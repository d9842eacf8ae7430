"""What a release is made by: a method, its parameters and a seed, as ~200 bytes of JSON."""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from math import floor
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, Rows, require_columns, require_data
from quadrille.errors import InputError, OverlapError, ParameterError, infeasible, unknown_name
from quadrille.params import Param, RuleList, declared, object_schema
from quadrille.plan import Plan
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.text import Shown

_KEPT = 16
"""Prepared designs that are kept for their next seeds."""
ENTRY_POINTS = "quadrille.recipes"
"""The group of entry points by which an installed package makes its methods known."""
METHODS = "QUADRILLE_METHODS"
"""The variable that lists methods outside of the package, as module:Class, which recipes and studies may name."""


class Exchange(NamedTuple):
    """A draw that is one exchange of random pairs, for kernels that draw and score in one go.

    So many pairs of the pool exchange `columns`; the words come from the sub-stream of that name. `order` gives the row
    at each place of the pool.
    """

    columns: tuple[str, ...]
    pool: kernels.Pool
    order: Callable[[], NDArray[np.int32]]
    pair_uniform: bool
    pairs: int
    stream: str


class Movement(NamedTuple):
    """What a recipe moves: columns that change places as one, group by group.

    Partners agree on `same`. `closed` are sets of columns that show no combination that the original lacks, however
    they move. Whole units move where `unit` names the column of their numbers.
    """

    together: tuple[tuple[str, ...], ...]
    same: tuple[str, ...] = ()
    closed: tuple[tuple[str, ...], ...] = ()
    unit: str | None = None

    @property
    def columns(self) -> frozenset[str]:
        """All columns that move."""
        return frozenset(name for group in self.together for name in group)


class Prepared:
    """The one-off preparation of a design for one data set; `draw` makes the plan of a seed.

    Drawing works on scratch memory that it leaves as it found it, one draw at a time. `exchange` describes the draw
    where it is simple enough for the fused scorer of a search.
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
class Recipe(Shown, ABC):
    """Base of all methods. A subclass is a frozen dataclass with a `seed` field and a `prepare` method.

    Its fields declare what they are, `rate: Annotated[float, Share("share of the records")]`; see `quadrille.params`.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.RandomSwap(["Edu"], rate=0.02, seed=7)
    >>> isinstance(recipe, qd.Recipe), qd.Recipe.from_json(recipe.to_json()) == recipe
    (True, True)
    """

    version: ClassVar[int] = 1
    stream_version: ClassVar[int] = 0
    """The version whose streams it goes on with, so that plans stay as they were but for what the new version changes;
    0 is its own. A study goes on with that version where it began with it."""
    always_moves: ClassVar[str] = ""
    """What a method moves of itself, whatever columns are named, in words."""
    partners_alike: ClassVar[bool] = False
    """Whether partners are alike in what they exchange, so that what it contradicts takes a trial draw to see."""
    method_name: ClassVar[str] = ""
    """The name under which recipes are written."""
    methods: ClassVar[dict[str, type[Recipe]]] = {}
    earlier: ClassVar[dict[tuple[str, int], type[Recipe]]] = {}
    """Earlier versions of methods, by name and version: old recipes draw their old plans."""
    refused: ClassVar[Mapping[str, str]] = {}
    """Parameters of other methods that this one cannot have, each with one sentence why."""

    def __new__(cls, *_: object, **given: object) -> Self:
        """Refuse a parameter that the method cannot have with the reason, not as an unexpected word."""
        cls.refuse(given)
        return super().__new__(cls)

    def __init_subclass__(cls, earlier_version_of: str = "") -> None:
        cls.method_name = earlier_version_of or cls.__name__
        if "__repr__" not in cls.__dict__:  # the one that a dataclass makes would show every field, a seed among them
            cls.__repr__ = Shown.__repr__
        if earlier_version_of:
            Recipe.earlier[cls.method_name, cls.version] = cls
        else:
            Recipe.methods[cls.method_name] = cls

    def __post_init__(self) -> None:
        owner = self.method_name
        for name, param in self.params().items():
            value = getattr(self, name)
            if value is not param.default or not param.optional:
                checked = param.check(owner, name, value)
                if checked is not value:
                    object.__setattr__(self, name, checked)
        self.check()

    @classmethod
    def params(cls) -> Mapping[str, Param]:
        """Return what its parameters are, by name.

        >>> import quadrille as qd
        >>> qd.RandomSwap.params()["differ"].kind, qd.RandomSwap.params()["rate"].unit
        ('word', 'share of the records')
        """
        found: Mapping[str, Param] | None = cls.__dict__.get("_params")
        if found is None:
            found = declared(cls)
            cls._params = found  # pyright: ignore[reportAttributeAccessIssue]  # of the class itself, not of its base
        return found

    @classmethod
    def refuse(cls, names: Iterable[str]) -> None:
        """Refuse the first of these names that the method cannot have as a parameter, and say why.

        >>> import quadrille as qd
        >>> qd.PrivateSwap.refuse(["swap", "rules"])
        Traceback (most recent call last):
        quadrille.errors.ParameterError: PrivateSwap takes no 'rules': ...
        """
        for name in names:
            if name in cls.refused:
                raise ParameterError(f"{cls.method_name} takes no {name!r}: {cls.refused[name]}")

    @classmethod
    def versions(cls) -> dict[int, type[Recipe]]:
        """Return the versions of the method whose recipes can still be drawn, by number.

        >>> import quadrille as qd
        >>> list(qd.RandomSwap.versions()), list(qd.DesignedSwap.versions())
        ([1, 2], [1, 2, 3])
        """
        found = {number: made for (name, number), made in Recipe.earlier.items() if name == cls.method_name}
        return dict(sorted((found | {cls.version: cls}).items()))

    @classmethod
    def word(cls) -> str:
        """Return the short name of the method, as the command line has it.

        >>> import quadrille as qd
        >>> qd.RandomSwap.word()
        'random'
        """
        return cls.method_name.removesuffix("Swap").lower() or cls.method_name.lower()

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of its recipes, made from the declarations of its parameters.

        >>> import quadrille as qd
        >>> qd.RandomSwap.schema()["properties"]["differ"]["enum"]
        ['all', 'any', 'none']
        """
        made = object_schema(cls.method_name, cls.params().values(), {"method": cls.method_name})
        made["properties"]["version"] = {"const": cls.version}
        return made

    def check(self) -> None:  # most methods have nothing to add
        """Refuse parameters that do not go together; each by itself has been checked."""

    def check_columns(self, data: Data) -> None:
        """Refuse columns that the data lack, and to swap what must stay with its record."""
        for name, columns in self.columns().items():
            if self.params()[name].kind != RuleList.kind:  # a rule says itself where its fault is
                require_columns(data, columns, f"'{name}' of {self.method_name}")
        refuse_fixed(data, sorted(self.moved(self.parameters())))

    @abstractmethod
    def prepare(self, data: Data) -> Prepared:
        """Check the parameters against the data and do all work that does not depend on the seed."""

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Return the columns that each parameter names, where it names any.

        >>> import quadrille as qd
        >>> qd.RandomSwap(["Edu"], rate=0.02, rules=["Age<16 & MS=Widowed"]).columns()
        {'swap': ('Edu',), 'rules': ('Age', 'MS')}
        """
        found = {name: param.columns(getattr(self, name)) for name, param in self.params().items()}
        return {name: columns for name, columns in found.items() if columns}

    @classmethod
    def moved(cls, parameters: Mapping[str, object]) -> frozenset[str]:
        """Return the columns that some of its parameters say to swap; none leaves the choice to the method."""
        params = cls.params()
        return frozenset(
            c for name, value in parameters.items() if params[name].moves for c in params[name].columns(value)
        )

    def movement(self, data: Data) -> Movement:
        """Return which columns move together in these data; a method that does not say so shows it by its plan.

        >>> import quadrille as qd
        >>> qd.RandomSwap(["tract"], rate=0.1, same=["race"]).movement(qd.datasets.state(records=3_200)).together
        (('tract', 'county'),)
        """
        return Movement(tuple(move.columns for move in self.plan(data).moves))

    @property
    def steering_columns(self) -> tuple[str, ...]:
        """Columns that steer the draw and would give it away: they are left out of the public file."""
        steering = [(param, name) for name, param in self.params().items() if param.steers]
        return tuple(column for param, name in steering for column in param.columns(getattr(self, name)))

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
        return self.prepared(data).draw(self.stream())

    def prepared(self, data: Data) -> Prepared:
        """Return the prepared design, kept for the next seeds of the same design on the same data."""
        kept, design = require_data(data, self.method_name).prepared, self.design_json()
        prepared = kept.get(design)
        if not isinstance(prepared, Prepared):
            self.check_columns(data)
            prepared = self.prepare(data)
            designs = [known for known, value in kept.items() if isinstance(value, Prepared)]
            for known in designs[: len(designs) - _KEPT + 1]:
                kept.pop(known, None)
            kept[design] = prepared
        return prepared

    def stream(self) -> Stream:
        """Return the random stream that belongs to this recipe, and to no other."""
        return self.stream_of(cast("int | str", self.parameters()["seed"]))

    def stream_of(self, seed: int | str) -> Stream:
        """Return the stream of the same design with another seed.

        >>> import quadrille as qd
        >>> recipe = qd.RandomSwap(["Edu"], rate=0.02, seed=7)
        >>> other = qd.RandomSwap(["Edu"], rate=0.02, seed=8)
        >>> bool((recipe.stream_of(8).words(4) == other.stream().words(4)).all())
        True
        """
        return Stream.of(seed, self._stream_identity)

    @cached_property
    def _stream_identity(self) -> str:
        """The text that the stream of every seed of this design rests on."""
        return self._json(without=("seed",), version=self.stream_version or self.version)

    def parameters(self) -> dict[str, Any]:
        """Return all parameters by name.

        >>> import quadrille as qd
        >>> given = qd.RandomSwap(["Edu"], rate=0.02, seed=7).parameters()
        >>> given["rate"], given["differ"]
        (0.02, 'all')
        """
        return {name: getattr(self, name) for name in self.params()}

    def changed(self, **parameters: object) -> Self:
        """Return the same recipe with other values of some parameters.

        >>> import quadrille as qd
        >>> qd.RandomSwap(["Edu"], rate=0.02, seed=7).changed(rate=0.05).parameters()["rate"]
        0.05
        """
        return replace(self, **parameters)

    def design_json(self) -> str:
        """Return the canonical JSON without the seed: the design."""
        return self._json(without=("seed",), version=self.version)

    def to_json(self) -> str:
        """Return the canonical JSON: sorted keys, defaults left out.

        >>> import quadrille as qd
        >>> print(qd.RandomSwap(["Edu"], rate=0.02, seed=7).to_json())
        {"method":"RandomSwap","rate":0.02,"seed":7,"swap":["Edu"],"version":2}
        """
        return self._json(without=(), version=self.version)

    def _json(self, without: tuple[str, ...], version: int) -> str:
        document: dict[str, object] = {"method": self.method_name, "version": version}
        for name, param in self.params().items():
            value = getattr(self, name)
            if name not in without and (param.required or value != param.default):
                document[param.written] = value
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Recipe:
        """Read a recipe of any method back.

        >>> import quadrille as qd
        >>> text = '{"method":"RandomSwap","rate":0.02,"seed":7,"swap":["Edu"],"version":1}'
        >>> qd.Recipe.from_json(text).parameters()["rate"]
        0.02
        """
        try:
            parsed: object = json.loads(text, object_pairs_hook=_without_repetition)
        except json.JSONDecodeError as error:
            raise InputError(f"The recipe is not valid JSON: {error.msg} in line {error.lineno}.") from None
        except (ValueError, RecursionError):  # what JSON allows and Python does not
            raise InputError("The recipe is not valid JSON: it nests too deeply or a number is too long.") from None
        if not isinstance(parsed, dict) or "method" not in parsed:
            raise InputError('A recipe must be a JSON object with a "method".')
        document = cast("dict[str, Any]", parsed)
        name = str(document.pop("method"))
        method = method_of_file(name, where="the recipe")
        version = document.pop("version", method.version)  # one written by hand need not say it
        versions = method.versions()
        if type(version) is not int or version not in versions:
            raise InputError(
                f"The recipe is for version {version!r} of {name}; this Quadrille draws version "
                f"{' and '.join(map(str, versions))}. Another version would draw another plan: use the release of "
                "Quadrille that wrote the recipe."
            )
        method = versions[version]
        known = {param.written: param.name for param in method.params().values()}
        method.refuse(document)
        for key in document:
            if key not in known:
                raise unknown_name("parameter", key, known, where=f"the recipe ({name})")
        try:
            return method(**{known[key]: value for key, value in document.items()})
        except TypeError as error:
            raise ParameterError(f"The recipe does not fit {name}: {error}.") from None


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object of JSON; of two values of one key none is taken silently."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InputError(f"The recipe has {next(k for k in keys if keys.count(k) > 1)!r} more than once. Keep one.")
    return made


def known_methods() -> dict[str, type[Recipe]]:
    """Return the methods by name: those of the package, and those that were imported besides."""
    import_module("quadrille.swap")  # which registers them
    return Recipe.methods


def find_method(name: str, *, where: str = "") -> type[Recipe]:
    """Return the method that the user names: known, also by its short name, of an installed package, or module:Class.

    >>> from quadrille.recipe import find_method
    >>> find_method("RandomSwap") is find_method("random") is find_method("quadrille.swap.random:RandomSwap")
    True
    """
    methods = known_methods()
    known = {method.word(): method for method in methods.values()} | methods
    if name in known:
        return known[name]
    if ":" in name:
        return _imported(name)
    from importlib.metadata import entry_points

    points = [(point.name, point.value) for point in entry_points(group=ENTRY_POINTS)]
    for short, place in [*points, *(("", place) for place in _allowed())]:
        if name in (short, place.rpartition(":")[2]):
            return _imported(place)
    raise unknown_name("method", name, methods, where=where)


def method_of_file(name: str, *, where: str) -> type[Recipe]:
    """Return the method that a recipe or a study names.

    Such files come from anywhere, and to import a module is to run it. So module:Class only stands for a class that is
    there already, or that the user allows by the variable `METHODS`.
    """
    if ":" in name and name not in _allowed():
        there = [each for each in known_methods().values() if f"{each.__module__}:{each.__qualname__}" == name]
        if not there:
            raise InputError(
                f"{where.capitalize()} names the method {name!r}, which is code outside of Quadrille, and a file alone "
                f"is no reason to run it. If you trust that code, say so: {METHODS}={name}, or import it first."
            )
        return there[0]
    try:
        return find_method(name, where=where)
    except InputError as error:
        raise InputError(f"{error} A method of your own is made known by {METHODS}=module:Class.") from None


def _allowed() -> list[str]:
    """Return the places of the methods that the user allows files to name."""
    return [place for word in os.environ.get(METHODS, "").split(",") if ":" in (place := word.strip())]


def _imported(place: str) -> type[Recipe]:
    module, _, name = place.partition(":")
    try:
        found: object = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(f"The method {place!r} cannot be imported: {error}.") from None
    if not (isinstance(found, type) and issubclass(found, Recipe)):
        raise InputError(f"{place!r} is not a method: it must be a class that derives from quadrille.Recipe.")
    return found


def half_up(share: float, n: int, of: int = 1) -> int:
    """Return share * n / of, rounded to a whole number; halves go up. The share counts as the decimal it is written as.

    A float is not quite that decimal: 0.29 * 100 / 2 is 14.499999999999998 in floats, and 14.5 in fact.

    >>> from quadrille.recipe import half_up
    >>> half_up(0.29, 100, of=2), half_up(0.02, 48_842, of=2)
    (15, 488)
    """
    return floor(Fraction(str(float(share))) * n / of + Fraction(1, 2))


def random_order(n: int, stream: Stream) -> Rows:
    """Return the numbers 0..n-1 in uniformly random order."""

    def attempt(words: Words) -> Rows | None:
        order, dice = np.arange(n, dtype=np.int64), kernels.dice(words)
        kernels.shuffle(order, dice)
        return None if dice.cursor[1] else order

    return draw_until_enough(attempt, stream, guess=n + 64)


def require_one(recipe: Recipe, **either: str) -> None:
    """Refuse both or neither of two parameters; the keywords are their names, and say what each is."""
    given = [name for name in either if getattr(recipe, name) not in (None, ())]
    if len(given) != 1:
        choice = " and ".join(f"{name!r} ({what})" for name, what in either.items())
        got = "both" if given else "neither"
        raise ParameterError(f"{recipe.method_name} needs one of {choice}. Got {got}.")


def refuse_overlap(recipe: Recipe, parts: Iterable[tuple[str, str]], why: str) -> None:
    """Refuse a column that two parameters name, for any of these pairs of parameters."""
    params = recipe.params()
    for one, other in parts:
        theirs = params[other].columns(getattr(recipe, other))
        for name in params[one].columns(getattr(recipe, one)):
            if name in theirs:
                raise OverlapError(f"Column {name!r} is in both '{one}' and '{other}' of {recipe.method_name}. {why}")


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
