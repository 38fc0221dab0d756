"""``tightrope noise``: every family of noise at one budget, side by side with the least there can be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import (
    AsJson,
    Force,
    Page,
    check_page,
    check_picture_name,
    command_app,
    curve_of,
    from_fields,
)
from tightrope.cli.output import echo_heading, echo_lines, print_json, print_table, show_spinner, write_file
from tightrope.documents import Budget
from tightrope.documents.document import plain_data
from tightrope.documents.numbers import DOWN, UP, fixed_text, significant_text
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.compare import compare
from tightrope.noise.composed.composed_bound import ComposedBound, ComposedProof
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.program.certificate import CostBound
from tightrope.noise.program.request import ErrorCost as Expense
from tightrope.noise.program.request import PrivacyTarget
from tightrope.reporting import Table, document_html
from tightrope.reporting.charts.plots import noise_laws

if TYPE_CHECKING:
    from tightrope.accounting import PrivacyLoss
    from tightrope.documents.noise import NoiseCertificate
    from tightrope.mechanisms.mechanism import Mechanism
    from tightrope.noise.compare import FamilyComparison

NOISE_EXAMPLE = """\b
Example:
  tightrope noise --epsilon 1 --delta 1e-6 --sensitivity 3 --cost squared
"""
Epsilon = Annotated[str, typer.Option(metavar="E", help="How much one answer may tell about a person; 1 is usual.")]
Delta = Annotated[str, typer.Option(metavar="D", help="How improbable a failure of that promise must be, say 1e-6.")]
Eta = Annotated[
    str | None,
    typer.Option(metavar="T", help="Also cap the total variation: an attacker is right (1 + T)/2 of the time."),
]
Sensitivity = Annotated[int, typer.Option(metavar="S", help="How much one person can change the whole-number answer.")]
Cost = Annotated[str, typer.Option(metavar="C", help="What is least: 'absolute' for E|X|, 'squared' for E X².")]
Releases = Annotated[int, typer.Option(metavar="K", help="So many answers share the budget, each with this noise.")]
Picture = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the laws of the noise into a .png, .svg or .pdf.")
]
Laws = dict[str, list[float]]
ENDLESS_CELLS = 400
COLUMNS = ("family", "E|X|", "sqrt(E X²)", "95 % ±", "worst ±", "total var.", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseOptions:
    """The values of the options."""

    epsilon: Epsilon
    delta: Delta
    sensitivity: Sensitivity = 1
    total_variation: Eta = None
    cost: Cost = "absolute"
    releases: Releases = 1
    plot: Picture = None
    report: Page = None
    force: Force = False
    as_json: AsJson = False


@dataclass(frozen=True, slots=True)
class NoiseComparison:
    """The printed results, the plotted distributions, and the certificate of the least noise."""

    data: dict[str, Any]
    laws: Laws
    certificate: NoiseCertificate

    @property
    def loss(self) -> PrivacyLoss:
        """Of all answers with the noise that is certified."""
        if self.certificate.table is None:
            raise ValueError("whole-number noise has a table")
        table = NoiseTable.from_data(plain_data(self.certificate.table))
        return self.certificate.releases * table.loss(round(self.certificate.sensitivity))


def noise(asked: NoiseOptions) -> None:
    """Compare every family of noise with the least there is.

    For one answer, or for several with --releases. Whole-number noise is what would be sampled, rounding included.
    """
    check_page(asked.report, replace=asked.force)

    budget = Budget(epsilon=asked.epsilon, delta=asked.delta, total_variation=asked.total_variation)
    found = _compare_one_answer(budget, asked) if asked.releases == 1 else _compare_several_answers(budget, asked)
    stated = {"epsilon": float(asked.epsilon), **budget.to_data(), "delta": float(budget.delta)}
    if asked.plot is not None:
        check_picture_name(asked.plot)
        try:
            noise_laws(found.laws).savefig(asked.plot)
        except OSError as error:
            raise InputError("plot", str(asked.plot), "a file that can be written", str(error.strerror)) from None
    if asked.report is not None:
        with show_spinner("Writing the page ..."):
            document = found.certificate.to_document()
            write_file(
                asked.report,
                document_html(
                    document, curve=curve_of(found.loss, document.guarantee.epsilon), tables=_family_tables(found)
                ),
            )
    data = {**stated, **found.data}

    if asked.as_json:
        print_json(data)
    elif data["releases"] == 1:
        sensitivity, certificate = data["sensitivity"], data["certificate"]
        echo_lines(f"Whole-number noise for one answer that a person changes by at most {sensitivity}", f"{budget}\n")
        print_table(COLUMNS, _order_families(data["families"]))
        limits, name = data["limits"], _cost_name(data)
        theorem = certificate["argument"]["kind"] == "theorem"
        argument = "a theorem" if theorem else "a dual certificate, with --json"
        echo_lines(f"\nNo whole-number noise has a smaller {name} than {certificate['lower']:.9g} ({argument}).")
        echo_heading("Real-valued noise, for comparison (it must not be sampled in floating point)")
        print_table(COLUMNS, _order_families(data["real_valued"]))
        echo_lines(
            f"\nNo real-valued noise has a smaller {name} than {limits['lower']:.6g}; "
            f"{significant_text(limits['upper'], 6, UP)} is reached."
        )
        echo_lines(
            f"\nE|X| is the mean error; 95 % of errors and all errors lie within ±; ratio of {name} to the limit"
        )
        echo_lines(
            "total variation t: an attacker who guesses whether somebody is in the data is right (1 + t)/2 of the time."
        )
        if sensitivity == 1:
            echo_lines(
                "At sensitivity 1 no whole-number noise beats the closed form: not in E|X|, not in any other error."
            )
    else:
        _show_several(budget, data)
    if asked.report is not None and not asked.as_json:
        echo_lines(f"Written: {asked.report}")


def _family_tables(found: NoiseComparison) -> list[Table]:
    """The families side by side, as they are printed."""
    data = found.data
    if data["releases"] > 1:
        rows = [_several_line(row) for row in data["families"]]
        return [
            Table("Every family at this promise, at its best", ("Family", _cost_name(data), "Ratio to the least"), rows)
        ]
    heads = ("Family", *COLUMNS[1:5], "Total var.", "Ratio")
    return [
        Table("Whole-number noise of every family at this promise", heads, _order_families(data["families"])),
        Table(
            "Real-valued noise, for comparison: it must not be sampled in floating point",
            heads,
            _order_families(data["real_valued"]),
        ),
    ]


def _order_families(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The texts of the families, the one nearest to the limit first."""
    lines: list[list[str]] = []
    for row in sorted(rows, key=lambda row: row.get("ratio", math.inf)):
        if not row["possible"]:
            lines.append([f"{row['family']}: not possible, {row['reason']}", *["–"] * 6])
            continue
        worst = "no limit" if math.isinf(row["worst_error"]) else fixed_text(row["worst_error"], 0)
        spread = [significant_text(row[name], 4, UP) for name in ("mean_absolute_error", "root_mean_squared_error")]
        half, eta = fixed_text(row["half_width_95"], 0), significant_text(row["total_variation"], 4, UP)
        ratio = significant_text(round(row["ratio"], 6), 4, UP)
        lines.append([row["family"], *spread, half, worst, eta, ratio])
    return lines


