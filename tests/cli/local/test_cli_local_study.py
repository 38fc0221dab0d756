"""tightrope local plan --out, perturb and estimate: a study from the question to its report."""

from __future__ import annotations

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

BROWSERS = ("firefox", "chrome", "safari", "\x1b[2Jevil")
PEOPLE = 8000
WORDS = ("--epsilon", "2", "--people", str(PEOPLE))


@pytest.fixture
def answers(tmp_path):
    """8 000 people: half of them in the first category, ages 20 to 69, a tenth without an answer to the third."""
    table = pyarrow.table(
        {
            "browser": [BROWSERS[max(0, i % 6 - 2)] for i in range(PEOPLE)],
            "year": [2000 + i % 4 for i in range(PEOPLE)],
            "age": [20.0 + i % 50 for i in range(PEOPLE)],
            "gaps": [None if i % 10 == 0 else "firefox" for i in range(PEOPLE)],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "answers.parquet")
    return tmp_path / "answers.parquet"


@pytest.fixture
def browsers(run, tmp_path):
    """A study about browsers."""
    path = tmp_path / "browsers.toml"
    names = tmp_path / "names.txt"
    names.write_text("".join(f"{name}\n" for name in BROWSERS), encoding="utf-8")
    done = run(
        "local", "plan", "distribution", "--categories-from", names, *WORDS, "--out", path, "--title", "Browsers"
    )
    assert done.code == 0, done.err
    return path


@pytest.fixture
def ages(run, tmp_path):
    """A study about ages."""
    path = tmp_path / "ages.toml"
    assert run("local", "plan", "mean", "--bounds", "0,100", *WORDS, "--out", path).code == 0
    return path


@pytest.fixture
def reports(run, tmp_path, browsers, answers):
    """Reports for the study about browsers."""
    path = tmp_path / "reports.parquet"
    assert run("local", "perturb", browsers, answers, "--column", "browser", "--out", path).code == 0
    return path


def test_shares_from_plan_to_estimate(run, browsers, reports):
    found = json.loads(run("local", "estimate", browsers, reports, "--json", "--confidence", "0.999999").out)
    told = {row["category"]: (row["lower"], row["upper"]) for row in found["estimates"]}
    for name, share in zip(BROWSERS, (0.5, 1 / 6, 1 / 6, 1 / 6), strict=True):
        assert told[name][0] <= share <= told[name][1]
    assert found["reports"] == PEOPLE
    assert found["privacy"]["epsilon"] <= 2
    assert found["effort"]["least_people"] <= PEOPLE
    assert pyarrow.parquet.read_schema(reports).names == ["report"]


def test_what_is_printed(run, browsers, reports):
    shown = run("local", "estimate", browsers, reports, "--simultaneous", "--consistent")
    assert shown.code == 0
    words = " ".join(shown.out.split())
    for said in ("Browsers", "8,000 reports", "firefox", "consistent", "Biased", "Simultaneous 95 %"):
        assert said in words
    assert "every mechanism with this guarantee" in words
    assert "must send the same report again" in words
    assert "epsilon 2, delta 0" in words
    assert "\x1b" not in shown.out


def test_a_mean_from_plan_to_estimate(run, ages, answers, tmp_path):
    reports = tmp_path / "ages.parquet"
    made = json.loads(run("local", "perturb", ages, answers, "--column", "age", "--out", reports, "--json").out)
    assert made["count"] == PEOPLE
    found = json.loads(run("local", "estimate", ages, reports, "--json", "--confidence", "0.999999").out)
    [row] = found["estimates"]
    assert row["lower"] <= 44.5 <= row["upper"]
    assert "mean" in run("local", "estimate", ages, reports).out
    run("local", "estimate", ages, reports, "--simultaneous").refused_with("simultaneous")
    run("local", "estimate", ages, reports, "--consistent").refused_with("consistent")


def test_errors_of_a_mean_are_in_its_units(run):
    words = ("local", "plan", "mean", "--epsilon", "1", "--json")
    plain = json.loads(run(*words, "--error", "0.02").out)
    scaled = json.loads(run(*words, "--error", "1", "--bounds", "0,100").out)
    assert scaled["people"] == plain["people"]
    assert scaled["least_people"] == plain["least_people"]
    assert scaled["error"] == pytest.approx(1)
    assert scaled["least_error"] == pytest.approx(50 * plain["least_error"])


def test_whole_numbers_are_categories_too(run, answers, tmp_path):
    study, reports = tmp_path / "years.toml", tmp_path / "years.parquet"
    run("local", "plan", "distribution", "--categories", "2000, 2001,2002,2003", *WORDS, "--out", study)
    assert "categories = [2000, 2001, 2002, 2003]" in study.read_text(encoding="utf-8")
    assert run("local", "perturb", study, answers, "--column", "year", "--out", reports).code == 0
    found = json.loads(run("local", "estimate", study, reports, "--json").out)
    assert [row["category"] for row in found["estimates"]] == [2000, 2001, 2002, 2003]
    run("local", "plan", "distribution", "--categories", "00,01", *WORDS, "--out", study, "--force")
    assert 'categories = ["00", "01"]' in study.read_text(encoding="utf-8")


def test_a_csv_file(run, ages, tmp_path):
    data = tmp_path / "ages.csv"
    data.write_text("age,zip\n" + "30,0815\n" * 2000 + "n/a,0815\n" * 10, encoding="utf-8")
    reports = tmp_path / "ages.parquet"
    assert run("local", "perturb", ages, data, "--column", "age", "--out", reports).code == 0
    found = json.loads(run("local", "estimate", ages, reports, "--json").out)
    assert found["reports"] == 2010
    study = tmp_path / "zips.toml"
    assert run("local", "plan", "distribution", "--categories", "0815,4711", *WORDS, "--out", study).code == 0
    assert run("local", "perturb", study, data, "--column", "zip", "--out", tmp_path / "zips.parquet").code == 0


def test_values_that_are_missing_report_like_anybody(run, browsers, answers, tmp_path):
    """A missing value is reported as a random category: it adds a quarter of its share to every one."""
    reports = tmp_path / "gaps.parquet"
    assert run("local", "perturb", browsers, answers, "--column", "gaps", "--out", reports).code == 0
    found = json.loads(run("local", "estimate", browsers, reports, "--json", "--confidence", "0.999999").out)
    assert found["reports"] == PEOPLE
    first, *others = found["estimates"]
    assert first["lower"] <= 0.925 <= first["upper"]
    assert all(row["lower"] <= 0.025 <= row["upper"] for row in others)


def test_the_page(run, browsers, reports, tmp_path):
    page = tmp_path / "deep" / "page.html"
    assert run("local", "estimate", browsers, reports, "--report", page).code == 0
    assert "<title>Browsers – local differential privacy</title>" in page.read_text(encoding="utf-8")
    run("local", "estimate", browsers, reports, "--report", tmp_path / "page.pdf").refused_with("report", ".html")


def test_reports_are_made_once(run, browsers, answers, reports):
    before = reports.read_bytes()
    again = run("local", "perturb", browsers, answers, "--column", "browser", "--out", reports)
    again.refused_with("out", "exists already", "new random reports")
    assert reports.read_bytes() == before


def test_a_study_is_not_overwritten(run, browsers):
    words = ("local", "plan", "mean", "--bounds", "0,1", *WORDS, "--out", browsers)
    run(*words).refused_with("out", "--force")
    assert run(*words, "--force").code == 0
    assert 'question = "mean"' in browsers.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("distribution", "--k", "4", "--out", "x.toml"), "categories"),
        (("distribution", "--categories", "a,b", "--k", "3"), "k"),
        (("distribution", "--categories", "a,,b"), "categories"),
        (("distribution", "--categories", "a,a"), "repetitions"),
        (("distribution", "--categories", "a"), "categories"),
        (("distribution", "--categories", "a,b", "--categories-from", "x.txt"), "cannot be combined"),
        (("distribution", "--categories-from", "none.txt"), "categories-from"),
        (("distribution", "--categories", "a,b", "--bounds", "0,1"), "bounds"),
        (("mean", "--bounds", "1,0"), "bounds"),
        (("mean", "--bounds", "nan,0"), "must be finite"),
        (("mean", "--bounds", "0 1"), "two numbers"),
        (("mean", "--k", "3"), "leave it out for the question 'mean'"),
        (("vector",), "dimension"),
        (("mean", "--dimension", "3"), "leave it out for the question 'mean'"),
        (("mean", "--bounds", "0,1", "--out", "study.txt"), "toml"),
        (("mean", "--bounds", "0,1", "--total-variation", "2"), "total_variation"),
        (("mode",), "question"),
    ],
)
def test_nonsense_in_a_plan(run, words, said):
    run("local", "plan", *words, *WORDS).refused_with(said)


