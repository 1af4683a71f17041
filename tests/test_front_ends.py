"""The command line, the studio and what they share use the public names of everything else."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "margrave"
FRONT_ENDS = {
    "cli": [SOURCE / "cli.py"],
    "app": sorted((SOURCE / "app").rglob("*.py")),
    "studio": sorted((SOURCE / "studio").rglob("*.py")),
}
# The modules that every package may use, and names with an underscore that a manual documents.
SHARED = {"_archive", "_atomic_write", "_file_lock", "_json", "_labels", "_messages", "_typing"}
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


def is_foreign(name, package):
    """Whether a full name is private to another package, or stands for all names of a module."""
    parts = name.split(".")
    if parts[:2] in [["margrave", shared] for shared in SHARED]:
        parts = parts[2:]
    private = parts[:2] != ["margrave", package] and any(map(is_private, parts))
    return private or "*" in parts


def imported_from(tree, package):
    """The names in a module that stand for modules and classes of its own package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            own = parts[:2] == ["margrave", package]
            for alias in node.names:
                if own or (parts, alias.name) == (["margrave"], package):
                    yield alias.asname or alias.name


def is_self(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def defined(trees):
    """The names that some modules define: functions, classes, variables, attributes of `self`."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute) and is_self(node.value):
                yield node.attr


def texts(tree):
    """The strings of a module that are not documentation."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documents:
            yield str(node.value)


def private_uses(package, sources):
    """The private names of others that the modules of a package use."""
    trees = [ast.parse(source) for source in sources]
    own = set(defined(trees))
    for tree in trees:
        yield from (name for name in imported(tree) if is_foreign(name, package))
        modules = set(imported_from(tree, package))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                known = is_self(node.value) or ast.unparse(node.value) in modules
                if node.attr not in DOCUMENTED and not (known and node.attr in own):
                    yield ast.unparse(node)
        for text in texts(tree):
            dotted = "margrave." in text and "._" in text
            if re.fullmatch(r"_[A-Za-z]\w*", text) or (dotted and is_foreign(text, package)):
                yield text


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
    "from margrave._errors import ParameterError",
    "from margrave._messages import _NAME",
    "from margrave import _parallel",
    "from margrave.steer import *",
    "from sklearn.utils.validation import _num_samples",
    "frame._meta",
    "self._of_the_base_class",
    "dialog._history = 1",
    "for dialog._position in x: pass",
    "def _votes(): pass\ndialog._votes",
    "def f(self): self._x = 1\ndialog._x",
    "from margrave.steer import Dialog\ndef _votes(): pass\nDialog._votes",
    "getattr(dialog, '_history')",
    "setattr(dialog, '_history', None)",
    "delattr(dialog, '_history')",
    "object.__setattr__(dialog, '_history', None)",
    "attrgetter('_history')",
    "vars(dialog)['_history']",
    "dialog.__dict__['_history']",
    "import_module('margrave.steer._dialog')",
    "import_module(f'margrave.steer._{name}')",
]
OWN = [
    "from margrave.studio._wire import Refusal",
    "from margrave._messages import near_names",
    "from margrave import _labels, __version__",
    "from margrave.studio import module\n"
    "def _f(): self._x = 1\nmodule._f(self._x, row._asdict(), dialog.history, type(x).__name__)",
    "getattr(error, '__cause__', None)",
    "import_module('margrave.studio._wire')",
    "'''`margrave.steer._dialog`'''\nnames = ['_', 'a_b']",
]


@pytest.mark.parametrize("source", FOREIGN)
def test_private_names_of_others_are_found(source):
    assert len(list(private_uses("studio", [source]))) == 1


@pytest.mark.parametrize("source", OWN)
def test_names_of_the_own_package_and_public_ones_are_allowed(source):
    assert list(private_uses("studio", [source])) == []
