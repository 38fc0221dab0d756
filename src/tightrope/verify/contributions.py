"""The effect of one row, and of one person, on each mechanism, derived again from the stated statistics.

A writer derives sensitivities, groups and parts from a question. An altered number contradicts the
others, and the stated statistic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from tightrope.verify.claims import CONFIRMED, OPEN, REFUTED, Claim, at_most, equality_claim, unchecked_claim

COUNTED = (
    "count",
    "usable values",
    "usable rows",
    "different values",
    "ones or zeros",
    "rows by block",
    "rows by cell",
)
"""Statistics to which a row adds one, or nothing."""
IN_CELLS = "rows by block", "rows by cell"
"""Of these any way counts in which one person's rows may fall into cells."""
SUMMED = "sum", "sum of ", "sum of squares of ", "sum of products of "
"""Statistics of numbers: the sensitivity follows from a range that the document does not hold."""
CHOSEN = "choice of the value, in rows below it", "choice of the width, in rows below its ends"
LEFT_OVER = "rows in groups that are not shown"
TALLY = re.compile(r"rows, (used|all|below|above|missing)( of (.*))?, over all groups", re.DOTALL)
MANY_TIMES = {"all": 16}
"""Bound on all rows of a person, as a multiple of the rows used."""
ENDS = {"below": " < ", "above": " > ", "missing": " is None"}
NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[+-]?[0-9]{1,3})?", re.ASCII)
JOINING = re.compile(r"[<>=!,]|\b(and|or|not|in|is|if|else|lambda)\b")
"""Operators that bind less tightly than a comparison."""
ALIKE = "table", "table_steps_per_row", "unit", "sensitivity_per_row", "factor", "by", "where", "family"
"""Fields shared by the mechanisms of an exclusive set, which act as one mechanism over that many times the groups."""
HALVED = Decimal(1) - Decimal(10) ** -6
Mechanism = dict[str, Any]


def gathered_units(mechanisms: Sequence[Mechanism]) -> list[list[Mechanism]]:
    """Mechanisms by the number ``together``. Where a document has none (version 1), each by itself: that costs more."""
    gathered: dict[Any, list[Mechanism]] = {}
    for place, one in enumerate(mechanisms):
        gathered.setdefault(one.get("together") or f"alone {place}", []).append(one)
    return list(gathered.values())


def over_all_groups(one: Mechanism) -> bool:
    """Return whether it counts all groups together: a person contributes once, at most its sensitivity."""
    return one["statistic"] == LEFT_OVER or TALLY.fullmatch(one["statistic"]) is not None


def contribution_claims(mechanisms: Sequence[Mechanism], whose: Mechanism) -> Iterator[Claim]:
    """Rows, groups and sensitivities of all mechanisms; ``whose`` are the neighbors, with the bounds on a person."""
    units = gathered_units(mechanisms)
    parts = parts_of(mechanisms)
    rows: dict[str, set[int]] = {}
    fallen: dict[str, set[str]] = {}
    for one in mechanisms:
        for answer in () if over_all_groups(one) else one["answers"]:
            rows.setdefault(answer, set()).add(one["rows"])
            said = [one["by"], one.get("where"), one["rows"], one["max_rows_per_group"], one["groups"] / parts[id(one)]]
            fallen.setdefault(answer, set()).add(json.dumps(said))
    yield equality_claim(
        "mechanisms of one answer that count other rows or groups", [one for one in fallen if len(fallen[one]) > 1], []
    )
    for place, one in enumerate(mechanisms):
        name = f"mechanisms[{place}]"
        if over_all_groups(one):
            yield from _of_all_groups(name, one, rows, parts[id(one)])
        else:
            yield from _bounded_as(name, one, whose, parts[id(one)])
            yield from _sensitivity_of(name, one)
    for unit in units:
        where = {json.dumps([one["by"], one.get("where")]) for one in unit}
        yield equality_claim(f"together {unit[0].get('together')!a}: one by and where", len(where), 1)
        if unit[0].get("exclusive") is not None:
            # An exclusive set: parts that are drawn alike, and that no row is in two of.
            exclusive_name = f"exclusive set {unit[0]['exclusive']!a}"
            exclusive_said = {json.dumps([one.get(part) for part in ALIKE], sort_keys=True) for one in unit}
            yield equality_claim(
                f"{exclusive_name}: one table, unit, sensitivity, by and where", len(exclusive_said), 1
            )
            yield Claim(f"{exclusive_name}: no row is in two of its parts", str(len(unit)), *disjoint_parts_claim(unit))
    yield from _sum_reaches(mechanisms)
    yield from _power_reaches(mechanisms)


