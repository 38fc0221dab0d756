"""Findings as ``tightrope local estimate --json`` prints them: shares of states, and a mean."""

from __future__ import annotations

from typing import Any

from tests.reporting.states import STATES, wobble
from tightrope.documents.study import FINDINGS, FindingsDocument


def repeated(reports: int, epsilon: float, success: float) -> dict[str, Any]:
    eta = 2 * success - 1
    return {"reports": reports, "epsilon": epsilon, "delta": 1e-6, "total_variation": eta, "attack_success": success}


def estimate(place: int, name: str) -> dict[str, Any]:
    value = 0.02 + 0.02 * wobble(place)
    ends = {"lower": value - 0.0214, "upper": value + 0.0217}
    return {"category": name, "value": value, **ends, "people": value * 29_501, "consistent": max(0.0, value - 0.001)}


def states() -> FindingsDocument:
    """Fifty shares, silent reports among them, with everything that can be asked for."""
    return FINDINGS.convert_data(_states(), FindingsDocument)


def _states() -> dict[str, Any]:
    names = [name.replace("_", " ") for name in STATES.split()]
    return {
        "document": "findings",
        "version": 1,
        "title": "Where people live",
        "question": "distribution",
        "bounds": None,
        "reports": 29_501,
        "answered": 20_000,
        "confidence": 0.95,
        "simultaneous": True,
        "estimates": [estimate(place, name) for place, name in enumerate(names)],
        "effort": {
            "people": 29_501,
            "error": 0.01095,
            "least_people": 144,
            "least_people_interactive": 140,
            "best": "subset_selection",
            "best_people": 25_000,
        },
        "privacy": {
            "epsilon": 0.9999999999999974,
            "delta": 0.0,
            "total_variation": 0.2376,
            "attack_success": 0.6188,
            "repeated": [repeated(1, 0.9999973, 0.6188), repeated(10, 9.98, 0.8598), repeated(100, 53.95, 0.99972)],
        },
        "mechanism": {
            "name": "response_with_erasure",
            "report_bits": 6,
            "probabilities": [
                {"meaning": "a report supports the own category", "exact": "4676566815193813727/9223372036854775808",
                 "value": 0.507034390080675},
                {"meaning": "a report says anything", "exact": "1/1", "value": 1.0},
            ],
        },
    }  # fmt: skip


def mean() -> FindingsDocument:
    """One number."""
    document, ends = _states(), {"value": 23.6312, "lower": 23.0123, "upper": 24.2501}
    data = {
        **document,
        "title": "Years of experience",
        "question": "mean",
        "bounds": [0.0, 50.0],
        "answered": 29_501,
        "simultaneous": False,
        "estimates": [{"category": None, **ends, "people": None, "consistent": None}],
        "effort": {
            "people": 29_501,
            "error": 0.315,
            "least_people": 28_417,
            "least_people_interactive": 28_417,
            "best": "duchi",
            "best_people": 29_501,
        },
        "mechanism": {**document["mechanism"], "name": "duchi", "report_bits": 1},
    }
    return FINDINGS.convert_data(data, FindingsDocument)
