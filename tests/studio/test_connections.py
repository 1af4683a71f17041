"""Clients that send or read too slowly, or hold too many connections, stop nobody else."""

import asyncio
import contextlib
import socket
import sys
import threading
import time

import httpx
import pytest
from tests.studio import running
from tests.studio.serving import client_of, serving

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FILE, LARGE = "/panels.css", "/vendor/echarts.js"
SECONDS = 30


def post(path, length, token=None):
    """The headers of a request and the first character of its body."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "X-Margrave: 1"]
    lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    lines += [] if token is None else [f"Authorization: Bearer {token}"]
    return "\r\n".join([*lines, "", "{"]).encode()


def open_socket(port, source="127.0.0.1"):
    """A connection to the studio."""
    return socket.create_connection(("127.0.0.1", port), SECONDS, (source, 0))


@contextlib.contextmanager
def sending(port, data, n):
    """Connections that have sent something."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(contextlib.closing(open_socket(port))) for _ in range(n)]
        for one in sockets:
            with contextlib.suppress(OSError):  # it may be closed already
                one.sendall(data)
        yield sockets


def half_sent(port, n):
    """Connections that never send the rest of their headers."""
    return sending(port, HALF, n)


def is_closed(one):
    """Whether the studio closes a connection soon."""
    try:
        while one.recv(4096):
            continue
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.fixture
def many_files():
    """This process may open enough files for 1,500 connections."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard if hard == resource.RLIM_INFINITY else min(hard, 4000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, enough), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="it has no limit on open files")
def test_half_sent_headers_stop_nobody_else(tmp_path, monkeypatch, many_files):
    few_files = ("sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", *running.PROGRAM)
    monkeypatch.setattr(running, "PROGRAM", few_files)
    studio = running.Studio(tmp_path)
    try:
        with client_of(studio.url) as client:
            client.ok("/studio")
        with half_sent(httpx.URL(studio.url).port, 1500):
            for _ in range(10):
                with client_of(studio.url) as client:  # a connection of its own
                    client.ok("/dialogs")
        assert studio.log.stat().st_size < 10_000
    finally:
        studio.kill()


def test_headers_have_to_arrive_in_time(tmp_path):
    with serving(tmp_path, request_seconds=1) as (studio, client):
        port = studio.settings.port
        with half_sent(port, 3) as slow:
            assert all(map(is_closed, slow))
        with contextlib.closing(open_socket(port)) as silent:
            assert is_closed(silent)
        with contextlib.closing(open_socket(port)) as second:  # half of its second request
            second.sendall(HALF + b"\r\n")
            assert second.recv(12) == b"HTTP/1.1 200"
            second.sendall(HALF)
            assert is_closed(second)
        assert client.ok("/studio")


def test_a_body_has_to_arrive_in_time(tmp_path):
    with (
        serving(tmp_path, request_seconds=1) as (studio, _),
        contextlib.closing(open_socket(studio.settings.port)) as slow,
    ):
        slow.sendall(post("/api/tables/bundled", 1000, studio.settings.token))
        with contextlib.suppress(OSError):
            for _ in range(20):  # a byte now and then is not enough
                time.sleep(0.2)
                slow.sendall(b" ")
        answer = slow.recv(4096)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b'"too_slow"' in answer
        assert is_closed(slow)


def test_a_steady_body_may_take_longer(tmp_path):
    with serving(tmp_path, request_seconds=1) as (_, client):

        def body():
            yield b'{"name": "pima"'
            for _ in range(8):
                time.sleep(0.25)
                yield b" " * 4096
            yield b"}"

        kind = {"Content-Type": "application/json"}
        answer = client.http.post("/api/tables/bundled", content=body(), headers=kind)
        assert answer.status_code == 201


@contextlib.contextmanager
def quiet_stream(studio, client, monkeypatch):
    """The id of a job whose stream of events is quiet until it is released."""
    name = client.dialog("pima", members=["logistic"])
    job = client.post(f"{name}/prefer", {"wants": ["fp <= 30"]}).json()["id"]
    released = threading.Event()

    async def quiet(_self, _job):
        for state in ("running", "done"):
            yield studio.jobs.record(studio.jobs.table.find("local", job)) | {"state": state}
            while state == "running" and not released.is_set():
                await asyncio.sleep(0.05)

    monkeypatch.setattr(type(studio.jobs), "follow", quiet)
    try:
        yield job, released
    finally:
        released.set()


def test_streams_of_events_stay_open(tmp_path, monkeypatch):
    with (
        serving(tmp_path, request_seconds=1, connections_of_address=8) as (studio, client),
        quiet_stream(studio, client, monkeypatch) as (job, released),
    ):
        events = client.events(job)
        assert next(events)[0] == "job"
        with half_sent(studio.settings.port, 20):  # more than the address may have
            time.sleep(3)  # three times as long as headers may take
            released.set()
            assert [event for event, _ in events] == ["end"]


def test_an_address_has_a_number_of_connections(tmp_path):
    with serving(tmp_path, connections_of_address=4) as (studio, client):
        with half_sent(studio.settings.port, 4) as waiting:
            with client_of(studio.settings.urls()[0]) as other:
                assert other.ok("/studio")  # in the place of the first that waits
            waiting[0].settimeout(SECONDS)
            assert is_closed(waiting[0])
        assert client.ok("/studio")


def test_complete_requests_keep_their_places(tmp_path, monkeypatch):
    with (
        serving(tmp_path, connections_of_address=2) as (studio, client),
        quiet_stream(studio, client, monkeypatch) as (job, _),
    ):
        client.http.close()
        with contextlib.ExitStack() as stack:
            followers = [stack.enter_context(client_of(studio.settings.urls()[0])) for _ in "ab"]
            streams = [follower.events(job) for follower in followers]
            assert [next(events)[0] for events in streams] == ["job", "job"]
            third = stack.enter_context(contextlib.closing(open_socket(studio.settings.port)))
            assert third.recv(12) == b"HTTP/1.1 503"
        with client_of(studio.settings.urls()[0]) as later:
            assert later.ok("/studio")


def test_requests_of_a_user_keep_their_places_while_they_are_sent(tmp_path):
    with serving(tmp_path, connections_of_address=2) as (studio, client):
        client.http.close()
        port, token = studio.settings.port, studio.settings.token
        with sending(port, post("/api/tables/bundled", 1000, token), 2):
            time.sleep(0.5)
            with contextlib.closing(open_socket(port)) as third:
                assert third.recv(12) == b"HTTP/1.1 503"


@pytest.mark.parametrize("path", ["/api/session", "/api/dialogs", "/"])
def test_half_sent_bodies_without_a_token_give_up_their_places(tmp_path, path):
    with serving(tmp_path, connections_of_address=4) as (studio, client):
        with sending(studio.settings.port, post(path, 1000), 4):
            time.sleep(0.5)  # so that all of them are being handled
            for _ in range(4):
                with client_of(studio.settings.urls()[0]) as owner:
                    owner.ok("/studio")
        assert client.ok("/studio")


def test_the_body_with_the_token_is_short_and_has_a_fixed_time(tmp_path):
    with serving(tmp_path, request_seconds=1) as (studio, _):
        with contextlib.closing(open_socket(studio.settings.port)) as large:
            large.sendall(post("/api/session", 5000))
            assert large.recv(12) == b"HTTP/1.1 413"
        with contextlib.closing(open_socket(studio.settings.port)) as slow:
            slow.sendall(post("/api/session", 4000))
            with contextlib.suppress(OSError):
                for _ in range(20):  # twice as fast as any other body has to be
                    time.sleep(0.1)
                    slow.sendall(b" " * 200)
            assert slow.recv(12) == b"HTTP/1.1 408"


@pytest.mark.slow
def test_the_end_of_a_studio_is_quiet_in_spite_of_requests(tmp_path):
    studio = running.Studio(tmp_path)
    url = httpx.URL(studio.url)
    try:
        data = post("/api/tables/bundled", 1000, url.params["token"])
        with sending(url.port, data, 100):
            time.sleep(0.5)
            studio.stop()
        assert "Traceback" not in studio.errors
        assert len(studio.errors) < 2000
    finally:
        studio.kill()


# Clients that do not read


@contextlib.contextmanager
def unread(port, more="", file=FILE, n=1):
    """A connection that has requested a file of the page n times, and reads nothing."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.settimeout(SECONDS)
        one.connect(("127.0.0.1", port))
        one.sendall(f"GET {file} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}\r\n".encode() * n)
        time.sleep(0.5)  # so that the system has taken what it can
        yield one


