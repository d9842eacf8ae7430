"""Every bad call: one clear line, exit code 2, no traceback, no data value, nothing written."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from cli_files import SECRET, Run
from typer.testing import CliRunner

from quadrille.cli import app, guard

SWAP = "--swap Sex --pairs 5"

# What is called, and what the message must say.
BAD_CALLS: dict[str, tuple[str, str]] = {
    # Files
    "missing file": ("inspect nowhere.csv", "No such file"),
    "folder instead of a file": ("inspect subfolder.csv", "Is a directory"),
    "unknown ending": ("inspect data.xlsx", "Supported are .csv"),
    "empty file": ("inspect empty.csv", "is empty"),
    "header only": ("inspect header.csv", "no records"),
    "duplicate column names": ("inspect duplicate.csv", "'Sex' occurs more than once"),
    "column without a name": ("inspect nameless.csv", "column 2 has no name"),
    "row too long": ("inspect ragged.csv", "line 3"),
    "row too short": ("inspect short.csv", "line 3"),
    "quotation mark left open": ("inspect quotes.csv", "quotation mark in line 2"),
    "not UTF-8": ("inspect latin1.csv", "not UTF-8"),
    "wrong separator": ("inspect semicolons.csv", "semicolons"),
    "gzip cut off": ("inspect cut.csv.gz", "cut off"),
    "gzip that is none": ("inspect plain.csv.gz", "not intact gzip"),
    "Parquet cut off": ("inspect cut.parquet", "not intact Parquet"),
    "Parquet that is none": ("inspect text.parquet", "not intact Parquet"),
    "unknown data set": ("inspect dataset:cps9d", "Did you mean: 'cps8d'?"),
    "codebook for a data set": ("inspect dataset:cps8d --codebook book.toml", "its own codebook"),
    "weight that a data set lacks": ("inspect dataset:cps8d --weight Wgt", "no column 'Wgt'"),
    # Weights
    "unknown weight": ("inspect good.csv --weight Wieght", "Did you mean: 'Weight'?"),
    "missing weights": ("inspect nan_weight.csv --weight Weight", "is missing in 17 rows"),
    "negative weights": ("inspect negative_weight.csv --weight Weight", "negative or infinite in 17 rows"),
    "infinite weights": ("inspect infinite_weight.csv --weight Weight", "Weight column 'Weight'"),
    "text as weights": ("inspect text_weight.csv --weight Weight", "'Weight'"),
    "all weights 0": ("inspect zero_weight.csv --weight Weight", "0 in every row"),
    "text column as weight": ("inspect good.csv --weight Sex", "'Sex'"),
    "two weights": ("inspect good.csv --codebook twice.toml", "2 columns the role weight"),
    # Codebooks
    "missing codebook": ("inspect good.csv --codebook nowhere.toml", "Cannot read the codebook"),
    "broken codebook": ("inspect good.csv --codebook broken.toml", "not valid TOML"),
    "unknown kind": ("inspect good.csv --codebook kind.toml", "one of nominal, ordinal, numeric"),
    "unknown role": ("inspect good.csv --codebook role.toml", "one of id, weight"),
    "unknown setting": ("inspect good.csv --codebook setting.toml", "Did you mean: 'categories'?"),
    "column that the file lacks": ("inspect good.csv --codebook column.toml", "Did you mean: 'Sex'?"),
    "value that the codebook lacks": ("inspect good.csv --codebook value.toml", "in 20 rows"),
    "labels without categories": ("inspect good.csv --codebook labels.toml", "1 labels for 2 categories"),
    "text declared numeric": ("inspect good.csv --codebook numeric.toml", "'Sex'"),
    "no table per column": ("inspect good.csv --codebook top.toml", "[columns.NAME]"),
    # Recipes
    "no swap variable": ("swap good.csv --rate 0.1", "--swap"),
    "unknown swap variable": ("swap good.csv --swap Sexx --pairs 5", "Did you mean: 'Sex'?"),
    "unknown same": (f"swap good.csv {SWAP} --same Agee", "Did you mean: 'Age'?"),
    "unknown different": (f"swap good.csv {SWAP} --different Regio", "Did you mean: 'Region'?"),
    "rate 0": ("swap good.csv --swap Sex --rate 0", "a number in (0, 1]. Got 0.0."),
    "rate above 1": ("swap good.csv --swap Sex --rate 1.5", "a number in (0, 1]. Got 1.5."),
    "rate nan": ("swap good.csv --swap Sex --rate nan", "a number in (0, 1]. Got nan."),
    "rate too small": ("swap good.csv --swap Sex --rate 0.0001", "no pair at all for 60 records"),
    "rate as text": ("swap good.csv --swap Sex --rate lots", "--rate"),
    "pairs 0": ("swap good.csv --swap Sex --pairs 0", "1 or more. Got 0."),
    "pairs negative": ("swap good.csv --swap Sex --pairs -3", "1 or more. Got -3."),
    "pairs as a fraction": ("swap good.csv --swap Sex --pairs 2.5", "--pairs"),
    "too many pairs": ("swap good.csv --swap Sex --pairs 21", "the maximum is 20"),
    "rate and pairs": ("swap good.csv --swap Sex --rate 0.1 --pairs 5", "one of 'rate'"),
    "neither rate nor pairs": ("swap good.csv --swap Sex", "one of 'rate'"),
    "swap also in same": (f"swap good.csv {SWAP} --same Sex", "'Sex' is in both 'swap' and 'same'"),
    "same also in different": (f"swap good.csv {SWAP} --same Age --different Age", "both 'same' and 'different'"),
    "swap named twice": ("swap good.csv --swap Sex,Sex --pairs 5", "without repetitions"),
    "identifier swapped": ("swap good.csv --swap Name --pairs 5 --codebook book.toml", "has the role id"),
    "weight swapped": ("swap good.csv --swap Weight --pairs 5 --weight Weight", "is the weight"),
    "unknown differ": (f"swap good.csv {SWAP} --differ some", "'all', 'any', 'none'"),
    "unknown order": (f"swap good.csv {SWAP} --order mixed", "'together', 'one-by-one'"),
    "unknown sampler": (f"swap good.csv {SWAP} --sampler fast", "'first-uniform', 'pair-uniform'"),
    "seed as text": (f"swap good.csv {SWAP} --seed secret", "whole number of 0 or more"),
    "seed negative": (f"swap good.csv {SWAP} --seed=-4", "Got -4."),
    "category seen once": ("swap once.csv --swap Region --pairs 2", "the maximum is 1"),
    "every class alone": ("swap good.csv --swap Sex --pairs 1 --same Name", "the maximum is 0"),
    "10,000 categories, all alone": (
        "swap many.csv --swap Sex --pairs 1 --same Code --codebook many.toml",
        "the maximum is 0",
    ),
    "constant column swapped": ("swap constant.csv --swap Sex --pairs 1", "the maximum is 0"),
    "missing recipe": ("swap good.csv --recipe nowhere.json", "Cannot read the recipe"),
    "broken recipe": ("swap good.csv --recipe broken.json", "not valid JSON"),
    "recipe that is a list": ("swap good.csv --recipe list.json", 'a "method"'),
    "unknown method": ("swap good.csv --recipe method.json", "Did you mean: 'RandomSwap'?"),
    "other version": ("swap good.csv --recipe version.json", "version 99"),
    "unknown parameter": ("swap good.csv --recipe parameter.json", "Did you mean: 'pairs'?"),
    "recipe without swap": ("swap good.csv --recipe missing.json", "swap"),
    "recipe with wrong types": ("swap good.csv --recipe type.json", "a list of column names"),
    "recipe and options": ("swap good.csv --recipe good.json --rate 0.1", "--recipe or --rate, not both"),
    # Measures
    "unknown measure": (f"swap good.csv {SWAP} --measures helinger", "Did you mean: 'hellinger'?"),
    "unknown margin": (f"swap good.csv {SWAP} --measures hellinger(Sexx*Age)", "Did you mean: 'Sex'?"),
    "unknown option": (f"swap good.csv {SWAP} --measures hellinger(Sex,were=1)", "Did you mean: 'where'?"),
    "unbalanced brackets": (f"swap good.csv {SWAP} --measures hellinger(Sex", "like name, name(A*B)"),
    "variable twice": (f"swap good.csv {SWAP} --measures hellinger(Sex*Sex)", "occurs twice"),
    "no measure": (f"swap good.csv {SWAP} --measures ,", "like name, name(A*B)"),
    "numeric in a table": (f"swap good.csv {SWAP} --measures hellinger(Weight*Sex) --weight Weight", "is numeric"),
    "one variable, two needed": (f"swap good.csv {SWAP} --measures cramers_v_change(Sex)", "two variables"),
    "unknown label in where": ("score good.csv good.csv --where Region=nowhere", "'Region' does not have"),
    "unknown column in where": ("score good.csv good.csv --where Regio=nowhere", "Did you mean: 'Region'?"),
    "where without a condition": ("score good.csv good.csv --where Region", "not understood"),
    "second file is missing": ("score good.csv nowhere.csv", "No such file"),
    "second file lacks a column": ("score good.csv many.csv --measures hellinger(Region)", "no column 'Region'"),
    "recipe that made another file": ("score good.csv good.csv --recipe good.json", "not what the recipe makes"),
    # Output
    "output exists": (f"swap good.csv {SWAP} --out book.toml", "exists"),
    "output is the original": (f"swap good.csv {SWAP} --out good.csv --overwrite", "the original"),
    "output of unknown kind": (f"swap good.csv {SWAP} --out new.xlsx --save-recipe new.json", "Supported are"),
    "output in no folder": (f"swap good.csv {SWAP} --out nowhere/new.csv --save-recipe new.json", "No such file"),
    "two results in one file": (f"swap good.csv {SWAP} --out new.csv --save-recipe new.csv", "Name two files"),
    "output is a folder": (f"swap good.csv {SWAP} --out subfolder.csv --overwrite", "it is a folder"),
    "output fails, recipe stays": (
        f"swap good.csv {SWAP} --out nowhere/new.csv --save-recipe good.json --overwrite",
        "No such file",
    ),
    "recipe exists": (f"swap good.csv {SWAP} --save-recipe good.json", "exists"),
    "recipe in no folder": (f"swap good.csv {SWAP} --save-recipe nowhere/new.json", "No such file"),
    "codebook exists": ("codebook good.csv --out book.toml", "exists"),
    "release into a full folder": (f"release good.csv {SWAP} --out filled", "not empty"),
    "release into the current folder": (f"release good.csv {SWAP} --out .", "current folder"),
    "release over a file": (f"release good.csv {SWAP} --out good.csv", "a file of that name exists"),
    "release below a file": (f"release good.csv {SWAP} --out good.csv/new", "is a file"),
    "release over other files": (f"release good.csv {SWAP} --out filled --overwrite", "other files"),
    "release in unknown format": (f"release good.csv {SWAP} --format sav", "'csv', 'parquet'"),
    "release that cannot be drawn": ("release good.csv --swap Sex --pairs 21", "the maximum is 20"),
    "release with a bad measure": (f"release good.csv {SWAP} --measures helinger", "'hellinger'"),
    "demo over a file": ("demo --out good.csv", "is a file"),
    # Commands
    "unknown paper": ("reproduce gomatam-kar-2003", "Did you mean: 'gomatam-karr-2003'?"),
    "no seeds": ("reproduce gomatam-karr-2003 --seeds 0", "seeds"),
    "unknown sampler for a paper": ("reproduce gomatam-karr-2003 --sampler fast", "'first-uniform'"),
    "unknown command": ("inspekt good.csv", "inspekt"),
    "unknown option of a command": ("inspect good.csv --wieght Weight", "--wieght"),
    "no file": ("inspect", "FILE"),
}


def listing(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_the_table_is_long_enough() -> None:
    assert len(BAD_CALLS) >= 40


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_says_what_is_wrong_and_touches_nothing(name: str, run: Run, folder: Path) -> None:
    words, message = BAD_CALLS[name]
    before = listing(folder)
    result = run(words.split(" "))
    told = " ".join(result.stderr.split())
    assert result.exit_code == 2, result.output
    assert message in told
    assert result.stdout == ""
    assert "Traceback" not in result.output
    assert SECRET not in result.output
    assert "77.125" not in result.output
    assert listing(folder) == before
    if told.startswith("quadrille: "):
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "name", [name for name, (words, _) in BAD_CALLS.items() if words.split()[0] in ("swap", "inspect")][::9]
)
def test_a_bad_call_with_json_leaves_stdout_empty(name: str, run: Run) -> None:
    result = run([*BAD_CALLS[name][0].split(" "), "--json"])
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("ids", ["9223372036854775808", "18446744073709551615"])
def test_ids_beyond_63_bits_are_refused_as_weights_or_kept_exact(run: Run, folder: Path, ids: str) -> None:
    lines = [f"{int(ids) - i},{'ab'[i % 2]}" for i in range(10)]
    (folder / "big.csv").write_text("Serial,Sex\n" + "\n".join(lines) + "\n")
    result = run("inspect big.csv --weight Serial")
    assert result.exit_code == 2, result.output
    assert "'Serial'" in result.stderr
    assert ids not in result.output


def test_an_unwritable_folder_is_told(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.mkdir

    def refuse(path: Path, *args: int, **kwargs: bool) -> None:
        # The file system does not stop the superuser, so the refusal is made here.
        if path.parent.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        real(path, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", refuse)
    result = run(f"release good.csv {SWAP} --out closed/release")
    assert result.exit_code == 2
    assert "closed/release': Permission denied" in result.stderr
    assert not (folder / "closed").exists()


def test_an_internal_error_shows_kind_and_place_but_no_value(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import quadrille.cli.profile

    def broken(*_: object, **__: object) -> None:
        raise ValueError("ZQ-secret-value")

    monkeypatch.setattr(quadrille.cli.profile, "profile", broken)
    result = run("inspect good.csv")
    assert result.exit_code == 1
    assert re.fullmatch(
        r"quadrille: internal error \(ValueError in test_bad_calls\.py, line \d+\)\. .*\n", result.stderr
    )
    assert SECRET not in result.output
    monkeypatch.setenv("QUADRILLE_DEBUG", "1")
    assert isinstance(run("inspect good.csv").exception, ValueError)


def test_an_interruption_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import quadrille.cli.profile

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(quadrille.cli.profile, "profile", stop)
    result = run("inspect good.csv")
    assert (result.exit_code, result.stdout) == (130, "")


def test_a_message_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    guard.tell("several\n  lines")
    assert capsys.readouterr().err == "quadrille: several lines\n"


def test_no_words_at_all_show_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert "Usage: quadrille" in result.output
