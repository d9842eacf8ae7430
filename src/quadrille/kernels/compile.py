"""How kernels are compiled, and what they call their numbers: cached on disk where possible, in memory otherwise.

A compiled kernel holds the constants and the code of the kernels that it calls, in whatever file they are. So what is
on disk is valid for one text of the kernel's own file and of all that this imports from here, and for no other: a
change of one file compiles anew what depends on it, and leaves the rest as it is.

Code on disk also holds what it calls of numba itself, under names that end in a number which numba counts from 1 in
every process. Two processes may give one name to two functions, such as the comparison within `np.sort` and the other
one within `np.argsort`; whoever loads the work of both gets one of them for both, and wrong results. So each process
counts from a number of its own.

What is on disk is code that will run, so it is only read from a folder that nobody else can write to. A file there that
cannot be read, and a full disk, cost the time to compile and nothing else.
"""

from __future__ import annotations

import glob
import grp
import hashlib
import itertools
import os
import pwd
import re
import secrets
import stat
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic
from numba.np import arrayobj
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


def _prefetch(_context: Any, array: Any, at: Any) -> Any:
    def place(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        held = cast("Any", arrayobj).make_array(signature.args[0])(target, builder, arguments[0])
        form = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = cast("Any", cgutils).get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        start = builder.bitcast(held.data, byte)
        builder.call(ask, [builder.gep(start, [arguments[1]]), word(0), word(3), word(1)])
        return target.get_dummy_value()

    return types.void(array, types.int64), place


prefetch = cast("Callable[[Any, Any], None]", intrinsic(_prefetch))
"""Ask for the memory at a byte of an array, which a later step will read: nothing is read, and nothing can fail."""


def _compiled(function: F, *, inlined: bool = False, counted: bool = True) -> F:
    # All options always: one that is left out is taken over from whichever kernel calls this one first.
    within = inlined or not counted
    options: dict[str, Any] = {"nogil": True, "forceinline": inlined, "_nrt": counted}
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": within}
    compiled = numba.njit(**options)(function)
    if within:
        _compile_entry_when_called(compiled, ", ".join(signature(function).parameters))
    with suppress(RuntimeError):  # no folder for the cache can be written
        cache = _KernelCache(function)
        if _trusted(Path(cast("str", cache.cache_path)), Path(function.__code__.co_filename).parent):
            vars(compiled)["_cache"] = cache
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

    def load(self, key: Any) -> Any:
        """Return a compiled form; one that is cut off or damaged is as if it was not there."""
        try:
            return super().load(key)  # pyright: ignore[reportUnknownMemberType]
        except Exception:  # pickle raises whatever the bytes make it do
            return None

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # pyright: ignore
        except Exception:
            return {}

    def save(self, key: Any, data: Any) -> None:
        """Write a compiled form, and remove those of other texts; where the disk refuses, the kernel runs anyway."""
        with suppress(OSError):
            super().save(key, data)  # pyright: ignore[reportUnknownMemberType]
            self._tidy()

    def _tidy(self) -> None:
        for path in self._folder.glob(f"{glob.escape(self._kernel)}[-.]*.nb?"):
            if not path.name.startswith(self._own):
                with suppress(OSError):  # another process was faster
                    path.unlink()


@cache
def _trusted(folder: Path, source: Path) -> bool:
    """Tell whether the code in a folder is our own; what lies next to the source is as safe as that is."""
    if folder == source / "__pycache__":
        return not folder.stat().st_mode & stat.S_IWOTH
    with suppress(OSError):
        if not any(folder.iterdir()):  # just made, under whatever umask
            folder.chmod(stat.S_IRWXU)
        if _ours_alone(folder):
            return True
    warnings.warn(
        f"Compiled code is not kept in {str(folder)!r}, because others can write there or into a folder above it; each "
        "run compiles anew. Name a folder of your own by NUMBA_CACHE_DIR.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def _ours_alone(folder: Path) -> bool:
    """Tell whether only this user and the superuser can put files into a folder, or another folder in its place."""
    inside = folder.lstat()
    if stat.S_ISLNK(inside.st_mode) or _open_to_others(inside):
        return False
    places = [folder.absolute(), folder.resolve()]
    for place in (above for each in places for above in (each, *each.parents)):
        facts = place.lstat()
        if facts.st_uid not in (0, os.geteuid()):
            return False
        link, sticky = stat.S_ISLNK(facts.st_mode), facts.st_mode & stat.S_ISVTX
        if not link and not sticky and _open_to_others(facts):
            return False
    return True


def _open_to_others(facts: os.stat_result) -> bool:
    """Tell whether somebody but the owner may write; a group of one, as many systems make for each user, is nobody."""
    if facts.st_mode & stat.S_IWOTH:
        return True
    if not facts.st_mode & stat.S_IWGRP or facts.st_gid == 0:
        return False
    try:
        group, user = grp.getgrgid(facts.st_gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return True
    return (group.gr_name, group.gr_gid) != (user.pw_name, user.pw_gid) or not set(group.gr_mem) <= {user.pw_name}


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
