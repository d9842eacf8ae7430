"""The documentation site: no network, no warning, no dead link, nothing from elsewhere, every name."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import FunctionType
from urllib.parse import unquote, urlsplit

import pytest
from sybil.example import SybilFailure
from sybil.parsers.rest import DocTestParser

import quadrille as qd
from quadrille import chart, datasets, report, testing, theory

ROOT = Path(__file__).parents[2]
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src"}
NOWHERE = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": ""}
PLUMBING = {
    "Data.arrays": "how the workers of a search share one copy of large data: what lies in files",
    "Data.with_arrays": "the other half of that: the data again, from those files",
    "Recipe.prepare": "for the author of a recipe, who writes it: CONTRIBUTING.md says how",
    "Recipe.check": "for the author of a recipe, who may write it: parameters that do not go together",
    "Recipe.check_columns": "what every recipe does before it is prepared; an author may add to it",
    "Recipe.moved": "how a search knows which columns its candidates move",
    "Recipe.steering_columns": "for the author of a recipe, who may write it; a release asks for it",
    "Recipe.prepared": "how a plan and a search share the work of one design",
    "Recipe.stream": "the random words of a plan; whoever draws them by hand may draw them twice",
    "Recipe.design_json": "how a study and a prepared draw tell designs apart",
    "Study.axis": "how frontier, pick and reports find their two measures",
    "Study.objectives": "the points behind frontier, pick and clouds",
    "Study.designs": "what the command line lists where one of several designs must be named",
    "Study.require": "how commands and reports refuse the data of another study",
    "Study.designs_of": "a count for the page of the command line",
    "Study.near_frontier": "how a search knows for whom to score the costly measures",
    "Study.remember": "how the command line keeps the names of the files for its report",
    "Study.source": "how the report of the command line finds the files again",
}
"""Members that users need not call: neither in the reference nor with an example; each with the reason."""


class Links(HTMLParser):
    """What a page links to, what it fetches and which anchors it has."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if (value := given.get(FETCHED.get(tag, ""))) is not None and given.get("rel") not in (
            "canonical",
            "prev",
            "next",
        ):
            self.fetched.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, with every proxy pointing at nobody."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, **NOWHERE, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    printed = done.stdout + done.stderr
    assert done.returncode == 0 and "WARNING" not in printed and "ERROR" not in printed, printed
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}


def test_every_page_of_the_docs_is_a_page_of_the_site(pages: dict[Path, Links], site: Path) -> None:
    written = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    assert {page.relative_to(site).with_suffix("") for page in pages} == written
    assert {Path("start"), Path("reproductions"), Path("glossary"), Path("api/recipes")} <= written


def test_no_page_fetches_anything_from_elsewhere(pages: dict[Path, Links], site: Path) -> None:
    assert all(links.fetched for links in pages.values())
    for page, links in pages.items():
        outside = [value for value in links.fetched if urlsplit(value).scheme not in ("", "data") or value[:2] == "//"]
        assert not outside, (page.name, outside)
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")), style.name


def test_every_link_and_every_picture_leads_somewhere(pages: dict[Path, Links]) -> None:
    dead = [
        (page.name, value)
        for page, links in pages.items()
        for value in (*links.links, *links.fetched)
        if not _leads(page, value, pages)
    ]
    assert not dead


def _leads(page: Path, value: str, pages: dict[Path, Links]) -> bool:
    """Say whether a link to a place within the site finds it; links to other sites are for the reader to follow."""
    parts = urlsplit(value)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    target = target / "index.html" if target.is_dir() else target
    if target not in pages:
        return target.is_file() and not parts.fragment
    return not parts.fragment or unquote(parts.fragment) in pages[target].anchors


def test_the_tests_of_links_see_dead_ones(pages: dict[Path, Links], site: Path) -> None:
    start = site / "start.html"
    assert _leads(start, "glossary.html", pages) and _leads(start, "#6-choose", pages)
    assert not any(_leads(start, value, pages) for value in ("nowhere.html", "#nowhere", "glossary.html#nowhere"))


def test_a_reference_page_shows_the_function_and_not_the_file_of_its_name(site: Path) -> None:
    assert "One row of <code>points</code> is a candidate" in (site / "gallery/frontier.html").read_text()
    assert "MOST_RECORDS" not in (site / "api/theory.html").read_text()


def test_sessions_are_marked_as_such_so_that_prompts_are_not_copied(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert 'class="language-pycon highlight"' in page and '<span class="gp">&gt;&gt;&gt; </span>' in page


def test_every_chart_has_a_page_in_the_gallery_that_says_what_to_do() -> None:
    drawing = {name for name in chart.__all__ if _draws(getattr(chart, name))}
    found = {page.stem.replace("-", "_"): page.read_text() for page in (ROOT / "docs/gallery").glob("*.md")}
    assert found.keys() - {"index"} == drawing
    for name in drawing:
        parts = (
            "![",
            "**What you see.**",
            "**How to read it.**",
            "**What to do.**",
        )
        assert all(part in found[name] for part in parts), name
        function = f"quadrille.chart.{getattr(chart, name).__module__.rpartition('.')[2]}.{name}"
        assert f"::: {function}\n" in found[name] + "\n", name


def _draws(value: object) -> bool:
    return inspect.isfunction(value) and str(inspect.signature(value).return_annotation).endswith(("Chart", "Figure"))


def _public() -> Iterator[tuple[str, object]]:
    for module in (qd, chart, theory, datasets, report, testing):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):  # neither a module nor the type of a chart
                yield f"{module.__name__}.{name}", inspect.unwrap(value)


