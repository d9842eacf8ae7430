"""Attribute disclosure: what the release says of one variable to somebody who knows the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import AttackInput, Finding, KeyTable, Section, guessing_fit, standard_error, surest
from quadrille.data import Floats, Ints
from quadrille.present.numbers import count, counted, share
from quadrille.present.words import listed

NAME, TITLE = "attribute", "Inferring a value from the other keys"
_ONE_VALUE = 0.9
_MOST_SURE, _FEWEST_CLAIMS = 50, 20
_NO_DIFFERENCE = 1e-6
IN_ALL = "right in all cases, guessing for the gone"
_ADVICE = (
    "Leave a sensitive variable out of the tables and of the loss of a designed swap, or swap it itself; coarsen keys "
    "where few share a combination."
)


Booleans = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Inferred:
    """What a release lets somebody infer of one target.

    `claims` counts the persons whose keys show one value only in the release, `right` those of them whose own it is;
    `uniques` the persons unique on the keys before, divided into those inferred right (in expectation, by picking
    a row), those still there and not inferred right, and those whose keys are gone. `own_there` is how common the own
    values of those still there are, added up. `guess` and `sure` tell, of everyone who is gone, whether the likeliest
    value of a fit to the release is their own, and how likely the fit calls it; `common` counts the persons whose own
    value is the commonest, `common_gone` those of them who are gone. `new` counts the combinations of the release that
    nobody had before. Claim by claim, `claimed_of` are the persons it is made of, `claimed_right` those of them it is
    right of, `claim_sure` is how likely the fit calls it, and `claim_share` how common the claimed value is.
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
    own_there: float
    guess: Booleans
    sure: Floats
    common: int
    common_gone: int
    new: int
    claimed_of: Ints
    claimed_right: Ints
    claim_sure: Floats
    claim_share: Floats

    @property
    def there(self) -> int:
        """Persons unique before whose keys are still in the release."""
        return self.uniques - self.gone


def attribute(given: AttackInput) -> Section:
    """Infer each target from the other keys."""
    if not given.targets:
        reason = "needs a second key, or a target= outside of the keys"
        return Section(NAME, TITLE, "There is nothing to infer a value from.", reason=reason)
    fitted = guessing_fit(given.table)
    found = {name: inferred(given, name, fitted) for name in given.targets}
    findings = tuple(finding for name, each in found.items() for finding in _findings(name, each))
    uniques, gone = sum(each.uniques for each in found.values()), sum(each.gone for each in found.values())
    right = sum(each.unique_right for each in found.values())
    if len(found) > 1:
        findings += tuple(_of_uniques("all targets", list(found.values())))
    findings += tuple(_surest_guesses(list(found.values())))
    by_certainty = tuple(_claims_by_certainty(list(found.values())))
    findings += by_certainty
    claims, true = sum(each.claims for each in found.values()), sum(each.right for each in found.values())
    story = "Nobody is alone with a combination of the other keys."
    if uniques:
        story = (
            f"Of {counted(uniques, 'case')} in which a person was alone with the other keys, {count(right)} are still "
            f"there and inferred right, {count(uniques - gone - right)} are still there and not, {count(gone)} are "
            "gone from the release: these are different persons, not one chance for all."
            f"{_guessed(list(found.values()))}"
        )
        if not any(each.new for each in found.values()):
            story += (
                " The release has no combination of values that nobody had, so everybody who is still there is "
                "inferred right."
            )
    if claims:
        story += f" Where the release shows one value only, it is the person's own in {share(true / claims)}."
    if by_certainty:
        sure, doubtful = by_certainty
        story += (
            f" That is no doubt that all claims share: of the half of which a fit to the release is surest, "
            f"{share(sure.value)} are right, of the tenth of which it is least sure {share(doubtful.value)}."
        )
    rises = [name for name, each in found.items() if each.right > each.before]
    if rises:
        story += (
            f" Of {listed(rises)} more is inferred right than before the swap: where exceptions left, the others look "
            "alike."
        )
    return Section(NAME, TITLE, story, findings, " ".join(filter(None, (_inside(given), _ADVICE))))


