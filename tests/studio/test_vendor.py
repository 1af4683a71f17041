"""The page's third-party files are what they say they are, and the page needs nothing else."""

import hashlib
import json
import re
from pathlib import Path

import pytest

STUDIO = Path(__file__).resolve().parents[2] / "src/margrave/studio"
STATIC = STUDIO / "static"
OURS = Path(__file__).parent / "vendor"
KINDS = (".js", ".css", ".html", ".svg", ".json")
ALLOWED = re.compile(  # names of languages, and the licences in comments
    r"https?://(www\.w3\.org/|www\.apache\.org/licenses/|github\.com/ecomfe/zrender/blob/)"
)


def files():
    return sorted(path for path in STATIC.rglob("*") if path.is_file())


@pytest.mark.parametrize("folder", [STATIC / "vendor", OURS], ids=["page", "tests"])
def test_every_file_is_the_one_that_was_published(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert sorted(path.name for path in folder.glob("*.js")) == sorted(manifest)
    readme = (folder / "README.md").read_text()
    for name, entry in manifest.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == entry["sha256"], name
        assert f"| `{name}` | {entry['package']} {entry['version']}, `{entry['file']}`" in readme
        for package, version in entry.get("contains", {}).items():
            assert f"{package} {version}" in readme
        assert all((folder / licence).stat().st_size > 1000 for licence in entry["licence"])
        assert all("Copyright" in (folder / one).read_text() for one in entry.get("notice", []))
    texts = {
        one for entry in manifest.values() for one in entry["licence"] + entry.get("notice", [])
    }
    assert {path.name for path in folder.glob("*.txt")} == texts


def test_what_a_file_contains_has_the_version_and_the_licence_that_the_manifest_names():
    manifest = json.loads((STATIC / "vendor/manifest.json").read_text())
    for name, entry in manifest.items():
        packages = {entry["package"], *entry["contains"]}
        assert {f"LICENSE-{package}.txt" for package in packages} == set(entry["licence"])
        text = (STATIC / "vendor" / name).read_text()
        if "See the NOTICE file" in text:
            assert entry["notice"] == [f"NOTICE-{entry['package']}.txt"]
    charts = (STATIC / "vendor/echarts.js").read_text()
    (zrender,) = re.findall(r'dependencies=\{zrender:"([\d.]+)"\}', charts)
    assert manifest["echarts.js"]["contains"] == {"zrender": zrender}
    assert f'version="{manifest["echarts.js"]["version"]}"' in charts


def test_the_page_asks_no_other_machine():
    named = {
        (path.name, address)
        for path in files()
        if path.suffix in KINDS
        for address in re.findall(r"https?://[^\s\"'`)]*", path.read_text())
        if not ALLOWED.match(address)
    }
    assert named == set()


def test_the_page_is_light():
    sent = sum(path.stat().st_size for path in files() if path.suffix in KINDS)
    assert sent < 1_500_000


def test_no_script_makes_code_from_text():
    makes = re.compile(r"(?<![\w.$])(eval\s*\(|new\s+Function\b)")
    assert [path.name for path in STATIC.rglob("*.js") if makes.search(path.read_text())] == []


def test_every_script_but_the_vendored_is_checked_for_types():
    for path in STATIC.glob("*.js"):
        assert "@ts-nocheck" not in path.read_text()
        assert "@ts-ignore" not in path.read_text()


def test_html_has_no_inline_script_or_style():
    pages = list(STATIC.rglob("*.html"))
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:", text, re.IGNORECASE)
        scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
        assert all("src=" in attributes and not body.strip() for attributes, body in scripts)
        assert "<base" not in text
    assert [page.name for page in pages] == ["index.html"]
