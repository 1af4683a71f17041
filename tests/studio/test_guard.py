"""Attacks on the studio's door, and what its own page and scripts may do."""

# ruff: noqa: S105, S106 - the tokens open nothing

import asyncio
import json
import re
from dataclasses import replace
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from margrave.studio.guard import Guard, attachment, download_name
from margrave.studio.settings import Limits, Settings

TOKEN = "correct-horse-battery"
OURS = {"X-Margrave": "1"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


class Users:
    def __init__(self):
        self.keys = []

    def add_user(self, key):
        if key not in self.keys:
            self.keys.append(key)

    def has_user(self, key):
        return key in self.keys


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


async def page(request):
    return HTMLResponse("<h1>Studio</h1>")


async def who(request):
    headers = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public"}
    return JSONResponse({"user": request.state.user}, headers=headers)


async def read(request):
    return JSONResponse({"read": len(await request.body())})


async def swallow(request):
    try:
        body = await request.body()
    except Exception:  # as a careless application would
        return PlainTextResponse("bad form", 400)
    return JSONResponse({"read": len(body)})


async def broken(request):
    raise RuntimeError("/home/someone/secret")


async def report(request):
    return attachment("report.html", "text/html; charset=utf-8", "<h1>Report</h1>")


ROUTES = [
    Route("/", page),
    Route("/app.js", page),
    Route("/api/who", who, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    Route("/api/read", read, methods=["POST"]),
    Route("/api/tables", swallow, methods=["POST"]),
    Route("/api/broken", broken),
    Route("/api/report.html", report),
]


class Browser:
    """What sends requests, and keeps cookies."""

    def __init__(self, app, base, headers):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url=base, headers=headers)
        self.cookies = self.client.cookies

    def request(self, method, path, **more):
        return asyncio.run(self.client.request(method, path, **more))

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, **more):
        return self.request("POST", path, **more)


class Studio:
    """A studio, its users, its clock, and browsers."""

    def __init__(self, **given):
        self.settings = replace(Settings.of(**given), token=given.get("token", TOKEN))
        self.users, self.clock = Users(), Clock()
        guard = Middleware(
            Guard, settings=self.settings, users=self.users, clock=lambda: self.clock()
        )
        self.app = Starlette(routes=ROUTES, middleware=[guard])

    def browser(self, base="http://127.0.0.1:8420", **headers):
        return Browser(self.app, base, headers)

    def signed_in(self, base="http://127.0.0.1:8420", **headers):
        """A browser that has shown the token."""
        browser = self.browser(base, **headers)
        assert enter(browser).status_code == 200
        return browser

    def script(self, token=TOKEN, **headers):
        return self.browser(**OURS, Authorization=f"Bearer {token}", **headers)


@pytest.fixture
def local():
    return Studio()


@pytest.fixture
def shared():
    return Studio(token=TOKEN)


def error(answer, status):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "code", "fields"}
    sentence = answer.json()["error"]
    assert sentence.endswith(".")
    assert answer.headers["Content-Security-Policy"] == POLICY
    return sentence


def enter(browser, token=TOKEN):
    return browser.post("/api/session", json={"token": token}, headers=OURS)


# One user


def test_the_page_and_its_own_requests(local):
    browser = local.signed_in()
    assert browser.get("/").text == "<h1>Studio</h1>"
    assert browser.get("/api/who").json() == {"user": "local"}
    same = {**OURS, "Origin": "http://127.0.0.1:8420", "Sec-Fetch-Site": "same-origin"}
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert browser.request(method, "/api/who", headers=same).json() == {"user": "local"}
    assert local.users.keys == ["local"]


def test_the_one_user_needs_the_token_as_well(local):
    outside = local.browser()
    assert outside.get("/").status_code == 200
    for path in ("/api/who", f"/api/who?token={TOKEN}", "/api/nowhere"):
        error(outside.get(path), 401)
    for token in ("wrong-token-of-16", "", "local"):
        error(enter(outside, token), 401)
        error(local.script(token).get("/api/who"), 401)
    assert local.users.keys == []
    assert outside.get(f"/?token={TOKEN}").status_code == 303
    assert outside.get("/api/who").json() == {"user": "local"}
    assert enter(local.browser()).json() == {"shared": False}
    assert local.script().post("/api/who").json() == {"user": "local"}
    assert local.users.keys == ["local"]


