"""Functions that write the pages of the studies."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from string import Template

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

_PACKAGES = ("margrave", "numpy", "scipy", "scikit-learn")


def versions() -> str:
    """Return the versions that a page was computed with."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"Python {platform.python_version()}, {packages}, {platform.machine()}"


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    first, *others = (
        "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"
        for cells in (heading, *rows)
    )
    return "\n".join([first, "|" + "---|" * len(heading), *others])


def bold(text: str, yes: bool) -> str:
    """Return the text, bold if `yes`."""
    return f"**{text}**" if yes else text


def listed(texts: Iterable[str]) -> str:
    """Join texts with commas and "and"; "none" without texts."""
    *first, last = list(texts) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, and close it."""
    figure.savefig(path, dpi=100)
    plt.close(figure)


def write_page(template: Path, path: Path, **values: object) -> Path:
    """Fill in a template, and return the path of the page."""
    text = Template(template.read_text(encoding="utf-8")).substitute(values)
    path.write_text(text, encoding="utf-8")
    return path
