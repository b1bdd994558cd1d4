"""Small changes of a source file, each of which a test should notice.

Operators, numbers, booleans, bounds of slices, the branches of a condition, and pairs of functions
such as min and max are changed, one at a time. Not changed: annotations, decorators, messages
(everything in `raise` and in f-strings), ``__all__``, ``__repr__`` and ``strict=`` of `zip`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

SWAPPED = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"is": "is not", "is not": "is", "in": "not in", "not in": "in"},
    **{"+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "**": "*", "%": "*"},
    **{"<<": ">>", ">>": "<<", "@": "*", "|": "&", "&": "|", "^": "|"},
    **{"and": "or", "or": "and", "True": "False", "False": "True"},
    **{"break": "continue", "continue": "break", '"left"': '"right"', '"right"': '"left"'},
}
PAIRS = ["min max", "argmin argmax", "nanmin nanmax", "minimum maximum", "any all", "floor ceil"]
SWAPPED |= {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}
OPERATORS = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//"},
    **{ast.Pow: "**", ast.Mod: "%", ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>"},
    **{ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.And: "and", ast.Or: "or"},
}
UNSEEN = {"__all__", "__repr__", "__dir__", "strict", "stacklevel", "TYPE_CHECKING"}
LONGEST_CHANGE = 70
"""Most characters of the expression that names a mutant."""


@dataclass(frozen=True)
class Mutant:
    """The bytes from `start` to `end` of a file, replaced by `text`."""

    file: str  # below src/gammagmm
    function: str
    line: int  # from 1
    lines: tuple[int, int]  # of the statement up to here, or of the function with this default
    name: str  # of the function, or of the constant
    change: str
    start: int
    end: int
    text: str
    number: int = 1  # among equal changes of the function

    @property
    def id(self) -> str:
        again = f" #{self.number}" if self.number > 1 else ""
        return f"{self.file}:{self.function}: {self.change}{again}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """All mutants of a file that compile to something else, in the order of its lines."""
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    found = []
    for mutant in sorted(_Reader(file, source).read(tree), key=lambda m: (m.start, m.end, m.text)):
        try:
            is_same = ast.dump(ast.parse(mutant.apply(source))) == ast.dump(tree)
        except SyntaxError:
            continue
        if not is_same:
            seen[mutant.id] += 1
            found.append(replace(mutant, number=seen[mutant.id]))
    return found


class _Reader:
    """Walks the tree of one file."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        ends = [match.end() for match in re.finditer(rb"\n", source)]
        self.line_starts = [0, *ends]
        self.names: list[str] = []  # of the classes and functions around
        self.around: list[ast.AST] = []

    def read(self, node: ast.AST) -> Iterator[Mutant]:
        if _is_unseen(node):
            return
        is_named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        self.names += [node.name] if is_named else []
        self.around.append(node)
        yield from self.changes(node)
        for child in _children(node):
            yield from self.read(child)
        self.around.pop()
        if is_named:
            self.names.pop()

    def changes(self, node: ast.AST) -> Iterator[Mutant]:
        """The mutants of this node alone."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=values):
                for op, (a, b) in zip(ops, pairwise([left, *values]), strict=True):
                    yield self.operator(op, a, b)
            case ast.BinOp(left=a, op=op, right=b) | ast.AugAssign(target=a, op=op, value=b):
                yield self.operator(op, a, b)
            case ast.BoolOp(op=op, values=values):
                for a, b in pairwise(values):
                    yield self.operator(op, a, b)
            case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
                yield self.mutant(self.start(node), self.start(operand), "")
            case _:
                yield from self.words(node)

    def words(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                for other in _other_numbers(value):
                    yield self.mutant(*self.span(node), repr(other))
            case ast.Constant() | ast.Break() | ast.Continue() if self.text(node) in SWAPPED:
                yield self.mutant(*self.span(node), SWAPPED[self.text(node)])
            case ast.Call(func=func):
                yield from self.call(node, func)
            case ast.IfExp(test=test, body=body, orelse=other):
                swapped = f"{self.text(other)} if {self.text(test)} else {self.text(body)}"
                yield self.mutant(*self.span(node), swapped)
            case ast.Slice():
                yield from self.slice(node)

    def call(self, node: ast.Call, func: ast.expr) -> Iterator[Mutant]:
        name = getattr(func, "attr", getattr(func, "id", ""))
        if name in SWAPPED:
            yield self.mutant(self.end(func) - len(name), self.end(func), SWAPPED[name])
        if name == "cumsum" and node.args:
            yield self.mutant(self.end(node.args[0]), self.end(node.args[0]), "[::-1]")
        if name == "where" and len(node.args) == 3:
            _, first, second = node.args
            swapped = f"{self.text(second)}, {self.text(first)}"
            yield self.mutant(self.start(first), self.end(second), swapped)

    def slice(self, node: ast.Slice) -> Iterator[Mutant]:
        """Bounds that are not numbers, moved by one; numbers are changed as such."""
        if node.lower is None and node.upper is not None:
            yield self.mutant(self.start(node), self.start(node), "1")
        for bound, moved in ((node.lower, " + 1"), (node.upper, " - 1")):
            if bound is not None and not isinstance(bound, ast.Constant):
                yield self.mutant(*self.span(bound), f"({self.text(bound)}){moved}")

    def operator(self, op: ast.AST, a: ast.expr, b: ast.expr) -> Mutant:
        """The operator between two operands, replaced."""
        sign = OPERATORS[type(op)]
        between = self.source[self.end(a) : self.start(b)].decode()
        pattern = r"\s+".join(map(re.escape, sign.split()))
        found = re.search(pattern, re.sub(r"#.*", lambda m: " " * len(m[0]), between))
        start = self.end(a) + len(between[: found.start()].encode())
        return self.mutant(start, start + len(found[0]), SWAPPED[sign])

    def mutant(self, start: int, end: int, text: str) -> Mutant:
        line = self.source.count(b"\n", 0, start) + 1
        statement = next(n for n in reversed(self.around) if isinstance(n, ast.stmt))
        function = ".".join(self.names) or "module"
        in_function = any(isinstance(node, ast.FunctionDef) for node in self.around)
        name = ("" if in_function else _target(statement)) or function.rpartition(".")[2]
        is_default = isinstance(statement, ast.FunctionDef)
        lines = statement.lineno, statement.end_lineno if is_default else line
        change = self.describe(start, end, text)
        return Mutant(self.file, function, line, lines, name, change, start, end, text)

    def describe(self, start: int, end: int, text: str) -> str:
        """The largest short expression around the change, before and after it."""
        low, high = start, end
        for node in reversed(self.around):
            if not isinstance(node, ast.expr | ast.keyword | ast.stmt | ast.Slice):
                break
            span = min(start, self.start(node)), max(end, self.end(node))
            whole = self.source[slice(*span)]
            if b"\n" in whole or len(whole) > LONGEST_CHANGE:
                break
            low, high = span
        before = self.source[low:high].decode()
        after = (self.source[low:start] + text.encode() + self.source[end:high]).decode()
        return f"`{before}` -> `{after}`"

    def start(self, node: ast.AST) -> int:
        return self.line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.AST) -> int:
        return self.line_starts[node.end_lineno - 1] + node.end_col_offset

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.start(node), self.end(node)

    def text(self, node: ast.AST) -> str:
        return self.source[self.start(node) : self.end(node)].decode()


def _other_numbers(value: complex) -> list[complex]:
    """0 and 1 for each other; for another number, the number plus one and zero."""
    if value in (0, 1):
        return [type(value)(1 - value)]
    return [value + 1, type(value)(0)]


def _target(node: ast.stmt) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _is_unseen(node: ast.AST) -> bool:
    names = [getattr(node, "name", None), getattr(node, "arg", None)]
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.If(test=ast.Name(id=name)):
            names.append(name)
    return not UNSEEN.isdisjoint(names)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Children, without decorators and annotations."""
    for field, value in ast.iter_fields(node):
        if field not in ("decorator_list", "annotation", "returns"):
            children = value if isinstance(value, list) else [value]
            yield from (child for child in children if isinstance(child, ast.AST))
