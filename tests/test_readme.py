"""The example in the README runs and prints what the README says it prints."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_prints_what_is_shown():
    shown = re.search(r"```python\n(.*?)```\s*```\n(.*?)```", README.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(shown[1], "README.md", "exec"), {})  # noqa: S102 - our own text
    assert printed.getvalue() == shown[2]
