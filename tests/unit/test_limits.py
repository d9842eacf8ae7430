"""Where the machine gives no more, a command says what is lacking, and leaves nothing half-written.

Full disks, closed folders, kills, wrong clocks and two releases at once are in `test_faults.py`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest
from release_case import BOOK, N, files_of_at_most, table, tree
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli import app
from quadrille.cli.guard import LEAST_ADDRESSES
from quadrille.errors import InputError, OutputError
from quadrille.io import raw
from quadrille.io.atomic import new_file
from quadrille.io.needs import needs_of
from quadrille.io.space import Space

PROGRAM = str(Path(sys.executable).with_name("quadrille"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    table().write_csv(tmp_path / "good.csv")
    (tmp_path / "book.toml").write_text(BOOK.to_toml())
    return tmp_path


def limited(words: list[str], home: Path, **limits: int) -> subprocess.CompletedProcess[str]:
    def set_limits() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))

    return subprocess.run(
        [PROGRAM, *words], cwd=home, capture_output=True, text=True, check=False, preexec_fn=set_limits
    )


@contextmanager
def open_files_left(count: int) -> Generator[None]:
    """Let this process open so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        while count and taken:
            os.close(taken.pop())
            count -= 1
        yield
    finally:
        for handle in taken:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


RELEASE = ["release", "good.csv", "--codebook", "book.toml", "--swap", "Region", "--pairs", "20", "--out", "out"]


@pytest.mark.parametrize("mebibytes", [300, 1_000, 1_600])
def test_too_few_addresses_are_refused_before_the_libraries_fail(mebibytes: int, home: Path) -> None:
    before = tree(home)
    done = limited(RELEASE, home, AS=mebibytes << 20)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1 and f"{mebibytes} MiB of addresses (ulimit -v)" in done.stderr.replace(",", "")
    assert tree(home) == before
    assert limited(["--version"], home, AS=mebibytes << 20).returncode == 0


