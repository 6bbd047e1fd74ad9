"""tools/course.py, run for real on a tiny project that installs offline: one case a class of error."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
[project.optional-dependencies]
course = []
[dependency-groups]
pretrained = ["tiny"]
tools = [{needs}]
test = [{{ include-group = "tools" }}]
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
FULL_DISK = "import shutil, types; shutil.disk_usage = lambda path: types.SimpleNamespace(free=7e8)"


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
    """A project that is set up, for `whole` to copy: to make each from nothing takes many seconds."""
    folder = tiny(tmp_path_factory.mktemp("finished"))
    code, out, err = install(folder)
    assert (code, err) == (0, "") and "about 2 GB" in out
    return folder


@pytest.fixture
def whole(finished, project):
    """A project of its own that is set up."""
    shutil.copytree(finished / ".venv", project / ".venv", symlinks=True)
    stamp = project / ".venv/course.json"
    facts = json.loads(stamp.read_text(encoding="utf-8")) | {"root": str(project)}
    stamp.write_text(json.dumps(facts), encoding="utf-8")
    return project


def depend_on(project, *names):
    """Let the project, and its group of tools, need these packages."""
    needs = "".join(f"Requires-Dist: {name}\\n" for name in names)
    (project / "backend.py").write_text(BACKEND.replace("{needs}", needs), encoding="utf-8")
    needs = ", ".join(f'"{name}"' for name in names)
    (project / "pyproject.toml").write_text(PROJECT.format(needs=needs), encoding="utf-8")


def start(project, before="", python=sys.executable, options=(), **variables):
    """Begin an install; `before` is Python that runs first, to stand in for another machine."""
    run = f"{before}\nimport runpy; runpy.run_path('tools/course.py', run_name='__main__')"
    command = [python, *(["-c", run] if before else ["tools/course.py"]), "install", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    return subprocess.Popen(command, cwd=project, env=OFFLINE | variables, **pipes)


def install(project, before="", python=sys.executable, options=(), **variables):
    """Exit code, printed text, and the failure's words of an install."""
    with start(project, before, python, options, **variables) as process:
        out, err = process.communicate(timeout=120)
    assert "Traceback" not in err and err.count("\n") <= 1
    return process.returncode, out, err


def open_lab(project, **variables):
    command = [sys.executable, "tools/course.py", "open"]
    return subprocess.run(
        command, cwd=project, env=OFFLINE | variables, capture_output=True, encoding="utf-8"
    )


