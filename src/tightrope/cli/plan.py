"""``tightrope plan``: what a release will cost and how accurate it will be. Spends nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import ROUND_UP, Decimal
from itertools import chain
from typing import Annotated, Any

import typer

from tightrope.cli.errors import spends_nothing
from tightrope.cli.options import AsJson, PlanPath, command_app
from tightrope.cli.output import echo_heading, echo_lines, print_document, print_table, show_spinner
from tightrope.documents import Budget
from tightrope.documents.document import plain_data
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import MISSING, UP, fixed_text, percent_text, significant_text
from tightrope.errors import InputError
from tightrope.reporting.wording.sentences import more_error, suppression_text

PLAN_EXAMPLE = """\b
Example:
  tightrope plan examples/census/plan.toml --table
"""
Budgets = Annotated[bool, typer.Option("--table", help="Show what every epsilon from 0.1 to 10 buys.")]
Within = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=50", help="Take the least budget with which 95 % of NAME are within ± 50 (or 5%)."),
]
Explain = Annotated[bool, typer.Option("--explain", help="Say in plain words what the plan promises, and no more.")]
Json = Mapping[str, Any]
TYPICAL_SIZE, MOST_LABEL = "1000", 28
"""The group size whose errors the table shows, and the longest name that stands in a line with its numbers."""


@spends_nothing()
def plan(
    path: PlanPath,
    budgets: Budgets = False,
    margin_of_error: Within = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """Show what a plan promises and how accurate it will be.

    Or the least budget that is as accurate as wanted; or the promise in words for everybody. Reads the names and types
    of the columns, never a value, and spends nothing.
    """
    from tightrope.release.plan_file import forecast_release, load_plan_file

    # Words are not asked for together with numbers.
    beside = as_json or budgets

    if explain and beside:
        raise InputError("--explain", True, "left out beside --json and --table", "it says the promise, in words alone")
    file = load_plan_file(path)
    wanted = _margins_by_question(margin_of_error)
    with show_spinner("Looking for the least budget ..." if wanted else "Choosing the least noise ..."):
        chosen = file.make_plan(wanted)
    if explain:
        echo_lines(*chosen.explain().split("\n"))
        return
    with show_spinner("Trying other budgets ..." if budgets else "Computing the errors ..."):
        usual = None
        if budgets:
            from tightrope.release.draft import EPSILONS

            usual = [Budget(epsilon=epsilon, delta=chosen.budget.delta) for epsilon in EPSILONS]
        document = chosen.document(file.plan_title, usual)
    if as_json:
        print_document(document)
        return
    data = plain_data(document)
    if data["table"] is None:
        forecast = forecast_release(file, chosen)
        _print_result(data, file.plan_title, forecast.sentences)
        echo_lines("\nNothing has been spent.")
        if not forecast.would_refuse:
            echo_lines(*_next_step(path, wanted))
        return
    _show_budgets(data["table"], file.plan_title)
    echo_lines("Nothing has been spent.")


def _margins_by_question(within: Sequence[str] | None) -> dict[str, str]:
    """Half-widths by question, the last one where a name comes twice."""
    margins: dict[str, str] = {}
    for entry in within or ():
        name, equals, half = entry.rpartition("=")
        if not equals:
            raise InputError("--margin-of-error", entry, "NAME=50", "NAME is the name of a question in the plan")
        margins[name] = half
    return margins


def _next_step(path: str, margins: Mapping[str, str]) -> list[str]:
    """Return how to release the plan shown: targets given as options have to be in the plan file first."""
    if not margins:
        return ["To release:", f"  tightrope release {path}"]
    settings = [
        f"  margin_of_error = {json.dumps(half) if half.endswith('%') else half}   (in the question {name!r})"
        for name, half in margins.items()
    ]
    return ["To release with this budget, first write into the plan file:", *map(escape_control_chars, settings),
            f"then:  tightrope release {path}"]  # fmt: skip


def _print_result(data: Json, title: str | None, ledger: Sequence[str]) -> None:
    from tightrope.release.plan_text import costs_lines, shared_notes

    echo_lines(*([escape_control_chars(title)] if title else []))
    echo_lines(
        f"The promise: epsilon {significant_text(data['epsilon'], 3, UP)} at delta "
        f"{significant_text(data['delta'], 2, UP)}."
    )
    if data["budget_fraction"] != "1":
        echo_lines(f"This takes {data['budget_fraction']} of the budget.")
    echo_lines(data["attacker"], str(data["neighbors"].get("statement", "")))
    shared = shared_notes(data["answers"])
    for answer in data["answers"]:
        _show_answer(answer, shared)
    if shared:
        echo_heading("All answers")
        echo_lines(*(f"note: {note}" for note in shared))
    if len(data["alternatives"]) > 1:
        echo_heading("Noise that was compared (expected error, relative to the chosen one)")
        alternatives = data["alternatives"]

        ordered = sorted(alternatives, key=lambda other: float(other["relative_error"]))
        print_table(["family", "error"], [[a["family"], more_error(a["relative_error"])] for a in ordered])
    echo_heading("What was left out")
    echo_lines(*costs_lines(data["bias_check"]))
    echo_lines(*([] if not ledger else ["", *map(escape_control_chars, ledger)]))


def _show_answer(answer: Json, shared: Sequence[str]) -> None:
    echo_heading(f"{escape_control_chars(answer['name'])}: {answer['question']}")
    echo_lines(f"{answer['meaning']}, over {answer['over']}.")
    kinds = "; ".join(f"{noise['statistic']}: {noise['family']}" for noise in answer["noise"])
    echo_lines(f"noise on {kinds}")
    error = answer["error"]
    if error["half_width_95"] is not None:
        worst = error["worst_error"]
        never = "" if worst is None else f", never more than ± {significant_text(worst, 3, UP)}"
        echo_lines(f"95 % of answers within ± {significant_text(error['half_width_95'], 3, UP)}{never}")
    if error["half_width_95"] is None or answer["keys"] == "discovered":
        # Errors at each group size, and the probability that the group is suppressed.
        columns = ["rows in a group", "expected error", "95 % within ±", "suppressed"]
        rows = [
            [
                fixed_text(size["rows"], 0),
                significant_text(size["expected_absolute_error"], 2, UP),
                significant_text(size["half_width_95"], 2, UP),
                suppression_text(size["suppressed"]),
            ]
            for size in answer["error"]["by_group_size"]
        ]
        print_table(*(columns, rows), left=0)
    echo_lines(*(f"note: {note}" for note in answer["notes"] if note not in shared))


def _show_budgets(table: Sequence[Json], title: str | None) -> None:
    """Print the margin of error that each budget buys: one line a question, for groups of a typical size."""
    echo_lines(*([escape_control_chars(title)] if title else []))
    margins = [_half_widths(row) for row in table]
    labels = dict.fromkeys(chain.from_iterable(margins))
    body = [[label, *(_compact(by_label.get(label)) for by_label in margins)] for label in labels]
    body.append(
        ["attacker is right, at most", *(percent_text(row["attack_success"], UP).replace(" %", "%") for row in table)]
    )
    head = ["95 % margin of error     ε", *(significant_text(row["epsilon"]) for row in table)]
    names, *columns = zip(head, *body, strict=True)
    first = max(len(head[0]), min(MOST_LABEL, max(map(len, names))))
    widths = [max(map(len, column)) for column in columns]
    lines = [""]
    for label, *cells in (head, *body):
        numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines += [f"{label:{first}}{numbers}"] if len(label) <= first else [label, f"{'':{first}}{numbers}"]
    typer.echo("\n".join(lines))
    impossible = [f"{MISSING}: no noise keeps this budget."] if MISSING in body[-1] else []
    echo_lines(
        "", "The attacker guesses whether a person is in the data; a coin is right 50 % of the time.", *impossible
    )


def _half_widths(row: Json) -> dict[str, float]:
    """Margins of error under one budget, by question and the group size that is shown."""
    lines: dict[str, float] = {}
    for name, margin in (row["answers"] or {}).items():
        if isinstance(margin, Mapping):
            size = TYPICAL_SIZE if TYPICAL_SIZE in margin else max(margin, key=int)
            lines[f"{escape_control_chars(name)} ({int(size):,} rows)"] = margin[size]
        else:
            lines[escape_control_chars(name)] = margin
    return lines


def _compact(margin: float | None) -> str:
    """Return a margin of error with two digits, rounded up, in at most six characters."""
    if margin is not None and not 1e-3 <= margin < 1e6:
        digits = Decimal(margin).normalize()
        return f"{digits.quantize(Decimal(1).scaleb(digits.adjusted() - 1), ROUND_UP):.1e}" if margin else "0"
    return significant_text(margin, 2, UP)


app = command_app(plan, example=PLAN_EXAMPLE)
