"""Docstrings as pages show them: examples in fences, so that Markdown leaves them as they are."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^|(?<=\n))( *)>>> .*?(?=\n\s*\n(?! *>>>)|\Z)", re.DOTALL)


class FencedExamples(griffe.Extension):
    """Puts every doctest of a docstring into a fence."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Each run of examples, up to an empty line that none follows, as a block of code."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{found.group(0)}\n```", text)
