"""tools/course.py, run for real on a tiny project that installs without a network."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ABSENT = "a-package-that-is-nowhere"
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1"
dependencies = [{needs}]
[dependency-groups]
pretrained = ["tiny"]
"""
BACKEND = """
import time, zipfile
from pathlib import Path

HERE = Path(__file__).parent
FILES = {
    "tiny.pth": str(HERE),
    "tiny-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n{needs}",
    "tiny-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "tiny-1.dist-info/RECORD": "",
}

def build_editable(folder, settings=None, metadata=None):
    if (HERE / "wait").exists():
        (HERE / "waiting").touch()
        while (HERE / "wait").exists():
            time.sleep(0.02)
    with zipfile.ZipFile(Path(folder) / "tiny-1-py3-none-any.whl", "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
    return "tiny-1-py3-none-any.whl"
"""
OFFLINE = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHONPATH"))}
OFFLINE |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}


FULL_DISK = """
import shutil, types
shutil.disk_usage = lambda path: types.SimpleNamespace(free=7e8)
"""


def tiny(folder):
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools/course.py", folder / "tools")
    (folder / "constraints.txt").touch()
    depend_on(folder)
    return folder


@pytest.fixture
def project(tmp_path):
    return tiny(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project that is set up; tests that change it take a copy."""
    folder = tiny(tmp_path_factory.mktemp("finished"))
    code, out, err = install(folder)
    assert (code, err) == (0, "") and "about 2 GB" in out
    return folder


@pytest.fixture
def whole(finished, project):
    """A project of its own that is set up: making each from nothing would take seconds."""
    shutil.copytree(finished / ".venv", project / ".venv", symlinks=True)
    stamp = project / ".venv/course.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"root": str(project)}))
    return project


def depend_on(project, *names):
    needs = "".join(f"Requires-Dist: {name}\\n" for name in names)
    (project / "backend.py").write_text(BACKEND.replace("{needs}", needs))
    (project / "pyproject.toml").write_text(PROJECT.format(needs=", ".join(f'"{name}"' for name in names)))


def start(project, before="", python=sys.executable):
    """Begin an install; `before` is Python that runs first, to stand in for another machine."""
    run = f"{before}\nimport runpy; runpy.run_path('tools/course.py', run_name='__main__')"
    command = [python, "-c", run, "install"] if before else [python, "tools/course.py", "install"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        return subprocess.Popen(command, cwd=project, env=OFFLINE, text=True, **pipes)
    finally:
        signal.signal(signal.SIGINT, heard)


def install(project, before="", python=sys.executable):
    """Exit code, printed text, and the failure's words of an install."""
    with start(project, before, python) as process:
        out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode, out, err


def pause_install(project):
    """An install, or the beginning of an update, stopped where pip builds the project."""
    (project / "constraints.txt").write_text("# changed\n")
    (project / "wait").touch()
    process = start(project)
    while not (project / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.02)
    return process


def test_the_second_time_there_is_nothing_to_do(finished):
    begin = time.perf_counter()
    assert install(finished) == (0, "", "")
    print(f"second set-up: {time.perf_counter() - begin:.2f} s")


def test_a_copied_folder_does_not_keep_the_venv_of_the_original(finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "copy", symlinks=True)
    _, out, _ = install(copy, FULL_DISK)  # stops before the slow part
    assert "its Python or folder has changed" in out and not (copy / ".venv").exists()


def test_no_network_is_one_sentence_and_leaves_a_finished_venv_as_it_was(whole):
    depend_on(whole, ABSENT)
    code, out, err = install(whole)
    assert code == 1 and "Bringing .venv up to date" in out
    assert err.startswith("pip could not reach the package index: check the network") and err.count("\n") == 1
    depend_on(whole)
    assert install(whole) == (0, "", "")


def test_after_no_network_the_first_time_the_next_try_begins_anew(project):
    depend_on(project, ABSENT)
    assert install(project)[0] == 1
    _, out, _ = install(project, FULL_DISK)  # stops before the slow part
    assert out.startswith(".venv is half-made") and not (project / ".venv").exists()


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_killed_set_up_recovers_once_what_it_left_running_has_ended(whole):
    with pause_install(whole) as killed:
        killed.kill()
    with start(whole) as again:
        assert "waiting for it to end" in again.stdout.readline()  # pip outlived the kill
        (whole / "wait").unlink()
        out, _ = again.communicate(timeout=120)
    assert again.returncode == 0 and out.startswith(".venv is half-made")
    assert install(whole) == (0, "", "")


@pytest.mark.skipif(os.name == "nt", reason="SIGINT")
def test_an_interrupted_set_up_is_one_sentence_and_leaves_no_stamp(whole):
    with pause_install(whole) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    (whole / "wait").unlink()  # what pip had begun to build waits for that, and then ends
    assert process.returncode == 1 and err.strip() == "Stopped. Run the same command again to begin anew."
    assert (whole / ".venv").exists() and not (whole / ".venv/course.json").exists()


def test_too_little_disk_is_one_sentence_with_both_sizes(project):
    code, out, err = install(project, FULL_DISK)
    assert (code, out) == (1, "") and "needs about 3 GB and 0.7 GB are free" in err and err.count("\n") == 1


def test_a_disk_that_fills_up_is_one_sentence(whole):
    (whole / "backend.py").write_text("raise OSError(28, 'No space left on device')")
    (whole / "constraints.txt").write_text("# changed\n")
    code, _, err = install(whole)
    assert code == 1 and err.startswith("The disk is too full") and err.count("\n") == 1


def test_a_python_without_venv_is_one_sentence(project):
    code, out, err = install(project, "import sys; sys.modules['ensurepip'] = None")
    assert (code, out) == (1, "") and "apt-get install python3-venv" in err and err.count("\n") == 1


def test_any_other_failure_is_one_sentence_that_names_the_log(whole):
    (whole / "constraints.txt").write_text("not a requirement\n")
    code, _, err = install(whole)
    log = whole / "build/install.log"
    assert code == 1 and "ERROR: Invalid requirement" in err and str(log) in err and err.count("\n") == 1
    assert "not a requirement" in log.read_text()


def test_open_before_install_is_one_sentence(project):
    command = [sys.executable, "tools/course.py", "open"]
    opened = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert opened.returncode == 1
    assert opened.stderr == "The course is not set up: run `python tools/course.py install` first.\n"


def older_pythons():
    names = ["python2", *(f"python3.{minor}" for minor in range(6, 11))]
    found = [shutil.which(name) for name in names]
    found += sorted(map(str, Path.home().glob(".pyenv/versions/[23].*/bin/python")))
    old = "import sys; print(sys.version_info < (3, 11))"
    runs = {p: subprocess.run([p, "-c", old], capture_output=True, text=True).stdout for p in found if p}
    return [python for python, out in runs.items() if out == "True\n"]


def test_a_wrong_python_is_one_sentence_with_both_versions(project):
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = pyproject["project"]["requires-python"].removeprefix(">=")
    sentence = rf"The course needs Python {needed} or newer, and \S+ is Python [23][\d.]+: .+\n"
    fake = "import sys; sys.version_info = (3, 9, 2)"
    refusals = [install(project, fake), *(install(project, python=python) for python in older_pythons())]
    for code, out, err in refusals:
        assert (code, out) == (1, "") and re.fullmatch(sentence, err)
