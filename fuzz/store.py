"""What a run of fuzzing keeps between runs: inputs worth damaging further, findings, and how many inputs were tried."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fuzz.seeds import seeds_of

MOST_KEPT = 500
"""Inputs kept per target; the seeds come on top."""


@dataclass(frozen=True)
class Store:
    """A folder with `corpus/TARGET/`, `findings/TARGET/` and `counts/TARGET`."""

    folder: Path
    target: str

    @property
    def current(self) -> Path:
        """The input that is being tried, behind its number: what is left when the process dies."""
        return self._folder("current") / self.target

    def seeds(self) -> list[bytes]:
        """Return the seeds and what earlier runs kept."""
        kept = sorted(path for path in self._folder("corpus", self.target).iterdir() if path.is_file())
        return seeds_of(self.target) + [path.read_bytes() for path in kept]

    def keep(self, raw: bytes) -> None:
        """Keep an input that did something new."""
        folder = self._folder("corpus", self.target)
        if sum(1 for _ in folder.iterdir()) < MOST_KEPT:
            (folder / sha256(raw).hexdigest()[:16]).write_bytes(raw)

    def find(self, raw: bytes, what: str, kind: str) -> None:
        """Write down a finding; one input of each kind is enough."""
        folder = self._folder("findings", self.target)
        name = sha256(kind.encode()).hexdigest()[:16]
        if not (folder / f"{name}.txt").exists():
            (folder / f"{name}.input").write_bytes(raw)
            (folder / f"{name}.txt").write_text(what, encoding="utf-8")

    def findings(self) -> list[tuple[Path, str]]:
        """Return every finding: its input, and what happened."""
        found = sorted(self._folder("findings", self.target).glob("*.txt"))
        return [(path.with_suffix(".input"), path.read_text(encoding="utf-8")) for path in found]

    def count(self) -> int:
        """How many inputs were tried, in all runs."""
        path = self._folder("counts") / self.target
        return int(json.loads(path.read_text())) if path.exists() else 0

    def counted(self, count: int) -> None:
        """Write down how many inputs were tried."""
        (self._folder("counts") / self.target).write_text(json.dumps(count))

    def _folder(self, *parts: str) -> Path:
        folder = self.folder.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
