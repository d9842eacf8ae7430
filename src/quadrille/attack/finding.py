"""What an attack found: each value with the same before the swap, and by chance, next to it."""

from __future__ import annotations

from dataclasses import dataclass

from quadrille.text import Shown


@dataclass(frozen=True, repr=False)
class Finding(Shown):
    """One quantity of an attack.

    `value` is what the intruder gets from the release, `before` what the original file would have given, `chance` what
    guessing gives. None stands for what cannot be told, and `note` says why. `count` is the number of persons, cells or
    claims that the value is about.
    """

    attack: str
    quantity: str
    value: float | None
    before: float | None = None
    chance: float | None = None
    count: int | None = None
    note: str = ""


@dataclass(frozen=True, repr=False)
class Section(Shown):
    """An attack: its name, the story of a person in the file, what was found, and what to do about it.

    `story` says what the findings mean for one person; `advice` what helps against the attack. An attack that could
    not be made has no findings, and `reason` says why.
    """

    attack: str
    title: str
    story: str
    findings: tuple[Finding, ...] = ()
    advice: str = ""
    reason: str = ""
