"""A wheelhouse installs where there is no network. The whole of it takes minutes: `make airgap` runs it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

HOME = Path(__file__).resolve().parents[2]
TOOL = HOME / "tools" / "wheelhouse.py"
NO_ROUTE = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", 9), timeout=2)
except ConnectionRefusedError:
    sys.exit("the loopback device is up")
except OSError:
    pass
sys.exit(0 if [name for _, name in socket.if_nameindex()] in ([], ["lo"]) else "there are network devices")
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheelhouse", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_has_the_two_commands_and_the_hashes_are_those_of_the_files(
    tool: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "quadrille-1-py3-none-any.whl").write_bytes(b"a wheel")
    tool.describe(tmp_path, "report")
    readme = (tmp_path / "README.md").read_text()
    commands = [line.strip() for line in readme.splitlines() if line.startswith("    ")]
    assert commands == [
        "python3 -m venv ~/quadrille",
        "~/quadrille/bin/pip install --no-index --find-links . 'quadrille[report]'",
    ]
    assert f"Python {sys.version_info.major}.{sys.version_info.minor} " in readme
    sums = dict(reversed(line.split("  ")) for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in ("README.md", "quadrille-1-py3-none-any.whl")
    }


def test_only_a_wheelhouse_is_replaced_and_a_failure_leaves_it(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(SystemExit, match="is no wheelhouse"):
        tool.build(tmp_path / "mine", "report")

    def collect(folder: Path, _: str) -> None:
        folder.mkdir()
        (folder / "some.whl").write_bytes(b"new")

    monkeypatch.setattr(tool, "collect", collect)
    tool.build(tmp_path / "house", "report")
    (tmp_path / "house" / "old.whl").write_bytes(b"old")
    tool.build(tmp_path / "house", "report")
    assert sorted(file.name for file in (tmp_path / "house").iterdir()) == ["README.md", "SHA256SUMS", "some.whl"]
    monkeypatch.setattr(tool, "collect", lambda *_: sys.exit("no index"))
    with pytest.raises(SystemExit, match="no index"):
        tool.build(tmp_path / "house", "report")
    assert (tmp_path / "house" / "some.whl").is_file()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["house", "mine"]


def test_the_wheelhouse_takes_every_extra_of_users_along(tool: ModuleType) -> None:
    extras = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(tool.EXTRAS.split(",")) == {*extras} - {"dev", "docs"}


def cut_off() -> tuple[list[str], str]:
    """Return the words before a command that take the network away, and how they do it."""
    for words in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if (
            shutil.which("unshare")
            and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode
        ):
            return words, "a network namespace without devices"
    return [], "no package index, and proxies that nobody listens at"


def without_index(home: Path) -> dict[str, str]:
    """Return an environment in which nothing names a package index, a cache or this project."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    return {**kept, **nowhere, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "HOME": str(home)}


def run(*words: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words} exits with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.airgap
def test_the_demo_runs_from_a_wheelhouse_where_there_is_no_network(tmp_path: Path) -> None:
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path / "probe"), "rich"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no package index can be reached from here, so no wheelhouse can be built")
    house, home, (alone, how) = tmp_path / "house", tmp_path / "home", cut_off()
    print(f"Network unreachable by: {how}.")
    home.mkdir()
    run(sys.executable, str(TOOL), str(house), cwd=tmp_path)
    env = without_index(home)
    if alone:
        run(*alone, sys.executable, "-c", NO_ROUTE, cwd=tmp_path, env=env)
    commands = [line.strip() for line in (house / "README.md").read_text().splitlines() if line.startswith("    ")]
    for command in commands:
        run(*alone, "sh", "-c", command, cwd=house, env=env)
    ours = home / "quadrille" / "bin" / "quadrille"
    told = json.loads(run(*alone, str(ours), "demo", "--out", "demo", "--json", cwd=tmp_path, env=env))
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    assert (tmp_path / "demo" / "release" / "public" / "data.csv").is_file()
    assert told["search"]["candidates"] > 0
    say = "import quadrille; print(quadrille.__file__)"
    where = run(str(home / "quadrille" / "bin" / "python"), "-c", say, cwd=home, env=env)
    assert Path(where.strip()).is_relative_to(home)