@pytest.mark.parametrize("epsilon", ["inf", "0", "nan", "-1"])
def test_no_epsilon(run, tmp_path, epsilon, browsers, answers, reports):
    names = ("--categories", "a,b", "--people", "9")
    run("local", "plan", "distribution", *names, "--epsilon", epsilon).refused_with("epsilon")
    browsers.write_text(browsers.read_text().replace("epsilon = 2.0", f"epsilon = {epsilon}"))
    words = ("perturb", browsers, answers, "--column", "browser", "--out", tmp_path / "other.parquet")
    run("local", *words).refused_with("study epsilon")
    run("local", "estimate", browsers, reports).refused_with("study epsilon")
    assert not (tmp_path / "other.parquet").exists()


def test_nonsense_in_perturb(run, tmp_path, browsers, ages, answers):
    out = tmp_path / "out.parquet"

    def refused(study, data, column, *words, target=out):
        run("local", "perturb", study, data, "--column", column, "--out", target).refused_with(*words)
        assert not out.exists()

    refused(tmp_path / "none.toml", answers, "browser", "none.toml", "cannot be read")
    refused(browsers, tmp_path / "none.parquet", "browser", "none.parquet")
    refused(browsers, answers, "browsr", "did you mean 'browser'")
    refused(browsers, answers, "age", "column")
    refused(ages, answers, "browser", "column")
    refused(browsers, answers, "browser", "parquet", target=tmp_path / "out.csv")
    browsers.write_text("question = [", encoding="utf-8")
    refused(browsers, answers, "browser", "valid TOML")


