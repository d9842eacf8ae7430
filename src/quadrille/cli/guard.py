"""What happens when something goes wrong: one clear line on stderr, an exit code, never a data value."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import NoReturn, ParamSpec, cast

import typer

from quadrille.errors import OutputError, ParameterError, QuadrilleError
from quadrille.text import shown

WRITTEN = frozenset(
    {
        *("out", "write_codebook", "save_recipe"),
        *("chart", "charts", "chart_flows", "realised", "audit_copy"),
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


P = ParamSpec("P")

BAD_INPUT = 2
INTERNAL = 1
TERMINATED = 128 + signal.SIGTERM
INTERRUPTED = 128 + signal.SIGINT


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn errors into messages and exit codes, and refuse to write over what the command reads.

    QUADRILLE_DEBUG=1 shows the traceback of internal errors.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            check_apart(kwargs)
            command(*args, **kwargs)
        except QuadrilleError as error:
            tell(_in_options(error, kwargs))
            raise typer.Exit(BAD_INPUT) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if os.environ.get("QUADRILLE_DEBUG") == "1":
                raise
            short = _short_of(error)
            tell(short or _internal(error))
            raise typer.Exit(BAD_INPUT if short else INTERNAL) from None

    return run


def _in_options(error: QuadrilleError, options: Mapping[str, object]) -> str:
    """Return the message in the words of the command line: a parameter that is an option is named as one."""
    if isinstance(error, ParameterError) and error.parameter is not None and error.parameter in options:
        return f"--{error.parameter.replace('_', '-')} must be {error.must}. Got {error.value!r}."
    return f"{error.before_argument} --{error.argument.replace('_', '-')}." if error.argument else str(error)


def tell(message: str) -> None:
    """Say something on stderr, in one line."""
    typer.echo("quadrille: " + shown(" ".join(message.split())), err=True)


@contextmanager
def warnings_told() -> Generator[None]:
    """Say what a release warns of in this program's own form."""
    from quadrille.release.release import ReleaseWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, ReleaseWarning):
            tell(f"warning: {warning.message}")


_SHORTAGES = {
    errno.ENOMEM: "memory",
    errno.EAGAIN: "processes or threads (ulimit -u)",
    errno.EMFILE: "open files (ulimit -n)",
    errno.ENFILE: "open files of this machine",
    errno.ENOSPC: "room on the disk",
    errno.EDQUOT: "room on the disk for this user",
    errno.EFBIG: "room for a file of this size (ulimit -f)",
}


def _short_of(error: Exception) -> str | None:
    """Say what the machine has run out of, where that is what stopped the command."""
    lacking = "memory" if isinstance(error, MemoryError) else None
    lacking = _SHORTAGES.get(error.errno or 0) if isinstance(error, OSError) else lacking
    if lacking is None:
        return None
    return f"there is not enough {lacking}. Nothing half-written was left; free some, or use less data, and run again."


LEAST_ADDRESSES = 7 << 28
"""Bytes of addresses below which the libraries cannot even be loaded: some end the process then, without a word."""


def check_limits() -> None:
    """Refuse to start where the limits of the process would end it on the way."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= LEAST_ADDRESSES:
        return
    tell(
        f"this process may use {limit >> 20:,} MiB of addresses (ulimit -v), and its libraries need "
        f"{LEAST_ADDRESSES >> 20:,} MiB or more. Raise the limit, or take it away: ulimit -v unlimited."
    )
    sys.exit(BAD_INPUT)


def _internal(error: Exception) -> str:
    """Name the kind and the place of an error, but not its text: that can hold data values."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}, line {last.lineno}"
    return (
        f"internal error ({type(error).__name__} in {place}). "
        "Please report it; QUADRILLE_DEBUG=1 shows the details, which can hold data values."
    )


def prepare_process() -> None:
    """End tidily when told to stop, and never fail over a sign that the terminal cannot show."""
    signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _raise_again
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Leave through the usual exit, so that temporary folders are removed."""
    sys.exit(TERMINATED)


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Raise a wish to stop once more a moment later where Python has swallowed it, as it does in callbacks."""
    if not isinstance(lost.exc_value, KeyboardInterrupt | SystemExit):
        sys.__unraisablehook__(lost)
        return
    wish = lost.exc_value

    def stop(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise wish

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def ignore_signals() -> None:
    """Let nobody stop a program that has done its work: a script would take that for a failure."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def flush_quietly() -> None:
    """Write out what is left; a reader that has gone away is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
