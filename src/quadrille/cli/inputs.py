"""From the words of the command line to data, recipes and measures."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from quadrille.errors import InputError, OutputError, ParameterError, unknown_name
from quadrille.text import read_text

if TYPE_CHECKING:
    from quadrille.codebook import Codebook
    from quadrille.data import Data
    from quadrille.recipe import Recipe


BUNDLED = "dataset:"


def load(
    file: str,
    codebook: Codebook | Path | None = None,
    weight: str | None = None,
    geography: Sequence[str] | None = None,
) -> Data:
    """Read a file, or a bundled data set named as dataset:NAME."""
    import quadrille as qd

    if not file.startswith(BUNDLED):
        return qd.read(file, codebook=codebook, weight=weight, geography=names(geography))
    name, known = file.removeprefix(BUNDLED), qd.datasets.__all__
    if name not in known:
        raise unknown_name("data set", name, known)
    if codebook is not None or geography:
        option = "--geography" if codebook is None else "--codebook"
        raise InputError(f"The data set {name!r} brings its own codebook. Leave {option} out.")
    data: Data = getattr(qd.datasets, name)()
    return data if weight is None else qd.from_frame(data.frame(), codebook=data.codebook, weight=weight)


def load_after(file: str, codebook: Path | None, own: Path | None, weight: str | None) -> Data:
    """Read the second file; it may lack the identifiers that the first file's codebook describes."""
    from quadrille.codebook import Codebook

    if own is None and codebook is not None and not file.startswith(BUNDLED):
        book = Codebook(tuple(v for v in Codebook.read(codebook) if v.role != "id"))
        return load(file, book, weight)
    return load(file, own, weight)


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from its JSON file."""
    import quadrille as qd

    return qd.Recipe.from_json(read_text(path, "the recipe"))


def names(values: Sequence[str] | None) -> list[str]:
    """Split lists of column names at commas; quotes keep a name together."""
    from quadrille.expressions import split_outside_quotes, unquoted

    return [unquoted(part) for value in values or () for part in split_outside_quotes(value, ",")]


def addresses(values: Sequence[str] | None, data: Data) -> Sequence[str]:
    """Split measures at commas outside brackets; without any, return those that the data can have."""
    from quadrille.expressions import split_outside_quotes
    from quadrille.measure.axes import beside_the_n_rule
    from quadrille.release.release import default_measures

    if not values:
        return default_measures(data)
    return beside_the_n_rule([part.strip() for value in values for part in split_outside_quotes(value, ",")])


def seed_of(text: str) -> int | str:
    """Take up to 63 digits for a number; 64 hexadecimal digits are a secret, whatever they look like."""
    try:
        return text if len(text) >= 64 else int(text)
    except ValueError:
        return text


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


RULES = ("knee", "least-loss", "least-risk", "linear", "ideal", "lexicographic", "dohrmann")


def checked_rule(
    rule: str | None, trade: float | None, weights: str | None
) -> tuple[str | None, tuple[float, float] | None]:
    """Check the rule and what goes with it."""
    if rule is not None and rule not in RULES:
        raise ParameterError(f"--rule must be one of {', '.join(RULES)}. Got {rule!r}.")
    for option, value, needs in (("--trade", trade, "linear"), ("--weights", weights, "ideal")):
        if value is not None and rule not in (None, needs):
            raise ParameterError(f"{option} goes with --rule {needs}, not with --rule {rule}.")
    if trade is not None and weights is not None:
        raise ParameterError("Give --trade or --weights, not both: they are two rules.")
    if trade is not None and not (isfinite(trade) and trade >= 0):
        raise ParameterError(f"--trade must be a number of 0 or more. Got {trade}.")
    return None if rule is None else rule.replace("-", " "), _weights(weights)


def _weights(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        risk, loss = map(float, text.split(","))
        usable = isfinite(risk + loss) and min(risk, loss) >= 0 and max(risk, loss) > 0
    except ValueError:
        usable = False
        risk = loss = 0.0
    if not usable:
        raise ParameterError("--weights must be two numbers of 0 or more, not both 0, as in 2,1.")
    return risk, loss
