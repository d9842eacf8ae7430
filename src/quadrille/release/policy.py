"""The policy of an agency: its file, its limits, and which policies judge a release."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Literal, cast

from quadrille.errors import InputError, QuadrilleError, bad_parameter, unknown_name
from quadrille.measure.axes import measure_of
from quadrille.measure.base import Address, Measure
from quadrille.params import Table, frozen
from quadrille.recipe import known_methods
from quadrille.text import know_sections, parse_toml
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


_LISTS = {"measures": Required, "methods": str, "never_swapped": str, "never_released": str, "formats": str}


@dataclass(frozen=True)
class Policy:
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
    methods: tuple[str, ...] = ()
    rate: Limit | None = None
    changed: Limit | None = None
    never_swapped: tuple[str, ...] = ()
    secret_seeds: bool = False
    never_released: tuple[str, ...] = ()
    shuffled: bool = False
    publish_f: bool = True
    formats: tuple[str, ...] = ()
    warnings: Outcome = "review"

    def __post_init__(self) -> None:
        """Refuse what reading a file can never give; a text instead of a list would be taken apart into letters."""
        if (self.path is None) != (self.sha256 is None):
            raise bad_parameter("Policy", "sha256", "given with the path of its file, or not at all", self.sha256)
        for name, kind in _LISTS.items():
            value = cast("object", getattr(self, name))
            listed = cast("tuple[object, ...]", value if isinstance(value, tuple) else (None,))
            if not all(isinstance(each, kind) for each in listed):
                raise bad_parameter("Policy", name, f"a tuple of {kind.__name__}", cast("object", value))
        for name in ("rate", "changed"):
            value = cast("object", getattr(self, name))
            if value is not None and not isinstance(value, Limit):
                raise bad_parameter("Policy", name, "a Limit or None", value)
        if self.warnings not in ("pass", "review", "fail"):
            raise bad_parameter("Policy", "warnings", "'pass', 'review' or 'fail'", self.warnings)

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """Read a policy file and check it; the first fault is told with its place.

        >>> from pathlib import Path
        >>> import quadrille as qd
        >>> _ = Path("policy.toml").write_text("[swap]\\nrates = {most = 0.1}")
        >>> qd.Policy.read("policy.toml")
        Traceback (most recent call last):
        quadrille.errors.InputError: policy.toml, [swap]: There is no setting 'rates'. Did you mean: 'rate'?
        """

        return read_policy(Path(path))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The measures to score, each once.

        >>> from pathlib import Path
        >>> import quadrille as qd
        >>> _ = Path("policy.toml").write_text("[measures]\\nhellinger = {most = 0.05}\\nexposed = {most = 0.01}")
        >>> qd.Policy.read("policy.toml").addresses
        ('hellinger', 'exposed')
        """
        return tuple(dict.fromkeys(each.address for each in self.measures))


_LARGEST = 1e300


def limit_of(table: Table, key: str, kind: Measure, margin: float) -> Limit:
    """Read the limits of a measure; of a signed one its size is limited."""
    low, high = kind.range
    if kind.direction == "nearer 0":
        low, high = 0.0, max(abs(low), abs(high))
    return _between(table, key, low, high, margin)


def rate_of(table: Table, key: str) -> Limit | None:
    """Read the limits of a share of the records, if there are any."""
    return _between(table, key, 0.0, 1.0, None) if key in table.values else None


def _between(table: Table, key: str, low: float, high: float, margin: float | None) -> Limit:
    """Read {least = ..., most = ...}, within what the value can be; margin None: a margin makes no sense here."""
    written = table.values[key]
    names = ("least", "most") if margin is None else ("least", "most", "margin")
    if not isinstance(written, dict):
        table.demand("a table of limits, like {most = 0.05}", written, key)
    given = Table(f"{table.place} {key}", cast("dict[str, object]", written))
    given.know(names)
    least, most = (_number(given, name, low, high) for name in ("least", "most"))
    if least is not None and most is not None and least > most:
        given.refuse(f"'least' is above 'most'. Got {least:g} and {most:g}.")
    if margin is None and least is None and most is None:
        given.refuse("gives no limit. Add 'least' or 'most'.")
    own = None if margin is None else margin_of(given)
    return Limit(least, most, margin or 0.0 if own is None else own)


def _number(table: Table, key: str, low: float, high: float) -> float | None:
    value = table.values.get(key)
    if value is None:
        return None
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and low <= value <= high
        and abs(value) <= _LARGEST
    ):
        return float(value)
    return table.demand("a number" + _range(low, high), value, key)


def _range(low: float, high: float) -> str:
    if isfinite(low) and isfinite(high):
        return f" in [{low:g}, {high:g}]"
    return f" of {low:g} or more" if isfinite(low) else f" of {high:g} or less" if isfinite(high) else ""


def margin_of(table: Table) -> float | None:
    """Read how near to a limit a person must look, as a share of it."""
    value = _number(table, "margin", 0.0, 1.0)
    if value == 1.0:
        table.demand("a number in [0, 1)", value, "margin")
    return value


FORMATS = ("csv", "parquet", "sav", "dta", "xpt")
"""What a release can be written as; a test keeps this equal to what it is written as."""

CELL_MEASURES = ("small_cells", "exposed", "confidence")
_SECTIONS = ("policy", "cells", "swap", "release", "measures")
_WHAT = "the policy"
_LEAST_CELL = 2
_MOST_CELL = 1_000_000


