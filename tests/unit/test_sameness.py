"""One recipe and one file make one plan and one release: on any machine, in any language, compiled or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from effort import NIGHTLY
from quadrille.io import parquet as parquet_module
from quadrille.io import write_pieces
from quadrille.io.space import Space
from quadrille.release import order as order_module
from quadrille.release.order import BucketOrder, pieces

pytestmark = pytest.mark.filterwarnings("ignore::quadrille.release.release.ReleaseWarning")

RECIPES: tuple[str, ...] = (
    '{"method":"RandomSwap","rate":0.1,"seed":7,"swap":["code","text"],"differ":"any","version":1}',
    '{"method":"RandomSwap","order":"one-by-one","pairs":20,"same":["many"],"seed":7,"swap":["code","flag"],"version":2}',
    '{"method":"RandomSwap","pairs":30,"sampler":"pair-uniform","seed":1,"swap":["text"],"rules":["code<2 & text=Io"]}',
    '{"method":"PermutationSwap","rate":0.1,"seed":7,"swap":["code"],"within":["flag"]}',
    '{"method":"PermutationSwap","kind":"pairs","records":40,"seed":7,"swap":["text"]}',
    '{"method":"ControlledSwap","seed":7,"swap":["code"],"targets":0.1}',
    '{"method":"ControlledSwap","seed":"' + "5f" * 32 + '","swap":["many"],"targets":0.1,"boundary":["flag"]}',
    '{"method":"PrivateSwap","chance":0.3,"seed":7,"swap":["code"],"within":["flag"]}',
    '{"method":"RankSwap","seed":7,"swap":["income","many"],"window":0.1,"within":["flag"]}',
    '{"buckets":9,"kernel":"buckets","method":"RankSwap","seed":7,"swap":["income"]}',
    '{"kernel":"normal","method":"RankSwap","seed":7,"swap":["income"],"window":0.1}',
    '{"method":"RankSwap","seed":7,"swap":["income"],"weighted":true,"window":0.1}',
    '{"method":"TargetedSwap","rate":0.1,"risk":["text","many"],"seed":7,"similar":[["flag","many"],["flag"]]}',
    '{"k":2,"loss":{"hellinger(code*many)":1.0},"method":"TargetedSwap","near":"loss","rate":0.05,"risk":["text"],"seed":7,'
    '"similar":[["flag"]]}',
    '{"k":12,"leftover":"leave","method":"CycleSwap","risk":["text","many"],"same":["flag"],"seed":7}',
    '{"method":"DesignedSwap","seed":7,"effort":0.05}',
    '{"method":"DesignedSwap","keep":"1-way","coin":0.3,"effort":0.05,"seed":7}',
    '{"method":"DesignedSwap","n":5,"seed":7,"version":1}',
    '{"method":"DesignedSwap","effort":0.05,"seed":8,"version":2}',
)
"""A recipe of every method and of every version that is still drawn, those of other kernels or tables, too."""

QUICK = tuple(text for text in RECIPES if "Designed" not in text)

N = 400


def table() -> pl.DataFrame:
    rng = np.random.default_rng(21)
    return pl.DataFrame(
        {
            "code": rng.integers(0, 4, N),
            "many": rng.integers(1, 3, N),
            "text": rng.choice(["Io", "io", "I", "ı", "Öl", "ol"], N),
            "flag": rng.random(N) < 0.3,
            "income": np.round(rng.lognormal(9, 1, N), 2),
            "w": rng.choice([0.5, 1.25, 2.0], N),
        }
    )


def data_of(frame: Any) -> qd.Data:
    """Return a frame as the recipes expect it: with a weight, and with areas for those that move between areas."""
    return qd.from_frame(frame, weight="w").with_roles(geography=["code"])


def data_at(path: Path | str) -> qd.Data:
    return qd.read(path, weight="w").with_roles(geography=["code"])


def digest_of(plan: qd.Plan) -> str:
    made = sha256()
    for move in plan.moves:
        made.update(json.dumps(move.columns).encode())
        made.update(np.asarray(move.rows, "<i8").tobytes() + np.asarray(move.source, "<i8").tobytes())
    return made.hexdigest()[:16]


def everything(path: Path, out: Path) -> dict[str, str]:
    """Return digests of all plans, of some scores, and of the public folder of an insecure seed."""
    data = data_at(path)
    plans = [qd.Recipe.from_json(text).plan(data) for text in RECIPES]
    found = {text: digest_of(plan) for text, plan in zip(RECIPES, plans, strict=True)}
    scores = [qd.score(data, plan, ["hellinger", "exposed", "cramers_v_change", "r_ased"]).as_dict() for plan in plans]
    found["scores"] = sha256(json.dumps(scores, sort_keys=True).encode()).hexdigest()[:16]
    found["fingerprint"] = str(data.fingerprint)
    for form in ("csv", "parquet"):
        recipe = qd.Recipe.from_json(RECIPES[0])
        made = qd.release(data, recipe, out / form, format=form, insecure=True, shuffle=False)
        for file in sorted(made.public.iterdir()):
            found[f"{form} {file.name}"] = sha256(file.read_bytes()).hexdigest()[:16]
        for name in ("plan.parquet", "scores.json", "account.json", "recipe.json", "hashes.json"):
            found[f"{form} {name}"] = sha256((made.confidential / name).read_bytes()).hexdigest()[:16]
        for shuffled in (False, True):
            found[f"{form} in pieces, shuffled {shuffled}"] = in_pieces(data, form, shuffled=shuffled)
    return found


def in_pieces(data: qd.Data, form: str, *, shuffled: bool) -> str:
    """Return the digest of a public file as those of many records are written: piece by piece, on several threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_module, "PIECE", 30)
        patch.setattr(order_module, "BUCKET", 64)
        patch.setattr(parquet_module, "_ROW_GROUP", 40)
        file, columns = BytesIO(), [data[name] for name in data.columns]
        order = BucketOrder(data.n, seed="5f" * 32) if shuffled else None
        write_pieces(file, f"data.{form}", columns, pieces(columns, order, Space()))
    return sha256(file.getvalue()).hexdigest()[:16]


