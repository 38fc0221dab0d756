"""Every public function and method: annotated, documented, one order of parameters, defaults by keyword."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tightrope as tr
from tightrope.local import limits
from tightrope.queries.options import QueryOptions
from tightrope.queries.query import Query

MODULES = (tr, tr.audit, tr.local, limits, tr.transport, tr.channels, tr.noise, tr.tables)
ORDER = ("epsilon", "delta", "total_variation", "sensitivity", "scale")
"""The canonical order; parameters that must be given come before those that need not."""
FORBIDDEN = {"eps", "users", "n_users", "tv", "eta", "optimised", "random_state", "rng", "seed"}
"""Other spellings of epsilon, people, total_variation, optimized and randomness."""
SHORT = 3
"""Functions of so many parameters may have defaults by position."""
BY_POSITION = {
    "count_distinct": {"column"},  # a question of a column names it first; without one, people are counted
    "le_cam": {"p1"},  # the second of two laws; a ``Hypotheses`` in place of the first stands for both
}


def public() -> dict[str, Callable[..., Any]]:
    """Every function, public method and hand-written constructor that ``__all__`` leads to, by where it is defined."""
    found: dict[str, Callable[..., Any]] = {}
    for module in MODULES:
        for name in module.__all__:
            for function in functions(getattr(module, name)):
                found[f"{function.__module__}.{function.__qualname__}"] = function
    return found


def functions(thing: object) -> Iterator[Callable[..., Any]]:
    if inspect.isclass(thing):
        for name, member in vars(thing).items():
            written = name == "__init__" and not dataclasses.is_dataclass(thing)
            if written or (not name.startswith("_") and isinstance(member, (classmethod, staticmethod))):
                yield getattr(thing, name)
            elif not name.startswith("_") and inspect.isfunction(member):
                yield member
    elif inspect.isfunction(thing):
        yield thing


PUBLIC = public()


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [one for one in inspect.signature(function).parameters.values() if one.name not in ("self", "cls")]


def by_position(function: Callable[..., Any]) -> set[str]:
    """Parameters with a default that may be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {one.name for one in parameters(function) if one.default is not one.empty and one.kind in kinds}


def disordered(function: Callable[..., Any]) -> bool:
    """Whether canonical names stand in another order among the parameters that must, or need not, be given."""
    for needed in (True, False):
        names = [one.name for one in parameters(function) if one.name in ORDER and (one.default is one.empty) == needed]
        if names != sorted(names, key=ORDER.index):
            return True
    return False


def test_there_is_something_to_walk_over() -> None:
    assert len(PUBLIC) > 150
    assert {"gaussian", "wasserstein", "k_randomized_response", "le_cam", "open_source"} <= {
        name.rsplit(".", 1)[-1] for name in PUBLIC
    }


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_parameter_and_result_is_annotated(name: str) -> None:
    signature = inspect.signature(PUBLIC[name])
    assert [one.name for one in parameters(PUBLIC[name]) if one.annotation is one.empty] == []
    assert signature.return_annotation is not signature.empty


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_defaults_are_given_by_keyword(name: str) -> None:
    function = PUBLIC[name]
    allowed = BY_POSITION.get(function.__name__, set())
    assert len(parameters(function)) <= SHORT or by_position(function) <= allowed


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_names_stand_in_one_order_and_spelling(name: str) -> None:
    assert not disordered(PUBLIC[name])
    assert FORBIDDEN.isdisjoint(one.name for one in parameters(PUBLIC[name]))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_function_says_what_it_promises(name: str) -> None:
    assert name.endswith("__init__") or inspect.getdoc(PUBLIC[name])


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_public_names_are_sorted_unique_and_documented(module: ModuleType) -> None:
    assert list(module.__all__) == sorted(set(module.__all__))
    things = [getattr(module, name) for name in module.__all__]
    assert all(one.__doc__ for one in things if inspect.isclass(one) or inspect.isroutine(one) or inspect.ismodule(one))


OPTIONS = {field.name for field in dataclasses.fields(QueryOptions)}
QUESTIONS = {
    name: made
    for name in tr.__all__
    if (inspect.isclass(made := getattr(tr, name)) and issubclass(made, Query)) or name in ("median", "quantiles")
}


def test_all_questions_are_looked_at() -> None:
    assert len(QUESTIONS) == 20


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_every_option_as_a_keyword(name: str) -> None:
    shown = inspect.signature(QUESTIONS[name]).parameters
    assert set(shown) >= OPTIONS
    assert {shown[option].kind for option in OPTIONS} == {inspect.Parameter.KEYWORD_ONLY}
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in shown.values())
    assert not hasattr(QUESTIONS[name], "__signature__")


def test_the_reference_shows_the_parameters_of_every_question() -> None:
    """They are read from the source, without importing it, as the documentation site does."""
    griffe = pytest.importorskip("griffe")
    source = Path(tr.__file__).parents[1]
    package = griffe.load("tightrope", submodules=True, search_paths=[source], allow_inspection=False)
    for name, made in QUESTIONS.items():
        read = package[f"{made.__module__}.{name}".removeprefix("tightrope.")].parameters
        assert [one.name for one in read if one.name != "self"] == list(inspect.signature(made).parameters)
        assert all(one.annotation is not None for one in read if one.name != "self")


def test_the_checks_can_fail() -> None:
    def careless(delta: float, epsilon: float, users=1, cost="absolute"):  # type: ignore[no-untyped-def]
        return delta, epsilon, users, cost

    assert disordered(careless)
    assert by_position(careless) == {"users", "cost"}
