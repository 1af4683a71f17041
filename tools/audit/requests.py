"""Hostile requests: made by hand, and generated from the OpenAPI description.

No response is 5xx, none is slow, nothing of another user is shown, and afterwards the studio is
alive.
"""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import httpx
from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.studio.serving import Client
from tools.audit._attacks import Attack, percentile
from tools.audit._studio import FAST, Server, served

SECONDS = 10.0
"""The longest that a response may take; a request that begins a job does not wait for it."""

HALF_SECONDS = 60.0
"""The longest that a request may be sent without its end."""

BODIES = 1_200
"""More connections than the studio allows an address."""

WAVE = 20
"""Connections that follow them, twice."""

SECRET = "of-the-other-user"  # noqa: S105 - a title that may not be shown to others

HUGE = "9" * 400
DEEP = "[" * 50_000 + "]" * 50_000
WORDS = (
    "fp <=",
    "fp <= -1",
    "fp <= 101%",
    f"fp <= {HUGE}",
    f"fp <= 1e{HUGE}",
    f"fp <= 0.{'0' * 400}1",
    "fp <= NaN",
    "fp <= Infinity",
    "fp <= ٣",
    "ﬁ <= ½%",
    "fp <= 5%\u0000",
    "\ud83d\ude00 <= 3",
    "recall(<script>alert(1)</script>) >= 90%",
    "recall('; DROP TABLE dialogs; --) >= 90%",
    "fp <= 5%, " * 2000,
    "(" * 20_000,
    "fp " * 6000,
    "recall(" + "a" * 19_000 + ") >= 1%",
    "a" * 2000,
    "1" * 20_000,
    ", " * 10_000,
    "accuracy >= 50% and " * 1000,
    "\\" * 20_000,
    '"' * 20_000,
    "{}" * 9_000,
    "fp <= 5% " * 250,
    "positive ≤ " * 1500,
    "recall(" + " " * 2000,
    "recall(" + "\n" * 19_000,
    "errors(" + " " * 9000 + "->" + " " * 9000,
    "recall of " + "'a''" * 4000,
    "a." * 9000 + "-",
    "a-" * 9000 + "(",
    ", ".join(f"recall(c{i}) >= 1%" for i in range(900)),
    "",
    " ",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**400,
    1e308,
    "",
    "text",
    "a" * 20_000,
    "../../etc/passwd",
    "\u0000",
    "😀" * 200,
    [],
    [[]],
    [None] * 1000,
    {},
    {"a": {"b": {}}},
)
PATHS = (
    "/api/../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/static/../server.py",
    "/%00",
    "/api/dialogs/%00",
    "/api/dialogs/%ff%fe",
    "/api/dialogs/%",
    "/api/dialogs/%zz",
    "/api//dialogs",
    "/api/dialogs/../tables/x",
    "/api/dialogs/" + "a" * 8000,
    "/api/dialogs/😀",
    "/api/dialogs/' OR '1'='1",
    "/api/tables/..%2f..%2fstudio.db",
    "/api/jobs/-1/events",
    "/api/jobs/1e400",
    "/api/studio?" + "a=b&" * 5000,
    "//evil.example/api/studio",
    "/api/openapi.json/",
    "/API/studio",
    "/index.html%20",
    "/con.js",
    "/app.js\\..\\..",
)
RAW = (
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x00\x01\x02\x03\r\n\r\n",
    b"GET /api/studio HTTP/1.1\r\n\r\n",
    b"GET /api/studio HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /api/dialogs HTTP/1.1\r\nHost: HOST\r\nX-Margrave: 1\r\nContent-Length: -5\r\n\r\n",
    b"POST /api/dialogs HTTP/1.1\r\nHost: HOST\r\n" + b"Content-Length: 5\r\n" * 2 + b"\r\n12345",
    b"POST /api/dialogs HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /api/studio HTTP/1.1\r\nHost: HOST\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /api/studio HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


@dataclass
class Probe:
    """A client that sends hostile requests and judges the responses.

    Attributes
    ----------
    server : Server
        The studio; it is started again if it does not respond.
    user : Client
        The user.
    attack : Attack
        The record.
    secrets : tuple of str
        Texts of another user that no response may contain.
    seconds : list of float
        The times of the responses.
    """

    server: Server
    user: Client
    attack: Attack
    secrets: tuple[str, ...]
    seconds: list[float] = field(default_factory=list)

    def expect_refusals(self, requests: Iterator[tuple[str, str, dict[str, Any]]]) -> None:
        """Send requests, each of which has to be refused."""
        for method, path, options in requests:
            response = self.send(method, path, **options)
            if response is not None and response.status_code < 400:
                self.attack.failures.append(f"{method} {path}: {response.status_code}")

    def send(self, method: str, path: str, **options: Any) -> httpx.Response | None:
        """Send a request and judge the response; return it, or None without one."""
        what = f"{method} {path[:80]} {str(options)[:120]}"
        start = perf_counter()
        try:
            with self.user.http.stream(method, path, **options) as response:
                streamed = "event-stream" in response.headers.get("content-type", "")
                body = "" if streamed else response.read().decode("utf-8", "replace")
        except httpx.TimeoutException:
            self.attack.check(False, f"{what}: no response within {SECONDS:g} s")
            self.server.kill()  # or it would be slow for all that follow
            self.server.start()
            return None
        except httpx.HTTPError as error:
            took = perf_counter() - start
            # A server may close the connection of what is no HTTP, and a client may refuse it.
            harmless = isinstance(error, httpx.RemoteProtocolError | httpx.LocalProtocolError)
            self.attack.check(harmless, f"{what}: {type(error).__name__} after {took:.1f} s")
            return None
        took = perf_counter() - start
        self.seconds.append(took)
        problem = None
        if response.status_code >= 500:
            problem = f"{response.status_code} {body[:120]}"
        elif any(secret in body for secret in self.secrets):
            problem = "shows what belongs to another user"
        elif "Traceback (most recent" in body:
            problem = "shows a traceback"
        self.attack.check(problem is None, f"{what}: {problem}")
        return response

    def send_json(self, method: str, path: str, body: Any) -> httpx.Response | None:
        """Send a body as JSON; NaN and infinity are written as Python does, which is no JSON."""
        text = json.dumps(body, allow_nan=True)
        return self.send(
            method, path, content=text.encode(), headers={"Content-Type": "application/json"}
        )


@dataclass
class Scene:
    """What there is in the studio to attack.

    Attributes
    ----------
    mine : dict
        The ids of the attacker's own dialog, table and job.
    theirs : dict
        The ids of another user.
    """

    mine: dict[str, str]
    theirs: dict[str, str]


def prepare(user: Client, title: str) -> dict[str, str]:
    """Make a table, and a dialog with an accepted model; return their ids."""
    table = user.table("pima")
    dialog = user.dialog("pima", members=FAST, title=title)
    user.asked(dialog, "fp <= 60", strategies=["move"])
    job = user.post(f"{dialog}/accept", {"confidence": 0.8})
    user.finished(job)
    found = job.json()["id"]
    return {"dialog": dialog.removeprefix("/dialogs/"), "table": table, "job": found}


def bodies(scene: Scene) -> Iterator[tuple[str, str, Any]]:
    """Requests with hostile bodies: method, path and body."""
    dialog = f"/api/dialogs/{scene.mine['dialog']}"
    good = {
        "/api/dialogs": {"table": scene.mine["table"], "target": "target", "members": FAST},
        "/api/tables/bundled": {"name": "iris"},
        f"/api/tables/{scene.mine['table']}/plan": {"target": "target"},
        f"{dialog}/prefer": {"wants": ["fp <= 50"], "strategies": ["move"], "at": 0},
        f"{dialog}/read": {"wants": ["fp <= 50"], "edits": [], "keep": True},
        f"{dialog}/goto": {"step": 0},
        f"{dialog}/accept": {"confidence": 0.9, "reserve": False},
        f"{dialog}/program/tune": {"node": "0-0-0", "wants": ["fp <= 50"]},
        f"{dialog}/program/grow": {"levels": 1},
    }
    for path, body in good.items():
        for name in body:
            yield from (("POST", path, {**body, name: value}) for value in VALUES)
        yield "POST", path, {**body, "unknown": 1}
        yield from (("POST", path, value) for value in (None, [], "text", 7, [body]))
    for words in WORDS:
        yield "POST", f"{dialog}/read", {"wants": [words]}
        yield "POST", f"{dialog}/prefer", {"wants": [words], "strategies": ["move"], "at": 0}
        yield "POST", f"{dialog}/read", {"wants": ["fp <= 5%"] * 19 + [words]}
        edit = {"true": "neg", "predicted": "pos", "to": words[:500]}
        yield "POST", f"{dialog}/read", {"edits": [edit]}
    for value in (10**400, HUGE, -1, 1.5, float("nan"), float("inf"), 10**18, "1e400", "50%"):
        yield "POST", f"{dialog}/read", {
            "edits": [{"true": "neg", "predicted": "pos", "to": value}]
        }  # fmt: skip
        yield "POST", f"{dialog}/goto", {"step": value}
        yield "POST", f"{dialog}/accept", {"confidence": value}
    for title in ("", "a" * 100_000, "\u0000", "\u202e", "<b>", 7, None):
        yield "PATCH", dialog, {"title": title}


def texts(scene: Scene) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests whose bodies, headers, paths or methods are hostile: method, path and options."""
    dialog = f"/api/dialogs/{scene.mine['dialog']}"
    kind = {"Content-Type": "application/json"}
    for text in (
        DEEP,
        '{"wants": ' + DEEP + "}",
        '{"a":' * 20_000 + "1" + "}" * 20_000,
        '{"wants": ["fp <= 5"], "wants": 7}',
        '{"step": NaN}',
        '{"step": Infinity}',
        '{"step": 1e999}',
        '{"step": ' + HUGE + "}",
        '{"step": -' + "9" * 5000 + "}",
        '{"step": 0' + "0" * 5000 + "}",
        '{"wants": ["\\ud800"]}',
        '{"wants": ["\\u0000"]}',
        "{",
        "",
        "null",
        "\ufeff{}",
        "[" * 100,
    ):
        for path in (f"{dialog}/prefer", f"{dialog}/goto", "/api/dialogs"):
            yield "POST", path, {"content": text.encode(), "headers": kind}
    for raw in (b"\xff\xfe", b"\x00" * 1000, b"\x80abc", "{}".encode("utf-16")):
        yield "POST", f"{dialog}/prefer", {"content": raw, "headers": kind}
    for headers in (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "127.0.0.1:99999999"},
        {"Host": "[::1"},
        {"Host": "a" * 5000},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"X-Margrave": "0"},
        {"X-Margrave-User": "local"},
        {"X-Margrave-User": "a" * 64},
        {"X-Margrave-User": "../../x"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=utf-7"},
        {"Content-Type": "multipart/form-data"},
        {"Content-Type": "multipart/form-data; boundary=" + "a" * 5000},
        {"Cookie": "margrave=a.b; " * 500},
        {"Cookie": "margrave=" + "a" * 6000},
        {"Accept-Encoding": "gzip;q=nonsense"},
        {"Range": "bytes=-1,0-,99999999999999999999-"},
        {"If-None-Match": '"' * 1000},
        {"If-Modified-Since": "not a date"},
        {"Content-Encoding": "gzip"},
        {"Expect": "100-continue"},
    ):
        yield "POST", f"{dialog}/read", {"content": b"{}", "headers": {**kind, **headers}}
        yield "GET", dialog, {"headers": headers}
        yield "GET", "/", {"headers": headers}
    for path in PATHS:
        yield "GET", path, {}
        yield "POST", path, {"json": {}}
    for method in ("PUT", "TRACE", "OPTIONS", "HEAD", "PATCH", "DELETE", "CONNECT", "FROB", "get"):
        for path in ("/", "/api/studio", "/api/dialogs", "/api/session", f"{dialog}/prefer"):
            yield method, path, {}
    for query in (
        "first=-1&second=0",
        "first=9" + "9" * 400 + "&second=0",
        "first=0&first=1&second=a",
        "first=%00&second=0",
        "true=neg&predicted=pos&sort=" + "a" * 900,
        "true=%F0%9F&predicted=pos",
        "true=neg&predicted=pos&offset=1e9&limit=0",
        "true=neg&predicted=pos&offset=999999999&limit=200",
        "cost_low=nan",
        "cost_low=1e-6&cost_high=1e6&prior_low=1e-6&prior_high=0.999999",
        "cost_low=10&cost_high=1",
        "prior_low=0.9&prior_high=0.1",
        "confidence=0.9999999999999999",
        "confidence=nan",
        "threshold=-0",
    ):
        for view in ("compare", "rows", "rows.csv", "winners", "guarantee", "program"):
            yield "GET", f"{dialog}/{view}?{query}", {}
    for number in ("-1", "0", "2", "9" * 400, "1.5", "x", "%00"):
        for file in ("model.skops", "model.onnx", "card.md", "certificate.json"):
            yield "GET", f"{dialog}/accepted/{number}/{file}", {}


def stolen(scene: Scene) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests for what belongs to another user, each to be refused."""
    dialog = f"/api/dialogs/{scene.theirs['dialog']}"
    for path in (
        *("", "/frontier", "/winners", "/members", "/rows", "/rows.csv", "/guarantee"),
        *("/dialog.json", "/script.py", "/report.html", "/compare?first=0&second=1"),
        *(f"/accepted/1/{name}" for name in ("model.skops", "model.onnx", "card.md")),
        "/accepted/1/certificate.json",
    ):
        yield "GET", dialog + path, {}
    for path, body in (
        ("/prefer", {"wants": ["fp <= 1"]}),
        ("/read", {"wants": ["fp <= 1"]}),
        ("/goto", {"step": 0}),
        ("/undo", {}),
        ("/redo", {}),
        ("/accept", {}),
        ("/retry", {}),
        ("/program/grow", {}),
        ("/program/tune", {"node": "0-0-0", "wants": ["fp <= 1"]}),
    ):
        yield "POST", dialog + path, {"json": body}
    yield "PATCH", dialog, {"json": {"title": "mine now"}}
    yield "DELETE", dialog, {}
    table, job = scene.theirs["table"], scene.theirs["job"]
    yield "GET", f"/api/tables/{table}", {}
    yield "GET", f"/api/tables/{table}/classes?target=target", {}
    yield "POST", f"/api/tables/{table}/plan", {"json": {"target": "target"}}
    yield "POST", "/api/dialogs", {"json": {"table": table, "target": "target"}}
    yield "GET", f"/api/jobs/{job}", {}
    yield "GET", f"/api/jobs/{job}/events", {}
    yield "POST", f"/api/jobs/{job}/cancel", {"json": {}}


def without_token(scene: Scene) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests with a wrong token or none; after ten wrong ones the studio refuses the address."""
    for path in ("/api/studio", "/api/dialogs", f"/api/dialogs/{scene.mine['dialog']}"):
        for header in ("", "Basic AAAA", "Bearer", "Bearer x", "Bearer " + "x" * 5000):
            yield "GET", path, {"headers": {"Authorization": header}}
    for token in VALUES:
        yield "POST", "/api/session", {"json": {"token": token}}
    yield "POST", "/api/session", {"content": DEEP, "headers": {"Content-Type": "application/json"}}


def send_raw(server: Server, data: bytes) -> None:
    """Send bytes that are no HTTP, and wait for what comes back or for a moment."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname or "", where.port or 0), 10) as connection:
        connection.settimeout(0.2)
        try:
            connection.sendall(data.replace(b"HOST", where.netloc.encode()))
            connection.recv(4096)
        except OSError:
            return


HALF_HEADERS = b"GET /api/studio HTTP/1.1\r\nHost: "
HALF_BODY = (
    b"POST /api/session HTTP/1.1\r\nHost: HOST\r\nX-Margrave: 1\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
)


def half_sent(server: Server, attack: Attack, n: int, data: bytes, *, wait: bool) -> None:
    """Open connections that send half a request, and check that others are served.

    With `wait`, check too that the studio closes them in time.
    """
    where = urlsplit(server.url)
    data = data.replace(b"HOST", where.netloc.encode())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < 2 * n:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * n if hard < 0 else min(hard, 2 * n), hard))
    open_ones = []
    try:
        for wave in (n, WAVE, WAVE):  # the later ones take the places that become free
            for _ in range(wave):
                connection = socket.create_connection((where.hostname or "", where.port or 0), 10)
                open_ones.append(connection)
                with contextlib.suppress(OSError):  # it may be refused already
                    connection.sendall(data)
            start = perf_counter()
            attack.check(server.alive(), f"no response beside {n} connections with half a request")
            took = perf_counter() - start
            attack.check(took < SECONDS, f"a response beside {n} half requests took {took:.1f} s")
        if wait:
            closed = _closed_within(open_ones, HALF_SECONDS)
            attack.check(closed, f"half-sent requests stay open for more than {HALF_SECONDS:g} s")
    except OSError as error:
        attack.check(False, f"half-sent requests: {error}")
    finally:
        for connection in open_ones:
            connection.close()


