"""Who may send requests, and what may the page do?

A page of another site must not read from the server of this machine (Host is checked, nothing is
shared across origins) nor send it actions (they must be JSON from our own origin). Requests from
another machine need a token. The page itself may run only its own scripts and load nothing from
other sites.
"""

import base64
import hashlib
import ipaddress
import secrets
import socket
from dataclasses import dataclass

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' 'sha256-{early}'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def headers(early: bytes) -> dict[str, str]:
    """Return the headers of all answers; `early` is the one script that may stand inside a page."""
    digest = base64.b64encode(hashlib.sha256(early).digest()).decode()
    return {"Content-Security-Policy": _POLICY.format(early=digest), **_HEADERS}


@dataclass(frozen=True)
class Guard:
    """The rules of one server."""

    host: str = "127.0.0.1"  # what it is bound to
    token: str | None = None  # needed on every request; None: no token is needed

    @classmethod
    def of(cls, host: str) -> "Guard":
        """Make the rules of a host: loopback needs no token, any other host gets one."""
        return cls(host, None if host in LOOPBACK else secrets.token_urlsafe(24))

    def knows_host(self, header: str | None) -> bool:
        """Tell whether a Host header names this server, and not another site."""
        name = _host_name(header)
        if name is None:
            return False
        if name in LOOPBACK or name == self.host:
            return True
        if self.host in ("0.0.0.0", "::"):  # noqa: S104  compared with, not bound to
            return _is_address(name) or name in (socket.gethostname(), socket.getfqdn())
        return False

    @property
    def cookie(self) -> str:
        """Get the name of the cookie. Each server has its own: cookies do not tell ports apart."""
        return "attention-atlas-" + hashlib.sha256((self.token or "").encode()).hexdigest()[:12]

    def admits(self, query: str | None, cookies: str | None) -> bool:
        """Tell whether a request has the token, in the link or in the cookie that the link set."""
        if self.token is None:
            return True
        given = [token for token in (query, _cookie(cookies, self.cookie)) if token]
        return any(secrets.compare_digest(token.encode(), self.token.encode()) for token in given)


def is_own(origin: str | None, site: str | None, host: str | None) -> bool:
    """Tell whether an action comes from our own page, or from no page at all."""
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


def _cookie(header: str | None, name: str) -> str | None:
    """Read one cookie; others of the same host may hold anything, JSON for instance."""
    for part in (header or "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value.strip('"')
    return None
