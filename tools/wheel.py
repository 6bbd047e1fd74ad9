"""The course as others get it: its wheel, and each chapter alone, where nothing else of the repository is.

    python tools/wheel.py                 builds build/wheel/linformer_from_scratch-VERSION-py3-none-any.whl
    python tools/wheel.py --try [01 …]    installs it in build/wheel-env, made anew, and runs chapters there

The environment is made as that of the course is; the kernels run there, and what drives them runs here.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import course
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "build" / "wheel"
ENV = ROOT / "build" / "wheel-env"
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "linformer_from_scratch")  # what a wheel is made of
LIMIT_S = 1200  # seconds a cell may take; products in bfloat16 take minutes on an older CPU
KERNEL = "wheel"


class WheelError(Exception):
    """One sentence: what failed, and where."""


def name() -> str:
    """The wheel's file name."""
    project = course.project()["project"]
    return f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"


def build(folder: Path) -> Path:
    """Build the wheel into a folder that holds no other, or is not there yet.

    Raises: WheelError with what pip says.
    """
    with tempfile.TemporaryDirectory() as place:  # setuptools leaves files behind, and packs those it finds
        for name in SOURCES:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(place, name))
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
        command += ["--wheel-dir", str(folder), place]
        run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")
    if run.returncode:
        raise WheelError(f"the wheel was not built: {run.stdout}{run.stderr}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path) -> Path:
    """Make an environment anew, with the wheel, what notebooks need, and the pretrained weights; its Python.

    Raises: course.Failure.
    """
    with course.lock():
        course.remove(ENV, "The wheel may have changed")
        course.make_venv(ENV)
        course.install_packages(ENV, set(), ["-c", str(course.CONSTRAINTS)], f"{wheel}[course]")
    return course.python_of(ENV)


def run_alone(chapter: Path, python: Path, folder: Path, **variables: str) -> NotebookNode:
    """Run a notebook from top to bottom, copied into a folder where nothing else is.

    Args:
        python: of the environment whose kernel runs it.
        variables: of that kernel's environment, besides those of this process.

    Raises: WheelError with the sentence of the cell that failed.
    """
    notebook = nbformat.read(shutil.copy(chapter, folder), as_version=4)
    with tempfile.TemporaryDirectory() as kernels:
        command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=40"]
        spec = {"argv": command, "display_name": KERNEL, "language": "python"}
        Path(kernels, KERNEL).mkdir()
        Path(kernels, KERNEL, "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        client = NotebookClient(
            notebook,
            kernel_name=KERNEL,
            timeout=LIMIT_S,
            resources={"metadata": {"path": str(folder)}},
            store_widget_state=False,
        )
        manager = client.create_kernel_manager()
        manager.kernel_spec_manager = KernelSpecManager(kernel_dirs=[kernels])
        try:
            client.execute(env=os.environ | variables)
        except (CellControlSignal, DeadKernelError) as error:
            raise WheelError(f"{chapter.name}: {said(error)}") from None
        except AssertionError:  # of nbclient, which tidies up twice after a kernel that has died
            raise WheelError(f"{chapter.name}: Kernel died") from None
    return notebook


def said(error: Exception) -> str:
    """The sentence of a cell that failed, without its traceback."""
    return getattr(error, "evalue", None) or str(error)


def chapters(numbers: list[str]) -> list[Path]:
    """The chapters of these numbers, such as 04; all where there is none.

    Raises: WheelError if there is no such chapter.
    """
    paths = sorted((ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
    known = [path.name[:2] for path in paths]
    for number in numbers:
        if number not in known:
            raise WheelError(f"there is no chapter {number}, expected {known[0]} to {known[-1]}")
    return [path for path in paths if not numbers or path.name[:2] in numbers]


def try_chapters(tried: list[Path], python: Path) -> None:
    """Run chapters, each alone; a line says how long it took.

    Raises: WheelError at the first cell that fails.
    """
    os.environ.pop("PYTHONPATH", None)
    for chapter in tried:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            run_alone(chapter, python, Path(folder))
            print(f"{chapter.name}: {time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    """Do what the command line says; a failure is one sentence and exit code 1."""
    parser = argparse.ArgumentParser(description="Build the wheel of the course, and try it.")
    parser.add_argument("--try", dest="tried", nargs="*", metavar="NN", help="run these chapters, or all")
    arguments = parser.parse_args()
    try:
        tried = chapters(arguments.tried or [])
        course.clear(WHEELS)
        wheel = build(WHEELS)
        print(wheel.relative_to(ROOT))
        if arguments.tried is not None:
            try_chapters(tried, install(wheel))
    except (WheelError, course.Failure) as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
