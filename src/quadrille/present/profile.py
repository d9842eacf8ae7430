"""What is in a file, without its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quadrille.present.blocks import Facts, Table, facts, table
from quadrille.present.numbers import count, share, total
from quadrille.text import large

if TYPE_CHECKING:
    from quadrille.inspect import ColumnProfile, Profile
    from quadrille.measure.population import Sample

MOST_LABELS = 30
MOST_NAMES = 20


def profile_facts(found: Profile) -> Facts:
    """Return records, weight, key variables, levels of geography and cells."""
    weight = "none"
    if found.weight is not None:
        exactness = "exact" if found.weight.exact else "rounded"
        weight = f"{found.weight.column}, total {total(found.weight.total)} ({exactness})"
    lines = [("records", count(found.records)), ("weight", weight), ("key variables", _names(found.keys))]
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


def _column(column: ColumnProfile) -> tuple[str, ...]:
    role = column.role or ("key" if column.key else "")
    role += "" if column.level is None else f" {column.level}"
    categories = "" if column.categories is None else count(column.categories)
    return column.name, column.kind, role, categories, share(column.missing)


def _names(names: tuple[str, ...]) -> str:
    """Return names in a row; of very many the first two, the last and the number, as a table below has all."""
    if len(names) > MOST_NAMES:
        return f"{names[0]}, {names[1]}, ... {names[-1]} ({len(names):,})"
    return ", ".join(names) or "none"


def _labels(labels: tuple[str, ...]) -> str:
    more = f" and {len(labels) - MOST_LABELS:,} more" if len(labels) > MOST_LABELS else ""
    return ", ".join(labels[:MOST_LABELS]) + more
