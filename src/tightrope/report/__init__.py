"""What a release or a study says, for people: one self-contained HTML page, and pictures for a paper or a notebook.

>>> from tightrope import report
>>> report.html({"title": "census"}).startswith("<!doctype html>")
True
"""

from __future__ import annotations

from tightrope.report.pages.page import html, study_html
from tightrope.report.pictures import plots

__all__ = ["html", "plots", "study_html"]
