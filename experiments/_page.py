"""What the pages of the documents' studies share."""

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
    """What a page was computed with."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"Python {platform.python_version()}, {packages}, {platform.machine()}"


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    first, *others = (
        "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"
        for cells in (heading, *rows)
    )
    return "\n".join([first, "|" + "---|" * len(heading), *others])


def bold(text: str, yes: bool) -> str:
    """The text, bold if so."""
    return f"**{text}**" if yes else text


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure and let go of it."""
    figure.savefig(path, dpi=100)
    plt.close(figure)


def write_page(template: Path, path: Path, **values: object) -> Path:
    """Fill in a template; gives back where the page is."""
    text = Template(template.read_text(encoding="utf-8")).substitute(values)
    path.write_text(text, encoding="utf-8")
    return path