SCRIPT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/.."]
from test_sameness import everything
print(json.dumps(everything(Path(sys.argv[2]), Path(sys.argv[3]))))
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("here")
    table().write_parquet(folder / "data.parquet")
    return folder / "data.parquet", everything(folder / "data.parquet", folder)


def elsewhere(path: Path, out: Path, **environment: str) -> dict[str, str]:
    words = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(path), str(out)]
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


TURKISH = {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONUTF8": "1"}
ONE = {"POLARS_MAX_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "all at once": {"PYTHONHASHSEED": "1", "TZ": "Pacific/Chatham", **ONE, **TURKISH, "COLUMNS": "40"},
    "another hash": {"PYTHONHASHSEED": "123456"},
    "no language": {"LC_ALL": "C", "LANG": "C"},
    "a language with another i": TURKISH,
    "east of Greenwich": {"TZ": "Pacific/Kiritimati"},
    "west of Greenwich": {"TZ": "Pacific/Niue"},
    "one thread": ONE,
    "many threads": {"POLARS_MAX_THREADS": "8", "NUMBA_NUM_THREADS": "2"},
    "nothing compiled": {"NUMBA_DISABLE_JIT": "1"},
    "compiled for any processor": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "optimised": {"PYTHONOPTIMIZE": "2"},
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name != "all at once")) for name in ENVIRONMENTS],
)
def test_neither_machine_nor_language_nor_zone_changes_a_plan_a_score_or_a_public_byte(
    name: str, here: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    path, expected = here
    assert len(set(list(expected.values())[: len(RECIPES)])) == len(RECIPES), "the plans are different ones"
    assert sha256().hexdigest()[:16] not in expected.values(), "no plan is empty"
    assert elsewhere(path, tmp_path, **ENVIRONMENTS[name]) == expected


INTERPRETED = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/.."]
from test_sameness import data_at, digest_of
import quadrille as qd
data = data_at(sys.argv[2])
print(json.dumps({text: digest_of(qd.Recipe.from_json(text).plan(data)) for text in sys.argv[3:]}))
"""


def test_without_compiled_code_the_plans_are_the_same(here: tuple[Path, dict[str, str]]) -> None:
    path, expected = here
    words = [sys.executable, "-c", INTERPRETED, str(Path(__file__).parent), str(path), *(RECIPES if NIGHTLY else QUICK)]
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == {text: expected[text] for text in found}


KINDS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_width_of_whole_numbers_changes_no_plan(kind: type[pl.DataType]) -> None:
    usual = data_of(table())
    other = data_of(table().with_columns(pl.col("code", "many").cast(kind)))
    for text in RECIPES:
        recipe = qd.Recipe.from_json(text)
        assert digest_of(recipe.plan(other)) == digest_of(recipe.plan(usual))


def text_as(kind: str, text: pl.Series) -> pl.Series:
    if kind == "categories in the order of the rows":
        return text.cast(pl.Categorical)
    return text.cast(pl.Enum(sorted(set(text))))


@pytest.mark.parametrize("kind", ["categories in the order of the rows", "an enum in order"])
def test_text_and_categories_make_the_same_plan(kind: str) -> None:
    usual = data_of(table())
    frame = table()
    other = data_of(frame.with_columns(text_as(kind, frame["text"])))
    for text in QUICK:
        recipe = qd.Recipe.from_json(text)
        assert digest_of(recipe.plan(other)) == digest_of(recipe.plan(usual))


def test_pandas_and_arrow_frames_make_the_same_plan() -> None:
    pytest.importorskip("pandas")
    usual, frame = data_of(table()), table()
    others = [frame.to_arrow(), frame.to_pandas(), frame.to_pandas(use_pyarrow_extension_array=True)]
    others.append(frame.to_pandas().astype({"text": "category"}))
    for other in others:
        data = data_of(other)
        for text in QUICK:
            recipe = qd.Recipe.from_json(text)
            assert digest_of(recipe.plan(data)) == digest_of(recipe.plan(usual))


def test_a_file_in_any_format_makes_the_same_plan(tmp_path: Path) -> None:
    usual = data_of(table())
    for ending in (".csv", ".csv.gz", ".tsv", ".parquet"):
        qd.write(usual, tmp_path / f"file{ending}")
        data = data_at(tmp_path / f"file{ending}")
        for text in QUICK:
            recipe = qd.Recipe.from_json(text)
            assert digest_of(recipe.plan(data)) == digest_of(recipe.plan(usual)), ending
