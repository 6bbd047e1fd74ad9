"""A process that runs one learner's answers: no network, no other programs, limited memory and time, no large files.

It keeps accidents apart: an endless loop, a crash, a text of gigabytes, a download. It is no prison: whoever means
harm can read and write what its user can, call the system below Python, and change the verdict from inside. For
strangers' files take a container or a virtual machine as well. Memory is limited on Linux only, and Windows has
no limit of files.
"""

import ctypes
import json
import math
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from linformer_from_scratch.course.exercises.grader.grading import Graded, examine

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


def restrict_process(memory: int, seconds: float) -> None:
    """Restrict this process from here on, for as long as it lasts.

    Args:
        memory: bytes that may be taken beyond what is held by now.
        seconds: of computing, in case nobody is left to end it in time.
    """
    if sys.platform == "linux":
        system = ctypes.CDLL(None)
        system.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # when the grader is killed, end too
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


def main(file: str, seconds: str, memory: str, number: str) -> None:
    """Examine one file. Each line of output is a Graded as JSON, the last one counts; answers print into nothing."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ["HOME"] = os.getcwd()

    def say(graded: Graded) -> None:
        print(json.dumps(asdict(graded)), file=output, flush=True)

    restrict_process(int(memory), float(seconds))
    examine(Path(file), None if number == "None" else int(number), say)
    os._exit(0)  # whatever was left running


if __name__ == "__main__":
    main(*sys.argv[1:])
