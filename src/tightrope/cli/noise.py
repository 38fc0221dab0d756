"""``tightrope noise``: noise distributions that meet one budget, compared with a proven lower bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from tightrope.cli.options import (
    AsJson,
    Force,
    HtmlReport,
    check_picture_path,
    check_report_path,
    command_app,
    command_from_dataclass,
    privacy_curve_points,
)
from tightrope.cli.output import echo_heading, echo_lines, print_json, print_table, show_spinner, write_file
from tightrope.documents import Budget
from tightrope.documents.document import plain_data
from tightrope.documents.numbers import DOWN, UP, fixed_text, significant_text, terminal_text
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.compare import compare
from tightrope.noise.composed.composed_bound import ComposedBound
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.composed.score_bound import ComposedProof
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
Epsilon = Annotated[str, typer.Option(metavar="E", help="epsilon of (epsilon, delta)-DP, for example 1.")]
Delta = Annotated[str, typer.Option(metavar="D", help="delta of (epsilon, delta)-DP, for example 1e-6.")]
Eta = Annotated[
    str | None,
    typer.Option(
        metavar="T",
        help="Also limit the total variation to T: a guess about whether a person is in the data is then right at most "
        "(1 + T)/2 of the time.",
    ),
]
Sensitivity = Annotated[
    int, typer.Option(metavar="S", help="Sensitivity: the most that one person can change the integer answer.")
]
Cost = Annotated[str, typer.Option(metavar="C", help="Error to minimize: 'absolute' for E|X|, 'squared' for E X².")]
Releases = Annotated[int, typer.Option(metavar="K", help="Number of answers that share the budget.")]
Picture = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the noise distributions (.png, .svg or .pdf).")
]
Distributions = dict[str, list[float]]
UNBOUNDED_CELLS = 400
"""Number of plotted values beyond the listed ones of a table with an infinite tail."""
COLUMNS = ("family", "E|X|", "sqrt(E X²)", "95 % quantile", "max |X|", "total var.", "ratio")


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
    report: HtmlReport = None
    force: Force = False
    as_json: AsJson = False


@dataclass(frozen=True, slots=True)
class NoiseComparison:
    """The printed results, the plotted distributions, and the certificate of the least noise."""

    data: dict[str, Any]
    distributions: Distributions
    certificate: NoiseCertificate

    @property
    def loss(self) -> PrivacyLoss:
        """Return the loss of all answers with the certified noise."""
        if self.certificate.table is None:
            raise ValueError("integer-valued noise has a table")
        table = NoiseTable.from_data(plain_data(self.certificate.table))
        return self.certificate.releases * table.loss(round(self.certificate.sensitivity))

    @classmethod
    def for_one_answer(cls, budget: Budget, options: NoiseOptions) -> Self:
        """Compare the families for one answer."""
        with show_spinner("Searching the least noise of every family ..."):
            found = compare(budget, sensitivity=options.sensitivity, cost=options.cost)
            rows = [
                _family_row(one.family_name, one.mechanism, one.failure_reason, found, found.certificate.lower)
                for one in found.integer_families
            ]
            real = [_family_row(name, law, "", found, found.limits.lower) for name, law in found.real_mechanisms]
        distributions = {
            one.family_name: _noise_probabilities(one.mechanism.table)
            for one in found.integer_families
            if one.mechanism is not None
        }
        known = [{"whose": whose, "side": side, "value": value} for whose, side, value in found.limits.known]
        data = {
            "sensitivity": options.sensitivity,
            "cost": options.cost,
            "releases": 1,
            "families": rows,
            "certificate": plain_data(found.certificate.to_document()),
            "real_valued": real,
            "limits": {"lower": found.limits.lower, "upper": found.limits.upper, "known": known},
        }
        return cls(data, distributions, found.certificate)

    @classmethod
    def for_several_answers(cls, budget: Budget, options: NoiseOptions) -> Self:
        """Compare the families for several answers; the best noise gets a certificate."""
        with show_spinner("Searching the least noise of several answers ..."):
            found = composed_noise(
                budget, releases=options.releases, sensitivity=options.sensitivity, cost=options.cost
            )
            one = CostBound(PrivacyTarget.from_budget(budget), options.sensitivity, Expense.from_argument(options.cost))
            certificate = ComposedProof(ComposedBound(one, options.releases)).build_certificate(found.table)
            loss = options.releases * found.table.loss(options.sensitivity)
        certified = [
            {"epsilon": epsilon, "allowed": allowed, "delta": loss.delta(epsilon)}
            for epsilon, allowed in budget.rounded_points
        ]
        costs = {name: value for name, value in found.candidates.items() if isinstance(value, float)}
        rows: list[dict[str, Any]] = [
            {"family": name, "cost": value, "ratio": value / found.cost} for name, value in costs.items()
        ]
        data = {
            "sensitivity": options.sensitivity,
            "cost": options.cost,
            "releases": options.releases,
            "families": sorted(rows, key=lambda row: row["ratio"]),
            "best": found.family,
            "limits": {"lower": certificate.lower, "upper": found.cost},
            "certified": certified,
            "mean_absolute_error": found.table.mean_absolute,
            "root_mean_squared_error": math.sqrt(found.table.mean_squared),
        }
        return cls(data, {found.family: _noise_probabilities(found.table)}, certificate)

    def family_tables(self) -> list[Table]:
        """Return the tables of the report: all families, as they are printed."""
        data = self.data
        if data["releases"] > 1:
            rows = [_several_line(row) for row in data["families"]]
            columns = ("Family", _cost_name(data), "Ratio to the best")
            return [Table("Each family at this privacy guarantee, with its best parameters", columns, rows)]
        heads = ("Family", *COLUMNS[1:5], "Total var.", "Ratio")
        impossible = [[text, *["–"] * (len(heads) - 1)] for text in _impossible_families(data["families"])]
        return [
            Table(
                "Integer-valued noise of each family at this privacy guarantee",
                heads,
                [*_order_families(data["families"]), *impossible],
            ),
            Table(
                "Real-valued noise, for comparison: sampling it in floating point does not preserve the guarantee",
                heads,
                _order_families(data["real_valued"]),
            ),
        ]


def noise(options: NoiseOptions) -> None:
    """Compare the error of noise distributions with the proven minimum.

    For one answer, or for several with --releases. The results for integer-valued noise are for the distributions that
    would be sampled, including the rounding of their probabilities.
    """
    check_report_path(options.report, replace=options.force)
    check_picture_path(options.plot)
    budget = Budget(epsilon=options.epsilon, delta=options.delta, total_variation=options.total_variation)
    compare_answers = NoiseComparison.for_one_answer if options.releases == 1 else NoiseComparison.for_several_answers
    found = compare_answers(budget, options)
    stated = {"epsilon": float(options.epsilon), **budget.to_data(), "delta": float(budget.delta)}
    if options.plot is not None:
        try:
            noise_laws(found.distributions).savefig(options.plot)
        except OSError as error:
            raise InputError.from_text(f"--plot {options.plot}", f"cannot be written ({error.strerror})") from None
    if options.report is not None:
        with show_spinner("Writing the report ..."):
            document = found.certificate.to_document()
            write_file(
                options.report,
                document_html(
                    document,
                    curve=privacy_curve_points(found.loss, document.guarantee.epsilon),
                    tables=found.family_tables(),
                ),
            )
    data = {**stated, **found.data}

    if options.as_json:
        print_json(data)
    elif data["releases"] == 1:
        sensitivity, certificate = data["sensitivity"], data["certificate"]
        echo_lines(f"Integer-valued noise for one answer, sensitivity {sensitivity}", f"{budget}\n")
        print_table(COLUMNS, _order_families(data["families"]))
        impossible = _impossible_families(data["families"])
        echo_lines(*(["", *impossible] if impossible else []))
        limits, name = data["limits"], _cost_name(data)
        theorem = certificate["argument"]["kind"] == "theorem"
        argument = "a theorem" if theorem else "proven by a dual certificate, which --json prints"
        echo_lines(f"\nLower bound on {name} for all integer-valued noise: {certificate['lower']:.9g} ({argument}).")
        echo_heading(
            "Real-valued noise, for comparison (sampling it in floating point does not preserve the guarantee)"
        )
        print_table(COLUMNS, _order_families(data["real_valued"]))
        echo_lines(
            f"\nLower bound on {name} for all real-valued noise: {limits['lower']:.6g}. "
            f"The best known noise has {significant_text(limits['upper'], 6, UP)}."
        )
        echo_lines(
            f"\n95 % quantile: 95 % of errors |X| are at most this large. ratio: {name} divided by the lower bound.",
            "max |X|: the largest value that can be sampled. Gaussian and exponential-power distributions are "
            "truncated there; delta includes the probability beyond.",
            "total var. t: a guess about whether a person is in the data is right at most (1 + t)/2 of the time.",
        )
        if sensitivity == 1:
            echo_lines(
                "At sensitivity 1 the closed form is optimal among integer-valued noise, for E|X| and for every other "
                "error measure that increases with |X|."
            )
    else:
        _print_several_answers(budget, data)
    if options.report is not None and not options.as_json:
        echo_lines(f"Written: {options.report}")


def _order_families(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the texts of the families that meet the budget, the one closest to the lower bound first."""
    lines: list[list[str]] = []
    for row in sorted(rows, key=lambda row: row.get("ratio", math.inf)):
        if not row["possible"]:
            continue
        worst = "unbounded" if math.isinf(row["worst_error"]) else fixed_text(row["worst_error"], 0)
        spread = [significant_text(row[name], 4, UP) for name in ("mean_absolute_error", "root_mean_squared_error")]
        half, eta = fixed_text(row["half_width_95"], 0), significant_text(row["total_variation"], 4, UP)
        ratio = significant_text(round(row["ratio"], 6), 4, UP)
        lines.append([row["family"], *spread, half, worst, eta, ratio])
    return lines


