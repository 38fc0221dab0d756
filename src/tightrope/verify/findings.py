"""Findings of a study: what can be said of them without the mechanism's whole table of probabilities."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tightrope.verify.claims import OPEN, Claim, at_most, fact, unchecked


def findings_claims(data: dict[str, Any]) -> list[Claim]:
    """Numbers that are written twice; that more reports tell more. What one report tells is not in the document."""
    privacy, claims = data["privacy"], []
    for name, part in (("privacy", privacy), *((f"repeated {one['reports']}", one) for one in privacy["repeated"])):
        right = part["attack_success"]
        claims.append(at_most(f"{name}.attack_success", (1 + part["total_variation"]) / 2, right, _near(part)))
    for number, chance in enumerate(data["mechanism"]["probabilities"]):
        claims.append(fact(f"probabilities[{number}].value", chance["value"], float(Fraction(chance["exact"]))))
    claims.append(at_most("answered", data["answered"], data["reports"], data["answered"] <= data["reports"]))
    why = "what one report tells follows from the whole table of the mechanism, which findings do not hold"
    claims.append(Claim("privacy.epsilon", repr(privacy["epsilon"]), why, OPEN))
    return [*claims, unchecked("estimates, effort, confidence, title", "what was found: no claim of privacy")]


def _near(part: dict[str, Any]) -> bool:
    """Whether the attacker's success is (1 + η)/2, but for rounding."""
    return bool(abs(part["attack_success"] - (1 + part["total_variation"]) / 2) <= 1e-12)
