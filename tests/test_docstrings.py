"""The examples in the docstrings of the package run and print what they show."""

import doctest
import re
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
REFERENCE = ROOT / "docs" / "reference" / "index.rst"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


def listed_names(reference: str) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each entry in the autosummary blocks of a page."""
    module, in_block = "", False
    for line in reference.splitlines():
        if found := re.match(r"\.\. (?:current)?module:: (\S+)", line):
            module = found.group(1)
        if line and not line.startswith(" "):
            in_block = line.startswith(".. autosummary::")
        elif in_block and line.strip() and not line.lstrip().startswith(":"):
            yield module, line.strip().removeprefix("~")


NAMES = list(listed_names(REFERENCE.read_text("utf-8")))


def test_modules_with_examples_are_found():
    assert {"margrave.confusion._confusion", "margrave.mam._classifier"} <= set(MODULES)


def test_names_of_the_reference_are_found():
    known = {
        ("margrave", "confusion.Bound"),
        ("margrave.steer", "Dialog"),
        ("margrave.scale", "cluster"),
        ("margrave", "ParameterError"),
    }
    assert known <= set(NAMES)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    # Without the module's own names: an example imports what it uses, as its reader must.
    found = doctest.testmod(import_module(name), globs={}, optionflags=FLAGS)
    # An error names a public package as its module, so testmod leaves it to the test below.
    assert found.failed == 0


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_name_of_the_reference_has_an_example(module, name):
    documented = attrgetter(name)(import_module(module))
    text = documented.__doc__ or ""
    assert "Examples\n" in text
    assert ">>> " in text
    if isinstance(documented, type) and issubclass(documented, Exception):
        example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
        assert doctest.DocTestRunner(optionflags=FLAGS).run(example).failed == 0
