"""`population_risk`: expected right matches to the population of a sample, by hand, in simulated samples, as shown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from scipy import stats
from typer.testing import CliRunner

import oracles
import quadrille as qd
from effort import examples, tries
from quadrille.cli.app import app
from quadrille.data import Data
from quadrille.errors import InputError, MismatchError, ParameterError
from quadrille.measure import beside_exposed
from quadrille.measure.population import _tree, mean_one_in, sample_of  # pyright: ignore[reportPrivateUsage]
from quadrille.present.render import as_html
from quadrille.report.input import look
from quadrille.report.sections import summary
from quadrille.score.evaluator import Scores
from strategies import Case, cases, coded, file_of

SIX = {"A": [0, 0, 0, 1, 1, 1], "B": [0, 1, 1, 0, 0, 0]}
"""One record is alone: the first, A0 and B0."""


def detail(scores: Scores, address: str = "population_risk") -> dict[str, float]:
    return dict(scores.results[address][1].detail)


def test_by_hand_half_of_the_population() -> None:
    """One person alone; the table of two variables is its own fit, so one more with her keys is expected outside."""
    data = file_of(**SIX).with_sampling(0.5)
    found = detail(qd.score(data, qd.Plan([], data=data), ["population_risk"]))
    assert found["uniques"] == found["uniques_before"] == 1
    assert found["expected"] == pytest.approx(1 - np.exp(-1))  # the mean of 1 / (1 + X), X Poisson with mean 1
    assert found["population"] == 12


def test_by_hand_weights_say_how_many_persons_each_record_stands_for() -> None:
    data = file_of([3.0, 5, 5, 8, 8, 7], **SIX)
    scores = qd.score(data, qd.Plan([], data=data), ["population_risk"])
    assert detail(scores)["expected"] == pytest.approx((1 - np.exp(-2)) / 2)  # two others on average
    assert detail(scores)["population"] == pytest.approx(36)
    assert scores["population_risk"] == pytest.approx((1 - np.exp(-2)) / 2 / 6)


def test_weights_that_are_scaled_to_the_records_and_a_share_that_is_said() -> None:
    weights = np.array([3.0, 5, 5, 8, 8, 7]) / 6
    scaled, counted = file_of(weights, **SIX), file_of(weights * 6, **SIX)
    plan = qd.Plan([], data=scaled)
    assert qd.score(scaled, plan, ["population_risk(sampling=1)"])["population_risk(sampling=1)"] is not None
    said = detail(qd.score(scaled.with_sampling(1 / 6), qd.Plan([], data=scaled), ["population_risk"]))
    known = detail(qd.score(counted, qd.Plan([], data=counted), ["population_risk"]))
    assert said == pytest.approx(known)


def test_a_record_that_came_from_elsewhere_is_no_right_match_although_the_table_is_the_same() -> None:
    data = file_of(**SIX).with_sampling(0.5)
    plan = qd.Plan.of_pairs(data, ["A"], [[0, 3]])
    scores = qd.score(data, plan, ["exposed(n=2)", "population_risk"])
    assert scores["exposed(n=2)"] == 1 / 6
    assert scores["population_risk"] == 0
    assert detail(scores)["uniques"] == 1


def test_without_aligned_rows_a_record_counts_as_the_one_with_its_keys() -> None:
    data = file_of(**SIX).with_sampling(0.5)
    after = qd.Plan.of_pairs(data, ["A"], [[0, 3]]).apply(data).take([5, 0, 4, 1, 3, 2])
    for files in (after, data.take([5, 0, 4, 1, 3, 2])):
        assert qd.score(data, files, ["population_risk"])["population_risk"] == pytest.approx((1 - np.exp(-1)) / 6)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (file_of(**SIX), "no weight"),
        (file_of([0.5, 1, 1, 1.5, 1, 1], **SIX), "mean of the weights is near 1"),
        (file_of([0.1] * 6, **SIX), "mean of the weights is below 1"),
    ],
)
def test_a_population_of_unknown_size_is_asked_for(data: Data, why: str) -> None:
    scores = qd.score(data, qd.Plan([], data=data), ["population_risk"])
    assert scores["population_risk"] is None
    assert why in scores.note("population_risk") and "--sampling" in scores.note("population_risk")


@given(cases(least=2, weights=(None,)))
def test_of_a_whole_population_each_record_that_stays_alone_is_one_in_the_persons_with_its_keys(case: Case) -> None:
    names = coded(case.data)[:3]
    address = f"population_risk({'*'.join(names)}, sampling=1)"
    old, new = (oracles.records(file, names) for file in (case.data, case.plan.apply(case.data)))
    f, g = Counter(old), Counter(new)
    truth = sum(1 / f[now] for was, now in zip(old, new, strict=True) if was == now and g[now] == 1)
    assert qd.score(case.data, case.plan, [address])[address] == pytest.approx(truth / case.data.n)


@examples(8)
@given(cases(least=2, most=4, largest=30))
def test_it_passes_the_battery_for_measures(case: Case) -> None:
    address = "population_risk(sampling=0.2)"
    found = qd.testing.check_measure(address, case.data, case.plan)[address]
    assert found == qd.score(case.data, case.plan, [address])[address]
    assert found is None or found <= (qd.score(case.data, case.plan, ["exposed(n=2)"])["exposed(n=2)"] or 0) + 1e-12


def test_the_mean_of_one_in_f_is_that_of_the_poisson_distribution() -> None:
    f, h = np.repeat([1, 2, 3, 10, 200], 6), np.tile([0, 1e-9, 0.3, 4, 60, 2_000], 5)
    outside = np.arange(5_000)
    truth = (stats.poisson.pmf(outside, h[:, None]) / (f[:, None] + outside)).sum(axis=1)
    assert mean_one_in(f, h.astype(float)) == pytest.approx(truth, rel=1e-10)


def population(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three variables associated two by two only: cells and persons, Poisson."""
    a, b, c = np.ogrid[:12, :10, :8]
    log = -0.35 * abs(a - b) - 0.3 * abs(b - c) + 0.2 * np.cos(a + 2 * c) - 0.15 * (a + b + c)
    cells = np.indices((12, 10, 8)).reshape(3, -1)
    rate = np.exp(log).ravel()
    return cells, random.poisson(40_000 * rate / rate.sum())


