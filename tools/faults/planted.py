"""Faults that are planted by hand, where a mistake would hurt a user without a sign of it."""

from __future__ import annotations

from tools.faults._fault import PACKAGE, Fault

# What is wrong, the file, the text to replace (it occurs once), what replaces it, and tests.
FAULTS: tuple[tuple[str, ...], ...] = (
    (
        "A certificate uses twice the error probability",
        "steer/_plan.py",
        "return delta / self.n_parts",
        "return 2 * delta / self.n_parts",
        "steer/test_certify.py",
    ),
    (
        "The error probability is not divided between the sides of a threshold",
        "steer/_plan.py",
        "return delta / self.n_parts",
        "return delta",
        "steer/test_certify.py",
    ),
)


def planted_faults() -> list[Fault]:
    """Plant each fault."""
    return [
        Fault(name, file, _plant(file, old, new), tuple(f"tests/{test}" for test in tests))
        for name, file, old, new, *tests in FAULTS
    ]


def _plant(file: str, old: str, new: str) -> str:
    """Return the text of a file with a fault."""
    text = (PACKAGE / file).read_text("utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{file} has to contain this once, not {text.count(old)} times: {old}")
    return text.replace(old, new)
