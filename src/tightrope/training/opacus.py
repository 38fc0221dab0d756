"""An accountant for Opacus that is exact: ε as an upper bound, and the total variation.

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
    """Privacy of Opacus' training steps, each a Gaussian on a Poisson sample; neighbors: add or remove one example.

    Holds for loaders that sample by Poisson, as ``make_private`` makes them unless told otherwise, and for noise and
    rates that were fixed in advance: a schedule is fine, a choice after seeing the model is not.

    After ``register()`` Opacus finds it by name: ``PrivacyEngine(accountant="tightrope")``, also for
    ``make_private_with_epsilon``. ``history`` is Opacus' own: (noise multiplier, sampling rate, steps).
    """

    history: History

    def __init__(self) -> None:
        self.history = []

    @classmethod
    def mechanism(cls) -> str:
        """The name it is registered under."""
        return NAME

    def __len__(self) -> int:
        """Steps taken so far."""
        return sum(count for *_, count in self.history)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step; equal ones are counted together. Raises ``InputError`` for an invalid step."""
        self.history = record_steps(self.history, noise_multiplier, sample_rate)

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of all steps so far."""
        return compose_history(check_entry(*step) for step in self.history)

    def get_epsilon(self, delta: float) -> float:
        """Upper bound on the ε spent so far at δ; ∞ after a step without noise. Raises ``InputError``."""
        return self.loss.epsilon(delta)

    def get_total_variation(self) -> float:
        """Upper bound on the total variation so far: a guess about membership is right at most (1 + η)/2."""
        return self.loss.total_variation()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a copy of the history of ``state_dict()``; raises ``ValueError`` if it is invalid or from elsewhere."""
        super().load_state_dict(state_dict)
        try:
            self.history = [check_entry(*step) for step in state_dict["history"]]
        except TypeError:
            expected = "a list of (noise multiplier, sampling rate, steps)"
            raise InputError("history", state_dict["history"], expected) from None


def register() -> None:
    """Register "tightrope" with Opacus; calling it again is harmless."""
    register_accountant(NAME, OpacusAccountant, force=True)
