"""From the words of the command line to data, recipes and measures."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from quadrille.cli.guard import refuse
from quadrille.errors import InputError, OutputError, ParameterError, unknown_name

if TYPE_CHECKING:
    from quadrille.cli.options import FileOptions
    from quadrille.codebook import Codebook
    from quadrille.data import Data
    from quadrille.recipe import Recipe
    from quadrille.study.study import Study


BUNDLED = "dataset:"

Roles = Mapping[str, Any]
"""Columns by the role that an option gives them."""


def load(
    file: str,
    codebook: Codebook | Path | None = None,
    weight: str | None = None,
    geography: Sequence[str] | None = None,
    roles: Roles | None = None,
    layout: str | None = None,
    catalog: Path | None = None,
    sampling: float | None = None,
) -> Data:
    """Read a file, or a bundled data set named as dataset:NAME."""
    if sampling is not None and not 0 < sampling <= 1:
        raise ParameterError(f"--sampling must be a number in (0, 1]. Got {sampling}.")
    data = _load(file, codebook, weight, geography, layout, catalog)
    data = data.with_roles(**roles) if roles else data
    return data if sampling is None else data.with_sampling(sampling)


def _load(
    file: str,
    codebook: Codebook | Path | None,
    weight: str | None,
    geography: Sequence[str] | None,
    layout: str | None,
    catalog: Path | None,
) -> Data:
    import quadrille as qd
    from quadrille.io.layout import Layout

    if not file.startswith(BUNDLED):
        said = asdict(Layout.parse(layout or ""))
        return qd.read(file, codebook=codebook, weight=weight, geography=names(geography), catalog=catalog, **said)
    name, known = file.removeprefix(BUNDLED), qd.datasets.__all__
    if name not in known:
        raise unknown_name("data set", name, known)
    if codebook is not None or geography or layout:
        option = "--codebook" if codebook is not None else "--geography" if geography else "--layout"
        raise InputError(f"The data set {name!r} brings its own codebook. Leave {option} out.")
    data: Data = getattr(qd.datasets, name)()
    return data if weight is None else qd.from_frame(data.frame(), codebook=data.codebook, weight=weight)


def load_after(
    file: str, original: Data, codebook: Path | None, own: Path | None, weight: str | None, roles: Roles | None = None
) -> Data:
    """Read the second file; it may lack the identifiers that the first file's codebook describes.

    A public codebook names no weight, and neither does a guessed one: the weight is then that of the original.
    """
    from quadrille.codebook import Codebook

    roles = {role: columns for role, columns in (roles or {}).items() if role != "id"}
    book: Codebook | Path | None = own
    if own is None and codebook is not None and not file.startswith(BUNDLED):
        book = Codebook(tuple(v for v in Codebook.read(codebook) if v.role != "id"))
    data = load(file, book, weight, roles=roles)
    if data.weight is None and original.weight is not None and original.weight in data.codebook:
        return data.with_roles(weight=original.weight)
    return data


def second(file: str, first: Data, own: Path | None, about: FileOptions) -> Data:
    """Read the second file; levels of geography and roles are declared for both, unless a codebook describes it."""
    if about.geography and about.codebook is None and own is None:
        roles = {role: named for role, named in about.roles.items() if role != "id"}
        return load(file, None, about.weight, about.geography, roles)
    return load_after(file, first, about.codebook, own, about.weight, about.roles)


def names(values: Sequence[str] | None) -> list[str]:
    """Split lists of column names, as a parameter that takes columns does."""
    from quadrille.params import split_names

    return split_names(values or ())


def addresses(values: Sequence[str] | None, data: Data, recipe: Recipe | None = None) -> Sequence[str]:
    """Split measures at commas outside brackets; without any, return those that the data, and the recipe, can have."""
    from quadrille.expressions import split_outside_quotes
    from quadrille.measure import beside_exposed, beside_the_n_rule
    from quadrille.release.release import default_measures

    if not values:
        moving = () if recipe is None else recipe.movement(data).columns
        return default_measures(data, moving)
    wanted = beside_the_n_rule([part.strip() for value in values for part in split_outside_quotes(value, ",")])
    return beside_exposed(wanted, data)


def published_tables(values: Sequence[str] | None, study: Study | None = None) -> tuple[tuple[str, ...], ...]:
    """Return the published tables that an option lists; without it those that the study was told of."""
    from quadrille.expressions import split_outside_quotes
    from quadrille.score.published import tables_of

    if not values:
        return () if study is None else study.tables
    return tables_of("--tables", [part.strip() for value in values for part in split_outside_quotes(value, ",")])


def check_new(*paths: Path | None, overwrite: bool, source: str) -> None:
    """Refuse to write over a file, unless told to; over the original or two results into one, always."""
    given = [path for path in paths if path is not None]
    if len({path.absolute() for path in given}) < len(given):
        raise OutputError(f"Two results would go to the same file {str(given[0])!r}. Name two files.")
    for path in given:
        try:
            exists, folder = path.exists(), path.is_dir()
        except OSError as error:
            raise OutputError(f"Cannot write the file {str(path)!r}: {error.strerror}.") from None
        if folder:
            raise OutputError(f"Cannot write the file {str(path)!r}: it is a folder. Choose another name.")
        if exists and not source.startswith(BUNDLED) and path.resolve() == Path(source).resolve():
            raise OutputError(f"{str(path)!r} is the original file. Write to another one.")
        if exists and not overwrite:
            raise OutputError(f"The file {str(path)!r} exists. Choose another name, or add --overwrite.")
        if not path.absolute().parent.is_dir():
            raise OutputError(
                f"Cannot write {str(path)!r}: No such file or directory. Make the folder, or choose another."
            )
        if not os.access(path.absolute().parent, os.W_OK):
            raise OutputError(f"Cannot write {str(path)!r}: its folder is not writable. Choose another place.")


def check_readers(readers: bool, var_stratum: Sequence[str] | None, cluster: str | None) -> None:
    """Refuse a sampling design without the reports that it is for."""
    if not readers and (var_stratum or cluster is not None):
        option = "--var-stratum" if var_stratum else "--cluster"
        raise ParameterError(f"{option} is for the standard errors of the readers' reports: add --readers.")


def check_folder(path: Path) -> None:
    """Refuse a folder to write into that is a file, or lies below one."""
    with writing(path):
        nearest = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
        if not nearest.is_dir():
            raise OutputError(
                f"Cannot write the folder {str(path)!r}: {str(nearest)!r} is a file. Choose another name."
            )


@contextmanager
def writing(path: Path | None) -> Generator[None]:
    """Turn what the operating system says of a folder into the path and the reason."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(f"Cannot write the folder {str(path)!r}: {reason}. Choose another place.") from None


