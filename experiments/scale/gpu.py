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
_SHOWN = (
    "RBF, float32, 1,000,000 x 1,000,000, 16 features, with transfers",
    "ratio to PyTorch in chunks",
    "MAMClassifier.fit, 15 widths, 100,000 x 16",
    "MAMClassifier.fit, 15 widths, 300,000 x 16",
)
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
    """Describe the machine, and make a table of the measurements that matter most to a user."""
    record = recorded()
    named = {name: number for name, number in record.items() if name not in ("device", "rows")}
    versions = ", ".join(f"{name} {number}" for name, number in named.items())
    rows = [
        [row["what"], f"{row['value']:.3g}", row["unit"], _format_target(row), _format_met(row)]
        for row in record["rows"]
        if row["what"] in _SHOWN
    ]
    heads = ["", "measured", "unit", "target", "met"]
    hidden = len(record["rows"]) - len(rows)
    return (
        f"On one {record['device']} ({versions}); `gpu.json` has {hidden} further measurements, "
        f"among them relative errors of at most {_largest_error(record):.1e}:\n\n"
        f"{table(heads, rows)}"
    )


def _largest_error(record: dict[str, Any]) -> float:
    """Return the largest relative error of the sums."""
    errors = (row["value"] for row in record["rows"] if row["what"] == "its relative error")
    return float(max(errors))


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
