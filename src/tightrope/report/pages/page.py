"""The pages: one HTML file each that needs nothing beside itself; the script in it sorts tables, and may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from tightrope.certificates.account import Account, TrainingAccount
from tightrope.certificates.coupling import CouplingDocument
from tightrope.certificates.noise import NoiseDocument
from tightrope.certificates.printable import printable_lines
from tightrope.certificates.study import FindingsDocument, StudyDocument
from tightrope.errors import InputError, MissingExtraError
from tightrope.report.pages.account_page import account_view, training_view
from tightrope.report.pages.attack_view import Points
from tightrope.report.pages.blocks import DocumentPage, Table
from tightrope.report.pages.coupling_page import coupling_view
from tightrope.report.pages.noise_page import noise_view
from tightrope.report.pages.page_model import page_view
from tightrope.report.pages.plan_page import plan_view
from tightrope.report.pages.policy import policy
from tightrope.report.pages.study_page import study_view

if TYPE_CHECKING:
    from jinja2 import Environment

    from tightrope.certificates.release import ReleaseResult

TEMPLATE, STUDY, DOCUMENT = "report.html.j2", "study.html.j2", "document.html.j2"


def html(document: ReleaseResult | Mapping[str, object]) -> str:
    """The report of a release as one self-contained HTML page.

    ``document`` is the result of a release, or the JSON object that ``tightrope release --json`` prints: there any
    field may be missing or null, unknown ones are ignored, and every text in it is escaped. The same
    document gives the same bytes. Raises InputError where ``document`` is neither, MissingExtraError without jinja2.

    >>> "right at most 65 % of the time" in html({"certificate": {"total_variation": 0.3}})
    True
    """
    data = document if isinstance(document, Mapping) else _result(document)
    return environment().get_template(TEMPLATE).render(page=page_view(data))


def _result(document: object) -> Mapping[str, object]:
    from tightrope.certificates.document import plain
    from tightrope.certificates.release import ReleaseResult

    if isinstance(document, ReleaseResult):
        return plain(document)
    raise InputError("document", document, "a mapping", "pass json.loads() of what `tightrope release --json` prints")


def study_html(document: FindingsDocument) -> str:
    """The report of a study in which nobody was trusted, as one self-contained HTML page.

    ``document`` is what ``Findings.document`` gives, or ``certificates.study.read_findings`` of what
    ``tightrope local estimate --json`` prints. Every text in it is escaped; the same document gives the same bytes.
    Raises ``InputError`` where it is none, ``MissingExtraError`` without jinja2.
    """
    if not isinstance(document, FindingsDocument):
        remedy = "certificates.study.read_findings reads what `tightrope local estimate --json` prints"
        raise InputError("document", type(document).__name__, "findings", remedy)
    return environment().get_template(STUDY).render(page=study_view(document)).lstrip()


def document_html(
    document: Account | TrainingAccount | NoiseDocument | StudyDocument | CouplingDocument,
    *,
    curve: Sequence[tuple[float, float]] = (),
    tables: Sequence[Table] = (),
) -> str:
    """One document as one self-contained HTML page: the promise in words, its numbers, curves, formulas, and itself.

    ``document`` is an account, a training account, a noise, a study or a coupling (``tightrope.certificates``);
    ``curve`` holds further points (ε, δ), each of them a bound, for the curves of an attacker, and ``tables`` what else
    is to be shown. Every text is escaped; the same arguments give the same bytes. Raises ``InputError`` for anything
    else, ``MissingExtraError`` without jinja2.
    """
    view = _VIEWS.get(type(document))
    if view is None:
        remedy = "html takes the result of a release, study_html findings"
        raise InputError("document", type(document).__name__, "an account, a noise, a study or a coupling", remedy)
    return environment().get_template(DOCUMENT).render(page=view(document, curve, tables)).lstrip()


_VIEWS: dict[type[Any], Callable[[Any, Points, Sequence[Table]], DocumentPage]] = {
    Account: account_view,
    TrainingAccount: training_view,
    NoiseDocument: noise_view,
    StudyDocument: plan_view,
    CouplingDocument: coupling_view,
}


def environment() -> Environment:
    """Templates of this package, everything escaped, an undefined name being an error."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as missing:
        raise MissingExtraError("jinja2", "release") from missing
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_seen,
    )
    environment.filters["at"] = _at
    environment.globals |= _inside()
    return environment


def _inside() -> dict[str, str]:
    """The style and the script as they stand in every page, and the policy that lets these two alone in."""
    from markupsafe import Markup

    style, script = _source("report.css"), _source("sort.js")
    shown = {"style": Markup(style), "script": Markup(script)}  # noqa: S704 - files of this package
    return {**shown, "policy": policy(style, script)}


def _seen(value: object) -> object:
    """What a template places: texts without letters that nobody sees, for a name of a column may turn a line around."""
    return printable_lines(value) if type(value) is str else value


def _source(name: str) -> str:
    return (resources.files("tightrope.report") / "templates" / name).read_text(encoding="utf-8")


def _at(position: float) -> str:
    """A position in a chart, to a hundredth of a percent.

    >>> _at(33.3333), _at(50.0)
    ('33.33%', '50%')
    """
    return f"{position:.2f}".rstrip("0").rstrip(".") + "%"
