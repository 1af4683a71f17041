"""Mutants: small changes of the code that decides what is guaranteed, drawn by a seed.

The name of a mutant is its file, its function and the change of a statement. Those with the
smallest hashes of the seed and this name are drawn, so that a change elsewhere in a file seldom
renames a mutant or draws others.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from hashlib import sha256
from typing import Any

from tools.faults._fault import PACKAGE, ROOT, Fault

# The mutated files, each with the tests that notice its faults first; the others follow.
FILES = {
    "steer/_plan.py": "certify certificates_hold expected strategies",
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
    r"\b(__str__|__repr__|remarks|ExpectedCertificate\._rows"
    r"|_?(describe|notes|quote)_\w+)$"
)


def all_mutants() -> list[Fault]:
    """Make all mutants of all files."""
    return [
        Fault(f"{file}: {name}", file, text, tests)
        for file, tests in zip(FILES, map(_tests, FILES), strict=True)
        for name, text in find_mutants((PACKAGE / file).read_text("utf-8"))
    ]


def draw_mutants(mutants: Sequence[Fault], seed: int = SEED) -> list[Fault]:
    """Draw some of all mutants."""
    return sorted(mutants, key=lambda one: sha256(f"{seed} {one.name}".encode()).digest())[:N_DRAWN]


def _tests(file: str) -> tuple[str, ...]:
    """List the tests of a file, the most specific first, then all others of the packages."""
    folders = ["steer"] if file.startswith("steer") else ["confusion", "steer"]
    first = [f"tests/{folders[0]}/test_{name}.py" for name in FILES[file].split()]
    rest = [path for folder in folders for path in sorted(ROOT.glob(f"tests/{folder}/test_*.py"))]
    return tuple(dict.fromkeys([*first, *(path.relative_to(ROOT).as_posix() for path in rest)]))


def find_mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of mutants of a file, of each kind one for each statement."""
    lines, known = source.splitlines(keepends=True), Counter[str]()
    for function, names, holder, at in _statements(ast.parse(source), "", Counter()):
        statement, chosen = holder[at], {}
        before = _head(statement)
        for kind, container, key, new in _changes(holder, at, names):
            old, container[key] = container[key], new
            after = _head(holder[at])
            container[key] = old
            name = f"{function}: {_difference(before, after)}"
            known[name] += 1
            name += f" ({known[name]})" if known[name] > 1 else ""
            one = sha256(name.encode()).digest(), name, after
            chosen[kind] = min(chosen.get(kind, one), one)
        body, first = getattr(statement, "body", None), statement.lineno - 1
        rest = lines[body[0].lineno - 1 if body else statement.end_lineno :]
        indent = " " * statement.col_offset + "el" * lines[first].lstrip().startswith("elif")
        for _, name, after in chosen.values():
            yield name, "".join([*lines[:first], indent, after, ":\n" if body else "\n", *rest])


def _statements(
    node: ast.AST, function: str, names: Counter[str]
) -> Iterator[tuple[str, Counter[str], list[Any], int]]:
    """Yield where the statements are that write no texts, with the names of their function."""
    for field in _BODIES:
        holder = getattr(node, field, [])
        for at, child in enumerate(holder):
            name, own = function, names
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name, own = f"{function}.{child.name}".lstrip("."), _names(child)
                if _TEXTS.search(name):
                    continue
            if not isinstance(child, ast.ExceptHandler | ast.Raise):
                yield name, own, holder, at
            yield from _statements(child, name, own)


def _names(node: ast.AST) -> Counter[str]:
    """Count how often a node assigns names, or has them as parameters."""
    nodes = list(ast.walk(node))
    parameters = [one.arg for one in nodes if isinstance(one, ast.arg)]
    stored = (one for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return Counter([*parameters, *(one.id for one in stored)])


def _head(statement: ast.stmt) -> str:
    """Write a statement, or what is before its body, in one line."""
    bare = copy(statement)
    for field in {*_BODIES, "decorator_list"} & set(vars(bare)):
        setattr(bare, field, [])
    return " ".join(ast.unparse(bare).split()).removesuffix(":")


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


def _changes(
    holder: list[Any], at: int, names: Counter[str]
) -> Iterator[tuple[str, Any, Any, ast.AST]]:
    """Yield changes of a statement: a kind, a list or dictionary, a key, and what to put there."""
    statement = holder[at]
    call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    # Without the only assignment of a name, the code would not run at all.
    again = isinstance(statement, ast.Assign) and all(
        names[name] > n for name, n in _names(statement).items()
    )
    if call or again or isinstance(statement, ast.AugAssign):
        yield "removed", holder, at, ast.Pass()
    for container, key in _places(statement):
        for kind, new in _replacements(container[key], key):
            yield kind, container, key, new


def _places(node: ast.AST) -> Iterator[tuple[Any, Any]]:
    """Yield the lists and dictionaries with nodes below a node, and the keys of these."""
    for field, value in vars(node).items():
        several = isinstance(value, list)
        if field in _SKIPPED or (field in _BODIES and several):
            continue
        container, keys = (value, range(len(value))) if several else (vars(node), [field])
        for key in keys:
            if isinstance(container[key], ast.AST) and not _is_text(container[key]):
                yield container, key
                yield from _places(container[key])


def _replacements(node: ast.AST, key: Any) -> Iterator[tuple[str, ast.AST]]:
    """Yield what may replace a node, each with the kind of the change."""
    match node:
        case ast.cmpop():
            if type(node) in _BOUNDARY:
                yield "boundary", _BOUNDARY[type(node)]()
            yield "negation", _NEGATED[type(node)]()
        case ast.operator() | ast.boolop() if type(node) in _SWAPPED:
            yield "operator", _SWAPPED[type(node)]()
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield "not", node.operand
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield "number", ast.Constant(node.value + 1)
        case ast.Name(id=name) if name in _EXTREMES:
            yield "extreme", ast.Name(_EXTREMES[name], node.ctx)
        case ast.Attribute(attr=name) if name in _EXTREMES:
            yield "extreme", ast.Attribute(node.value, _EXTREMES[name], node.ctx)
    if key == "test" and not isinstance(node, ast.Compare | ast.UnaryOp):
        yield "condition", ast.UnaryOp(ast.Not(), node)


def _is_text(node: ast.AST) -> bool:
    """Whether a node writes a text, warns of something, or lists types."""
    match node:
        case ast.JoinedStr() | ast.keyword(arg="strict"):
            return True
        case ast.Call(func=ast.Attribute(attr="warn") | ast.Name(id="isinstance")):
            return True
        case ast.BinOp(op=ast.Add(), left=ast.Constant(value=str())):
            return True
        case ast.BinOp(op=ast.Add(), right=ast.Constant(value=str())):
            return True
    return False
