"""The parser of preferences; its errors mark the part of the text that it cannot parse.

The grammar: bounds are separated by a comma, a semicolon, "and" or a new line. A bound has three
parts: a quantity with its classes if any (``recall(spam)``, ``recall of spam``), a comparison
(``<=``, "at most"), and a limit (``5``, ``5%``). The quantity or the comparison comes first:
``fp <= 5``, "at most 5 false positives". After the bounds, "then" states the goal: ``then
fewest errors``, ``then lowest cost of fp + 20 fn``. The tables below list the words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from margrave.confusion._bounds import (
    LABEL,
    QUOTED,
    WORDS,
    Bound,
    PreferenceError,
    format_decimal,
    quote_label,
)
from margrave.confusion._goal import Goal, Term

T = TypeVar("T")


class _Quantity(NamedTuple):
    """A word of a bound; the limit may have to be a fraction, or to be subtracted from 1."""

    word: str
    is_rate: bool = False
    is_complement: bool = False


_QUANTITIES = {
    **{word: _Quantity(word, entry.always_fraction) for word, entry in WORDS.items()},
    **dict.fromkeys(["false positive", "false positives", "false alarms"], _Quantity("fp")),
    **dict.fromkeys(["false negative", "false negatives", "misses", "missed"], _Quantity("fn")),
    **dict.fromkeys(
        ["fpr", "fp rate", "false positive rate", "false alarm rate"], _Quantity("fp", True)
    ),
    **dict.fromkeys(["fnr", "fn rate", "false negative rate", "miss rate"], _Quantity("fn", True)),
    **dict.fromkeys(["tpr", "true positive rate", "sensitivity"], _Quantity("recall", True)),
    **dict.fromkeys(["tnr", "true negative rate", "specificity"], _Quantity("fp", True, True)),
    **dict.fromkeys(["error", "mistakes", "misclassified"], _Quantity("errors")),
    "error rate": _Quantity("errors", True),
    "rejections": _Quantity("rejected"),
    **dict.fromkeys(["rejection rate", "reject rate"], _Quantity("rejected", True)),
    **dict.fromkeys(["ppv", "positive predictive value"], _Quantity("precision", True)),
}

_OTHER_MEASURES = {
    **dict.fromkeys(["tp", "true positives"], "write correct(class), or recall as a fraction"),
    **dict.fromkeys(["tn", "true negatives"], "write correct(class), or specificity as a fraction"),
    **dict.fromkeys(["f1", "f1 score"], "limit precision and recall"),
    **dict.fromkeys(["auc", "roc auc"], "limit fp and fn"),
}


class _Comparison(NamedTuple):
    at_most: bool
    is_strict: bool = False


class _Limit(NamedTuple):
    value: Fraction
    is_percent: bool
    span: tuple[int, int]


_COMPARISONS = {
    **dict.fromkeys(
        ["<=", "=<", "≤", "at most", "no more than", "not more than", "up to", "max", "maximum"],
        _Comparison(True),
    ),
    **dict.fromkeys(["<", "less than", "fewer than", "below", "under"], _Comparison(True, True)),
    **dict.fromkeys(
        [">=", "=>", "≥", "at least", "no less than", "not less than", "no fewer than"],
        _Comparison(False),
    ),
    **dict.fromkeys(["min", "minimum"], _Comparison(False)),
    **dict.fromkeys([">", "more than", "greater than", "above", "over"], _Comparison(False, True)),
}
_EQUALITIES = {"=", "==", "!=", "≠", "equals", "equal to", "exactly"}
_VERBS = {"is", "are", "be", "must be", "should be"}  # "recall should be at least 90%"
_NONE = {"no", "zero"}  # "no false positives"
_PERCENT = {"%", "percent", "per cent", "pct"}
_OF_SAMPLES = {
    *("of", "of the", "of all", "samples"),  # "2% of ham predicted spam"
    *("of samples", "of the samples", "of all samples"),  # "10% of the samples rejected"
}
_OF = {"of", "for"}  # "recall of spam"
_PREDICTED = {"->", "predicted", "predicted as", "classified as"}  # "ham predicted spam"
_THEN = {"then"}
_FEWEST = {"fewest", "the fewest", "least", "minimise", "minimize"}
_LOWEST_COST = {"lowest cost", "the lowest cost", "least cost", "minimum cost"}
_OTHER, _OUTSIDE = {"other errors", "others"}, {"errors outside"}
_PLUS = {"+", "and"}
_GOALS = (_THEN, _FEWEST, _LOWEST_COST, _OTHER, _OUTSIDE, _PLUS)
_GRAMMAR = (_THEN, _COMPARISONS, _EQUALITIES, _VERBS, _PERCENT, _OF_SAMPLES, _OF, _PREDICTED)
_RESERVED = {word for phrases in _GRAMMAR for phrase in phrases for word in phrase.split()}
_RESERVED -= {"no"}  # the name of a class in many tables

_SPACE = re.compile(r"\s*")
_SEPARATOR = re.compile(r"[^\S\n]*+(?:[,;\n](?:\s*+and\b)?|and\b)", re.IGNORECASE)
_END = re.compile(r"\s*+\.?\s*+\Z")
_SIGN = re.compile(r"->|%|≤|≥|≠|\+|[<>=!]+")
_WORD = re.compile(r"([^\W\d]\w*)")
_NEXT_WORD = re.compile(r"[\s-]++([^\W\d]\w*)")
_CLASSES = re.compile(rf"\(\s*+({LABEL})\s*+(?:->\s*+({LABEL})\s*+)?\)")
_CLASS = re.compile(rf"{QUOTED}|\w++(?:[.-]\w++)*+")
_NUMBER = re.compile(r"(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+)(?:\.\d*)?|\.\d+")
_DECIMAL_COMMA = re.compile(r",\d")
_TOKEN = re.compile(r"[^\s,;]+|.|\Z", re.DOTALL)
_A_NUMBER = "a number such as 5 or 5%"
_A_CLASS = 'a class such as spam or "not spam"'
_MAX_WORDS = 4  # of a phrase
MAX_BOUNDS = 200  # of a preference: whether they can hold together takes more time with each
_MAX_TOKEN = 60  # characters that a message quotes
_MAX_DIGITS = 100  # of a number: more than any count, and few enough for a float


def parse(text: str, examples: Sequence[str]) -> Iterator[tuple[Bound | Goal, tuple[int, int]]]:
    """Parse a text bound by bound, each with its span in the text, and then the goal if any."""
    scanner, n = _Scanner(text, examples), 0
    while True:
        start, n = scanner.next_start(), n + 1
        if n > MAX_BOUNDS:
            raise too_many_bounds(f"more than {MAX_BOUNDS}", n)
        if scanner.take_phrase(_THEN) is None:
            yield _parse_bound(scanner), (start, scanner.position)
            start = scanner.next_start()
        else:
            scanner.position = start
        if scanner.take_phrase(_THEN) is not None:
            yield _parse_goal(scanner), (start, scanner.position)
            if not _END.match(text, scanner.position):
                raise scanner.expected("the end; limits come before the goal")
        if _END.match(text, scanner.position):
            return
        separator = _SEPARATOR.match(text, scanner.position)
        if not separator:
            raise scanner.expected("a comma or the end")
        scanner.position = separator.end()
        if _END.match(text, scanner.position):
            return


def too_many_bounds(received: str, n: int) -> PreferenceError:
    """Make the error that a preference has too many bounds."""
    message = f"A preference has at most {MAX_BOUNDS} bounds; got {received}."
    return PreferenceError(message, code="too_many", n=n, allowed=MAX_BOUNDS)


def parse_bounds(
    text: str, classes: Sequence[Any] | None = None, positive: Any = None
) -> Iterator[Bound]:
    """Parse a text bound by bound, and do not check that they can hold together."""
    found = parse(text, make_examples(classes, positive))
    return (bound for bound, _ in found if isinstance(bound, Bound))


def make_examples(classes: Sequence[Any] | None, positive: Any = None) -> list[str]:
    """Write three bounds, about these classes if they are known."""
    if classes is None or len(classes) < 2:
        return ["fp <= 5", "recall >= 90%", "rejected <= 10%"]
    if positive is None and len(classes) > 2:
        of_positive, label = f"({quote_label(classes[-1])})", classes[-1]
    else:
        of_positive, label = "", classes[1] if positive is None else positive
    other = next((known for known in classes if known != label), classes[0])
    return [
        f"fp{of_positive} <= 5",
        f"recall({quote_label(label)}) >= 90%",
        f"errors({quote_label(other)} -> {quote_label(label)}) <= 2%",
    ]


@dataclass
class _Scanner:
    """A position in a text, and the phrases, numbers and classes that follow it."""

    text: str
    examples: Sequence[str]
    position: int = 0

    def next_start(self) -> int:
        """Find the next character that is not a space."""
        match = _SPACE.match(self.text, self.position)
        return match.end() if match else self.position

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move past the pattern, if it is next."""
        match = pattern.match(self.text, self.next_start())
        if match:
            self.position = match.end()
        return match

    def next_phrases(self) -> list[tuple[str, int]]:
        """List the next word, the next two words, ..., in lower case, each with its end."""
        words: list[str] = []
        phrases = []
        match = _WORD.match(self.text, self.next_start())
        while match and len(words) < _MAX_WORDS:
            words.append(match.group(1).lower())
            phrases.append((" ".join(words), match.end()))
            match = _NEXT_WORD.match(self.text, match.end())
        return phrases

    def take_phrase(self, phrases: Collection[str]) -> str | None:
        """Move past a sign or the longest sequence of words that is one of the phrases."""
        sign = _SIGN.match(self.text, self.next_start())
        following = [(sign.group(), sign.end())] if sign else self.next_phrases()
        for phrase, end in reversed(following):
            if phrase in phrases:
                self.position = end
                return phrase
        return None

    def look_up(self, table: Mapping[str, T]) -> T | None:
        """Move past a phrase of the table, and return what it stands for."""
        phrase = self.take_phrase(table)
        return None if phrase is None else table[phrase]

    def take_class(self) -> str | None:
        """Move past a class: in quotes, or a word or number that is not one of the grammar's."""
        match = _CLASS.match(self.text, self.next_start())
        if not match or match.group().lower() in _RESERVED:
            return None
        self.position = match.end()
        return _unquote(match.group())

    def expected(self, what: str) -> PreferenceError:
        """Make the error that something else than the next token is expected."""
        start = self.next_start()
        match = _TOKEN.match(self.text, start)
        token = match.group() if match else ""
        span = (start, start + max(len(token), 1))
        return self.error(span, f"expected {what}, got {_quote_token(token) or 'the end'}")

    def error(
        self, span: tuple[int, int], message: str, code: str = "syntax", **fields: Any
    ) -> PreferenceError:
        """Make an error with examples."""
        return mark_error(self.text, span, message, self.examples, code=code, **fields)