def test_a_file_of_the_user_may_open_the_page_and_keeps_the_place_in_it(local):
    """A redirect by the server keeps what stands after #; one by the page would lose it."""
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    browser = local.browser()
    answer = browser.get(f"/?token={TOKEN}", headers={**elsewhere, "Sec-Fetch-Dest": "document"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert browser.get("/api/who").json() == {"user": "local"}


def test_one_user_and_several_users_have_different_cookies():
    """Who starts the studio with and without a token has the same dialogs each time again."""
    one, several = Studio(), Studio(token=TOKEN)
    browser = several.signed_in()
    user = browser.get("/api/who").json()
    cookies = dict(browser.cookies)
    other = one.browser()
    other.cookies.update(cookies)
    error(other.get("/api/who"), 401)
    enter(other)
    again = several.browser()
    again.cookies.update(dict(other.cookies))
    assert again.get("/api/who").json() == user


def test_after_a_restart_with_the_same_token_the_cookie_is_enough(local):
    cookies = dict(local.signed_in().cookies)
    again, other = Studio(), Studio()
    other.settings = replace(other.settings, token="another-token-of-16")
    for studio, status in ((again, 200), (other, 401)):
        guarded = Guard(Starlette(routes=ROUTES), studio.settings, studio.users)
        browser = Browser(guarded, "http://127.0.0.1:8420", {})
        browser.cookies.update(cookies)
        assert browser.get("/api/who").status_code == status


def test_a_name_that_was_bound_to_our_address_is_refused(local):
    for host in ("evil.example", "evil.example:8420", "127.0.0.1.evil.example", "10.0.0.1"):
        for path in ("/", "/api/who"):
            sentence = error(local.signed_in().get(path, headers={"Host": host}), 421)
            assert host not in sentence
    answer = local.signed_in().post("/api/who", headers={**OURS, "Host": "evil.example"})
    error(answer, 421)


def test_a_host_that_is_missing_or_comes_twice_is_refused(local):
    ours = (b"host", b"127.0.0.1:8420")
    assert ask(local.app, headers=[])[0] == 400
    assert ask(local.app, headers=[ours, (b"host", b"evil.example")])[0] == 400
    assert ask(local.app, headers=[ours])[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://evil.example:8420"},
        {"Origin": "http://127.0.0.1:3000"},  # another server of the same machine
        {"Origin": "http://localhost:8420"},  # our page by another name
        {"Origin": "null"},
        {"Origin": "file://"},
        {"Origin": "http://127.0.0.1:8420@evil.example"},
        {"Origin": "http://127.0.0.1:8420/"},
        {"Origin": "http://[::1"},
        {"Origin": "http://127.0.0.1:99999"},
        {"Origin": "chrome-extension://127.0.0.1:8420"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "anything"},
    ],
)
def test_requests_of_other_pages_are_refused(local, headers):
    browser = local.signed_in()
    for method in ("POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"):
        answer = browser.request(method, "/api/who", headers={**OURS, **headers})
        assert answer.status_code == 403
    navigation = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    error(browser.post("/", headers={**OURS, **headers, **navigation}), 403)
    error(browser.get("/api/who", headers={**headers, **navigation}), 403)


@pytest.mark.parametrize(
    "own", [{}, {"X-Margrave": ""}, {"X-Margrave": "0"}, {"X-Margrave": "1, 1"}]
)
def test_a_form_of_another_page_lacks_our_header(local, own):
    for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"):
        sentence = error(local.signed_in().request(method, "/api/who", headers=own), 403)
        assert "X-Margrave: 1" in sentence


def test_no_other_page_is_allowed_to_request(local):
    asking = {"Access-Control-Request-Method": "POST", "Origin": "http://127.0.0.1:8420"}
    answer = local.signed_in().request("OPTIONS", "/api/who", headers=asking)
    error(answer, 403)
    answers = [answer, *(local.signed_in().request(one, "/api/who") for one in ("OPTIONS", "GET"))]
    for one in answers:
        assert not [name for name in one.headers if name.startswith("access-control")]
    assert answers[1].status_code == 405


def test_a_link_may_open_the_page_but_no_page_may_embed_it(local):
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    browser = local.signed_in()
    assert browser.get("/", headers={**elsewhere, "Sec-Fetch-Dest": "document"}).status_code == 200
    for kind in ("iframe", "embed", "object"):
        error(browser.get("/", headers={**elsewhere, "Sec-Fetch-Dest": kind}), 403)
    loading = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    error(browser.get("/app.js", headers={**loading, "Sec-Fetch-Dest": "script"}), 403)


def test_behind_a_proxy():
    studio = Studio(token=TOKEN, hosts=["studio.example"])
    browser = studio.browser("https://studio.example")
    answer = browser.post(
        "/api/session", json={"token": TOKEN}, headers={**OURS, "Origin": "https://studio.example"}
    )
    assert answer.status_code == 200
    cookie = answer.headers["Set-Cookie"]
    parts = cookie.lower().split("; ")
    assert {"secure", "path=/"} <= set(parts)  # or a browser refuses a name with the prefix
    assert not [part for part in parts if part.startswith("domain")]
    assert cookie.startswith("__Host-")
    named = {**OURS, "Origin": "https://studio.example", "Host": "studio.example:443"}
    assert browser.post("/api/who", headers=named).status_code == 200


@pytest.mark.parametrize(
    ("base", "origin"),
    [
        ("https://studio.example", "http://studio.example"),  # as whoever owns the network can make
        ("http://studio.example", "https://studio.example"),  # through a proxy that is not trusted
    ],
)
def test_a_page_with_another_scheme_is_another_page(base, origin):
    studio = Studio(token=TOKEN, hosts=["studio.example"])
    browser = studio.signed_in(base)
    sentence = error(browser.post("/api/who", headers={**OURS, "Origin": origin}), 403)
    assert ("--trusted-proxy" in sentence) == origin.startswith("https")


def test_all_answers_have_the_headers(local, shared):
    answers = [
        local.signed_in().get("/"),
        local.signed_in().get("/api/who"),
        local.signed_in().get("/nowhere"),
        local.signed_in().get("/api/broken"),
        local.signed_in().get("/", headers={"Host": "evil.example"}),
        shared.browser().get("/api/who"),
        shared.browser().get("/?token=x"),
        local.signed_in().get("/api/report.html"),
    ]
    for answer in answers:
        headers = answer.headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["X-Frame-Options"] == "DENY"
        assert "camera=()" in headers["Permissions-Policy"]
        if "/api" in answer.url.path or answer.status_code == 303:
            assert headers["Cache-Control"] == "no-store"
    policies = [answer.headers["Content-Security-Policy"] for answer in answers]
    assert policies[:-1] == [POLICY] * 7
    assert policies[-1] == ("default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox")


def test_a_failure_tells_nothing(local):
    answer = local.signed_in().get("/api/broken")
    assert "secret" not in error(answer, 500)


def test_web_sockets_are_closed(local):
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    asyncio.run(local.app({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# Several users


def test_without_the_token_there_is_the_page_and_nothing_else(shared):
    browser = shared.browser()
    assert browser.get("/").status_code == 200
    assert browser.get("/app.js").status_code == 200
    assert "token" in error(browser.get("/api/who"), 401)
    for path in ("/api/who", "/api", "/api/", "/x/api/who", "//api/who", "/%61pi/who"):
        status, headers, _ = ask(shared.app, path=path)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
    error(browser.post("/api/read", headers=OURS, json={}), 401)
    error(browser.get("/api/who", headers={"Authorization": "Basic eDp5"}), 401)
    error(browser.get(f"/api/who?token={TOKEN}"), 401)
    assert shared.users.keys == []


def test_the_token_in_the_url_becomes_a_cookie(shared):
    browser = shared.browser()
    answer = browser.get(f"/?token={TOKEN}&set=spam%20base#here")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/?set=spam+base"
    cookie = answer.headers["Set-Cookie"]
    key = shared.users.keys[0]
    assert cookie.startswith(f"margrave-8420={key}.")
    assert TOKEN not in cookie
    assert len(key) >= 43  # 32 bytes
    parts = cookie.lower().split("; ")
    assert {"httponly", "samesite=strict", "path=/"} <= set(parts)
    assert not [part for part in parts if part.startswith("domain")]
    assert "secure" not in parts
    assert browser.get("/api/who").json() == {"user": key}
    assert browser.get(f"/?token={TOKEN}").headers.get("Set-Cookie") is None
    assert shared.users.keys == [key]


def test_the_token_in_the_url_sends_nobody_elsewhere(shared):
    for path in (
        "//evil.example",
        "/\\evil.example",
        "/%2F%2Fevil.example",
        "/x%0d%0aSet-Cookie:a",
    ):
        status, headers, _ = ask(shared.app, path=path, query=f"token={TOKEN}")
        assert status == 303
        place = headers["location"]
        assert re.fullmatch(r"/[\w.%:-]+(/[\w.%:-]*)*", place), place
        assert not place.startswith("//")


def test_a_wrong_token_in_the_url_leads_to_the_page_that_asks_for_it(shared):
    answer = shared.browser().get("/?token=of-yesterday")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert "Set-Cookie" not in answer.headers
    assert shared.users.keys == []


def test_a_link_elsewhere_with_the_token_keeps_who_one_was(shared):
    browser = shared.browser()
    enter(browser)
    cookies = dict(browser.cookies)
    browser.cookies.clear()  # as browsers do: SameSite=Strict
    link = f"/?token={TOKEN}&x=%22%3E%3Cscript%3E"
    elsewhere = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    answer = browser.get(link, headers=elsewhere)
    assert (answer.status_code, "Set-Cookie" in answer.headers) == (200, False)
    again = re.search('content="0;url=([^"<>]*)"', answer.text).group(1).replace("&amp;", "&")
    browser.cookies.update(cookies)
    answer = browser.get("/" + again, headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.headers["Location"] == "/?x=%22%3E%3Cscript%3E"
    assert len(shared.users.keys) == 1


def test_the_token_in_the_form(shared):
    browser = shared.browser()
    assert "token" in error(enter(browser, "wrong-one"), 401)
    assert enter(browser).json() == {"shared": True}
    assert browser.get("/api/who").json() == {"user": shared.users.keys[0]}
    error(shared.browser().post("/api/session", json={"token": TOKEN}), 403)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"token": 7}', b'"token"', b"\xff", b"[" * 4000, b"{}"],
)
def test_a_form_that_is_none(shared, body):
    answer = shared.browser().post(
        "/api/session", content=body, headers={**OURS, "Content-Type": "application/json"}
    )
    assert "token" in error(answer, 422)
    odd = b'{"token": "\\ud800\\u0000"}'
    answer = shared.browser().post(
        "/api/session", content=odd, headers={**OURS, "Content-Type": "application/json"}
    )
    error(answer, 401)


def test_scripts(shared):
    assert shared.script().post("/api/who").json() == {"user": "bearer"}
    error(shared.script("wrong").get("/api/who"), 401)
    browser = shared.browser()
    enter(browser)
    key = browser.get("/api/who").json()["user"]
    assert shared.script(**{"X-Margrave-User": key}).get("/api/who").json() == {"user": key}
    for wrong in ("x" * 43, "local", "bearer", "../../etc"):
        sentence = error(shared.script(**{"X-Margrave-User": wrong}).get("/api/who"), 401)
        assert "X-Margrave-User" in sentence
    alone = shared.browser(**{"X-Margrave-User": key})
    error(alone.get("/api/who"), 401)


def test_two_users_are_two(shared):
    one, two = shared.browser(), shared.browser()
    enter(one)
    enter(two)
    assert one.get("/api/who").json() != two.get("/api/who").json()


def test_cookies_that_were_not_given_by_us(shared):
    browser = shared.browser()
    enter(browser)
    key, signature = browser.cookies["margrave-8420"].split(".")
    wrong = [key, f"{key}.", f".{signature}", f"{key}.{signature[:-1]}", f"{key}.{signature}0"]
    wrong += [f"{'x' * 43}.{signature}", f"local.{signature}", "ü", '"', f"{key};{signature}"]
    for value in wrong:
        headers = [(b"host", b"localhost:8420"), (b"cookie", f"margrave-8420={value}".encode())]
        assert ask(shared.app, path="/api/who", headers=headers)[0] == 401


def test_processes_behind_one_proxy_share_a_cookie_and_those_on_two_ports_do_not(shared):
    browser = shared.browser()
    enter(browser)
    cookie = f"margrave-8420={browser.cookies['margrave-8420']}"
    other = Studio(token=TOKEN, port=8421)
    other.users.keys.extend(shared.users.keys)
    user = browser.get("/api/who").json()
    assert other.browser(Cookie=cookie).get("/api/who").json() == user
    direct = other.browser("http://127.0.0.1:8421", Cookie=cookie)
    error(direct.get("/api/who"), 401)


def test_a_new_token_shuts_out_but_gives_back_what_was_ones_own(shared):
    browser = shared.browser()
    enter(browser)
    key, cookie = shared.users.keys[0], browser.cookies["margrave-8420"]
    later = Studio(token="another-token-of-16")
    later.users.keys.append(key)
    browser = later.browser()
    browser.cookies.set("margrave-8420", cookie, domain="127.0.0.1", path="/")
    error(browser.get("/api/who"), 401)
    error(enter(browser), 401)
    assert enter(browser, "another-token-of-16").status_code == 200
    assert browser.get("/api/who").json() == {"user": key}


def test_many_wrong_tokens_are_refused_for_a_while_and_the_right_one_never(shared):
    inside = shared.signed_in()
    outside = shared.browser()
    for attempt in range(10):
        shared.clock.now += 1
        if attempt % 3 == 0:
            assert outside.get(f"/?token=guess-{attempt}").status_code == 303
        elif attempt % 3 == 1:
            error(shared.script("guess").get("/api/who"), 401)
        else:
            error(enter(outside, "guess"), 401)
    answer = enter(outside, "guess")
    assert "52" in error(answer, 429)
    assert answer.headers["Retry-After"] == "52"
    error(shared.script("guess").get("/api/who"), 429)
    error(outside.get("/?token=guess"), 429)
    # From the same address, as all are behind a proxy.
    assert inside.get("/api/who").status_code == 200
    assert shared.script().get("/api/who").status_code == 200
    assert enter(shared.browser()).status_code == 200
    assert shared.browser().get(f"/?token={TOKEN}").headers["Set-Cookie"]
    assert outside.get("/").status_code == 200
    error(outside.get("/api/who"), 401)
    shared.clock.now += 51.5
    error(enter(outside, "guess"), 401)
    error(enter(outside, "guess"), 429)


def test_each_address_has_its_own_count_of_wrong_tokens(shared):
    def status(address):
        transport = httpx.ASGITransport(shared.app, client=(address, 1))

        async def ask():
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                headers = {**OURS, "Authorization": "Bearer guess"}
                return (await http.get("/api/who", headers=headers)).status_code

        return asyncio.run(ask())

    assert [status("10.0.0.1") for _ in range(11)] == [401] * 10 + [429]
    assert status("10.0.0.2") == 401


# Bodies


def ask(app, method="GET", path="/", query="", headers=None, parts=()):
    """Ask an application without anything between; its status, headers and how much was read."""
    headers = [(b"host", b"127.0.0.1:8420")] if headers is None else headers
    read, sent = [], []

    async def receive():
        if len(read) >= len(parts):
            return {"type": "http.request", "body": b"", "more_body": False}
        read.append(parts[len(read)])
        return {"type": "http.request", "body": read[-1], "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
    }
    asyncio.run(app(scope, receive, send))
    starts = [one for one in sent if one["type"] == "http.response.start"]
    assert len(starts) == 1
    assert not sent[-1].get("more_body", False)
    found = {name.decode().lower(): value.decode() for name, value in starts[0]["headers"]}
    return starts[0]["status"], found, read


SENT = [
    (b"host", b"127.0.0.1:8420"),
    (b"x-margrave", b"1"),
    (b"authorization", f"Bearer {TOKEN}".encode()),
]
JSON = [*SENT, (b"content-type", b"application/json")]
FORM = [*SENT, (b"content-type", b"multipart/form-data; boundary=x")]


def test_a_declared_body_that_is_too_large_is_not_read(local):
    huge = (b"content-length", b"1048577")
    status, headers, read = ask(local.app, "POST", "/api/read", headers=[*JSON, huge], parts=[b"x"])
    assert (status, read) == (413, [])
    assert headers["connection"] == "close"
    whole = (b"content-length", b"1048576")
    parts = [b"x" * 2**20]
    assert ask(local.app, "POST", "/api/read", headers=[*JSON, whole], parts=parts)[0] == 200


def test_a_body_that_grows_too_large_is_read_no_further(local):
    chunked = (b"transfer-encoding", b"chunked")
    for headers in ([*JSON, chunked], [*JSON, (b"content-length", b"5")]):
        parts = [b"x" * 2**18] * 100
        status, found, read = ask(local.app, "POST", "/api/read", headers=headers, parts=parts)
        assert status == 413
        assert len(read) == 5
        assert found["content-security-policy"] == POLICY
    assert ask(local.app, "POST", "/api/session", headers=[*JSON, chunked], parts=parts)[0] == 413


def test_uploads_have_a_limit_of_their_own():
    studio = Studio(limits=Limits(upload_bytes=2**21))
    huge = (b"content-length", str(2**21 + 2**16 + 1).encode())
    assert ask(studio.app, "POST", "/api/tables", headers=[*FORM, huge])[0] == 413
    for more, status in ((0, 200), (1, 413)):  # though the application says 400
        parts = [b"x" * (2**21 + 2**16), b"x" * more]
        assert ask(studio.app, "POST", "/api/tables", headers=FORM, parts=parts)[0] == status
    sentence = error(studio.script().post("/api/tables", files={"file": b"x" * 2**22}), 413)
    assert "2.06" in sentence  # MiB


@pytest.mark.parametrize(
    ("path", "kind", "body", "status"),
    [
        ("/api/read", "application/json", b"{}", 200),
        ("/api/read", "Application/JSON; charset=utf-8", b"{}", 200),
        ("/api/read", None, b"", 200),
        ("/api/read", None, b"{}", 415),
        ("/api/read", "text/plain", b"{}", 415),
        ("/api/read", "text/plain", b"", 415),
        ("/api/read", "multipart/form-data; boundary=x", b"{}", 415),
        ("/api/read", "application/x-www-form-urlencoded", b"a=1", 415),
        ("/api/tables", "application/json", b"{}", 415),
        ("/api/tables", None, b"", 415),
        ("/api/session", "text/plain", b'{"token": "x"}', 415),
    ],
)
def test_kinds_of_bodies(local, path, kind, body, status):
    headers = OURS if kind is None else {**OURS, "Content-Type": kind}
    assert local.script().post(path, content=body, headers=headers).status_code == status


@pytest.mark.parametrize("length", ["-1", "1e3", "٣", "9" * 30, "5, 5", " ", "0x1"])
def test_lengths_that_are_no_numbers(local, length):
    headers = [*JSON, (b"content-length", length.encode())]
    assert ask(local.app, "POST", "/api/read", headers=headers)[0] == 400


text = st.binary(max_size=30)
names = st.sampled_from(
    [
        *("host", "origin", "cookie", "authorization", "content-type", "content-length", "x"),
        *("sec-fetch-site", "sec-fetch-mode", "transfer-encoding", "access-control-request-method"),
        *("x-margrave", "x-margrave-user"),
    ]
)
odd_headers = st.lists(st.tuples(names.map(str.encode), text), max_size=4)


@given(
    st.sampled_from([SENT[:2], SENT, JSON, []]),
    odd_headers,
    st.sampled_from(["GET", "POST", "OPTIONS", "TRACE", "é"]),
    st.text(max_size=20),
    text,
)
def test_malformed_requests_are_never_our_failure(base, more, method, path, query):
    studio = Studio(token=TOKEN)
    received = []

    async def receive():
        return {"type": "http.request", "body": query, "more_body": False}

    async def send(message):
        received.append(message)

    for start in ("/", "/api/session", "/api/"):
        received.clear()
        scope = {
            "type": "http",
            "method": method,
            "path": start if start == "/api/session" else start + path,
            "query_string": b"token=" + query,
            "headers": [*base, *more],
        }
        asyncio.run(
            Guard(PlainTextResponse("in"), studio.settings, studio.users)(scope, receive, send)
        )
        assert received[0]["status"] < 500
        if received[0]["status"] >= 400:
            assert list(json.loads(received[1]["body"])) == ["error", "code", "fields"]


def test_a_stream_passes_part_by_part(local):
    async def story():
        released, arrived = asyncio.Event(), asyncio.Event()
        bodies = []

        async def parts():
            yield b"first"
            await asyncio.wait_for(released.wait(), 5)
            yield b"second"

        async def send(message):
            bodies.append(message.get("body"))
            if message.get("body") == b"first":
                arrived.set()

        async def receive():
            await asyncio.Event().wait()

        async def stream(scope, receive, send):
            await StreamingResponse(parts())(scope, receive, send)

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/events",
            "query_string": b"",
            "headers": SENT,
            "asgi": {"spec_version": "2.4"},
        }
        guard = Guard(stream, local.settings, local.users)
        answering = asyncio.create_task(guard(scope, receive, send))
        await asyncio.wait_for(arrived.wait(), 5)
        assert b"second" not in bodies
        released.set()
        await asyncio.wait_for(answering, 5)
        assert bodies[1:3] == [b"first", b"second"]

    asyncio.run(story())


# Files to save


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.html", "report.html"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\win.ini", "win.ini"),
        ("con.csv", "_con.csv"),
        ("LPT1", "_LPT1"),
        ('a"b;c.csv', "a_b;c.csv"),
        ("a\r\nSet-Cookie: x=1.csv", "aSet-Cookie_ x=1.csv"),
        ("", "table"),
        ("...", "download"),
        ("é日本.csv", "é日本.csv"),
        ("\u202egnp.exe", "gnp.exe"),
    ],
)
def test_names_of_files_to_save(name, safe):
    assert download_name(name) == safe
    answer = attachment(name, "text/csv", b"a\n")
    header = answer.headers["Content-Disposition"]
    found = re.fullmatch(r"attachment; filename=\"([ -~]+)\"; filename\*=UTF-8''([!-~]+)", header)
    assert unquote(found.group(2)) == safe
    assert found.group(1).isascii()
    assert not set(found.group(1)) & set('/\\"%')


def test_a_name_in_another_script_keeps_its_ending():
    header = attachment("日本.csv", "text/csv", "x").headers["Content-Disposition"]
    assert 'filename="download.csv"' in header
    long = download_name("x" * 500 + ".csv.gz")
    assert len(long) == 100
    assert long.endswith("….csv.gz")


@given(st.text())
def test_any_name_is_made_safe(name):
    safe = download_name(name)
    assert 0 < len(safe) <= 101
    assert safe.isprintable()
    assert not set(safe) & set('/\\:*?"<>|')
    attachment(name, "text/plain", "x")
