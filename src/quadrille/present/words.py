"""Designs, methods and findings in words; what each method says of its own: a promise, those at risk, ranks, cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from quadrille.measure import measure_of
from quadrille.present import Alert, Block, Facts, Pairs, Table, Text, Title, facts, table
from quadrille.present.numbers import (
    NONE,
    count,
    counted,
    duration,
    epsilon,
    fixed,
    odds,
    pace,
    ratio,
    score,
    share,
    statistic,
)

if TYPE_CHECKING:
    from quadrille.study.forecast import Forecast
    from quadrille.swap.private import Guarantee


NOT_PROTECTED = "What swapping does not protect against"
LIMITS = (
    "Records that are not swapped stand in the release as they were. A variable that identifies a person by itself "
    "still does.",
    "Variables that are not key variables do not count in the risks. If an intruder knows one of them, there are more "
    "small cells than are counted here.",
    "Rare categories and extreme numbers are known to exist, because every margin is exact; only in which record is "
    "uncertain.",
    "Somebody who knows much about a person can notice that a record fits, or that it does not.",
    "Attributes shared by a group: when all records of a large cell have the same value of a sensitive variable, "
    "anyone known to be in the cell is known to have it, whatever the size of the cell.",
    "A second release of the same data by another recipe can be compared with this one. Release once.",
    "Tables of the original published elsewhere can show, next to the release, where records were swapped.",
    "The seed, the plan, the study and the confidential reports undo or weaken the protection when they leak. They "
    "stay confidential after the release.",
    "No formal guarantee such as differential privacy is given. The risks are measured for the intruder described "
    "here, not bounded for every intruder.",
)
_EXACT_TABLES = (
    "The guarantee is about what the permutation adds. What the exact tables show, whoever looks, it does not cover; "
    "the risks are measured for the intruder described here."
)
DESIGNED, ALL_KEYS, OF_TABLES = "DesignedSwap", "all key variables", "the variables of its tables"
_NOTICEABLE = 0.05
_LITTLE_FALL = 0.1


def limits(*, guaranteed: bool) -> tuple[str, ...]:
    """Return what swapping does not protect against, also where something is guaranteed.

    >>> from quadrille.present.words import LIMITS, limits
    >>> limits(guaranteed=False) == LIMITS, limits(guaranteed=True)[:-1] == LIMITS[:-1]
    (True, True)
    """
    return (*LIMITS[:-1], _EXACT_TABLES) if guaranteed else LIMITS


def listed(items: list[str]) -> str:
    """Join with commas and a last 'and'.

    >>> from quadrille.present.words import listed
    >>> listed(["Age", "Sex", "Race"])
    'Age, Sex and Race'
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def design(parameters: Mapping[str, object]) -> str:
    """Name a design: what is swapped, how much, under which constraints.

    >>> from quadrille.present.words import design
    >>> design({"swap": "Edu + Race", "pairs": 488, "rate": 0.02, "same": "Sex", "different": "", "other": ""})
    'Edu + Race, 488 pairs, same Sex'
    """
    designed = parameters.get("method") == DESIGNED
    pairs, rate = parameters.get("pairs"), parameters.get("rate")
    much = (
        f"{count(pairs)} pairs" if isinstance(pairs, int) else f"rate {share(rate)}" if isinstance(rate, float) else ""
    )
    kept = [f"{word} {parameters[word]}" for word in ("same", "different") if parameters.get(word)]
    swapped = parameters.get("swap") or swapped_by_default(parameters)
    what = swapped if designed else parameters.get("swap") or parameters.get("method")
    parts = [f"designed swap of {what}" if designed else what, much, *kept, parameters.get("other")]
    return ", ".join(str(part) for part in parts if part)


def swapped_by_default(parameters: Mapping[str, object]) -> str:
    """Name what a designed swap may move when its recipe does not say."""
    return OF_TABLES if "tables " in str(parameters.get("other") or "") else ALL_KEYS