def parts_of(mechanisms: Sequence[Mechanism]) -> dict[int, int]:
    """Count the mechanisms in each exclusive set: equal ``together`` numbers, or in version 1 equal fields."""
    sets: dict[str, list[int]] = {}
    for place, one in enumerate(mechanisms):
        label, number = one.get("exclusive"), one.get("together")
        alike = [one["answers"], one["by"], one["rows"], one["groups"]] if number is None else number
        sets.setdefault(json.dumps([place] if label is None else [label, alike]), []).append(id(one))
    return {own: len(found) for found in sets.values() for own in found}


def _of_all_groups(name: str, one: Mechanism, rows: dict[str, set[int]], parts: int) -> Iterator[Claim]:
    """A person adds once, to one of its parts, as many as rows of theirs are used for the answers that it is about."""
    shape = one["by"], one["rows"], one["max_rows_per_group"], one["groups"], Decimal(one["unit"])
    yield equality_claim(f"{name}: over all groups a person adds once", shape, ([], 1, 1, parts, 1))
    found = TALLY.fullmatch(one["statistic"])
    times = 1 if found is None else MANY_TIMES.get(found[1], 1)
    used = [times * most for most in sorted(set.union(set(), *(rows.get(answer, set()) for answer in one["answers"])))]
    yield equality_claim(f"{name}.sensitivity_per_row: the rows of a person", [int(one["sensitivity_per_row"])], used)
    if one.get("exclusive") is None:
        yield Claim(f"{name}.exclusive", "null", "a set of its own", REFUTED)


def _bounded_as(name: str, one: Mechanism, whose: Mechanism, parts: int) -> Iterator[Claim]:
    """A mechanism counts the rows that the neighbors say, or fewer; in the groups that its ``by`` and parts make."""
    rows, per_group, groups = one["rows"], one["max_rows_per_group"], one["groups"] // parts
    most, listed = whose["max_rows"], whose["max_groups"]
    yield equality_claim(f"{name}.groups: so many parts a group", (one["groups"] % parts, groups > 0), (0, True))
    if not one["by"]:
        yield equality_claim(f"{name}.groups: without a by", groups, 1)
    per_person = min(most, per_group * groups)
    yield equality_claim(
        f"{name}: rows, and whether a group may hold more", (rows, per_group > most), (per_person, False)
    )
    if one["statistic"] in IN_CELLS:
        yield equality_claim(f"{name}: rows fall into cells in any way", (per_group, groups), (rows, rows))
    if one.get("choice") is not None:
        yield equality_claim(f"{name}.max_rows_per_group: rows fall into cells in any way", per_group, rows)
        yield at_most(f"{name}.groups: of all but the cells", groups, 1, len(one["by"]) > 1 or groups == 1)
    if len(one["by"]) > 1 and (one["statistic"] in IN_CELLS or one.get("choice") is not None):
        yield equality_claim(f"{name}.rows: no group of its cells is bounded by itself", rows, most)
    if per_group < min(most, whose["max_rows_per_group"]):
        fewer = f"{per_group} of up to {whose['max_rows_per_group']}: that no more rows of a person are used per group"
        yield unchecked_claim(f"{name}.max_rows_per_group", fewer)
    if one["by"] and groups < min(listed, rows):
        yield unchecked_claim(f"{name}.groups", f"{groups} of up to {listed}: that there are no more groups")


