"""Messages for people: in one line, and without what a terminal would obey."""

from __future__ import annotations


def harmless(text: str) -> str:
    """A text without control characters, except the ends of lines."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(message: str) -> str:
    """A message in one line: no marks below a word, nor what they mark."""
    lines = message.splitlines()
    marks = [i for i, line in enumerate(lines) if line.strip() and not line.strip(" ^")]
    for i in reversed(marks):
        del lines[i - 1 : i + 1]
    return " ".join(" ".join(lines).split())
