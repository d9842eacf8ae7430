"""What a command reads, it never writes over, whatever it is asked: data, codebook, study, job, policy, recipe."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from quadrille.errors import OutputError

WRITTEN = frozenset(
    {
        *("out", "write_codebook", "save_recipe", "readers"),
        *("chart", "charts", "chart_ranking", "chart_flows", "realised", "figures"),
    }
)
"""The options of all commands that name a file or a folder to write; every other path is one to read."""

_ORIGINALS = ("file", "before", "after")
_BUNDLED = "dataset:"


def check_apart(given: Mapping[str, object]) -> None:
    """Refuse options that would write over a file that another option names to be read."""
    outputs = [value for name, value in given.items() if name in WRITTEN and isinstance(value, Path)]
    if not outputs:
        return
    machine = {"policy of this machine": os.environ.get("QUADRILLE_POLICY", "").strip()}
    for name, value in {**given, **machine}.items():
        if name in WRITTEN:
            continue
        what = "original file" if name in _ORIGINALS else f"{name.replace('_', ' ')} that this command reads"
        for source in _paths(value):
            refuse(outputs, source, what, replaces=bool(given.get("overwrite")))


def refuse(outputs: list[Path], source: str | Path | None, what: str, *, replaces: bool = False) -> None:
    """Refuse outputs that are the source, by whatever name; also folders to be replaced in which it lies."""
    if source is None or str(source).startswith(_BUNDLED):
        return
    for path in outputs:
        if _same(path, source):
            raise OutputError(f"{str(path)!r} is the {what}. Write to another one.")
        if replaces and _inside(path, source):
            raise OutputError(f"The {what} lies in the folder {str(path)!r}, which would be replaced. Choose another.")


def _paths(value: object) -> Iterator[str | Path]:
    if isinstance(value, str | Path):
        yield value
    elif isinstance(value, list | tuple):
        for each in cast("list[object]", value):
            yield from _paths(each)


def _same(path: Path, source: str | Path) -> bool:
    """Tell whether both names lead to one file; links of both kinds do, and what is no path at all does not."""
    try:
        return Path(source).is_file() and path.samefile(source)
    except (OSError, ValueError):
        return False


def _inside(folder: Path, source: str | Path) -> bool:
    try:
        return Path(source).is_file() and any(each.samefile(folder) for each in Path(source).resolve().parents)
    except (OSError, ValueError):
        return False
