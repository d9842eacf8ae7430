"""Policies: stricter limits never help, a release that fails writes nothing, public files know nothing of a policy."""

from __future__ import annotations

import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import quadrille as qd
from quadrille.errors import InputError
from quadrille.io.policy import Limit
from quadrille.io.verdict import PolicyError

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
        swap["never"] = draw(st.lists(st.sampled_from(["Region", "Income", "Elsewhere"]), max_size=1))
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


def read(document: dict[str, dict[str, object]]) -> qd.Policy:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "policy.toml"
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


@settings(max_examples=25)
@given(policies(), recipes(), SHARES)
def test_stricter_limits_never_turn_fail_into_pass(
    document: dict[str, dict[str, object]], recipe: qd.Recipe, by: tuple[float, float, float]
) -> None:
    policy = read(document)
    before = qd.check_policy(DATA, recipe, policy)
    measures = tuple(replace(each, limit=stricter(each.limit, by)) for each in policy.measures)
    tighter = replace(
        policy,
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


@settings(max_examples=25)
@given(policies(), recipes(), st.booleans())
def test_a_release_that_fails_writes_nothing_and_any_other_is_that_without_a_policy(
    document: dict[str, dict[str, object]], recipe: qd.Recipe, shuffle: bool
) -> None:
    policy = read(document)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        folder = Path(name)
        verdict = qd.check_policy(DATA, recipe, policy, shuffle=shuffle)
        if verdict.outcome == "fail":
            with pytest.raises(PolicyError) as caught:
                qd.release(DATA, recipe, folder / "out", policy=policy, shuffle=shuffle)
            assert caught.value.verdict == verdict
            assert tree(folder) == {}
            return
        made = qd.release(DATA, recipe, folder / "out", policy=policy, shuffle=shuffle)
        qd.release(DATA, recipe, folder / "plain", shuffle=shuffle)
        assert made.verdict == verdict
        assert tree(folder / "out" / "public") == tree(folder / "plain" / "public")
        public = b"".join(contents or b"" for contents in tree(folder / "out" / "public").values())
        assert NAME.encode() not in public and policy.sha256.encode() not in public
        assert policy.sha256 in (folder / "out" / "confidential" / "dossier.md").read_text()


@given(policies())
def test_what_is_written_as_toml_is_read_as_it_was_written(document: dict[str, dict[str, object]]) -> None:
    policy = read(document)
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


@settings(max_examples=150)
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
