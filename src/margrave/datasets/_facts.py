"""Facts about every data set, read from two TOML tables.

``bundled.toml`` describes the files in ``data/``, ``elsewhere.toml`` the sets that are not in the
package.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

Label = int | str

PACKAGE = files("margrave.datasets")

LICENCES = {
    "uci": "CC BY 4.0, as the UCI repository now publishes most sets; not checked set by set. "
    "Cite the repository and the donor.",
    "former-uci": "Not stated for this set. It was in the UCI repository, which now publishes "
    "most sets under CC BY 4.0.",
    "mass": "GPL-2 or GPL-3, as R package MASS states.",
    "r": "Part of R: GPL-2 or GPL-3.",
    "prt": "MIT, as covartech/PRT states.",
    "none": "None stated by the source.",
}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts about a data set, available without its file.

    Parameters
    ----------
    name, title : str
        The name for `load`, and a short description.
    papers : tuple of str
        First authors of the source papers that use it or its two-class version.
    rows, features, missing : int
        The size of the table, and the number of empty cells.
    source, licence, notes : str
        Its origin, its terms of use, and its peculiarities.
    bundled : bool
        Whether the file is in the package.
    sha256 : str, optional
        Checksum of the uncompressed CSV in the package; None for a set that is not there.
    classes : mapping of label to count, optional
        None for a real-valued target, which has a `target_range` instead.
    target_range : pair of float, optional
        The smallest and the largest target.
    positive : int or str, optional
        The positive label of a set with two classes.
    two_class : str, optional
        The name of its two-class version.
    openml : int, optional
        Its number on OpenML, matched by name and size; the values were not compared.
    """

    name: str
    title: str
    papers: tuple[str, ...]
    rows: int
    features: int
    source: str
    licence: str
    bundled: bool
    sha256: str | None = None
    missing: int = 0
    notes: str = ""
    classes: Mapping[Label, int] | None = None
    target_range: tuple[float, float] | None = None
    positive: Label | None = None
    two_class: str | None = None
    openml: int | None = None

    @property
    def task(self) -> str:
        """The task: "binary", "multiclass" or "regression"."""
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def origin(self) -> str:
        """The source in short: its first and its last clause, without the people between them."""
        first, *others = self.source.rstrip(".").split("; ")
        return "; ".join([first, *others[-1:]])

    def describe(self) -> str:
        """Describe the set for `load`."""
        if self.target_range is not None:
            target = "Real-valued target, {:g} to {:g}.".format(*self.target_range)
        else:
            counts = (f"{label}: {count}" for label, count in (self.classes or {}).items())
            target = f"Classes: {', '.join(counts)}."
        if self.positive is not None:
            target += f" Positive: {self.positive}."
        size = f"{self.rows} rows, {self.features} features, {self.missing} missing values."
        used = f"Used by {' and '.join(f'{author} et al.' for author in self.papers)}"
        parts = [self.title, f"{size} {target}", f"Source: {self.source}"]
        parts += [f"Licence: {self.licence}", self.notes, used]
        return "\n\n".join(part for part in parts if part) + "\n"


@cache
def all_facts() -> Mapping[str, Facts]:
    """Return the facts about every set, sorted by name."""
    tables = {
        name: {**entry, "bundled": file == "bundled.toml"}
        for file in ("bundled.toml", "elsewhere.toml")
        for name, entry in tomllib.loads((PACKAGE / file).read_text(encoding="utf-8")).items()
    }
    facts = {name: _make_facts(name, entry, tables) for name, entry in tables.items()}
    return MappingProxyType(dict(sorted(facts.items())))


def _make_facts(
    name: str, entry: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]
) -> Facts:
    """Make the facts about a set; a two-class version has the source and licence of its base."""
    base = tables.get(entry.get("version_of", ""), {})
    facts = {key: base[key] for key in ("source", "licence") if key in base} | dict(entry)
    facts.pop("version_of", None)
    versions = (other for other, its in tables.items() if its.get("version_of") == name)
    facts["two_class"] = next(versions, None)
    facts["papers"] = tuple(facts["papers"])
    facts["licence"] = LICENCES[facts["licence"]]
    if "classes" in facts:
        facts["classes"] = MappingProxyType(dict(facts["classes"]))
    else:
        low, high = facts["target_range"]
        facts["target_range"] = (float(low), float(high))
    return Facts(name=name, **facts)
