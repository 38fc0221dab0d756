"""Texts of expressions, read as trees.

A text is parsed by Python's own parser and nothing in it is run. Forms outside the language are rejected: attributes,
subscripts, calls of anything but ``FUNCTIONS``, comprehensions, ``lambda``, ``:=``, f-strings, ``**``. The length of
the text and the depth of the tree are limited before they are read.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from tightrope.errors import InputError, quoted_names, short_repr, suggest_nearest
from tightrope.tables.expressions.arithmetic import Arithmetic
from tightrope.tables.expressions.conditions import Compare, Member, Missing, Not, join_conditions
from tightrope.tables.expressions.functions import FUNCTIONS, Argument, LiteralList
from tightrope.tables.expressions.leaves import FOREIGN_CONSTANTS, ColumnRef, Value, to_literal
from tightrope.tables.expressions.tree import MAX_TREE_DEPTH, ExpressionTree

MAX_EXPRESSION_LENGTH = 10_000
USAGE = "column names, numbers, 'texts', + - * /, == < <= > >= !=, in [...], is None, and, or, not and functions"
ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
TIPS: dict[type[ast.AST], str] = {
    ast.IfExp: "say case(condition, value, otherwise)",
    ast.BitAnd: "say and",
    ast.BitOr: "say or",
    ast.Invert: "say not",
    ast.Attribute: 'a column whose name has a dot is column("a.b")',
    ast.NamedExpr: "say == to compare",
    ast.JoinedStr: "write the text itself, and concat(a, b) to join texts",
    ast.Mod: "say mod(x, divisor)",
    ast.FloorDiv: "say floor(x / y)",
}
"""Remedies for forms of Python that the language lacks."""
QUOTED_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
QUOTED_TEXT_OR_COMMENT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|#", re.DOTALL)
_WORDS = r"\b(?:and|or|not|in|is|if|else|like|between|null)\b"
FOREIGN_OPERATOR_TIPS = {
    r"=>": "there is no =>: write >= for at least",
    r"=<": "there is no =<: write <= for at most",
    r"<>": "say !=",
    r"&&": "say and",
    r"\|\|": "say or",
    r"!(?!=)": "say not",
    r"(?<![<>=!])=(?![<>=])": "say == to compare",
    r"(?i)\bis\s+not\s+null\b": "say x is not None",
    r"(?i)\bis\s+null\b": "say x is None",
    r"\bAND\b": "say and, in lower case",
    r"\bOR\b": "say or, in lower case",
    r"\bNOT\b(?!\s+NULL)": "say not, in lower case",
    r"\bIN\b": "say x in ['a', 'b']",
    r"(?i)\bbetween\b": "say 0 <= x <= 5",
    r"`": 'a column whose name has blanks is column("my col")',
    rf"(?i)(?!{_WORDS})\b[a-z_]\w*\s+(?!{_WORDS})[a-z_]": 'a column whose name has blanks is column("my col")',
    r"(?i)\blike\b": "there are no patterns: say contains(x, 'a'), starts_with(x, 'a') or x in ['a', 'b']",
}
"""Patterns of operators of other languages, outside of quoted texts, and their equivalents here."""


def parse_expression(text: str) -> ExpressionTree:
    """Return the tree of a text; raises ``InputError`` that says which part cannot be read and what is possible.

    >>> parse_expression("month(departed) in [6, 7] and not 0 < distance <= 500")
    ... # doctest: +ELLIPSIS
    Logic(word='and', conditions=(Member(...), Not(...)))
    >>> print(parse_expression("(a + b) * 2 > c and (x is not None or y)"))
    (a + b) * 2 > c and (x is not None or y)
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_EXPRESSION_LENGTH:
        expected = f"a text of at most {MAX_EXPRESSION_LENGTH:,} letters"
        raise InputError("expression", text if isinstance(text, str) else type(text).__name__, expected, USAGE)
    line = _join_lines(text)
    tree: ast.expr | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's warnings about escapes and number literals
            tree = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    if tree is None:
        unquoted = QUOTED_TEXT.sub("''", line)
        tips = [tip for pattern, tip in FOREIGN_OPERATOR_TIPS.items() if re.search(pattern, unquoted)]
        remedy = ", ".join(dict.fromkeys(tips)) if tips else f"expressions are made of {USAGE}"
        raise InputError.from_text("expression", f"{short_repr(line)} is not valid; {remedy}")
    return _NodeReader(line.encode(errors="replace"))(tree, 0)


