"""All attacks on a release: one section each, every value next to what it was before the swap and is by chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from quadrille import __version__
from quadrille.attack.attribute import attribute
from quadrille.attack.genuine import genuine
from quadrille.attack.input import AttackInput, Finding, Release, Section, attack_input
from quadrille.attack.linkage import linkage, rank
from quadrille.attack.population import population as match_to_population
from quadrille.attack.releases import releases
from quadrille.attack.suda import special
from quadrille.attack.undo import rows, undo
from quadrille.data import Data, tidy
from quadrille.errors import unknown_name
from quadrille.present.numbers import counted, statistic
from quadrille.recipe import Recipe
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

NOT_MADE = "not made"
_KNOWS = {"design": "the file and the design, but not the seed", "file": "the file only"}


@dataclass(frozen=True, repr=False)
class Attack(Shown):
    """What attacks on a release found: a `Section` per attack. Confidential, because it needs the original.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> found = qd.attack(data, qd.RandomSwap(["Edu", "MS"], rate=0.1, seed=1))
    >>> [section.attack for section in found.sections]
    ['linkage', 'genuine', 'attribute', 'undo', 'rows', 'special', 'population', 'releases', 'rank']
    >>> links = found["linkage"].findings[0]
    >>> links.quantity, round(links.value, 2), links.before, links.chance
    ('expected right links', 1435.55, 1695.0, 1.0)
    """

    sections: tuple[Section, ...]
    keys: tuple[str, ...]
    records: int
    knows: str

    def __getitem__(self, attack: str) -> Section:
        for section in self.sections:
            if section.attack == attack:
                return section
        raise unknown_name("attack", attack, [section.attack for section in self.sections])

    def frame(self) -> pl.DataFrame:
        """Return one row per finding: attack, quantity, value, before, chance, count, note.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> frame = qd.attack(data, qd.RandomSwap(["Edu", "MS"], rate=0.1, seed=1), keys=["Age", "Edu", "MS"]).frame()
        >>> frame.columns
        ['attack', 'quantity', 'value', 'before', 'chance', 'count', 'note']
        """
        return tidy([asdict(finding) for section in self.sections for finding in _listed(section)])

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> found = qd.attack(data, qd.RandomSwap(["Edu"], rate=0.1, seed=1), keys=["Age", "Edu"], knows="file")
        >>> found.as_dict()["keys"], found.as_dict()["sections"][0]["attack"]
        (['Age', 'Edu'], 'linkage')
        """
        sections = [asdict(section) for section in self.sections]
        for section in sections:
            section["findings"] = list(section["findings"])
        known = {"keys": list(self.keys), "records": self.records, "knows": self.knows}
        return {**known, "version": __version__, "sections": sections}

    def __repr__(self) -> str:
        made = [section.attack for section in self.sections if section.findings]
        return f"Attack({counted(self.records, 'person')}, {counted(len(self.keys), 'key')}: {', '.join(made)})"

    def __str__(self) -> str:
        head = f"Attack on {counted(self.records, 'person')} by {counted(len(self.keys), 'key')}"
        width = max(len(section.attack) for section in self.sections)
        return "\n".join(
            [f"{head}; the intruder knows {_KNOWS[self.knows]}"]
            + [f"  {section.attack:<{width}}  {_shortly(section)}" for section in self.sections]
        )


def _listed(section: Section) -> Sequence[Finding]:
    return section.findings or (Finding(section.attack, NOT_MADE, None, note=section.reason),)


def _shortly(section: Section) -> str:
    """Say the first thing that an attack found, or why it was not made."""
    first = next((finding for finding in section.findings if finding.value is not None), None)
    if first is None:
        return f"{NOT_MADE}: {section.reason}" if section.reason else "found nothing"
    known = {"before": first.before, "chance": first.chance}
    beside = ", ".join(f"{name} {statistic(value)}" for name, value in known.items() if value is not None)
    return f"{first.quantity}: {statistic(first.value)}" + (f" ({beside})" if beside else "")


def attack(
    data: Data,
    release: Release,
    keys: Sequence[str] | None = None,
    target: Sequence[str] | str | None = None,
    n: int = 3,
    knows: str = "design",
    columns: Sequence[str] | None = None,
    *,
    recipe: Recipe | None = None,
    population: Data | None = None,
    sampling: float | None = None,
    earlier: Sequence[Release] = (),
) -> Attack:
    """Attack a release as an intruder would, and compare with the original.

    Parameters
    ----------
    data : the original file.
    release : a recipe, a plan, or the released file. A file tells which row is whose only where its rows are in the
        order of the original; attacks that need it are else not made, and say so.
    keys : what the intruder knows of a person; without it, the key variables.
    target : what he wants to learn, inside or outside of the keys; without it, each key in turn from the others.
    n : cells of 1 to n - 1 records are small.
    knows : "design", the recipe without its seed, or "file", nothing but the released file.
    columns : other columns of the released file, which are not protected.
    recipe : the recipe, where the release is a plan or a file.
    population : a file of everybody, of whom the file has a part, with the same keys.
    sampling : that part, where there is no such file; 1 when the file is the population. Without it, what the weights
        say, if they count more persons than the file has.
    earlier : other releases of the same data: recipes, plans or files. Plans and files are of the design of `recipe`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> print(qd.attack(data, qd.RandomSwap(["Edu", "MS"], rate=0.1, seed=1), knows="file"))
    Attack on 48,842 persons by 8 keys; the intruder knows the file only
      linkage     expected right links: 1,435.6 (before 1,695.0, chance 1)
      genuine     cells of 1: records that fit the size before: 0.7464 (before 1, chance 0.3549)
      attribute   Age: attributed: 0.01142 (before 0.01355, chance 0.00343)
      undo        not made: is an attack on designed swaps
      rows        not made: is an attack on designed swaps
      special     records alone on some keys: 347 (before 361)
      population  not made: say what share of the population the file is, with sampling=, or give a file of it, ...
      releases    not made: needs other releases of the same data: give them with earlier=
      rank        not made: is an attack on swapped numbers, and no numeric column was swapped

    Reference: Elliot, Mackey & O'Hara, The Anonymisation Decision-Making Framework, 2nd edition, 2020.
    """
    given = attack_input(data, release, keys, _one(target), n, knows, columns, recipe, population, sampling, earlier)
    return Attack(tuple(_sections(given)), given.keys, given.data.n, knows)


def _one(names: Sequence[str] | str | None) -> Sequence[str] | None:
    return (names,) if isinstance(names, str) else names


def _sections(given: AttackInput) -> Iterator[Section]:
    """Make every attack there is, in the order in which they are shown."""
    yield linkage(given)
    yield genuine(given)
    yield attribute(given)
    yield undo(given)
    yield rows(given)
    yield special(given)
    yield match_to_population(given)
    yield releases(given)
    yield rank(given)
