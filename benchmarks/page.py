"""The page of results, ``docs/benchmarks.md``: losses first, then one table per area; all of it is generated."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lines import AreaResults, escape_markdown, markdown_table, notes_of_lines, sort_lines

READING_GUIDE = """
*Ahead* says how many times better Tightrope is than the best other tool with the same privacy guarantee: less time,
memory or error, or more items per second; 1 is equal, below 1 the other tool is better. In each table the rows in which
we are behind (or have no answer) come first, then the rows that miss their goal, then the rest. A tool with † has a
weaker guarantee, as stated next to it; it is listed only if every other tool has a weaker one, too. Times are those of
one process; each tool has its own environment. What limits us where we are behind: [performance](performance.md).
"""


@dataclass(frozen=True)
class AreaRun:
    """The run of an area: its title, command and results; ``failure`` says why the results are incomplete."""

    title: str
    command: str
    results: AreaResults
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class RunConditions:
    """Date, machine and load of a whole run. ``size_note`` describes the size if it is not the usual one."""

    date: str
    machine: str
    load: float
    minutes: float
    size_note: str = ""


def describe_machine() -> str:
    """Return the kind of machine, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, "
        f"Python {platform.python_version()}"
    )


def results_page(conditions: RunConditions, areas: Sequence[AreaRun], peers: Mapping[str, str]) -> str:
    """Return the page in Markdown. ``peers`` has the text about each environment."""
    size = f" {conditions.size_note}" if conditions.size_note else ""
    origin = f"Written by `make bench` on {conditions.date} in {conditions.minutes:.0f} minutes: {conditions.machine}; "
    origin += f"load of the machine at the beginning {conditions.load:.1f}.{size}"
    parts = ["# Benchmarks", origin, READING_GUIDE.strip(), *losses_section(areas), *failed_areas(areas)]
    parts += [part for area in areas for part in area_section(area)]
    versions = [f"- {name}: {escape_markdown(text)}" for name, text in peers.items()]
    return "\n\n".join([*parts, "## The other tools", "\n".join(versions)]) + "\n"


def losses_section(areas: Sequence[AreaRun]) -> list[str]:
    """Return one table of all losses and missed goals."""
    shown = [
        replace(line, job=f"{area.title.lower()}: {line.job}")
        for area in areas
        for line in area.results.lines
        if line.sort_key[0] < 2
    ]
    total, losses = sum(len(area.results.lines) for area in areas), sum(line.is_loss for line in shown)
    summary = f"Of {total} rows we are behind in {losses} and short of the goal in {len(shown) - losses} more."
    return ["## Where we are behind or short of the goal", summary, *([markdown_table(shown)] if shown else [])]


def failed_areas(areas: Sequence[AreaRun]) -> list[str]:
    """Return the list of areas with incomplete results."""
    failed = [f"- {area.title}: {escape_markdown(area.failure)}" for area in areas if area.failure]
    return ["**Incomplete:**", "\n".join(failed)] if failed else []


def area_section(area: AreaRun) -> list[str]:
    """Return the heading, table and notes of an area; only the failure if there are no lines."""
    head = [f"## {area.title}", f"`{area.command}`, {area.seconds / 60:.1f} minutes."]
    if area.failure:
        head.append(f"**Incomplete:** {escape_markdown(area.failure)}")
    notes = [f"- {escape_markdown(text)}" for text in (*area.results.notes, *notes_of_lines(area.results.lines))]
    table = [markdown_table(sort_lines(area.results.lines))] if area.results.lines else []
    return [*head, *table, *(["\n".join(notes)] if notes else [])]
