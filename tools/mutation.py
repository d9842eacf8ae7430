"""A mutation check: plant small faults in the code, one at a time, and see which of them the tests catch.

`python tools/mutation.py --root . --out faults.jsonl`, with `--only ID` for some faults and `--seconds N` for a limit
per fault. The faults are listed in mutation.toml: `find` is source text that occurs once in all of src/quadrille, and
`replace` is what is planted in its place. A fault whose text does not occur, or more than once, is reported as
"not found" or "ambiguous", one that is newer than the map of the tests (see below) as "not mapped". No fault is in
kernels/: changing a kernel means compiling all of them anew.

The tree itself is never changed. Everything happens in a copy beside the results, `OUT.work/`, which is kept, because
it holds the compiled kernels; remove it when the tree has changed. PYTHONPATH puts the copy's src first.

Which tests run is found out once, and kept in `OUT.map.json`; remove it, too, when the tree has changed. The whole
suite runs without any fault, with a mark at the statement of every fault, so that it is known which tests execute it,
how long each takes, and which fail anyway (they are left out). Examples in docstrings and pages belong to the suite,
file by file. Then, for each fault:

1. tests that execute the statement: all in files with a related name, then the fastest of every other file, 3 s of
   each; up to 90 s in all;
2. the other tests that do, and those that share a fixture whose making executes it, the fastest first, as many as fit
   into the time that is left (240 s in all unless `--seconds` says otherwise), by the times of the run without fault.

So "survived" means that none of these tests failed; `ran` and `could` in the results say how many of them there was
time for. A statement that only runs in other processes, or whose result is kept from test to test, is missed. A test
that fails is what counts as "caught"; a run that uses far more of the processor than it did without the fault, or that
takes very much longer, is ended and reported as "timeout". The results are appended as lines of JSON, and a fault that
has one is not tried again.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
FAULTS = HERE / "mutation.toml"
FIRST_SECONDS = 90.0
FEW_SECONDS = 3.0
SECONDS = 240.0
MAP_SECONDS = 2 * 3600.0
OF_THE_TREE = {".git", ".venv", "dist", "build", "site", "demo", "study", "curve", "release", "chosen", "report.html"}
ANYWHERE = (".hypothesis", ".*_cache", ".fuzz", "*.egg-info", "*.lock")
"""What is not copied: from the folder of the tree itself, and from any folder."""
MARK = "_planted_mark"
TASK = "PLANTED_TASK"


@dataclass(frozen=True)
class Fault:
    """A fault: where it is planted, and what it is in one line."""

    id: str
    area: str
    find: str
    replace: str
    what: str

    @property
    def digest(self) -> str:
        """What tells this fault from an earlier one with the same name."""
        return hashlib.sha256(f"{self.find}\0{self.replace}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Place:
    """Where a fault was found: its file, or why there is none."""

    file: Path | None
    problem: str = ""


@dataclass
class Known:
    """What the run without any fault has told of a test: its time, whether it passed, and which marks it met."""

    seconds: float
    passed: bool
    hits: set[str]
    shared: set[str]
    """Marks met before the test itself began: by the making of a fixture, perhaps for others too.

    The entry without a name has all marks that were placed, and as shared those met when modules are imported.
    """


def main() -> None:
    """Plant the faults that the command line asks for."""
    parser = argparse.ArgumentParser(description="Plant small faults, one at a time, and count those the tests catch.")
    parser.add_argument("--root", type=Path, default=HERE.parent, help="the tree to check; it is copied, not changed")
    parser.add_argument("--out", type=Path, required=True, help="the results, one line of JSON per fault")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="try this fault; may be repeated")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"the limit per fault [{SECONDS:g}]")
    parser.add_argument("--list", action="store_true", help="say where each fault would be planted, and no more")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    root, out = given.root.resolve(), given.out.resolve()
    faults = read_faults(FAULTS, given.only)
    if given.list:
        for fault in faults:
            place = locate(fault, root)
            _say(f"{fault.id}: {place.file.relative_to(root) if place.file else place.problem}")
        return
    check(root, out, faults, given.seconds)


def check(root: Path, out: Path, faults: Sequence[Fault], seconds: float) -> None:
    """Try every fault that has no result yet, and add up."""
    copy = out.with_name(out.name + ".work")
    if not copy.exists():
        _copy(root, copy)
    _restore(copy)
    known = _known(copy, out.with_name(out.name + ".map.json"), read_faults(FAULTS, ()))
    for fault in faults:
        if fault.digest in {line["fault"] for line in _lines(out)}:
            continue
        found = {"id": fault.id, "area": fault.area, "fault": fault.digest, "what": fault.what}
        found |= try_fault(fault, copy, known, seconds)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found, ensure_ascii=False) + "\n")
        _say(f"{found['status']:<10} {fault.id:<28} {found.get('seconds', 0):6.1f} s  {found.get('test', '')}")
    wanted = {fault.digest for fault in faults}
    summarise([line for line in _lines(out) if line["fault"] in wanted])


def _copy(root: Path, copy: Path) -> None:
    """Copy the tree with its compiled files, whose times stay the same."""

    def skipped(folder: str, names: list[str]) -> set[str]:
        own = OF_THE_TREE & set(names) if Path(folder) == root else set[str]()
        return own | set(shutil.ignore_patterns(*ANYWHERE)(folder, names))

    shutil.copytree(root, copy, ignore=skipped)


def read_faults(path: Path, only: Sequence[str]) -> list[Fault]:
    """Read the list of faults, or those that are named."""
    listed = [Fault(**each) for each in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]]
    twice = [name for name, count in Counter(fault.id for fault in listed).items() if count > 1]
    unknown = sorted(set(only) - {fault.id for fault in listed})
    if twice or unknown:
        sys.exit(f"Faults listed twice: {', '.join(twice)}" if twice else f"No such fault: {', '.join(unknown)}")
    return [fault for fault in listed if not only or fault.id in only]


def locate(fault: Fault, root: Path) -> Place:
    """Find the one file that holds the text of a fault."""
    places: list[Path] = []
    for file in sorted((root / "src" / "quadrille").rglob("*.py")):
        places += [file] * file.read_text(encoding="utf-8").count(fault.find)
    if len(places) == 1:
        return Place(places[0])
    return Place(None, "ambiguous" if places else "not found")


def try_fault(fault: Fault, copy: Path, known: dict[str, Known], seconds: float) -> dict[str, Any]:
    """Plant a fault, run the tests that execute it, and take it out again."""
    place = locate(fault, copy)
    if place.file is None:
        return {"status": place.problem}
    if _mark_of(fault) not in known[""].hits:
        return {"status": "not mapped"}
    first, second, could = choose(fault, place.file.relative_to(copy), known, seconds)
    began = time.monotonic()
    told: dict[str, Any] = {"status": "survived", "file": str(place.file.relative_to(copy)), "could": could, "ran": 0}
    try:
        # Every fault has a time of its own, so that no file compiled for another one is taken for it.
        changed = place.file.stat().st_mtime + 86_400 + int(fault.digest[:5], 16)
        _rewrite(place.file, place.file.read_text(encoding="utf-8").replace(fault.find, fault.replace))
        os.utime(place.file, (changed, changed))
        for stage, tests in (("first", first), ("second", second)):
            if not tests:
                continue
            planned = sum(known[name].seconds for name in tests)
            done = run_tests(copy, {"tests": tests}, limit=60 + 2.5 * planned)
            told |= {"ran": told["ran"] + done["ran"], "stage": stage}
            if done["status"] != "passed":
                told |= {key: done[key] for key in ("status", "test", "said") if done.get(key)}
                break
    finally:
        _restore(copy)
    return told | {"seconds": round(time.monotonic() - began, 1)}


def choose(fault: Fault, file: Path, known: dict[str, Known], seconds: float) -> tuple[list[str], list[str], int]:
    """Return the tests of the first and of the second stage, and how many could catch the fault."""
    usable = {name: test for name, test in known.items() if test.passed}
    mark, at_import = _mark_of(fault), known[""].shared
    hit = [name for name, test in usable.items() if name and (mark in at_import or mark in test.hits)]
    sharing = {_file(name) for name, test in usable.items() if mark in test.shared}
    pages = {_file(name) for name in hit if not _file(name).startswith("tests/")}
    broken = {_file(name) for name, test in known.items() if not test.passed}
    hit = [name for name in hit if _file(name) not in pages]
    also = [n for n in usable if _file(n) in sharing | (pages - broken) and n not in set(hit)]
    words = _words(fault, file)
    few = [group if _related(words, group) else _few(group, usable) for group in _by_file(hit, usable, words)]
    first = _fitting(few, usable, min(FIRST_SECONDS, seconds))
    rest = [name for name in hit if name not in set(first)]
    left = seconds - sum(usable[name].seconds for name in first)
    second = _fitting([*_by_file(rest, usable, set()), *_by_file(also, usable, set())], usable, left)
    return first, second, len(hit) + len(also)


def _words(fault: Fault, file: Path) -> set[str]:
    """Return the words that a related test file may have in its name."""
    parts = [*file.with_suffix("").parts[2:], fault.id]
    return {word for part in parts for word in re.split(r"[^a-z0-9]+", part.lower()) if len(word) > 3}


def _by_file(tests: Iterable[str], known: dict[str, Known], words: set[str]) -> list[list[str]]:
    """Put the tests of a file together; files with a related name first, then the fastest."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in tests:
        groups[_file(name)].append(name)

    def place(file: str) -> tuple[int, float]:
        return -_related(words, groups[file]), sum(known[name].seconds for name in groups[file])

    return [groups[file] for file in sorted(groups, key=place)]


