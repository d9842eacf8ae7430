"""Frames of pandas, with and without pyarrow: the same data."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import quadrille as qd
from quadrille.errors import InputError

FRAME = """
import numpy as np, pandas as pd
frame = pd.DataFrame({
    "text": pd.Series(["a", "b", None, "a"], dtype="str"),
    "string": pd.array(["a", None, "c", "d"], dtype="string"),
    "object": pd.Series(["p", None, "q", "r"], dtype=object),
    "flag": [0.0, 1.0, np.nan, 1.0],
    "ratio": [0.5, np.nan, 2.0, 1.0],
    "whole": [1, 2, 3, 4],
    "gaps": pd.array([1, None, 3, 4], dtype="Int16"),
    "yes": [True, False, True, True],
    "maybe": pd.array([True, None, False, True], dtype="boolean"),
    "ordered": pd.Categorical(["low", "high", None, "low"], categories=["low", "mid", "high"], ordered=True),
    "loose": pd.Categorical(["x", "y", "x", None]),
    "numbers": pd.Categorical([3, 1, 3, 1]),
    "day": pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"]),
})
"""

WITHOUT_ARROW = """
import sys
class Without:
    def __init__(self, finder): self.finder = finder
    def __getattr__(self, name): return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] == "pyarrow" else self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Without, sys.meta_path)
"""

TELL = """
import quadrille as qd
data = qd.from_frame(frame)
assert "pyarrow" not in sys.modules
print([(v.name, v.kind, v.values, v.role) for v in data.codebook], data.frame().rows())
"""


def _frame() -> pd.DataFrame:
    names: dict[str, pd.DataFrame] = {}
    exec(FRAME, names)  # the same words as in the other process
    return names["frame"]


def test_without_pyarrow_a_frame_of_pandas_is_the_same_data() -> None:
    data = qd.from_frame(_frame())
    words = [(v.name, v.kind, v.values, v.role) for v in data.codebook]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ARROW + FRAME + TELL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n") == f"{words} {data.frame().rows()}"


def test_the_types_of_pandas_are_read_as_what_they_mean() -> None:
    kinds = {name: variable.kind for name in _frame() if (variable := qd.from_frame(_frame()).codebook[str(name)])}
    assert kinds == {
        **dict.fromkeys(("text", "string", "object", "yes", "maybe", "loose", "day"), "nominal"),
        **dict.fromkeys(("flag", "whole", "gaps", "ordered", "numbers"), "ordinal"),
        "ratio": "numeric",
    }


def test_zero_and_one_with_gaps_stay_categories_and_other_floats_numbers() -> None:
    frame = pd.DataFrame({"flag": [0.0, np.nan, 1.0], "full": [0.0, 1.0, 1.0], "half": [0.5, np.nan, 1.0]})
    data = qd.from_frame(frame)
    assert data["flag"].variable.categories == (0, 1) and data["flag"].values.tolist() == [0, 2, 1]
    assert data["full"].variable.kind == data["half"].variable.kind == "numeric"


def test_a_column_of_mixed_types_is_refused_by_name() -> None:
    frame = pd.DataFrame({"a": [1, 2], "mixed": pd.Series(["Zebedee", 2], dtype=object)})
    with pytest.raises(InputError, match="Column 'mixed' of the frame mixes types") as caught:
        qd.from_frame(frame)
    assert "Zebedee" not in str(caught.value)
