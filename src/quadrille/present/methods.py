"""What each method says of its own: a promise, households at risk, ranks and correlations, cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from quadrille.present.blocks import Alert, Block, Facts, Pairs, Table, Text, Title, facts, table
from quadrille.present.numbers import NONE, count, counted, epsilon, fixed, odds, score, share, statistic
from quadrille.present.words import listed

if TYPE_CHECKING:
    from quadrille.swap.private import Guarantee


OF_RANKS = ("kernel", "ranks")
OF_CYCLES = ("flagged", "set_aside", "borrowed", "cycles")
_FEW_CHANGE = 0.5


def rank_blocks(details: Mapping[str, object]) -> list[Block]:
    """Return the ranks of each variable, and what is to be said about missing and equal values; else nothing."""
    if "ranks" not in details:
        return []
    rows = cast("Sequence[Mapping[str, Any]]", details["ranks"])
    return [_rank_table(rows), *(Text(text) for row in rows if (text := _remark(row)))]


def _rank_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    head = ("variable", "window", "ranks", "left over", "expected", "ranks corr.", "values corr.")
    lines = [
        (
            str(row["variable"]),
            _reach(row),
            count(row.get("ranked")),
            count(row.get("left_over")),
            fixed(row.get("rank_correlation_expected"), 4),
            fixed(row.get("rank_correlation"), 4),
            fixed(row["correlation"], 4),
        )
        for row in rows
    ]
    caption = "Correlation with the original: expected of the ranks, and as drawn of ranks and of values"
    return table(head, lines, caption=caption, numbers=range(2, len(head)))


def _reach(row: Mapping[str, Any], unknown: str = "no bound") -> str:
    """Say how far the ranks of a variable may move."""
    if row.get("moves_with"):
        return f"with {row['moves_with']}"
    window = row.get("window")
    if row.get("width") is not None:
        return f"{share(window)}: {counted(row['width'], 'rank')}"
    return unknown if window is None else share(window)


def _remark(row: Mapping[str, Any]) -> str:
    """Say what is peculiar about the ranks of a variable."""
    said: list[str] = []
    if row.get("missing"):
        said.append(f"{counted(row['missing'], 'value is', 'values are')} missing: without a rank, they stay.")
    if row.get("without_window"):
        said.append(
            f"{counted(row['without_window'], 'record is', 'records are')} in classes too small for the window."
        )
    if row.get("in_tails"):
        said.append(f"{counted(row['in_tails'], 'record is', 'records are')} in the tails.")
    if row["changed"] and (ties := _ties({"changing": row.get("pairs_that_change_expected"), **row}, name=False)):
        said.append(ties)
    return f"{row['variable']}: {' '.join(said)}" if said else ""


def _ties(row: Mapping[str, Any], *, name: bool = True) -> str:
    """Say how many pairs change anything, where these are few because values are equal."""
    changing = row.get("changing")
    if changing is None or changing >= _FEW_CHANGE:
        return ""
    half = row["window_for_half"]
    wider = (
        "no window up to a quarter of the ranks would change half of them"
        if half is None
        else f"at a window of {share(half, digits=2)} half of them would"
    )
    said = f"many values are equal: about {share(changing, digits=3)} of the pairs change anything; {wider}."
    more = ' With differ="any" all do.'
    return f"{row['variable']}: {said}{more}" if name else said.capitalize() + more


def expected_ranks(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Return what is known of ranks and correlations before any draw, as `theory.expected_ranks` has it."""
    head = ("variable", "window", "ranks", "missing", "correlation", "f", "pairs changing")
    lines = [
        (
            str(row["variable"]),
            f"with {row['moves_with']}" if row["moves_with"] else _reach(row, unknown="found by trial"),
            count(row["ranked"]),
            count(row["missing"]),
            fixed(row["correlation"], 6),
            fixed(row["f"], 6),
            NONE if row["changing"] is None else share(row["changing"], digits=3),
        )
        for row in rows
    ]
    caption = "Ranks before and after, as expected"
    shown = table(head, lines, caption=caption, numbers=range(2, len(head)))
    return [Title("What is expected"), shown, Text(_EXPECTED), *(Text(text) for row in rows if (text := _ties(row)))]


_EXPECTED = (
    "The correlation of a swapped variable with one that stays falls by the factor f = 1 - correlation, where its "
    "regression on the ranks is linear. Without a number there is no closed form."
)


def cycle_facts(details: Mapping[str, object]) -> Pairs:
    """Return how flagged units moved in cycles, and why some did not; nothing for other methods."""
    if "cycles" not in details:
        return ()
    known = cast("Mapping[str, Any]", details)
    what = known["what"]
    lengths = ", ".join(f"{count(number)} of {length}" for length, number in known["cycles"].items())
    aside = ", ".join(f"{reason}: {count(number)}" for reason, number in known["set_aside"].items() if number)
    lines = [
        ("flagged", f"{counted(known['flagged'], what)} in {counted(known['cells'], 'key cell')}"),
        ("cycles", f"{count(sum(known['cycles'].values()))} ({lengths})" if lengths else "none"),
        (
            "moved",
            f"{counted(known['moved_in_cycles'], what)} in cycles, {count(known['borrowed'])} by a borrowed partner",
        ),
    ]
    left = known["left"]
    if aside:
        lines.append(("set aside", f"{aside}; {count(left)} left where they were"))
    return tuple(lines)


