"""Controlled random swapping for weighted surveys: drawn targets, close partners (Dohrmann et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Literal

from quadrille.data import Data
from quadrille.errors import OverlapError, ParameterError
from quadrille.params import SEED, ColumnName, Columns, Flag, Links, RuleList, Share, Weights, Word
from quadrille.randomness import Seed
from quadrille.recipe import Movement, Prepared, Recipe, carried
from quadrille.swap.controlled.draw import ControlledDraw


@dataclass(frozen=True)
class ControlledSwap(Recipe):
    """Draw targets by a probability design and exchange values with close partners of similar weight.

    Cells are the observed combinations of boundary and swap variables in category order. A target looks into the
    nearest cell with a free donor on either side, takes the donor with the closest weight in each, and of the two the
    one with the smaller swapping bias |w_t - w_d| * |x_t - x_d|. A donor wanted by several goes to the smallest bias.
    Levels of geography travel together: swapping one carries the others along, but for those in `boundary`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.ControlledSwap(["Race", "Edu"], targets=0.01, boundary=["Sex"], seed=7).plan(data)
    >>> len(plan.pairs)
    488

    Reference: Dohrmann, Krenzke, Roey & Russell, Evaluating the Impact of Data Swapping Using Global Utility Measures,
    Proceedings of the Federal Committee on Statistical Methodology Research Conference, 2009.
    """

    swap: Annotated[
        Sequence[str], Columns("categorical variables; the right-most changes most often", least=1, moves=True)
    ]
    _: KW_ONLY
    targets: Annotated[
        float | str,
        Share(
            "share of records drawn as targets, or a column of it. Up to twice that share of records "
            "changes; a column is constant within stratum",
            within="[0, 0.5)",
            must="a number in [0, 0.5) or the name of a column",
            or_column=True,
            unit="share of the records",
            steers=True,
        ),
    ]
    size: Annotated[
        str | Literal[1],
        ColumnName(
            "measure of size for the draw; a column of numbers above 0, records at risk get more",
            instead=1,
            must="the name of a column, or 1 for equal sizes",
            otherwise="equal sizes",
        ),
    ] = 1
    must: Annotated[str | None, ColumnName("column that is true for records that must be targets", steers=True)] = None
    never: Annotated[
        str | None, ColumnName("column that is true for records that must not be touched", steers=True)
    ] = None
    stratum: Annotated[Sequence[str], Columns("strata of the draw of targets. Donors may come from any stratum")] = ()
    sort: Annotated[Sequence[str], Columns("order of the systematic draw within strata", otherwise="the cells")] = ()
    boundary: Annotated[Sequence[str], Columns("columns on which partners agree; never swapped")] = ()
    bias: Annotated[
        str | None,
        ColumnName("the variable x of the bias. The balanced method ignores it", otherwise="the last of swap"),
    ] = None
    linked: Annotated[
        Mapping[str, Sequence[str]] | None,
        Links(
            "columns that travel with a variable: Edu=Degree,Years. They are exchanged in pairs that differ "
            "on the swap variable",
            moves=True,
        ),
    ] = field(default=None, hash=False)
    method: Annotated[
        Literal["standard", "balanced"],
        Word(
            "standard or balanced. Balanced: groups of records, one for each swap variable, in which it is right-most",
            written="variant",
            option="variant",
        ),
    ] = "standard"
    matching: Annotated[
        Literal["greedy", "optimal"],
        Word(
            "greedy or optimal. Greedy is the published search; optimal makes most pairs, then least total cost over "
            "near donors"
        ),
    ] = "greedy"
    cost: Annotated[
        Mapping[str, float] | None,
        Weights(
            "weights of the optimal cost. A part that is left out counts 0",
            names=("distance", "weight", "bias"),
            must="like {'distance': 1, 'weight': 1, 'bias': 1}: numbers of 0 or more, not all 0",
            otherwise="1 each",
        ),
    ] = field(default=None, hash=False)
    on_missing: Annotated[
        Literal["impute", "category"],
        Word(
            "impute or category. Impute: missing swap values get a value drawn from their zone, for cells and bias "
            "only; category: missing is a category of its own, last in order"
        ),
    ] = "impute"
    rules: Annotated[
        Sequence[str],
        RuleList(
            'no pair may make a record meet it: "Age<16 & MS=Widowed". A donor with whom the target or itself would is '
            "passed over; values are judged as they are, before any imputation",
            option="rule",
        ),
    ] = ()
    strict: Annotated[
        bool,
        Flag("an error when a target has no partner. By default such a target is left as it is, listed and counted"),
    ] = False
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def check(self) -> None:
        """Refuse columns with two parts, and costs that nothing uses."""
        if self.cost is not None and self.matching != "optimal":
            raise ParameterError("The 'cost' parameter of ControlledSwap belongs to matching=\"optimal\". Set both.")
        self._refuse_overlap()

    def prepare(self, data: Data) -> Prepared:
        """Check the parameters against the data and number the cells."""
        return Prepared(ControlledDraw(self, data).draw)

    def movement(self, data: Data) -> Movement:
        """Return the swap variables, and what is linked, which stays in line with its variable.

        >>> import quadrille as qd
        >>> recipe = qd.ControlledSwap(["Edu"], targets=0.01, linked={"Edu": ["AnnSal"]})
        >>> recipe.movement(qd.datasets.cps8d())
        Movement(together=(('Edu',), ('AnnSal',)), same=(), closed=(('Edu', 'AnnSal'),), unit=None)
        """
        same = tuple(self.boundary)
        linked = {parent: (*names, *carried(data, names, same)) for parent, names in self.followers.items()}
        swapped = (*self.swap, *carried(data, self.swap, same))
        closed = tuple((parent, *names, *same) for parent, names in linked.items())
        return Movement((swapped, *linked.values()), same, closed)

    @property
    def followers(self) -> Mapping[str, Sequence[str]]:
        """The linked columns by their swap variable.

        >>> import quadrille as qd
        >>> qd.ControlledSwap(["Edu"], targets=0.01, linked={"Edu": ["AnnSal"]}).followers
        {'Edu': ('AnnSal',)}
        """
        return self.linked or {}

    def _refuse_overlap(self) -> None:
        parts: dict[str, str] = {}
        linked = {name: "linked" for followers in self.followers.values() for name in followers}
        listed = [*((n, "swap") for n in self.swap), *((n, "boundary") for n in self.boundary), *linked.items()]
        for name, part in listed:
            if name in parts:
                raise OverlapError(
                    f"Column {name!r} is in both '{parts[name]}' and '{part}' of ControlledSwap. "
                    "A column can be swapped, be a boundary or be linked, not two of these."
                )
            parts[name] = part
        steering = [(name, "targets, must or never") for name in self.steering_columns]
        for name, part in steering:
            if name in parts:
                raise OverlapError(
                    f"Column {name!r} is in both '{parts[name]}' and '{part}' of ControlledSwap. What steers the draw "
                    "is left out of the public file, so it cannot be released in another part."
                )
        for parent in self.followers:
            if parent not in self.swap:
                raise ParameterError(f"'linked' of ControlledSwap names {parent!r}, which is not a swap variable.")
        if self.must is not None and self.must == self.never:
            raise OverlapError(f"Column {self.must!r} is both 'must' and 'never' of ControlledSwap. Use two columns.")
