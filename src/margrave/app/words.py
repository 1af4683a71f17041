"""Format messages: in one line, and without control characters."""

from __future__ import annotations


def replace_control(text: str) -> str:
    """Replace control characters, which a terminal would obey, except line ends."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(message: str) -> str:
    """Join the lines of a message, without a quoted line and the marks (^) below it."""
    lines = message.splitlines()
    marks = [i for i, line in enumerate(lines) if line.strip() and not line.strip(" ^")]
    for i in reversed(marks):
        del lines[i - 1 : i + 1]
    return " ".join(" ".join(lines).split())
