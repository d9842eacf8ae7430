"""The program as a process: exit codes, pipes, signals, how fast it answers and what it loads."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "quadrille"]


def start(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def best_of_5(*command: str) -> float:
    """Return the least time of the processor that a command uses: what else the machine does counts little."""
    times: list[float] = []
    # Bytecode is kept, as it is where the program is installed.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(5):
        begin = os.times()
        subprocess.run(command, env=kept, capture_output=True, check=True)
        end = os.times()
        times.append(end.children_user - begin.children_user + end.children_system - begin.children_system)
    return min(times)


def test_import_loads_nothing_heavy() -> None:
    heavy = ["polars", "numba", "altair", "pyarrow", "numpy", "pandas", "rich", "typer"]
    assert python(f"import sys, quadrille; print([m for m in {heavy} if m in sys.modules])").strip() == "[]"


def test_the_command_line_loads_nothing_heavy_before_a_command_needs_it() -> None:
    heavy = ["polars", "numba", "altair", "pyarrow", "numpy", "pandas", "rich"]
    assert python(f"import sys, quadrille.cli; print([m for m in {heavy} if m in sys.modules])").strip() == "[]"


def test_a_release_without_pages_for_readers_needs_no_templates(tmp_path: Path) -> None:
    words = ["release", "dataset:cps8d", "--swap", "Edu", "--rate", "0.02", "--out", str(tmp_path / "made")]
    run = (
        f"from typer.testing import CliRunner as C; from quadrille.cli.app import app; done = C().invoke(app, {words})"
    )
    heavy = ["jinja2", "altair", "quadrille.report.readers"]
    loaded = python(f"import sys; {run}; print(done.exit_code, [m for m in {heavy} if m in sys.modules])")
    assert loaded.strip() == "0 []"


def test_help_takes_at_most_twice_the_import_of_numpy() -> None:
    ours = best_of_5(*PROGRAM, "--help")
    numpy = best_of_5(sys.executable, "-c", "import numpy")
    assert ours <= 2 * numpy, f"{ours:.3f} s against {numpy:.3f} s"


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--version"], 0), (["inspect", "nowhere.csv"], 2), (["inspect", "--nonsense"], 2), (["reproduce", "x"], 2)],
)
def test_exit_codes(words: list[str], code: int, tmp_path: Path) -> None:
    done = start(*words, cwd=tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert (done.stdout == "") == (code == 2)


def test_the_console_script_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("quadrille")
    done = subprocess.run([str(script), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == start("--version").stdout


def test_a_pipe_gets_plain_text_and_no_progress() -> None:
    done = start("reproduce", "gomatam-karr-2003", "--draws", "2", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["paper"] == "gomatam-karr-2003"
    shown = start("inspect", "dataset:cps8d")
    assert "\x1b" not in shown.stdout
    assert shown.stderr == ""


def test_a_terminal_sees_progress_on_stderr_and_json_stays_clean_on_stdout(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [*PROGRAM, "reproduce", "gomatam-karr-2003", "--draws", "2", "--json"]
    with (tmp_path / "out").open("wb") as out, subprocess.Popen(words, stdout=out, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        process.wait()
    os.close(ours)
    assert process.returncode == 0
    assert b"Reproducing" in seen
    assert json.loads((tmp_path / "out").read_text())["paper"] == "gomatam-karr-2003"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux tells the end of a terminal by an error.
        return b""


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen([*PROGRAM, "measures"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert told == b""


def test_a_terminal_without_unicode_still_gets_its_answer() -> None:
    done = start("measures", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "hellinger" in done.stdout


STOPPED_IN_TYPER = """
def stop(*_args, **_kwargs):
    raise KeyboardInterrupt
from quadrille.cli import main
import typer.main
typer.main.get_command = stop
main()
"""


def test_an_interruption_before_a_command_begins_ends_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", STOPPED_IN_TYPER], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


STOPPED_EARLY = """
import sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
from quadrille.cli import main
"""


def test_an_interruption_while_the_program_loads_ends_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", STOPPED_EARLY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


SLOW_RELEASE = """
import sys, time
import importlib
bundle = importlib.import_module("quadrille.release.release")
real = bundle.write_file
def slow(path, contents, *, private=False):
    digest = real(path, contents, private=private)
    print("writing", flush=True, file=sys.stderr)
    time.sleep(0.5)
    return digest
bundle.write_file = slow
sys.argv = ["quadrille", "release", "dataset:cps8d", "--swap", "MS", "--pairs", "5"]
from quadrille.cli import main
main()
"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_release_that_is_stopped_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_RELEASE], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"writing\n"
        assert [path.name[:11] for path in tmp_path.iterdir()] == [".quadrille-"]
        process.send_signal(number)
        process.communicate()
    assert process.returncode == code
    assert list(tmp_path.iterdir()) == []


SWALLOWED = """
import os, signal, sys, time, weakref
from quadrille.cli.guard import prepare_process
prepare_process()
class Thing: pass
thing = Thing()
keep = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.{number}))
del thing
time.sleep(5)
print("went on")
"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_wish_to_stop_that_python_swallows_is_raised_again(number: str) -> None:
    code = SWALLOWED.format(number=number)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == {"SIGINT": -signal.SIGINT, "SIGTERM": 143}[number]
    assert done.stdout == "" and "ignored" not in done.stderr


def test_a_program_that_has_done_its_work_is_not_stopped() -> None:
    code = (
        "import atexit, os, signal, sys\nfrom quadrille.cli import main\nsys.argv = ['quadrille', '--version']\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGTERM)\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("quadrille ")
