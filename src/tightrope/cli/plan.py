"""``tightrope plan``: what a release will cost and how accurate it will be. Spends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.errors import spends_nothing
from tightrope.cli.options import AsJson, PlanPath, command_app
from tightrope.cli.output import heading, print_document, print_table, say, working
from tightrope.documents import Budget
from tightrope.documents.document import plain
from tightrope.documents.escaping import printable
from tightrope.documents.numbers import MISSING, UP, fixed, percent, significant
from tightrope.errors import InputError
from tightrope.reporting.wording.sentences import more_error, withheld

if TYPE_CHECKING:
    from tightrope.release.plan import Plan

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


@spends_nothing()
def plan(
    path: PlanPath, budgets: Budgets = False, within: Within = None, explain: Explain = False, as_json: AsJson = False
) -> None:
    """Show what a plan promises and how accurate it will be.

    Or the least budget that is as accurate as wanted; or the promise in words for everybody. Reads the names and types
    of the columns, never a value, and spends nothing.
    """
    from tightrope.release.plan_file import load, standing

    # Words are not asked for together with numbers.
    beside = as_json or budgets

    if explain and beside:
        raise InputError("--explain", True, "left out beside --json and --table", "it says the promise, in words alone")
    file = load(path)
    wanted = _margins_by_question(within or [])
    with working("Looking for the least budget ..." if wanted else "Choosing the least noise ..."):
        chosen = file.plan(wanted)
    if explain:
        say(*chosen.explain().split("\n"))
        return
    with working("Trying other budgets ..." if budgets else "Computing the errors ..."):
        document = chosen.document(file.title, _budgets(chosen) if budgets else None)
    if as_json:
        print_document(document)
        return
    data = plain(document)
    _show(data, path, file.title, standing(file, chosen))
    if data["table"] is not None:
        _show_budgets(data["table"])


def _margins_by_question(within: Sequence[str]) -> dict[str, str]:
    """Half-widths by question, the last one where a name comes twice."""
    for entry in within:
        if "=" not in entry:
            raise InputError("--within", entry, "NAME=50", "NAME is the name of a question in the plan")
    return {name: half for name, _, half in (entry.rpartition("=") for entry in within)}


def _budgets(chosen: Plan) -> list[Budget]:
    """Every usual epsilon at the plan's delta."""
    from tightrope.release.draft import EPSILONS

    return [Budget(epsilon=epsilon, delta=chosen.budget.delta) for epsilon in EPSILONS]


def _show(data: Json, path: str, title: str | None, ledger: Sequence[str]) -> None:
    from tightrope.release.plan_text import costs_lines, shared_notes

    say(*([printable(title)] if title else []))
    say(f"The promise: epsilon {significant(data['epsilon'], 3, UP)} at delta {significant(data['delta'], 2, UP)}.")
    if data["share"] != "1":
        say(f"This takes {data['share']} of the budget.")
    say(data["attacker"], str(data["neighbours"].get("statement", "")))
    shared = shared_notes(data["answers"])
    for answer in data["answers"]:
        _show_answer(answer, shared)
    if shared:
        heading("All answers")
        say(*(f"note: {note}" for note in shared))
    if len(data["alternatives"]) > 1:
        heading("Noise that was compared (expected error, relative to the chosen one)")
        alternatives = data["alternatives"]

        ordered = sorted(alternatives, key=lambda other: float(other["relative_error"]))
        print_table(["family", "error"], [[a["family"], more_error(a["relative_error"])] for a in ordered])
    heading("What was left out")
    say(*costs_lines(data["costs"]))
    say(*([] if not ledger else ["", *map(printable, ledger)]))
    say("\nNothing has been spent. To release:", f"  tightrope release {path}")


def _show_answer(answer: Json, shared: Sequence[str]) -> None:

    heading(f"{printable(answer['name'])}: {answer['question']}")
    say(f"{answer['meaning']}, over {answer['over']}.")
    kinds = "; ".join(f"{noise['statistic']}: {noise['family']}" for noise in answer["noise"])
    say(f"noise on {kinds}")
    error = answer["error"]
    if error["half_width_95"] is not None:
        worst = error["worst_error"]
        never = "" if worst is None else f", never more than ± {significant(worst, 3, UP)}"
        say(f"95 % of answers within ± {significant(error['half_width_95'], 3, UP)}{never}")
    if error["half_width_95"] is None or answer["keys"] == "discovered":
        # Errors at each group size, and how likely the group is to be withheld.
        columns = ["rows in a group", "expected error", "95 % within ±", "withheld"]
        rows = [
            [
                fixed(size["rows"], 0),
                significant(size["expected_absolute_error"], 2, UP),
                significant(size["half_width_95"], 2, UP),
                withheld(size["suppressed"]),
            ]
            for size in answer["error"]["by_group_size"]
        ]
        print_table(*(columns, rows), left=0)
    say(*(f"note: {note}" for note in answer["notes"] if note not in shared))


def _show_budgets(table: Sequence[Json]) -> None:
    """A column a budget; a line a question, and group size where the error depends on it."""
    heading("What other budgets buy: 95 % of answers within ± (rows in the group)")
    columns = ["epsilon", *(significant(row["epsilon"]) for row in table)]
    right = ["attacker right at most", *(percent(row["attack_success"], UP) for row in table)]
    print_table(
        columns,
        [
            right,
            *(
                [label, *_widths(table, label)]
                for label in list(dict.fromkeys(label for row in table for label in _lines(row)))
            ),
        ],
    )
    impossible = [f"{MISSING}: no noise keeps this budget."] if MISSING in right else []
    say("The attacker guesses whether somebody is in the data; a coin is right 50 % of the time.", *impossible)


def _lines(row: Json) -> dict[str, float]:
    """Half-widths under one budget, by question and group size."""
    lines: dict[str, float] = {}
    for name, widths in (row["answers"] or {}).items():
        sized = widths.items() if isinstance(widths, Mapping) else ()
        lines |= {f"{name} ({int(size):,})": width for size, width in sized} or {name: widths}
    return lines


def _widths(table: Sequence[Json], label: str) -> list[str]:

    return [significant(_lines(row).get(label), 2, UP) for row in table]


app = command_app(plan, example=PLAN_EXAMPLE)