def forecast_facts(found: Forecast) -> Pairs:
    """Say what a search would do: how many candidates, how long it takes, and which designs cannot be done."""
    least, most = found.seeds
    seeds = counted(most, "seed") if least == most else f"{count(least)} to {counted(most, 'seed')}"
    checked = "all" if found.checked == found.designs else f"{count(found.checked)} of the"
    return (
        ("candidates", f"{count(found.candidates)}: {count(found.designs)} designs with {seeds} each"),
        ("time", _time(found)),
        ("infeasible", f"{count(len(found.refused))} designs ({checked} {count(found.designs)} were checked)"),
    )


def _time(found: Forecast) -> str:
    if found.seconds is None or found.seconds_each is None:
        return "unknown: no design could be drawn"
    return (
        f"about {duration(found.seconds)} with {counted(found.workers, 'worker')}, an estimate from "
        f"{count(found.timed)} candidates of {pace(found.seconds_each)} each"
    )


def left_out(identifiers: Sequence[str], steering: Sequence[str]) -> list[str]:
    """Say which columns are not in the public file, and why.

    >>> from quadrille.present.words import left_out
    >>> left_out(["caseid"], ["caseid", "zone"])[1]
    'Left out because they steer the draw: zone.'
    """
    others = [name for name in steering if name not in identifiers]
    advice = "To release one on purpose, give it another role in the codebook."
    return [
        *([f"Left out as identifiers: {', '.join(identifiers)}. {advice}"] if identifiers else []),
        *([f"Left out because they steer the draw: {', '.join(others)}."] if others else []),
    ]


def method(name: object) -> str:
    """Name a method in one word.

    >>> from quadrille.present.words import method
    >>> method("DesignedSwap")
    'designed'
    """
    return str(name).removesuffix("Swap").lower()


def axis(address: str) -> str:
    """Name a measure as an axis on which lower is better."""
    direction = measure_of(address).direction
    return f"|{address}|" if direction == "nearer 0" else f"−{address}" if direction == "higher" else address


@dataclass(frozen=True)
class Finding:
    """What two risk measures say together; `kind` decides how it is shown."""

    kind: Literal["agree", "disagree", "unknown"]
    text: str


def agreement(before: tuple[float | None, float | None], after: tuple[float | None, float | None]) -> Finding:
    """Compare the n-rule with `exposed`, given as (small_cells, exposed) before and after the swap.

    They disagree when the n-rule fell by more than `exposed` did, and the gap is both above 5 points of per cent and
    above a third of the fall.
    """
    (rule_was, true_was), (rule_is, true_is) = before, after
    if rule_is is None or true_is is None:
        return Finding("unknown", _ALL_SWAPPED)
    if not rule_was or not true_was:
        return Finding("unknown", _NO_SMALL_CELLS)
    rule, true = 1 - rule_is / rule_was, 1 - true_is / true_was
    amounts = {"rule": _moved(rule), "true": _moved(true), "left": share(true_is / true_was)}
    if rule - true > max(_NOTICEABLE, rule / 3):
        return Finding("disagree", _DISAGREE.format(**amounts))
    return Finding("agree", _AGREE.format(**amounts) + (_LITTLE.format(**amounts) if true < _LITTLE_FALL else ""))


def _moved(fall: float) -> str:
    amount = ratio(abs(fall))
    if amount == ratio(0):
        return "did not change"
    return f"rose by {amount}" if fall < 0 else f"fell by {amount}"


_ALL_SWAPPED = (
    "Every record takes part in the swap, so the n-rule (small_cells), which looks at the others only, says nothing. "
    "Judge by exposed and confidence."
)
_NO_SMALL_CELLS = "The original file has no small cell, so there is no such risk to lower."
_AGREE = "The two risk measures agree: the n-rule (small_cells) {rule} and exposed {true}."
_LITTLE = (
    " That is little: exposed is still at {left} of what it was. If the board finds the risk before the swap too "
    "high, it is still too high."
)
_DISAGREE = (
    "The two risk measures disagree. The n-rule (small_cells) {rule}, but exposed {true} and is still at {left} of "
    "what it was: small cells of the original stand in the release unchanged. The n-rule calls a record safe as soon "
    "as it takes part in a swap. Here swaps compensate one another: records change places with their like, and the "
    "released table changes less. Do not rely on the n-rule for this candidate; judge it by exposed and confidence."
)


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
    >>> from quadrille.present.words import targeted
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