def _join_lines(text: str) -> str:
    """Return the text in one line; raises ``InputError`` if a part of it would be left out or changed.

    Python ignores everything after a ``#``, and a line break within quotes would become a blank.
    """
    for found in QUOTED_TEXT_OR_COMMENT.findall(text):
        if found == "#":
            tip = 'there are no comments in expressions, and a column whose name has a # is column("a#b")'
            raise InputError.from_text("expression", f"{short_repr(text)} has a #; {tip}")
        if "\n" in found:
            tip = r"a text in quotes is on one line; a line break in it is written \n"
            raise InputError.from_text("expression", f"{short_repr(found)} is not valid; {tip}")
    return " ".join(text.split("\n")).strip()


@dataclass(frozen=True, slots=True)
class _NodeReader:
    """Reads Python's syntax nodes of one line as trees; ``line`` is in bytes, the unit of Python's column offsets."""

    line: bytes

    def __call__(self, node: ast.AST, depth: int) -> ExpressionTree:
        if depth > MAX_TREE_DEPTH:
            raise InputError("expression", f"{depth} levels", f"at most {MAX_TREE_DEPTH} levels deep")
        reader = NODE_READERS.get(type(node))
        if reader is None:
            raise self.unsupported_error(node)
        return reader(self, node, depth + 1)

    def unsupported_error(self, node: ast.AST, tip: str = "") -> InputError:
        """Return the error for a node that the language lacks."""
        remedy = TIPS.get(type(node), tip or f"expressions are made of {USAGE}")
        return InputError.from_text("expression", f"{short_repr(self.source_text(node))} is not supported; {remedy}")

    def source_text(self, node: ast.AST) -> str:
        """Return the part of the line that the node was read from."""
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
        return self.line[start:end].decode(errors="replace")

    def read_constant(self, node: ast.Constant, depth: int) -> ExpressionTree:
        del depth
        if node.value is None:
            raise InputError(
                "expression", "None", "x is None, or a value of case", "a missing value cannot be computed with"
            )
        return to_literal(node.value)

    def read_name(self, node: ast.Name, depth: int) -> ExpressionTree:
        """Read the name as it is written: Python's parser would turn ``ﬁn`` into ``fin``."""
        del depth
        if node.id in FOREIGN_CONSTANTS:
            raise self.unsupported_error(node, f"say {FOREIGN_CONSTANTS[node.id]}")
        return ColumnRef(self.source_text(node))

    def read_binary(self, node: ast.BinOp, depth: int) -> ExpressionTree:
        operation = ARITHMETIC.get(type(node.op))
        if operation is None:
            raise self.unsupported_error(
                node, TIPS.get(type(node.op), "there are + - * /, floor(x, width), mod(x, divisor) and log(x)")
            )
        return Arithmetic(operation, self(node.left, depth), self(node.right, depth))

    def read_unary(self, node: ast.UnaryOp, depth: int) -> ExpressionTree:
        if isinstance(node.op, ast.Invert):
            raise self.unsupported_error(node, TIPS[ast.Invert])
        negative = isinstance(node.op, ast.USub)
        if negative and isinstance(node.operand, ast.Constant) and type(node.operand.value) in (int, float):
            return to_literal(-node.operand.value)  # type: ignore[operator]
        part = self(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return Not(part)
        return Arithmetic("-", to_literal(0), part) if negative else part

    def read_logic(self, node: ast.BoolOp, depth: int) -> ExpressionTree:
        return join_conditions(
            "and" if isinstance(node.op, ast.And) else "or", *(self(part, depth) for part in node.values)
        )

    def read_comparison(self, node: ast.Compare, depth: int) -> ExpressionTree:
        """Read a comparison; a chain such as 0 < x < 5 means that all of its comparisons hold."""
        sides = [node.left, *node.comparators]
        tests = [
            self.read_test(operation, left, right, depth)
            for operation, left, right in zip(node.ops, sides, sides[1:], strict=False)
        ]
        return join_conditions("and", *tests) if len(tests) > 1 else tests[0]

    def read_test(self, operation: ast.cmpop, left: ast.expr, right: ast.expr, depth: int) -> ExpressionTree:
        if isinstance(operation, (ast.Is, ast.IsNot)):
            if not (isinstance(right, ast.Constant) and right.value is None):
                null = isinstance(right, ast.Name) and right.id.casefold() == "null"
                raise self.unsupported_error(
                    right, "say x is None" if null else "only is None and is not None: say == to compare"
                )
            missing = Missing(self(left, depth))
            return Not(missing) if isinstance(operation, ast.IsNot) else missing
        if isinstance(operation, (ast.In, ast.NotIn)):
            member = Member(self(left, depth), self.read_list(right))
            return Not(member) if isinstance(operation, ast.NotIn) else member
        for side in (left, right):
            if isinstance(side, ast.Constant) and side.value is None:
                raise self.unsupported_error(side, "say x is None")
        return Compare(COMPARISONS[type(operation)], self(left, depth), self(right, depth))

    def read_list(self, node: ast.expr) -> LiteralList:
        if not isinstance(node, (ast.List, ast.Tuple)):
            raise self.unsupported_error(
                node, "a list of literals is needed: ['a', 'b']; contains(text, part) looks for a part of a text"
            )
        values = tuple(self(element, MAX_TREE_DEPTH - 1) for element in node.elts)
        if not all(isinstance(value, Value) for value in values):
            raise self.unsupported_error(node, "a list holds literals only: ['a', 'b']")
        return tuple(value for value in values if isinstance(value, Value))

    def read_call(self, node: ast.Call, depth: int) -> ExpressionTree:
        name = node.func.id if isinstance(node.func, ast.Name) else self.source_text(node.func)
        functions = tuple(FUNCTIONS)
        if name not in functions or not isinstance(node.func, ast.Name):
            nearest = suggest_nearest(name, functions)
            names = f"{f'{nearest} ' if nearest else ''}functions: {quoted_names(functions)}"
            text = f"there is no function {short_repr(name)}; {names}"
            raise InputError.from_text("expression", text)
        if node.keywords:
            raise InputError(
                "expression", self.source_text(node), FUNCTIONS[name].usage, "write the arguments without names"
            )
        arguments: list[Argument] = []
        for argument in node.args:
            if isinstance(argument, (ast.List, ast.Tuple)):
                arguments.append(self.read_list(argument))
            else:
                missing = isinstance(argument, ast.Constant) and argument.value is None
                arguments.append(None if missing else self(argument, depth))
        return FUNCTIONS[name](*arguments)


NODE_READERS: dict[type[ast.AST], Callable[[_NodeReader, ast.AST, int], ExpressionTree]] = {
    ast.Constant: _NodeReader.read_constant,  # type: ignore[dict-item]
    ast.Name: _NodeReader.read_name,  # type: ignore[dict-item]
    ast.BinOp: _NodeReader.read_binary,  # type: ignore[dict-item]
    ast.UnaryOp: _NodeReader.read_unary,  # type: ignore[dict-item]
    ast.BoolOp: _NodeReader.read_logic,  # type: ignore[dict-item]
    ast.Compare: _NodeReader.read_comparison,  # type: ignore[dict-item]
    ast.Call: _NodeReader.read_call,  # type: ignore[dict-item]
}
"""The forms of the language; all other forms are rejected."""
