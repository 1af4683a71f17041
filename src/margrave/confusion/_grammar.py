"""The parser of preferences; its errors mark the part of the text that it cannot parse.

The grammar: bounds are separated by a comma, a semicolon, "and" or a new line; a bound is a word,
its classes in brackets if any, ``<=`` or ``>=``, and a number with or without a percent sign.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from fractions import Fraction

from margrave.confusion._bounds import (
    LABEL,
    WORDS,
    Bound,
    PreferenceError,
    format_decimal,
    quote_label,
)

_SPACE = re.compile(r"\s*")
_SEPARATOR = re.compile(r"[^\S\n]*(?:[,;\n]|and\b)\s*", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d]\w*")
_LABELS = re.compile(rf"\(\s*({LABEL})\s*(?:->\s*({LABEL})\s*)?\)")
_SIGN = re.compile(r"<=|≤|>=|≥")
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)((?:[^\S\n]*%)?)")
_TOKEN = re.compile(r"[^\s,;]+|.|$", re.DOTALL)


def parse(text: str) -> list[tuple[Bound, tuple[int, int]]]:
    """Parse a text into bounds, each with its span in the text."""
    parsed, position = [], _skip_space(text, 0)
    while True:
        start = position
        bound, position = _parse_bound(text, position)
        parsed.append((bound, (start, position)))
        if _skip_space(text, position) == len(text):
            return parsed
        match = _SEPARATOR.match(text, position)
        if not match:
            raise _expect_error(text, _skip_space(text, position), "a comma or the end")
        position = match.end()
        if position == len(text):
            return parsed


def _parse_bound(text: str, start: int) -> tuple[Bound, int]:
    name = _NAME.match(text, start)
    if not name:
        hint = " (numbers have no commas)" if text[start : start + 1].isdigit() else ""
        raise _expect_error(text, start, f"a word such as fp, fn or recall{hint}")
    word = name.group().lower()
    if word not in WORDS:
        near = get_close_matches(word, WORDS)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(WORDS)}"
        raise mark_error(text, name.span(), f"unknown word {name.group()!r}{hint}")
    position = _skip_space(text, name.end())
    labels, position = _parse_labels(text, position, word, name.span())
    sign = _SIGN.match(text, position)
    if not sign:
        raise _expect_error(text, position, "<= or >=")
    position = _skip_space(text, sign.end())
    number = _NUMBER.match(text, position)
    if not number:
        raise _expect_error(text, position, "a number such as 5 or 5%")
    limit, is_fraction = _parse_limit(text, number, word)
    return Bound(word, labels, sign.group() in "<=≤", limit, is_fraction), number.end()


def _parse_labels(
    text: str, position: int, word: str, span: tuple[int, int]
) -> tuple[tuple[str, ...], int]:
    labels: tuple[str, ...] = ()
    if text[position : position + 1] == "(":
        match = _LABELS.match(text, position)
        if not match or not match.group(1):
            raise _expect_error(
                text, position, 'a class in brackets, such as (spam), ("not spam") or (a -> b)'
            )
        labels = tuple(_unquote(label) for label in match.groups() if label is not None)
        span, position = match.span(), match.end()
    if len(labels) not in WORDS[word].labels:
        forms = {0: word, 1: f"{word}(class)", 2: f"{word}(class -> class)"}
        allowed = " or ".join(forms[count] for count in WORDS[word].labels)
        raise mark_error(text, span, f"write {allowed}")
    if len(labels) == 2 and labels[0] == labels[1]:
        raise mark_error(
            text,
            span,
            "errors are predictions of another class; for correct predictions write "
            f"correct({quote_label(labels[0])})",
        )
    return labels, _skip_space(text, position)


def _parse_limit(text: str, number: re.Match[str], word: str) -> tuple[Fraction, bool]:
    """Parse the exact limit, and whether it is a fraction of the base rather than a count."""
    limit, percent = Fraction(number.group(1)), bool(number.group(2))
    if percent:
        limit /= 100
    is_fraction = percent or WORDS[word].always_fraction
    if is_fraction and limit > 1:
        hint = "" if percent else f"; write {number.group(1)}% for a percentage"
        raise mark_error(
            text, number.span(), f"the limit of {word} is a fraction of at most 1{hint}"
        )
    if not is_fraction and limit.denominator != 1:
        hint = f"; for a fraction write {format_decimal(limit * 100)}%" if limit < 1 else ""
        raise mark_error(text, number.span(), f"a count is a whole number{hint}")
    return limit, is_fraction


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _expect_error(text: str, position: int, expected: str) -> PreferenceError:
    match = _TOKEN.match(text, position)
    token = match.group() if match else ""
    span = (position, position + max(len(token), 1))
    return mark_error(text, span, f"expected {expected}, got {repr(token) if token else 'the end'}")


def mark_error(text: str, span: tuple[int, int], message: str) -> PreferenceError:
    """Make an error of the message, the text, and marks under the span."""
    flat = re.sub(r"\s", " ", text)
    marks = " " * span[0] + "^" * (span[1] - span[0])
    return PreferenceError(f"{message}\n    {flat}\n    {marks}")


def _unquote(label: str) -> str:
    quote = label[0]
    return label[1:-1].replace(quote * 2, quote) if quote in "\"'" else label
