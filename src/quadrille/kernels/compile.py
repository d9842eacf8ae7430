"""How kernels are compiled: cached on disk where a folder can be written, in memory otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function without the interpreter; never with fast-math, so results are the same everywhere."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no writable cache folder
        return numba.njit(nogil=True)(function)
