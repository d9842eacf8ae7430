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
    "unknown ending": ("inspect data.xls", "Supported are .csv"),
    "empty file": ("inspect empty.csv", "is empty"),
    "header only": ("inspect header.csv", "no records"),
    "duplicate column names": ("inspect duplicate.csv", "'Sex' occurs more than once"),
    "column without a name": ("inspect nameless.csv", "column 2 has no name"),
    "row too long": ("inspect ragged.csv", "line 3"),
    "row too short": ("inspect short.csv", "line 3"),
    "quotation mark left open": ("inspect quotes.csv", "quotation mark in line 2"),
    "unknown encoding": ("inspect encoding.csv", "not UTF-8"),
    "two separators": ("inspect separators.csv", "separated by commas or semicolons"),
    "thousands or decimals": ("inspect thousands.csv", "with three digits after each"),
    "wrong layout": ("inspect good.csv --layout separator", "--layout takes settings"),
    "layout of another format": ("inspect good.parquet --layout separator=;", "are for delimited text"),
    "role of a column that is not there": ("inspect good.csv --key Sexx", "Did you mean: 'Sex'"),
    "two roles": ("inspect good.csv --key Sex --outcome Sex", "is named for two roles"),
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
    "codebook that is a device": ("inspect good.csv --codebook /dev/zero", "it is a device or a pipe, not a file"),
    "recipe that is a device": ("swap good.csv --recipe /dev/zero", "it is a device or a pipe, not a file"),
    "job that is a device": ("search /dev/zero", "it is a device or a pipe, not a file"),
    "note that is a device": ("correct good.csv --methods-note /dev/zero", "it is a device or a pipe, not a file"),
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
    "rate as text": ("swap good.csv --swap Sex --rate lots", "a number in (0, 1]. Got 'lots'."),
    "pairs 0": ("swap good.csv --swap Sex --pairs 0", "1 or more. Got 0."),
    "pairs negative": ("swap good.csv --swap Sex --pairs -3", "1 or more. Got -3."),
    "pairs as a fraction": ("swap good.csv --swap Sex --pairs 2.5", "'pairs' parameter of RandomSwap must be a whole"),
    "too many pairs": ("swap good.csv --swap Sex --pairs 21", "the maximum is 20"),
    "rate and pairs": ("swap good.csv --swap Sex --rate 0.1 --pairs 5", "(number of pairs). Got both."),
    "neither rate nor pairs": ("swap good.csv --swap Sex", "(number of pairs). Got neither."),
    "permuted by both": ("swap good.csv --method permutation --swap Sex --rate 0.1 --records 5", "Got both."),
    "swap also in same": (f"swap good.csv {SWAP} --same Sex", "'Sex' is in both 'swap' and 'same'"),
    "same also in different": (f"swap good.csv {SWAP} --same Age --different Age", "both 'same' and 'different'"),
    "swap named twice": ("swap good.csv --swap Sex,Sex --pairs 5", "without repetitions"),
    "identifier swapped": ("swap good.csv --swap Name --pairs 5 --codebook book.toml", "has the role id"),
    "weight swapped": ("swap good.csv --swap Weight --pairs 5 --weight Weight", "is the weight"),
    "unknown differ": (f"swap good.csv {SWAP} --differ some", "'all', 'any', 'none'"),
    "unknown order": (f"swap good.csv {SWAP} --order mixed", "'together', 'one-by-one'"),
    "unknown sampler": (f"swap good.csv {SWAP} --sampler fast", "'first-uniform', 'pair-uniform'"),
    "seed as text": (f"swap good.csv {SWAP} --seed secret", "must be a whole number of 0 or more"),
    "seed negative": (f"swap good.csv {SWAP} --seed=-4", "Got -4."),
    "category seen once": ("swap once.csv --swap Region --pairs 2", "the maximum is 1"),
    "every class alone": ("swap good.csv --swap Sex --pairs 1 --same Name", "the maximum is 0"),
    "10,000 categories, all alone": (
        "swap many.csv --swap Sex --pairs 1 --same Code --codebook many.toml",
        "the maximum is 0",
    ),
    "constant column swapped": ("swap constant.csv --swap Sex --pairs 1", "the maximum is 0"),
    "missing recipe": ("swap good.csv --recipe nowhere.json", "Cannot read the recipe"),
    "broken recipe": ("swap good.csv --recipe broken.json", "'broken.json': The recipe is not valid JSON"),
    "recipe with a key twice": ("swap good.csv --recipe repeated.json", "'repeated.json': The recipe has 'pairs' more"),
    "recipe with a rate above 1": ("score good.csv --recipe rate.json", "'rate.json': The 'rate' parameter of"),
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
    # Recipes that are drawn and compared
    "nothing to compare": ("score good.csv", "Name a second file, or recipes to be drawn with --recipe FILE"),
    "compared with a missing recipe": ("score good.csv --recipe nowhere.json", "Cannot read the recipe"),
    "varied in an unknown parameter": ("score good.csv --recipe good.json --vary pair=3", "Did you mean: 'pairs'?"),
    "varied in nothing": ("score good.csv --recipe good.json --vary pairs", "like rate=0.01,0.05"),
    "varied over no number": ("score good.csv --recipe good.json --vary pairs=some", "of 1 or more. Got 'some'."),
    "varied over a fraction": ("score good.csv --recipe good.json --vary pairs=2.5", "of 1 or more. Got '2.5'."),
    "varied and without": ("score good.csv --recipe good.json --vary pairs=3 --without rules", "one of them"),
    "two recipes varied": ("score good.csv --recipe good.json --recipe good.json --vary pairs=3", "one --recipe"),
    "without what it needs": ("score good.csv --recipe good.json --without swap", "cannot do without 'swap'"),
    "without what it lacks": ("score good.csv --recipe good.json --without rules", "has no 'rules' to do without"),
    "no draws of a recipe": ("score good.csv --recipe good.json --draws 0", "--draws must be a whole number of 1"),
    "draws of two files": ("score good.csv good.csv --draws 2", "--draws is about recipes that are drawn"),
    "varied in two files": ("score good.csv good.csv --vary rate=0.1", "--vary is about recipes that are drawn"),
    "a condition for recipes": ("score good.csv --recipe good.json --where Sex=ZQm", "--where compares two files"),
    "two recipes of one file": ("score good.csv good.csv --recipe good.json --recipe good.json", "One recipe made"),
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
    "codebook exists": ("inspect good.csv --write-codebook book.toml", "exists"),
    "release into a full folder": (f"release good.csv {SWAP} --out filled", "or overwrite it with --overwrite."),
    "release into the current folder": (f"release good.csv {SWAP} --out .", "current folder"),
    "release over a file": (f"release good.csv {SWAP} --out book.toml", "a file of that name exists"),
    "release over the original": (f"release good.csv {SWAP} --out good.csv --overwrite", "is the original file"),
    "release over everything": (f"release good.csv {SWAP} --out / --overwrite", "lies in the folder '/'"),
    "release over a root": (f"release dataset:cps8d {SWAP} --out / --overwrite", "other files than a release"),
    "release below a file": (f"release good.csv {SWAP} --out good.csv/new", "is a file"),
    "release over other files": (f"release good.csv {SWAP} --out filled --overwrite", "other files"),
    "release in unknown format": (f"release good.csv {SWAP} --format xlsx", "'csv', 'parquet'"),
    "release that cannot be drawn": ("release good.csv --swap Sex --pairs 21", "the maximum is 20"),
    "release with an unknown unit": (f"release good.csv {SWAP} --readers --cluster bogus", "no column 'bogus'"),
    "release with an unknown stratum": (f"release good.csv {SWAP} --readers --var-stratum Regio", "'Region'"),
    "release with a unit, no readers": (f"release good.csv {SWAP} --cluster Region", "add --readers"),
    "release with strata, no readers": (f"release good.csv {SWAP} --var-stratum Region", "add --readers"),
    "report with a unit, no readers": ("report small.study --cluster Region", "add --readers"),
    "check with readers": (f"release good.csv {SWAP} --check --readers", "writes nothing: leave --readers out"),
    "check with a folder": (f"release good.csv {SWAP} --check --out new", "writes nothing: leave --out out"),
    "check with measures": (f"release good.csv {SWAP} --check --measures hellinger", "leave --measures out"),
    "check and overwrite": (f"release good.csv {SWAP} --check --overwrite", "leave --overwrite out"),
    "release with a bad measure": (f"release good.csv {SWAP} --measures helinger", "'hellinger'"),
    "demo over a file": ("demo --out good.csv", "is a file"),
    # Searches
    "missing job": ("search nowhere.toml", "Cannot read the job 'nowhere.toml': No such file"),
    "job with a bad rate": (
        "search bad_rate_job.toml",
        "bad_rate_job.toml, [grid 1] rate[2]: must be a number in (0, 1]. Got 1.5.",
    ),
    "dry run of a job with a bad rate": ("search bad_rate_job.toml --dry-run", "[grid 1] rate[2]: must be"),
    "job that is no TOML": ("search bad_toml_job.toml", "bad_toml_job.toml, line 6, column 8: this is not valid TOML"),
    "job without its data": ("search bad_data_job.toml", "bad_data_job.toml, [data]: Cannot read"),
    "job with an unknown column": ("search bad_column_job.toml", "[grid 2] swap: There is no column 'Sexx'."),
    "job with an unknown measure": ("search bad_measure_job.toml", "[search] measures[2]: There is no measure"),
    "data instead of a job": ("search good.csv", "good.csv, line 1, column 5: this is not valid TOML"),
    "search by no worker": ("search job.toml --workers 0", "--workers must be a whole number of 1 or more. Got 0."),
    "search without seeds": ("search job.toml --seeds 0", "--seeds must be a whole number of 1 or more. Got 0."),
    "search in the study of other data": ("search other_data_job.toml --out small.study", "made for other data"),
    "dry run in the study of other data": (
        "search other_data_job.toml --out small.study --dry-run",
        "made for other data",
    ),
    "search by other measures": ("search other_measures_job.toml --out small.study", "has other measures"),
    "dry run by other measures": ("search other_measures_job.toml --out small.study --dry-run", "has other measures"),
    "search over a file": ("search job.toml --out good.parquet", "not a study"),
    "search over a folder": ("search job.toml --out filled", "Cannot write the study 'filled': it is a folder."),
    "dry run over a folder": ("search job.toml --out filled --dry-run", "it is a folder."),
    "search below a file": ("search job.toml --out good.csv/study", "a file stands where its folder should be"),
    "frontier of nothing": ("frontier nowhere", "There is no study 'nowhere'"),
    "frontier of a file": ("frontier good.csv", "not a study"),
    "runs of several designs": ("frontier small.study --runs", "has 16 designs, and runs differ by seed only"),
    "runs of a design without a number": (
        "frontier small.study --runs",
        "Name one with --design N. 1: Sex, rate 10 %; 2:",
    ),
    "runs of an unknown design": (
        "frontier small.study --runs --design 99",
        "no design 99. Name one with --design N. 1:",
    ),
    "design without runs": ("frontier small.study --design 1", "add --runs"),
    "runs over the study": (
        "frontier small.study --runs --design 1 --chart small.study --overwrite",
        "is the study that",
    ),
    "frontier of an unknown measure": ("frontier small.study --risk expsed", "Did you mean: 'exposed'?"),
    "loss as the risk of a frontier": ("frontier small.study --risk hellinger", "is a measure of loss, not of risk"),
    "risk as the loss of a frontier": ("frontier small.study --loss exposed", "is a measure of risk, not of loss"),
    "loss as the risk of a pick": ("pick small.study --risk hellinger", "has for risk: small_cells, exposed"),
    "risk as the loss of a pick": ("pick small.study --loss exposed", "has for loss: hellinger"),
    "pick from nothing": ("pick nowhere", "There is no study 'nowhere'"),
    "unknown criterion": (
        "pick small.study --criterion best",
        "--criterion must be one of gentle, balanced, safe, knee, least-loss",
    ),
    "limit that nothing keeps": ("pick small.study --max-loss 0", "No candidate keeps the limits"),
    "limit of risk below 0": ("pick small.study --max-risk=-1", "--max-risk must be a number of 0 or more. Got -1.0."),
    "limit that is no number": (
        "pick small.study --max-loss nan",
        "--max-loss must be a number of 0 or more. Got nan.",
    ),
    "linear without a trade": ("pick small.study --criterion linear", "'trade'"),
    "trade below 0": ("pick small.study --trade=-1", "--trade must be a number of 0 or more"),
    "infinite trade": ("pick small.study --trade inf", "--trade must be a number of 0 or more"),
    "trade with another criterion": (
        "pick small.study --criterion knee --trade 1",
        "--trade goes with --criterion linear",
    ),
    "weights with another criterion": (
        "pick small.study --criterion knee --weights 1,1",
        "--weights goes with --criterion ideal",
    ),
    "HD ignored by another criterion": ("pick small.study --ignore-hd", "--ignore-hd goes with --criterion dohrmann"),
    "trade and weights": ("pick small.study --trade 1 --weights 1,1", "not both"),
    "one weight": ("pick small.study --weights 1", "two numbers of 0 or more"),
    "weights of 0": ("pick small.study --weights 0,0", "two numbers of 0 or more"),
    "weights as text": ("pick small.study --weights a,b", "two numbers of 0 or more"),
    "chosen recipe exists": ("pick small.study --save-recipe good.json", "exists"),
    "chosen recipe over the study": ("pick small.study --save-recipe small.study --overwrite", "is the study that"),
    "readers where no folder can be": (
        "report small.study good.csv --codebook book.toml --readers --out filled.html",
        "filled-readers': a file of that name exists",
    ),
    "report as a PDF": ("report small.study good.csv --codebook book.toml --out new.pdf", "End it with .html"),
    "report without an ending, with readers": (
        "report small.study good.csv --codebook book.toml --readers --out new",
        "End it with .html",
    ),
    "report in no folder, with readers": (
        "report small.study good.csv --codebook book.toml --readers --out nowhere/new.html",
        "No such file",
    ),
    "chosen recipe in no folder": ("pick small.study --note x --save-recipe nowhere/new.json", "No such file"),
    "candidate without a study": ("release good.csv --candidate 1", "name it with --study"),
    "pick without a study": ("release good.csv --pick", "name it with --study"),
    "study without a candidate": ("release good.csv --study small.study", "--candidate ID, or --pick"),
    "candidate and pick": (
        "release good.csv --study small.study --candidate 1 --pick",
        "--candidate or --pick, not both",
    ),
    "study and options": ("release good.csv --study small.study --pick --rate 0.1", "--study or --rate, not both"),
    "study and recipe": ("release good.csv --study small.study --pick --recipe good.json", "--study or --recipe"),
    "unknown candidate": ("release good.csv --study small.study --candidate 999", "no candidate 999"),
    "candidate beyond 64 bits": (f"release good.csv --study small.study --candidate {10**30}", "no candidate"),
    "missing study": ("release good.csv --study nowhere --pick", "There is no study 'nowhere'"),
    "release of other data": ("release constant.csv --codebook book.toml --study small.study --pick", "other data"),
    "release without the codebook": ("release good.csv --study small.study --pick", "made for other data"),
    # Commands
    "factor and note": ("correct good.csv --f .1 --methods-note book.toml", "--f or --methods-note, not both"),
    "unknown paper": ("reproduce gomatam-kar-2003", "Did you mean: 'gomatam-karr-2003'?"),
    "no draws": ("reproduce gomatam-karr-2003 --draws 0", "--draws must be a whole number of 2 or more. Got 0."),
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
    import quadrille

    def broken(*_: object, **__: object) -> None:
        raise ValueError("ZQ-secret-value")

    monkeypatch.setattr(quadrille, "inspect", broken)
    result = run("inspect good.csv")
    assert result.exit_code == 1
    assert re.fullmatch(
        r"quadrille: internal error \(ValueError in test_bad_calls\.py, line \d+\)\. .*\n", result.stderr
    )
    assert SECRET not in result.output
    monkeypatch.setenv("QUADRILLE_DEBUG", "1")
    assert isinstance(run("inspect good.csv").exception, ValueError)


