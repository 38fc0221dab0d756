"""The pages of an account and of a training run."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.documents.account import Account, Attack, AttackerGain, TrainingAccount
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import DOWN, UP, percent_text, significant_text, times_text
from tightrope.documents.wording import added_probability_text
from tightrope.reporting.charts import page_charts
from tightrope.reporting.pages.blocks import (
    CSV,
    AttackCurves,
    Card,
    DocumentPage,
    EmbeddedFile,
    Section,
    Table,
    document_file,
    embed_file,
)
from tightrope.reporting.pages.release_page import attack_rate_line
from tightrope.reporting.wording import accounts, method, promise
from tightrope.reporting.wording.partial_release import PartialCertificate, PartialProfile, PartialRates

# Success of the best attacker, from a stated triple, further points (ε, δ) and rates that a document states.

Points = Sequence[tuple[float, float]]
LARGEST = 1e300
"""Numbers beyond it are not drawn."""


def attack_section(
    stated: tuple[float, float], total_variation: float, points: Points, rates: Sequence[Attack]
) -> Section:
    """Return both curves, from bounds alone, and the table of rates, including those that the document states."""
    # Without infinite values, which the figures cannot show.
    every = sorted({(0.0, total_variation), *[(e, d) for e, d in (*points, stated) if 0 <= e <= LARGEST]})
    epsilon, delta = stated if stated[0] <= LARGEST else (None, None)
    certificate = PartialCertificate(
        epsilon=epsilon,
        delta=delta,
        total_variation=total_variation,
        profile=PartialProfile(epsilon=tuple(e for e, _ in every), delta=tuple(d for _, d in every)),
        tradeoff=PartialRates(
            false_positive_rate=tuple(one.false_positive_rate for one in rates),
            true_positive_rate=tuple(one.true_positive_rate for one in rates),
        ),
    )
    found = {catch.false_positive_rate: catch for catch in promise.attack_rates(certificate)}
    own = {
        one.false_positive_rate: promise.AttackRate(one.false_positive_rate, one.true_positive_rate) for one in rates
    }
    lines = [
        catch for _, catch in sorted({**found, **{rate: catch for rate, catch in own.items() if rate > 0}}.items())
    ]
    view = AttackCurves(
        page_charts.tradeoff_chart(certificate),
        page_charts.privacy_profile_chart(certificate),
        [attack_rate_line(one) for one in lines],
    )
    return Section(
        "attacker", "Limits of attacks", ("Every number here is an upper bound, for every attacker.",), curves=view
    )


def curve_file(points: Points) -> tuple[EmbeddedFile, ...]:
    """Return the points of the curve as a CSV file; empty if there are no points."""
    if not points:
        return ()
    lines = "".join(f"{epsilon!r},{delta!r}\r\n" for epsilon, delta in points)
    return (
        embed_file("curve.csv", "the points of the curves, not part of the document", CSV, f"epsilon,delta\r\n{lines}"),
    )


ACCOUNT_VERIFIED = (
    "Each ε, δ and rate in the document is confirmed, refuted or reported as “not confirmed”, for example for steps "
    "whose privacy profile has no closed form."
)
FACTS_NOT_HIDDEN = (
    "Facts about the population are not hidden.",
    "Results can tell something about you, whether you are in the data or not.",
)
ACCOUNT_LIMITS = (
    (
        "Parameters must be fixed in advance.",
        "Parameters that depend on earlier outputs need a privacy filter, and another account.",
    ),
    (
        "The steps must be as stated.",
        "This account cannot check that the noise is sampled as stated, or how much one row changes a statistic.",
    ),
    FACTS_NOT_HIDDEN,
    ("It covers only these steps.", "Other results from the same data add to the privacy loss."),
)
FRESH = (
    "Batches must be sampled independently for every step.",
    "Shuffling the data once and cutting it into batches is a different mechanism.",
)


def account_view(document: Account, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Return the contents of the page of an account."""
    runs = sum(step.count for step in document.steps)
    first = [row.delta for row in document.epsilon_at_delta[:1]]
    steps = Table(
        "The steps of the account",
        _capitalize_columns(accounts.STEP_COLUMNS),
        [accounts.step_line(s) for s in document.steps],
        4,
    )
    epsilons = [accounts.bound_line(row.delta, row.epsilon, row) for row in document.epsilon_at_delta]
    deltas = [accounts.bound_line(row.epsilon, row.delta, row) for row in document.delta_at_epsilon]
    found = (
        Table("ε at δ", ("δ", "ε, at most", "The true value lies in", "Relative width"), epsilons, 0),
        Table("δ at ε", ("ε", "δ, at most", "The true value lies in", "Relative width"), deltas, 0),
    )
    return DocumentPage(
        kind="Privacy account",
        title="Privacy loss of one step" if runs == 1 else f"Privacy loss of {runs:,} steps together",
        explained=document.explanation_parts,
        cards=_guarantee_cards(document.first_guarantee, document, first[0] if first else None),
        sections=(
            Section("steps", "The steps", tables=(steps,)),
            Section(
                "bounds",
                "Total privacy loss",
                tuple(filter(None, (UPPER_BOUND, accounts.guarantee_steps_text(document.steps)))),
                _account_facts(document),
                tuple(table for table in found if table.rows),
            ),
            _account_attack_section(document, document.first_guarantee, points),
            *([Section("further", "Further results", tables=tuple(tables))] if tables else []),
        ),
        method=method.MethodAppendix.from_statements([method.INPUTS, method.PROFILE, method.ATTACKER, method.STEPS]),
        embedded_files=(document_file(document, "account.json", "the account"), *curve_file(points)),
        verified=ACCOUNT_VERIFIED,
        limits=ACCOUNT_LIMITS,
    )


