"""What a measure is: a definition over tables before and after, its side, direction and range; how it is addressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Literal

from quadrille.data import Data, require_columns
from quadrille.errors import InputError, bad_parameter, unknown_name
from quadrille.summary import Participation, Summary, Table, Transition
from quadrille.where import Where, split_outside_quotes, unquoted

Side = Literal["risk", "loss"]
Direction = Literal["lower", "higher", "nearer 0"]
Layout = Literal["table", "pair", "each", "joint", "participation"]

ALL_PAIRS = "2-way"
NOTHING_CHANGED = "nothing changed"
EMPTY = "no record, or no weight, in the table"


@dataclass(frozen=True)
class Score:
    """A measure's value, None when it is undefined, with details and a note that says why.

    A value that is the mean over several tables has those of the tables in `parts`, by variables. `explain` makes
    the rows of a detail that is only worked out when somebody looks.
    """

    value: float | None
    detail: Mapping[str, float] = field(default_factory=dict[str, float])
    note: str = ""
    parts: Mapping[tuple[str, ...], float | None] = field(default_factory=dict[tuple[str, ...], float | None])
    explain: Callable[[], list[dict[str, object]]] | None = None


def undefined(reason: str) -> Score:
    """Return the score of what cannot be computed, with the reason."""
    return Score(None, note=reason)


@dataclass(frozen=True)
class Measure:
    """One measure: `score(before, change)` for one summary.

    `layout` says what it is computed on: "table" (one table of any margin; without a margin the cross of the key
    variables), "pair" (two variables at a time), "each" (one variable at a time, record by record), "joint"
    (several variables together, record by record) or "participation" (a table that knows who was swapped).
    `direction` says which values are better: "lower", "higher" or "nearer 0". `options` are whole numbers of 1 or
    more that `score` takes by name, with their defaults. `weight_linear`: a record of weight 2 counts as the
    record twice.
    """

    name: str
    side: Side
    direction: Direction
    range: tuple[float, float]
    definition: str
    reference: str
    layout: Layout
    score: Callable[..., Score]
    options: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    weight_linear: bool = True
    ordinal: bool = False

    def bound(self, call: Call) -> Measure:
        """Return the measure with the options of a call filled in."""
        for name, value in call.options:
            if name not in self.options:
                raise unknown_name("option", name, ["where", *self.options], where=f"the measure {call.text!r}")
            if not value.isdecimal() or int(value) < 1:
                raise bad_parameter(f"the measure {self.name}", name, "a whole number of 1 or more", value)
        options = {**self.options, **{name: int(value) for name, value in call.options}}
        return replace(self, score=partial(self.score, **options), options=options) if options else self

    @property
    def by_record(self) -> bool:
        """Whether it compares record by record, and so needs the plan or aligned files."""
        return self.layout in ("each", "joint")


@dataclass(frozen=True)
class Call:
    """A measure as addressed: `name`, `name(A*B)`, `name(2-way)`, `name(A*B, n=5, where=...)`."""

    text: str
    name: str
    margin: tuple[str, ...] | None
    where: Where | None
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Call:
        """Read the address of a measure."""
        name, bracket, rest = text.strip().partition("(")
        if not name.strip() or (bracket and not rest.endswith(")")):
            raise bad_parameter(
                "score", "measures", "like name, name(A*B), name(2-way) or name(A*B, where=Sex=Male)", text
            )
        margin: tuple[str, ...] | None = None
        where: Where | None = None
        options: list[tuple[str, str]] = []
        for part in split_outside_quotes(rest[:-1], ",") if bracket else ():
            option, sign, value = (piece.strip() for piece in part.partition("="))
            if sign and option == "where":
                where = Where.parse(value)
            elif sign and option.isidentifier():
                options.append((option, value))
            elif margin is not None or not part.strip():
                raise InputError(
                    f"The measure {text!r} is not understood. Write one margin, then options after commas."
                )
            else:
                margin = tuple(unquoted(variable) for variable in split_outside_quotes(part, "*"))
        return cls(text, name.strip(), margin, where, tuple(options))


@dataclass(frozen=True)
class Part:
    """One summary that a measure is computed on, and the variables it stands for."""

    variables: tuple[str, ...]
    summary: Summary


def parts_of(call: Call, measure: Measure, data: Data, moved: tuple[str, ...]) -> list[Part]:
    """Work out the summaries that a call needs; `moved` are the columns that the plan moves."""
    place = f"the measure {call.text!r}"
    pairs = call.margin == (ALL_PAIRS,)
    margin = None if pairs else call.margin
    if margin is not None:
        if len(set(margin)) != len(margin):
            raise InputError(f"A variable occurs twice in {place}. Name each variable once.")
        require_columns(data, margin, place)
    if call.where:
        require_columns(data, call.where.variables, place)
    if measure.by_record:
        if pairs:
            raise InputError(f"{place} compares record by record: name its variables, as in {measure.name}(A*B).")
        return _by_record(call, measure, data, margin, moved)
    if measure.layout == "pair":
        return _pairs(call, margin or data.keys)
    if pairs:
        return _pairs(call, data.keys)
    table = Participation if measure.layout == "participation" else Table
    return [Part(margin or data.keys, table(margin or data.keys, call.where))]


def _pairs(call: Call, variables: tuple[str, ...]) -> list[Part]:
    if len(variables) < 2:
        raise InputError(f"The measure {call.text!r} needs two variables or more; there is {len(variables)}.")
    return [Part(pair, Table(pair, call.where)) for pair in combinations(variables, 2)]


def _by_record(
    call: Call, measure: Measure, data: Data, margin: tuple[str, ...] | None, moved: tuple[str, ...]
) -> list[Part]:
    if margin is None:
        margin = tuple(name for name in moved if data.codebook[name].coded)
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
    return [Part(group, Transition(group, call.where)) for group in groups]


def combine(scores: list[tuple[Part, Score]], call: Call, measure: Measure) -> Score:
    """Put the scores of the parts together: one as it is, several as their mean with the parts in the detail."""
    if not scores:
        what = "ordinal variable" if measure.ordinal else "categorical variable"
        return undefined(f"no {what} was moved")
    several = measure.layout in ("pair", "each") or call.margin == (ALL_PAIRS,)
    if not several:
        return scores[0][1]
    parts = {part.variables: score.value for part, score in scores}
    values = [score.value for _, score in scores if score.value is not None]
    missing = len(scores) - len(values)
    if not values:
        return Score(None, note=scores[0][1].note, parts=parts)
    if all(score.note == NOTHING_CHANGED for _, score in scores if score.value is not None):
        return Score(0.0, note=NOTHING_CHANGED, parts=parts)
    note = f"{missing} of {len(scores)} undefined and left out of the mean" if missing else ""
    return Score(sum(values) / len(values), note=note, parts=parts)