def test_reports_of_another_mechanism(run, tmp_path, browsers, ages, answers, reports):
    run("local", "estimate", ages, reports).refused_with("reports")
    run("local", "estimate", browsers, tmp_path / "none.parquet").refused_with("none.parquet")
    run("local", "estimate", browsers, answers).refused_with("report")
    other = tmp_path / "other.parquet"
    for column in ([99] * 9, [1.5], ["x"], [None, 1]):
        pyarrow.parquet.write_table(pyarrow.table({"report": column}), other)
        run("local", "estimate", browsers, other).refused_with("report")
    pyarrow.parquet.write_table(pyarrow.table({"report": pyarrow.array([], pyarrow.uint8())}), other)
    run("local", "estimate", browsers, other).refused_with("1 report")
    run("local", "estimate", browsers, reports, "--confidence", "1").refused_with("confidence")


def test_reports_are_drawn_afresh(run, tmp_path, browsers, answers, reports):
    other = tmp_path / "again.parquet"
    assert run("local", "perturb", browsers, answers, "--column", "browser", "--out", other).code == 0
    first, second = (pyarrow.parquet.read_table(path)["report"].to_pylist() for path in (reports, other))
    assert len(first) == len(second) == PEOPLE
    assert first != second
    assert len(np.unique(first)) > 1


@pytest.mark.parametrize("command", ["plan", "perturb", "estimate", "check"])
def test_help_has_an_example(run, command):
    shown = run("local", command, "--help")
    assert shown.code == 0
    assert f"tightrope local {command} " in shown.out
    assert "Example" in shown.out


def test_a_title_commands_no_terminal(run, answers, tmp_path):
    study, reports = tmp_path / "evil.toml", tmp_path / "evil.parquet"
    words = ("--categories", "firefox,chrome", "--title", "all \x1b[2J \u202ewell")
    assert run("local", "plan", "distribution", *words, *WORDS, "--out", study).code == 0
    assert run("local", "perturb", study, answers, "--column", "browser", "--out", reports).code == 0
    shown = run("local", "estimate", study, reports).out
    assert shown.startswith("all �[2J �well\n")
    assert "\x1b" not in shown