def _guessed(found: Sequence[Inferred]) -> str:
    """Say what a guess makes of those who are gone."""
    gone, uniques = sum(each.gone for each in found), sum(each.uniques for each in found)
    if not gone:
        return ""
    guessed = sum(int(each.guess.sum()) for each in found)
    right = sum(each.unique_right for each in found) + guessed
    common = sum(each.common for each in found)
    return (
        f" Of the gone, a fit to the release guesses {count(guessed)} right, so that somebody who wants a value of "
        f"everyone is right in {share(right / uniques)}; who says the commonest value of all, in "
        f"{share(common / uniques)}."
    )


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


def inferred(given: AttackInput, target: str, fitted: Floats | None) -> Inferred:
    """Compare, over the combinations of the other keys, the values of the target before and after.

    `fitted` is the fit of the released table of the keys.
    """
    others = [name for name in given.keys if name != target]
    table = given.table
    if target not in given.keys:
        table = given.table_of((*others, target))
        fitted = guessing_fit(table)
    group, groups = table.ids(others)
    f, g = table.f, table.g
    value, values = table.ids([target])
    share_of = np.bincount(value, weights=f, minlength=values) / table.records
    rows, persons = (np.bincount(group, weights=part, minlength=groups).astype(np.float64) for part in (g, f))
    pure, was_pure = (_kinds(group, groups, part) == 1 for part in (g, f))
    claimed = pure[group] & (g > 0)
    made = np.flatnonzero(claimed & (persons[group] > 0))
    claims = np.zeros(groups)
    claims[group[claimed]] = persons[group[claimed]]
    of_value = np.bincount(value[claimed], weights=claims[group[claimed]], minlength=values)
    total = int(of_value.sum())
    alone = (f == 1) & (persons[group] == 1)
    there = alone & (rows[group] > 0)
    gone = np.flatnonzero(alone & ~there)
    own, common = table.codes[table.names.index(target)], _commonest(table, target)
    guess, sure = _guesses(table, target, fitted, gone)
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
        gone=len(gone),
        own_there=float(share_of[value[there]].sum()),
        guess=guess == own[gone],
        sure=sure,
        common=int((own[alone] == common).sum()),
        common_gone=int((own[gone] == common).sum()),
        new=int(((f == 0) & (g > 0)).sum()),
        claimed_of=persons[group[made]].astype(np.int64),
        claimed_right=f[made],
        claim_sure=_sure_of(table, target, fitted, made),
        claim_share=share_of[value[made]],
    )


def _commonest(table: KeyTable, target: str) -> int:
    """Return the code of the target's commonest value in the release."""
    return int(np.bincount(table.codes[table.names.index(target)], weights=table.g).argmax())


def _guesses(table: KeyTable, target: str, fitted: Floats | None, cells: Ints) -> tuple[Ints, Floats]:
    """Guess the target where no row has the other keys: its likeliest value by the fit, and how likely that is.

    Where the fit expects nobody, or there is none, the guess is the commonest value.
    """
    place = table.names.index(target)
    if fitted is None:
        return np.full(len(cells), _commonest(table, target)), np.zeros(len(cells))
    where = tuple(np.delete(table.codes, place, axis=0)[:, cells])
    expected = np.moveaxis(fitted, place, -1)[where]
    total = expected.sum(axis=1)
    guess = np.where(total > 0, expected.argmax(axis=1), _commonest(table, target))
    return guess, np.divide(expected.max(axis=1), total, out=np.zeros(len(cells)), where=total > 0)


