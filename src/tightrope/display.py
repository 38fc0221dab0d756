"""How a result looks in a terminal and in a notebook: a title and a few facts, as data until they are shown.

The text, the table and the figures are made by ``tightrope.reporting``, a higher layer, which is loaded on first use.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from matplotlib import figure

    Figure = figure.Figure


class Rounded(NamedTuple):
    """A number and the direction in which it is rounded for readers: bounds stay bounds."""

    value: float
    direction: Literal["up", "down", "nearest"] = "nearest"


Shown = str | int | Rounded | None
"""A text, an integer, or a number to be rounded; None is shown as a dash."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What is shown of an object: a title, pairs of a name and what it is, and a table with named columns.

    Texts may come from data: they are escaped where they are shown.
    """

    title: str
    facts: Sequence[tuple[str, Shown]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Shown]] = ()


class Displayed:
    """A base of objects that are shown as a short text, and in a notebook as a table.

    A dataclass needs ``repr=False``, otherwise it has its own text.
    """

    __slots__ = ()

    def text_summary(self) -> Summary:
        """Return the summary for a terminal, quick to compute; a class without it must define ``__repr__`` itself."""
        raise NotImplementedError

    def notebook_summary(self) -> Summary:
        """Return the summary for a notebook, by default the same one."""
        return self.text_summary()

    def __repr__(self) -> str:
        text: str = reporting_package().summary_text(type(self).__name__, self.text_summary())
        return text

    def _repr_html_(self) -> str:
        html: str = reporting_package().summary_html(type(self).__name__, self.notebook_summary())
        return html


def reporting_package() -> Any:
    """Return ``tightrope.reporting``, whose layer is above the objects that it shows; its ``plots`` draw figures."""
    return importlib.import_module("tightrope.reporting")