def drawn(number: int) -> tuple[Data, np.ndarray]:
    """A sample that holds more of some regions (A) than of others, its weights, and of each record 1 / F."""
    random = np.random.default_rng([20, number])
    cells, persons = population(random)
    share = np.where(cells[0] % 3 == 0, 0.25, np.where(cells[0] % 3 == 1, 0.05, 0.1))
    sampled = random.binomial(persons, share)
    rows = np.repeat(np.arange(len(persons)), sampled)
    data = file_of(1 / share[rows], **{name: codes[rows] for name, codes in zip("ABC", cells, strict=True)})
    return data, 1 / persons[rows]


def test_expected_matches_agree_with_samples_from_a_known_population_within_four_standard_errors() -> None:
    """Design weights that differ; before the swap, after a random swap and after a permutation."""
    before, after, size = [], [], []
    for number in range(tries(24, 400)):
        data, one_in = drawn(number)
        old = np.array([hash(each) for each in oracles.records(data, ["A", "B", "C"])])
        swap = (
            qd.RandomSwap(["B"], rate=0.2, seed=number) if number % 2 else qd.PermutationSwap(["C"], rate=0.3, seed=1)
        )
        plan = swap.plan(data)
        new = np.array([hash(each) for each in oracles.records(plan.apply(data), ["A", "B", "C"])])
        alone = np.isin(new, [cell for cell, count in Counter(new.tolist()).items() if count == 1])
        unique = np.isin(old, [cell for cell, count in Counter(old.tolist()).items() if count == 1])
        found = detail(qd.score(data, plan, ["population_risk"]))
        assert found["uniques"] == alone.sum() and found["uniques_before"] == unique.sum()
        before.append(one_in[unique].sum() - found["expected_before"])
        after.append(one_in[alone & (old == new)].sum() - found["expected"])
        size.append(found["population"] / 40_000)
    for difference in map(np.array, (before, after, np.array(size) - 1)):
        assert abs(difference.mean()) < 4 * difference.std(ddof=1) / np.sqrt(len(difference))