def _cost_name(data: Mapping[str, Any]) -> str:
    return "E|X|" if data["cost"] == "absolute" else "E X²"


def _compare_one_answer(budget: Budget, asked: NoiseOptions) -> NoiseComparison:
    """Compare the families for one answer."""
    with show_spinner("Searching the least noise of every family ..."):
        found = compare(budget, sensitivity=asked.sensitivity, cost=asked.cost)
        rows = [
            _family_row(one.family_name, one.mechanism, one.failure_reason, found, found.certificate.lower)
            for one in found.integer_families
        ]
        real = [_family_row(name, law, "", found, found.limits.lower) for name, law in found.real_mechanisms]
    laws = {
        one.family_name: _noise_probabilities(one.mechanism.table)
        for one in found.integer_families
        if one.mechanism is not None
    }
    known = [{"whose": whose, "side": side, "value": value} for whose, side, value in found.limits.known]
    data = {
        "sensitivity": asked.sensitivity,
        "cost": asked.cost,
        "releases": 1,
        "families": rows,
        "certificate": plain_data(found.certificate.to_document()),
        "real_valued": real,
        "limits": {"lower": found.limits.lower, "upper": found.limits.upper, "known": known},
    }
    return NoiseComparison(data, laws, found.certificate)


def _family_row(
    family: str, law: Mechanism | None, reason: str, found: FamilyComparison, limit: float
) -> dict[str, Any]:
    """Errors of one family, and how much more it costs than the proven limit."""
    if law is None:
        return {"family": family, "possible": False, "reason": reason}
    return {
        "family": family,
        "possible": True,
        "mean_absolute_error": law.mean_absolute_error,
        "root_mean_squared_error": math.sqrt(law.mean_squared_error),
        "half_width_95": law.half_width(0.95),
        "worst_error": law.worst_error,
        "total_variation": law.loss.total_variation(),
        "ratio": found.expected_cost(law) / limit if limit > 0 else 1.0,
    }


