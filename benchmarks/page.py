"""The page of results, ``docs/benchmarks.md``: what is lost first, then a table an area; nothing is typed by hand."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lines import Findings, Line, in_markdown, ordered, plain, remarks

READING = """
*Ahead* says how many times better Tightrope is than the best other tool that promises as much: less time, memory or
error, or more of what is counted a second; 1 is equal, below 1 the other one is better. In each table rows in which we
are behind (or have no answer) come first, then rows that are short of the goal, then the rest. A tool with † promises
less, in the way that stands beside it, and is named where no other promises as much. Times are those of one process;
each tool has an environment of its own. What bounds us where we are behind: [performance](performance.md).
"""


@dataclass(frozen=True)
class Done:
    """An area that was run: its title, the command, what it found; ``failed`` says why it is not whole."""

    title: str
    command: str
    findings: Findings
    seconds: float
    failed: str = ""


@dataclass(frozen=True)
class Circumstances:
    """Of the whole run. ``size``: in words, where it is not the usual one."""

    date: str
    machine: str
    load: float
    minutes: float
    size: str = ""


def machine() -> str:
    """Its class; no name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, "
        f"Python {platform.python_version()}"
    )


def page(when: Circumstances, areas: Sequence[Done], peers: Mapping[str, str]) -> str:
    """Markdown. ``peers``: what to say of each environment."""
    size = f" {when.size}" if when.size else ""
    told = f"Written by `make bench` on {when.date} in {when.minutes:.0f} minutes: {when.machine}; "
    told += f"load of the machine at the beginning {when.load:.1f}.{size}"
    parts = ["# Benchmarks", told, READING.strip(), *behind(areas), *unfinished(areas)]
    parts += [part for area in areas for part in section(area)]
    versions = [f"- {name}: {plain(said)}" for name, said in peers.items()]
    return "\n\n".join([*parts, "## The other tools", "\n".join(versions)]) + "\n"


def behind(areas: Sequence[Done]) -> list[str]:
    """One table of all that is lost or short of its goal."""
    short = [_named(line, area) for area in areas for line in area.findings.lines if line.place[0] < 2]
    every = sum(len(area.findings.lines) for area in areas)
    lost = sum(line.lost for line in short)
    told = f"Of {every} rows we are behind in {lost} and short of the goal in {len(short) - lost} more."
    return ["## Where we are behind or short of the goal", told, *([in_markdown(short)] if short else [])]


def _named(line: Line, area: Done) -> Line:
    return replace(line, job=f"{area.title.lower()}: {line.job}")


def unfinished(areas: Sequence[Done]) -> list[str]:
    """Areas that failed, so that nobody takes what is missing for good."""
    failed = [f"- {area.title}: {plain(area.failed)}" for area in areas if area.failed]
    return ["**Not whole:**", "\n".join(failed)] if failed else []


def section(area: Done) -> list[str]:
    """One area; nothing but the reason where there are no rows."""
    head = [f"## {area.title}", f"`{area.command}`, {area.seconds / 60:.1f} minutes."]
    if area.failed:
        head.append(f"**Not whole:** {plain(area.failed)}")
    said = [f"- {plain(text)}" for text in (*area.findings.notes, *remarks(area.findings.lines))]
    table = [in_markdown(ordered(area.findings.lines))] if area.findings.lines else []
    return [*head, *table, *(["\n".join(said)] if said else [])]
