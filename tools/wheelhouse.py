"""Build a wheelhouse: a folder of wheels from which Quadrille installs on a machine with no network.

`make wheelhouse` runs it. The folder holds the wheel of this project, the wheels of everything that it needs, whose
versions and hashes are pinned in `hashes.txt`, a README with the two commands, the same pins for pip, a bill of
materials and the SHA-256 of every file. It appears whole or not at all.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bill_of_materials import EXTRAS as TAKEN
from bill_of_materials import OURS, as_text, of_wheels

HOME = Path(__file__).resolve().parent.parent
EXTRAS = ",".join(TAKEN)

README = """\
# Quadrille, to be installed without a network

Wheels for Python {python} on {system}. Copy this folder to the machine. There, inside of this folder:

    python3 -m venv ~/quadrille
    ~/quadrille/bin/pip install --no-index --find-links . --require-hashes -r requirements.txt

pip compares every wheel with its hash in `requirements.txt` before it installs it, those of `quadrille[{extras}]` and
of all that it needs. `bill-of-materials.json` lists them with their licences (CycloneDX).

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
    verify(folder, (HOME / "hashes.txt").read_text(encoding="utf-8"))


def verify(folder: Path, pins: str) -> None:
    """Refuse wheels that are not those whose hashes are pinned."""
    known: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=\S)", pins):
        if found := re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", block):
            known[f"{found[1]}=={found[2]}"] = set(re.findall(r"sha256:([0-9a-f]{64})", block))
    for name, part in of_wheels(folder).items():
        if name != OURS and part.sha256 not in known.get(f"{name}=={part.version}", set()):
            sys.exit(f"The wheel of {name} {part.version} is not the one that hashes.txt has. Was it tampered with?")


def pip(*words: str) -> None:
    """Run pip; what it says goes to the terminal."""
    done = subprocess.run([sys.executable, "-m", "pip", "--quiet", *words], check=False)
    if done.returncode:
        sys.exit("The wheels cannot be had, so there is no wheelhouse. pip says why; it needs a package index.")


def describe(folder: Path, extras: str) -> None:
    """Write the README, the pins, the bill of materials and the hashes."""
    parts = of_wheels(folder)
    pins = [
        f"{name}{f'[{extras}]' if name == OURS and extras else ''}=={part.version} --hash=sha256:{part.sha256}\n"
        for name, part in sorted(parts.items())
    ]
    (folder / "requirements.txt").write_text("".join(pins), encoding="utf-8")
    (folder / "bill-of-materials.json").write_text(as_text(parts), encoding="utf-8")
    python, system = ".".join(platform.python_version_tuple()[:2]), f"{platform.system()}, {platform.machine()}"
    (folder / "README.md").write_text(README.format(python=python, system=system, extras=extras), encoding="utf-8")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
