"""The reference pages are complete: they name what the code has, and nothing else."""

import importlib
import itertools
import random
import re
from pathlib import Path

import pytest
from tests.test_docstrings import NAMES

import margrave
from margrave import catalogue, cli, datasets
from margrave.app import InputError, TableError
from margrave.app.options import make_parser
from margrave.app.request import NOT_MET, USELESS
from margrave.confusion import PreferenceError, _bounds, _grammar
from margrave.steer import GuaranteeError, SplitError

DOCS = Path(__file__).resolve().parents[1] / "docs/reference"


def page(name):
    return (DOCS / name).read_text("utf-8")


def section(text, heading):
    """Return the text below a heading, up to the next heading of its level or above."""
    level = heading.partition(" ")[0]
    end = rf"(?=^#{{1,{len(level)}}} |\Z)"
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
        *_grammar._GOALS,
    )
    marks = {",", ";", ".", "and", "(", ")"}
    assert terminals == {*phrases} | marks
    rules = dict(RULE.findall(GRAMMAR))
    used = {name for body in rules.values() for name in re.findall(r"\w+", re.sub(
        r'"[^"]*"|\?.*?\?', "", body, flags=re.DOTALL))}  # fmt: skip
    assert used | {"preference"} == {*rules}


def parse_error(text):
    try:
        list(_grammar.parse_bounds(text))
    except PreferenceError as error:
        return error
    return None


def has_equal_classes(text):
    """Tell whether a quoted part of a preference names the same class twice."""
    longest_first = sorted({*SAMPLES["class"], *SAMPLES["label"]}, key=len, reverse=True)
    named = re.findall("|".join(map(re.escape, longest_first)), text)
    return len(named) == 2 and named[0] == named[1]


@pytest.mark.parametrize("seed", range(20))
def test_what_the_grammar_generates_can_be_parsed(seed):
    """Apart from what the page rules out in words: numbers out of range, and equal classes."""
    sentences = Sentences(seed)
    for _ in range(20):
        text = sentences.write("preference")
        error = parse_error(text)
        if error is None or error.code in ("not_a_count", "not_a_fraction"):
            continue
        start, end = error.fields["span"]
        assert has_equal_classes(text[start:end]), text


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


# The command line


def subcommands():
    (commands,) = [action for action in make_parser()._actions if isinstance(action.choices, dict)]
    return commands.choices


def options_of(parser):
    return {
        option
        for action in parser._actions
        for option in action.option_strings
        if option not in ("-h", "--help")
    }


def test_every_command_has_a_section():
    headings = re.findall(r"^## margrave (\w+)$", page("command_line.md"), re.MULTILINE)
    assert headings == ["steer", "predict", "check", "card", "studio", "data"]
    assert {*headings} == {*subcommands()}


@pytest.mark.parametrize("command", subcommands())
def test_every_option_is_in_the_table_of_its_command(command):
    parser = subcommands()[command]
    text = section(page("command_line.md"), f"## margrave {command}")
    found = re.findall(r"`(--[\w-]+)", " ".join(first_cells(text)))
    assert {*found} == options_of(parser)
    for action in parser._actions:
        if not action.option_strings and action.metavar:
            assert action.metavar in text


def test_every_option_on_the_page_exists():
    known = {option for parser in subcommands().values() for option in options_of(parser)}
    known |= {"--help", "--version"}
    assert {*re.findall(r"(?<![\w-])--[a-z][\w-]*", page("command_line.md"))} == known


def test_every_exit_code_is_in_the_table():
    cells = first_cells(section(page("command_line.md"), "## Exit codes"))
    codes = {0, cli.BAD_INPUT, NOT_MET, cli.ALARM, USELESS, cli.INTERRUPTED}
    assert {*map(int, cells)} == codes


# The JSON API


@pytest.fixture(scope="module")
def openapi():
    """Describe the routes; the application itself, which takes longer, is not needed."""
    utils = pytest.importorskip("fastapi.openapi.utils")
    from margrave.studio import routes_dialogs, routes_tables, routes_views

    modules = (routes_tables, routes_dialogs, routes_views)
    routes = [route for module in modules for route in module.router.routes]
    return utils.get_openapi(title="", version="", routes=routes)


def named(text):
    return {*re.findall(r"`(\w+)`", text)}


def fields_of(openapi, contents):
    """Return the fields of the JSON object or the form in a request or a response."""
    found = set()
    for content in contents.get("content", {}).values():
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        found |= {*openapi["components"]["schemas"].get(name, {}).get("properties", {})}
    return found


