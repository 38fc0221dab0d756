"""The certificate: inert data with which anybody can check the claim, and nothing that depends on the data."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from itertools import count
from typing import TYPE_CHECKING

from tightrope.certificates.document import BudgetPart, plain
from tightrope.certificates.release import (
    RELEASES,
    ChoicePart,
    Profile,
    PublicTablePart,
    RanMechanism,
    Rates,
    ReleaseCertificate,
)
from tightrope.certificates.table import TablePart
from tightrope.mechanisms.tables.box_table import AnyTable, BoxTable
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.release.questions.vector import Noise, Vector
from tightrope.release.stated.guarantee import guarantee_data, neighbours_data

if TYPE_CHECKING:
    from tightrope.certificates.table import TablePart
    from tightrope.engines import PublicTable
    from tightrope.release.drafting.draft import Draft
from tightrope.release.questions.tasks import Task

EPSILONS = 25
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
ARGUMENT = (
    "Each mechanism's privacy loss is computed from the integer weights below, which are the ones that are sampled. "
    "For every answer the whole profile is maximised over all ways in which one person's rows may fall into groups; "
    "the maxima are composed on a lattice on which every rounding raises the loss. Parameters were fixed before "
    "anything was released."
)


def certificate_of(draft: Draft) -> ReleaseCertificate:
    """Guarantee, every mechanism with its table, neighbours, bounds, how each number was computed, versions.

    It is read back before anything is spent: what could not be read is never promised.
    """
    profile, tradeoff = _curves(draft)
    data = {
        "document": "release certificate",
        "version": 2,
        **guarantee_data(draft.loss, draft.budget),
        "budget": plain(BudgetPart.of(draft.budget)),
        "share": str(draft.share),
        "neighbours": neighbours_data(draft.person),
        "public_tables": [plain(_public(table)) for table in draft.public],
        "mechanisms": [plain(mechanism) for mechanism in _mechanisms(draft)],
        "consistent": [fitted.data() for fitted in draft.fitted()],
        "profile": plain(profile),
        "tradeoff": plain(tradeoff),
        "alternatives": draft.alternatives,
        "computed": {"engine": draft.loss.engine, "argument": ARGUMENT, "rounding": "upper bounds throughout"},
        "versions": {name: metadata.version(name) for name in ("tightrope", "numpy", "scipy")},
        "ledger": "not recorded in a ledger",
    }
    return RELEASES.data(data, ReleaseCertificate)


def _mechanisms(draft: Draft) -> list[RanMechanism]:
    """Every noisy vector, in the order in which noise is drawn."""
    number, found = count(1), []
    for task, noises in zip(draft.tasks, draft.noises(), strict=True):
        together = {own: next(number) for own in task.sets}
        found += [_mechanism(task, noise, together) for noise in noises]
    return found


def _mechanism(task: Task, noise: Noise, together: Mapping[tuple[Vector, ...], int]) -> RanMechanism:
    """One noisy vector; ``together`` numbers the sets of the task that share a unit of privacy."""
    measure, label = noise.vector.measure, noise.vector.exclusive
    own = next(own for own in together if noise.vector in own)
    contribution = task.shifted(own)
    return RanMechanism(
        answers=task.answered_by(noise.vector),
        statistic=noise.vector.spend.statistic,
        column=" and ".join(map(str, measure.columns)) or None,
        by=() if noise.vector.whole else tuple(map(str, task.by)),
        where=None if task.where is None else str(task.where),
        family=noise.family,
        unit=noise.vector.unit,
        sensitivity_per_row=str(noise.vector.sensitivity),
        table_steps_per_row=noise.shift,
        rows=contribution.rows,
        rows_per_group=contribution.rows_per_group,
        groups=contribution.groups,
        factor=str(noise.mechanism.factor),
        table=RELEASES.data(_weights(noise.table).to_data(), TablePart),
        exclusive=label,
        together=together[own],
        choice=_choice(task, noise),
        box=noise.table.dimension if isinstance(noise.table, BoxTable) else None,
    )


def _weights(table: AnyTable) -> NoiseTable:
    """What is drawn from: the noise of a number, or the half-widths of a box."""
    return table.radii if isinstance(table, BoxTable) else table


def _choice(task: Task, noise: Noise) -> ChoicePart | None:
    """What is chosen, in place of a number with noise."""
    choice, cells = noise.vector.choice, task.cells
    if choice is None or cells is None:
        return None
    target = None if choice.around is None else str(choice.target(noise.law, cells))
    return ChoicePart(below=str(choice.below), cells=cells, root=str(noise.law.root), target=target)


def _public(table: PublicTable) -> PublicTablePart:
    """Which public table rows looked something up in."""
    return PublicTablePart(
        name=table.name, on=dict(table.on), columns=table.added.names, rows=table.rows.num_rows, sha256=table.digest
    )


def _curves(draft: Draft) -> tuple[Profile, Rates]:
    """The profile and the attacker's best rates, all upper bounds."""
    top = max(float(epsilon) for epsilon, _ in draft.budget.points) or draft.loss.epsilon(float(draft.budget.delta))
    epsilons = tuple(top * 1.25 * i / (EPSILONS - 1) for i in range(EPSILONS))
    rates = draft.loss.true_positive_rate(list(FALSE_POSITIVE_RATES)).tolist()
    return (
        Profile(epsilon=epsilons, delta=tuple(draft.loss.delta(list(epsilons)).tolist())),
        Rates(false_positive_rate=FALSE_POSITIVE_RATES, true_positive_rate=tuple(rates)),
    )
