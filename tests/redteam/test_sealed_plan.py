"""Nobody spends one budget twice: by changing a plan, copying it, rounding, racing, forking or interrupting."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import decimal
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import FrameType

import pandas as pd
import pytest

import tightrope as tr
from tests.release.after_the_charge import fails_after_the_charge
from tightrope.errors import EngineError, InputError, InsufficientBudgetError, SingleUseError
from tightrope.release import accounts
from tightrope.release import plan as release_plan

BUDGET = tr.Budget(epsilon=4, delta=1e-6)
TABLE = pd.DataFrame({"x": [1.0] * 100})


@pytest.fixture
def session() -> tr.Session:
    return tr.Session(TABLE, privacy_unit=None, budget=BUDGET)


@pytest.fixture
def failing(monkeypatch):
    """Makes the work after the charge end with this exception."""
    return lambda error: fails_after_the_charge(monkeypatch, error)


@pytest.mark.parametrize("name", ["budget_fraction", "budget", "loss", "allocation", "_draft", "_account", "new"])
def test_nothing_of_a_plan_can_be_set_or_deleted(session, name):
    plan = session.plan([tr.count()], budget_fraction="0.5")
    with pytest.raises(SingleUseError, match="could spend its budget twice"):
        setattr(plan, name, Decimal("1e-9"))
    with pytest.raises(SingleUseError, match="could spend its budget twice"):
        delattr(plan, name)


@pytest.mark.parametrize("name", ["budget", "spent", "person", "_charges", "_table", "new"])
def test_nothing_of_a_session_can_be_set_or_deleted(session, name):
    with pytest.raises(SingleUseError, match="could spend its budget twice"):
        setattr(session, name, None)
    with pytest.raises(SingleUseError, match="could spend its budget twice"):
        delattr(session, name)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps, lambda x: dataclasses.replace(x, share=0)])
def test_neither_a_plan_nor_a_session_has_a_second_life(session, again):
    for sealed in (session.plan([tr.count()]), session):
        with pytest.raises((SingleUseError, TypeError)):
            again(sealed)


def test_what_is_charged_stands_with_the_session_not_in_the_plan(session):
    """Even who reaches past the seal changes no charge: the plan only shows what was planned."""
    plan = session.plan([tr.count()], budget_fraction="0.6")
    object.__setattr__(plan._draft, "share", Decimal("1e-30"))
    object.__setattr__(plan, "_draft", None)
    plan.release()
    assert session.spent["budget_fraction"] == "0.6"
    other = session.plan([tr.count()], budget_fraction="0.6")
    object.__setattr__(session, "_charges", accounts.SessionCharges())
    with pytest.raises(InsufficientBudgetError, match=r"0\.4 is left"):
        other.release()


def test_a_budget_that_is_changed_afterwards_changes_no_session():
    budget = tr.Budget(epsilon=1, delta=1e-6)
    session = tr.Session(TABLE, privacy_unit=None, budget=budget)
    object.__setattr__(budget, "points", ((Decimal(100), Decimal("0.5")),))
    assert session.plan([tr.count()]).budget.points == ((Decimal(1), Decimal("0.000001")),)


def test_the_vectors_of_a_plan_cannot_be_exchanged(session):
    plan = session.plan([tr.count()])
    (query_group,) = plan._draft.query_groups
    with pytest.raises(TypeError):
        query_group.vectors_by_query[plan.questions[0]] = {}
    with pytest.raises(TypeError):
        query_group.vectors_by_query[plan.questions[0]]["rows"] = None


@pytest.mark.parametrize("precision", [1, 2, 28])
def test_no_decimal_context_rounds_what_is_spent(session, precision):
    with decimal.localcontext() as context:
        context.prec = precision
        for _ in range(25):
            session.plan([tr.count()], budget_fraction="0.04").release()
        with pytest.raises(InsufficientBudgetError, match=r"0 is left"):
            session.plan([tr.count()], budget_fraction="0.04").release()
    assert session.spent["budget_fraction"] == "1"


def test_shares_of_forty_digits_do_not_overspend(session):
    third = "0." + "3" * 39 + "4"
    for _ in range(2):
        session.plan([tr.count()], budget_fraction=third).release()
    with pytest.raises(InsufficientBudgetError):
        session.plan([tr.count()], budget_fraction=third).release()
    assert session.spent["budget_fraction"] == "0." + "6" * 39 + "8"
    assert session.spent["points"][0][0] == "2." + "6" * 38 + "72"


def test_a_context_changes_neither_promise_nor_noise(session):
    asked = [tr.mean("x", bounds=(0, 3)), tr.count()]
    usual = session.plan(asked, budget_fraction="0.3").to_data()
    with decimal.localcontext() as context:
        context.prec = 1
        assert session.plan(asked, budget_fraction="0.3").to_data() == usual
        odds = tr.Budget(attack_success="0.75", delta="1e-6")
    assert odds.points == ((Decimal(0), Decimal("0.50")),)


@pytest.mark.parametrize(
    "share", [0, -1, "-0.5", "nan", float("nan"), "inf", 2, True, None, "1e-99999999", "1e99999999"]
)
def test_a_share_is_above_zero_and_at_most_one(session, share):
    with pytest.raises(InputError, match="budget_fraction"):
        session.plan([tr.count()], budget_fraction=share)


def test_a_plan_is_released_once_and_its_answers_stay(session):
    plan = session.plan([tr.count()], budget_fraction="0.5")
    with pytest.raises(InputError, match="release the plan first"):
        _ = plan.answers
    first = plan.release()
    with pytest.raises(InsufficientBudgetError, match=r"already released.*plan\.answers"):
        plan.release()
    assert plan.answers is first
    assert session.spent["budget_fraction"] == "0.5"


def test_of_many_threads_one_releases(session):
    plan, ready, outcomes = session.plan([tr.count()], budget_fraction="0.3"), threading.Barrier(8), []

    def race() -> None:
        ready.wait()
        try:
            outcomes.append(plan.release())
        except InsufficientBudgetError:
            outcomes.append(None)

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(outcome is not None for outcome in outcomes) == 1
    assert session.spent["budget_fraction"] == "0.3"


def test_many_plans_at_once_never_overspend(session):
    plans, ready, released = (
        [session.plan([tr.count()], budget_fraction="0.3") for _ in range(8)],
        threading.Barrier(8),
        [],
    )

    def race(plan: tr.release.Plan) -> None:
        ready.wait()
        with contextlib.suppress(InsufficientBudgetError):
            released.append(plan.release())

    threads = [threading.Thread(target=race, args=[plan]) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(released), session.spent["budget_fraction"]) == (3, "0.9")


def _forked(plan: tr.release.Plan, outcome: object) -> None:
    try:
        plan.release()
    except InsufficientBudgetError as error:
        outcome.send("forked" in str(error) and "nothing was spent" in str(error))  # type: ignore[attr-defined]
    else:
        outcome.send(False)  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_copy_cannot_spend(session):
    plan = session.plan([tr.count()], budget_fraction="0.5")
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_forked, args=(plan, there))
    child.start()
    assert here.poll(30) and here.recv()
    child.join(30)
    assert session.spent["budget_fraction"] == "0"
    plan.release()


def test_other_ways_to_send_a_plan_to_a_process_refuse_it(session):
    child = multiprocessing.get_context("spawn").Process(target=_forked, args=(session.plan([tr.count()]), None))
    with pytest.raises(SingleUseError, match="process"):
        child.start()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EngineError("the engine failed to read")])
def test_after_the_charge_the_message_says_that_it_is_spent(session, failing, error):
    plan = session.plan([tr.count()], budget_fraction="0.5")
    failing(error)
    with pytest.raises(type(error), match=r"a fraction of 0\.5 of the budget was spent, and nothing was published"):
        plan.release()
    assert session.spent["budget_fraction"] == "0.5"
    with pytest.raises(InsufficientBudgetError, match="already released"):
        plan.release()


@pytest.mark.parametrize("error", [SystemExit(7), MemoryError("x")])
def test_other_exceptions_keep_what_they_say_and_bear_a_note(session, failing, error):
    plan = session.plan([tr.count()], budget_fraction="0.5")
    failing(error)
    with pytest.raises(type(error)) as raised:
        plan.release()
    assert raised.value.args == error.args
    assert "was spent" in raised.value.__notes__[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EngineError("no")])
def test_before_the_charge_nothing_is_spent_and_the_plan_lives(session, monkeypatch, error):
    plan = session.plan([tr.count()], budget_fraction="0.5")
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.release.build_answers.Profile", lambda **_: (_ for _ in ()).throw(error))
        with pytest.raises(type(error), match="nothing was spent"):
            plan.release()
    assert session.spent["budget_fraction"] == "0"
    plan.release()


class TwoIsReleased:
    """A table whose release is the number 2."""

    def prepare_answers(self) -> None:
        """Nothing can fail before the charge."""

    def read_and_draw(self, _: None) -> int:
        return 2


class Stopped(BaseException):
    """What a signal's handler may raise, anywhere."""


