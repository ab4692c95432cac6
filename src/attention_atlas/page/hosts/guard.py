"""Who may ask, and what may the page do?

A page of another site must not read the server of this machine (Host is checked, nothing is
shared across origins) nor have it do anything (what is done is asked for in JSON from our own
origin); from another machine a token is asked for on every request; and the page itself may run no
script but its own and load nothing from elsewhere.
"""

import ipaddress
import secrets
import socket
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
        "img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
COOKIE = "attention-atlas"


@dataclass(frozen=True)
class Guard:
    """The rules of one server."""

    host: str = "127.0.0.1"  # what it is bound to
    token: str | None = None  # asked for on every request where there is one

    @classmethod
    def of(cls, host: str) -> "Guard":
        """Loopback needs no token; any other host gets one."""
        return cls(host, None if host in LOOPBACK else secrets.token_urlsafe(24))

    def knows_host(self, header: str | None) -> bool:
        """Whether a Host header names this server, so that no other site's name leads here."""
        name = _host_name(header)
        if name is None:
            return False
        if name in LOOPBACK or name == self.host:
            return True
        if self.host in ("0.0.0.0", "::"):  # noqa: S104  compared with, not bound to
            return _is_address(name) or name in (socket.gethostname(), socket.getfqdn())
        return False

    def admits(self, query: str | None, cookie: str | None) -> bool:
        """Whether the token came along, in the link or in the cookie that the link set."""
        if self.token is None:
            return True
        given = [one for one in (query, _cookie(cookie)) if one]
        return any(secrets.compare_digest(one.encode(), self.token.encode()) for one in given)


def is_own(origin: str | None, site: str | None, host: str | None) -> bool:
    """Whether a request that does something comes from our own page, or from no page at all."""
    if site not in (None, "same-origin", "none"):
        return False
    return origin is None or origin.partition("://")[2] == host


def _host_name(header: str | None) -> str | None:
    if not header:
        return None
    if header.startswith("["):
        return header[1:].partition("]")[0]
    name, _, port = header.partition(":")
    return name.lower() if not port or port.isdigit() else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookie(header: str | None) -> str | None:
    try:
        found = SimpleCookie(header or "").get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None
