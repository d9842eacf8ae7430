"""Policies: stricter limits never help, a release that fails writes nothing, public files know nothing of a policy."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import warnings
from collections.abc import Generator
from dataclasses import replace
from math import comb
from pathlib import Path

import pytest
import tomli_w
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.errors import InputError
from quadrille.release.judge import PolicyError, pattern_of, too_many
from quadrille.release.policy import Limit

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from release_case import make_data, tree

SEVERITY = {"pass": 0, "review": 1, "fail": 2}
DATA = make_data()
MEASURES = {
    "hellinger": 1.0,
    "total_variation(Region*Band)": 1.0,
    "cramers_v_change(Region*Band)": 1.0,
    "entropy_change": 10.0,
    "small_cells(n=5)": 1.0,
    "exposed(n=5)": 1.0,
    "confidence(n=3)": 1.0,
}
NAME = "PLOVER-7731"


@st.composite
def limits(draw: st.DrawFn, high: float, *, margins: bool = True) -> dict[str, float]:
    least, most = sorted((draw(st.floats(0, high / 50)), draw(st.floats(0, high))))
    given = {"least": least, "most": most}
    kept = {name: given[name] for name in draw(st.sampled_from([["most"], ["most"], ["least"], ["least", "most"]]))}
    return {**kept, "margin": draw(st.floats(0, 0.5))} if margins and draw(st.booleans()) else kept


@st.composite
def policies(draw: st.DrawFn) -> dict[str, dict[str, object]]:
    chosen = draw(st.lists(st.sampled_from(sorted(MEASURES)), min_size=1, max_size=3, unique=True))
    swap: dict[str, object] = {"rate": draw(limits(1.0, margins=False))}
    if draw(st.booleans()):
        swap["methods"] = draw(
            st.sampled_from([["RandomSwap"], ["PermutationSwap"], ["RandomSwap", "PermutationSwap"]])
        )
    if draw(st.booleans()):
        swap["never"] = draw(st.lists(st.sampled_from(["Region", "Income", "Elsewhere"]), min_size=1, max_size=1))
    if draw(st.booleans()):
        swap["changed"] = draw(limits(1.0, margins=False))
    release: dict[str, object] = {"shuffle": draw(st.booleans()), "publish_f": draw(st.booleans())}
    return {
        "policy": {"name": NAME, "margin": draw(st.floats(0, 0.9))},
        "swap": swap,
        "release": release,
        "measures": {address: draw(limits(MEASURES[address])) for address in chosen},
    }


@st.composite
def recipes(draw: st.DrawFn) -> qd.Recipe:
    swap = draw(st.sampled_from([["Region"], ["Band"], ["Region", "Band"]]))
    kind = draw(st.sampled_from([qd.RandomSwap, qd.PermutationSwap]))
    return kind(swap, rate=draw(st.floats(0.01, 0.4)), seed=draw(st.integers(0, 99)))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """Keep policy files: a policy is compared with its file when it judges. The machine names none here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("QUADRILLE_POLICY", raising=False)
        yield tmp_path_factory.mktemp("policies")


def read(home: Path, document: dict[str, dict[str, object]]) -> qd.Policy:
    path = home / "policy.toml"
    path.write_text(tomli_w.dumps(document))
    return qd.Policy.read(path)


def stricter(limit: Limit, by: tuple[float, float, float]) -> Limit:
    """Move the limits inwards, and widen the margin."""
    up, down, wider = by
    least = None if limit.least is None else limit.least + up
    most = None if limit.most is None else limit.most - down
    return Limit(least, most, limit.margin + wider)


SHARES = st.tuples(*[st.floats(0, 2)] * 3)


@given(st.floats(-5, 5), st.none() | st.floats(-2, 2), st.none() | st.floats(-2, 2), st.floats(0, 0.9), SHARES)
def test_a_stricter_limit_never_softens_a_verdict(
    value: float, least: float | None, most: float | None, margin: float, by: tuple[float, float, float]
) -> None:
    assume(least is not None or most is not None)
    limit = Limit(least, most, margin)
    assert SEVERITY[stricter(limit, by).judge(value)] >= SEVERITY[limit.judge(value)]


