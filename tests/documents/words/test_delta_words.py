"""The meaning of δ, word for word, in every place that explains it: ``delta.txt`` is the only file that quotes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tightrope as tr
from tightrope.documents.wording import DELTA_ADVICE, DELTA_NAME, likelihood_limit_text
from tightrope.errors import InputError
from tightrope.release.plan_sections import DELTA_COMMENT
from tightrope.release.settings import check_delta, large_delta_warning
from tightrope.reporting.wording.partial_release import PartialCertificate
from tightrope.reporting.wording.promise import privacy_promise

GOLDEN = Path(__file__).with_name("delta.txt")
INPUTS = ("set of answers", "with your data", "without")
SOURCES = Path(tr.__file__).parent


def delta_texts() -> list[str]:
    promises = [privacy_promise(PartialCertificate(epsilon=1.0, delta=delta)) for delta in (1e-8, 0.0, None)]
    with pytest.raises(InputError) as refused:
        check_delta(tr.Budget(epsilon=1, delta="0.2"), ())
    warning = large_delta_warning(tr.Budget(epsilon=1, delta="0.001"))
    return [
        *(likelihood_limit_text(1.0, delta, INPUTS) for delta in (1e-8, 0.0)),
        *(
            text
            for promise in promises
            for text in (promise.epsilon_meaning, promise.delta_name, promise.delta_meaning)
            if text
        ),
        *DELTA_COMMENT.splitlines(),
        f"studio: {DELTA_NAME}; {DELTA_ADVICE}",
        f"refused: {refused.value}",
        f"warning: {warning}",
    ]


def test_the_words_on_delta() -> None:
    assert delta_texts() == GOLDEN.read_text("utf-8").splitlines()


def test_the_words_on_delta_are_in_one_source_file() -> None:
    phrases = (
        "plus a probability of at most",
        ", plus δ",
        "is added to the bound of ε",
        "additional probability",
        "publishing all data",
        "complete loss of privacy",
        "everything about a person",
        "choose a value much smaller than 1/",
    )
    texts = {
        path.relative_to(SOURCES).as_posix(): " ".join(path.read_text("utf-8").split())
        for path in SOURCES.rglob("*")
        if path.suffix in {".py", ".js", ".j2", ".html"}
    }
    for phrase in phrases:
        assert [name for name, text in texts.items() if phrase in text] == ["documents/wording.py"], phrase