@pytest.mark.nightly
@pytest.mark.parametrize("words", [["inspect", "good.csv"], RELEASE], ids=lambda words: words[0])
@pytest.mark.parametrize("files", [6, 7, 8, 10, 12, 14])
def test_too_few_open_files_are_said_to_be_too_few(words: list[str], files: int, home: Path) -> None:
    done = limited(words, home, NOFILE=files)
    left = {name for name in tree(home) if name not in ("good.csv", "book.toml")}
    if done.returncode == 0:
        assert bool(left) == (words is RELEASE)
    else:
        assert done.returncode == 2 and left == set(), done.stderr
        assert "open files" in done.stderr or "Too many open files" in done.stderr


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_chart_for_which_too_few_files_can_be_opened_is_refused_before_the_library_panics(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the library prints of a panic, it prints to stderr itself, and later charts fail without a reason."""
    groups = pl.DataFrame({"size": ["1", "2+"], "order": [0, 1], "swapped": [0.1, 0.1], "records": [361, 48481]})
    picture = qd.chart.who_was_swapped(groups)
    with open_files_left(8), pytest.raises(OSError, match="Too many open files"):
        qd.chart.save(picture, tmp_path / f"chart.{kind}")
    assert list(tmp_path.iterdir()) == [] and capfd.readouterr().err == ""
    assert qd.chart.save(picture, tmp_path / f"chart.{kind}").stat().st_size


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (MemoryError("CANARY"), "memory"),
        (OSError(errno.EMFILE, "CANARY"), "open files (ulimit -n)"),
        (OSError(errno.ENOSPC, "CANARY"), "room on the disk"),
        (OSError(errno.EDQUOT, "CANARY"), "room on the disk for this user"),
        (BlockingIOError(errno.EAGAIN, "CANARY"), "processes or threads (ulimit -u)"),
    ],
)
def test_what_is_lacking_is_named_and_is_no_fault_of_the_program(
    error: Exception, lacking: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(import_module("quadrille.release.release"), "_draft", fail)
    done = CliRunner().invoke(app, [*RELEASE[:1], f"{home}/good.csv", *RELEASE[4:8], "--out", f"{home}/out"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"quadrille: there is not enough {lacking}. ") and "CANARY" not in done.stderr
    assert not (home / "out").exists()


def test_the_limit_of_addresses_is_what_the_libraries_need() -> None:
    """It neither turns away who could work, nor lets anybody in who could not: a small release takes 1,709 MiB."""
    assert 1_709 << 20 < LEAST_ADDRESSES < 2 << 30
    assert raw.ADDRESSES == LEAST_ADDRESSES


@pytest.mark.parametrize("name", ["large.csv", "large.parquet"])
def test_a_file_for_which_the_addresses_do_not_suffice_is_refused_with_the_number(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the way the libraries would end the process, or the system would, without a word."""
    write = {"large.csv": table().write_csv, "large.parquet": table().write_parquet}[name]
    write(tmp_path / name)
    limit = raw.ADDRESSES + 10_000
    monkeypatch.setattr(raw.resource, "getrlimit", lambda _: (limit, limit))
    for read in (qd.read, needs_of):
        with pytest.raises(InputError, match=rf"{name}' takes about 1,792 MiB of addresses.*\(ulimit -v\)"):
            read(tmp_path / name)
    limit = raw.ADDRESSES + 10_000_000
    assert qd.read(tmp_path / name).n == N


def test_where_no_temporary_file_can_be_made_only_who_needs_one_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/nowhere"])
    table().write_parquet(home / "good.parquet")
    done = CliRunner().invoke(app, ["release", f"{home}/good.parquet", *RELEASE[4:8], "--out", f"{home}/out"])
    assert done.exit_code == 0, done.stderr
    with zipfile.ZipFile(home / "packed.zip", "w") as archive:
        archive.write(home / "good.csv", "good.csv")
    done = CliRunner().invoke(app, ["inspect", f"{home}/packed.zip"])
    assert (done.exit_code, done.stdout) == (2, "") and "TMPDIR" in done.stderr
    with pytest.raises(OutputError, match="TMPDIR"):
        Space(10).empty(100, "i8")


# The studio


@pytest.mark.parametrize("what", ["is not a database", "no such table"])
def test_a_folder_whose_data_base_is_none_of_the_studio_is_refused_in_a_sentence(what: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    if what == "no such table":
        with sqlite3.connect(home / "studio.db") as db:
            db.execute("CREATE TABLE others (secret TEXT)")
        db.close()
    else:
        (home / "studio.db").write_bytes(b"CANARY" * 100)
    done = CliRunner().invoke(app, ["studio", "audit", "--home", str(home)])
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert what in done.stderr and "CANARY" not in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("size", [0, 20_000])
def test_a_studio_for_which_there_is_no_room_says_so(size: int, tmp_path: Path) -> None:
    with files_of_at_most(size):
        done = CliRunner().invoke(app, ["studio", "audit", "--home", str(tmp_path / "home")])
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "Make room there" in done.stderr and done.stderr.count("\n") == 1
    assert CliRunner().invoke(app, ["studio", "audit", "--home", str(tmp_path / "home")]).exit_code == 0


@pytest.mark.parametrize("contents", [None, "CANARY"])
def test_a_certificate_that_cannot_be_used_is_refused_before_the_studio_starts(
    contents: str | None, tmp_path: Path
) -> None:
    files = [tmp_path / "cert.pem", tmp_path / "key.pem"]
    for path in files if contents else ():
        path.write_text(str(contents))
    words = ["--home", str(tmp_path / "home"), "--tls-cert", str(files[0]), "--tls-key", str(files[1])]
    done = CliRunner().invoke(app, ["studio", *words, "--no-browser"])
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "--tls-cert" in done.stderr and "CANARY" not in done.stderr and done.stderr.count("\n") == 1


# A file system without locks, and others at work


def study(data: qd.Data, path: Path) -> qd.Study:
    return qd.search(data, qd.grid(qd.RandomSwap, swap=[["Region"]], pairs=[5], seed=[1]), ["hellinger"], out=path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_a_file_system_without_locks_is_named_and_left_as_it_is(
    number: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    before = tree(home)

    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", flock)
        with pytest.raises(OutputError, match=os.strerror(number)):
            study(data, home / "deep" / "study")
    assert tree(home) == before
    assert study(data, home / "deep" / "study").counts()["done"] == 1


def test_a_second_search_on_one_study_is_refused_while_the_first_is_at_work(home: Path) -> None:
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    told: list[str] = []

    def second(*_: object) -> None:
        if not told:
            with pytest.raises(OutputError, match="Another search is working on the study") as caught:
                study(data, home / "study")
            told.append(str(caught.value))

    recipes = qd.grid(qd.RandomSwap, swap=[["Region"], ["Band"]], pairs=[5], seed=[1])
    qd.search(data, recipes, ["hellinger"], out=home / "study", progress=second)
    assert len(told) == 1 and qd.Study(home / "study").counts()["done"] == 2


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(OutputError, match="Choose another name"), new_file(path, b"x"):
            pass
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_a_clock_that_jumps_changes_nothing_in_a_search(
    jump: float, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    usual = study(data, home / "one").frame().drop("seconds").rows()
    real, calls = time.time, [0]

    def clock() -> float:
        calls[0] += 1
        return real() + jump * (calls[0] % 2)

    monkeypatch.setattr(time, "time", clock)
    assert study(data, home / "two").frame().drop("seconds").rows() == usual


# Who reads a folder while it is written


def watched(folder: Path, work: Callable[[], object]) -> dict[str, set[int]]:
    """Return the modes of all that appears in a folder while something is done there, looked at before every rename."""
    import threading

    seen: dict[str, set[int]] = {}
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            for root, folders, files in os.walk(folder):
                for name in (*folders, *files):
                    try:
                        facts = (Path(root) / name).lstat()
                    except OSError:
                        continue
                    seen.setdefault(os.path.relpath(Path(root) / name, folder), set()).add(facts.st_mode & 0o7777)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        work()
    finally:
        stop.set()
        thread.join()
    return seen


@pytest.mark.filterwarnings("ignore::quadrille.release.release.ReleaseWarning")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nothing_confidential_is_open_to_others_at_any_moment(umask: int, home: Path) -> None:
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    out = home / "out"
    out.mkdir(mode=0o755)

    def work() -> None:
        recipe = qd.RandomSwap(["Region"], pairs=20)
        study(data, out / "study")
        qd.release(data, recipe, out / "release")
        data.codebook.write(out / "book.toml")
        for ending in ("csv", "parquet", "sav"):
            CliRunner().invoke(app, ["convert", str(home / "good.csv"), str(out / f"copy.{ending}")])

    before = os.umask(umask)
    try:
        seen = watched(out, work)
    finally:
        os.umask(before)
    assert {"study", "copy.csv", "book.toml", "release/confidential"} <= set(seen)
    for name, modes in seen.items():
        parts = Path(name).parts
        staged = len(parts) > 1 and parts[0].startswith(".quadrille-")
        public = parts[0] == "release" and "confidential" not in parts
        if not staged and not public:  # what lies in a staging folder is as closed as that folder
            assert {mode & 0o077 for mode in modes} == {0}, name