@examples(16)
@given(policies(), recipes(), SHARES)
def test_stricter_limits_never_turn_fail_into_pass(
    home: Path, document: dict[str, dict[str, object]], recipe: qd.Recipe, by: tuple[float, float, float]
) -> None:
    policy = read(home, document)
    before = qd.check_policy(DATA, recipe, policy)
    measures = tuple(replace(each, limit=stricter(each.limit, by)) for each in policy.measures)
    tighter = replace(
        policy,
        path=None,
        sha256=None,
        measures=measures,
        rate=stricter(policy.rate, by) if policy.rate else None,
        changed=stricter(policy.changed, by) if policy.changed else None,
        never_swapped=(*policy.never_swapped, "Smoker"),
        secret_seeds=True,
        shuffled=True,
        publish_f=False,
    )
    after = qd.check_policy(DATA, recipe, tighter)
    verdicts = {line.rule: line.verdict for line in after.lines}
    assert all(verdicts[line.rule] == "fail" for line in before.having("fail"))
    assert all(SEVERITY[verdicts[line.rule]] >= SEVERITY[line.verdict] for line in before.lines)


@examples(12)
@given(policies(), policies(), recipes())
def test_two_policies_say_what_each_says_alone_and_the_worse_counts(
    home: Path, first: dict[str, dict[str, object]], second: dict[str, dict[str, object]], recipe: qd.Recipe
) -> None:
    given, machine = home / "given.toml", home / "machine.toml"
    given.write_text(tomli_w.dumps(first))
    machine.write_text("# of the machine\n" + tomli_w.dumps(second))
    alone = [qd.check_policy(DATA, recipe, path) for path in (given, machine)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUADRILLE_POLICY", str(machine))
        both = qd.check_policy(DATA, recipe, given)
    assert both.lines == alone[0].lines + alone[1].lines
    assert both.outcome == max((each.outcome for each in alone), key=SEVERITY.__getitem__)


@examples(16)
@given(policies(), recipes())
def test_a_policy_is_judged_as_its_file_has_it_or_not_at_all(
    home: Path, document: dict[str, dict[str, object]], recipe: qd.Recipe
) -> None:
    policy = read(home, document)
    assert qd.check_policy(DATA, recipe, policy) == qd.check_policy(DATA, recipe, home / "policy.toml")
    changes = {"measures": (), "methods": (), "rate": None, "changed": None, "never_swapped": (), "shuffled": False}
    for name, value in changes.items():
        if getattr(policy, name) != value:
            with pytest.raises(InputError, match=f"Different: {name}"):
                qd.check_policy(DATA, recipe, replace(policy, **{name: value}))


def in_any_order(folder: Path) -> dict[str, list[bytes]]:
    """The lines of the files of a folder; of the data in no order, as every release has its own."""
    lines = {name: (contents or b"").splitlines() for name, contents in tree(folder).items()}
    return lines | {"data.csv": sorted(lines["data.csv"])}


@examples(16)
@given(policies(), recipes(), st.booleans())
def test_a_release_that_fails_writes_nothing_and_any_other_is_that_without_a_policy(
    home: Path, document: dict[str, dict[str, object]], recipe: qd.Recipe, shuffle: bool
) -> None:
    policy = read(home, document)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        folder = Path(name)
        verdict = qd.check_policy(DATA, recipe, policy, shuffle=shuffle)
        if verdict.outcome == "fail":
            with pytest.raises(PolicyError) as caught:
                qd.release(DATA, recipe, folder / "out", policy=policy, shuffle=shuffle, insecure=True)
            assert caught.value.verdict == verdict
            assert tree(folder) == {}
            return
        made = qd.release(DATA, recipe, folder / "out", policy=policy, shuffle=shuffle, insecure=True)
        qd.release(DATA, recipe, folder / "plain", shuffle=shuffle, insecure=True)
        assert made.verdict == verdict
        assert in_any_order(folder / "out" / "public") == in_any_order(folder / "plain" / "public")
        public = b"".join(contents or b"" for contents in tree(folder / "out" / "public").values())
        assert policy.sha256 and NAME.encode() not in public and policy.sha256.encode() not in public
        assert policy.sha256 in (folder / "out" / "confidential" / "dossier.md").read_text()


@given(policies())
def test_what_is_written_as_toml_is_read_as_it_was_written(home: Path, document: dict[str, dict[str, object]]) -> None:
    policy = read(home, document)
    assert policy.name == NAME
    assert policy.addresses == tuple(document["measures"])
    for required in policy.measures:
        written = document["measures"][required.address]
        assert isinstance(written, dict)
        assert (required.limit.least, required.limit.most) == (written.get("least"), written.get("most"))
        assert required.limit.margin == written.get("margin", document["policy"]["margin"])


NAMES = [
    *("policy", "cells", "swap", "release", "measures", "name", "margin", "smallest", "tables", "exposed"),
    *("methods", "rate", "changed", "never", "seeds", "shuffle", "publish_f", "formats", "warnings", "hellinger"),
    *(
        "least",
        "most",
        "small_cells(n=0)",
        "ased_reg(a ~ b)",
        "c_ard(2-way)",
        "hellinger(A*B, where=A=1)",
        "entropy_change",
    ),
]
VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["secret", "csv", "RandomSwap"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner),
    max_leaves=8,
)


