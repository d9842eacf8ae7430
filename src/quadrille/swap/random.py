"""Random swapping: pairs drawn at random exchange the values of the swap variables (Gomatam & Karr 2003)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import floor
from typing import Annotated, ClassVar, Literal

from quadrille.data import Data
from quadrille.errors import ParameterError, infeasible
from quadrille.expressions import Rules
from quadrille.params import SEED, Columns, Count, RuleList, Share, Word
from quadrille.plan import Details, Move, Plan
from quadrille.randomness import Seed, Stream
from quadrille.recipe import (
    Movement,
    Prepared,
    Recipe,
    carried,
    carried_fact,
    half_up,
    one_area,
    refuse_one_area,
    refuse_overlap,
    require_one,
)
from quadrille.swap.pairing import Differ, Pairing, Rule, Sampler, rules_facts


@dataclass(frozen=True)
class RandomSwap(Recipe):
    """Exchange the values of some variables between random pairs of records.

    `rate` is the share of records that take part, both partners counted: pairs = floor(rate * N / 2 + 1/2). Levels of
    geography travel together: swapping one carries the others along, but for those in `same`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.RandomSwap(["Edu"], rate=0.02, same=["Sex"], seed=7).plan(data)
    >>> len(plan.pairs)
    488

    Reference: Gomatam & Karr, Distortion Measures for Categorical Data Swapping, NISS Technical Report 131, 2003.
    """

    version: ClassVar[int] = 2
    stream_version: ClassVar[int] = 1

    swap: Annotated[Sequence[str], Columns("the variables to exchange", least=1, moves=True)]
    _: KW_ONLY
    rate: Annotated[
        float | None,
        Share("share of the records that take part; both partners are counted", unit="share of the records"),
    ] = None
    pairs: Annotated[int | None, Count("number of pairs, instead of a rate", unit="pairs")] = None
    same: Annotated[Sequence[str], Columns("columns that must agree within a pair; never swap variables")] = ()
    different: Annotated[Sequence[str], Columns("columns that must differ within a pair; never swap variables")] = ()
    differ: Annotated[
        Differ, Word("swap variables that must differ within a pair: all, any (at least one of them) or none")
    ] = "all"
    order: Annotated[
        Literal["together", "one-by-one"],
        Word(
            "together or one-by-one. Together, all swap variables move in the same pairs; one by one, each has pairs "
            "of its own, and levels of geography count as one"
        ),
    ] = "together"
    sampler: Annotated[
        Sampler,
        Word(
            "first-uniform or pair-uniform. First-uniform draws a record uniformly, then its partner uniformly; "
            "pair-uniform is uniform over pairs"
        ),
    ] = "first-uniform"
    rules: Annotated[
        Sequence[str],
        RuleList(
            'no record may come to meet it: "Age<16 & MS=Widowed". With order="one-by-one" each variable is judged '
            "on the file as those before it have left it",
            option="rule",
        ),
    ] = ()
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def check(self) -> None:
        """Refuse both or neither of rate and pairs, and columns with two parts."""
        require_one(self, rate="share of records", pairs="number of pairs")
        refuse_overlap(
            self,
            (("swap", "same"), ("swap", "different"), ("same", "different")),
            "A column can be swapped, kept the same or kept different, not two of these.",
        )

    def count(self, n: int) -> int:
        """Return the number of pairs for a file of n records.

        >>> import quadrille as qd
        >>> qd.RandomSwap(["Edu"], rate=0.02).count(48_842)
        488
        """
        if self.pairs is not None:
            return self.pairs
        assert self.rate is not None
        count = min(self._rounded(self.rate, n), n // 2)
        if count == 0:
            raise ParameterError(
                f"The 'rate' parameter of RandomSwap gives no pair at all for {n:,} records. "
                f"The smallest rate that gives one is {1 / n:.3g}."
            )
        return count

    def _rounded(self, rate: float, n: int) -> int:
        return half_up(rate, n, of=2)

    def prepare(self, data: Data) -> Prepared:
        """Sort the records by what decides whether two of them may be paired."""
        refuse_one_area(data, (*self.swap, *carried(data, self.swap, self.same)))
        count, groups = self.count(data.records), self.groups(data)
        rules = Rules.of(data, self.rules, "RandomSwap")
        along = [carried(data, group, self.same) for group in groups]
        columns = [group + more for group, more in zip(groups, along, strict=True)]
        ready = [
            None if _waits(rules, columns, i) else self._pairing(data, rules, group, columns[i])
            for i, group in enumerate(groups)
        ]

        def draw(stream: Stream) -> Plan:
            moves: list[Move] = []
            used: list[Pairing] = []
            for group, moved, prepared in zip(groups, columns, ready, strict=True):
                now = data if prepared else Plan(moves, data=data).apply(data)
                pairing = prepared or self._pairing(now, rules.on(now), group, moved)
                if not pairing.bound:
                    raise infeasible(_why_none(pairing, data, count), count, 0, exact=True)
                moves.append(Move.exchange(moved, pairing.draw(count, stream.sub(_stream(pairing)))))
                used.append(pairing)
            facts = carried_fact(sum(along, ())) | rules_facts(
                rules, [each.rule_counts for each in used if each.rule_counts]
            )
            return Plan(moves, data=data, asked=count, details=Details(facts) if facts else None)

        only = ready[0] if len(ready) == 1 else None
        return Prepared(draw, exchange=only.exchange(count, _stream(only)) if only else None)

    def _pairing(self, data: Data, rules: Rules, swap: tuple[str, ...], moved: tuple[str, ...]) -> Pairing:
        rule = Rule(swap, tuple(self.same), tuple(self.different), self.differ, str(rules.about(moved)))
        return Pairing(data, rule, self.sampler, rules, moved)

    def movement(self, data: Data) -> Movement:
        """Return the groups of variables that share their pairs, each with the levels of geography it carries.

        >>> import quadrille as qd
        >>> recipe = qd.RandomSwap(["Edu", "MS"], rate=0.02, order="one-by-one", same=["Sex"])
        >>> recipe.movement(qd.datasets.cps8d())
        Movement(together=(('Edu',), ('MS',)), same=('Sex',), closed=(), unit=None)
        """
        groups = tuple((*group, *carried(data, group, self.same)) for group in self.groups(data))
        return Movement(groups, tuple(self.same))

    def groups(self, data: Data) -> list[tuple[str, ...]]:
        """Return which swap variables share their pairs; levels of geography always do.

        >>> import quadrille as qd
        >>> recipe = qd.RandomSwap(["county", "tract", "race"], rate=0.02, order="one-by-one")
        >>> recipe.groups(qd.datasets.state(records=3_200))
        [('county', 'tract'), ('race',)]
        """
        swap, levels = tuple(self.swap), data.codebook.geography
        if self.order == "together":
            return [swap]
        together = tuple(name for name in swap if name in levels)
        return list(dict.fromkeys(together if name in together else (name,) for name in swap))


@dataclass(frozen=True)
class RandomSwapOfFloats(RandomSwap, earlier_version_of="RandomSwap"):
    """Random swapping as version 1 had it: rate * N / 2 is rounded as a float, which may fall just short of a half."""

    version: ClassVar[int] = 1

    def _rounded(self, rate: float, n: int) -> int:
        return floor(rate * n / 2 + 0.5)


def _waits(rules: Rules, columns: list[tuple[str, ...]], i: int) -> bool:
    """Tell whether a rule ties the columns of a move to those of an earlier one, which must be drawn first."""
    earlier = [name for moved in columns[:i] for name in moved]
    return bool(rules.about(columns[i]).about(earlier))


def _why_none(pairing: Pairing, data: Data, count: int) -> str:
    """Say why not a single pair can be drawn."""
    rule = pairing.rule
    for name in rule.swap if rule.differ == "all" else ():
        values = data[name].values
        if bool((values == values[0]).all()):
            if data.codebook[name].role == "geography":
                return one_area(name)
            return (
                f"{count:,} pairs cannot be drawn for {rule}: the maximum is 0, because {name!r} has the same value in "
                "every record. Leave it out of 'swap', or relax 'differ'."
            )
    if without := pairing.bound_without_rules() if pairing.rules else 0:
        return (
            f"{count:,} pairs cannot be drawn for {rule}: the maximum is 0, because the rules exclude every pair. "
            f"Without them at most {without:,} pairs are possible. Relax the rules, or swap other variables."
        )
    return (
        f"{count:,} pairs cannot be drawn for {rule}: the maximum is 0, because no two records meet the conditions. "
        "Relax 'same', 'different' or 'differ'."
    )


def _stream(pairing: Pairing) -> str:
    return "pairs " + pairing.rule.swap[0]
