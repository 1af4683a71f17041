"""A fault: a changed file of the package, and the tests that may notice it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "margrave"


@dataclass(frozen=True)
class Fault:
    """A changed file of the package, and the tests that may notice it."""

    name: str  # what is wrong; identifies the fault
    file: str  # in the package
    text: str  # of the file with the fault
    tests: tuple[str, ...]  # files and node ids, in the order in which they run
