"""The pages of an account and of a training run."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.certificates.account import Account, Gained, TrainingAccount
from tightrope.certificates.printable import printable
from tightrope.certificates.words.chances import times
from tightrope.certificates.words.digits import DOWN, UP, percent, significant
from tightrope.report.pages.attached import document_file
from tightrope.report.pages.attack_view import Points, attack_section, curve_file
from tightrope.report.pages.blocks import Card, DocumentPage, Section, Table
from tightrope.report.words import accounts, method

ACCOUNT_VERIFIED = (
    "Each ε, δ and rate that the document states is confirmed, refuted, or left open: some steps have no closed "
    "profile there, and come out as “not confirmed”."
)
ACCOUNT_LIMITS = (
    (
        "Parameters must be fixed beforehand.",
        "Who chooses them after seeing an output needs a filter, and another account.",
    ),
    (
        "The steps must be what they say.",
        "That noise is drawn as stated, and how far one record moves what it is added to, is not seen here.",
    ),
    (
        "What is true of everyone stays true of you.",
        "Results about a group can tell something about its members, in the data or not.",
    ),
    ("It speaks of these steps alone.", "Whatever else is computed from the same data adds to it."),
)
FRESH = ("Batches must be drawn afresh.", "Data that are shuffled once and cut into batches are another mechanism.")


def account_view(document: Account, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Everything the page of an account shows."""
    runs = sum(step.count for step in document.steps)
    first = [row.delta for row in document.epsilon_at_delta[:1]]
    steps = Table(
        "Each line is a step of the account",
        _headed(accounts.STEP_COLUMNS),
        [accounts.step_line(s) for s in document.steps],
        4,
    )
    return DocumentPage(
        kind="Privacy account",
        title="What one step costs" if runs == 1 else f"What {runs:,} steps cost together",
        explained=document.explained,
        cards=_cards(document.stated, document, first[0] if first else None),
        sections=(
            Section("steps", "The steps", tables=(steps,)),
            Section("bounds", "What they add up to", (SAFE,), _facts(document), _brackets(document)),
            _attack(document, document.stated, points),
            *([Section("further", "Beside it", tables=tuple(tables))] if tables else []),
        ),
        method=method.Method.of([method.INPUTS, method.PROFILE, method.ATTACKER, method.STEPS]),
        attached=(document_file(document, "account.json", "the account"), *curve_file(points)),
        verified=ACCOUNT_VERIFIED,
        limits=ACCOUNT_LIMITS,
    )


SAFE = "What stands first is safe to state; the truth lies in the bracket."


def training_view(document: TrainingAccount, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Everything the page of a training run shows."""
    ways = Table(
        "Other ways to account for the same steps",
        _headed(accounts.WAY_COLUMNS),
        [accounts.way_line(way) for way in document.comparison],
        2,
    )
    batches = method.POISSON if document.sampling == "poisson" else method.SUBSET
    return DocumentPage(
        kind="Training account",
        title=f"DP-SGD, {document.steps:,} step{'' if document.steps == 1 else 's'}",
        explained=document.explained,
        cards=_cards(document.stated, document, document.delta),
        sections=(
            Section("run", "The run", (SAFE,), (*_run(document), *_facts(document))),
            _attack(document, document.stated, points),
            *(
                [Section("ways", "The same steps, accounted for otherwise", tables=(ways,))]
                if document.comparison
                else []
            ),
            *([Section("further", "Beside it", tables=tuple(tables))] if tables else []),
        ),
        method=method.Method.of([method.INPUTS, batches, method.PROFILE, method.ATTACKER, method.STEPS]),
        attached=(document_file(document, "training-account.json", "the account"), *curve_file(points)),
        verified=ACCOUNT_VERIFIED,
        limits=(FRESH, *ACCOUNT_LIMITS),
    )


def _headed(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(name[:1].upper() + name[1:] for name in columns)


def _cards(stated: tuple[float, float], document: Gained, delta: float | None) -> tuple[Card, ...]:
    epsilon, at = stated
    unbounded = epsilon == float("inf")
    shown = Card(
        "Privacy loss",
        "ε",
        "∞" if unbounded else significant(epsilon, 3, UP),
        f"No bound at δ = {significant(delta, 2)}."
        if unbounded and delta
        else f"At δ = {significant(at, 2, UP)}: chances differ by a factor of at most {times(epsilon)}, but for δ.",
    )
    eta = Card(
        "Total variation",
        "η",
        significant(document.total_variation, 3, UP),
        "How far the two laws are apart, from 0 (not at all) to 1.",
    )
    return (
        shown,
        eta,
        Card(
            "Attack success",
            "",
            percent(document.attack_success, UP),
            "Of guesses from an even chance that are right, at most.",
        ),
    )


def _facts(document: Gained) -> tuple[tuple[str, str], ...]:
    return (
        ("Total variation", significant(document.total_variation, 6, UP)),
        ("Neighbours", document.neighbours),
        ("Engine", printable(document.engine)),
    )


def _brackets(document: Account) -> tuple[Table, ...]:
    epsilons = [accounts.bound_line(row.delta, row.epsilon, row) for row in document.epsilon_at_delta]
    deltas = [accounts.bound_line(row.epsilon, row.delta, row) for row in document.delta_at_epsilon]
    found = (
        Table("ε at δ", ("δ", "ε, at most", "The truth lies in", "Relative width"), epsilons, 0),
        Table("δ at ε", ("ε", "δ, at most", "The truth lies in", "Relative width"), deltas, 0),
    )
    return tuple(table for table in found if table.rows)


def _attack(document: Gained, stated: tuple[float, float], points: Points) -> Section:
    return attack_section(stated, document.total_variation, points, document.attack)


def _run(document: TrainingAccount) -> tuple[tuple[str, str], ...]:
    bracket = f"{accounts.digits(document.lower, 12, DOWN)} … {accounts.digits(document.upper, 12, UP)}"
    return (
        (f"ε at δ = {document.delta:g}", accounts.digits(document.epsilon, 6, UP)),
        ("The truth lies in", bracket),
        ("Noise multiplier", significant(document.noise_multiplier, 10)),
        ("Batches", f"{document.batch:,} of {document.examples:,} examples ({document.sampling})"),
        ("Chance to be in a batch", percent(document.sampling_rate, UP)),
        ("Steps", f"{document.steps:,}"),
        ("One person", accounts.WHO[document.sampling]),
    )