# Where it is shown


def test_it_stands_next_to_exposed_where_the_data_are_a_sample() -> None:
    data = file_of(**SIX)
    listed = ["small_cells", "exposed(A*B, where=A=A0, n=5)", "exposed(2-way)", "hellinger"]
    assert beside_exposed(listed, data) == listed
    shown = beside_exposed(listed, data.with_sampling(0.1))
    assert shown == [*listed[:2], "population_risk(A*B, where=A=A0)", *listed[2:]]
    assert beside_exposed(["exposed", "exposed(n=2)"], data.with_sampling(0.1)) == [
        *("exposed", "population_risk", "exposed(n=2)")
    ]
    own = ["exposed", "population_risk(sampling=0.5)"]
    assert beside_exposed(own, data.with_sampling(0.1)) == own


def test_a_search_scores_it_next_to_exposed_and_goes_on(tmp_path: Path) -> None:
    data = qd.datasets.cps8d().take(np.arange(0, 48_842, 40)).with_sampling(0.025)
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[20, 40], seed=[1])
    measures = ["small_cells", "hellinger"]
    study = qd.search(data, recipes, measures, out=tmp_path / "study", workers=1, progress=False)
    assert study.measures == ("small_cells", "exposed", "population_risk", "hellinger")
    again = qd.search(data, recipes, measures, out=tmp_path / "study", workers=1, progress=False)
    assert again.frame()["population_risk"].to_list() == study.frame()["population_risk"].to_list()
    assert all(value > 0 for value in study.frame()["population_risk"])
    with pytest.raises(MismatchError, match="other measures"):
        qd.search(data.with_sampling(None), recipes, measures, out=tmp_path / "study", workers=1, progress=False)


def test_the_share_is_kept_by_what_is_made_of_the_data_and_is_no_part_of_them() -> None:
    data = qd.datasets.cps8d()
    said = data.with_sampling(0.1)
    assert said == data and said.fingerprint == data.fingerprint and data.sampling is None
    plan = qd.RandomSwap(["Edu"], pairs=5, seed=1).plan(said)
    for made in (said.take([1, 2]), said.with_roles(outcome=["Sex"]), plan.apply(said)):
        assert made.sampling == 0.1
    with pytest.raises(ParameterError, match="sampling"):
        data.with_sampling(2)


def test_a_codebook_says_it_and_a_reader_takes_it(tmp_path: Path) -> None:
    frame = pl.DataFrame({"sex": ["m", "f"], "age": [31, 47]})
    frame.write_csv(tmp_path / "a.csv")
    book = qd.from_frame(frame).with_sampling(0.02).codebook
    assert "sampling = 0.02" in book.to_toml() and "sampling = 0.02" in book.to_toml(guessed=book)
    book.write(tmp_path / "a.toml")
    assert qd.read(tmp_path / "a.csv", codebook=tmp_path / "a.toml").sampling == 0.02
    assert qd.read(tmp_path / "a.csv", codebook=tmp_path / "a.toml", sampling=0.5).sampling == 0.5
    assert qd.from_frame(frame, codebook=book, geography=["sex"]).sampling == 0.02
    assert qd.from_frame(frame, sampling=1).sampling == 1
    for wrong in ("0", "1.5", "true", '"a"'):
        with pytest.raises(InputError, match="'sampling' must be"):
            qd.Codebook.from_toml(f'sampling = {wrong}\n[columns.sex]\nkind = "nominal"\n')


