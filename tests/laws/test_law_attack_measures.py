"""Law 4 and the theorems for what an intruder finds: links by keys, and values inferred from keys."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from effort import tries
from oracles import close
from quadrille.data import Data
from quadrille.delta import Delta
from quadrille.plan import Move
from quadrille.score.evaluator import Evaluator
from quadrille.study.workers import FusedScorer
from quadrille.summary import Arrival
from strategies import Case, cases, coded, column, file_of, files

ATTACK = ("linked", "linked_small", "attributed", "attributed_unique")
Record = tuple[object, ...]


def links(old: list[Record], new: list[Record], n: int) -> tuple[float | None, float | None]:
    """`linked` and `linked_small`: each person's chance that a row with the same keys, at random, is the own row."""
    f, g = Counter(old), Counter(new)
    chance = [1 / g[was] if was == now else 0.0 for was, now in zip(old, new, strict=True)]
    small = [each for each, was in zip(chance, old, strict=True) if f[was] < n]
    return mean(chance), mean(small)


def inferences(old: list[Record], new: list[Record], target: int) -> tuple[list[float], list[float]]:
    """For one target: of every person whether the own value is claimed; of the unique ones the share that has it."""
    values: dict[Record, Counter[object]] = defaultdict(Counter)
    for record in new:
        values[without(record, target)][record[target]] += 1
    f = Counter(without(record, target) for record in old)
    claimed, shares = [], []
    for record in old:
        shown = values[without(record, target)]
        claimed.append(float(set(shown) == {record[target]}))
        if f[without(record, target)] == 1:
            shares.append(shown[record[target]] / sum(shown.values()) if shown else 0.0)
    return claimed, shares


def without(record: Record, place: int) -> Record:
    return record[:place] + record[place + 1 :]


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def truth(
    data: Data, after: Data, names: list[str], n: int, target: str | None, keep: np.ndarray
) -> dict[str, float | None]:
    """The four measures by their definitions, over the records kept; `names` are known, the target comes last."""
    rows = np.flatnonzero(keep).tolist()
    variables = names if target is None else [*names, target]
    both = [oracles.records(file, variables) for file in (data, after)]
    old, new = ([records[i] for i in rows] for records in both)
    targets = range(len(variables)) if target is None else [len(names)]
    found = [inferences(old, new, place) for place in targets]
    linked = links([r[: len(names)] for r in old], [r[: len(names)] for r in new], n)
    return {
        "linked": linked[0],
        "linked_small": linked[1],
        "attributed": mean([each for claimed, _ in found for each in claimed]),
        "attributed_unique": mean([each for _, shares in found for each in shares]),
    }


@given(cases(least=2), st.data())
def test_the_attacks_follow_their_definitions_for_any_keys_target_and_mask(case: Case, draw: st.DataObject) -> None:
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=2, unique=True))
    target = names.pop() if draw.draw(st.booleans()) else None
    n = draw.draw(st.integers(2, 6))
    some = draw.draw(st.lists(st.booleans(), min_size=case.data.n, max_size=case.data.n))
    keep = np.array(some) | draw.draw(st.booleans())
    after = case.plan.apply(case.data)
    swapped = np.isin(np.arange(case.data.n), case.plan.rows)
    known, inferred = "*".join(names), "" if target is None else f", target=`{target}`"
    addresses = {
        "linked": f"linked({known})",
        "linked_small": f"linked_small({known}, n={n})",
        "attributed": f"attributed({known}{inferred})",
        "attributed_unique": f"attributed_unique({known}{inferred})",
    }
    plan = qd.score(case.data, case.plan, list(addresses.values()), where=keep)
    two_files = qd.score(case.data, after, list(addresses.values()), swapped=swapped, where=keep)
    expected = truth(case.data, after, names, n, target, keep)
    for measure, address in addresses.items():
        assert close(plan[address], expected[measure]), address
        assert close(two_files[address], expected[measure]), address
        assert plan[address] is not None or plan.note(address)
        assert dict(plan.results[address][1].detail) == pytest.approx(dict(two_files.results[address][1].detail))


@given(cases(least=2, largest=30), st.sampled_from(ATTACK))
def test_the_attacks_pass_the_battery_for_measures(case: Case, measure: str) -> None:
    assert (
        qd.testing.check_measure(measure, case.data, case.plan)[measure]
        == qd.score(case.data, case.plan, [measure])[measure]
    )


@given(files(least=2))
def test_where_nothing_changed_links_are_the_cells_and_every_claim_is_right(data: Data) -> None:
    scores = qd.score(data, qd.Plan([], data=data), list(ATTACK))
    cells = len(oracles.counts(data, data.keys))
    assert scores["linked"] == cells / data.n
    assert scores["attributed_unique"] in (None, 1.0)
    for measure in ("linked", "linked_small", "attributed"):
        detail = scores.results[measure][1].detail
        assert scores[measure] is None or scores[measure] == detail["before"]
    detail = scores.results["attributed"][1].detail
    assert detail["claims"] == detail["right"]


