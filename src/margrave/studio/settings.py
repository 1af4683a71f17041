"""The address, the token and the limits of a studio.

Every studio has a token. On a loopback address (127.0.0.0/8, ::1, localhost) whoever shows it is
the one local user. If other machines can reach the studio, or the user chose the token, each
browser is a separate user.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from urllib.parse import quote

_MIB = 1 << 20
_NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\Z"
)
_TOKEN = re.compile(r"[!-~]{16,256}\Z")  # characters that are valid in a header and a URL
_HOST_HEADER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/?#@\[\]\\]+?)\.?(:[0-9]{0,5})?\Z")
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")


def cores() -> int:
    """The number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host: 127.0.0.0/8, ::1 or localhost."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def new_token() -> str:
    """Make a random token."""
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    """Whether a text can be a token."""
    return _TOKEN.match(text) is not None


@dataclass(frozen=True)
class Limits:
    """The limits of a studio.

    Attributes
    ----------
    upload_bytes : int
        Largest size of an uploaded file.
    rows, columns : int
        Largest size of a table.
    table_bytes : int
        Largest size of a table in memory, in bytes; a text counts in each row that has it.
    parse_seconds, parse_memory : int
        Time and memory for reading an uploaded file, in seconds and in bytes.
    jobs_waiting : int
        Number of waiting jobs of a user.
    workers : int
        Number of jobs that run at the same time; by default the number of cores.
    live_bytes : int
        Memory for the dialogs of all users, in bytes; further dialogs are only in the store.
    connections, connections_of_address : int
        Number of open connections, of all clients and of one address. The number of files that
        the process may open can lower them.
    request_seconds : int
        Time in seconds for the headers of a request, for each part of its body, and for reading
        some of the response.

    Examples
    --------
    >>> from margrave.studio import Limits, Settings
    >>> settings = Settings.of(limits=Limits(upload_bytes=8 * 2**20, workers=2))
    >>> settings.limits.upload_bytes, settings.limits.workers
    (8388608, 2)
    >>> settings.limits.rows
    200000
    """

    upload_bytes: int = 64 * _MIB
    rows: int = 200_000
    columns: int = 2_000
    table_bytes: int = 512 * _MIB
    parse_seconds: int = 60
    parse_memory: int = 2048 * _MIB
    jobs_waiting: int = 8
    workers: int = field(default_factory=cores)
    live_bytes: int = 1024 * _MIB
    connections: int = 2_000
    connections_of_address: int = 1_000
    request_seconds: int = 20

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"Limits needs {limit.name} to be a whole number of at least 1; got {value!r}."
                )


