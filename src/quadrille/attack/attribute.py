"""Attribute disclosure: what the release says of one variable to somebody who knows the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quadrille.attack.finding import Finding, Section
from quadrille.attack.input import AttackInput, Floats
from quadrille.present.numbers import count, counted, share
from quadrille.present.words import listed
from quadrille.swap.groups import Ints

NAME, TITLE = "attribute", "Inferring a value from the other keys"
_ONE_VALUE = 0.9
_ADVICE = (
    "Leave a sensitive variable out of the tables and of the loss of a designed swap, or swap it itself; coarsen keys "
    "where few share a combination."
)


@dataclass(frozen=True)
class Inferred:
    """What a release lets somebody infer of one target.

    `claims` counts the persons whose keys show one value only in the release, `right` those of them whose own it is;
    `uniques` the persons unique on the keys before, divided into those inferred right (in expectation, by picking
    a row), those still there and not inferred right, and those whose keys are gone. `own` is how common their own
    values are, added up. `new` counts the combinations of the release that nobody had before.
    """

    records: int
    claims: int
    right: int
    before: int
    by_chance: float
    claimed: float
    one_value: float
    uniques: int
    unique_right: float
    gone: int
    own: float
    own_there: float
    new: int

    @property
    def there(self) -> int:
        """Persons unique before whose keys are still in the release."""
        return self.uniques - self.gone


def attribute(given: AttackInput) -> Section:
    """Infer each target from the other keys."""
    if not given.targets:
        reason = "needs a second key, or a target= outside of the keys"
        return Section(NAME, TITLE, "There is nothing to infer a value from.", reason=reason)
    found = {name: inferred(given, name) for name in given.targets}
    findings = tuple(finding for name, each in found.items() for finding in _findings(name, each))
    uniques, gone = sum(each.uniques for each in found.values()), sum(each.gone for each in found.values())
    right = sum(each.unique_right for each in found.values())
    if len(found) > 1:
        findings += tuple(_of_uniques("all targets", list(found.values())))
    claims, true = sum(each.claims for each in found.values()), sum(each.right for each in found.values())
    story = "Nobody is alone with a combination of the other keys."
    if uniques:
        story = (
            f"Of {counted(uniques, 'case')} in which a person was alone with the other keys, {count(right)} are still "
            f"there and inferred right, {count(uniques - gone - right)} are still there and not, {count(gone)} are "
            "gone from the release: these are different persons, not one chance for all."
        )
        if not any(each.new for each in found.values()):
            story += (
                " The release has no combination of values that nobody had, so everybody who is still there is "
                "inferred right."
            )
    if claims:
        story += f" Where the release shows one value only, it is the person's own in {share(true / claims)}."
    rises = [name for name, each in found.items() if each.right > each.before]
    if rises:
        story += (
            f" Of {listed(rises)} more is inferred right than before the swap: where exceptions left, the others look "
            "alike."
        )
    return Section(NAME, TITLE, story, findings, " ".join(filter(None, (_inside(given), _ADVICE))))


def _inside(given: AttackInput) -> str:
    """Warn of targets whose association with the keys a designed swap keeps."""
    inside = [name for name in given.targets if name in given.preserved]
    if not inside:
        return ""
    verb = "is" if len(inside) == 1 else "are"
    return (
        f"{listed(inside)} {verb} inside the tables or the loss that the designed swap keeps: where it makes no new "
        "cell, whatever followed with certainty from the other variables before the swap still does."
    )


def inferred(given: AttackInput, target: str) -> Inferred:
    """Compare, over the combinations of the other keys, the values of the target before and after."""
    others = [name for name in given.keys if name != target]
    table = given.table if target in given.keys else given.table_of((*others, target))
    group, groups = table.ids(others)
    f, g = table.f, table.g
    value, values = table.ids([target])
    share_of = np.bincount(value, weights=f, minlength=values) / table.records
    rows, persons = (np.bincount(group, weights=part, minlength=groups).astype(np.float64) for part in (g, f))
    pure, was_pure = (_kinds(group, groups, part) == 1 for part in (g, f))
    claimed = pure[group] & (g > 0)
    claims = np.zeros(groups)
    claims[group[claimed]] = persons[group[claimed]]
    of_value = np.bincount(value[claimed], weights=claims[group[claimed]], minlength=values)
    total = int(of_value.sum())
    alone = (f == 1) & (persons[group] == 1)
    there = alone & (rows[group] > 0)
    return Inferred(
        records=table.records,
        claims=total,
        right=int(f[claimed].sum()),
        before=int(f[was_pure[group]].sum()),
        by_chance=_by_chance(f, share_of[value], rows[group]),
        claimed=float(of_value @ share_of),
        one_value=float(of_value.max(initial=0.0)) / total if total else 0.0,
        uniques=int(alone.sum()),
        unique_right=float((g[there] / rows[group[there]]).sum()),
        gone=int((alone & ~there).sum()),
        own=float(share_of[value[alone]].sum()),
        own_there=float(share_of[value[there]].sum()),
        new=int(((f == 0) & (g > 0)).sum()),
    )


def _kinds(group: Ints, groups: int, counts: Ints) -> Ints:
    """Return how many values of the target each combination of the others shows."""
    return np.bincount(group[counts > 0], minlength=groups)


def _by_chance(f: Ints, own: Floats, rows: Floats) -> float:
    """Return how many persons would be claimed rightly if the target were shuffled: all rows show their own value."""
    return float((f * np.where(rows > 0, own**rows, 0.0)).sum())


def _findings(target: str, found: Inferred) -> Iterator[Finding]:
    n, claims = found.records, found.claims
    yield Finding(NAME, f"{target}: attributed", found.right / n, found.before / n, found.by_chance / n, n)
    note = ""
    if claims and found.one_value > _ONE_VALUE:
        note = f"one value makes {share(found.one_value)} of the claims: guessing it is nearly as good"
    right, chance = (found.right / claims, found.claimed / claims) if claims else (None, None)
    before = 1.0 if claims else None
    yield Finding(
        NAME, f"{target}: right among claims", right, before, chance, claims, note if claims else "no claim is made"
    )
    yield from _of_uniques(target, [found])


def _of_uniques(target: str, found: Sequence[Inferred]) -> Iterator[Finding]:
    """Divide the persons who were unique on the keys into those inferred right, those not, and those gone."""
    uniques, gone, there = (sum(getattr(each, name) for each in found) for name in ("uniques", "gone", "there"))
    right, own, own_there = (
        float(sum(getattr(each, name) for each in found)) for name in ("unique_right", "own", "own_there")
    )
    label = f"{target}: alone with the other keys"
    if not uniques:
        yield Finding(NAME, f"{label}, still there and inferred right", None, count=0, note="nobody was")
        return
    yield Finding(NAME, f"{label}, still there and inferred right", right / uniques, 1.0, own / uniques, uniques)
    yield Finding(NAME, f"{label}, still there and not", (there - right) / uniques, 0.0, 1 - own / uniques, uniques)
    yield Finding(NAME, f"{label}, gone", gone / uniques, 0.0, None, uniques)
    if there:
        yield Finding(NAME, f"{label}, right among those still there", right / there, 1.0, own_there / there, there)
