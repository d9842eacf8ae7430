"""Earlier releases of the same data: what they add to a new one, and what all of them together promise."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.data import Data
from quadrille.errors import InputError, OutputError, bad_parameter
from quadrille.params import several
from quadrille.plan import Move, Plan
from quadrille.present import numbers
from quadrille.recipe import Recipe
from quadrille.release.policy import Asked, Policy
from quadrille.score.matching import Crossed, crossed
from quadrille.swap.private import GIVEN_SEED, Guarantee, PrivateSwap
from quadrille.text import Shown, read_bytes

_HASHES, _ACCOUNT, _PLAN = "hashes.json", "account.json", "plan.parquet"
_WHAT = "the earlier release"


class OnCps8d(NamedTuple):
    """A row of figures of several releases of one file, by their number."""

    what: str
    shares: tuple[float, ...]


NUMBERS = (1, 3, 5, 10, 20)
ON_CPS8D = (
    OnCps8d("rows aligned: records restored, `RandomSwap` of 10 %", (0.9000, 0.9730, 0.9916, 0.9989, 1.0000)),
    OnCps8d("rows aligned: records restored, `DesignedSwap`", (0.9870, 0.9962, 0.9969, 0.9976, 0.9975)),
    OnCps8d("rows shuffled: cells exact, `PermutationSwap` of 10 %", (0.600, 0.710, 0.780, 0.851, 0.907)),
    OnCps8d("rows shuffled: small cells exact, the same", (0.841, 0.901, 0.934, 0.963, 0.980)),
)
"""Measured on CPS-8d, with independent seeds. Aligned rows: the most frequent value of each record and variable.

Shuffled rows: the mean of the tables, corrected by f and rounded; of its 1,695 occupied and 547 small cells.
"""


@dataclass(frozen=True, repr=False)
class Earlier(Shown):
    """A release that was made before: its folder, and the fingerprints of its data before and after."""

    folder: Path
    before: str
    after: str

    @classmethod
    def read(cls, folder: Path) -> Earlier:
        """Read the fingerprints from its confidential folder; nothing is ever written there."""
        document = _document(folder, _HASHES)
        try:
            before, after = (document["fingerprint"][when] for when in ("before", "after"))
        except (KeyError, TypeError):
            raise _not_a_release(folder, _HASHES) from None
        return cls(folder, str(before), str(after))

    @property
    def recipe(self) -> Path:
        """The file by which the same plan is drawn again."""
        return _inside(self.folder, "recipe.json")

    def plan(self, data: Data) -> Plan:
        """Read the plan as it was released, so that the method need not be known here."""
        names = _document(self.folder, _ACCOUNT)
        try:
            raw = io.BytesIO(_inside(self.folder, _PLAN).read_bytes())
            stored = pl.read_parquet(raw).select("move", "row", "source").cast(pl.Int64)
            moves = [
                Move(tuple(columns), (part["row"].to_numpy(), part["source"].to_numpy()))
                for place, columns in enumerate(names["moves"])
                for part in [stored.filter(pl.col("move") == place)]
            ]
            made = Plan(moves, data=data)
            if made.after == self.after:
                return made
        except (Exception, pl.exceptions.PanicException):  # whatever a missing or a damaged file makes of it
            pass
        raise _not_a_release(self.folder, _PLAN)


def _inside(folder: Path, name: str) -> Path:
    return folder / "confidential" / name


def _document(folder: Path, name: str) -> Any:
    raw = read_bytes(_inside(folder, name), _WHAT)
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise _not_a_release(folder, name) from None


def _not_a_release(folder: Path, name: str) -> InputError:
    return InputError(
        f"{str(_inside(folder, name))!r} is missing, damaged, or not what a release writes. Name the folder of an "
        "earlier release as it was written, with its confidential folder."
    )


def earlier_releases(
    owner: str, after: str | Path | Sequence[str | Path], asked: Sequence[Asked]
) -> tuple[Earlier, ...]:
    """Read the earlier releases that are named, and those in the folders that the policies name, each once."""
    found = {folder.resolve(): Earlier.read(folder) for folder in _named(owner, after)}
    for each in asked:
        for folder in _registered(each):
            if folder.resolve() not in found:
                found[folder.resolve()] = Earlier.read(folder)
    return tuple(found.values())


def _named(owner: str, after: object) -> list[Path]:
    listed = list(cast("Iterable[object]", after)) if several(after) else [after]
    for folder in listed:
        if not isinstance(folder, str | Path):
            raise bad_parameter(owner, "after", "a folder, or a list of folders", folder)
    return [Path(cast("str | Path", folder)) for folder in listed]


def _registered(asked: Asked) -> list[Path]:
    """Return the releases in the folder that a policy names; a relative name starts from the policy file."""
    policy = asked.policy
    if policy.earlier is None:
        return []
    folder = (policy.path.parent if policy.path else Path()) / policy.earlier
    try:
        with os.scandir(folder) as entries:
            inside = sorted(Path(entry.path) for entry in entries if entry.is_dir())
        return [each for each in inside if (each / "confidential").is_dir()]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not the name of a folder"
        raise InputError(
            f"The policy {policy.name!r} keeps earlier releases in {str(folder)!r}, which cannot be read: {reason}. "
            "Make the folder, or correct [release] earlier."
        ) from None


def check_apart(out: Path, known: Sequence[Earlier]) -> None:
    """Refuse to write where an earlier release lies: what tells of it would be lost."""
    for each in known:
        if out.resolve() in (each.folder.resolve(), *each.folder.resolve().parents):
            raise OutputError(f"An earlier release lies in {str(each.folder)!r}. Write the new one to another folder.")


class Aligned(NamedTuple):
    """What several releases tell where their rows can be matched, counted in records."""

    records: int
    releases: int
    alone: int
    """As in the original in the last release alone."""
    restored: int
    """As in the original when every variable takes its most frequent value, of equals the first."""
    changed: int
    """Changed by the last release."""
    shown: int
    """Of those, how many have other values in another release, so that a comparison shows them."""


def compare_aligned(data: Data, plans: Sequence[Plan]) -> Aligned:
    """Count what the releases of these plans tell together, where their rows can be matched.

    >>> import quadrille as qd
    >>> from quadrille.release.earlier import compare_aligned
    >>> data = qd.datasets.cps8d()
    >>> plans = [qd.RandomSwap(["Edu", "MS"], rate=0.10, seed=seed).plan(data) for seed in (1, 2, 3)]
    >>> found = compare_aligned(data, plans)
    >>> round(found.alone / found.records, 4), round(found.restored / found.records, 4)
    (0.9, 0.973)
    >>> found.changed, found.shown
    (4884, 4881)
    """
    rows = np.unique(np.concatenate([plan.rows for plan in plans]))
    restored, changed, differ = np.ones(len(rows), bool), np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    swapped = [plan.apply(data) for plan in plans]
    for name in dict.fromkeys(name for plan in plans for name in plan.columns):
        true = data[name].values[rows]
        seen = np.stack([each[name].values[rows] for each in swapped])
        votes = np.stack([_alike(seen, mine).sum(axis=0) for mine in seen])
        restored &= _alike(seen[votes.argmax(axis=0), np.arange(len(rows))], true)
        changed |= ~_alike(seen[-1], true)
        differ |= votes[-1] < len(plans)
    moved = int(changed.sum())
    same, back = data.n - moved, data.n - len(rows) + int(restored.sum())
    return Aligned(data.n, len(plans), same, back, moved, int((changed & differ).sum()))


def _alike(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Compare values; a missing number is like another."""
    equal = one == other
    return equal if one.dtype.kind != "f" else equal | (np.isnan(one) & np.isnan(other))


