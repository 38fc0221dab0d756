"""The appendix: every source that a formula names is listed, once and in order, and only a release has one."""

from __future__ import annotations

import re

from tests.reporting import released
from tightrope import reporting


def test_every_source_is_named_and_listed() -> None:
    page = reporting.html(released.typical())
    appendix = page.partition('<h2 id="method">')[2]
    named = [int(number) for number in re.findall(r'<a href="#source-(\d+)">\[\1\]</a>', appendix)]
    listed = [int(number) for number in re.findall(r'<li id="source-(\d+)">', appendix)]
    assert named == listed == list(range(1, len(listed) + 1))
    assert len(listed) == 6
    assert appendix.count('class="formula"') == 6
    assert '<a href="#method">' in page


def test_what_lists_no_mechanism_has_no_method() -> None:
    page = reporting.html({"certificate": {"epsilon": 1.0, "delta": 1e-8}})
    assert "method" not in re.sub("<style>.*?</style>", "", page, flags=re.DOTALL)
