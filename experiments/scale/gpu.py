"""What was measured on a GPU, by ``python -m benchmarks.gpu --json``, and kept beside this file."""

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
        For each job, samples and seconds, rising.
    """

    device: str
    curves: dict[str, list[tuple[int, float]]]


def recorded() -> dict[str, Any]:
    """The file as it is."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def measured() -> Kernels:
    """The curves in it."""
    record = recorded()

    def curve(*patterns: re.Pattern[str]) -> list[tuple[int, float]]:
        return sorted(
            (int(told[1].replace(",", "")), row["value"])
            for row in record["rows"]
            for pattern in patterns
            if (told := pattern.fullmatch(row["what"])) and row["unit"] == "s"
        )

    curves = {
        "fit, fifteen widths": curve(_FITS),
        "n × n sums, float32": curve(_SUMS, _LARGEST),
    }
    return Kernels(record["device"], curves)


def told() -> str:
    """A sentence about the machine, and all that was measured there."""
    record = recorded()
    named = {name: number for name, number in record.items() if name not in ("device", "rows")}
    versions = ", ".join(f"{name} {number}" for name, number in named.items())
    rows = [
        [row["what"], f"{row['value']:.3g}", row["unit"], _bar(row), _kept(row)]
        for row in record["rows"]
    ]
    heads = ["", "measured", "unit", "bar", "kept"]
    return f"On one {record['device']} ({versions}):\n\n{table(heads, rows)}"


def _bar(row: dict[str, Any]) -> str:
    return "" if row["bar"] is None else f"{'≥' if row['at_least'] else '≤'} {row['bar']:.3g}"


def _kept(row: dict[str, Any]) -> str:
    if row["bar"] is None:
        return ""
    kept = row["value"] >= row["bar"] if row["at_least"] else row["value"] <= row["bar"]
    return "yes" if kept else "**no**"