def _closed_within(connections: list[socket.socket], seconds: float) -> bool:
    """Whether the other side closes all connections in time."""
    over = perf_counter() + seconds
    for connection in connections:
        connection.settimeout(max(0.01, over - perf_counter()))
        try:
            while connection.recv(4096):
                pass
        except TimeoutError:
            return False
        except OSError:
            continue
    return True


def generated(probe: Probe, scene: Scene, n: int, number: int) -> None:
    """Send requests that schemathesis generates from the OpenAPI description."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis

        description = probe.user.ok("/openapi.json")
        schema = schemathesis.openapi.from_dict(description)
    operations = [
        (path, method.upper())
        for path, found in description["paths"].items()
        for method in found
        if path != "/api/session"
    ]
    each = max(1, -(-n // (2 * len(operations))))
    for path, method in operations[:: max(1, 2 * len(operations) // n)]:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            strategy = schema[path][method].as_strategy(generation_mode=mode)

            def sent(case: Any) -> None:
                for name in case.path_parameters or {}:
                    case.path_parameters[name] = scene.mine.get(name, "1")
                if case.method == "DELETE":  # or nothing is left to attack
                    case.path_parameters["dialog"] = "not-there"
                if isinstance(case.body, dict) and "members" in case.body:
                    case.body["members"] = FAST
                options = case.as_transport_kwargs(base_url=str(probe.user.http.base_url))
                url, how = options.pop("url"), options.pop("method")
                kept = {key: options[key] for key in ("json", "params") if options.get(key)}
                if options.get("headers"):
                    own = {k: v for k, v in options["headers"].items() if k != "User-Agent"}
                    kept["headers"] = {key: str(value) for key, value in own.items()}
                if options.get("data") is not None and "json" not in kept:
                    kept["content"] = str(options["data"]).encode()
                path_only = url.removeprefix(str(probe.user.http.base_url).rstrip("/"))
                response = probe.send(how, path_only, **kept)
                if response is not None and response.status_code == 202:
                    _settle(probe.user, response)

            limits = settings(
                max_examples=each,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            )
            try:
                seed(number)(limits(given(case=strategy)(sent)))()
            except Exception as error:
                if "Unsatisfiable" not in type(error).__name__:
                    raise


def _settle(user: Client, response: httpx.Response) -> None:
    """Wait until a job that a request has begun is over, or cancel it."""
    try:
        record = json.loads(response.content)
    except (ValueError, httpx.ResponseNotRead):
        return
    job = record.get("job") or record
    if job["state"] in ("waiting", "running"):
        user.post(f"/jobs/{job['id']}/cancel")


def run(number: int, count: int | None) -> Iterator[Attack]:
    """Attack a studio; `count` limits the requests of each kind."""
    with served() as server, server.client(SECONDS) as user, server.new_user() as other:
        scene = Scene(prepare(user, "mine"), prepare(other, SECRET))
        secrets = (SECRET, scene.theirs["dialog"], scene.theirs["job"])
        expected = f"no 5xx, at most {SECONDS:g} s"

        by_hand = Attack("requests made by hand", expected)
        probe = Probe(server, user, by_hand, (SECRET,))
        for method, path, body in list(bodies(scene))[:: _stride(bodies(scene), count)]:
            response = probe.send_json(method, path, body)
            if response is not None and response.status_code == 202:
                _settle(user, response)
        for method, path, options in list(texts(scene))[:: _stride(texts(scene), count)]:
            probe.send(method, path, **options)
        for data in RAW:
            with by_hand.trial(repr(data[:60])):
                send_raw(server, data)
        half_sent(server, by_hand, 200, HALF_HEADERS, wait=count is None)
        half_sent(server, by_hand, BODIES, HALF_BODY, wait=count is None)
        found = user.get(f"/dialogs/{scene.mine['dialog']}").status_code
        by_hand.check(found == 200, f"the attacker's own dialog gives {found} afterwards")
        by_hand.check(server.alive(), "the studio does not respond afterwards")
        by_hand.measured = _times(probe.seconds)
        yield by_hand

        theft = Attack("requests for another user's dialogs", "refused")
        thief = Probe(server, user, theft, secrets)
        thief.expect_refusals(stolen(scene))
        theft.check(
            other.ok(f"/dialogs/{scene.theirs['dialog']}")["title"] == SECRET,
            "the other user's dialog was changed",
        )
        yield theft

        fuzz = Attack("requests generated from the API's description", expected)
        probe = Probe(server, user, fuzz, (SECRET,))
        generated(probe, scene, count or 600, number)
        fuzz.check(server.alive(), "the studio does not respond afterwards")
        fuzz.measured = _times(probe.seconds)
        yield fuzz

        strangers = Attack("requests with a wrong token or none", "refused")
        probe = Probe(server, user, strangers, secrets)
        probe.expect_refusals(without_token(scene))
        yield strangers


def _stride(requests: Iterator[Any], count: int | None) -> int:
    """The step by which about `count` of the requests are chosen."""
    return 1 if count is None else max(1, len(list(requests)) // count)


def _times(seconds: list[float]) -> str:
    worst, usual = max(seconds) * 1000, percentile(seconds, 95) * 1000
    return f"p95 {usual:.0f} ms, slowest {worst:.0f} ms"