UPPER_BOUND = "The upper bound is shown first; the true value lies in the interval after it."


def training_view(document: TrainingAccount, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Return the contents of the page of a training run."""
    ways = Table(
        "Other accounting methods for the same steps",
        _capitalize_columns(accounts.METHOD_COLUMNS),
        [accounts.comparison_line(way) for way in document.comparison],
        2,
    )
    batches = method.POISSON if document.sampling == "poisson" else method.SUBSET
    bracket = f"{accounts.bound_text(document.lower, 12, DOWN)} … {accounts.bound_text(document.upper, 12, UP)}"
    return DocumentPage(
        kind="Training account",
        title=f"DP-SGD, {document.steps:,} step{'' if document.steps == 1 else 's'}",
        explained=document.explanation_parts,
        cards=_guarantee_cards(document.first_guarantee, document, document.delta),
        sections=(
            Section(
                "run",
                "The run",
                (UPPER_BOUND,),
                (
                    *(
                        (f"ε at δ = {document.delta:g}", accounts.bound_text(document.epsilon, 6, UP)),
                        ("The true value lies in", bracket),
                        ("Noise multiplier", significant_text(document.noise_multiplier, 10)),
                        ("Batches", f"{document.batch:,} of {document.examples:,} examples ({document.sampling})"),
                        ("Sampling rate", f"{document.sampling_rate:.4g} ({document.batch:,}/{document.examples:,})"),
                        ("Steps", f"{document.steps:,}"),
                        ("One person", accounts.NEIGHBOR_TEXT[document.sampling]),
                    ),
                    *_account_facts(document),
                ),
            ),
            _account_attack_section(document, document.first_guarantee, points),
            *([Section("ways", "Other accounting methods", tables=(ways,))] if document.comparison else []),
            *([Section("further", "Further results", tables=tuple(tables))] if tables else []),
        ),
        method=method.MethodAppendix.from_statements(
            [method.INPUTS, batches, method.PROFILE, method.ATTACKER, method.STEPS]
        ),
        embedded_files=(document_file(document, "training-account.json", "the account"), *curve_file(points)),
        verified=ACCOUNT_VERIFIED,
        limits=(FRESH, *ACCOUNT_LIMITS),
    )


def _capitalize_columns(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(name[:1].upper() + name[1:] for name in columns)


def _guarantee_cards(stated: tuple[float, float], document: AttackerGain, delta: float | None) -> tuple[Card, ...]:
    epsilon, at = stated
    unbounded = epsilon == float("inf")
    shown = Card(
        "Privacy loss",
        "ε",
        "∞" if unbounded else significant_text(epsilon, 3, UP),
        f"No bound at δ = {significant_text(delta, 2)}."
        if unbounded and delta
        else f"At δ = {significant_text(at, 2, UP)}: a set of outputs is at most {times_text(epsilon)} times as likely "
        f"under one input as under the other{added_probability_text(None)}.",
    )
    eta = Card(
        "Total variation",
        "η",
        significant_text(document.total_variation, 3, UP),
        "How much the two distributions of the output differ, from 0 (not at all) to 1.",
    )
    return (
        shown,
        eta,
        Card(
            "Attack success",
            "",
            percent_text(document.attack_success, UP),
            "Largest success rate of a guess with even odds (random guessing: 50 %).",
        ),
    )


def _account_facts(document: AttackerGain) -> tuple[tuple[str, str], ...]:
    return (
        ("Total variation", significant_text(document.total_variation, 6, UP)),
        ("Neighbors", document.neighbors),
        ("Method", escape_control_chars(accounts.method_text(document.method))),
    )


def _account_attack_section(document: AttackerGain, stated: tuple[float, float], points: Points) -> Section:
    return attack_section(stated, document.total_variation, points, document.attack)
