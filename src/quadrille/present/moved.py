"""What methods for numbers and for areas say of a draw: windows of ranks and correlations; cycles, and who was left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from quadrille.present.blocks import Block, Pairs, Table, Text, Title, table
from quadrille.present.numbers import NONE, count, counted, fixed, share

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