@dataclass(frozen=True, repr=False)
class Again(Shown):
    """A release of data that were released before: the earlier one that it repeats, or those that differ."""

    repeats: Earlier | None
    others: tuple[Earlier, ...] = ()
    aligned: Aligned | None = None
    crossed: Crossed | None = None

    def text(self) -> str:
        """Say what it means, in one paragraph."""
        if self.repeats is not None:
            return (
                f"These data were released before, in {str(self.repeats.folder)!r}, by the same plan: "
                "this release repeats it and tells nothing new."
            )
        assert self.aligned is not None
        found, folders = self.aligned, ", ".join(repr(str(each.folder)) for each in self.others)
        return (
            f"These data were released before by another plan, in {folders}. Where rows can be matched, "
            f"{found.releases} releases together show {_share(found.shown, found.changed)} of the records that this "
            f"one changes and restore {_share(found.restored, found.records)} of all records "
            f"({_share(found.alone, found.records)} are true in this one alone). Where they cannot, the mean of their "
            f"tables can still be nearer to the original.{self._told()} To repeat the earlier plan instead, use its "
            f"recipe: --recipe {quote(str(self.others[-1].recipe))}"
        )

    def _told(self) -> str:
        """Say which small cells the tables tell together."""
        if self.crossed is None or not self.crossed.told:
            return ""
        told = self.crossed
        return (
            f" Of the table of all key variables {numbers.counted(told.told, 'cell is', 'cells are')} large in one of "
            f"them and not in another: {numbers.count(told.right)} of these were small before, which is "
            f"{_share(told.right, told.small)} of all small cells, and {numbers.count(told.unique)} a single record."
        )

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "repeats": None if self.repeats is None else str(self.repeats.folder),
            "others": [str(each.folder) for each in self.others],
            "aligned": None if self.aligned is None else self.aligned._asdict(),
            "crossed": None if self.crossed is None else self.crossed._asdict(),
        }


