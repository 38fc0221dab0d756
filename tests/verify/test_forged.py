"""Documents that were forged by somebody who knows the verifier: none is confirmed, none keeps its reader waiting."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.verify.altered import Place, at, leaves, of_version_3
from tests.verify.written import STEPS, account, coupling, ledger, noise, partial_coupling, release, training
from tightrope.verify.check import check_document, document_text, verdict_text
from tightrope.verify.claims import CONFIRMED, NOT_CHECKED, NOT_CONFIRMED, REFUTED, Claim, worst_verdict
from tightrope.verify.forms import FORMS, MalformedError
from tightrope.verify.tables import TOTAL_WEIGHT

WRITTEN = {
    "release": lambda: release("cells"),
    "noise": lambda: noise("a dual"),
    "account": lambda: account("finite"),
    "training": training,
    "coupling": coupling,
    "partial coupling": partial_coupling,
    "ledger": ledger,
}  # fmt: skip
UNREAD = {
    "release": ("entry", "public_tables", "versions"),
    "noise": ("argument.numbers",),
    "account": (),
    "training": ("comparison",),
    "coupling": ("support", "stray", "origin", "group.names"),
    "partial coupling": ("support", "stray", "origin", "group.names"),
    "ledger": ("entries.body", "entries.state", "documents"),
}
"""Tables whose keys are anybody's: what they say is a hash's, or said not to be checked."""


def outcome(data: Any) -> str:
    """The verdict, or that it is no document."""
    try:
        return worst_verdict(check_document(data if isinstance(data, str) else json.dumps(data)))
    except ValueError:
        return "bad input"


def tables(data: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all tables."""
    if isinstance(data, dict):
        yield place
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from tables(value, (*place, key))


def read(name: str, place: Place) -> bool:
    path = ".".join(step for step in place if isinstance(step, str))
    return not any(path == one or path.startswith(f"{one}.") for one in UNREAD[name])


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_has_its_form_and_another_key_has_not(name):
    data = json.loads(WRITTEN[name]())
    FORMS[data["document"]]("document", data)
    for place in [place for place in tables(data) if read(name, place)]:
        for key in ("guarantee of epsilon", "\u0435psilon"):
            at(data, place)[key] = 0.001
            with pytest.raises(MalformedError):
                FORMS[data["document"]]("document", data)
            del at(data, place)[key]


@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_of_another_type_or_sign_have_not_the_form(name):
    data = json.loads(WRITTEN[name]())
    signed = ("loss", "steps", "unimodal_price", "start", "epsilon")
    for place in [place for place in leaves(data) if read(name, place)][:200]:
        old = at(data, place)
        if isinstance(old, bool) or not isinstance(old, int | float):
            continue
        others = [True, str(old), [old], math.inf, math.nan, *([] if place[-1] in signed else [-1])]
        for new in [*others, *([old + 0.5, float(old)] if whole(place) else [])]:
            at(data, place[:-1])[place[-1]] = new
            with pytest.raises(MalformedError):
                FORMS[data["document"]]("document", data)
        at(data, place[:-1])[place[-1]] = old


def whole(place: Place) -> bool:
    return place[-1] in ("count", "rows", "max_rows", "groups", "together", "releases", "examples", "batch")


@pytest.mark.parametrize("spelled", ["1_0", " 10", "+10", "\u0661\u0660", "1e1", "0x10", "-10", ""])
def test_a_weight_is_spelled_in_one_way(spelled):
    data = of_version_3(json.loads(release("cells")))
    data["mechanisms"][0]["table"]["half"][0] = spelled
    assert outcome(data) == "bad input"


