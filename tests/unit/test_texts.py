"""Texts from outside: what is read is a file of bearable size, and what is shown cannot steer a terminal."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadrille import text as texts
from quadrille.errors import InputError


@given(st.text())
def test_a_text_comes_back_with_or_without_the_mark_of_an_editor(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, lines = Path(folder) / "text", text.replace("\r\n", "\n").replace("\r", "\n")
        for mark in (b"", b"\xef\xbb\xbf"):
            path.write_bytes(mark + text.encode())
            assert texts.read_text(path, "the note") == (lines if mark else lines.removeprefix("\ufeff"))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    reasons = {
        "/dev/zero": "a device or a pipe",
        str(tmp_path / "pipe"): "a device or a pipe",  # and nobody waits for somebody to write into it
        str(tmp_path): "Is a directory",
        str(tmp_path / "none"): "No such file",
        str(tmp_path / "latin"): "not UTF-8 text",
        "a\0b": "not the name of a file",
        "x" * 5_000: "name too long",
    }
    for path, reason in reasons.items():
        with pytest.raises(InputError, match=f"^Cannot read the codebook .*{reason}"):
            texts.read_text(path, "the codebook")


def test_a_file_above_the_limit_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(10**12)  # a hole: it takes no room on the disk
    with pytest.raises(InputError, match="more than 100,000,000 bytes"):
        texts.read_text(tmp_path / "large", "the job")
    (tmp_path / "small").write_bytes(b"x" * 1000)
    assert len(texts.read_bytes(tmp_path / "small", "the job", most=1000)) == 1000
    with pytest.raises(InputError, match="more than 999 bytes"):
        texts.read_bytes(tmp_path / "small", "the job", most=999)


@given(st.text())
def test_what_is_shown_has_no_control_character_and_plain_text_is_as_it_was(text: str) -> None:
    shown = texts.shown(text)
    assert len(shown.splitlines()) <= 1
    assert all(ord(sign) >= 32 and not 127 <= ord(sign) < 160 for sign in shown)
    assert shown == text or not text.isprintable()
    assert texts.shown(shown) == shown
    assert texts.shown(text, keep="\n").count("\n") == text.count("\n")


@given(st.integers(0, 400_000), st.integers(1, 9))
def test_a_count_of_any_size_can_be_written(power: int, digit: int) -> None:
    told = texts.large(digit * 2**power)
    assert len(told) < 20
    if told.startswith("about"):
        assert abs(int(told.removeprefix("about 10^")) - power * 0.30103) < 1.6