def test_an_interruption_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import quadrille

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(quadrille, "inspect", stop)
    result = run("inspect good.csv")
    assert (result.exit_code, result.stdout) == (130, "")


def test_a_message_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    guard.tell("several\n  lines")
    assert capsys.readouterr().err == "quadrille: several lines\n"


def test_a_message_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    guard.tell("a column \x1b]0;owned\x07 of \u202ename")
    assert capsys.readouterr().err == "quadrille: a column \\x1b]0;owned\\x07 of \\u202ename\n"


def test_names_of_columns_are_shown_with_their_control_characters_escaped(run: Run, folder: Path) -> None:
    rows = "\n".join(f"{'ab'[i % 2]},{'xyz'[i % 3]},{i % 4}" for i in range(40))
    (folder / "odd.csv").write_text(f'"S\x1b[31mex","Line\nbreak",Age\n{rows}\n')
    seen = run("inspect odd.csv --categories --reasons").stdout
    seen += run(["swap", "odd.csv", "--swap", "S\x1b[31mex", "--pairs", "5"]).stdout
    assert not set(seen) & {chr(i) for i in range(32) if i != 10}
    assert "S\\x1b[31mex" in seen
    assert "Line\\nbreak" in seen


@pytest.mark.parametrize("columns", [1_100, 15_000])
def test_the_number_of_possible_cells_may_be_beyond_every_float(columns: int) -> None:
    from quadrille.text import large

    assert large(2**columns) == f"about 10^{round(columns * 0.30103)}"


