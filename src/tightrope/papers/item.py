"""Statements of the papers as executable checks, and their results: our number, the paper's, and a verdict.

Items are run one by one; their results are exported as data, and as the table of a page in Markdown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from tightrope.errors import InputError
from tightrope.reporting.charts.panels import Drawing

Values = tuple[float, ...]
Computed = float | Sequence[float]
Judge = Callable[[Values, Values], str]
"""Maps our values and the paper's to a verdict, which begins with agrees, sharper, wrong or not."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Computational effort: random ``instances`` for statements without numbers, ``grid`` points per axis of a figure.

    >>> FULL.instances > COARSE.instances
    True
    """

    instances: int
    grid: int
    coarse: bool = False

    def reduced_instances(self, fraction: float) -> int:
        """Return fewer instances, for slow statements: a fraction of them at coarse effort, otherwise all."""
        return max(4, round(self.instances * fraction)) if self.coarse else self.instances


FULL = Effort(instances=1_000, grid=41)
COARSE = Effort(instances=40, grid=5, coarse=True)
Compute = Callable[[Effort], Computed]
Draw = Callable[[Effort], Sequence[Drawing]]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of an item: our values, the paper's, and the verdict."""

    ours: Values
    printed: Values
    verdict: str

    @property
    def verdict_word(self) -> str:
        """The first word of the verdict: agrees, sharper, wrong or not."""
        return self.verdict.replace(":", " ").split()[0]


@dataclass(frozen=True, slots=True)
class Item:
    """A theorem, a figure or an example: ``statement`` describes the comparison in one line.

    ``ours`` comes from public calls (``call`` names them), ``printed`` from the paper's text or from its formula,
    implemented here independently; only ``judge`` compares the two.
    """

    paper: str
    item: str
    statement: str
    call: str
    ours: Compute
    printed: Compute
    judge: Judge
    draw: Draw | None = None

    def compute_finding(self, effort: Effort) -> Finding:
        """Return our values and the paper's at this effort, compared."""
        ours, printed = as_values(self.ours(effort)), as_values(self.printed(effort))
        return Finding(ours, printed, self.judge(ours, printed))


def as_values(computed: Computed) -> Values:
    """Return one number or several as a tuple of floats.

    >>> as_values(1), as_values([0.5, 2])
    ((1.0,), (0.5, 2.0))
    """
    return (float(computed),) if isinstance(computed, (int, float)) else tuple(map(float, computed))


def printed_number(*values: float) -> Compute:
    """Return a ``Compute`` that returns these numbers, which the paper prints, at any effort."""
    return lambda effort: values


# Judges: from our values and the printed ones to a verdict.

SMALLEST_NUMBER = 1e-300
"""Replaces 0 in divisors and logarithms."""
MAX_AGREED_DIGITS = 15
"""Maximal number of digits of agreement: the precision of floats."""
JUDGE_TOLERANCE = 1e-9
"""Relative differences below this are rounding errors."""
NEGLIGIBLE_VALUE = 1e-14
"""Smaller printed values are treated as 0 up to rounding: differences to them are absolute."""


def agrees_to_digits(digits: int) -> Judge:
    """Return a judge of whether all values agree to ``digits`` digits: absolute near 0, relative otherwise.

    >>> agrees_to_digits(3)((1.0004,), (1.0,)), agrees_to_digits(4)((1.0004,), (1.0,))
    ('agrees to 3 digits', 'not reproduced: off by 0.0004 of the printed value')
    """

    def judge_agreement(ours: Values, printed: Values) -> str:
        difference = largest_difference(ours, printed)
        if not difference <= 10.0**-digits:
            return f"not reproduced: off by {difference:.2g} of the printed value"
        return f"agrees to {shared_digits(difference)} digits"

    return judge_agreement


def agrees_within(tolerance: float) -> Judge:
    """Return a judge of whether values differ by at most ``tolerance``.

    It is half a unit in the last printed place, or the distance from a limit.

    >>> agrees_within(0.005)((0.30011,), (0.3,))
    'agrees within 0.005: off by 0.00011'
    """

    def judge_tolerance(ours: Values, printed: Values) -> str:
        difference = max(abs(a - b) for a, b in _value_pairs(ours, printed))
        if not difference <= tolerance:
            return f"not reproduced: off by {difference:.3g}, more than {tolerance:g}"
        return f"agrees within {tolerance:g}: off by {difference:.2g}"

    return judge_tolerance


def bound_holds(slack: float = JUDGE_TOLERANCE) -> Judge:
    """Return a judge of whether all values are at most the paper's bound.

    >>> bound_holds()((0.98,), (1.0,)), bound_holds()((1.2,), (1.0,))
    ('agrees: no value above the bound; the largest ratio is 0.98', 'not reproduced: 1.2 exceeds 1')
    """

    def judge_upper_bound(ours: Values, printed: Values) -> str:
        for a, b in _value_pairs(ours, printed):
            if not a <= b + slack * max(1.0, abs(b)):
                return f"not reproduced: {a:.6g} exceeds {b:.6g}"
        nearest = max((a / b for a, b in _value_pairs(ours, printed) if b), default=1.0)
        return f"agrees: no value above the bound; the largest ratio is {nearest:.3g}"

    return judge_upper_bound


