"""Names and numbers: what is named comes back, everything else is absent, other kinds are refused."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest

from tightrope.errors import InputError, SchemaError
from tightrope.tables.labels import Labels


@pytest.mark.parametrize("names", [["c", "a", "b"], [30, -10, 20]])
def test_there_and_back(names: list[str] | list[int]) -> None:
    labels, numbers = Labels.from_names(names), np.array([2, 0, 0, 1])
    assert labels.label_numbers(labels.names_by_number(numbers)).tolist() == numbers.tolist()
    chunked = pyarrow.chunked_array([labels.names_by_number(numbers), labels.names_by_number(numbers)])
    assert labels.label_numbers(chunked).tolist() == [*numbers, *numbers]


def test_what_is_no_name_is_absent() -> None:
    column = pyarrow.array(["a", None, "A", "", "b"])
    assert Labels.from_names(["a", "b"]).label_numbers(column).tolist() == [0, -1, -1, -1, 1]
    assert Labels.from_names([1, 2]).label_numbers(pyarrow.array([2, None, 3], pyarrow.uint8())).tolist() == [1, -1, -1]


def test_encodings_do_not_matter() -> None:
    column = pyarrow.array(["b", "a"]).dictionary_encode()
    assert Labels.from_names(["a", "b"]).label_numbers(column).tolist() == [1, 0]
    assert Labels.from_names(["a", "b"]).label_numbers(pyarrow.array(["b"], pyarrow.large_string())).tolist() == [1]


def test_other_kinds_are_refused() -> None:
    for names, column in ((["1"], [1]), ([1], ["1"]), ([1], [1.0]), ([1], [True])):
        with pytest.raises(SchemaError, match="cast the column"):
            Labels.from_names(names).label_numbers(pyarrow.array(column))


@pytest.mark.parametrize("names", [[], ["a", "a"], ["a", 1], [1.5], [True, False], [None]])
def test_labels_that_are_none(names: list[object]) -> None:
    with pytest.raises(InputError, match="labels"):
        Labels.from_names(names)  # type: ignore[arg-type]


def test_numbers_beyond_64_bits_are_no_names_and_are_not_shown() -> None:
    column = pyarrow.array([2**64 - 1, 2**63, 7, None, 2**63 - 1], pyarrow.uint64())
    assert Labels.from_names([-1, 7, -(2**63), 2**63 - 1]).label_numbers(column).tolist() == [-1, -1, 1, -1, 3]
    assert Labels.from_names([7]).label_numbers(column.dictionary_encode()).tolist() == [-1, -1, 0, -1, -1]
    assert (
        Labels.from_names([7]).label_numbers(pyarrow.chunked_array([column, column])).tolist()
        == [-1, -1, 0, -1, -1] * 2
    )
    with pytest.raises(InputError, match="64 bits"):
        Labels.from_names([1, 2**63])
