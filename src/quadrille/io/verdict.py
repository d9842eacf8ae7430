"""What a policy says to a release, line by line: pass, fail, or review by a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from quadrille.errors import QuadrilleError
from quadrille.io.markdown import table
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
class Verdict:
    """What a policy says to a release. It holds the limits of the policy, so it is confidential."""

    policy: str
    file: str
    sha256: str
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

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "policy": self.policy,
            "file": self.file,
            "sha256": self.sha256,
            "verdict": self.outcome,
            "lines": [asdict(line) for line in self.lines],
        }


class PolicyError(QuadrilleError):
    """A release fails the policy of the agency; `verdict` has the lines. Nothing was written."""

    def __init__(self, verdict: Verdict) -> None:
        failed = verdict.having("fail")
        told = "; ".join(f"{line.rule} (asked {line.asked}, found {line.found})" for line in failed[:3])
        more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
        super().__init__(f"The release fails the policy {verdict.policy!r}: {told}{more}. Nothing was written.")
        self.verdict = verdict

    def __reduce__(self) -> tuple[object, ...]:
        return (PolicyError, (self.verdict,))


def policy_section(verdict: Verdict | None) -> dict[str, list[str]]:
    """Return what the dossier tells of the policy; nothing when there is none."""
    if verdict is None:
        return {}
    rows = [(line.verdict, line.rule, line.asked, line.found, line.why) for line in verdict.lines]
    head = [
        f"- Policy: {verdict.policy} (`{verdict.file}`)",
        f"- SHA-256 of the policy file: `{verdict.sha256}`",
        f"- Verdict: **{verdict.summary()}**",
        "",
    ]
    return {"Policy": [*head, *table(("verdict", "rule", "asked", "found", "why"), rows)]}
