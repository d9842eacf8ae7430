"""What a measure is: a definition over tables before and after, its side, direction and range; how it is addressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, combinations
from typing import Any, Literal

from quadrille.data import Data, require_columns
from quadrille.errors import InputError, bad_parameter, unknown_name
from quadrille.expressions import (
    EXAMPLE,
    Model,
    Scale,
    Where,
    column_scales,
    default_model,
    has_numbers,
    split_outside_quotes,
    unquoted,
)
from quadrille.measure.areas import Grouped
from quadrille.measure.moments import Moments
from quadrille.measure.population import sample_of
from quadrille.params import ColumnName, Columns, ConditionText, Digits, Models, Param, object_schema
from quadrille.summary import Arrival, Change, Counted, Participation, Summary, Table, Transition
from quadrille.text import Shown

Side = Literal["risk", "loss"]
Direction = Literal["lower", "higher", "nearer 0"]
Names = tuple[str, ...]
Layout = Literal[
    "table", "pair", "each", "joint", "participation", "arrival", "target", "moved", "margins", "columns", "models"
]

LEMONS_2014 = "Lemons, Dajani, You & Jordan (2014), US Census Bureau"
NISS_131 = "Gomatam & Karr (2003), NISS Technical Report 131"
DOHRMANN_2009 = "Dohrmann, Krenzke, Roey & Russell (2009)"

ALL_PAIRS = "2-way"
NOTHING_CHANGED = "nothing changed"
NO_DIFFERENCE = "no difference"
EMPTY = "no record, or no weight, in the table"
MOST_COLUMNS = 500
"""A model of more columns is not fitted."""


@dataclass(frozen=True, repr=False)
class Score(Shown):
    """A measure's value, None when it is undefined, with details and a note that says why.

    A value that is the mean over several tables has those of the tables in `parts`, by variables. `explain` makes
    the rows of a detail that is only worked out when somebody looks. `scale` is the size of the numbers whose
    difference the value is: rounding errors are judged by it.
    """

    value: float | None
    detail: Mapping[str, float] = field(default_factory=dict[str, float])
    note: str = ""
    parts: Mapping[Names, float | None] = field(default_factory=dict[Names, float | None])
    explain: Callable[[], list[dict[str, object]]] | None = None
    scale: float = 1.0


def undefined(reason: str) -> Score:
    """Return the score of what cannot be computed, with the reason."""
    return Score(None, note=reason)


def unscored(change: Change, detail: Mapping[str, float] | None = None) -> Score | None:
    """Return the score of a change that needs no formula: of an empty table, or where nothing changed."""
    if not change.total_old or not change.total_new:
        return undefined(EMPTY)
    return Score(0.0, detail or {}, NOTHING_CHANGED) if change.nothing_changed else None


def option(name: str, default: int, text: str) -> Param:
    """Declare an option of a measure: a whole number of 1 or more, or a switch, which is off at 0 and on at 1."""
    declared = Digits(text) if default else Digits(text, least=0, most=1)
    return declared.of_field(name, int, default)


TARGET = ColumnName("the variable that is inferred from the others", otherwise="each variable in turn").of_field(
    "target", str, None
)


def _named(text: str, otherwise: str) -> Param:
    return Columns(text, otherwise=otherwise).of_field("variables", tuple, ())


WHERE = ConditionText("only records that meet it count, as in where=Sex=Male & Age!=<25").of_field("where", str, None)
_TABLE = "the variables of the table, A*B; 2-way for every pair of key variables"
_KEYS, _MOVED = "the cross of the key variables", "the columns that the plan moves"
_NAMED: Mapping[Layout, Param] = {
    "table": _named(_TABLE, _KEYS),
    "participation": _named(_TABLE, _KEYS),
    "arrival": _named("the variables that the intruder knows, A*B", _KEYS),
    "target": _named(
        "the variables that the intruder knows, A*B; 2-way for pairs of key variables", "the key variables"
    ),
    "pair": _named("the variables that are paired up, A*B*C", "the key variables"),
    "each": _named("the variables, each by itself", _MOVED),
    "joint": _named("the variables, taken together", _MOVED),
    "moved": _named(_TABLE, f"the cross of {_MOVED}"),
    "margins": _named("the variables, each by itself", _MOVED),
    "columns": _named("the variables that are correlated", f"the key variables, the outcomes and {_MOVED}"),
    "models": Models(f"models, joined by ';', as in {EXAMPLE}", otherwise=f"each outcome on {_MOVED}").of_field(
        "models", tuple, ()
    ),
}
"""What an address names before its options, by layout."""


@dataclass(frozen=True, repr=False)
class Measure(Shown):
    """One measure: `score(before, change)` for one summary.

    `layout` says what it is computed on: "table" (one table of any margin; without a margin the cross of the key
    variables), "pair" (two variables at a time), "each" (one variable at a time, record by record), "joint"
    (several variables together, record by record), "participation" (a table that knows who was swapped), "arrival"
    (a table that knows who came from another cell), "target" (a table of which one variable is inferred from the
    others), "moved" (one table; without a margin the cross of the columns that the plan moves), "margins" (one table
    per variable; else those that the plan moves), "columns" (correlations of several variables) or "models"
    (regressions).
    `over_changed`: pairs are averaged over those that changed; without a margin the moved columns join the keys.
    `direction` says which values are better: "lower", "higher" or "nearer 0". `declares` are the options that `score`
    takes by name, each declared once with its help, limits and default. `weight_linear`: a record of weight 2 counts
    as the record twice. `largest`: of several tables the largest value counts, not the mean.
    `of_sample`: `score` also takes the sample that the file is, by the name `sample`. `without_rows`: where the rows of
    two files are not aligned, a record counts as the one that had its keys.
    `grouped` gives the values of all areas of a table at once, where there is a quick way.
    """

    name: str
    definition: str
    score: Callable[..., Score]
    _: KW_ONLY
    side: Side
    reference: str
    direction: Direction = "lower"
    range: tuple[float, float] = (0.0, 1.0)
    layout: Layout = "table"
    declares: tuple[Param, ...] = ()
    weight_linear: bool = True
    ordinal: bool = False
    over_changed: bool = False
    largest: bool = False
    of_sample: bool = False
    without_rows: bool = False
    grouped: Callable[..., Grouped] | None = None

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options and their values: the defaults, or those of an address."""
        return {param.name: param.default for param in self.declares}

    def params(self) -> dict[str, Param]:
        """Return what an address of the measure can hold: variables or models, a condition, and the options.

        >>> from quadrille import measure
        >>> list(measure.get("small_cells").params()), measure.get("small_cells").params()["n"].default
        (['variables', 'where', 'n'], 3)
        """
        return {param.name: param for param in (_NAMED[self.layout], WHERE, *self.declares)}

    @property
    def options_text(self) -> str:
        """The options with their defaults and what they mean, as a list of measures shows them."""
        return "; ".join(f"{param.name}={param.otherwise or param.default}: {param.help}" for param in self.declares)

    def schema(self) -> dict[str, object]:
        """Return the JSON Schema of an address, taken apart.

        >>> from quadrille import measure
        >>> measure.get("chi_square").schema()["properties"]["infinite"]["maximum"]
        1
        """
        return object_schema(self.name, self.params().values(), {"measure": self.name})

    def with_options(self, address: Address) -> Measure:
        """Return the measure with the options of an address filled in."""
        declared, values = {param.name: param for param in self.declares}, dict(self.options)
        for name, text in address.options:
            if name not in declared:
                raise unknown_name("option", name, ["where", *declared], where=f"the measure {address.text!r}")
            values[name] = declared[name].check(f"the measure {self.name}", name, unquoted(text))
        if not values:
            return self
        grouped = None if self.grouped is None else partial(self.grouped, **values)
        declares = tuple(replace(param, default=values[param.name]) for param in self.declares)
        return replace(self, score=partial(self.score, **values), grouped=grouped, declares=declares)

    @property
    def by_record(self) -> bool:
        """Whether it compares record by record, and so needs the plan or aligned files."""
        return self.layout in ("each", "joint", "arrival")

    @property
    def follows_plan(self) -> bool:
        """Whether its variables, unless named, depend on what the plan moves.

        Then only an address with variables (`Address.explicit`) compares plans that move different columns. Measures
        that compare record by record are about the moved columns by nature, and are not meant here.
        """
        return self.over_changed or self.layout in ("moved", "margins", "columns", "models")


