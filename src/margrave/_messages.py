"""Parts of messages that several packages use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# A class that reads as a name within a sentence: it starts with a letter and has no spaces.
_NAME = re.compile(r"[^\W\d]\w*(?:[-./]\w+)*")
_MAX_TEXT = 200  # characters that are compared with names: a comparison takes quadratic time
_SENTENCE_WORDS = {
    *("a", "all", "and", "are", "at", "in", "is", "no", "none", "not", "of", "on", "or"),
    *("predicted", "rejected", "samples", "the", "yes"),
}


def name_class(label: Any) -> str:
    """Write a class within a sentence: in quotes if it would not read as a name.

    Examples
    --------
    >>> from margrave._messages import name_class
    >>> name_class("spam"), name_class(0), name_class("not spam")
    ('spam', "'0'", "'not spam'")
    """
    text = str(label)
    is_name = _NAME.fullmatch(text) and text.lower() not in _SENTENCE_WORDS
    return text if is_name else repr(text)


def format_count(n: float, noun: str = "") -> str:
    """Write a number of samples within a sentence; a bound may be short by a part of one.

    With a noun in the singular, the number is followed by it, in the plural where that is right.

    Examples
    --------
    >>> from margrave._messages import format_count
    >>> format_count(3054), format_count(1234567), format_count(14.4)
    ('3,054', '1,234,567', '14.4')
    >>> format_count(1, "sample"), format_count(3054, "sample")
    ('1 sample', '3,054 samples')
    """
    number = f"{n:,.6g}" if abs(n) < 10**6 else f"{n:,.0f}"
    return f"{number} {noun}{'' if n == 1 else 's'}" if noun else number


def missing_extra(what: str, package: str, extra: str) -> str:
    """Write a message that names a package that is not installed, and how to install it.

    Parameters
    ----------
    what : str
        What needs the package: a function, a command or an option, as the subject of a sentence.
    package : str
        The package that is not installed.
    extra : str
        The extra of Margrave that includes the package.
    """
    # Margrave is on no package index, so the command is one for a checkout.
    # Double quotes work in every shell, also on Windows.
    return (
        f"{what} needs {package}, which is not installed. Install Margrave with its extra "
        f'{extra!r}: run pip install ".[{extra}]" in a checkout of Margrave.'
    )


def near_names(text: str, known: Iterable[str]) -> list[str]:
    """List the names that are spelt like a text, then those that contain it or a word of it.

    Words of one or two letters do not count: too many names contain them.

    Examples
    --------
    >>> from margrave._messages import near_names
    >>> near_names("heart disease", ["heart_statlog", "housing", "iris"])
    ['heart_statlog']
    """
    lower = {name.lower(): name for name in known}
    text = text.lower()[:_MAX_TEXT]
    # A name that contains the whole text contains its words too.
    words = re.findall(r"[^\W_]{3,}", text)
    containing = [name for name in lower if any(word in name for word in words)]
    return [lower[name] for name in dict.fromkeys(get_close_matches(text, lower) + containing)]


def did_you_mean(near: Iterable[str]) -> str:
    """Write the end of a message: a question with the names, or "" if there are none."""
    names = " or ".join(map(repr, near))
    return f" Did you mean {names}?" if names else ""
