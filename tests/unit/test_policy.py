"""Policy files: what they may say, what is wrong with them and where, and what each rule does to a release."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from release_case import N, make_data, make_recipe, tree

import quadrille as qd
from quadrille.errors import InputError, ParameterError
from quadrille.release.judge import Line, PolicyError
from quadrille.release.policy import Limit, Policy, Required
from quadrille.release.release import ReleaseWarning

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy.toml"
Write = Callable[[str], Path]


@pytest.fixture(scope="module")
def data() -> qd.Data:
    return make_data()


@pytest.fixture(autouse=True)
def no_machine_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUADRILLE_POLICY", raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def new(text: str) -> Path:
        path = tmp_path / "policy.toml"
        path.write_text(text)
        return path

    return new


FAULTS = [
    ("", "policy.toml: the policy has no rule."),
    ("[policy]\nname = 'x'", "the policy has no rule"),
    ("[swap", "policy.toml, line 1: this is not valid TOML"),
    ("[swop]\nseeds = 'any'", "policy.toml: There is no section 'swop'. Did you mean: 'swap'?"),
    ("measures = 3", "policy.toml: measures must be a section, headed [measures]."),
    ("[policy]\nmargin = 1\n[swap]\nseeds = 'any'", "[policy] margin: must be a number in [0, 1). Got 1."),
    ("[swap]\nseed = 'secret'", "[swap]: There is no setting 'seed'. Did you mean: 'seeds'?"),
    ("[swap]\nseeds = true", '[swap] seeds: must be one of "any", "secret". Got true.'),
    ("[swap]\nmethods = ['RandomSwop']", "[swap] methods[1]: There is no method 'RandomSwop'. Did you mean: 'RandomS"),
    ("[swap]\nmethods = []", "[swap] methods: must be a list of methods, at least 1. Got []."),
    ("[swap]\nrate = 0.1", "[swap] rate: must be a table of limits, like {most = 0.05}. Got 0.1."),
    ("[swap]\nrate = {}", "[swap] rate: gives no limit. Add 'least' or 'most'."),
    ("[swap]\nrate = {most = 10}", "[swap] rate most: must be a number in [0, 1]. Got 10."),
    ("[swap]\nrate = {least = 0.2, most = 0.1}", "[swap] rate: 'least' is above 'most'. Got 0.2 and 0.1."),
    ("[swap]\nrate = {margin = 0.2}", "[swap] rate: There is no setting 'margin'."),
    ("[swap]\nnever = 'Sex'", '[swap] never: must be a list of column names, at least 1. Got "Sex".'),
    ("[swap]\nnever = []", "[swap] never: must be a list of column names, at least 1. Got []."),
    ("[release]\nnever = []", "[release] never: must be a list of column names, at least 1. Got []."),
    ("[cells]\nsmallest = 3\ntables = []\nexposed = {}", "[cells] tables: must be a list of tables"),
    ("[cells]\nsmallest = 3\ntables = ['A', 'A*']\nexposed = {}", "[cells] tables[2]: a variable has no name."),
    ("[cells]\nsmallest = 3\ntables = ['A*A']\nexposed = {}", "[cells] tables[1]: a variable occurs twice."),
    ("[cells]\nsmallest = 3\ntables = ['A, n=1']\nexposed = {}", "[cells] tables[1]: an option is given twice."),
    ("[cells]\nsmallest = 3\ntables = ['n=1']\nexposed = {}", "[cells] tables[1]: an option is given twice."),
    ("[cells]\nsmallest = 3\ntables = ['A, where=B=1']\nexposed = {}", "[cells] tables[1]: must be variables and noth"),
    ("[cells]\nsmallest = 3\ntables = ['y ~ A']\nexposed = {}", "[cells] tables[1]: exposed takes variables, not a"),
    ("[measures]\n'hellinger(A*)' = {}", "[measures] hellinger(A*): a variable has no name."),
    ("[measures]\n'exposed(A, n=2, n=3)' = {}", "[measures] exposed(A, n=2, n=3): an option is given twice."),
    ("[measures]\n'ased_reg(A*B)' = {}", "[measures] ased_reg(A*B): ased_reg needs a model"),
    ("[swap]\nnever = ['Sex', 'Sex']", '[swap] never[2]: "Sex" is listed twice.'),
    ("[release]\nshuffle = 'yes'", '[release] shuffle: must be true or false. Got "yes".'),
    ("[release]\nformats = ['csv', 'xlsx']", "[release] formats[2]: There is no format 'xlsx'."),
    ("[release]\nwarnings = 'stop'", '[release] warnings: must be one of "review", "fail", "pass". Got "stop".'),
    ("[cells]\nexposed = {most = 0.1}", "[cells]: 'smallest' is missing, as in smallest = 3."),
    ("[cells]\nsmallest = 1\nexposed = {}", "[cells] smallest: must be a whole number from 2 to 1,000,000: cells of f"),
    ("[cells]\nsmallest = 3", "[cells]: gives no limit. Add one or more of small_cells, exposed, confidence"),
    ("[cells]\nsmallest = 3\nexposed = 0.1", "[cells] exposed: must be a table of limits"),
    ("[cells]\nsmallest = 3\nexposed = {most = 2}", "[cells] exposed most: must be a number in [0, 1]. Got 2."),
    ("[measures]\nhelinger = {most = 0.1}", "[measures] helinger: There is no measure 'helinger'. Did you mean: 'hell"),
    ("[measures]\nhellinger = {most = 5}", "[measures] hellinger most: must be a number in [0, 1]. Got 5."),
    ("[measures]\nhellinger = {most = nan}", "[measures] hellinger most: must be a number in [0, 1]. Got nan."),
    ("[measures]\nhellinger = {most = true}", "[measures] hellinger most: must be a number in [0, 1]. Got true."),
    (
        "[measures]\nhellinger = {max = 0.1}",
        "[measures] hellinger: There is no setting 'max'. Known: least, most, margin.",
    ),
    ("[measures]\n'exposed(m=2)' = {}", "[measures] exposed(m=2): There is no option 'm'"),
    ("[measures]\n'hellinger(A' = {}", "[measures] hellinger(A: The 'measures' parameter"),
    ("[measures]\ncramers_v_change = {most = -0.1}", "[measures] cramers_v_change most: must be a number"),
]


@pytest.mark.parametrize(("text", "told"), FAULTS)
def test_a_fault_is_told_with_its_place(write: Write, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        qd.Policy.read(write(text))
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(write(text)))


def test_a_policy_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read the policy .*No such file"):
        qd.Policy.read(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b"[policy]\nname = '\xe9'")
    with pytest.raises(InputError, match="not UTF-8 text"):
        qd.Policy.read(tmp_path / "latin.toml")


def test_the_example_is_a_policy_that_an_ordinary_release_keeps(cps8d: qd.Data) -> None:
    policy = qd.Policy.read(EXAMPLE)
    assert policy.sha256 == hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()
    verdict = qd.check_policy(cps8d, qd.RandomSwap(["MS"], rate=0.05), policy)
    assert {line.rule.split()[0] for line in verdict.lines} == {
        *("[swap]", "[release]", "[cells]", "[published]", "[measures]")
    }
    assert verdict.outcome == "pass", verdict.lines


def lines(data: qd.Data, path: Path | qd.Policy, recipe: qd.Recipe | None = None, **given: object) -> dict[str, Line]:
    """Judge, and return the lines by rule."""
    found = qd.check_policy(data, recipe or make_recipe(), path, **given)  # type: ignore[arg-type]
    return {line.rule: line for line in found.lines}


@pytest.mark.parametrize(
    ("text", "rule", "asked"),
    [
        ("[swap]\nmethods = ['PermutationSwap']", "[swap] methods", "PermutationSwap"),
        ("[swap]\nrate = {most = 0.1}", "[swap] rate", "at most 0.1 of all records"),
        ("[swap]\nrate = {least = 0.2}", "[swap] rate", "at least 0.2 of all records"),
        ("[swap]\nchanged = {least = 0.19, most = 0.2}", "[swap] changed", "0.19 to 0.2 of all records"),
        ("[swap]\nnever = ['Smoker', 'Band']", "[swap] never", "Smoker, Band not swapped"),
        ("[release]\nnever = ['Income']", "[release] never", "Income not released"),
        ("[cells]\nsmallest = 400\nexposed = {most = 0.5}", "[cells] exposed(n=400)", "at most 0.5"),
        (
            "[cells]\nsmallest = 200\ntables = ['Region*Smoker']\nsmall_cells = {most = 0.5}",
            "[cells] small_cells(Region*Smoker, n=200)",
            "at most 0.5",
        ),
        ("[measures]\nhellinger = {most = 0.0001}", "[measures] hellinger", "at most 0.0001"),
        ("[measures]\nhellinger = {least = 0.9}", "[measures] hellinger", "at least 0.9"),
        (
            "[measures]\n'hellinger(Region*Elsewhere)' = {}",
            "[measures] hellinger(Region*Elsewhere)",
            "a person decides",
        ),
        ("[release]\nwarnings = 'fail'", "[release] warnings", "none"),
    ],
)
def test_each_rule_can_fail_and_then_nothing_is_written(
    data: qd.Data, write: Write, tmp_path: Path, text: str, rule: str, asked: str
) -> None:
    path = write(text)
    recipe = qd.RandomSwap(["Region", "Band"], pairs=37, seed=1) if "warnings" in text else make_recipe()
    line = lines(data, path, recipe)[rule]
    assert (line.verdict, line.asked) == ("fail", asked)
    before = tree(tmp_path)
    with pytest.raises(PolicyError) as caught:
        qd.release(data, recipe, tmp_path / "new" / "release", policy=path, insecure=True)
    assert rule in str(caught.value) and "was not written" in str(caught.value)
    assert tree(tmp_path) == before
    assert pickle.loads(pickle.dumps(caught.value)).verdict == caught.value.verdict


def test_how_a_release_is_written_is_judged(data: qd.Data, write: Write) -> None:
    path = write("[release]\nshuffle = true\npublish_f = false\nformats = ['parquet']")
    recipe = qd.PermutationSwap(["Region"], rate=0.3)
    good = lines(data, path, recipe, format="parquet")
    bad = lines(data, path, recipe, shuffle=False, publish_f=True)
    for rule in ("[release] shuffle", "[release] publish_f", "[release] formats"):
        assert (good[rule].verdict, bad[rule].verdict) == ("pass", "fail")


@pytest.mark.parametrize(
    ("seed", "verdict"),
    [
        (None, "pass"),
        (7, "fail"),
        (10**70, "fail"),
        ("0" * 64, "fail"),
        ("ab" * 32, "fail"),
        ("0123456789abcdef" * 4, "fail"),
        (bytes(range(32)).hex(), "fail"),
    ],
)
def test_a_seed_must_be_a_secret(data: qd.Data, write: Write, seed: int | str | None, verdict: str) -> None:
    recipe = qd.RandomSwap(["Region"], pairs=20, seed=seed)
    line = lines(data, write("[swap]\nseeds = 'secret'"), recipe)["[swap] seeds"]
    assert line.verdict == verdict
    assert str(seed) not in line.found


def test_a_secret_seed_is_never_taken_for_a_text_that_is_not_random(data: qd.Data, write: Write) -> None:
    policy = qd.Policy.read(write("[swap]\nseeds = 'secret'"))
    drawn = [qd.check_policy(data, qd.RandomSwap(["Region"], pairs=2), policy).outcome for _ in range(50)]
    assert drawn == ["pass"] * 50


@pytest.mark.parametrize("n", [399, 400, 401, 403, 415])
@pytest.mark.parametrize("rate", [0.1, 0.05, 0.25])
def test_a_rate_at_the_limit_is_allowed_whatever_rounding_to_pairs_makes_of_it(
    write: Write, n: int, rate: float
) -> None:
    frame = pl.DataFrame({"A": [i % 3 for i in range(n)], "B": [i % 2 for i in range(n)]})
    data, recipe = qd.from_frame(frame), qd.RandomSwap(["A"], rate=rate)
    at = lines(data, write(f"[swap]\nrate = {{least = {rate}, most = {rate}}}"), recipe)["[swap] rate"]
    below = lines(data, write(f"[swap]\nrate = {{most = {rate - 2.01 / n}}}"), recipe)["[swap] rate"]
    above = lines(data, write(f"[swap]\nrate = {{least = {rate + 2.01 / n}}}"), recipe)["[swap] rate"]
    assert (at.verdict, below.verdict, above.verdict) == ("pass", "fail", "fail")


def test_names_that_differ_in_case_only_are_looked_at(data: qd.Data, write: Write) -> None:
    found = lines(data, write("[swap]\nnever = ['REGION']\n[release]\nnever = ['income ', 'Elsewhere']"))
    assert found["[swap] never"].verdict == "review"
    assert found["[swap] never"].why == "the file has 'Region', the policy names 'REGION'"
    assert found["[release] never"].verdict == "review"


def test_an_identifier_is_not_released_so_it_may_be_forbidden(data: qd.Data, write: Write) -> None:
    found = lines(data, write("[release]\nnever = ['Serial']"))["[release] never"]
    assert (found.verdict, found.found) == ("pass", "none of them released")


def test_undefined_or_without_a_limit_or_near_it_a_person_looks(data: qd.Data, write: Write) -> None:
    value = qd.score(data, (recipe := make_recipe()).plan(data), ["hellinger"])["hellinger"]
    assert value is not None
    text = f"""
        [measures]
        total_variation = {{}}
        "hellinger(Region*Band*Smoker)" = {{most = {value * 1.05}, margin = 0.1}}
        hellinger = {{most = {value * 1.05}, margin = 0.01}}
    """
    found = lines(data, write(text), recipe)
    assert found["[measures] total_variation"].why == "no limit is set"
    assert found["[measures] hellinger(Region*Band*Smoker)"].why == "within 10 % of the limit"
    assert found["[measures] hellinger"].verdict == "pass"
    undefined = lines(data, write("[measures]\nordinal_shift = {most = 0.3}"), qd.RandomSwap(["Region"], pairs=9))
    line = undefined["[measures] ordinal_shift"]
    assert (line.verdict, line.found, line.why) == ("review", "undefined", "no ordinal variable was moved")


def test_a_mean_over_tables_of_which_some_are_undefined_is_looked_at(write: Write) -> None:
    frame = pl.DataFrame({"A": [0, 1, 2] * 30, "B": [0, 1] * 45, "D": [0, 1, 1] * 30})  # A and B: no association
    path, recipe = write("[measures]\nv_ard = {least = 0}"), qd.RandomSwap(["A"], pairs=9, seed=1)
    found = lines(qd.from_frame(frame), path, recipe)["[measures] v_ard"]
    assert (found.verdict, found.why) == ("review", "1 of 3 tables or models behind it are undefined")


def test_signed_measures_are_limited_in_size(data: qd.Data, write: Write) -> None:
    address = "cramers_v_change(Region*Band)"
    for seed in range(40):
        recipe = qd.RandomSwap(["Region"], pairs=60, seed=seed)
        value = qd.score(data, recipe.plan(data), [address])[address]
        if value is not None and value < -0.001:
            break
    else:
        raise AssertionError("no draw lowers the association")
    tight = lines(data, write(f"[measures]\n'{address}' = {{most = {-value / 2}}}"), recipe)
    loose = lines(data, write(f"[measures]\n'{address}' = {{most = {-value * 2}}}"), recipe)
    rule = f"[measures] {address}"
    assert (tight[rule].verdict, loose[rule].verdict) == ("fail", "pass")
    assert tight[rule].asked.endswith("in size")


def test_limits_belong_to_what_is_allowed() -> None:
    limit = Limit(least=0.1, most=0.2)
    assert [limit.judge(value) for value in (0.1, 0.2, 0.15)] == ["pass"] * 3
    assert [limit.judge(value) for value in (0.0999, 0.2001, float("inf"))] == ["fail"] * 3


def test_a_person_looks_at_what_is_just_inside_a_limit_on_either_side() -> None:
    at_least, at_most, below_0 = Limit(least=0.5, margin=0.1), Limit(most=0.5, margin=0.1), Limit(-0.5, 0.5, 0.1)
    assert [at_least.judge(value) for value in (0.49, 0.5, 0.54, 0.56)] == ["fail", "review", "review", "pass"]
    assert [at_most.judge(value) for value in (0.44, 0.46, 0.5, 0.51)] == ["pass", "review", "review", "fail"]
    assert [below_0.judge(value) for value in (-0.51, -0.46, -0.44, 0.46)] == ["fail", "review", "pass", "review"]


def test_changed_records_are_those_with_another_value_and_not_all_that_take_part(data: qd.Data, write: Write) -> None:
    recipe = qd.RandomSwap(["Smoker"], pairs=100, differ="none", seed=1)
    account = recipe.plan(data).report(data)
    assert 0 < account.changed < account.records == 200
    path = write(f"[swap]\nrate = {{least = 0.5}}\nchanged = {{most = {(account.changed + 1) / N}}}")
    found = lines(data, path, recipe)
    assert (found["[swap] rate"].verdict, found["[swap] changed"].verdict) == ("pass", "pass")


def test_the_verdict_is_kept_in_confidence_with_the_hash_of_the_policy(
    data: qd.Data, write: Write, tmp_path: Path
) -> None:
    path = write("[policy]\nname = 'Plover'\n[measures]\nhellinger = {most = 0.987654}\ntotal_variation = {}")
    with pytest.warns(ReleaseWarning, match="wants a person to look at: .measures. total_variation"):
        made = qd.release(data, make_recipe(), tmp_path / "release", policy=path, measures=["entropy_change"])
    assert made.verdict is not None and made.verdict.outcome == "review"
    assert {"entropy_change", "hellinger", "total_variation"} <= set(made.scores)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    kept = json.loads((made.confidential / "policy.json").read_text())
    assert kept == made.as_dict()["policy"]
    (judged,) = kept["policies"]
    assert (kept["verdict"], judged["verdict"], judged["sha256"]) == ("review", "review", digest)
    assert (judged["policy"], judged["file"], judged["machine"]) == ("Plover", "policy.toml", False)
    dossier = (made.confidential / "dossier.md").read_text()
    assert "## Policy" in dossier and digest in dossier and "0.987654" in dossier
    assert (made.confidential / "policy.json").stat().st_mode & 0o777 == 0o600
    for file in made.public.iterdir():
        contents = file.read_bytes()
        assert not [word for word in (b"Plover", b"0.987654", digest.encode(), b"policy") if word in contents]


def test_without_a_policy_nothing_of_one_is_written(data: qd.Data, tmp_path: Path) -> None:
    made = qd.release(data, make_recipe(), tmp_path / "release")
    assert made.verdict is None and made.as_dict()["policy"] is None
    assert not (made.confidential / "policy.json").exists()
    assert "Policy" not in (made.confidential / "dossier.md").read_text()


def test_a_release_that_fails_leaves_an_earlier_one_as_it_was(data: qd.Data, write: Write, tmp_path: Path) -> None:
    path = write(f"[swap]\nrate = {{most = {10 / N}}}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qd.release(data, qd.RandomSwap(["Band"], pairs=5), tmp_path / "release", policy=path)
    before = tree(tmp_path)
    with pytest.raises(PolicyError):
        qd.release(data, qd.RandomSwap(["Band"], pairs=6), tmp_path / "release", policy=path, overwrite=True)
    assert tree(tmp_path) == before


def test_other_rules_cannot_pass_for_those_of_a_file(data: qd.Data, write: Write, tmp_path: Path) -> None:
    path = write("[swap]\nrate = {most = 0.01}\nnever = ['Region']\n[measures]\nhellinger = {most = 0.0001}")
    policy = qd.Policy.read(path)
    false = replace(policy, never_swapped=(), measures=(), rate=None)
    before = tree(tmp_path)
    for call in (lambda: qd.release(data, make_recipe(), tmp_path / "out", policy=false), lambda: lines(data, false)):
        with pytest.raises(InputError, match=r"not what this file says. Different: measures, rate, never_swapped\."):
            call()
    for spoilt in (replace(policy, name="Other"), replace(policy, sha256="0" * 64), replace(policy, path=EXAMPLE)):
        with pytest.raises(InputError):
            lines(data, spoilt)
    with pytest.raises(PolicyError):
        qd.release(data, make_recipe(), tmp_path / "out", policy=policy)
    assert tree(tmp_path) == before


def test_a_policy_file_that_changes_after_it_was_read_is_told(data: qd.Data, write: Write) -> None:
    policy = qd.Policy.read(path := write("[swap]\nrate = {most = 0.01}"))
    write("[swap]\nrate = {most = 0.9}")
    with pytest.raises(InputError, match="the policy file is not the one that was read"):
        lines(data, policy)
    path.unlink()
    with pytest.raises(InputError, match="Cannot read the policy"):
        lines(data, policy)


def test_a_policy_is_found_again_from_another_folder(
    data: qd.Data, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("[swap]\nrate = {most = 0.9}")
    monkeypatch.chdir(tmp_path)
    policy = qd.Policy.read("policy.toml")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert lines(data, policy)["[swap] rate"].verdict == "pass"


def test_rules_made_in_python_are_recorded_as_such(data: qd.Data, tmp_path: Path) -> None:
    rules = Policy(name="Plover", rate=Limit(most=0.9), measures=(Required("measures", "hellinger", Limit(most=1)),))
    made = qd.release(data, make_recipe(), tmp_path / "release", policy=rules)
    (judged,) = json.loads((made.confidential / "policy.json").read_text())["policies"]
    assert (judged["verdict"], judged["file"], judged["sha256"]) == ("pass", None, None)
    dossier = (made.confidential / "dossier.md").read_text()
    assert "## Policy: Plover\n" in dossier and "- policy file: not from a file: made in Python\n" in dossier
    assert [line.verdict for line in made.verdict.lines] == ["pass"] * 3 if made.verdict else False


@pytest.mark.parametrize(
    "given",
    [
        {"sha256": "0" * 64},
        {"path": Path("p.toml")},
        {"never_swapped": "AnnSal"},
        {"never_released": ["Name"]},
        {"measures": ("hellinger",)},
        {"rate": 0.1},
        {"warnings": "none"},
    ],
)
def test_rules_made_in_python_have_the_form_of_rules(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"The '\w+' parameter of Policy must be"):
        Policy(**given)


@pytest.mark.parametrize("given", [3, b"policy.toml", ["policy.toml"], {}])
def test_what_is_no_policy_is_told(data: qd.Data, tmp_path: Path, given: object) -> None:
    with pytest.raises(ParameterError, match="The 'policy' parameter of release must be a policy, or the path of its"):
        qd.release(data, make_recipe(), tmp_path / "out", policy=cast("Any", given))
    with pytest.raises(ParameterError, match="The 'policy' parameter of check_policy must be"):
        qd.check_policy(data, make_recipe(), cast("Any", given))


def test_the_policy_of_the_machine_is_checked_beside_any_other(
    data: qd.Data, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text("[policy]\nname = 'Machine'\n[swap]\nrate = {most = 0.01}")
    monkeypatch.setenv("QUADRILLE_POLICY", str(machine))
    loose = write("[policy]\nname = 'Loose'\n[swap]\nrate = {most = 1}")
    for given in (None, loose, qd.Policy.read(loose), Policy(name="Mine")):
        with pytest.raises(PolicyError, match="The release fails the policy 'Machine'") as caught:
            qd.release(data, make_recipe(), tmp_path / "out", policy=given)
        assert qd.check_policy(data, make_recipe(), given).outcome == "fail"
        assert [each.machine for each in caught.value.verdict.policies] == [False, True][given is None :]
    both = write("[policy]\nname = 'Strict'\n[swap]\nrate = {most = 0.02}")
    with pytest.raises(PolicyError, match=r"fails the policy 'Strict': .* fails the policy 'Machine': .* not written"):
        qd.release(data, make_recipe(), tmp_path / "out", policy=both)
    assert not (tmp_path / "out").exists()


def test_both_policies_are_recorded_with_their_hashes(
    data: qd.Data, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, loose = tmp_path / "machine.toml", write("[swap]\nrate = {most = 1}\n[measures]\ntotal_variation = {}")
    machine.write_text("[measures]\nhellinger = {most = 1}")
    monkeypatch.setenv("QUADRILLE_POLICY", str(machine))
    with pytest.warns(ReleaseWarning, match="The policy 'policy.toml' wants a person to look at"):
        made = qd.release(data, make_recipe(), tmp_path / "release", policy=loose)
    dossier = (made.confidential / "dossier.md").read_text()
    for path, named in ((loose, ""), (machine, ", named by QUADRILLE_POLICY")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert f"- policy file: {path.name}, SHA-256 {digest}{named}\n" in dossier
    kept = json.loads((made.confidential / "policy.json").read_text())
    assert [(each["file"], each["machine"], each["verdict"]) for each in kept["policies"]] == [
        ("policy.toml", False, "review"),
        ("machine.toml", True, "pass"),
    ]
    assert kept["verdict"] == "review"
    assert {"hellinger", "total_variation"} <= set(made.scores)


def test_the_policy_of_the_machine_counts_once_when_it_is_also_given(
    data: qd.Data, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("[swap]\nrate = {most = 1}")
    monkeypatch.setenv("QUADRILLE_POLICY", str(path))
    for given in (None, path, qd.Policy.read(path)):
        (judged,) = qd.check_policy(data, make_recipe(), given).policies
        assert judged.machine


def test_an_empty_variable_names_no_policy_and_a_wrong_one_stops_every_release(
    data: qd.Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for empty in ("", "  "):
        monkeypatch.setenv("QUADRILLE_POLICY", empty)
        assert qd.release(data, make_recipe(), tmp_path / f"out{len(empty)}").verdict is None
        with pytest.raises(ParameterError, match="Name a policy"):
            qd.check_policy(data, make_recipe())
    monkeypatch.setenv("QUADRILLE_POLICY", str(tmp_path / "nowhere.toml"))
    with pytest.raises(InputError, match=r"The variable QUADRILLE_POLICY names .* cannot be used\. Cannot read"):
        qd.release(data, make_recipe(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_byte_order_mark_and_the_line_ends_of_windows_are_read(data: qd.Data, write: Write) -> None:
    path = write("")
    path.write_bytes(b"\xef\xbb\xbf[swap]\r\nrate = {most = 0.9}\r\n")
    assert qd.Policy.read(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert lines(data, path)["[swap] rate"].verdict == "pass"


def test_what_is_too_large_or_no_file_is_refused(write: Write, tmp_path: Path) -> None:
    path = write("[swap]\nrate = {most = 0.9}\n#" + "x" * 1_000_000)
    with pytest.raises(InputError, match="it has more than 1,000,000 bytes"):
        qd.Policy.read(path)
    path = write("[swap]\nrate = {most = 0.9}\n#" + "x" * 900_000)
    assert qd.Policy.read(path).rate == Limit(most=0.9)
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", tmp_path / "pipe"):
        with pytest.raises(InputError, match="a device or a pipe, not a file"):
            qd.Policy.read(name)


def test_confidence_passes_where_no_small_cell_is_left(data: qd.Data, write: Write) -> None:
    text = "[cells]\nsmallest = {}\nconfidence = {{most = 0.5}}"
    line = lines(data, write(text.format(3)))["[cells] confidence(n=3)"]
    assert (line.verdict, line.found) == ("pass", "no small cell")
    assert line.why == "no cell of the release has 1 to 2 records: there is nothing to identify"
    rule = "[measures] confidence(Region*Band)"
    for limit in ("{}", "{least = 0.1}", "{least = 0.1, most = 0.5}"):
        assert lines(data, write(f"[measures]\n'confidence(Region*Band)' = {limit}"))[rule].verdict == "review"
    assert lines(data, write(text.format(400)))["[cells] confidence(n=400)"].verdict == "fail"


def test_confidence_of_no_record_at_all_is_looked_at(write: Write) -> None:
    frame = pl.DataFrame({"A": [0, 1] * 40, "B": [0, 1, 2, 2] * 20, "C": ["x", "y"] * 40})
    address = "confidence(A*B, where=A=0 & C=y)"
    found = lines(
        qd.from_frame(frame), write(f"[measures]\n'{address}' = {{most = 0.5}}"), qd.RandomSwap(["B"], pairs=9)
    )
    assert (found[f"[measures] {address}"].verdict, found[f"[measures] {address}"].found) == ("review", "undefined")


def test_confidence_over_pairs_may_lack_those_without_small_cells(write: Write) -> None:
    frame = pl.DataFrame({"A": [0, 1] * 40, "B": [0, 1, 1, 0] * 20, "C": [0] * 78 + [1, 2]})
    data, recipe = qd.from_frame(frame), qd.RandomSwap(["A"], pairs=9)
    found = lines(data, write("[measures]\n'confidence(2-way)' = {most = 1}"), recipe)["[measures] confidence(2-way)"]
    assert (found.verdict, found.why) == ("pass", "")
