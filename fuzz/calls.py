"""Calls of the command line. An input is a call, one word per line.

Whatever the words, a call ends with 0 or 2 and, when it fails, one message, nothing on stdout and no file changed.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import typer
from typer.testing import CliRunner, Result

from fuzz.seeds import CORPUS
from quadrille.cli import app
from quadrille.cli.options import method_options
from quadrille.recipe import known_methods

FILES = (
    *("csv/survey.csv", "csv/quoted.csv", "csv_gz/survey.csv.gz", "parquet/survey.parquet", "codebook/survey.toml"),
    *("codebook/geography.toml", "job/random.toml", "design/simulate.toml", "policy/example.toml", "study/small.db"),
    *(f"recipe/{name}.json" for name in ("random", "permutation", "private", "rank", "targeted", "cycle")),
    "note/methods.md",
)
"""What lies in the folder that calls are made in. Files of statistics programs start a process each and stay out."""

_TABLE = "Age,ZQm,ZQf\n1,30,4\n2,11,50\n"
LONG = ("reproduce", "demo")  # run for seconds when nothing is wrong with their words


def _options() -> list[str]:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = [option for command in commands.values() for option in command.params]
    options += [option for method in known_methods().values() for option in method_options(method)]
    return [*commands, *sorted({word for option in options for word in option.opts if word[0] == "-"})]


WORDS = tuple(
    f"\n{word}\n".encode()
    for word in (
        *_options(),
        *(Path(name).name for name in FILES),
        *("Sex", "Age", "Region", "Income", "Weight", "Sex,Age", "Sex*Age", "nowhere", "new", "new.csv", "new.parquet"),
        *(
            "filled",
            "table.csv",
            "0",
            "1",
            "-1",
            "0.1",
            "0.2,0.3",
            "nan",
            "1e309",
            "5",
            "csv",
            "parquet",
            "xlsx",
            "all",
        ),
        *("hellinger", "exposed(n=2)", "Sex=a", "Age>1", "pairs", "cycles", "across", "controlled", "designed", "knee"),
        *("permutation", "private", "rank", "targeted", "cycle", "RandomSwap", "fuzz.calls:Nobody"),
        *("rate=0.1,0.2", "pairs=2,3", "rules", "same"),
        *(
            "--help",
            "--version",
            "--",
            "-",
            "=",
            "",
            "%",
            "99999999999999999999",
            "é",
            "dataset:cps9d",
            "random",
            "any",
        ),
    )
)


def call(raw: bytes, _folder: Path) -> str:
    """Make a call and check what it leaves behind."""
    from fuzz.targets import CANARY, BrokenLawError

    words = _words(raw)
    home = _home()
    before = _listing(home)
    result = _run(words, home)
    after = _listing(home)
    if after != before:
        _restore(home)
    judged = any("policy" in word for word in words)  # the verdict of a policy is a result, also when it is "fail"
    faults = [
        (result.exit_code not in (0, 2), f"exit code {result.exit_code}: {result.exception!r} {result.stderr[-300:]}"),
        ("Traceback" in result.output, "a traceback"),
        ("internal error" in result.stderr, "an internal error"),
        (CANARY in result.stderr and CANARY not in " ".join(words), "a data value in a message"),
        (result.exit_code == 2 and result.stdout != "" and not judged, "a failed call printed to stdout"),
        (result.exit_code == 2 and after != before, f"a failed call changed files: {sorted(set(after) ^ set(before))}"),
        (result.exit_code == 2 and not result.stderr.strip(), "a failed call says nothing"),
        (bool(_LEFT & {Path(name).name[:11] for name in after}), "a temporary file is left"),
    ]
    for broken, text in faults:
        if broken:
            raise BrokenLawError(f"{text}. Call: {words}")
    told = re.sub(r"'[^']*'|[\d.,]+", "_", result.stderr.strip().splitlines()[-1][:90] if result.stderr.strip() else "")
    return f"call {words[:1]} {result.exit_code} {told}"


_LEFT = {".quadrille-"}


def _words(raw: bytes) -> list[str]:
    """Return the words of a call, kept inside its folder and to one worker."""
    text = raw.decode("utf-8", errors="replace").replace("..", ".")
    words = [word for word in re.sub(r"(?<![a-z])/", "|", text).split("\n") if word]
    while "--workers" in words:
        del words[words.index("--workers") : words.index("--workers") + 2]
    words = [word for word in words if not word.startswith(("--work", "--install", "--show"))]
    if words and words[0] in ("search", "simulate"):
        words += ["--workers", "1"]
    if words and words[0] == "studio":  # kept to a folder of its own, and never served: no port is below 0
        rest = [word for word in words[1:] if not word.startswith(("--ho", "--po"))]
        words = ["studio", "--home", str(_studio()), "--port=-1", *rest]
    return [*words, "--nonsense"] if words and words[0] in LONG else words


def _run(words: list[str], home: Path) -> Result:
    before = Path.cwd()
    os.chdir(home)
    try:
        return CliRunner().invoke(app, words)
    finally:
        os.chdir(before)


@cache
def _home() -> Path:
    home = Path(mkdtemp(prefix="quadrille-calls-"))
    _fill(home)
    return home


@cache
def _studio() -> Path:
    return Path(mkdtemp(prefix="quadrille-studio-"))


def _fill(home: Path) -> None:
    for name in FILES:
        shutil.copyfile(CORPUS / name, home / Path(name).name)
    (home / "table.csv").write_text(_TABLE)
    (home / "filled").mkdir()
    (home / "filled" / "notes.txt").write_text("ZQ")


def _restore(home: Path) -> None:
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    _fill(home)


def _listing(home: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(home)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in home.rglob("*")
        if path.is_file()
    } | {str(path.relative_to(home)): (0, 0) for path in home.rglob("*") if path.is_dir()}
