"""The page's files: what is fetched at once is what the page begins with."""

import re
from pathlib import Path

import margrave.studio

STATIC = Path(margrave.studio.__file__).parent / "static"
IMPORT = re.compile(r"^(?:import|export)\b[^;]*?\bfrom '\./([^']+)'", re.MULTILINE)


def begun_with(name, found):
    """The modules that a module needs before it runs, itself first."""
    if name not in found:
        found.append(name)
        for other in IMPORT.findall((STATIC / name).read_text()):
            begun_with(other, found)
    return found


def test_what_is_fetched_early_is_what_the_page_begins_with():
    """A module that is missing costs a round trip; one too many costs its weight."""
    index = (STATIC / "index.html").read_text()
    early = re.findall(r'rel="modulepreload" href="([^"]+)"', index)
    scripts = re.findall(r'<script type="module" src="([^"]+)"', index)
    assert sorted([*early, *scripts]) == sorted(begun_with("app.js", []))


def test_every_module_is_used():
    text = "".join(path.read_text() for path in [*STATIC.glob("*.js"), STATIC / "index.html"])
    for path in STATIC.glob("*.js"):
        assert re.search(rf"[./\"']{re.escape(path.name)}[\"']", text), path.name


def test_plots_are_loaded_only_when_one_is_drawn():
    assert "vendor/echarts.js" not in begun_with("app.js", [])