def _sensitivity_of(name: str, one: Mechanism) -> Iterator[Claim]:
    """Check the sensitivity: one row for a count; a stated value above 0 for a sum."""
    statistic, size = one["statistic"], int(one["sensitivity_per_row"])
    if statistic in COUNTED:
        yield equality_claim(f"{name}: a row counts once", (size, Decimal(one["unit"])), (1, 1))
        if statistic == "count":
            yield equality_claim(f"{name}.column: rows are counted", one["column"], None)
    elif one.get("choice") is not None or statistic.startswith(CHOSEN):
        yield equality_claim(
            f"{name}.statistic of a choice", (statistic in CHOSEN, one.get("choice") is not None), (True, True)
        )
    elif statistic.startswith(SUMMED):
        holds = size >= 1 and one["column"] is not None and Decimal(one["unit"]) > 0
        yield at_most(f"{name}.sensitivity_per_row: of a sum", "1", size, holds)
    else:
        yield Claim(f"{name}.statistic", statistic, "an unknown statistic", OPEN)


def disjoint_parts_claim(parts: Sequence[Mechanism]) -> tuple[str, str]:
    """Return whether these parts are disjoint by their statistics: the words and the verdict.

    One part alone; the ones and the zeros of one column; values below, above and missing of one column.
    """
    if len(parts) == 1:
        return "one part", CONFIRMED
    first = parts[0]
    if [(one["statistic"], one["column"]) for one in parts] == [("ones or zeros", first["column"])] * 2:
        held = first["column"] is not None
        return ("the ones and the zeros of one column", CONFIRMED) if held else ("counts of no column", REFUTED)
    found = [TALLY.fullmatch(one["statistic"]) for one in parts]
    kinds = [match[1] for match in found if match is not None and match[1] in ENDS]
    columns = {match[3] for match in found if match is not None}
    if not len(kinds) == len(parts) == len(set(kinds)) or len(columns) != 1:
        return "statistics that one row may enter together", REFUTED
    return _conditions_exclude([str(one["column"]) for one in parts], kinds)


