"""Programs and packages that only some tests need; where one is missing, these are skipped."""

from types import ModuleType
from typing import NoReturn

import pytest

MISSING = "missing here: "
"""Begins the reason of such a skip; the last line of the run lists them."""


def skip_missing(what: str) -> NoReturn:
    """Skip the test that runs, or the module that is imported."""
    pytest.skip(MISSING + what, allow_module_level=True)


def need_package(name: str) -> ModuleType:
    """Import a package, or skip."""
    return pytest.importorskip(name, reason=MISSING + name.partition(".")[0])
