"""One table of a job file: its settings, checked, and faults told with their place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NoReturn, cast

from quadrille.errors import InputError, unknown_name


@dataclass(frozen=True)
class Table:
    """The settings of one table and where it stands, as in "job.toml, [grid 2]"; lists are tuples."""

    place: str
    values: Mapping[str, object]

    def refuse(self, text: str, key: str = "", index: int | None = None) -> NoReturn:
        """Say what is wrong, and where; `index` counts from 0, its place in the message from 1."""
        at = f" {key}" if key else ""
        raise InputError(f"{self.place}{at}{'' if index is None else f'[{index + 1}]'}: {text}")

    def demand(self, must: str, got: object, key: str, index: int | None = None) -> NoReturn:
        """Say what a setting must be and what it is."""
        self.refuse(f"must be {must}. Got {as_written(got)}.", key, index)

    def know(self, known: Sequence[str]) -> None:
        """Refuse settings that do not exist."""
        for key in self.values:
            if key not in known:
                self.refuse(str(unknown_name("setting", key, known)))

    def require(self, key: str, example: str) -> None:
        """Refuse the lack of a setting."""
        if key not in self.values:
            self.refuse(f"'{key}' is missing, as in {key} = {example}.")

    def text(self, key: str) -> str | None:
        """Return a text that is not empty, or None when it is absent."""
        value = self.values.get(key)
        if value is None or (isinstance(value, str) and value.strip() and "\0" not in value):
            return value
        return self.demand("a text that is not empty", value, key)

    def number(self, key: str, most: int) -> int | None:
        """Return a whole number of 1 or more, or None when it is absent."""
        value = self.values.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most):
            return value
        return self.demand(f"a whole number from 1 to {most:,}", value, key)

    def texts(self, key: str, what: str, *, least: int = 0) -> tuple[str, ...]:
        """Return a list of distinct texts; an empty one when it is absent."""
        value = self.values.get(key, ())
        listed = cast("tuple[object, ...]", value if isinstance(value, tuple) else ())
        if not isinstance(value, tuple) or len(listed) < least:
            self.demand(f"a list of {what}" + (f", at least {least}" if least else ""), self.values[key], key)
        for index, each in enumerate(listed):
            if not isinstance(each, str) or not each.strip():
                self.demand("a text that is not empty", each, key, index)
            if each in listed[:index]:
                self.refuse(f"{as_written(each)} is listed twice. Name it once.", key, index)
        return cast("tuple[str, ...]", listed)


def frozen(value: object) -> object:
    """Turn lists into tuples, also inside of lists."""
    return tuple(map(frozen, cast("list[object]", value))) if isinstance(value, list) else value


def as_written(value: object) -> str:
    """Write a value as the job file has it, or nearly so."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)