def stopped_at(step: int, work: Callable[[], object]) -> str | None:
    """The notes of ``Stopped``, raised at the ``step``-th line of a release's life cycle; None where it has fewer."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal seen
        if frame.f_code.co_filename not in (accounts.__file__, release_plan.__file__):
            return None
        seen += event == "line"
        if seen == step and event == "line":
            raise Stopped
        return trace

    sys.settrace(trace)
    try:
        work()
    except Stopped as stopped:
        return " ".join(getattr(stopped, "__notes__", ["outside"]))
    finally:
        sys.settrace(None)
    return None


def test_an_interrupt_at_any_line_charges_once_or_not_at_all_and_says_which():
    told, step = set(), 0
    while True:
        step += 1
        charges = accounts.SessionCharges()
        issued = tr.release.Plan(None, accounts.InMemoryAccount(charges, Fraction(1, 2)), TwoIsReleased())
        said = stopped_at(step, issued.release)
        spent = charges.total_charged()
        assert spent in (0, Decimal("0.5"))
        if said is None:
            break
        told.add((said, spent > 0))
        if spent:
            with pytest.raises(InsufficientBudgetError, match="already released"):
                issued.release()
        else:
            assert issued.release() == 2
        assert charges.total_charged() == Decimal("0.5")
    for said, spent in told - {("outside", False)}:
        assert ("nothing was spent" in said) is (not spent)
        assert ("was spent, and" in said) is spent
    assert step > 30 and len(told) == 4


def test_a_real_interrupt_of_a_query_is_no_failure_of_the_engine():
    """Seconds of work: DuckDB stops at once or, where another of its threads has the only task, when that is done."""
    code = """
    import os, signal, threading, time
    from tightrope.tables import engine_calls
    import duckdb
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    def later():
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=later).start()
    query = "select sum(sqrt(a.range * b.range)) from range(100000) a, range(10000) b"
    try:
        engine_calls.engine_call("read", lambda: duckdb.connect().sql(query).fetchall())
    except KeyboardInterrupt:
        print("interrupted")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "interrupted\n", done.stderr