def _parse_bound(scanner: _Scanner) -> Bound:
    """Parse the three parts of a bound in the order in which they come."""
    quantity: tuple[_Quantity, tuple[str, ...]] | None = None
    comparison: _Comparison | None = None
    limit: _Limit | None = None
    while quantity is None or comparison is None or limit is None:
        start = scanner.next_start()
        if comparison is None and (comparison := _take_comparison(scanner)):
            is_sign = not scanner.text[start].isalpha()
            if limit and (is_sign or quantity is None):  # 5 >= fp
                span = (start, scanner.position)
                raise scanner.error(span, "write the number after this, as in fp <= 5")
        elif quantity is None and (pair := _take_pair(scanner)):
            quantity = _Quantity("errors"), pair
        elif limit is None and (limit := _take_limit(scanner)):
            scanner.take_phrase({"samples"} if quantity else _OF_SAMPLES)
        elif not (quantity or comparison or limit) and scanner.take_phrase(_NONE):
            comparison = _Comparison(at_most=True)
            limit = _Limit(Fraction(0), False, (start, scanner.position))
        elif quantity is None:
            quantity = _parse_quantity(scanner, only_number=bool(comparison and not limit))
        else:
            raise scanner.expected(_A_NUMBER if comparison else "<= or >=")
    return _make_bound(scanner.text, *quantity, comparison, limit)


