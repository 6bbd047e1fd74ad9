"""The guard that every kernel and subprocess of the tests runs under."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
LOOPBACK = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
for host in ("127.0.0.1", "localhost"):
    assert socket.getaddrinfo(host, server.getsockname()[1])
print(socket.create_connection(server.getsockname()).recv(5))
"""


def python(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, timeout=60, encoding="utf-8")


FOREIGN = {
    "192.0.2.1": "socket.socket().connect(('192.0.2.1', 80))",
    "2001:db8::1": "socket.socket(socket.AF_INET6).connect(('2001:db8::1', 80))",
    "example.org": "socket.getaddrinfo('example.org', 443)",
}


@pytest.mark.parametrize("address", FOREIGN)
def test_a_foreign_address_is_refused_by_name(address):
    last = python(f"import socket; {FOREIGN[address]}").stderr.strip().splitlines()[-1]
    assert last.startswith("OSError: the tests run offline:") and address in last


def test_loopback_works():
    assert python(LOOPBACK).stdout.strip() == "b'hello'"


def test_unix_sockets_work(tmp_path):
    done = python(
        "import socket; a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX);"
        f"a.bind({str(tmp_path / 's')!r}); a.listen(); b.connect({str(tmp_path / 's')!r}); print('connected')"
    )
    assert done.stdout.strip() == "connected", done.stderr
