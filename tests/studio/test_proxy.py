"""A real nginx with TLS in front of a real studio, with the configuration of the guide."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.needs import skip_missing
from tests.studio.page_parts import Name, button
from tests.studio.running import Studio
from tests.studio.serving import Client

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "team.md"
HOST = "studio.localhost"  # which Chromium finds on this machine without a name server
TOKEN = "a-token-for-tests"  # noqa: S105
SECONDS = 20

FRAME = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="clients connect from 127.0.0.2 and others"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificate(folder: Path) -> None:
    """A certificate that is signed by itself, and its key."""
    openssl = shutil.which("openssl") or skip_missing("openssl")
    names = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    files = ["-out", folder / "studio.pem", "-keyout", folder / "studio.key"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)  # noqa: S603


def configuration(folder: Path, port: int, studio: int) -> str:
    """The configuration of the guide with other names, ports and files."""
    (server,) = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("studio.example.org", HOST),
        ("/etc/ssl/certs/studio.pem", f"{folder}/studio.pem"),
        ("/etc/ssl/private/studio.key", f"{folder}/studio.key"),
        ("http://127.0.0.1:8420", f"http://127.0.0.1:{studio}"),
    ):
        assert server.count(old) == 1, old
        server = server.replace(old, new)
    user = "user root;" if os.geteuid() == 0 else ""  # who owns the folder
    return FRAME.format(folder=folder, server=server, user=user)


class ToThisMachine(httpx.HTTPTransport):
    """Finds the host on this machine, as a name server would."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        here = httpx.Request(
            request.method,
            request.url.copy_with(host="127.0.0.1"),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": HOST},
        )
        return super().handle_request(here)


@dataclass
class Front:
    """A studio behind nginx: their addresses, and the certificate."""

    url: str
    studio_url: str
    printed: str
    certificate: Path

    @contextmanager
    def client(self, source: str | None = None, *, direct: bool = False) -> Iterator[Client]:
        """A program that connects from an address, to nginx or around it."""
        url = self.studio_url if direct else self.url
        trusted = ssl.create_default_context(cafile=self.certificate)
        with httpx.Client(
            base_url=url,
            transport=ToThisMachine(verify=trusted, local_address=source),
            headers={"X-Margrave": "1", "Origin": url},
            timeout=60,
        ) as http:
            yield Client(http)


@pytest.fixture(scope="module")
def front(need: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    nginx, folder = need("nginx"), tmp_path_factory.mktemp("proxy")
    make_certificate(folder)
    ports = free_port(), free_port()
    (folder / "nginx.conf").write_text(configuration(folder, *ports))
    options = ("--public-host", HOST, "--trusted-proxy", "127.0.0.1")
    studio = Studio(folder, *options, port=ports[1], environment={"MARGRAVE_TOKEN": TOKEN})
    command = [nginx, "-p", folder, "-c", folder / "nginx.conf"]
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)  # noqa: S603 - nginx
    urls = f"https://{HOST}:{ports[0]}", f"http://{HOST}:{ports[1]}"
    made = Front(*urls, studio.url, folder / "studio.pem")
    try:
        until = time.monotonic() + SECONDS
        while not listens(ports[0]):
            log = (folder / "nginx.log").read_text()
            assert process.poll() is None, log
            assert time.monotonic() < until, log
            time.sleep(0.05)
        yield made
    finally:
        process.terminate()
        process.wait(SECONDS)
        studio.kill()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def user(front: Front) -> Iterator[Client]:
    """A program that has signed in through nginx."""
    with front.client() as client:
        client.ok("/session", {"token": TOKEN})
        yield client


def wrong_token(client: Client, **headers: str) -> int:
    return client.get("/studio", headers={"Authorization": "Bearer wrong", **headers}).status_code


def test_users_sign_in_and_work_through_it(front):
    assert front.printed == f"https://{HOST}/?token={TOKEN}"
    with front.client() as client:
        assert client.http.get("/").status_code == 200
        assert client.get("/dialogs").status_code == 401
        answer = client.post("/session", {"token": TOKEN})
        parts = answer.headers["Set-Cookie"].lower().split("; ")
        assert {"secure", "httponly", "samesite=strict"} <= set(parts)
        assert client.ok("/dialogs") == {"dialogs": []}
        assert client.table("iris")
        large = b"a,b\n" + b"0.123456789012345678,no\n" * 100_000  # nginx has a limit of 1 MiB
        assert client.http.post("/api/tables", files={"file": ("t.csv", large)}).is_success


def test_pages_of_other_origins_are_refused(front, user):
    for origin in (front.url.replace("https", "http"), "https://evil.example", front.studio_url):
        answer = user.post("/tables/bundled", {"name": "iris"}, headers={"Origin": origin})
        assert answer.status_code == 403, origin


def test_events_arrive_while_the_job_runs(user):
    body = {"table": user.table("spambase"), "target": "target", "members": ["extra-trees", "svm"]}
    begun = user.ok("/dialogs", body)
    for _, record in user.events(begun["job"]["id"]):
        assert record["state"] in ("waiting", "running")  # as it was when it was sent
        assert user.ok(f"/dialogs/{begun['dialog']['id']}")["job"] is not None  # and still is
        break
    else:
        pytest.fail("There was no event.")
    user.ok(f"/jobs/{begun['job']['id']}/cancel", {})


def test_wrong_tokens_are_counted_for_each_client_behind_it(front, user):
    with front.client("127.0.0.3") as guesser, front.client("127.0.0.4") as other:
        codes = [wrong_token(guesser, **{"X-Forwarded-For": f"10.0.0.{n}"}) for n in range(11)]
        assert codes == [401] * 10 + [429]  # what the client itself claims does not count
        assert wrong_token(other) == 401
        assert guesser.post("/session", {"token": TOKEN}).status_code == 200
    assert user.ok("/dialogs")


def test_only_the_proxy_is_believed(front):
    """Here somebody connects to the studio directly, and claims to be the proxy."""
    claims = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.0.0.1"}
    with front.client("127.0.0.5", direct=True) as forger:
        secure = {"Origin": forger.http.headers["Origin"].replace("http", "https")}
        forged = forger.post("/session", {"token": TOKEN}, headers={**claims, **secure})
        assert forged.status_code == 403  # it is no request with https
        plain = forger.post("/session", {"token": TOKEN}, headers=claims)
        assert "secure" not in plain.headers["Set-Cookie"].lower().split("; ")
        sources = [{**claims, "X-Forwarded-For": f"10.0.1.{n}"} for n in range(11)]
        assert [wrong_token(forger, **one) for one in sources] == [401] * 10 + [429]


@pytest.mark.full
def test_the_page_works_in_a_browser(front: Front, open_page: Callable[..., Page]):
    allow = (re.escape(front.url),)  # which is this machine
    page = open_page(f"{front.url}/?token={TOKEN}", ignore_https_errors=True, allow=allow)
    page.goto(f"{front.url}/#/new")
    expect(button(page, Name.CHOOSE_FILE)).to_be_visible()
    page.get_by_role("button", name=re.compile("^iris")).click()
    expect(page.get_by_role("heading", name="iris")).to_be_visible()
    assert [cookie["secure"] for cookie in page.context.cookies()] == [True]