def read_policy(path: Path) -> Policy:
    """Read a policy file; the first fault is told with its place."""
    raw = read_bytes(path, _WHAT)  # once, so that the hash is that of the rules
    document = parse_toml(raw, path, _WHAT)
    know_sections(document, _SECTIONS, str(path))
    if not any(document.get(name) for name in _SECTIONS[1:]):
        raise InputError(f'{path}: the policy has no rule. Write one, such as [swap] with seeds = "secret".')
    head, cells, swapped, released, measures = (_section(path, document, name) for name in _SECTIONS)
    head.know(("name", "margin"))
    margin = margin_of(head) or 0.0
    return Policy(
        path=path.absolute(),
        sha256=sha256(raw).hexdigest(),
        name=head.text("name") or path.name,
        measures=(*_cells(cells, margin), *_measures(measures, margin)),
        **_swap_rules(swapped),
        **_release_rules(released),
    )


def _section(path: Path, document: Mapping[str, object], name: str) -> Table:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{path}: {name} must be a section, headed [{name}].")
    values = cast("dict[str, object]", found)
    return Table(f"{path}, [{name}]", {key: frozen(value) for key, value in values.items()})


def _swap_rules(table: Table) -> dict[str, Any]:
    table.know(("methods", "rate", "changed", "never", "seeds"))
    methods = _some(table, "methods", "methods")
    for index, name in enumerate(methods):
        if name not in known_methods():
            table.refuse(str(unknown_name("method", name, known_methods())), "methods", index)
    return {
        "methods": methods,
        "rate": rate_of(table, "rate"),
        "changed": rate_of(table, "changed"),
        "never_swapped": _some(table, "never", "column names"),
        "secret_seeds": _word(table, "seeds", ("any", "secret")) == "secret",
    }


def _release_rules(table: Table) -> dict[str, Any]:
    table.know(("never", "shuffle", "publish_f", "formats", "warnings"))
    formats = _some(table, "formats", "formats")
    for index, name in enumerate(formats):
        if name not in FORMATS:
            table.refuse(str(unknown_name("format", name, FORMATS)), "formats", index)
    return {
        "never_released": _some(table, "never", "column names"),
        "shuffled": _flag(table, "shuffle", absent=False),
        "publish_f": _flag(table, "publish_f", absent=True),
        "formats": formats,
        "warnings": _word(table, "warnings", ("review", "fail", "pass")),
    }


def _cells(table: Table, margin: float) -> list[Required]:
    """Return the limits on small cells, for every protected table."""
    table.know(("smallest", "tables", *CELL_MEASURES))
    if not table.values:
        return []
    table.require("smallest", "3")
    smallest = table.number("smallest", _MOST_CELL) or 0
    if smallest < _LEAST_CELL:
        table.demand(f"{_LEAST_CELL} or more: cells of fewer records are small", smallest, "smallest")
    limited = [name for name in CELL_MEASURES if name in table.values]
    if not limited:
        table.refuse(f"gives no limit. Add one or more of {', '.join(CELL_MEASURES)}, as in exposed = {{most = 0.02}}.")
    found: list[Required] = []
    for index, variables in enumerate(_some(table, "tables", 'tables, like "Age*Sex*Region"') or ("",)):
        for name in limited:
            address = f"{name}({variables}, n={smallest})" if variables else f"{name}(n={smallest})"
            kind = _known(table, address, "tables" if variables else name, index if variables else None)
            if variables:
                _only_variables(table, address, index)
            found.append(Required("cells", address, limit_of(table, name, kind, margin)))
    return found


def _only_variables(table: Table, address: str, index: int) -> None:
    """Refuse a table that brings options of its own, such as another n."""
    call = Address.parse(address)
    if call.where is not None or call.margin is None or len(call.options) > 1:
        table.refuse(
            'must be variables and nothing else, like "Age*Sex*Region". Write other options under [measures].',
            "tables",
            index,
        )


def _measures(table: Table, margin: float) -> list[Required]:
    return [
        Required("measures", address, limit_of(table, address, _known(table, address, address), margin))
        for address in table.values
    ]


def _known(table: Table, address: str, key: str, index: int | None = None) -> Measure:
    """Return the measure of an address; one that is not understood is refused where it stands."""
    try:
        call = Address.parse(address)
        kind = measure_of(address).bound(call)
    except QuadrilleError as error:
        return table.refuse(str(error), key, index)
    if fault := _fault(call, kind):
        return table.refuse(fault, key, index)
    return kind


def _fault(call: Address, kind: Measure) -> str:
    """Say what is wrong with an address whatever the data are."""
    margin, options = call.margin or (), [name for name, _ in call.options]
    if not all(name.strip() for name in margin):
        return "a variable has no name. Write names between the asterisks, like Age*Sex."
    if len(set(margin)) < len(margin):
        return "a variable occurs twice. Name each variable once."
    if len(set(options)) < len(options):
        return "an option is given twice. Give each once."
    if call.models and kind.layout != "models":
        return f"{kind.name} takes variables, not a model. Put a name that holds a '~' in backticks."
    if margin and kind.layout == "models":
        return f"{kind.name} needs a model, not a list of variables."
    return ""


def _some(table: Table, key: str, what: str) -> tuple[str, ...]:
    """Return a list of texts, empty where it is absent: an empty one that is written would be a rule about nothing."""
    return table.texts(key, what, least=1 if key in table.values else 0)


def _flag(table: Table, key: str, *, absent: bool) -> bool:
    value = table.values.get(key, absent)
    return value if isinstance(value, bool) else table.demand("true or false", value, key)


def _word(table: Table, key: str, words: tuple[str, ...]) -> str:
    """Return one of a few words; the first when it is absent."""
    value = table.values.get(key, words[0])
    if isinstance(value, str) and value in words:
        return value
    return table.demand("one of " + ", ".join(f'"{word}"' for word in words), value, key)


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
