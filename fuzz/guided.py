"""Coverage decides which inputs of a parser are damaged further: libFuzzer through atheris, for pure Python only."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["quadrille"]):
    from fuzz.store import Store
    from fuzz.targets import TARGETS, outcome


def main() -> None:
    """Run one target for some seconds; findings are written down and do not stop it."""
    store, seconds = Store(Path(sys.argv[1]), sys.argv[2]), sys.argv[3]
    target, count = TARGETS[store.target], store.count()
    seeds = store.folder / "guided" / store.target
    seeds.mkdir(parents=True, exist_ok=True)
    for number, raw in enumerate(store.seeds()):
        (seeds / f"seed{number}").write_bytes(raw)
    with TemporaryDirectory() as name:
        folder = Path(name)

        def one(raw: bytes) -> None:
            nonlocal count
            count += 1
            if count % 500 == 0:
                store.counted(count)  # libFuzzer ends the process without a word
            try:
                outcome(target, raw, folder)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                kind = f"{type(error).__name__} {place.filename}:{place.lineno}"
                store.find(raw, "".join(traceback.format_exception(error))[-4000:], kind + str(error)[:30])

        limits = [
            f"-max_total_time={seconds}",
            "-max_len=4096",
            "-rss_limit_mb=4096",
            "-verbosity=0",
            "-print_final_stats=0",
        ]
        atheris.Setup([sys.argv[0], *limits, str(seeds)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
