"""What a private swap promises, in the words of the public note, of the dossier, of the report and of the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quadrille.present.blocks import Alert, Block, Pairs, Table, Text, Title, facts, table
from quadrille.present.numbers import count, counted, epsilon, odds, score, share, statistic
from quadrille.present.words import listed

if TYPE_CHECKING:
    from quadrille.swap.private import Guarantee

MEANINGLESS = 5
"""Beyond this epsilon (odds of 22,000) the promise by itself rules out nothing that matters."""
MOST_ROWS = 20
TITLE = "What is guaranteed"
NOTHING = "Nothing is guaranteed for this draw, and no epsilon may be published with it."


def promise(found: Guarantee) -> str:
    """Return the promise as the public note gives it: what was done, what is exact, and what the epsilon means."""
    moved, where = (
        listed([*found.swap]),
        f"Within each group of {listed([*found.within])}" if found.within else "In this file",
    )
    chance = "of its own for each group" if found.chance is None else score(found.chance)
    exact = (
        f"The table of {listed([*found.held])} and that of {listed([*found.invariants[1]])} are exact in every cell."
    )
    of_both = (
        "no release is" if found.releases == 1 else f"no {count(found.releases)} releases of these data together are"
    )
    return (
        f"{where}, {moved} {'were' if len(found.swap) > 1 else 'was'} permuted among records drawn with a chance "
        f"{chance}. {exact} For two files that agree in these tables and differ by one exchange of two records, "
        f"{of_both} more than exp(2 epsilon) = {odds(found.total_odds)} times as likely under one as under the other: "
        f"epsilon is {epsilon(found.total)} per record{_sum(found)}. This limits what the permutation adds. It "
        "does not cover what the exact tables show, and it does not hold for further releases of the same data unless "
        "their epsilons are added."
    )


def _sum(found: Guarantee) -> str:
    if found.releases == 1:
        return ""
    return f", {epsilon(found.epsilon)} of it by this release; it is about files that agree in all exact tables"


def meaning(found: Guarantee) -> str:
    """Say what the promise does not do by itself, and how often a released value is the record's own."""
    own = (
        f"A released value of {listed([*found.swap])} is the record's own with chance {share(found.own)}: because the "
        "record stayed, or because it met its like."
    )
    if found.total <= MEANINGLESS:
        return own
    return (
        f"{own} An epsilon of this kind above about {count(MEANINGLESS)} rules out nothing that matters by itself "
        "(odds of 22,000): what protects here is measured, not promised."
    )


def guarantee_facts(found: Guarantee) -> Pairs:
    """Return the numbers behind a promise: epsilon, odds, strata and who moves."""
    many = int(found.strata["count"].sum())
    strata = f"{count(many)}, the largest in which anything can change of {counted(found.largest, 'record')}"
    total = () if found.releases == 1 else ((f"of {found.releases} releases", epsilon(found.total)),)
    return (
        ("epsilon", f"{epsilon(found.epsilon)} per record, at most"),
        *total,
        ("one exchange", f"changes the chance of a release by {odds(found.exchange_odds)} times at most"),
        ("chance", "of its own in each stratum" if found.chance is None else score(found.chance)),
        ("strata", strata),
        ("alone", _of(found.singles, found, "in strata of one: published as they are")),
        ("small strata", _of(found.few, found, "in strata of 2 to 4: next to none of them move")),
        ("still", _of(found.still, found, "in strata where nothing can change")),
        (
            "moves",
            f"{share(found.moves)} of the records expected; of the stratum that moves least {share(found.least_moves)}",
        ),
        ("exact tables", "; ".join("*".join(names) for names in found.invariants)),
    )


def _of(part: int, found: Guarantee, where: str) -> str:
    return f"{count(part)} of {counted(found.records, 'record')} ({share(part / found.records)}) {where}"


def strata_table(found: Guarantee) -> Table:
    """Return the strata by their size: how many, the chance, who moves, and the epsilon of each."""
    rows = [
        (count(n), count(times), statistic(chance), statistic(moves), epsilon(loss) if chance else "0")
        for n, times, chance, moves, loss in found.strata.head(MOST_ROWS).rows()
    ]
    head = ("records", "strata", "chance", "chance to move", "epsilon")
    return table(head, rows, caption="The strata by their size", numbers=range(5), whole=range(5))


def guarantee(found: Guarantee) -> list[Block]:
    """Return what a private swap promises, or why it promises nothing."""
    more = len(found.strata) - MOST_ROWS
    blocks: list[Block] = [Title(TITLE)]
    if not found.holds:
        blocks.append(Alert(NOTHING, "The reasons: " + "; ".join(found.void) + "."))
        blocks.append(Text("Of the design, if it is drawn once with a secret seed:"))
    blocks += [facts(guarantee_facts(found)), strata_table(found)]
    if more > 0:
        blocks.append(Text(f"{count(more)} more sizes are left out here; `guarantee.strata` and --json have all."))
    return [*blocks, *([Text(promise(found))] if found.holds else []), Text(meaning(found))]


def curve_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Return what each epsilon costs: records moved and loss, with one chance and with own chances."""
    lines = [(epsilon(row["epsilon"]), row["design"], share(row["moved"]), score(row["loss"])) for row in rows]
    head = ("epsilon", "design", "moved", f"{rows[0]['measure']}, predicted")
    listed = table(head, lines, caption="What an epsilon costs", numbers=(0, 2, 3), whole=(0, 2, 3))
    lacking = [row["reason"].rstrip(".") for row in rows if row["loss"] is None]
    if not lacking:
        return [listed]
    what = "None of the losses is" if len(lacking) == len(rows) else f"{count(len(lacking))} of the losses are not"
    other = "In Python another loss can be named: `theory.epsilon_curve(data, recipe, loss=...)`."
    return [listed, Text(f"{what} predicted: {lacking[0]}. {other}")]
