"""What is delivered: wheels that are pinned, built twice alike, listed with licences, installed without a network.

The whole way of a wheelhouse takes minutes: `make airgap` runs it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

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


def wheel(folder: Path, name: str, version: str = "1", *lines: str) -> Path:
    """Make a wheel that holds nothing but its metadata."""
    head = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(head) + "\n\nText.\n")
    return path


MIT = "License-Expression: MIT"


def test_the_readme_has_the_two_commands_and_the_hashes_are_those_of_the_files(
    tool: ModuleType, tmp_path: Path
) -> None:
    ours = wheel(tmp_path, "quadrille", "1", MIT, "Requires-Dist: other>=1; extra == 'report'")
    other = wheel(tmp_path, "other", "2", "Classifier: License :: OSI Approved :: BSD License")
    tool.describe(tmp_path, "report")
    readme = (tmp_path / "README.md").read_text()
    commands = [line.strip() for line in readme.splitlines() if line.startswith("    ")]
    assert commands == [
        "python3 -m venv ~/quadrille",
        "~/quadrille/bin/pip install --no-index --find-links . --require-hashes -r requirements.txt",
    ]
    assert f"Python {sys.version_info.major}.{sys.version_info.minor} " in readme
    sums = dict(reversed(line.split("  ")) for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    names = ("README.md", "bill-of-materials.json", "requirements.txt", ours.name, other.name)
    assert sums == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in names}
    assert (tmp_path / "requirements.txt").read_text().splitlines() == [
        f"other==2 --hash=sha256:{sums[other.name]}",
        f"quadrille[report]==1 --hash=sha256:{sums[ours.name]}",
    ]
    bill = json.loads((tmp_path / "bill-of-materials.json").read_text())
    assert [part["hashes"][0]["content"] for part in bill["components"]] == [sums[other.name]]
    assert bill["components"][0]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert bill["dependencies"][0] == {"ref": "pkg:pypi/quadrille@1", "dependsOn": ["pkg:pypi/other@2"]}


def test_a_wheel_whose_hash_is_not_pinned_is_not_delivered(tool: ModuleType, tmp_path: Path) -> None:
    wheel(tmp_path, "quadrille")
    other = wheel(tmp_path, "other", "2", MIT)
    found = hashlib.sha256(other.read_bytes()).hexdigest()
    tool.verify(tmp_path, f"a==1 ; x \\\n    --hash=sha256:{'0' * 64}\nother==2 \\\n    --hash=sha256:{found}\n")
    for pins in ("", f"other==3 \\\n    --hash=sha256:{found}\n", f"other==2 \\\n    --hash=sha256:{'0' * 64}\n"):
        with pytest.raises(SystemExit, match=r"other 2 is not the one that hashes\.txt has"):
            tool.verify(tmp_path, pins)


def test_a_part_without_a_licence_is_not_delivered(tool: ModuleType, tmp_path: Path) -> None:
    wheel(tmp_path, "quadrille", "1", MIT)
    wheel(tmp_path, "silent", "1", "License: UNKNOWN")
    with pytest.raises(SystemExit, match="pkg:pypi/silent@1"):
        tool.describe(tmp_path, "report")


def test_the_hashes_are_of_the_pinned_versions_and_of_everything_that_users_need() -> None:
    pinned = dict(line.split("==") for line in (HOME / "constraints.txt").read_text().split())
    text = (HOME / "hashes.txt").read_text()
    hashed = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))
    assert {name: pinned.get(name, version) for name, version in hashed.items()} == hashed
    assert text.count("--hash=sha256:") == len(re.findall(r"sha256:[0-9a-f]{64}\b", text)) >= len(hashed)
    assert "http" not in text
    parts = bill_of_materials().installed()
    assert {*parts} - {"quadrille"} <= {*hashed}
    assert {name: part.version for name, part in parts.items() if name in pinned} == {
        name: pinned[name] for name in parts if name in pinned
    }


def bill_of_materials() -> Any:
    return importlib.import_module("bill_of_materials")  # on the path since the tool above was loaded


@pytest.mark.usefixtures("tool")
def test_the_bill_lists_what_is_delivered_with_its_licences_and_is_the_same_each_time() -> None:
    bill = bill_of_materials()
    text = bill.as_text(bill.installed())
    assert text == bill.as_text(bill.installed())
    found = json.loads(text)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    names = {part["name"] for part in found["components"]}
    wanted = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    asked = [
        *wanted["dependencies"],
        *(line for extra in bill.EXTRAS for line in wanted["optional-dependencies"][extra]),
    ]
    assert {re.split(r"[><=]", line)[0] for line in asked} <= names
    assert all(
        part["licenses"] and part["version"] and part["purl"].startswith("pkg:pypi/") for part in found["components"]
    )
    refs = {part["bom-ref"] for part in found["components"]} | {found["metadata"]["component"]["bom-ref"]}
    assert {each["ref"] for each in found["dependencies"]} == refs
    assert all({*each["dependsOn"]} <= refs for each in found["dependencies"])
    assert not re.search(r"timestamp|serialNumber|GPL", text)


def built(tree: Path, kind: str, out: Path, umask: int) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    env = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    subprocess.run(words, cwd=tree, env=env, umask=umask, capture_output=True, check=True)
    (made,) = out.iterdir()
    return made


def test_a_wheel_is_the_same_bytes_from_the_tree_and_from_the_source_archive(tmp_path: Path) -> None:
    """Built at another time, in another folder, under another umask, with other times of its files."""
    archive = built(HOME, "sdist", tmp_path / "sdist", 0o022)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "elsewhere", filter="data")
    (copy,) = (tmp_path / "elsewhere").iterdir()
    for path in copy.rglob("*.py"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    wheels = [built(HOME, "wheel", tmp_path / "one", 0o022), built(copy, "wheel", tmp_path / "two", 0o077)]
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    with zipfile.ZipFile(wheels[0]) as opened:
        names = opened.namelist()
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc", ".pyc"))]
    tracked = {path.relative_to(HOME / "src").as_posix() for path in (HOME / "src").rglob("*.py")}
    assert tracked <= {*names}


@pytest.mark.nightly
def test_the_source_archive_installs_and_runs(tmp_path: Path) -> None:
    archive = built(HOME, "sdist", tmp_path / "sdist", 0o022)
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*words, "--target", str(tmp_path / "there"), str(archive)], check=True, capture_output=True)
    code = "import quadrille as qd; print(qd.__file__); print(qd.datasets.cps8d().n)"
    env = os.environ | {"PYTHONPATH": str(tmp_path / "there")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    place, records = done.stdout.split()
    assert Path(place).is_relative_to(tmp_path / "there") and records == "48842"


def test_only_a_wheelhouse_is_replaced_and_a_failure_leaves_it(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(SystemExit, match="is no wheelhouse"):
        tool.build(tmp_path / "mine", "report")

    def collect(folder: Path, _: str) -> None:
        folder.mkdir()
        wheel(folder, "some", "1", MIT)
        wheel(folder, "quadrille", "1", MIT)

    monkeypatch.setattr(tool, "collect", collect)
    tool.build(tmp_path / "house", "report")
    wheel(tmp_path / "house", "old", "1", MIT)
    tool.build(tmp_path / "house", "report")
    assert sorted(file.name for file in (tmp_path / "house").iterdir()) == [
        *("README.md", "SHA256SUMS", "bill-of-materials.json", "quadrille-1-py3-none-any.whl", "requirements.txt"),
        "some-1-py3-none-any.whl",
    ]
    monkeypatch.setattr(tool, "collect", lambda *_: sys.exit("no index"))
    with pytest.raises(SystemExit, match="no index"):
        tool.build(tmp_path / "house", "report")
    assert (tmp_path / "house" / "some-1-py3-none-any.whl").is_file()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["house", "mine"]


def test_the_wheelhouse_takes_every_extra_of_users_along(tool: ModuleType) -> None:
    extras = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(tool.EXTRAS.split(",")) == {*extras} - {"dev", "docs", "spark"}  # a cluster has its own Spark


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
