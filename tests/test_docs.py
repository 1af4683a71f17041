"""Every example of the README and the guide runs, and prints or raises what is shown below it."""

import contextlib
import io
import re
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs/index.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
EXAMPLE = re.compile(
    r"```python\n(?P<code>.*?)```\n(?:\s*```(?:text)?\n(?P<shown>.*?)```)?", re.DOTALL
)


def outcome(code, names):
    """What a block prints, or the last lines of its traceback."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "<example>", "exec"), names)  # noqa: S102 - our own text
    except Exception as error:
        return printed.getvalue() + "".join(traceback.format_exception_only(error))
    return printed.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some examples save a figure
    names: dict[str, object] = {}
    for example in EXAMPLE.finditer(page.read_text()):
        told = outcome(example["code"], names)
        if example["shown"] is None:
            assert "Error" not in told, told
        else:
            assert told.rstrip() == example["shown"].rstrip(), example["code"]


def test_pages_with_code_are_found():
    assert sum(bool(EXAMPLE.search(page.read_text())) for page in PAGES) > 6
