"""A study: what the people who are asked and the collector agree on before anybody reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.documents.document import plain
from tightrope.documents.escaping import toml_value
from tightrope.documents.study import START, StudyDocument, read_study
from tightrope.errors import InputError, PlanError, listed, nearest
from tightrope.local.mechanisms.bounded_mean import duchi
from tightrope.local.mechanisms.registry import DISTRIBUTION, MEAN, Oracle
from tightrope.local.mechanisms.response import response_with_erasure
from tightrope.local.parts.losses import checked_epsilon
from tightrope.local.parts.values import between as checked_between
from tightrope.local.studies.planning import capped, chosen
from tightrope.numerics.checks import inner_probability
from tightrope.tables.labels import Labels, Name

if TYPE_CHECKING:
    from tightrope.documents import Guarantee
    from tightrope.documents.study import Question

BEST = "best"
ERASURE = "response_with_erasure"
ONE_BIT = "duchi"


def choices(question: object) -> tuple[str, ...]:
    """The mechanisms for a question, by name; ``InputError`` for another question."""
    if question == "distribution":
        return (BEST, *DISTRIBUTION, ERASURE)
    if question == "mean":
        return (BEST, *MEAN)
    raise InputError("question", question, "'distribution' or 'mean'")


@dataclass(frozen=True, slots=True)
class Study:
    """What is asked and how: shares of ``categories``, or the mean of numbers ``between`` two bounds.

    ``choice`` names a mechanism; "best" is the one with the least exact variance (``local.plan``). ``epsilon`` and,
    where it is given, ``total_variation`` bound what one report says: silence keeps the latter in
    ``response_with_erasure`` and ``duchi``, a smaller ε in the others. Raises ``InputError`` for anything that is no
    study.

    >>> study = Study("distribution", 1.0, categories=("tea", "coffee", "water"))
    >>> study.with_mechanism_name.choice, study.guarantee.epsilon <= 1.0
    ('k_randomized_response', True)
    """

    question: Question
    epsilon: float
    categories: tuple[Name, ...] = ()
    between: tuple[float, float] | None = None
    choice: str = BEST
    total_variation: float | None = None
    title: str = ""

    def __post_init__(self) -> None:
        choices(self.question)
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        if self.total_variation is not None:
            eta = inner_probability("total_variation", self.total_variation, "leave it out for no such bound")
            object.__setattr__(self, "total_variation", eta)
        self._check_answers()
        self._check_choice()

    def _check_answers(self) -> None:
        if self.question == "distribution":
            _refuse("between", self.between, "the bounds of a mean")
            # Two names or more: all text or all whole numbers of 64 bits, none twice.
            checked_remedy = "list every answer that somebody may give, once, for example ['yes', 'no']"
            if not isinstance(self.categories, (list, tuple)) or len(self.categories) < 2:
                raise InputError("categories", self.categories, "a list of two names or more", checked_remedy)
            try:
                names = Labels.of(self.categories).names
            except InputError as error:
                raise InputError("categories", error.value, error.expected, checked_remedy) from None
            if not all(map(_storable, names)):
                raise InputError(
                    "categories", len(names), "text in Unicode, or whole numbers of 64 bits", checked_remedy
                )
            object.__setattr__(self, "categories", names)
        else:
            _refuse("categories", self.categories or None, "the answers to a question for shares")
            object.__setattr__(self, "between", checked_between(self.between))

    def _check_choice(self) -> None:
        known = choices(self.question)
        if not isinstance(self.choice, str) or self.choice not in known:
            raise InputError("mechanism", self.choice, f"one of {listed(known)}", nearest(self.choice, known))
        if self.choice == ERASURE and self.total_variation is None:
            remedy = "say how much one report may tell two values apart, for example 0.2"
            raise InputError("total_variation", None, f"given with the mechanism '{ERASURE}'", remedy)

    @property
    def k(self) -> int | None:
        """How many categories there are; None for a mean."""
        return len(self.categories) or None

    @property
    def unit(self) -> float:
        """Half the width of the bounds, in which the errors of a planned mean are stated; 1 for shares."""
        return 1.0 if self.between is None else (self.between[1] - self.between[0]) / 2

    @property
    def with_mechanism_name(self) -> Study:
        """The same study with the best mechanism by its name: to be shared, since a later version may know a better."""
        return self if self.choice != BEST else replace(self, choice=_best(self))

    @property
    def mechanism(self) -> Oracle:
        """What each person runs, and what the collector reads reports with."""
        return _built(self.with_mechanism_name)

    @property
    def guarantee(self) -> Guarantee:
        """What one report says about a person: the realised (ε, 0, η), rounded up."""
        return self.mechanism.guarantee


def _refuse(name: str, value: object, what: str) -> None:
    if value is not None:
        raise InputError(name, value, "left out", f"it is for {what}")


def _storable(name: Name) -> bool:
    """Whether a table can hold the name: half a surrogate pair is no character."""
    if isinstance(name, int):
        return -(1 << 63) <= name < 1 << 63
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _best(study: Study) -> str:
    return chosen(study.question, epsilon=study.epsilon, k=study.k, total_variation=study.total_variation).name


@lru_cache(maxsize=64)
def _built(study: Study) -> Oracle:
    """The mechanism of a settled study."""
    eta = study.total_variation
    if study.choice == ERASURE and eta is not None:
        return response_with_erasure(study.epsilon, eta, len(study.categories))
    if study.choice == ONE_BIT and study.between is not None:
        return duchi(study.epsilon, between=study.between, total_variation=eta)
    make = partial(_make_oracle, study)
    return make(study.epsilon) if eta is None else capped(make, study.epsilon, eta)


def _make_oracle(study: Study, epsilon: float) -> Oracle:
    if study.between is not None:
        return MEAN[study.choice](epsilon, between=study.between)
    return DISTRIBUTION[study.choice](epsilon, len(study.categories))


# A study in a file, TOML or JSON; ``docs/local.md`` describes every key.

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
    return study_of(read_study(_read_text(place), toml=place.suffix != ".json"))


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
    settled = study.with_mechanism_name
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


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanError("study", str(path), f"a file that can be read ({error.strerror})", START) from None
    except UnicodeDecodeError:
        raise PlanError("study", str(path), "a text file (TOML or JSON in UTF-8)", START) from None
