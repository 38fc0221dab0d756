"""A tight accountant for Opacus: upper bounds on ε and on the total variation.

Importing this module needs Opacus (``pip install 'tightrope[opacus]'``); ``MissingExtraError`` otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError, MissingExtraError
from tightrope.training.history import History, check_entry, compose_history, record_steps

try:
    from opacus.accountants import IAccountant, register_accountant
except ImportError as missing:
    raise MissingExtraError("opacus", "opacus") from missing

NAME = "tightrope"


class OpacusAccountant(IAccountant):  # type: ignore[misc]  # Any where Opacus is not installed
    """Privacy accountant of Opacus' training steps, each a Gaussian on a Poisson sample.

    Neighbors add or remove one example. The bounds hold for loaders that sample by Poisson, the default of
    ``make_private``, and for noise and rates that were fixed in advance: a schedule is allowed, a choice after seeing
    the model is not.

    After ``register()``, use it by name: ``PrivacyEngine(accountant="tightrope")``, also for
    ``make_private_with_epsilon``. ``history`` has Opacus' format: (noise multiplier, sampling rate, steps).
    """

    history: History

    def __init__(self) -> None:
        self.history = []

    @classmethod
    def mechanism(cls) -> str:
        """Return the name under which Opacus finds the accountant."""
        return NAME

    def __len__(self) -> int:
        """Return the number of steps so far."""
        return sum(count for *_, count in self.history)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step; equal ones are counted together. Raises ``InputError`` for an invalid step."""
        self.history = record_steps(self.history, noise_multiplier, sample_rate)

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of all steps so far."""
        return compose_history(check_entry(*step) for step in self.history)

    def get_epsilon(self, delta: float) -> float:
        """Return an upper bound on the ε spent so far at δ; ∞ after a step without noise. Raises ``InputError``."""
        return self.loss.epsilon(delta)

    def get_total_variation(self) -> float:
        """Return an upper bound η on the total variation so far.

        A guess whether an example was used, with prior probability ½, is right with probability at most (1 + η)/2.
        """
        return self.loss.total_variation()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a copy of the history in a ``state_dict()``; raises ``ValueError`` if it is invalid or not ours."""
        super().load_state_dict(state_dict)
        try:
            self.history = [check_entry(*step) for step in state_dict["history"]]
        except TypeError:
            expected = "a list of (noise multiplier, sampling rate, steps)"
            raise InputError("history", state_dict["history"], expected) from None


def register() -> None:
    """Register "tightrope" with Opacus; calling it again is harmless."""
    register_accountant(NAME, OpacusAccountant, force=True)
