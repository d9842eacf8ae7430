"""The policy of an agency: its file, its limits, and which policies judge a release."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from quadrille.errors import InputError, QuadrilleError, bad_parameter
from quadrille.io import RELEASED
from quadrille.measure import measure_of
from quadrille.measure.base import Address, Measure
from quadrille.params import (
    NOT_INFINITE,
    Flag,
    Number,
    Param,
    Setting,
    Text,
    Texts,
    UpTo,
    Word,
    declared,
    object_schema,
    setting,
)
from quadrille.recipe import known_methods
from quadrille.score.published import EXAMPLE, CellLimits, Names, read_tables
from quadrille.text import Shown, Table, frozen, know_sections, parse_toml
from quadrille.text import read_toml_bytes as read_bytes

Outcome = Literal["pass", "review", "fail"]


@dataclass(frozen=True)
class Limit:
    """The least and the most that a value may be; within `margin`, a share of the limit, a person must look.

    >>> from quadrille.release.policy import Limit
    >>> limit = Limit(most=0.05, margin=0.1)
    >>> limit.judge(0.03), limit.judge(0.047), limit.judge(0.051)
    ('pass', 'review', 'fail')
    """

    least: float | None = None
    most: float | None = None
    margin: float = 0.0

    @property
    def open(self) -> bool:
        """Whether there is no limit at all, so that a person decides."""
        return self.least is None and self.most is None

    def judge(self, value: float) -> Outcome:
        """Compare a value with the limits; both belong to what is allowed."""
        low = -float("inf") if self.least is None else self.least
        high = float("inf") if self.most is None else self.most
        if value < low or value > high:
            return "fail"
        near = (self.least is not None and value < low + self.margin * abs(low)) or (
            self.most is not None and value > high - self.margin * abs(high)
        )
        return "review" if near or self.open else "pass"

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        if self.least is not None:
            return f"at least {self.least:g}"
        return "a person decides" if self.most is None else f"at most {self.most:g}"


@dataclass(frozen=True)
class Required:
    """A measure that the policy asks for, where it does so, and the limit."""

    section: str
    address: str
    limit: Limit

    @property
    def rule(self) -> str:
        """The rule as a verdict names it."""
        return f"[{self.section}] {self.address}"


_LARGEST = 1e300
_ONLY_VARIABLES = 'must be variables and nothing else, like "Age*Sex*Region". Write other options under [measures].'
_WHAT = "the policy"


@dataclass(frozen=True)
class Limits(Setting):
    """The least and the most of a value that lies in [low, high]; margin None: a margin makes no sense here."""

    low: float = 0.0
    high: float = 1.0
    margin: float | None = None

    kind = "limits"

    @classmethod
    def of(cls, measure: Measure, margin: float) -> Limits:
        """Return the limits of a measure; of a signed one its size is limited."""
        low, high = measure.range
        if measure.direction == "nearer 0":
            low, high = 0.0, max(abs(low), abs(high))
        return cls(low=low, high=high, margin=margin)

    def parts(self) -> tuple[Param, ...]:
        """Return the settings inside of it."""
        within = f"[{max(self.low, -_LARGEST)}, {min(self.high, _LARGEST)}]"
        end = Number(within=within, must="a number" + _range(self.low, self.high))
        least = replace(end, help="the smallest value allowed").of_field("least", float, None)
        most = replace(end, help="the largest value allowed").of_field("most", float, None)
        return (least, most) if self.margin is None else (least, most, replace(_MARGIN, default=self.margin))

    def of_table(self, table: Table) -> Limit:
        """Read {least = ..., most = ...}."""
        written, key = table.values[self.written], self.written
        if not isinstance(written, dict):
            table.demand("a table of limits, like {most = 0.05}", written, key)
        inner, parts = replace(table, values=cast("dict[str, object]", written), inside=key), self.parts()
        inner.know([part.name for part in parts])
        least, most, margin = (*(cast("float | None", setting(inner, part)) for part in parts), None)[:3]
        if least is not None and most is not None and least > most:
            inner.refuse(f"'least' is above 'most'. Got {least:g} and {most:g}.")
        if self.margin is None and least is None and most is None:
            inner.refuse("gives no limit. Add 'least' or 'most'.")
        return Limit(least, most, margin or 0.0)

    def shape(self) -> dict[str, object]:
        """Return the part of the JSON Schema that says which values there are."""
        inner = {part.name: part.schema() for part in self.parts()}
        return {"type": "object", "properties": inner, "additionalProperties": False}


def _range(low: float, high: float) -> str:
    if isfinite(low) and isfinite(high):
        return f" in [{low:g}, {high:g}]"
    return f" of {low:g} or more" if isfinite(low) else f" of {high:g} or less" if isfinite(high) else ""


def _methods() -> tuple[str, ...]:
    return tuple(known_methods())


def _formats() -> tuple[str, ...]:
    return RELEASED


_MARGIN = Number(
    "a value that keeps its limit, but lies within this share of it, is for review", within="[0, 1)"
).of_field("margin", float, 0.0)


@dataclass(frozen=True)
class Head:
    """[policy]: what the file is called, and how near to a limit a person must look."""

    name: Annotated[str | None, Text("how the verdict calls the policy", otherwise="the name of the file")] = None
    margin: Annotated[float, _MARGIN] = 0.0


@dataclass(frozen=True)
class Cells:
    """[cells]: limits on small cells, for every protected table."""

    smallest: Annotated[
        int,
        UpTo(
            "cells of fewer records are small: the n of `small_cells`, `exposed` and `confidence`",
            least=2,
            most=1_000_000,
            must="a whole number from 2 to 1,000,000: cells of fewer records are small",
        ),
    ]
    tables: Annotated[
        tuple[str, ...],
        Texts(
            'the tables to protect, such as `["Age*Sex*Region"]`, variables and nothing else',
            otherwise="the cross of the key variables, which the codebook decides",
            what='tables, like "Age*Sex*Region"',
        ),
    ] = ()
    small_cells: Annotated[
        Limit | None, Limits("the n-rule. It can be fooled, `exposed` cannot: limit `exposed`", margin=0.0)
    ] = None
    exposed: Annotated[Limit | None, Limits("released records in small cells that match a true one", margin=0.0)] = None
    confidence: Annotated[Limit | None, Limits("the share of the records in small cells that match", margin=0.0)] = None


@dataclass(frozen=True)
class TableList(Setting):
    """Published tables, each a text such as Age*Edu."""

    kind = "tables"

    def of_table(self, table: Table) -> object:
        """An empty list that is written would be a rule about nothing."""
        listed = read_tables(table, self.written)
        return listed or table.demand(f"a list of tables, like {EXAMPLE}", (), self.written)

    def shape(self) -> dict[str, object]:
        """Return the part of the JSON Schema that says which values there are."""
        return {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1}


_NOTICED = CellLimits()


@dataclass(frozen=True, repr=False)
class Published(Shown):
    """[published]: limits on what a swap does to the cells of the published tables."""

    tables: Annotated[
        tuple[Names, ...],
        TableList(
            f"the tables that are published, such as `{EXAMPLE}`", otherwise="those that the release or its study names"
        ),
    ] = ()
    floor: Annotated[
        int,
        UpTo(
            "a cell of fewer records counts as one of so many records of mean weight, as in `worst_cell`",
            least=1,
            most=1_000_000,
        ),
    ] = _NOTICED.floor
    percent: Annotated[
        Limit | None, Limits("the largest change of a cell, in per cent of the cell", high=inf, margin=0.0)
    ] = None
    points: Annotated[
        Limit | None,
        Limits("the largest change of the share of a cell, in percentage points of its table", high=100.0, margin=0.0),
    ] = None
    over: Annotated[
        Limit | None,
        Limits("the share of the cells that change by more than `over_percent` or `over_points`", margin=0.0),
    ] = None
    over_percent: Annotated[float, Number("of `over`: per cent of the cell", must=NOT_INFINITE)] = _NOTICED.percent
    over_points: Annotated[float, Number("of `over`: percentage points of its table", within="[0, 100]")] = (
        _NOTICED.points
    )

    @property
    def cell_limits(self) -> CellLimits:
        """What makes a cell one that counts for `over`."""
        return CellLimits(float(self.over_percent), float(self.over_points), self.floor)


PUBLISHED_LIMITS = ("percent", "points", "over")
_LISTS = {"measures": Required, "methods": str, "never_swapped": str, "never_released": str, "formats": str}


@dataclass(frozen=True, repr=False)
class Policy(Shown):
    """The rules of a policy file; what it does not mention is None or empty, and is not checked.

    A policy with a `path` is compared with that file when a release is judged, so nobody can pass off other rules as
    the agency's. One that is made in Python has neither path nor hash, and is recorded as not from a file.

    Example
    -------
    >>> from pathlib import Path
    >>> import quadrille as qd
    >>> _ = Path("policy.toml").write_text('''
    ... [swap]
    ... seeds = "secret"
    ... [measures]
    ... hellinger = {most = 0.05}
    ... ''')
    >>> policy = qd.Policy.read("policy.toml")
    >>> policy.secret_seeds, policy.addresses, policy.measures[0].limit.most
    (True, ('hellinger',), 0.05)
    """

    path: Path | None = None
    sha256: str | None = None
    name: str = "made in Python"
    measures: tuple[Required, ...] = ()
    methods: Annotated[tuple[str, ...], Texts("the methods allowed", what="methods", one="method", known=_methods)] = ()
    rate: Annotated[
        Limit | None,
        Limits(
            "share of the records that take part, both partners counted, or of the households or other units where "
            "these move as a whole; limits are rounded to whole pairs as the rate of a recipe is"
        ),
    ] = None
    changed: Annotated[Limit | None, Limits("share of the records that really change")] = None
    never_swapped: Annotated[
        tuple[str, ...],
        Texts(
            "variables that must stay with their record, also as levels of geography or linked columns",
            what="column names",
            written="never",
        ),
    ] = ()
    secret_seeds: Annotated[
        bool,
        Word(
            '`"secret"`: number seeds are refused, and so are 64 digits with a pattern that chance does not make',
            words=("any", "secret"),
            written="seeds",
        ),
    ] = False
    max_epsilon: Annotated[
        float | None,
        Number(
            "the largest epsilon, those of earlier releases of the same data added; without any a release fails",
            otherwise="none",
        ),
    ] = None
    require_guarantee: Annotated[
        bool,
        Flag(
            "true: a release must have a guarantee, and nothing may have voided it (`PrivateSwap`)",
            must="true or false",
        ),
    ] = False
    never_released: Annotated[
        tuple[str, ...],
        Texts(
            "columns that must not be in the public file. Give them the role `id`, and they are left out",
            what="column names",
            written="never",
        ),
    ] = ()
    shuffled: Annotated[
        bool, Flag("the public rows must be in random order", must="true or false", written="shuffle")
    ] = False
    publish_f: Annotated[bool, Flag("false: the factor f must stay confidential", must="true or false")] = True
    formats: Annotated[
        tuple[str, ...],
        Texts("formats that the public file may have", what="formats", one="format", known=_formats),
    ] = ()
    warnings: Annotated[
        Outcome, Word("the outcome of a release that comes with a warning", words=("review", "fail", "pass"))
    ] = "review"
    published: Published | None = None
    earlier: Annotated[
        str | None,
        Text(
            "the folder that holds earlier releases, from the place of the policy file. Data that are among them are "
            "released again by the same plan, or a person looks"
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse what reading a file can never give; a text instead of a list would be taken apart into letters."""
        if (self.path is None) != (self.sha256 is None):
            raise bad_parameter("Policy", "sha256", "given with the path of its file, or not at all", self.sha256)
        for name, kind in _LISTS.items():
            value = cast("object", getattr(self, name))
            listed = cast("tuple[object, ...]", value if isinstance(value, tuple) else (None,))
            if not all(isinstance(entry, kind) for entry in listed):
                raise bad_parameter("Policy", name, f"a tuple of {kind.__name__}", cast("object", value))
        for name in ("rate", "changed"):
            value = cast("object", getattr(self, name))
            if value is not None and not isinstance(value, Limit):
                raise bad_parameter("Policy", name, "a Limit or None", value)
        if not isinstance(cast("object", self.published), Published | None):
            raise bad_parameter("Policy", "published", "Published or None", self.published)
        if not isinstance(cast("object", self.earlier), str | None):
            raise bad_parameter("Policy", "earlier", "the name of a folder, or None", self.earlier)
        if self.warnings not in ("pass", "review", "fail"):
            raise bad_parameter("Policy", "warnings", "'pass', 'review' or 'fail'", self.warnings)

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """Read a policy file and check it; the first fault is reported with its place.

        >>> from pathlib import Path
        >>> import quadrille as qd
        >>> _ = Path("policy.toml").write_text("[swap]\\nrates = {most = 0.1}")
        >>> qd.Policy.read("policy.toml")
        Traceback (most recent call last):
        quadrille.errors.InputError: policy.toml, [swap]: There is no setting 'rates'. Did you mean: 'rate'?
        """

        return read_policy(Path(path))

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of a policy file.

        >>> import quadrille as qd
        >>> qd.Policy.schema()["properties"]["cells"]["properties"]["smallest"]["minimum"]
        2
        """
        sections: dict[str, object] = {}
        for name, settings in SECTIONS.items():
            made = object_schema(f"[{name}]", settings, {})
            sections[name] = {key: value for key, value in made.items() if key != "$schema"}
        limits = Limits(low=-inf, high=inf, margin=0.0).shape()
        sections["measures"] = {"type": "object", "title": "[measures]", "additionalProperties": limits}
        return object_schema("Policy", (), {}) | {"properties": sections}

    @property
    def addresses(self) -> tuple[str, ...]:
        """The measures to score, each once.

        >>> from pathlib import Path
        >>> import quadrille as qd
        >>> _ = Path("policy.toml").write_text("[measures]\\nhellinger = {most = 0.05}\\nexposed = {most = 0.01}")
        >>> qd.Policy.read("policy.toml").addresses
        ('hellinger', 'exposed')
        """
        return tuple(dict.fromkeys(required.address for required in self.measures))


_FIELDS = declared(Policy)
SECTIONS: Mapping[str, tuple[Param, ...]] = {
    "policy": tuple(declared(Head).values()),
    "cells": tuple(declared(Cells).values()),
    "published": tuple(declared(Published).values()),
    "swap": (
        *(
            _FIELDS[name]
            for name in ("methods", "rate", "changed", "never_swapped", "max_epsilon", "require_guarantee")
        ),
        replace(_FIELDS["secret_seeds"], default="any"),
    ),
    "release": tuple(
        _FIELDS[name] for name in ("never_released", "shuffled", "publish_f", "formats", "earlier", "warnings")
    ),
}
"""The settings that are known beforehand, by section; [measures] has one per measure."""
CELL_MEASURES = tuple(param.name for param in SECTIONS["cells"] if isinstance(param, Limits))


def read_policy(path: Path) -> Policy:
    """Read a policy file; the first fault is reported with its place."""
    raw = read_bytes(path, _WHAT)  # once, so that the hash is that of the rules
    document = parse_toml(raw, path, _WHAT)
    names = (*SECTIONS, "measures")
    know_sections(document, names, str(path))
    if not any(document.get(name) for name in names[1:]):
        raise InputError(f'{path}: the policy has no rule. Write one, such as [swap] with seeds = "secret".')
    tables = {name: _table(path, document, name) for name in names}
    head = Head(**_read("policy", tables))
    measures = (*_cells(tables, head.margin), *_measures(tables["measures"], head.margin))
    rules = _read("swap", tables) | _read("release", tables)
    rules["secret_seeds"] = rules["secret_seeds"] == "secret"
    found = {"path": path.absolute(), "sha256": sha256(raw).hexdigest(), "name": head.name or path.name}
    return Policy(**found, measures=measures, published=_published(tables, head.margin), **rules)


def _table(path: Path, document: Mapping[str, object], name: str) -> Table:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise InputError(f"{path}: {name} must be a section, headed [{name}].")
    values = cast("dict[str, object]", section)
    return Table(str(path), name, {key: frozen(value) for key, value in values.items()})


def _read(section: str, tables: Mapping[str, Table], margin: float = 0.0) -> dict[str, Any]:
    """Read the settings of a section; limits that may have a margin have this one unless they say."""
    tables[section].know([param.written for param in SECTIONS[section]])
    values: dict[str, Any] = {}
    for param in SECTIONS[section]:
        ready = replace(param, margin=margin) if isinstance(param, Limits) and param.margin is not None else param
        values[param.name] = setting(tables[section], ready)
    return values


def _cells(tables: Mapping[str, Table], margin: float) -> list[Required]:
    """Return the limits on small cells, for every protected table."""
    table = tables["cells"]
    if not table.values:
        return []
    cells = Cells(**_read("cells", tables, margin))
    limits = {name: cast("Limit | None", getattr(cells, name)) for name in CELL_MEASURES}
    if not any(limits.values()):
        table.refuse(f"gives no limit. Add one or more of {', '.join(CELL_MEASURES)}, as in exposed = {{most = 0.02}}.")
    required: list[Required] = []
    for index, variables in enumerate(cells.tables or ("",)):
        for name, limit in limits.items():
            if limit is None:
                continue
            address = f"{name}({variables}, n={cells.smallest})" if variables else f"{name}(n={cells.smallest})"
            _known(table, address, "tables" if variables else name, index if variables else None)
            parsed = Address.parse(address)
            if variables and (parsed.where is not None or parsed.margin is None or len(parsed.options) > 1):
                table.refuse(_ONLY_VARIABLES, "tables", index)
            required.append(Required("cells", address, limit))
    return required


def _published(tables: Mapping[str, Table], margin: float) -> Published | None:
    """Return the limits on published tables."""
    if not tables["published"].values:
        return None
    made = Published(**_read("published", tables, margin))
    if not any(getattr(made, name) for name in PUBLISHED_LIMITS):
        listed = ", ".join(PUBLISHED_LIMITS)
        tables["published"].refuse(f"gives no limit. Add one or more of {listed}, as in percent = {{most = 10}}.")
    return made


def _measures(table: Table, margin: float) -> list[Required]:
    required: list[Required] = []
    for address in table.values:
        limits = Limits.of(_known(table, address, address), margin).of_field(address, Limit, None)
        required.append(Required("measures", address, cast("Limit", setting(table, limits))))
    return required


def _known(table: Table, text: str, key: str, index: int | None = None) -> Measure:
    """Return the measure of an address; one that is not understood is refused where it stands."""
    try:
        address = Address.parse(text)
        measure = measure_of(text).with_options(address)
    except QuadrilleError as error:
        return table.refuse(str(error), key, index)
    if fault := _fault(address, measure):
        return table.refuse(fault, key, index)
    return measure


def _fault(address: Address, measure: Measure) -> str:
    """Say what is wrong with an address whatever the data are."""
    margin, options = address.margin or (), [name for name, _ in address.options]
    if not all(name.strip() for name in margin):
        return "a variable has no name. Write names between the asterisks, like Age*Sex."
    if len(set(margin)) < len(margin):
        return "a variable occurs twice. Name each variable once."
    if len(set(options)) < len(options):
        return "an option is given twice. Give each once."
    if address.models and measure.layout != "models":
        return f"{measure.name} takes variables, not a model. Put a name that holds a '~' in backticks."
    if margin and measure.layout == "models":
        return f"{measure.name} needs a model, not a list of variables."
    return ""


VARIABLE = "QUADRILLE_POLICY"
"""The variable that names the policy of a machine; an empty value counts as not set."""


@dataclass(frozen=True)
class Asked:
    """A policy that a release must keep, and whether the machine names it."""

    policy: Policy
    machine: bool = False


def asked_policies(owner: str, given: Policy | str | Path | None) -> tuple[Asked, ...]:
    """Return the policies that judge a release; `owner` is who takes the given one, for the message.

    The policy of the machine comes beside the given one, never in its place; where both say the same, it counts
    once, as the machine's.
    """
    own = None if given is None else as_policy(owner, given)
    machine = machine_policy()
    asked = [] if machine is None else [Asked(machine, machine=True)]
    if own is not None and (machine is None or own.sha256 != machine.sha256):
        asked.insert(0, Asked(own))
    return tuple(asked)


def machine_policy() -> Policy | None:
    """Return the policy of the machine, if it names one; one that cannot be used is an error, not no policy."""
    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        return None
    try:
        return Policy.read(name)
    except InputError as error:
        raise InputError(f"The variable {VARIABLE} names a policy that cannot be used. {error}") from None


def as_policy(owner: str, given: object) -> Policy:
    """Return a policy, read from its file where it has one: what is judged by is what stands in the file."""
    if isinstance(given, str | Path):
        return Policy.read(given)
    if not isinstance(given, Policy):
        raise bad_parameter(owner, "policy", "a policy, or the path of its file", given)
    return given if given.path is None else _as_in_its_file(given, given.path)


def _as_in_its_file(given: Policy, path: Path) -> Policy:
    """Read the file of a policy again, and refuse a policy that says anything else."""
    read = Policy.read(path)
    if read.sha256 != given.sha256:
        raise InputError(f"{path}: the policy file is not the one that was read. Read it again: qd.Policy.read.")
    other = [field.name for field in fields(Policy) if getattr(read, field.name) != getattr(given, field.name)]
    if other:
        raise InputError(
            f"{path}: the policy given is not what this file says. Different: {', '.join(other)}. Give the path of the "
            "file, or, for rules of your own, a Policy with path=None and sha256=None."
        )
    return read
