"""Judging a release by the rules of a policy, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from quadrille.account import Account
from quadrille.data import Data
from quadrille.errors import QuadrilleError
from quadrille.io.markdown import value_text
from quadrille.io.policy import Limit, Outcome, Policy, Required
from quadrille.io.policy_source import Asked
from quadrille.io.seed_patterns import pattern_of
from quadrille.io.verdict import Judged, Line, Verdict
from quadrille.measure_base import Call, Measure
from quadrille.plan import Plan
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe
from quadrille.study.axes import beside_the_n_rule
from quadrille.study.score import Scores, score


@dataclass(frozen=True)
class Case:
    """What a policy judges: a release that is worked out and not yet written."""

    data: Data
    recipe: Recipe
    plan: Plan
    account: Account
    scores: Scores
    cannot: Mapping[str, str]
    public: Sequence[str]
    format: str
    shuffled: bool
    publish_f: bool
    warnings: Sequence[str]


def scored(data: Data, plan: Plan, wanted: Sequence[str], asked: Sequence[Asked]) -> tuple[Scores, dict[str, str]]:
    """Score what the analyst and the policies ask for; of the policies' measures, say which cannot be computed."""
    required = beside_the_n_rule(list(dict.fromkeys(name for each in asked for name in each.policy.addresses)))
    if not wanted and not required:
        return Scores({}), {}
    try:
        return score(data, plan, list(dict.fromkeys((*wanted, *required)))), {}
    except QuadrilleError:
        results = dict(score(data, plan, wanted).results) if wanted else {}
        cannot: dict[str, str] = {}
        for address in required:
            try:
                results |= score(data, plan, [address]).results
            except QuadrilleError as error:
                cannot[address] = str(error)
        return Scores(results), cannot


def judge(asked: Sequence[Asked], case: Case) -> Verdict:
    """Judge a release by every rule of every policy."""
    return Verdict(tuple(_judged(each.policy, case, machine=each.machine) for each in asked))


def _judged(policy: Policy, case: Case, *, machine: bool) -> Judged:
    lines = [
        *_swap_lines(policy, case),
        *_release_lines(policy, case),
        *(_measured(required, case) for required in policy.measures),
        *_warned(policy.warnings, case.warnings),
    ]
    file = None if policy.path is None else policy.path.name
    return Judged(policy.name, file, policy.sha256, machine, tuple(lines))


def _swap_lines(policy: Policy, case: Case) -> list[Line]:
    """Judge method, rates, variables and seed."""
    lines: list[Line] = []
    if policy.methods:
        method = type(case.recipe).__name__
        lines.append(_either("[swap] methods", ", ".join(policy.methods), method, method in policy.methods))
    if policy.rate is not None:
        lines.append(_rate(policy.rate, case.account))
    if policy.changed is not None:
        share = case.account.changed / case.account.n
        found = _of_all(case.account.changed, case.account.n)
        lines.append(Line("[swap] changed", f"{policy.changed} of all records", found, policy.changed.judge(share)))
    if policy.never_swapped:
        lines.append(_never("[swap] never", policy.never_swapped, case.plan.columns, case.data.columns, "swapped"))
    if policy.secret_seeds:
        lines.append(_seed(case.recipe))
    return lines


def _release_lines(policy: Policy, case: Case) -> list[Line]:
    """Judge what the public file holds and how it is written."""
    lines: list[Line] = []
    if policy.never_released:
        lines.append(_never("[release] never", policy.never_released, case.public, case.public, "released"))
    if policy.shuffled:
        found = "random order" if case.shuffled else "original order"
        lines.append(_either("[release] shuffle", "rows in random order", found, case.shuffled))
    if not policy.publish_f:
        found = "published" if case.publish_f else "not published"
        lines.append(_either("[release] publish_f", "f is not published", found, not case.publish_f))
    if policy.formats:
        allowed = case.format in policy.formats
        lines.append(_either("[release] formats", ", ".join(policy.formats), case.format, allowed))
    return lines


def _either(rule: str, asked: str, found: str, kept: bool) -> Line:
    return Line(rule, asked, found, "pass" if kept else "fail")