def _parse_goal(scanner: _Scanner) -> Goal:
    """Parse "fewest errors", "fewest other errors" or "lowest cost of fp + 20 fn"."""
    scanner.examples = ["then fewest fn", "then fewest errors", "then lowest cost of fp + 20 fn"]
    is_cost = scanner.take_phrase(_LOWEST_COST) is not None
    if is_cost and _END.match(scanner.text, scanner.position):
        start = scanner.next_start()
        message = "write the cost of each error after this, as in lowest cost of fp + 20 fn"
        raise scanner.error((start - 1, start), message)
    if is_cost:
        scanner.take_phrase(_OF)
    elif scanner.take_phrase(_FEWEST) is None:
        raise scanner.expected("fewest fn, fewest errors or lowest cost of fp + 20 fn")
    elif scanner.take_phrase(_OTHER) is not None:
        return Goal(outside=True)
    outside = not is_cost and scanner.take_phrase(_OUTSIDE) is not None
    terms = [_parse_term(scanner, with_cost=not outside)]
    while scanner.take_phrase(_PLUS) is not None:
        terms.append(_parse_term(scanner, with_cost=not outside))
    return Goal(tuple(terms), outside)


def parse_goal(text: Goal | str) -> Goal:
    """Parse a goal alone, such as "fewest errors"; a "then" before it is left out."""
    scanner = _Scanner(str(text), ())
    scanner.take_phrase(_THEN)
    goal = _parse_goal(scanner)
    if not _END.match(scanner.text, scanner.position):
        raise scanner.expected("the end of the goal")
    return goal


