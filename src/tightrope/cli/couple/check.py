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
from tightrope.cli.couple.fit import RELEASE_ONCE_TEXT, SHARING_TEXTS, error_text, print_learning
from tightrope.cli.local.local import read_channel
from tightrope.cli.options import AsJson
from tightrope.cli.output import echo_lines, print_json, show_spinner
from tightrope.documents.document import plain_data
from tightrope.documents.numbers import UP, typed_text
from tightrope.errors import InputError
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.learned_distributions import one_draw_from_samples
from tightrope.transport.guarantees.single_draws import approximate_knowledge
from tightrope.transport.on_tables.saved import SavedCoupling, align_groups, laws_from_counts, laws_from_entries
from tightrope.transport.on_tables.supports import Categories, Population, count_points

if TYPE_CHECKING:
    from tightrope.transport.guarantees.single_draws import OneDraw

CHECK_EXAMPLE = """\b
Examples: a mechanism file, the same with the actual distributions, and any randomized map as a matrix:
  tightrope couple check mechanism.json
  tightrope couple check mechanism.json --data places.parquet
  tightrope couple check mechanism.json --laws actual.csv
  tightrope couple check channel.csv --laws actual.csv
"""
Checked = Annotated[
    Path,
    typer.Argument(
        metavar="MECHANISM",
        help="Mechanism file written by 'couple fit', or a CSV file of probabilities, one line per input.",
    ),
]
Laws = Annotated[
    Path | None,
    typer.Option(metavar="CSV", help="The actual group distributions, with the columns point, group, mass."),
]
Data = Annotated[Path | None, typer.Option(metavar="DATA", help="A table with the actual group distributions.")]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table in a .duckdb file.")]
Samples = Annotated[
    int | None,
    typer.Option(metavar="N", help="The group distributions were estimated from N sampled people per group."),
]
DIVERGENCES = {
    "max": "epsilon (max-divergence)",
    "total_variation": "total variation",
    "kl": "KL divergence (nats)",
    "chi_squared": "chi-squared divergence",
    "hellinger": "squared Hellinger distance (sum of (√p − √q)²)",
}
"""Names of the printed divergences in code, and as printed."""
NEGLIGIBLE_EPSILON = 1e-9
"""For an ε below this, δ is the total variation, and only that is printed."""


def check(
    mechanism: Checked,
    laws: Laws = None,
    data: Data = None,
    table: TableName = None,
    samples: Samples = None,
    as_json: AsJson = False,
) -> None:
    """Check a coupling or a randomized map.

    Computes the largest difference between the outputs of two groups. With --data, --laws or --samples, also bounds it
    for distributions that differ from the fitted ones.
    """
    with show_spinner("Checking ..."):
        if mechanism.suffix == ".csv":
            found = _read_channel(mechanism, laws, [data, table, samples])
        else:
            found = _load_coupling(read_mechanism(mechanism), laws, (data, table), samples)
    if as_json:
        print_json(found)
        return
    echo_lines(f"{found['points']} points, groups: {', '.join(found['groups'])}")
    if found["kind"] == "channel":
        echo_lines(f"Epsilon between any two inputs: {_format_number(found['point_epsilon'])}")
        _print_divergences("Largest difference between the outputs of two groups", found["measured"])
        return
    echo_lines(f"The file {SHARING_TEXTS[found['origin']['kind']]}.")
    echo_lines(f"Recomputed: the output distributions equal the target{error_text(found['target_error'])}.")
    _print_divergences(
        "Largest difference between the outputs of two groups, for the fitted distributions", found["known_exactly"]
    )
    print_learning(found["origin"])
    if "actual" in found:
        bound = _describe_bounds(found["actual"]["bound"])
        echo_lines(f"For the given distributions, a bound from their distance to the fitted ones: {bound}.")
        _print_divergences("For the given distributions, the values for this mechanism", found["actual"]["measured"])
        echo_lines("Both results depend on the given distributions; if these are secret, do not publish the results.")
    if "sampled" in found:
        sampled = found["sampled"]
        echo_lines(
            f"If the distributions were estimated from {sampled['samples']:,} samples per group, with 95 % confidence: "
            f"{_describe_bounds(sampled)}."
        )
    echo_lines(f"All results are for one output per value. {RELEASE_ONCE_TEXT}")


def read_mechanism(path: Path) -> SavedCoupling:
    """Return the verified mechanism in a file; raises ``InputError`` if it has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError.from_text(str(path), f"the mechanism cannot be read ({problem.strerror})") from None
    except UnicodeDecodeError:
        raise InputError.from_text(str(path), "not a mechanism file, which is JSON in UTF-8") from None
    try:
        return SavedCoupling.from_json(text)
    except InputError as error:
        raise InputError.from_text(str(path), f"not a valid mechanism file: {error}") from None


def _load_coupling(
    saved: SavedCoupling, laws: Path | None, data: tuple[Path | None, str | None], samples: int | None
) -> dict[str, Any]:

    fitted = saved.mechanism
    found = {
        "kind": "coupling",
        "points": len(saved.support),
        "groups": [str(name) for name in fitted.groups],
        "loss": {str(name): loss for name, loss in fitted.loss.items()},
        "unit": saved.support.distance_unit(saved.metric),
        "objective": fitted.objective,
        "origin": plain_data(saved.origin),
        "target_error": float(fitted.target_error),
        "known_exactly": _largest_divergences(fitted, list(fitted.groups)),
    }
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
        found["actual"] = {
            "bound": _privacy_triple(bound),
            "measured": _largest_divergences(fitted, list(actual.items())),
        }
    if samples is not None:
        # The bound for samples does not hold for proportions with noise.
        if saved.origin.kind == "private":
            text = "is not available for distributions that were estimated with noise"
            raise InputError.from_text("--samples", f"{text}; the file has a bound for sampling and noise together")
        found["sampled"] = {
            "samples": samples,
            "confidence": 0.95,
            **_privacy_triple(one_draw_from_samples(fitted, samples)),
        }
    return found


def _read_channel(path: Path, laws: Path | None, others: list[Any]) -> dict[str, Any]:
    """Return the results for any randomized map: row x has the probabilities of the outputs for input x."""
    from tightrope.tables.labels import Labels

    if laws is None:
        raise InputError.from_text("--laws", "is required for a CSV mechanism, for example --laws actual.csv")
    if any(other is not None for other in others):
        raise InputError.from_text(str(path), "a CSV mechanism takes --laws, but not --data, --table or --samples")
    channel = Channel(read_channel(path))
    support = Categories("input", Labels.from_names(range(channel.input_count)))
    known = laws_from_entries(read_distributions_csv(laws), support, "input")
    return {
        "kind": "channel",
        "points": channel.input_count,
        "groups": [str(name) for name in known.laws],
        "point_epsilon": channel.epsilon,
        "measured": _largest_divergences(channel, list(known.laws.values())),
    }


def _largest_divergences(mechanism: Any, sides: list[Any]) -> dict[str, float]:
    """Return the largest value of each divergence over all pairs of groups, in both directions."""
    pairs = list(combinations(sides, 2))
    return {name: distribution_privacy(mechanism, pairs, name).epsilon if pairs else 0.0 for name in DIVERGENCES}


def _privacy_triple(bound: OneDraw) -> dict[str, float]:
    """Return (ε, δ, η); δ is at most the total variation."""
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
    """Return an upper bound, rounded up."""
    return typed_text(value, 4, UP) if math.isfinite(value) else "∞"