def test_whoever_reports_sees_what_it_tells(run, browsers, answers, tmp_path):
    """A study comes from somebody else, who may have written a large epsilon into it."""
    words = ("local", "perturb", browsers, answers, "--column", "browser", "--out")
    assert "at most epsilon 2:" in run(*words, tmp_path / "a.parquet").out
    made = json.loads(run(*words, tmp_path / "b.parquet", "--json").out)
    assert made["epsilon"] <= 2
    assert made["attack_success"] == (1 + made["total_variation"]) / 2
    browsers.write_text(browsers.read_text(encoding="utf-8").replace("= 2.0", "= 30"), encoding="utf-8")
    assert "at most epsilon 30:" in run(*words, tmp_path / "c.parquet").out


def test_one_report(run, browsers, tmp_path):
    data, reports = tmp_path / "one.csv", tmp_path / "one.parquet"
    data.write_text("browser\nfirefox\n", encoding="utf-8")
    assert run("local", "perturb", browsers, data, "--column", "browser", "--out", reports).out.startswith(
        "1 report by"
    )
    shown = run("local", "estimate", browsers, reports).out
    assert "\n1 report\n" in shown
    assert "With 1 person, the root mean square error" in shown
    assert "No reports are needed for that" in " ".join(shown.split())
    assert "fewer than 1 " not in shown


def test_errors_of_shares_are_those_of_all_of_them(run, browsers, reports):
    """A large proportion may be off by more than what is stated for all categories together."""
    assert "The error of a large proportion can be larger" in " ".join(
        run("local", "estimate", browsers, reports).out.split()
    )


@pytest.fixture
def written(tmp_path):
    """A CSV file: names, ages that are mostly numbers, and gaps."""
    path = tmp_path / "people.csv"
    path.write_text("name,age,gaps\nAnn,31,\nBob,?,\nEve,40,\n", encoding="utf-8")
    return path


def test_a_missing_column_of_a_csv_file_is_called_a_column(run, tmp_path, ages, written):
    done = run("local", "perturb", ages, written, "--column", "aeg", "--out", tmp_path / "r.parquet")
    done.refused_with("column")
    assert "types" not in done.err
    assert "age" in done.err


def test_text_is_no_number(run, tmp_path, ages, written, answers):
    """Where no value is a number every report would be of the middle. A gap or a slip is: that must say nothing."""
    out = tmp_path / "r.parquet"
    for data, column in ((written, "name"), (answers, "browser")):
        done = run("local", "perturb", ages, data, "--column", column, "--out", out)
        done.refused_with("number")
        assert "Ann" not in done.err
        assert not out.exists()
    for column in ("age", "gaps"):
        assert (
            run("local", "perturb", ages, written, "--column", column, "--out", tmp_path / f"{column}.parquet").code
            == 0
        )


def test_text_is_no_whole_number_either(run, tmp_path, written):
    """Every row would report a random category."""
    study, out = tmp_path / "years.toml", tmp_path / "r.parquet"
    run("local", "plan", "distribution", "--categories", "31,40", *WORDS, "--out", study)
    run("local", "perturb", study, written, "--column", "name", "--out", out).refused_with("number")
    assert not out.exists()
    for column in ("age", "gaps"):
        done = run("local", "perturb", study, written, "--column", column, "--out", tmp_path / f"{column}.parquet")
        assert done.code == 0
        assert "exactly" not in done.out


def test_how_categories_are_matched_is_said_whatever_the_data(run, tmp_path, browsers, answers):
    """How many match is the data's secret; what matching means is not."""
    strangers = tmp_path / "strangers.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"browser": ["Firefox "] * PEOPLE}), strangers)
    told = []
    for data in (answers, strangers):
        shown = run(
            "local", "perturb", browsers, data, "--column", "browser", "--out", tmp_path / f"of-{data.name}"
        ).out
        told.append(shown[shown.index("Each report") :])
    assert "matched exactly" in told[0]
    assert told[0] == told[1]


def test_vectors_are_planned(run):
    done = json.loads(
        run("local", "plan", "vector", "--dimension", "3", "--epsilon", "1", "--people", "1000", "--json").out
    )
    assert (done["mechanism"], done["people"]) == ("ball_mean", 1000)
    assert 0 < done["least_error"] <= done["error"]
