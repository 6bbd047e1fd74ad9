"""The course as others get it: its wheel, and each chapter alone, where nothing else of the repository is.

    python tools/wheel.py                 builds build/wheel/linformer_from_scratch-VERSION-py3-none-any.whl
    python tools/wheel.py --try [01 …]    installs it in build/wheel-env, made anew, and runs chapters there

The environment is made as that of the course is.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import course
import nbformat
from lectures import chapters, numbered
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "build" / "wheel"
ENV = ROOT / "build" / "wheel-env"
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "linformer_from_scratch")  # what a wheel is made of
LIMIT_S = 1200  # seconds a cell may take; products in bfloat16 take minutes on an older CPU
EXECUTE = "from nbclient.cli import main; main()"  # `jupyter execute`, of whichever Python
OWN_KERNEL = {"JUPYTER_PREFER_ENV_PATH": "1"}  # the environment's, whatever kernels its user has


def name() -> str:
    """The wheel's file name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"


def build(folder: Path) -> Path:
    """Build the wheel into a folder that holds no other, or is not there yet; exits with what pip says."""
    with tempfile.TemporaryDirectory() as place:  # setuptools leaves files behind, and packs those it finds
        for name in SOURCES:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(place, name))
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
        command += ["--wheel-dir", str(folder), place]
        run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")
    if run.returncode:
        sys.exit(f"the wheel was not built: {run.stdout}{run.stderr}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path) -> Path:
    """Make an environment anew with the wheel, what notebooks need and the pretrained weights; its Python."""
    with course.lock():
        course.make_venv(ENV)
        course.install_packages(ENV, [f"{wheel}[course]"], [], "-c", str(course.CONSTRAINTS))
    return course.python_of(ENV)


def run_alone(chapter: Path, python: Path, folder: Path, **variables: str) -> NotebookNode:
    """Run a notebook from top to bottom, copied into a folder where nothing else is.

    Args:
        python: of the environment that runs it.
        variables: of its environment, besides those of this process.

    Exits with the last words of the cell that failed.
    """
    copy = shutil.copy(chapter, folder)
    command = [str(python), "-c", EXECUTE, "--inplace", f"--timeout={LIMIT_S}", str(copy)]
    own = OWN_KERNEL | {"IPYTHONDIR": str(folder / ".ipython")}
    environment = os.environ | own | variables
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8")
    if run.returncode:
        sys.exit(f"{chapter.name}: {strip_ansi(run.stderr).strip().splitlines()[-1]}")
    return nbformat.read(copy, as_version=4)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Build the wheel of the course, and try it.")
    parser.add_argument("--try", dest="tried", nargs="*", metavar="NN", help="run these chapters, or all")
    arguments = parser.parse_args()
    tried = numbered(chapters(), arguments.tried or [])
    course.clear(WHEELS)
    wheel = build(WHEELS)
    print(wheel.relative_to(ROOT))
    if arguments.tried is None:
        return
    python = install(wheel)
    os.environ.pop("PYTHONPATH", None)
    for chapter in tried:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            run_alone(chapter, python, Path(folder))
        print(f"{chapter.name}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