def _related(words: set[str], group: list[str]) -> int:
    return len(words & set(re.split(r"[^a-z0-9]+", Path(_file(group[0])).stem.lower())))


def _few(group: list[str], known: dict[str, Known]) -> list[str]:
    """Take the fastest tests of a file, at least one."""
    order = sorted(group, key=lambda name: known[name].seconds)
    spent = list(accumulate(known[name].seconds for name in order))
    return order[: max(1, sum(each <= FEW_SECONDS for each in spent))]


def _fitting(groups: Iterable[list[str]], known: dict[str, Known], seconds: float) -> list[str]:
    """Take whole files as long as they fit, and of a longer one the fastest tests; pages are not taken apart."""
    taken: list[str] = []
    for group in groups:
        whole = not _file(group[0]).startswith("tests/")
        order = group if whole else sorted(group, key=lambda name: known[name].seconds)
        spent = sum(known[name].seconds for name in group)
        if spent <= seconds:
            taken += group
            seconds -= spent
        elif not whole:
            for name in order:
                if known[name].seconds > seconds:
                    break
                taken.append(name)
                seconds -= known[name].seconds
    return taken


def _file(name: str) -> str:
    return name.partition("::")[0]


def _known(copy: Path, path: Path, faults: Sequence[Fault]) -> dict[str, Known]:
    """Return what is known of every test; run the suite without any fault unless that has been done."""
    if not path.exists():
        _say("Running the suite once without any fault, to learn which tests execute what.")
        began = time.monotonic()
        placed = _mark(copy, faults)
        try:
            done = run_tests(copy, {"map": str(path), "placed": placed}, limit=MAP_SECONDS)
        finally:
            _restore(copy)
        if not path.exists():
            sys.exit(f"The suite did not run to its end: {done}")
        _say(f"{len(placed)} places marked; the suite took {time.monotonic() - began:.0f} s.")
    listed: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Known(each["seconds"], each["passed"], set(each["hits"]), set(each["shared"]))
        for name, each in listed.items()
    }


