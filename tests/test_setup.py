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
import zipfile
from pathlib import Path

import course
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
    "torch.py": "",
    "jupyterlab.py": "if __name__ == '__main__': import os; print(*os.environ)",
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
    stamp.write_text(
        json.dumps(json.loads(stamp.read_text(encoding="utf-8")) | {"root": str(project)}), encoding="utf-8"
    )
    return project


def depend_on(project, *names):
    needs = "".join(f"Requires-Dist: {name}\\n" for name in names)
    (project / "backend.py").write_text(BACKEND.replace("{needs}", needs), encoding="utf-8")
    (project / "pyproject.toml").write_text(
        PROJECT.format(needs=", ".join(f'"{name}"' for name in names)), encoding="utf-8"
    )


def start(project, before="", python=sys.executable, options=(), **variables):
    """Begin an install; `before` is Python that runs first, to stand in for another machine."""
    run = f"{before}\nimport runpy; runpy.run_path('tools/course.py', run_name='__main__')"
    command = [python, *(["-c", run] if before else ["tools/course.py"]), "install", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        return subprocess.Popen(
            command, cwd=project, env=OFFLINE | variables, text=True, **pipes, encoding="utf-8"
        )
    finally:
        signal.signal(signal.SIGINT, heard)


def install(project, before="", python=sys.executable, options=(), **variables):
    """Exit code, printed text, and the failure's words of an install."""
    with start(project, before, python, options, **variables) as process:
        out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode, out, err


def pause_install(project):
    """An install, or the beginning of an update, stopped where pip builds the project."""
    (project / "constraints.txt").write_text("# changed\n", encoding="utf-8")
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
    (whole / "backend.py").write_text("raise OSError(28, 'No space left on device')", encoding="utf-8")
    (whole / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    code, _, err = install(whole)
    assert code == 1 and err.startswith("The disk is too full") and err.count("\n") == 1


def test_a_python_without_venv_is_one_sentence(project):
    code, out, err = install(project, "import sys; sys.modules['ensurepip'] = None")
    assert (code, out) == (1, "") and "apt-get install python3-venv" in err and err.count("\n") == 1


def test_any_other_failure_is_one_sentence_that_names_the_log(whole):
    (whole / "constraints.txt").write_text("not a requirement\n", encoding="utf-8")
    code, _, err = install(whole)
    log = whole / "build/install.log"
    assert code == 1 and "ERROR: Invalid requirement" in err and str(log) in err and err.count("\n") == 1
    assert "not a requirement" in log.read_text(encoding="utf-8")


def open_lab(project, **variables):
    command = [sys.executable, "tools/course.py", "open"]
    return subprocess.run(
        command, cwd=project, env=OFFLINE | variables, capture_output=True, text=True, encoding="utf-8"
    )


def test_open_before_install_is_one_sentence(project):
    opened = open_lab(project)
    assert opened.returncode == 1
    assert opened.stderr == "The course is not set up: run `python tools/course.py install` first.\n"


def test_open_in_a_copied_folder_does_not_open_the_course_of_the_original(finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "copy", symlinks=True)
    assert open_lab(copy).stderr.startswith("The course is not set up")


# What lies elsewhere


BROKEN = "raise ImportError('not of this Python')"


def other_packages(folder, *names, **modules):
    """A folder as PYTHONPATH names it on robots and clusters: installed packages, and modules that shadow."""
    for name in names:
        about = folder / f"{name.replace('-', '_')}-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n", encoding="utf-8"
        )
    for name, text in modules.items():
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return str(folder)


def wheel(folder, name, version="1"):
    """An empty package as a file, which pip finds without an index."""
    folder.mkdir(exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    about = f"{stem}.dist-info"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as file:
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return folder


def installed(venv):
    """What pip has put into an environment."""
    (site,) = venv.glob("[lL]ib/**/site-packages")
    return {path.name.partition("-")[0] for path in site.glob("*.dist-info")} - {"pip", "setuptools"}


def test_packages_elsewhere_do_not_count_as_installed(whole, tmp_path):
    depend_on(whole, ABSENT)
    code, _, err = install(whole, PYTHONPATH=other_packages(tmp_path / "other", ABSENT))
    assert code == 1 and err.startswith("pip could not reach the package index")


def test_modules_elsewhere_do_not_stand_in_for_the_standard_library(finished, tmp_path):
    other = other_packages(tmp_path / "other", tomllib=BROKEN, argparse=BROKEN, ast=BROKEN)
    assert install(finished, PYTHONPATH=other) == (0, "", "")


def test_open_takes_jupyterlab_and_variables_of_its_own(finished, tmp_path):
    other = other_packages(tmp_path / "other", jupyterlab=BROKEN)
    foreign = dict.fromkeys(course.ASTRAY, "1") | {"PYTHONPATH": other, "PYTHONWARNINGS": "ignore"}
    del foreign["PYTHONHOME"], foreign["PYTHONPLATLIBDIR"]  # no Python starts where they point nowhere
    opened = open_lab(finished, **foreign)
    assert (opened.returncode, opened.stderr) == (0, "")
    assert "PATH" in opened.stdout.split() and not set(course.ASTRAY) & set(opened.stdout.split())


@pytest.mark.parametrize("place", ["variables", "file"])
def test_settings_of_pip_do_not_send_packages_elsewhere_but_its_sources_count(whole, tmp_path, place):
    other = dict.fromkeys(["target", "prefix", "root", "log", "constraint"], tmp_path / "other")
    settings = other | dict.fromkeys(["user", "no-deps", "dry-run", "pre"], "true") | {"quiet": "3"}
    file = f"[global]\nfind-links = {tmp_path}/gone\n[install]\nfind-links = {tmp_path}/wheels\n"
    variables = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "PIP_NO_INDEX": "1", "HOME": str(tmp_path)}
    if place == "file":
        file += "".join(f"{name} = {value}\n" for name, value in settings.items())
    else:
        variables |= {f"PIP_{name.upper().replace('-', '_')}": str(value) for name, value in settings.items()}
    (tmp_path / "pip.conf").write_text(file, encoding="utf-8")
    wheel(tmp_path / "wheels", ABSENT)
    depend_on(whole, ABSENT)
    code, _, err = install(whole, **variables)
    assert (code, err) == (0, "") and installed(whole / ".venv") == {"tiny", "a_package_that_is_nowhere"}
    assert not (tmp_path / "other").exists() and not (tmp_path / ".local").exists()


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [("PIP_CONFIG_FILE", "pip.conf", "target = /nowhere"), ("PIP_TIMEOUT", "banana", "'banana'")],
)
def test_settings_that_pip_cannot_read_are_one_sentence(whole, variable, value, reason):
    (whole / "pip.conf").write_text("target = /nowhere\n", encoding="utf-8")
    (whole / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    code, _, err = install(whole, **{variable: value})
    assert code == 1 and "failed while reading the settings of pip" in err and err.count("\n") == 1
    assert reason in err


def test_warnings_that_somebody_made_errors_do_not_stop_the_set_up(whole):
    (whole / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    code, _, err = install(whole, PYTHONWARNINGS="error")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        ("", "No module named 'torch'"),
        ('"torch.py": "raise OSError(\'no libcudart\')",', "OSError: no libcudart"),
        ('"torch.py": "import os; os._exit(7)",', "it ended with status 7"),
    ],
)
def test_a_set_up_whose_torch_does_not_import_is_one_sentence_and_no_set_up(whole, torch, reason):
    backend = whole / "backend.py"
    backend.write_text(
        backend.read_text(encoding="utf-8").replace('"torch.py": "",', torch), encoding="utf-8"
    )
    (whole / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    code, out, err = install(whole)
    assert code == 1 and "The course is set up" not in out and not (whole / ".venv/course.json").exists()
    assert f"failed while importing torch, jupyterlab: {reason}" in err.replace("ModuleNotFoundError: ", "")
    assert err.count("\n") == 1


def test_a_project_that_pip_cannot_read_is_one_sentence_with_the_reason(whole):
    (whole / "pyproject.toml").write_text("[[[", encoding="utf-8")
    code, _, err = install(whole)
    assert code == 1 and "TOMLDecodeError" in err and err.count("\n") == 1


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_keeps_the_same_variables_from_what_it_runs():
    foreign = dict.fromkeys(course.ASTRAY, "1")
    command = ["make", "--eval", "show: ; @env", "show"]
    shown = subprocess.run(
        command, cwd=ROOT, env=os.environ | foreign, capture_output=True, text=True, encoding="utf-8"
    )
    names = {line.partition("=")[0] for line in shown.stdout.splitlines()}
    assert "PATH" in names and not names & set(course.ASTRAY)


# What lies in the way


@pytest.mark.parametrize("text", ["", "null", "[]", "7", "{}", '{"root": 1}', '"whole"', '{"extras": 3}'])
def test_a_stamp_that_is_none_is_no_set_up(whole, text):
    (whole / ".venv/course.json").write_text(text, encoding="utf-8")
    assert open_lab(whole).stderr.startswith("The course is not set up")
    _, out, _ = install(whole, FULL_DISK)  # stops before the slow part
    assert out.startswith(".venv is half-made") and not (whole / ".venv").exists()


def test_a_stamp_of_a_newer_layout_is_brought_up_to_date(whole):
    stamp = whole / ".venv/course.json"
    stamp.write_text(
        json.dumps(json.loads(stamp.read_text(encoding="utf-8")) | {"layout": 2}), encoding="utf-8"
    )
    code, out, _ = install(whole)
    assert code == 0 and out.startswith("Bringing .venv up to date")
    assert install(whole) == (0, "", "")


def test_a_venv_that_has_lost_its_packages_is_no_set_up(whole):
    (site,) = (whole / ".venv").glob("[lL]ib/**/site-packages")
    (site / "torch.py").unlink()
    assert open_lab(whole).stderr.startswith("The course is not set up")
    _, out, _ = install(whole, FULL_DISK)  # stops before the slow part
    assert out.startswith(".venv is half-made")


TOLD = """
import os, shutil
def tell(path, remove=shutil.rmtree):
    print(path.name, os.listdir(path))
    remove(path)
shutil.rmtree = tell
"""


def test_what_an_interrupted_removal_leaves_is_still_known(whole):
    (whole / ".venv/course.json").unlink()
    _, out, _ = install(whole, TOLD + FULL_DISK)
    assert ".venv ['course.begun']" in out.splitlines() and not (whole / ".venv").exists()


def test_a_venv_that_somebody_else_made_is_kept(project):
    (project / ".venv").mkdir()
    (project / ".venv/mine.txt").write_text("my torch", encoding="utf-8")
    for _ in range(2):
        code, out, err = install(project)
        assert (code, out) == (1, "") and "was not made by this set-up" in err and err.count("\n") == 1
    assert (project / ".venv/mine.txt").read_text(encoding="utf-8") == "my torch"


def contents(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("options", [[], ["--newest"], ["--floor"]], ids=" ".join)
@pytest.mark.parametrize("link", ["folder", "parent", "dangling"])
def test_an_environment_that_a_link_leads_to_is_never_touched(
    finished, project, tmp_path_factory, link, options
):
    """A second clone, a big disk, a cluster: what lies there belongs to others, whatever mark is in it."""
    depend_on(project, "torch>=1.10")
    others = tmp_path_factory.mktemp("elsewhere") / "environment"
    place = project / {"--newest": "build/newest", "--floor": "build/floor"}.get("".join(options), ".venv")
    if link != "dangling":
        shutil.copytree(finished / ".venv", others / (place.name if link == "parent" else "."), symlinks=True)
        assert (others / (place.name if link == "parent" else ".") / "course.begun").exists()
    linked = place.parent if link == "parent" and options else place
    linked.parent.mkdir(exist_ok=True)
    linked.symlink_to(others, target_is_directory=True)
    before = contents(others)
    code, out, err = install(project, options=options)
    reason = f"{place} leads to {others / place.relative_to(linked)}, and only what lies in {project} itself"
    assert code == 1 and reason in err and err.count("\n") == 1 and "removing" not in out
    left = contents(others)
    left.pop(others / "install.lock", None)
    assert left == before and linked.is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize(
    "inside", ["lib", "lib/python*/site-packages", "lib/python*/site-packages/tiny-1.dist-info"]
)
def test_an_environment_whose_packages_lie_elsewhere_is_not_updated(whole, tmp_path_factory, inside):
    (link,) = (whole / ".venv").glob(inside)
    others = tmp_path_factory.mktemp("elsewhere") / "of another clone"
    link.rename(others)
    link.symlink_to(others, target_is_directory=True)
    (whole / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    before = contents(others)
    code, _, err = install(whole)
    assert code == 1 and f"{link} leads to {others}, and only what lies in" in err and err.count("\n") == 1
    assert contents(others) == before


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_that_leads_to_itself_is_one_sentence(project):
    (project / ".venv").symlink_to(".venv")
    code, _, err = install(project)
    assert code == 1 and err.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_lock_and_log_change_nothing_that_they_lead_to(whole, tmp_path_factory):
    mine = tmp_path_factory.mktemp("elsewhere") / "mine.txt"
    mine.write_text("mine", encoding="utf-8")
    (whole / "build").mkdir()
    for name in ("install.lock", "install.log"):
        (whole / "build" / name).symlink_to(mine)
    depend_on(whole, ABSENT)
    code, _, err = install(whole, PIP_NO_INDEX="1")
    assert code == 1 and "its full output is in" in err
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("listed", [True, False], ids=["as Linux lists mounts", "elsewhere"])
@pytest.mark.parametrize(
    "folder", ["build", "build/of many", "build/of many/old"], ids=["below", "at", "above"]
)
def test_a_folder_with_a_mount_at_it_below_it_or_above_it_is_not_emptied(tmp_path, folder, listed):
    mine = tmp_path / "my disk/old/mine.txt"
    mine.parent.mkdir(parents=True)
    mine.touch()
    place = tmp_path / "build/of many"
    place.mkdir(parents=True)
    lines = ["import course", "course.ROOT = course.Path.cwd()"]
    lines += [] if listed else ["course.mounted = list"]
    clear = "; ".join([*lines, f"course.clear(course.ROOT / {folder!r})"])
    kind = f'mount --bind "{tmp_path}/my disk" "$1"'
    if not listed:  # another disk, which every system tells from its own
        kind = f'mount -t tmpfs none "$1" && cp -r "{tmp_path}/my disk/old" "$1"'
    script = f'{kind} && echo mounted && "$2" -c "$3"; ls "$1/old"'
    run = (
        subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", place, sys.executable, clear],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": str(ROOT / "tools")},
        )
        if shutil.which("unshare")
        else None
    )
    if run is None or "mounted" not in run.stdout:
        pytest.skip("nothing can be mounted here")
    assert f"{place} is a mount, and only what lies in" in run.stderr and run.stdout.endswith("mine.txt\n")


@pytest.mark.skipif(os.name == "nt", reason="SIGTERM")
def test_a_terminated_set_up_is_one_sentence_and_leaves_no_stamp(whole):
    with pause_install(whole) as process:
        process.terminate()
        _, err = process.communicate(timeout=60)
    (whole / "wait").unlink()
    assert process.returncode == 1 and err.strip() == "Stopped. Run the same command again to begin anew."
    assert not (whole / ".venv/course.json").exists()


def test_a_full_disk_of_temporary_files_is_named(whole, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    small = f"free=1e6 if str(path) == {str(temporary)!r} else 9e10"
    (whole / "backend.py").write_text("raise OSError(28, 'No space left on device')", encoding="utf-8")
    (whole / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    code, _, err = install(whole, FULL_DISK.replace("free=7e8", small), TMPDIR=str(temporary))
    assert code == 1 and f"0.0 GB are free at {temporary};" in err and err.count("\n") == 1


# The newest versions


def test_the_newest_versions_come_anew_without_constraints_and_leave_the_venv_alone(whole):
    (whole / "constraints.txt").write_text("tiny == 2\n", encoding="utf-8")
    (whole / "build/newest").mkdir(parents=True)
    (whole / "build/newest/course.begun").touch()
    (whole / "build/newest/old.txt").touch()
    before = sorted((path, path.stat().st_mtime) for path in (whole / ".venv").rglob("*"))
    code, out, err = install(whole, options=["--newest"])
    assert (code, err) == (0, "") and out.endswith("The newest versions are set up in build/newest.\n")
    assert installed(whole / "build/newest") == {"tiny"} and not (whole / "build/newest/old.txt").exists()
    assert sorted((path, path.stat().st_mtime) for path in (whole / ".venv").rglob("*")) == before


def test_the_floor_is_the_oldest_torch_that_is_allowed_and_the_newest_of_the_rest(whole, tmp_path):
    for version in ("1.2", "1.10", "2.0"):
        for name in ("torch", ABSENT):
            wheel(tmp_path / "wheels", name, version)
    depend_on(whole, "torch>=1.10", f"{ABSENT}>=1.2")
    (whole / "constraints.txt").write_text(f"torch == 2.0\n{ABSENT} == 1.2\n", encoding="utf-8")
    sources = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    code, out, err = install(whole, options=["--floor"], **sources)
    assert (code, err) == (0, "")
    assert out.endswith("The newest versions, but torch==1.10, are set up in build/floor.\n")
    (site,) = (whole / "build/floor").glob("[lL]ib/**/site-packages")
    found = {path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info")}
    assert {"torch-1.10", "a_package_that_is_nowhere-2.0", "tiny-1"} <= found
    assert installed(whole / ".venv") == {"tiny"}


def test_nothing_is_both_newest_and_floor(whole):
    code, _, err = install(whole, options=["--newest", "--floor"])
    assert code == 2 and "not allowed with argument" in err and not (whole / "build/newest").exists()


def older_pythons():
    names = ["python2", *(f"python3.{minor}" for minor in range(6, 11))]
    found = [shutil.which(name) for name in names]
    found += sorted(map(str, Path.home().glob(".pyenv/versions/[23].*/bin/python")))
    old = "import sys; print(sys.version_info < (3, 11))"
    runs = {
        p: subprocess.run([p, "-c", old], capture_output=True, text=True, encoding="utf-8").stdout
        for p in found
        if p
    }
    return [python for python, out in runs.items() if out == "True\n"]


def test_a_wrong_python_is_one_sentence_with_both_versions(project):
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = pyproject["project"]["requires-python"].removeprefix(">=")
    sentence = rf"The course needs Python {needed} or newer, and \S+ is Python [23][\d.]+: .+\n"
    fake = "import sys; sys.version_info = (3, 9, 2)"
    refusals = [install(project, fake), *(install(project, python=python) for python in older_pythons())]
    for code, out, err in refusals:
        assert (code, out) == (1, "") and re.fullmatch(sentence, err)
