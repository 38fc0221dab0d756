"""A coupling whose parts contradict each other is not confirmed: what ``couple check`` refuses, ``verify`` refuses."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tightrope.documents.coupling import Origin
from tightrope.documents.document import to_json_text
from tightrope.errors import InputError
from tightrope.tables.labels import Axis, Labels
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.on_tables.saved import SavedCoupling
from tightrope.transport.on_tables.supports import Categories, Cells
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict

Data = dict[str, Any]
LINE = Cells((Axis("age", 0, 100, 4),))
MAP = Cells((Axis("x", 0, 1, 2), Axis("y", 0, 1, 3)))
FITTED: dict[str, tuple[Categories | Cells, str, str]] = {
    "a line": (LINE, "cityblock", "expected"),
    "a line, the largest": (LINE, "euclidean", "worst"),
    "a map": (MAP, "euclidean", "expected"),
    "a map of squares": (MAP, "sqeuclidean", "expected"),
    "a map of a king": (MAP, "chebyshev", "expected"),
    "categories": (Categories("city", Labels.from_names(["Bern", "Graz", "Ulm"])), "discrete", "expected"),
    "a partial line": (LINE, "cityblock", "expected"),
    "a partial map": (MAP, "euclidean", "expected"),
    "a partial map of edges": (MAP, "cityblock", "expected"),
    "partial categories": (Categories("city", Labels.from_names(["Bern", "Graz", "Ulm"])), "discrete", "expected"),
    "a partial line to a target": (LINE, "cityblock", "expected"),
    "numbers": (Categories("grade", Labels.from_names([1, 2, 5])), "cityblock", "worst"),
}
LAWS = {"f": [0.5, 0.25, 0.25, 0, 0, 0], "m": [0, 0.5, 0.25, 0.25, 0, 0]}
TARGET = [0.25, 0.25, 0.25, 0.25, 0, 0]
DELTA = 0.125


def saved(name: str) -> Data:
    support, metric, objective = FITTED[name]
    size = len(support)
    laws = {group: [part / sum(law[:size]) for part in law[:size]] for group, law in LAWS.items()}
    target = [part / sum(TARGET[:size]) for part in TARGET[:size]]
    delta = DELTA if "partial" in name else 0.0
    chosen = None if "partial" in name and "target" not in name else target
    cost = support.transport_cost(metric)
    fitted = CouplingMechanism.fit(laws, cost, target=chosen, objective=objective, delta=delta)
    document = SavedCoupling(fitted, support, "sex", metric, Origin.from_kind("public", "mine")).to_document()
    found: Data = json.loads(to_json_text(document))
    return found


@pytest.mark.parametrize("name", FITTED)
def test_what_was_fitted_is_confirmed(name: str) -> None:
    claims = check_document(json.dumps(saved(name)))
    assert worst_verdict(claims) == CONFIRMED, [one for one in claims if one.verdict in (NOT_CONFIRMED, REFUTED)]


def more_cells(data: Data) -> None:
    data["support"]["axes"][0]["cells"] += 1


def fewer_points(data: Data) -> None:
    data["support"]["names"].pop()


def less_hidden(data: Data) -> None:
    """State half of the δ that the weights have."""
    data["common_part"]["delta"] /= 2


def higher_bound(data: Data) -> None:
    """State that every such mechanism moves values further than this one does."""
    data["common_part"]["lower"] *= 1.01


def raised_potentials(data: Data) -> None:
    """Claim a bound from potentials that do not prove it: larger ones lower the base."""
    data["common_part"]["potentials"] = [[4 * v + 1 for v in row] for row in data["common_part"]["potentials"]]


def huge_potentials(size: float) -> Callable[[Data], None]:
    """Shift all potentials by so much that rounding, or infinity, hides how little they prove."""

    def forge(data: Data) -> None:
        part = data["common_part"]
        part["potentials"] = [[v + size for v in row] for row in part["potentials"]]
        part["lower"] = sum(w * group["loss"] for w, group in zip(part["weights"], data["groups"], strict=True))

    return forge


FORGED: dict[str, tuple[str, Callable[[Data], None]]] = {
    "more cells than points": ("a line", more_cells),
    "fewer names than points": ("categories", fewer_points),
    "other cells along two axes": ("a map", more_cells),
    "a name twice": ("categories", lambda data: data["support"].update(names=["Bern", "Bern", "Ulm"])),
    "names of two kinds": ("categories", lambda data: data["support"].update(names=["Bern", 1, "Ulm"])),
    "a range upside down": ("a line", lambda data: data["support"]["axes"][0].update(lower=100, upper=0)),
    "a range of no width": ("a line", lambda data: data["support"]["axes"][0].update(lower=1e300, upper=1.0000001e300)),
    "one column twice": ("a map", lambda data: data["support"]["axes"][0].update(column="y")),
    "a metric of a map": ("a line", lambda data: data["support"].update(metric="chebyshev")),
    "distances between texts": ("categories", lambda data: data["support"].update(metric="cityblock")),
    "a group twice": ("a line", lambda data: data["group"].update(names=["f", "f"])),
    "half the loss": ("a line", lambda data: data["groups"][0].update(loss=data["groups"][0]["loss"] / 2)),
    "twice the range": ("a line", lambda data: data["support"]["axes"][0].update(upper=200.0)),
    "another objective": ("a line", lambda data: data.update(objective="worst")),
    "all of the mass was moved": ("a line", lambda data: data.update(stray=["1", "1"])),
    "more mass than there is": ("a line", lambda data: data.update(stray=["2", "1"])),
    "no mass": ("a line", lambda data: data.update(stray=["0", "0"])),
    "learned, and public": ("a line", lambda data: data["origin"].update(kind="private")),
    "a law of nothing": ("a line", lambda data: data["groups"][0].update(law=["0"] * 4)),
    "a target of nothing": ("a line", lambda data: data.update(target=["0"] * 4)),
    "less than is left": ("a partial line", less_hidden),
    "less than is left by categories": ("partial categories", less_hidden),
    "none is left": ("a partial line to a target", lambda data: data["common_part"].update(delta=1e-30)),
    "not partial": ("a partial map", lambda data: data.pop("common_part")),
    "a bound above the distance": ("a partial map", higher_bound),
    "a bound that is not proved": ("a partial map of edges", raised_potentials),
    "potentials beyond precision": ("a partial line", huge_potentials(1e19)),
    "potentials that add up to infinity": ("a partial map", huge_potentials(1e308)),
    "no potentials": ("a partial line", lambda data: data["common_part"].update(potentials=[[0.0] * 4] * 2)),
    "potentials of one group": ("a partial line", lambda data: data["common_part"]["potentials"].pop()),
    "potentials of fewer points": ("a partial line", lambda data: data["common_part"]["potentials"][0].pop()),
    "weights of two wholes": ("a partial line", lambda data: data["common_part"].update(weights=[1.0, 1.0])),
    "half the loss of a partial one": (
        "a partial line",
        lambda data: data["groups"][1].update(loss=data["groups"][1]["loss"] / 2),
    ),
    "a negative delta": ("a partial line", lambda data: data["common_part"].update(delta=-0.1)),
    "a table of another group": (
        "a partial line",
        lambda data: data["groups"][0].update(tables=data["groups"][1]["tables"], rows=data["groups"][1]["rows"]),
    ),
    "the row of an empty point": ("a line", lambda data: data["groups"][1]["rows"].__setitem__(0, 1)),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_contradicts_itself_is_neither_read_nor_confirmed(name: str) -> None:
    document, forge = FORGED[name]
    data = saved(document)
    forge(data)
    text = json.dumps(data)
    with pytest.raises(InputError):
        SavedCoupling.from_json(text)
    with contextlib.suppress(ValueError):  # no document at all
        assert worst_verdict(check_document(text)) == REFUTED
