"""A fault: a changed file of the package, and the tests that may notice it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "margrave"


@dataclass(frozen=True)
class Fault:
    """A changed file of the package, and the tests that may notice it."""

    name: str  # what is wrong; identifies the fault
    file: str  # in the package
    text: str  # of the file with the fault
    tests: tuple[str, ...]  # files, in the order in which they run

    @property
    def digest(self) -> str:
        """Identifies the changed text, so that no result of an older one is reused."""
        return sha256(self.text.encode()).hexdigest()[:12]
