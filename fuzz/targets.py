"""What is fuzzed. Each target takes an input, and either accepts it or refuses it with an error of the project.

A target returns a word for what became of the input; inputs with a new word are kept and damaged further. Any other
exception, and any law that does not hold, is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import quadrille as qd
from fuzz.seeds import areas, survey
from quadrille.codebook import Codebook
from quadrille.errors import QuadrilleError
from quadrille.params import declared
from quadrille.recipe import known_methods

CANARY = "ZQ"
"""Data values of the seeds begin with this."""


class BrokenLawError(Exception):
    """Something that must always hold does not."""


@dataclass(frozen=True)
class Target:
    """A name, what to do with an input (in a folder of its own), and whether it is pure Python, for guided fuzzing."""

    name: str
    run: Callable[[bytes, Path], str]
    share: float = 1.0
    """How many inputs it gets, beside others: slow ones fewer."""
    guided: bool = False
    words: tuple[bytes, ...] = ()


def outcome(target: Target, raw: bytes, folder: Path) -> str:
    """Run an input: the word of the target, or the refusal without its numbers and names."""
    try:
        return target.run(raw, folder)
    except QuadrilleError as error:
        told = str(error)
        if not told.strip():
            raise BrokenLawError("an error without a message") from error
        if len(told) > MOST_TOLD and len(told) > 4 * len(raw):
            raise BrokenLawError(f"a message of {len(told):,} characters") from error
        return type(error).__name__ + ": " + re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|[\d.,]+", "_", told)[:120]


MOST_TOLD = 4_000


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _file(raw: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


def _law(holds: bool, text: str) -> None:
    if not holds:
        raise BrokenLawError(text)


# Data files


def _read(raw: bytes, folder: Path, suffix: str) -> str:
    path = _file(raw, folder, f"input.{suffix}")
    try:
        data = qd.read(path)
    except QuadrilleError as error:
        head = raw.split(b"\n", 1)[0] if suffix == "csv" else b""
        named = head.count(b'"') % 2 or CANARY.encode() in head
        _law(CANARY not in str(error) or bool(named), "a data value is in the message")
        raise
    frame = data.frame()
    _law(frame.height == data.n > 0, "a file without records was read")
    _law(len(set(data.columns)) == len(data.columns) == frame.width > 0, "columns were lost or doubled")
    _law(Codebook.from_toml(data.codebook.to_toml()) == data.codebook, "the codebook does not survive TOML")
    return "read " + " ".join(sorted({f"{v.kind}-{v.role}-{data[v.name].nullable}" for v in data.codebook}))


def _read_stat(raw: bytes, folder: Path, suffix: str) -> str:
    """Read in this process: starting one per input takes too long. Where it crashes, the isolated way is tried."""
    from quadrille.io import stat_read as read

    read.ISOLATED = False
    return _read(raw, folder, suffix)


def isolated(raw: bytes, folder: Path, suffix: str) -> str:
    """Read a file of a statistics program as users do, by a process of its own."""
    from quadrille.io import stat_read as read

    read.ISOLATED = True
    return _read(raw, folder, suffix)


def _study(raw: bytes, folder: Path) -> str:
    path = _file(raw, folder, "input.study")
    study = qd.Study(path)
    study.frame()
    return f"study {sorted(study.counts())}"


# Documents


def _codebook(raw: bytes, folder: Path) -> str:
    book = Codebook.read(_file(raw, folder, "book.toml"))
    _law(Codebook.from_toml(book.to_toml()) == book, "the codebook does not survive TOML")
    frame = survey().frame()
    try:
        data = qd.from_frame(frame, codebook=book)
    except QuadrilleError as error:
        _law(CANARY not in str(error) or CANARY in " ".join(book.names), "a data value is in the message")
        raise
    return f"codebook {sorted({v.kind for v in data.codebook})} {data.weight is None}"


def _job(raw: bytes, folder: Path) -> str:
    from quadrille.study.job import Job

    job = Job.read(_file(raw, folder, "job.toml"))
    grids = list(job.recipes(survey(), seeds=1))
    made = [recipe.to_json() for grid in grids for recipe in islice(iter(grid), 3)]
    return f"job {len(grids)} {bool(made)}"


def _recipe(raw: bytes, _folder: Path) -> str:
    recipe = qd.Recipe.from_json(_text(raw))
    _law(qd.Recipe.from_json(recipe.to_json()) == recipe, "the recipe does not survive JSON")
    plan = recipe.plan(areas())
    plan.report(areas()).as_dict()
    return f"recipe {type(recipe).__name__} {len(plan.moves)}"


def _design(raw: bytes, folder: Path) -> str:
    from quadrille.simulation.design import SimulationDesign

    design = SimulationDesign.read(_file(raw, folder, "design.toml"))
    _law(len(design.identity) == 64, "no identity")
    return f"design {len(design.factors)}"


def _policy(raw: bytes, folder: Path) -> str:
    policy = qd.Policy.read(_file(raw, folder, "policy.toml"))
    return f"policy {bool(policy.measures)} {policy.rate is None} {policy.warnings}"


def _note(raw: bytes, _folder: Path) -> str:
    from quadrille.release.dossier import read_published

    found = read_published(_text(raw), "the note")
    return f"note {len(found.f)} {found.kind}"


# Words


def _where(raw: bytes, _folder: Path) -> str:
    from quadrille.data import require_columns
    from quadrille.expressions import Rules, Where

    where = Where.parse(_text(raw))
    require_columns(survey(), where.variables, "the condition")
    met = where.met(survey())
    _law(met.shape == (survey().n,) and met.dtype == bool, "a condition that is no mask")
    Rules.of(survey(), [_text(raw)], "the test")
    return f"where {len(where.conditions)} {bool(met.any())}"


def _model(raw: bytes, _folder: Path) -> str:
    from quadrille.expressions import Model

    model = Model.parse(_text(raw))
    _law(Model.parse(str(model)) == model, "the model does not survive being written")
    return f"model {len(model.scales(survey()))}"


def _measure(raw: bytes, _folder: Path) -> str:
    plan = qd.RandomSwap(["Sex"], pairs=3, seed=1).plan(survey())
    scores = qd.score(survey(), plan, [_text(raw)])
    scores.frame()
    return f"measure {[type(value).__name__ for value in scores.values()]}"


_TOML = (
    b'"',
    b"'''",
    b"[[x]]",
    b"[x]",
    b" = ",
    b"{most = 1}",
    b"[1, 2]",
    b"1979-05-27",
    b"12:00:00",
    b"0x1F",
    b"x.y = 1",
)
_COLUMNS = (b"Sex", b"Age", b"Region", b"Income", b"Weight", b"Name", b"Born", b"Smoker")
_BOOK = (
    *(b"kind", b"role", b"level", b"labels", b"categories", b"missing", b"labelled", b"stored", b"missing_ranges"),
    *(b"bands", b"top", b"bottom", b"merge", b"original"),
)
_ROLES = (b"key", b"weight", b"geography", b"stratum", b"unit", b"id", b"outcome", b"nominal", b"ordinal", b"numeric")
_METHODS = tuple(name.encode() for name in known_methods())
_RECIPE = tuple(sorted({name.encode() for method in known_methods().values() for name in declared(method)}))
_MEASURES = (
    b"hellinger",
    b"exposed",
    b"small_cells",
    b"r_ased",
    b"c_ard",
    b"ased_reg",
    b"where=",
    b"n=",
    b"2-way",
    b"C(",
)

READERS = {
    "csv": 3.0,
    "csv_gz": 0.5,
    "parquet": 1.0,
    "xlsx": 0.5,
    "zip": 0.5,
    **dict.fromkeys(("sav", "zsav", "por", "dta", "sas7bdat", "xpt"), 0.7),
}
STAT = ("sav", "zsav", "por", "dta", "sas7bdat", "xpt")


def _all() -> list[Target]:
    from fuzz.calls import WORDS, call

    readers = [
        Target(name, partial(_read_stat if name in STAT else _read, suffix=name.replace("_", ".")), share)
        for name, share in READERS.items()
    ]
    return [
        *readers,
        Target("study", _study, 0.3),
        Target("codebook", _codebook, 1.0, True, (*_TOML, *_COLUMNS, *_BOOK, *_ROLES)),
        Target("job", _job, 1.0, True, (*_TOML, *_COLUMNS, *_METHODS, *_RECIPE, *_MEASURES)),
        Target("recipe", _recipe, 1.0, True, (*_COLUMNS, *_METHODS, *_RECIPE)),
        Target(
            "design", _design, 1.0, True, (*_TOML, b"replicates", b"4 x 100", b"1000000 x 1", b"mechanism", b"strata")
        ),
        Target("policy", _policy, 1.0, True, (*_TOML, *_COLUMNS, *_MEASURES)),
        Target("note", _note, 1.0, True, (b"f = ", b"pairs", b"cycles", b"across", b"records")),
        Target("where", _where, 2.0, True, _COLUMNS),
        Target("model", _model, 2.0, True, (*_COLUMNS, b"C(", b"`", b"~")),
        Target("measure", _measure, 1.5, True, (*_COLUMNS, *_MEASURES)),
        Target("call", call, 0.5, words=WORDS),
    ]


TARGETS: dict[str, Target] = {target.name: target for target in _all()}
