"""All items of all papers, in the order of the papers."""

from __future__ import annotations

from collections.abc import Iterable

from tightrope.errors import InputError
from tightrope.reproduce.aac import bayesian, minimax, testing
from tightrope.reproduce.aac import contraction as e_gamma
from tightrope.reproduce.gdgk import bounds, gaussians, tightness
from tightrope.reproduce.gi import asymptotics, composition, local_model, mechanisms, regions, training
from tightrope.reproduce.gi import contraction as kl
from tightrope.reproduce.gi_v1 import divergences as outputs
from tightrope.reproduce.gi_v1 import leakage
from tightrope.reproduce.item import Item
from tightrope.reproduce.km import couplings, rules
from tightrope.reproduce.km import divergences as between_laws

TITLES = {
    "GDGK": "Geng, Ding, Guo, Kumar: Tight Analysis of Privacy and Utility Tradeoff in Approximate DP",
    "GI": "Ghazi, Issa: Total Variation Meets Differential Privacy",
    "GI-v1": "Ghazi, Issa: Total Variation Meets Differential Privacy, first version",
    "AAC": "Asoodeh, Aliakbarpour, Calmon: Local Differential Privacy Is Equivalent to Contraction of E_γ-Divergence",
    "KM": "Kawamoto, Murakami: Local Distribution Obfuscation via Probability Coupling",
}
_ROOMS = (
    (bounds, tightness, gaussians),
    (regions, composition, mechanisms, asymptotics, training, local_model, kl),
    (outputs, leakage),
    (e_gamma, minimax, bayesian, testing),
    (between_laws, couplings, rules),
)
ITEMS: dict[str, tuple[Item, ...]] = {
    paper: tuple(item for room in rooms for item in room.items) for paper, rooms in zip(TITLES, _ROOMS, strict=True)
}


def items(papers: Iterable[str] | None = None) -> tuple[Item, ...]:
    """The items of some papers, or of all; raises ``InputError`` for a paper that is none of ``TITLES``.

    >>> {item.paper for item in items(["GDGK"])}, len(items()) > 139
    ({'GDGK'}, True)
    """
    chosen = list(TITLES) if papers is None else list(papers)
    for paper in chosen:
        if paper not in ITEMS:
            raise InputError("only", paper, f"some of {', '.join(ITEMS)}", "separate several by commas: GDGK,KM")
    return tuple(item for paper in ITEMS if paper in chosen for item in ITEMS[paper])
