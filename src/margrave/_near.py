"""What an unknown name may have meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches


def near_names(text: str, known: Iterable[str]) -> list[str]:
    """Give the names that are spelt much like a text, then those that hold it or a word of it.

    Words of one or two letters are in too many names to tell anything.

    Examples
    --------
    >>> near_names("heart disease", ["heart_statlog", "housing", "iris"])
    ['heart_statlog']
    """
    known, text = list(known), text.lower()
    # A name that holds the whole text holds its words too.
    words = re.findall(r"[^\W_]{3,}", text)
    holding = [name for name in known if any(word in name for word in words)]
    return list(dict.fromkeys(get_close_matches(text, known) + holding))


def did_you_mean(near: Iterable[str]) -> str:
    """Give the end of a message: a question with the names, or nothing if there are none."""
    names = " or ".join(map(repr, near))
    return f" Did you mean {names}?" if names else ""
