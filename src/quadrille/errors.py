"""Every error a user can meet: what happened, where, what to do. Never a data value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple, TypeVar


class Place(NamedTuple):
    """Where in a file a fault is, and what is said of it there: "job.toml, [grid 2] rate: ..." is in section "grid"."""

    file: str
    section: str
    nth: int
    """Which of several sections of that name, from 1 on; 0 where there is one."""
    key: str
    text: str


class QuadrilleError(Exception):
    """Base of all errors raised on purpose; the command line turns it into exit code 2.

    Example
    -------
    >>> import quadrille as qd
    >>> try:
    ...     qd.RandomSwap(["Edu"], rate=3)
    ... except qd.QuadrilleError as error:
    ...     print(error)
    The 'rate' parameter of RandomSwap must be a number in (0, 1]. Got 3.
    """

    hint: str = ""
    """The advice that the message ends with, where it can be told from the reason."""

    place: Place | None = None
    """Where in a file it is, where that is known."""
    argument: str = ""
    """The argument that allows what is refused, where there is one; the message ends with it."""
    before_argument: str = ""

    @property
    def reason(self) -> str:
        """The message without the advice.

        >>> import quadrille as qd
        >>> try:
        ...     qd.RandomSwap(["Race"], pairs=8000, seed=1).plan(qd.datasets.cps8d())
        ... except qd.QuadrilleError as error:
        ...     print(error.reason)
        8,000 pairs cannot be drawn for swapping Race: the maximum is 7,080.
        """
        return str(self).removesuffix(self.hint).rstrip()


class ParameterError(QuadrilleError):
    """A parameter of a recipe, a measure or a function is out of its range.

    Where it is about one value: the `parameter`, what it `must` be, and the `value` that it got; else None.
    """

    parameter: str | None = None
    must: str | None = None
    value: object = None


class OverlapError(ParameterError):
    """A column has two parts in a recipe, such as swapped and kept the same; a grid leaves such combinations out."""


class InputError(QuadrilleError):
    """A file, a frame or a codebook cannot be used as it is."""


class OutputError(QuadrilleError):
    """A result cannot be written; nothing half-written is left behind."""


class MismatchError(QuadrilleError):
    """A plan or a study met data other than the data it was made for."""


class InfeasibleError(QuadrilleError):
    """More pairs were asked for than the data and the constraints allow.

    `maximum` is the largest possible number of pairs, or an upper bound of it when `exact` is False. A method that
    looks for partners one after the other gives the number it found.

    Example
    -------
    >>> import quadrille as qd
    >>> try:
    ...     qd.RandomSwap(["Race", "AnnSal"], pairs=7081, seed=1).plan(qd.datasets.cps8d())
    ... except qd.InfeasibleError as error:
    ...     print(error.asked, error.maximum)
    7081 7080
    """

    def __init__(self, asked: int, maximum: int, *, exact: bool, where: str) -> None:
        limit = f"the maximum is {maximum:,}" if exact else f"at most {maximum:,} are possible"
        self.hint = "Ask for fewer pairs or a lower rate, or relax the constraints."
        super().__init__(f"{asked:,} pairs cannot be drawn for {where}: {limit}. {self.hint}")
        self.asked = asked
        self.maximum = maximum
        self.exact = exact

    def __reduce__(self) -> tuple[object, ...]:
        return (infeasible, (self.reason, self.asked, self.maximum, self.exact, self.hint))


def infeasible(reason: str, asked: int, maximum: int, exact: bool = False, hint: str = "") -> InfeasibleError:
    """Build the error with a reason, and advice, of its own."""
    error = InfeasibleError(asked, maximum, exact=exact, where="")
    error.args, error.hint = (f"{reason} {hint}".rstrip(),), hint
    return error


def bad_parameter(owner: str, name: str, must: str, got: object) -> ParameterError:
    """Build the one form of message for a bad parameter."""
    error = ParameterError(f"The '{name}' parameter of {owner} must be {must}. Got {got!r}.")
    error.parameter, error.must, error.value = name, must, got
    return error


_E = TypeVar("_E", bound=QuadrilleError)


def unless(kind: type[_E], text: str, argument: str) -> _E:
    """Build the error for what an argument allows: the text ends with "with", as in "overwrite it with"."""
    error = kind(f"{text} {argument}=True.")
    error.before_argument, error.argument = text, argument
    return error


def unknown_name(what: str, name: str, known: Iterable[str], *, where: str = "") -> InputError:
    """Build the message for a name that does not exist, with the nearest one that does."""
    names = list(known)
    place = f" in {where}" if where else ""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5) or [
        other for other in names if other.lower() == name.lower()
    ]
    hint = f" Did you mean: {near[0]!r}?" if near else f" Known: {_listed(names)}."
    return InputError(f"There is no {what} {name!r}{place}.{hint}")


def _listed(names: list[str], most: int = 12) -> str:
    shown = ", ".join(names[:most]) or "none"
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"
