"""Where the studio listens, who its users are, and to which names it answers."""

# ruff: noqa: S104, S105, S106 - nothing listens here, and the tokens open nothing

import socket
from urllib.parse import urlsplit

import pytest

from margrave.studio.settings import Limits, Settings, cores, is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "LocalHost"])
def test_this_machine_has_one_user_and_a_fresh_token(host):
    first, second = Settings.of(host=host), Settings.of(host=host)
    assert is_loopback(host)
    assert not first.shared
    assert first.token != second.token
    assert len(first.token) >= 40
    assert Settings.of(host=host, hosts=["localhost"]).shared is False


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.168.1.7", "2001:db8::1", "studio.example", "127.1", "localhost.x"],
)
def test_what_other_machines_can_reach_has_several_users(host):
    first, second = Settings.of(host=host), Settings.of(host=host)
    assert first.shared
    assert first.token != second.token
    assert len(first.token) >= 40
    with pytest.raises(ValueError, match=rf"\bshared\b.*{host!r}"):
        Settings(host=host)
    assert Settings.of(hosts=[host]).shared  # through a proxy


def test_a_token_is_kept_and_not_shown():
    settings = Settings.of(token="our-own-token-of-25", store="postgresql://me:secret@db/studio")
    assert settings.shared
    assert settings.token == "our-own-token-of-25"
    assert "our-own" not in repr(settings)
    assert "secret" not in repr(settings)


LONG = "1234567890123456"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "http://127.0.0.1:8420/?token="),
        ({"host": "[::1]", "port": 9000}, "http://[::1]:9000/?token="),
        (
            {"host": "0.0.0.0", "token": "a&b=c#d/?12345678"},
            "http://127.0.0.1:8420/?token=a%26b%3Dc%23d%2F%3F12345678",
        ),
        ({"host": "::", "token": LONG}, f"http://[::1]:8420/?token={LONG}"),
        (
            {"host": "studio.example", "token": LONG},
            f"http://studio.example:8420/?token={LONG}",
        ),
        (
            {"hosts": ["studio.example", "s.example"], "proxies": ["127.0.0.1"], "token": LONG},
            f"https://studio.example/?token={LONG}",
        ),
    ],
)
def test_the_url_can_be_opened(given, url):
    settings = Settings.of(**given)
    shown = settings.urls()[0]
    assert shown == (url if "token" in given else url + settings.token)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_all_interfaces_have_an_address_for_other_machines(host):
    settings = Settings.of(host=host, port=9000)
    local, other = map(urlsplit, settings.urls())
    assert is_loopback(local.hostname)
    assert not is_loopback(other.hostname)
    assert settings.answers_to(other.netloc)
    assert (other.port, other.query) == (local.port, local.query)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_without_a_network_the_machine_has_a_name(host, monkeypatch):
    def unreachable(*_):
        raise OSError

    monkeypatch.setattr(socket.socket, "connect", unreachable)
    monkeypatch.setattr(socket, "gethostname", lambda: "desk")
    assert urlsplit(Settings.of(host=host).urls()[1]).hostname == "desk"


def test_one_address_is_for_everybody():
    for host in ("127.0.0.1", "localhost", "10.0.0.7", "studio.example"):
        assert [urlsplit(url).hostname for url in Settings.of(host=host).urls()] == [host]


@pytest.mark.parametrize("port", [-1, 65536, "80", True, 1.5])
def test_ports(port):
    with pytest.raises(ValueError, match=rf"\bport\b.*{port!r}"):
        Settings.of(port=port)


@pytest.mark.parametrize(
    "host",
    ["", "http://x", "x:80", "a b", "x/y", "x\n", "-x", "x..y", "a" * 254, "[::1", "é", None],
)
def test_hosts(host):
    for given in ({"host": host}, {"hosts": [host]}):
        with pytest.raises(ValueError, match=r"\bhost\b"):
            Settings.of(**given)


@pytest.mark.parametrize("proxy", ["", "*", "proxy.example", "10.0.0.1/8", "10.0.0.1:80", None])
def test_proxies(proxy):
    with pytest.raises(ValueError, match=r"\bproxy\b"):
        Settings.of(proxies=[proxy])
    assert Settings.of(proxies=["10.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"]).proxies


@pytest.mark.parametrize(
    "token",
    [
        *("", "short", "x" * 15, "with space in the middle"),
        *("línea-nueva-y-larga", "x" * 257, "a\nbcdefghijklmnopq"),
    ],
)
def test_tokens(token):
    with pytest.raises(ValueError, match=rf"\btoken\b.*\b{len(token)}\b") as caught:
        Settings.of(token=token)
    assert not token or token not in str(caught.value)


def test_limits():
    assert Limits().upload_bytes == 64 * 2**20
    assert Limits().workers == cores() >= 1
    for wrong in (0, -1, 1.5, True, None, "9"):
        with pytest.raises(ValueError, match=rf"\brows\b.*{wrong!r}"):
            Limits(rows=wrong)


OWN = ["127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]:8420", "[0:0::1]", "localhost.:80"]
FOREIGN = [
    *("evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost.evil.example"),
    *("", ":8420", "127.0.0.1:8420:1", "127.0.0.1:x", "127.0.0.1:123456", "localhost@evil.example"),
    *("localhost/", "local host", "::1", "[::1", "[evil]", "127.0.0.1\n", "2130706433", "127.1"),
]


@pytest.mark.parametrize("header", OWN)
def test_names_of_this_machine_are_answered(header):
    assert Settings().answers_to(header)
    assert Settings.of(host="0.0.0.0").answers_to(header)


@pytest.mark.parametrize("header", FOREIGN)
def test_other_names_are_not(header):
    for settings in (Settings(), Settings.of(host="0.0.0.0"), Settings.of(host="10.0.0.7")):
        assert not settings.answers_to(header)


def test_the_bound_address_and_names_that_were_given_are_answered():
    settings = Settings.of(host="10.0.0.7", hosts=["Studio.example", "2001:db8::1"])
    for header in ("10.0.0.7:8420", "studio.example", "STUDIO.example.:443", "[2001:db8:0::1]:80"):
        assert settings.answers_to(header)
    for header in ("10.0.0.8:8420", "a.studio.example", "127.0.0.2"):
        assert not settings.answers_to(header)
    assert Settings.of(host="127.0.0.2").answers_to("127.0.0.2:8420")


def test_all_addresses_answer_to_any_of_them_and_to_the_name_of_the_machine(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "Desk")
    for host in ("0.0.0.0", "::"):
        settings = Settings.of(host=host)
        for header in ("10.1.2.3:8420", "[2001:db8::5]:8420", "desk:8420"):
            assert settings.answers_to(header)
            assert not Settings().answers_to(header)
        assert not settings.answers_to("desk.evil.example")
