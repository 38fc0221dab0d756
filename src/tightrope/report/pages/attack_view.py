"""What the best attacker can do, from a stated triple, further points (ε, δ) and rates that a document states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tightrope.certificates.account import Attack
from tightrope.report.pages.attached import CSV, Attached, file_of
from tightrope.report.pages.blocks import Curves, Section
from tightrope.report.pages.page_model import catch_line
from tightrope.report.pictures import curves
from tightrope.report.words import attacker

Points = Sequence[tuple[float, float]]
LARGEST = 1e300
"""Beyond it, no number is drawn."""


def attack_section(
    stated: tuple[float, float], total_variation: float, points: Points, rates: Sequence[Attack]
) -> Section:
    """Both curves, from bounds alone, and the table of rates, those that the document states among them."""
    certificate = _certificate(stated, total_variation, points, rates)
    found = {catch.false_positive_rate: catch for catch in attacker.catches(certificate)}
    own = {one.false_positive_rate: attacker.Catch(one.false_positive_rate, one.true_positive_rate) for one in rates}
    lines = [catch for _, catch in sorted({**found, **_positive(own)}.items())]
    view = Curves(curves.tradeoff(certificate), curves.privacy_profile(certificate), [catch_line(one) for one in lines])
    return Section(
        "attacker", "What an attacker gains", ("Every number here is an upper bound, for every attacker.",), curves=view
    )


def _positive(rates: dict[float, attacker.Catch]) -> dict[float, attacker.Catch]:
    return {rate: catch for rate, catch in rates.items() if rate > 0}


def _certificate(stated: tuple[float, float], eta: float, points: Points, rates: Sequence[Attack]) -> dict[str, Any]:
    """As the pictures read one; what is endless is left out."""
    every = sorted({(0.0, eta), *[(e, d) for e, d in (*points, stated) if 0 <= e <= LARGEST]})
    certificate: dict[str, Any] = {
        "total_variation": eta,
        "profile": {"epsilon": [e for e, _ in every], "delta": [d for _, d in every]},
        "tradeoff": {
            "false_positive_rate": [one.false_positive_rate for one in rates],
            "true_positive_rate": [one.true_positive_rate for one in rates],
        },
    }
    return certificate | ({"epsilon": stated[0], "delta": stated[1]} if stated[0] <= LARGEST else {})


def curve_file(points: Points) -> tuple[Attached, ...]:
    """The points of the curve, where there are some beside the document."""
    if not points:
        return ()
    lines = "".join(f"{epsilon!r},{delta!r}\r\n" for epsilon, delta in points)
    return (
        file_of("curve.csv", "the points of the curves, which are no part of it", CSV, f"epsilon,delta\r\n{lines}"),
    )
