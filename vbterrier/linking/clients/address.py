"""Addresses that a user names: checked before anything is sent, and free of secrets, so that messages can show them."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from vbterrier.errors import ParameterError

_SIGNS = re.compile(r"[\x21-\x7e]+")


def require_address(address: str, what: str) -> None:
    """Check an address of http or https.

    Raises
    ------
    ParameterError
        Another scheme, no host, a port that is none, or a password, a query or a fragment, which are not repeated.

    >>> require_address("example.org", "endpoint")
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: endpoint: wanted https://host/path or http://host/path, with a host
    """
    if not isinstance(address, str) or not _SIGNS.fullmatch(address):
        raise ParameterError(f"{what}: wanted an address in ASCII without blanks, as https://host/path")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in {"http", "https"}:
        raise ParameterError(f"{what}: wanted https://host/path or http://host/path, with a host")
    if "@" in parts.netloc or "?" in address or "#" in address:
        raise ParameterError(
            f"{what}: wanted https://host/path without user, password, query or fragment; "
            "a token goes in token=..., parameters in those of the client"
        )


def is_private(address: str) -> bool:
    """Whether nobody on the way can read what is sent there: https, or this machine itself.

    >>> is_private("http://127.0.0.1:8080/tag"), is_private("http://example.org/tag")
    (True, False)
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme == "https" or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
