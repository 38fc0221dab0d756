"""``tightrope couple check``: differences between groups after a mechanism, recomputed from its sampling weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.channels import Channel
from tightrope.cli.couple.distributions import open_table_for_mechanism, read_distributions_csv
from tightrope.cli.couple.fit import (
    RELEASE_ONCE_TEXT,
    SHARING_TEXTS,
    delta_lines,
    distance_from_target,
    error_text,
    print_learning,
)
from tightrope.cli.local.local import read_probability_matrix
from tightrope.cli.options import AsJson
from tightrope.cli.output import echo_lines, print_json, show_spinner
from tightrope.documents.document import plain_data
from tightrope.documents.numbers import UP, terminal_text
from tightrope.errors import InputError
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.learned_distributions import approximate_knowledge, one_draw_from_samples
from tightrope.transport.on_tables.saved import SavedCoupling, align_groups, laws_from_counts, laws_from_entries
from tightrope.transport.on_tables.supports import Categories, Population, count_points

if TYPE_CHECKING:
    from tightrope.transport.guarantees.learned_distributions import OneDraw

CHECK_EXAMPLE = """\b
Examples: check a mechanism file; check it for the actual distributions; check a randomization matrix:
  tightrope couple check mechanism.json
  tightrope couple check mechanism.json --data places.parquet
  tightrope couple check mechanism.json --laws actual.csv
  tightrope couple check channel.csv --laws actual.csv
"""
MechanismPath = Annotated[
    Path,
    typer.Argument(
        metavar="MECHANISM",
        help="Mechanism file written by 'couple fit', or a CSV file of probabilities, one line per input.",
    ),
]
DistributionsPath = Annotated[
    Path | None,
    typer.Option(
        metavar="CSV",
        help="The actual group distributions, with the columns point (the value), group and mass (the probability).",
    ),
]
DataPath = Annotated[Path | None, typer.Option(metavar="DATA", help="A table with the actual group distributions.")]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table in a .duckdb file.")]
SampleCount = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Also bound the differences if the distributions were estimated from N people sampled per group.",
    ),
]
DIVERGENCES = {
    "max": "epsilon (max-divergence)",
    "total_variation": "total variation",
    "kl": "KL divergence (nats)",
    "chi_squared": "chi-squared divergence",
    "hellinger": "squared Hellinger distance (sum of (√p − √q)²)",
}
"""Printed label of each divergence."""
NEGLIGIBLE_EPSILON = 1e-9
"""If ε is below this, only the total variation is printed; it is δ at ε = 0."""


def check(
    mechanism: MechanismPath,
    laws: DistributionsPath = None,
    data: DataPath = None,
    table: TableName = None,
    samples: SampleCount = None,
    as_json: AsJson = False,
) -> None:
    """Check a coupling or a randomization matrix.

    Computes the largest difference between the outputs of two groups. For a mechanism file, --data, --laws or --samples
    also bound it for distributions that differ from the fitted ones. A CSV matrix needs --laws.
    """
    with show_spinner("Checking ..."):
        if mechanism.suffix == ".csv":
            # A randomization matrix: row x has the probabilities of the outputs for input x.
            from tightrope.tables.labels import Labels

            if laws is None:
                text = "is required if MECHANISM is a .csv file, for example --laws actual.csv"
                raise InputError.from_text("--laws", text)
            if any(option is not None for option in (data, table, samples)):
                text = "a CSV mechanism takes --laws, but not --data, --table or --samples"
                raise InputError.from_text(str(mechanism), text)
            channel = Channel(read_probability_matrix(mechanism))
            support = Categories("input", Labels.from_names(range(channel.input_count)))
            group_distributions = laws_from_entries(read_distributions_csv(laws), support, "input")
            results: dict[str, Any] = {
                "kind": "channel",
                "points": channel.input_count,
                "groups": [str(name) for name in group_distributions.laws],
                "point_epsilon": channel.epsilon,
                "measured": _largest_divergences(channel, list(group_distributions.laws.values())),
            }
        else:
            results = _coupling_results(read_mechanism(mechanism), laws, (data, table), samples)
    if as_json:
        print_json(results)
        return
    echo_lines(f"{results['points']} possible values; groups: {', '.join(results['groups'])}")
    if results["kind"] == "channel":
        echo_lines(f"Epsilon between any two inputs: {_format_number(results['point_epsilon'])}")
        _print_divergences("Largest difference between the outputs of two groups", results["measured"])
        return
    echo_lines(f"The file {SHARING_TEXTS[results['origin']['kind']]}.")
    echo_lines(*recomputed_lines(results))
    _print_divergences(
        "Largest difference between the outputs of two groups, for the fitted distributions", results["known_exactly"]
    )
    print_learning(results["origin"])
    if "actual" in results:
        bound = _describe_bounds(results["actual"]["bound"])
        echo_lines(f"Bound for the actual distributions, from their distance to the fitted ones: {bound}.")
        _print_divergences(
            "Largest difference between the outputs of two groups, for the actual distributions",
            results["actual"]["measured"],
        )
        echo_lines("Both results depend on the actual distributions; if these are secret, do not publish the results.")
    if "sampled" in results:
        sampled = results["sampled"]
        echo_lines(
            f"If the distributions were estimated from {sampled['samples']:,} samples per group, with 95 % confidence: "
            f"{_describe_bounds(sampled)}."
        )
    echo_lines(f"All results are for one output per value. {RELEASE_ONCE_TEXT}")


def recomputed_lines(results: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the weights of a coupling show about its output distributions."""
    if "delta" in results:
        return "Recomputed from the weights, and from the proof of the least distance:", *delta_lines(results)
    return (f"Recomputed: the output distributions equal the target{error_text(results['target_error'])}.",)