def test_commands_show_it_and_say_what_exposed_supposes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    qd.write(qd.datasets.cps8d().take(np.arange(0, 48_842, 40)), "few.csv")

    def run(call: str) -> str:
        done = CliRunner().invoke(app, call.split(), env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    said = "the cautious number, for an intruder who knows who is in the sample"
    swap = "few.csv --method random --swap Edu --pairs 40 --measures exposed,hellinger --sampling 0.025"
    assert said in (shown := run(f"swap {swap}")) and "population of 48,880" in shown
    assert "2.5 % of a population of 48,880, as said" in run("inspect few.csv --sampling 0.025")
    assert said in run(f"release {swap} --out out")
    note = " ".join(Path("out/confidential/dossier.md").read_text().split())
    assert said in note and "2.5 % of a population of 48,880" in note and "population_risk" in note
    public = "".join(file.read_text() for file in Path("out/public").iterdir() if file.suffix != ".csv")
    assert "sampling" not in public and "population" not in public
    assert said in run("score few.csv out/public/data.csv --measures exposed --sampling 0.025")
    assert "population_risk" not in run(f"swap {swap.partition(' --sampling')[0]}")
    wrong = CliRunner().invoke(app, ["inspect", "few.csv", "--sampling", "2"])
    assert wrong.exit_code == 2 and "--sampling must be a number in (0, 1]" in wrong.output


def test_the_report_to_the_board_says_it(tmp_path: Path) -> None:
    data = qd.datasets.cps8d().take(np.arange(0, 48_842, 80)).with_sampling(0.0125)
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=[10, 20], seed=[1])
    study = qd.search(data, recipes, ["exposed", "hellinger"], out=tmp_path / "s", workers=1, progress=False)
    seen = summary(look(study, data, None, None, None))
    text = " ".join(as_html([seen["meaning"], seen["table"]]).split())
    assert "The file is a sample." in text and "an intruder who knows who is in the sample" in text
    assert text.count("population_risk") >= 2


def test_a_sample_of_weights_is_known_by_their_sum() -> None:
    assert sample_of(file_of([2.0] * 6, **SIX)) is not None
    assert sample_of(file_of([2.0] * 6, **SIX)).share == 0.5  # pyright: ignore[reportOptionalMemberAccess]
    assert sample_of(file_of(**SIX)) is None


def test_a_table_that_is_too_large_is_expected_by_the_tree_with_the_most_information() -> None:
    """Four variables in a chain: each depends on the one before it, so the tree is the model itself."""
    random = np.random.default_rng(4)
    a, n = random.integers(0, 3, 4_000), 4_000
    b = np.where(random.random(n) < 0.8, a, random.integers(0, 3, n))
    c = np.where(random.random(n) < 0.7, b, random.integers(0, 3, n))
    d = np.where(random.random(n) < 0.9, a, random.integers(0, 3, n))
    cells, count = np.unique(np.stack([d, c, a, b]), axis=1, return_counts=True)
    found = _tree(list(cells), [3, 3, 3, 3], count.astype(float))
    d, c, a, b = cells

    def margin(*of: np.ndarray) -> np.ndarray:
        _, place = np.unique(np.stack(of), axis=1, return_inverse=True)
        return np.bincount(place.ravel(), weights=count)[place.ravel()]

    assert found == pytest.approx(margin(d, a) * margin(a, b) * margin(b, c) / margin(a) / margin(b))


def test_a_tree_of_two_variables_is_their_table_and_of_independent_ones_their_margins() -> None:
    codes, count = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])], np.array([8.0, 2, 2, 8])
    assert _tree(codes, [2, 2], count) == pytest.approx(count)
    every = list(np.indices((2, 3, 2)).reshape(3, -1))
    independent = np.outer(np.outer([1.0, 3], [1, 2, 5]).ravel(), [2.0, 4]).ravel()
    assert _tree(every, [2, 3, 2], independent) == pytest.approx(independent)
