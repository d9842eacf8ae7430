"""How kernels are compiled, and what they call their numbers: cached on disk where possible, in memory otherwise.

A compiled kernel holds the constants and the code of the kernels that it calls, in whatever file they are. So what is
on disk is valid for one text of the kernel's own file and of all that this imports from here, and for no other: a
change of one file compiles anew what depends on it, and leaves the rest as it is.

Code on disk also holds what it calls of numba itself, under names that end in a number which numba counts from 1 in
every process. Two processes may give one name to two functions, such as the comparison within `np.sort` and the other
one within `np.argsort`; whoever loads the work of both gets one of them for both, and wrong results. So each process
counts from a number of its own.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import re
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Whole = Any
"""A whole number in a kernel: plain or numpy's, the compiler decides."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FunctionIdentity._unique_ids = itertools.count(secrets.randbelow(1 << 52) + (1 << 32))  # pyright: ignore

_IMPORT = re.compile(rb"^(?:from|import) quadrille\.kernels\b([\w.]*)", re.MULTILINE)


def kernel(function: F) -> F:
    """Compile a function without the interpreter; never with fast-math, so results are the same everywhere."""
    return _compiled(function)


def step(function: F) -> F:
    """Compile a small function that kernels call often: its code is placed in theirs."""
    return _compiled(function, inlined=True)


def no_alloc(function: F) -> F:
    """Compile a kernel that only kernels call and that makes no array, so that references need no counting.

    Else every call counts up and down for each array that it takes, which for many arrays is dearer than the work. The
    compiler refuses such a kernel if it makes an array after all.
    """
    return _compiled(function, counted=False)


def _compiled(function: F, *, inlined: bool = False, counted: bool = True) -> F:
    # All options always: one that is left out is taken over from whichever kernel calls this one first.
    within = inlined or not counted
    options: dict[str, Any] = {"nogil": True, "forceinline": inlined, "_nrt": counted}
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": within}
    compiled = numba.njit(**options)(function)
    if within:
        _compile_entry_when_called(compiled, ", ".join(signature(function).parameters))
    with suppress(RuntimeError):  # no folder for the cache can be written
        vars(compiled)["_cache"] = _KernelCache(function)
    return cast("F", compiled)


def _compile_entry_when_called(compiled: Any, names: str) -> None:
    """Let Python call what only kernels call, as tests do, by a way in that is compiled when it is first used.

    To compile one for each takes a fifth of all the time, and without one numba would jump to where no code is.
    """

    @cache
    def entry() -> Callable[..., Any]:
        called = eval(f"lambda {names}: compiled({names})", {"compiled": compiled})  # numba takes no *arguments here
        return cast("Callable[..., Any]", numba.njit(nogil=True)(called))

    def no_entry(*_: object) -> None:
        """Keep nothing for Python to jump to."""

    vars(compiled)["_insert"] = no_entry
    vars(compiled)["_compile_for_args"] = lambda *_: entry()  # pyright: ignore  # what this returns is called


class _KernelCache(FunctionCache):
    """The compiled forms of one kernel, in files named after it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        file = Path(function.__code__.co_filename)
        # No line number, unlike numba's own names: a kernel that is moved down its file takes the place of the old one.
        name = f"{file.stem}.{function.__qualname__}.py{sys.version_info[0]}{sys.version_info[1]}"
        self._cache_file = _Files(cast("str", self.cache_path), name, stamp_of(file, Path(__file__).parent))


class _Files(IndexDataCacheFile):
    """The files of a kernel, named after its stamp too.

    A process that still runs an older text of the kernel writes files of its own: code of one text never stands behind
    the index of another. Those of other texts are removed when new ones are written.
    """

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        super().__init__(folder, f"{name}-{stamp[:16]}", stamp)
        self._folder, self._kernel, self._own = Path(folder), name, f"{name}-{stamp[:16]}."

    def save(self, key: Any, data: Any) -> None:
        """Write a compiled form, and remove those of other texts."""
        super().save(key, data)  # pyright: ignore[reportUnknownMemberType]
        for path in self._folder.glob(f"{glob.escape(self._kernel)}[-.]*.nb?"):
            if not path.name.startswith(self._own):
                with suppress(OSError):  # another process was faster
                    path.unlink()


@cache
def stamp_of(file: Path, folder: Path) -> str:
    """Return a hash of the text of a file of kernels and of all that it imports from this folder, at any remove."""
    seen, waiting = {file}, [file]
    while waiting:
        new = _read(waiting.pop(), folder)[1] - seen
        seen |= new
        waiting += new
    # Without paths: a copy of the folder may use the copied cache.
    return hashlib.sha256(b"".join(sorted(_read(each, folder)[0] for each in seen))).hexdigest()


@cache
def _read(file: Path, folder: Path) -> tuple[bytes, frozenset[Path]]:
    """Return the hash of a file and the files that it imports."""
    text = file.read_bytes()
    paths = [folder.joinpath(*name.decode().split(".")[1:]) for name in _IMPORT.findall(text)]
    imported = [
        path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py" for path in paths
    ]
    return hashlib.sha256(text).digest(), frozenset(path for path in imported if path.is_file())
