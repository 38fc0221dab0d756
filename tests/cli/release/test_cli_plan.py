"""tightrope plan: what it will cost and how accurate it will be, before anything is spent."""

from __future__ import annotations

import json
import subprocess
import sys


def test_it_says_what_is_promised_and_how_accurate_it_will_be(run, folder):
    shown = run("plan", folder / "plan.toml")
    assert (shown.code, shown.err) == (0, "")
    for words in ("Visits", "epsilon 1 at delta", "right at most", "count_by_city", "age: Mean of age", "1,000",
                  "(using at most 3 rows per person", "tightrope suggest", "suppressed",
                  "This command spent no budget", "tightrope release"):  # fmt: skip
        assert words in shown.out
    assert "\x1b" not in shown.out


def test_a_centered_sum_is_explained_where_it_is_first_printed(run, folder):
    with (folder / "plan.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[question]]\nkind = "mean"\ncolumn = "age"\nbounds = [0, 100]\nname = "all_ages"\n')
    said = " ".join(run("plan", folder / "plan.toml").out.split())
    assert said.count("noise on the centered sum") == 2
    assert said.count("centered sum (the sum of the differences from the middle of the range; the mean is") == 1
    assert said.index("(the sum of the differences") < said.index("all_ages: ")


def test_it_says_the_promise_in_plain_words(run, folder):
    shown = run("plan", folder / "plan.toml", "--explain")
    assert (shown.code, shown.err) == (0, "")
    said = " ".join(shown.out.split())
    for words in (
        "An attacker who sees everything that this plan would release",
        "whatever else they know",
        "50 correct by random guessing",
    ):
        assert words in said
    assert shown.out.count("●") == 51  # 50 guesses, and the legend
    refused = run("plan", folder / "plan.toml", "--explain", "--json")
    assert refused.code == 2
    assert "--explain cannot be combined with --json or --table" in refused.err


def test_json_is_one_object_of_finite_numbers(run, folder):
    shown = json.loads(run("plan", folder / "plan.toml", "--json").out, parse_constant=lambda name: 1 / 0)
    assert shown["epsilon"] <= 1
    assert [answer["name"] for answer in shown["answers"]] == ["count_by_city", "age"]
    assert (shown["document"], shown["title"], shown["table"]) == ("planned release", "Visits", None)


def test_it_reads_no_data(run, folder):
    """Rows that would break any query change nothing: only the schema is read."""
    before = run("plan", folder / "plan.toml", "--json").out
    import pyarrow
    import pyarrow.parquet

    empty = pyarrow.parquet.read_table(folder / "visits.parquet").slice(0, 0)
    pyarrow.parquet.write_table(empty, folder / "visits.parquet")
    assert run("plan", folder / "plan.toml", "--json").out == before


def test_the_table_of_budgets(run, folder, monkeypatch):
    monkeypatch.setattr("tightrope.release.draft.TABLE_EPSILONS", ("0.5", "2"))
    shown = run("plan", folder / "plan.toml", "--table")
    assert shown.code == 0
    head = next(line for line in shown.out.splitlines() if line.startswith("95 % margin of error"))
    assert head.split()[-3:] == ["ε", "0.5", "2"]
    lines = [line for line in shown.out.splitlines() if line.startswith("age (1,000 rows)")]
    assert len(lines) == 1
    wide, narrow = map(float, lines[0].split()[-2:])
    assert wide > narrow > 0
    assert max(map(len, shown.out.splitlines()[:6])) <= 80
    table = json.loads(run("plan", folder / "plan.toml", "--table", "--json").out)["table"]
    success = [row["attack_success"] for row in table]
    assert success == sorted(success)


def test_the_words_agree_with_the_report(run, folder):
    """How much worse other noise is: as on the page, never × 1.01 for × 1.0000003."""
    shown = run("plan", folder / "plan.toml").out
    assert "used here" in shown
    assert "% more error" in shown
    assert not [line for line in shown.splitlines() if "Laplace" in line and "×" in line]
    assert "no noise meets this budget" not in shown


def test_keys_of_the_wrong_type_are_refused_before_they_are_paid(run, folder):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "wrong.toml").write_text(text.replace("[false, true]", '["false"]'), encoding="utf-8")
    for command in ("plan", "release"):
        run(command, folder / "wrong.toml").refused_with("'member'", "true and false without quotes")


def test_nonsense(run, folder):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "wrong.toml").write_text(text.replace("bounds", "boundz"), encoding="utf-8")
    run("plan", folder / "wrong.toml").refused_with("question 2", "'boundz'", "did you mean 'bounds'?")
    (folder / "wrong.toml").write_text(text.replace('"age"', '"agee"', 1), encoding="utf-8")
    run("plan", folder / "wrong.toml").refused_with("'agee'", "did you mean 'age'?")
    (folder / "wrong.toml").write_text("[source\n", encoding="utf-8")
    run("plan", folder / "wrong.toml").refused_with("valid TOML", "line 1")
    run("plan", folder / "nowhere.toml").refused_with("nowhere.toml", "tightrope init")
    run("plan", folder).refused_with("is a directory")


def test_a_title_commands_no_terminal(run, folder):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "loud.toml").write_text(text.replace('title = "Visits', 'title = "Visits\\u001b[2J'), encoding="utf-8")
    shown = run("plan", folder / "loud.toml")
    assert shown.code == 0
    assert "Visits\N{REPLACEMENT CHARACTER}[2J" in shown.out
    assert "\x1b" not in shown.out


def test_it_loads_no_engine_and_no_library_that_it_does_not_need(folder):
    """Seconds of processor time before the first word: only the noise is computed, and the schema read."""
    idle = ("ibis", "duckdb", "sqlglot", "pandas", "jinja2", "matplotlib", "scipy.signal", "scipy.stats")
    code = (
        "import sys; from tightrope.release.plan_file import load_plan_file;"
        "load_plan_file(sys.argv[1]).make_plan().document();"
        "from tightrope.cli import plan; import tightrope.reporting;"
        f"print([name for name in {idle!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code, folder / "plan.toml"], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
