"""Where a release is paid: what it spends is said first, and what was agreed to happens once."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tightrope.certificates.words.digits import UP, significant
from tightrope.errors import InputError
from tightrope.release.documents.plan_file import PlanFile, load
from tightrope.release.documents.standing import standing
from tightrope.release.plan import Plan
from tightrope.studio.desk import Desk
from tightrope.studio.wishes import Agreed, Wishes

Json = dict[str, Any]
REPORT = "report.html"
MOST_TICKETS = 100


class Counter:
    """Tickets and what became of them. A ticket is one plan's text, and is good for one release."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._open: dict[str, str] = {}
        self._done: dict[str, Future[Json]] = {}
        self._reports: dict[str, Path] = {}
        self._turn = threading.Lock()

    def price(self, wishes: Wishes) -> Json:
        """What a release of this plan would spend, in words, and a ticket for it. Saves the plan; spends nothing."""
        text = self._desk.text(wishes)
        with self._desk.kept(text) as path:
            file = load(path)
        plan = file.plan()
        ticket = secrets.token_urlsafe()
        with self._turn:
            while len(self._open) >= MOST_TICKETS:
                self._open.pop(next(iter(self._open)))
            self._open[ticket] = text
        return {"ticket": ticket, "plan": str(path), "spends": _spends(file, plan), "standing": standing(file, plan)}

    def release(self, agreed: Agreed) -> Json:
        """Charge, draw and write, once: who asks again with the same ticket is told what became of it, at no cost."""
        with self._turn:
            text = self._open.pop(agreed.ticket, None)
            if text is None and agreed.ticket not in self._done:
                raise InputError("ticket", "...", "one that is open", "nothing was spent: ask again what it spends")
            ours = text is not None
            done = self._done.setdefault(agreed.ticket, Future())
        if ours and text is not None:
            self._settle(done, text)
        return done.result()

    def report(self, name: str) -> Path | None:
        """The page of a release by its name, which only who released it was told."""
        return self._reports.get(name)

    def _settle(self, done: Future[Json], text: str) -> None:
        try:
            done.set_result(self._released(text))
        except BaseException as error:
            done.set_exception(error)

    def _released(self, text: str) -> Json:
        with self._desk.kept(text) as path:
            folder = _free(path)
            self._desk.lent.release(path, folder)
        name = secrets.token_urlsafe()
        self._reports[name] = folder / REPORT
        return {"folder": str(folder), "report": f"/report/{name}"}


def _spends(file: PlanFile, plan: Plan) -> str:
    """What is spent, and where it is written down."""
    data = plan.draft.to_data()
    epsilon, delta = significant(data["epsilon"], 3, UP), significant(data["delta"], 2, UP)
    part = "the whole budget" if plan.share == 1 else f"a share of {plan.share} of the budget"
    return (
        f"This spends epsilon {epsilon} at delta {delta}, {part} of {file.dataset!r}, in the ledger {_place(file)}. "
        f"It cannot be taken back, and releasing again is charged again."
    )


def _place(file: PlanFile) -> str:
    """The ledger without what a URL may hold besides."""
    return file.ledger.rpartition("@")[2] if "://" in file.ledger else file.ledger


def _free(plan: Path) -> Path:
    """A folder beside the plan that is not there yet."""
    number = 1
    while (folder := plan.with_name(f"{plan.stem}-release-{number}")).exists():
        number += 1
    return folder
