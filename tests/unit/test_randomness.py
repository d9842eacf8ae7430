"""Randomness: the default seed is a secret, the stream is a cipher, and streams have nothing to do with one another."""

from __future__ import annotations

import hashlib
import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chisquare

import quadrille as qd
from quadrille import randomness
from quadrille.errors import ParameterError
from quadrille.randomness import Chooser, Stream, draw_until_enough, is_secret

BASE = qd.RandomSwap(["Edu"], pairs=100, seed=7)
WORDS = 4096
BITS = 32 * WORDS


def agreement(one: Stream, other: Stream) -> float:
    """Standard errors by which the share of equal bits differs from one half."""
    differing = int(np.bitwise_count(one.words(WORDS) ^ other.words(WORDS)).sum())
    return abs(differing - BITS / 2) / (BITS / 4) ** 0.5


def test_the_default_seed_is_256_bits_asked_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(randomness, "secrets", secrets)  # which the tests of other things replace
    monkeypatch.setattr(secrets, "token_bytes", lambda count: asked.append(count) or bytes(range(count)))
    monkeypatch.setattr(secrets, "token_hex", lambda count: secrets.token_bytes(count).hex())
    recipe = qd.RandomSwap("Edu", pairs=1)
    assert asked == [32]
    assert recipe.seed == bytes(range(32)).hex()


def test_default_seeds_never_repeat_and_use_all_their_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomness, "secrets", secrets)
    seeds = [qd.RandomSwap("Edu", pairs=1).seed for _ in range(2000)]
    assert len(set(seeds)) == len(seeds)
    assert all(is_secret(seed) and len(bytes.fromhex(seed)) == 32 for seed in seeds)
    ones = np.unpackbits(np.array([list(bytes.fromhex(seed)) for seed in seeds], dtype=np.uint8), axis=1).sum(
        axis=0, dtype=np.int64
    )
    # 256 positions, within 7 standard errors each: chance of a false alarm below 1e-9
    assert (np.abs(ones - 1000) < 7 * 500**0.5).all()


def test_the_secret_is_part_of_the_recipe_from_then_on() -> None:
    recipe = qd.RandomSwap("Edu", pairs=1)
    assert json.loads(recipe.to_json())["seed"] == recipe.seed
    assert qd.Recipe.from_json(recipe.to_json()) == recipe
    assert replace(recipe, pairs=2).seed == recipe.seed
    assert "seed" not in json.loads(recipe.design_json())


def test_the_words_are_aes_256_in_counter_mode_under_a_key_that_depends_on_seed_and_design() -> None:
    seed = "0123456789abcdef" * 4
    recipe = replace(BASE, seed=seed)
    design = json.loads(recipe.design_json()) | {"version": 1}  # whose streams the second version goes on with
    text = json.dumps(design, separators=(",", ":"))
    key = hashlib.blake2b(text.encode(), digest_size=32, key=bytes.fromhex(seed), person=b"quadrille recipe").digest()
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    expected = np.frombuffer(encryptor.update(bytes(4 * 1000)), dtype="<u4")
    assert np.array_equal(recipe.stream().words(1000), expected)
    assert recipe.stream().words(1000).dtype == np.uint32


def test_fewer_words_are_a_prefix_of_more_words() -> None:
    words = BASE.stream().words(5000)
    for count in (0, 1, 3, 4, 5, 1000, 4999):
        assert np.array_equal(BASE.stream().words(count), words[:count])


def test_the_words_look_uniform() -> None:
    words = BASE.stream().words(1 << 17)
    for shift in (0, 8, 16, 24):  # each byte by chi-square, p > 1e-3
        assert chisquare(np.bincount((words >> shift) & 255, minlength=256)).pvalue > 1e-3


def variants() -> dict[str, qd.RandomSwap]:
    """Recipes that differ from the base in one thing each."""
    secret = "00" * 32
    return {
        "base": BASE,
        "swap": replace(BASE, swap=["Age"]),
        "more swap": replace(BASE, swap=["Edu", "Age"]),
        "order of swap": replace(BASE, swap=["Age", "Edu"]),
        "pairs": replace(BASE, pairs=101),
        "rate": replace(BASE, pairs=None, rate=0.1),
        "next rate": replace(BASE, pairs=None, rate=float(np.nextafter(0.1, 1))),
        "same": replace(BASE, same=["Sex"]),
        "different": replace(BASE, different=["Sex"]),
        "differ": replace(BASE, differ="any"),
        "order": replace(BASE, order="one-by-one"),
        "sampler": replace(BASE, sampler="pair-uniform"),
        "seed": replace(BASE, seed=6),
        "large seed": replace(BASE, seed=7 + 2**64),
        "secret": replace(BASE, seed=secret),
        "first bit of the secret": replace(BASE, seed="8" + secret[1:]),
        "last bit of the secret": replace(BASE, seed=secret[:-1] + "1"),
    }


