"""A noise certificate is written and read back equal; what does not follow from its numbers is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tightrope.documents import Budget
from tightrope.documents.document import to_json_text
from tightrope.documents.noise import NoiseCertificate, read_noise
from tightrope.errors import InputError
from tightrope.noise.least_noise import least_noise

BUDGET = Budget(epsilon=1, delta="1e-6")
ASKED: dict[str, dict[str, Any]] = {
    "a theorem": {},
    "a dual": {"sensitivity": 3},
    "a single release": {"releases": 4},
    "any shape": {"sensitivity": 2, "shape": "any", "cost": "squared"},
    "real numbers": {"integer": False},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_written_and_read_back_equal(asked: dict[str, Any]) -> None:
    found = least_noise(BUDGET, **asked).certificate
    assert read_noise(to_json_text(found.to_document())) == found
    assert found.to_document().gap == found.gap


def test_a_trade_off_function_too() -> None:
    found = least_noise(Budget(tradeoff=lambda t: max(0.0, 1 - 2 * t, (1 - t) / 2))).certificate
    assert read_noise(to_json_text(found.to_document())) == found


def test_noise_without_limit() -> None:
    found = least_noise(Budget(epsilon=1, delta=0)).certificate
    assert found.worst_error == math.inf
    assert found.to_document().worst_error is None
    assert read_noise(to_json_text(found.to_document())) == found


@pytest.fixture(scope="module")
def certificate() -> NoiseCertificate:
    return least_noise(BUDGET, sensitivity=2).certificate


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gap": 0.5}, "noise certificate gap"),
        ({"lower": -1.0}, "noise certificate lower"),
        ({"guarantee": {"epsilon": 1.0, "delta": 0.1, "total_variation": 0.01}}, "admissible guarantee"),
        ({"guarantee": {"epsilon": 1.0, "delta": 0.1}}, "noise certificate guarantee total_variation"),
        ({"argument": {"kind": "dul", "statement": "", "numbers": {}}}, "did you mean 'dual'"),
        ({"sensitivty": 1}, "did you mean 'sensitivity'"),
        ({"realised": [[1.0, 0.1]]}, "noise certificate realised 1"),
        ({"version": 3}, "noise certificate version"),
    ],
)
def test_what_is_wrong_is_named(certificate: NoiseCertificate, changes: dict[str, Any], said: str) -> None:
    data = json.loads(to_json_text(certificate.to_document())) | changes
    with pytest.raises(InputError, match=said):
        read_noise(json.dumps(data))


def test_numbers_of_the_argument_do_not_flood_a_traceback(certificate: NoiseCertificate) -> None:
    assert "multipliers" in certificate.argument.numbers
    assert "multipliers" not in repr(certificate)