@st.composite
def support_kept(draw: st.DrawFn) -> tuple[Data, qd.Plan]:
    """A file in which every record stands twice, and a plan that moves one record of some of the cells at most.

    The record that stays keeps its cell occupied; the cells that are reached must be occupied already.
    """
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, sizes = draw(st.integers(4, 40)), draw(st.lists(st.integers(2, 4), min_size=2, max_size=4))
    codes = np.array([random.integers(0, size, n) for size in sizes])
    codes = np.concatenate((codes, codes), axis=1)
    data = Data([column(f"V{i}", row, size) for i, (row, size) in enumerate(zip(codes, sizes, strict=True))])
    moved = draw(st.integers(1, len(sizes) - 1))
    order = random.permutation(n)
    occupied, pairs = set(zip(*codes.tolist(), strict=True)), []
    for a, b in zip(order[::2].tolist(), order[1::2].tolist(), strict=False):
        first = (*codes[:moved, b].tolist(), *codes[moved:, a].tolist())
        second = (*codes[:moved, a].tolist(), *codes[moved:, b].tolist())
        if {first, second} <= occupied:
            pairs.append((a, b))
    assume(pairs)
    names = [f"V{i}" for i in range(moved)]
    return data, qd.Plan.of_pairs(data, names, np.array(pairs))


@given(support_kept(), st.data())
def test_a_plan_that_makes_and_empties_no_cell_leaves_every_certain_inference_as_it_was(
    case: tuple[Data, qd.Plan], draw: st.DataObject
) -> None:
    data, plan = case
    assert set(oracles.counts(data, data.keys)) == set(oracles.counts(plan.apply(data), data.keys))
    names = draw.draw(st.permutations(data.keys))
    size = draw.draw(st.integers(1, len(names) - 1))
    addresses = ["attributed", f"attributed({'*'.join(names[:size])}, target={names[size]})"]
    scores = qd.score(data, plan, addresses)
    for address in addresses:
        detail = scores.results[address][1].detail
        assert scores[address] == detail["before"]
        assert detail["right"] == detail["claims"]


@given(cases(least=2), st.data())
def test_a_table_that_knows_who_arrived_changes_as_the_two_files_say(case: Case, draw: st.DataObject) -> None:
    names = tuple(draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=1, unique=True)))
    summary, after = Arrival(names), case.plan.apply(case.data)
    before = summary.of(case.data)
    whole = before.against(summary.of(after, case.data))
    evaluator = Evaluator(case.data, [f"linked({'*'.join(names)})"])
    changed = (whole.old_count != whole.new_count) | (whole.old != whole.new)
    change = before.change(Delta(case.data, case.plan, evaluator.fused))
    assert change.cells.tolist() == whole.cells[changed].tolist()
    assert change.new_count.tolist() == whole.new_count[changed].tolist()
    assert change.new.tolist() == whole.new[changed].tolist()


FUSED = ["linked", "linked_small", "linked_small(n=5)", "attributed", "attributed_unique", "attributed(target=A)"]


@given(cases(weights=(None,), least=2))
def test_the_fused_scorer_finds_what_the_plain_path_finds_or_steps_aside(case: Case) -> None:
    fused = FusedScorer.build(case.data, FUSED)
    exchange = case.recipe.prepared(case.data).exchange
    if fused is None or exchange is None:
        return
    plain, _ = Evaluator(case.data, FUSED).values(case.plan)
    for _ in range(2):  # twice: scratch memory is left clean
        quick = fused.run(exchange, case.recipe.stream())
        assert quick is None or quick == pytest.approx(plain, abs=1e-12)


def shuffled(data: Data, random: np.random.Generator) -> qd.Plan:
    """A plan that permutes every column by itself."""
    moves = []
    for name in data.columns:
        source = random.permutation(data.n)
        rows = np.flatnonzero(source != np.arange(data.n))
        moves.append(Move((name,), (rows, source[rows])))
    return qd.Plan(moves, data=data)


def by_chance(data: Data, after: Data) -> tuple[float, float]:
    """What `linked` and `attributed_unique` expect of persons whose keys are in the release: 1/N, and their margin."""
    old, new = (oracles.records(file, data.keys) for file in (data, after))
    shown, guessed = set(new), []
    for place in range(len(data.keys)):
        f, keys = Counter(without(record, place) for record in old), {without(record, place) for record in new}
        margin = Counter(record[place] for record in old)
        guessed += [
            margin[record[place]] / data.n * (without(record, place) in keys)
            for record in old
            if f[without(record, place)] == 1
        ]
    return sum(record in shown for record in old) / data.n**2, sum(guessed) / len(guessed)


def test_where_all_columns_are_permuted_apart_nothing_but_chance_is_left() -> None:
    random = np.random.default_rng(8)
    latent = random.integers(0, 2, 300)
    codes = {f"V{i}": (random.integers(0, size, 300) + latent) % size for i, size in enumerate((3, 4, 3, 5, 2))}
    data = file_of(**codes)
    evaluator = Evaluator(data, ["linked", "attributed_unique"])
    plans = [shuffled(data, random) for _ in range(tries(60, 2_000))]
    excess = np.array([np.subtract(evaluator.values(plan)[0], by_chance(data, plan.apply(data))) for plan in plans])
    error = excess.std(axis=0, ddof=1) / np.sqrt(len(plans))
    assert (np.abs(excess.mean(axis=0)) < 4 * error).all()
    assert (error < [0.001, 0.02]).all()  # before: .4 and 1
