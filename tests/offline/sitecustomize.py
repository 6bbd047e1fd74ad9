"""Refuses every address but loopback, in every Python that has this folder on its PYTHONPATH.

Where the environment has ROUNDING, it rounds otherwise, too: see tests/rounding.py.
Python imports a module of this name when it starts, before anything else.
"""

import ipaddress
import os
import socket

NAMES = {None, "", "localhost", "0.0.0.0", "::"}


def _text(host):
    return host.decode() if isinstance(host, bytes) else host


def is_local(host):
    """Whether a host name or address is this machine's loopback."""
    if _text(host) in NAMES:
        return True
    try:
        return ipaddress.ip_address(_text(host)).is_loopback
    except ValueError:  # a name
        return False


def _refuse(address):
    raise OSError(f"the tests run offline: {address!r} is not loopback")


def _guard(name):
    original = getattr(socket.socket, name)

    def guarded(self, *arguments):
        address = arguments[-1]  # of connect(address), connect_ex(address), sendto(data, [flags,] address)
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_local(address[0]):
            _refuse(address)
        return original(self, *arguments)

    setattr(socket.socket, name, guarded)


def _guarded_getaddrinfo(host, *arguments, original=socket.getaddrinfo, **options):
    if not is_local(host):
        _refuse(host)
    return original(host, *arguments, **options)


for _name in ("connect", "connect_ex", "sendto"):
    _guard(_name)
socket.getaddrinfo = _guarded_getaddrinfo

if "ROUNDING" in os.environ:
    import rounding  # noqa: F401
