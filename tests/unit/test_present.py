"""A fact is worded once, and the terminal, Markdown and HTML show the same numbers, each a rounding of the JSON's."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from quadrille.data import Data
from quadrille.plan import Plan
from quadrille.present import Alert, Block, Items, Text, Title, facts, numbers, render, table
from quadrille.present.account import account, recipe_table
from quadrille.present.profile import column_table, profile_facts
from quadrille.present.scores import definitions, score_table, scores, verdict

SOURCE = Path(qd.__file__).parent
DIGITS = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
MEASURES = ["exposed", "small_cells", "confidence", "hellinger", "entropy_change", "ordinal_shift"]
HOSTILE = "a|b <b>&\x1b[31m\u202e"


def in_the_terminal(blocks: list[Block], capsys: pytest.CaptureFixture[str]) -> str:
    render.render(blocks)
    return capsys.readouterr().out


def in_markdown(blocks: list[Block], _: object) -> str:
    return re.sub(r"^\| (--- \| )*--- \|$", "", render.as_markdown(blocks), flags=re.MULTILINE)


def in_html(blocks: list[Block], _: object) -> str:
    shown = re.sub(r"<caption>.*?</caption>", "", render.as_html(blocks))
    return unescape(re.sub(r"<[^>]+>", " ", shown))


RENDERERS: list[Callable[..., str]] = [in_the_terminal, in_markdown, in_html]


def everything(data: Data, recipe: qd.Recipe, policy: Path) -> list[Block]:
    """Return the account, the scores, a verdict and a profile, with all that goes with them."""
    plan = recipe.plan(data)
    found = qd.score(data, plan, MEASURES)
    profile = qd.inspect(data)
    return [
        *account(plan.report(data), ["two", "tables"]),
        recipe_table(recipe),
        *scores(found),
        score_table({"one": found, "other": qd.score(data, Plan([], data=data), MEASURES)}, rivals=("one", "other")),
        definitions(kind for kind, _ in found.results.values()),
        *verdict(qd.check_policy(data, recipe, policy)),
        profile_facts(profile),
        column_table(profile.columns),
    ]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text("[swap]\nrate = {most = 0.5}\n[measures]\nhellinger = {most = 0.0001}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "recipe",
    [
        qd.RandomSwap(["Edu"], rate=0.02, same=["Sex"], seed=7),
        qd.DesignedSwap(share=0.5, effort=0.02, seed=7),
        qd.ControlledSwap(["Edu"], targets=0.01, boundary=["Sex"], seed=7),
    ],
    ids=lambda recipe: type(recipe).__name__,
)
def test_all_renderers_show_the_same_numbers_in_the_same_order(
    recipe: qd.Recipe, cps8d: Data, policy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # so that no number is broken
    blocks = everything(cps8d, recipe, policy)
    shown = [DIGITS.findall(render(blocks, capsys).replace("−", "-")) for render in RENDERERS]
    assert len(shown[0]) > 80
    assert shown[0] == shown[1] == shown[2]


def test_a_score_has_one_text_in_the_terminal_the_dossier_and_the_report(
    cps8d: Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[244], seed=range(2))
    study = qd.search(cps8d, recipes, MEASURES[:4], out=tmp_path / "s", progress=False)
    recipe = study.recipe(1)
    with pytest.warns(UserWarning, match="guessed"):
        made = qd.release(cps8d, recipe, tmp_path / "r", measures=MEASURES[:4], insecure=True)
    dossier = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    page = qd.report.write_report(study, cps8d, tmp_path / "r.html", candidate=1).read_text(encoding="utf-8")
    printed = in_the_terminal(scores(made.scores), capsys)
    choice = study.choice(1, risk="exposed", loss="hellinger").explain()
    for address, value in made.scores.items():
        text = numbers.score(value)
        assert re.search(rf"\| {address} \|.* {re.escape(text)} \|\n", dossier)
        assert re.search(rf">{address}</th>.*>(?:▸ )?{re.escape(text)}</td>", page)
        assert re.search(rf"{address} .* {re.escape(text)}\n", printed)
        assert address not in ("exposed", "hellinger") or f"{address} {text}" in choice


@given(st.floats(1e-12, 1e9) | st.floats(-1e9, -1e-12) | st.just(0.0))
def test_what_is_shown_is_a_correct_rounding_of_the_full_number(value: float) -> None:
    assert float(numbers.score(value)) == float(f"{value:.5e}")
    assert float(numbers.statistic(value, 4).replace(",", "")) == (
        round(value, 1) if abs(value) >= 1000 else float(f"{value:.3e}")
    )
    assert float(numbers.fixed(value, 2).replace(",", "")) == float(f"{value:.2f}")
    assert numbers.parameter(value) == repr(value)


@given(st.floats(0, 1))
def test_a_share_is_rounded_and_never_called_none_or_all_when_it_is_not(value: float) -> None:
    text = numbers.share(value)
    shown = float(text.removesuffix(" %")) / 100
    assert abs(shown - value) <= 0.5001e-3 * value
    assert (text == "0 %") == (value == 0) and (text == "100 %") == (value == 1)


@given(st.integers(0, 10**12))
def test_a_count_is_whole(number: int) -> None:
    assert int(numbers.count(number).replace(",", "")) == number


def test_texts_from_outside_do_no_harm_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    blocks: list[Block] = [
        Title(HOSTILE),
        Text(HOSTILE),
        Alert(HOSTILE, HOSTILE),
        facts([(HOSTILE, HOSTILE)]),
        Items((HOSTILE,)),
        table([HOSTILE], [[HOSTILE]], caption=HOSTILE, numbers=[0]),
    ]
    for shown in (in_the_terminal(blocks, capsys), render.as_markdown(blocks), render.as_html(blocks)):
        assert "\x1b" not in shown and "\u202e" not in shown and "\\x1b[31m" in shown
    page = render.as_html(blocks)
    assert "<b>" not in page and page.count("&lt;b&gt;&amp;") == 10
    text = render.as_markdown(blocks)
    assert not re.search(r"(?<!\\)<b>", text) and text.count(r"a\|b") == 2, "a bar in a cell does not end it"


WORDED = [
    "take part (",
    "(nothing changes)",
    "the full table does not show it",
    "of them certain by size",
    "left as they were",
    "pairs that exchange",
    "alone can be fooled",
    "share paired",
    "both policies",
    " of one record, ",
    ". Source: ",
]


def texts(path: Path) -> list[str]:
    """Return what a file can show: the strings of a module that are not docstrings, or all of a template."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [source]
    tree = ast.parse(source)
    alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in alone]
    return [node.value for node in found if isinstance(node.value, str)]