def _mark(copy: Path, faults: Sequence[Fault]) -> list[str]:
    """Put a mark before the statement of every fault, and return the marks."""
    marks: dict[Path, list[tuple[int, str]]] = defaultdict(list)
    for fault in faults:
        place = locate(fault, copy)
        if place.file is not None:
            marks[place.file].append((_statement(place.file.read_text(encoding="utf-8"), fault.find), _mark_of(fault)))
    for file, found in marks.items():
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        for line, name in sorted(found, reverse=True):
            indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
            lines.insert(line - 1, f"{indent}getattr(__import__('builtins'), {MARK!r}, str)({name!r})\n")
        _rewrite(file, "".join(lines))
    return [name for found in marks.values() for _, name in found]


def _rewrite(file: Path, text: str) -> None:
    """Change a file of the copy; what it was lies beside it, also when this process is killed."""
    shutil.copy2(file, file.with_name(file.name + ".kept"))
    file.write_text(text, encoding="utf-8")


def _restore(copy: Path) -> None:
    """Put back every file that was changed, with its time."""
    for kept in (copy / "src").rglob("*.py.kept"):
        kept.replace(kept.with_suffix(""))


def _mark_of(fault: Fault) -> str:
    return hashlib.sha256(fault.find.encode()).hexdigest()[:12]


def _statement(source: str, find: str) -> int:
    """Return the line of the innermost statement that holds a text, before which another one can be put."""
    line = source[: source.index(find)].count("\n") + 1
    lines, tree = source.splitlines(), ast.parse(source)
    line += len(find) - len(find.lstrip("\n"))
    best = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            inside = node.lineno
            if isinstance(node, ast.FunctionDef):  # what stands in its head counts as the whole function
                body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
                inside = body[0].lineno if body else node.body[0].lineno
            if (
                not lines[inside - 1].lstrip().startswith("elif ")
                and inside > best
                and not isinstance(node, ast.ClassDef)
            ):
                best = inside
    return best


