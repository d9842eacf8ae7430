"""Studies as text that fits a terminal of 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

from quadrille.cli import show
from quadrille.cli.foreseen import show_foreseen
from quadrille.cli.overview import Overview, constraints, thinned
from quadrille.cli.scatter import CHOSEN, DOMINATED, FRONTIER, scatter

if TYPE_CHECKING:
    from quadrille.cli.dry_run import Forecast
    from quadrille.study.choose import Choice

MOST_ROWS = 50
MOST_REASONS = 10
LONGEST_WHOLE = 12
"""Names of measures up to this length are not broken in the head of a table."""


def show_forecast(found: Forecast, document: Mapping[str, Any]) -> None:
    """Print what a search would do."""
    show.title("Dry run: nothing is written")
    exists = f"exists with {document['results']:,} results, which are kept" if document["results"] else "new"
    then = f"; then {', '.join(document['then'])} near the frontier" if document["then"] else ""
    seeds = f"{found.candidates / found.designs:.3g} seeds" if found.candidates != found.designs else "1 seed"
    show.facts(
        [
            ("data", f"{document['data']}, {document['records']:,} records"),
            ("measures", ", ".join(document["measures"]) + then),
            ("candidates", f"{found.candidates:,}: {found.designs:,} designs with {seeds} each"),
            ("study", f"{document['study']} ({exists})"),
            ("time", _time(found)),
            ("infeasible", _refused(found)),
        ]
    )
    _show_reasons(Counter(each.reason for each in found.refused).most_common(), "design")
    show_foreseen(found.predicted, found.designs)


def _time(found: Forecast) -> str:
    if found.seconds is None or found.seconds_each is None:
        return "unknown: no design could be drawn"
    return (
        f"about {duration(found.seconds)} with {found.workers} worker{'s' * (found.workers > 1)}, an estimate from "
        f"{found.timed:,} candidates of {1000 * found.seconds_each:.2g} ms each"
    )


def _refused(found: Forecast) -> str:
    checked = "all" if found.checked == found.designs else f"{found.checked:,} of the"
    return f"{len(found.refused):,} designs ({checked} {found.designs:,} were checked)"


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"


def _show_reasons(reasons: Sequence[tuple[str, int]], what: str) -> None:
    """Print why designs or candidates cannot be done; what can be done about it is the same for all."""
    if reasons:
        show.note("")
        show.facts(
            [
                (f"{count:,} {what}{'s' * (count > 1)}", reason.split(" Ask for")[0])
                for reason, count in reasons[:MOST_REASONS]
            ]
        )
    if len(reasons) > MOST_REASONS:
        show.note(f"  and {len(reasons) - MOST_REASONS:,} more reasons; --json lists all.")


def show_search(document: Mapping[str, Any], release: str) -> None:
    """Print what a search found and what to do next."""
    counts = [f"{count:,} {status}" for status, count in document["counts"].items() if count]
    axes, knee = document["axes"], cast("dict[str, Any] | None", document["knee"])
    show.title("Search")
    lines = [
        ("study", f"{document['study']} (it holds the seeds: keep it confidential)"),
        ("candidates", f"{document['candidates']:,}: {', '.join(counts)}"),
    ]
    if axes is not None:
        lines.append(("frontier", f"{document['frontier']:,} candidates on {axes[0]} and {axes[1]}"))
    show.facts(lines)
    _show_reasons([(each["reason"], each["candidates"]) for each in document["reasons"]], "candidate")
    _show_warnings(document["warnings"])
    study = quote(document["study"])
    if knee is None:
        show.note("\nNo candidate has a score on both axes, so there is nothing to choose from.")
        return
    show.title("The knee of the frontier")
    show.note(indented(knee["explanation"]))
    show.title("Next")
    show.shell(f"  quadrille frontier {study}")
    show.shell(f"  quadrille pick {study} --max-risk {_just_above(knee['risk']):.3g}")
    show.shell(f"  {release} --study {study} --candidate {knee['candidate']}")


def _just_above(limit: float) -> float:
    """Return a number that still is no smaller than the limit when it is written with three digits."""
    return limit + 0.006 * abs(limit)


def indented(text: str) -> str:
    """Fold the lines of an explanation to the width of the terminal."""
    from textwrap import fill

    width = show.console().width
    return "\n".join(fill(line, width, initial_indent="  ", subsequent_indent="    ") for line in text.splitlines())


def _show_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        show.note(f"\nWarning: {warning}")


def show_frontier(seen: Overview, rows: list[dict[str, Any]]) -> None:
    """Print the frontier as a table and as a picture."""
    left_out = len(seen.study) - len(seen.points)
    show.title(f"Frontier of {seen.axes[0]} and {seen.axes[1]}")
    show.note(f"  {len(rows):,} of {len(seen.points):,} candidates; the others are dominated.")
    if left_out:
        show.note(f"  {left_out:,} candidates without both scores are left out.")
    show.note("")
    knee = None if seen.knee is None else seen.knee.candidate
    _table(thinned(rows, MOST_ROWS, knee), seen.shown, knee)
    if len(rows) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of the {len(rows):,} are shown; --json lists all.")
    show.title("The candidates")
    for line in scatter(seen.points, seen.front, seen.axes, seen.place).splitlines():
        show.note(f"  {line}")
    show.note(f"  {FRONTIER} frontier   {DOMINATED} dominated   {CHOSEN} knee: candidate {knee}")
    notes = [(str(row["id"]), str(row["note"])) for row in rows if row["note"]]
    if notes:
        show.title("Notes")
        show.facts(notes)
    _show_warnings(seen.warnings)


def _table(rows: list[dict[str, Any]], measures: Sequence[str], knee: int | None) -> None:
    """Print candidates; what all of them ask for is said once, above."""
    parts = [constraints(row) for row in rows]
    shared = [each for each in parts[0] if all(each in others for others in parts)] if parts else []
    asked = [", ".join(each for each in listed if each not in shared) for listed in parts]
    if shared:
        show.note(f"  All have {', '.join(shared)}.\n")
    columns = {
        "id": [f"{row['id']}{CHOSEN if row['id'] == knee else ' '}" for row in rows],
        "swap": [row["swap"] for row in rows],
        "rate": [_rate(row) for row in rows],
        "pairs": [_pairs(row) for row in rows],
        "constraints": asked,
    }
    known = {name: values for name, values in columns.items() if any(values)}
    scores = [[show.number(row["scores"][address]) for row in rows] for address in measures]
    head = [*known, *short_names(measures)]
    lines = list(zip(*known.values(), *scores, strict=True))
    numbers = [place for place, name in enumerate(head) if name not in ("swap", "constraints")]
    show.grid(head, lines, numbers=numbers, whole=[place for place in numbers if len(head[place]) <= LONGEST_WHOLE])


def short_names(measures: Sequence[str]) -> list[str]:
    """Return short headings: the name of a long address, where no other one has it."""
    names = [address.partition("(")[0] for address in measures]
    return [
        name if len(address) > LONGEST_WHOLE and names.count(name) == 1 else address
        for name, address in zip(names, measures, strict=True)
    ]


def _rate(row: dict[str, Any]) -> str:
    return "" if row["rate"] is None else show.percent(row["rate"])


def _pairs(row: dict[str, Any]) -> str:
    return "" if row["pairs"] is None else f"{row['pairs']:,}"


def show_choice(chosen: Choice, row: dict[str, Any], warnings: Sequence[str], release: str) -> None:
    """Print a choice: why, what it is, all its scores, how to release it."""
    from quadrille.study.axes import kind_of

    show.title("Chosen")
    show.note(indented(chosen.explain()))
    show.title("Design")
    lines = [("method", row["method"]), ("swap", row["swap"]), ("rate", _rate(row)), ("pairs", _pairs(row))]
    lines += [("constraints", ", ".join(constraints(row))), ("note", row["note"] or "")]
    show.facts([(name, text) for name, text in lines if text])
    show.title("Scores")
    kinds = {address: kind_of(address) for address in row["scores"]}
    scores = [(a, kinds[a].side, kinds[a].direction, show.number(v)) for a, v in row["scores"].items()]
    show.grid(("measure", "side", "better", "value"), scores, numbers=(3,))
    _show_warnings(warnings)
    show.title("Release it, with the file, codebook and weight of the search")
    show.shell(f"  {release} --candidate {chosen.candidate}")