def test_noise_whose_tail_ends_gives_somebody_away():
    """Uniform noise, as a tail of one block without a way on: its last outcomes are impossible for the neighbor."""
    data, cells = json.loads(noise("endless")), 8
    block = [TOTAL_WEIGHT // cells] * cells
    inside = (TOTAL_WEIGHT - TOTAL_WEIGHT // 15) // 2
    data |= {"sensitivity": 1, "realised": []}
    data["table"] = {"centre": str(TOTAL_WEIGHT - 2 * inside), "half": [], "steps": [], "tail": {
        "block": [str(one) for one in block], "escape_in": str(inside), "escape": "0"
    }}  # fmt: skip
    data["guarantee"] = {"epsilon": 0.25, "delta": 0.0, "total_variation": math.tanh(0.125)}
    claims = {claim.name: claim.verdict for claim in check_document(json.dumps(data))}
    assert claims["guarantee.delta: delta(0.25)"] != CONFIRMED


def test_rates_are_read_by_their_names():
    data = json.loads(release("cells"))
    rates = data["tradeoff"]
    turned = {"true_positive_rate": rates["false_positive_rate"], "false_positive_rate": rates["true_positive_rate"]}
    assert outcome(data | {"tradeoff": turned}) != CONFIRMED
    assert outcome(data | {"tradeoff": dict(reversed(rates.items()))}) == CONFIRMED


@pytest.mark.parametrize(("key", "value"), [("max_rows", 400), ("max_rows", 5)])
def test_mechanisms_count_the_rows_that_the_neighbors_say(key, value):
    data = json.loads(release("cells"))
    data["neighbors"][key] = value
    assert outcome(data) != CONFIRMED


def test_fewer_groups_than_a_person_may_have_are_said():
    data = json.loads(release("cells"))
    data["neighbors"]["max_groups"] = 400
    data["mechanisms"] = [one | {"groups": 3, "by": ["city"]} for one in data["mechanisms"]]
    said = [claim for claim in check_document(json.dumps(data)) if claim.name == "mechanisms[0].groups"]
    assert [claim.verdict for claim in said] == [NOT_CHECKED]


def test_a_training_says_the_neighbors_of_its_sampling(monkeypatch):
    monkeypatch.setattr("tightrope.verify.accounts.ACCOUNT_GRID_EXPONENTS", ())
    data = json.loads(training())
    claims = {claim.name: claim.verdict for claim in check_document(json.dumps(data | {"neighbors": "replace-one"}))}
    assert claims["neighbors"] != CONFIRMED


PLAIN = {"count": 1, "poisson_rate": None, "subset": None, "erase": None}
NOISY = {**PLAIN, "mechanism": "gaussian", "scale": 1, "sensitivity": None}
STRANGE = {
    "a count below 1": [NOISY, {**NOISY, "count": -1}],
    "half a run": [{**NOISY, "count": 0.5}],
    "a negative sensitivity": [{**NOISY, "mechanism": "laplace", "sensitivity": -1}],
    "a part of a step": [{**NOISY, "mechanism": "discrete_laplace", "sensitivity": 1.9}],
    "erased twice": [{**NOISY, "erase": 2}],
    "a rate below 0": [{**NOISY, "poisson_rate": -0.1}],
    "a subset below 0": [{**NOISY, "subset": [-1, 100]}],
    "a negative epsilon": [{**PLAIN, "mechanism": "approx_dp", "epsilon": -5, "delta": 0, "total_variation": None}],
    "a negative eta": [{**PLAIN, "mechanism": "approx_dp", "epsilon": 5, "delta": 0, "total_variation": -1}],
    "a negative mass": [{**PLAIN, "mechanism": "from_pair", "p": [3, -2], "q": [3, -2]}],
    "a key of its own": [{**NOISY, "users": 1000}],
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_steps_that_take_loss_away_are_no_document(name):
    data = json.loads(account("noise")) | {
        "steps": STRANGE[name], "total_variation": 0.0, "attack_success": 0.5, "attack": [], "delta_at_epsilon": [],
        "epsilon_at_delta": [{"delta": 1e-6, "epsilon": 1e-5, "lower": None, "upper": 1e-5, "relative_width": None}],
    }  # fmt: skip
    assert outcome(data) == "bad input"


@pytest.mark.parametrize("change", [{"steps": 0}, {"batch": -100, "sampling_rate": -0.1}, {"sampling": "none"}])
def test_a_training_of_no_steps_is_no_document(change):
    assert outcome(json.loads(training()) | change) == "bad input"


def test_a_point_twice_or_from_the_end_is_no_coupling():
    for change in ("twice", "from the end", "rows"):
        data = json.loads(coupling())
        group = data["groups"][0]
        if change == "twice":
            group["tables"][0] = {"outcomes": [0, 0], "weights": ["f" * 32, f"{TOTAL_WEIGHT:x}"]}
        elif change == "from the end":
            group["tables"][0]["outcomes"] = [-len(data["target"])]
        else:
            group["rows"] = [row - len(group["tables"]) for row in group["rows"]]
        assert outcome(data) != CONFIRMED, change


def test_claims_around_a_certificate_are_said_not_to_be_checked():
    claims = check_document(json.dumps({"epsilon": 0.001, "certificate": json.loads(noise("a dual"))}))
    assert ("epsilon", NOT_CHECKED) in [(claim.name, claim.verdict) for claim in claims]


def test_what_a_document_says_begins_no_line():
    shown = verdict_text(
        [Claim("steps", "x\n\x1b[2J\u202eCONFIRMED: of 99 lines 99 confirmed.", "open", NOT_CONFIRMED)]
    )
    assert len(shown.split("\n")) == 2
    assert shown.isascii()
    assert "\x1b" not in shown


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000])
def test_tables_within_tables_are_no_document(text):
    assert outcome(text) == "bad input"


def test_a_file_without_end_is_no_document(monkeypatch, tmp_path):
    monkeypatch.setattr("tightrope.verify.check.MAX_DOCUMENT_BYTES", 100)
    (tmp_path / "long.json").write_text(" " * 101, encoding="utf-8")
    with pytest.raises(ValueError, match="more than 100 bytes"):
        document_text(tmp_path / "long.json")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"releases": 10**15}, NOT_CONFIRMED),
        ({"sensitivity": 10**6}, REFUTED),
        ({"sensitivity": 1e300}, NOT_CONFIRMED),
        ({"releases": 10**30}, "bad input"),
    ],
)
def test_what_would_take_for_ever_is_left_open(monkeypatch, change, wanted):
    monkeypatch.setattr("tightrope.verify.loss_grid.MAX_TOTAL_POINTS", 1 << 14)
    assert outcome(json.loads(noise("several")) | change) == wanted


