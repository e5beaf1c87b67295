"""What is true of model servers whatever they serve: addresses and keys."""

import ipaddress
from urllib.parse import urlsplit

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent to servers that need no key; the client refuses to be built without one."""


def is_loopback(base_url: str) -> bool:
    """Whether a URL points at this machine, which no system proxy can reach."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
