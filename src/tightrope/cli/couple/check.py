"""``tightrope couple check``: what a mechanism does to groups, recomputed from the weights that are drawn from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.channels import Channel
from tightrope.cli.couple.fit import print_learning
from tightrope.cli.couple.laws import open_table_for_mechanism, read_distributions_csv
from tightrope.cli.local.local import read_channel
from tightrope.cli.options import AsJson
from tightrope.cli.output import echo_lines, print_json, show_spinner
from tightrope.documents.document import plain_data
from tightrope.documents.numbers import UP, significant_text
from tightrope.errors import InputError
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.learned_distributions import one_draw_from_samples
from tightrope.transport.guarantees.single_draws import approximate_knowledge
from tightrope.transport.on_tables.saved import SavedCoupling, align_groups, laws_from_counts, laws_from_entries
from tightrope.transport.on_tables.supports import Categories, Population, count_points

if TYPE_CHECKING:
    from tightrope.transport.guarantees.single_draws import OneDraw

CHECK_EXAMPLE = """\b
Examples, the file alone, with the laws that values really have, and any randomized map in a table of numbers:
  tightrope couple check mechanism.json
  tightrope couple check mechanism.json --data places.parquet
  tightrope couple check mechanism.json --laws actual.csv
  tightrope couple check channel.csv --laws actual.csv
"""
Checked = Annotated[
    Path, typer.Argument(metavar="MECHANISM", help="A file of 'couple fit', or a CSV file: a row for each input.")
]
Laws = Annotated[
    Path | None, typer.Option(metavar="CSV", help="The laws that values really have: columns point, group, mass.")
]
Data = Annotated[Path | None, typer.Option(metavar="DATA", help="A table: the laws that its groups really have.")]
Name = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table, in a DuckDB file.")]
Samples = Annotated[
    int | None, typer.Option(metavar="N", help="The fitted laws are the shares of so many sampled people a group.")
]
DIVERGENCES = ("max", "total_variation", "kl", "chi_squared", "hellinger")


def check(
    mechanism: Checked,
    laws: Laws = None,
    data: Data = None,
    table: Name = None,
    samples: Samples = None,
    as_json: AsJson = False,
) -> None:
    """Check that every group comes out alike, and what is left where laws are known only nearly."""
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
        _show_apart("Outputs of two groups differ by at most", found["measured"])
        return
    echo_lines(f"The file is {found['origin']['secrecy']}.")
    off = significant_text(found["target_error"] * 2.0**128, 2, UP)
    echo_lines(f"Output laws equal the target, exact to {off} times 2^-128 (recomputed).")
    _show_apart("If the laws are as fitted, outputs of two groups differ by at most", found["known_exactly"])
    print_learning(found["origin"])
    if "actual" in found:
        echo_lines(
            f"With the laws given, one draw is within {_describe_bounds(found['actual']['bound'])}: by "
            f"their distance alone."
        )
        _show_apart("Through this mechanism, outputs of two groups differ by at most", found["actual"]["measured"])
        echo_lines("These two are as secret as the laws that they were computed from.")
    if "sampled" in found:
        own = found["sampled"]
        echo_lines(
            f"Laws from {own['samples']:,} samples a group: with 95 % confidence one draw is within "
            f"{_describe_bounds(own)}."
        )
    echo_lines("All of this speaks of one draw a value: releasing a value again tells more. See docs/couple.md.")


def read_mechanism(path: Path) -> SavedCoupling:
    """The mechanism in a file, checked; raises ``InputError`` if it has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError("mechanism", str(path), "a file that can be read", str(problem.strerror)) from None
    except UnicodeDecodeError:
        raise InputError("mechanism", str(path), "a JSON file in UTF-8") from None
    return SavedCoupling.from_json(text)


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
        raise InputError("laws", str(laws), "left out with --data", "one of the two says what the laws are")
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
        # A bound from the distance of the laws alone, and what this mechanism really does to them.

        bound = approximate_knowledge(fitted, actual)
        found["actual"] = {
            "bound": _privacy_triple(bound),
            "measured": _largest_divergences(fitted, list(actual.items())),
        }
    if samples is not None:
        # Shares of samples are near the truth; laws that were learned with noise are not their shares.

        if saved.origin.kind == "private":
            remedy = "the file says what is left of sampling and noise together"
            raise InputError("samples", "laws learned with noise", "left out, or the shares of samples", remedy)
        found["sampled"] = {
            "samples": samples,
            "confidence": 0.95,
            **_privacy_triple(one_draw_from_samples(fitted, samples)),
        }
    return found


def _read_channel(path: Path, laws: Path | None, others: list[Any]) -> dict[str, Any]:
    """Any randomized map: row x holds the probabilities of its outputs."""
    from tightrope.tables.labels import Labels

    if laws is None or any(other is not None for other in others):
        raise InputError("laws", laws and str(laws), "given for a CSV file, and nothing else", "--laws actual.csv")
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
    """The largest of each divergence over all pairs of groups, both ways."""
    pairs = list(combinations(sides, 2))
    return {name: distribution_privacy(mechanism, pairs, name).epsilon if pairs else 0.0 for name in DIVERGENCES}


def _privacy_triple(bound: OneDraw) -> dict[str, float]:
    """The triple; delta never exceeds the total variation."""
    eta = bound.total_variation
    return {"epsilon": bound.epsilon, "delta": min(bound.delta, eta), "total_variation": eta}


def _show_apart(words: str, values: Mapping[str, float]) -> None:

    echo_lines(f"{words}:", *(f"  {name.replace('_', ' ')} {_format_number(values[name])}" for name in DIVERGENCES))


def _describe_bounds(bound: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {_format_number(bound[name])}" for name in ("epsilon", "delta", "total_variation")
    )


def _format_number(value: float) -> str:
    """Everything here is an upper bound: rounded up."""
    return significant_text(value, 4, UP) if math.isfinite(value) else "∞"
