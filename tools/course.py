"""Set up the course and open it, with Python's own venv and pip, which keeps to its user's settings.

    python tools/course.py install [--with test] [--with scenes] [--newest]
    python tools/course.py install --floor
    python tools/course.py open

install makes .venv, or brings it up to date, and does nothing when it already is. --newest and --floor make
another environment in build, without constraints.txt: the newest versions, or the library alone with what its
tests need and the oldest torch that it allows.
Standard library only. The whole file parses on Python 2.7, so that a Python that is too old gets a sentence.
"""

import os
import sys

if sys.version_info < (3, 11):
    sys.exit(
        "The course needs Python 3.11 or newer, and {} is {}.{}: name a newer one, as in `make course "
        "PYTHON=python3.12` or `py -3.12 tools/course.py install`.".format(sys.executable, *sys.version_info)
    )

import argparse
import hashlib
import json
import re
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
BUILD = ROOT / "build"
PROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "constraints.txt"
MARK = "course.json"  # in every environment made here: what it was made from, once it is whole
EXTRAS = ("book", "corpora", "scenes", "test")  # extras and groups of pyproject.toml

# Nothing leads Python or pip out of the environment; where pip finds packages is its user's choice.
PIP = ["-m", "pip", "install", "--no-user", "--target=", "--disable-pip-version-check"]
ASTRAY = re.compile(
    r"PYTHON[A-Z]|__PYVENV_LAUNCHER__$|VIRTUAL_ENV$|PIP_(TARGET|PREFIX|ROOT|USER|PYTHON|NO_DEPS)$"
)


def install(venv, extras, *options):
    """Make an environment with these extras; .venv keeps those it has, and is left alone where it has all."""
    with lock():
        made = stamp() if venv == VENV else {}
        extras = sorted(set(made.get("extras", [])).union(extras))
        digest = hashlib.sha256(PROJECT.read_bytes() + CONSTRAINTS.read_bytes()).hexdigest()
        wanted = {"root": str(ROOT), "requirements": digest, "extras": extras}
        if made == wanted:
            return
        if not made:
            make_venv(venv)
        install_packages(venv, ["-e", "."], extras, *options)
        (venv / MARK).write_text(json.dumps(wanted), encoding="utf-8")
    print("The course is set up in {}.".format(venv))


def open_lab():
    """Run JupyterLab on chapter 00 until Ctrl-C."""
    if not stamp():
        sys.exit("The course is not set up: run `python tools/course.py install` first.")
    print("JupyterLab runs until you press Ctrl-C here. If no browser opens, open this address in one:")
    command = [python_of(VENV), "-m", "jupyterlab", "--config", str(ROOT / "tools" / "jupyter_lab_config.py")]
    if os.name != "nt":
        os.execv(command[0], command)
    signal.signal(signal.SIGINT, lambda *_: None)  # Windows cannot replace a process; Ctrl-C is JupyterLab's
    sys.exit(subprocess.call(command))


def stamp():
    """What .venv was made from; {} if it is not whole, was made in another folder, or does not run."""
    code = "from importlib.util import find_spec; assert find_spec('torch') and find_spec('jupyterlab')"
    try:
        made = json.loads((VENV / MARK).read_text(encoding="utf-8"))
        whole = not subprocess.call([python_of(VENV), "-I", "-c", code], stderr=subprocess.DEVNULL)
    except (OSError, ValueError):
        return {}
    return made if whole and made.get("root") == str(ROOT) else {}


def lock():
    """A file that one set-up at a time holds, while others wait."""
    BUILD.mkdir(exist_ok=True)
    held = (BUILD / "install.lock").open("ab")
    if os.name != "nt":
        import fcntl

        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is still running in this folder: waiting for it to end.")
            fcntl.flock(held, fcntl.LOCK_EX)
    return held


def make_venv(venv):
    """Make an empty environment, in place of one that was made here; any other is kept, and refused."""
    if venv.exists() and not (venv / MARK).exists():
        sys.exit("{} was not made by this set-up: rename it, and run the same command again.".format(venv))
    clear(venv)
    print("Making {}: about 2 GB (more with CUDA), a few minutes.".format(venv))
    venv.mkdir()
    (venv / MARK).write_text("{}", encoding="utf-8")
    run(sys._base_executable, "-m", "venv", str(venv))  # not by .venv's own Python, which is gone


def clear(folder):
    """Remove a folder with all that it holds, but not what a link leads to."""
    target = os.path.realpath(str(folder))
    if target != str(folder):
        sys.exit("{} leads to {}, which stays: remove the link, and run this again.".format(folder, target))
    doomed = BUILD / "removed {}".format(folder.name)
    shutil.rmtree(str(doomed), ignore_errors=True)
    if folder.exists():
        folder.rename(doomed)  # at once: what an interrupt leaves is no half of it
        shutil.rmtree(str(doomed))


def install_packages(venv, course, names, *options):
    """Install the course, as pip names it, and these extras and groups; see that it can be imported."""
    pip = [python_of(venv)] + PIP + list(options)
    os.environ["PIP_NO_DEPS"] = "0"  # whatever pip's settings say
    run(*pip + course + [need for name in names for need in needs(name)])
    run(*pip + ["--no-deps"] + needs("pretrained"))  # only its weights are used
    run(python_of(venv), "-I", "-c", "import torch" if names == ["library"] else "import torch, jupyterlab")


def needs(name):
    """What an extra or a group asks for, and the groups that it includes; an older pip knows no groups."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    found = []
    for need in (project["project"]["optional-dependencies"] | project["dependency-groups"])[name]:
        found += needs(need["include-group"]) if isinstance(need, dict) else [need]
    return found


def python_of(venv):
    """The Python of an environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def run(*command):
    """Run a command, and exit if it fails: it has said why."""
    if subprocess.call(command, cwd=ROOT):
        why = "The lines above say why; often the network, a proxy or a full disk is in the way."
        sys.exit("Set-up failed. {} Correct that and run the same command again.".format(why))


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Set up the course in .venv, and open it.")
    parser.add_argument("command", choices=["install", "open"])
    parser.add_argument("--with", dest="extras", action="append", default=[], choices=EXTRAS)
    apart = parser.add_mutually_exclusive_group()
    apart.add_argument("--newest", action="store_true", help="in build/newest, without constraints.txt")
    apart.add_argument("--floor", action="store_true", help="in build/floor: the library, the oldest torch")
    arguments = parser.parse_args()
    whole = ["course"] + arguments.extras
    sys.stdout.reconfigure(line_buffering=True, errors="replace")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    for name in filter(ASTRAY.match, list(os.environ)):
        del os.environ[name]
    try:
        if arguments.command == "open":
            open_lab()
        elif arguments.newest:
            install(BUILD / "newest", whole)
        elif arguments.floor:
            oldest = re.search("torch>=[0-9.]+", PROJECT.read_text(encoding="utf-8")).group()
            install(BUILD / "floor", ["library"], oldest.replace(">=", "=="))
        else:
            install(VENV, whole, "-c", str(CONSTRAINTS))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again to begin anew.")
    except OSError as error:
        sys.exit("Set-up failed: {}. Correct that and run the same command again.".format(error))


if __name__ == "__main__":
    main()
