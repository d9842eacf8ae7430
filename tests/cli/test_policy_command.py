"""The policy of an agency on the command line: release refuses, `quadrille policy` checks ahead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_files import SECRET, Run

RELEASE = "release good.csv --codebook book.toml --swap Sex --pairs 5"
LOOSE = '[policy]\nname = "Plover"\n[swap]\nrate = {most = 0.5}\n[measures]\nhellinger = {most = 1}\n'
STRICT = LOOSE.replace("0.5", "0.01")


@pytest.fixture
def policies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("QUADRILLE_POLICY", raising=False)
    (folder / "loose.toml").write_text(LOOSE)
    (folder / "strict.toml").write_text(STRICT)
    (folder / "wrong.toml").write_text("[measures]\nhellinger = {most = 5}")
    return folder


def lines_of(verdict: dict[str, Any]) -> list[dict[str, str]]:
    return [line for each in verdict["policies"] for line in each["lines"]]


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_release_that_keeps_the_policy_says_so_line_by_line(run: Run, policies: Path) -> None:
    done = run(f"{RELEASE} --policy loose.toml")
    assert done.exit_code == 0, done.output
    assert "Policy: Plover" in done.stdout and "pass (3 pass, 0 review, 0 fail)" in done.stdout
    assert "[measures] hellinger" in done.stdout
    assert (policies / "release" / "confidential" / "policy.json").is_file()


def test_a_release_that_fails_shows_the_lines_and_writes_nothing(run: Run, policies: Path) -> None:
    before = names(policies)
    done = run(f"{RELEASE} --policy strict.toml")
    assert done.exit_code == 2
    assert "fail (2 pass, 0 review, 1 fail)" in done.stdout
    assert done.stderr.startswith("quadrille: The release fails the policy 'Plover': [swap] rate")
    assert done.stderr.count("\n") == 1
    assert SECRET not in done.stdout + done.stderr
    assert names(policies) == before


def test_json_has_the_verdict_whether_it_is_written_or_not(run: Run, policies: Path) -> None:
    refused, made = run(f"{RELEASE} --policy strict.toml --json"), run(f"{RELEASE} --policy loose.toml --json")
    told = json.loads(refused.stdout)
    assert (refused.exit_code, told["path"], told["policy"]["verdict"]) == (2, None, "fail")
    assert [line["rule"] for line in lines_of(told["policy"]) if line["verdict"] == "fail"] == ["[swap] rate"]
    told = json.loads(made.stdout)
    assert (made.exit_code, told["path"], told["policy"]["verdict"]) == (0, "release", "pass")


def test_the_environment_can_name_the_policy(run: Run, policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADRILLE_POLICY", "strict.toml")
    assert run(RELEASE).exit_code == 2
    assert run("policy good.csv --codebook book.toml --swap Sex --pairs 5").exit_code == 2
    monkeypatch.setenv("QUADRILLE_POLICY", "")
    assert run(f"{RELEASE} --out other").exit_code == 0
    assert run("policy good.csv --codebook book.toml --swap Sex --pairs 5").stderr == (
        "quadrille: Name the policy: quadrille policy FILE POLICY.\n"
    )


CHECK = "policy good.csv --codebook book.toml"


@pytest.mark.parametrize(
    "command",
    [
        RELEASE,
        f"{RELEASE} --policy other.toml",
        f"{CHECK} other.toml --swap Sex --pairs 5",
        "release good.csv --codebook book.toml --study small.study --pick --policy other.toml",
        f"{CHECK} other.toml --study small.study --candidate 1",
    ],
)
def test_the_policy_of_the_machine_is_never_replaced(
    run: Run, policies: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (policies / "other.toml").write_text(LOOSE.replace("Plover", "Other"))
    monkeypatch.setenv("QUADRILLE_POLICY", str(policies / "strict.toml"))
    before = names(policies)
    shown, told = run(command), run(f"{command} --json")
    assert (shown.exit_code, told.exit_code) == (2, 2), shown.output
    assert "Policy: Plover" in shown.stdout and "fail (2 pass, 0 review, 1 fail)" in shown.stdout
    assert "'Plover'" in shown.stderr and "'Other'" not in shown.stderr and shown.stderr.count("\n") == 1
    document = json.loads(told.stdout)
    found = document["policies"] if command.startswith("policy") else document["policy"]["policies"]
    assert [(each["policy"], each["machine"], each["verdict"]) for each in found] == [
        ("Other", False, "pass"),
        ("Plover", True, "fail"),
    ]["other" not in command :]
    assert names(policies) == before


def test_two_policies_that_are_kept_are_shown_and_recorded(
    run: Run, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (policies / "other.toml").write_text(LOOSE.replace("Plover", "Other"))
    monkeypatch.setenv("QUADRILLE_POLICY", str(policies / "loose.toml"))
    done = run(f"{RELEASE} --policy other.toml")
    assert done.exit_code == 0, done.output
    assert done.stdout.index("Policy: Other") < done.stdout.index("Policy: Plover")
    assert "both policies  pass" in done.stdout and "named by QUADRILLE_POLICY" in done.stdout
    dossier = (policies / "release" / "confidential" / "dossier.md").read_text()
    assert "## Policy: Other" in dossier and "- policy file: other.toml, SHA-256" in dossier
    assert "## Policy: Plover" in dossier and "- policy file: loose.toml, SHA-256" in dossier


def test_the_frontier_is_judged_by_both_policies(run: Run, policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (policies / "other.toml").write_text(LOOSE.replace("Plover", "Other"))
    monkeypatch.setenv("QUADRILLE_POLICY", "strict.toml")
    done = run(f"{CHECK} other.toml --study small.study")
    assert done.exit_code == 2
    assert done.stderr == "quadrille: no candidate on the frontier keeps the policies 'Other' and 'Plover'.\n"


def test_a_machine_policy_that_cannot_be_read_stops_the_release(
    run: Run, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUADRILLE_POLICY", "nowhere.toml")
    before = names(policies)
    done = run(f"{RELEASE} --policy loose.toml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("quadrille: The variable QUADRILLE_POLICY names a policy that cannot be used.")
    assert names(policies) == before


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        ("loose.toml --swap Sex --pairs 5", 0, "pass"),
        ("loose.toml --recipe good.json", 0, "review"),
        ("strict.toml --recipe good.json", 2, "fail"),
        ("strict.toml --study small.study --pick", 2, "fail"),
        ("loose.toml --study small.study --candidate 1", 0, "pass"),
    ],
)
def test_a_release_is_checked_ahead_and_nothing_is_written(
    run: Run, policies: Path, words: str, code: int, verdict: str
) -> None:
    before = names(policies)
    told = run(f"policy good.csv --codebook book.toml {words} --json")
    shown = run(f"policy good.csv --codebook book.toml {words}")
    assert (told.exit_code, shown.exit_code) == (code, code), told.output + shown.output
    assert json.loads(told.stdout)["verdict"] == verdict
    assert f"{verdict} (" in shown.stdout
    assert names(policies) == before
    assert SECRET not in told.output + shown.output


def test_the_frontier_of_a_study_is_checked_candidate_by_candidate(run: Run, policies: Path) -> None:
    words = "policy good.csv --codebook book.toml --study small.study"
    rates = {row["id"]: row["rate"] for row in json.loads(run("frontier small.study --json").stdout)["frontier"]}
    limit = (min(rates.values()) + max(rates.values())) / 2  # the seeds are secret, and so the frontier is another one
    (policies / "some.toml").write_text(LOOSE.replace("0.5", str(limit)))
    told = json.loads(run(f"{words} some.toml --json").stdout)["frontier"]
    assert {each["candidate"] for each in told} == set(rates)
    for each in told:
        failing = [line["rule"] for line in lines_of(each) if line["verdict"] == "fail"]
        assert failing == ([] if rates[each["candidate"]] <= limit else ["[swap] rate"])
    shown = run(f"{words} some.toml")
    assert shown.exit_code == 0 and "judged by the policy" in shown.stdout
    none = run(f"{words} strict.toml")
    assert none.exit_code == 2
    assert none.stderr == "quadrille: no candidate on the frontier keeps the policy 'Plover'.\n"
    assert run(f"{words} strict.toml --swap Sex").stderr.startswith("quadrille: Give --study or --swap, not both")


@pytest.mark.parametrize("command", [f"{RELEASE} --policy", "policy good.csv --swap Sex --pairs 5"])
@pytest.mark.parametrize("name", ["wrong.toml", "nowhere.toml", "filled", "good.csv", "/dev/zero"])
def test_a_bad_policy_is_one_line_on_stderr(run: Run, policies: Path, command: str, name: str) -> None:
    before = names(policies)
    done = run(f"{command} {name}")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and name in done.stderr
    assert SECRET not in done.stderr
    assert names(policies) == before
