"""The outcome of a targeted swap: who was at risk, who moved how far, who was left and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from quadrille.present.blocks import Block, Facts, Pairs, Table, Title, facts, table
from quadrille.present.numbers import count, counted, share, statistic

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
    >>> from quadrille.present.targeted import targeted
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