def _parse_term(scanner: _Scanner, with_cost: bool) -> Term:
    """Parse "20 fn": a quantity that counts samples, after its cost if it may have one."""
    cost = _take_limit(scanner) if with_cost else None
    start = scanner.next_start()
    pair = _take_pair(scanner)
    quantity, labels = (
        (_Quantity("errors"), pair) if pair else _parse_quantity(scanner, only_number=False)
    )
    span = (start, scanner.position)
    if quantity.is_rate or quantity.is_complement or quantity.word == "correct":
        raise scanner.error(span, "a goal counts fp, fn, errors, alarms or rejected")
    if cost is not None and (cost.is_percent or cost.value == 0):
        raise scanner.error(cost.span, "a cost is a number above 0")
    return Term(quantity.word, labels, Fraction(1) if cost is None else cost.value)


def _take_comparison(scanner: _Scanner) -> _Comparison | None:
    start = scanner.position
    scanner.take_phrase(_VERBS)
    sign_start = scanner.next_start()
    comparison = scanner.look_up(_COMPARISONS)
    if comparison is None and scanner.take_phrase(_EQUALITIES):
        message = "write <= or >=; a bound cannot set an exact value"
        raise scanner.error((sign_start, scanner.position), message)
    if comparison is None:
        scanner.position = start
    return comparison


def _take_pair(scanner: _Scanner) -> tuple[str, ...] | None:
    """Take "ham predicted spam", the classes of errors(ham -> spam)."""
    before, start = scanner.position, scanner.next_start()
    true = scanner.take_class()
    scanner.take_phrase(_VERBS)
    if true is None or not scanner.take_phrase(_PREDICTED):
        scanner.position = before
        return None
    predicted = scanner.take_class()
    if predicted is None:
        raise scanner.expected(_A_CLASS)
    _check_classes(scanner, "errors", (true, predicted), start)
    return true, predicted


def _take_limit(scanner: _Scanner) -> _Limit | None:
    number = scanner.take(_NUMBER)
    if not number:
        return None
    if _DECIMAL_COMMA.match(scanner.text, number.end()):
        span = (number.start(), number.end() + 2)
        raise scanner.error(
            span, "write decimals with a point (99.5), and three digits after a comma (1,000)"
        )
    if len(number.group()) > _MAX_DIGITS:
        raise scanner.error(number.span(), f"a number has at most {_MAX_DIGITS} digits")
    value = Fraction(number.group().replace(",", ""))
    is_percent = scanner.take_phrase(_PERCENT) is not None
    return _Limit(value, is_percent, (number.start(), scanner.position))


def _parse_quantity(scanner: _Scanner, only_number: bool) -> tuple[_Quantity, tuple[str, ...]]:
    """Parse recall, recall(spam), "recall of spam" or "spam recall"."""
    before, start = scanner.position, scanner.next_start()
    quantity = scanner.look_up(_QUANTITIES)
    if quantity is not None:
        start = scanner.next_start()
        labels = _take_classes(scanner)
    elif only_number:  # "at most five"
        raise scanner.expected(_A_NUMBER)
    else:
        label = scanner.take_class()
        scanner.take_phrase(_VERBS)
        quantity = None if label is None else scanner.look_up(_QUANTITIES)
        if label is None or quantity is None:
            scanner.position = before
            raise _unknown_word(scanner)
        labels = (label,)
    _check_classes(scanner, quantity.word, labels, start)
    return quantity, labels


def _take_classes(scanner: _Scanner) -> tuple[str, ...]:
    """Take the classes after a quantity: (spam), (ham -> spam) or "of spam"."""
    if scanner.text.startswith("(", scanner.next_start()):
        before = scanner.position
        match = scanner.take(_CLASSES)
        if not match or "" in match.groups():
            scanner.position = before
            raise scanner.expected('a class in brackets, such as (spam), ("not spam") or (a -> b)')
        return tuple(_unquote(label) for label in match.groups() if label is not None)
    if not scanner.take_phrase(_OF):
        return ()
    after = scanner.position
    if scanner.look_up(_COMPARISONS) is not None:  # "recall of at least 90%"
        scanner.position = after
        return ()
    label = scanner.take_class()
    if label is None:
        raise scanner.expected(_A_CLASS)
    return (label,)


