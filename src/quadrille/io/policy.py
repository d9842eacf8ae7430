"""The policy of an agency: the rules that a release must keep, apart from what an analyst sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from quadrille.errors import bad_parameter

Outcome = Literal["pass", "review", "fail"]


@dataclass(frozen=True)
class Limit:
    """The least and the most that a value may be; within `margin`, a share of the limit, a person must look.

    >>> from quadrille.io.policy import Limit
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
        from quadrille.io.policy_file import read_policy

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
