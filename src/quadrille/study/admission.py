"""What a search refuses before it begins: columns that the data lack, scores that could not be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, cast

from quadrille.data import Data, require_columns
from quadrille.errors import InputError
from quadrille.measure_base import Call
from quadrille.recipe import Recipe, columns_in
from quadrille.study.axes import kind_of
from quadrille.study.grid import Grid


class Admission:
    """Looks at every recipe or grid that a search is given, at each list of columns once."""

    def __init__(self, data: Data, measures: Sequence[str]) -> None:
        self._data = data
        self._following = [each for each in measures if kind_of(each).follows_plan and not Call.parse(each).explicit]
        self._free = [each for each in measures if not Call.parse(each).explicit]
        self._seen: set[tuple[str, tuple[str, ...]]] = set()
        self._moved: frozenset[str] | None = None
        self._aside: tuple[str, ...] | None = None

    def know(self, designs: Iterable[str]) -> None:
        """Take the candidates into account that a study has already."""
        for design in designs if self._following else ():
            parameters = cast("dict[str, Any]", json.loads(design))
            self._compare(self._all_moved(parameters.get("swap", ()), parameters))

    def check(self, each: Recipe | Grid) -> None:
        """Refuse a recipe or a grid that this search cannot do."""
        if isinstance(each, Grid):
            each.require_columns(self._data)
            self._compare_steering(next(iter(each)).secret_columns)
            axes = dict(each.axes)
            names = ("swap", "linked", "tables")
            for values in product(*(axes.get(name, ((),)) for name in names)):
                given: dict[str, object] = dict(zip(names, values, strict=True))
                self._compare(self._all_moved(given["swap"], given))
            return
        self._compare_steering(each.secret_columns)
        parameters = each.parameters()
        for name, value in parameters.items():
            columns = columns_in(name, value)
            if columns and (name, columns) not in self._seen:
                require_columns(self._data, columns, f"'{name}' of {type(each).__name__}")
                self._seen.add((name, columns))
        self._compare(self._all_moved(parameters["swap"], parameters))

    def _compare_steering(self, aside: tuple[str, ...]) -> None:
        if self._free and self._aside not in (None, aside):
            raise InputError(
                f"The measure {self._free[0]!r} is taken over the key variables without the columns that steer a draw, "
                "and the candidates are steered by different ones. Name its variables, or give these columns the role "
                "stratum in the codebook."
            )
        self._aside = aside

    def _compare(self, moved: frozenset[str]) -> None:
        if self._following and self._moved not in (None, moved):
            address = self._following[0]
            raise InputError(
                f"The measure {address!r} looks at the columns that a candidate moves, and the candidates move "
                f"different ones, so their scores could not be compared. Name its variables, as in {address}(A*B)."
            )
        self._moved = moved

    def _all_moved(self, swap: object, parameters: Mapping[str, Any]) -> frozenset[str]:
        """Return the columns that a design moves; of one that names none, those of its tables or all keys."""
        moved = frozenset((*columns_in("swap", swap), *columns_in("linked", parameters.get("linked"))))
        return moved or frozenset(columns_in("tables", parameters.get("tables", ())) or self._data.keys)