@examples(36)
@given(
    st.dictionaries(
        st.sampled_from(NAMES[:5]), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4) | VALUES, max_size=4
    )
)
def test_any_document_is_a_policy_or_an_error_with_its_place(document: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "policy.toml"
        path.write_text(tomli_w.dumps(document), encoding="utf-8")
        try:
            policy = qd.Policy.read(path)
        except InputError as error:
            assert str(error).startswith(str(path))
        else:
            assert policy.sha256 and policy.name


@pytest.mark.parametrize("text", ["most = 1" + "0" * 400, "most = -1" + "0" * 400, "most = 1e999", "most = -inf"])
def test_numbers_beyond_any_range_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    for address in ("hellinger", "ased_reg", "entropy_change"):
        path.write_text(f"[measures]\n{address} = {{{text}}}")
        with pytest.raises(InputError, match="most: must be a number"):
            qd.Policy.read(path)


@examples(50)
@given(st.binary(min_size=32, max_size=32))
def test_a_seed_that_hashing_makes_has_no_pattern(text: bytes) -> None:
    assert pattern_of(hashlib.sha256(text).hexdigest()) == ""


@given(st.integers(1, 32), st.integers(0, 15), st.data())
def test_a_seed_whose_digits_go_on_alike_has_a_pattern(lag: int, step: int, data: st.DataObject) -> None:
    start = data.draw(st.lists(st.integers(0, 15), min_size=lag, max_size=lag))
    digits = [(start[i % lag] + step * (i // lag)) % 16 for i in range(64)]
    assert pattern_of("".join(f"{digit:x}" for digit in digits))


@given(st.integers(0, 255), st.integers(0, 255))
def test_a_seed_that_counts_has_a_pattern(start: int, step: int) -> None:
    assert pattern_of(bytes((start + step * i) % 256 for i in range(32)).hex())


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=32, max_size=32))
def test_a_seed_that_is_a_text_has_a_pattern(text: str) -> None:
    assert pattern_of(text.encode().hex())


@given(st.text("0123456789", min_size=64, max_size=64), st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_seed_of_decimals_or_of_a_half_and_its_mirror_has_a_pattern(decimals: str, half: str) -> None:
    assert pattern_of(decimals) and pattern_of(half + half[::-1])


@given(st.integers(0, 49), st.integers(0, 15), st.integers(0, 15), st.binary(min_size=32, max_size=32))
def test_a_seed_with_a_run_of_fifteen_digits_has_a_pattern(at: int, first: int, step: int, rest: bytes) -> None:
    run = "".join(f"{(first + step * i) % 16:x}" for i in range(15))
    assert pattern_of(rest.hex()[:at] + run + rest.hex()[at + 15 :])


def test_a_secret_seed_is_refused_once_in_six_million_million() -> None:
    """The bounds that the docstring adds up, with the binomial distribution of scipy."""
    from scipy.stats import binom

    places = [*range(32, 64), 32]
    for n in set(places):
        at, below = (16 * binom.sf(too_many(n) - 1 - less, n, 1 / 16) for less in (0, 1))
        assert at <= 1e-15 < below
    fixed = (comb(16, 8) * 0.5**64, comb(256, 15) * (15 / 256) ** 32, 0.625**64, (95 / 256) ** 32, 50 * 16 * 16.0**-14)
    assert sum(fixed) + sum(16 * binom.sf(too_many(n) - 1, n, 1 / 16) for n in places) < 1.6e-13
