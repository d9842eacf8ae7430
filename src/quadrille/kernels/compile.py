"""How kernels are compiled: cached on disk where a folder can be written, in memory otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

_STAMP = "kernels.stamp"


def kernel(function: F) -> F:
    """Compile a function without the interpreter; never with fast-math, so results are the same everywhere."""
    return _compiled(function, inlined=False)


def step(function: F) -> F:
    """Compile a small function that kernels call often: its code is placed in theirs."""
    return _compiled(function, inlined=True)


def _compiled(function: F, *, inlined: bool) -> F:
    try:
        compiled = numba.njit(cache=True, nogil=True, forceinline=inlined)(function)
    except RuntimeError:  # no folder for the cache can be written
        compiled = numba.njit(nogil=True, forceinline=inlined)(function)
    return cast("F", compiled)


def forget_stale_kernels(folder: Path) -> bool:
    """Clear the cache of compiled kernels when any file of this folder has changed; tell whether that was so.

    The cache looks at the file of a kernel only, but a kernel also holds the constants and the code of other files.
    """
    files = sorted(folder.glob("*.py"))
    stamp = "\n".join(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
    cache = folder / "__pycache__"
    try:
        if (cache / _STAMP).read_text(encoding="utf-8") == stamp:
            return False
    except OSError:
        pass
    try:
        for compiled in cache.glob("*.nb[ic]"):
            compiled.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        (cache / _STAMP).write_text(stamp, encoding="utf-8")
    except OSError:  # nothing is cached where nothing can be written
        return False
    return True


forget_stale_kernels(Path(__file__).parent)
