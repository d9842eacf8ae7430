"""Studies as text that fits a terminal of 80 columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from quadrille.cli import show
from quadrille.errors import QuadrilleError
from quadrille.present.numbers import AS_IT_IS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quadrille.score.published import TableChanges
    from quadrille.study.choose import Choice
    from quadrille.study.study import Study


@dataclass(frozen=True)
class Overview:
    """A study on two axes; `points` and `front` belong to the candidates that have both scores."""

    study: Study
    axes: tuple[str, str]
    ids: NDArray[np.int64]
    points: NDArray[np.float64]
    front: NDArray[np.bool_]
    knee: Choice | None
    warnings: tuple[str, ...]
    picked: int | None
    recommended: dict[str, Choice]

    @property
    def place(self) -> int | None:
        """The row of the picked candidate among the points, if it is there."""
        ids: list[int] = self.ids.tolist()
        return ids.index(self.picked) if self.picked in ids else None

    @property
    def unswapped(self) -> tuple[float, float] | None:
        """Risk and loss of the file as it is, oriented like the points."""
        risk, loss = self.study.unswapped_at(self.axes)
        return None if risk is None or loss is None else (risk, loss)

    @property
    def shown(self) -> tuple[str, ...]:
        """The measures to show: the two axes, and next to the n-rule always what cannot be fooled."""
        from quadrille.present.scores import judged_by

        return judged_by(self.study, self.axes)

    def rows(self) -> list[dict[str, Any]]:
        """Return the candidates on the frontier: number, design and all scores."""
        return [_row(self.study, found) for found in self.study.frontier(*self.axes).to_dicts()]


def overview(study: Study, risk: str | None = None, loss: str | None = None) -> Overview:
    """Look at a study on two axes."""
    import numpy as np

    from quadrille.study.choose import non_dominated, seed_warning

    axes = (study.axis("risk", risk), study.axis("loss", loss))
    points, rows = study.objectives(axes)
    picked = study.picked
    number = None if picked is None else picked.candidate
    if not len(points):
        return Overview(study, axes, study.ids[rows], points, np.zeros(0, dtype=bool), None, (), number, {})
    warnings = tuple(filter(None, [seed_warning(study.clouds(*axes))]))
    knee = study.pick("knee", risk=axes[0], loss=axes[1])
    front, three = non_dominated(points), study.recommended(*axes)
    return Overview(study, axes, study.ids[rows], points, front, knee, warnings, number, three)


def kind(address: str) -> str:
    """Return the name of the measure that an address names."""
    from quadrille.measure import measure_of

    return measure_of(address).name


def _row(study: Study, found: dict[str, Any]) -> dict[str, Any]:
    from quadrille.swap.random import RandomSwap

    names = ("id", "design", "method", "swap", "rate", "pairs", "same", "different", "other", "note")
    row = {name: found[name] for name in names}
    if row["pairs"] is None and isinstance(recipe := study.recipe(row["id"]), RandomSwap):
        row["pairs"] = recipe.count(study.header.records)
    return {**row, "scores": {address: found[address] for address in study.measures}}


def candidate_row(study: Study, candidate: int) -> dict[str, Any]:
    """Return one candidate: number, design and all scores."""
    place = int((study.ids == candidate).argmax())
    return _row(study, study.frame()[[place]].to_dicts()[0])


def constraints(row: dict[str, Any]) -> list[str]:
    """Name what a design asks for besides swap variables and rate."""
    parts = [f"{name} {row[name]}" for name in ("same", "different") if row[name]]
    return [*parts, *(row["other"].split(", ") if row["other"] else [])]


def designs_in_words(study: Study) -> dict[int, str]:
    """Return the numbers of the designs of a study, each with what it asks for."""
    from quadrille.present.words import design

    return {number: design(study.design(number)) for number in study.designs}


def choice_document(choice: Choice) -> dict[str, object]:
    """Return a choice as plain values, its design opened up; the seed stays out."""
    return {**choice.as_dict(), "design": json.loads(choice.recipe.design_json())}


def compared_document(seen: Overview) -> dict[str, object]:
    """Return what candidates are compared with, who is recommended and who was picked, for JSON."""
    from quadrille.measure import orient

    listed = {
        word: {
            "candidate": choice.candidate,
            **{axis: orient(axis, value) for axis, value in zip(seen.axes, (choice.risk, choice.loss), strict=True)},
            "reduction": choice.reduction,
            "reason": choice.reason,
            "explanation": choice.explain(),
            "command": pick_command(seen, word),
        }
        for word, choice in seen.recommended.items()
    }
    return {"unswapped": seen.study.unswapped, "recommended": listed, "picked": seen.picked}


def pick_command(seen: Overview, word: str) -> str:
    """Return the command that picks a recommended candidate."""
    own = (seen.study.axis("risk", None), seen.study.axis("loss", None))
    named = zip(("--risk", "--loss"), seen.axes, own, strict=True)
    axes = [f" {option} {quote(axis)}" for option, axis, first in named if axis != first]
    return f"quadrille pick {quote(str(seen.study.path))}{''.join(axes)} --criterion {word}"


def search_document(study: Study) -> dict[str, object]:
    """Return what a search found, for JSON."""
    why = [reason._asdict() for reason in study.reasons()]
    document: dict[str, object] = {"study": str(study.path), "candidates": len(study), "counts": study.counts()}
    document |= {"reasons": why, "measures": list(study.measures)}
    try:
        seen = overview(study)
    except QuadrilleError as error:  # a search by risk or by loss alone has no frontier
        none = {"unswapped": study.unswapped, "recommended": {}, "picked": None}
        return {**document, "axes": None, "frontier": None, "knee": None, **none, "warnings": [str(error)]}
    knee = None if seen.knee is None else choice_document(seen.knee)
    count = int(seen.front.sum())
    document |= {"axes": seen.axes, "frontier": count, "knee": knee, **compared_document(seen)}
    return {**document, "warnings": list(seen.warnings)}


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` of `count` places, evenly spread, with both ends."""
    return list(range(count)) if count <= most else [place * (count - 1) // (most - 1) for place in range(most)]


def thinned(rows: Sequence[dict[str, Any]], most: int, keep: int | None) -> list[dict[str, Any]]:
    """Return at most about `most` rows, evenly spread, with both ends and the candidate `keep`."""
    kept = set(evenly(len(rows), most))
    return [row for place, row in enumerate(rows) if place in kept or row["id"] == keep]


WIDTH = 70
HEIGHT = 20
BEYOND = 1.5
"""How far the picture goes on beyond the frontier, in spreads of the frontier."""
DOMINATED, FRONTIER, CHOSEN, UNSWAPPED = ".", "o", "@", "X"


def scatter(
    points: NDArray[np.float64],
    frontier: NDArray[np.bool_],
    axes: tuple[str, str],
    chosen: int | None = None,
    unswapped: tuple[float, float] | None = None,
) -> str:
    """Draw candidates, one row of (risk, loss) each; returns at most 20 lines of at most 70 characters, in ASCII.

    frontier : which candidates are on the frontier; they are drawn over the dominated ones.
    chosen : the row of the candidate that is drawn over all others.
    unswapped : risk and loss of the file as it is.
    """
    if not len(points):
        return "  (no candidate to draw)"
    import numpy as np

    low, high = points.min(axis=0), _limits(points, frontier)
    if unswapped is not None:
        low, high = np.minimum(low, unswapped), np.maximum(high, unswapped)
    inside: NDArray[np.bool_] = np.all(points <= high, axis=1)
    labels = [show.statistic(value) for value in (high[0], low[0])]
    margin = max(map(len, labels)) + 1
    columns, rows = WIDTH - margin - 1, HEIGHT - 4
    down = rows - 1 - _steps(points[:, 0], low[0], high[0], rows)
    right = _steps(points[:, 1], low[1], high[1], columns)
    paper = [[" "] * columns for _ in range(rows)]
    for mark, drawn in ((DOMINATED, inside & ~frontier), (FRONTIER, frontier)):
        for row, column in set(zip(down[drawn].tolist(), right[drawn].tolist(), strict=True)):
            paper[row][column] = mark
    if unswapped is not None:
        place = np.array([unswapped])
        row = rows - 1 - int(_steps(place[:, 0], low[0], high[0], rows)[0])
        paper[row][int(_steps(place[:, 1], low[1], high[1], columns)[0])] = UNSWAPPED
    if chosen is not None and inside[chosen]:
        paper[int(down[chosen])][int(right[chosen])] = CHOSEN
    sides = [labels[0], *[""] * (rows - 2), labels[1]]
    body = [f"{side:>{margin}}|{''.join(line)}".rstrip() for side, line in zip(sides, paper, strict=True)]
    ends = show.statistic(low[1]), show.statistic(high[1])
    scale = " " * (margin + 1) + ends[0] + f"{ends[1]:>{columns - len(ends[0])}}"
    outside = int(np.count_nonzero(~inside))
    left = f"({outside:,} dominated ones lie outside)" if outside else ""
    foot = left + _cut(axes[1], WIDTH - len(left) - 1).rjust(WIDTH - len(left))
    return "\n".join([_cut(axes[0], WIDTH), *body, " " * margin + "+" + "-" * columns, scale, foot])


def _limits(points: NDArray[np.float64], frontier: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return where the picture ends: with the last point, but not much beyond the frontier, which it is about."""
    import numpy as np

    last: NDArray[np.float64] = points.max(axis=0)
    end: NDArray[np.float64] = points[frontier].max(axis=0)
    spread: NDArray[np.float64] = end - points[frontier].min(axis=0)
    return np.where(spread > 0, np.minimum(last, end + BEYOND * spread), last)


def _steps(values: NDArray[np.float64], low: float, high: float, count: int) -> NDArray[np.int64]:
    """Return which of `count` equal steps each value falls on; all on the first when there is no spread."""
    import numpy as np

    spread = high - low
    share = (values - low) / spread if spread > 0 and np.isfinite(spread) else np.zeros(len(values))
    return np.minimum((share * count).astype(np.int64), count - 1)


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


MOST_ROWS = 50
MOST_REASONS = 10


def show_reasons(reasons: Sequence[tuple[str, int]], what: str) -> None:
    """Print why designs or candidates cannot be done; what can be done about it is the same for all."""
    if reasons:
        show.note("")
        show.facts([(f"{count:,} {what}{'s' * (count > 1)}", reason) for reason, count in reasons[:MOST_REASONS]])
    if len(reasons) > MOST_REASONS:
        show.note(f"  and {len(reasons) - MOST_REASONS:,} more reasons; --json lists all.")


def show_search(study: Study, document: Mapping[str, Any]) -> None:
    """Print what a search found and what to do next."""
    from quadrille.present.scores import study_facts

    show.title("Search")
    show.facts(study_facts(document["study"], document["counts"], document["axes"], document["frontier"]))
    show_reasons([(each["reason"], each["candidates"]) for each in document["reasons"]], "candidate")
    show_warnings(document["warnings"])
    if document["knee"] is None:
        show.note("\nNo candidate has a score on both axes, so there is nothing to choose from.")
        return
    show_recommended(overview(study))
    show.title("Next: look at all candidates, then set the limit")
    show.shell(f"  quadrille frontier {quote(document['study'])}")


def show_recommended(seen: Overview) -> None:
    """Print the three candidates to show to those who set the limit, with the file as it is first."""
    from quadrille.present.scores import THREE, recommended

    study = quote(str(seen.study.path))
    show.title(THREE if seen.recommended else "No candidate is recommended; the limit is the agency's to set")
    if not seen.recommended:
        safest = seen.study.pick("least risk", risk=seen.axes[0], loss=seen.axes[1])
        show.render(recommended(seen.study, {"least risk": safest}, seen.shown))
        show.note(indented(_none_recommended(seen)))
    else:
        show.render(recommended(seen.study, seen.recommended, seen.shown))
        for word in (word for word in ("gentle", "balanced", "safe") if word not in seen.recommended):
            show.note(f"  No candidate of this study can be recommended as {word}.")
    show.title("To pick: by a limit, or one of these")
    show.shell(f"  quadrille pick {study} --max-risk {_limit(seen)}")
    for word in seen.recommended:
        show.shell(f"  {pick_command(seen, word)}")


def _limit(seen: Overview) -> str:
    """Write a limit that somebody may set: the risk of the safe one, with three digits that it still keeps."""
    if "safe" not in seen.recommended:
        return "NUMBER"
    risk = seen.recommended["safe"].risk
    return f"{abs(risk + 0.006 * abs(risk)):.3g}"


def _none_recommended(seen: Overview) -> str:
    """Say why no candidate is recommended."""
    try:
        seen.study.pick("gentle", risk=seen.axes[0], loss=seen.axes[1])
    except QuadrilleError as error:
        return str(error)
    return ""


def indented(text: str) -> str:
    """Fold the lines of an explanation to the width of the terminal."""
    from textwrap import fill

    width = show.console().width
    return "\n".join(fill(line, width, initial_indent="  ", subsequent_indent="    ") for line in text.splitlines())


def show_warnings(warnings: Sequence[str]) -> None:
    """Print what is to be known about a study before it is relied on."""
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
    _table(thinned(rows, MOST_ROWS, seen.picked), seen.shown, seen.picked, seen.study.unswapped)
    if len(rows) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of the {len(rows):,} are shown; --json lists all.")
    show.title("The candidates")
    for line in scatter(seen.points, seen.front, seen.axes, seen.place, seen.unswapped).splitlines():
        show.note(f"  {line}")
    marks = [f"{FRONTIER} frontier", f"{DOMINATED} dominated"]
    marks += [f"{UNSWAPPED} {AS_IT_IS}"] if seen.unswapped is not None and len(seen.points) else []
    marks += [f"{CHOSEN} picked: candidate {seen.picked}"] if seen.place is not None else []
    show.note(f"  {'   '.join(marks)}")
    notes = [(str(row["id"]), str(row["note"])) for row in rows if row["note"]]
    if notes:
        show.title("Notes")
        show.facts(notes)
    show_warnings(seen.warnings)


def _table(
    rows: list[dict[str, Any]],
    measures: Sequence[str],
    picked: int | None,
    unswapped: Mapping[str, float | None] | None,
) -> None:
    """Print candidates after the file as it is; what all of them ask for is said once, above."""
    from quadrille.present.scores import LONGEST_WHOLE, short_names

    parts = [constraints(row) for row in rows]
    shared = [each for each in parts[0] if all(each in others for others in parts)] if parts else []
    asked = [", ".join(each for each in listed if each not in shared) for listed in parts]
    if shared:
        show.note(f"  All have {', '.join(shared)}.\n")
    columns = {
        "id": [f"{row['id']}{CHOSEN if row['id'] == picked else ' '}" for row in rows],
        "swap": [row["swap"] for row in rows],
        "rate": [_rate(row) for row in rows],
        "pairs": [_pairs(row) for row in rows],
        "constraints": asked,
    }
    known = {name: values for name, values in columns.items() if any(values)}
    scores = [[show.number(row["scores"][address]) for row in rows] for address in measures]
    head = [*known, *short_names(measures)]
    lines = list(zip(*known.values(), *scores, strict=True))
    if unswapped is not None:
        first = [AS_IT_IS if name == "swap" else "" for name in known]
        lines.insert(0, (*first, *(show.number(unswapped.get(address)) for address in measures)))
    numbers = [place for place, name in enumerate(head) if name not in ("swap", "constraints")]
    show.grid(head, lines, numbers=numbers, whole=[place for place in numbers if len(head[place]) <= LONGEST_WHOLE])


def _rate(row: dict[str, Any]) -> str:
    return "" if row["rate"] is None else show.percent(row["rate"])


def _pairs(row: dict[str, Any]) -> str:
    return "" if row["pairs"] is None else show.count(row["pairs"])


def show_choice(
    chosen: Choice,
    row: dict[str, Any],
    warnings: Sequence[str],
    release: str,
    unswapped: Mapping[str, float | None] | None = None,
    tables: TableChanges | None = None,
) -> None:
    """Print a choice: why, what it is, all its scores, how to release it."""
    from quadrille.present import Title
    from quadrille.present.scores import score_table

    show.title("Chosen")
    show.note(indented(chosen.explain()))
    show.title("Design")
    lines = [("method", row["method"]), ("swap", row["swap"]), ("rate", _rate(row)), ("pairs", _pairs(row))]
    lines += [("constraints", ", ".join(constraints(row))), ("note", row["note"] or "")]
    show.facts([(name, text) for name, text in lines if text])
    before = {} if unswapped is None else {AS_IT_IS: unswapped}
    show.render([Title("Scores"), score_table({**before, "value": row["scores"]})])
    show.show_published(tables, chosen.recipe)
    show_warnings(warnings)
    show.title("Release it, with the file, codebook and weight of the search")
    show.shell(f"  {release} --candidate {chosen.candidate}")