@dataclass(frozen=True)
class Address:
    """A measure as addressed: `name`, `name(A*B)`, `name(2-way)`, `name(A*B, n=5, where=...)`, `name(y ~ A; z ~ A)`."""

    text: str
    name: str
    margin: Names | None
    where: Where | None
    options: tuple[tuple[str, str], ...] = ()
    models: tuple[Model, ...] = ()

    @property
    def explicit(self) -> bool:
        """Whether it names its variables or models, so that they do not depend on a plan."""
        return self.margin is not None or bool(self.models)

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read the address of a measure."""
        name, bracket, rest = text.strip().partition("(")
        if not name.strip() or (bracket and not rest.endswith(")")):
            raise bad_parameter(
                "score", "measures", "like name, name(A*B), name(2-way) or name(A*B, where=Sex=Male)", text
            )
        margin: Names | None = None
        models: tuple[Model, ...] = ()
        where: Where | None = None
        options: list[tuple[str, str]] = []
        for part in split_outside_quotes(rest[:-1], ",") if bracket else ():
            option, sign, value = (piece.strip() for piece in part.partition("="))
            if sign and option == "where":
                where = Where.parse(value)
            elif sign and option.isidentifier():
                options.append((option, value))
            elif margin is not None or models or not part.strip():
                raise InputError(
                    f"The measure {text!r} is not understood. Write one margin, then options after commas."
                )
            elif len(split_outside_quotes(part, "~")) > 1:
                models = tuple(Model.parse(model) for model in split_outside_quotes(part, ";"))
            else:
                margin = tuple(unquoted(variable) for variable in split_outside_quotes(part, "*"))
        return cls(text, name.strip(), margin, where, tuple(options), models)


@dataclass(frozen=True)
class Part:
    """One summary that a measure is computed on, the variables it stands for, and what `score` takes besides."""

    variables: Names
    summary: Summary
    given: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)


@dataclass(frozen=True)
class Parts:
    """The summaries that an address needs; the score where there are none; what must be said about those left out."""

    parts: tuple[Part, ...]
    otherwise: Score = field(default_factory=lambda: Score(0.0, note=NOTHING_CHANGED))
    note: str = ""


def parts_of(address: Address, measure: Measure, data: Data, moved: Names, steering_columns: Names = ()) -> Parts:
    """Work out the summaries that an address needs.

    `moved` are the columns that the plan moves; `steering_columns` steered it and are no key variables therefore.
    """
    keys = tuple(name for name in data.keys if name not in steering_columns)
    place = f"the measure {address.text!r}"
    pairs = address.margin == (ALL_PAIRS,)
    margin = None if pairs else address.margin
    _check_address(address, measure, data, margin, place)
    if measure.layout in ("each", "joint"):
        return _by_record(address, measure, data, margin, moved)
    if measure.layout == "models":
        return _models(address, data, moved)
    if measure.layout == "columns":
        return _columns(address, measure, data, margin, moved, keys)
    if measure.layout == "pair":
        if measure.over_changed and not address.explicit:
            variables = tuple(dict.fromkeys(_coded(data, keys + moved)))
            if len(variables) < 2:
                return Parts((), undefined("there are fewer than two categorical variables")) if moved else Parts(())
            return _pairs(address, variables)
        return _pairs(address, margin or keys)
    table = {"participation": Participation, "arrival": Arrival}.get(measure.layout, Table)
    if pairs:
        return _pairs(address, keys, table)
    if measure.layout in ("moved", "margins"):
        return _moved(address, measure, margin or _coded(data, moved), moved)
    variables = _with_target(address, measure, margin, keys) if measure.layout == "target" else margin or keys
    given = {"sample": sample_of(data, measure.options.get("sampling"))} if measure.of_sample else {}
    return Parts((Part(variables, table(variables, address.where), given),))


def _check_address(address: Address, measure: Measure, data: Data, margin: Names | None, place: str) -> None:
    if margin is not None:
        if len(set(margin)) != len(margin):
            raise InputError(f"A variable occurs twice in {place}. Name each variable once.")
        require_columns(data, margin, place)
    if target := measure.options.get("target"):
        require_columns(data, [target], place)
        if target in (address.margin or ()):
            raise InputError(f"The target of {place} is also a variable that is known. Name it as the target only.")
        if address.margin == (ALL_PAIRS,):
            raise InputError(f"{place} has a target: name the variables that are known, as in {measure.name}(A*B).")
    if address.where:
        require_columns(data, address.where.variables, place)
        for condition in address.where.conditions:
            condition.allowed(data)
    if measure.layout == "models" and address.margin is not None:
        raise InputError(f"{place} needs a model, not a list of variables. Write it like {EXAMPLE}.")
    if measure.layout != "models" and address.models:
        raise InputError(f"{place} takes variables, not a model. Put a name that holds a '~' in backticks.")
    if address.margin == (ALL_PAIRS,) and (measure.by_record or measure.layout in ("margins", "columns")):
        how = "compares record by record" if measure.by_record else "is not about tables of two variables"
        raise InputError(f"{place} {how}: name its variables, as in {measure.name}(A*B).")


def _coded(data: Data, names: Names) -> Names:
    return tuple(name for name in names if data.codebook[name].coded)


def _pairs(address: Address, variables: Names, table: type[Counted] = Table) -> Parts:
    _need_two(address, variables)
    return Parts(tuple(Part(pair, table(pair, address.where)) for pair in combinations(variables, 2)))


def _need_two(address: Address, variables: Names) -> None:
    if len(variables) < 2:
        raise InputError(f"The measure {address.text!r} needs two variables or more; there is {len(variables)}.")


def _with_target(address: Address, measure: Measure, margin: Names | None, keys: Names) -> Names:
    """Return the variables of the table: those that are known and the one that is inferred."""
    target: str | None = measure.options["target"]
    known = margin or keys
    variables = known if target is None or target in known else (*known, target)
    _need_two(address, variables)
    return variables


def _moved(address: Address, measure: Measure, variables: Names, moved: Names) -> Parts:
    """Return one table of all the variables, or one per variable."""
    if not variables:
        return Parts((), undefined("no categorical variable was moved")) if moved else Parts(())
    groups = [variables] if measure.layout == "moved" else [(name,) for name in variables]
    return Parts(tuple(Part(group, Table(group, address.where)) for group in groups))


def _columns(address: Address, measure: Measure, data: Data, margin: Names | None, moved: Names, keys: Names) -> Parts:
    """Return the moments of some variables: the key variables, the moved ones and the outcomes unless named."""
    if margin is None:
        if not moved:
            return Parts(())
        outcomes = {variable.name for variable in data.codebook if variable.role == "outcome"}
        wanted = {*keys, *moved, *outcomes} - {data.weight}
        margin = tuple(name for name in data.columns if name in wanted)
    scales, left_out = column_scales(data, margin, measure.options["max_levels"])
    if not scales:
        return Parts((), undefined("every variable has too many levels; raise max_levels or name other variables"))
    note = f"left out for having too many levels: {', '.join(left_out)}" if left_out else ""
    used = tuple(dict.fromkeys(scale.variable for scale in scales))
    changed = margin if data.weight in moved else moved  # a weight that moves changes every correlation
    return Parts((Part(margin, Moments(used, address.where, scales), {"moved": frozenset(changed)}),), note=note)


def _models(address: Address, data: Data, moved: Names) -> Parts:
    """Return the moments of each model: of each outcome on the moved columns unless models are given."""
    if address.models:
        return Parts(tuple(_model(address, model, data) for model in address.models))
    if not moved:
        return Parts(())
    outcomes = [variable.name for variable in data.codebook if variable.role == "outcome"]
    if not outcomes:
        return Parts((), undefined(f"no column has the role outcome; give one, or write a model, as in {EXAMPLE}"))
    parts: list[Part] = []
    for outcome in outcomes:
        model = default_model(data, outcome, moved)
        if model.terms and has_numbers(data.codebook[outcome], positions=True):
            scales = model.scales(data, positions=True)
            if len(scales) <= MOST_COLUMNS:
                parts.append(_fitted(address, model, scales))
    missing = len(outcomes) - len(parts)
    note = f"{missing} of {len(outcomes)} outcomes left out: not numeric, too many levels, or nothing else was moved"
    return Parts(tuple(parts), undefined(note), note if missing else "")


def _model(address: Address, model: Model, data: Data) -> Part:
    scales = model.scales(data)
    if len(scales) > MOST_COLUMNS:
        raise InputError(
            f"The model '{model}' has {len(scales):,} columns, and at most {MOST_COLUMNS} are fitted. "
            "Leave out variables with many categories, or group the categories."
        )
    return _fitted(address, model, scales)


def _fitted(address: Address, model: Model, scales: tuple[Scale, ...]) -> Part:
    return Part((str(model),), Moments(model.variables, address.where, scales, complete=True), {"name": str(model)})


def _by_record(address: Address, measure: Measure, data: Data, margin: Names | None, moved: Names) -> Parts:
    if margin is None:
        margin = _coded(data, moved)
        if measure.ordinal:
            margin = tuple(name for name in margin if data.codebook[name].kind == "ordinal")
    elif measure.ordinal:
        for name in margin:
            if data.codebook[name].kind != "ordinal":
                raise InputError(
                    f"{measure.name} needs an ordinal variable, and {name!r} is {data.codebook[name].kind}. "
                    "Declare it ordinal in the codebook if its categories have an order."
                )
    groups = [(name,) for name in margin] if measure.layout == "each" else [margin] if margin else []
    what = "ordinal variable" if measure.ordinal else "categorical variable"
    nothing = undefined(f"no {what} was moved")
    return Parts(tuple(Part(group, Transition(group, address.where)) for group in groups), nothing)


def combine(scores: list[tuple[Part, Score]], address: Address, measure: Measure, parts: Parts) -> Score:
    """Put the scores of the parts together: one as it is, of several the mean or the largest, with the parts."""
    if not scores:
        return parts.otherwise
    several = measure.layout in ("pair", "each", "margins", "models") or address.margin == (ALL_PAIRS,)
    if not several:
        score = scores[0][1]
        return replace(score, note=_joined(score.note, parts.note)) if parts.note else score
    values = {part.variables: score.value for part, score in scores}
    if measure.over_changed:
        return replace(_over_changed(scores), parts=values, scale=max(score.scale for _, score in scores))
    mean = _largest(scores, values) if measure.largest else _mean(scores, values)
    return _of_models(mean, [score for _, score in scores], parts.note) if measure.layout == "models" else mean


def _joined(note: str, left_out: str) -> str:
    """Say what was left out, unless nothing changed anyway."""
    return note if note == NOTHING_CHANGED else "; ".join(filter(None, (note, left_out)))


def _largest(scores: list[tuple[Part, Score]], parts: Mapping[Names, float | None]) -> Score:
    """Return the largest of the defined scores, with its detail."""
    defined = [(score.value, score) for _, score in scores if score.value is not None]
    if not defined:
        return Score(None, note=scores[0][1].note, parts=parts)
    missing = len(scores) - len(defined)
    worst = max(defined, key=lambda pair: pair[0])[1]
    return replace(
        worst, note=_joined(worst.note, f"{missing} of {len(scores)} undefined" if missing else ""), parts=parts
    )


def _mean(scores: list[tuple[Part, Score]], parts: Mapping[Names, float | None]) -> Score:
    """Return the mean over the defined scores."""
    values = [score.value for _, score in scores if score.value is not None]
    missing = len(scores) - len(values)
    if not values:
        return Score(None, note=scores[0][1].note, parts=parts)
    if all(score.note == NOTHING_CHANGED for _, score in scores if score.value is not None):
        return Score(0.0, note=NOTHING_CHANGED, parts=parts)
    note = f"{missing} of {len(scores)} undefined and left out of the mean" if missing else ""
    zero = sum(int(score.detail.get("zero_cells", 0)) for _, score in scores)
    detail: dict[str, float] = {"zero_cells": zero} if zero else {}
    return Score(sum(values) / len(values), detail, "; ".join(filter(None, (note, _noted(scores)))), parts)


def _noted(scores: list[tuple[Part, Score]]) -> str:
    """Count the tables that come with a note, and give the first of the notes."""
    notes = [score.note for _, score in scores if score.value is not None and score.note not in ("", NOTHING_CHANGED)]
    return f"{len(notes)} of {len(scores)} tables come with a note, such as: {notes[0]}" if notes else ""


def _of_models(mean: Score, scores: list[Score], note: str) -> Score:
    """Add what the models say: the rows of their coefficients and, for a single one, its detail."""
    rows = [score.explain for score in scores if score.explain]
    return replace(
        mean,
        note=_joined(mean.note, note),
        detail=scores[0].detail if len(scores) == 1 else mean.detail,
        explain=(lambda: list(chain.from_iterable(explain() for explain in rows))) if rows else None,
        scale=max(score.scale for score in scores),
    )


def _over_changed(scores: list[tuple[Part, Score]]) -> Score:
    """Return the mean over the scores that are defined and changed."""
    values = [score.value for _, score in scores if score.value is not None]
    notes = [score.note for _, score in scores if score.value is not None]
    changed = [value for value, note in zip(values, notes, strict=True) if note not in (NOTHING_CHANGED, NO_DIFFERENCE)]
    missing = len(scores) - len(values)
    detail = {"changed": len(changed), "unchanged": len(values) - len(changed), "undefined": missing}
    if changed:
        note = f"{missing} of {len(scores)} undefined and left out of the mean" if missing else ""
        return Score(sum(changed) / len(changed), detail, note)
    reasons = [score.note for _, score in scores if score.value is None]
    if not values or any(reason != EMPTY for reason in reasons):
        return Score(None, detail, next((reason for reason in reasons if reason != EMPTY), EMPTY))
    same = all(note == NOTHING_CHANGED for note in notes)
    return Score(0.0, detail, NOTHING_CHANGED if same else "no association changed")
