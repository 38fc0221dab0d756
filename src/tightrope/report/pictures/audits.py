"""What an attacker was seen to reach, and what a claim allows: true- against false-positive rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import MissingExtraError
from tightrope.numerics.arrays import Floats
from tightrope.report.pictures.plots import ACCENT, INK, QUIET
from tightrope.report.words.attacker import true_positive_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIMED = "#b0563b"
PLACES = 241


def attack_curve(false_positive: Floats, true_positive: Floats, claimed: Sequence[tuple[float, float]]) -> Figure:
    """The proven lower bound as a line with the proven area below it; the claim, points (ε, δ), as a broken line.

    Where the line is above the broken one the claim is refuted. Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "release") from missing
    figure = Figure(figsize=(4.6, 4.6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel("false-positive rate", color=INK)
    axes.set_ylabel("true-positive rate", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.fill_between(false_positive, false_positive, true_positive, color=ACCENT, alpha=0.12, linewidth=0)
    axes.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1, label="coin flip")
    axes.plot(false_positive, true_positive, color=ACCENT, linewidth=2, label="proven, at least")
    if claimed:
        rates = (1 - np.cos(np.linspace(0, np.pi, PLACES))) / 2
        allowed = [true_positive_rate(claimed, rate) for rate in rates.tolist()]
        axes.plot(rates, allowed, color=CLAIMED, linestyle=(0, (5, 2)), linewidth=1.5, label="claimed, at most")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="lower right", frameon=False)
    return figure