def _sure_of(table: KeyTable, target: str, fitted: Floats | None, cells: Ints) -> Floats:
    """Return how likely the fit calls the target's value in each of some cells, given the other keys there."""
    if fitted is None:
        return np.zeros(len(cells))
    place = table.names.index(target)
    total = fitted.sum(axis=place)[tuple(np.delete(table.codes, place, axis=0)[:, cells])]
    return np.divide(fitted[tuple(table.codes[:, cells])], total, out=np.zeros(len(cells)), where=total > 0)


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
        note = f"one value makes {share(found.one_value)} of the claims: of hardly anybody another is claimed"
    right, chance = (found.right / claims, found.claimed / claims) if claims else (None, None)
    before = 1.0 if claims else None
    yield Finding(
        NAME, f"{target}: right among claims", right, before, chance, claims, note if claims else "no claim is made"
    )
    yield from _of_uniques(target, [found])


_BY_FIT = "guessed by a fit to the release; by chance, the commonest value for everyone"


def _of_uniques(target: str, found: Sequence[Inferred]) -> Iterator[Finding]:
    """Divide the persons who were unique on the keys into those inferred right, those not, and those gone."""

    def total(name: str) -> float:
        return float(sum(getattr(each, name) for each in found))

    uniques, gone, there = (int(total(name)) for name in ("uniques", "gone", "there"))
    right, own_there = total("unique_right"), total("own_there")
    label = f"{target}: alone with the other keys"
    if not uniques:
        yield Finding(NAME, f"{label}, still there and inferred right", None, count=0, note="nobody was")
        return
    yield Finding(NAME, f"{label}, still there and inferred right", right / uniques, 1.0, own_there / uniques, uniques)
    by_chance = (there - own_there) / uniques
    yield Finding(NAME, f"{label}, still there and not", (there - right) / uniques, 0.0, by_chance, uniques)
    yield Finding(NAME, f"{label}, gone", gone / uniques, 0.0, None, uniques)
    if there:
        yield Finding(NAME, f"{label}, right among those still there", right / there, 1.0, own_there / there, there)
    guessed = float(sum(each.guess.sum() for each in found))
    if gone:
        by_chance = total("common_gone") / gone
        yield Finding(NAME, f"{label}, gone: guessed right", guessed / gone, None, by_chance, gone, _BY_FIT)
    all_right = (right + guessed) / uniques
    yield Finding(NAME, f"{label}, {IN_ALL}", all_right, 1.0, total("common") / uniques, uniques, _BY_FIT)


def _surest_guesses(found: Sequence[Inferred]) -> Iterator[Finding]:
    """Of all who are gone, take those of whom the fit is surest."""
    guess, sure = np.concatenate([each.guess for each in found]), np.concatenate([each.sure for each in found])
    top = min(_MOST_SURE, len(guess))
    if not top:
        return
    best, by_chance = surest(sure, guess, top), sum(each.common_gone for each in found) / len(guess)
    yield Finding(NAME, f"gone: the {top} surest guesses right", best, None, by_chance, top, standard_error(best, top))


def _claims_by_certainty(found: Sequence[Inferred]) -> Iterator[Finding]:
    """Sort all claims by how likely a fit to the release calls them: what is sure, and what is doubtful, of them."""
    sure, common = (np.concatenate([getattr(each, name) for each in found]) for name in ("claim_sure", "claim_share"))
    persons, right = (
        np.concatenate([getattr(each, name) for each in found]) for name in ("claimed_of", "claimed_right")
    )
    total = int(persons.sum())
    if total < _FEWEST_CLAIMS or np.ptp(sure) < _NO_DIFFERENCE:
        return  # too few to be sorted, no fit, or one that calls all of them as likely
    order = np.argsort(-sure, kind="stable")
    half, most = (int(np.searchsorted(np.cumsum(persons[order]), part * total)) + 1 for part in (0.5, 0.9))
    note = f"sorted by a fit to the release; of all claims {share(int(right.sum()) / total)} are right"
    for which, part in (("surest half", order[:half]), ("least sure tenth", order[most:])):
        of = int(persons[part].sum())
        made = float(right[part].sum()), float(persons[part] @ common[part])
        value, chance = (each / of for each in made) if of else (None, None)
        yield Finding(NAME, f"claims of one value, the {which}: right", value, 1.0, chance, of, note)
