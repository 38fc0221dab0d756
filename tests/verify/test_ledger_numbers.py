"""Numbers of an exported ledger: what would take gigabytes to write out is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tightrope.verify.claims import BrokenError
from tightrope.verify.ledgers import parse_number


@pytest.mark.parametrize("text", ["1e999999999", "1E-999999999", "1/0", "nan", "", "1" * 20_000, "1_0", None])
def test_a_number_that_is_none_or_too_long_is_refused(text: object) -> None:
    with pytest.raises(BrokenError):
        parse_number(text)


def test_what_a_ledger_writes_is_read() -> None:
    assert [parse_number(text) for text in ("0", "0.5", "1E-8", "1/3")] == [
        0,
        Fraction(1, 2),
        Fraction(1, 10**8),
        Fraction(1, 3),
    ]
