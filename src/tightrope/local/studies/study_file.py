"""A study in a file, TOML or JSON; ``docs/local.md`` describes every key."""

from __future__ import annotations

from pathlib import Path

from tightrope.certificates.document import plain
from tightrope.certificates.printable import toml_value
from tightrope.certificates.study import START, StudyDocument, read_study
from tightrope.errors import InputError, PlanError
from tightrope.local.studies.study import Study

STUDY_HEAD = """\
# A study for Tightrope: the people who are asked and the collector share this file.
#   tightrope local perturb FILE DATA --column ANSWER --out reports.parquet   what each person does on their own
#   tightrope local estimate FILE reports.parquet                             what the collector makes of the reports
"""


def load_study(path: str | Path) -> Study:
    """The study in a ``.toml`` or ``.json`` file.

    Raises ``PlanError`` that names the key for anything that is none: unknown or missing keys, another version,
    repeated categories, an ε that is 0, infinite or no number.
    """
    place = Path(path)
    return study_of(read_study(_read(place), toml=place.suffix != ".json"))


def study_of(document: StudyDocument) -> Study:
    """The study that a document describes; raises ``PlanError`` like ``load_study``."""
    try:
        return Study(
            question=document.question,
            epsilon=document.epsilon,
            categories=document.categories or (),
            between=document.between,
            choice=document.mechanism,
            total_variation=document.total_variation,
            title=document.title,
        )
    except InputError as error:
        raise PlanError(f"study {error.name}", error.value, error.expected, error.remedy) from None


def study_document(study: Study) -> StudyDocument:
    """The study as a document, its mechanism by name."""
    settled = study.settled
    return StudyDocument(
        document="study",
        version=1,
        title=settled.title,
        question=settled.question,
        categories=settled.categories or None,
        between=settled.between,
        mechanism=settled.choice,
        epsilon=settled.epsilon,
        total_variation=settled.total_variation,
    )


def study_text(study: Study) -> str:
    """``study_document`` as the text of a TOML file; ``load_study`` reads it back.

    >>> study_text(Study("mean", 1.0, between=(0.0, 50.0))).splitlines()[-4:]
    ['question = "mean"', 'between = [0.0, 50.0]', 'mechanism = "duchi"', 'epsilon = 1.0']
    """
    entries = plain(study_document(study)).items()
    return STUDY_HEAD + "".join(f"{key} = {toml_value(value)}\n" for key, value in entries if value not in (None, ""))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanError("study", str(path), f"a file that can be read ({error.strerror})", START) from None
    except UnicodeDecodeError:
        raise PlanError("study", str(path), "a text file (TOML or JSON in UTF-8)", START) from None