OF_TARGETED = frozenset(
    (
        *("households", "level_names", "at_risk", "treated", "pairs_by_phase", "pairs_by_profile", "pairs_crossing"),
        *("set_aside", "areas_exhausted", "wanted_of_exhausted", "areas"),
    )
)
"""The details of a plan that have words here."""


def targeted(details: Mapping[str, object]) -> list[Block]:
    """Return the outcome of a targeted swap; nothing for other methods.

    >>> import quadrille as qd
    >>> from quadrille.present.methods import targeted
    >>> data = qd.datasets.census(500)
    >>> plan = qd.TargetedSwap(["gender"], similar=[["hsize"]], levels=["nuts1"], rate=0.1, seed=1).plan(data)
    >>> targeted(plan.details.facts)[0], len(targeted({}))
    (Title(text='Households at risk'), 0)
    """
    if "pairs_crossing" not in details:
        return []
    known = cast("Mapping[str, Any]", details)
    profiles = [_profiles(known)] if len(known["pairs_by_profile"]) > 1 else []
    return [
        Title("Households at risk"),
        _in_words(known),
        _levels(known),
        _phases(known),
        *profiles,
        _areas(known),
    ]


def _in_words(known: Mapping[str, Any]) -> Facts:
    treated, n = known["treated"], known["households"]
    at_risk = treated["at_risk"]
    return facts(
        [
            ("who", known["who"]),
            ("at risk", f"{count(at_risk)} of {count(n)} households ({share(at_risk / n)})"),
            (
                "of them",
                f"{count(treated['across'])} moved across their level, {count(treated['not_across'])} moved but not "
                f"across it, {count(treated['left'])} left",
            ),
            *(("left", f"{counted(number, 'household')}: {reason}") for reason, number in treated["reasons"].items()),
            ("bystanders", f"{counted(treated['bystanders'], 'household')} not at risk moved"),
            *_unserved(known),
        ]
    )


def _unserved(known: Mapping[str, Any]) -> Pairs:
    """Say what of the quotas could not be had."""
    aside, areas = known["set_aside"], known["areas_exhausted"]
    rows: list[tuple[str, str]] = []
    if aside:
        rows.append(("set aside", f"{counted(aside, 'household')} drawn for a quota found no partner"))
    if areas:
        wanted = known["wanted_of_exhausted"]
        rows.append(("exhausted", f"{counted(areas, 'area')} had nobody left to draw, {count(wanted)} short of quota"))
    return tuple(rows)


def _levels(known: Mapping[str, Any]) -> Table:
    crossing = {row["level"]: row for row in known["pairs_crossing"]}
    rows = [
        (
            row["level"],
            *(count(row[name]) for name in ("before", "after", "in_place")),
            count(crossing[row["level"]]["units"]),
        )
        for row in known["at_risk"]
    ]
    head = ("level", "at risk before", "after", "in place", "households moved")
    caption = (
        "By level: households at risk there and at no coarser one, before and after the swap; those that did not leave "
        "their area; and households by the coarsest level that they crossed"
    )
    return table(head, rows, caption=caption, numbers=range(1, 5))


def _phases(known: Mapping[str, Any]) -> Table:
    rows = [
        (row["phase"], row["level"], count(row["pairs"]), count(row["both_at_risk"])) for row in known["pairs_by_phase"]
    ]
    return table(
        ("drawn for", "level", "pairs", "both at risk"), rows, caption="Pairs by what they are for", numbers=(2, 3)
    )


def _profiles(known: Mapping[str, Any]) -> Table:
    rows = [(row["profile"], count(row["pairs"])) for row in known["pairs_by_profile"]]
    return table(("profile", "pairs"), rows, caption="Pairs by the profile on which they agree", numbers=(1,))


def _areas(known: Mapping[str, Any]) -> Table:
    lowest = known["level_names"][-1]
    rows = [
        (
            row["of"],
            *((share if row["of"] == "share" else statistic)(row[name]) for name in ("least", "median", "most")),
        )
        for row in known["areas"]
    ]
    caption = f"Areas of {lowest}: households, what the quota gives them, how many take part"
    return table(("per area", "least", "median", "most"), rows, caption=caption, numbers=(1, 2, 3))


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


_OWN_CHANCES = (
    "With a chance of its own for each stratum the same epsilon costs less, because small strata are left alone: next "
    "to nobody moves there, and what they show is published nearly as it is."
)


def curve_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Return what each epsilon costs: records moved and loss, with one chance and with own chances."""
    lines = [(epsilon(row["epsilon"]), row["design"], share(row["moved"]), score(row["loss"])) for row in rows]
    head = ("epsilon", "design", "moved", f"{rows[0]['measure']}, predicted")
    listed = table(head, lines, caption="What an epsilon costs", numbers=(0, 2, 3), whole=(0, 2, 3))
    blocks: list[Block] = [listed, Text(_OWN_CHANCES)]
    lacking = [row["reason"].rstrip(".") for row in rows if row["loss"] is None]
    if not lacking:
        return blocks
    what = "None of the losses is" if len(lacking) == len(rows) else f"{count(len(lacking))} of the losses are not"
    other = "In Python another loss can be named: `theory.epsilon_curve(data, recipe, loss=...)`."
    return [*blocks, Text(f"{what} predicted: {lacking[0]}. {other}")]
