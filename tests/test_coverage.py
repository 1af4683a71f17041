"""The coverage page: its names exist, its links lead somewhere, and every paper has its rows."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from margrave import catalogue

PAPERS_FOLDER = Path(__file__).resolve().parents[1] / "docs/papers"
PAGE, SOURCES = ((PAPERS_FOLDER / name).read_text("utf-8") for name in ("coverage.md", "index.md"))
PAPERS = re.findall(r"^\| ([^|]+?) \| .*\*", SOURCES, re.MULTILINE)
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
CODE = set(re.findall(r"`([^`]+)`", PAGE))
NAMES = sorted(code for code in CODE if re.fullmatch(r"(margrave|experiments)(\.\w+)+", code))
LINKS = sorted(set(re.findall(r"\]\(([^)]+)\)", PAGE)))
STATUSES = r"done|(differs|no code): [^|]+"


def rows(section):
    """Return the cells of the rows of a table, without its heading."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def anchors(text):
    """Return the anchors of the headings of a page, as the site makes them."""
    headings = re.findall(r"^#{1,3} (.+)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def resolve(name):
    """Return the object with a dotted name."""
    module, *rest = name.split(".")
    found = import_module(module)
    for part in rest:
        module = f"{module}.{part}"
        found = getattr(found, part) if hasattr(found, part) else import_module(module)
    return found


def test_every_paper_has_rows():
    assert len(PAPERS) == 5
    assert sorted(SECTIONS) == sorted(PAPERS)
    assert all(len(rows(section)) > 10 for section in SECTIONS.values())


@pytest.mark.parametrize("paper", SECTIONS)
def test_every_row_has_a_known_status_and_a_place(paper):
    for row in rows(SECTIONS[paper]):
        assert len(row) == 4, row
        part, name, page, status = row
        assert part, row
        assert re.fullmatch(STATUSES, status), row
        if status.startswith("no code"):
            assert not name, row
            assert not page, row
        else:
            assert re.search(r'`(margrave|experiments)\.|`"', name), row
            assert page, row


@pytest.mark.parametrize("name", NAMES)
def test_names_exist_and_are_documented(name):
    assert resolve(name).__doc__
    assert "._" not in name


def test_names_in_quotes_are_in_the_catalogue():
    quoted = {code.strip('"') for code in CODE if re.fullmatch(r'"[\w-]+"', code)}
    assert len(quoted) > 10
    assert quoted <= set(catalogue.names())


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_to_a_heading(link):
    path, _, anchor = link.partition("#")
    gallery = re.fullmatch(r"\.\./auto_examples/(\w+)\.rst", path)
    target = PAPERS_FOLDER.parent / f"gallery/{gallery[1]}.py" if gallery else PAPERS_FOLDER / path
    assert target.is_file()
    assert not anchor or anchor in anchors(target.read_text("utf-8"))
