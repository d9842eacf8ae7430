"""What columns say about one another, and what a swap made of it."""

from __future__ import annotations

from collections.abc import Sequence

from quadrille.present.blocks import Alert, Block, Table, Text, Title, table
from quadrille.present.numbers import count, counted, share
from quadrille.score.contradictions import Contradicted
from quadrille.score.dependencies import Dependency
from quadrille.score.dependencies.coded import NEARLY

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