@pytest.fixture(scope="module")
def worded() -> list[tuple[Path, str]]:
    files = [path for kind in ("*.py", "*.j2") for path in SOURCE.rglob(kind)]
    return [(path, text) for path in files for text in texts(path)]


@pytest.mark.parametrize("words", WORDED)
def test_a_fact_is_worded_in_one_place(words: str, worded: list[tuple[Path, str]]) -> None:
    found = [path for path, text in worded if words in text]
    assert len(found) == 1 and found[0].parent.name == "present", found


def test_numbers_are_written_by_the_functions_of_numbers_alone() -> None:
    shown = [*(SOURCE / "present").glob("*.py"), *(SOURCE / "report").glob("*.py"), *(SOURCE / "release").glob("*.py")]
    shown += [SOURCE / "cli" / "show.py", SOURCE / "cli" / "study_show.py"]
    own = re.compile(r"\{[^{}]*:[^{}\"']*\.\{?\w+\}?[gf%]\}")
    allowed = {"numbers.py": None, "dossier.py": "{f:.12g}", "judge.py": "{limit.margin:.0%}", "study_show.py": ":.3g}"}
    for path in shown:
        for format in own.findall(path.read_text(encoding="utf-8")):
            assert path.name in allowed and (allowed[path.name] or "") in format, (path.name, format)


@pytest.mark.parametrize("columns", [4, 9])
def test_numbers_are_never_broken_over_lines(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    figures = [f"{place + 1},271,786.5" for place in range(columns)]
    head = ("measure", *(f"the mean of {figure}" for figure in figures))
    render.grid(head, [("effective_swap_rate(region)", *figures)], numbers=range(1, columns + 1))
    shown = capsys.readouterr().out
    assert all(f" {figure} " in shown.replace("\n", " ") for figure in figures)
    assert (max(map(len, shown.splitlines())) <= 80) == (columns == 4)
