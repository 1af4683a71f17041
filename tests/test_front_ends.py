"""The command line, the studio and what they share use the public names of everything else."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "margrave"
FRONT_ENDS = {
    "cli": [SOURCE / "cli.py"],
    "app": sorted((SOURCE / "app").rglob("*.py")),
    "studio": sorted((SOURCE / "studio").rglob("*.py")),
}
# The modules that every package may use, and names with an underscore that a manual documents.
SHARED = {"_atomic_write", "_errors", "_labels", "_messages", "_typing"}
DOCUMENTED = {"_asdict", "_exit"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def imported(tree):
    """The full names that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def touched(tree):
    """The attributes that a module uses, also those that it names in a call of `getattr`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            called, name = ast.unparse(node.func), node.args[1]
            if called in ("getattr", "hasattr", "setattr") and isinstance(name, ast.Constant):
                yield str(name.value)


def defined(trees):
    """The names that some modules define: functions, classes, variables and attributes."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def private_uses(package, sources):
    """The private names of others that the modules of a package use."""
    trees = [ast.parse(source) for source in sources]
    own = {*defined(trees), *DOCUMENTED}
    for tree in trees:
        for name in imported(tree):
            parts = name.split(".")
            if parts[:2] in [["margrave", shared] for shared in SHARED]:
                parts = parts[2:]
            if parts[:2] != ["margrave", package] and any(map(is_private, parts)):
                yield name
        yield from (name for name in touched(tree) if is_private(name) and name not in own)


@pytest.mark.parametrize("package", FRONT_ENDS)
def test_front_ends_use_public_names(package):
    sources = [path.read_text(encoding="utf-8") for path in FRONT_ENDS[package]]
    assert list(private_uses(package, sources)) == []


FOREIGN = [
    "import margrave.steer._dialog",
    "from margrave.steer import _dialog",
    "from margrave.steer._dialog import Dialog",
    "from margrave.steer import _name",
    "from margrave.app._style import STYLE",
    "from margrave._messages import _NAME",
    "from margrave import _parallel",
    "from sklearn.utils.validation import _num_samples",
    "frame._meta",
    "self._of_the_base_class",
    "getattr(dialog, '_history')",
    "setattr(dialog, '_history', None)",
]
OWN = [
    "from margrave.studio._wire import Refusal",
    "from margrave._messages import near_names",
    "from margrave import _labels, __version__",
    "def _f(): self._x = 1\nmodule._f(self._x, row._asdict(), dialog.history, type(x).__name__)",
    "getattr(error, '__cause__', None)",
]


@pytest.mark.parametrize("source", FOREIGN)
def test_private_names_of_others_are_found(source):
    assert len(list(private_uses("studio", [source]))) == 1


@pytest.mark.parametrize("source", OWN)
def test_names_of_the_own_package_and_public_ones_are_allowed(source):
    assert list(private_uses("studio", [source])) == []