def _members(owner: object) -> Iterator[tuple[str, FunctionType]]:
    """The public methods and properties of a class, inherited ones too, but for plumbing and the standard library's."""
    for name in dir(owner) if inspect.isclass(owner) else ():
        member = inspect.getattr_static(owner, name)
        inner = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(inner) or not inner.__module__.startswith("quadrille"):
            continue
        if not any(f"{base.__name__}.{name}" in PLUMBING for base in owner.__mro__):
            yield name, inner


def _public_members() -> Iterator[tuple[str, object, FunctionType]]:
    for path, owner in _public():
        for name, inner in _members(owner):
            yield f"{path}.{name}", owner, inner


def _example(value: object) -> str:
    """The code of the example in a docstring, without what it prints."""
    return "".join(each.source for each in doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""))


def _not_made(code: str) -> set[str]:
    """The names that a piece of code uses and neither makes nor imports."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(dir(builtins))
    for node in nodes:
        if isinstance(node, ast.alias):
            made.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            made.add(node.name or "")
        elif isinstance(node, ast.arg):
            made.add(node.arg)
    return {node.id for node in names} - made


def _assert_hints(function: FunctionType) -> None:
    signature = inspect.signature(function)
    hints = [each.annotation for each in signature.parameters.values() if each.name not in ("self", "cls")]
    assert inspect.Parameter.empty not in (*hints, signature.return_annotation), function


def test_every_public_name_is_in_the_reference() -> None:
    pages = [*(ROOT / "docs/api").glob("*.md"), *(ROOT / "docs/gallery").glob("*.md")]
    shown = re.findall(r"^::: (\S+)$", "\n".join(page.read_text() for page in pages), re.MULTILINE)
    public = sorted(name for name, _ in _public())
    for _ in range(2):  # without its file, and without its room where that has the name of the function
        shown = [name if name in public else re.sub(r"\.\w+(\.\w+)$", r"\1", name) for name in shown]
    assert sorted(shown) == public


def _titles(value: object) -> str:
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("path", "value"), list(_public()), ids=_titles)
def test_a_public_name_has_a_docstring_an_example_and_type_hints(path: str, value: object) -> None:
    example = _example(value)
    assert (inspect.getdoc(value) or "").strip() and example
    assert not _not_made(example), "the example does not work when it is copied"
    if inspect.isfunction(value):  # of a class an example may show what another function returns
        assert re.search(rf"\b{path.rpartition('.')[2]}\(", example), "the example does not call it"
        _assert_hints(value)


@pytest.mark.parametrize(("path", "owner", "member"), list(_public_members()), ids=_titles)
def test_a_public_method_or_property_has_a_docstring_an_example_and_type_hints(
    path: str, owner: object, member: FunctionType
) -> None:
    assert (inspect.getdoc(member) or "").strip()
    own, used = _example(member), re.compile(rf"\.{path.rpartition('.')[2]}\b")
    assert used.search(own) or used.search(_example(owner)), "neither its example nor that of its class uses it"
    assert not _not_made(own), "the example does not work when it is copied"
    _assert_hints(member)


def test_the_reference_shows_every_member_and_no_plumbing(site: Path) -> None:
    shown = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    anchors = set(re.findall(r'id="(quadrille\.[\w.]+)"', shown))
    assert not {path for path, _, _ in _public_members()} - anchors
    assert "quadrille.RandomSwap.plan" in anchors
    for hidden in PLUMBING:
        owner, _, name = hidden.partition(".")
        base = getattr(qd, owner)
        assert hasattr(base, name), "the list of plumbing names what there is not"
        derived = [path for path, value in _public() if inspect.isclass(value) and issubclass(value, base)]
        assert derived and not {f"{path}.{name}" for path in derived} & anchors, hidden


def test_what_an_example_needs_is_found() -> None:
    assert _not_made("import quadrille as qd\ndata = qd.read('f')\n[len(x) for x in score(data)]") == {"score"}
    assert (
        _not_made("from pathlib import Path\ntry:\n    Path('a')\nexcept OSError as error:\n    print(error)") == set()
    )


def test_a_docstring_is_run_in_an_empty_session_and_a_folder_of_its_own(tmp_path: Path) -> None:
    examples = runpy.run_path(str(ROOT / "conftest.py"))
    file = tmp_path / "module.py"
    file.write_text(MODULE)
    home, failed = Path.cwd(), list[int]()
    document = examples["Docstrings"].parse(str(file), DocTestParser(examples["OPTIONS"]))
    for place, example in enumerate(document.examples()):
        try:
            example.evaluate()
        except SybilFailure:
            failed.append(place)
    examples["leave_the_folder"](document.namespace)
    assert failed == [3, 4]
    assert Path.cwd() == home and sorted(tmp_path.iterdir()) == [file]


MODULE = '''
def one() -> int:
    """Return 1.

    >>> from pathlib import Path
    >>> number = Path("file").write_text("1")
    >>> number
    1
    """
    return 1

def two() -> int:
    """Return 2: neither `one` nor `number` is there, nor is the file.

    >>> one()
    1
    >>> number
    1
    >>> from pathlib import Path
    >>> Path("file").exists(), __name__
    (False, '__main__')
    """
    return 2
'''


def test_a_docstring_becomes_markdown() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from site_docstrings import to_markdown
    finally:
        sys.path.pop(0)
    parameters = "Parameters\n----------\na, b : numbers,\n    any."
    text = f"Add.\n\n{parameters}\n\nExample\n-------\n>>> 1\n1\n\n>>> 2\n2\n\nReference: x."
    assert to_markdown(text) == (
        "Add.\n\n**Parameters**\n\n- `a`, `b`: numbers,\n    any.\n\n"
        "**Example**\n\n```pycon\n>>> 1\n1\n\n>>> 2\n2\n```\n\nReference: x."
    )
