"""A codebook says what each column means; TOML carries it without loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quadrille.codebook import KINDS, ROLES, Codebook, Value, Variable
from quadrille.errors import InputError, ParameterError, QuadrilleError

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES: st.SearchStrategy[list[Value]] = st.one_of(
    st.lists(TEXT, unique=True, max_size=6),
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=6),
    st.lists(st.floats(allow_nan=False), unique=True, max_size=6),
    st.lists(st.booleans(), unique=True),
)


@st.composite
def variables(draw: st.DrawFn, name: str) -> Variable:
    values = draw(VALUES)
    cut = draw(st.integers(0, len(values)))
    labels = draw(st.just([]) | st.lists(TEXT, min_size=cut, max_size=cut))
    kind, role = draw(st.sampled_from(KINDS)), draw(st.none() | st.sampled_from(ROLES))
    return Variable(
        name,
        kind,  # pyright: ignore[reportArgumentType]
        tuple(values[:cut]),
        tuple(labels),
        tuple(values[cut:]),
        role,  # pyright: ignore[reportArgumentType]
        draw(st.none() | st.integers(1, 9)) if role == "geography" and kind != "numeric" else None,
    )


@st.composite
def codebooks(draw: st.DrawFn) -> Codebook:
    names = draw(st.lists(TEXT, unique=True, max_size=4))
    listed = [draw(variables(name)) for name in names]
    levels = [variable.level for variable in listed if variable.level is not None]
    assume(len(set(levels)) == len(levels))
    return Codebook(tuple(listed))


@given(codebooks())
def test_toml_carries_every_codebook_without_loss(book: Codebook) -> None:
    again = Codebook.from_toml(book.to_toml())
    assert again == book
    assert [[type(value) for value in v.values] for v in again] == [[type(value) for value in v.values] for v in book]


def test_position_is_code_and_missing_codes_come_after_categories() -> None:
    assert Variable("x", categories=("b", "a"), missing=("?",)).values == ("b", "a", "?")


def test_a_column_is_found_by_name_and_a_wrong_name_gets_the_nearest() -> None:
    book = Codebook((Variable("Edu"), Variable("Sex")))
    assert book["Sex"] == Variable("Sex")
    assert "Edu" in book
    assert "edu" not in book
    with pytest.raises(InputError, match=r"no column 'edu'\. Did you mean: 'Edu'"):
        book["edu"]


def test_keys_are_the_declared_ones_else_every_categorical_that_may_serve() -> None:
    roles = [None, *ROLES]
    guessed = Codebook(tuple(Variable(f"{role}", role=role) for role in roles if role != "key"))  # pyright: ignore[reportArgumentType]
    assert guessed.keys == ("None", "geography")
    assert Codebook((*guessed, Variable("k", role="key"))).keys == ("k",)
    assert Codebook((Variable("n", "numeric"),)).keys == ()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kind": "metric"}, ParameterError, "'kind' parameter of codebook column 'x'"),
        ({"role": "boss"}, ParameterError, "'role' parameter of codebook column 'x'"),
        ({"categories": ("Zebedee", "Zebedee")}, InputError, "listed twice"),
        ({"categories": ("Zebedee",), "missing": ("Zebedee",)}, InputError, "listed twice"),
        ({"categories": ("Zebedee", 1)}, InputError, "mix text and numbers"),
        ({"categories": ("a",), "labels": ("A", "B")}, InputError, "2 labels for 1 categories"),
        ({"level": 1}, InputError, 'a level, which needs role = "geography"'),
        ({"level": 1, "role": "key"}, InputError, 'a level, which needs role = "geography"'),
        ({"level": 0, "role": "geography"}, ParameterError, "'level' parameter of codebook column 'x' .* 1 or more"),
        ({"level": True, "role": "geography"}, ParameterError, "'level' parameter"),
        ({"level": 1, "role": "geography", "kind": "numeric"}, InputError, "declare it nominal"),
    ],
)
def test_a_variable_that_contradicts_itself_is_refused_without_its_values(
    settings: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        Variable("x", **settings)  # pyright: ignore[reportArgumentType]
    assert "Zebedee" not in str(caught.value)


def test_true_and_one_are_different_categories() -> None:
    assert Variable("x", categories=(True, 1)).values == (True, 1)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="'x' occurs more than once"):
        Codebook((Variable("x"), Variable("y"), Variable("x")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns.x", "not valid TOML"),
        ("", "one table per column"),
        ("title = 'a'\n[columns.x]", "one table per column"),
        ("[columns]\nx = 1", r"\[columns\.x\]: must be a table"),
        (
            "[columns.x]\nkinds = 'nominal'",
            r"\[columns.x\]: There is no setting 'kinds'. Did you mean: 'kind'",
        ),
        ("[columns.x]\nname = 'y'", "no setting 'name'"),
        ("[columns.x]\ncategories = 'a'", "'categories' must be a list"),
        ("[columns.x]\nmissing = [[1]]", "'missing' must be a list of texts or numbers"),
        ("[columns.x]\ncategories = [2020-01-01]", "'categories' must be a list of texts or numbers"),
        ("[columns.x]\nlevel = true", "'level' must be a whole number"),
        ("[columns.x]\nkind = 1", "'kind' must be a text"),
    ],
)
def test_bad_toml_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Codebook.from_toml(text)


def test_a_codebook_file_is_read_and_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "book.toml"
    path.write_text('[columns.x]\nkind = "ordinal"\ncategories = ["é"]\n', encoding="utf-8")
    assert Codebook.read(path) == Codebook((Variable("x", "ordinal", ("é",)),))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"book\.toml': not UTF-8 text"):
        Codebook.read(path)
    with pytest.raises(InputError, match=r"gone\.toml': No such file"):
        Codebook.read(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="Is a directory"):
        Codebook.read(tmp_path)


@pytest.mark.parametrize(
    "setting",
    [
        "categories = [nan]",
        "missing = [1.5, nan]",
        'labelled = [[nan, "half"]]',
        f"missing_ranges = [[-99, 1{'0' * 400}]]",
    ],
)
def test_nan_is_no_value_of_a_codebook(setting: str) -> None:
    with pytest.raises(QuadrilleError, match="which is no value"):
        Codebook.from_toml(f'[columns.Age]\nkind = "ordinal"\n{setting}\n')