def _impossible_families(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a text for each family that cannot meet the budget."""
    return [f"{row['family']}: not possible, {row['reason']}" for row in rows if not row["possible"]]


def _cost_name(data: Mapping[str, Any]) -> str:
    return "E|X|" if data["cost"] == "absolute" else "E X²"


def _family_row(
    family: str, noise: Mechanism | None, reason: str, found: FamilyComparison, limit: float
) -> dict[str, Any]:
    """Return the errors of one family's noise, and the ratio of its expected cost to the lower bound."""
    if noise is None:
        return {"family": family, "possible": False, "reason": reason}
    return {
        "family": family,
        "possible": True,
        "mean_absolute_error": noise.mean_absolute_error,
        "root_mean_squared_error": math.sqrt(noise.mean_squared_error),
        "half_width_95": noise.half_width(0.95),
        "worst_error": noise.worst_error,
        "total_variation": noise.loss.total_variation(),
        "ratio": found.expected_cost(noise) / limit if limit > 0 else 1.0,
    }


def _noise_probabilities(table: NoiseTable) -> list[float]:
    """Return P(X = x) for x = 0, 1, … up to the end of the table; an infinite tail is cut for the picture."""
    last = len(table.half) if table.tail is None else len(table.half) + UNBOUNDED_CELLS
    tails = [float(table.survival_probability(x)) for x in range(last + 1)]
    return [1 - 2 * tails[0], *(before - after for before, after in pairwise(tails))]


def _print_several_answers(budget: Budget, data: Mapping[str, Any]) -> None:
    """Print the comparison for several answers."""
    releases, sensitivity = data["releases"], data["sensitivity"]
    echo_lines(f"Integer-valued noise for each of {releases:,} answers, sensitivity {sensitivity}")
    echo_lines(f"{budget}, for all answers together\n")
    name = _cost_name(data)
    print_table(["family", name, "ratio to the best"], [_several_line(row) for row in data["families"]])
    for point in data["certified"]:
        delta, allowed = terminal_text(point["delta"], 6), terminal_text(point["allowed"], 6)
        echo_lines(
            f"\n{data['best']}: delta({point['epsilon']:g}) <= {delta} (allowed: {allowed}), certified from the "
            "integer weights from which it is sampled"
        )
    lower, upper = data["limits"]["lower"], data["limits"]["upper"]
    gap = f" Gap to the best noise here: factor {significant_text(upper / lower, 3, UP)}." if lower > 0 else ""
    echo_lines(
        f"\nLower bound on {name} per answer, for any noise with {releases:,} answers: "
        f"{significant_text(lower, 6, DOWN)} (a theorem).{gap}"
    )
    echo_lines(
        "Other families were calibrated in floating point and are not certified. All noise is fixed in advance; "
        "queries may depend on earlier answers."
    )


def _several_line(row: Mapping[str, Any]) -> list[str]:
    """Return the columns of a family: name, expected cost, ratio to the best."""
    return [row["family"], significant_text(row["cost"], 6, UP), significant_text(row["ratio"], 4, UP)]


app = command_app(command_from_dataclass(NoiseOptions, noise), example=NOISE_EXAMPLE)
