"""A fault: a changed file of the package, and the tests that may notice it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "margrave"


@dataclass(frozen=True)
class Fault:
    """A changed file of the package.

    Attributes
    ----------
    name : str
        What is wrong; identifies the fault.
    file : str
        The file, in the package.
    text : str
        The file with the fault.
    tests : tuple of str
        Files and node ids of tests, in the order in which they run.
    """

    name: str
    file: str
    text: str
    tests: tuple[str, ...]
