"""What each command shows, as a table and as JSON, and what it writes."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from pathlib import Path

import pytest
import typer
from cli_files import RECORDS, SECRET, Run
from typer.testing import Result

import quadrille as qd
from quadrille.cli import app
from quadrille.cli.inputs import load_after

COMMANDS: list[str] = list(typer.main.get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]

GOOD_CALLS = {
    "inspect": "inspect good.csv --weight Weight",
    "inspect with codebook": "inspect good.parquet --codebook book.toml",
    "inspect a data set": "inspect dataset:cps8d",
    "inspect risk by level": "inspect dataset:census --risk gender,ageGroup --k 2",
    "codebook": "inspect good.csv --write-codebook -",
    "codebook to a file": "inspect good.csv --write-codebook new.toml",
    "measures": "measures",
    "doctor": "doctor good.parquet",
    "doctor of text": "doctor good.csv --format csv",
    "release as a dry run": "release good.csv --dry-run",
    "swap": "swap good.csv --swap Sex,Region --pairs 5 --seed 3",
    "swap to a file": "swap good.csv.gz --swap Sex --rate 0.2 --out new.csv --save-recipe new.json --weight Weight",
    "score": "score good.csv good.parquet --measures hellinger,ordinal_shift(Age)",
    "plan": "plan good.csv --recipe good.json --out new.parquet",
    "release": "release good.csv --swap Sex --pairs 5 --out new --codebook book.toml",
    "release by number": "release good.csv --swap Sex --pairs 5 --out new --seed 3 --insecure --format parquet",
    "release from a study": "release good.csv --codebook book.toml --study small.study --pick --out new",
    "search": "search job.toml",
    "search with secret seeds": "search job.toml --out other.study --seeds 2 --workers 1",
    "dry run": "search job.toml --dry-run",
    "frontier": "frontier small.study",
    "frontier on other axes": "frontier small.study --risk exposed --loss hellinger",
    "pick": "pick small.study",
    "pick with everything": "pick small.study --max-risk 0.9 --criterion least-loss --note x --save-recipe new.json",
    "controlled swap": "swap good.csv --codebook book.toml --method controlled --swap Sex,Age --targets 0.1 --seed 3",
    "designed swap": "swap dataset:cps8d --method designed --effort 0.05 --share 0.5 --seed 3",
    "runs": "frontier small.study --runs --design 1",
    "recipe drawn": "score good.csv --recipe good.json --draws 2",
    "recipe varied": "score good.csv --recipe good.json --vary pairs=3,5,7,9,11,13 --draws 2 --measures hellinger",
    "recipe without a parameter": "score good.csv --codebook book.toml --recipe ruled.json --without rules --draws 2",
    "attack": "attack good.csv --recipe good.json --keys Sex,Age,Region",
    "attack with a population": "attack good.csv --recipe good.json --sampling 0.1 --earlier good.json",
    "attack by roles": "attack good.csv --recipe good.json --key Sex,Age --layout separator=,",
    "attack on a file": "attack good.csv --release good.parquet --target Sex --knows file",
    "reproduce": "reproduce gomatam-karr-2003 --draws 2",
}


def shown(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def widest(text: str) -> int:
    """Return the length of the longest line, commands to be copied aside: these stay on one line."""
    return max(len(line) for line in text.splitlines() if not line.startswith("  quadrille "))


def document(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", GOOD_CALLS)
def test_json_is_one_document_and_the_only_thing_on_stdout(name: str, run: Run) -> None:
    result = run(GOOD_CALLS[name] + " --json")
    assert result.exit_code == 0, result.output
    parsed = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert parsed


@pytest.mark.parametrize("name", GOOD_CALLS)
def test_tables_fit_80_columns_and_show_no_values(name: str, run: Run) -> None:
    result = run(GOOD_CALLS[name])
    assert result.exit_code == 0, result.output
    if name != "reproduce":
        assert widest(result.stdout) <= 80
    if name != "codebook":
        assert SECRET not in result.output
    assert "Traceback" not in result.output


def test_version_and_help_name_the_program(run: Run) -> None:
    assert shown(run("--version")) == f"quadrille {qd.__version__}"
    help_text = shown(run("--help"))
    for command in COMMANDS:
        assert command in help_text
        assert "--json" in shown(run(f"{command} --help"))
    assert "--install-completion" in help_text


def test_inspect_counts_columns_missing_values_cells_and_weight(run: Run, folder: Path) -> None:
    (folder / "gaps.csv").write_text("Id,A,B,W\n1,x,1,0.5\n2,,1,1.5\n3,x,2,1\n4,y,2,1\n")
    found = document(run("inspect gaps.csv --weight W --json"))
    assert found["records"] == 4
    assert found["weight"] == {"column": "W", "total": 4.0, "exact": True}
    assert found["keys"] == ["A", "B"]
    assert found["cells"] == {"possible": 3 * 2, "occupied": 4, "ones": 4, "twos": 0}
    columns = {column["name"]: column for column in found["columns"]}  # type: ignore[index, attr-defined]
    assert columns["A"]["missing"] == 0.25
    assert columns["A"]["categories"] == 2
    assert columns["A"]["labels"] is None
    assert columns["W"]["role"] == "weight"
    hints = " ".join(found["hints"])  # type: ignore[arg-type]
    assert columns["Id"]["role"] == "id"
    assert "left out of releases: 'Id'. To release one on purpose" in hints
    assert "'A'" not in hints


def test_inspect_shows_the_known_counts_of_cps8d(run: Run) -> None:
    text = shown(run("inspect dataset:cps8d"))
    for part in ("48,842", "2,880 possible, 1,695 occupied", "361 of one record, 186 of two"):
        assert part in text


def test_inspect_lists_category_labels_only_when_asked_and_never_identifiers(run: Run) -> None:
    assert "Female" not in shown(run("inspect good.csv --codebook book.toml"))
    text = shown(run("inspect good.csv --codebook book.toml --categories"))
    assert "Male, Female" in text
    assert "ZQname" not in text


def test_codebook_is_toml_that_reads_back(run: Run, folder: Path) -> None:
    text = run("inspect good.csv --weight Weight --full --write-codebook -").stdout
    assert tomllib.loads(text)["columns"]["Weight"]["role"] == "weight"
    assert run("inspect good.csv --weight Weight --full --write-codebook new.toml").exit_code == 0
    assert (folder / "new.toml").read_text() == text
    assert qd.Codebook.read(folder / "new.toml") == qd.read(folder / "good.csv", weight="Weight").codebook
    assert run("inspect good.csv --write-codebook new.toml --overwrite").exit_code == 0
    assert document(run("inspect good.csv --weight Weight --full --write-codebook - --json"))["codebook"] == text
    assert not (folder / "-").exists()


def test_measures_lists_every_measure(run: Run) -> None:
    listed = json.loads(run("measures --json").stdout)
    assert [row["name"] for row in listed] == qd.measures()["name"].to_list()
    text = shown(run("measures"))
    for row in listed:
        assert row["name"] in text


def test_swap_without_out_writes_nothing(run: Run, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    assert "5 asked, 5 drawn" in shown(run("swap good.csv --swap Sex --pairs 5"))
    assert sorted(folder.rglob("*")) == before


def test_swap_writes_the_file_in_its_order_and_a_private_recipe_that_repeats_it(run: Run, folder: Path) -> None:
    result = run("swap good.csv --swap Sex,Age --swap Region --pairs 5 --out new.csv --save-recipe new.json")
    assert result.exit_code == 0
    assert "not a release" in result.stderr
    assert "cannot be repeated" not in result.stderr
    assert stat.S_IMODE((folder / "new.json").stat().st_mode) == 0o600
    recipe = qd.Recipe.from_json((folder / "new.json").read_text())
    data = qd.read(folder / "good.csv")
    assert recipe.parameters()["swap"] == ("Sex", "Age", "Region")
    assert recipe.plan(data).apply(data).frame().equals(qd.read(folder / "new.csv").frame())
    assert run("swap good.csv --recipe new.json --out again.csv").exit_code == 0
    assert (folder / "again.csv").read_bytes() == (folder / "new.csv").read_bytes()


def test_swap_says_when_the_secret_seed_is_lost(run: Run) -> None:
    assert "cannot be repeated" in run("swap good.csv --swap Sex --pairs 5 --out new.csv").stderr


def test_swap_passes_every_option_to_the_recipe(run: Run, folder: Path) -> None:
    words = (
        "swap good.csv --swap Sex --swap Age --pairs 4 --same Region --different Name --differ any --order one-by-one"
        " --sampler pair-uniform --seed 11 --save-recipe new.json"
    )
    assert run(words).exit_code == 0
    assert qd.Recipe.from_json((folder / "new.json").read_text()) == qd.RandomSwap(
        ["Sex", "Age"],
        pairs=4,
        same=["Region"],
        different=["Name"],
        differ="any",
        order="one-by-one",
        sampler="pair-uniform",
        seed=11,
    )


def test_a_hexadecimal_seed_is_taken_as_it_is(run: Run, folder: Path) -> None:
    seed = "12" * 32
    assert run(f"swap good.csv --swap Sex --pairs 4 --seed {seed} --save-recipe new.json").exit_code == 0
    assert qd.Recipe.from_json((folder / "new.json").read_text()).parameters()["seed"] == seed


def test_json_of_swap_holds_the_design_and_the_scores_but_no_seed(run: Run, folder: Path) -> None:
    words = ["swap", "good.csv", "--swap", "Sex", "--pairs", "5", "--save-recipe", "new.json", "--json"]
    result = run([*words, "--measures", "hellinger(Sex*Age, where=Region!=ZQr0),total_variation"])
    found = document(result)
    assert found["recipe"] == {"method": "RandomSwap", "version": 2, "swap": ["Sex"], "pairs": 5}
    data, recipe = qd.read(folder / "good.csv"), qd.Recipe.from_json((folder / "new.json").read_text())
    addresses = ["hellinger(Sex*Age, where=Region!=ZQr0)", "total_variation"]
    expected = qd.score(data, recipe.plan(data), addresses)
    assert {name: row["value"] for name, row in found["scores"].items()} == dict(expected)  # type: ignore[attr-defined]
    assert str(recipe.parameters()["seed"]) not in result.output


def test_column_names_with_commas_are_quoted(run: Run, folder: Path) -> None:
    (folder / "comma.csv").write_text('"Income, total",Sex\n1,a\n2,b\n3,a\n1,b\n')
    found = document(run(["swap", "comma.csv", "--swap", "'Income, total',Sex", "--pairs", "1", "--json"]))
    assert found["recipe"]["swap"] == ["Income, total", "Sex"]  # type: ignore[index]


def test_score_equals_the_library_and_takes_a_condition_and_a_recipe(run: Run, folder: Path) -> None:
    run("swap good.csv --swap Age,Region --pairs 9 --out new.csv --save-recipe new.json")
    words = "score good.csv new.csv --measures hellinger,ordinal_shift --where Sex=ZQm --recipe new.json --json"
    scores = document(run(words))["scores"]
    data, other = qd.read(folder / "good.csv"), qd.read(folder / "new.csv")
    expected = qd.score(data, other, ["hellinger", "ordinal_shift"], where="Sex=ZQm")
    assert {name: row["value"] for name, row in scores.items()} == dict(expected)  # type: ignore[attr-defined]
    assert expected["ordinal_shift"]


def test_score_reads_a_public_file_with_the_codebook_of_the_original(run: Run, folder: Path) -> None:
    assert run("release good.csv --swap Sex --pairs 5 --out new --codebook book.toml").exit_code == 0
    words = "score good.csv new/public/data.csv --codebook book.toml --measures hellinger(Sex*Age) --json"
    found = document(run(words))
    assert found["scores"]["hellinger(Sex*Age)"]["value"] > 0  # type: ignore[index]
    own = document(run(words + " --codebook-after new/public/codebook.toml"))
    assert own == found
    original = qd.read(folder / "good.csv", codebook=folder / "book.toml")
    for described in (folder / "new/public/codebook.toml", None):  # as for bundled data, which bring their codebook
        public = load_after(str(folder / "new/public/data.csv"), original, None, described, None)
        assert public.weight == original.weight == "Weight"


def test_release_writes_both_folders_and_takes_a_number_as_seed_only_as_insecure(run: Run, folder: Path) -> None:
    words = "release good.csv --swap Sex --pairs 5 --out new --codebook book.toml --seed 12345"
    refused = run(words)
    assert (refused.exit_code, refused.stdout) == (2, "") and not (folder / "new").exists()
    assert "allow it with --insecure" in refused.stderr and "12345" not in refused.output
    result = run(f"{words} --insecure")
    assert result.exit_code == 0
    assert result.stderr.startswith("quadrille: warning: The seed is a number that can be guessed")
    assert "12345" not in result.output
    assert {path.name for path in (folder / "new").iterdir()} == {"public", "confidential"}
    assert (folder / "new" / "public" / "methods.INSECURE.md").exists()
    header = (folder / "new" / "public" / "data.csv").read_text().splitlines()[0]
    assert header == "Sex,Age,Region,Weight"
    assert run("release good.csv --swap Sex --pairs 5 --out new --codebook book.toml --overwrite").exit_code == 0


def test_release_by_a_secret_seed_is_silent_on_stderr(run: Run) -> None:
    assert (
        run("release good.csv --swap Sex --pairs 5 --key Sex --out new --codebook book.toml").stderr == ""
    )  # none is alone


def test_reproduce_passes_its_options_on(run: Run) -> None:
    found = document(run("reproduce gomatam-karr-2003 --draws 2 --sampler pair-uniform --json"))
    assert found["paper"] == "gomatam-karr-2003"
    assert found["setting"]["seeds"] == 2  # type: ignore[index]
    assert found["setting"]["sampler"] == "pair-uniform"  # type: ignore[index]


def test_demo_searches_chooses_reports_and_releases_and_a_second_one_replaces_it(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quadrille.cli.commands.demo.SEEDS", 1)  # a short one
    monkeypatch.setattr("quadrille.cli.commands.demo.PAIRS", (244,))
    monkeypatch.setattr("quadrille.cli.commands.demo.EFFORT", 0.01)
    first = run("demo --out new --seed 5")
    assert first.exit_code == 0
    assert first.stderr.startswith("quadrille: warning: The seed") and first.stderr.count("\n") == 1
    text = first.stdout
    assert widest(text) <= 80 and "Traceback" not in first.output
    assert "of 58 candidates; the others are dominated" in text
    gained = re.search(r"(\d+) of 36 random candidates, by one of 22 designed", text)
    assert gained is not None and int(gained[1]) > 25, "what designed swaps gained, at a thirtieth of the effort"
    assert "camouflaged (filled up to 3)" in text, "the release is a designed swap"
    assert "o frontier" in text, "the frontier is drawn"
    assert "exposed" in text, "the n-rule never stands alone"
    assert "Why: least hellinger with exposed at most 0.001" in text
    for path in (
        "new/frontier.png",
        "new/frontier-inferred.png",
        "new/report.html",
        "new/release/public/",
        "new/study",
    ):
        assert path in text
    assert (folder / "new" / "release" / "confidential" / "dossier.md").exists()
    assert (folder / "new" / "report.html").stat().st_mode & 0o077 == 0
    published = sorted((folder / "new" / "release" / "public" / "data.csv").read_bytes().splitlines())
    monkeypatch.setattr("quadrille.cli.commands.demo._pictures", lambda *_: ([], None))
    second = document(run("demo --out new --seed 5 --json"))
    assert second["choice"]["explanation"].splitlines()[1] in text, "a number as seed repeats itself"  # type: ignore[index]
    assert sorted((folder / "new" / "release" / "public" / "data.csv").read_bytes().splitlines()) == published


def test_names_that_look_like_markup_are_printed_as_they_are(run: Run, folder: Path) -> None:
    (folder / "markup.csv").write_text("[bold]x[/bold],:smile:\na,b\nc,d\n")
    text = shown(run("inspect markup.csv"))
    assert "[bold]x[/bold]" in text
    assert ":smile:" in text


def test_records_are_counted_the_same_in_every_format(run: Run) -> None:
    for name in ("good.csv", "good.csv.gz", "good.parquet"):
        assert document(run(f"inspect {name} --json"))["records"] == RECORDS


def test_a_recipe_is_scored_as_it_is_swapped_unless_several_draws_are_asked_for(run: Run) -> None:
    assert "(on the command line: --recipe)" in run("score good.csv good.csv --measures small_cells --json").stdout
    swapped = json.loads(run("swap good.csv --recipe good.json --json").stdout)["scores"]
    drawn = json.loads(run("score good.csv --recipe good.json --json").stdout)
    means = {row["measure"]: row["mean"] for row in drawn["measures"]}
    assert {name: means[name] for name in swapped} == {name: score["value"] for name, score in swapped.items()}
    assert drawn["notes"] == {"ordinal_shift": "no ordinal variable was moved"}
    shown = run("score good.csv --recipe good.json --vary pairs=3,5").stdout
    assert f"{means['hellinger']:.6g}" in shown
    assert "ordinal_shift  no ordinal variable was moved" in shown


def test_inspect_counts_who_is_at_risk_by_level_of_geography(run: Run) -> None:
    levels = document(run("inspect dataset:census --risk gender,ageGroup --k 2 --json"))["risk"]["levels"]  # type: ignore[index]
    assert [(level["level"], level["units"]) for level in levels] == [
        ("nuts1", 0),
        ("nuts2", 0),
        ("nuts3", 0),
        ("lau2", 2933),
    ]
    assert "2,933 11,769 3,752 29.33 %" in shown(run("inspect dataset:census --risk gender,ageGroup --k 2"))
    assert "Name them" in run("inspect dataset:census --k 2").stderr
