"""Letters stand out from the paper by 4.5 : 1 and what is drawn by 3 : 1, in light, in dark and in print."""

from __future__ import annotations

import re
from importlib import resources
from itertools import product

import pytest

TEMPLATES = resources.files("tightrope.reporting") / "templates"
CSS = (TEMPLATES / "report.css").read_text(encoding="utf-8")
LETTERS, DRAWN, PAPERS = ("ink", "quiet", "accent"), ("accent", "stem", "bar", "quiet"), ("paper", "raised")


def themes() -> dict[str, dict[str, str]]:
    """The colors of each theme by their names; what a theme does not say is as in the light one."""
    blocks = re.findall(r"(@media[^{]*\{\s*)?:root \{([^}]*)\}", CSS)
    named = [(media, dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", body))) for media, body in blocks]
    light = named[0][1]
    return {"light" if not media else media.split("{")[0].strip(): light | own for media, own in named}


def luminance(color: str) -> float:
    """Of a color in sRGB, as WCAG 2 defines it."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    channels = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_there_are_three_themes() -> None:
    assert set(themes()) == {"light", "@media (prefers-color-scheme: dark)", "@media print"}
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", themes())
def test_letters_and_drawings_stand_out(theme: str) -> None:
    colors = themes()[theme]
    for name, paper in product(LETTERS, PAPERS):
        assert contrast(colors[name], colors[paper]) >= 4.5, (name, paper)
    for name, paper in product(DRAWN, PAPERS):
        assert contrast(colors[name], colors[paper]) >= 3, (name, paper)


def test_what_carries_a_number_is_drawn_in_these_colors_and_in_full() -> None:
    carried = [
        "whisker",
        "dot",
        "arrow",
        "curve",
        "coin",
        "fill",
        "bar",
        "stem",
        "coin-right",
        "more-right",
        "wrong",
        "base",
    ]
    for name in carried:
        rules = [
            body for names, body in re.findall(r"([^{}]+)\{([^{}]*)\}", CSS) if f".{name}" in re.split(r"[\s,]+", names)
        ]
        painted = {color for body in rules for color in re.findall(r"(?:fill|stroke): var\(--([a-z-]+)\)", body)}
        assert painted and painted <= {*DRAWN, "paper"}, name
        assert not any("opacity" in body for body in rules), name


def test_words_on_colored_ground_stand_out() -> None:
    papers = (TEMPLATES / "papers.html.j2").read_text(encoding="utf-8")
    grounds = re.findall(r"\.(?:agrees|sharper|wrong|not) \{ background: (#[0-9a-f]{6}); \}", papers)
    assert len(grounds) == 4
    assert min(contrast(ground, "#fff") for ground in grounds) >= 4.5
