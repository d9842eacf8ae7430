"""The public names exist, and importing the package is light."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import reduce

import pytest

import quadrille as qd


@pytest.mark.parametrize("name", qd.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(qd, name) is not None
    assert name in dir(qd)


def test_every_name_with_a_home_is_listed() -> None:
    assert sorted({*qd._HOME, *qd._MODULES}) == sorted(qd.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        qd.no_such_name  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", qd._OLD)
def test_an_old_name_leads_to_the_new_one(name: str) -> None:
    now = qd._OLD[name]
    if now.endswith("(...)"):
        with pytest.raises(AttributeError, match=rf"Use quadrille.{re.escape(now)}"):
            getattr(qd, name)
    else:
        with pytest.warns(DeprecationWarning, match=f"is now quadrille.{now}") as caught:
            found = getattr(qd, name)
        assert found is reduce(getattr, now.split("."), qd)
        assert caught[0].filename == __file__
    assert reduce(getattr, now.removesuffix("(...)").split("."), qd) is not None
    assert name not in dir(qd)


def test_import_quadrille_loads_nothing_heavy() -> None:
    heavy = ("polars", "numba", "altair", "pyarrow", "numpy")
    script = f"import sys, quadrille; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_measure_is_documented() -> None:
    frame = qd.measures()
    names = "hellinger total_variation entropy_change cramers_v_change contingency_change"
    assert {*names.split(), "ordinal_shift", "conditional_entropy"} <= set(frame["name"])
    for column in ("side", "better", "range", "definition", "reference"):
        assert all(frame[column].str.len_chars() > 2)
