"""Check a whole ledger: the hash chain, every balance, every guarantee, and the certificates on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from tightrope.documents.budget import Budget
from tightrope.documents.release import LedgerEntry
from tightrope.errors import InputError, InsufficientBudgetError, TightropeError
from tightrope.ledger import chain
from tightrope.ledger.account import Ledger
from tightrope.ledger.chain import (
    ANSWERED,
    CHARGED,
    DATASET,
    DECLARATION,
    RESERVED,
    RETRIED,
    Entry,
    canonical_json,
    genesis_hash,
)
from tightrope.ledger.identity import Identity
from tightrope.ledger.limits import Limit
from tightrope.ledger.moments import Moments
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.ledger.state import State, charge_covers_noise, state_after_entry

ROUNDING_MARGIN = 1e-9
"""Relative margin for rounding, as in the certificates of plans."""
MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a check: the numbers of entries, recomputed guarantees and certificates, and the problems."""

    entries: int
    guarantees: int
    certificates: int
    problems: tuple[str, ...]


@dataclass(slots=True)
class _ChainWalk:
    """State of a walk along the hash chain: what the entries so far have declared and charged, and the problems."""

    ledger: Ledger
    previous: str
    number: int = 0
    time: str = ""
    limits: dict[str, tuple[Limit, ...]] = field(default_factory=dict)
    identities: dict[str, list[Identity]] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    keys: set[tuple[str, str, str]] = field(default_factory=set)
    series: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: list[tuple[int, str]] = field(default_factory=list)
    noise_records: set[tuple[str, str, int]] = field(default_factory=set)
    costs: set[tuple[Moments, str, int, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def add_problem(self, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def check_entry(self, entry: Entry) -> None:
        """Check an entry that follows the entries checked so far."""
        self.number += 1
        if entry.number != self.number:
            self.add_problem(f"entry {self.number} is missing")
            self.number = entry.number
        if not entry.hash_matches:
            self.add_problem(f"entry {entry.number} was changed after it was written")
            self.previous = entry.hash
            return
        if entry.previous != self.previous:
            self.add_problem(f"entry {entry.number} does not follow the one before it")
        if entry.time < self.time:
            self.add_problem(f"entry {entry.number} is earlier than the one before it")
        self.previous, self.time = entry.hash, entry.time
        if entry.key is not None:
            key = (entry.dataset, entry.kind, entry.key)
            if key in self.keys:
                self.add_problem(f"entry {entry.number} repeats a key")
            if entry.kind in (ANSWERED, RETRIED) and (entry.dataset, CHARGED, entry.key) not in self.keys:
                self.add_problem(f"entry {entry.number} has answers of a release that was not charged")
            self.keys.add(key)
        self.check_state(entry)

    def check_state(self, entry: Entry) -> None:
        """Check the spent amounts after the entry, computed from the state before it."""
        if entry.kind == DATASET:
            self.limits[entry.dataset] = tuple(map(Limit.from_data, entry.body_data["limits"]))
        if entry.dataset not in self.limits:
            self.add_problem(f"entry {entry.number} is of a dataset that was not declared")
            return
        if entry.kind in (DATASET, DECLARATION):
            self.check_declared_identity(entry)
        before = self.states.get(entry.dataset, State())
        try:
            state = state_after_entry(before, self.limits[entry.dataset], entry.kind, entry.key, entry.body_data)
        except InsufficientBudgetError:
            self.add_problem(f"entry {entry.number} spends more than was left")
            state = State.from_data(entry.state_data)
        if state is not before or entry.dataset not in self.texts:
            self.texts[entry.dataset] = canonical_json(state.to_data())
        self.states[entry.dataset] = state
        if self.texts[entry.dataset] != entry.state:
            self.add_problem(f"the sums of entry {entry.number} do not follow from the entries before it")
            self.states[entry.dataset] = State.from_data(entry.state_data)
            self.texts[entry.dataset] = entry.state
        self.collect_claims(entry)

    def check_declared_identity(self, entry: Entry) -> None:
        """Check that a declaration does not contradict the ones before it: all protect the same privacy unit."""
        identity, recorded = Identity.from_data(entry.body_data["identity"]), self.identities.get(entry.dataset, [])
        try:
            for earlier in recorded:
                earlier.check_same_as(identity)
        except InputError as error:
            self.add_problem(f"entry {entry.number} contradicts an earlier declaration: {error}")
        self.identities[entry.dataset] = [*recorded, identity]

    def collect_claims(self, entry: Entry) -> None:
        """Collect the texts and guarantees to check; a series is checked once, for all its dates together."""
        if entry.kind == ANSWERED:
            self.answers.append((entry.number, entry.body_data["document"]))
        self.check_noise(entry)
        if entry.body_data.get("costs") and not entry.body_data["recipe"]:
            self.add_problem(f"entry {entry.number} was charged by moments and names no noise")
        single = entry.kind == CHARGED and entry.body_data["series"] is None
        if (single or entry.kind == RESERVED) and entry.body_data["recipe"]:
            times = entry.body_data.get("times", 1)
            self.noise_records.add((entry.body_data["recipe"], canonical_json(entry.body_data["kept"]), times))
            by_name = {limit.name: limit.moments for limit in self.limits[entry.dataset]}
            charged = [(by_name.get(name), share) for name, share in entry.body_data.get("costs", {}).items()]
            self.costs |= {(moments, entry.body_data["recipe"], times, share) for moments, share in charged if moments}

    def check_noise(self, entry: Entry) -> None:
        """Check that a date of a series has the reserved noise, and that the body has the time of the entry."""
        body = entry.body_data
        if entry.kind == RESERVED:
            self.series[entry.dataset, str(entry.key)] = body["recipe"]
        if body.get("series") is not None and self.series.get((entry.dataset, body["series"])) != body["recipe"]:
            self.add_problem(f"entry {entry.number} does not have the noise of its series")
        if body.get("time", entry.time) != entry.time:
            self.add_problem(f"entry {entry.number} was charged for another time than that of the entry")

    def check_guarantee(self, digest: str, stated: str, times: int) -> int:
        """Check that the noise meets the stated guarantee, from its integer weights; return 1 if it was computed."""
        try:
            text = self.ledger.book.read_transaction(lambda connection: chain.read_text(connection, digest))
            loss = NoiseRecord.from_text(text).composed_loss(times)
        except (TightropeError, ValueError, KeyError, TypeError):
            self.add_problem(f"the noise {digest[:12]} cannot be read")
            return 0
        guarantee = json.loads(stated)
        budget = Budget(delta=guarantee["delta"], points=guarantee["points"])
        margin = 1 + ROUNDING_MARGIN
        points = [(loss.delta(min(float(e), 700.0)), float(d)) for e, d in budget.points]
        points.append((max(loss.remove.infinite_mass, loss.add.infinite_mass), float(budget.delta)))
        if any(delta > allowed * margin for delta, allowed in points):
            self.add_problem(f"the noise {digest[:12]} does not meet its stated guarantee")
        return 1

    def check_moment_cost(self, moments: Moments, digest: str, times: int, charged: str) -> None:
        """Check that the charge covers the noise's log moments, computed again."""
        try:
            is_covered = charge_covers_noise(
                moments,
                self.ledger.book.read_transaction(lambda connection: chain.read_text(connection, digest)),
                times,
                charged,
            )
        except (TightropeError, ValueError, KeyError, TypeError):
            return  # ``check_guarantee`` reports it
        if not is_covered:
            self.add_problem(f"the moments of the noise {digest[:12]} are larger than what was charged for it")

    def check_certificate(self, certificate: LedgerEntry) -> None:
        """Check that a certificate's entry is in the ledger."""
        if certificate.ledger != self.ledger.ledger_id:
            self.add_problem(f"a certificate names entry {certificate.number} of another ledger")
            return
        found = self.ledger.book.read_transaction(lambda connection: chain.entry_at(connection, certificate.number))
        if found is None or found.hash != certificate.hash:
            self.add_problem(
                f"a certificate names entry {certificate.number}, which is missing: the ledger is an older copy"
            )


def check_ledger(ledger: Ledger, certificates: Iterable[LedgerEntry] = ()) -> Report:
    """Check every entry's hash, order, time, key and state, every document, and the guarantee of each noise record.

    ``certificates`` are the entries that certificates on disk name: if the ledger lacks one, it is an older copy.
    Problems are listed in the report; they are never raised.
    """
    walk = _ChainWalk(ledger, genesis_hash(ledger.ledger_id))
    try:
        page_problems = ledger.book.integrity_problems()
        if page_problems:
            walk.add_problem(f"the file is damaged ({page_problems.partition(':')[0]})")
        for entry in ledger.book.iterate_entries():
            walk.check_entry(entry)
    except TightropeError as error:
        walk.add_problem(str(error))
        return Report(walk.number, 0, 0, tuple(walk.problems))
    # Every text that an entry names has to exist, unchanged.
    intact = ledger.book.read_transaction(chain.checked_texts)
    for number, name in walk.answers:
        if name not in intact:
            walk.add_problem(f"the answers of entry {number} were changed after they were written")
    checked = sum(walk.check_guarantee(*record) for record in sorted(walk.noise_records))
    for cost in sorted(walk.costs, key=lambda cost: cost[1:]):
        walk.check_moment_cost(*cost)
    named = list(certificates)
    for certificate in named:
        walk.check_certificate(certificate)
    return Report(walk.number, checked, len(named), tuple(walk.problems))
