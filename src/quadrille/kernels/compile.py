"""How kernels are compiled: cached on disk where a folder can be written, in memory otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


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