def open_study(path: Path) -> Study:
    """Open a study."""
    import quadrille as qd

    return qd.Study(path)


def source_of(
    study: Study,
    file: str | None,
    codebook: Path | None,
    weight: str | None,
    *,
    command: str = "report STUDY FILE",
) -> tuple[str, Path | None, str | None, list[str], Roles, str | None]:
    """Return the data file of a study: the one given, or the one that its job named; roles are those of the job."""
    known = study.source
    levels = written_names(json.loads(known.get("geography") or "[]"))
    roles, layout = json.loads(known.get("roles") or "{}"), known.get("layout")
    if file is not None:
        return file, codebook, weight, levels, roles, layout
    if not known:
        raise ParameterError(f"The study does not know its data file. Name it: quadrille {command}.")
    book = known["codebook"]
    weight = weight or known["weight"]
    return str(known["file"]), codebook or (Path(book) if book else None), weight, levels, roles, layout


def release_command(study: Study) -> str:
    """Return the command that releases a candidate of a study, with the file and the roles that its job named."""
    if not study.source:
        return f"quadrille release FILE --study {quote(str(study.path))}"
    file, codebook, weight, levels, roles, layout = source_of(study, None, None, None)
    words = ["quadrille release", quote(file)]
    words += [] if codebook is None else ["--codebook", quote(str(codebook))]
    words += [] if weight is None else ["--weight", quote(weight)]
    words += [part for name in levels for part in ("--geography", quote(name))]
    for role, columns in roles.items():
        listed = [columns] if isinstance(columns, str) else columns
        words += [f"--{role}", quote(",".join(listed if role == "unit" else written_names(listed)))]
    words += [] if layout is None else ["--layout", quote(layout)]
    return " ".join([*words, "--study", quote(str(study.path))])


def refuse_sources(study: Study, *outputs: Path | None, replaces: bool = False) -> None:
    """Refuse to write over the data and the codebook of a study, also where they are not named again."""
    given, known = [path for path in outputs if path is not None], study.source if any(outputs) else {}
    refuse(given, known.get("file"), "original file of the study", replaces=replaces)
    refuse(given, known.get("codebook"), "codebook of the study", replaces=replaces)


def written_names(names: Sequence[str]) -> list[str]:
    """Write the names of columns as the command line has them, quoted where they hold a comma or a blank."""
    return [name if name.isidentifier() else f"`{name}`" for name in names]