def whole(client, one):
    """Whether a connection still gets the whole file."""
    expected, got = len(client.http.get(FILE, headers={"Accept-Encoding": "identity"}).content), 0
    with contextlib.suppress(ConnectionError, TimeoutError):
        one.settimeout(2)
        while got < expected and (part := one.recv(65536)):
            got += len(part)
    return got >= expected


def test_a_client_that_does_not_read_a_short_response_is_disconnected(tmp_path):
    with (
        serving(tmp_path, request_seconds=1, send_buffer=4096) as (studio, client),
        unread(studio.settings.port) as one,
        unread(studio.settings.port, "Connection: close\r\n") as other,
    ):
        time.sleep(5)  # on a busy machine, two periods may take longer than 2 s
        assert not whole(client, one)
        assert not whole(client, other)


def test_a_client_that_reads_late_but_in_time_gets_everything(tmp_path):
    with (
        serving(tmp_path, send_buffer=4096) as (studio, client),
        unread(studio.settings.port) as one,
    ):
        assert whole(client, one)


@pytest.mark.parametrize("more", ["", "Connection: close\r\n"], ids=["open", "closing"])
def test_clients_that_do_not_read_give_up_their_places(tmp_path, more):
    with serving(tmp_path, connections_of_address=1, send_buffer=4096) as (studio, client):
        client.http.close()
        with unread(studio.settings.port, more) as one, client_of(studio.settings.urls()[0]) as new:
            assert new.ok("/studio")
            assert not whole(new, one)


