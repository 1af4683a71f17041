"""The page's files: what is fetched at once is what the page begins with."""

import re
from pathlib import Path

import pytest
from tests.studio.serving import serving

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


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as (_, client):
        yield client.http


def test_files_are_served_as_they_are(http):
    for path in STATIC.rglob("*"):
        if path.is_file():
            answer = http.get("/" + path.relative_to(STATIC).as_posix())
            assert answer.content == path.read_bytes()
    assert http.get("/").content == (STATIC / "index.html").read_bytes()
    assert http.get("/app.js").headers["content-type"] == "text/javascript; charset=utf-8"


def test_what_is_there_already_is_not_sent_again(http):
    first = http.get("/app.js")
    again = http.get("/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"] != http.get("/api.js").headers["etag"]


def test_packed_for_who_can_unpack(http):
    plain = http.get("/app.js", headers={"Accept-Encoding": "identity"})
    packed = http.get("/app.js", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    assert packed.content == plain.content


@pytest.mark.parametrize(
    "path",
    ["/nothing.js", "/../server.py", "/%2e%2e/server.py", "/vendor", "/vendor/", "/app.js/", "/~"],
)
def test_nothing_else_is_served(http, path):
    answer = http.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]


def test_files_are_only_read(http):
    assert http.head("/app.js").content == b""
    answer = http.post("/app.js", json={})
    assert answer.status_code == 405
    assert answer.json()["error"]
