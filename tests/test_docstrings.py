"""The examples in the docstrings of the package run and print what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


def test_modules_with_examples_are_found():
    assert {"margrave.confusion._confusion", "margrave.mam._classifier"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testmod(import_module(name), optionflags=flags)
    assert found.attempted > 0
    assert found.failed == 0