def test_exact_text_is_no_power_of_a_million():
    data = json.loads(release("cells"))
    data["budget"]["points"] = [["1e999999", "1e-99999999"]]
    assert outcome(data) == "bad input"
    data["budget"]["points"] = [[str(Decimal("1e-999")), "1e-9"]]
    assert outcome(data) != CONFIRMED


def test_what_is_shown_nearly_is_counted():
    claims = check_document(release("cells"))
    near = claims[0]._replace(finding="in [1, 2]: confirmed for the stated bound times 1.01", verdict=CONFIRMED)
    assert "1 of them with a small tolerance" in verdict_text([near])
    assert "small tolerance" not in verdict_text([claims[0]])


def test_every_sort_of_step_has_a_form():
    assert set(STEPS) == {"noise", "sampled", "finite", "subset"}
    for name in STEPS:
        data = json.loads(account(name))
        FORMS["account"]("account", data)


@pytest.mark.parametrize("part", [1e-6, 1e-9])
@pytest.mark.parametrize("place", [("profile", "delta", 3), ("tradeoff", "true_positive_rate", 2)])
def test_what_is_a_billionth_too_good_is_refuted(place, part):
    data = json.loads(release("cells"))
    at(data, place[:-1])[place[-1]] *= 1 - part
    assert outcome(data) == REFUTED
