"""Job files: what a good one says, and the place and the cure of every fault."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError
from quadrille.study.job import Job

HEAD = """
[data]
file = "dataset:cps8d"

[search]
measures = ["small_cells", "exposed", "hellinger"]
"""
GRID = """
[[grid]]
method = "RandomSwap"
swap = [["Age"], ["Age", "Edu"]]
"""
RATE = "rate = [0.01, 0.05]\n"
EXAMPLES = [
    path
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
    if "[[grid]]" in path.read_text(encoding="utf-8")  # others are simulations and policies
]


def word(text: str) -> str:
    return f'[[grid]]\nmethod = "RandomSwap"\nrate = 0.1\n{text}\n'


# The job file, and the message that must come out, exactly.
FAULTS: dict[str, tuple[str, str]] = {
    # TOML
    "no equals sign": ("[data]\nfile\n", "job.toml, line 2, column 5: this is not valid TOML: Expected '='"),
    "a key twice": ('[data]\nfile = "a"\nfile = "b"\n', "job.toml, line 3, column "),
    "cut off": ('[data]\nfile = "a', "job.toml, line 2"),
    # Sections
    "nothing": ("", "job.toml: the section [data] is missing or empty."),
    "no data": (HEAD.split("[search]")[1].join(["[search]", GRID]), "job.toml: the section [data] is missing"),
    "no search": ('[data]\nfile = "a.csv"\n' + GRID, "job.toml: the section [search] is missing or empty."),
    "no grid": (HEAD, "job.toml: the section [[grid]] is missing or empty."),
    "empty list of grids": ("grid = []\n" + HEAD, "job.toml: the section [[grid]] is missing or empty."),
    "unknown section": (HEAD + "[serch]\n", "job.toml: There is no section 'serch'. Did you mean: 'search'?"),
    "data is no section": ("data = 3\n[search]\nmeasures=['x']\n" + GRID, "job.toml: data must be a section"),
    "grid is no section": ("grid = [1]\n" + HEAD, "job.toml: grid must be one section or more, each headed [[grid]]."),
    # Data
    "no file": ('[data]\nweight = "w"\n[search]\nmeasures=["x"]\n' + GRID, "job.toml, [data]: 'file' is missing"),
    "file is a number": (HEAD.replace('"dataset:cps8d"', "3") + GRID, "[data] file: must be a text that is not empty."),
    "file is blank": (HEAD.replace("dataset:cps8d", " ") + GRID, "[data] file: must be a text that is not empty."),
    "unknown setting of data": (
        HEAD.replace("[search]", 'wieght = "w"\n[search]') + GRID,
        "job.toml, [data]: There is no setting 'wieght'. Did you mean: 'weight'?",
    ),
    "codebook of a data set": (
        HEAD.replace("[search]", 'codebook = "c.toml"\n[search]') + GRID,
        "job.toml, [data] codebook: a bundled data set brings its own codebook.",
    ),
    # Search
    "no measures": ('[data]\nfile = "a.csv"\n[search]\nout = "x"\n' + GRID, "[search]: 'measures' is missing"),
    "empty measures": (
        '[data]\nfile = "a.csv"\n[search]\nmeasures = []\n' + GRID,
        "job.toml, [search] measures: must be a list of measures, at least 1. Got [].",
    ),
    "measures as text": (
        '[data]\nfile = "a.csv"\n[search]\nmeasures = "hellinger"\n' + GRID,
        'job.toml, [search] measures: must be a list of measures, at least 1. Got "hellinger".',
    ),
    "unknown measure": (
        HEAD.replace('"hellinger"', '"helinger"') + GRID + RATE,
        "job.toml, [search] measures[3]: There is no measure 'helinger'. Did you mean: 'hellinger'?",
    ),
    "measure twice": (
        HEAD.replace('"hellinger"', '"exposed"') + GRID + RATE,
        'job.toml, [search] measures[3]: "exposed" is listed twice. Name it once.',
    ),
    "measure is a number": (HEAD.replace('"exposed"', "7") + GRID, "[search] measures[2]: must be a text"),
    "then twice": (
        HEAD + 'then = ["total_variation", "exposed"]' + GRID,
        "job.toml, [search] then[2]: 'exposed' is in 'measures' already. Name it once.",
    ),
    "workers 0": (HEAD + "workers = 0" + GRID, "[search] workers: must be a whole number from 1 to 1,024. Got 0."),
    "workers as text": (
        HEAD + 'workers = "2"' + GRID,
        '[search] workers: must be a whole number from 1 to 1,024. Got "2"',
    ),
    "workers as truth": (
        HEAD + "workers = true" + GRID,
        "[search] workers: must be a whole number from 1 to 1,024. Got true",
    ),
    "out is a list": (
        HEAD + 'out = ["a"]' + GRID,
        'job.toml, [search] out: must be a text that is not empty. Got ["a"].',
    ),
    "unknown setting of search": (
        HEAD + "worker = 2" + GRID,
        "[search]: There is no setting 'worker'. Did you mean: 'workers'?",
    ),
    # Grids
    "no method": (
        HEAD + "[[grid]]\nrate = 0.1\n",
        "job.toml, [grid]: 'method' is missing, as in method = \"RandomSwap\".",
    ),
    "unknown method": (
        HEAD + GRID.replace("RandomSwap", "RandomSwop"),
        "job.toml, [grid] method: There is no method 'RandomSwop'. Did you mean: 'RandomSwap'?",
    ),
    "unknown parameter": (
        HEAD + GRID + "rat = 0.1",
        "job.toml, [grid]: There is no setting 'rat'. Did you mean: 'rate'?",
    ),
    "no swap": (HEAD + '[[grid]]\nmethod = "RandomSwap"\nrate = 0.1', "job.toml, [grid]: 'swap' is missing"),
    "neither rate nor pairs": (HEAD + GRID, "job.toml, [grid]: RandomSwap needs one of 'rate'"),
    "rate and pairs": (HEAD + GRID + RATE + "pairs = 3", "job.toml, [grid]: RandomSwap needs one of 'rate'"),
    "rate above 1": (
        HEAD + GRID + "rate = [0.01, 1.5]",
        "job.toml, [grid] rate[2]: must be a number in (0, 1]. Got 1.5.",
    ),
    "first rate 0": (HEAD + GRID + "rate = [0, 0.5]", "job.toml, [grid] rate[1]: must be a number in (0, 1]. Got 0."),
    "one bad rate": (HEAD + GRID + "rate = nan", "job.toml, [grid] rate: must be a number in (0, 1]. Got nan."),
    "rate in a list of lists": (
        HEAD + GRID + "rate = [[0.1]]",
        "[grid] rate[1]: must be a number in (0, 1]. Got [0.1].",
    ),
    "no rate": (HEAD + GRID + "rate = []", "job.toml, [grid] rate: must be one value or more. Got []."),
    "pairs as a fraction": (
        HEAD + GRID + "pairs = [3, 2.5]",
        "[grid] pairs[2]: must be a whole number of 1 or more. Got 2.5.",
    ),
    "second grid": (
        HEAD + GRID + RATE + GRID + "rate = [0.01, 0.1, 3]",
        "job.toml, [grid 2] rate[3]: must be a number in (0, 1]. Got 3.",
    ),
    "bad rate beside columns with two parts": (
        HEAD + GRID + 'same = [["Age"], ["Sex"]]\nrate = [0.1, 7]',
        "job.toml, [grid] rate[2]: must be a number in (0, 1]. Got 7.",
    ),
    "only columns with two parts": (
        HEAD + GRID + RATE + 'same = [["Age"]]',
        "job.toml, [grid]: there is no candidate: in every combination a column has two parts.",
    ),
    "columns as numbers": (
        HEAD + GRID + RATE + "same = [[], [1]]",
        "[grid] same[2]: must be a list of column names. Got [1].",
    ),
    "columns as a table": (
        HEAD + GRID + RATE + "same = {a = 1}",
        '[grid] same: must be a list of column names. Got {"a": 1}.',
    ),
    "columns as a date": (HEAD + GRID + RATE + "same = 2020-01-01", "[grid] same: must be a list of column names."),
    "column twice in a swap": (
        HEAD + word('swap = [["Age"], ["Edu", "Edu"]]'),
        'job.toml, [grid] swap[2]: must be a list without repetitions. Got ["Edu", "Edu"].',
    ),
    "empty swap": (
        HEAD + word("swap = [[]]"),
        "job.toml, [grid] swap[1]: must be a list of column names, at least 1. Got [].",
    ),
    "unknown word": (HEAD + word('swap = "single"'), "job.toml, [grid] swap: must be a list of columns,"),
    "unknown sampler": (
        HEAD + GRID + RATE + 'sampler = ["first-uniform", "fast"]',
        "job.toml, [grid] sampler[2]: must be one of 'first-uniform', 'pair-uniform'. Got \"fast\".",
    ),
    "of without a word": (HEAD + GRID + RATE + 'of = ["Age"]', "job.toml, [grid] of: goes with swap ="),
    "of too short": (
        HEAD + word('swap = "pairs"\nof = ["Age"]'),
        "[grid] of: must be a list of column names, at least 2.",
    ),
    "no seeds": (HEAD + GRID + RATE + "seeds = 0", "[grid] seeds: must be a whole number from 1 to 1,000,000. Got 0."),
    "seeds and seed": (HEAD + GRID + RATE + "seeds = 2\nseed = 1", "job.toml, [grid]: give 'seeds'"),
    "seed negative": (
        HEAD + GRID + RATE + "seed = [1, -2]",
        "job.toml, [grid] seed[2]: must be a whole number of 0 or more",
    ),
    "empty seed": (HEAD + GRID + RATE + "seed = []", "job.toml, [grid] seed: must be one seed or more. Got []."),
    "curve of another method": (
        HEAD + GRID + RATE + "curve = true",
        "job.toml, [grid] curve: RandomSwap has no curve; DesignedSwap has one.",
    ),
    "curve as a word": (
        HEAD + '[[grid]]\nmethod = "DesignedSwap"\ncurve = "yes"',
        'job.toml, [grid] curve: must be true or false. Got "yes".',
    ),
    "curve of several n": (
        HEAD + '[[grid]]\nmethod = "DesignedSwap"\ncurve = true\nn = [3, 4]',
        "job.toml, [grid] n: must be one value, as a curve sweeps 'price', 'inference', 'coin', 'share', 'keep', "
        "'choose' only. Got [3, 4].",
    ),
    "curve without anything to sweep": (
        HEAD + '[[grid]]\nmethod = "DesignedSwap"\ncurve = true\nshare = []\nprice = []\ncoin = []\ninference = []',
        "job.toml, [grid]: DesignedSwap.curve has nothing to sweep.",
    ),
    "bad share of a curve": (
        HEAD + '[[grid]]\nmethod = "DesignedSwap"\ncurve = true\nshare = [0.5, 2]',
        "job.toml, [grid] share[2]: must be a number in (0, 1]. Got 2.",
    ),
    "curve of a word": (
        HEAD + '[[grid]]\nmethod = "DesignedSwap"\ncurve = true\nswap = "singles"',
        'job.toml, [grid] swap: must be a list of columns. Got "singles".',
    ),
    # Against the data
    "unknown column of a curve": (
        HEAD + '[[grid]]\nmethod = "DesignedSwap"\ncurve = true\nswap = ["Edi"]',
        "job.toml, [grid] swap: There is no column 'Edi'. Did you mean: 'Edu'?",
    ),
    "unknown column": (
        HEAD + word('swap = [["Age"], ["Edi"]]'),
        "[grid] swap[2]: There is no column 'Edi'. Did you mean: 'Edu'?",
    ),
    "unknown column of a word": (
        HEAD + word('swap = "singles"\nof = ["Age", "Edi"]'),
        "[grid] of[2]: There is no column 'Edi'.",
    ),
    "unknown constraint": (
        HEAD + GRID + RATE + 'same = ["Sexx"]',
        "[grid] same: There is no column 'Sexx'. Did you mean: 'Sex'?",
    ),
    "unknown margin": (
        HEAD.replace('"hellinger"', '"hellinger(Age*Edi)"') + GRID + RATE,
        "job.toml, [search] measures[3]: There is no column 'Edi'",
    ),
    "unknown option of a measure": (
        HEAD.replace('"exposed"', '"exposed(m=3)"') + GRID + RATE,
        "job.toml, [search] measures[2]: There is no option 'm'",
    ),
}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("job.toml")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_place(name: str, job: Path, cps8d: qd.Data) -> None:
    text, message = FAULTS[name]
    job.write_text(text)
    with pytest.raises(InputError) as caught:
        Job.read(job).recipes(cps8d)
    told = str(caught.value)
    assert told.startswith("job.toml")
    assert message in told


def test_a_seed_that_is_refused_is_not_shown(job: Path) -> None:
    job.write_text(HEAD + GRID + RATE + f'seed = "{"0123456789abcdeX" * 4}"')
    with pytest.raises(InputError) as caught:
        Job.read(job)
    assert "[grid] seed: must be" in str(caught.value)
    assert "0123" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(job: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read the job 'job\.toml': No such file"):
        Job.read(job)
    job.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        Job.read(job)


def test_paths_are_relative_to_the_job_file(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        HEAD.replace("dataset:cps8d", "in/census.csv").replace(
            "[search]", 'codebook = "book.toml"\nweight = "w"\n[search]'
        )
        + 'then = ["total_variation"]\nout = "my.study"\nworkers = 2\n'
        + GRID
        + RATE
    )
    job = Job.read(path)
    assert job.file == str(tmp_path / "in/census.csv")
    assert (job.codebook, job.weight) == (tmp_path / "book.toml", "w")
    assert (job.out, job.workers) == (tmp_path / "my.study", 2)
    assert (job.measures, job.then) == (("small_cells", "exposed", "hellinger"), ("total_variation",))


def test_defaults(job: Path) -> None:
    job.write_text(HEAD + GRID + RATE)
    found = Job.read(job)
    assert (found.codebook, found.weight, found.workers, found.then) == (None, None, None, ())
    assert found.out == Path("study")
    assert found.grids[0].seeds == 1
    with pytest.raises(FrozenInstanceError):
        found.workers = 3  # type: ignore[misc]


def test_recipes_are_those_of_the_grid_of_the_same_values(job: Path, cps8d: qd.Data) -> None:
    job.write_text(HEAD + GRID + RATE + 'same = [[], ["Sex"]]\nsampler = "pair-uniform"\nseed = [3, 4]\n')
    (found,) = Job.read(job).recipes(cps8d)
    swaps = [["Age"], ["Age", "Edu"]]
    asked = {"rate": [0.01, 0.05], "same": [[], ["Sex"]], "sampler": "pair-uniform", "seed": [3, 4]}
    assert list(found) == list(qd.grid(qd.RandomSwap, swap=swaps, **asked))
    assert not found.secret


@pytest.mark.parametrize(("text", "sizes"), [("singles", (1,)), ("pairs", (2,)), ("singles and pairs", (1, 2))])
def test_words_stand_for_sets_of_key_variables(text: str, sizes: tuple[int, ...], job: Path, cps8d: qd.Data) -> None:
    job.write_text(HEAD + word(f'swap = "{text}"'))
    found = [recipe.parameters()["swap"] for recipe in Job.read(job).recipes(cps8d)[0]]
    assert found == [chosen for size in sizes for chosen in combinations(cps8d.keys, size)]


def test_of_restricts_a_word(job: Path, cps8d: qd.Data) -> None:
    job.write_text(HEAD + word('swap = "singles and pairs"\nof = ["Sex", "Age"]\nsame = [[], ["Sex"]]'))
    found = [(r.parameters()["swap"], r.parameters()["same"]) for r in Job.read(job).recipes(cps8d)[0]]
    assert found == [(("Sex",), ()), (("Age",), ()), (("Age",), ("Sex",)), (("Sex", "Age"), ())]


def test_a_word_needs_enough_key_variables(job: Path) -> None:
    job.write_text(HEAD.replace('"small_cells", "exposed", "hellinger"', '"hellinger(A)"') + word('swap = "pairs"'))
    data = qd.from_frame(pl.DataFrame({"A": ["x", "y"] * 5, "B": [i + 0.5 for i in range(10)]}))
    with pytest.raises(InputError, match=r"\[grid\] swap: the data have 1 key variables; 2 are needed"):
        Job.read(job).recipes(data)


def test_grids_share_their_secret_seeds_and_a_number_of_seeds_overrides_all(job: Path, cps8d: qd.Data) -> None:
    job.write_text(HEAD + GRID + RATE + "seeds = 3\n" + GRID + RATE + "seeds = 2\n" + GRID + RATE + "seed = 5\n")
    one, two, three = Job.read(job).recipes(cps8d)
    assert one.secret and two.secret and not three.secret
    assert len(set(one.seeds)) == 3 and all(len(str(seed)) == 64 for seed in one.seeds)
    assert two.seeds == one.seeds[:2]
    assert three.seeds == (5,)
    again = Job.read(job).recipes(cps8d, seeds=4)
    assert [len(grid.seeds) for grid in again] == [4, 4, 4]
    assert all(grid.secret and grid.seeds == again[0].seeds for grid in again)
    assert not set(again[0].seeds) & set(one.seeds), "secrets are drawn afresh"


def test_a_curve_is_swept_along_prices_inferences_coins_and_shares(job: Path, cps8d: qd.Data) -> None:
    table = '[[grid]]\nmethod = "DesignedSwap"\ncurve = true\nn = 4\nshare = [0.5, 1.0]\n'
    swept = (
        'price = [0.3, 0.5]\ncoin = 0.5\ninference = 0\nkeep = ["1-way", "3-way"]\nchoose = ["random", "cheapest"]\n'
    )
    job.write_text(HEAD + table + swept + "seed = [1, 2]")
    common = {"n": 4, "effort": 0.3, "keep": ["1-way", "3-way"], "seed": [1, 2]}
    sweeps = (
        {"price": [0.3, 0.5]},
        {"price": [0.3], "inference": [0]},
        {"coin": [0.5]},
        {"share": [0.5, 1.0], "choose": ["random", "cheapest"]},
    )
    for found, sweep in zip(Job.read(job).recipes(cps8d), sweeps, strict=True):
        assert set(found) == set(qd.grid(qd.DesignedSwap, **common, **sweep))
    job.write_text(HEAD + table + "seeds = 3")
    priced, inferred, coined, shared = Job.read(job).recipes(cps8d)
    assert [len(each) for each in (priced, inferred, coined, shared)] == [33, 21, 12, 6]
    assert priced.secret and priced.seeds == shared.seeds
    job.write_text(HEAD + table + "price = []\ncoin = []\ninference = []")
    assert [len(grid) for grid in Job.read(job).recipes(cps8d)] == [2]


def test_one_grid_may_be_a_plain_section(job: Path, cps8d: qd.Data) -> None:
    job.write_text(HEAD + GRID.replace("[[grid]]", "[grid]") + RATE)
    assert len(Job.read(job).recipes(cps8d)[0]) == 4


COUNTS = {"designed": 130, "dohrmann-2009": 12, "gomatam-karr-2003": 24, "gomatam-karr-sanil-2003": 108}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_a_good_job(path: Path) -> None:
    job = Job.read(path)
    data = getattr(qd.datasets, job.file.removeprefix("dataset:"))()
    qd.score(data, qd.Plan([], data=data), job.measures)
    designs = {design for grid in job.recipes(data) for design in grid.designs}
    assert len(designs) == COUNTS[path.stem]


def test_there_is_an_example_per_paper_and_one_of_designed_swaps() -> None:
    assert [path.stem for path in EXAMPLES] == list(COUNTS)
