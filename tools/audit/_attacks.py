"""The record of an attack: how often it ran, what failed, and what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

SHOWN = 12  # failures of an attack that are printed, without --all


@dataclass
class Attack:
    """One kind of attack.

    Attributes
    ----------
    name : str
        What is attacked, and by what.
    expected : str
        What has to hold.
    count : int
        How often it ran.
    failures : list of str
        For each failure, what was done and what came of it.
    measured : str
        Values to print beside the result.
    """

    name: str
    expected: str
    count: int = 0
    failures: list[str] = field(default_factory=list)
    measured: str = ""

    def check(self, holds: bool, failure: str) -> None:
        """Count one attack, and record the failure if it did not hold."""
        self.count += 1
        if not holds:
            self.failures.append(failure)

    @contextmanager
    def trial(self, what: str) -> Iterator[None]:
        """Count one attack, which fails if the block raises an exception."""
        self.count += 1
        try:
            yield
        except Exception as error:
            self.failures.append(f"{what}: {type(error).__name__}: {str(error)[:300]}")

    @property
    def held(self) -> int:
        """How often it held."""
        return self.count - len(self.failures)


def percentile(values: list[float], percent: float) -> float:
    """Return a percentile of measured values, without interpolation."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * percent / 100))]


def table(attacks: list[Attack]) -> str:
    """Format the results as a table in Markdown, one attack in a row."""
    rows = [("attack", "expected", "count", "held", "failed", "measured")]
    rows += [
        (
            one.name,
            one.expected,
            str(one.count),
            str(one.held),
            str(len(one.failures)),
            one.measured,
        )
        for one in attacks
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def failure_list(attacks: list[Attack], shown: int | None = SHOWN) -> str:
    """List the failures, equal ones once with their number."""
    lines = []
    for attack in attacks:
        counts = Counter(attack.failures)
        if counts:
            lines.append(f"\n{attack.name}: {len(attack.failures)} of {attack.count} failed")
        for failure, n in list(counts.items())[:shown]:
            lines.append(f"  - {failure}" + (f" ({n} times)" if n > 1 else ""))
        if shown is not None and len(counts) > shown:
            lines.append(f"  - and {len(counts) - shown} more; --all prints them")
    return "\n".join(lines)


def timed(function: Callable[[], object]) -> float:
    """Run a function; return its seconds."""
    start = perf_counter()
    function()
    return perf_counter() - start
