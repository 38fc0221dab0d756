"""Documents of a forger who may run the verifier: none that promises less than what ran is confirmed.

``TIGHTROPE_FORGED=all`` makes and verifies all of them (some ten minutes of one core), else a fixed and cheap sample.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest

from tests.verify import forged
from tests.verify.written import coupling, ledger
from tightrope.verify import accounts
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, REFUTED, worst_verdict

ALL = os.environ.get("TIGHTROPE_FORGED") == "all"
NOTHING = "nothing gained"
"""A change that makes no number smaller, or alters nothing: no forgery."""
FEWEST = 300 if ALL else 35


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """One grid alone for accounts, that confirms small ones."""
    monkeypatch.setattr(accounts, "ACCOUNT_GRID_EXPONENTS", (8,))


def outcome(text: str) -> str:
    """The verdict, or that it is no document."""
    try:
        return worst_verdict(check_document(text)) if text else NOTHING
    except ValueError:
        return "bad input"


@pytest.mark.slow
def test_no_forgery_is_confirmed() -> None:
    found = {(one.sort, one.name): outcome(one.made()) for one in (forged.forgeries() if ALL else forged.sample())}
    for sort in dict.fromkeys(sort for sort, _ in found):
        print(sort, dict(Counter(told for (of, _), told in found.items() if of == sort)))
    print("all", dict(Counter(found.values())))
    assert [one for one, told in found.items() if told == CONFIRMED] == []
    assert sum(told != NOTHING for told in found.values()) >= FEWEST


@pytest.mark.parametrize("name", forged.QUESTIONS if ALL else ["shares", "median by group"])
def test_what_a_forger_begins_with_is_confirmed_also_where_its_numbers_are_stated_anew(name: str) -> None:
    """Else the numbers that a forger writes would give every forgery away, and no structure would be tried."""
    certificate = forged.real(name)
    assert outcome(json.dumps(certificate)) == CONFIRMED
    assert outcome(json.dumps(forged.restated(certificate))) == CONFIRMED


@pytest.mark.parametrize("name", forged.NOISES if ALL else ["sensitivity 3"])
def test_the_noise_that_a_forger_begins_with_is_confirmed(name: str) -> None:
    assert outcome(forged.noise_text(name)) == CONFIRMED


def refuted(data: forged.Data) -> list[str]:
    return [claim.name for claim in check_document(json.dumps(data)) if claim.verdict == REFUTED]


@pytest.mark.parametrize("name", ["median by group", "quantiles by group"])
def test_quantiles_by_group_count_all_rows_of_a_person(name: str) -> None:
    """With one row of two, and the numbers that follow, half the epsilon was confirmed."""
    data = forged.real(name)
    forged.one_row(data)
    assert any("no group of its cells is bounded by itself" in one for one in refuted(data))


@pytest.mark.parametrize("name", ["regression", "deviation"])
def test_products_and_squares_reach_as_far_as_their_sums(name: str) -> None:
    """Noise a hundredth as wide, on a sensitivity a hundredth as large, was confirmed."""
    data = forged.real(name)
    forged.products_that_move_less(data)
    assert any("of sums that reach so far" in one for one in refuted(data))


@pytest.mark.parametrize("name", ["costs", "costs of a ratio", "costs of a deviation"])
def test_a_sum_reaches_as_far_as_the_ends_that_are_counted_beyond(name: str) -> None:
    """A plain sum from 0 to 50 moved by 25, with noise half as wide, was confirmed."""
    data = forged.real(name)
    forged.sums_of_half_the_range(data)
    assert any("of a range this wide" in one for one in refuted(data))


@pytest.mark.parametrize(
    ("alter", "told"),
    [
        (forged.kept_half, "its certificate keeps what was charged"),
        (forged.kept_half, "its certificate names the charge"),
        (forged.charged_once, "is of a charge before it"),
        (forged.another_kind, "kinds of entries that are not known"),
    ],
)
def test_a_ledger_written_anew_contradicts_its_own_answers(alter: forged.Alteration, told: str) -> None:
    data = json.loads(ledger())
    alter(data)
    assert any(told in one for one in refuted(forged.written_anew(data)))


@pytest.mark.parametrize(
    ("alter", "told"),
    [
        (forged.groups_of_one_name, "group.names"),
        (forged.fewer_cells_in_support, "support"),
        (forged.two_axes, "support"),
    ],
)
def test_a_coupling_has_a_name_for_each_group_and_as_many_points_as_its_target(
    alter: forged.Alteration, told: str
) -> None:
    data = json.loads(coupling())
    alter(data)
    assert any(one.startswith(told) for one in refuted(data))
