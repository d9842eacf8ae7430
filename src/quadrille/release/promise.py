"""What a release promises: its guarantee, why it is lost, and the ledger of epsilons of the same data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.recipe import Recipe
from quadrille.release.earlier import Earlier
from quadrille.release.policy import Asked, Policy
from quadrille.swap.private import GIVEN_SEED, Guarantee, PrivateSwap
from quadrille.text import read_bytes

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
