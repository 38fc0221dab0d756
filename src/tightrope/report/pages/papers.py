"""The page of the papers: every statement with our number, the paper's, the verdict and the pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tightrope.report.pages.page import environment

TEMPLATE = "papers.html.j2"
SHOWN = 4
"""Numbers of a long row that are written out."""


@dataclass(frozen=True, slots=True)
class Card:
    """One statement as it is written."""

    item: str
    statement: str
    word: str
    verdict: str
    ours: str
    printed: str
    call: str
    pictures: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: its name, its title, its statements."""

    name: str
    title: str
    cards: tuple[Card, ...]


def papers_html(
    results: Sequence[Mapping[str, Any]], pictures: Sequence[Sequence[str]], titles: Mapping[str, str]
) -> str:
    """One self-contained HTML page.

    ``results``: what ``tightrope reproduce --json`` prints under "items"; ``pictures``: for each, its SVG elements, as
    ``report.pictures.panels.svg`` writes them; ``titles``: of the papers by their short names. Texts are escaped, the
    pictures are not. Raises ``MissingExtraError`` without jinja2.
    """
    cards = [(one["paper"], _card(one, drawn)) for one, drawn in zip(results, pictures, strict=True)]
    papers = [
        Paper(name, titles[name], tuple(card for _, card in group))
        for name, group in groupby(cards, key=lambda pair: pair[0])
    ]
    counts = {word: sum(card.word == word for _, card in cards) for word in ("agrees", "sharper", "wrong", "not")}
    return environment().get_template(TEMPLATE).render(papers=papers, counts=counts, total=len(cards)).lstrip()


def _card(one: Mapping[str, Any], drawn: Sequence[str]) -> Card:
    from markupsafe import Markup

    word = one["verdict"].replace(":", " ").split()[0]
    shapes = tuple(Markup(picture) for picture in drawn)  # noqa: S704 - drawn by us, all text in it as paths
    ours, printed = written(one["ours"]), written(one["printed"])
    return Card(one["item"], one["statement"], word, one["verdict"], ours, printed, one["call"], shapes)


def written(values: float | Sequence[float]) -> str:
    """One number, or the first few of many.

    >>> written(0.46211715726), written([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    ('0.4621171573', '1, 2, 3, 4, … (6 values)')
    """
    if isinstance(values, (int, float)):
        return f"{values:.10g}"
    first = ", ".join(f"{value:.6g}" for value in values[:SHOWN])
    return first if len(values) <= SHOWN else f"{first}, … ({len(values)} values)"