def test_every_operation_is_on_the_page(openapi):
    known = {
        f"{method.upper()} {path}": operation
        for path, found in openapi["paths"].items()
        for method, operation in found.items()
    }
    text = page("json_api.md")
    rows = dict(re.findall(r"^\| `([A-Z]+ /api\S*)` \|(.*)\|$", text, re.MULTILINE))
    assert {*rows} == {*known, "GET /api/openapi.json", "POST /api/session"}
    explained = named(" ".join(first_cells(section(text, "### Fields"))))
    of_plan = {*openapi["components"]["schemas"]["Choices"]["properties"]}
    for operation, described in known.items():
        _, sent, reply = rows[operation].split("|")
        fields = {one["name"] for one in described.get("parameters", []) if one["in"] != "path"}
        fields |= fields_of(openapi, described.get("requestBody", {}))
        if operation == "POST /api/dialogs":
            assert "the fields of `plan`" in sent
            fields -= of_plan
            sent = sent.replace("`plan`", "")
        if operation.endswith("/read"):
            sent = sent.replace("`true`, `predicted`, `to`", "")
        assert named(sent) == fields, operation
        assert fields <= explained, operation
        if re.match(r" (dialog|job|table)\b(?!:)", reply):  # a record, which has its own table
            continue
        replied = set()
        for status, response in described["responses"].items():
            if status.startswith("2"):
                replied |= fields_of(openapi, response)
        assert named(reply) == replied, operation


@pytest.mark.parametrize(
    ("record", "schema"),
    [
        ("a dialog", "Dialog"),
        ("a step", "Step"),
        ("an accepted model", "Accepted"),
        ("a job", "Job"),
    ],
)
def test_every_field_of_a_record_is_in_its_table(openapi, record, schema):
    table = page("json_api.md").partition(f"| field of {record} |")[2].partition("\n\n")[0]
    listed = re.findall(r"`(\w+)`", " ".join(first_cells(table)))
    assert sorted(listed) == sorted(openapi["components"]["schemas"][schema]["properties"])


def test_every_status_is_in_the_table():
    pytest.importorskip("fastapi")
    from margrave.studio.problems import _CODES

    rows = re.findall(r"^\| (\d{3}) \| `(\w+)`", page("json_api.md"), re.MULTILINE)
    assert {int(status): code for status, code in rows} == _CODES


def test_every_code_of_the_library_is_in_the_table():
    table = section(page("json_api.md"), "## Errors")
    for error in (InputError, TableError, GuaranteeError, SplitError):
        listed = re.findall(r"^    ``(\w+)`` ", error.__doc__, re.MULTILINE)
        listed = listed or re.findall(r'"([a-z_]+)"', error.__doc__.partition("fields : dict")[0])
        (row,) = re.findall(rf"^\| .*\.{error.__name__}`.*\|(.*)\|$", table, re.MULTILINE)
        assert {*listed} <= {*re.findall(r"`(\w+)`", row), "parameter"}, error


# The catalogue and the data sets


def test_every_method_is_in_the_table():
    cells = first_cells(section(page("catalogue.md"), "## The methods"))
    assert tuple(cell.strip("`") for cell in cells) == catalogue.names()


@pytest.mark.parametrize("name", catalogue.names())
def test_the_table_tells_which_methods_have_probabilities(name):
    entry = catalogue.describe(name)
    if entry.needs is not None:
        pytest.importorskip(entry.estimator.partition(".")[0])
    methods = section(page("catalogue.md"), "## The methods")
    (row,) = re.findall(rf"^\| `{name}` \|(.*)\|$", methods, re.MULTILINE)
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[-1] == ("yes" if hasattr(catalogue.make(name), "predict_proba") else "no")
    assert entry.estimator.rpartition(".")[2] in cells[1]


def test_every_data_set_is_in_the_table():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|", page("datasets.md"), re.MULTILINE)
    assert [name for name, _, _ in rows] == sorted(datasets.names())
    shapes = {name: (int(n), int(d)) for name, n, d in rows}
    for name in ("iris", "spambase", "titanic"):
        assert datasets.load(name).data.shape == shapes[name]


# The glossary


def test_terms_are_in_alphabetical_order_and_have_links():
    body = re.search(r"```\{glossary\}\n(.*?)```", page("glossary.md"), re.DOTALL)[1]
    entries = re.findall(r"^(\S.*)\n((?:  .*\n?|\n)+)", body, re.MULTILINE)
    terms = [re.sub(r"[-*]", " ", term).casefold() for term, _ in entries]
    assert terms == sorted(terms)
    assert len(terms) > 50
    for term, meaning in entries:
        assert re.search(r"\]\(|\{term\}|\{py:", meaning), term


# The API


PUBLIC = ["margrave", "margrave.app", *(f"margrave.{name}" for name in margrave._PACKAGES)]


API = [f"{module}.{name}" for module, name in NAMES]


def imported(name):
    path, _, own = name.rpartition(".")
    module = importlib.import_module(path)
    assert own in module.__all__, name
    return getattr(module, own)


def test_every_name_in_the_reference_is_public_and_there_once():
    assert len(API) == len({*API})
    assert all(imported(name) is not None for name in API)


def test_every_public_name_is_in_the_reference():
    listed = {id(imported(name)) for name in API}
    for path in PUBLIC:
        module = importlib.import_module(path)
        missing = [name for name in module.__all__ if id(getattr(module, name)) not in listed]
        assert not missing, path