def run_tests(copy: Path, task: dict[str, Any], limit: float) -> dict[str, Any]:
    """Run tests of the copy in a process of their own; return what became of them."""
    told = copy.with_name(copy.name + ".told.json")
    order = copy.with_name(copy.name + ".task.json")
    told.unlink(missing_ok=True)
    order.write_text(json.dumps({**task, "told": str(told), "root": str(copy)}), encoding="utf-8")
    paths = os.pathsep.join((str(copy / "src"), str(HERE)))
    environment = {**os.environ, "PYTHONPATH": paths, TASK: str(order)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutation", "-n", "0"]
    if "tests" in task:
        command += ["-x", *dict.fromkeys(_file(name) for name in task["tests"])]
    # Through a pipe: some tests limit the size of files.
    process = subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    printed, code = _followed(process, limit)
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {"ran": 0}
    if "test" in found:
        return {"status": "caught", **found}
    if code is None:
        return {"status": "timeout", **found}
    if code != 0:
        return {"status": "error", "said": printed.decode(errors="replace")[-600:], **found}
    return {"status": "passed", **found}


def _followed(process: subprocess.Popen[bytes], limit: float) -> tuple[bytes, int | None]:
    """Wait for a process; end it when it has used more than so many seconds, or waited for ten times as many."""
    began = time.monotonic()
    try:
        while _used(process.pid) < limit and time.monotonic() - began < 10 * limit:
            with suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=2)[0], process.returncode
        return b"", None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _used(pid: int) -> float:
    """Return the seconds of the processor that a process and its finished children have used; 0 if nobody tells."""
    try:
        parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, parts[11:15])) / os.sysconf("SC_CLK_TCK")


def summarise(lines: Sequence[dict[str, Any]]) -> None:
    """Say how many faults were caught, by area, and which were not."""
    kinds = ("caught", "survived", "timeout", "error", "not found", "ambiguous", "not mapped")
    areas: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        areas[line["area"]][line["status"]] += 1
    _say(f"\n{'area':<10}" + "".join(f"{kind:>11}" for kind in kinds))
    for area, counts in [*areas.items(), ("all", sum(areas.values(), Counter[str]()))]:
        _say(f"{area:<10}" + "".join(f"{counts[kind]:>11}" for kind in kinds))
    for line in lines:
        if line["status"] != "caught":
            _say(f"{line['status']}: {line['id']} ({line['area']}): {line['what']}")


def _lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Watch:
    """What runs inside of pytest: it chooses and orders the tests, and notes times, failures and marks."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.wanted = {name: place for place, name in enumerate(task.get("tests", ()))}
        self.pages = {_file(name) for name in self.wanted if not _file(name).startswith("tests/")}
        """Files whose examples run, all of them: their names tell lines, which marks and faults can shift."""
        self.known: dict[str, dict[str, Any]] = {}
        self.marks: set[str] = set()
        self.shared: set[str] = set()
        self.told: dict[str, Any] = {"ran": 0}
        setattr(builtins, MARK, self.marks.add)

    def pytest_sessionstart(self) -> None:
        """Refuse to test another copy than the one in hand."""
        import quadrille

        if not Path(str(quadrille.__file__)).resolve().is_relative_to(self.task["root"]):
            pytest.exit("PYTHONPATH does not lead to the copy", returncode=9)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that are asked for, in that order."""
        placed = self.task.get("placed", [])
        self.known[""] = {"seconds": 0.0, "passed": True, "hits": placed, "shared": sorted(self.marks)}
        if self.wanted:
            kept = [item for item in items if item.nodeid in self.wanted or _file(item.nodeid) in self.pages]
            last = len(self.wanted)
            items[:] = sorted(
                kept, key=lambda item: last if _file(item.nodeid) in self.pages else self.wanted[item.nodeid]
            )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take a file that cannot be read for a failure."""
        if report.failed:
            self._failed(f"{report.nodeid} (not collected)", str(report.longrepr))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None]:
        """Note what fixtures execute."""
        yield
        self.shared = set(self.marks)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note time and marks of a test."""
        self.marks.clear()
        self.shared = set()
        self.known[item.nodeid] = {"seconds": 0.0, "passed": True}
        began = time.perf_counter()
        result = yield
        spent = round(time.perf_counter() - began, 4)
        self.known[item.nodeid] |= {"seconds": spent, "hits": sorted(self.marks), "shared": sorted(self.shared)}
        self.told["ran"] += 1
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure; a test that is skipped tells nothing either."""
        if not report.passed:
            self.known[report.nodeid]["passed"] = False
        if report.failed:
            self._failed(report.nodeid, str(report.longrepr))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write down what was noted; a run that was broken off has learned nothing."""
        self._write()
        if "map" in self.task and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            Path(self.task["map"]).write_text(json.dumps(self.known), encoding="utf-8")

    def _failed(self, test: str, said: str) -> None:
        if "test" not in self.told and "map" not in self.task:
            lines = [line for line in said.splitlines() if line.startswith("E ")] or said.splitlines()[-1:]
            self.told |= {"test": test, "said": lines[0][:300] if lines else ""}
            self._write()

    def _write(self) -> None:
        Path(self.task["told"]).write_text(json.dumps(self.told), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Take part in a run of pytest that this script has started, and in no other."""
    if task := os.environ.get(TASK):
        config.pluginmanager.register(Watch(json.loads(Path(task).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
