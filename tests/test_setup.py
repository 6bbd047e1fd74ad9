"""tools/course.py, run for real on a tiny project that installs without a network."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("course", ROOT / "tools/course.py")
course = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(course)

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
dependencies = [{dependencies}]
"""
BACKEND = """
import pathlib, zipfile

def build_editable(folder, settings=None, metadata=None):
    name = "tiny-1-py3-none-any.whl"
    info = "tiny-1.dist-info/"
    needs = "".join(f"Requires-Dist: {n}\\n" for n in DEPENDENCIES)
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n" + needs)
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/course.py", tmp_path / "tools")
    (tmp_path / "constraints.txt").touch()
    needs(tmp_path)
    return tmp_path


def needs(project, *dependencies):
    quoted = ", ".join(f'"{name}"' for name in dependencies)
    (project / "pyproject.toml").write_text(PROJECT.format(dependencies=quoted))
    (project / "backend.py").write_text(f"DEPENDENCIES = {list(dependencies)!r}\n{BACKEND}")


def offline():
    """The environment of a machine whose package index cannot be reached."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    return own | {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
    }


def install(project, python=sys.executable):
    command = [python, "tools/course.py", "install"]
    return subprocess.run(command, cwd=project, env=offline(), capture_output=True, text=True, timeout=120)


def test_the_first_time_it_installs_and_the_second_time_there_is_nothing_to_do(project):
    first = install(project)
    assert first.returncode == 0 and "about 2 GB" in first.stdout, first.stderr
    start = time.perf_counter()
    second = install(project)
    print(f"second set-up: {time.perf_counter() - start:.2f} s")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    (project / "constraints.txt").write_text("# changed\n")
    assert "making the environment" not in (third := install(project)).stdout and "is set up" in third.stdout


def test_a_half_made_environment_is_made_again(project):
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/bin/python").write_text("not a Python")
    again = install(project)
    assert again.returncode == 0 and "half-made" in again.stdout


def test_an_environment_of_your_own_is_kept(project):
    subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=project, check=True)
    (project / ".venv/mine.txt").touch()
    assert install(project).returncode == 0 and (project / ".venv/mine.txt").exists()


def test_a_killed_set_up_recovers(project):
    process = subprocess.Popen(
        [sys.executable, "tools/course.py", "install"], cwd=project, env=offline(), stdout=subprocess.DEVNULL
    )
    while not (project / ".venv").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(4)  # its child, still making the environment, ends
    again = install(project)
    assert again.returncode == 0 and "half-made" in again.stdout


def test_no_network_is_one_sentence_and_the_next_try_recovers(project):
    needs(project, "a-package-that-is-nowhere")
    failed = install(project)
    assert failed.returncode == 1
    assert failed.stderr == "Set-up: no network: the packages could not be fetched; connect and try again.\n"
    needs(project)
    assert install(project).returncode == 0


def older_pythons():
    found = [shutil.which(f"python3.{minor}") for minor in range(6, 11)] + [shutil.which("python2")]
    found += sorted(map(str, Path.home().glob(".pyenv/versions/[23].*/bin/python")))
    works = [
        path for path in found if path and subprocess.run([path, "-V"], capture_output=True).returncode == 0
    ]
    query = "import sys; print(sys.version_info < (3, 11))"
    return [
        path for path in works if subprocess.check_output([path, "-c", query], text=True).strip() == "True"
    ]


def test_a_wrong_python_is_one_sentence_with_both_versions(project):
    with pytest.raises(course.SetUpError, match=r"needs Python 3.11 or newer, and /usr/bin/python3 is 3.9;"):
        course.check_python((3, 9, 2), "/usr/bin/python3")
    for python in older_pythons():
        refused = install(project, python)
        assert refused.returncode == 1 and refused.stdout == "", python
        assert refused.stderr.startswith("Set-up: the course needs Python 3.11 or newer, and ")
        assert refused.stderr.count("\n") == 1


def test_a_full_disk_is_one_sentence_before_and_during():
    with pytest.raises(course.SetUpError, match=r"0.7 GB are free and about 3 GB are needed"):
        course.check_disk(0.7e9)
    assert course.reason("ERROR: Could not install: [Errno 28] No space left on device").startswith(
        "the disk is full"
    )


def test_a_python_without_venv_and_any_other_failure_are_one_sentence():
    assert "python3-venv" in course.reason(
        "The virtual environment was not created: ensurepip is not available."
    )
    sentence = course.reason("Collecting x\nERROR: No matching distribution found for x\n")
    assert (
        sentence
        == "the set-up failed: ERROR: No matching distribution found for x; all of it is in build/install.log"
    )


def test_make_without_python_is_one_sentence():
    if shutil.which("make") is None:
        pytest.skip("no make here")
    refused = subprocess.run(
        ["make", "course", "PYTHON=no-such-python"], cwd=ROOT, capture_output=True, text=True
    )
    assert (
        refused.returncode == 2
        and "there is no no-such-python; install Python 3.11 or newer" in refused.stdout
    )
