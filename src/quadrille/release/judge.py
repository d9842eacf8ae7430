"""Judging a release by the rules of a policy: the verdict line by line, and seeds with a pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from math import comb, isnan

from quadrille.data import Data
from quadrille.delta import PlanReport
from quadrille.errors import QuadrilleError
from quadrille.measure import beside_the_n_rule
from quadrille.measure.base import Address, Measure
from quadrille.plan import Plan
from quadrille.present import numbers
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe, half_up
from quadrille.release.earlier import Again
from quadrille.release.policy import PUBLISHED_LIMITS, Asked, Limit, Outcome, Policy, Published, Required
from quadrille.score.evaluator import Scores, score
from quadrille.score.published import Names, TableChange, table_changes, table_name
from quadrille.swap.private import Guarantee
from quadrille.text import Shown

_FEWEST_DIGITS = 9
_FEWEST_BYTES = 16
_EQUAL_STEPS = 14
_LARGEST_LAG = 32
_CHANCE = 1e-15
_PRINTABLE = range(0x20, 0x7F)


def pattern_of(seed: str) -> str:
    """Say which pattern a seed of 64 hexadecimal digits has; nothing when it has none.

    Of 64 random digits, the chance of each pattern is at most

    - fewer than 9 different digits: C(16, 8) (8/16)^64, that is 7e-16;
    - fewer than 16 different bytes among the 32: C(256, 15) (15/256)^32, that is 2.5e-16;
    - no letter among the digits: (10/16)^64, that is 9e-14;
    - 32 printable characters, which are a text written as hexadecimal digits: (95/256)^32, that is 2e-14;
    - 15 digits in a row with one and the same step from digit to digit, modulo 16, as in 000... or 0123...:
      50 places times 16 steps times 16^-14, that is 1e-14;
    - one and the same difference, modulo 16, between too many of the digits that are 1, 2, ... or 32 places apart (a
      difference of 0 is a period), or too many of the digits the same when read from the end. The differences at one
      distance are independent and uniform, so their number has a binomial distribution; it is too large where the
      chance is at most 1e-15 for all 16 differences together. 33 such tests: 3.3e-14.

    Together less than 1.6e-13: of six million million seeds from the operating system, about one is refused.

    >>> from quadrille.release.judge import pattern_of
    >>> pattern_of("0123456789abcdef" * 4)
    'fewer than 16 different bytes'
    >>> pattern_of("8d0f6c2b91e47a53d85b1f09c7e2643aa1f7309bde58c4621b0e97f4538acd26")
    ''
    """
    digits, raw = [int(digit, 16) for digit in seed], bytes.fromhex(seed)
    if len(set(digits)) < _FEWEST_DIGITS:
        return f"fewer than {_FEWEST_DIGITS} different digits"
    if len(set(raw)) < _FEWEST_BYTES:
        return f"fewer than {_FEWEST_BYTES} different bytes"
    if seed.isdecimal():
        return "no letter among the digits"
    if all(byte in _PRINTABLE for byte in raw):
        return "a text written as hexadecimal digits"
    if _longest_run(digits) >= _EQUAL_STEPS:
        return f"a run of {_EQUAL_STEPS + 1} digits or more"
    return _repetition(digits)


def _longest_run(digits: list[int]) -> int:
    """Return the length of the longest run of equal steps."""
    longest = length = 0
    previous = None
    for a, b in pairwise(digits):
        step = (b - a) % 16
        length = length + 1 if step == previous else 1
        longest, previous = max(longest, length), step
    return longest


def _repetition(digits: list[int]) -> str:
    """Say at which distance digits differ by the same too often."""
    for lag in range(1, _LARGEST_LAG + 1):
        steps = Counter((b - a) % 16 for a, b in zip(digits, digits[lag:], strict=False))
        if max(steps.values()) >= too_many(len(digits) - lag):
            return f"digits that repeat, or go on alike, every {lag} places"
    half = len(digits) // 2
    mirrored = sum(a == b for a, b in zip(digits[:half], reversed(digits), strict=False))
    return "digits that read the same from the end" if mirrored >= too_many(half) else ""


@cache
def too_many(places: int) -> int:
    """Return the least number of equal differences, of `places`, that chance alone all but excludes."""
    tail, least = 0.0, places + 1
    while 16 * (tail := tail + comb(places, least - 1) * 15 ** (places - least + 1) / 16**places) <= _CHANCE:
        least -= 1
    return least


@dataclass(frozen=True, repr=False)
class Line(Shown):
    """One rule of a policy: what it asks, what was found, the verdict and, where needed, why."""

    rule: str
    asked: str
    found: str
    verdict: Outcome
    why: str = ""


def _worst(lines: Sequence[Line]) -> Outcome:
    verdicts = {line.verdict for line in lines}
    return "fail" if "fail" in verdicts else "review" if "review" in verdicts else "pass"


@dataclass(frozen=True, repr=False)
class Judged(Shown):
    """What one policy says to a release; `machine`: the machine names it, by the variable QUADRILLE_POLICY."""

    policy: str
    file: str | None
    sha256: str | None
    machine: bool
    lines: tuple[Line, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst of the lines: one that fails is enough."""
        return _worst(self.lines)

    def having(self, outcome: Outcome) -> tuple[Line, ...]:
        """Return the lines with that verdict."""
        return tuple(line for line in self.lines if line.verdict == outcome)

    def summary(self) -> str:
        """Say how many lines pass, fail and want a person."""
        counts = [f"{len(self.having(outcome))} {outcome}" for outcome in ("pass", "review", "fail")]
        return f"{self.outcome} ({', '.join(counts)})"

    def source(self) -> str:
        """Say where the policy comes from."""
        if self.file is None:
            return "not from a file: made in Python"
        return f"{self.file}, SHA-256 {self.sha256}" + (", named by QUADRILLE_POLICY" if self.machine else "")

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "policy": self.policy,
            "file": self.file,
            "sha256": self.sha256,
            "machine": self.machine,
            "verdict": self.outcome,
            "lines": [asdict(line) for line in self.lines],
        }


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """What every policy that was checked says to a release. It holds their limits, so it is confidential."""

    policies: tuple[Judged, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all policies."""
        return tuple(line for each in self.policies for line in each.lines)

    @property
    def outcome(self) -> Outcome:
        """The worst of the policies: one that fails is enough."""
        return _worst(self.lines)

    def having(self, outcome: Outcome) -> tuple[Line, ...]:
        """Return the lines with that verdict, of all policies."""
        return tuple(line for line in self.lines if line.verdict == outcome)

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {"verdict": self.outcome, "policies": [each.as_dict() for each in self.policies]}


class PolicyError(QuadrilleError):
    """A release fails a policy; `verdict` has the lines. The release was not written."""

    def __init__(self, verdict: Verdict) -> None:
        failed = " ".join(_failed(judged) for judged in verdict.policies if judged.outcome == "fail")
        super().__init__(f"{failed} The release was not written.")
        self.verdict = verdict

    def __reduce__(self) -> tuple[object, ...]:
        return (PolicyError, (self.verdict,))


def _failed(judged: Judged) -> str:
    failed = judged.having("fail")
    lines = "; ".join(f"{line.rule} (asked {line.asked}, found {line.found})" for line in failed[:3])
    more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    return f"The release fails the policy {judged.policy!r}: {lines}{more}."


@dataclass(frozen=True)
class Case:
    """What a policy judges: a release that is worked out and not yet written."""

    data: Data
    recipe: Recipe
    plan: Plan
    account: PlanReport
    scores: Scores
    cannot: Mapping[str, str]
    public: Sequence[str]
    format: str
    shuffled: bool
    publish_f: bool
    warnings: Sequence[str]
    again: Again | None = None
    tables: tuple[Names, ...] = ()
    """The published tables that the release names."""
    guarantee: Guarantee | None = None
    """What the release promises, where the method has a guarantee."""

    @property
    def moved(self) -> Sequence[str]:
        """The columns that are swapped: with a guarantee those of the design, as a draw may happen to move nothing."""
        return self.plan.columns if self.guarantee is None else self.guarantee.swap


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
        *([] if policy.published is None else _published_lines(policy.published, case)),
        *_warned(policy.warnings, case.warnings),
    ]
    file = None if policy.path is None else policy.path.name
    return Judged(policy.name, file, policy.sha256, machine, tuple(lines))


def _swap_lines(policy: Policy, case: Case) -> list[Line]:
    """Judge method, rates, variables and seed."""
    lines: list[Line] = []
    if policy.methods:
        method = case.recipe.method_name
        lines.append(_either("[swap] methods", ", ".join(policy.methods), method, method in policy.methods))
    if policy.rate is not None:
        lines.append(_rate(policy.rate, case.account))
    if policy.changed is not None:
        share = case.account.changed / case.account.n
        found = _of_all(case.account.changed, case.account.n)
        lines.append(Line("[swap] changed", f"{policy.changed} of all records", found, policy.changed.judge(share)))
    if policy.never_swapped:
        lines.append(_never("[swap] never", policy.never_swapped, case.moved, case.data.columns, "swapped"))
    if policy.secret_seeds:
        lines.append(_seed(case.recipe))
    if policy.max_epsilon is not None:
        lines.append(_epsilon(policy.max_epsilon, case.guarantee))
    if policy.require_guarantee:
        lines.append(_guaranteed(case.guarantee))
    return lines


def _epsilon(most: float, found: Guarantee | None) -> Line:
    """Judge the epsilon of all releases of the same data together."""
    rule, asked = "[swap] max_epsilon", f"at most {most:g}"
    if found is None:
        return Line(rule, asked, "no epsilon", "fail", NO_GUARANTEE)
    if not found.holds:
        return Line(rule, asked, "void", "fail", "; ".join(found.void))
    text = numbers.epsilon(found.total) + (f", of {found.releases} releases" if found.releases > 1 else "")
    return _either(rule, asked, text, found.total <= most * (1 + _ROUNDING))


def _guaranteed(found: Guarantee | None) -> Line:
    rule, asked = "[swap] require_guarantee", "a guarantee"
    if found is None:
        return Line(rule, asked, "none", "fail", NO_GUARANTEE)
    if not found.holds:
        return Line(rule, asked, "void", "fail", "; ".join(found.void))
    return Line(rule, asked, f"epsilon {numbers.epsilon(found.total)}", "pass")


NO_GUARANTEE = "only PrivateSwap promises anything for every file; what other methods do is measured"
_ROUNDING = 1e-9


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
    if policy.earlier is not None:
        lines.append(_earlier(case.again))
    return lines


def _earlier(again: Again | None) -> Line:
    """Judge whether the data went out before: the same plan again tells nothing new, for another a person looks."""
    rule, asked = "[release] earlier", "not released before, or by the same plan"
    if again is None:
        return Line(rule, asked, "not released before", "pass")
    if again.repeats is not None:
        return Line(rule, asked, "the same plan again", "pass", again.text())
    return Line(rule, asked, "released by another plan", "review", again.text())


def _either(rule: str, asked: str, found: str, kept: bool) -> Line:
    return Line(rule, asked, found, "pass" if kept else "fail")


def _rate(limit: Limit, account: PlanReport) -> Line:
    """Judge the share of records that take part, or of units where whole units move, as the rate of the recipe is.

    A limit is rounded to whole pairs, as that rate is.
    """
    part, n = (account.records, account.n) if account.units is None else (account.units.units, account.units.n)

    def whole(share: float) -> int:
        return 2 * half_up(share, n, of=2)

    low = limit.least is None or part >= min(whole(limit.least), limit.least * n)
    high = limit.most is None or part <= max(whole(limit.most), limit.most * n)
    if account.units is None:
        return _either("[swap] rate", f"{limit} of all records", _of_all(part, n), low and high)
    found = f"{_of_all(part, n)}, with {_of_all(account.records, account.n)} records"
    return _either("[swap] rate", f"{limit} of all units", found, low and high)


def _of_all(count: int, n: int) -> str:
    return f"{numbers.score(count / n)} ({count:,} of {n:,})"


def _never(rule: str, never: Sequence[str], used: Sequence[str], known: Sequence[str], done: str) -> Line:
    """Judge columns that must not be used; a name that differs in case only may be meant, so a person looks."""
    asked = f"{', '.join(never)} not {done}"
    bad = [name for name in never if name in used]
    if bad:
        return Line(rule, asked, f"{', '.join(bad)} {done}", "fail")
    folded = {name.strip().casefold(): name for name in used}
    alike = [(name, folded[key]) for name in never if name not in known and (key := name.strip().casefold()) in folded]
    if alike:
        why = "; ".join(f"the file has {other!r}, the policy names {name!r}" for name, other in alike)
        return Line(rule, asked, f"{', '.join(other for _, other in alike)} {done}", "review", why)
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
    return Line(rule, asked, numbers.score(found.value), outcome, why)


_UNITS = {"percent": " %", "points": " points", "over": " of the cells"}


def _published_lines(published: Published, case: Case) -> list[Line]:
    """Judge every published table by every limit: those of the policy, or, where it names none, of the release."""
    limits = {name: limit for name in PUBLISHED_LIMITS if (limit := getattr(published, name)) is not None}
    tables = published.tables or case.tables
    if not tables:
        why = "name the published tables in the policy, or with the release"
        return [Line("[published] tables", "the tables that are published", "none is named", "review", why)]
    lines: list[Line] = []
    for variables in tables:
        change = _table_change(published, variables, case)
        for name, limit in limits.items():
            rule = f"[published] {name}({table_name(variables)})"
            asked = str(limit) if limit.open else f"{limit}{_UNITS[name]}"
            if isinstance(change, str):
                lines.append(Line(rule, asked, "cannot be computed", "fail", change))
                continue
            value = {"percent": change.worst_percent, "points": change.worst_points, "over": change.share_over}[name]
            outcome = limit.judge(value)
            lines.append(Line(rule, asked, f"{numbers.score(value)}{_UNITS[name]}", outcome, _why(limit, outcome)))
    return lines


def _table_change(published: Published, variables: Names, case: Case) -> TableChange | str:
    """Return what the swap does to a table, or why that cannot be said."""
    noticed = asdict(published.cell_limits)
    try:
        return table_changes(case.data, case.plan, [variables], **noticed).tables[0]
    except QuadrilleError as error:
        return str(error)


def _harmless(kind: Measure, required: Required, case: Case) -> bool:
    """Tell whether an undefined value is the best there is: `confidence` lacks one where no small cell is released.

    A least value, no limit at all, or a condition that no record meets is another matter: a person looks.
    """
    if kind.name != "confidence" or required.limit.least is not None or required.limit.most is None:
        return False
    where = Address.parse(required.address).where
    return where is None or bool(where.met(case.data).any())


def _why(limit: Limit, outcome: Outcome) -> str:
    if outcome != "review":
        return ""
    return "no limit is set" if limit.open else f"within {numbers.share(limit.margin)} of the limit"


def _warned(outcome: Outcome, warnings: Sequence[str]) -> list[Line]:
    """Turn what the release warns of into lines."""
    asked = {"review": "a person reads each", "fail": "none", "pass": "any"}[outcome]
    if not warnings:
        return [Line("[release] warnings", asked, "none", "pass")]
    return [Line("[release] warnings", asked, "a warning", outcome, text) for text in warnings]