def test_unread_responses_before_another_one_give_up_their_places(tmp_path):
    with serving(tmp_path, connections_of_address=1, send_buffer=4096) as (studio, client):
        client.http.close()
        with (
            unread(studio.settings.port, file=LARGE, n=2),
            client_of(studio.settings.urls()[0]) as new,
        ):
            assert new.ok("/studio")


# Several addresses


@pytest.mark.skipif(sys.platform != "linux", reason="a client connects from 127.0.0.2")
def test_one_connection_takes_the_place_of_one(tmp_path):
    limits = {"connections": 3, "connections_of_address": 2}
    with serving(tmp_path, **limits) as (studio, client):
        client.http.close()
        port = studio.settings.port
        with contextlib.closing(open_socket(port, "127.0.0.2")) as other:
            time.sleep(0.2)
            with half_sent(port, 3) as same:
                assert is_closed(same[0])
                other.sendall(HALF + b"\r\n")
                assert other.recv(12) == b"HTTP/1.1 200"


def test_a_trusted_proxy_may_have_more_connections_than_another_address(tmp_path):
    proxies = ("192.0.2.0/24", "127.0.0.1")
    with (
        serving(tmp_path, proxies=proxies, connections=8, connections_of_address=2) as (studio, _),
        half_sent(studio.settings.port, 6) as clients,
    ):
        for one in clients:
            one.sendall(b"\r\n")
            assert one.recv(12) == b"HTTP/1.1 200"
        with half_sent(studio.settings.port, 8):  # but not more than all together
            assert is_closed(clients[0])