@dataclass(frozen=True)
class Settings:
    """The settings of a studio.

    Attributes
    ----------
    host : str
        The address or host name to listen on; an IPv6 address without brackets.
    port : int
        The port; 0 lets the system choose.
    store : str or None
        URL of the store; None for a file in the user's data folder.
    token : str
        The token that users need; by default a random one.
    limits : Limits
        The limits.
    hosts : tuple of str
        More host names of the studio: those by which browsers reach it through a proxy.
    proxies : tuple of str
        Addresses or networks of the proxies whose X-Forwarded-Proto and X-Forwarded-For are
        trusted.
    shared : bool
        Whether each browser is a separate user; False for a studio with one user, on a loopback
        address only.

    Raises
    ------
    ValueError
        If a host or a proxy is invalid, the port is out of range, the token is too short or has
        characters that are invalid in a URL, or a studio with one user has a host that other
        machines can reach.

    Examples
    --------
    >>> from margrave.studio import Settings
    >>> Settings.of().shared
    False
    >>> Settings.of(host="0.0.0.0", token="not-really-secret").urls()[0]
    'http://127.0.0.1:8420/?token=not-really-secret'
    """

    host: str = "127.0.0.1"
    port: int = 8420
    store: str | None = field(default=None, repr=False)  # it may contain a password
    token: str = field(default_factory=new_token, repr=False)
    limits: Limits = field(default_factory=Limits)
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    shared: bool = False

    def __post_init__(self) -> None:
        for name in (self.host, *self.hosts):
            if not isinstance(name, str) or not _is_host(name):
                raise ValueError(
                    "Settings needs a host to be an IP address or a host name, without http:// "
                    f"and without a port; got {name!r}."
                )
        whole = isinstance(self.port, int) and not isinstance(self.port, bool)
        if not whole or not 0 <= self.port <= 65535:
            raise ValueError(f"Settings needs port to be from 0 to 65535; got {self.port!r}.")
        for proxy in self.proxies:
            if not isinstance(proxy, str) or not _is_network(proxy):
                raise ValueError(
                    "Settings needs a trusted proxy to be an IP address or a network such as "
                    f"10.0.0.0/8; got {proxy!r}."
                )
        if not is_token(self.token):
            raise ValueError(
                "Settings needs a token of 16 to 256 letters, digits and signs, without spaces; "
                f"got {len(self.token)} characters."
            )
        if not self.shared and not _all_loopback(self.host, *self.hosts):
            raise ValueError(
                f"Settings needs shared=True for host {self.host!r} and hosts {self.hosts!r}, "
                "which other machines can reach; Settings.of sets it."
            )

    @classmethod
    def of(
        cls,
        host: str = "127.0.0.1",
        port: int = 8420,
        store: str | None = None,
        token: str | None = None,
        limits: Limits | None = None,
        hosts: Sequence[str] = (),
        proxies: Sequence[str] = (),
    ) -> Settings:
        """Create settings, with a random token if `token` is None.

        The studio has one user if `token` is None and only this machine can reach it.
        """
        if isinstance(host, str) and re.fullmatch(r"\[[^\[\]]*:[^\[\]]*\]", host):
            host = host[1:-1]  # an IPv6 address as written in a URL
        shared = token is not None or not _all_loopback(host, *hosts)
        token = new_token() if token is None else token
        limits = limits or Limits()
        return cls(host, port, store, token, limits, tuple(hosts), tuple(proxies), shared)

    def urls(self) -> list[str]:
        """The addresses to open in a browser, with the token; see `addresses`."""
        return [f"{place}?token={quote(self.token, safe='')}" for place in self.addresses()]

    def addresses(self) -> list[str]:
        """The addresses of the page, without the token.

        Behind a proxy it is the public one. Otherwise the first one is for this machine; on all
        interfaces (0.0.0.0, ::), to which nobody can connect, there is a second one, for
        other machines.
        """
        if self.hosts and self.proxies:
            return [f"https://{_in_url(self.hosts[0])}/"]
        address, hosts = _address(self.host), [self.host]
        if address is not None and address.is_unspecified:
            local = "127.0.0.1" if address.version == 4 else "::1"
            hosts = [local, _network_host(address.version)]
        return [f"http://{_in_url(host)}:{self.port}/" for host in hosts]

    def answers_to(self, header: str) -> bool:
        """Whether a Host header names this studio, with any port.

        This prevents DNS rebinding: another page can make its own host name point to 127.0.0.1, but
        the browser still sends that host name.
        """
        match = _HOST_HEADER.match(header)
        if match is None:
            return False
        name = match.group(1).strip("[]").lower()
        address = _address(name)
        if address is not None:
            name = str(address)
        bound = _address(self.host)
        known = {_plain(host) for host in (*_OWN_NAMES, self.host, *self.hosts)}
        if name in known:
            return True
        anywhere = bound is not None and bound.is_unspecified and self.shared
        return anywhere and (address is not None or name == socket.gethostname().lower())


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _all_loopback(*hosts: str) -> bool:
    return all(isinstance(host, str) and is_loopback(host) for host in hosts)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _network_host(version: int) -> str:
    """Find the address of this machine in its network; without one, its host name."""
    # Connecting a datagram socket sends nothing; it selects the interface. The addresses are
    # reserved for documentation.
    family, other = (
        (socket.AF_INET, "192.0.2.1") if version == 4 else (socket.AF_INET6, "2001:db8::1")
    )
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((other, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def _plain(host: str) -> str:
    address = _address(host)
    return host.lower() if address is None else str(address)


def _is_host(name: str) -> bool:
    return _address(name) is not None or _NAME.match(name.lower()) is not None
