"""Run items one by one, and write down what came out: as data, and as the table of a page in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tightrope.reproduce.item import Effort, Finding, Item, Values

WORDS = ("agrees", "sharper", "wrong", "not")
"""How verdicts begin; "wrong" is the paper."""
Finished = Callable[[Item], None]


@dataclass(frozen=True, slots=True)
class Result:
    """An item with what came out, and its pictures as SVG."""

    item: Item
    finding: Finding
    pictures: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, object]:
        """The result as plain data: one number as such, several as a list."""
        return {
            "paper": self.item.paper,
            "item": self.item.item,
            "statement": self.item.statement,
            "verdict": self.finding.verdict,
            "ours": plain(self.finding.ours),
            "printed": plain(self.finding.printed),
            "call": self.item.call,
        }


def run(
    items: Iterable[Item], effort: Effort, *, pictures: bool = False, finished: Finished = lambda item: None
) -> list[Result]:
    """Compute every item, and draw those that have pictures if asked; ``finished`` is told of each."""
    results = []
    for item in items:
        results.append(Result(item, item.compute(effort), drawn(item, effort) if pictures else ()))
        finished(item)
    return results


def drawn(item: Item, effort: Effort) -> tuple[str, ...]:
    """The pictures of an item."""
    from tightrope.report.pictures.panels import svg

    return () if item.draw is None else tuple(svg(picture) for picture in item.draw(effort))


def plain(values: Values) -> float | list[float]:
    """One value as a number, several as a list.

    >>> plain((1.0,)), plain((1.0, 2.0))
    (1.0, [1.0, 2.0])
    """
    return values[0] if len(values) == 1 else list(values)


def counted(results: Iterable[Result]) -> dict[str, int]:
    """How many verdicts begin with each word."""
    found = Counter(result.finding.word for result in results)
    return {word: found[word] for word in WORDS if found[word]}


def words(results: Iterable[Result]) -> dict[str, dict[str, str]]:
    """The first word of each verdict, by paper and item."""
    found: dict[str, dict[str, str]] = {}
    for result in results:
        found.setdefault(result.item.paper, {})[result.item.item] = result.finding.word
    return found


def markdown(items: Iterable[Item], verdicts: Mapping[str, Mapping[str, str]]) -> str:
    """A table in Markdown: paper, item, what is compared, call, verdict."""
    lines = ["| paper | item | what is compared | call | verdict |", "|---|---|---|---|---|"]
    lines += [_line(item, verdicts[item.paper][item.item]) for item in items]
    return "\n".join(lines) + "\n"


def _line(item: Item, verdict: str) -> str:
    cells = (item.paper, item.item, item.statement, f"`{item.call}`", SAID.get(verdict, verdict))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


SAID = {"wrong": "the paper is wrong", "not": "not reproduced"}
"""Verdicts in a table, where the word alone would mislead."""
