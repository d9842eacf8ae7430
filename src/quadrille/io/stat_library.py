"""pyreadstat reads a file batch by batch: the only place that lets it, and a program of its own.

Files can come from anywhere, and a damaged one can crash the library. So `stat_read` runs this module as a process of
its own, and a crash there is an error message here. What goes over the pipe is Arrow and JSON.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

import polars as pl

from quadrille.errors import InputError
from quadrille.io.frames.columns import no_patterns

BATCH = 1 << 17
"""Rows that are read at a time: while they are read they are objects, afterwards compact columns."""

TAG = "\0"
"""Stands before the letter of a missing value that came between numbers."""

TABLE = "DATASET"
"""What the table inside a transport file is called when nobody gives it a name."""

Facts = dict[str, Any]


def batches(path: Path, word: str, named: str, catalog: Path | None) -> Iterator[pl.DataFrame | Facts]:
    """Yield the rows of a file in batches, and at last what it says about its columns."""
    where = f"The file {str(path)!r}"
    rows, meta, height = 0, None, BATCH
    while meta is None or height == BATCH:
        found, meta = _read(path, word, where, named, offset=rows)
        _check_names(meta, where)
        table = pl.DataFrame([_series(name, found[name]) for name in meta.column_names])
        height = table.height
        rows += height
        yield table
    if not meta.column_names:
        raise InputError(f"{where} has no columns.")
    labels: dict[str, dict[Any, str]] = dict(meta.variable_value_labels)
    if catalog is not None:
        labels |= _catalog(catalog, meta)
    yield _facts(meta, labels, word)


def _facts(meta: Any, labels: dict[str, dict[Any, str]], word: str) -> Facts:
    """Return what a file says about its columns as plain values."""
    return {
        "names": meta.column_names,
        "labels": {name: label for name, label in meta.column_names_to_labels.items() if label},
        "value_labels": {name: list(each.items()) for name, each in labels.items()},
        "ranges": {name: [(each["lo"], each["hi"]) for each in found] for name, found in meta.missing_ranges.items()},
        "types": meta.readstat_variable_types,
        "formats": meta.original_variable_types,
        "widths": meta.variable_storage_width,
        "displays": meta.variable_display_width,
        "measures": meta.variable_measure,
        "label": bool(meta.file_label),
        "table": (meta.table_name or "") not in ("", TABLE),
        "label_sets": word == "dta"
        and any(not re.fullmatch(re.escape(name) + "[0-9]+", given) for name, given in meta.variable_to_label.items()),
        "aligned": [name for name in meta.column_names if word != "dta" and _is_turned(name, meta)],
        "informats": [name for name, informat in meta.original_variable_informats.items() if informat],
        "empty_labels": [name for name, each in labels.items() if not all(each.values())],
        "notes": len(meta.notes),
        "sets": len(meta.mr_sets),
    }


def _is_turned(name: str, meta: Any) -> bool:
    """Whether a column is aligned in another way than usual: text to the left, numbers to the right."""
    usual, other = ("left", "right") if meta.readstat_variable_types[name] == "string" else ("right", "left")
    return meta.variable_alignment.get(name, usual) in (other, "center")


def _read(path: Path, word: str, where: str, named: str, *, offset: int) -> tuple[dict[str, list[object]], Any]:
    """Let pyreadstat read a batch; its own messages can hold data values and stay inside."""
    entry = _entry_point()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return entry(
                str(path.absolute()),
                parser_format=word,
                user_missing=True,
                disable_datetime_conversion=True,
                output_format="dict",
                row_limit=BATCH,
                row_offset=offset,
            )
    except UserWarning:
        raise InputError(f"{where} gives two columns the same name. Give each column its own name.") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{where} holds text in another encoding than it says. Save it again with the encoding UTF-8."
        ) from None
    except MemoryError:
        raise InputError(f"{where} says that it holds more than fits into memory. Copy it again.") from None
    except Exception as error:
        raise InputError(f"{where} is not intact {named}: {_reason(error)}. Copy it again or check its name.") from None


_SAFE = {
    "Invalid file, or file has unsupported features": "it has another format or features that cannot be read",
    "The file's character encoding is not supported": "its encoding is not supported",
    "File has unsupported character set": "its encoding is not supported",
    "Unable to convert string to the requested encoding": "its text is not in the encoding that it names",
    "Unable to read from file": "it ends too early",
    "Unable to seek within file": "it ends too early",
}


def _reason(error: Exception) -> str:
    """Put what the library says into words of ours; what is not known stays general."""
    text = str(error)
    return next((ours for theirs, ours in _SAFE.items() if text.startswith(theirs)), "it is damaged or something else")


def _entry_point() -> Callable[..., tuple[dict[str, list[object]], Any]]:
    """Return pyreadstat's reader, below its functions per format: those for por and xport drop missing codes."""
    try:
        from pyreadstat import _readstat_parser as inner  # pyright: ignore[reportPrivateUsage, reportMissingTypeStubs]
    except ImportError:
        raise no_pyreadstat() from None
    return cast("Callable[..., tuple[dict[str, list[object]], Any]]", inner.parser_entry_point)


def no_pyreadstat() -> InputError:
    """Build the error for a missing library."""
    return InputError(
        "Files of SPSS, Stata and SAS need the library pyreadstat, which is not installed. "
        "Install it with: pip install 'quadrille[stat]'"
    )


def _check_names(meta: Any, where: str) -> None:
    names = cast("list[str | None]", meta.column_names)
    if any(not name for name in names):
        raise InputError(f"{where} has a column without a name. Give each column a name.")
    no_patterns(cast("list[str]", names), f"{where[0].lower()}{where[1:]}")
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise InputError(f"{where}: the column name {twice!r} occurs more than once. Give each its own name.")


def _catalog(path: Path, meta: Any) -> dict[str, dict[Any, str]]:
    """Return the value labels that a SAS catalog gives to the columns of a file."""
    try:
        _, found = _entry_point()(str(path.absolute()), parser_format="sas7bcat", output_format="dict")
    except Exception as error:
        where = f"The catalog {str(path)!r}"
        raise InputError(f"{where} is not an intact SAS catalog: {_reason(error)}. Check its name.") from None
    return {
        name: found.value_labels[labels]
        for name, labels in meta.variable_to_label.items()
        if labels in found.value_labels
    }


def _series(name: str, values: list[object]) -> pl.Series:
    """Return a batch of one column: text, numbers, or numbers and tags as text until all batches are known."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {int, float}:
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    if kinds == {str}:
        return pl.Series(name, values, dtype=pl.String)
    tagged = [
        f"{TAG}.{value}" if isinstance(value, str) else None if value is None else repr(value) for value in values
    ]
    return pl.Series(name, tagged, dtype=pl.String)


def write_frame(out: BinaryIO, kind: bytes, payload: bytes | memoryview) -> None:
    """Write one message: a letter, the length, the contents."""
    out.write(kind + len(payload).to_bytes(8, "little"))
    out.write(payload)


def main() -> None:
    """Read the file named on the command line and write it to the standard output."""
    path, word, named, catalog, rows = sys.argv[1:6]
    globals()["BATCH"] = int(rows)
    out = sys.stdout.buffer
    try:
        for part in batches(Path(path), word, named, Path(catalog) if catalog else None):
            if isinstance(part, pl.DataFrame):
                buffer = BytesIO()
                part.write_ipc(buffer)
                write_frame(out, b"B", buffer.getbuffer())
            else:
                write_frame(out, b"F", json.dumps(part).encode())
    except InputError as error:
        write_frame(out, b"E", str(error).encode())
    out.flush()


if __name__ == "__main__":
    main()
