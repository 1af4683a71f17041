"""Mutants: small changes of the code that decides what is guaranteed, drawn by a seed.

The name of a mutant is its file, its function and the change of a statement. Those with the
smallest hashes of the seed and this name are drawn, so that a change elsewhere in a file neither
renames a mutant nor draws others.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from tools.faults._fault import PACKAGE, ROOT, Fault

# The mutated files, each with the tests that notice its faults first; the others follow.
FILES = {
    "steer/_plan.py": "certify expected strategies",
    "steer/_certify.py": "certify dialog ledger duplicates",
    "steer/_order_statistic.py": "order_statistic certify",
    "steer/_ledger.py": "ledger",
    "steer/_split.py": "split start planned_split duplicates",
    "steer/_table_split.py": "start split planned_split duplicates",
    "steer/_planned_split.py": "planned_split start",
    "steer/_row_hashes.py": "duplicates ledger",
    "steer/_thresholds.py": "thresholds strategies certify",
    "steer/_acceptance.py": "dialog ledger expected",
    "steer/_certificate.py": "certificate certify",
    "steer/_expected.py": "expected dialog",
    "confusion/_bounds.py": "",
}
N_DRAWN, SEED = 200, 0

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_BODIES = ("body", "orelse", "handlers", "finalbody")
_SKIPPED = ("annotation", "returns", "decorator_list")
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
# No test depends on the wording of a text, so what writes one is not mutated.
_TEXTS = re.compile(
    r"\b(__str__|__repr__|remarks|_compare_with_expected|ExpectedCertificate\._rows"
    r"|_?(describe|notes|quote)_\w+)$"
)


def all_mutants() -> list[Fault]:
    """Make all mutants of all files."""
    return [
        Fault(f"{file}: {name}", file, text, tests)
        for file, tests in zip(FILES, map(_tests, FILES), strict=True)
        for name, text in find_mutants((PACKAGE / file).read_text("utf-8"))
    ]


def draw_mutants(mutants: Sequence[Fault] | None = None, seed: int = SEED) -> list[Fault]:
    """Draw some of all mutants."""
    mutants = all_mutants() if mutants is None else mutants
    return sorted(mutants, key=lambda one: sha256(f"{seed} {one.name}".encode()).digest())[:N_DRAWN]


def _tests(file: str) -> tuple[str, ...]:
    """List the tests of a file, the most specific first, then all others of the packages."""
    folders = ["steer"] if file.startswith("steer") else ["confusion", "steer"]
    first = [f"tests/{folders[0]}/test_{name}.py" for name in FILES[file].split()]
    rest = [path for folder in folders for path in sorted(ROOT.glob(f"tests/{folder}/test_*.py"))]
    return tuple(dict.fromkeys([*first, *(path.relative_to(ROOT).as_posix() for path in rest)]))


def find_mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of mutants of a file.

    Of the changes of one kind in one statement, it is the one whose name has the smallest hash.
    """
    lines, known = source.splitlines(keepends=True), Counter[str]()
    for function, bound, holder, at in _statements(ast.parse(source), "", Counter()):
        statement = holder[at]
        before, first, last = _head(statement), statement.lineno - 1, _last_line(statement)
        changes: dict[str, tuple[bytes, str, str]] = {}
        for kind, container, key, new in [*_removals(holder, at, bound), *_edits(statement)]:
            old = _exchange(container, key, new)
            after = _head(holder[at])
            _exchange(container, key, old)
            name = f"{function}: {_difference(before, after)}"
            known[name] += 1
            name += f" ({known[name]})" if known[name] > 1 else ""
            one = sha256(name.encode()).digest(), name, after
            changes[kind] = min(changes.get(kind, one), one)
        for _, name, after in changes.values():
            indent = " " * statement.col_offset + "el" * lines[first].lstrip().startswith("elif")
            colon = ":" if hasattr(statement, "body") else ""
            yield name, "".join([*lines[:first], f"{indent}{after}{colon}\n", *lines[last:]])


def _difference(before: str, after: str) -> str:
    """Write a change of words within a statement, with a part of the text around it."""
    if after == "pass":
        return f"removed: {before}"
    old, new = before.split(), after.split()
    start = next(i for i in range(len(old)) if old[: i + 1] != new[: i + 1])
    end = next(i for i in range(len(old)) if old[-i - 1 :] != new[-i - 1 :])
    end = min(end, len(old) - start - 1, len(new) - start - 1)
    changed = " -> ".join(" ".join(words[start : len(words) - end]) for words in (old, new))
    prefix, suffix = " ".join(old[:start]), " ".join(old[len(old) - end :])
    return f"{prefix[-60:]} [{changed}] {suffix[:60]}".strip()


