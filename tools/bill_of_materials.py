"""Write the bill of materials: what Quadrille is delivered with, by name, version, licence and hash, as CycloneDX JSON.

`make bill` lists what the environment holds; `make wheelhouse` puts a bill of its wheels, with their hashes, next to
them. Equal contents give equal files: no time and no random number is written. A part without a licence is a fault.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

OURS, EXTRAS = "quadrille", ("excel", "pandas", "report", "scale", "stat", "studio")

SPDX = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Licences as packages name them among their classifiers, by their names in SPDX."""

_REQUIREMENT = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Part:
    """One package: its metadata, and the hash of its wheel where there is one."""

    metadata: Message
    sha256: str = ""

    @property
    def name(self) -> str:
        """The name, in the form in which names are compared."""
        return normal(str(self.metadata["Name"]))

    @property
    def version(self) -> str:
        """The version."""
        return str(self.metadata["Version"])

    @property
    def ref(self) -> str:
        """The address of the package in the words of package URLs."""
        return f"pkg:pypi/{self.name}@{self.version}"

    @property
    def licence(self) -> str:
        """The licence: the expression of SPDX where the package has one, else the best that it says; or nothing."""
        expression = str(self.metadata.get("License-Expression") or "").strip()
        if expression:
            return expression
        listed = [c.rpartition(" :: ")[2] for c in self.metadata.get_all("Classifier") or [] if "License ::" in c]
        said = str(self.metadata.get("License") or "").strip().splitlines()
        short = said[0] if said and len(said[0]) < 60 and said[0] != "UNKNOWN" else ""
        return " AND ".join(sorted(SPDX.get(name, name) for name in listed)) or short

    def needs(self, extras: Iterable[str]) -> set[str]:
        """Return the names of the packages that this one asks for, with some of its extras."""
        found = set[str]()
        for line in self.metadata.get_all("Requires-Dist") or []:
            words, _, marker = line.partition(";")
            match = _REQUIREMENT.match(words.strip())
            wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
            if match and (wanted is None or wanted[1] in extras):
                found.add(normal(match[0]))
        return found


def normal(name: str) -> str:
    """Return a name of a package as package indices compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def of_wheels(folder: Path) -> dict[str, Part]:
    """Return the parts that lie in a folder as wheels."""
    found: dict[str, Part] = {}
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [each for each in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", each)]
            metadata = Parser().parsestr(archive.read(name).decode("utf-8"), headersonly=True)
        part = Part(metadata, hashlib.sha256(wheel.read_bytes()).hexdigest())
        found[part.name] = part
    return found


def installed(extras: Iterable[str] = EXTRAS) -> dict[str, Part]:
    """Return the parts that are installed here and that Quadrille needs, directly or not."""
    found: dict[str, Part] = {}
    waiting = [(OURS, tuple(extras))]
    while waiting:
        name, wanted = waiting.pop()
        try:
            part = Part(Parser().parsestr(distribution(name).read_text("METADATA") or "", headersonly=True))
        except PackageNotFoundError:  # for another system, or for an extra that is not here
            continue
        found[name] = part
        waiting += [(need, ()) for need in part.needs(wanted) if need not in found]
    return found


def document(parts: Mapping[str, Part]) -> dict[str, object]:
    """Return the bill as CycloneDX has it."""
    ours = parts[OURS]
    others = [parts[name] for name in sorted(parts) if name != OURS]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": _component(ours, "application")},
        "components": [_component(part, "library") for part in others],
        "dependencies": [
            {
                "ref": part.ref,
                "dependsOn": sorted(parts[name].ref for name in part.needs(EXTRAS if part is ours else ()) & {*parts}),
            }
            for part in (ours, *others)
        ],
    }


def _component(part: Part, kind: str) -> dict[str, object]:
    made: dict[str, object] = {"type": kind, "bom-ref": part.ref, "name": part.name, "version": part.version}
    made["purl"] = part.ref
    if part.sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": part.sha256}]
    if part.licence:
        simple = re.fullmatch(r"[A-Za-z0-9.+-]+", part.licence) and part.licence in {*SPDX.values(), "MIT-0"}
        expression = bool(part.metadata.get("License-Expression"))
        said = {"id": part.licence} if simple else {"name": part.licence}
        made["licenses"] = [{"expression": part.licence}] if expression else [{"license": said}]
    return made


def as_text(parts: Mapping[str, Part]) -> str:
    """Return the bill as JSON; refuse parts that do not say under which licence they stand."""
    silent = [part.ref for part in parts.values() if not part.licence]
    if silent:
        sys.exit(f"These parts name no licence: {', '.join(silent)}. Look it up before they are delivered.")
    return json.dumps(document(parts), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the bill that the command line asks for, and the licences with their parts to the terminal."""
    parser = argparse.ArgumentParser(description="Write the bill of materials as CycloneDX JSON.")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels [what is installed]")
    given = parser.parse_args()
    parts = installed() if given.wheels is None else of_wheels(given.wheels)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(as_text(parts), encoding="utf-8")
    for licence in sorted({part.licence for part in parts.values()}):
        names = ", ".join(sorted(name for name, part in parts.items() if part.licence == licence))
        sys.stdout.write(f"{licence}: {names}\n")
    sys.stdout.write(f"Wrote {given.out}: {len(parts)} parts.\n")


if __name__ == "__main__":
    main()
