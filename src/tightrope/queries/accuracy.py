"""Accuracy of a query, computed before any budget is spent: errors by group size, thresholds and explanatory notes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tightrope.queries.count import NOT_CLAMPED_NOTE
from tightrope.queries.options import rounding_notes
from tightrope.queries.query import Query
from tightrope.queries.statistics import Noise, NoisyStatistic

GROUP_SIZES = (30, 100, 1_000, 10_000)
"""Group sizes for which errors are stated by default."""
BIAS_UNKNOWN = "By how much is unknown: no bias check covers this answer."
BIAS_ESTIMATED = "The bias check estimates how many values that concerns."
KNOWN_GROUPS_NOTE = (
    "The groups follow from the question, so all of them are shown. The group None holds missing values and values "
    "below the first edge of a cut."
)


def interval_statement(queries: Sequence[Query], *, compared: bool = False, leaves_out: bool = False) -> str:
    """Return what the intervals of an answer, or of a comparison of answers, contain, and what they do not cover.

    ``leaves_out``: whether rows beyond a bound on a person's rows are left out.

    >>> from tightrope.queries.count import count
    >>> print(interval_statement([count()]))  # doctest: +NORMALIZE_WHITESPACE
    With probability at least 95 %, the interval contains the exact statistic (without noise) of the rows that were
    used. It covers the noise only, not the sampling error of a study.
    """
    sources = {
        "limiting rows": leaves_out,
        "clamping": any(query.clamping_effect for query in queries),
        "missing values": any(query.clamped_columns for query in queries),
        "suppressed groups": any(query.key_columns and query.asked.keys is None for query in queries),
    }
    present = [name for name, is_present in sources.items() if is_present]
    listed = " and ".join(filter(None, [", ".join(present[:-1]), *present[-1:]]))
    subject = "exact comparison (without noise) of the statistics" if compared else "exact statistic (without noise)"
    return (
        f"With probability at least 95 %, the interval contains the {subject} of the rows that were used. It covers "
        f"the noise only, not the sampling error of a study{f', nor the bias from {listed}' if present else ''}."
    )


class RemainingNoise(Protocol):
    """The noise in an answer after it was adjusted for consistency with other answers."""

    @property
    def expected_error(self) -> tuple[float, float]:
        """E|error| and the half-width of the 95 % interval."""

    @property
    def worst_error(self) -> float:
        """The largest error; ∞ if unbounded."""

    @property
    def reader_note(self) -> str:
        """An explanation of the adjustment, for readers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Accuracy:
    """The errors of one query.

    ``key_count_noise``: the noise of the key count if keys are discovered. ``remaining_noise``: the smaller noise if
    the answer is made consistent with others about the same rows. ``related_notes``: notes on totals and parts of the
    answer.
    """

    question: Query
    noises_by_name: Mapping[str, Noise]
    key_count_noise: Noise | None
    remaining_noise: RemainingNoise | None = None
    related_notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Accuracy of {self.question.asked.name!r}: {list(self.stated_noises)}>"

    @property
    def own_noises(self) -> tuple[Noise, ...]:
        """The noises of the query's statistics."""
        return tuple(self.noises_by_name.values())

    @property
    def stated_noises(self) -> tuple[Noise, ...]:
        """The noises of the statistics and of the key count; those of a disjoint set are equal and stated once.

        So are equal noises of a table of ``marginals``.
        """
        noises = self.own_noises
        if self.key_count_noise is not None and self.key_count_noise not in noises:
            noises = (*noises, self.key_count_noise)
        is_marginal = self.question.is_marginal
        sets = [(n.vector.noise_spec, n.table) if is_marginal else n.vector.disjoint_set for n in noises]
        return tuple(
            noise for index, noise in enumerate(noises) if sets[index] is None or sets[index] not in sets[:index]
        )

    @property
    def key_threshold(self) -> int | None:
        """The largest noise in the key count; a discovered key is shown if its noisy count exceeds it."""
        return None if self.key_count_noise is None else self.key_count_noise.key_threshold

    @property
    def worst_error(self) -> float | None:
        """The largest error; None if it is unbounded."""
        largest_error = (
            self.question.worst_error(self.noises_by_name)
            if self.remaining_noise is None
            else self.remaining_noise.worst_error
        )
        step = float(self.question.asked.round_to or 0)
        return largest_error + step / 2 if math.isfinite(largest_error) else None

    def errors_at_size(self, rows: int) -> dict[str, Any]:
        """Return the errors for a group with ``rows`` rows and the probability that it is suppressed."""
        expected, half_width = (
            self.remaining_noise.expected_error
            if self.remaining_noise
            else self.question.expected_error(self.noises_by_name, rows)
        )
        below_threshold = (
            0.0
            if self.key_count_noise is None
            else self.key_count_noise.lower_tail_probability(
                int(self.key_count_noise.noise_mechanism.worst_error) - rows
            )
        )
        suppressed = min(1.0, below_threshold + self.question.suppression_probability(self.noises_by_name, rows))
        step = float(self.question.asked.round_to or 0)  # of the grid to which values are rounded for readers
        expected, half_width = expected + step / 2, half_width + step
        errors = {"expected_absolute_error": _finite_or_none(expected), "half_width_95": _finite_or_none(half_width)}
        return {"rows": rows, **errors, "suppressed": suppressed}

    def clamping_text(self, *, has_bias_check: bool) -> str:
        """Return how clamping changes the answer, and whether that is estimated; empty if no value is clamped."""
        effect = self.question.clamping_effect
        if not effect:
            return ""
        return f"{effect} {BIAS_ESTIMATED if has_bias_check else BIAS_UNKNOWN} ± covers the noise only."

    def reader_notes(self) -> list[str]:
        """Return the notes that readers need to interpret the answers."""
        return [
            *self._query_notes(),
            *([self.remaining_noise.reader_note] if self.remaining_noise else []),
            *self.related_notes,
            *(rounding_notes(width) if (width := self.question.asked.round_to) else ()),
        ]

    def _query_notes(self) -> list[str]:
        if self.question.asked.keys_from_expressions:
            return [KNOWN_GROUPS_NOTE, *self.question.all_notes]
        if self.key_threshold is None:
            return list(self.question.all_notes)
        return [
            f"Groups with a noisy count of {self.key_threshold:,} or less are suppressed.",
            "A group whose true count is near this threshold is shown only if its noise is large enough, so its value "
            "tends to be too high. The interval of a count accounts for this.",
            *(
                note
                for note in self.question.all_notes
                if note != NOT_CLAMPED_NOTE or self.key_count_noise not in self.own_noises
            ),
        ]

    def estimate(self, integers: Mapping[NoisyStatistic, int]) -> dict[str, float | None]:
        """Return the value and interval of a group, from its noisy integers by vector."""
        integers_by_name = {name: integers[noise.vector] for name, noise in self.noises_by_name.items()}
        return self.question.estimate(integers_by_name, self.noises_by_name)


def _finite_or_none(error: float) -> float | None:
    return error if math.isfinite(error) else None
