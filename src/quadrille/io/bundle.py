"""A release: `public/` for everybody and `confidential/` for those who hold the original, written as one."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.account import Account
from quadrille.codebook import Variable
from quadrille.data import Column, Data, Rows
from quadrille.errors import InputError
from quadrille.io.atomic import check_free, new_folder, private_folder, write_file
from quadrille.io.csv import csv_bytes
from quadrille.io.dossier import Record, dossier, methods_note
from quadrille.io.parquet import parquet_bytes
from quadrille.io.published import published
from quadrille.io.traces import traces
from quadrille.plan import Details, Plan
from quadrille.randomness import is_secret
from quadrille.recipe import Recipe, one_of, random_order
from quadrille.study.axes import beside_the_n_rule
from quadrille.study.score import Scores, score

DEFAULT = (
    "hellinger",
    "total_variation",
    "entropy_change",
    "cramers_v_change",
    "contingency_change",
    "ordinal_shift",
    "conditional_entropy",
)
"""The measures of a release unless others are named; those that the data cannot have are left out."""

FORMATS = ("csv", "parquet")
_FOLDERS = ("public", "confidential")
_WEIGHTED = ("hd1", "hd2", "r_ased", "c_ard", "v_ard", "ased_reg")
"""For weighted files also what swapping does to weighted estimates."""

_NEEDS_PAIRS = frozenset({"cramers_v_change", "contingency_change"})
_BY_RECORD = frozenset({"ordinal_shift", "conditional_entropy"})

Files = Mapping[str, bytes | memoryview]


class ReleaseWarning(UserWarning):
    """Something about a release that its maker should know."""


class GuessableSeedWarning(ReleaseWarning):
    """The seed is a number: whoever guesses it can undo the release."""


@dataclass(frozen=True)
class Release:
    """What was written, and what it did."""

    path: Path
    files: tuple[Path, ...]
    scores: Scores
    account: Account
    warnings: tuple[str, ...]

    @property
    def public(self) -> Path:
        """The folder to publish."""
        return self.path / "public"

    @property
    def confidential(self) -> Path:
        """The folder to lock away: it can undo the release."""
        return self.path / "confidential"

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "path": str(self.path),
            "files": [str(file) for file in self.files],
            "account": self.account.as_dict(),
            "scores": self.scores.as_dict(),
            "warnings": list(self.warnings),
        }


def default_measures(data: Data) -> tuple[str, ...]:
    """Return the default measures that these data can have: tables need a key variable, associations two."""
    keys = len(data.keys)
    weighted = () if data.weight is None or keys < 2 else _WEIGHTED
    possible = [name for name in DEFAULT if name in _BY_RECORD or keys > (name in _NEEDS_PAIRS)]
    return (*possible, *weighted)


def release(
    data: Data,
    recipe: Recipe,
    out: str | Path = "release",
    *,
    measures: Sequence[str] = DEFAULT,
    format: str = "csv",
    shuffle: bool = True,
    publish_f: bool = False,
    overwrite: bool = False,
) -> Release:
    """Swap, score and write `out/public/` and `out/confidential/`; both appear whole or not at all.

    Parameters
    ----------
    data, recipe : what to release, and by which recipe.
    out : the folder to make; it must not exist, or be empty.
    measures : which scores to keep in the confidential folder.
    format : of the public file, "csv" or "parquet". Columns with the role id are left out.
    shuffle : put the public rows in random order, so that they cannot be matched by position.
    publish_f : tell users in the methods note by which factor f, and for which variables, they can correct tables.
    overwrite : replace an earlier release; a folder that holds anything else is never replaced.

    Example
    -------
    >>> import quadrille as qd, tempfile
    >>> data = qd.datasets.cps8d()
    >>> made = qd.release(data, qd.RandomSwap(["MS"], rate=0.02), tempfile.mkdtemp())
    >>> [file.name for file in made.public.iterdir() if file.name == "data.csv"]
    ['data.csv']
    """
    one_of("release", "format", format, FORMATS)
    folder = Path(out)
    check_free(folder, overwrite=overwrite, holds=_FOLDERS)
    plan = recipe.plan(data)
    if not len(plan.rows):
        raise InputError(
            "The recipe swaps nothing in these data, so the public file would be the original. Ask for more, relax the "
            "boundary or the constraints, or choose other variables."
        )
    scores = score(data, plan, beside_the_n_rule(default_measures(data) if measures is DEFAULT else measures))
    public = _public(
        plan.apply(data),
        random_order(data.n, recipe.stream().sub("public order")) if shuffle else None,
        recipe.secret_columns,
    )
    factor = published(recipe, plan, data, public) if publish_f else None
    stays = data.weight not in plan.columns
    note = methods_note(public, shuffled=shuffle, published=factor, weight_stays=stays)
    outside = _public_files(public, format, note)
    found = _warnings(public, recipe, data, plan)
    record = Record(
        data=data,
        public=public,
        recipe=recipe,
        plan=plan,
        account=plan.report(data),
        scores=scores,
        rivals=_rival_scores(data, plan, scores),
        hashes={name: hashlib.sha256(contents).hexdigest() for name, contents in outside.items()},
        warnings=tuple(map(str, found)),
        shuffled=shuffle,
        written=datetime.now(UTC),
    )
    inside = _confidential_files(record)
    _write(folder, outside, inside, overwrite=overwrite)
    for warning in found:
        warnings.warn(warning, stacklevel=2)
    files = [folder / "public" / name for name in outside] + [folder / "confidential" / name for name in inside]
    return Release(folder, tuple(files), scores, record.account, record.warnings)


def _rival_scores(data: Data, plan: Plan, scores: Scores) -> dict[str, Scores]:
    """Score the plans that the method decided against by the same measures."""
    if plan.details is None:
        return {}
    return {name: score(data, rival, list(scores)) for name, rival in plan.details.rivals.items()}


def _public(swapped: Data, order: Rows | None, secret: Sequence[str] = ()) -> Data:
    """Return the file as it goes out: no identifiers, nothing that steered the draw, rows in the order given."""
    columns = [
        Column(_described(column.variable, swapped), _ordered(column, order), column.dtype, column.nullable)
        for column in (swapped[name] for name in swapped.columns)
        if column.variable.role != "id" and column.variable.name not in secret
    ]
    if not columns:
        raise InputError("Every column is an identifier or secret, so nothing can be released. Correct the codebook.")
    return Data(columns, weight=swapped.weight)


def _described(variable: Variable, data: Data) -> Variable:
    """Let the codebook name the weight, also where it was named outside of it."""
    return replace(variable, role="weight") if variable.name == data.weight else variable


def _ordered(column: Column, order: Rows | None) -> Rows:
    return column.values if order is None else column.values[order]


def _warnings(public: Data, recipe: Recipe, data: Data, plan: Plan) -> list[ReleaseWarning]:
    found: list[ReleaseWarning] = []
    if not is_secret(recipe.parameters()["seed"]):
        found.append(
            GuessableSeedWarning(
                "The seed is a number that can be guessed, and with it the release can be undone. "
                "Leave the seed out, so that it is drawn from the operating system."
            )
        )
    alone = plan.details.rows.get("without partner", ()) if plan.details else ()
    if len(alone):
        found.append(
            ReleaseWarning(
                f"{len(alone):,} targets have no partner and stand in the public file as they were. "
                "The dossier lists them; a coarser boundary or other targets may help."
            )
        )
    size = recipe.parameters().get("size")
    if size in public.columns and size != public.weight:
        found.append(
            ReleaseWarning(
                f"Column {size!r} decided which records were likely targets and stays in the public file. "
                "If it is a score of risk, give it the role id in the codebook, so that it is left out."
            )
        )
    for name in public.columns:
        if public.n > 1 and len(np.unique(public[name].values)) == public.n:
            found.append(
                ReleaseWarning(
                    f"Column {name!r} of the public file has a different value in every record, so records "
                    "can be matched with other files. Give it the role id in the codebook, or recode it."
                )
            )
    return found + [ReleaseWarning(text) for text in traces(data, plan, public.columns)]


def _public_files(public: Data, format: str, note: str) -> Files:
    contents = parquet_bytes(public) if format == "parquet" else csv_bytes(public, ",")
    return {
        f"data.{format}": contents,
        "codebook.toml": public.codebook.to_toml().encode(),
        "methods.md": note.encode(),
    }


def _confidential_files(record: Record) -> Files:
    plan = record.plan
    moves = [list(move.columns) for move in plan.moves]
    hashes = {"sha256": dict(record.hashes), "fingerprint": {"before": plan.before, "after": plan.after}}
    return {
        "recipe.json": (record.recipe.to_json() + "\n").encode(),
        "plan.parquet": _plan_bytes(plan),
        "account.json": _json({**record.account.as_dict(), "moves": moves}),
        "scores.json": _json(record.scores.as_dict()),
        "hashes.json": _json(hashes),
        "dossier.md": dossier(record).encode(),
        **({"targets.parquet": _target_bytes(plan.details)} if plan.details and "targets" in plan.details.rows else {}),
    }


def _plan_bytes(plan: Plan) -> memoryview:
    """Return the plan as a table: in this move, this row receives its values from that source."""
    none = np.empty(0, dtype=np.int64)
    columns = {
        "move": np.repeat(np.arange(len(plan.moves)), [len(move.rows) for move in plan.moves]),
        "row": np.concatenate((none, *(move.rows for move in plan.moves))),
        "source": np.concatenate((none, *(move.source for move in plan.moves))),
    }
    return _parquet(columns)


def _target_bytes(details: Details) -> memoryview:
    """Return the targets as a table: row, whether it was certain by size, whether it has a partner.

    Where it has none, `nobody_there` tells that no donor was in another cell of its zone; else all were taken.
    """
    targets = details.rows["targets"]
    columns = {
        "row": targets,
        "certain": np.isin(targets, details.rows["certain"]),
        "partner": ~np.isin(targets, details.rows["without partner"]),
        "nobody_there": np.isin(targets, details.rows["nobody there"]),
    }
    return _parquet(columns)


def _parquet(columns: Mapping[str, Rows | NDArray[np.bool_]]) -> memoryview:
    buffer = io.BytesIO()
    pl.DataFrame(dict(columns)).write_parquet(buffer)
    return buffer.getbuffer()


def _json(document: object) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _write(folder: Path, public: Files, confidential: Files, *, overwrite: bool) -> None:
    with new_folder(folder, overwrite=overwrite, holds=_FOLDERS) as fresh:
        outside, inside = fresh / "public", private_folder(fresh / "confidential")
        outside.mkdir()
        for name, contents in public.items():
            write_file(outside / name, contents)
        for name, contents in confidential.items():
            write_file(inside / name, contents, private=True)