def read_mechanism(path: Path) -> SavedCoupling:
    """Return the verified mechanism in a file; raises ``InputError`` if it has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError.from_text(str(path), f"the mechanism cannot be read ({problem.strerror})") from None
    except UnicodeDecodeError:
        raise InputError.from_text(str(path), "not a mechanism file, which is JSON in UTF-8") from None
    if not text.lstrip().startswith("{"):
        raise InputError.from_text(str(path), "not a mechanism file; give a file written by: tightrope couple fit")
    try:
        return SavedCoupling.from_json(text)
    except InputError as error:
        raise InputError.from_text(str(path), f"not a valid mechanism file: {error}") from None


def _coupling_results(
    saved: SavedCoupling, laws: Path | None, data: tuple[Path | None, str | None], samples: int | None
) -> dict[str, Any]:
    """Return the results for a fitted coupling, and for the actual distributions or a sample size if given."""
    fitted = saved.mechanism
    results: dict[str, Any] = {
        "kind": "coupling",
        "points": len(saved.support),
        "groups": [str(name) for name in fitted.groups],
        "loss": {str(name): loss for name, loss in fitted.cost_by_group.items()},
        "unit": saved.support.distance_unit(saved.metric),
        "objective": fitted.objective,
        "origin": plain_data(saved.origin),
        **distance_from_target(fitted),
        "known_exactly": _largest_divergences(fitted, list(fitted.groups)),
    }
    if fitted.delta > 0:  # exact, unlike the float above it
        known = results["known_exactly"]
        known["total_variation"] = min(known["total_variation"], fitted.delta)
    path, table = data
    if laws is not None and path is not None:
        raise InputError.from_text("--laws", "cannot be combined with --data; both give the actual distributions")
    actual: Any = None
    names = tuple(fitted.groups)
    if laws is not None:
        entries = laws_from_entries(read_distributions_csv(laws), saved.support, saved.support.column_names[0])
        actual = align_groups(entries, names)
    elif path is not None:
        population = Population(group=saved.group, groups=names)
        actual = laws_from_counts(
            count_points(open_table_for_mechanism(saved, path, table), saved.support, population)
        ).laws
    if actual is not None:
        # A bound from the distance between the distributions, and the values for this mechanism.
        bound = approximate_knowledge(fitted, actual)
        results["actual"] = {
            "bound": _bound_as_dict(bound),
            "measured": _largest_divergences(fitted, list(actual.items())),
        }
    if samples is not None:
        # The sampling bound assumes exact sample frequencies; for noisy ones the file has another bound.
        if saved.origin.kind == "private":
            text = "cannot be used with a mechanism that was fitted with noise"
            advice = "leave it out; the bound in the file covers sampling and noise, and is printed without it"
            raise InputError.from_text("--samples", f"{text}; {advice}")
        results["sampled"] = {
            "samples": samples,
            "confidence": 0.95,
            **_bound_as_dict(one_draw_from_samples(fitted, samples)),
        }
    return results


def _largest_divergences(mechanism: Any, group_inputs: list[Any]) -> dict[str, float]:
    """Return the largest value of each divergence over all pairs of groups, in both directions.

    The ``epsilon`` of ``distribution_privacy`` is the value of the divergence that was passed.
    """
    pairs = list(combinations(group_inputs, 2))
    return {name: distribution_privacy(mechanism, pairs, name).epsilon if pairs else 0.0 for name in DIVERGENCES}


def _bound_as_dict(bound: OneDraw) -> dict[str, float]:
    """Return ε, δ and η; δ is replaced by η if that is smaller."""
    eta = bound.total_variation
    return {"epsilon": bound.epsilon, "delta": min(bound.delta, eta), "total_variation": eta}


def _print_divergences(heading: str, values: Mapping[str, float]) -> None:
    """Print each divergence on a line."""
    echo_lines(f"{heading}:", *(f"  {text} {_format_number(values[name])}" for name, text in DIVERGENCES.items()))


def _describe_bounds(bound: Mapping[str, float]) -> str:
    """Return the bounds as text; the total variation is δ at ε = 0."""
    eta = f"total variation at most {_format_number(bound['total_variation'])}"
    if bound["epsilon"] < NEGLIGIBLE_EPSILON:
        return eta
    return f"{eta}; epsilon {_format_number(bound['epsilon'])} at delta {_format_number(bound['delta'])}"


def _format_number(value: float) -> str:
    """Return the number with 4 digits, rounded up; "∞" if it is not finite."""
    return terminal_text(value, 4, UP) if math.isfinite(value) else "∞"
