"""What a policy says to a release, line by line: pass, fail, or review by a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from quadrille.errors import QuadrilleError
from quadrille.io.markdown import plain, table
from quadrille.io.policy import Outcome


@dataclass(frozen=True)
class Line:
    """One rule of a policy: what it asks, what was found, the verdict and, where needed, why."""

    rule: str
    asked: str
    found: str
    verdict: Outcome
    why: str = ""


@dataclass(frozen=True)
class Judged:
    """What one policy says to a release; `machine`: the machine names it, by the variable QUADRILLE_POLICY."""

    policy: str
    file: str | None
    sha256: str | None
    machine: bool
    lines: tuple[Line, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst of the lines: one that fails is enough."""
        found = {line.verdict for line in self.lines}
        return "fail" if "fail" in found else "review" if "review" in found else "pass"

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


@dataclass(frozen=True)
class Verdict:
    """What every policy that was checked says to a release. It holds their limits, so it is confidential."""

    policies: tuple[Judged, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all policies."""
        return tuple(line for each in self.policies for line in each.lines)

    @property
    def outcome(self) -> Outcome:
        """The worst of the policies: one that fails is enough."""
        found = {each.outcome for each in self.policies}
        return "fail" if "fail" in found else "review" if "review" in found else "pass"

    def having(self, outcome: Outcome) -> tuple[Line, ...]:
        """Return the lines with that verdict, of all policies."""
        return tuple(line for line in self.lines if line.verdict == outcome)

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {"verdict": self.outcome, "policies": [each.as_dict() for each in self.policies]}


class PolicyError(QuadrilleError):
    """A release fails a policy; `verdict` has the lines. The release was not written."""

    def __init__(self, verdict: Verdict) -> None:
        told = " ".join(_failed(each) for each in verdict.policies if each.outcome == "fail")
        super().__init__(f"{told} The release was not written.")
        self.verdict = verdict

    def __reduce__(self) -> tuple[object, ...]:
        return (PolicyError, (self.verdict,))


def _failed(judged: Judged) -> str:
    failed = judged.having("fail")
    told = "; ".join(f"{line.rule} (asked {line.asked}, found {line.found})" for line in failed[:3])
    more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    return f"The release fails the policy {judged.policy!r}: {told}{more}."


def policy_section(verdict: Verdict | None) -> dict[str, list[str]]:
    """Return what the dossier tells of the policies; nothing when there is none."""
    if verdict is None:
        return {}
    return {"Policy": [line for each in verdict.policies for line in [*_judged_section(each), ""]][:-1]}


def _judged_section(judged: Judged) -> list[str]:
    rows = [(line.verdict, line.rule, line.asked, line.found, line.why) for line in judged.lines]
    file = "not from a file: made in Python" if judged.file is None else f"`{judged.file}`"
    return [
        f"- Policy: {plain(judged.policy)} ({file})",
        f"- SHA-256 of the policy file: {'none' if judged.sha256 is None else f'`{judged.sha256}`'}",
        f"- Named by the machine (QUADRILLE_POLICY): {'yes' if judged.machine else 'no'}",
        f"- Verdict: **{judged.summary()}**",
        "",
        *table(("verdict", "rule", "asked", "found", "why"), rows),
    ]