def _share(part: int, whole: int) -> str:
    return numbers.share(part / whole if whole else None)


def released_again(data: Data, plan: Plan, known: Sequence[Earlier], n: int = 3) -> Again | None:
    """Compare a release with the earlier ones of the same data; None where there is none.

    Cells of the key variables with fewer than n records are small.
    """
    same_data = [each for each in known if each.before == data.fingerprint]
    if not same_data:
        return None
    repeated = next((each for each in same_data if each.after == plan.after), None)
    if repeated is not None:
        return Again(repeated)
    others = tuple({each.after: each for each in same_data}.values())
    plans = [*(each.plan(data) for each in others), plan]
    files = [each.apply(data) for each in plans]
    keys = [name for name in data.keys if data[name].variable.coded]
    return Again(None, others, compare_aligned(data, plans), crossed(data, files, keys, n) if keys else None)


LEDGER = "guarantee.json"
"""The file in `confidential/` that keeps what was promised, and the epsilons of all releases of the same data."""

KEPT_ORDER = "the public rows stand in the order of the original, and the guarantee is for a file without row order"


@dataclass(frozen=True)
class Entry:
    """One release of the data: which recipe, with its seed, made it (a hash), its epsilon, and why it has none."""

    recipe: str
    epsilon: float
    void: tuple[str, ...]


@dataclass(frozen=True)
class Promise:
    """The guarantee of a release, and the releases of the same data that it adds to, its own the last."""

    guarantee: Guarantee
    releases: tuple[Entry, ...]

    def as_dict(self, data: Data) -> dict[str, object]:
        """Return plain values for the ledger."""
        listed = [{"recipe": each.recipe, "epsilon": each.epsilon, "void": list(each.void)} for each in self.releases]
        return {"data": data.fingerprint, "releases": listed, "guarantee": self.guarantee.as_dict()}


def promise_of(
    data: Data, recipe: Recipe, known: Sequence[Earlier], asked: Sequence[Asked], *, shuffle: bool
) -> Promise | None:
    """Work out what a release promises, before it is drawn; None where the method has no guarantee."""
    if not isinstance(recipe, PrivateSwap):
        return None
    found = recipe.guarantee(data)
    before: dict[str, Entry] = {}
    lost: list[str] = []
    for each in known:
        if each.before == data.fingerprint:
            entries = _ledger(each.folder)
            before |= {entry.recipe: entry for entry in entries}
            if not entries or any(entry.void for entry in entries):
                lost.append(
                    f"an earlier release of the same data, in {str(each.folder)!r}, has no guarantee, so both together "
                    "have none"
                )
    own = sha256(recipe.to_json().encode()).hexdigest()
    repeated = before.pop(own, None)
    void = [reason for reason in found.void if reason != GIVEN_SEED or repeated is None]  # the same draw tells nothing
    void += [] if shuffle else [KEPT_ORDER]
    void += [text for each in asked if (text := _judges_draw(each.policy))]
    total = found.epsilon + sum(entry.epsilon for entry in before.values())
    made = replace(found, void=(*void, *lost), total=total, releases=len(before) + 1)
    return Promise(made, (*before.values(), Entry(own, found.epsilon, made.void)))


def _judges_draw(policy: Policy) -> str:
    """Say which rules of a policy look at the draw: one that fails is drawn again, and so the release is picked."""
    rules = [required.rule for required in policy.measures]
    rules += ["[published]"] if policy.published is not None else []
    rules += [f"[swap] {name}" for name in ("rate", "changed") if getattr(policy, name) is not None]
    if not rules:
        return ""
    listed = ", ".join(rules[:4]) + (f" and {len(rules) - 4} more" if len(rules) > 4 else "")
    return (
        f"the policy {policy.name!r} judges the draw ({listed}), so one that fails would be drawn again: the release "
        "is picked among draws. Limit max_epsilon in the policy, and judge designs by what is predicted"
    )


def _ledger(folder: Path) -> tuple[Entry, ...]:
    """Read the releases that an earlier one knows of; none where it has no guarantee at all."""
    path = folder / "confidential" / LEDGER
    if not path.exists():
        return ()
    try:
        listed: list[Any] = json.loads(read_bytes(path, "the earlier release"))["releases"]
        return tuple(
            Entry(str(each["recipe"]), float(each["epsilon"]), tuple(map(str, each["void"]))) for each in listed
        )
    except (ValueError, RecursionError, KeyError, TypeError):
        raise InputError(
            f"{str(path)!r} is damaged, or not what a release writes. Name the folder of an earlier release as it was "
            "written, with its confidential folder."
        ) from None
