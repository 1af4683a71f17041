"""Check that the project uses its vocabulary: ``python -m tools.words [FILE...]``.

`WORDS` has the words that were replaced, with what to write instead; `ALLOWED` has the phrases in
which such a word is right. Without files, it checks all files of the repository that people read:
code, pages, templates and texts of the front ends. The exit code is 1 if a word is found.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = {".py", ".md", ".rst", ".js", ".html", ".css", ".toml", ".yml"}
LEFT_OUT = (
    "CHANGELOG.md",  # names old words
    "tools/words.py",
    "tests/test_words.py",
    "tests/wording/",  # made from the texts that are checked
    "src/margrave/studio/static/vendor/",
    "tests/studio/vendor/",
    "src/margrave/datasets/",  # descriptions quote their sources
    "tools/same_results.py",  # compares with packages that have old names
    "locks/",
)

WORDS = {
    r"promis(?:e|es|ed|ing)": "guarantee",
    r"pric(?:e|es|ed|ing)|dear(?:er|est|ly)?|cheap(?:er|est|ly)?": "cost; slow, fast",
    r"cuts?|cut-?offs?": "threshold (two classes), offsets (more)",
    r"spent|spends?": "used up",
    r"binds": "is the limiting constraint",
    r"weigh(?:s|ed|ing)?": "weight",
    r"anew": "again",
    r"parted": "split",
    r"made data": "synthetic data",
    r"shares? of (?:the )?(?:data|samples|rows|errors|pairs)": "proportion or fraction of",
    r"told|heard": "reported, received, or who does it",
    r"unanswered|left to a person": "rejected",
    r"(?:dialog|session)s? goes? on": "continues",
    r"stands at": "the current step is",
    r"the documents?|document 00\d": "the paper, by author and year",
    r"quantile-line|random-trees|boosted-trees": "the catalogue's name",
    r"beyond memory": "larger than memory",
    r"bars? (?:is|are|was|were) kept": "target … met",
    r"certify samples|certify parts?": "certification set",
    r"(?:certification|tuning|training|test) parts?": "certification, tuning, training or test set",
    r"called (?:spam|nonspam|ham|positive|negative|fraud)": "predicted …",
    r"(?:members?|classifiers?|models?) (?:say|says|said)": "predicts",
    r"how far to trust": "say what is measured or bounded",
}

ALLOWED = (
    r"told[ _]apart",
    r"\bPromise\b",  # of JavaScript
    r"cut[ _](?:off|short)",
    r"power cut",
    r"cutoff=",  # of difflib
    r"pandas\.cut",
    r"graph cuts?",
    r"house prices?",
    r"postcode price",  # names of columns
)

# Whole words only, so that "cut" is not found in "executed" or "clear-cut".
_PATTERNS = [
    (re.compile(word), re.compile(rf"(?<![a-z-])(?:{word})(?![a-z-])", re.IGNORECASE), instead)
    for word, instead in WORDS.items()
]
_ALLOWED = re.compile("|".join(ALLOWED))


def find_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the word and what to write instead, for each word to replace."""
    rest = _ALLOWED.sub("", text)
    lower = rest.lower()
    for within, pattern, instead in _PATTERNS:
        if within.search(lower):  # ten times as fast, and seldom found
            for found in pattern.finditer(rest):
                yield rest.count("\n", 0, found.start()) + 1, found[0], instead


def repository_files() -> Iterator[Path]:
    """Yield the files of the repository that people read."""
    listed = subprocess.run(
        ["git", "ls-files"],  # noqa: S607 - whichever git is installed
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        if (Path(name).suffix in SUFFIXES or name == "Makefile") and not name.startswith(LEFT_OUT):
            yield ROOT / name


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def main(paths: Iterable[Path]) -> int:
    """Print each word that is found, with its place and what to write instead."""
    n_found = 0
    for path in paths:
        for number, word, instead in find_words(path.read_text(encoding="utf-8")):
            print(f"{_shown(path)}:{number}: '{word}': write: {instead}")
            n_found += 1
    if n_found:
        print(f"{n_found} words to replace; tools/words.py has the list, and what it allows.")
    return int(n_found > 0)


if __name__ == "__main__":
    sys.exit(main(map(Path, sys.argv[1:]) if sys.argv[1:] else repository_files()))
