"""Rank swapping: values are exchanged between records of similar rank (Moore 1996)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, ClassVar, Literal

from quadrille.data import Data
from quadrille.errors import ParameterError, bad_parameter
from quadrille.params import SEED, Columns, Count, Flag, Number, RuleList, Share, Word, as_float
from quadrille.randomness import Seed
from quadrille.recipe import Movement, Prepared, Recipe, refuse_overlap
from quadrille.swap.rank.draw import Kernel, RankDraw, Tails

_OWNER = "RankSwap"
_WISHES = ("window", "correlation", "r0", "k0")


@dataclass(frozen=True)
class NoPercentage(Share):
    """A share that others write as a percentage: the message says what it would be as a share."""

    def check(self, owner: str, parameter: str, value: object) -> object:
        """Refuse what is no share, and suggest one for a percentage."""
        number = as_float(value)
        if 1 < number <= 100:
            must = f"a share in {self.within}, never a percentage: {number / 100:g}?"
            raise bad_parameter(owner, parameter, must, value)
        return super().check(owner, parameter, value)


@dataclass(frozen=True)
class RankSwap(Recipe):
    """Exchange the values of numbers, or of ordered categories, between records whose ranks are close.

    With m values in ascending order, equal ones in random order, each rank that is still free exchanges its value with
    one drawn uniformly from the free ranks among the next w = floor(window m). Missing values have no rank and stay.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.adult()
    >>> plan = qd.RankSwap(["age", "hours-per-week"], window=0.05, seed=7).plan(data)
    >>> [move.columns for move in plan.moves]
    [('age',), ('hours-per-week',)]
    >>> qd.RankSwap(["age"], window=5)
    Traceback (most recent call last):
    quadrille.errors.ParameterError: The 'window' parameter of RankSwap must be a share in (0, 1], never a ...

    Reference: Moore, Controlled Data-Swapping Techniques for Masking Public Use Microdata Sets, US Bureau of the
    Census, 1996.
    """

    partners_alike: ClassVar[bool] = True

    swap: Annotated[
        Sequence[str], Columns("numeric or ordinal variables to exchange, each by its own ranks", least=1, moves=True)
    ]
    _: KW_ONLY
    window: Annotated[
        float | None,
        NoPercentage("how far ranks may move: a share of the ranked records of a class", unit="share of the ranks"),
    ] = None
    correlation: Annotated[
        float | None,
        Share(
            "correlation of original and swapped values that is wanted, instead of a window. The window is found by "
            "trial draws, for each variable its own",
            within="(0, 1)",
        ),
    ] = None
    r0: Annotated[
        float | None,
        Share("instead of a window, the wanted correlation by a formula for evenly spread values", within="(0, 1)"),
    ] = None
    k0: Annotated[
        float | None,
        Number("instead of a window, the wanted relative change of means of subsets, by a formula", within="(0, inf)"),
    ] = None
    kernel: Annotated[
        Kernel,
        Word(
            "window, buckets or normal. Window: uniform within the window; buckets: a later one of equal buckets, each "
            "half as likely as the one before; normal: a normal distance, of mean and deviation half a window. Only "
            "window has a bound"
        ),
    ] = "window"
    buckets: Annotated[
        int | None, Count('number of buckets of kernel="buckets", at most one for each rank', unit="buckets")
    ] = None
    together: Annotated[
        bool,
        Flag("ranks by the first variable, and all that are listed move in the same pairs", option="move-together"),
    ] = False
    within: Annotated[
        Sequence[str],
        Columns("classes within which to rank and to swap; a missing value is a class of its own"),
    ] = ()
    tails: Annotated[
        Tails,
        Word(
            "swap, leave or shuffle: the outcome for the lowest and the highest ranks. Shuffle: each tail is permuted "
            "at random"
        ),
    ] = "swap"
    tail: Annotated[float, Share("share of the ranks in each tail", within="[0, 0.5]", unit="share of the ranks")] = 0.0
    weighted: Annotated[bool, Flag("the window is a share of the weight instead of the records")] = False
    differ: Annotated[Literal["any", "none"], Word("whether partners must hold different values: any or none")] = "none"
    rules: Annotated[
        Sequence[str],
        RuleList(
            'no record may come to meet it: "age<15 & income>0". Each variable is judged on the file as those before '
            "it have left it",
            option="rule",
        ),
    ] = ()
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def check(self) -> None:
        """Refuse parameters that do not go together."""
        wishes = [name for name in _WISHES if getattr(self, name) is not None]
        if self.kernel == "buckets":
            if self.buckets is None or wishes:
                raise ParameterError(
                    f"{_OWNER} with kernel=\"buckets\" needs the number of 'buckets', and no other measure of how far "
                    f"to swap. Got {_listed(wishes + ['buckets'] * (self.buckets is not None))}."
                )
        elif self.buckets is not None:
            raise ParameterError(f"The 'buckets' parameter of {_OWNER} belongs to kernel=\"buckets\". Set both.")
        elif self.kernel == "normal" and wishes != ["window"]:
            raise ParameterError(f"{_OWNER} with kernel=\"normal\" needs a 'window' alone. Got {_listed(wishes)}.")
        elif len(wishes) != 1:
            raise ParameterError(
                f"{_OWNER} needs exactly one of 'window' (share of the ranks), 'correlation', 'r0' and 'k0'. "
                f"Got {_listed(wishes)}."
            )
        self._check_tails()
        if self.weighted and (self.kernel != "window" or self.window is None):
            raise ParameterError(
                f"The 'weighted' parameter of {_OWNER} measures a 'window' of kernel=\"window\" in weight. Give one, "
                "or leave it out."
            )
        refuse_overlap(self, (("swap", "within"),), "A column that moves cannot bound the classes.")

    def _check_tails(self) -> None:
        if (self.tails == "swap") != (self.tail == 0):
            raise ParameterError(
                f'The \'tail\' parameter of {_OWNER} is the share of the ranks that tails="leave" and tails="shuffle" '
                "are about. Give both, or neither."
            )
        if self.tails == "shuffle" and (self.differ == "any" or self.rules):
            other = 'differ="any"' if self.differ == "any" else "'rules'"
            raise ParameterError(
                f'{_OWNER} with tails="shuffle" permutes the tails at random, which {other} does not allow. '
                'Use tails="leave", or leave one of them out.'
            )

    def prepare(self, data: Data) -> Prepared:
        """Sort the values of each variable within its classes."""
        return Prepared(RankDraw(self, data).draw)

    def movement(self, data: Data) -> Movement:
        """Return the variables that share their pairs: each by itself, or all together.

        >>> import quadrille as qd
        >>> recipe = qd.RankSwap(["age", "capital-gain"], window=0.05, together=True, within=["sex"])
        >>> recipe.movement(qd.datasets.adult())
        Movement(together=(('age', 'capital-gain'),), same=('sex',), closed=(), unit=None)
        """
        return Movement(self.groups, tuple(self.within))

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The variables that share their pairs; ranks are those of the first of a group.

        >>> import quadrille as qd
        >>> qd.RankSwap(["age", "capital-gain"], window=0.05).groups
        (('age',), ('capital-gain',))
        """
        return (tuple(self.swap),) if self.together else tuple((name,) for name in self.swap)

    def radius(self, data: Data) -> Mapping[str, float]:
        """Return how far the ranks of each variable move, as a share of the file, as somebody knows who has the recipe.

        With kernel="window" no rank moves farther; for the other kernels it is the distance that most moves keep to.
        Nothing is said where it depends on the seed (correlation), on weights or on classes.

        >>> import quadrille as qd
        >>> dict(qd.RankSwap(["age", "capital-gain"], window=0.05).radius(qd.datasets.adult()))
        {'age': 0.05, 'capital-gain': 0.05}
        """
        if self.correlation is not None or self.weighted or self.within:
            return {}
        if self.buckets is not None:
            return {group[0]: 1 / self.buckets for group in self.groups}
        reach = self.tail if self.tails == "shuffle" else 0.0
        windows = RankDraw(self, data).windows()
        return {name: max(window, reach) for name, window in windows.items()}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in names) or "none of them"