def _exchange(container: Any, key: Any, new: Any) -> Any:
    """Put something into a list or an attribute of a node, and return what was there."""
    if isinstance(container, list):
        old, container[key] = container[key], new
    else:
        old = getattr(container, key)
        setattr(container, key, new)
    return old


def _statements(
    node: ast.AST, function: str, bound: Counter[str]
) -> Iterator[tuple[str, Counter[str], list[Any], int]]:
    """Yield where the statements are that write no texts, with the names of their function."""
    for field in _BODIES:
        holder = getattr(node, field, [])
        for at, child in enumerate(holder):
            name, names = function, bound
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{function}.{child.name}".lstrip(".")
                names = Counter(map(_bound_name, ast.walk(child)))
                if _TEXTS.search(name):
                    continue
            if not isinstance(child, ast.ExceptHandler | ast.Raise):
                yield name, names, holder, at
            yield from _statements(child, name, names)


def _bound_name(node: ast.AST) -> str:
    """Return the name that a node assigns, or that is a parameter."""
    stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    return node.id if stored else node.arg if isinstance(node, ast.arg) else ""


def _last_line(statement: ast.stmt) -> int:
    """Return the number of the last line of a statement, or of what is before its body."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else statement.end_lineno or statement.lineno


def _head(statement: Any) -> str:
    """Write a statement, or what is before its body, in one line."""
    left_out = {field: getattr(statement, field) for field in _BODIES if hasattr(statement, field)}
    for field in left_out:
        setattr(statement, field, [])
    decorators, statement.decorator_list = getattr(statement, "decorator_list", []), []
    text = ast.unparse(statement)
    for field, value in (*left_out.items(), ("decorator_list", decorators)):
        setattr(statement, field, value)
    return " ".join(text.split()).removesuffix(":")


def _removals(
    holder: list[Any], at: int, bound: Counter[str]
) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield the removal of a call or an assignment, unless it only leaves a name undefined."""
    statement = holder[at]
    call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    names = list(filter(None, map(_bound_name, ast.walk(statement))))
    again = isinstance(statement, ast.Assign) and all(bound[name] > 1 for name in names)
    if call or again or isinstance(statement, ast.AugAssign):
        yield "removed", holder, at, ast.Pass()


def _edits(node: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield a kind of change, a list or a node, an index or an attribute, and what to put there."""
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED or (field in _BODIES and isinstance(value, list)):
            continue
        places = (
            [(value, i) for i in range(len(value))] if isinstance(value, list) else [(node, field)]
        )
        for container, key in places:
            child = value[key] if isinstance(value, list) else value
            if isinstance(child, ast.AST) and not _is_text(child):
                yield from _edits_of(child, container, key)
                yield from _edits(child)


def _edits_of(child: Any, container: Any, key: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    match child:
        case ast.cmpop():
            if type(child) in _BOUNDARY:
                yield "boundary", container, key, _BOUNDARY[type(child)]()
            yield "negation", container, key, _NEGATED[type(child)]()
        case ast.operator() | ast.boolop() if type(child) in _SWAPPED:
            yield "operator", container, key, _SWAPPED[type(child)]()
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield "not", container, key, child.operand
        case ast.Constant(value=bool()):
            yield "constant", container, key, ast.Constant(not child.value)
        case ast.Constant(value=int() | float()):
            yield "number", container, key, ast.Constant(child.value + 1)
        case ast.Name(id=name) if name in _EXTREMES:
            yield "extreme", child, "id", _EXTREMES[name]
        case ast.Attribute(attr=name) if name in _EXTREMES:
            yield "extreme", child, "attr", _EXTREMES[name]
    if key == "test" and not isinstance(child, ast.Compare | ast.UnaryOp):
        yield "condition", container, key, ast.UnaryOp(ast.Not(), child)


def _is_text(node: ast.AST) -> bool:
    """Whether a node writes a text, warns of something, or lists types."""
    match node:
        case ast.JoinedStr() | ast.keyword(arg="strict"):
            return True
        case ast.Call(func=ast.Attribute(attr="warn") | ast.Name(id="isinstance")):
            return True
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return any(
                isinstance(one, ast.Constant) and isinstance(one.value, str)
                for one in (left, right)
            )
    return False
