"""What the writable formats of statistics programs can hold, and the list of what they cannot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from quadrille.codebook import Stored
from quadrille.errors import OutputError

_SPSS_WORDS = frozenset("ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH".split())  # noqa: SIM905
_STATA_WORDS = frozenset(
    "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip strL using with".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Target:
    """A format that can be written: what its names, labels, codes and numbers may be."""

    name: str
    program: str
    pattern: str
    longest_name: int
    reserved: frozenset[str]
    label: int
    value_label: int
    labels: Literal["all", "whole numbers", "none"]
    codes: Literal["declared", "tags", "none"]
    text: int
    largest: float
    smallest: float = 0.0
    keeps_blanks: bool = False
    one_case: bool = True


TARGETS = {
    ".sav": Target(
        name="SPSS",
        program="spss",
        pattern=r"[^\W\d_][\w.$#@]*(?<!\.)",
        longest_name=64,
        reserved=_SPSS_WORDS,
        label=256,
        value_label=120,
        labels="all",
        codes="declared",
        text=32_767,
        largest=1.7e308,
    ),
    ".dta": Target(
        name="Stata",
        program="stata",
        pattern=r"(?!str[0-9]+$)[^\W\d]\w*",
        longest_name=32,
        reserved=_STATA_WORDS,
        label=80,
        value_label=32_000,
        labels="whole numbers",
        codes="tags",
        text=2_000_000,
        largest=8.9e307,
        keeps_blanks=True,
        one_case=False,
    ),
    ".xpt": Target(
        name="SAS transport",
        program="sas",
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        longest_name=32,
        reserved=frozenset(),
        label=256,
        value_label=0,
        labels="none",
        codes="none",
        text=32_767,
        largest=7.2e75,
        smallest=5.4e-79,
    ),
}
"""By ending. Nobody but SAS writes sas7bdat, and a por file holds less than a sav file."""


def check_names(names: Sequence[str], target: Target) -> None:
    """Refuse column names that a format cannot hold: renaming them is not for a program to decide."""
    bad = [name for name in names if not _fits(name, target)]
    if bad:
        listed = ", ".join(map(repr, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        raise OutputError(
            f"{target.name} files cannot hold the column names {listed}. Rename these columns (letters, digits and _, "
            f"at most {target.longest_name} characters), or write CSV or Parquet."
        )
    folded = [name.lower() for name in names]
    if target.one_case and len(set(folded)) < len(folded):
        twice = next(name for name, low in zip(names, folded, strict=True) if folded.count(low) > 1)
        raise OutputError(
            f"{target.name} files do not tell {twice!r} from another column whose name differs by case only. "
            "Rename one of the two, or write CSV or Parquet."
        )


def _fits(name: str, target: Target) -> bool:
    size = len(name) if target.program == "stata" else len(name.encode())
    word = name.upper() if target.program == "spss" else name
    return (
        size <= target.longest_name and re.fullmatch(target.pattern, name) is not None and word not in target.reserved
    )


@dataclass
class Losses:
    """What a file does not hold, by reason, with the columns that it concerns."""

    found: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    general: list[str] = field(default_factory=list[str])

    def add(self, column: str, reason: str) -> None:
        """Note one loss of one column."""
        names = self.found.setdefault(reason, [])
        if column not in names:
            names.append(column)

    def whole(self, line: str) -> None:
        """Note something about the whole file."""
        self.general.append(line)

    def lines(self) -> tuple[str, ...]:
        """Return one line per reason."""
        return (*self.general, *(f"{', '.join(names)}: {reason}." for reason, names in self.found.items()))


def cut(text: str, target: Target, size: int) -> str:
    """Return as much of a label as fits; Stata counts characters, the others bytes and drop blanks at the end."""
    if target.program == "stata":
        return text[:size]
    return text.encode()[:size].decode(errors="ignore").rstrip(" ")


_FIXED = {"spss": r"F([0-9]+)(?:\.([0-9]+))?", "stata": r"%([0-9]+)\.([0-9]+)f", "sas": r"F?([0-9]+)\.?([0-9]*)"}


def format_for(stored: Stored, program: str) -> str | None:
    """Return the display format in the language of a program; None when it has no counterpart."""
    if stored.program == program or not stored.format:
        return stored.format
    if re.fullmatch(r"%[0-9]+\.0g|BEST[0-9]*\.?", stored.format):
        return ""  # what Stata and SAS use where nobody chose a format
    match = re.fullmatch(_FIXED[stored.program], stored.format)
    if match is None:
        return None
    width, decimals = int(match[1]), int(match[2] or 0)
    return f"%{width}.{decimals}f" if program == "stata" else f"F{width}.{decimals}"


_PLAIN_TEXT = {"spss": r"A[0-9]+", "stata": r"%-?[0-9]+s", "sas": r"\$[0-9]*\.?"}


def text_format_for(stored: Stored, program: str) -> str | None:
    """Return the display format of a text column; None when it says more than a width and is not kept.

    SPSS makes the format from the width of the column, in which the writer leaves no choice.
    """
    if stored.program == program != "spss":
        return stored.format
    return "" if re.fullmatch(_PLAIN_TEXT[stored.program], stored.format) else None