def _check_classes(scanner: _Scanner, word: str, labels: tuple[str, ...], start: int) -> None:
    """Check that the word takes this number of classes, and that they differ."""
    span = (start, scanner.position)
    if len(labels) not in WORDS[word].labels:
        forms = {0: word, 1: f"{word}(class)", 2: f"{word}(class -> class)"}
        allowed = " or ".join(forms[count] for count in WORDS[word].labels)
        raise scanner.error(span, f"write {allowed}")
    if len(labels) == 2 and labels[0] == labels[1]:
        raise scanner.error(
            span,
            "errors are predictions of another class; for correct predictions write "
            f"correct({quote_label(labels[0])})",
        )


def _unknown_word(scanner: _Scanner) -> PreferenceError:
    start, phrases = scanner.next_start(), scanner.next_phrases()
    if not phrases:
        return scanner.expected("a word such as fp, fn or recall")
    near: list[str] = []
    end, hint = phrases[0][1], f"there are {', '.join(WORDS)}"
    for phrase, phrase_end in phrases:
        if phrase in _OTHER_MEASURES:
            end, hint = phrase_end, _OTHER_MEASURES[phrase]
            break
        if found := get_close_matches(phrase, _QUANTITIES, cutoff=0.7):
            end, hint, near = phrase_end, f"did you mean {found[0]}?", found
    word = scanner.text[start:end]
    return scanner.error(
        (start, end),
        f"unknown word {_quote_token(word)}; {hint}",
        code="unknown_word",
        word=word,
        near=near,
    )


def _make_bound(
    text: str,
    quantity: _Quantity,
    labels: tuple[str, ...],
    comparison: _Comparison,
    limit: _Limit,
) -> Bound:
    """Make a bound with the exact limit: a fraction of the base, or a count."""
    word, value, at_most = quantity.word, limit.value, comparison.at_most
    if limit.is_percent or quantity.is_rate:
        written = format_decimal(value)
        value = value / 100 if limit.is_percent else value
        if value > 1:
            hint = "" if limit.is_percent else f"; write {written}% for a percentage"
            message = f"the limit of {word} is a fraction of at most 1{hint}"
            raise mark_error(text, limit.span, message, code="not_a_fraction", limit=written)
        if quantity.is_complement:
            value, at_most = 1 - value, not at_most
        return Bound(word, labels, at_most, value, is_fraction=True)
    if value.denominator != 1:
        hint = f"; for a fraction write {format_decimal(value * 100)}%" if value < 1 else ""
        message = f"a count is a whole number{hint}"
        raise mark_error(text, limit.span, message, code="not_a_count", limit=format_decimal(value))
    if comparison.is_strict:
        value += -1 if at_most else 1
    if value < 0:
        message = "a count is at least 0; for none at all write <= 0"
        raise mark_error(text, limit.span, message, code="not_a_count", limit="-1")
    return Bound(word, labels, at_most, value, is_fraction=False)


def mark_error(
    text: str,
    span: tuple[int, int],
    message: str,
    examples: Sequence[str] = (),
    *,
    code: str,
    **fields: Any,
) -> PreferenceError:
    """Make an error of the message, the text, marks under the span, and examples."""
    flat = re.sub(r"\s", " ", text)
    marks = " " * span[0] + "^" * (span[1] - span[0])
    end = "" if message.endswith("?") else "."
    lines = [message + end, f"    {flat}", f"    {marks}"]
    if examples:
        lines.append(f"Examples: {', '.join(examples)}.")
        fields["examples"] = examples
    error = PreferenceError("\n".join(lines), code=code, text=text, span=span, **fields)
    error.summary = " ".join(lines[:1] + lines[3:])
    return error


def _quote_token(token: str) -> str:
    """Write a part of the text within a message; the message marks the whole of it anyway."""
    short = token if len(token) <= _MAX_TOKEN else f"{token[:_MAX_TOKEN]}…"
    return repr(short) if token else ""


def _unquote(label: str) -> str:
    quote = label[0]
    return label[1:-1].replace(quote * 2, quote) if quote in "\"'" else label