@pytest.mark.parametrize(("one", "other"), list(combinations(variants(), 2)))
def test_recipes_that_differ_in_anything_have_unrelated_streams(one: str, other: str) -> None:
    # 136 pairs at 4.5 standard errors: chance of a false alarm 1e-3, and the streams are fixed
    assert agreement(variants()[one].stream(), variants()[other].stream()) < 4.5


def test_parameters_given_in_another_form_are_the_same_recipe_and_stream() -> None:
    same = qd.RandomSwap("Edu", pairs=np.int64(100), same=[], different=(), differ="all", seed=np.uint8(7))
    assert same == BASE
    assert same.to_json() == BASE.to_json()
    assert same.stream() == BASE.stream()


def test_sub_streams_are_unrelated_to_each_other_and_to_their_parent() -> None:
    parent = BASE.stream()
    streams = [parent, parent.sub(""), parent.sub("pairs"), parent.sub("pairs "), parent.sub("repair")]
    streams += [parent.sub("pairs").sub("repair"), parent.sub("repair").sub("pairs"), parent.sub("pairsrepair")]
    assert all(agreement(one, other) < 4.5 for one, other in combinations(streams, 2))


def test_sub_streams_do_not_depend_on_what_was_drawn_before_or_on_threads() -> None:
    names = [f"area {i}" for i in range(64)]
    expected = [BASE.stream().sub(name).words(999).tolist() for name in names]
    stream = BASE.stream()
    stream.words(12345)
    stream.sub("other").words(77)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: stream.sub(name).words(999).tolist(), reversed(names)))
    assert found == expected[::-1]


def test_a_stream_does_not_show_its_key() -> None:
    assert BASE.stream().key.hex() not in repr(BASE.stream())
    assert "key" not in repr(BASE.stream())


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 257])
def test_choices_are_uniform(n: int) -> None:
    chooser = Chooser(BASE.stream().sub(f"choices below {n}"))
    counts = np.bincount([chooser.below(n) for _ in range(20_000)], minlength=n)
    assert len(counts) == n
    assert n == 1 or chisquare(counts).pvalue > 1e-3


def test_choices_reject_exactly_the_words_that_would_make_some_numbers_likelier() -> None:
    class Listed(Stream):
        def words(self, count: int) -> np.ndarray:
            return np.resize(np.array([2**32 - 1, 2**32 - 2, 5], dtype=np.uint32), count)

    assert Chooser(Listed(b"")).below(3) == (2**32 - 2) % 3  # 2^32 = 1 mod 3: the last word is rejected
    assert Chooser(Listed(b"")).below(2**31 + 1) == 5  # above 2^31 + 1 every word is rejected
    assert Chooser(Listed(b"")).below(2**32) == 2**32 - 1


def test_words_that_run_out_are_drawn_again_from_the_start_with_twice_as_many() -> None:
    seen = []

    def attempt(words: np.ndarray) -> int | None:
        seen.append(words.tolist())
        return len(words) if len(words) >= 500 else None

    assert draw_until_enough(attempt, BASE.stream(), guess=100) >= 500
    assert [len(words) for words in seen] == [100, 200, 400, 800]
    assert all(longer[: len(words)] == words for words, longer in pairwise(seen))


@pytest.mark.parametrize(
    "seed", [-1, 1.0, 1.5, True, "7", "", "0" * 63, "0" * 65, "g" * 64, b"0" * 64, [1], np.float64(3)]
)
def test_a_seed_that_is_no_seed_is_refused_without_showing_text(seed: object) -> None:
    with pytest.raises(ParameterError, match="'seed' parameter of RandomSwap") as caught:
        qd.RandomSwap("Edu", pairs=1, seed=seed)
    assert not isinstance(seed, str) or not seed or repr(seed) not in str(caught.value)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint64, np.uint8])
def test_numpy_whole_numbers_are_seeds_like_plain_ones(kind: type) -> None:
    assert replace(BASE, seed=kind(7)) == BASE
    assert type(replace(BASE, seed=kind(7)).seed) is int
