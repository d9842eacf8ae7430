"""What is in a file, without its values; what its columns say about one another, and what a swap made of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quadrille.codebook import Variable
from quadrille.data import Data
from quadrille.present import Alert, Block, Facts, Pairs, Table, Text, Title, facts, table
from quadrille.present.numbers import count, counted, share, total
from quadrille.score.coded import NEARLY
from quadrille.score.contradictions import Contradicted
from quadrille.score.dependencies import Dependency
from quadrille.text import large

if TYPE_CHECKING:
    from quadrille.inspect import ColumnProfile, Profile
    from quadrille.measure.population import Sample
    from quadrille.swap.targeted.risk import RiskByLevel

MOST_LABELS = 30
MOST_NAMES = 20


def profile(found: Profile, name: str) -> list[Block]:
    """Return all that `inspect` found in a file of this name."""
    labels = label_facts(found.columns)
    return [
        Title(name),
        profile_facts(found),
        column_table(found.columns),
        *([Title("Categories"), labels] if labels.pairs else []),
        *dependency_blocks(found.dependencies),
        *([] if found.risk is None else risk_blocks(found.risk)),
        *(Text(f"Hint: {hint}") for hint in found.hints),
    ]


def data_facts(data: Data) -> Facts:
    """Return what is known of a file without looking through it: records, weight, key variables, geography."""
    weight = None if data.ticks is None else (str(data.weight), data.ticks.total, data.ticks.exact)
    geography = data.codebook.geography
    return facts((*_size(data.n, weight, data.keys), *([("geography", ", ".join(geography))] if geography else [])))


def _size(records: int, weight: tuple[str, float, bool] | None, keys: tuple[str, ...]) -> Pairs:
    weighted = "none"
    if weight is not None:
        column, whole, exact = weight
        weighted = f"{column}, total {total(whole)} ({'exact' if exact else 'rounded'})"
    return ("records", count(records)), ("weight", weighted), ("key variables", _names(keys))


def profile_facts(found: Profile) -> Facts:
    """Return records, weight, key variables, levels of geography and cells."""
    weight = None if found.weight is None else (found.weight.column, found.weight.total, found.weight.exact)
    lines = [*_size(found.records, weight, found.keys)]
    if found.sample is not None:
        lines.append(("sample", sample_in_words(found.sample, found.records)))
    if found.geography:
        lines.append(("geography", "; ".join(map(str, found.geography))))
    if found.cells is not None:
        cells = found.cells
        lines += [
            ("cells", f"{large(cells.possible)} possible, {count(cells.occupied)} occupied"),
            ("small cells", f"{count(cells.ones)} of one record, {count(cells.twos)} of two"),
        ]
    if found.read_as:
        lines.append(("read as", "; ".join(found.read_as)))
    if found.recoded:
        lines.append(("recoded", " ".join(found.recoded)))
    return facts(lines)


def sample_in_words(sample: Sample, records: int) -> str:
    """Say what share of a population a file holds, and how that is known.

    >>> from quadrille.measure.population import Sample
    >>> from quadrille.present.profile import sample_in_words
    >>> sample_in_words(Sample(0.02), 1_000)
    '2 % of a population of 50,000, by the sum of the weights'
    """
    if sample.share is None:
        return sample.reason
    by = "as said" if sample.said else "by the sum of the weights"
    return f"{share(sample.share)} of a population of {count(round(sample.persons(records)))}, {by}"


def column_table(columns: Sequence[ColumnProfile]) -> Table:
    """Return the columns of a file."""
    head = ("column", "kind", "role", "categories", "missing")
    return table(head, map(_column, columns), caption="Columns of the file", numbers=(3, 4))


def label_facts(columns: Sequence[ColumnProfile]) -> Facts:
    """Return the categories of the columns for which they were asked for."""
    return facts((column.name, _labels(column.labels)) for column in columns if column.labels is not None)


def variable_table(variables: Sequence[Variable], keys: Sequence[str]) -> Table:
    """Return the columns as a codebook has them: how many categories, never which."""
    rows = [(v.name, v.kind, _role(v.role, v.level, key=v.name in keys), _categories(v), v.label) for v in variables]
    used = 5 if any(v.label for v in variables) else 4
    head = ("column", "kind", "role", "categories", "label")[:used]
    return table(head, (row[:used] for row in rows), caption="Columns of the file", numbers=(3,))


def _categories(variable: Variable) -> str:
    return count(len(variable.categories)) if variable.coded else ""


def _column(column: ColumnProfile) -> tuple[str, ...]:
    categories = "" if column.categories is None else count(column.categories)
    return column.name, column.kind, _role(column.role, column.level, key=column.key), categories, share(column.missing)


def _role(role: str | None, level: int | None, *, key: bool) -> str:
    return (role or ("key" if key else "")) + ("" if level is None else f" {level}")


def _names(names: tuple[str, ...]) -> str:
    """Return names in a row; of very many the first two, the last and the number, as a table below has all."""
    if len(names) > MOST_NAMES:
        return f"{names[0]}, {names[1]}, ... {names[-1]} ({len(names):,})"
    return ", ".join(names) or "none"


def _labels(labels: tuple[str, ...]) -> str:
    more = f" and {len(labels) - MOST_LABELS:,} more" if len(labels) > MOST_LABELS else ""
    return ", ".join(labels[:MOST_LABELS]) + more


MOST_SHOWN = 25
_WHAT_TO_DO = (
    "A swap that moves one of such columns without the others contradicts the file: move them together, leave one of "
    "them out, or make it a rule."
)


def dependency_blocks(found: Sequence[Dependency], all_in: str = "--json") -> list[Block]:
    """Return what the columns say about one another, the most telling first; nothing where they say nothing."""
    if not found:
        return []
    never = sorted((each for each in found if each.kind == "never together"), key=lambda each: each.share)
    listed = [*(each for each in found if each not in never), *(each for each in never if each.share <= 1 - NEARLY)]
    rows = [(str(each), _holds(each)) for each in listed[:MOST_SHOWN]]
    more = len(found) - len(rows)
    caption = "What the columns say about one another"
    return [
        Title(caption),
        table(("columns", "holds in"), rows, caption=caption),
        *([Text(f"And {count(more)} more; {all_in} lists all.")] if more else []),
        Text(_WHAT_TO_DO),
    ]


def _holds(found: Dependency) -> str:
    if found.kind == "never together":
        return f"never, with {share(1 - found.share)} of all records expected"
    return "all records" if found.exact else share(found.share)


_MANY_AT_RISK = 0.25
"""With more than this share of the units at risk, a targeted swap moves a large part of the file."""


def risk_blocks(found: RiskByLevel) -> list[Block]:
    """Return who is at risk at each level of geography, and what follows for a targeted swap."""
    what = "units" if found.unit is not None else "records"
    head = ["level", "areas", "smallest count", f"{what} first here", "records in them", "at risk themselves", "so far"]
    rows = [
        [
            level.level,
            *map(count, (level.areas, level.smallest, level.units, level.moved, level.records)),
            share(_rounded(level.share)),
        ]
        for level in found.levels
    ]
    if found.unit is None:  # every record is a unit: one number three times
        head = [*head[:4], head[-1]]
        rows = [[*row[:4], row[-1]] for row in rows]
    names = ", ".join(found.risk)
    whole = counted(found.units, what[:-1])
    of = whole if found.unit is None else f"{whole} ({found.unit}) of {counted(found.records, 'record')}"
    text = f"At risk is a combination of {names} with a count below k = {found.k} in the area: {of}."
    caption = "Who is at risk, by level of geography"
    without = f" {counted(found.without_area, what[:-1])} without an area cannot be swapped." * (found.without_area > 0)
    return [
        Title(caption),
        Text(text + without),
        table(head, rows, caption=caption, numbers=range(1, len(head))),
        Text(_advice(found, what)),
    ]


def _rounded(part: float) -> float:
    """Round a share to four decimals, never to nothing or all."""
    return part if part in (0, 1) else min(max(round(part, 4), 0.0001), 0.9999)


def _advice(found: RiskByLevel, what: str) -> str:
    """Say in a sentence what a targeted swap of these units would be like, and what to change."""
    if found.k == 1:
        return "With k = 1 nobody is at risk, as every combination counts itself. Usual is 3."
    if not found.at_risk:
        least = count(min(level.smallest for level in found.levels))
        return f"Nobody is at risk: the smallest count is {least}. Raise k, add risk variables, or add a finer level."
    part = share(_rounded(found.at_risk / found.units))
    if found.at_risk <= _MANY_AT_RISK * found.units:
        return f"A targeted swap moves all {count(found.at_risk)} ({part}), each with a partner."
    worst = max(found.levels, key=lambda level: level.units)
    return (
        f"{part} are at risk, most of them first at {worst.level}: a targeted swap would move them all. Coarsen the "
        f"risk variables, count risk at coarser levels only (levels without {worst.level}), or set a cap (mode cap)."
    )


def contradiction_alerts(found: Contradicted) -> list[Alert]:
    """Return that a swap contradicts the file, where it does."""
    if not found.records:
        return []
    of = "; ".join(f"{each} ({counted(records, 'record')})" for each, records in found.by_dependency[:3])
    text = f"{counted(found.records, 'record contradicts', 'records contradict')} the rest of the file: {of}."
    return [Alert("It shows who was swapped.", text)]


def filled_table(found: Contradicted) -> list[Table]:
    """Return the combinations that never occurred in the original and do after the swap, every one of them."""
    if not found.filled:
        return []
    rows = [
        (" * ".join(each.columns), " * ".join(each.labels), count(round(each.expected)), count(each.records))
        for each in found.filled
    ]
    head = ("columns", "combination", "records expected", "records now")
    caption = "Combinations that never occur in the original, and do after the swap"
    return [table(head, rows, caption=caption, numbers=(2, 3))]


def contradicted(found: Contradicted) -> list[Block]:
    """Return how many records of a release contradict the original, dependency by dependency, and what was filled."""
    blocks: list[Block] = [Title("What contradicts the swap")]
    if not found.records:
        blocks.append(Text("No record contradicts what the columns of the original say about one another."))
    else:
        rows = [
            (str(each), "all records" if each.exact else share(each.share), count(n)) for each, n in found.by_dependency
        ]
        many = counted(found.records, "record contradicts", "records contradict")
        text = f"{many} the rest of the file and did not before."
        blocks += [Text(text), table(("in the original", "held in", "records that contradict it"), rows, numbers=(2,))]
    return [*blocks, *filled_table(found)]
