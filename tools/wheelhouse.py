"""Build a wheelhouse: a folder of wheels from which Quadrille installs on a machine with no network.

`make wheelhouse` runs it. The folder holds the wheel of this project, the pinned wheels of everything that it needs, a
README with the two commands and the SHA-256 of every file. It appears whole or not at all.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HOME = Path(__file__).resolve().parent.parent
EXTRAS = "excel,pandas,report,stat"

README = """\
# Quadrille, to be installed without a network

Wheels for Python {python} on {system}. Copy this folder to the machine. There, inside of this folder:

    python3 -m venv ~/quadrille
    ~/quadrille/bin/pip install --no-index --find-links . 'quadrille[{extras}]'

Then `~/quadrille/bin/quadrille demo` walks the whole path on bundled data.

To see that the copy is intact, first: `sha256sum --check SHA256SUMS`. Another version of Python, or another system,
needs a wheelhouse of its own: `make wheelhouse` on a machine of that kind that reaches a package index.
"""


def main() -> None:
    """Build the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Build a folder of wheels for a machine with no network.")
    parser.add_argument("out", type=Path, help="the folder to make; an earlier wheelhouse is replaced")
    parser.add_argument("--extras", default=EXTRAS, help=f"which extras to take along [{EXTRAS}]")
    given = parser.parse_args()
    build(given.out.absolute(), given.extras)
    wheels = list(given.out.glob("*.whl"))
    size = sum(wheel.stat().st_size for wheel in wheels) / 2**20
    sys.stdout.write(f"Wrote {given.out}: {len(wheels)} wheels, {size:.0f} MiB. Its README says how to install.\n")


def build(out: Path, extras: str) -> None:
    """Collect the wheels beside the folder, and put them in its place when all are there."""
    if out.exists() and not (out / "SHA256SUMS").is_file():
        sys.exit(f"{out} exists and is no wheelhouse. Choose another folder.")
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=".wheelhouse-") as name:
        fresh = Path(name) / "new"
        collect(fresh, extras)
        describe(fresh, extras)
        if out.exists():
            shutil.move(out, Path(name) / "old")
        shutil.move(fresh, out)


def collect(folder: Path, extras: str) -> None:
    """Make the wheel of the project and fetch the pinned wheels of what it needs."""
    constraint = ["--constraint", str(HOME / "constraints.txt")]
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(HOME))
    (ours,) = folder.glob("quadrille-*.whl")
    pip("download", "--only-binary", ":all:", *constraint, "--dest", str(folder), f"{ours}[{extras}]")


def pip(*words: str) -> None:
    """Run pip; what it says goes to the terminal."""
    done = subprocess.run([sys.executable, "-m", "pip", "--quiet", *words], check=False)
    if done.returncode:
        sys.exit("The wheels cannot be had, so there is no wheelhouse. pip says why; it needs a package index.")


def describe(folder: Path, extras: str) -> None:
    """Write the README and the hashes."""
    python, system = ".".join(platform.python_version_tuple()[:2]), f"{platform.system()}, {platform.machine()}"
    (folder / "README.md").write_text(README.format(python=python, system=system, extras=extras), encoding="utf-8")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