def test_a_file_of_very_many_columns_is_shown(run: Run, folder: Path) -> None:
    head = ",".join(f"c{i}" for i in range(1_100))
    (folder / "wide.csv").write_text(head + "\n" + "\n".join(",".join("ab"[i % 2] * 1_100) for i in range(4)) + "\n")
    done = run("inspect wide.csv")
    assert done.exit_code == 0, done.output
    assert "about 10^331 possible, 2 occupied" in done.stdout


@pytest.mark.parametrize("name", ["book.toml", "job.toml", "good.json"])
def test_the_mark_that_windows_puts_before_a_text_is_no_part_of_it(name: str, run: Run, folder: Path) -> None:
    (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes().replace(b"\n", b"\r\n"))
    calls = {
        "book.toml": "inspect good.csv --codebook book.toml",
        "job.toml": "search job.toml --dry-run",
        "good.json": "swap good.csv --recipe good.json",
    }
    done = run(calls[name])
    assert done.exit_code == 0, done.output


def test_a_name_does_not_break_a_line_of_the_dossier(run: Run, folder: Path) -> None:
    rows = "\n".join(f"{'ab'[i % 2]},{'xyz'[i % 3]},1.5" for i in range(40))
    (folder / "odd.csv").write_text(f'"S\x1b[31mex","Line\n# break","W\n# ow"\n{rows}\n')
    given = ["--swap", "Line\n# break", "--pairs", "5", "--weight", "W\n# ow"]
    done = run(["release", "odd.csv", *given, "--out", "made"])
    assert done.exit_code == 0, done.output
    for path in (folder / "made/confidential/dossier.md", folder / "made/public/methods.md"):
        text = path.read_text()
        assert not set(text) & {chr(i) for i in range(32) if i != 10}
        assert "\n# break" not in text
        assert "\n# ow" not in text
        assert r"W\n# ow" in text


def test_a_count_of_any_length_can_be_printed_as_json() -> None:
    from quadrille.io.atomic import as_json

    assert as_json({"possible": 2**15_000}).split()[2] == '"about'
    assert as_json([2**14_000 - 1]).split()[1] == str(2**14_000 - 1)


def test_no_words_at_all_show_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert "Usage: quadrille" in result.output
