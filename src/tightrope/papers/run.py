"""Run items one by one, and export the results: as data, and as the table of a page in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module

from tightrope.errors import InputError
from tightrope.papers.item import Effort, Finding, Item, Values

VERDICT_WORDS = ("agrees", "sharper", "wrong", "not")
"""First words of verdicts; "wrong" means that the paper is wrong."""
Finished = Callable[[Item], None]


@dataclass(frozen=True, slots=True)
class ItemResult:
    """An item with its finding, and its pictures as SVG."""

    item: Item
    finding: Finding
    pictures: tuple[str, ...] = ()

    @property
    def result_data(self) -> dict[str, object]:
        """Return the result as plain data: one number as such, several as a list."""
        return {
            "paper": self.item.paper,
            "item": self.item.item,
            "statement": self.item.statement,
            "verdict": self.finding.verdict,
            "ours": plain_values(self.finding.ours),
            "printed": plain_values(self.finding.printed),
            "call": self.item.call,
        }


def run_items(
    items: Iterable[Item], effort: Effort, *, pictures: bool = False, finished: Finished = lambda item: None
) -> list[ItemResult]:
    """Compute every item, and draw its pictures if ``pictures``; ``finished`` is called after each item."""
    results = []
    for item in items:
        results.append(ItemResult(item, item.compute_finding(effort), draw_item(item, effort) if pictures else ()))
        finished(item)
    return results


def draw_item(item: Item, effort: Effort) -> tuple[str, ...]:
    """Return the pictures of an item as SVG."""
    from tightrope.reporting.charts.panels import render_svg

    return () if item.draw is None else tuple(render_svg(picture) for picture in item.draw(effort))


def plain_values(values: Values) -> float | list[float]:
    """Return one value as a number, several as a list.

    >>> plain_values((1.0,)), plain_values((1.0, 2.0))
    (1.0, [1.0, 2.0])
    """
    return values[0] if len(values) == 1 else list(values)


def verdict_counts(results: Iterable[ItemResult]) -> dict[str, int]:
    """Return the number of verdicts that begin with each word."""
    counts = Counter(result.finding.verdict_word for result in results)
    return {word: counts[word] for word in VERDICT_WORDS if counts[word]}


def verdict_words(results: Iterable[ItemResult]) -> dict[str, dict[str, str]]:
    """Return the first word of each verdict, by paper and item."""
    words: dict[str, dict[str, str]] = {}
    for result in results:
        words.setdefault(result.item.paper, {})[result.item.item] = result.finding.verdict_word
    return words


def page_in_markdown(items: Iterable[Item], verdicts: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page docs/papers.md: an introduction, and a row for each item."""
    lines = [TABLE_HEAD]
    for item in items:
        verdict = verdicts[item.paper][item.item]
        cells = (item.paper, item.item, item.statement, f"`{item.call}`", VERDICT_TEXTS.get(verdict, verdict))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return INTRODUCTION + "\n".join(lines) + "\n"


INTRODUCTION = """# The papers, statement by statement

`tightrope reproduce --out papers.html` runs every theorem, example, figure and table of the papers below: our
number from a public call, the paper's from its text or from its formula, and the verdict from comparing the two. What a
paper states without numbers is tried on a thousand random instances. `--only GDGK,KM` takes some papers, `--coarse`
fewer instances, and `--json` prints one object,
`{"items": [{"paper", "item", "statement", "verdict", "ours", "printed", "call"}]}`.

Verdicts: *agrees*; *sharper*, where our bound is the better one; *the paper is wrong*, where what is printed is not
what comes out (the verdict itself says why); *not reproduced*.

| short name | paper |
|---|---|
| GDGK | Geng, Ding, Guo, Kumar: Tight Analysis of Privacy and Utility Tradeoff in Approximate Differential Privacy |
| GI | Ghazi, Issa: Total Variation Meets Differential Privacy |
| GI-v1 | the same, first version |
| AAC | Asoodeh, Aliakbarpour, Calmon: Local Differential Privacy Is Equivalent to Contraction of E_γ-Divergence |
| KM | Kawamoto, Murakami: Local Distribution Obfuscation via Probability Coupling |

The table is written by `scripts/papers.py`.

"""
TABLE_HEAD = "| paper | item | what is compared | call | verdict |\n|---|---|---|---|---|"


VERDICT_TEXTS = {"wrong": "the paper is wrong", "not": "not reproduced"}
"""Texts in the table for verdict words that would mislead alone."""

# The items of all papers.

TITLES = {
    "GDGK": "Geng, Ding, Guo, Kumar: Tight Analysis of Privacy and Utility Tradeoff in Approximate DP",
    "GI": "Ghazi, Issa: Total Variation Meets Differential Privacy",
    "GI-v1": "Ghazi, Issa: Total Variation Meets Differential Privacy, first version",
    "AAC": "Asoodeh, Aliakbarpour, Calmon: Local Differential Privacy Is Equivalent to Contraction of E_γ-Divergence",
    "KM": "Kawamoto, Murakami: Local Distribution Obfuscation via Probability Coupling",
}
ITEM_LISTS = {
    "GDGK": ("gdgk.bounds.items", "gdgk.bounds.tightness_items", "gdgk.bounds.gaussians_items"),
    "GI": (
        "gi.regions.items",
        "gi.composition.items",
        "gi.mechanisms.items",
        "gi.asymptotics.items",
        "gi.training.items",
        "gi.local_model.items",
        "gi.contraction.items",
    ),
    "GI-v1": ("gi_v1.divergences.items", "gi_v1.divergences.leakage_items"),
    "AAC": ("aac.contraction.items", "aac.minimax.items", "aac.bayesian.items", "aac.minimax.testing_items"),
    "KM": ("km.divergences.items", "km.couplings.items", "km.rules.items"),
}
"""The lists of items of each paper, as module and name; modules are imported when needed."""


def select_items(papers: Iterable[str] | None = None) -> tuple[Item, ...]:
    """Return the items of some papers, or of all; raises ``InputError`` for a paper that is not in ``TITLES``.

    >>> {item.paper for item in select_items(["GDGK"])}, len(select_items()) > 139
    ({'GDGK'}, True)
    """
    selected = list(TITLES) if papers is None else list(papers)
    for paper in selected:
        if paper not in ITEM_LISTS:
            text = f"unknown paper; known papers: {', '.join(ITEM_LISTS)}. Separate several with commas"
            raise InputError.from_text(f"--only {paper}", text)
    groups = [name.rpartition(".") for paper, names in ITEM_LISTS.items() if paper in selected for name in names]
    return tuple(
        item for module, _, name in groups for item in getattr(import_module(f"tightrope.papers.{module}"), name)
    )
