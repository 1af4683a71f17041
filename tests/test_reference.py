"""The reference pages are complete: they name what the code has, and nothing else."""

import itertools
import random
import re
from pathlib import Path

import pytest

from margrave.confusion import PreferenceError, _bounds, _grammar

DOCS = Path(__file__).resolve().parents[1] / "docs/reference"


def page(name):
    return (DOCS / name).read_text("utf-8")


def section(text, heading):
    """Return the text below a heading, up to the next heading of its level or above."""
    level = heading.partition(" ")[0]
    end = r"(?=^#{1,%d} |\Z)" % len(level)
    found = re.search(rf"^{re.escape(heading)}\n(.*?){end}", text, re.DOTALL | re.MULTILINE)
    assert found, heading
    return found[1]


def first_cells(text):
    """Return the first cell of each row of the tables in a text, without heads."""
    rows = re.findall(r"^\|(.*?)(?<!\\)\|", text, re.MULTILINE)
    rules = [at for at, cell in enumerate(rows) if set(cell.strip()) == {"-"}]
    return [cell.strip() for at, cell in enumerate(rows) if not {at, at + 1} & set(rules)]


# Preferences


GRAMMAR = re.search(r"```ebnf\n(.*?)```", page("preferences.md"), re.DOTALL)[1]
RULE = re.compile(r"^(\w+)\s*= (.*?) ;$", re.DOTALL | re.MULTILINE)
SIGN = re.compile(r'"[^"]*"|\?.*?\?|\w+|[][(){}|,]')
SAMPLES = {
    "number": ["5", "0.5", "1,000", ".5", "12"],
    "class": ["ham", "spam", '"not spam"', "'5''8'", "re-sent"],
    "label": ["ham", "1", '"not spam"', "a.b"],
    "newline": ["\n"],
}


class Sentences:
    """Draws sentences from the grammar on the page."""

    def __init__(self, seed):
        self.rules = {name: SIGN.findall(body) for name, body in RULE.findall(GRAMMAR)}
        self.random = random.Random(seed)  # noqa: S311 - not for secrets

    def draw(self, name):
        if name in SAMPLES:
            return self.random.choice(SAMPLES[name])
        self.signs = iter(self.rules[name])
        return self.choose(None)

    def choose(self, end):
        """Read alternatives up to a bracket, and write one of them."""
        alternatives, signs = [[]], self.signs
        for sign in signs:
            if sign == end:
                break
            if sign == "|":
                alternatives.append([])
            elif sign != ",":
                alternatives[-1].append(self.read(sign))
        return lambda: " ".join(
            text for write in self.random.choice(alternatives) if (text := write())
        )

    def read(self, sign):
        """Read one part of a rule: a function that writes it."""
        if sign == "(":
            return self.choose(")")
        if sign in "[{":
            inner = self.choose({"[": "]", "{": "}"}[sign])
            return lambda: inner() if self.random.random() < 0.5 else ""
        if sign.startswith('"'):
            return lambda: sign[1:-1]
        return lambda: self.write(sign)

    def write(self, name):
        drawn = self.draw(name)
        return drawn if isinstance(drawn, str) else drawn()


def test_the_grammar_on_the_page_is_complete():
    terminals = set(re.findall(r'"([^"]*)"', GRAMMAR))
    phrases = itertools.chain(
        *(_grammar._QUANTITIES, _grammar._COMPARISONS, _grammar._VERBS, _grammar._NONE),
        *(_grammar._PERCENT, _grammar._OF_SAMPLES, _grammar._OF, _grammar._PREDICTED),
    )
    marks = {",", ";", ".", "and", "(", ")"}
    assert terminals == {*phrases} | marks
    rules = dict(RULE.findall(GRAMMAR))
    used = {name for body in rules.values() for name in re.findall(r"\w+", re.sub(
        r'"[^"]*"|\?.*?\?', "", body, flags=re.DOTALL))}  # fmt: skip
    assert used | {"preference"} == {*rules}


@pytest.mark.parametrize("seed", range(20))
def test_what_the_grammar_generates_can_be_parsed(seed):
    sentences = Sentences(seed)
    for _ in range(20):
        text = sentences.write("preference")
        try:
            list(_grammar.parse_bounds(text))
        except PreferenceError as error:
            differ = re.search(r'(\w+|"not spam") -> \1\b', text) or "another class" in str(error)
            assert differ or error.code in ("not_a_count", "not_a_fraction"), (text, str(error))


def test_every_quantity_is_in_the_table():
    cells = first_cells(section(page("preferences.md"), "## Quantities"))
    names = set(re.findall(r"`([a-z]+)[^`]*`", " ".join(cells)))
    assert names == {*_bounds.WORDS}
    with_class = {name for cell in cells for name in re.findall(r"`([a-z]+)\(", cell)}
    assert with_class == {name for name, word in _bounds.WORDS.items() if max(word.labels)}


def test_every_spelling_is_explained():
    table = " ".join(first_cells(section(page("preferences.md"), "## The grammar")))
    table = re.sub(r"(\w+ \w+)\(s\)", r"\1, \1s", table)
    for phrase in {*_grammar._QUANTITIES, *_grammar._COMPARISONS} - {*_bounds.WORDS}:
        assert phrase in table or phrase in "< <= > >=", phrase


def test_every_code_of_a_preference_error_is_in_the_table():
    known = re.findall(r"^    ``(\w+)`` ", PreferenceError.__doc__, re.MULTILINE)
    cells = first_cells(section(page("preferences.md"), "## Errors"))
    assert [cell.strip("`") for cell in cells] == known
