"""A process that runs somebody else's answers: no network, no other programs, limited memory and time, no large files.

It keeps accidents apart: an endless loop, a crash, a text of gigabytes, a download. It is no prison: who means
harm can read and write what its user can, call the system below Python, and change the verdict from inside. For
strangers' files take a container or a virtual machine as well. Memory is limited on Linux only, and Windows has
no limit of files.
"""

import ctypes
import math
import os
import signal
import sys
import time
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

REFUSED = (
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname",
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
    "os.startfile", "os.kill", "os.killpg", "pty.spawn", "webbrowser.open",
)  # fmt: skip
PR_SET_PDEATHSIG, CLONE_NEWUSER, CLONE_NEWNET = 1, 0x10000000, 0x40000000  # as Linux numbers them
LARGEST_FILE = 2**26


def put_up(memory: int, seconds: float, parent: int) -> None:
    """From here on, for as long as this process lasts.

    Args:
        memory: bytes that may be taken beyond what is held by now.
        seconds: of computing, in case nobody is left to end it in time.
        parent: process id of whoever has started it; on Linux both end together.
    """
    if sys.platform == "linux":
        system = ctypes.CDLL(None)
        system.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # whoever has started it was killed: end too
        if os.getppid() != parent:  # killed already
            os._exit(1)
        system.unshare(CLONE_NEWUSER | CLONE_NEWNET)  # a network of its own, where that is allowed
        held = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + memory, held + memory))
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    sys.addaudithook(refuse)


def refuse(event: str, arguments: tuple) -> None:
    """An audit hook: there is no way to take it back."""
    if event in REFUSED:
        raise PermissionError(f"{event} is not allowed while answers are graded")
