"""Targeted swapping: whole units, such as households, that are at risk exchange their places with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, ClassVar, Literal

from quadrille.data import Data
from quadrille.errors import ParameterError, infeasible
from quadrille.params import (
    SEED,
    ColumnName,
    Columns,
    Count,
    Flag,
    Losses,
    Number,
    Profiles,
    RuleList,
    Share,
    Word,
    WordOrCount,
)
from quadrille.plan import Move, Plan
from quadrille.randomness import Seed, Stream
from quadrille.recipe import Movement, Prepared, Recipe, refuse_overlap, require_one
from quadrille.swap.targeted.draw import Draw, loss_tables, outcome
from quadrille.swap.targeted.problem import OWNER, moved_columns, problem_of
from quadrille.swap.targeted.risk import units_of


@dataclass(frozen=True)
class TargetedSwap(Recipe):
    """Exchange the places of whole households, above all of those at risk, between areas.

    A household is at risk at a level of geography when a member's combination of the risk variables has a count below k
    in its area. It exchanges its areas with a similar household from outside, drawn in proportion to risk; a rate adds
    pairs until every area has had its share.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.island()
    >>> recipe = qd.TargetedSwap(["birth", "age"], similar=[["hh_size", "tenure"], ["hh_size"]], rate=0.05, seed=7)
    >>> plan = recipe.plan(data)
    >>> plan.columns, len(plan.unit_pairs)
    (('region', 'district', 'parish', 'ward'), 469)
    >>> plan.details.facts["treated"]
    {'at_risk': 646, 'across': 646, 'not_across': 0, 'left': 0, 'reasons': {}, 'bystanders': 292}

    Reference: Eurostat, Guidelines for Statistical Disclosure Control Methods Applied on Geo-Referenced Data and
    Harmonised Protection of Census Data; ONS, Statistical Disclosure Control for the 2011 UK Census.
    """

    always_moves: ClassVar[str] = "all levels of geography"

    risk: Annotated[
        Sequence[str],
        Columns("categorical columns of persons: a combination with a count below k in an area is at risk"),
    ] = ()
    _: KW_ONLY
    similar: Annotated[
        Sequence[Sequence[str]],
        Profiles(
            "profiles on which partners agree, in order of preference: lists of columns of whole households. An empty "
            "one fits everybody. With the size in every profile the persons of each area stay as many as they are"
        ),
    ]
    k: Annotated[int, Count("at risk is a combination with a count below k; nobody with k = 1")] = 3
    rate: Annotated[
        float | str,
        Share(
            "share of the households that take part, both partners counted, or a column of area rates",
            within="[0, 1]",
            unit="share of the households",
            or_column=True,
            steers=True,
        ),
    ] = 0.0
    levels: Annotated[
        Sequence[str],
        Columns("levels of geography that count, the coarsest first; all levels travel", otherwise="all"),
    ] = ()
    unit: Annotated[
        str | None,
        ColumnName(
            "the number of the household",
            otherwise="the column with the role unit; without one every record",
            option="household",
        ),
    ] = None
    carry: Annotated[
        Sequence[str], Columns("further columns of whole households that travel with the geography", moves=True)
    ] = ()
    mode: Annotated[
        Literal["floor", "cap"],
        Word("floor or cap. Floor: all at risk are swapped, the rate only adds; cap: never more than the rate"),
    ] = "floor"
    quota: Annotated[
        Literal["area", "initiated"],
        Word("area or initiated. Every lowest area gets its share of units taking part, or of pairs begun there"),
    ] = "area"
    donors: Annotated[
        Literal["risk", "at-risk-first"],
        Word("risk or at-risk-first. Partners in proportion to risk, or others only where none at risk is left"),
    ] = "risk"
    near: Annotated[
        Literal["any", "parent", "loss"] | int,
        WordOrCount(
            words=("any", "parent", "loss"),
            help="any, parent, a number or loss. Partners from anywhere outside; crossing as few levels as possible; "
            "among so many nearest on either side along the map; or, of some drawn in proportion to risk, the one that "
            "changes the tables of 'loss' least",
        ),
    ] = "any"
    retry: Annotated[bool, Flag("try those without a partner again at finer levels")] = True
    scores: Annotated[
        Sequence[str],
        Columns("numeric columns with the risk at each level, the coarsest first, instead of 'risk'", steers=True),
    ] = ()
    threshold: Annotated[float | None, Number("at risk is a score above it", otherwise="0")] = None
    loss: Annotated[
        str | Mapping[str, float] | None,
        Losses(
            'measures that near="loss" keeps low, each with its margin, and how much each counts',
            otherwise="none",
            option="keep-low",
        ),
    ] = field(default=None, hash=False)
    donors_drawn: Annotated[int, Count('donors drawn for a household, of which near="loss" takes one')] = 10
    never: Annotated[str | None, ColumnName("true or false: households of such members take no part", steers=True)] = (
        None
    )
    rules: Annotated[
        Sequence[str],
        RuleList('no record may come to meet it: "tenure=farm & area=centre"', option="rule"),
    ] = ()
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def check(self) -> None:
        """Refuse parameters that do not go together."""
        require_one(self, risk="columns to count combinations of", scores="a column of risk per level")
        if self.threshold is not None and not self.scores:
            raise ParameterError(f"The 'threshold' parameter of {OWNER} is for 'scores'. With 'risk', give 'k'.")
        if (self.near == "loss") != bool(self.loss):
            raise ParameterError(
                f"The 'loss' parameter of {OWNER} names the tables that near=\"loss\" keeps low. Give both, or neither."
            )
        refuse_overlap(
            self,
            (("carry", "risk"), ("carry", "scores"), ("carry", "levels"), ("carry", "rate")),
            "What moves with the household cannot say who is at risk or how much of an area is swapped, and all levels "
            "of geography travel.",
        )

    def prepare(self, data: Data) -> Prepared:
        """Find the areas, the households and who is at risk, and sort all by profile along the map."""
        problem = problem_of(self, data)
        draw = Draw(problem, loss_tables(problem))
        units = None if problem.unit is None else problem.units

        def plan(stream: Stream) -> Plan:
            drawn = draw.draw(stream)
            if not len(drawn.pairs):
                raise infeasible(
                    f"{OWNER} found no partner for any household: nobody alike lives in another area. Give a further "
                    "profile in 'similar' with fewer columns, such as [] for anybody, or relax the rules.",
                    max(1, problem.quota.pairs),
                    0,
                    exact=True,
                )
            move = Move.exchange(problem.columns, drawn.pairs, units)
            return Plan(
                [move],
                data=data,
                asked=problem.quota.pairs,
                details=outcome(problem, drawn),
                steering_columns=self.steering_columns,
            )

        return Prepared(plan)

    def movement(self, data: Data) -> Movement:
        """Return all levels of geography and what is carried along; partners agree on what all profiles have.

        >>> import quadrille as qd
        >>> recipe = qd.TargetedSwap(["birth"], similar=[["hh_size", "hh_type"], ["hh_size"]])
        >>> found = recipe.movement(qd.datasets.island())
        >>> found.together, found.same, found.unit
        ((('region', 'district', 'parish', 'ward'),), ('hh_size',), 'household')
        """
        same = [name for name in self.similar[0] if all(name in profile for profile in self.similar)]
        return Movement((moved_columns(self, data),), tuple(same), unit=units_of(data, self.unit, OWNER)[1])
