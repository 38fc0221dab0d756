"""The accountant inside Opacus: with the real package where it is installed, with its interface alone elsewhere."""

from __future__ import annotations

import abc
import importlib
import json
import math
import sys
import types
from collections import OrderedDict
from collections.abc import Iterator

import pytest

import tightrope as tr
from tightrope.errors import InputError, MissingExtraError

HOME = "tightrope.training.opacus"


class Interface(abc.ABC):
    """What Opacus 1.5 asks of an accountant, and what its base class does itself (opacus/accountants/accountant.py)."""

    @abc.abstractmethod
    def __init__(self): ...
    @abc.abstractmethod
    def step(self, *, noise_multiplier, sample_rate): ...
    @abc.abstractmethod
    def get_epsilon(self, delta): ...
    @abc.abstractmethod
    def __len__(self): ...
    @classmethod
    @abc.abstractmethod
    def mechanism(cls): ...

    def get_optimizer_hook_fn(self, sample_rate):
        return lambda optimizer: self.step(
            noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate * optimizer.accumulated_iterations
        )

    def state_dict(self, destination=None):
        destination = OrderedDict() if destination is None else destination
        return destination | {"history": list(self.history), "mechanism": self.mechanism()}

    def load_state_dict(self, state_dict):
        if self.mechanism() != state_dict["mechanism"]:
            raise ValueError(state_dict["mechanism"])
        self.history = state_dict["history"]


def _forget() -> None:
    sys.modules.pop(HOME, None)


@pytest.fixture(params=["interface", "package"])
def module(request, monkeypatch) -> Iterator[types.ModuleType]:
    """``tightrope.training.opacus``, on the interface alone or on the package."""
    if request.param == "package":
        pytest.importorskip("opacus", reason="Opacus is not installed (it brings torch)")
    else:
        known: dict[str, type] = {}
        fake = types.ModuleType("opacus.accountants")
        fake.IAccountant = Interface
        fake.register_accountant = lambda name, kind, force=False: known.update({name: kind})
        fake.create_accountant = lambda name: known[name]()
        monkeypatch.setitem(sys.modules, "opacus", types.ModuleType("opacus"))
        monkeypatch.setitem(sys.modules, "opacus.accountants", fake)
    _forget()
    yield importlib.import_module(HOME)
    _forget()


def test_without_opacus_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    _forget()
    with pytest.raises(MissingExtraError, match=r"tightrope\[opacus\]"):
        importlib.import_module(HOME)
    with pytest.raises(MissingExtraError, match="opacus"):
        importlib.import_module("tightrope.training").OpacusAccountant  # noqa: B018


def test_steps_are_counted(module) -> None:
    accountant = module.OpacusAccountant()
    assert (len(accountant), accountant.get_epsilon(1e-5), accountant.get_total_variation()) == (0, 0.0, 0.0)
    for noise in (1.0, 1.0, 2.0):
        accountant.step(noise_multiplier=noise, sample_rate=0.01)
    assert (len(accountant), accountant.history) == (3, [(1.0, 0.01, 2), (2.0, 0.01, 1)])
    assert accountant.loss.remove.counts == (2, 1)


def test_the_answers_are_those_of_the_loss(module) -> None:
    accountant = module.OpacusAccountant()
    accountant.history = [(1.0, 0.01, 2000), (2.0, 0.01, 1000)]
    loss = 2000 * tr.gaussian(scale=1).loss.poisson_sample(0.01) + 1000 * tr.gaussian(scale=2).loss.poisson_sample(0.01)
    assert accountant.get_epsilon(1e-5) == pytest.approx(loss.epsilon(1e-5), rel=1e-9)
    assert accountant.get_total_variation() == pytest.approx(loss.total_variation(), rel=1e-9)


def test_the_hook_records_what_the_optimizer_did(module) -> None:
    accountant = module.OpacusAccountant()
    hook = accountant.get_optimizer_hook_fn(sample_rate=0.01)
    hook(types.SimpleNamespace(noise_multiplier=1.5, accumulated_iterations=2))
    assert accountant.history == [(1.5, 0.02, 1)]


def test_the_state_survives_a_file(module) -> None:
    accountant = module.OpacusAccountant()
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    state = json.loads(json.dumps(accountant.state_dict()))
    assert state["mechanism"] == "tightrope"
    other = module.OpacusAccountant()
    other.load_state_dict(state)
    other.step(noise_multiplier=1.0, sample_rate=0.01)
    assert other.history == [(1.0, 0.01, 2)]
    assert state["history"] == [[1.0, 0.01, 1]]  # loading copies
    assert accountant.history == [(1.0, 0.01, 1)]


@pytest.mark.parametrize("history", [[(1.0, 2.0, 1)], [(1.0, 0.1)], [3], [(math.nan, 0.1, 1)], 3])
def test_a_state_that_is_none_is_refused(module, history) -> None:
    with pytest.raises(ValueError, match="expected"):
        module.OpacusAccountant().load_state_dict({"mechanism": "tightrope", "history": history})
    with pytest.raises(ValueError, match="rdp"):
        module.OpacusAccountant().load_state_dict({"mechanism": "rdp", "history": []})


def test_nonsense_is_refused_before_it_is_recorded(module) -> None:
    accountant = module.OpacusAccountant()
    for noise, rate in ((math.nan, 0.1), (1.0, 0.0), (1.0, 1.01)):
        with pytest.raises(InputError):
            accountant.step(noise_multiplier=noise, sample_rate=rate)
    assert accountant.history == []
    with pytest.raises(InputError, match="delta"):
        accountant.get_epsilon(2.0)


def test_opacus_finds_it_by_name(module) -> None:
    module.register()
    module.register()
    from opacus.accountants import create_accountant

    assert isinstance(create_accountant("tightrope"), module.OpacusAccountant)


def test_against_the_accountants_of_opacus() -> None:
    """Ours is within the error of PRV's, below Rényi's, and finds no more noise than theirs."""
    accountants = pytest.importorskip("opacus.accountants", reason="Opacus is not installed (it brings torch)")
    from opacus.accountants.utils import get_noise_multiplier

    from tightrope.training.opacus import OpacusAccountant, register

    register()
    history = [(1.3, 256 / 60_000, 3515)]
    found = {}
    for kind in (OpacusAccountant, accountants.PRVAccountant, accountants.RDPAccountant):
        one = kind()
        one.history = list(history)
        found[kind.mechanism()] = one.get_epsilon(delta=1e-5)
    assert found["tightrope"] <= found["prv"] <= found["tightrope"] + 0.02
    assert found["tightrope"] < found["rdp"]
    asked = {"target_epsilon": 1.0, "target_delta": 1e-5, "sample_rate": 256 / 60_000, "steps": 3515}
    assert get_noise_multiplier(accountant="tightrope", **asked) == pytest.approx(1.185, abs=0.01)