def _rate(limit: Limit, account: Account) -> Line:
    """Judge the share of records that take part; a limit is rounded to whole pairs, as the rate of a recipe is."""

    def whole(share: float) -> int:
        return 2 * int(share * account.n / 2 + 0.5)

    low = limit.least is None or account.records >= min(whole(limit.least), limit.least * account.n)
    high = limit.most is None or account.records <= max(whole(limit.most), limit.most * account.n)
    found = _of_all(account.records, account.n)
    return _either("[swap] rate", f"{limit} of all records", found, low and high)


def _of_all(count: int, n: int) -> str:
    return f"{count / n:.6g} ({count:,} of {n:,})"


def _never(rule: str, never: Sequence[str], used: Sequence[str], known: Sequence[str], done: str) -> Line:
    """Judge columns that must not be used; a name that differs in case only may be meant, so a person looks."""
    asked = f"{', '.join(never)} not {done}"
    bad = [name for name in never if name in used]
    if bad:
        return Line(rule, asked, f"{', '.join(bad)} {done}", "fail")
    folded = {name.strip().casefold(): name for name in used}
    alike = [(name, folded[key]) for name in never if name not in known and (key := name.strip().casefold()) in folded]
    if alike:
        told = "; ".join(f"the file has {other!r}, the policy names {name!r}" for name, other in alike)
        return Line(rule, asked, f"{', '.join(other for _, other in alike)} {done}", "review", told)
    return Line(rule, asked, f"none of them {done}", "pass")


def _seed(recipe: Recipe) -> Line:
    rule, asked, seed = "[swap] seeds", "a secret of 256 bits", recipe.parameters()["seed"]
    if not is_secret(seed):
        return Line(rule, asked, "a number that can be guessed", "fail")
    if pattern := pattern_of(str(seed)):
        return Line(rule, asked, "a text that is not random", "fail", f"it has {pattern}")
    return Line(rule, asked, "64 digits, no pattern", "pass")


def _measured(required: Required, case: Case) -> Line:
    """Judge a measure: by its size where it is signed; a person looks where it is undefined, also in part."""
    rule, limit = required.rule, required.limit
    if required.address in case.cannot:
        return Line(rule, str(limit), "cannot be computed", "fail", case.cannot[required.address])
    kind, found = case.scores.results[required.address]
    harmless = _harmless(kind, required, case)
    if found.value is None or isnan(found.value):
        if harmless:
            return Line(rule, str(limit), "no small cell", "pass", f"{found.note}: there is nothing to identify")
        return Line(rule, str(limit), "undefined", "review", found.note)
    signed = kind.direction == "nearer 0"
    outcome = limit.judge(abs(found.value) if signed else found.value)
    asked = f"{limit} in size" if signed and not limit.open else str(limit)
    missing = sum(value is None for value in found.parts.values())
    why = _why(limit, outcome)
    if outcome == "pass" and missing and not harmless:
        outcome, why = "review", f"{missing} of {len(found.parts)} tables or models behind it are undefined"
    return Line(rule, asked, value_text(found.value), outcome, why)


def _harmless(kind: Measure, required: Required, case: Case) -> bool:
    """Tell whether an undefined value is the best there is: `confidence` lacks one where no small cell is released.

    A least value, no limit at all, or a condition that no record meets is another matter: a person looks.
    """
    if kind.name != "confidence" or required.limit.least is not None or required.limit.most is None:
        return False
    where = Call.parse(required.address).where
    return where is None or bool(where.met(case.data).any())


def _why(limit: Limit, outcome: Outcome) -> str:
    if outcome != "review":
        return ""
    return "no limit is set" if limit.open else f"within {limit.margin:.0%} of the limit"


def _warned(outcome: Outcome, warnings: Sequence[str]) -> list[Line]:
    """Turn what the release warns of into lines."""
    asked = {"review": "a person reads each", "fail": "none", "pass": "any"}[outcome]
    if not warnings:
        return [Line("[release] warnings", asked, "none", "pass")]
    return [Line("[release] warnings", asked, "a warning", outcome, text) for text in warnings]