def wheel(folder, name, version="1"):
    """An empty package as a file, which pip finds without an index."""
    folder.mkdir(exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    about = f"{stem}.dist-info"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as file:
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")


def installed(venv):
    """What pip has put into an environment."""
    (site,) = venv.glob("[lL]ib/**/site-packages")
    names = {path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info")}
    return {name for name in names if not name.startswith(("pip-", "setuptools-"))}


def test_the_second_time_there_is_nothing_to_do_and_a_copied_folder_is_set_up_anew(whole, tmp_path_factory):
    assert install(whole) == (0, "", "")
    copy = shutil.copytree(whole, tmp_path_factory.mktemp("copy") / "course", symlinks=True)
    assert open_lab(copy).stderr == "The course is not set up: run `python tools/course.py install` first.\n"
    _, out, _ = install(copy, FULL_DISK)  # stops before the slow part
    assert "its Python or folder has changed" in out and not (copy / ".venv").exists()


def test_no_network_is_one_sentence_and_leaves_a_finished_venv_as_it_was(whole):
    depend_on(whole, ABSENT)
    code, out, err = install(whole)
    assert code == 1 and "Bringing .venv up to date" in out
    assert err.startswith("pip could not reach the package index: the network, or a proxy")
    assert "127.0.0.1" in (whole / "build/install.log").read_text(encoding="utf-8")
    depend_on(whole)
    assert install(whole) == (0, "", "")


@pytest.mark.skipif(os.name == "nt", reason="SIGINT")
def test_an_interrupted_set_up_is_one_sentence_and_the_next_one_mends_it(project):
    (project / "wait").touch()
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        process = start(project)
    finally:
        signal.signal(signal.SIGINT, heard)
    with process:
        while not (project / "waiting").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    (project / "wait").unlink()
    assert process.returncode == 1 and err.strip() == "Stopped. Run the same command again to begin anew."
    assert open_lab(project).stderr.startswith("The course is not set up")
    code, out, _ = install(project)
    assert code == 0 and out.startswith(".venv is unfinished") and installed(project / ".venv") == {"tiny-1"}


@pytest.mark.parametrize("damage", ["a stamp that is none", "a package that is gone"])
def test_a_damaged_venv_is_no_set_up_and_is_made_again(whole, damage):
    if damage == "a stamp that is none":
        (whole / ".venv/course.json").write_text("[]", encoding="utf-8")
    else:
        (torch,) = (whole / ".venv").glob("[lL]ib/**/site-packages/torch.py")
        torch.unlink()
    assert open_lab(whole).stderr.startswith("The course is not set up")
    _, out, _ = install(whole, FULL_DISK)  # stops before the slow part
    assert out.startswith(".venv is unfinished") and not (whole / ".venv").exists()


def test_too_little_disk_is_one_sentence_with_both_sizes(project):
    code, out, err = install(project, FULL_DISK)
    assert (code, out) == (1, "") and "needs about 3 GB and 0.7 GB are free" in err


def test_a_python_without_venv_is_one_sentence(project):
    code, out, err = install(project, "import sys; sys.modules['ensurepip'] = None")
    assert (code, out) == (1, "") and "apt-get install python3-venv" in err


def test_any_other_failure_of_pip_is_one_sentence_that_names_the_log(whole):
    (whole / "constraints.txt").write_text("not a requirement\n", encoding="utf-8")
    code, _, err = install(whole)
    log = whole / "build/install.log"
    assert code == 1 and "ERROR: Invalid requirement" in err and str(log) in err
    assert "not a requirement" in log.read_text(encoding="utf-8")


def test_a_torch_that_does_not_import_is_one_sentence_and_no_set_up(project):
    backend = project / "backend.py"
    text = backend.read_text(encoding="utf-8")
    backend.write_text(
        text.replace('"torch.py": ""', '"torch.py": "raise OSError(\'no libcudart\')"'), encoding="utf-8"
    )
    code, out, err = install(project)
    assert code == 1 and "The course is set up" not in out and not (project / ".venv/course.json").exists()
    assert "failed while importing torch, jupyterlab: OSError: no libcudart" in err


def test_variables_of_python_and_pip_lead_nothing_astray_but_the_sources_of_pip_count(whole, tmp_path):
    other = tmp_path / "other"
    foreign = {"PYTHONPATH": str(other), "PYTHONWARNINGS": "error", "PIP_TARGET": str(other), "PIP_USER": "1"}
    wheel(tmp_path / "wheels", ABSENT)
    (other / "a_package_that_is_nowhere-1.dist-info").mkdir(parents=True)
    depend_on(whole, ABSENT)
    sources = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    code, _, err = install(whole, **sources, **foreign)
    assert (code, err) == (0, "")
    assert installed(whole / ".venv") == {"tiny-1", "a_package_that_is_nowhere-1"}
    opened = open_lab(whole, **foreign)
    assert (opened.returncode, opened.stderr) == (0, "")
    assert "PATH" in opened.stdout.split() and not set(foreign) & set(opened.stdout.split())


def test_a_group_is_installed_with_those_that_it_includes(project, tmp_path):
    wheel(tmp_path / "wheels", "tool")
    text = (project / "pyproject.toml").read_text(encoding="utf-8")
    (project / "pyproject.toml").write_text(text.replace("tools = []", 'tools = ["tool"]'), encoding="utf-8")
    sources = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    assert install(project, options=["--with", "test"], **sources)[0] == 0
    assert installed(project / ".venv") == {"tiny-1", "tool-1"}
    assert install(project, options=["--with", "test"], **sources) == install(project) == (0, "", "")
    (project / "constraints.txt").write_text("# newer\n", encoding="utf-8")
    assert install(project, **sources)[0] == 0  # and keeps the group
    assert install(project, options=["--with", "test"], **sources) == (0, "", "")


def test_a_venv_that_somebody_else_made_is_kept(project):
    (project / ".venv").mkdir()
    (project / ".venv/mine.txt").touch()
    code, out, err = install(project)
    assert (code, out) == (1, "") and "was not made by this set-up" in err
    assert (project / ".venv/mine.txt").exists()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("options", [[], ["--newest"]], ids=["link", "behind a link"])
def test_what_a_link_leads_to_is_never_touched(project, tmp_path_factory, options):
    """Another clone, a big disk, a cluster: what lies there belongs to others, whatever mark is in it."""
    others = tmp_path_factory.mktemp("elsewhere")
    place = project / ("build/newest" if options else ".venv")
    mark = others / ("newest/course.begun" if options else "course.begun")
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    (place.parent if options else place).symlink_to(others, target_is_directory=True)
    code, out, err = install(project, options=options)
    assert code == 1 and f"{place} leads to {mark.parent}, and only what lies in {project} itself" in err
    assert mark.exists() and "removing" not in out


def test_newest_and_floor_come_anew_without_constraints_and_leave_the_venv_alone(whole, tmp_path):
    for version in ("1.2", "1.10", "2.0"):
        for name in ("torch", ABSENT):
            wheel(tmp_path / "wheels", name, version)
    depend_on(whole, "torch>=1.10", f"{ABSENT}>=1.2")
    (whole / "constraints.txt").write_text(f"torch == 1.10\n{ABSENT} == 1.2\n", encoding="utf-8")
    sources = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    stamp = json.loads((whole / ".venv/course.json").read_text(encoding="utf-8"))
    for option, torch in (("newest", "2.0"), ("floor", "1.10")):
        venv = whole / "build" / option
        venv.mkdir(parents=True, exist_ok=True)
        (venv / "course.begun").touch()
        (venv / "old.txt").touch()
        code, out, err = install(whole, options=[f"--{option}"], **sources)
        assert (code, err) == (0, "") and f"are set up in build/{option}" in out
        assert installed(venv) == {f"torch-{torch}", "a_package_that_is_nowhere-2.0", "tiny-1"}
        assert not (venv / "old.txt").exists()
    assert json.loads((whole / ".venv/course.json").read_text(encoding="utf-8")) == stamp


def older_pythons():
    """Those that are installed here."""
    paths = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
    return [path for path in paths if re.match(r"2\.|3\.(\d|10)\.", path.parents[1].name)]


def test_a_python_that_is_too_old_is_one_sentence_with_both_versions(project):
    sentence = r"The course needs Python 3.11 or newer, and \S+ is Python [23][\d.]+: .+\n"
    fake = "import sys; sys.version_info = (3, 9, 2)"
    for code, out, err in [install(project, fake), *(install(project, python=p) for p in older_pythons())]:
        assert (code, out) == (1, "") and re.fullmatch(sentence, err)
