"""Measurements on a GPU, which ``python -m benchmarks.gpu --json`` wrote to ``gpu.json``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments._page import table

FILE = Path(__file__).with_name("gpu.json")
_SUMS = re.compile(r"kernel_sum, ([\d,]+) x [\d,]+, with transfers")
_LARGEST = re.compile(r"RBF, float32, ([\d,]+) x [\d,]+, 16 features, with transfers")
_FITS = re.compile(r"MAMClassifier.fit, 15 widths, ([\d,]+) x 16")


@dataclass(frozen=True)
class Kernels:
    """Seconds by the number of samples.

    Attributes
    ----------
    device : str
        The GPU.
    curves : dict of str to list of (int, float)
        For each job, numbers of samples and seconds, in increasing order.
    """

    device: str
    curves: dict[str, list[tuple[int, float]]]


def recorded() -> dict[str, Any]:
    """Read the file."""
    record: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return record


def measured() -> Kernels:
    """Return the curves of the file."""
    record = recorded()

    def curve(*patterns: re.Pattern[str]) -> list[tuple[int, float]]:
        return sorted(
            (int(match[1].replace(",", "")), row["value"])
            for row in record["rows"]
            for pattern in patterns
            if (match := pattern.fullmatch(row["what"])) and row["unit"] == "s"
        )

    curves = {
        "fit, fifteen widths": curve(_FITS),
        "n × n sums, float32": curve(_SUMS, _LARGEST),
    }
    return Kernels(record["device"], curves)


def describe() -> str:
    """Describe the machine, and make a table of all measurements."""
    record = recorded()
    named = {name: number for name, number in record.items() if name not in ("device", "rows")}
    versions = ", ".join(f"{name} {number}" for name, number in named.items())
    rows = [
        [row["what"], f"{row['value']:.3g}", row["unit"], _format_target(row), _format_met(row)]
        for row in record["rows"]
    ]
    heads = ["", "measured", "unit", "target", "met"]
    return f"On one {record['device']} ({versions}):\n\n{table(heads, rows)}"


def _format_target(row: dict[str, Any]) -> str:
    if row["target"] is None:
        return ""
    return f"{'≥' if row['at_least'] else '≤'} {row['target']:.3g}"


def _format_met(row: dict[str, Any]) -> str:
    if row["target"] is None:
        return ""
    value, target = row["value"], row["target"]
    met = value >= target if row["at_least"] else value <= target
    return "yes" if met else "**no**"
