"""The policy of an agency: the rules that a release must keep, apart from what an analyst sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["pass", "review", "fail"]


@dataclass(frozen=True)
class Limit:
    """The least and the most that a value may be; within `margin`, a share of the limit, a person must look.

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


@dataclass(frozen=True)
class Policy:
    """The rules of a policy file; what it does not mention is None or empty, and is not checked.

    Example
    -------
    >>> import quadrille as qd, tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "policy.toml"
    >>> _ = path.write_text('''
    ... [swap]
    ... seeds = "secret"
    ... [measures]
    ... hellinger = {most = 0.05}
    ... ''')
    >>> qd.Policy.read(path).measures
    (Required(section='measures', address='hellinger', limit=Limit(least=None, most=0.05, margin=0.0)),)
    """

    path: Path
    sha256: str
    name: str
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

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """Read a policy file and check it; the first fault is told with its place."""
        from quadrille.io.policy_file import read_policy

        return read_policy(Path(path))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The measures to score, each once."""
        return tuple(dict.fromkeys(each.address for each in self.measures))


def as_policy(given: Policy | str | Path) -> Policy:
    """Return a policy, read from its file where a path is given."""
    return given if isinstance(given, Policy) else Policy.read(given)