def _conditions_exclude(columns: Sequence[str], kinds: Sequence[str]) -> tuple[str, str]:
    """Return whether the expressions exclude each other: below a number, above one no smaller, or without a value."""
    read = [parse_condition(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    if None in read:
        return "conditions that could not be read", OPEN
    tests = {kind: one for kind, one in zip(kinds, read, strict=True) if one is not None}
    valued = {term for kind, (term, _) in tests.items() if kind != "missing"}
    term = next(iter(valued), "")
    missing = tests.get("missing", (term, None))[0]
    same = len(valued) < 2 and term in (missing, f"case({missing}, 1, not {missing}, 0, None)")
    ends = [tests[kind][1] for kind in ("below", "above") if kind in tests]
    ordered = len(ends) < 2 or bool(ends[0] <= ends[1])  # type: ignore[operator]
    return ("values of one column", CONFIRMED if same and ordered else REFUTED)


def parse_condition(column: str, kind: str) -> tuple[str, Decimal | None] | None:
    """The expression and the number of a count of values at one ``kind`` of end; None for what no writer writes.

    >>> parse_condition("case(age < 0.0, 1, None)", "below")
    ('age', Decimal('0.0'))
    >>> parse_condition("case(age is None, 1, None)", "missing")
    ('age', None)
    >>> parse_condition("case(a < 3 or b < 0.0, 1, None)", "below")
    """
    start, end = "case(", ", 1, None)"
    if not (column.startswith(start) and column.endswith(end)):
        return None
    term, sign, number = column[len(start) : -len(end)].rpartition(ENDS[kind])
    if not sign or not is_single_expression(term):
        return None
    if kind == "missing":
        return None if number else (term, None)
    return (term, Decimal(number)) if NUMBER.fullmatch(number) else None


def is_single_expression(term: str) -> bool:
    """Return whether an expression is one operand of a comparison: no looser operator outside brackets and quotes.

    >>> [is_single_expression(text) for text in ("age", "case(a < 3, 1, 0)", "column('a or b') + 1", "a or b", "f('")]
    [True, True, True, False, False]
    """
    bare, depth, quote, escaped = [], 0, "", False
    for letter in term:
        if quote:
            quote, escaped = ("" if letter == quote and not escaped else quote), letter == "\\" and not escaped
            continue
        quote = letter if letter in "'\"" else ""
        depth += (letter in "([") - (letter in ")]")
        if depth < 0:
            return False
        bare.append(letter if not depth and letter not in ")]'\"" else " ")
    return bool(term) and not quote and not depth and JOINING.search("".join(bare)) is None


def _sum_reaches(mechanisms: Sequence[Mechanism]) -> Iterator[Claim]:
    """A sum whose values are counted below a and above b reaches as far as they do, or (b − a)/2 from their middle."""
    ends: dict[str, dict[str, dict[str, Decimal]]] = {}
    for one in mechanisms:
        match = TALLY.fullmatch(one["statistic"])
        read = parse_condition(str(one["column"]), match[1]) if match is not None and match[1] in ENDS else None
        if match is not None and read is not None and read[1] is not None:
            for answer in one["answers"]:
                ends.setdefault(answer, {}).setdefault(read[0], {}).setdefault(match[1], read[1])
    centered = {answer for one in mechanisms if one["statistic"] == "usable values" for answer in one["answers"]}
    for place, one in enumerate(mechanisms):
        plain = one["statistic"] == SUMMED[0]
        if not plain and (not one["statistic"].startswith(SUMMED[1]) or one["statistic"].startswith(SUMMED[2:])):
            continue
        column = str(one["column"]) if plain else one["statistic"].removeprefix(SUMMED[1])
        for answer in one["answers"]:
            found = _ends_of(column, ends.get(answer, {}))
            if len(found) == 2:
                half = (found["above"] - found["below"]) / 2
                least = max(map(abs, found.values())) if plain and answer not in centered else half
                name = f"mechanisms[{place}].sensitivity_per_row: of a range this wide"
                yield at_most(name, least * HALVED, _row_reach(one), least * HALVED <= _row_reach(one))


def _ends_of(column: str, ends: dict[str, dict[str, Decimal]]) -> dict[str, Decimal]:
    """The ends of a column, or of the first of an answer's two."""
    if column in ends or len(ends) != 2:
        return ends.get(column, {})
    first, second = ends
    names = {f"{first} and {second}": first, f"{second} and {first}": second}
    return ends.get(names.get(column, ""), {})


def _power_reaches(mechanisms: Sequence[Mechanism]) -> Iterator[Claim]:
    """Squares and products of one answer reach as far as its sums: half of a centered square, and a whole product."""
    reach: dict[str, dict[str, Decimal]] = {}
    for one in mechanisms:
        if one["statistic"].startswith(SUMMED[1]) and not one["statistic"].startswith(SUMMED[2:]):
            column, size = one["statistic"].removeprefix(SUMMED[1]), _row_reach(one)
            for answer in one["answers"]:
                own = reach.setdefault(answer, {})
                own[column] = min(size, own.get(column, size))
    for place, one in enumerate(mechanisms):
        for answer in one["answers"] if one["statistic"].startswith(SUMMED[2:]) else ():
            least = _power_reach(one["statistic"], reach.get(answer, {}))
            if least is not None:
                name = f"mechanisms[{place}].sensitivity_per_row: of sums that reach so far"
                yield at_most(name, least * HALVED, _row_reach(one), least * HALVED <= _row_reach(one))


def _power_reach(statistic: str, reach: dict[str, Decimal]) -> Decimal | None:
    squared = reach.get(statistic.removeprefix(SUMMED[2]))
    if statistic.startswith(SUMMED[2]):
        return None if squared is None else squared * squared / 2
    for column, size in reach.items():
        start = f"{SUMMED[3]}{column} and "
        beside = reach.get(statistic.removeprefix(start)) if statistic.startswith(start) else None
        if beside is not None:
            return size * beside
    return None


def _row_reach(one: Mechanism) -> Decimal:
    """Return the most that a row adds, in the unit of the answer."""
    return int(one["sensitivity_per_row"]) * Decimal(one["unit"])