def _compare_several_answers(budget: Budget, asked: NoiseOptions) -> NoiseComparison:
    """The same for several answers: what each family costs, and the best, certified."""
    with show_spinner("Searching the least noise of several answers ..."):
        found = composed_noise(budget, releases=asked.releases, sensitivity=asked.sensitivity, cost=asked.cost)
        # The certificate of the table that was found for several answers.

        one = CostBound(PrivacyTarget.from_budget(budget), asked.sensitivity, Expense.from_argument(asked.cost))
        certificate = ComposedProof(ComposedBound(one, asked.releases)).build_certificate(found.table)
        loss = asked.releases * found.table.loss(asked.sensitivity)
    kept = [{"epsilon": at, "allowed": most, "delta": loss.delta(at)} for at, most in budget.rounded_points]
    costs = {name: value for name, value in found.candidates.items() if isinstance(value, float)}
    rows: list[dict[str, Any]] = [
        {"family": name, "cost": value, "ratio": value / found.cost} for name, value in costs.items()
    ]
    data = {
        "sensitivity": asked.sensitivity,
        "cost": asked.cost,
        "releases": asked.releases,
        "families": sorted(rows, key=lambda row: row["ratio"]),
        "best": found.family,
        "limits": {"lower": certificate.lower, "upper": found.cost},
        "certified": kept,
        "mean_absolute_error": found.table.mean_absolute,
        "root_mean_squared_error": math.sqrt(found.table.mean_squared),
    }
    return NoiseComparison(data, {found.family: _noise_probabilities(found.table)}, certificate)


def _noise_probabilities(table: NoiseTable) -> list[float]:
    """P(X = x) for x = 0, 1, … as far as a table goes, or far enough."""
    last = len(table.half) if table.tail is None else len(table.half) + ENDLESS_CELLS
    tails = [float(table.survival_probability(x)) for x in range(last + 1)]
    return [1 - 2 * tails[0], *(before - after for before, after in pairwise(tails))]


def _show_several(budget: Budget, data: Mapping[str, Any]) -> None:

    releases, sensitivity = data["releases"], data["sensitivity"]
    echo_lines(f"Whole-number noise for each of {releases:,} answers that a person changes by at most {sensitivity}")
    echo_lines(f"{budget}, for all of them together\n")
    name = _cost_name(data)
    print_table(["family", name, "ratio"], [_several_line(row) for row in data["families"]])
    echo_lines(f"\n{data['best']}: certified from the table that is sampled;")
    for point in data["certified"]:
        echo_lines(f"delta({point['epsilon']:g}) <= {point['delta']:.6g}, allowed {point['allowed']:g}")
    lower, upper = data["limits"]["lower"], data["limits"]["upper"]
    open_ = f"a factor of {significant_text(upper / lower, 3, UP)} is open" if lower > 0 else "how much less is open"
    echo_lines(
        f"\nNo noise for {releases:,} such answers has a smaller {name} than {significant_text(lower, 6, DOWN)} "
        f"(a theorem): {open_}."
    )
    echo_lines("Other families: searched in floats. Parameters fixed in advance; answers may depend on each other.")


def _several_line(row: Mapping[str, Any]) -> list[str]:

    return [row["family"], significant_text(row["cost"], 6, UP), significant_text(row["ratio"], 4, UP)]


app = command_app(from_fields(NoiseOptions, noise), example=NOISE_EXAMPLE)