def bound_attained(digits: int = 9) -> Judge:
    """Return a judge of whether the last value attains the paper's bound, and all others are at most theirs.

    >>> bound_attained()((0.7, 1.0), (1.0, 1.0))
    'agrees: no value above the bound, which is attained to 15 digits'
    """

    def judge_attainment(ours: Values, printed: Values) -> str:
        bound_verdict = bound_holds()(ours, printed)
        attainment_verdict = agrees_to_digits(digits)(ours[-1:], printed[-1:])
        if not (bound_verdict.startswith("agrees") and attainment_verdict.startswith("agrees")):
            return next(text for text in (bound_verdict, attainment_verdict) if not text.startswith("agrees"))
        return f"agrees: no value above the bound, which is attained {attainment_verdict.removeprefix('agrees ')}"

    return judge_attainment


def sharper_bound(ours_is: str = "lower") -> Judge:
    """Return a judge of whether our bound is better, "lower" or "higher" than the paper's.

    Equal values agree, worse ones are not reproduced.

    >>> sharper_bound()((0.5,), (1.0,)), sharper_bound("higher")((1.0,), (1.0,))
    ('sharper by a factor of 2', 'agrees to 15 digits')
    """

    def judge_sharpness(ours: Values, printed: Values) -> str:
        pairs = _value_pairs(ours, printed)
        factors = [gain_factor(a, b) if ours_is == "lower" else gain_factor(b, a) for a, b in pairs]
        if not min(factors) >= 1 - JUDGE_TOLERANCE:
            return f"not reproduced: ours is {1 / max(min(factors), SMALLEST_NUMBER):.4g} times worse"
        largest_factor = max(factors)
        return (
            f"sharper by {as_factor(largest_factor)}"
            if largest_factor > 1 + JUDGE_TOLERANCE
            else agrees_to_digits(9)(ours, printed)
        )

    return judge_sharpness


def paper_is_wrong(because: str, digits: int = 6) -> Judge:
    """Return a judge that finds the paper wrong ``because`` of an error if values differ, and agreement otherwise.

    >>> paper_is_wrong("a sign is lost")((0.5,), (-0.5,))
    'wrong (the paper): a sign is lost; off by 2 of the printed value'
    """

    def judge_error(ours: Values, printed: Values) -> str:
        difference = largest_difference(ours, printed)
        if difference <= 10.0**-digits:
            return f"agrees to {shared_digits(difference)} digits"
        return f"wrong (the paper): {because}; off by {difference:.2g} of the printed value"

    return judge_error


def bound_exceeded(because: str) -> Judge:
    """Return a judge that finds the paper wrong if a value exceeds its bound, and agreement otherwise.

    >>> bound_exceeded("not at large delta")((1.2,), (1.0,))
    'wrong (the paper): not at large delta; 1.2 is above 1'
    >>> bound_exceeded("not at large delta")((0.5,), (1.0,))
    'agrees: no value above the bound; the largest ratio is 0.5'
    """

    def judge_excess(ours: Values, printed: Values) -> str:
        verdict = bound_holds()(ours, printed)
        if verdict.startswith("agrees"):
            return verdict
        a, b = max(_value_pairs(ours, printed), key=lambda pair: pair[0] - pair[1])
        return f"wrong (the paper): {because}; {a:.4g} is above {b:.4g}"

    return judge_excess


def largest_difference(ours: Values, printed: Values) -> float:
    """Return the largest difference, relative to the printed value unless that is 0."""
    differences = []
    for a, b in _value_pairs(ours, printed):
        if a == b:
            differences.append(0.0)
        elif math.isfinite(a) and math.isfinite(b):
            differences.append(abs(a - b) / (abs(b) if abs(b) > NEGLIGIBLE_VALUE else 1.0))
        else:
            differences.append(math.inf)
    return max(differences)


def shared_digits(difference: float) -> int:
    """Return the number of digits to which values with this relative difference agree."""
    return min(MAX_AGREED_DIGITS, math.floor(-math.log10(max(difference, SMALLEST_NUMBER)) + JUDGE_TOLERANCE))


def gain_factor(small: float, large: float) -> float:
    """Return ``large / small``; 1 if they are equal, ∞ if only ``small`` is 0 or only ``large`` is infinite."""
    if small == large:
        return 1.0
    return large / small if small > 0 and math.isfinite(large) else math.inf if small < large else 0.0


def as_factor(value: float) -> str:
    """Format a gain: small ones in percent, others as a factor.

    >>> as_factor(1.05), as_factor(12.3)
    ('5 %', 'a factor of 12.3')
    """
    return f"{100 * (value - 1):.3g} %" if value < 1.5 else f"a factor of {value:.4g}"


def _value_pairs(ours: Values, printed: Values) -> list[tuple[float, float]]:
    """Return pairs of our and the printed values; a single printed number is paired with each of ours."""
    repeated = printed * len(ours) if len(printed) == 1 else printed
    return list(zip(ours, repeated, strict=True))


# Running items, and exporting their results.

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

`tightrope reproduce --out papers.html` recomputes every theorem, example, figure and table of the papers below, and
compares two numbers: ours, from a public function of the library, and the paper's, from its text or its formula. A
statement without numbers is tested on a thousand random instances. `--only GDGK,KM` selects papers, `--coarse` uses
fewer instances, and `--json` prints one object,
`{"items": [{"paper", "item", "statement", "verdict", "ours", "printed", "call"}]}`.

Verdicts: *agrees*; *sharper*: our bound is tighter; *the paper is wrong*: the printed statement or number is wrong
(the verdict says why); *not reproduced*.

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
        "gi.regions.limit_items",
        "gi.composition.training_items",
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
