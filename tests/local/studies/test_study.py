"""Studies: what people and collector share, in memory and in a file."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tightrope.documents.document import to_json_text
from tightrope.documents.study import STUDY, StudyDocument, read_findings, read_study
from tightrope.errors import InputError, PlanError
from tightrope.local.studies.planning import best, plan
from tightrope.local.studies.study import (
    Findings,
    Study,
    expected_accuracy,
    load_study,
    mechanism_choices,
    study_document,
    study_from_document,
    study_text,
)

NAMES = tuple(f"answer {i}" for i in range(16))
SHARES = {"document": "study", "version": 1, "question": "distribution", "categories": ["yes", "no"], "epsilon": 1}
MEAN = {"document": "study", "version": 1, "question": "mean", "bounds": [0, 50], "epsilon": 1}


def made(question, **settings):
    answers = {"categories": NAMES} if question == "distribution" else {"bounds": (0.0, 50.0)}
    return Study(question, settings.pop("epsilon", 1.0), **answers, **settings)


def test_the_best_is_the_one_with_the_least_variance():
    for epsilon in (0.5, 1.0, 3.0):
        study = made("distribution", epsilon=epsilon)
        assert study.with_mechanism_name.choice == best("distribution", epsilon=epsilon, k=16).name
        assert study.mechanism.mean_variance == best("distribution", epsilon=epsilon, k=16).variance
    assert made("mean").with_mechanism_name.choice == plan("mean", epsilon=1.0, people=9).option.name


@pytest.mark.parametrize("question", ["distribution", "mean"])
@pytest.mark.parametrize("eta", [None, 0.1, 0.3])
def test_every_choice_keeps_what_was_promised(question, eta):
    for choice in mechanism_choices(question):
        if choice == "response_with_erasure" and eta is None:
            continue
        study = made(question, choice=choice, epsilon=2.0, total_variation=eta)
        assert study.guarantee.epsilon <= 2.0
        assert study.guarantee.delta == 0
        assert study.guarantee.total_variation <= (1.0 if eta is None else eta)
        assert study.with_mechanism_name.with_mechanism_name == study.with_mechanism_name
        assert study_of_text(study_text(study)) == study.with_mechanism_name


@pytest.mark.parametrize("question", ["distribution", "mean"])
@pytest.mark.parametrize(("epsilon", "eta"), [(0.5, 0.1), (2.0, 0.1), (3.0, 0.45)])
def test_the_best_under_a_total_variation_is_that_of_the_plan(question, epsilon, eta):
    study = made(question, epsilon=epsilon, total_variation=eta)
    planned = plan(question, epsilon=epsilon, people=100, k=study.k, total_variation=eta)
    assert study.with_mechanism_name.choice == planned.option.name
    assert expected_accuracy(study, 100).error == pytest.approx(planned.error * study.error_unit)


def study_of_text(text):
    document = read_study(text, toml=True)
    assert document == study_document(study_from_document(document))
    return study_from_document(document)


def study_of_data(data):
    return study_from_document(STUDY.convert_data(data, StudyDocument))


@settings(max_examples=150, deadline=None)
@given(
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=6, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6, unique=True),
    epsilon=st.floats(1e-3, 50),
    title=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_what_is_written_is_read(tmp_path_factory, names, epsilon, title):
    study = Study("distribution", epsilon, categories=tuple(names), choice="k_randomized_response", title=title)
    assert study_of_text(study_text(study)) == study
    path = tmp_path_factory.mktemp("study") / "study.toml"
    path.write_text(study_text(study), encoding="utf-8", newline="")
    assert load_study(path) == study
    assert study_from_document(read_study(to_json_text(study_document(study)), toml=False)) == study


def test_json_is_read_too(tmp_path):
    path = tmp_path / "study.json"
    path.write_text(json.dumps(MEAN), encoding="utf-8")
    assert load_study(path) == Study("mean", 1.0, bounds=(0.0, 50.0))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"categories": ["yes", "yes"]}, "repetitions"),
        ({"categories": ["yes"]}, "categories to be a list of length >= 2"),
        ({"categories": "yes,no"}, "categories to be a list or nothing"),
        ({"categories": ["yes", 1]}, "text or all whole"),
        ({"categories": [1.0, 2.0]}, "categories 1 to be an integer or text"),
        ({"categories": [True, False]}, "categories 1 to be an integer or text"),
        ({"categories": [math.nan, 1]}, "categories 1 to be an integer or text"),
        ({"categories": [["yes"], ["no"]]}, "categories 1 to be an integer or text"),
        ({"categories": [1, 1 << 63]}, "64 bits"),
        ({"categories": ["yes", "\ud800"]}, "Unicode"),
        ({"bounds": [0, 1]}, "bounds"),
        ({"question": "mode"}, "question"),
        ({"question": ["mean"]}, "question"),
        ({"mechanism": "hadamrd"}, "did you mean 'hadamard'"),
        ({"mechanism": "duchi"}, "mechanism"),
        ({"mechanism": 3}, "mechanism"),
        ({"mechanism": ["best"]}, "mechanism"),
        ({"mechanism": "response_with_erasure"}, "total_variation"),
        ({"total_variation": 0}, "total_variation"),
        ({"total_variation": 1}, "total_variation"),
        ({"total_variation": math.nan}, "total_variation"),
        ({"title": 3}, "title"),
        ({"epsilom": 1}, "did you mean 'epsilon'"),
        ({"version": 3}, "version"),
        ({"document": "plan"}, "study document to be 'study'"),
        ({"version": True}, "version"),
        ({"version": None}, "version"),
    ],
)
def test_nonsense_in_a_file(changes, said):
    with pytest.raises(PlanError, match=said):
        study_of_data({**SHARES, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bounds": [1, 1]}, "bounds"),
        ({"bounds": [0, math.inf]}, "bounds 2"),
        ({"bounds": [math.nan, 1]}, "bounds 1"),
        ({"bounds": [0, 1, 2]}, "bounds"),
        ({"bounds": None}, "bounds"),
        ({"bounds": {"low": 1}}, "bounds"),
        ({"categories": ["a", "b"]}, "categories"),
        ({"mechanism": "hadamard"}, "mechanism"),
    ],
)
def test_nonsense_about_a_mean(changes, said):
    with pytest.raises(PlanError, match=said):
        study_of_data({**MEAN, **changes})


@pytest.mark.parametrize("key", ["document", "version", "question", "epsilon", "categories"])
def test_a_key_that_is_missing_is_named(key):
    with pytest.raises(PlanError, match=key):
        study_of_data({name: value for name, value in SHARES.items() if name != key})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", b"version = "),
        ("a.toml", b"\xff\xfe"),
        ("a.json", b"[1]"),
        ("a.json", b"{"),
        ("a.json", json.dumps(MEAN).replace("}", ', "epsilon": 50}').encode()),
        ("a.json", json.dumps({**MEAN, "epsilon": math.inf}).encode()),
        ("a.toml", b"a = " + b"[" * 100_000),
        ("a.json", b"[" * 100_000),
    ],
)
def test_files_that_are_none(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(PlanError, match="study"):
        load_study(path)
    with pytest.raises(PlanError, match="cannot be read"):
        load_study(tmp_path / "none.toml")
    with pytest.raises(PlanError, match="cannot be read"):
        load_study(tmp_path)


def test_findings_are_those_of_the_mechanism():
    study = made("distribution")
    reports = study.mechanism.perturb(np.arange(4000) % 16)
    told = study.mechanism.estimate(reports, confidence=0.9, simultaneous=True)
    tally = study.mechanism.tally_reports(reports)
    data = Findings.from_counts(study, tally, confidence=0.9, simultaneous=True, consistent=True).to_document()
    rows = data.estimates
    assert [row.category for row in rows] == list(NAMES)
    assert [row.lower for row in rows] == told.lower.tolist()
    assert [row.people for row in rows] == [4000 * value for value in told.value.tolist()]
    assert math.isclose(sum(row.consistent for row in rows), 1)
    assert min(row.consistent for row in rows) >= 0
    assert (data.reports, data.answered, data.confidence, data.simultaneous) == (4000, 4000, 0.9, True)
    assert read_findings(to_json_text(data)) == data


@pytest.mark.parametrize("choice", mechanism_choices("mean"))
def test_a_mean_in_its_own_units(choice):
    study = made("mean", choice=choice, epsilon=2.0)
    reports = study.mechanism.perturb([40.0] * 3000)
    data = Findings.from_counts(study, study.mechanism.tally_reports(reports)).to_document()
    told = study.mechanism.estimate(reports)
    assert read_findings(to_json_text(data)) == data
    [row] = data.estimates
    assert row.value == pytest.approx(float(told.value))
    assert (row.lower, row.upper) == pytest.approx((float(told.lower), float(told.upper)))
    assert abs(row.value - 40) < 6 * 25 * math.sqrt(3 / 3000)
    for option in ("simultaneous", "consistent"):
        with pytest.raises(InputError, match=option):
            Findings.from_counts(study, study.mechanism.tally_reports(reports), **{option: True})


@pytest.mark.parametrize("question", ["distribution", "mean"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_effort_is_that_of_the_plan_and_scales(question, epsilon):
    study = made(question, epsilon=epsilon)
    planned = plan(question, epsilon=epsilon, people=10_000, k=study.k)
    found = expected_accuracy(study, 10_000)
    assert found.error == pytest.approx(planned.error * study.error_unit)
    assert found.best == study.with_mechanism_name.choice
    assert 1 <= found.least_people <= found.best_people <= 10_000
    worse = expected_accuracy(
        made(question, epsilon=epsilon, choice=mechanism_choices(question)[-1 if question == "mean" else 5]), 10_000
    )
    assert worse.error >= found.error
    assert worse.best_people <= 10_000


def test_the_privacy_that_is_stated_is_that_of_the_loss():
    study = made("distribution", choice="response_with_erasure", total_variation=0.2, epsilon=2.0)
    data = Findings.from_counts(study, study.mechanism.tally_reports(study.mechanism.perturb([3] * 1000))).to_document()
    assert data.answered < data.reports
    assert data.privacy.attack_success == (1 + study.guarantee.total_variation) / 2 <= 0.6
    ten = 10 * study.mechanism.loss
    assert data.privacy.repeated[1].epsilon == ten.epsilon(1e-6)
    assert data.privacy.repeated[1].total_variation == ten.total_variation()
    exact = {entry.meaning: entry.exact for entry in data.mechanism.probabilities}
    assert exact["a report is not empty"] == str(study.mechanism.answer_probability)


def test_a_device_needs_no_database(tmp_path):
    """Reading a study and making a report load neither an engine nor Arrow."""
    path = tmp_path / "study.toml"
    path.write_text(study_text(made("distribution")), encoding="utf-8")
    code = (
        f"from tightrope import local; local.load_study({str(path)!r}).mechanism.perturb([3]); import sys\n"
        "print([name for name in ('ibis', 'duckdb', 'pyarrow', 'pandas', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
